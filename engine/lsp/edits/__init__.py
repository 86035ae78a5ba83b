"""Changes that an editor makes for somebody: fixes, tests, renames."""
