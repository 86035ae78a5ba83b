"""Bringing back what a full refresh has replaced."""
