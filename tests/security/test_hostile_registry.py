"""A schema registry that answers what it likes, over real connections: bounded, and nothing of it is believed unchecked."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from itertools import count
from typing import Any
from urllib.parse import unquote

import pytest

from engine.addresses import is_open
from engine.errors import EngineError, ProjectError, SetupError
from engine.sources.avro.reader_schema import prepare, read_value
from engine.sources.registry import MissingSchemaError, Registry, RegistrySettings, is_subject, read_settings
from tests.project.small_projects import PROJECT, compiled
from tests.security.answering import Answering, answer, answering

pytestmark = pytest.mark.slow

INT = '{"type": "record", "name": "r", "fields": [{"name": "x", "type": "int"}]}'
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"


class Hostile:
    """Answers each path with what a function says: JSON, bytes as they are, or a status with headers."""

    def __init__(self, server: Answering, found: Callable[[str], Any]) -> None:
        self.server, self.found, self.url = server, found, server.url
        server.answers["GET "] = self._answer

    @property
    def asked(self) -> list[str]:
        return [request.path for request in self.server.asked]

    @property
    def seen(self) -> list[str | None]:
        return [request.headers.get("Authorization") for request in self.server.asked]

    def client(self, patience: float = 5.0, **also: Any) -> Registry:
        return Registry(RegistrySettings("main", self.url, timeout=patience, patience=patience, **also))

    def _answer(self, handler: BaseHTTPRequestHandler) -> None:
        found = self.found(handler.path)
        status, headers, found = found if isinstance(found, tuple) else (200, {}, found)
        answer(handler, status, found if isinstance(found, bytes) else json.dumps(found).encode(), **headers)


@contextmanager
def serving(found: Callable[[str], Any]) -> Iterator[Hostile]:
    with answering() as server:
        yield Hostile(server, found)


def refers(*others: str) -> Mapping[str, Any]:
    references = [{"name": other, "subject": other, "version": 1} for other in others]
    return {"schema": INT, "id": 1, "references": references}


def subject_of(path: str) -> str:
    return unquote(path.split("/")[2])


def failure(server: Hostile, **also: Any) -> EngineError:
    with pytest.raises(EngineError) as error:
        server.client(**also).schema(1)
    return error.value


CYCLES = {
    "itself": {"a": ["a"]},
    "two": {"a": ["b"], "b": ["a"]},
    "behind others": {"a": ["b", "c"], "b": ["d"], "c": [], "d": ["b"]},
}


@pytest.mark.parametrize("graph", CYCLES.values(), ids=CYCLES)
def test_references_that_form_a_cycle_end(graph):
    with serving(lambda path: refers("a") if "ids" in path else refers(*graph[subject_of(path)])) as server:
        error = failure(server)
    assert isinstance(error, MissingSchemaError)
    assert error.diagnostic.code == "registry-schema"
    assert "references itself" in str(error)
    assert len(server.asked) < 8


def test_a_chain_of_references_without_an_end_ends():
    numbers = count()
    with serving(lambda _: refers(f"s{next(numbers)}")) as server:
        error = failure(server)
    assert error.diagnostic.code == "registry-schema"
    assert len(server.asked) < 30


def test_references_to_very_many_schemas_end():
    with serving(lambda path: refers(*(f"s{n}" for n in range(5000))) if "ids" in path else refers()) as server:
        error = failure(server, patience=60.0)
    assert error.diagnostic.code == "registry-schema"
    assert len(server.asked) < 110


def test_references_to_one_schema_by_many_ways_ask_for_it_once():
    graph = {f"s{n}": [f"s{n + 1}", f"s{n + 1}"] for n in range(15)} | {"s15": []}
    with serving(lambda path: refers("s0") if "ids" in path else refers(*graph[subject_of(path)])) as server:
        assert server.client().schema(1).id == 1
    assert len(server.asked) == 17


DEEP = b'{"schema": ' + b"[" * 200_000
ANSWERS = {
    "deep JSON": DEEP,
    "a deep object": b'{"a":' * 100_000 + b"1" + b"}" * 100_000,
    "no JSON": b"<html>",
    "no UTF-8": b'{"schema": "\xff\xfe"}',
    "a number of many digits": b'{"schema": ' + b"9" * 5000 + b"}",
    "nothing": b"",
    "a list": [1, 2],
    "null": None,
    "a text": "schema",
    "a schema that is a number": {"schema": 1},
    "a schema that is a list": {"schema": [INT]},
    "references that are a number": {"schema": INT, "references": 7},
    "references that are a text": {"schema": INT, "references": "abc"},
    "a reference that is a text": {"schema": INT, "references": ["abc"]},
    "a version that is infinite": b'{"schema": "int", "references": [{"name": "a", "subject": "a", "version": 1e999}]}',
    "a version that is a text": {"schema": INT, "references": [{"subject": "a", "version": "1"}]},
    "a version that is true": {"schema": INT, "references": [{"subject": "a", "version": True}]},
    "a version that leads elsewhere": {"schema": INT, "references": [{"subject": "a", "version": "../../x"}]},
    "a subject that is a list": {"schema": INT, "references": [{"subject": ["a"], "version": 1}]},
    "a subject of dots": {"schema": INT, "references": [{"subject": "..", "version": 1}]},
    "a subject of half a character": b'{"schema": "int", "references": [{"subject": "\\ud800", "version": 1}]}',
    "a kind that is a list": {"schema": INT, "schemaType": ["AVRO"]},
}


@pytest.mark.parametrize("answer", ANSWERS.values(), ids=ANSWERS)
def test_an_answer_of_another_form_is_an_error_and_nothing_of_it_is_followed(answer):
    with serving(lambda _: answer) as server:
        error = failure(server)
    assert error.diagnostic.code == "registry-answer"
    assert server.asked == ["/schemas/ids/1"]


IDS = {"a text": "1", "true": True, "negative": -1, "too large": 1 << 32, "a list": [1], "a fraction": 1.5}


@pytest.mark.parametrize("number", IDS.values(), ids=IDS)
def test_an_id_is_a_number_of_four_bytes(number):
    with serving(lambda _: {"schema": INT, "id": number}) as server, pytest.raises(SetupError) as error:
        server.client().version("a")
    assert error.value.diagnostic.code == "registry-answer"


@pytest.mark.parametrize("numbers", [{"a": 1}, ["1"], [True], [1.5], [-1], [1 << 40], "1"])
def test_versions_are_a_list_of_numbers(numbers):
    with serving(lambda _: numbers) as server, pytest.raises(SetupError) as error:
        server.client().versions("a", 10)
    assert error.value.diagnostic.code == "registry-answer"
    assert len(server.asked) == 1


def test_a_wrong_answer_is_not_kept():
    answers = iter([{"schema": 1, "id": 1}, {"schema": INT, "id": 1}])
    with serving(lambda _: next(answers)) as server:
        client = server.client()
        with pytest.raises(SetupError):
            client.version("a")
        assert client.version("a").id == 1


SCHEMAS = {
    "a kind of another name": {"schema": INT, "schemaType": "x" * 100_000},
    "a schema that is no JSON": {"schema": "{"},
    "a schema that is too long": {"schema": '"' + "x" * 2_000_000 + '"'},
    "a deep schema": {"schema": "[" * 50_000},
    "a schema in itself": {"schema": '{"type":"array","items":' * 400 + '"int"' + "}" * 400},
    "a name that is a path": {"schema": '{"type":"record","name":"../../x","fields":[]}'},
    "a name with a backquote": {"schema": INT.replace('"x"', '"x` int, y"')},
    "a record that is its own default": {
        "schema": '{"type":"record","name":"r","fields":[{"name":"x","type":"r","default":{}}]}'
    },
}


@pytest.mark.parametrize("answer", SCHEMAS.values(), ids=SCHEMAS)
def test_a_schema_that_cannot_be_read_is_an_error_with_a_short_message(answer):
    with serving(lambda _: {"id": 1, **answer}) as server, pytest.raises(SetupError) as error:
        prepare(read_value({"format": "avro", "schema_registry": "main", "schema_id": 1}), server.client())
    assert error.value.diagnostic.code == "registry-schema"
    assert len(str(error.value)) < 600


def test_an_answer_without_an_end_is_an_error_at_once():
    with serving(lambda _: b'"' + b"x" * 20_000_000) as server:
        error = failure(server)
    assert error.diagnostic.code == "registry-answer"
    assert len(server.asked) == 1


@contextmanager
def dripping(*parts: bytes) -> Iterator[tuple[str, list[int]]]:
    """A server that sends the first part at once and then the others, a byte at a time, over and over; it counts bytes."""
    sent: list[int] = []
    ended = threading.Event()

    def drip(peer: socket.socket) -> None:
        with peer:
            peer.sendall(parts[0])
            while not ended.wait(0.02):
                for byte in b"".join(parts[1:]):
                    peer.sendall(bytes([byte]))
                    sent.append(byte)
                    if ended.wait(0.02):
                        return

    def serve(listening: socket.socket) -> None:
        while not ended.is_set():
            try:
                peer, _ = listening.accept()
            except OSError:
                return
            threading.Thread(target=_quietly, args=(drip, peer), daemon=True).start()

    listening = socket.create_server(("127.0.0.1", 0))
    threading.Thread(target=serve, args=(listening,), daemon=True).start()
    try:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}", sent
    finally:
        ended.set()
        listening.close()


def _quietly(work: Callable[[socket.socket], None], peer: socket.socket) -> None:
    try:
        work(peer)
    except OSError:
        return


DRIPS = {
    "the status": (b"", b"HTTP/1.1 200 OK"),
    "one header": (HEAD, b"X-Long: aaaaaaaa"),
    "many headers": (HEAD, b"X-A: b\r\n"),
    "continue": (b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
    "the body": (HEAD + b"\r\n", b" "),
    "chunks": (HEAD + b"Transfer-Encoding: chunked\r\n\r\n", b"1\r\n \r\n"),
    "the body of a refusal": (b"HTTP/1.1 404 Not Found\r\nContent-Length: 100000\r\n\r\n", b" "),
}


@pytest.mark.parametrize("parts", DRIPS.values(), ids=DRIPS)
def test_one_deadline_holds_for_all_that_a_server_sends_slowly(parts):
    """The timeout of a socket is never reached: a byte comes each 0.02 seconds."""
    with dripping(*parts) as (url, sent):
        ended = threading.Event()
        failures: list[BaseException] = []

        def ask() -> None:
            try:
                Registry(RegistrySettings("main", url, timeout=0.5, patience=0.5)).schema(1)
            except BaseException as error:  # noqa: BLE001 - handed to the test
                failures.append(error)
            ended.set()

        threading.Thread(target=ask, daemon=True).start()
        # Far more than the bytes of half a second; what does not end by itself is stopped here.
        while not ended.wait(0.05) and len(sent) < 1500:
            continue
        assert ended.is_set()
    (failure,) = failures
    assert isinstance(failure, SetupError)
    assert failure.diagnostic.code in {"registry-unreachable", "registry-answer"}


def test_one_deadline_holds_for_all_requests_of_a_schema(monkeypatch):
    """Each answer takes a third of the patience, by a clock that the answers move."""
    clock = [time.monotonic()]
    monkeypatch.setattr(time, "monotonic", lambda: clock[0])

    def answer(path: str) -> Any:
        clock[0] += 4.0
        return refers("s0") if "ids" in path else refers(f"s{int(subject_of(path)[1:]) + 1}")

    with serving(answer) as server:
        error = failure(server, patience=10.0)
    assert error.diagnostic.code == "registry-unreachable"
    assert len(server.asked) == 3


def test_many_versions_have_three_times_the_patience_of_one(monkeypatch):
    clock = [time.monotonic()]
    monkeypatch.setattr(time, "monotonic", lambda: clock[0])

    def answer(path: str) -> Any:
        clock[0] += 4.0
        number = path.rpartition("/")[2]
        return list(range(1, 60)) if number == "versions" else {"schema": INT, "id": int(number)}

    with serving(answer) as server, pytest.raises(SetupError) as error:
        server.client(patience=10.0).versions("a", 50)
    assert error.value.diagnostic.code == "registry-unreachable"
    assert len(server.asked) < 10


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
@pytest.mark.parametrize(
    "place", ["http://127.0.0.1:{port}/x", "//127.0.0.1:{port}/x", "file:///etc/passwd", "ftp://127.0.0.1:{port}/"]
)
def test_a_password_goes_to_no_other_host(status, place):
    with serving(lambda _: {"schema": INT}) as other:
        location = place.format(port=other.url.rpartition(":")[2])
        with serving(lambda _: (status, {"Location": location}, b"")) as server:
            error = failure(server, authorization="Bearer planted")
    assert error.diagnostic.code == "registry-answer"
    assert other.asked == []
    assert server.seen == ["Bearer planted"]
    assert "planted" not in str(error)


SUBJECTS = ["../config", "a/../../b", "a%2Fb", "a?b=c", "a#b", "a b", "..%2f", "a\r\nHost: b", "ü"]


@pytest.mark.parametrize("subject", SUBJECTS)
def test_a_subject_is_one_part_of_the_path(subject):
    with serving(lambda _: {"schema": INT, "id": 1}) as server:
        server.client().version(subject)
    (path,) = server.asked
    assert path.startswith("/subjects/")
    assert path.endswith("/versions/latest")
    assert path.count("/") == 4
    assert subject_of(path) == subject


@pytest.mark.parametrize("subject", [".", "..", "", "x" * 2000, "\ud800"])
def test_no_subject_leads_to_another_part_of_the_interface(subject):
    assert not is_subject(subject)
    with serving(lambda _: {"schema": INT, "id": 1}) as server, pytest.raises(MissingSchemaError):
        server.client().version(subject)
    assert server.asked == []


@pytest.mark.parametrize(
    "url",
    ["http://[::1", "http://me:pa/planted@host/", "http://h:99999/", "http://h:x/", "http://h/?x=planted@h", "http://"],
)
def test_an_address_that_can_be_taken_in_two_ways_is_an_error_without_its_text(url):
    with pytest.raises(ProjectError) as error:
        read_settings("main", {"url": url})
    assert error.value.diagnostic.code == "bad-value"
    assert "planted" not in str(error.value)


OPEN = {
    "http://registry.example.com": True, "http://10.0.0.1:8081/x": True, "http://localhost.example.com": True,
    "http://127.0.0.1:8081": False, "http://127.1.2.3": False, "http://[::1]:8081": False, "http://localhost": False,
    "https://registry.example.com": False,
}  # fmt: skip


@pytest.mark.parametrize(("url", "expected"), OPEN.items())
def test_plain_http_beyond_this_machine_is_open(url, expected):
    assert is_open(url) is expected


def test_credentials_over_plain_http_are_a_warning_at_the_address(tmp_path):
    registries = (
        "    schema_registries:\n"
        "      open: {url: 'http://r.example.com', auth: {token: x}}\n"
        "      inside: {url: 'http://me:planted@r.example.com'}\n"
        "      tls: {url: 'https://r.example.com', auth: {token: x}}\n"
        "      here: {url: 'http://127.0.0.1:8081', auth: {token: x}}\n"
        "      public: {url: 'http://r.example.com'}\n"
        "      rendered: {url: \"http://{{ env_var('HOST') }}:8081\", auth: {token: x}}\n"
        "    openlineage: {type: http, url: 'http://l.example.com', api_key: x}\n"
    )
    found = compiled(tmp_path, {"project.yml": PROJECT + registries}).manifest.diagnostics
    told = [(d.code, d.level.value, str(d.location)) for d in found]
    places = ["7:19", "8:21", "13:36"]
    assert told == [("plain-http", "warning", f"project.yml:{place}") for place in places]
    assert "planted" not in repr(found)


def test_a_readers_schema_that_was_kept_is_checked_before_it_is_used():
    value = read_value({"format": "avro", "schema_registry": "main"}, ["t"])
    for kept in ("{", '{"type":"record","name":"r","fields":[]}', '"int" x', '{"type":"record","name":"r`"}'):
        with serving(lambda _: []) as server, pytest.raises(SetupError) as error:
            prepare(value, server.client(), pinned_schema=kept)
        assert error.value.diagnostic.code == "registry-schema"
        assert server.asked == []
