"""The lock for stores without locks: one holder, taken over when it is gone, and a holder that comes back finds out."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from engine.errors import SetupError, StateError
from engine.lake.table_fence import Fence, fence_of
from engine.state import ModelState, TableState
from engine.state.blob_store import Folder, Store
from engine.state.lease import GONE_AFTER, Holder, Lease, LeaseClock, held_lease, leased, take_lease, while_away
from engine.state.lock import locked
from engine.state.lock_holder import process
from engine.state.object_path import ObjectPath
from tests.state.test_objects import Table, store

__all__ = ["store"]
TABLE = "lake/shop/paid"
OTHER = "lake/shop/sent"


@dataclass(slots=True)
class Time:
    """A clock that runs when somebody sleeps; `while_asleep` happens then."""

    seconds: float = 0.0
    while_asleep: list[Callable[[], object]] = field(default_factory=list)

    def clock(self) -> LeaseClock:
        return LeaseClock(lambda: self.seconds, self._sleep)

    def _sleep(self, seconds: float) -> None:
        self.seconds += seconds
        if self.while_asleep:
            self.while_asleep.pop(0)()


def holder(store: Store, owner: str) -> Holder:
    found = Holder(store, "there", owner, {**process(), "pid": len(owner)})
    found.begin()
    return found


def take_over(store: Store, owner: str, folder: str = TABLE) -> Lease:
    return take_lease(holder(store, owner), folder, Time().clock())


def refused(store: Store, owner: str, time: Time) -> str:
    with pytest.raises(StateError) as caught:
        take_lease(holder(store, owner), TABLE, time.clock())
    assert caught.value.diagnostic.code == "table-locked"
    return caught.value.diagnostic.message


@pytest.mark.slow
def test_a_holder_that_is_there_keeps_it_and_one_that_ended_lets_it_go_at_once(store: Store) -> None:
    time = Time()
    first = take_over(store, "first")
    time.while_asleep = [lambda: None, first.holder.renew]
    message = refused(store, "second", time)
    assert re.fullmatch(r"lake\.shop\.paid is being written by process 5 on \S+ \(.+, since 20\S+\)", message)
    assert time.seconds < GONE_AFTER
    first.check()
    first.holder.release()
    before = time.seconds
    second = take_lease(holder(store, "second"), TABLE, time.clock())
    assert (second.number, second.fenced, time.seconds) == (2, True, before)
    assert store.list(f"{TABLE}/lock") == ("2",)


@pytest.mark.slow
def test_one_that_is_gone_is_followed_by_one_of_many_and_cannot_come_back(store: Store) -> None:
    gone = take_over(store, "gone")

    def attempt(number: int) -> Lease | None:
        try:
            return take_over(store, f"run{number}")
        except StateError:
            return None

    with ThreadPoolExecutor(6) as pool:
        taken = [lease for lease in pool.map(attempt, range(6)) if lease]
    # Who looks after it was taken over waits for the new holder, who does not answer either in this test.
    newest = max(taken, key=lambda lease: lease.number)
    newest.check()
    for lease in (gone, *(lease for lease in taken if lease is not newest)):
        lease.holder.renew()
        with pytest.raises(StateError, match="was taken over by process 4") as caught:
            lease.check()
        assert caught.value.diagnostic.code == "lease-lost"
    newest.check()
    # A number that was removed behind a newer one may be made once more; whoever makes it does not hold the lease.
    assert [lease.number for lease in taken].count(newest.number) == 1
    assert not newest.fenced


def test_a_store_that_is_away_for_a_while_is_waited_for(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engine.state.lease._PAUSES", (0.0, 0.0))
    away = [SetupError("s3-unreachable", "away"), SetupError("s3-unreachable", "away")]

    def ask() -> str:
        if away:
            raise away.pop()
        return "back"

    assert while_away(ask) == "back"
    away += [SetupError("s3-unreachable", "away")] * 3
    with pytest.raises(SetupError, match="away"):
        while_away(ask)
    away[:] = [SetupError("s3-denied", "no"), SetupError("s3-denied", "no")]
    with pytest.raises(SetupError, match="no"):
        while_away(ask)
    assert len(away) == 1


@pytest.mark.slow
def test_a_holder_that_a_store_had_cut_off_is_given_time_to_come_back(store: Store) -> None:
    class Old:
        def __getattr__(self, name: str) -> object:
            return getattr(store, name)

        def age(self, _: str) -> float:
            return 1000.0

    first, time = take_over(store, "first"), Time()
    time.while_asleep = [lambda: None, first.holder.renew]
    refused(Old(), "second", time)  # type: ignore[arg-type]
    before = time.seconds
    assert take_lease(Holder(Old(), "there", "third", process()), TABLE, time.clock()).number == 2  # type: ignore[arg-type]
    assert 19 <= time.seconds - before <= 21


@pytest.mark.slow
def test_a_fence_that_is_owed_is_not_forgotten(store: Store) -> None:
    take_over(store, "killed")
    second = take_over(store, "second")
    assert not second.fenced
    second.holder.release()
    # It ended well and wrote nothing: the debt is the next one's.
    third = take_over(store, "third")
    assert (third.number, third.fenced) == (3, False)
    third.fence_raised()
    third.holder.release()
    assert take_over(store, "fourth").fenced


@pytest.mark.slow
def test_a_run_renews_one_file_for_all_its_tables(store: Store) -> None:
    with leased(store, "there", [TABLE, OTHER]) as (paid, sent):
        for lease in (paid, sent):
            lease.check()
            assert held_lease("there", lease.folder) is lease
            assert fence_of({"lease": lease.token}) == Fence(lease)
        assert store.list(".runs") == (paid.holder.owner,)
        before = store.get(f".runs/{paid.holder.owner}")
        paid.holder.renew()
        assert store.get(f".runs/{paid.holder.owner}") != before
        time = Time(while_asleep=[paid.holder.renew])
        refused(store, "second", time)
    assert held_lease("there", TABLE) is None
    assert [take_over(store, "third", folder).fenced for folder in (TABLE, OTHER)] == [True, True]


def test_what_a_run_takes_for_damage_after_it_was_taken_over_is_told_as_that(store: Store) -> None:
    def run(meanwhile: Callable[[], object]) -> None:
        with leased(store, "there", [TABLE, OTHER]):
            meanwhile()
            raise StateError("checkpoint-lost", "the checkpoint is lost")

    for meanwhile, code in ((lambda: None, "checkpoint-lost"), (lambda: take_over(store, "another"), "lease-lost")):
        with pytest.raises(StateError) as caught:
            run(meanwhile)
        assert caught.value.diagnostic.code == code


def test_a_commit_after_the_end_of_a_run_is_rejected(store: Store) -> None:
    with leased(store, "there", [TABLE]) as (lease,):
        token = lease.token
    with pytest.raises(StateError, match="released before its commit"):
        fence_of({"lease": token, "model": "paid"})
    assert fence_of({"model": "paid"}) is None


def test_a_table_that_names_a_later_lease_is_closed_to_earlier_ones(store: Store) -> None:
    class Metadata:
        def __init__(self, **known: str) -> None:
            self.known = {key.replace("_", "."): value for key, value in known.items()}

        def properties(self) -> dict[str, str]:
            return self.known

    fence = Fence(take_over(store, "first"))
    for open_to_all in (None, Metadata(), Metadata(engine_fence="1")):
        fence.check(open_to_all)
    with pytest.raises(StateError) as caught:
        fence.check(Metadata(engine_fence="12"))
    assert caught.value.diagnostic.code == "lease-lost"


def test_the_model_json_of_a_holder_that_wakes_up_is_not_read(tmp_path: Path) -> None:
    root = ObjectPath(Table(tmp_path / "bucket.db"), "state")
    state = TableState(root, "lake", "shop", "paid")
    begun = ModelState("lake.shop.paid", 1, batch=1)
    with locked([state]):
        state.save(begun)
        assert state.load() == begun
        asleep = state.lease
        assert asleep is not None
        # The next one: in this process too, which only a test can do.
        later = Lease(asleep.holder, asleep.folder, asleep.number + 1, fenced=False)
        name = f"lake/shop/paid/1/model.json.{later.number}"
        newer = json.loads(root.as_store().get("lake/shop/paid/1/model.json.1") or b"")
        root.as_store().put(name, json.dumps({**newer, "batch": 7}).encode())
        state.save(begun)
        found = state.load()
        assert found is not None
        assert found.batch == 7
        assert state.generations() == (1,)
        state.discard(1)
        assert (state.generations(), state.load()) == ((), None)


def test_a_store_that_overwrites_what_was_to_be_created_keeps_no_lock(tmp_path: Path) -> None:
    class Careless(Table):
        def put_if_absent(self, key: str, content: bytes) -> bool:
            self.put(key, content)
            return True

    with pytest.raises(StateError) as caught, leased(Careless(tmp_path / "c.db"), "s3a://bucket", [TABLE]):
        raise AssertionError
    assert caught.value.diagnostic.code == "state-unsafe"


@pytest.mark.parametrize("content", [
    b"", b"[]", b"5", b"\xff", b"[" * 50_000, b'{"owner":', b"{}", b'{"owner":5}', b'{"owner":"../../x"}', b'{"owner":"a/b"}',
    b'{"owner":"' + b"x" * 200_000 + b'"}', b'{"owner":"\\ud800"}',
])  # fmt: skip
def test_a_lease_that_no_run_wrote_is_an_error_and_stays(store: Store, content: bytes) -> None:
    store.put(f"{TABLE}/lock/7", content)
    with pytest.raises(StateError) as caught:
        take_over(store, "first")
    assert caught.value.diagnostic.code == "state-unreadable"
    assert f"{TABLE}/lock/7" in caught.value.diagnostic.hint
    assert store.list(f"{TABLE}/lock") == ("7",)


@pytest.mark.slow
def test_names_beside_leases_are_none(store: Store) -> None:
    odd = ("\u00b2", "\u0663", "x", "-1", "007", "9" * 200, ".hidden")
    for name in odd:
        store.put(f"{TABLE}/lock/{name}", b"{}")
    lease = take_over(store, "first")
    lease.check()
    assert lease.number == 1
    assert set(store.list(f"{TABLE}/lock")) >= {"1", "x", "007"}


def test_a_record_of_odd_types_is_shown_and_nothing_else(store: Store) -> None:
    record = {"owner": "other", "pid": [1], "host": {"a": "\x1b[2J"}, "since": None, "command": 5, "fenced": "no"}
    store.put(f"{TABLE}/lock/3", json.dumps(record).encode())
    store.put(".runs/other", b"{}")
    time = Time()
    time.while_asleep = [lambda: store.put(".runs/other", b'{"turn": 1}')]
    assert "is being written by" in refused(store, "second", time)


def test_a_listing_of_leases_that_are_never_there_ends(tmp_path: Path) -> None:
    class Lying(Folder):
        def list(self, prefix: str) -> tuple[str, ...]:
            return ("5",) if prefix.endswith("/lock") else ()

    with pytest.raises(StateError) as caught:
        take_over(Lying(tmp_path), "first")
    assert caught.value.diagnostic.code == "state-unreadable"
