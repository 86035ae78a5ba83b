"""What a query keeps in state, as facts that a later build compares."""
