"""The lock for stores without locks: one holder, taken over when it is gone, and a holder that comes back finds out."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import pytest

from engine.errors import StateError
from engine.state.blob_store import Store
from engine.state.lease import GONE_AFTER, Lease, LeaseClock, held, take
from tests.state.test_objects import store

__all__ = ["store"]
TABLE = "lake/shop/paid"


@dataclass(slots=True)
class Time:
    """A clock that runs when somebody sleeps; `while_asleep` happens then."""

    seconds: float = 0.0
    while_asleep: list[object] = field(default_factory=list)

    def clock(self) -> LeaseClock:
        return LeaseClock(lambda: self.seconds, self._sleep)

    def _sleep(self, seconds: float) -> None:
        self.seconds += seconds
        if self.while_asleep:
            self.while_asleep.pop(0)()  # type: ignore[operator]


def try_to_take(store: Store, clock: LeaseClock) -> Lease | None:
    try:
        return take(store, TABLE, clock)
    except StateError:
        return None


def test_a_holder_that_is_there_keeps_it_and_one_that_ended_lets_it_go_at_once(store: Store) -> None:
    time = Time()
    first = take(store, TABLE, time.clock())
    time.while_asleep = [lambda: None, first.renew]
    assert try_to_take(store, time.clock()) is None
    assert time.seconds < GONE_AFTER
    first.check()
    first.release()
    before = time.seconds
    second = take(store, TABLE, time.clock())
    assert (second.number, time.seconds) == (2, before)
    assert store.list(f"{TABLE}/lock") == ("2",)


def test_one_that_is_gone_is_followed_by_one_of_many_and_cannot_come_back(store: Store) -> None:
    gone = take(store, TABLE, Time().clock())
    with ThreadPoolExecutor(6) as pool:
        taken = [lease for lease in pool.map(lambda _: try_to_take(store, Time().clock()), range(6)) if lease]
    # Who looks after it was taken over waits for the new holder, who does not answer either in this test.
    newest = max(taken, key=lambda lease: lease.number)
    newest.check()
    for lease in (gone, *(lease for lease in taken if lease is not newest)):
        for act in (lease.check, lease.renew):
            with pytest.raises(StateError, match="another run took over the lock"):
                act()
        lease.release()
    newest.check()
    # A number that was removed behind a newer one may be made once more; whoever makes it does not hold the lease.
    assert [lease.number for lease in taken].count(newest.number) == 1


def test_it_is_held_for_a_block(store: Store) -> None:
    with held(store, TABLE) as lease:
        lease.check()
        time = Time(while_asleep=[lease.renew])
        assert try_to_take(store, time.clock()) is None
    assert take(store, TABLE, Time().clock()).number == 2
