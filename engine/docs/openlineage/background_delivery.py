"""Deliver OpenLineage's events to a file or an HTTP endpoint, alongside the run; a failure does not stop it.

Answers have a deadline and a limit of size, and redirects are not followed: the client's own transport sends the events
to wherever they lead, and reads answers of any size. Source: OpenLineage's API (`POST /api/v1/lineage`).
"""

from __future__ import annotations

import base64
import logging
import queue
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from http.client import HTTPException
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote

from engine.addresses import AddressError, WebAddress, web_address
from engine.bounds.http_exchange import BodyEncodingError, BodyTooLargeError, authorities, exchange
from engine.compile.declarations.target import Target
from engine.compile.nodes.manifest import Manifest
from engine.docs.openlineage.run_events import DatasetNames
from engine.errors import Diagnostic, EngineError, Level, ProjectError, causes
from engine.events import Emit, Event
from engine.package_source import install_hint
from engine.secrets.scrubber import scrub_record
from engine.target_folder import append_line
from engine.times import duration_seconds, parse_duration

if TYPE_CHECKING:
    from openlineage.client.transport import Transport

    from engine.docs.openlineage.run_events import Teller


_ENDPOINT: Final = "api/v1/lineage"
_ANSWER_BYTES: Final = 64 * 1024
_REDIRECT, _ERROR, _SERVER_ERROR = 300, 400, 500


class DeliveryError(OSError):
    """The endpoint does not take an event; the text has no address, which may hold a password."""

    def __init__(self, message: str, *, passing: bool = False) -> None:
        super().__init__(message)
        self.passing = passing


def http_transport(url: WebAddress, timeout: float, key: str = "") -> Transport:
    """Return what posts events to an endpoint.

    Args:
        url: of the backend, with or without user and password.
        timeout: seconds for one attempt; there are two.
        key: sent as `Authorization: Bearer ..`; empty: none.
    """
    from openlineage.client.serde import Serde
    from openlineage.client.transport.transport import Transport

    address, headers = _request(url, key)

    class Http(Transport):
        kind = "http"

        def emit(self, event: Any) -> None:
            content = Serde.to_json(event).encode()
            try:
                _post(address, headers, content, timeout)
            except OSError as error:
                if isinstance(error, DeliveryError) and not error.passing:
                    raise
                _post(address, headers, content, timeout)

    return Http()


def _request(url: WebAddress, key: str) -> tuple[WebAddress, dict[str, str]]:
    headers = {"Content-Type": "application/json"}
    if url.login is not None:
        headers["Authorization"] = f"Basic {base64.b64encode(unquote(url.login).encode()).decode()}"
    if key:
        headers["Authorization"] = f"Bearer {key}"
    return url.below(_ENDPOINT), headers


def _post(address: WebAddress, headers: dict[str, str], content: bytes, timeout: float) -> None:
    """Send an event.

    Raises:
        DeliveryError: the endpoint does not take it.
        OSError: it cannot be reached.
    """
    deadline = time.monotonic() + timeout
    try:
        response = exchange(
            "POST", address, headers, content,
            timeout=timeout, deadline=deadline, most_bytes=_ANSWER_BYTES, ca=authorities(),
        )  # fmt: skip
    except (BodyTooLargeError, BodyEncodingError) as error:
        raise DeliveryError(f"of the endpoint, {error}") from error
    except HTTPException as error:
        raise DeliveryError("the endpoint does not respond like a web server") from error
    if response.status >= _SERVER_ERROR:
        raise DeliveryError(f"the endpoint answered {response.status}", passing=True)
    if response.status >= _ERROR:
        raise DeliveryError(f"the endpoint answered {response.status}")
    if response.status >= _REDIRECT:
        raise DeliveryError(f"the endpoint answered {response.status}; redirects are not followed")


_TIMEOUT_SECONDS = 5.0
# So long the command waits at its end for what is still under way.
_PATIENCE_SECONDS = 15.0
# After so many failures in a row nothing more is tried: a dead endpoint would hold up every event.
_TRIES = 3
_log = logging.getLogger("engine.docs")
_HINT = "The run is not affected. Check 'openlineage' of the target."


@contextmanager
def delivering(
    manifest: Manifest, target: Target, root: Path, tell: Callable[[Iterable[Diagnostic]], None]
) -> Iterator[Emit]:
    """A listener that sends a run's events, if the target has `openlineage`.

    Args:
        manifest: the project that is run.
        target: has the address; without `openlineage` nothing is sent.
        root: the project's folder.
        tell: gets a warning if not everything could be delivered.
    """
    if target.openlineage is None:
        yield lambda _: None
        return
    try:
        settings = target.openlineage()
        delivery = _Delivery(_transport(settings, root), _teller(manifest, target, root, settings), _place(settings))
    except EngineError as error:
        tell([Diagnostic("openlineage-failed", f"no event is sent: {error.diagnostic.message}", _HINT, Level.WARNING)])
        yield lambda _: None
        return
    delivery.thread.start()
    try:
        yield delivery.enqueue
    finally:
        tell(delivery.close())


