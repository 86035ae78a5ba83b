"""The one Jinja sandbox, and maps from rendered text back to the template.

    files        a file of macros, before Jinja sees it
    environment  the sandbox: what templates may use and change
    macros       a macro, a package of macros; library: all of them and the names they have
    tokens       places in a template's text
    rendered     rendered text and its way back to the template
    faults       what a failure says and where it stands
    absent       names that people know from elsewhere
    opaque       objects with a fixed text and no parts; objects: what templates get from values
    shared       what is reached from the values of a macro file, and may not be changed
    sandbox      all of it together

Jinja is loaded by the first use of a name that needs it: a project that is only loaded does not.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from engine.jinja.files import OWN, MacroFile

if TYPE_CHECKING:
    from engine.jinja.absent import Absent
    from engine.jinja.faults import CRASH, FAILURES
    from engine.jinja.macros import give_back
    from engine.jinja.rendered import Rendered
    from engine.jinja.sandbox import Sandbox

__all__ = ["CRASH", "FAILURES", "OWN", "Absent", "MacroFile", "Rendered", "Sandbox", "give_back"]

_HOMES = {
    "Absent": "absent", "CRASH": "faults", "FAILURES": "faults", "Rendered": "rendered", "Sandbox": "sandbox",
    "give_back": "macros",
}  # fmt: skip


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(name)
    return getattr(import_module(f"engine.jinja.{_HOMES[name]}"), name)
