"""Last stage: what a project is and how its last run went, as pages that need nothing but a browser."""

from engine.docs.site import write_site

__all__ = ["write_site"]
