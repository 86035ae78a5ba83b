"""dbt's manifest.json, and the names that its nodes have in the new project."""
