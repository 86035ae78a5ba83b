"""Tables: those that streams read, and the columns of those that queries write."""
