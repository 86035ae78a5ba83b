"""Spark's rules of streaming, checked without Spark.

A query is lowered into a small plan (`plan`, `build`), in which each column knows whether it carries the
watermark; the rules are functions over that plan. `optimise` derives the plan as it runs.
"""

from engine.compile.rules.check import check, check_text
from engine.compile.rules.model import MODES, Mode, RuleFinding, StreamFacts
from engine.compile.rules.native import Native, Parsed, parse

__all__ = [
    "MODES", "Mode", "Native", "Parsed", "RuleFinding", "StreamFacts", "check", "check_text", "parse",
]  # fmt: skip
