"""Decides in which hour each event lands, and writes the hours as files that a stream can read meanwhile."""

from __future__ import annotations

import os
import random
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path

from producer.flights import Event, ProducerError

HOUR_NAME = "%Y-%m-%dT%H"
LONGEST_HOLD = timedelta(hours=8)
LONGEST_REPEAT = timedelta(hours=3)
# what lands in an hour was emitted at most this long before it; shuffling moves it within an hour
REACH = LONGEST_HOLD + LONGEST_REPEAT + timedelta(hours=1)
SECOND = 1_000_000_000
MILLISECOND = 1_000_000


@dataclass(frozen=True, slots=True)
class Rates:
    """How unlike a perfect feed the landing is; an event's fate depends on the seed and its id alone."""

    late: float
    duplicate: float
    out_of_order: float
    seed: int


@dataclass(frozen=True, slots=True)
class Landed:
    """One line of a file; `moment` decides the file and the place in it."""

    moment: datetime
    event: Event
    held_back: bool = False


@dataclass(slots=True)
class Summary:
    """What these files hold, for the closing lines."""

    events: int = 0
    flights: int = 0
    held_back: int = 0
    behind: dict[int, int] = field(default_factory=lambda: {10: 0, 60: 0})


def hours(events: Iterable[Event], rates: Rates, first: datetime, end: datetime) -> dict[str, list[Landed]]:
    """Return what lands from `first` up to `end`, by the name of its hour, each in order of its lines."""
    by_hour: dict[str, list[Landed]] = {}
    for event in events:
        for landed in _fate(event, rates):
            if first <= landed.moment < end:
                by_hour.setdefault(f"{landed.moment:{HOUR_NAME}}", []).append(landed)
    return {name: sorted(by_hour[name], key=_place) for name in sorted(by_hour)}


def lines(landed: Iterable[Landed]) -> str:
    """Return the content of a file."""
    return "".join(one.event.line + "\n" for one in landed)


def summarize(by_hour: Mapping[str, list[Landed]]) -> Summary:
    """Count what is special in these hours, read in order."""
    found, newest, ids = Summary(), None, set()
    for landed in (one for name in by_hour for one in by_hour[name]):
        found.events += 1
        ids.add(landed.event.id)
        found.held_back += landed.held_back
        newest = max(newest or landed.event.scheduled, landed.event.scheduled)
        for minutes in found.behind:
            found.behind[minutes] += newest - landed.event.scheduled > timedelta(minutes=minutes)
    found.flights = len(ids)
    return found


def write(folder: Path, files: Mapping[str, str]) -> int:
    """Write the files that are not there yet and return how many; names sort in the order of reading."""
    new = [name for name in sorted(files) if not _is_there(folder / name, files[name])]
    folder.mkdir(parents=True, exist_ok=True)
    for name, stamp in zip(new, _stamps(folder, len(new)), strict=True):
        draft = folder / f"_{name}.tmp"  # Spark does not list names that begin with _
        draft.write_text(files[name], encoding="utf-8", newline="")
        os.utime(draft, ns=(stamp, stamp))
        draft.replace(folder / name)
    return len(new)


def last_hour(folder: Path) -> str:
    """Return the name of the newest hour in the folder."""
    names = sorted(path.stem for path in folder.glob("[0-9]*.json"))
    if not names:
        raise ProducerError(f"nothing has landed in {folder} yet: run python -m producer first")
    return names[-1]


def _fate(event: Event, rates: Rates) -> Iterator[Landed]:
    chance = random.Random(f"{rates.seed}:{event.id}")
    late, hold, repeated, pause, shuffled, place = (chance.random() for _ in range(6))
    held_back = late < rates.late
    moment = event.emitted + (timedelta(hours=1) + hold * (LONGEST_HOLD - timedelta(hours=1))) * held_back
    if shuffled < rates.out_of_order:
        moment = moment.replace(minute=0, second=0, microsecond=0) + timedelta(seconds=int(place * 3600))
    yield Landed(moment, event, held_back)
    if repeated < rates.duplicate:
        # squared: half of the repeats follow within 45 minutes
        yield Landed(moment + pause * pause * LONGEST_REPEAT, event)


def _place(landed: Landed) -> tuple[datetime, str]:
    return landed.moment, landed.event.id


def _is_there(path: Path, content: str) -> bool:
    if not path.is_file():
        return False
    if path.read_bytes() != content.encode():
        raise ProducerError(
            f"{path} is there with other content (another seed or rate?): remove the folder, or choose --out"
        )
    return True


def _stamps(folder: Path, count: int) -> list[int]:
    """Modification times, which Spark reads by: a second apart, up to now, after all that is there.

    Where less time has passed since the last file they lie closer, down to Spark's millisecond.
    """
    now = time.time_ns()
    last = max((path.stat().st_mtime_ns for path in folder.iterdir()), default=0) if folder.is_dir() else 0
    step = max(MILLISECOND, min(SECOND, (now - last) // max(count, 1)))
    first = max(now - step * (count - 1), last + step)
    return [first + step * index for index in range(count)]
