"""What is deployed: state, checkpoints, tables and source files, read without Java."""
