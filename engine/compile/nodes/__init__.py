"""What is known of a project's models, sources and tests: records that all later stages read."""
