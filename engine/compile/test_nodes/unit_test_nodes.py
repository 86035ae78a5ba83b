"""Unit tests as nodes: `unit_tests:` of the YAML files under tests/, checked against the models they test."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from engine.compile.config.column_config import check_version, read_meta, read_tags
from engine.compile.config.stream_config import node_name
from engine.compile.nodes.manifest import Input, Model, Node, Source
from engine.compile.nodes.model_settings import OutputMode
from engine.compile.nodes.unit_test_steps import ExpectedResult, GivenRows, Rows, StepKind, UnitTest, UnitTestStep
from engine.compile.templates.rendered_values import ValueRenderer
from engine.compile.test_nodes.coerce_values import timestamp
from engine.compile.test_nodes.unit_test_rows import columns_known, read_rows
from engine.compile.types import spark_types
from engine.errors import Diagnostic, near
from engine.project import LoadedProject
from engine.project.yaml_section import UNKNOWN, Section
from engine.schema.unit_test_keys import (
    EXPECT,
    GIVEN,
    OVERRIDES,
    ROWS,
    STEP,
    UNIT_TEST,
    UNIT_TEST_CONFIG,
    UNIT_TEST_FILE,
)
from engine.sources import ORIGIN, kind_of, knows_columns

_COUNTS = ("late", "duplicates", "quarantined", "state_rows")


_FOLLOWS = {"unit-test-input", "unknown-column"}
_STEP = "Write '- given: {input: [rows]}', '- restart' or '- flush'."


def read_unit_tests(
    project: LoadedProject, nodes: Mapping[str, Node], values: ValueRenderer, diagnostics: list[Diagnostic]
) -> tuple[UnitTest, ...]:
    tests: dict[str, UnitTest] = {}
    for doc in project.tests:
        top = values.rendered(Section.of_document(doc, diagnostics))
        top.check_keys(UNIT_TEST_FILE)
        check_version(top)
        listed = top.child("unit_tests")
        for item in listed.items() if listed else ():
            test = _Reader(item, nodes, project).test()
            if test is None:
                continue
            if test.id in tests:
                message = f"the unit test '{test.name}' of '{test.model.removeprefix('model.')}' is defined twice"
                item.report("duplicate-name", message, f"Rename it; the first is in {tests[test.id].location}.")
                continue
            tests[test.id] = test
    return tuple(tests.values())


@dataclass(slots=True)
class _Reader:
    item: Section
    nodes: Mapping[str, Node]
    project: LoadedProject
    model: Model | None = field(default=None)
    begun: bool = field(default=False)

    def test(self) -> UnitTest | None:
        """The test; None if it has no name, or no model that is there."""
        item = self.item
        if not isinstance(item.value, dict):
            item.expected("a unit test with name, model, steps and expect")
            return None
        before = len(item.diagnostics)
        item.check_keys(UNIT_TEST)
        name, model = self._required("name"), self._required("model")
        tags, meta, enabled = self._config()
        if name is None or model is None or not enabled:
            return None
        # A name that is none is reported, and the test is skipped.
        label = name.identifier() or name.text()
        self.item = item = msgspec.structs.replace(item, node=label)
        if not self._find(model):
            return None
        static, steps = self._steps()
        expect = item.child("expect")
        ends = read_expected(expect, self.tested, self.project) if expect else None
        variables, macros = self._overrides()
        text = item.child("description")
        if ends is None and not any(step.expect for step in steps):
            item.report("missing-key", f"the unit test '{label}' has no expectations", "Write 'expect: {rows: [...]}'.")
        if self.tested.broken:
            # Its inputs and outputs are not known then: only its own errors are reported, not what follows from them.
            item.diagnostics[before:] = [d for d in item.diagnostics[before:] if d.code not in _FOLLOWS]
        return UnitTest(
            id=f"unit_test.{self.tested.name}.{label}",
            name=label,
            model=self.tested.id,
            steps=steps,
            expect=ends,
            static=static,
            variables=variables,
            macros=macros,
            description=text.text() if text else "",
            tags=tags,
            meta=meta,
            file=item.doc.file,
            location=name.place,
            broken=len(item.diagnostics) > before or self.tested.broken,
        )

    @property
    def tested(self) -> Model:
        if self.model is None:
            raise RuntimeError("the model was not found")
        return self.model

    def _required(self, key: str) -> Section | None:
        part = self.item.child(key)
        if part is None:
            self.item.report("missing-key", f"a unit test has no '{key}'", f"Write '{key}: ...'.")
        return part

    def _config(self) -> tuple[tuple[str, ...], dict[str, Any], bool]:
        config = self.item.child("config")
        if config is not None:
            config.check_keys(UNIT_TEST_CONFIG)
        levels = [self.item, *([config] if config is not None else [])]
        tags = tuple(dict.fromkeys(tag for level in levels for tag in read_tags(level.child("tags"))))
        meta = {key: value for level in levels for key, value in read_meta(level.child("meta")).items()}
        enabled = [part.boolean(otherwise=True) for level in levels if (part := level.child("enabled"))]
        return tags, meta, all(enabled)

    def _find(self, part: Section) -> bool:
        name = node_name(part.text())
        node = self.nodes.get(f"model.{name}")
        if not isinstance(node, Model):
            if name and name not in {model.name for model in self.project.models}:
                models = [n.name for n in self.nodes.values() if isinstance(n, Model)]
                part.report("unknown-ref", f"model '{name}' not found", near(name, models))
            return False
        if not node.in_catalog:
            part.report("bad-value", f"'{name}' is ephemeral and has no rows of its own", "Test a model that reads it.")
            return False
        self.model = node
        return True

    # steps

    def _steps(self) -> tuple[tuple[GivenRows, ...], tuple[UnitTestStep, ...]]:
        given_section, steps = self.item.child("given"), self.item.child("steps")
        first = self._given_rows(given_section) if given_section else ()
        if steps is None:
            return _split_static(first, self.tested, self.item)
        streams = {item.view for item in self.tested.inputs if item.stream}
        for rows in first:
            if rows.view in streams and given_section is not None:
                hint = "Write its rows in the steps: '- given: {...}'."
                given_section.report("unit-test-input", f"'{rows.input}' is read as a stream", hint)
        read_steps = [step for item in steps.items() if (step := self._step(item)) is not None]
        if self.tested.write.history and not self.tested.streaming:
            # Each step is a build, and may give any input other rows.
            return tuple(first), tuple(read_steps)
        if not self.tested.streaming and not self.tested.broken and len(read_steps) > 1:
            steps.report(
                "bad-value",
                f"'{self.tested.name}' is not a streaming table and can have one step only",
                "Write one 'given'.",
            )
        static = list(first)
        rest: list[UnitTestStep] = []
        for step in read_steps:
            fixed, moving = _split_static(step.given, self.tested, self.item)
            if fixed and rest and any(s.given for s in rest):
                message = f"'{fixed[0].input}' is read in full, and its rows cannot change during a test"
                where = msgspec.structs.replace(self.item, value=None)
                where.report(
                    "unit-test-input", message, "Give its rows in the first step, or in 'given' before the steps."
                )
            static += fixed
            rest.append(_with(step, moving[0].given if moving else ()))
        return tuple(static), tuple(rest)

    def _step(self, item: Section) -> UnitTestStep | None:
        if isinstance(item.value, str):
            if item.value in {StepKind.RESTART, StepKind.FLUSH}:
                return self._checked(UnitTestStep(StepKind(item.value), item.place), item)
            hint = near(item.value, ["restart", "flush"]) if item.value else ""
            item.report("bad-value", f"unknown step '{item.value}'", hint or _STEP)
            return None
        if not isinstance(item.value, dict):
            item.expected("a step: given, restart or flush")
            return None
        for key, part in item.mapping():
            if key not in STEP.names:
                part.report("unknown-key", f"unknown step '{key}'", near(key, STEP.names), at_key=True)
        kinds = [k for k in StepKind if k.value in item.value and item.value[k.value] is not False]
        if len(kinds) > 1:
            item.report("bad-value", f"a step has one kind, not {' and '.join(kinds)}", "Split it into two steps.")
            return None
        given_section, now, expect = item.child("given"), item.child("now"), item.child("expect")
        step = UnitTestStep(
            kind=kinds[0] if kinds else StepKind.GIVEN,
            location=item.place,
            given=self._given_rows(given_section) if given_section else (),
            now=read_time(now) if now else None,
            expect=read_expected(expect, self.tested, self.project) if expect else None,
        )
        return self._checked(step, item)

    def _checked(self, step: UnitTestStep, item: Section) -> UnitTestStep | None:
        model = self.tested
        if model.broken:
            # What it streams is in what could not be read.
            return step
        if step.kind is not StepKind.GIVEN and not model.streaming:
            item.report(
                "bad-value", f"'{model.name}' is not a streaming table: there is nothing to {step.kind}", "Remove it."
            )
            return None
        if step.kind is StepKind.FLUSH:
            if not any(i.watermark for i in model.inputs if i.stream):
                item.report("bad-value", f"no stream of '{model.name}' has a watermark to advance", "Remove 'flush'.")
                return None
            if model.write.output_mode is OutputMode.COMPLETE:
                item.report("bad-value", "in complete mode windows never close", "Remove 'flush'.")
                return None
        return step

    def _given_rows(self, part: Section) -> tuple[GivenRows, ...]:
        """A mapping of inputs to rows, or dbt's list of `input` and `rows`."""
        fixtures: list[GivenRows] = []
        if isinstance(part.value, list):
            for item in part.items():
                item.check_keys(GIVEN)
                name = item.child("input")
                if name is None:
                    item.report("missing-key", "the given rows have no 'input'", "Write 'input: ref('flights')'.")
                else:
                    fixtures += self._input(name.text(), item, name)
            return tuple(fixtures)
        for key, rows in part.mapping():
            fixtures += self._input(key, rows, None)
        return tuple(fixtures)

    def _input(self, text: str, rows: Section, at: Section | None) -> Iterable[GivenRows]:
        name, model = node_name(text), self.tested
        items = [item for item in model.inputs if item.name == name]
        if not items:
            message = f"'{model.name}' does not read '{name}'"
            hint = near(name, [item.name for item in model.inputs])
            (at or rows).report("unit-test-input", message, hint, at_key=at is None)
            return
        columns = columns_known(self._columns(items[0]))
        read = read_rows(rows, columns, f"'{name}'", self.project)
        place = at.place if at else rows.key_place
        for item in {item.view: item for item in items}.values():
            yield GivenRows(name, item.view, read, place)

    def _columns(self, item: Input) -> dict[str, str | None]:
        node = self.nodes.get(item.node)
        # Of a source without a schema, a row may have columns that nobody has described.
        return {} if isinstance(node, Source) and not knows_columns(node.spec) else input_columns(item, self.nodes)

    def _overrides(self) -> tuple[dict[str, Any], dict[str, str]]:
        part = self.item.child("overrides")
        if part is None:
            return {}, {}
        part.check_keys(OVERRIDES)
        variables, macros = part.child("vars"), part.child("macros")
        texts = {}
        for key, value in macros.mapping() if macros else ():
            texts[key] = str(value.value).lower() if isinstance(value.value, bool) else value.text()
        return {key: value.value for key, value in variables.mapping()} if variables else {}, texts


