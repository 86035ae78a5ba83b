"""How a batch table is refreshed: skipped, in part, or in full."""
