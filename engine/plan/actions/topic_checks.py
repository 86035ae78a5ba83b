"""Whether streams can resume with the topics that are there: what the plan asks without Java, a build asks again."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from engine.compile import Manifest, Model, Source
from engine.errors import Diagnostic, StateError
from engine.plan.deployed.deployed_facts import Deployed, DeployedModel
from engine.plan.new_checkpoint import EARLIEST, rewritten, totals
from engine.sources import answers_of
from engine.state import ModelState


def topic_faults(manifest: Manifest, model: Model, known: DeployedModel, deployed: Deployed) -> Iterator[Diagnostic]:
    if known.state is None or known.checkpoint is None:
        return
    for item in model.inputs:
        node, source = manifest.nodes[item.node], deployed.sources.get(item.node)
        if not item.stream or not isinstance(node, Source) or source is None or source.topics is None:
            continue
        remembered = known.state.sources.get(node.id, {})
        try:
            answers_of(node.spec.format).resumption(node.spec, remembered, known.checkpoint.positions, source.topics)
        except StateError as error:
            for one in error.diagnostics:
                found = of_reader(one, model, node)
                yield _with_reset(found, model) if keeps_rows(manifest, model, known, deployed) else found


def keeps_rows(manifest: Manifest, model: Model, known: DeployedModel, deployed: Deployed) -> bool:
    """Return whether a stream can read its sources from the first records on into the rows that its table has.

    All of its topics were created since it last started: none of their records can be in the table. Totals that have
    no event time would begin at zero, and a table in complete mode would lose the rows of the old topics.
    """
    if rewritten(model) or totals(manifest, model):
        return False
    return all_new(manifest, model, known, deployed)


def all_new(manifest: Manifest, model: Model, known: DeployedModel, deployed: Deployed) -> bool:
    streams = [item.node for item in model.inputs if item.stream]
    return known.state is not None and all(_is_new(manifest, node, known.state, deployed) for node in streams)


def _is_new(manifest: Manifest, id_: str, state: ModelState, deployed: Deployed) -> bool:
    node, source = manifest.nodes[id_], deployed.sources.get(id_)
    if not isinstance(node, Source) or source is None or source.topics is None:
        return False
    return answers_of(node.spec.format).is_new(state.sources.get(id_, {}), source.topics)


def _with_reset(found: Diagnostic, model: Model) -> Diagnostic:
    command = f"engine build -s {model.name} --reset-checkpoint {EARLIEST}"
    return replace(found, hint=f"{found.hint}. Or keep the rows and add those of the new topic: {command}")


def of_reader(found: Diagnostic, model: Model, source: Source) -> Diagnostic:
    message, hint = (text.replace("<model>", model.name) for text in (found.message, found.hint))
    return replace(found, message=message, hint=hint, node=model.name).at(source.location)
