"""Stage 1: what the files of a project say, with positions; nothing is rendered and no SQL is read."""

from engine.project.load import ModelFile, Project, load_project

__all__ = ["ModelFile", "Project", "load_project"]
