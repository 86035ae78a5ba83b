"""Tables of another target as this target's own, over the same files and from the same checkpoint."""
