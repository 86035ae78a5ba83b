"""Jinja in the values of headers, sources and targets: rendered value by value after YAML is read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from engine.errors import ProjectError
from engine.jinja import Sandbox
from engine.project.section import UNKNOWN, Section


@dataclass(frozen=True, slots=True)
class Values:
    """Renders values with the names that values may use: var() and env_var()."""

    sandbox: Sandbox
    names: Mapping[str, Any]

    def rendered(self, section: Section) -> Section:
        """The section with Jinja in its values rendered; a failure is a finding at the value."""
        return replace(section, value=self._walk(section))

    def _walk(self, part: Section) -> Any:
        if isinstance(part.value, dict):
            return {key: self._walk(value) for key, value in part.mapping()}
        if isinstance(part.value, list):
            return [self._walk(item) for item in part.items()]
        if isinstance(part.value, str) and ("{{" in part.value or "{%" in part.value):
            try:
                return self.sandbox.render_value(part.value, part.place, self.names)
            except ProjectError as error:
                part.found.extend(d.at(None, part.node) for d in error.diagnostics)
                return UNKNOWN
        return part.value
