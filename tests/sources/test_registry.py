"""The client of schema registries, against a real one; a gateway before it makes the faults."""

from __future__ import annotations

import base64
import time
import uuid
from collections.abc import Iterator

import pytest

from engine.errors import EngineError, ProjectError, SetupError
from engine.sources.registry import MissingSchemaError, Registry, RegistrySettings, read_settings
from tests.lab import shortest_seconds
from tests.services import certificates
from tests.services.registry import Gateway, RegistryPart, running

pytestmark = pytest.mark.spark

POINT = {"type": "record", "name": "point", "fields": [{"name": "x", "type": "int"}]}
WIDER = {
    "type": "record",
    "name": "point",
    "fields": [{"name": "y", "type": "int", "default": 0}, {"name": "x", "type": "int"}],
}


@pytest.fixture
def subject() -> str:
    return f"s{uuid.uuid4().hex[:8]}-value"


@pytest.fixture
def gateway(registry: RegistryPart) -> Iterator[Gateway]:
    with Gateway(registry.url).serving() as gateway:
        yield gateway


def client(url: str, **also: object) -> Registry:
    return Registry(RegistrySettings("main", url, **{"timeout": 5.0, "patience": 5.0, **also}))  # type: ignore[arg-type]


def code(error: pytest.ExceptionInfo[EngineError]) -> str:
    return error.value.diagnostic.code


def test_schemas_are_found_by_id_and_by_subject(registry, subject):
    first, second = registry.register(subject, POINT), registry.register(subject, WIDER)
    found = client(registry.url)
    assert (
        found.schema(first).text
        == '{"type":"record","name":"point","namespace":"","fields":[{"name":"x","type":"int"}]}'
    )
    assert found.version(subject).id == second
    assert [v.id for v in found.versions(subject, 10)] == [second, first]
    assert [v.id for v in found.versions(subject, 1)] == [second]


def test_a_subject_may_have_any_name(registry):
    subject = f"a b%2F.{uuid.uuid4().hex[:8]}"
    number = registry.register(subject.replace("%", "%25").replace(" ", "%20"), POINT)
    assert client(registry.url).version(subject).id == number


def test_a_schema_comes_with_what_it_refers_to(registry, subject):
    money = {"type": "record", "name": "shop.money", "fields": [{"name": "amount", "type": "shop.number"}]}
    registry.register(f"{subject}-number", {"type": "fixed", "name": "shop.number", "size": 2})
    registry.register(
        f"{subject}-money", money, references=[{"name": "shop.number", "subject": f"{subject}-number", "version": 1}]
    )
    order = {"type": "record", "name": "shop.order", "fields": [{"name": "paid", "type": "shop.money"}]}
    number = registry.register(
        subject, order, references=[{"name": "shop.money", "subject": f"{subject}-money", "version": 1}]
    )
    text = client(registry.url).schema(number).text
    assert '"fixed"' in text
    assert '"size":2' in text


def test_what_is_not_there_is_told_from_what_cannot_be_asked(registry, subject):
    registry.register(subject, POINT)
    found = client(registry.url)
    for ask, expected in (
        (lambda: found.schema(4_000_000_000), "registry-id"),
        (lambda: found.version("nobody"), "registry-subject"),
        (lambda: found.version(subject, 9), "registry-subject"),
    ):
        with pytest.raises(MissingSchemaError) as error:
            ask()
        assert code(error) == expected


def test_a_schema_of_another_kind_is_no_avro_schema(registry, subject):
    number = registry.register(subject, 'syntax = "proto3"; message A { int32 x = 1; }', "PROTOBUF")
    with pytest.raises(MissingSchemaError) as error:
        client(registry.url).schema(number)
    assert code(error) == "registry-schema"
    assert "PROTOBUF" in str(error.value)
    assert client(registry.url).versions(subject, 10) == []


