"""What a batch query allows a refresh to leave as it is."""
