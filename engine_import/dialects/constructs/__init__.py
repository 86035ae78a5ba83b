"""Constructs of SQL that Spark writes in another way, each at its place."""
