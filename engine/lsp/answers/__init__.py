"""What an editor asks about a place or a file."""
