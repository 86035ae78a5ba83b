"""Folders of files as sources."""
