"""Around a query of Spark: its errors, its plan, hooks, the order of its state."""
