"""Places and parts of texts."""
