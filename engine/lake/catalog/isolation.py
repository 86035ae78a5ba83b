"""PyIceberg without its configuration: what it does follows from the target alone."""

from __future__ import annotations

from functools import cache


@cache
def isolate() -> None:
    """Let PyIceberg read neither `.pyiceberg.yaml` nor PYICEBERG_ variables in this process.

    It looks for the file in the current folder too, which is a project's, and a catalog's properties name classes to
    import. To be called before any other import of PyIceberg: some of its modules read the configuration when imported.
    """
    from pyiceberg.utils.config import Config

    Config._from_configuration_files = staticmethod(lambda: None)  # type: ignore[method-assign]  # noqa: SLF001
    Config._from_environment_variables = staticmethod(lambda config: config)  # type: ignore[method-assign]  # noqa: SLF001
