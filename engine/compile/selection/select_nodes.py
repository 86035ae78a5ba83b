"""Choosing nodes, in dbt's words.

`name`, `folder.name`, `fqn:`, globs, `path:`, `file:`, `package:`, `tag:`, `source:`, `exposure:`, `sink:`,
`config.<key>:`, `resource_type:`, `group:`, `test_type:`, `test_name:`, `selector:`, `state:` and `result:` (against
earlier artifacts); `+x`, `x+`, `2+x`, `x+1` for upstream and downstream nodes, `@x` for all downstream nodes and all
that these need; a blank (or a repeated option) is a union, a comma an intersection. Tests come with the models they
test.
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import PurePosixPath

from engine.compile.artifacts.dbt_manifest import config_values
from engine.compile.nodes.exposure import Exposure
from engine.compile.nodes.manifest import DataTest, Manifest, Model, Node, Source
from engine.compile.nodes.sink import Sink
from engine.compile.nodes.unit_test_steps import UnitTest
from engine.compile.selection.named_selectors import Choose
from engine.compile.selection.previous_state import STATES, Previous, in_state, tables_of, with_result
from engine.errors import Diagnostic, Level, Location, UsageError, near
from engine.node_ids import rest_of

TEST_TYPES = ("unit", "data", "generic", "singular")
# Methods that select by change, result or kind of node: matching no node is a valid result.
_MAY_BE_EMPTY = ("state:", "result:", "resource_type:", "test_type:")
_CODE = "selection-empty"


def may_be_empty(term: str) -> bool:
    """Whether a term that matches no node is an answer, and not a typing error."""
    return term.startswith(_MAY_BE_EMPTY)


def no_match(manifest: Manifest, term: str, level: Level, place: Location | None = None) -> Diagnostic:
    return _finding(f"the selection '{term}' matches nothing", _nearest(manifest, term), level, place)


def no_intersection(text: str, level: Level, place: Location | None = None) -> Diagnostic:
    hint = "A comma selects the intersection of its terms, a space the union." if "," in text else ""
    return _finding(f"the selection '{text}' matches nothing", hint, level, place)


def _finding(message: str, hint: str, level: Level, place: Location | None) -> Diagnostic:
    return Diagnostic(_CODE, message, hint, level, location=place)


def _nearest(manifest: Manifest, term: str) -> str:
    method, colon, value = term.partition(":")
    if not colon:
        return _near_name(manifest, term)
    candidates = _KNOWN.get(method, partial(_configured_values, method.removeprefix("config.")))
    names = {f"{method}:{name}" for name in candidates(manifest)}
    if not names:
        return f"Nothing in the project can be selected with '{method}:'."
    return near(f"{method}:{value}", names)


def _near_name(manifest: Manifest, text: str) -> str:
    if any(text in {source.name, source.source} for source in manifest.sources):
        return f"Sources are selected with source:{text}."
    if "/" in text:
        return near(text, _paths(manifest))
    if any(text in tags for tags in _tags(manifest)):
        return f"Tags are selected with tag:{text}."
    models = {model.name for model in manifest.models}
    other_names = {node.name for node in manifest.nodes.values() if not isinstance(node, Source)}
    close = near(text, models | other_names)
    # A list of what there is names models alone: there are many more tests.
    return close if close.startswith("Did") else near(text, models)


def _paths(manifest: Manifest) -> set[str]:
    files = {PurePosixPath(node.file) for node in manifest.nodes.values()}
    folders = {folder for file in files for folder in file.parents}
    return {str(path) for path in files | folders} - {"."}


def _tags(manifest: Manifest) -> Iterable[Iterable[str]]:
    return (node.tags for node in manifest.nodes.values())


def _all_names(manifest: Manifest) -> Iterable[str]:
    return (node.name for node in manifest.nodes.values() if isinstance(node, Model | DataTest | UnitTest))


def _configured_values(key: str, manifest: Manifest) -> Iterable[str]:
    return (text for node in manifest.nodes.values() for text in config_values(node, key))


_KNOWN: dict[str, Callable[[Manifest], Iterable[str]]] = {
    "path": _paths,
    "file": lambda manifest: (PurePosixPath(path).name for path in _paths(manifest) if path.endswith((".sql", ".yml"))),
    "fqn": lambda manifest: (model.name for model in manifest.models),
    "package": lambda manifest: (manifest.project,),
    "group": lambda manifest: (str(model.meta["group"]) for model in manifest.models if "group" in model.meta),
    "tag": lambda manifest: (tag for tags in _tags(manifest) for tag in tags),
    "source": lambda manifest: (name for source in manifest.sources for name in (source.name, source.source)),
    "exposure": lambda manifest: (exposure.name for exposure in manifest.exposures),
    "sink": lambda manifest: (sink.name for sink in manifest.sinks),
    "unit_test": lambda manifest: (n.name for n in manifest.nodes.values() if isinstance(n, UnitTest)),
    "test_name": lambda manifest: (n.kind for n in manifest.nodes.values() if isinstance(n, DataTest)),
    "name": _all_names,
}


_TERM = re.compile(
    r"(?P<at>@)?(?:(?P<up>[0-9]{0,9})(?P<plus_up>\+))?(?P<core>[^+@][^+]*?)(?:(?P<plus_down>\+)(?P<down>[0-9]{0,9}))?$"
)
_EVERYTHING = 1_000_000
_SUFFIXES = (".sql", ".yml", ".yaml")
# These ask for one kind of node, so a model's tests do not come along.
_KIND_METHODS = ("resource_type:", "test_type:", "test_name:", "unit_test:", "result:", "state:old", "state:unmodified")


Selector = Callable[[str, Choose], set[str]]


@dataclass(frozen=True, slots=True)
class Choice:
    """What a selection chose: nodes in build order, and one finding for each term that matches none."""

    nodes: list[str]
    unmatched: tuple[Diagnostic, ...] = ()
    selector: str | None = None


def select(
    manifest: Manifest,
    include: Sequence[str],
    exclude: Sequence[str] = (),
    *,
    previous_run: Previous | None = None,
    choose_named: Callable[[Choose], set[str]] | None = None,
    selector: Selector | None = None,
) -> Choice:
    """Choose models, tests, sources, exposures and sinks; `include` empty: everything.

    Raises:
        UsageError: an unknown method or a term that cannot be read.
    """
    graph = _Graph(manifest, previous_run, selector)
    selected = graph.union(include) if include else set(manifest.nodes)
    if choose_named is not None:
        selected = choose_named(graph.choose)
    if exclude:
        selected -= graph.union(exclude, exclude=True)
    first = [s.id for s in manifest.sources if s.id in selected]
    last = [node for node in manifest.ends if node in selected]
    nodes = first + [node for node in manifest.order if node in selected] + last
    # A term may be given twice.
    return Choice(nodes, tuple(dict.fromkeys(graph.unmatched)))


def chooser(manifest: Manifest, selector: Selector) -> tuple[Choose, list[Diagnostic]]:
    """Return what chooses nodes, and where it notes unmatched terms; `state:` and `result:` choose nothing here."""
    graph = _Graph(manifest, None, selector, checked=True)
    return graph.choose, graph.unmatched


class _Graph:
    """The manifest with its edges in both directions; `checked`: nothing is run, and no earlier state is needed."""

    def __init__(
        self, manifest: Manifest, previous_run: Previous | None, selector: Selector | None, *, checked: bool = False
    ) -> None:
        self.manifest = manifest
        self.previous_run = previous_run
        self.selector = selector
        self.entered: list[str] = []
        self.checked = checked
        self.up = {node: manifest.parents(node) for node in manifest.nodes}
        self.down = manifest.children()
        self.unmatched: list[Diagnostic] = []

    def union(self, values: Iterable[str], place: Location | None = None, *, exclude: bool = False) -> set[str]:
        level = Level.WARNING if exclude else Level.ERROR
        nodes: set[str] = set()
        for value in values:
            unmatched = len(self.unmatched)
            selected = [self.intersection(part, level, place) for part in value.split()]
            if len(selected) > 1 and len(self.unmatched) > unmatched and (whole := self.with_blanks(value.strip())):
                del self.unmatched[unmatched:]
                selected = [whole]
            nodes |= set().union(*selected)
        return nodes

    def with_blanks(self, text: str) -> set[str]:
        try:
            return self.term(text)
        except UsageError:
            return set()

    def choose(self, text: str, place: Location, *, exclude: bool = False) -> set[str]:
        return self.union([text], place, exclude=exclude)

    def intersection(self, text: str, level: Level, place: Location | None) -> set[str]:
        terms = [term for term in text.split(",") if term]
        sets, cores = [self.term(term) for term in terms], [_core(term) for term in terms]
        empty = [core for core, nodes in zip(cores, sets, strict=True) if not nodes and not may_be_empty(core)]
        self.unmatched += [no_match(self.manifest, core, level, place) for core in empty]
        selected = set.intersection(*sets) if sets else set()
        if not selected and not empty and not any(map(may_be_empty, cores)):
            self.unmatched.append(no_intersection(text, level, place))
        return selected

    def with_tests(self, selected: set[str]) -> set[str]:
        nodes = (self.manifest.nodes[i] for i in self.manifest.order)
        return selected | {n.id for n in nodes if isinstance(n, DataTest | UnitTest) and n.model in selected}

    def term(self, text: str) -> set[str]:
        match = _TERM.match(text)
        if match is None:
            raise UsageError("usage", f"'{text}' is not a selection", "Examples: flights, +flights+, tag:hourly.")
        core = self.matching(match["core"])
        if match["at"]:
            below = core | self.walk(core, self.down, _EVERYTHING)
            return self.with_tests(below | self.walk(below, self.up, _EVERYTHING))
        nodes = set(core)
        if match["plus_up"]:
            nodes |= self.walk(core, self.up, int(match["up"] or _EVERYTHING))
        if match["plus_down"]:
            nodes |= self.walk(core, self.down, int(match["down"] or _EVERYTHING))
        return nodes if match["core"].startswith(_KIND_METHODS) else self.with_tests(nodes)

    def walk(self, start: set[str], edges: dict[str, tuple[str, ...]], depth: int) -> set[str]:
        reached: set[str] = set()
        level = set(start)
        while level and depth > 0:
            level = {n for node in level for n in edges.get(node, ())} - reached
            reached |= level
            depth -= 1
        return reached

    def matching(self, text: str) -> set[str]:
        method, colon, value = text.partition(":")
        if not colon:
            return self.by(lambda node: _bare(node, text))
        if method.startswith("config."):
            key = method.removeprefix("config.")
            return self.by(lambda node: any(fnmatch.fnmatchcase(text, value) for text in config_values(node, key)))
        if method == "selector":
            return self.named_selector(value)
        if method in {"fqn", "package"}:
            match = _full_name if method == "fqn" else _package
            return self.by(lambda node: match(node, value, self.manifest.project))
        if method in {"state", "result"}:
            return self.against_previous(method, value)
        if method not in _METHODS:
            hint = near(method, [*_METHODS, "config.materialized", "fqn", "package", "selector", "state", "result"])
            raise UsageError("usage", f"unknown selection method '{method}:'", hint)
        if method in _KINDS and value not in _KINDS[method]:
            raise UsageError("usage", f"there is no {method} '{value}'", near(value, _KINDS[method]))
        return self.by(lambda node: _METHODS[method](node, value))

    def named_selector(self, name: str) -> set[str]:
        if self.selector is None:
            raise UsageError("usage", "'selector:' is not possible here", "Write the selection itself.")
        if name in self.entered:
            raise UsageError("usage", f"the selector '{name}' contains itself", "Remove 'selector:' from one of them.")
        self.entered.append(name)
        try:
            return self.selector(name, self.choose)
        finally:
            self.entered.pop()

    def against_previous(self, method: str, value: str) -> set[str]:
        previous_run = self.previous_run
        if previous_run is None and self.checked:
            return set()
        if previous_run is None:
            hint = "Name the folder of an earlier manifest.json: --state <folder>."
            raise UsageError("usage", f"'{method}:' compares with an earlier run", hint)
        if method == "result":
            return with_result(self.manifest, value, previous_run)
        if value not in STATES:
            raise UsageError("usage", f"unknown state '{value}'", near(value, STATES))
        tables = tables_of(self.manifest)
        return self.by(lambda node: in_state(node, value, previous_run, tables))

    def by(self, test: Callable[[Node], bool]) -> set[str]:
        return {node_id for node_id, node in self.manifest.nodes.items() if test(node)}


def _core(term: str) -> str:
    match = _TERM.match(term)
    return match["core"] if match else term


def _bare(node: Node, text: str) -> bool:
    if "/" in text:
        return _path(node, text)
    return _METHODS["file"](node, text) if text.endswith(_SUFFIXES) else _name_matches(node, text)


def _name_matches(node: Node, text: str) -> bool:
    if isinstance(node, Source | Exposure | Sink):
        return False
    # With its hash, one of several tests that share a name.
    if fnmatch.fnmatchcase(node.name, text) or (isinstance(node, DataTest) and rest_of(node.id) == text):
        return True
    if isinstance(node, DataTest | UnitTest):
        return False
    return _folders_match(PurePosixPath(node.file).with_suffix("").parts[1:], text)


def _folders_match(parts: tuple[str, ...], text: str) -> bool:
    pattern = text.split(".")
    return len(pattern) <= len(parts) and all(fnmatch.fnmatchcase(p, w) for p, w in zip(parts, pattern, strict=False))


def _full_name(node: Node, text: str, project: str) -> bool:
    """A name as dbt's manifest has it, with or without the project: `shop.marts.orders`, `marts.*`."""
    unqualified = text.removeprefix(f"{project}.")
    return _name_matches(node, text) or (unqualified != text and _name_matches(node, unqualified))


