"""SQL as it is read: tokens, calls, strings, types and patterns of a warehouse."""
