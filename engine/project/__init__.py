"""Stage 1: what the files of a project say, with positions; nothing is rendered and no SQL is read."""

from engine.project.model_files import ModelFile, ModelText, open_model
from engine.project.project_loader import LoadedProject, is_project, load_project, missing_project

__all__ = ["LoadedProject", "ModelFile", "ModelText", "is_project", "load_project", "missing_project", "open_model"]
