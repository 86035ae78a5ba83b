"""Facts of which a test says some; the rest are those of a query that reads nothing."""

from __future__ import annotations

from typing import Any

import msgspec

from engine.compile.nodes.facts import FORM, NO_FACTS, Facts


def facts(**parts: Any) -> Facts:
    """Facts from plain JSON."""
    blank = {**msgspec.to_builtins(NO_FACTS), "form": FORM, "materialized": "table"}
    read = [{"stream": False, "watermark": None, "dedup": [], **item} for item in parts.pop("inputs", ())]
    inner = {name: facts(**one) for name, one in parts.pop("inlined", {}).items()}
    made = msgspec.convert({**blank, **parts, "inputs": read}, Facts)
    return msgspec.structs.replace(made, inlined=inner)
