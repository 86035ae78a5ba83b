"""Which tests need not run, because their last pass was of exactly what they would look at now."""