def _place(settings: Mapping[str, Any]) -> str:
    """Where events go, for people: no user and no password is in it."""
    if settings.get("type") == "file":
        return str(settings.get("path"))
    try:
        return str(replace(web_address(str(settings.get("url")), login=True), query=""))
    except AddressError:
        return "its url"


def _transport(settings: Mapping[str, Any], root: Path) -> Transport:
    """What brings events to a file or an endpoint.

    Raises ProjectError: the settings are wrong, or the package is not installed.
    """
    try:
        import openlineage.client.transport  # noqa: F401 - whether it is there
    except ImportError as error:
        message = "the package openlineage-python is not installed"
        raise ProjectError("openlineage-failed", message, install_hint("openlineage")) from error
    if settings.get("type") == "file":
        return _file_transport(Path(str(settings["path"])), root)
    try:
        url = web_address(str(settings["url"]), login=True)
    except AddressError as error:
        hint = 'Write for example url: "https://lineage.example.org".'
        raise ProjectError("bad-value", f"the url of 'openlineage' {error}", hint) from error
    wait = parse_duration(str(settings["timeout"])) if "timeout" in settings else None
    key = settings.get("api_key")
    return http_transport(url, duration_seconds(wait) if wait else _TIMEOUT_SECONDS, str(key or ""))


def _file_transport(path: Path, root: Path) -> Transport:
    """Adds events to a file of the project; the client's own would follow links and write anywhere."""
    from openlineage.client.serde import Serde
    from openlineage.client.transport.transport import Transport

    class Lines(Transport):
        kind = "file"

        def emit(self, event: Any) -> None:
            append_line(path, Serde.to_json(event), root)

    return Lines()


def _teller(manifest: Manifest, target: Target, root: Path, settings: Mapping[str, Any]) -> Teller:
    from engine.docs.openlineage.run_events import Teller

    namespace = str(settings.get("namespace") or manifest.project)
    return Teller(manifest, DatasetNames(manifest, target, root), namespace)


@dataclass(slots=True)
class _Delivery:
    """A thread that makes and sends events in their order; `put` costs the run nothing."""

    transport: Transport
    teller: Teller
    place: str
    waiting: queue.SimpleQueue[tuple[Event, float] | None] = field(default_factory=queue.SimpleQueue)
    sent_events: int = 0
    lost_events: int = 0
    failures: int = 0
    reason: str = ""
    thread: threading.Thread = field(init=False)

    def __post_init__(self) -> None:
        self.thread = threading.Thread(target=self._work, name="openlineage", daemon=True)

    def enqueue(self, event: Event) -> None:
        self.waiting.put((event, time.time()))

    def _work(self) -> None:
        try:
            while (item := self.waiting.get()) is not None:
                event, clock = item
                self._send_all(self.teller.tell(event, _iso(clock), clock))
            self._send_all(self.teller.abort(_iso(time.time())))
        except Exception as error:  # noqa: BLE001 - the thread ends here; nothing of it may reach the run
            _log.exception("OpenLineage events could not be made")
            self.lost_events, self.reason = self.lost_events + 1, type(error).__name__

    def _send_all(self, events: Iterable[Any]) -> None:
        for event in events:
            self._send(event)

    def _send(self, run_event: Any) -> None:
        from openlineage.client.serde import Serde

        if self.failures >= _TRIES:
            self.lost_events += 1
            return
        try:
            record = Serde.to_dict(run_event)
            self.transport.emit(scrub_record(record))
        except (OSError, RuntimeError, ValueError, EngineError) as error:
            self.lost_events, self.failures, self.reason = self.lost_events + 1, self.failures + 1, _reason_of(error)
        else:
            self.sent_events, self.failures = self.sent_events + 1, 0

    def close(self) -> tuple[Diagnostic, ...]:
        """Send what is left, for a bounded time; a warning if something could not be delivered."""
        self.waiting.put(None)
        self.thread.join(_PATIENCE_SECONDS)
        if self.thread.is_alive():
            return (self._warning("some OpenLineage events were", "it takes too long"),)
        if not self.lost_events:
            return ()
        return (
            self._warning(
                f"{self.lost_events} of {self.sent_events + self.lost_events} OpenLineage events were", self.reason
            ),
        )

    def _warning(self, undelivered: str, why: str) -> Diagnostic:
        return Diagnostic(
            "openlineage-failed", f"{undelivered} not delivered to {self.place}: {why}", _HINT, Level.WARNING
        )


def _iso(clock: float) -> str:
    return datetime.fromtimestamp(clock, UTC).isoformat(timespec="milliseconds")


def _reason_of(error: Exception) -> str:
    """The innermost reason in one line; addresses may hold a password and are left out."""
    if isinstance(error, EngineError):
        return error.diagnostic.message
    if isinstance(error, DeliveryError):
        return str(error)
    *_, inner = causes(error)
    text = getattr(inner, "strerror", None) or type(inner).__name__
    return str(text)
