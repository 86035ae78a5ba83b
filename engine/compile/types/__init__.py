"""Spark's types, and the types that its functions take and return."""
