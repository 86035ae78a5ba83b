"""Templates of dbt as text: what they are made of, and what incremental runs add."""
