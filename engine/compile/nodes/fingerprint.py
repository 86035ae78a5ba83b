"""Hashes of the facts of a model (`engine.compile.stateful.model_facts`): of all, and of those that targets share."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from engine.sources.credentials import shown, without_digest


def definition(facts_: Mapping[str, Any]) -> str:
    """A hash of the facts without the names of tables, so that two targets can be compared; empty without facts."""
    return fingerprint(_without_tables(facts_)) if facts_ else ""


def _without_tables(facts_: Mapping[str, Any]) -> dict[str, Any]:
    """`sql` names models and sources; the SQL that keeps the state is made of it and names their tables."""
    result = {key: value for key, value in facts_.items() if key != "relation"}
    for key in result.keys() & {"state", "keyed"}:
        result[key] = {"inputs": result[key]["inputs"]}
    if "inlined" in result:
        result["inlined"] = {name: _without_tables(inner) for name, inner in result["inlined"].items()}
    inputs = [{key: value for key, value in item.items() if key != "deferred"} for item in result["inputs"]]
    return result | {"inputs": inputs}


def published(facts_: Mapping[str, Any]) -> dict[str, Any]:
    """The facts as artifacts have them: without the digests of what may be a credential, and with settings masked."""
    result: dict[str, Any] = _without_digests(facts_)
    conf = (result.get("settings") or {}).get("conf")
    return result | ({"settings": {**result["settings"], "conf": shown(conf)}} if conf else {})


def _without_digests(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _without_digests(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [_without_digests(inner) for inner in value]
    return without_digest(value) if isinstance(value, str) else value


def fingerprint(facts_: Mapping[str, Any]) -> str:
    text = json.dumps(facts_, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:16]
