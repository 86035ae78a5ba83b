"""The project of the run with faults, what is sent to its topics, and the tables that it must end with."""

from __future__ import annotations

import json
import random
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from confluent_kafka import KafkaError, KafkaException

from tests.services.kafka import Broker

FIRST = datetime(2024, 5, 1, tzinfo=UTC)
# Event times move on by this for each order; an order is late by less than the delay of the watermark.
STEP = timedelta(seconds=1)
LATE = 20
# New partitions are known to producers soon.
_METADATA = {"topic_metadata_refresh_interval_ms": 2000}
KINDS = ("paid", "refund", "sent")

_PROJECT = """\
name: faults
targets:
  dev:
    schema: main
    spark: {{master: 'local[2]'}}
    connections: {{main: {{bootstrap_servers: '{address}'}}}}
"""
_SOURCES = """\
sources:
  - name: shop
    tables:
      - name: orders
        format: kafka
        connection: main
        topic: orders
        schema: "id bigint, at timestamp, kind string, amount int"
      - {name: clicks, format: kafka, connection: main, topic: clicks, schema: "click bigint, at timestamp"}
"""
PAID = """\
/*---
streams: [shop.orders]
on_schema_change: append_columns
---*/
select id, at, kind, amount{more} from {{{{ source('shop', 'orders') }}}} where kind <> 'sent'
"""
MODELS = {
    "paid": PAID.format(more=""),
    "minutes": """\
/*---
streams: {paid: {watermark: at delay 1 minute}}
windows: {minute: "tumbling(at, 1 minute)"}
---*/
select minute.start as minute, count(*) as n, sum(amount) as amount from {{ ref('paid') }} group by minute
""",
    "latest": """\
/*---
streams: [shop.orders]
unique_key: customer
sequence_by: id
---*/
select id % 50 as customer, id, kind, amount from {{ source('shop', 'orders') }}
""",
    "kinds": "/*---\nmaterialized: table\n---*/\nselect kind, count(*) as n, max(id) as last from {{ ref('latest') }} group by kind\n",
    "clicks": """\
/*---
streams: {shop.clicks: {watermark: at delay 1 hour, dedup: [click]}}
---*/
select click, at from {{ source('shop', 'clicks') }}
""",
    # It fails for ever, and stops nobody.
    "broken": """\
/*---
streams: [shop.orders]
---*/
select id, cast(concat('x', id) as int) as wrong from {{ source('shop', 'orders') }}
""",
}


def write_project(root: Path, address: str) -> None:
    """Write the project for a broker at an address."""
    files = {"project.yml": _PROJECT.format(address=address), "sources/shop.yml": _SOURCES}
    files |= {f"models/{name}.sql": text for name, text in MODELS.items()}
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)


