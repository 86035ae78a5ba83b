"""Random histories of a target that is cloned from another one, beside plain Python."""
