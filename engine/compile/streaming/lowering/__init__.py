"""From the tree of a query to its logical plan."""
