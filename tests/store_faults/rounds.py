"""Builds with faults, one after the other over the same tables, which are compared after each build that ended well."""

from __future__ import annotations

import random
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.catalogs.conftest import jdbc_catalog
from tests.lab import Result
from tests.services.postgres import Postgres
from tests.services.s3 import S3Server
from tests.services.s3_faults import Fault, FaultProxy, Request
from tests.store_faults import machine
from tests.store_faults.machine import Machine
from tests.store_faults.shop import Shop

# Those that a client repeats, or that change nothing: a build carries many of them, and ends well.
PASSING = (Fault.BREAK, Fault.DROP, Fault.LOSE, Fault.TRUNCATE, Fault.SHORTEN, Fault.DELAY, Fault.DUPLICATE)
_SECONDS = 240.0
# Seconds without a sign after which a machine is taken for gone.
GONE_AFTER = 6.0
_EVERY = 7


@dataclass(slots=True)
class Tally:
    """What was done and found.

    Attributes:
        faults: how many were done, by their kind.
        kinds: of requests that something was done to.
        codes: of errors that builds ended with.
        builds: how many there were.
        found: what was wrong.
    """

    faults: Counter[str] = field(default_factory=Counter)
    kinds: set[str] = field(default_factory=set)
    codes: Counter[str] = field(default_factory=Counter)
    builds: int = 0
    found: list[str] = field(default_factory=list)

    @property
    def total(self) -> int:
        """How many faults were done."""
        return sum(self.faults.values())


@dataclass(slots=True)
class World:
    """Two machines before one store.

    Attributes:
        shop: their project.
        one: the machine that gets the faults.
        proxy: through which it reaches the store.
        other: the machine that takes over, which starts when it is needed first.
        chance: decides what is landed.
        tally: of what is done.
        say: gets a line about each round.
    """

    shop: Shop
    one: Machine
    proxy: FaultProxy
    other: Callable[[], Machine]
    chance: random.Random
    tally: Tally
    say: Callable[[str], None]

    def build(self, builder: Machine | None = None) -> Result:
        """A build over one more file."""
        self.shop.land(self.chance)
        self.tally.builds += 1
        return (builder or self.one).run("build")

    def clean(self) -> None:
        """A build without faults, which must end well with the right rows."""
        self.proxy.begin()
        self.tally.builds += 1
        self.judge(self.one.run("build"), "a build without faults", set())

    def judge(self, result: Result, what: str, reasons: set[str]) -> bool:
        """Compare the tables after a build, or its error with what it may say; return whether it ended well."""
        codes = errors(result)
        self.tally.codes.update(codes)
        if result.code == 0:
            self.tally.found += [f"{what}: {line}" for line in self.shop.differences()]
        elif not codes or not codes <= reasons:
            self.tally.found.append(f"{what}: {sorted(codes)} {result.text[-3000:]}")
        return result.code == 0


def errors(result: Result) -> set[str]:
    """The codes of a build's errors."""
    return {e["code"] for e in result.events if e["event"] == "Diagnosed" and e["level"] == "error"}


@contextmanager
def world(
    folder: Path, store: S3Server, database: Postgres, seed: int, say: Callable[[str], None] = print
) -> Iterator[World]:
    """Two machines in a folder, over the two servers."""
    landing = folder / "landing"
    landing.mkdir(parents=True)
    catalog = jdbc_catalog(database, folder / "warehouse")
    shop = Shop(catalog, f"s{seed}", store.bucket(f"state-{folder.name.lower().replace('_', '-')[-40:]}"), landing)
    with ExitStack() as stack:
        proxy = stack.enter_context(FaultProxy(store.port).running())
        roots = [folder / "one", folder / "other"]
        one = shop.machine(roots[0], store.block(endpoint=proxy.endpoint))
        started: list[Machine] = []

        def other() -> Machine:
            if not started:
                root = shop.machine(roots[1], store.block())
                started.append(stack.enter_context(machine.running(root, GONE_AFTER)))
            return started[0]

        first = stack.enter_context(machine.running(one, GONE_AFTER))
        made = World(shop, first, proxy, other, random.Random(seed), Tally(), say)
        for _ in range(2):
            proxy.begin()
            made.judge(made.build(), "the first builds", set())
        yield made


