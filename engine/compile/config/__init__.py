"""The keys of a model's header, of folder defaults and of tests: read, merged and checked."""
