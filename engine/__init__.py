"""Headrace: SQL-first streaming tables on Spark Structured Streaming and Apache Iceberg."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from engine.api import Project

__version__ = "0.1.0"
__all__ = ["Project", "__version__"]


def load_ipython_extension(shell: Any) -> None:
    from engine.notebook import register

    register(shell)


def __getattr__(name: str) -> Any:
    """Load `Project` on first use: every module of the engine imports this one."""
    if name != "Project":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from engine.api import Project

    return Project
