"""Compiling a project: what changed, in the order of references, in several processes."""
