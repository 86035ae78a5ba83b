"""Random Avro schemas, what may become of them, and values in their binary form."""

from __future__ import annotations

import random
import struct
from typing import Any

from engine.sources.avro_schema.binary_encoding import write_long

PLAIN = ("null", "boolean", "int", "long", "float", "double", "bytes", "string")
LOGICAL = {
    "int": [{"logicalType": "date"}, {"logicalType": "time-millis"}],
    "long": [{"logicalType": name} for name in ("timestamp-millis", "timestamp-micros", "local-timestamp-micros")],
    "bytes": [
        {"logicalType": "decimal", "precision": digits, "scale": scale} for digits, scale in ((5, 2), (9, 2), (9, 4))
    ],
}
WIDER = {
    "int": ("long", "float", "double"),
    "long": ("float", "int"),
    "float": ("double",),
    "string": ("bytes",),
    "bytes": ("string",),
}
DEFAULTS = {
    "null": None, "boolean": True, "int": 5, "long": 6, "float": 1.5, "double": 2.5, "bytes": "\u00ffz", "string": "dé", "array": [], "map": {},
}  # fmt: skip
VALUES = {
    "null": (b"",),
    "boolean": (b"\0", b"\1"),
    "int": tuple(map(write_long, (0, -1, 2**31 - 1, -(2**31), 300))),
    "long": tuple(map(write_long, (0, -1, 2**63 - 1, -(2**63), 10**12))),
    "float": tuple(struct.pack("<f", x) for x in (0.5, 1e10, float("inf"))),
    "double": tuple(struct.pack("<d", x) for x in (0.1, 1e300)),
    "bytes": (b"\0", b"\4ab"),
    "string": (b"\0", b"\6h\xc3\xa9", write_long(70) + b"x" * 70),
}


