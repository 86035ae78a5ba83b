"""A dbt project, as its manifest.json describes it, becomes a Headrace project."""
