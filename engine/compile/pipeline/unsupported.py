"""Settings that this version compiles and cannot run yet; a build rejects them instead of ignoring them."""

from __future__ import annotations

from collections.abc import Iterator

from engine.compile.nodes.manifest import Model
from engine.compile.nodes.model_settings import Publish
from engine.compile.pipeline.merge_options import TAKEN, unfit
from engine.errors import Diagnostic, Location

_HINT = "Remove it."


def unsupported(model: Model) -> tuple[Diagnostic, ...]:
    """The settings in use that a build of this version cannot honour, each at its place."""
    return tuple(_finding(model, *found) for found in _write(model))


def _finding(model: Model, key: str, what: str, hint: str = _HINT) -> Diagnostic:
    places = model.positions.settings
    place = places.get(key) or places.get(key.partition(".")[0]) or Location(model.file)
    message = f"{what} is not supported yet"
    return Diagnostic("not-supported", message, hint, node=model.name, location=place)


def _write(model: Model) -> Iterator[tuple[str, str] | tuple[str, str, str]]:
    write = model.write
    for option, instead in unfit(write.write_options) if write.unique_key else ():
        # As a setting of the session or a property set for the commit it would count for other writers, or not at all.
        hint = f"Set it for the table, table_properties: {{{instead}: ..}}, " if instead else "Remove it, "
        hint += f"or use one that applies to MERGE: {', '.join(TAKEN)}, snapshot-property.<name>."
        yield "write_options", f"the option '{option}' of 'write_options' with a 'unique_key'", hint
    if write.publish is Publish.ON_TESTS_PASS and model.relation.sql in model.sql:
        # The query would read what readers see, not what waits.
        yield "publish", "publish: on_tests_pass of a query that reads {{ this }}"
