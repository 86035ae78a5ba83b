"""What an edit of a model is shown as: its lines, and the columns of other models that it affects."""
