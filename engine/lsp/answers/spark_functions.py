"""Spark's functions as an editor shows them."""

from __future__ import annotations

from functools import cache

from engine.compile.types.builtin_functions import BUILTIN
from engine.compile.types.function_signatures import SIGNATURES


@cache
def signatures() -> dict[str, str]:
    """Return the signature of each function of Spark by its name; `name(...)` for one that takes any arguments."""
    pairs = (line.split(" ", 1)[1] for line in SIGNATURES.strip().splitlines())
    written = {signature.split("(", 1)[0]: signature for signature in pairs}
    return {name: written.get(name, f"{name}(...)") for name in sorted({*BUILTIN, *written})}
