"""Secrets of a project: which values they are, where a target sends them, and how they are kept out of texts.

In go the environment and the settings of a target; out come scrubbed texts (`scrubber`), and the pairs of secret and
place that the user has not confirmed (`trusted_projects`). Start reading in `scrubber`.
"""
