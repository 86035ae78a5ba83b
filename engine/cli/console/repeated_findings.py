"""Findings that repeat each other: what people read is said once."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace

from engine.errors import Diagnostic

# So many findings that say the same of different nodes are shown one by one.
_FEW = 5


def same_of_many(diagnostics: Sequence[Diagnostic]) -> list[Diagnostic]:
    """Findings of which one stands for all that say the same of other nodes, where there are many of them.

    Behind it is one that counts the others and names some; machines get each.
    """
    alike: dict[tuple[str, ...], list[Diagnostic]] = defaultdict(list)
    for one in diagnostics:
        alike[_key(one)].append(one)
    shown: list[Diagnostic] = []
    for one in diagnostics:
        first, *others = alike[_key(one)]
        if len(others) < _FEW or not one.node:
            shown.append(one)
        elif one is first:
            names = ", ".join(f"'{other.node}'" for other in others[:_FEW])
            more = f"{len(others):,} other nodes: {names}, .. (all: --log-format json)"
            shown += [replace(one, hint=""), replace(one, message=f"the same of {more}", location=None)]
    return shown


def _key(diagnostic: Diagnostic) -> tuple[str, ...]:
    return diagnostic.code, diagnostic.level.value, diagnostic.message, _hint_of(diagnostic)


def hints_once(diagnostics: Sequence[Diagnostic], shown: dict[str, str]) -> Iterator[Diagnostic]:
    """Findings of which each hint is given once: equal hints behind the last of those that follow each other.

    Args:
        diagnostics: in the order in which they are printed.
        shown: the hints given before, each with what it was given for; this function adds to it.
    """
    keys = [_hint_of(diagnostic) for diagnostic in diagnostics]
    for place, diagnostic in enumerate(diagnostics):
        key, what = keys[place], str(diagnostic.location or diagnostic.node or "")
        if place + 1 < len(diagnostics) and diagnostics[place + 1].hint == diagnostic.hint:
            yield replace(diagnostic, hint="")
        elif shown.get(key):
            yield replace(diagnostic, hint=f"As for {shown[key]}." if diagnostic.hint else "")
        else:
            shown[key] = what
            yield diagnostic


def _hint_of(diagnostic: Diagnostic) -> str:
    """A hint without the name of what it is for: the same for each model."""
    return diagnostic.hint.replace(diagnostic.node, "") if diagnostic.node else diagnostic.hint
