"""Which node of `engine start` is due, and why. Pure: the clock is given, and nothing is read or run."""
