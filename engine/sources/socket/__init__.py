"""Lines of a TCP server, for development."""
