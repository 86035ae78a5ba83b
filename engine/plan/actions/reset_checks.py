"""`--reset-checkpoint`: what it says, and what forbids it for a model.

Whether streams can resume with the topics that are there: what the plan asks without Java, a build asks again.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace

from engine.compile import Manifest, Model, Source
from engine.errors import Diagnostic, Location, StateError, UsageError
from engine.plan import new_checkpoint
from engine.plan.actions.action import ActionKind, PlanOptions, Reset
from engine.plan.actions.refresh_checks import FILES_GONE, files_gone
from engine.plan.deployed.deployed_facts import Deployed, DeployedModel
from engine.plan.new_checkpoint import EARLIEST, NOW, OPEN_WINDOWS, rewritten, totals
from engine.sources import source_traits
from engine.sources.spec import milliseconds
from engine.state import ModelState


def topic_faults(
    manifest: Manifest, model: Model, deployed_model: DeployedModel, deployed: Deployed
) -> Iterator[Diagnostic]:
    if deployed_model.state is None or deployed_model.checkpoint is None:
        return
    for item in model.inputs:
        node, source = manifest.nodes[item.node], deployed.sources.get(item.node)
        if not item.stream or not isinstance(node, Source) or source is None or source.topics is None:
            continue
        remembered = deployed_model.state.sources.get(node.id, {})
        try:
            source_traits(node.spec.format).resumption(
                node.spec, remembered, deployed_model.checkpoint.positions, source.topics
            )
        except StateError as error:
            for one in error.diagnostics:
                fault = of_reader(one, model, node)
                yield _with_reset(fault, model) if keeps_rows(manifest, model, deployed_model, deployed) else fault


def keeps_rows(manifest: Manifest, model: Model, deployed_model: DeployedModel, deployed: Deployed) -> bool:
    """Return whether a stream can read its sources from the first records on into the rows that its table has.

    All of its topics were created since it last started: none of their records can be in the table. Totals that have
    no event time would begin at zero, and a table in complete mode would lose the rows of the old topics.
    """
    if rewritten(model) or totals(manifest, model):
        return False
    return all_new(manifest, model, deployed_model, deployed)


def all_new(manifest: Manifest, model: Model, deployed_model: DeployedModel, deployed: Deployed) -> bool:
    streams = [item.node for item in model.inputs if item.stream]
    return deployed_model.state is not None and all(
        _is_new(manifest, node, deployed_model.state, deployed) for node in streams
    )


def _is_new(manifest: Manifest, id_: str, state: ModelState, deployed: Deployed) -> bool:
    node, source = manifest.nodes[id_], deployed.sources.get(id_)
    if not isinstance(node, Source) or source is None or source.topics is None:
        return False
    return source_traits(node.spec.format).is_new(state.sources.get(id_, {}), source.topics)


def _with_reset(fault: Diagnostic, model: Model) -> Diagnostic:
    command = f"engine build -s {model.name} --reset-checkpoint {EARLIEST}"
    return replace(fault, hint=f"{fault.hint}. Or keep the rows and add the rows of the new topic: {command}")


def of_reader(fault: Diagnostic, model: Model, source: Source) -> Diagnostic:
    message, hint = (text.replace("<model>", model.name) for text in (fault.message, fault.hint))
    return replace(fault, message=message, hint=hint, node=model.name).at(source.location)


def reset_of(text: str) -> Reset:
    """Read the option's value. Raises UsageError: it is not a timestamp."""
    if text == EARLIEST:
        return Reset(None)
    if text == OPEN_WINDOWS:
        return Reset(None, windows=True)
    if text == NOW:
        return Reset(time.time_ns() // 1_000_000, gap=True)
    at = milliseconds(text)
    if at is None:
        hint = "Write now, earliest, open-windows, or a time (UTC): 2024-05-01T10:00:00."
        raise UsageError("usage", f"invalid value of --reset-checkpoint: {text}", hint)
    return Reset(at)


def reset_of_model(
    manifest: Manifest,
    model: Model,
    deployed_model: DeployedModel,
    deployed: Deployed,
    options: PlanOptions,
    kind: ActionKind,
) -> tuple[list[Diagnostic], int | None]:
    """Return why a stream cannot be reset, and from which event time on it is read again (`Action.events_from`)."""
    if options.reset is None or not model.streaming:
        return [], None
    faults = [*reset_refusals(manifest, model, options.reset, new=all_new(manifest, model, deployed_model, deployed))]
    if kind is not ActionKind.RESET or not options.reset.windows:
        return faults, None
    if FILES_GONE not in options.accept:
        faults += files_gone(manifest, model)
    # The query is read for it.
    from engine.plan.edits.open_windows import first_open

    begin = first_open(model, deployed_model)
    return (faults, begin) if isinstance(begin, int) else ([*faults, begin], None)


def reset_refusals(manifest: Manifest, model: Model, reset: Reset, *, new: bool = False) -> Iterator[Diagnostic]:
    """Yield why a stream cannot be reset; `new`: nothing of what its sources have now was ever read."""
    read = [manifest.nodes[item.node] for item in model.inputs if item.stream]
    sources = [node for node in read if isinstance(node, Source)]
    place = Location(model.file)
    rewritten = new_checkpoint.rewritten(model)
    if (reset.at is not None or new) and (rewritten or new_checkpoint.totals(manifest, model)):
        yield _shrinking(model, rewritten=rewritten, again=not new)
    if not reset.gap and not reset.windows and not model.write.unique_key and not rewritten and not new:
        message = f"rows that {model.relation} already has would be added again"
        hint = (
            "Only models with a 'unique_key' can re-read rows. Continue with new data (--reset-checkpoint now), "
            f"or rebuild the table: engine build -f -s {model.name}"
        )
        yield Diagnostic("reset-duplicates", message, hint, node=model.name, location=place)
    for source in sources:
        if reset.at is not None and not new_checkpoint.timed(source.spec):
            message = f"a stream of '{source.name}' (format: {source.spec.format}) cannot start at a time"
            hint = f"Use --reset-checkpoint {EARLIEST}, or rebuild the table: engine build -f -s {model.name}"
            yield Diagnostic("reset-position", message, hint, node=model.name, location=place)


def _shrinking(model: Model, *, rewritten: bool, again: bool) -> Diagnostic:
    message = (
        f"the totals of '{model.name}' have no event time in their key: they would start at zero and replace those"
    )
    message += f" in {model.relation}"
    if rewritten:
        message = f"{model.relation} is rewritten from the state of '{model.name}' in each micro-batch (output_mode: "
        message += "complete): rows that are not re-read would be missing"
    hint = f"Rebuild the table: engine build -f -s {model.name}"
    if again:
        hint = f"Read all records again (--reset-checkpoint {EARLIEST}), or rebuild it: engine build -f -s {model.name}"
    return Diagnostic("reset-totals", message, hint, node=model.name, location=Location(model.file))
