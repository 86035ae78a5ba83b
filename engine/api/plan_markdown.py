"""A plan as a comment on a pull request: GitHub's Markdown, of bounded length."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from engine.api.plan_output import plan_details, plan_diff, plan_word
from engine.characters import one_line
from engine.compile import Manifest, Model

if TYPE_CHECKING:
    from engine.plan import Action, Plan

# GitHub takes 65,536 characters.
MOST_CHARACTERS = 60_000
_MOST_OF_A_CELL = 400
# Room for what closes a table and says how much is left out.
_END = 1_500
_QUIET = ("unchanged",)
# What is a link, a mention, markup or the end of a cell in Markdown.
_SPECIAL = re.compile(r"[\\`*_{}\[\]<>()#+!|~@&:$-]")


def plan_markdown(
    manifest: Manifest, plan: Plan, target: str, *, diff: bool = False, removed: Sequence[str] = ()
) -> str:
    """Return a plan as Markdown: a table of what a build would do, what it leaves alone in folded lists below.

    Args:
        manifest: the compiled project.
        plan: of it.
        target: its name.
        diff: also what an edit changes of a model's settings and query, folded.
        removed: names of models that are not in the project any more.
    """
    models: dict[str, list[tuple[Model, Action]]] = {}
    tests = 0
    for action in plan.actions.values():
        node = manifest.nodes[action.node]
        if isinstance(node, Model):
            models.setdefault(plan_word(action), []).append((node, action))
        else:
            tests += not action.unchanged
    head = f"### Plan for `{_code(target)}`: {_summary({word: len(found) for word, found in models.items()}, tests)}"
    shown = [pair for word in sorted(models, key=_order) if word not in _QUIET for pair in models[word]]
    quiet = [model for word in _QUIET for model, _ in models.get(word, ())]
    parts = [head, ""]
    size = len(head)
    edits = [_edit(manifest, model, action) for model, action in shown] if diff else []
    folded = _folded("Unchanged", [model.name for model in quiet])
    gone = _folded("No longer in the project, their tables stay", removed)
    for block in filter(None, (_table(manifest, shown), *edits, gone, folded)):
        kept, left = _bounded(block, MOST_CHARACTERS - _END - size)
        size += sum(len(line) + 1 for line in kept)
        parts += kept
        if left:
            parts += ["", f"{left:,} more lines are left out: `engine plan` has them."]
            break
        parts.append("")
    return "\n".join(parts).rstrip() + "\n"


def _order(word: str) -> tuple[bool, str]:
    return word != "rejected", word


def _summary(counted: Mapping[str, int], tests: int) -> str:
    numbers = [f"{counted[word]:,} {word}" for word in sorted(counted, key=_order)]
    return ", ".join([*numbers, *([f"{tests:,} {'test runs' if tests == 1 else 'tests run'}"] if tests else [])])


def _table(manifest: Manifest, shown: Sequence[tuple[Model, Action]]) -> list[str]:
    if not shown:
        return []
    rows = []
    for model, action in shown:
        why = "<br>".join(_cell(detail) for detail in plan_details(manifest, action))
        rows.append(f"| {_cell(model.name)} | {_cell(model.materialized.value)} | **{plan_word(action)}** | {why} |")
    return ["| model | materialized | action | why, and what it reads |", "|---|---|---|---|", *rows]


def _edit(manifest: Manifest, model: Model, action: Action) -> list[str]:
    lines = [one_line(line).replace("```", "`` `") for line in plan_diff(manifest, action)]
    if not lines:
        return []
    summary = f"<summary>What changes in {_cell(model.name)}</summary>"
    return ["<details>", summary, "", "```diff", *lines, "```", "", "</details>"]


def _folded(title: str, names: Iterable[str]) -> list[str]:
    listed = [_cell(name) for name in names]
    if not listed:
        return []
    return ["<details>", f"<summary>{title}: {len(listed):,}</summary>", "", ", ".join(listed), "", "</details>"]


def _bounded(lines: Sequence[str], room: int) -> tuple[list[str], int]:
    """The lines for which there is room, and how many others there are; a folded list is whole or left out."""
    kept = list(_fitting(lines, room))
    if len(kept) < len(lines) and lines[0] == "<details>":
        return [], 1
    return kept, len(lines) - len(kept)


def _fitting(lines: Iterable[str], room: int) -> Iterator[str]:
    for line in lines:
        room -= len(line) + 1
        if room < 0:
            return
        yield line


def _cell(text: str) -> str:
    """A text of anybody's in a cell: no markup, no mention, no second line."""
    plain = one_line(text)
    short = plain if len(plain) <= _MOST_OF_A_CELL else f"{plain[:_MOST_OF_A_CELL]}..."
    return _SPECIAL.sub(lambda found: f"&#{ord(found[0])};", short)


def _code(text: str) -> str:
    return one_line(text).replace("`", "'")
