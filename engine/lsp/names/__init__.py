"""The names of a project: what each is, and every place where it is written."""
