"""A plan as a comment on a pull request (GitHub's Markdown, of bounded length), and changes that no build acts on."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from engine.api.plan_report.plan_output import plan_details, plan_diff, plan_summary, plan_word, rejected_first
from engine.characters import one_line
from engine.compile import Manifest, Model
from engine.compile.artifacts.dbt_manifest import unique_id
from engine.docs.site import render_graph
from engine.docs.site.graph_links import links_of

if TYPE_CHECKING:
    from engine.plan import Action, Plan


GONE = "no longer in the project, their tables stay"
DESCRIBED = "only a description, a tag or another setting changed that no row depends on"
UNKNOWN = (
    "compared with an earlier manifest alone: unread input, and whether tables and checkpoints are as they were, "
    "is not known"
)


@dataclass(frozen=True, slots=True)
class UnplannedChanges:
    """What differs from an earlier manifest and is not an action of a build.

    `removed`: names of models that are not in the project any more. `described`: names of models that compute what they
    did, and of which other settings changed. `without_catalog`: the plan comes from two manifests, and nothing that is
    deployed was looked at.
    """

    removed: tuple[str, ...] = ()
    metadata_only: tuple[str, ...] = ()
    without_catalog: bool = False

    def lines(self) -> Iterator[str]:
        for title, names in ((GONE, self.removed), (DESCRIBED, self.metadata_only)):
            if names:
                yield f"{title}: {', '.join(names)}"
        if self.without_catalog:
            yield UNKNOWN


NO_UNPLANNED: Final = UnplannedChanges()


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
# What is a link, a mention, markup or the end of a cell in Markdown; `_` and `-` inside a word are not.
_SPECIAL = re.compile(r"[\\`*{}\[\]<>()#+!|~@&:$]|(?<![^\W_])[_-]|[_-](?![^\W_])")
# More could not be read in a comment.
_MOST_DRAWN = 40
_DRAWN = {"rejected": "stroke:#a4201b,stroke-width:3px", "create": "stroke:#146c3a,stroke-width:3px"}


def plan_markdown(
    manifest: Manifest,
    plan: Plan,
    target: str,
    *,
    diff: bool = False,
    unplanned: UnplannedChanges = NO_UNPLANNED,
    total: float | None = None,
) -> str:
    """Return a plan as Markdown: a table of what a build does, what it leaves alone in folded lists below."""
    models: dict[str, list[tuple[Model, Action]]] = {}
    for action in plan.actions.values():
        node = manifest.nodes[action.node]
        if isinstance(node, Model):
            models.setdefault(plan_word(action), []).append((node, action))
    head = f"### Plan for `{_code(target)}`: {plan_summary(manifest, plan, total)}"
    changed = [pair for word in sorted(models, key=rejected_first) if word not in _QUIET for pair in models[word]]
    quiet = [model for word in _QUIET for model, _ in models.get(word, ())]
    parts = [head, ""]
    size = len(head)
    edits = [_edit(manifest, model, action) for model, action in changed] if diff else []
    folded = _folded("Unchanged", [model.name for model in quiet])
    removed_models, metadata_only = (
        _folded(f"{title[0].upper()}{title[1:]}", names)
        for title, names in ((GONE, unplanned.removed), (DESCRIBED, unplanned.metadata_only))
    )
    end = [f"{UNKNOWN[0].upper()}{UNKNOWN[1:]}."] if unplanned.without_catalog else []
    blocks = (_table(manifest, changed), _graph(manifest, changed), *edits, removed_models, metadata_only, folded, end)
    for block in filter(None, blocks):
        fitting, omitted = _bounded(block, MOST_CHARACTERS - _END - size)
        size += sum(len(line) + 1 for line in fitting)
        parts += fitting
        if omitted:
            parts += ["", f"{omitted:,} more lines are left out: `engine plan` has them."]
            break
        parts.append("")
    return "\n".join(parts).rstrip() + "\n"


def _table(manifest: Manifest, changed: Sequence[tuple[Model, Action]]) -> list[str]:
    if not changed:
        return []
    rows = []
    for model, action in changed:
        fixes = [f"Fix: {refusal.hint}" for refusal in action.refusals if refusal.hint]
        details = "<br>".join(_cell(detail) for detail in (*plan_details(manifest, action), *fixes))
        action_cell = f"**{plan_word(action)}**{f'<br>{_cell(action.writes)}' if action.writes else ''}"
        rows.append(f"| {_cell(model.name)} | {_cell(model.materialized.value)} | {action_cell} | {details} |")
    return ["| model | materialized | action | reason, and input |", "|---|---|---|---|", *rows]


def _graph(manifest: Manifest, shown_actions: Sequence[tuple[Model, Action]]) -> list[str]:
    """The models with an action and what is next to them, as a Mermaid flow chart; nothing if it would be too large."""
    words = {model.id: plan_word(action) for model, action in shown_actions}
    links = [link for link in links_of(manifest) if link.parent in words or link.child in words]
    node_ids = dict.fromkeys((*words, *(end for link in links for end in (link.parent, link.child))))
    if not links or len(node_ids) > _MOST_DRAWN:
        return []
    drawing = render_graph.graph(manifest, node_ids)
    number = {node: f"n{place}" for place, node in enumerate(drawing.nodes)}
    styles = [f"  classDef {word} {style}" for word, style in _DRAWN.items()]
    styles += [f"  class {number[node]} {word}" for node, word in words.items() if word in _DRAWN and node in number]
    return ["<details>", "<summary>Affected part of the graph</summary>", "", "```mermaid",
            *render_graph.mermaid(drawing).splitlines(), *styles, "```", "", "</details>"]  # fmt: skip


def _edit(manifest: Manifest, model: Model, action: Action) -> list[str]:
    lines = [one_line(line).replace("```", "`` `") for line in plan_diff(manifest, action)]
    if not lines:
        return []
    summary = f"<summary>Changes in {_cell(model.name)}</summary>"
    return ["<details>", summary, "", "```diff", *lines, "```", "", "</details>"]


def _folded(title: str, names: Iterable[str]) -> list[str]:
    cells = [_cell(name) for name in names]
    if not cells:
        return []
    return ["<details>", f"<summary>{title}: {len(cells):,}</summary>", "", ", ".join(cells), "", "</details>"]


def _bounded(lines: Sequence[str], room: int) -> tuple[list[str], int]:
    """The lines for which there is room, and how many others there are; a folded list is whole or left out."""
    fitting = list(_fitting(lines, room))
    if len(fitting) < len(lines) and lines[0] == "<details>":
        return [], 1
    return fitting, len(lines) - len(fitting)


def _fitting(lines: Iterable[str], room: int) -> Iterator[str]:
    for line in lines:
        room -= len(line) + 1
        if room < 0:
            return
        yield line


def _cell(text: str) -> str:
    """A text of anybody's in a cell: no markup, no mention, no second line."""
    line = one_line(text)
    short = line if len(line) <= _MOST_OF_A_CELL else f"{line[:_MOST_OF_A_CELL]}..."
    return _SPECIAL.sub(lambda match: f"&#{ord(match[0])};", short)


def _code(text: str) -> str:
    return one_line(text).replace("`", "'")