def test_an_address_that_is_no_registry_is_no_missing_schema(registry, subject):
    """Else a slip in the url would make bad records of all records."""
    number = registry.register(subject, POINT)
    host = registry.url.removesuffix("/apis/ccompat/v7")
    with pytest.raises(SetupError) as error:
        client(host).schema(number)
    assert not isinstance(error.value, MissingSchemaError)
    assert code(error) == "registry-answer"
    assert "/apis/ccompat/v7" in error.value.diagnostic.hint


def test_ids_are_asked_for_once_and_subjects_again_after_seconds(registry, subject, gateway, monkeypatch):
    number = registry.register(subject, POINT)
    found = client(gateway.url)
    for _ in range(3):
        found.schema(number)
        found.version(subject)
    assert sorted(gateway.asked) == [f"/schemas/ids/{number}", f"/subjects/{subject}/versions/latest"]
    newer = registry.register(subject, WIDER)
    assert found.version(subject).id == number
    now = time.monotonic()
    monkeypatch.setattr(time, "monotonic", lambda: now + 60)
    assert found.version(subject).id == newer
    assert len(gateway.asked) == 3


@pytest.mark.parametrize(
    ("auth", "header"),
    [
        ({"username": "me", "password": "pass:word"}, f"Basic {base64.b64encode(b'me:pass:word').decode()}"),
        ("me:pass:word", f"Basic {base64.b64encode(b'me:pass:word').decode()}"),
        ({"token": "t0ken-value"}, "Bearer t0ken-value"),
    ],
)
def test_a_registry_that_asks_who_we_are_is_told(registry, subject, gateway, auth, header):
    number = registry.register(subject, POINT)
    gateway.authorization = header
    found = Registry(read_settings("main", {"url": gateway.url, "auth": auth}))
    assert found.schema(number).id == number
    assert gateway.refused == 0
    for secret in ("pass:word", "t0ken-value", header.partition(" ")[2]):
        assert secret not in repr(found)


def test_user_and_password_of_a_url_are_sent_and_not_shown(registry, subject, gateway):
    number = registry.register(subject, POINT)
    gateway.authorization = f"Basic {base64.b64encode(b'me:p@ss').decode()}"
    found = Registry(read_settings("main", {"url": gateway.url.replace("//", "//me:p%40ss@")}))
    assert found.schema(number).id == number
    gateway.status = 500
    with pytest.raises(SetupError) as error:
        Registry(RegistrySettings("main", found.settings.url, found.settings.authorization, 1, 0.3)).schema(number)
    assert "p%40ss" not in str(error.value)
    assert "p@ss" not in str(error.value)


@pytest.mark.skipif(not certificates.available(), reason="needs openssl to make certificates")
def test_a_login_goes_over_tls_to_a_registry_whose_authority_is_known(registry, subject, tmp_path):
    number = registry.register(subject, POINT)
    authority, other = (certificates.authority(tmp_path / name, name) for name in ("authority", "other"))
    authority.issue("registry")
    identity = (authority.folder / "registry.pem", authority.folder / "registry.key")
    auth = {"username": "me", "password": "pass:word"}
    header = f"Basic {base64.b64encode(b'me:pass:word').decode()}"
    with Gateway(registry.url, authorization=header, identity=identity).serving() as gateway:
        given = {"url": gateway.url, "auth": auth, "timeout": "2 seconds"}
        assert Registry(read_settings("main", {**given, "ca": authority.ca})).schema(number).id == number
        for ca in ({}, {"ca": other.ca}):
            with pytest.raises(SetupError) as error:
                Registry(read_settings("main", given | ca)).schema(number)
            assert code(error) == "registry-unreachable"
            assert "certificate" in error.value.diagnostic.message
            assert "'ca'" in error.value.diagnostic.hint
            assert "pass:word" not in str(error.value)
        assert len(gateway.asked) == 1, "nobody else is sent the password"
    with pytest.raises(ProjectError) as wrong:
        read_settings("main", {"url": "https://a", "ca": "/etc/ca.pem"})
    assert code(wrong) == "bad-value"


