"""The live page: the lineage site of the project with what its models are doing, on this machine only.

The site's own folder, layout and guards are used (`engine.docs.serve`); what is added are two scripts, a style, and
answers with the status (server-sent events), turns and series. `/metrics`, `/livez`, `/readyz` and `/healthz` are for
machines; the last three say one word each, and need no token.
"""

from __future__ import annotations

import json
import math
import re
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import asdict
from http import HTTPStatus
from importlib import resources
from pathlib import Path
from threading import Event, Thread
from typing import Any
from urllib.parse import parse_qsl

from engine.characters import visible
from engine.docs.page_access import PageAccess
from engine.docs.serve import Additions, ServedAnswer, SiteServer, serving
from engine.live import turn_history
from engine.live.live_site import LiveSite
from engine.live.metrics import CONTENT_TYPE, exposition
from engine.live.observer import Observer
from engine.live.standing import standings
from engine.live.status import healthy
from engine.live.status_record import StatusRecord
from engine.node_ids import shown_name
from engine.secrets.scrubber import scrub_record, scrubber

_TYPES = {".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8"}
_JSON = "application/json; charset=utf-8"
_TEXT = "text/plain; charset=utf-8"
_SCRIPTS = ("live_status.js", "live_data.js", "live_charts.js", "live_tiles.js", "live_page.js", "live_model.js")
_DATA_FILE = re.compile(r"/data/(?P<name>[a-z]+[0-9]*)\.js")
_PROBES = frozenset({"/livez", "/readyz", "/healthz"})
_EACH = 1.0
# A browser connects again by itself; a connection that nobody reads any more does not stay.
_STREAM_SECONDS = 600.0
# A sign of life for whatever is between, and so that a browser that has gone is noticed.
_BEAT = 15.0
_HOURS = 24 * 30
_DAY = 24 * 3600.0
# Seconds: the shortest range of a chart, and the shortest that is chosen for a reader.
_LEAST, _SHORTEST = 60.0, 600.0
_MOST_TURNS = 5_000
_POINTS = 240


@contextmanager
def serve(
    observer: Observer, site: Path, access: PageAccess, port: int = 0, data: LiveSite | None = None
) -> Iterator[SiteServer]:
    """Serve the live page while the block runs, on 127.0.0.1.

    Args:
        observer: of the process.
        site: folder of the written documentation site (`engine.docs.site.write_site`).
        access: the token of the page.
        port: 0: a free one; `server_port` of the server is the one that was taken.
        data: of the site as they are now; None: they are those of the written site.

    Raises OSError: the port is taken.
    """
    ended = Event()
    if data is not None:
        observer.readers.append(data.on_event)
    added = Additions(_LivePages(observer, ended, data).answer, first_page, _PROBES)
    opened: AbstractContextManager[SiteServer] = serving(site, access, port, additions=added)
    with opened as server:
        thread = Thread(target=server.serve_forever, args=(0.1,), name="engine-live-page", daemon=True)
        thread.start()
        try:
            yield server
        finally:
            ended.set()
            server.shutdown()
            thread.join()


def first_page(content: bytes) -> bytes:
    scripts = "".join(f'<script src="live/{name}"></script>\n' for name in _SCRIPTS).encode()
    changed = content.replace(b'<script src="app.js">', scripts + b'<script src="app.js">', 1)
    changed = changed.replace(b"</head>", b'<link rel="stylesheet" href="live/live_page.css">\n</head>', 1)
    changed = changed.replace(b'<nav aria-label="Main">', b'<nav aria-label="Main"><a href="#/live">Live</a>', 1)
    return changed.replace(b"form-action 'none';", b"form-action 'none'; connect-src 'self';", 1)


