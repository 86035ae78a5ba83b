"""A client of schema registries with Confluent's interface (Confluent, Apicurio and others have it).

What an id means never changes and is kept for ever; what a subject holds is kept for seconds. Every call ends within
`patience`. A registry that cannot be asked is an error that a later build gets over; only its own word that it has no
such schema is an answer.
"""

from __future__ import annotations

import base64
import http.client
import json
import re
import ssl
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import quote, unquote, urlsplit, urlunsplit

from engine.errors import ProjectError, SetupError, near
from engine.secrets import scrub
from engine.sources.avro.parse import parse
from engine.sources.avro.types import AvroError, to_json

KEYS: Final = ("url", "auth", "timeout")
_SUBJECT_SECONDS: Final = 5.0
_SILENCE: Final = 10.0
_PATIENCE: Final = 20.0
_FIRST_PAUSE: Final = 0.2
_MOST_BYTES: Final = 10_000_000
_PASSING: Final = frozenset({408, 425, 429, 500, 502, 503, 504})
_REFUSED: Final = frozenset({401, 403, 407})
# Confluent's codes for: no such subject, no such version, no such schema.
_NO_SUBJECT: Final = frozenset({40401, 40402})
_NO_SCHEMA: Final = 40403


class MissingSchemaError(SetupError):
    """The registry says that it has no such schema, or what it has is no Avro schema."""


@dataclass(frozen=True, slots=True)
class RegistrySettings:
    """How a registry is reached.

    Attributes:
        name: its name in the target, for messages.
        url: without user and password.
        authorization: the value of the header; empty: none is sent.
        timeout: seconds that the registry may be silent.
        patience: seconds that a call may take, with all its repetitions.
    """

    name: str
    url: str
    authorization: str = field(default="", repr=False)
    timeout: float = _SILENCE
    patience: float = _PATIENCE


@dataclass(frozen=True, slots=True)
class Registered:
    """A schema of a registry: its id, and its whole text with what it refers to."""

    id: int
    text: str


def read_settings(name: str, given: Mapping[str, Any]) -> RegistrySettings:
    """The settings of a registry from a target.

    Raises:
        ProjectError: a key is missing, unknown or wrong; no value is shown.
    """
    place = f"the schema registry '{name}'"
    if unknown := sorted(set(given) - set(KEYS)):
        raise ProjectError("unknown-key", f"{place} has no key '{unknown[0]}'", near(unknown[0], KEYS))
    hint = "Write 'url: https://host:port', with the path where its interface begins, if it has one."
    if not isinstance(given.get("url"), str):
        raise ProjectError("missing-key", f"{place} has no 'url'", hint)
    parts = urlsplit(given["url"].strip())
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise ProjectError("bad-value", f"the url of {place} is no http or https address", hint)
    address = urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path.rstrip("/"), "", ""))
    authorization = ""
    if "auth" in given:
        authorization = _authorization(place, given["auth"])
    elif parts.username is not None:
        authorization = _basic(unquote(parts.username), unquote(parts.password or ""))
    patience = _seconds(place, given["timeout"]) if "timeout" in given else _PATIENCE
    return RegistrySettings(name, address, authorization, min(_SILENCE, patience), patience)


def _seconds(place: str, timeout: Any) -> float:
    found = re.fullmatch(r"(\d+) (second|minute)s?", timeout) if isinstance(timeout, str) else None
    if found is None or int(found[1]) == 0:
        raise ProjectError("bad-value", f"the 'timeout' of {place} is no time", "Write 'timeout: 20 seconds'.")
    return float(found[1]) * (60 if found[2] == "minute" else 1)


def _authorization(place: str, auth: Any) -> str:
    if isinstance(auth, str) and ":" in auth:
        user, _, password = auth.partition(":")
        return _basic(user, password)
    if isinstance(auth, Mapping) and all(isinstance(value, str) for value in auth.values()):
        if set(auth) == {"username", "password"}:
            return _basic(auth["username"], auth["password"])
        if set(auth) == {"token"} and auth["token"].isprintable():
            return f"Bearer {auth['token']}"
    hint = "Write 'auth: {username: .., password: ..}' or 'auth: {token: ..}'."
    raise ProjectError("bad-value", f"the 'auth' of {place} is of neither form", hint)