def input_columns(item: Input, nodes: Mapping[str, Node]) -> dict[str, str | None]:
    """Name and type of the columns that an input has; empty if they are not known."""
    node = nodes.get(item.node)
    if isinstance(node, Model):
        in_table = not node.computed_when_read
        return {c.name: spark_types.type_in_table(c.type) if in_table else c.type for c in node.columns}
    if not isinstance(node, Source) or not node.columns:
        return {}
    columns: dict[str, str | None] = {c.name: c.type for c in node.columns}
    kind = kind_of(node.spec.format)
    if item.metadata and kind is not None:
        columns[ORIGIN] = kind.origin(node.spec) or None
    return columns


def _split_static(
    fixtures: tuple[GivenRows, ...], model: Model, item: Section
) -> tuple[tuple[GivenRows, ...], tuple[UnitTestStep, ...]]:
    """Rows of what is read in full, and a step with the rows of streams."""
    streams = {i.view for i in model.inputs if i.stream}
    fixed = tuple(rows for rows in fixtures if rows.view not in streams)
    moving = tuple(rows for rows in fixtures if rows.view in streams)
    return fixed, (UnitTestStep(StepKind.GIVEN, item.place, moving),)


def _with(step: UnitTestStep, fixtures: tuple[GivenRows, ...]) -> UnitTestStep:
    return UnitTestStep(step.kind, step.location, fixtures, step.now, step.expect)


