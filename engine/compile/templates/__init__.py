"""What Jinja templates of a project can use, and what it costs them."""
