"""Iceberg tables as sources: foreign ones, and those of other projects, in the target's catalog: `iceberg_source`."""
