"""The command that brings back what a full refresh has replaced."""
