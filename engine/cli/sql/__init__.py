"""`engine sql`: queries over the stored tables, one at a time or at a prompt."""
