"""The names that templates of a project may use.

`ref()` and `source()` render to placeholders, quoted identifiers that begin with @: the graph is read from
the rendered SQL, so that a reference that is commented out or left out by an `if` does not count.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NoReturn

from engine.errors import ProjectError, near
from engine.secrets import PREFIX

REF = "@ref "
SOURCE = "@source "
THIS = "@this"

_log = logging.getLogger("engine.project")
_MISSING = object()


@dataclass(slots=True)
class Names:
    """The functions templates call, and the model that is being rendered at the moment."""

    variables: Mapping[str, Any]
    env: Mapping[str, str] = field(default_factory=lambda: os.environ)
    secrets_allowed: bool = False
    calls: list[dict[str, Any]] = field(default_factory=list)
    used_vars: dict[str, Any] = field(default_factory=dict)
    target: Mapping[str, str] = field(default_factory=dict)

    def for_values(self) -> dict[str, Any]:
        """What values of headers, sources and targets may use."""
        return {"var": self.var, "env_var": self.env_var}

    def for_models(self) -> dict[str, Any]:
        """What models and macros may use."""
        refused = {
            name: _refusal(name)
            for name in ("is_incremental", "is_streaming", "is_full_refresh", "should_full_refresh")
        }
        return {
            **self.for_values(),
            **refused,
            "ref": ref,
            "source": source,
            "this": f"`{THIS}`",
            "config": self.config,
            "target": _Target(self),
            "log": log,
            "exceptions": _Exceptions(),
        }

    def var(self, name: str, default: Any = _MISSING) -> Any:
        """A variable of project.yml or --vars."""
        if name in self.variables:
            self.used_vars[name] = self.variables[name]
            return self.variables[name]
        if default is _MISSING:
            hint = (
                near(name, self.variables)
                or "Define it under 'vars:' in project.yml, or give var() a default."
            )
            raise ProjectError("var-missing", f"the variable '{name}' is not defined", hint)
        return default

    def env_var(self, name: str, default: Any = _MISSING) -> Any:
        """A variable of the environment; secrets in targets only."""
        if name.startswith(PREFIX) and not self.secrets_allowed:
            hint = (
                "Use it in the target's settings in project.yml; models and sources are written to artifacts."
            )
            raise ProjectError("secret-outside-target", f"the secret '{name}' is used outside a target", hint)
        if name in self.env:
            return self.env[name]
        if default is _MISSING:
            hint = f"Set it (export {name}=...), or give env_var() a default."
            raise ProjectError("env-missing", f"the environment variable '{name}' is not set", hint)
        return default

    def config(self, **keys: Any) -> str:
        """Settings of the model; renders to nothing."""
        self.calls.append(keys)
        return ""


class _Target:
    """The target's public facts: name, schema, catalog."""

    def __init__(self, names: Names) -> None:
        self._names = names

    def __getattr__(self, key: str) -> str:
        try:
            return self._names.target[key]
        except KeyError:
            raise AttributeError(key) from None


class _Exceptions:
    """`exceptions.raise_compiler_error` and `exceptions.warn`, as in dbt."""

    @staticmethod
    def raise_compiler_error(message: str) -> NoReturn:
        raise ProjectError("compiler-error", str(message))

    @staticmethod
    def warn(message: str) -> str:
        _log.warning("%s", message)
        return ""


def ref(*names: str) -> str:
    """The placeholder of a model; a package name before the model's is accepted."""
    return f"`{REF}{names[-1] if names else ''}`"


def source(*names: str) -> str:
    """The placeholder of a source table: source('github', 'events') or source('github.events')."""
    return f"`{SOURCE}{'.'.join(names)}`"


def log(message: Any, info: bool = False) -> str:
    """Write to the log; with info also to the terminal."""
    _log.log(logging.INFO if info else logging.DEBUG, "%s", message)
    return ""


def _refusal(name: str) -> Any:
    def call(*_: Any, **__: Any) -> NoReturn:
        hint = (
            "Headrace runs one and the same query over one state: write the plain SELECT; new rows only are "
            "read anyway, and a rebuild runs the same text."
        )
        raise ProjectError("run-varying-value", f"'{name}()' has no meaning here", hint)

    return call
