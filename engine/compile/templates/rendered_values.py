"""Jinja in the values of headers, sources and targets: rendered value by value after YAML is read.

Values know var(), env_var() and target; hooks also `this`, the model's table, which is put in later.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from engine.compile.templates.template_names import THIS_TABLE
from engine.errors import ProjectError
from engine.project.yaml_section import UNKNOWN, Section

if TYPE_CHECKING:
    from engine.compile.templates.secret_settings import SecretSettings
    from engine.jinja import Sandbox

_HOOKS = {"pre_hook", "post_hook"}


@dataclass(frozen=True)
class ValueRenderer:
    names: Mapping[str, Any] = field(repr=False)
    secrets: SecretSettings | None = None

    @cached_property
    def sandbox(self) -> Sandbox:
        from engine.compile.templates.dbt_functions import value_names
        from engine.jinja import Sandbox

        return Sandbox(value_names(self.names))

    def rendered(self, section: Section) -> Section:
        return section.holding(self._walk(section)) if _has_template(section.value) else section

    def _walk(self, part: Section) -> Any:
        if isinstance(part.value, dict):
            return {key: self._walk(value) for key, value in part.mapping()}
        if isinstance(part.value, list):
            return [self._walk(item) for item in part.items()]
        if isinstance(part.value, str) and _has_template(part.value):
            try:
                more = {"this": THIS_TABLE} if _HOOKS.intersection(part.path) else {}
                before = self.secrets.placeholder_count() if self.secrets else 0
                text = self.sandbox.render_value(part.value, part.place, more)
                return self.secrets.check(text, part, before) if self.secrets else text
            except ProjectError as error:
                part.diagnostics.extend(d.at(None, part.node) for d in error.diagnostics)
                return UNKNOWN
        return part.value


def _has_template(value: Any) -> bool:
    if isinstance(value, dict):
        return any(map(_has_template, value.values()))
    if isinstance(value, list):
        return any(map(_has_template, value))
    return isinstance(value, str) and ("{{" in value or "{%" in value)
