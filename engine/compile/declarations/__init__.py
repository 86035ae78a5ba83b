"""What a project declares beside its models: sources, target, and what all models share."""
