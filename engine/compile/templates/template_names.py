"""The names that templates of a project may use.

`ref()` and `source()` render to quoted identifiers that begin with @, so that the graph is read from rendered SQL.
"""

from __future__ import annotations

import logging
import math
import re
import uuid
from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NoReturn

from engine.compile.templates.secret_settings import SecretSettings, reject_credential
from engine.errors import Location, ProjectError, near
from engine.jinja.opaque_values import Opaque
from engine.secrets.scrubber import is_credential, names_credential

if TYPE_CHECKING:
    from engine.jinja import Sandbox

REF = "@ref "
SOURCE = "@source "
THIS = "@this"

_log = logging.getLogger("engine.project")
_MISSING = object()
_TAG = re.compile(r"\{[{%]")


@dataclass(slots=True)
class TemplateNames:
    """The functions templates call, and the model that is being rendered at the moment.

    `env` has no secrets; `secrets` puts placeholders into a target's settings; None: not allowed. `repeatable`: false
    where rendering does more than give a text, or varies. `started` (UTC) is for `run_started_at`.
    """

    variables: Mapping[str, Any]
    env: Mapping[str, str] = field(default_factory=dict, repr=False)
    secrets: SecretSettings | None = None
    calls: list[dict[str, Any]] = field(default_factory=list)
    used_env: set[str] = field(default_factory=set)
    repeatable: bool = True
    target: Mapping[str, str] = field(default_factory=dict)
    project: str = ""
    started: datetime = field(default_factory=lambda: datetime.now(UTC))
    invocation: str = field(default_factory=lambda: str(uuid.uuid4()))
    run_values: bool = False
    varied: bool = False
    _sandbox: Sandbox | None = None
    _rendering: list[str] = field(default_factory=list)

    def begin(self) -> None:
        self.calls = []
        self.used_env = set()
        self.repeatable = True
        self.varied = False

    def for_values(self) -> dict[str, Any]:
        return {"var": self.var, "env_var": self.env_var, "target": _Target(self)}

    def for_models(self) -> dict[str, Any]:
        from engine.compile.templates.dbt_functions import dbt_names
        from engine.compile.templates.template_functions import RunValue, plain_functions

        absent = dbt_names()
        return {
            **absent,
            "run_started_at": RunValue(self.started, absent["run_started_at"], self._may_vary),
            "invocation_id": RunValue(self.invocation, absent["invocation_id"], self._may_vary),
            **self.for_values(),
            **plain_functions(),
            "ref": ref,
            "source": source,
            "this": THIS_TABLE,
            "config": _Config(self),
            "project_name": self.project,
            "execute": True,
            "log": self.log,
            "print": self.print,
            "exceptions": _Exceptions(self),
        }

    def _may_vary(self) -> bool:
        """Whether a value of the run may be used; it is noted that it is."""
        self.varied = self.varied or self.run_values
        self.repeatable = self.repeatable and not self.run_values
        return self.run_values

    def var(self, name: str, default: Any = _MISSING) -> Any:
        """A variable of project.yml or --vars; its value may be Jinja, and is a copy for its user to change."""
        if name in self.variables:
            return self._rendered_variable(name, deepcopy(self.variables[name]))
        if default is _MISSING:
            hint = near(name, self.variables) or "Define it under 'vars:' in project.yml, or give var() a default."
            raise ProjectError("var-missing", f"the variable '{name}' is not defined", hint)
        return default

    def _rendered_variable(self, name: str, value: Any) -> Any:
        if isinstance(value, dict):
            return {key: self._rendered_variable(name, inner) for key, inner in value.items()}
        if isinstance(value, list):
            return [self._rendered_variable(name, inner) for inner in value]
        if not isinstance(value, str) or not _TAG.search(value):
            return value
        if name in self._rendering:
            raise ProjectError(
                "jinja-error", f"the variable '{name}' refers to itself", "Write the value of one of them literally."
            )
        self._rendering.append(name)
        try:
            return self._values().render_value(value, Location("project.yml"), {})
        except ProjectError as error:
            first = error.diagnostic
            message = f"the value of the variable '{name}' cannot be computed: {first.message}"
            raise ProjectError(first.code, message, first.hint) from error
        finally:
            self._rendering.pop()

    def _values(self) -> Sandbox:
        if self._sandbox is None:
            from engine.compile.templates.dbt_functions import value_names
            from engine.jinja import Sandbox

            self._sandbox = Sandbox(value_names(self.for_values()))
        return self._sandbox

    def env_var(self, name: str, default: Any = _MISSING) -> Any:
        """A variable of the environment; of a secret, which only targets may name, a placeholder."""
        if not isinstance(name, str):
            raise ProjectError("wrong-type", "'env_var()' takes a quoted name", "Write env_var('HOME').")
        if names_credential(name) or is_credential(self.env.get(name, "")):
            if self.secrets is None:
                reject_credential(name)
            return self.secrets.placeholder(name, None if default is _MISSING else default)
        self.used_env.add(name)
        if name in self.env:
            return self.env[name]
        if default is _MISSING:
            hint = f"Set it (export {name}=...), or give env_var() a default."
            raise ProjectError("env-missing", f"the environment variable '{name}' is not set", hint)
        return default

    def log(self, message: Any, info: bool = False) -> str:
        from engine.jinja.template_limits import whole

        self.repeatable = False
        _log.log(logging.INFO if info else logging.DEBUG, "%s", whole(message))
        return ""

    def print(self, message: Any) -> str:
        return self.log(message, info=True)