def test_a_refusal_is_told_at_once_and_without_the_secret(registry, gateway):
    gateway.authorization = "Bearer right"
    found = Registry(read_settings("main", {"url": gateway.url, "auth": {"token": "wrong-token"}}))
    with pytest.raises(SetupError) as error:
        found.schema(1)
    assert code(error) == "registry-auth"
    assert gateway.refused == len(gateway.asked) == 1
    assert "wrong-token" not in str(error.value) + error.value.diagnostic.hint


def test_a_password_follows_no_redirect(registry, gateway):
    with Gateway(gateway.url, status=302).serving() as first:
        with pytest.raises(SetupError) as error:
            client(first.url, authorization="Bearer secret").schema(1)
        assert first.refused == 1
    assert code(error) == "registry-answer"
    assert gateway.asked == []


def test_a_registry_that_stumbles_is_asked_again(registry, subject, gateway):
    number = registry.register(subject, POINT)
    gateway.status, gateway.times = 503, 3
    assert client(gateway.url).schema(number).id == number
    assert (gateway.refused, len(gateway.asked)) == (3, 4)


def test_a_registry_that_is_down_is_an_error_in_bounded_time(tmp_path):
    with running(tmp_path / "registry") as part:
        number = part.register("x", POINT)
        found = client(part.url, patience=1.0)
        assert found.schema(number).id == number
        part.stop(kill=True)
        assert found.schema(number).id == number

        def ask() -> None:
            with pytest.raises(SetupError, match="Connection refused") as error:
                found.schema(number + 1)
            assert code(error) == "registry-unreachable"

        assert shortest_seconds(ask, limit=3.0) < 3


def test_a_registry_that_is_silent_is_an_error_in_bounded_time(registry, gateway):
    gateway.delay = 5.0

    def ask() -> None:
        with pytest.raises(SetupError) as error:
            client(gateway.url, timeout=0.3, patience=1.0).schema(1)
        assert code(error) == "registry-unreachable"

    assert shortest_seconds(ask, limit=3.0) < 3
    assert len(gateway.asked) > 1
    gateway.delay = 0.0


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, "missing-key"),
        ({"url": "registry:8081"}, "bad-value"),
        ({"url": "file:///etc/passwd"}, "bad-value"),
        ({"url": "http://r", "urll": 1}, "unknown-key"),
        ({"url": "http://r", "auth": "secret-token"}, "bad-value"),
        ({"url": "http://r", "auth": {"username": "me"}}, "bad-value"),
        ({"url": "http://r", "auth": {"token": "secret\r\ntoken"}}, "bad-value"),
        ({"url": "http://r", "timeout": "soon"}, "bad-value"),
        ({"url": "http://r", "timeout": 5}, "bad-value"),
    ],
)
def test_wrong_settings_are_told_without_their_values(given, expected):
    with pytest.raises(ProjectError) as error:
        read_settings("main", given)
    assert code(error) == expected
    assert "secret" not in str(error.value)


def test_debug_says_whether_a_registry_answers(lab, registry, gateway):
    from engine.runtime.operations.debug import checkup
    from tests.project.small_projects import compiled

    project = (
        "name: shop\ntargets:\n  dev:\n    catalog: {type: sqlite, name: lake, path: .engine/lake}\n    schema: main\n"
        f"    schema_registries: {{main: {{url: '{gateway.url}'}}}}\n"
    )

    def finding() -> tuple[bool, str]:
        target = compiled(lab.root, {"project.yml": project}).target
        (found,) = [finding for finding in checkup(target, lab.root) if finding.part == "registry"]
        return found.good, found.text

    assert finding() == (True, f"'main' at {gateway.url}")
    gateway.status = 401
    good, text = finding()
    assert not good
    assert "denied access" in text
