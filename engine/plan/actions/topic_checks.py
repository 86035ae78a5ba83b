"""Whether streams can resume with the topics that are there: what the plan asks without Java, a build asks again."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from engine.compile import Manifest, Model, Source
from engine.errors import Diagnostic, StateError
from engine.plan.deployed.deployed_facts import Deployed, DeployedModel
from engine.sources import answers_of


def topic_faults(manifest: Manifest, model: Model, known: DeployedModel, deployed: Deployed) -> Iterator[Diagnostic]:
    """Yield why a stream cannot resume with the topics that are there, with the codes of `topic_check.resume`.

    Args:
        manifest: the compiled project.
        model: that resumes.
        known: what there is of it.
        deployed: what there is of its sources.
    """
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
            yield from (of_reader(one, model, node) for one in error.diagnostics)


def of_reader(found: Diagnostic, model: Model, source: Source) -> Diagnostic:
    """Return what a source finds, with the model that reads it."""
    message, hint = (text.replace("<model>", model.name) for text in (found.message, found.hint))
    return replace(found, message=message, hint=hint, node=model.name).at(source.location)
