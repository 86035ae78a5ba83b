"""A project with its state in a bucket, on two machines that share nothing else but a catalog; and what its tables must hold."""

from __future__ import annotations

import json
import os
import random
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from engine.compile import Catalog
from engine.lake.lake_reader import Lake
from tests.lab import JAVA_OPTIONS
from tests.projects import write_files

_SOURCES = """
sources:
  - name: shop
    tables:
      - name: events
        format: json
        path: {landing}
        max_files_per_trigger: 1
        schema: "id int, at timestamp, kind string, amount double"
"""
_MODELS = {
    "plain": "/*---\nstreams: [shop.events]\n---*/\nselect id, at, amount from {{ source('shop', 'events') }}\n",
    "latest": """/*---
streams: [shop.events]
unique_key: [id]
sequence_by: at
---*/
select id, at, amount from {{ source('shop', 'events') }}
""",
    "counted": """/*---
streams: [shop.events]
unique_key: [kind]
output_mode: update
---*/
select kind, count(*) as n, sum(amount) as amount from {{ source('shop', 'events') }} group by kind
""",
}
_KINDS = "abcdefgh"
_A_DAY_AGO = 86_400


@dataclass(slots=True)
class Shop:
    """The project and the rows that were landed.

    Attributes:
        catalog: that the machines share.
        schema: of the tables.
        bucket: of the state.
        landing: where files to read lie.
        rows: that lie there.
    """

    catalog: Catalog
    schema: str
    bucket: str
    landing: Path
    rows: list[dict[str, Any]] = field(default_factory=list)
    _files: int = 0

    def machine(self, root: Path, store: Mapping[str, Any]) -> Path:
        """Write the project for a machine, which reaches the store as a block `s3:` says."""
        target = {
            "catalog": {"type": self.catalog.type, "name": self.catalog.name, **self.catalog.keys},
            "schema": self.schema,
            "state": f"s3a://{self.bucket}/engine-state",
            "s3": dict(store),
            "spark": {
                "master": "local[2]",
                "conf": {"spark.driver.extraJavaOptions": JAVA_OPTIONS, "spark.hadoop.fs.s3a.retry.limit": "2"},
            },
        }
        texts = {
            "project.yml": yaml.safe_dump({"name": "shop", "targets": {"dev": target}}),
            "sources/shop.yml": _SOURCES.format(landing=self.landing),
            **{f"models/{name}.sql": text for name, text in _MODELS.items()},
        }
        write_files(root, texts)
        return root

    def land(self, chance: random.Random) -> None:
        """Land a file of some rows, of keys that were there before and others."""
        self._files += 1
        rows = [
            {
                "id": chance.randrange(40),
                "at": f"2024-05-01T{self._files // 60:02}:{self._files % 60:02}:{number:02}Z",
                "kind": chance.choice(_KINDS),
                # Sums of these are exact, in any order.
                "amount": float(chance.randrange(1, 100)),
            }
            for number in range(chance.randrange(3, 9))
        ]
        path = self.landing / f".{self._files:06}"
        path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        moment = time.time() - _A_DAY_AGO + self._files
        os.utime(path, (moment, moment))
        path.rename(self.landing / f"{self._files:06}.json")
        self.rows += rows

    def differences(self) -> list[str]:
        """How the tables differ from what was landed; empty: they hold it."""
        lake = Lake(self.catalog)
        found: dict[str, list[dict[str, Any]]] = {}
        for name in _MODELS:
            answer = lake.rows(self.schema, name, None)
            found[name] = [] if answer is None else [dict(zip(answer[0], row, strict=True)) for row in answer[1]]
        latest = {row["id"]: row["amount"] for row in sorted(self.rows, key=lambda row: str(row["at"]))}
        totals: Counter[str] = Counter()
        for row in self.rows:
            totals[row["kind"]] += row["amount"]
        counts = Counter(row["kind"] for row in self.rows)
        pairs = {
            "plain": (
                sorted((row["id"], row["amount"]) for row in found["plain"]),
                sorted((row["id"], row["amount"]) for row in self.rows),
            ),
            "latest": (sorted((row["id"], row["amount"]) for row in found["latest"]), sorted(latest.items())),
            "counted": (
                sorted((row["kind"], row["n"], row["amount"]) for row in found["counted"]),
                sorted((kind, counts[kind], totals[kind]) for kind in counts),
            ),
        }
        return [
            f"{name} has {len(has)} rows and should have {len(should)}; too many: {_beyond(has, should)}, "
            f"missing: {_beyond(should, has)}"
            for name, (has, should) in pairs.items()
            if has != should
        ]


def _beyond(some: list[Any], others: list[Any]) -> list[Any]:
    return list((Counter(some) - Counter(others)).elements())[:5]
