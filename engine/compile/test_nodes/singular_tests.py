"""Singular data tests: files of SQL under tests/, each a query that returns the failing rows."""

from __future__ import annotations

from pathlib import PurePosixPath

from engine.compile.config.column_config import read_options
from engine.compile.declarations.compile_context import CompileContext
from engine.compile.nodes.manifest import DataTest
from engine.compile.references.resolve_references import KnownNodes
from engine.compile.sql.parse import parse
from engine.compile.test_nodes.data_test_nodes import read_relations
from engine.errors import Diagnostic, Location, ProjectError
from engine.project.parse_yaml import Yaml
from engine.project.yaml_section import Section, is_name
from engine.schema.data_test_keys import TEST_CONFIG

KIND = "singular"


def read_singular(
    shared: CompileContext, known_nodes: KnownNodes, diagnostics: list[Diagnostic]
) -> tuple[DataTest, ...]:
    """The singular tests of a project; what is wrong is added to `diagnostics`."""
    tests: dict[str, DataTest] = {}
    for file, text in shared.project.singular:
        test = _read(file, text, shared, known_nodes, diagnostics)
        if test is None:
            continue
        if test.id in tests:
            message = f"two tests have the name '{test.name}'"
            hint = f"Rename the file; the first is {tests[test.id].file}."
            diagnostics.append(Diagnostic("duplicate-name", message, hint, node=test.name, location=test.location))
            continue
        tests[test.id] = test
    return tuple(tests.values())


def _read(
    file: str, text: str, shared: CompileContext, known_nodes: KnownNodes, diagnostics: list[Diagnostic]
) -> DataTest | None:
    name = PurePosixPath(file).stem
    place = Location(file, 1, 1)
    if not is_name(name):
        message = f"'{name}' is not a valid name"
        hint = "Use lower-case letters, digits and underscores for the file of a test."
        diagnostics.append(Diagnostic("bad-name", message, hint, location=place))
        return None
    names = shared.names
    used_env = names.used_env
    names.begin()
    # What the tests before have asked for counts as well.
    names.used_env |= used_env
    try:
        rendered = shared.sandbox.render(text, file)
    except ProjectError as error:
        diagnostics += [d.at(None, name) for d in error.diagnostics]
        return None
    settings = {key: value for call in names.calls for key, value in call.items()}
    config = Section(Yaml(settings, file, origin=place), (), settings, diagnostics, name)
    config.check_keys(TEST_CONFIG)
    options = read_options(config)
    name = options.name or name
    query = parse(rendered, name, diagnostics, compared=False)
    if query is None or not options.enabled:
        return None
    read = read_relations(rendered, query, known_nodes, f"the test '{name}'", name, None, diagnostics)
    if read is None:
        return None
    sql, parents, positions = read
    if not parents:
        diagnostics.append(
            Diagnostic(
                "missing-key",
                f"the test '{name}' reads no model or source",
                "Read one with ref('m') or source('s', 't').",
                location=place,
            )
        )
        return None
    return DataTest(
        id=f"test.{name}",
        name=name,
        kind=KIND,
        model=parents[0],
        sql=sql,
        severity=options.severity,
        depends_on=parents,
        tags=options.tags,
        file=file,
        location=place,
        warn_if=options.warn_if,
        error_if=options.error_if,
        limit=options.limit,
        stored=shared.failures(name) if options.store_failures else None,
        description=options.description,
        meta=options.meta,
        positions=positions,
        deterministic=query.deterministic,
    )
