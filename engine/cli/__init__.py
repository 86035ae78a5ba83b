"""The command line: arguments in, lines and exit codes out."""