def read_expected(part: Section, model: Model, project: LoadedProject) -> ExpectedResult:
    if isinstance(part.value, list):
        return ExpectedResult(part.key_place, _rows(part, model, project))
    part.check_keys(EXPECT)
    has_rows = isinstance(part.value, dict) and not part.value.keys().isdisjoint({"rows", "csv", "sql", "fixture"})
    ordered, mark = part.child("ordered"), part.child("watermark")
    if ordered is not None and not has_rows:
        hint = "Add the rows: 'rows: [..]'."
        ordered.report("setting-needs", "'ordered' needs the rows that are expected", hint, at_key=True)
    counts = {key: section.integer(least=0) for key in _COUNTS if (section := part.child(key))}
    if not model.streaming and not model.broken:
        for key in (*_COUNTS, "watermark"):
            if (section := part.child(key)) is not None and key != "quarantined":
                section.report("bad-value", f"'{model.name}' is not a streaming table and has no '{key}'", at_key=True)
    return ExpectedResult(
        location=part.key_place,
        rows=_rows(_only_rows(part), model, project) if has_rows else None,
        ordered=ordered.boolean() if ordered else False,
        watermark=read_time(mark) if mark else None,
        **counts,
    )


def read_time(part: Section) -> str | None:
    """A point in time, as Spark writes it; None if it is none, which is reported."""
    if part.value is UNKNOWN:
        return None
    text = part.text()
    try:
        return timestamp(text)
    except ValueError:
        part.report(
            "unit-test-value", f"'{text}' is not a timestamp", "Write it as 2013-01-31 10:05:00; times are UTC."
        )
        return None


def _rows(part: Section, model: Model, project: LoadedProject) -> Rows:
    column_types: dict[str, str | None] = {c.name: c.type for c in model.columns}
    return read_rows(part, columns_known(column_types), f"'{model.name}'", project)


def _only_rows(part: Section) -> Section:
    row_settings = {key: value for key, value in part.value.items() if key in ROWS.names}
    return msgspec.structs.replace(part, value=row_settings)
