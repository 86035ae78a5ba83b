"""Random queries: our verdict beside Spark's own (`python -m tests.fuzz --count 500 --seed 1`)."""
