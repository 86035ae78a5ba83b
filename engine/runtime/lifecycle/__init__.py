"""The states of a table: first build, full refresh, new checkpoint, staged and published."""
