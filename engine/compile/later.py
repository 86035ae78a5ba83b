"""What this version compiles and cannot run yet: a build that passed over it would not do what it says."""

from __future__ import annotations

from collections.abc import Iterator

from engine.compile.manifest import Model
from engine.compile.settings import Publish
from engine.errors import Diagnostic, Location

_HINT = "Take it out; compile, docs and lineage know it already."


def unsupported(model: Model) -> tuple[Diagnostic, ...]:
    """The settings in use that a build of this version cannot honour, each at its place."""
    return tuple(_finding(model, key, what) for key, what in [*_write(model), *_operation(model)])


def _finding(model: Model, key: str, what: str) -> Diagnostic:
    places = model.positions.settings
    place = places.get(key) or places.get(key.partition(".")[0]) or Location(model.file)
    message = f"{what} is compiled, and not run yet by this version"
    return Diagnostic("not-supported", message, _HINT, node=model.name, location=place)


def _write(model: Model) -> Iterator[tuple[str, str]]:
    write = model.write
    if write.write_options and write.unique_key:
        # A MERGE of Spark takes no options.
        yield "write_options", "'write_options' with a 'unique_key'"
    if write.publish is Publish.ON_TESTS_PASS:
        yield "publish", "publish: on_tests_pass"


def _operation(model: Model) -> Iterator[tuple[str, str]]:
    if model.operation.explain:
        yield "explain", "'explain'"