class _Config(Opaque):
    __slots__ = ("_names",)

    def __init__(self, names: TemplateNames) -> None:
        self._names = names

    def __call__(self, settings: Mapping[str, Any] | None = None, **keys: Any) -> str:
        from engine.jinja.template_limits import whole

        call_settings = {key: _config_value(key, whole(value)) for key, value in {**(settings or {}), **keys}.items()}
        self._names.calls.append(call_settings)
        return ""

    @staticmethod
    def get(*_: Any, **__: Any) -> NoReturn:
        hint = "Keep the value in a variable: {% set key = 'id' %}, then config(unique_key=key)."
        raise ProjectError("jinja-undefined", "'config.get' is not supported", hint)

    require = get


# As JSON's readers know numbers.
_LARGEST = 2**63 - 1


def _config_value(key: str, value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(name): _config_value(key, inner) for name, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [_config_value(key, inner) for inner in value]
    if not math.isfinite(value) if isinstance(value, float) else isinstance(value, int) and abs(value) > _LARGEST:
        description = "an infinity or NaN" if isinstance(value, float) else "a number of more than 64 bits"
        raise ProjectError("wrong-type", f"'{key}' in config() is {description}", "Write it as a string, in quotes.")
    if value is None or isinstance(value, (str, int, float)):
        return value
    _look_at(value)
    raise ProjectError("wrong-type", f"'{key}' in config() is not a string, number, list or mapping", _CONFIG)


def _look_at(value: Any) -> None:
    from jinja2 import Undefined

    if isinstance(value, Undefined):
        str(value)


_CONFIG = "Write config(tags=['hourly'], enabled=true)."


class _Target(Opaque):
    __slots__ = ("_names",)

    def __init__(self, names: TemplateNames) -> None:
        self._names = names

    def __getattr__(self, name: str) -> str:
        if name.startswith("_"):
            raise AttributeError(name)
        target_facts = self._names.target
        if not target_facts:
            raise ProjectError(
                "jinja-undefined", "'target' cannot be used in the target's own settings", "Write it out."
            )
        facts = {**target_facts, "database": target_facts.get("catalog", ""), "type": "spark"}
        if name not in facts:
            raise AttributeError(name)
        return facts[name]


class _Exceptions(Opaque):
    __slots__ = ("_names",)

    def __init__(self, names: TemplateNames) -> None:
        self._names = names

    @staticmethod
    def raise_compiler_error(message: str) -> NoReturn:
        hint = "A macro rejects this on purpose: correct the call as its message asks, or change the macro."
        raise ProjectError("compiler-error", str(message), hint)

    def warn(self, message: str) -> str:
        self._names.repeatable = False
        _log.warning("%s", message)
        return ""


class Placeholder(str):
    """What ref(), source() and this give: a name in the SQL, without parts."""

    __slots__ = ()

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("__"):
            raise AttributeError(name)
        relation_name = spoken(self)
        hint = "The location of a table is set by the target: {{ target.catalog }}, {{ target.schema }}."
        raise ProjectError("jinja-undefined", f"'{relation_name}' is the name of a relation and has no '{name}'", hint)


THIS_TABLE = Placeholder(f"`{THIS}`")


def ref(name: str, *names: str, **version: Any) -> Placeholder:
    """Give the placeholder of a model; a package name before the model's is accepted."""
    if version:
        raise ProjectError("not-supported", "'ref()' does not support versions", "Make each version a separate model.")
    return Placeholder(f"`{REF}{_name('ref', (name, *names)[-1])}`")


def source(name: str, *names: str) -> Placeholder:
    """Give the placeholder of a source table: of 'github', 'events' or of 'github.events'."""
    return Placeholder(f"`{SOURCE}{'.'.join(_name('source', part) for part in (name, *names))}`")


def _name(function: str, value: Any) -> str:
    if isinstance(value, str):
        return value.replace("`", "")
    name = getattr(value, "_undefined_name", None)
    if isinstance(name, str):
        hint = f"Quote the name: {function}('{name}')."
        raise ProjectError("jinja-undefined", f"'{name}' is undefined", hint)
    raise ProjectError("wrong-type", f"'{function}()' takes a quoted name", f"Write {function}('flights').")


def spoken(text: str) -> str:
    def written(match: re.Match[str]) -> str:
        quoted = ", ".join(f"'{part}'" for part in match[2].split("."))
        return f"{match[1]}({quoted})"

    return re.sub(r"`@(ref|source) ([^`]*)`", written, text).replace(f"`{THIS}`", "this")
