"""The names that templates of a project may use.

`ref()` and `source()` render to placeholders, quoted identifiers that begin with @: the graph is read from
the rendered SQL, so that a reference that is commented out or left out by an `if` does not count.
"""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NoReturn

import jinja2

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
            "target": _Target(self.target),
            "log": log,
            "exceptions": _Exceptions(),
        }

    def var(self, name: str, default: Any = _MISSING) -> Any:
        """A variable of project.yml or --vars."""
        if name in self.variables:
            self.used_vars[name] = self.variables[name]
            return self.variables[name]
        if default is _MISSING:
            hint = near(name, self.variables) or "Define it under 'vars:' in project.yml, or give var() a default."
            raise ProjectError("var-missing", f"the variable '{name}' is not defined", hint)
        return default

    def env_var(self, name: str, default: Any = _MISSING) -> Any:
        """A variable of the environment; secrets in targets only."""
        if name.startswith(PREFIX) and not self.secrets_allowed:
            hint = "Use it in the target's settings in project.yml; models and sources are written to artifacts."
            raise ProjectError("secret-outside-target", f"the secret '{name}' is used outside a target", hint)
        if name in self.env:
            return self.env[name]
        if default is _MISSING:
            hint = f"Set it (export {name}=...), or give env_var() a default."
            raise ProjectError("env-missing", f"the environment variable '{name}' is not set", hint)
        return default

    def config(self, settings: Mapping[str, Any] | None = None, **keys: Any) -> str:
        """Settings of the model; renders to nothing."""
        self.calls.append({key: _plain(key, value) for key, value in {**(settings or {}), **keys}.items()})
        return ""


def _plain(key: str, value: Any) -> Any:
    """A value of config() as YAML would have it; an undefined one raises as it is looked at."""
    if isinstance(value, Mapping):
        return {str(name): _plain(key, inner) for name, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(key, inner) for inner in value]
    if isinstance(value, jinja2.Undefined):
        str(value)
    if value is None or isinstance(value, (str, int, float)):
        return value
    raise ProjectError("wrong-type", f"'{key}' in config() is no text, number, list or mapping", _CONFIG)


_CONFIG = "Write config(tags=['hourly'], enabled=true)."


class _Target:
    """The target's public facts."""

    def __init__(self, facts: Mapping[str, str]) -> None:
        self.name = facts.get("name", "")
        self.schema = facts.get("schema", "")
        self.catalog = facts.get("catalog", "")


class _Exceptions:
    """`exceptions.raise_compiler_error` and `exceptions.warn`, as in dbt."""

    @staticmethod
    def raise_compiler_error(message: str) -> NoReturn:
        raise ProjectError("compiler-error", str(message))

    @staticmethod
    def warn(message: str) -> str:
        _log.warning("%s", message)
        return ""


def ref(name: str, *names: str) -> str:
    """Give the placeholder of a model; a package name before the model's is accepted."""
    return f"`{REF}{_name('ref', (name, *names)[-1])}`"


def source(name: str, *names: str) -> str:
    """Give the placeholder of a source table: of 'github', 'events' or of 'github.events'."""
    return f"`{SOURCE}{'.'.join(_name('source', part) for part in (name, *names))}`"


def _name(function: str, value: Any) -> str:
    if isinstance(value, str):
        return value.replace("`", "")
    if isinstance(value, jinja2.Undefined):
        str(value)
    raise ProjectError("wrong-type", f"'{function}()' takes a name in quotes", f"Write {function}('flights').")


def spoken(text: str) -> str:
    """A piece of rendered SQL with the placeholders as the user wrote them."""

    def written(match: re.Match[str]) -> str:
        quoted = ", ".join(f"'{part}'" for part in match[2].split("."))
        return f"{match[1]}({quoted})"

    return re.sub(r"`@(ref|source) ([^`]*)`", written, text).replace(f"`{THIS}`", "this")


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
