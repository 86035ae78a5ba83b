"""What a build does to each node, and why: decided from the manifest and what is deployed, nothing else."""
