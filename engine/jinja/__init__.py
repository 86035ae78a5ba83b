"""The one Jinja sandbox, and maps from rendered text back to the template.

    sandbox          all of it together; environment: what templates may use and change; template_limits: how much
    macro_library    all macros and the names they have; macro_file: a file of them; macro_calls: one, or a package
    rendered_text    rendered text and its way back to the template; template_tokens: places in a template's text
    template_errors  what a failure says and where it is
    opaque_values    objects with a fixed text and no parts

Jinja is loaded by the first use of a name that needs it: a project that is only loaded does not.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from engine.jinja.macro_file import OWN, MacroFile

if TYPE_CHECKING:
    from engine.jinja.macro_calls import give_back
    from engine.jinja.macro_library import Absent
    from engine.jinja.rendered_text import Rendered
    from engine.jinja.sandbox import Sandbox
    from engine.jinja.template_errors import CRASH, FAILURES

__all__ = ["CRASH", "FAILURES", "OWN", "Absent", "MacroFile", "Rendered", "Sandbox", "give_back"]

_HOMES = {
    "Absent": "macro_library", "CRASH": "template_errors", "FAILURES": "template_errors",
    "Rendered": "rendered_text", "Sandbox": "sandbox", "give_back": "macro_calls",
}  # fmt: skip


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(name)
    return getattr(import_module(f"engine.jinja.{_HOMES[name]}"), name)
