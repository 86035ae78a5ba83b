"""Spark's rules of streaming, checked without Spark.

A query is lowered (`lowering`) into a small plan (`plan`), in which each column knows whether it carries the
watermark; the rules are functions over that plan. `plan.optimize` derives the plan as it runs.
"""

from engine.compile.nodes.query_finding import QueryFinding
from engine.compile.streaming.check_query import check, check_text
from engine.compile.streaming.lowering.parse_statement import ParsedStatement, parse
from engine.compile.streaming.query_plan.stream_facts import MODES, Mode, StreamFacts

__all__ = [
    "MODES", "Mode", "ParsedStatement", "QueryFinding", "StreamFacts", "check", "check_text", "parse",
]  # fmt: skip
