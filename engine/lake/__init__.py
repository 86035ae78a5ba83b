"""Iceberg tables: how they are made, written and read, and the commits of the engine."""
