"""Files that change, go or come late: rewritten, appended to, truncated, deleted, old; each fault really happens."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.fault_injection.points import kill, reached
from tests.lab import EVENTS, Lab

pytestmark = pytest.mark.spark

STREAM = """/*---
streams: [shop.events]
---*/
select id from {{ source('shop', 'events') }}
"""


@pytest.fixture
def shop(lab: Lab) -> Lab:
    """Two files, read."""
    declare(lab)
    lab.model("events", STREAM)
    lab.land("a", [{"id": 1}, {"id": 2}])
    lab.land("b", [{"id": 3}])
    lab.build()
    assert lab.ids("events") == [1, 2, 3]
    return lab


def declare(lab: Lab, more: str = "") -> None:
    text = EVENTS.replace("id int, at timestamp, kind string, amount double", "id int")
    lab.write("sources/shop.yml", text + "".join(f"        {line}\n" for line in more.splitlines()))


def rewrite(path: Path, text: str, *, later: float = 500) -> None:
    path.write_text(text)
    os.utime(path, (path.stat().st_atime, path.stat().st_mtime + later))


def refused(lab: Lab, code: str) -> str:
    before = lab.snapshot("events")
    result = lab.run("build")
    assert (result.code, result.codes()) == (1, [code]), result.text
    assert lab.snapshot("events") == before
    return result.text


@pytest.mark.parametrize("text", ['{"id": 9}\n', '{"id": 1}\n{"id": 2}\n{"id": 9}\n', '{"id": 1}\n'])
def test_a_file_that_changed_after_it_was_read_is_told(shop: Lab, text: str) -> None:
    path = shop.root / "landing/events/a.json"
    rewrite(path, text)
    said = refused(shop, "file-changed")
    assert "landing/events/a.json" in said
    assert "engine build -f -s events" in said
    # It stays refused: nothing was noted.
    refused(shop, "file-changed")
    # Moved out of the way, its rows stand as they were read; new ones come as a new file.
    path.unlink()
    shop.land("c", [{"id": 9}])
    shop.build()
    assert shop.ids("events") == [1, 2, 3, 9]


def test_two_times_within_a_second_are_shown_to_the_millisecond(shop: Lab) -> None:
    path = shop.root / "landing/events/a.json"
    second = path.stat().st_mtime_ns // 1_000_000_000 * 1_000_000_000
    os.utime(path, ns=(second, second + 250_000_000))
    shop.build("-f")
    os.utime(path, ns=(second, second + 257_000_000))
    said = refused(shop, "file-changed")
    assert ".250 when it was read, and " in said
    assert ".257 now (UTC)" in said


def test_a_file_that_changed_is_passed_over_and_counted_where_the_source_says_so(shop: Lab) -> None:
    declare(shop, "on_changed_file: ignore")
    rewrite(shop.root / "landing/events/a.json", '{"id": 9}\n')
    shop.land("c", [{"id": 4}])
    result = shop.build()
    (warning,) = [e for e in result.events if e.get("code") == "file-changed"]
    assert warning["level"] == "warning"
    assert "1 file of 'shop.events' changed" in warning["message"]
    assert shop.ids("events") == [1, 2, 3, 4]


def test_a_full_refresh_reads_what_the_files_hold_now(shop: Lab) -> None:
    rewrite(shop.root / "landing/events/a.json", '{"id": 9}\n')
    refused(shop, "file-changed")
    shop.build("-f")
    assert shop.ids("events") == [3, 9]
    assert shop.build().model("events")["status"] == "unchanged"


def test_a_file_that_was_read_may_go(shop: Lab) -> None:
    (shop.root / "landing/events/a.json").unlink()
    shop.land("c", [{"id": 4}])
    shop.build()
    assert shop.ids("events") == [1, 2, 3, 4]


def test_the_same_bytes_with_the_same_time_are_the_same_file(shop: Lab) -> None:
    path = shop.root / "landing/events/a.json"
    stat = path.stat()
    data = path.read_bytes()
    path.unlink()
    path.write_bytes(data)
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    assert shop.build().model("events")["status"] == "unchanged"


@contextmanager
def after_first_batch(fault: Callable[[], object]) -> Iterator[None]:
    """Cause a fault when the first of two micro-batches has ended; all files have been listed by then."""
    with reached("ended", lambda *_: fault(), times=1), reached("computing", lambda *_: None) as begun:
        yield
    assert len(begun) == 2


@pytest.fixture
def three(lab: Lab) -> Lab:
    """Three files that are to be read one by one."""
    declare(lab, "max_files_per_trigger: 1")
    lab.model("events", STREAM)
    for number, name in enumerate("abc", 1):
        lab.land(name, [{"id": number}])
    return lab


@pytest.mark.nightly
def test_a_file_deleted_between_listing_and_reading(three: Lab) -> None:
    path = three.root / "landing/events/b.json"
    with after_first_batch(path.unlink):
        result = three.run("build")
    assert (result.code, result.codes()) == (1, ["file-changed"])
    assert three.ids("events") == [1]
    # Spark alone would go on without it; here the next build says what is missing, and every one after.
    assert "landing/events/b.json" in refused(three, "file-missing")
    refused(three, "file-missing")
    path.touch()
    three.build()
    assert three.ids("events") == [1, 3]
    assert three.build().model("events")["status"] == "unchanged"


@pytest.mark.parametrize("text", ['{"id": 8}\n{"id": 9}\n', '{"id": 2}\n{"id": 22}\n'])
def test_a_file_rewritten_between_listing_and_reading(three: Lab, text: str) -> None:
    path = three.root / "landing/events/b.json"
    with after_first_batch(lambda: rewrite(path, text)):
        result = three.run("build")
    assert (result.code, result.codes()) == (1, ["file-changed"])
    assert three.ids("events") == [1]
    three.build()
    assert three.ids("events") == sorted(
        [1, 3, *(int(n) for n in text.replace("{", " ").replace("}", " ").split() if n.isdigit())]
    )
    # It is known as what it was when it was read, although Spark's log has another time.
    assert three.build().model("events")["status"] == "unchanged"
    rewrite(path, '{"id": 5}\n')
    refused(three, "file-changed")


@pytest.mark.nightly
def test_a_file_cut_off_between_listing_and_reading(three: Lab) -> None:
    path = three.root / "landing/events/b.json"
    with after_first_batch(lambda: rewrite(path, '{"id"')):
        result = three.run("build")
    assert (result.code, result.codes()) == (1, ["bad-record"])
    assert three.ids("events") == [1]
    rewrite(path, '{"id": 2}\n')
    three.build()
    assert three.ids("events") == [1, 2, 3]
    assert three.build().model("events")["status"] == "unchanged"


@pytest.mark.gate
def test_a_batch_that_comes_again_finds_its_file_gone(shop: Lab) -> None:
    path = shop.land("c", [{"id": 4}])
    shop.land("d", [{"id": 5}])
    with reached("written", kill):
        assert shop.run("build").code != 0
    checkpoint = shop.state / "events" / "1" / "checkpoint"
    assert (checkpoint / "offsets" / "1").exists()
    assert not (checkpoint / "commits" / "1").exists()
    data = path.read_bytes()
    path.unlink()
    assert "landing/events/c.json" in refused(shop, "file-missing")
    path.write_bytes(data)  # of another time now, which is right: nothing of it was written
    shop.build()
    assert shop.ids("events") == [1, 2, 3, 4, 5]
    assert shop.build().model("events")["status"] == "unchanged"


@pytest.mark.gate
def test_a_file_rewritten_after_its_rows_were_committed_and_before_spark_noted_it(lab: Lab) -> None:
    declare(lab)
    lab.model("events", STREAM)
    path = lab.land("a", [{"id": 1}])
    with reached("committed", kill):
        assert lab.run("build").code != 0
    assert lab.ids("events") == [1]
    assert not (lab.state / "events" / "1" / "checkpoint" / "commits" / "0").exists()
    rewrite(path, '{"id": 9}\n')
    refused(lab, "file-changed")
    assert lab.ids("events") == [1]


def test_spark_passes_over_old_files_and_the_engine_does_not(shop: Lab) -> None:
    # Spark's own limit is seven days behind the newest file it has seen.
    path = shop.land("old", [{"id": 4}])
    os.utime(path, (path.stat().st_mtime - 30 * 86_400,) * 2)
    shop.build()
    assert shop.ids("events") == [1, 2, 3, 4]


def test_files_that_max_file_age_passes_over_are_counted(shop: Lab) -> None:
    declare(shop, "max_file_age: 1 day")
    for name, days in (("old", 3), ("older", 30), ("young", 0.5)):
        path = shop.land(name, [{"id": len(name)}])
        os.utime(path, (path.stat().st_mtime - days * 86_400,) * 2)
    result = shop.build()
    (warning,) = [e for e in result.events if e.get("code") == "files-skipped"]
    assert "2 files of 'shop.events' skipped, being more than 1 day older than the newest" in warning["message"]
    assert "landing/events/old.json" in warning["message"]
    assert shop.ids("events") == [1, 2, 3, 5]


@pytest.mark.nightly
def test_a_log_of_more_than_ten_entries(lab: Lab) -> None:
    declare(lab, "max_files_per_trigger: 1")
    lab.model("events", STREAM)
    for number in range(12):
        lab.land(f"{number:02}", [{"id": number}])
    lab.build()
    log = lab.state / "events" / "1" / "checkpoint" / "sources" / "0"
    assert (log / "9.compact").exists()
    for name in ("00", "11"):
        path = lab.root / f"landing/events/{name}.json"
        before = path.read_bytes()
        stat = path.stat()
        rewrite(path, '{"id": 99}\n')
        assert f"landing/events/{name}.json" in refused(lab, "file-changed")
        path.write_bytes(before)
        os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    assert lab.build().model("events")["status"] == "unchanged"
