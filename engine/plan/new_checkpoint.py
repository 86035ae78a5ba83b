"""When a stream may begin a new checkpoint over the rows that its table has (`--reset-checkpoint`)."""

from __future__ import annotations

from engine.compile import Manifest, Model, Source
from engine.compile.nodes.model_settings import OutputMode
from engine.sources import SourceSpec, source_traits

NOW, EARLIEST, OPEN_WINDOWS = "now", "earliest", "open-windows"


def rewritten(model: Model) -> bool:
    return model.write.output_mode is OutputMode.COMPLETE


def totals(manifest: Manifest, model: Model) -> bool:
    """Return whether groups of a model have no event time: records that are skipped are missing in later totals."""
    own_diagnostics = (d for d in manifest.diagnostics if d.node == model.name)
    return any(diagnostic.code == "unbounded-groups" for diagnostic in own_diagnostics)


def timed(spec: SourceSpec) -> bool:
    return source_traits(spec.format).begun_at is not None


def begun_at(spec: SourceSpec, at: int | None) -> SourceSpec:
    """Return a source as a reset says; `at` in milliseconds since 1970, None: from the first record."""
    moved = source_traits(spec.format).begun_at
    return moved(spec, at) if moved is not None else spec


def sound(manifest: Manifest, model: Model) -> tuple[str, ...]:
    """Return the values of `--reset-checkpoint` that leave no row wrong in a model's table."""
    if not model.streaming:
        return ()
    nodes = [manifest.nodes.get(item.node) for item in model.inputs if item.stream]
    placed = all(timed(node.spec) for node in nodes if isinstance(node, Source))
    begins = placed and not rewritten(model) and not totals(manifest, model)
    again = rewritten(model) or bool(model.write.unique_key)
    return (*([NOW] if begins else []), *([EARLIEST] if again else []))


def from_open_windows(model: Model) -> str:
    command = f"engine build -s {model.name} --reset-checkpoint {OPEN_WINDOWS}"
    return f"Or keep the windows that are written, and let those that are open follow the edit: {command}"


def ways(manifest: Manifest, model: Model) -> tuple[str, ...]:
    command, values = f"engine build -s {model.name} --reset-checkpoint", sound(manifest, model)
    lines = []
    if NOW in values:
        lines.append(
            f"Or keep the rows and read only new data (open windows and unread data are skipped): {command} {NOW}"
        )
    if EARLIEST in values:
        rows = "the table is rewritten" if rewritten(model) else "keys that the query no longer returns stay"
        lines.append(f"Or read all data again into the table ({rows}): {command} {EARLIEST}")
    return tuple(lines)
