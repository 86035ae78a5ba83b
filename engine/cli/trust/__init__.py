"""Whom the user lets a project give secrets to: `engine trust`."""
