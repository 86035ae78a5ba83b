"""`acknowledge: [unbounded-complete]`: warnings that the author of a model or source has seen and accepts."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from engine.compile.nodes.manifest import AcknowledgedWarning
from engine.errors import Diagnostic, Level, Location, near
from engine.project.yaml_section import Section
from engine.schema import ConfigBlock

KEY = "acknowledge"


@dataclass(frozen=True, slots=True)
class Acknowledgement:
    code: str
    place: Location


def read_acknowledgements(section: Section | None, block: ConfigBlock) -> tuple[Acknowledgement, ...]:
    """Return the listed codes; one that a model or source has no warning of is reported."""
    warning_codes, listed = block.choices(KEY), {}
    for item in section.items() if section else ():
        code = item.text()
        if code in warning_codes:
            listed[code] = Acknowledgement(code, item.place)
        elif code:
            message = f"'{code}' is not a warning that {block.what} can acknowledge"
            item.report("bad-value", message, near(code, warning_codes))
    return tuple(listed.values())


def acknowledge(
    listed: Iterable[Acknowledgement], diagnostics: Iterable[Diagnostic], node: str
) -> tuple[list[Diagnostic], tuple[AcknowledgedWarning, ...]]:
    """Return the findings of a node without its acknowledged warnings, and these; errors stay.

    An acknowledgement without its warning is a finding, unless there are errors: later checks did not run then.
    """
    places = {one.code: one.place for one in listed}
    accepted = dict.fromkeys(d for d in diagnostics if d.level is Level.WARNING and d.code in places)
    remaining = [d for d in diagnostics if d not in accepted]
    if not any(d.is_error for d in remaining):
        unused = places.keys() - {d.code for d in accepted}
        remaining += [_unused_acknowledgement(code, node, place) for code, place in places.items() if code in unused]
    return remaining, tuple(AcknowledgedWarning(d.code, d.message, d.location) for d in accepted)


def _unused_acknowledgement(code: str, node: str, place: Location) -> Diagnostic:
    message = f"'{node}' acknowledges '{code}', a warning that it does not have"
    hint = f"Remove '{code}' from 'acknowledge', so that the warning is shown if it comes again."
    return Diagnostic("acknowledge-unused", message, hint, Level.WARNING, node, place)
