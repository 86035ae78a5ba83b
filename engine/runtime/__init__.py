"""Stage 4: runs what the plan says. Builds no SQL from pieces of the project."""
