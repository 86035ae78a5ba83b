"""Stage 1: what the files of a project say, with positions; nothing is rendered and no SQL is read."""

from engine.project.load import Project, load_project
from engine.project.model_file import ModelFile, ModelText, open_model

__all__ = ["ModelFile", "ModelText", "Project", "load_project", "open_model"]
