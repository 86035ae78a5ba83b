"""From a micro-batch to a commit, and what is told of it."""
