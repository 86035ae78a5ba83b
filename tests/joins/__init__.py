"""Random joins of streams: their tables beside a batch join of all rows that were not late (`python -m tests.joins`)."""
