"""A plan as a tree: each model that a build does something to, once, below what it reads."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from engine.api.plan_report.durations import seconds_text
from engine.api.plan_report.plan_output import plan_diff, plan_effects, plan_reads, plan_reasons, plan_word
from engine.characters import one_line
from engine.compile import Manifest, Model

if TYPE_CHECKING:
    from engine.plan import Action, Plan


@dataclass(frozen=True, slots=True)
class TreePlace:
    """The place of a model.

    `above`: id of the model below which it is; empty: it is a root. `depth`: how many models are above it. `also`: ids
    of the other models of the tree that it reads, at once or through models that are not in the tree.
    """

    above: str = ""
    depth: int = 0
    also: tuple[str, ...] = ()


# Models that a list of those that an edit affects has at most.
_AFFECTED = 20
_BRANCH, _LAST, _RAIL, _NONE = "├─ ", "└─ ", "│  ", "   "


@dataclass(frozen=True, slots=True)
class TreeLine:
    """A line of a tree, in parts that may have colours of their own.

    `rail`: what draws the tree, before the text and each of its further lines. `action`: of a model, what becomes of
    it; empty: it is a line about a model. `label`: the name of the model, or what the line is about; empty: as the line
    before.
    """

    rail: str
    label: str
    text: str
    action: str = ""


@dataclass(frozen=True, slots=True)
class TreeOptions:
    """What a tree shows.

    `diff`: also what an edit changes of a model's settings and query. `unchanged`: also the models that a build does
    nothing to. `about`: seconds that the build of a model is likely to take, by its id.
    """

    diff: bool = False
    unchanged: bool = False
    about: Mapping[str, float] = field(default_factory=dict)


def plan_tree(manifest: Manifest, plan: Plan, options: TreeOptions) -> Iterator[TreeLine]:
    """Yield a tree; a model that reads several others is below the deepest, and a line of it names the rest."""
    nodes = [
        node
        for node, action in plan.actions.items()
        if isinstance(manifest.nodes[node], Model) and (options.unchanged or plan_word(action) != "unchanged")
    ]
    places = tree_places(manifest, nodes)
    parents = {place.above for place in places.values()}
    rails: list[str] = []
    for node, last in in_tree_order(places):
        place = places[node]
        del rails[max(place.depth - 1, 0) :]
        start = "".join(rails) + ((_LAST if last else _BRANCH) if place.depth else "")
        if place.depth:
            rails.append(_NONE if last else _RAIL)
        action, model = plan.actions[node], manifest.nodes[node]
        if isinstance(model, Model):
            yield _head(model, action, start, options.about.get(node))
            rail = "".join(rails) + (_RAIL if node in parents else _NONE)
            for label, text in _about(manifest, action, place, options):
                yield TreeLine(rail, label, one_line(text))


def _head(model: Model, action: Action, start: str, seconds: float | None) -> TreeLine:
    time = f", about {seconds_text(seconds)}" if seconds is not None else ""
    text = f"{model.materialized.value} {model.relation}{time}"
    return TreeLine(start, one_line(model.name), one_line(text), plan_word(action))


def _about(manifest: Manifest, action: Action, place: TreePlace, options: TreeOptions) -> Iterator[tuple[str, str]]:
    yield from _labelled("why", plan_reasons(manifest, action))
    if options.diff:
        yield from _labelled("diff", plan_diff(manifest, action))
    if not action.refusals:
        affected, exposures = plan_effects(manifest, action)
        texts = [
            f"{one.name}: {', '.join(one.columns) if one.columns is not None else 'all rows'}"
            for one in affected[:_AFFECTED]
        ]
        more = len(affected) - _AFFECTED
        yield from _labelled("affects", [*texts, *([f"{more:,} more models"] if more > 0 else [])])
        yield from _labelled("used by", [", ".join(exposures)] if exposures else [])
        yield from _labelled("reads", plan_reads(action))
    if place.also:
        yield "also reads", ", ".join(manifest.nodes[node].name for node in place.also)
    if action.writes:
        yield "writes", action.writes


def _labelled(label: str, texts: Iterable[str]) -> Iterator[tuple[str, str]]:
    for number, text in enumerate(texts):
        yield "" if number else label, text


def tree_places(manifest: Manifest, nodes: Iterable[str]) -> dict[str, TreePlace]:
    """Return each model's place: below the longest way from a root; of equals, the last in project order."""
    places: dict[str, TreePlace] = {}
    reads: dict[str, dict[str, None]] = {}
    tree_nodes = set(nodes)
    numbers = {node: number for number, node in enumerate(manifest.order if tree_nodes else ())}
    for node in numbers:
        nearest: dict[str, None] = {}
        for parent in manifest.parents(node):
            nearest |= {parent: None} if parent in places else reads.get(parent, {})
        reads[node] = nearest
        if node not in tree_nodes:
            continue
        above = max(nearest, key=lambda parent: (places[parent].depth, numbers[parent]), default="")
        depth = places[above].depth + 1 if above else 0
        places[node] = TreePlace(above, depth, tuple(parent for parent in nearest if parent != above))
    return places


def in_tree_order(places: Mapping[str, TreePlace]) -> list[tuple[str, bool]]:
    """Return the models as a tree is read from top to bottom, each with whether it is the last one of its parent."""
    below: dict[str, list[str]] = {}
    for node, place in places.items():
        below.setdefault(place.above, []).append(node)
    ordered = []
    pending_nodes = [(node, node == below[""][-1]) for node in reversed(below.get("", []))]
    while pending_nodes:
        node, last = pending_nodes.pop()
        ordered.append((node, last))
        children = below.get(node, [])
        pending_nodes += [(child, child == children[-1]) for child in reversed(children)]
    return ordered
