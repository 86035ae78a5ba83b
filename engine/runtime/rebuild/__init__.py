"""`engine build --rebuild`: streaming tables rebuilt beside those that are read and written meanwhile."""
