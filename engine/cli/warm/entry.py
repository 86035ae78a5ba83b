"""Where scripts of checkouts that were installed before begin; an installation writes them again."""

from engine.cli.entry import main

__all__ = ["main"]