def passing_faults(world: World, count: int) -> None:
    """Do some faults of the kinds that pass, several in each build, until each kind was done to each request."""
    tally, number = world.tally, 0
    while count > 0 and not tally.found:
        kind = PASSING[number % len(PASSING)]
        first = (number // len(PASSING)) % _EVERY

        def choose(request: Request, kind: Fault = kind, first: int = first) -> Fault | None:
            return kind if request.number % _EVERY == first else None

        world.proxy.delay_seconds = 0.5
        world.proxy.begin(choose)
        result = world.build()
        done = world.proxy.done[:]
        world.proxy.begin()
        world.judge(result, f"{kind} of each {_EVERY}th request from {first} on", {"s3-unreachable"})
        _count(tally, done)
        count -= len(done)
        number += 1
        world.say(f"{kind}: {len(done)} of a build, exit code {result.code} {sorted(errors(result))}")
        if result.code:
            world.clean()


def refusals(world: World, count: int) -> None:
    """Refuse one request in each build, of each sort that a build has."""
    tally, wanted, at = world.tally, iter(()), 0
    seen: list[str] = []
    for _ in range(count):
        if tally.found:
            return
        kind = next(wanted, None)
        if kind is None:
            world.proxy.begin()
            world.judge(world.build(), "a build without faults", set())
            seen = sorted({request.kind for request in world.proxy.requests})
            world.chance.shuffle(seen)
            wanted, at = iter(seen), at + 1
            kind = next(wanted)
        refused = _nth(kind, Fault.REFUSE, at)
        world.proxy.begin(refused)
        result = world.build()
        done = world.proxy.done[:]
        world.proxy.begin()
        world.judge(result, f"refused: {kind}, {at}", {"s3-denied"})
        _count(tally, done)
        world.say(f"refused {kind}: {len(done)}, exit code {result.code} {sorted(errors(result))}")
    world.clean()


def _nth(kind: str, fault: Fault, number: int) -> Callable[[Request], Fault | None]:
    """Choose the request of a sort that comes as such a number, once."""
    left = [number]

    def choose(request: Request) -> Fault | None:
        if request.kind != kind:
            return None
        left[0] -= 1
        return fault if left[0] == 0 else None

    return choose


def suspensions(world: World, count: int) -> None:
    """Suspend a machine at a request, let the other one take over and build, and wake the first one up."""
    other, seen = world.other(), _sorts_of_a_build(world)
    numbers: Counter[str] = Counter()
    for index in range(count):
        if world.tally.found:
            return
        kind = seen[index % len(seen)]
        numbers[kind] += 1
        _suspended(world, other, kind, 1 + numbers[kind] // 2)
    world.clean()


def _sorts_of_a_build(world: World) -> list[str]:
    world.proxy.begin()
    world.judge(world.build(), "a build without faults", set())
    sorts = sorted({request.kind for request in world.proxy.requests})
    # Writes first: they are what a machine that wakes up does harm with.
    return sorted(sorts, key=lambda kind: not kind.startswith(("PUT", "POST", "DELETE")))


def _suspended(world: World, other: Machine, kind: str, number: int) -> None:
    reached, released = threading.Event(), threading.Event()
    choose = _nth(kind, Fault.DELAY, number)

    def hold(request: Request) -> None:
        # What the machine sends meanwhile (its lease is renewed) waits as well: it is suspended.
        if reached.is_set() or choose(request) is not None:
            reached.set()
            released.wait(_SECONDS)

    world.proxy.begin(before=hold)
    world.shop.land(world.chance)
    world.one.begin("build")
    ended: list[Result] = []
    waiter = threading.Thread(target=lambda: (ended.append(world.one.end()), reached.set()))
    waiter.start()
    try:
        reached.wait(_SECONDS)
        if ended:
            # The build had fewer requests of this sort.
            world.judge(ended[0], f"not suspended at {kind}, {number}", set())
            return
        world.one.suspend()
        taken = world.build(other)
        world.judge(taken, f"the other one, while the first is suspended at {kind}, {number}", set())
        # The request arrives at the store now, as one that was on its way.
        released.set()
        world.one.wake()
        waiter.join(_SECONDS)
        woken = ended[0]
        codes = errors(woken)
        # Whoever sleeps before it has the lock finds that of the other one.
        reasons = {"lease-lost", "table-locked"} if "/lock/" in kind else {"lease-lost"}
        world.judge(woken, f"woken at {kind}, {number}", reasons)
        world.tally.found += [f"after waking at {kind}, {number}: {line}" for line in world.shop.differences()]
        after = world.build(other)
        world.judge(after, f"the other one, after the first woke up at {kind}, {number}", set())
        world.tally.faults["suspend"] += 1
        world.tally.kinds.add(kind)
        world.say(f"suspended at {kind}, {number}: exit code {woken.code} {sorted(codes)}")
    finally:
        released.set()
        world.one.wake()
        waiter.join()


def _count(tally: Tally, done: list[tuple[Request, Fault]]) -> None:
    tally.faults.update(fault.value for _, fault in done)
    tally.kinds.update(request.kind for request, _ in done)


def summary(tally: Tally) -> dict[str, Any]:
    """The numbers of a tally."""
    return {"faults": dict(tally.faults), "sorts": len(tally.kinds), "codes": dict(tally.codes), "builds": tally.builds}
