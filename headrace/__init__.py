"""The Python API of Headrace: `Project`, `Selection`, `events` and `errors`.

Importing this package loads nothing of `engine`: a repository may have a package `engine` of its own.
"""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from engine import __version__, errors, events
    from engine.api import Project, Selection

_HOMES = {"Project": "engine.api", "Selection": "engine.api", "__version__": "engine"}
_MODULES = ("errors", "events")

__all__ = ["Project", "Selection", "__version__", "errors", "events"]


def load_ipython_extension(shell: Any) -> None:
    """`%load_ext headrace` in a notebook."""
    check_engine()
    from engine.notebook import register

    register(shell)


def check_engine() -> None:
    """Reject another package `engine`.

    Raises:
        ImportError: `import engine` gives another package, whose place the message names.
    """
    spec = find_spec("engine")
    own = Path(__file__).parents[1] / "engine" / "__init__.py"
    places = [spec.origin] if spec and spec.origin else list(spec.submodule_search_locations or ()) if spec else []
    if not any(Path(place).resolve() == own.resolve() for place in places):
        raise ImportError(
            f"Headrace needs its own package 'engine', and 'import engine' gives {', '.join(places)} here"
        )


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        check_engine()
        return import_module(f"engine.{name}")
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    check_engine()
    return getattr(import_module(_HOMES[name]), name)
