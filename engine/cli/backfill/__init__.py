"""`engine backfill`."""
