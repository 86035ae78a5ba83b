"""`engine explain`: what a diagnostic means, in the terminal."""

from __future__ import annotations

import shutil
import textwrap
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import asdict
from itertools import groupby

from engine.cli.console.safe_output import Part, Styled, json_text, write
from engine.diagnostics.explanations import DEFAULT_FILE, Example, Explanation, explanations
from engine.errors import UsageError, near

_COLOURS = {"error": "red", "warning": "yellow", "note": "cyan"}
_MOST_COLUMNS = 100
_POINTED_AT = 3
# Their messages need no explanation.
_PLAIN = {"usage", "project-missing", "internal-error", "interrupted", "unit-test-failed"}


def explain(codes: Sequence[str], *, as_json: bool = False) -> None:
    """Print the explanations of codes, or the list of all codes by topic.

    Raises:
        UsageError: a code does not exist.
    """
    known = explanations()
    asked = [code.strip("[]").lower() for code in codes]
    unknown = [code for code in asked if code not in known]
    if unknown:
        raise UsageError("usage", f"diagnostic '{unknown[0]}' not found", _suggestion(unknown[0], known))
    chosen = [known[code] for code in asked]
    if as_json:
        write("\n".join(json_text(asdict(one)) for one in chosen or known.values()))
        return
    write(*(part for part in (_pages(chosen) if chosen else _overview(known.values()))), end="")


def pointer(codes: Iterable[str]) -> str:
    """The command that explains some diagnostics; empty if none needs it."""
    useful = [code for code in dict.fromkeys(codes) if code not in _PLAIN]
    return f"Causes and examples: engine explain {' '.join(useful[:_POINTED_AT])}" if useful else ""


def _suggestion(code: str, known: Collection[str]) -> str:
    """Codes that are like a word, have it as a part, or the command that lists them."""
    parts = [name for name in known if code and code in name]
    if parts:
        return near(code, parts)
    hint = near(code, known)
    return hint if hint.startswith("Did") else "List them all: engine explain"


def _overview(all_: Iterable[Explanation]) -> Iterator[Part]:
    for topic, group in groupby(all_, key=lambda one: one.topic):
        yield Styled(topic, "", bold=True)
        yield "\n"
        for one in group:
            yield f"  {one.code:<28} {one.summary}\n"
        yield "\n"
    yield "engine explain CODE shows the cause, examples and the fix.\n"


def _pages(chosen: Sequence[Explanation]) -> Iterator[Part]:
    for number, one in enumerate(chosen):
        yield "\n" if number else ""
        yield Styled(one.code, _COLOURS[one.levels[0]], bold=True)
        yield f"  {' or '.join(one.levels)}, found: {', '.join(one.found)}\n"
        yield from _paragraphs(one.summary, one.cause)
        if one.wrong:
            yield from _examples("Wrong", one.wrong)
            yield from _examples("Right", one.right)
        else:
            yield from _paragraphs(f"Occurs: {one.occurs}")
        yield from _paragraphs(f"Fix: {one.fix}")


def _paragraphs(*texts: str) -> Iterator[str]:
    width = min(shutil.get_terminal_size().columns, _MOST_COLUMNS)
    for text in texts:
        yield "\n"
        yield textwrap.fill(text, width, break_long_words=False, break_on_hyphens=False)
        yield "\n"


def _examples(label: str, examples: Iterable[Example]) -> Iterator[Part]:
    for example in examples:
        yield "\n"
        named = f"{label}, {example.file}:" if example.file != DEFAULT_FILE else f"{label}:"
        yield Styled(named, "", bold=True)
        yield f"\n\n{textwrap.indent(example.text, '    ')}"
