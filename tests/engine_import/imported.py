"""Manifests of dbt for tests: a real one, and small ones made here."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
V12 = "https://schemas.getdbt.com/dbt/manifest/v12.json"


def real_project(folder: Path) -> Path:
    """A copy of the dbt project dbt_shop with its manifest; returns the folder target/ of it."""
    shutil.copytree(HERE / "dbt_shop", folder)
    (folder / "target").mkdir()
    shutil.copy(HERE / "dbt_shop_manifest.json", folder / "target" / "manifest.json")
    return folder / "target"


def model(name: str, code: str, **more: Any) -> dict[str, Any]:
    """A model as a manifest has it; `path`, `config`, `columns` and others replace what is here."""
    path = more.pop("path", f"{name}.sql")
    return {
        "resource_type": "model", "name": name, "package_name": "shop", "path": path, "raw_code": code,
        "original_file_path": f"models/{path}", "language": "sql", "description": "", "columns": {}, "tags": [],
        "meta": {}, "config": {"materialized": "table", **more.pop("config", {})}, "depends_on": {"nodes": [], "macros": []},
        **more,
    }  # fmt: skip


def written(folder: Path, *models: dict[str, Any], **parts: Any) -> Path:
    """Write a manifest of some models into a folder target/ and return that."""
    target = folder / "target"
    target.mkdir(parents=True)
    nodes = {f"{node['resource_type']}.shop.{node['name']}": node for node in models}
    data = {
        "metadata": {"dbt_schema_version": V12, "project_name": "shop", "adapter_type": "spark", "dbt_version": "1.12.0"},
        "nodes": {**nodes, **parts.pop("nodes", {})}, "sources": {}, "macros": {}, "unit_tests": {}, **parts,
    }  # fmt: skip
    (target / "manifest.json").write_text(json.dumps(data), encoding="utf-8")
    return target
