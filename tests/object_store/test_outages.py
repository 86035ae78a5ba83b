"""A store that is away during a build, and a login that expires during one."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from tests.lab import event
from tests.object_store.conftest import SECRETS, StoreLab
from tests.object_store.test_sources import PLAIN, declare, land

pytestmark = pytest.mark.spark
AWAY_SECONDS = 20.0
FILES = 8


@contextmanager
def after_commits(lab: StoreLab, count: int, fault: Callable[[], None]) -> Iterator[list[int]]:
    """Do harm once the table has so many commits more; gives how many it had by then."""
    before, done = commits(lab), threading.Event()
    reached: list[int] = []

    def wait() -> None:
        while not done.wait(0.05):
            if (now := commits(lab)) >= before + count:
                reached.append(now)
                fault()
                return

    thread = threading.Thread(target=wait)
    thread.start()
    try:
        yield reached
    finally:
        done.set()
        thread.join()


def commits(lab: StoreLab) -> int:
    assert lab.server is not None
    return sum(key.endswith(".metadata.json") for key in lab.server.keys(lab.bucket, "warehouse/"))


@pytest.mark.nightly
def test_a_store_that_is_away_during_a_build_loses_and_doubles_nothing(stored: StoreLab) -> None:
    lab, server = stored, stored.server
    assert server is not None
    declare(lab, format="format: json\n        max_files_per_trigger: 1")
    lab.model("plain", PLAIN)
    for number in range(FILES):
        land(lab, f"a{number}", [event(number)])

    def away() -> None:
        server.stop(kill=True)
        time.sleep(AWAY_SECONDS)
        server.start()

    begin = time.monotonic()
    with after_commits(lab, 3, away) as reached:
        built = lab.build()
    assert reached
    assert 0 < reached[0] < commits(lab)
    assert time.monotonic() - begin > AWAY_SECONDS
    assert built.model("plain")["seconds"] > AWAY_SECONDS / 2
    assert lab.ids("plain") == list(range(FILES))


@pytest.mark.nightly
def test_a_login_that_expires_during_a_build_loses_and_doubles_nothing(
    stored: StoreLab, monkeypatch: pytest.MonkeyPatch
) -> None:
    lab, server = stored, stored.server
    assert server is not None
    declare(lab, format="format: json\n        max_files_per_trigger: 1")
    lab.model("plain", PLAIN)
    for number in range(FILES):
        land(lab, f"a{number}", [event(number)])
    known = server.secret_access_key

    def expire() -> None:
        server.stop(kill=True)
        server.secret_access_key = "another-login-of-the-server"
        server.start()

    with after_commits(lab, 2, expire) as reached:
        denied = lab.run("build")
    assert reached
    assert denied.code == 1
    assert denied.codes() == ["s3-denied"], denied.text
    assert known not in denied.text

    monkeypatch.setenv(SECRETS[1], "planted-and-wrong")
    wrong = lab.run("plan")
    # Of the table and of the source.
    assert set(wrong.codes()) == {"s3-denied"}, wrong.text
    assert "planted-and-wrong" not in wrong.text

    monkeypatch.setenv(SECRETS[1], known)
    server.stop()
    server.secret_access_key = known
    server.start()
    lab.build()
    assert lab.ids("plain") == list(range(FILES))
