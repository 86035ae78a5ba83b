"""Headrace: SQL-first streaming tables on Spark Structured Streaming and Apache Iceberg."""

__version__ = "0.1.0"
