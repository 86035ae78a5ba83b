"""OpenLineage: events, datasets, and their delivery."""
