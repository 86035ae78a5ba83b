"""Pages of the documentation that a reader can follow: what they show is run."""
