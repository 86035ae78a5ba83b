"""The lineage site: its data, pages and drawings."""