def _package(_: Node, value: str, project: str) -> bool:
    return value == "this" or fnmatch.fnmatchcase(project, value)


def _path(node: Node, value: str) -> bool:
    path = value.rstrip("/").removeprefix("./")
    if isinstance(node, DataTest) and node.kind != "singular":
        return False
    return fnmatch.fnmatchcase(node.file, path) or fnmatch.fnmatchcase(node.file, path + "/*")


def _source(node: Node, value: str) -> bool:
    return isinstance(node, Source) and (
        fnmatch.fnmatchcase(node.name, value) or fnmatch.fnmatchcase(node.source, value)
    )


def _kind(node: Node) -> str:
    kinds: dict[type, str] = {
        Model: "model",
        Source: "source",
        UnitTest: "unit_test",
        Exposure: "exposure",
        Sink: "sink",
    }
    return kinds.get(type(node), "test")


def _test_types(node: Node) -> tuple[str, ...]:
    if isinstance(node, UnitTest):
        return ("unit",)
    if not isinstance(node, DataTest):
        return ()
    return ("data", "singular" if node.kind == "singular" else "generic")


_KINDS = {"resource_type": ("model", "source", "test", "unit_test", "exposure", "sink"), "test_type": TEST_TYPES}
_METHODS: dict[str, Callable[[Node, str], bool]] = {
    "path": _path,
    "file": lambda node, value: PurePosixPath(node.file).name == value and not isinstance(node, DataTest),
    "tag": lambda node, value: any(fnmatch.fnmatchcase(tag, value) for tag in node.tags),
    "source": _source,
    "group": lambda node, value: (
        isinstance(node, Model) and fnmatch.fnmatchcase(str(node.meta.get("group") or ""), value)
    ),
    "resource_type": lambda node, value: _kind(node) == value,
    "test_type": lambda node, value: value in _test_types(node),
    "exposure": lambda node, value: isinstance(node, Exposure) and fnmatch.fnmatchcase(node.name, value),
    "sink": lambda node, value: isinstance(node, Sink) and fnmatch.fnmatchcase(node.name, value),
    "unit_test": lambda node, value: isinstance(node, UnitTest) and fnmatch.fnmatchcase(node.name, value),
    "test_name": lambda node, value: isinstance(node, DataTest) and node.kind == value,
    "name": lambda node, value: (
        not isinstance(node, Source | Exposure | Sink) and fnmatch.fnmatchcase(node.name, value)
    ),
}
