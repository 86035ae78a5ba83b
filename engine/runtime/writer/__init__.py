"""From a micro-batch to a commit, and what is reported of it."""
