"""Projects that read the real broker of the run; each test has topics and tables of its own."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pytest

from tests.lab import Lab
from tests.services.kafka import Broker

COLUMNS = "id int, at timestamp, kind string, amount double"


@dataclass(slots=True)
class Kafka:
    """A project that reads topics of the broker."""

    lab: Lab
    broker: Broker

    def __post_init__(self) -> None:
        text = (self.lab.root / "project.yml").read_text()
        connections = f"    connections: {{main: {{bootstrap_servers: '{self.broker.address}'}}}}\n"
        self.lab.write("project.yml", text.rstrip() + "\n" + connections)

    def topic(self, partitions: int = 1, **config: str) -> str:
        """A new topic."""
        return self.broker.create(f"t-{uuid.uuid4().hex[:8]}", partitions, **config)

    def source(self, topic: str | None, *, schema: str | None = COLUMNS, **keys: Any) -> None:
        """Declare shop.events; keys are written as they are."""
        self.sources(topic, {"events": keys}, schema=schema)

    def sources(self, topic: str | None, tables: Mapping[str, Mapping[str, Any]], schema: str | None = COLUMNS) -> None:
        """Declare tables of shop, all of one topic, each with keys of its own."""
        text = "sources:\n  - name: shop\n    tables:\n"
        for name, keys in tables.items():
            said = {"format": "kafka", "connection": "main", "topic": topic, "schema": schema and f'"{schema}"', **keys}
            body = "".join(f"        {key}: {value}\n" for key, value in said.items() if value is not None)
            text += f"      - name: {name}\n{body}"
        self.lab.write("sources/shop.yml", text)

    def stream(self, select: str, name: str = "plain", source: str = "events") -> None:
        """A streaming table over a table of shop."""
        self.lab.model(
            name, f"/*---\nstreams: [shop.{source}]\n---*/\n{select} from {{{{ source('shop', '{source}') }}}}\n"
        )

    def ids(self, name: str = "plain") -> list[int]:
        """The ids in a table."""
        return self.lab.ids(name)


@pytest.fixture
def kafka(lab: Lab, broker: Broker) -> Kafka:
    """An empty project with a connection to the broker, run in the shared session."""
    return Kafka(lab, broker.start())


def event(number: int, at: str = "10:00", **changes: Any) -> dict[str, Any]:
    """A record that fits COLUMNS."""
    return {"id": number, "at": f"2024-05-01T{at}:00Z", "kind": "paid", "amount": float(number)} | changes
