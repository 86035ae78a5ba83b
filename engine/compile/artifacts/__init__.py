"""The nodes as others read them: dbt's manifest, compiled files, PySpark scripts, JSON."""
