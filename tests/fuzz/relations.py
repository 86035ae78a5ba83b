"""The relations of the oracle, as the checker knows them."""

from __future__ import annotations

from engine.compile.streaming import StreamFacts

COLUMNS = {"id": "int", "v": "int", "ts": "timestamp", "s": "string"}
RELATIONS = {
    "sa": StreamFacts(streaming=True, columns=COLUMNS),
    "sb": StreamFacts(streaming=True, columns=COLUMNS),
    "wa": StreamFacts(streaming=True, columns=COLUMNS, watermark="ts", delay=600),
    "wb": StreamFacts(streaming=True, columns=COLUMNS, watermark="ts", delay=1200),
    "ba": StreamFacts(streaming=False, columns=COLUMNS),
}

# What Spark starts, and would never write.
STRICTER = {"join-unmatched-rows"}
