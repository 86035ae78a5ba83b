"""What a query refers to, and what is written in its place: tables, ephemeral models, windows."""
