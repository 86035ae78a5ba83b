"""What the tests of a process share: one Spark session, one broker, one registry."""

from __future__ import annotations

import gc
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, settings

from engine.compile.templates import confined_process
from engine.secrets import scrubber as secrets
from tests import compiling_here, distribution, marks
from tests.lab import Lab, LabSession, share_session

if TYPE_CHECKING:
    from tests.services.kafka import Broker
    from tests.services.s3 import S3Server

# How long an example takes says how busy the machine is.
settings.register_profile("untimed", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("untimed")

# A suite that a script started in the background would ignore Ctrl-C, and hand that down to what tests interrupt.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_addoption(parser: pytest.Parser) -> None:
    note = "print the tests that take longer than this and are not marked as slow"
    parser.addoption("--note-slow", type=float, metavar="SECONDS", help=note)


def pytest_configure(config: pytest.Config) -> None:
    """Measure, where that is asked for, in the process that has all results."""
    seconds = config.getoption("--note-slow")
    if seconds is not None and not hasattr(config, "workerinput"):
        config.pluginmanager.register(marks.Stopwatch(seconds))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> distribution.Distribution | None:
    """Let files that share something run in one process, where tests are to be grouped (`--dist loadgroup`)."""
    return distribution.Distribution(config, log) if config.getoption("dist") == "loadgroup" else None


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out files of which no test can be chosen: each of several processes would import all of them."""
    return True if distribution.is_passed_over(collection_path, config.option.markexpr) else None


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark single cases and those with a broker, and sort them for several processes."""
    marks.mark_cases(items)
    faults = distribution.misplaced(items)
    if not any("::" in argument for argument in config.args):
        faults += marks.unknown_cases(items)
    if faults:
        raise pytest.UsageError(*faults)
    if config.getoption("loadgroup", default=False):
        distribution.in_order(items)
    for item in items:
        names = getattr(item, "fixturenames", ())
        if "broker" in names:
            item.add_marker(pytest.mark.kafka)


def pytest_collection_finish() -> None:
    """Look for garbage among what tests make alone: the tests themselves and what they import stay to the end."""
    gc.freeze()


@pytest.fixture(autouse=True, scope="session")
def own_caches(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """What compilations keep of the projects of tests, apart from what the user's cache has of real ones."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ENGINE_CACHE", str(tmp_path_factory.mktemp("caches")))
        # `make test` has written the archive of Java's classes; a test that looks for none gets none behind its back.
        patch.setenv("ENGINE_WARMUP", "off")
        # Projects of tests give their secrets to servers of this machine; tests/security/test_trust.py goes without.
        patch.setenv("ENGINE_TRUST", "1")
        yield


@pytest.fixture(autouse=True)
def own_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process keeps what it registered as secret; the password of one test may be a word of the next one's names."""
    monkeypatch.setattr(secrets, "_registered", frozenset())


@pytest.fixture(autouse=True)
def own_process(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Most tests without Java compile in the process of the test: `tests/compiling_here.py`."""
    if compiling_here.compiles_here(request.node):
        monkeypatch.setattr(confined_process, "run_confined", compiling_here.sent)


@pytest.fixture(scope="session")
def lab_session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LabSession]:
    """A real session over an embedded lake; each test has a schema of its own in it."""
    session = LabSession(tmp_path_factory.mktemp("lab"))
    yield session
    session.close()


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """A real Kafka broker; a test that stops it starts it again."""
    from tests.services.kafka import running

    with running(tmp_path_factory.mktemp("kafka")) as started:
        yield started
        # A clean end of a broker with many topics took half a minute.
        started.stop(kill=True)


@pytest.fixture(scope="session")
def s3_server() -> Iterator[S3Server]:
    """A real S3-compatible store; a test that stops it starts it again."""
    from tests.services.s3 import running

    with running() as server:
        yield server
        server.stop(kill=True)


@pytest.fixture
def lab(lab_session: LabSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Iterator[Lab]:
    """An empty project whose commands run in this process, in the shared session."""
    with share_session(lab_session):
        yield Lab(tmp_path, lab_session, capsys)
