"""What the project says of a model and its table, as the table should have it: comments and properties."""

from __future__ import annotations

from collections.abc import Mapping

from engine.compile import Model
from engine.compile.nodes.model_settings import History, OutputMode
from engine.lake.comments import Comments, changed_columns, changed_text
from engine.lake.table_facts import TableFacts
from engine.lake.table_layout import FORMAT, MERGED, REWRITTEN
from engine.plan.deployed.deployed_facts import DeployedModel
from engine.secrets.scrubber import scrub


def comments_of(model: Model) -> Comments:
    persist = model.operation.persist_docs
    columns = {column.name.lower(): _storable_text(column.description) for column in model.columns}
    return Comments(table_comment(model) if persist.relation else None, columns if persist.columns else None)


def table_comment(model: Model) -> str:
    return _storable_text(model.description) if model.operation.persist_docs.relation else ""


def described(model: Model, deployed_model: DeployedModel) -> bool:
    facts = deployed_model.view if model.computed_when_read else deployed_model.table
    comments = comments_of(model)
    return (
        facts is not None
        and changed_text(facts.properties, comments) is None
        and not changed_columns(facts.docs, comments)
    )


def table_properties(model: Model, generation: int) -> dict[str, str]:
    """Return the properties that a model's table is made with, beside the defaults of all tables."""
    write = model.write
    rewritten = (not model.streaming and not write.history) or write.output_mode is OutputMode.COMPLETE
    merged = write.unique_key and write.history is not History.CHANGES
    defaults = REWRITTEN if rewritten else MERGED if merged else {}
    version = {FORMAT: str(write.format_version)} if write.format_version else {}
    tags = {"engine.tags": ",".join(model.tags)} if model.tags else {}
    own = {"engine.model": model.name, "engine.generation": str(generation), **tags}
    return {**defaults, **version, **write.table_properties, **own}


def changed_properties(model: Model, table: TableFacts) -> Mapping[str, str]:
    """Return the properties of an earlier table that the project says otherwise; those it does not name stay."""
    properties, version = table_properties(model, 1), model.write.format_version
    # There is a way to a newer format only.
    newer = version is not None and table.format_version is not None and table.format_version < version
    return {
        key: text
        for key, text in properties.items()
        if (newer if key == FORMAT else not _is_set_by_builds(key) and table.properties.get(key) != text)
    }


def _is_set_by_builds(key: str) -> bool:
    return key in {"engine.generation", "engine.model"}


def _storable_text(text: str) -> str:
    """The text without secrets, and without half characters, which Java rejects."""
    if not text:
        return ""
    return scrub(text).encode("utf-8", "replace").decode("utf-8")
