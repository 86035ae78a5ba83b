"""A plan as a comment on a pull request: GitHub's Markdown, of bounded length.

What a comparison with an earlier manifest finds beside the plan of a build.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from engine.api.plan_report.plan_output import plan_details, plan_diff, plan_summary, plan_word, rejected_first
from engine.characters import one_line
from engine.compile import Manifest, Model
from engine.compile.artifacts.dbt_manifest import unique_id

if TYPE_CHECKING:
    from engine.plan import Action, Plan


GONE = "no longer in the project, their tables stay"
DESCRIBED = "only a description, a tag or another setting changed that no row depends on"
UNKNOWN = (
    "compared with an earlier manifest alone: what is unread, and whether tables and checkpoints are as they were, "
    "is not known"
)


@dataclass(frozen=True, slots=True)
class BesidePlan:
    """What differs from an earlier manifest and is not an action of a build.

    Attributes:
        removed: names of models that are not in the project any more.
        described: names of models that compute what they did, and of which other settings changed.
        without_catalog: the plan comes from two manifests, and nothing that is deployed was looked at.
    """

    removed: tuple[str, ...] = ()
    described: tuple[str, ...] = ()
    without_catalog: bool = False

    def lines(self) -> Iterator[str]:
        for title, names in ((GONE, self.removed), (DESCRIBED, self.described)):
            if names:
                yield f"{title}: {', '.join(names)}"
        if self.without_catalog:
            yield UNKNOWN


NOTHING_BESIDE: Final = BesidePlan()


def removed_record(manifest: Manifest, name: str) -> dict[str, Any]:
    return {
        "unique_id": unique_id(f"model.{name}", manifest.project),
        "name": name,
        "action": "removed",
        "unchanged": False,
        "reasons": ["it is no longer in the project; its table stays"],
        **{key: [] for key in ("notes", "affects", "exposures", "reads", "refusals")},
        **dict.fromkeys(("materialized", "relation", "change", "writes", "rows", "about_seconds")),
        "deferred": {},
    }


# GitHub takes 65,536 characters.
MOST_CHARACTERS = 60_000
_MOST_OF_A_CELL = 400
# Room for what closes a table and says how much is left out.
_END = 1_500
_QUIET = ("unchanged",)
# What is a link, a mention, markup or the end of a cell in Markdown.
_SPECIAL = re.compile(r"[\\`*_{}\[\]<>()#+!|~@&:$-]")


def plan_markdown(
    manifest: Manifest,
    plan: Plan,
    target: str,
    *,
    diff: bool = False,
    beside: BesidePlan = NOTHING_BESIDE,
    total: float | None = None,
) -> str:
    """Return a plan as Markdown: a table of what a build does, what it leaves alone in folded lists below."""
    models: dict[str, list[tuple[Model, Action]]] = {}
    for action in plan.actions.values():
        node = manifest.nodes[action.node]
        if isinstance(node, Model):
            models.setdefault(plan_word(action), []).append((node, action))
    head = f"### Plan for `{_code(target)}`: {plan_summary(manifest, plan, total)}"
    shown = [pair for word in sorted(models, key=rejected_first) if word not in _QUIET for pair in models[word]]
    quiet = [model for word in _QUIET for model, _ in models.get(word, ())]
    parts = [head, ""]
    size = len(head)
    edits = [_edit(manifest, model, action) for model, action in shown] if diff else []
    folded = _folded("Unchanged", [model.name for model in quiet])
    gone, described = (
        _folded(f"{title[0].upper()}{title[1:]}", names)
        for title, names in ((GONE, beside.removed), (DESCRIBED, beside.described))
    )
    end = [f"{UNKNOWN[0].upper()}{UNKNOWN[1:]}."] if beside.without_catalog else []
    for block in filter(None, (_table(manifest, shown), *edits, gone, described, folded, end)):
        kept, left = _bounded(block, MOST_CHARACTERS - _END - size)
        size += sum(len(line) + 1 for line in kept)
        parts += kept
        if left:
            parts += ["", f"{left:,} more lines are left out: `engine plan` has them."]
            break
        parts.append("")
    return "\n".join(parts).rstrip() + "\n"


def _table(manifest: Manifest, shown: Sequence[tuple[Model, Action]]) -> list[str]:
    if not shown:
        return []
    rows = []
    for model, action in shown:
        why = "<br>".join(_cell(detail) for detail in plan_details(manifest, action))
        what = f"**{plan_word(action)}**{f'<br>{_cell(action.writes)}' if action.writes else ''}"
        rows.append(f"| {_cell(model.name)} | {_cell(model.materialized.value)} | {what} | {why} |")
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