def _basic(user: str, password: str) -> str:
    return f"Basic {base64.b64encode(f'{user}:{password}'.encode()).decode()}"


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """The header with the password would follow a redirect to any host."""

    def redirect_request(self, *_: object) -> None:
        return None


_OPENER: Final = urllib.request.build_opener(_NoRedirect)


@dataclass(slots=True)
class Registry:
    """A registry and what it has answered."""

    settings: RegistrySettings
    _schemas: dict[int, Registered] = field(default_factory=dict)
    _subjects: dict[str, tuple[float, Any]] = field(default_factory=dict)

    def schema(self, schema_id: int) -> Registered:
        """The schema of an id.

        Raises:
            MissingSchemaError: `registry-id`, or `registry-schema` for one that is no Avro schema.
            SetupError: `registry-down`, `registry-auth` or `registry-answer`.
        """
        if schema_id not in self._schemas:
            self._schemas[schema_id] = self._registered(schema_id, self._get(f"/schemas/ids/{schema_id}"))
        return self._schemas[schema_id]

    def version(self, subject: str, version: int | str = "latest") -> Registered:
        """A version of a subject.

        Raises:
            MissingSchemaError: `registry-subject`, or `registry-schema`.
            SetupError: as `schema`.
        """
        data = self._lately(f"/subjects/{quote(subject, safe='')}/versions/{version}")
        schema_id = data.get("id") if isinstance(data, dict) else None
        if not isinstance(schema_id, int):
            raise self._odd(f"its answer for '{subject}' has no id")
        if schema_id not in self._schemas:
            self._schemas[schema_id] = self._registered(schema_id, data)
        return self._schemas[schema_id]

    def versions(self, subject: str, most: int) -> list[Registered]:
        """The newest versions of a subject, newest first; those that are no Avro schema are left out.

        Raises:
            MissingSchemaError: `registry-subject`.
            SetupError: as `schema`.
        """
        numbers = self._lately(f"/subjects/{quote(subject, safe='')}/versions")
        if not isinstance(numbers, list) or not all(isinstance(number, int) for number in numbers):
            raise self._odd(f"its answer for '{subject}' is no list of versions")
        found = []
        for number in sorted(numbers, reverse=True)[:most]:
            try:
                found.append(self.version(subject, number))
            except MissingSchemaError:  # deleted since, or of another kind
                continue
        return found

    def check(self) -> None:
        """Ask the registry something that costs nothing.

        Raises:
            SetupError: as `schema`.
        """
        self._get("/subjects?offset=0&limit=1")

    def _registered(self, schema_id: int, data: Any) -> Registered:
        if not isinstance(data, dict) or not isinstance(data.get("schema"), str):
            raise self._odd(f"its answer for schema id {schema_id} has no schema")
        kind = data.get("schemaType", "AVRO")
        if kind != "AVRO":
            raise MissingSchemaError("registry-schema", f"schema id {schema_id} is of the kind {kind}, not Avro")
        imported: dict[tuple[str, int], str] = {}
        self._import(data, imported)
        try:
            text = to_json(parse(data["schema"], imported.values()), docs=True)
        except AvroError as error:
            message = f"schema id {schema_id} is no Avro schema that can be read: {error}"
            raise MissingSchemaError("registry-schema", message) from error
        return Registered(schema_id, text)

    def _import(self, data: Mapping[str, Any], imported: dict[tuple[str, int], str]) -> None:
        """The texts of the schemas that one refers to, those that they refer to first."""
        for reference in data.get("references") or ():
            try:
                key = (str(reference["subject"]), int(reference["version"]))
                if key not in imported:
                    found = self._lately(f"/subjects/{quote(key[0], safe='')}/versions/{key[1]}")
                    self._import(found, imported)
                    imported[key] = str(found["schema"])
            except (KeyError, TypeError, ValueError) as error:
                raise self._odd("a schema refers to another one in a way that is not understood") from error

    def _lately(self, path: str) -> Any:
        known = self._subjects.get(path)
        if known is None or time.monotonic() - known[0] > _SUBJECT_SECONDS:
            self._subjects[path] = known = (time.monotonic(), self._get(path))
        return known[1]

    def _get(self, path: str) -> Any:
        deadline = time.monotonic() + self.settings.patience
        pause = _FIRST_PAUSE
        while True:
            try:
                return self._once(path, deadline)
            except urllib.error.HTTPError as error:
                reason = self._judge(path, error)
            except (OSError, http.client.HTTPException) as error:
                reason = _reason(error)
                if isinstance(getattr(error, "reason", None), ssl.SSLCertVerificationError):
                    raise self._down(reason) from error
            if time.monotonic() + pause > deadline:
                raise self._down(reason)
            time.sleep(pause)
            pause *= 2

    def _once(self, path: str, deadline: float) -> Any:
        headers = {"Accept": "application/vnd.schemaregistry.v1+json, application/json", "User-Agent": "headrace"}
        if self.settings.authorization:
            headers["Authorization"] = self.settings.authorization
        request = urllib.request.Request(self.settings.url + path, headers=headers)  # noqa: S310 - http(s), checked
        seconds = max(0.1, min(self.settings.timeout, deadline - time.monotonic()))
        with _OPENER.open(request, timeout=seconds) as response:
            body = _read(response, deadline)
        try:
            return json.loads(body)
        except ValueError as error:
            raise self._odd(f"{path} answers with something that is no JSON") from error

    def _judge(self, path: str, error: urllib.error.HTTPError) -> str:
        """What a refusal means; returns the reason of one that may pass."""
        with error:
            code = _error_code(error)
        if error.code in _PASSING:
            return f"it answers {error.code} {error.reason}"
        if error.code in _REFUSED:
            hint = "Correct 'auth' of the registry in the target, or ask for the right to read."
            message = f"the schema registry '{self.settings.name}' at {self.settings.url} refuses us ({error.code})"
            raise SetupError("registry-auth", message, hint)
        if code == _NO_SCHEMA:
            wanted = path.rpartition("/")[2]
            raise MissingSchemaError("registry-id", f"the schema registry '{self.settings.name}' has no id {wanted}")
        if code in _NO_SUBJECT:
            subject, _, version = unquote(path.removeprefix("/subjects/")).partition("/versions")
            what = f"version {version[1:]} of the subject" if code != min(_NO_SUBJECT) else "subject"
            hint = "A producer registers it with its first record; 'subject:' names another one."
            message = f"the schema registry '{self.settings.name}' has no {what} '{subject}'"
            raise MissingSchemaError("registry-subject", message, hint)
        raise self._odd(f"{path} answers {error.code} {error.reason}")

    def _down(self, reason: str) -> SetupError:
        hint = "Start it, or correct its 'url' in the target. Nothing is lost: the next build reads the same records."
        message = f"the schema registry '{self.settings.name}' at {self.settings.url} cannot be reached: {reason}"
        return SetupError("registry-down", scrub(message), hint)

    def _odd(self, what: str) -> SetupError:
        hint = "The 'url' ends where the interface begins; Apicurio's ends with /apis/ccompat/v7."
        message = f"{self.settings.url} does not speak as a schema registry does: {what}"
        return SetupError("registry-answer", scrub(message), hint)


def _read(response: http.client.HTTPResponse, deadline: float) -> bytes:
    """The body, as long as it is of bearable size and comes in time."""
    body = bytearray()
    while chunk := response.read1(1 << 16):
        body += chunk
        if len(body) > _MOST_BYTES or time.monotonic() > deadline:
            raise OSError(f"its answer has more than {_MOST_BYTES} bytes, or takes too long")
    return bytes(body)


def _error_code(error: urllib.error.HTTPError) -> int | None:
    try:
        data = json.loads(error.read(_MOST_BYTES))
    except (ValueError, OSError, http.client.HTTPException):
        return None
    code = data.get("error_code") if isinstance(data, dict) else None
    return code if isinstance(code, int) else None


def _reason(error: Exception) -> str:
    inner = error.reason if isinstance(error, urllib.error.URLError) else error
    return getattr(inner, "strerror", None) or str(inner) or type(inner).__name__
