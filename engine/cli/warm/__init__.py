"""Commands that a warm process carries out (docs/design/094)."""
