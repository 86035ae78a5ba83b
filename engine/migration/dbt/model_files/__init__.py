"""Writing models in the words of the new project."""
