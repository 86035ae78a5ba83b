"""The text of a query: tokens, tree, one spelling, and what only other databases have."""