class _LivePages:
    def __init__(self, observer: Observer, ended: Event, data: LiveSite | None = None) -> None:
        self._observer = observer
        self._ended = ended
        self._data = data
        self._paths: dict[str, Callable[[Mapping[str, str]], ServedAnswer]] = {
            "/live/events": lambda _: ServedAnswer("text/event-stream", self._events()),
            "/live/turns": self._turns,
            "/live/series": self._series,
            "/live/states": self._states,
            "/live/status": lambda _: _json(shown_status(observer.status.to_json())),
            "/live/log": lambda _: _json(list(observer.log)),
            "/metrics": lambda _: ServedAnswer(CONTENT_TYPE, exposition(observer.status.to_json()).encode()),
            "/livez": lambda _: self._alive(),
            "/readyz": lambda _: self._ready(),
            "/healthz": lambda _: self._healthy(),
        }

    def answer(self, path: str, query: str) -> ServedAnswer | None:
        """The answer for a path; None: it is not of the live page."""
        if (respond := self._paths.get(path)) is not None:
            try:
                return respond(dict(parse_qsl(query, max_num_fields=10)))
            except ValueError:
                return ServedAnswer(_TEXT, b"400 Bad Request\n", HTTPStatus.BAD_REQUEST)
        if self._data is not None and (file := _DATA_FILE.fullmatch(path)) is not None:
            project = dict(parse_qsl(query, max_num_fields=10)).get("project", "")
            script = self._data.script(file["name"], project)
            return None if script is None else ServedAnswer(_TYPES[".js"], script)
        name = path.removeprefix("/live/")
        if path.startswith("/live/") and name in {*_SCRIPTS, "live_page.css"}:
            content = (resources.files("engine.live") / "static" / name).read_bytes()
            return ServedAnswer(_TYPES[Path(name).suffix], content)
        return None

    def _events(self) -> Iterator[bytes]:
        """The status when it changes, at most once a second: all nodes first, then those that changed."""
        sent_nodes: dict[str, str] = {}
        # A browser that was connected before may have nodes that have gone since.
        first = True
        state, end, beat = (-1, ""), time.monotonic() + _STREAM_SECONDS, 0.0
        while not self._ended.is_set() and time.monotonic() < end:
            now = (self._observer.status.revision, self._data.version if self._data else "")
            if now != state or time.monotonic() - beat > _BEAT:
                state = now
                status = shown_status(self._observer.status.to_json())
                current_nodes = {node["node"]: json.dumps(_steady(node)) for node in status["nodes"]}
                removed = sent_nodes.keys() - current_nodes.keys()
                status["nodes"] = [
                    node for node in status["nodes"] if sent_nodes.get(node["node"]) != current_nodes[node["node"]]
                ]
                stream_fields = {
                    "gone": sorted(removed),
                    "problem": self._observer.problem,
                    "site": now[1],
                    "all": first,
                }
                first = False
                yield f"data: {_text({**status, **stream_fields})}\n\n".encode()
                sent_nodes, beat = current_nodes, time.monotonic()
            self._ended.wait(_EACH)

    def _turns(self, query: Mapping[str, str]) -> ServedAnswer:
        since, until = self._range(query, "")
        turns = turn_history.turns(
            self._observer.history.path, node=query.get("node", ""), since=since, until=until, limit=_MOST_TURNS
        )
        return _json([{**turn, "name": shown_name(turn["node"])} for turn in turns])

    def _series(self, query: Mapping[str, str]) -> ServedAnswer:
        path, node = self._observer.history.path, query.get("node", "")
        since, until = self._range(query, node)
        step = max(1, round((until - since) / 60 / _POINTS))
        turns = turn_history.series(path, node, since=since, until=until, step=step)
        first = turn_history.extent(path, node)
        return _json({"from": since, "to": until, "step": step, "first": first and first[0], "rows": turns})

    def _range(self, query: Mapping[str, str], node: str) -> tuple[float, float]:
        """The times that are asked for: `from` and `to`, the last `hours`, or those of a model that has data."""
        now = time.time()
        if "from" in query or "to" in query:
            until = min(_number(query, "to", now), now + _LEAST)
            return max(min(_number(query, "from", until - _DAY), until - _LEAST), now - _HOURS * 3600), until
        if "hours" in query or not node:
            return now - _hours(query) * 3600, now
        if (extent := turn_history.extent(self._observer.history.path, node)) is None:
            return now - 3600, now
        # Data that are old fill the chart, too; those of today end now.
        until = now if now - extent[1] < _DAY else extent[1] + _LEAST
        return max(min(extent[0], until - _SHORTEST), until - _DAY), until

    def _states(self, query: Mapping[str, str]) -> ServedAnswer:
        return _json(turn_history.state_changes(self._observer.history.path, query.get("node", "")))

    def _alive(self) -> ServedAnswer:
        good = self._observer.alive
        return _verdict("alive" if good else "not alive", good=good)

    def _healthy(self) -> ServedAnswer:
        good = healthy(self._observer.status.to_json())
        return _verdict("healthy" if good else "unhealthy", good=good)

    def _ready(self) -> ServedAnswer:
        status = self._observer.status.to_json()
        good = status["started_at"] is not None and status["stopped_at"] is None
        return _verdict("ready" if good else "not ready", good=good)


def shown_status(status: StatusRecord) -> dict[str, Any]:
    turns = standings(status["nodes"])
    return {**status, "nodes": [{**node, **asdict(turns[node["node"]])} for node in status["nodes"]]}


def _steady(node: Mapping[str, Any]) -> dict[str, Any]:
    """What does not change by itself with the clock."""
    return {key: value for key, value in node.items() if key not in {"lag_seconds", "watermark_age_seconds"}}


def _number(query: Mapping[str, str], key: str, default: float) -> float:
    if not math.isfinite(value := float(query.get(key, default))):
        raise ValueError(key)
    return value


def _hours(query: Mapping[str, str]) -> float:
    return min(max(float(query.get("hours", "24")), 1 / 60), _HOURS)


def _verdict(text: str, *, good: bool) -> ServedAnswer:
    return ServedAnswer(_TEXT, f"{text}\n".encode(), HTTPStatus.OK if good else HTTPStatus.SERVICE_UNAVAILABLE)


def _json(record: Any) -> ServedAnswer:
    return ServedAnswer(_JSON, _text(record).encode())


def _text(record: Any) -> str:
    r"""A record as JSON, without secrets; what cannot be seen in its texts is written out (`\x1b`, `\u202e`)."""
    clean = scrubber()
    return json.dumps(scrub_record(record, lambda text: visible(clean(text))), allow_nan=False)
