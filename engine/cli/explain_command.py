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
    """Print the explanations of codes, or the list of all codes by topic. Raises UsageError: a code does not exist."""
    explanations_by_code = explanations()
    requested = [code.strip("[]").lower() for code in codes]
    unknown = [code for code in requested if code not in explanations_by_code]
    if unknown:
        raise UsageError("usage", f"diagnostic '{unknown[0]}' not found", _suggestion(unknown[0], explanations_by_code))
    explained = [explanations_by_code[code] for code in requested]
    if as_json:
        write("\n".join(json_text(asdict(one)) for one in explained or explanations_by_code.values()))
        return
    write(*(part for part in (_pages(explained) if explained else _overview(explanations_by_code.values()))), end="")


def pointer(codes: Iterable[str]) -> str:
    """The command that explains some diagnostics; empty if none needs it."""
    useful = [code for code in dict.fromkeys(codes) if code not in _PLAIN]
    return f"Causes and examples: engine explain {' '.join(useful[:_POINTED_AT])}" if useful else ""


def _suggestion(code: str, explanations_by_code: Collection[str]) -> str:
    """Codes that are like a word, have it as a part, or the command that lists them."""
    parts = [name for name in explanations_by_code if code and code in name]
    if parts:
        return near(code, parts)
    hint = near(code, explanations_by_code)
    return hint if hint.startswith("Did") else "List them all: engine explain"


def _overview(all_: Iterable[Explanation]) -> Iterator[Part]:
    for topic, group in groupby(all_, key=lambda one: one.topic):
        yield Styled(topic, "", bold=True)
        yield "\n"
        for one in group:
            yield f"  {one.code:<28} {one.summary}\n"
        yield "\n"
    yield "engine explain CODE shows the cause, examples and the fix.\n"


def _pages(explained: Sequence[Explanation]) -> Iterator[Part]:
    for number, one in enumerate(explained):
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
        title = f"{label}, {example.file}:" if example.file != DEFAULT_FILE else f"{label}:"
        yield Styled(title, "", bold=True)
        yield f"\n\n{textwrap.indent(example.text, '    ')}"
