"""Which nodes a command means: selections, selectors.yml, `state:` and `result:`."""
