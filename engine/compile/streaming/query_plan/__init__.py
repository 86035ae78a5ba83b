"""Spark's logical plan, as far as streaming depends on it, and what the optimizer does to it."""
