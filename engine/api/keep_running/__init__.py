"""`engine start`: one process that decides, its workers, its polls, and edits while it runs."""
