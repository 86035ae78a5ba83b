"""How often an input row takes effect in a table, and why: exactly once from sources that can be read again."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from engine.compile.nodes.manifest import Manifest, Model, Source
from engine.compile.nodes.model_settings import OutputMode, Overwrite
from engine.sources import kind_of


class GuaranteeLevel(StrEnum):
    EXACTLY_ONCE = "exactly once"
    NONE = "no guarantee"


@dataclass(frozen=True, slots=True)
class Guarantee:
    """What is promised of a model; `because_of`: the sources above it that cannot be re-read."""

    level: GuaranteeLevel
    reason: str
    because_of: tuple[str, ...] = ()


def guarantees(manifest: Manifest) -> dict[str, Guarantee]:
    unsafe = {source.id: unsafe_source(source) for source in manifest.sources}
    promised = {}
    for model in manifest.models:
        above = dict.fromkeys(name for node in model.depends_on for name in unsafe.get(node, ()))
        unsafe[model.id] = tuple(above)
        promised[model.id] = guarantee(model, tuple(above))
    return promised


def unsafe_source(source: Source) -> tuple[str, ...]:
    kind = kind_of(source.spec.format)
    return () if kind is None or kind.REPLAYABLE else (source.name,)


def guarantee(model: Model, unsafe: tuple[str, ...]) -> Guarantee:
    if unsafe:
        names = " and ".join(unsafe)
        reason = f"{names} cannot be re-read: rows being processed when a run is killed may be lost or duplicated."
        return Guarantee(GuaranteeLevel.NONE, reason, unsafe)
    return Guarantee(GuaranteeLevel.EXACTLY_ONCE, _reason(model))


def _reason(model: Model) -> str:
    if not model.in_catalog:
        return "It is inlined in the models that read it; their guarantee applies."
    if model.computed_when_read:
        return "It is computed when it is queried and stores nothing."
    if not model.streaming:
        if model.write.history:
            return "Each build compares the rows of the query with the table, so rows that arrive twice change nothing."
        if model.write.overwrite is Overwrite.PARTITIONS:
            return "The partitions that its rows fall into are replaced in one commit."
        return "It is rebuilt in full and replaced in one commit."
    streams = " and ".join(dict.fromkeys(i.name for i in model.inputs if i.stream)) or "Its input"
    text = (
        f"{streams} can be re-read from the start of a micro-batch, and each commit records its micro-batch: "
        "none is written twice."
    )
    if model.write.unique_key:
        text += " Each micro-batch is merged by its key in one commit."
    if model.write.output_mode is OutputMode.COMPLETE:
        text += " Each micro-batch replaces the whole table in one commit."
    if static := list(dict.fromkeys(i.name for i in model.inputs if not i.stream)):
        text += (
            " Static inputs may change in between: a repeated micro-batch reads the then current rows of "
            f"{' and '.join(static)}."
        )
    return text
