"""Change records in the form in which Debezium's connectors write them with Connect's JSON converter."""

from __future__ import annotations

import base64
import gzip
import json
from pathlib import Path
from typing import Any

Fields = dict[str, dict[str, Any]]
UNAVAILABLE = "__debezium_unavailable_value"


# What a connector wrote: Debezium 3.6.1 for PostgreSQL 15, Connect 4.2, with replace.null.with.default=false and
# skipped.operations=none, while transactions overlapped with the snapshot; it was killed once. customers.json has the
# rows of the table at the end.
RECORDED = Path(__file__).parent / "fixtures" / "debezium"


def recorded(name: str) -> list[str]:
    return gzip.decompress((RECORDED / f"{name}.jsonl.gz").read_bytes()).decode().splitlines()


def digits(number: int) -> str:
    """The digits of a decimal, as Connect writes them."""
    return base64.b64encode(number.to_bytes(number.bit_length() // 8 + 1, "big", signed=True)).decode()


def of(kind: str, name: str = "", **more: Any) -> dict[str, Any]:
    return {"type": kind, "optional": True, **({"name": name, "version": 1} if name else {}), **more}


def decimal(scale: int) -> dict[str, Any]:
    return of("bytes", "org.apache.kafka.connect.data.Decimal", parameters={"scale": str(scale)})


CUSTOMERS: Fields = {"id": of("int32"), "name": of("string"), "credit": decimal(2)}
POSTGRES = {"connector": "postgresql", "snapshot": "false", "ts_ms": 1_714_550_400_000, "lsn": 100}


def struct(fields: Fields, **more: Any) -> dict[str, Any]:
    return {"type": "struct", "fields": [{**kind, "field": name} for name, kind in fields.items()], **more}


def change(
    op: str,
    key: dict[str, Any] | None,
    after: dict[str, Any] | None = None,
    *,
    fields: Fields = CUSTOMERS,
    schemas: bool = True,
    **source: Any,
) -> str:
    """A line of `key` and `value`; the names of `source` replace those of a row that PostgreSQL streamed."""
    placeholders = {name: (key or {}).get(name, "") for name in fields}
    payload = {
        "before": placeholders if op == "d" else None,
        "after": after,
        "source": {**POSTGRES, **source},
        "op": op,
        "ts_ms": 1_714_550_400_500,
    }
    if not schemas:
        return json.dumps({"key": key, "value": payload})
    rows = [{**struct(fields, optional=True), "field": name} for name in ("before", "after")]
    keys = {name: fields[name] for name in key or {} if name in fields}
    return json.dumps(
        {
            "key": None if key is None else {"schema": struct(keys), "payload": key},
            "value": {"schema": {"type": "struct", "fields": rows, "name": "crm.Envelope"}, "payload": payload},
        }
    )


def tombstone(key: dict[str, Any]) -> str:
    return json.dumps({"key": {"schema": struct({"id": of("int32")}), "payload": key}, "value": None})
