"""Hashes of the facts of a model: of all, and of those that targets share."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

import msgspec

from engine.compile.nodes.facts import Facts, plain
from engine.sources.credentials import masked_options, without_digest


def definition_hash(facts: Facts) -> str:
    """A hash of the facts without the names of tables, so that two targets can be compared; empty without facts."""
    return _hash(_without_tables(plain(facts))) if facts else ""


def _without_tables(facts: Mapping[str, Any]) -> dict[str, Any]:
    """`sql` names models and sources; the SQL that keeps the state is made of it and names their tables."""
    result = {key: value for key, value in facts.items() if key != "relation"}
    for key in result.keys() & {"state", "keyed"}:
        result[key] = {"inputs": result[key]["inputs"]}
    if "inlined" in result:
        result["inlined"] = {name: _without_tables(inner) for name, inner in result["inlined"].items()}
    inputs = [{key: value for key, value in item.items() if key != "deferred"} for item in result["inputs"]]
    return result | {"inputs": inputs}


def published_facts(facts: Facts) -> Facts:
    """The facts as artifacts have them: without the digests of what may be a credential, and with settings masked."""
    result = _without_digests(plain(facts))
    if conf := facts.settings.get("conf"):
        result["settings"]["conf"] = masked_options(conf)
    return msgspec.convert(result, Facts) if facts else facts


def _without_digests(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _without_digests(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [_without_digests(inner) for inner in value]
    return without_digest(value) if isinstance(value, str) else value


def fingerprint(facts: Facts) -> str:
    return _hash(plain(facts))


def _hash(facts: Mapping[str, Any]) -> str:
    text = json.dumps(facts, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:16]
