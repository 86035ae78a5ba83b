"""`engine start` on a real broker while faults happen: its tables must end as if nothing had."""
