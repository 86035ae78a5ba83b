"""What compile leaves behind: target/manifest.json and target/compiled/."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from engine import __version__
from engine.compile.manifest import Manifest, Model, Source
from engine.compile.pyspark_text import script
from engine.secrets import scrub

_LEFT_OUT = {"positions", "facts", "location"}


def write_artifacts(manifest: Manifest, folder: Path) -> None:
    """Write the manifest, the compiled SQL and each stream as a PySpark script below target/."""
    folder.mkdir(parents=True, exist_ok=True)
    _write(folder / "manifest.json", json.dumps(manifest_dict(manifest), indent=1, default=str))
    compiled = folder / "compiled"
    shutil.rmtree(compiled, ignore_errors=True)
    for model in manifest.models:
        if model.sql:
            path = compiled / (manifest.project or "project") / model.file
            path.parent.mkdir(parents=True, exist_ok=True)
            _write(path, _comment(model, manifest) + model.sql + "\n")
            if model.streaming and not model.broken:
                _write(path.with_suffix(".py"), script(model, manifest))


def _write(path: Path, text: str) -> None:
    temporary = path.with_name(f".{path.name}.tmp")
    temporary.write_text(scrub(text), encoding="utf-8")
    temporary.replace(path)


def _comment(model: Model, manifest: Manifest) -> str:
    lines = [f"-- {model.relation} ({model.materialized.value})"]
    for item in model.inputs:
        if not item.view.startswith("`__"):
            continue
        node = manifest.nodes[item.node]
        what = f"{node.spec.format} files in {node.spec.path}" if isinstance(node, Source) else item.name
        parts = [f"-- {item.view} is {'a stream of ' if item.stream else ''}{what}"]
        if item.watermark:
            made = f"{item.watermark.expression} as " if item.watermark.expression else ""
            parts.append(f"watermark {made}{item.watermark.column} delay {item.watermark.delay}")
        if item.dedup:
            parts.append(f"repeats of ({', '.join(item.dedup)}) dropped")
        lines.append("; ".join(parts))
    return "\n".join(lines) + "\n"


def manifest_dict(manifest: Manifest) -> dict[str, Any]:
    """The manifest as JSON."""
    return {
        "metadata": {
            "project_name": manifest.project,
            "target": manifest.target,
            "headrace_version": __version__,
            "generated_at": datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z"),
        },
        "nodes": {node_id: _plain(asdict(node)) for node_id, node in manifest.nodes.items()},
        "order": list(manifest.order),
        "parent_map": {node_id: list(manifest.parents(node_id)) for node_id in manifest.nodes},
        "child_map": {node_id: list(ids) for node_id, ids in manifest.children().items()},
        "diagnostics": [d.to_dict() for d in manifest.diagnostics],
    }


def _plain(node: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in node.items() if key not in _LEFT_OUT}
