"""Commands that a warm process carries out."""