@dataclass(slots=True)
class Sender:
    """Sends orders and clicks in a thread of its own, also through restarts of the broker, each exactly once.

    Attributes:
        broker: the broker.
        chance: of times and amounts.
        orders: that were sent.
        clicks: that were sent; some of them twice.
        burst: orders to send at once.
        partitions: of the topic of orders.
        no_clicks: clicks are sent when this is not set.
        recreated: set when the topic of clicks is another one.
    """

    broker: Broker
    chance: random.Random
    orders: list[dict[str, Any]] = field(default_factory=list)
    clicks: set[int] = field(default_factory=set)
    burst: int = 0
    partitions: int = 2
    no_clicks: threading.Event = field(default_factory=threading.Event)
    recreated: threading.Event = field(default_factory=threading.Event)
    _ended: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None

    def start(self) -> None:
        """Begin."""
        self._thread = threading.Thread(target=self._follow, name="sender", daemon=True)
        self._thread.start()

    def end(self) -> None:
        """Send what closes the windows, and wait until the broker has it all."""
        self._ended.set()
        assert self._thread is not None
        self._thread.join(180)
        assert not self._thread.is_alive()

    def _follow(self) -> None:
        # Retries without a second copy, in the order in which they were sent.
        producer = self.broker.producer(enable_idempotence=True, message_timeout_ms=170_000, **_METADATA)
        clicks = self._clicks_producer()
        while not self._ended.wait(0.1):
            count, self.burst = self.burst or self.chance.randint(0, 10), 0
            for _ in range(count):
                self._order(producer)
            if self.recreated.is_set():
                # It numbers its records, which a new topic does not continue.
                clicks = self._clicks_producer()
                self.recreated.clear()
            if not self.no_clicks.is_set():
                for _ in range(self.chance.randint(0, 3)):
                    self._click(clicks)
            producer.poll(0)
            clicks.poll(0)
        # Far ahead: all windows before it are closed.
        self._order(producer, at=FIRST + STEP * (len(self.orders) + 86_400))
        assert producer.flush(170) == 0
        assert clicks.flush(170) == 0

    def _clicks_producer(self) -> Any:
        return self.broker.producer(enable_idempotence=True, message_timeout_ms=170_000, **_METADATA)

    def _order(self, producer: Any, at: datetime | None = None) -> None:
        number = len(self.orders)
        moment = at or FIRST + STEP * (number - self.chance.randint(0, LATE))
        order = {
            "id": number, "at": f"{moment:%Y-%m-%dT%H:%M:%SZ}", "amount": self.chance.randint(1, 9),
            "kind": "paid" if at else self.chance.choice(KINDS),
        }  # fmt: skip
        self.orders.append(order)
        _put(producer, "orders", order, self.chance.randrange(self.partitions))

    def _click(self, producer: Any) -> None:
        click = len(self.clicks)
        self.clicks.add(click)
        value = {"click": click, "at": f"{FIRST + timedelta(seconds=click):%Y-%m-%dT%H:%M:%SZ}"}
        for _ in range(self.chance.choice((1, 1, 2))):
            _put(producer, "clicks", value, 0)


def _put(producer: Any, topic: str, value: dict[str, Any], partition: int) -> None:
    while True:
        try:
            return producer.produce(topic, json.dumps(value), partition=partition)
        except BufferError:
            producer.poll(0.1)
            time.sleep(0.1)
        except KafkaException as error:
            # It has not heard of a new partition yet.
            if error.args[0].code() != KafkaError._UNKNOWN_PARTITION:
                raise
            producer.poll(0.1)
            time.sleep(0.1)


def expected(sender: Sender) -> dict[str, list[tuple[Any, ...]]]:
    """The rows that each table must have, by the batch reading of what was sent."""
    paid = [order for order in sender.orders if order["kind"] != "sent"]
    newest = max(order["at"] for order in paid)
    closed = datetime.fromisoformat(newest) - timedelta(minutes=1)
    minutes: Counter[datetime] = Counter()
    amounts: Counter[datetime] = Counter()
    for order in paid:
        minute = datetime.fromisoformat(order["at"]).replace(second=0)
        minutes[minute] += 1
        amounts[minute] += order["amount"]
    latest = {order["id"] % 50: order for order in sender.orders}
    kinds = Counter(order["kind"] for order in latest.values())
    last = {kind: max(o["id"] for o in latest.values() if o["kind"] == kind) for kind in kinds}
    return {
        "paid": sorted((o["id"], o["kind"], o["amount"]) for o in paid),
        "minutes": sorted((m, n, amounts[m]) for m, n in minutes.items() if m + timedelta(minutes=1) <= closed),
        "latest": sorted((c, o["id"], o["kind"], o["amount"]) for c, o in latest.items()),
        "kinds": sorted((kind, n, last[kind]) for kind, n in kinds.items()),
        "clicks": sorted((click,) for click in sender.clicks),
    }


COLUMNS = {
    "paid": ("id", "kind", "amount"),
    "minutes": ("minute", "n", "amount"),
    "latest": ("customer", "id", "kind", "amount"),
    "kinds": ("kind", "n", "last"),
    "clicks": ("click",),
}
