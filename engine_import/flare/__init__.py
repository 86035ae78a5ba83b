"""A Flare job, a YAML file with inputs, SQL steps and outputs, becomes a Headrace project."""
