"""What an import reads and writes: bounded input, a new folder, YAML text, and the report."""
