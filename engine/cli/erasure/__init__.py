"""`engine erase`."""