class Avro:
    """One source of chance, so that a seed gives the same cases again."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.names = 0

    def chance(self, part: float) -> bool:
        return self.random.random() < part

    def record(self, name: str, depth: int) -> dict[str, Any]:
        fields = [self.field(f"f{i}", depth - 1) for i in range(self.random.randint(1, 4))]
        return {"type": "record", "name": name, "fields": fields}

    def field(self, name: str, depth: int) -> dict[str, Any]:
        return self.with_default({"name": name, "type": self.type(depth)})

    def with_default(self, field: dict[str, Any]) -> dict[str, Any]:
        type_ = field["type"][0] if isinstance(field["type"], list) else field["type"]
        kind = type_ if isinstance(type_, str) else type_["type"]
        own = {"enum": lambda: type_["symbols"][0], "fixed": lambda: "x" * type_["size"]}.get(
            kind, lambda: DEFAULTS.get(kind)
        )
        if self.chance(0.6) and (kind in DEFAULTS or kind in {"enum", "fixed"}):
            return {**field, "default": own()}
        return {key: value for key, value in field.items() if key != "default"}

    def type(self, depth: int, *, union: bool = True) -> Any:
        kinds = [
            *PLAIN,
            "enum",
            "fixed",
            *(["record", "array", "map", *(["union"] * 3 if union else [])] if depth > 0 else []),
        ]
        kind = self.random.choice(kinds)
        if kind in {"array", "map"}:
            return {"type": kind, "items" if kind == "array" else "values": self.type(depth - 1)}
        if kind == "union":
            return self.distinct(
                [*(self.type(depth - 1, union=False) for _ in range(self.random.randint(1, 4))), "int"]
            )
        if kind in PLAIN:
            return {"type": kind, **self.random.choice(LOGICAL[kind])} if kind in LOGICAL and self.chance(0.5) else kind
        self.names += 1
        name = f"{self.random.choice(('', 'a.', 'b.'))}{kind[0]}{self.names}"
        if kind != "enum":
            return (
                self.record(name, depth)
                if kind == "record"
                else {"type": kind, "name": name, "size": self.random.randint(0, 3)}
            )
        symbols = self.random.sample("ABCDE", self.random.randint(1, 4))
        return {
            "type": kind,
            "name": name,
            "symbols": symbols,
            **({"default": symbols[-1]} if self.chance(0.3) else {}),
        }

    @staticmethod
    def distinct(branches: list[Any]) -> list[Any]:
        found: dict[str, Any] = {}
        for branch in branches:
            found.setdefault(branch if isinstance(branch, str) else branch.get("name", branch["type"]), branch)
        return list(found.values())

    def changed(self, type_: Any) -> Any:
        """A type as a later version of the schema might have it, or another one altogether."""
        if isinstance(type_, list):
            branches = [self.changed(b) if self.chance(0.4) else b for b in type_]
            branches = [b for b in branches if not isinstance(b, list)]
            self.random.shuffle(branches)
            return self.distinct([*branches, *(["long"] if self.chance(0.2) else []), "string"])
        if isinstance(type_, str):
            if self.chance(0.4):
                return self.random.choice(WIDER.get(type_, (type_,)))
            return ["null", type_] if self.chance(0.2) and type_ != "null" else type_
        return self.changed_definition(type_)

    def changed_definition(self, type_: dict[str, Any]) -> Any:
        kind = type_["type"]
        if inner := {"array": "items", "map": "values"}.get(kind):
            return {**type_, inner: self.changed(type_[inner])}
        if kind == "record":
            return self.later(type_)
        if kind == "enum" and self.chance(0.4):
            return {"type": kind, "name": type_["name"], "symbols": self.random.sample("ABCDEF", 4)}
        if kind in LOGICAL and self.chance(0.6):
            # Another unit, or none.
            return {"type": kind, **self.random.choice(LOGICAL[kind])} if self.chance(0.7) else self.changed(kind)
        return type_

    def later(self, record: dict[str, Any]) -> dict[str, Any]:
        fields = []
        for field in record["fields"]:
            if self.chance(0.1):
                continue
            kept = self.with_default({**field, "type": self.changed(field["type"])}) if self.chance(0.4) else field
            renamed = {"name": f"n{kept['name']}", "aliases": [kept["name"]]} if self.chance(0.15) else {}
            fields.append({**kept, **renamed})
        if self.chance(0.3):
            self.random.shuffle(fields)
        if self.chance(0.3):
            self.names += 1
            fields.insert(self.random.randint(0, len(fields)), self.field(f"new{self.names}", 2))
        name = record["name"].rpartition(".")[2]
        if self.chance(0.1):
            return {**record, "name": f"c.{name}", "fields": fields}
        if self.chance(0.1) and "." in record["name"]:
            return {**record, "name": f"x.y{name}", "aliases": [record["name"]], "fields": fields}
        return {**record, "fields": fields}

    def value(self, type_: Any) -> bytes:
        if isinstance(type_, list):
            index = self.random.randrange(len(type_))
            return write_long(index) + self.value(type_[index])
        kind = type_ if isinstance(type_, str) else type_["type"]
        if kind in VALUES:
            return self.random.choice(VALUES[kind])
        if kind == "fixed":
            return b"q" * type_["size"]
        if kind == "enum":
            return write_long(self.random.randrange(len(type_["symbols"])))
        if kind == "record":
            return b"".join(self.value(field["type"]) for field in type_["fields"])
        return self.blocks(type_)

    def blocks(self, type_: dict[str, Any]) -> bytes:
        made = b""
        for number in range(self.random.randint(0, 2)):
            inner = type_.get("items") or type_["values"]
            keys = [
                b"" if "items" in type_ else b"\4" + f"{number}{i}".encode() for i in range(self.random.randint(1, 3))
            ]
            items = b"".join(key + self.value(inner) for key in keys)
            sized = write_long(-len(keys)) + write_long(len(items))
            made += (sized if self.chance(0.3) else write_long(len(keys))) + items
        return made + b"\0"
