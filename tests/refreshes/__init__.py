"""Random queries over random changes: what the search for changed keys finds is a superset of what changed."""
