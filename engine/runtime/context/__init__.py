"""What all parts of a run share."""
