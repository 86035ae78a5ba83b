"""A client of schema registries with Confluent's interface (Confluent, Apicurio and others have it).

The schema of an id is cached without expiry, versions of a subject for seconds. Every call ends within `patience`, with
all requests for referenced schemas. Only a registry's own word that it has no such schema is an answer; nothing of an
answer is used before it was checked, and references end.
"""

from __future__ import annotations

import base64
import http.client
import json
import re
import ssl
import time
import urllib.error
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, TypeVar
from urllib.parse import quote, unquote

from engine.addresses import AddressError, web_address
from engine.bounds.http_exchange import BodyTooLargeError, fetch
from engine.errors import ProjectError, SetupError, near
from engine.schema.target_keys import REGISTRY
from engine.secrets.scrubber import scrub
from engine.sources.avro_schema.avro_types import AvroError, to_json
from engine.sources.avro_schema.parse_schema import MOST_TEXT, parse

_MOST_NAME: Final = 1000
_SHOWN: Final = 100
# Ids have four bytes in the wire format, versions four in the registries.
_IDS: Final = 1 << 32
_VERSIONS: Final = 1 << 31
# The subject and the version of a schema that another one refers to.
Reference = tuple[str, int]


@dataclass(frozen=True, slots=True)
class Answer:
    """`references` has subject and version of each; `id` is None where the question was for an id."""

    schema: str
    kind: str
    references: tuple[Reference, ...]
    id: int | None


def read_answer(data: Any) -> Answer | None:
    """Read an answer with a schema; None if it is of another form."""
    if not isinstance(data, dict) or not isinstance(data.get("schema"), str):
        return None
    kind, references, number = data.get("schemaType") or "AVRO", data.get("references") or [], data.get("id")
    if not isinstance(kind, str) or not isinstance(references, list) or not all(map(_is_reference, references)):
        return None
    if number is not None and not _is_number(number, _IDS):
        return None
    referenced = tuple((reference["subject"], reference["version"]) for reference in references)
    return Answer(data["schema"], short(kind), referenced, number)


def _is_reference(data: Any) -> bool:
    return isinstance(data, dict) and is_subject(data.get("subject")) and _is_number(data.get("version"), _VERSIONS)


def _is_number(value: Any, bound: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < bound


def read_versions(data: Any) -> list[int] | None:
    """Read the versions of a subject; None if the answer is of another form."""
    return data if isinstance(data, list) and all(_is_number(number, _VERSIONS) for number in data) else None


def is_subject(text: Any) -> bool:
    """Whether a text can be a subject. Quoted, it stays one part of a path; only dots cannot be quoted."""
    if not isinstance(text, str) or not 0 < len(text) <= _MOST_NAME or text in {".", ".."}:
        return False
    return not any("\ud800" <= character <= "\udfff" for character in text)


def short(text: object) -> str:
    line = " ".join(str(text).split())
    return f"{line[:_SHOWN]}.." if len(line) > _SHOWN else line


_AVRO_ONLY: Final = "Register an Avro schema, or read the value as another format ('value: {format: string}')."
_SUBJECT_SECONDS: Final = 5.0
_SILENCE: Final = 10.0
_PATIENCE: Final = 20.0
_FIRST_PAUSE: Final = 0.2
_MOST_BYTES: Final = 5_000_000
_MOST_REFERENCES: Final = 100
_MOST_LEVELS: Final = 20
Kept = TypeVar("Kept")
_PASSING: Final = frozenset({408, 425, 429, 500, 502, 503, 504})
_REFUSED: Final = frozenset({401, 403, 407})
# Confluent's codes for: no such subject, no such version, no such schema.
_NO_SUBJECT: Final = frozenset({40401, 40402})
_NO_SCHEMA: Final = 40403


class MissingSchemaError(SetupError):
    """The registry says that it has no such schema, or what it has is no Avro schema."""


@dataclass(frozen=True, slots=True)
class RegistrySettings:
    """`timeout` and `patience` (of a call with all its repetitions) are in seconds; `url` is without a login."""

    name: str
    url: str
    authorization: str = field(default="", repr=False)
    timeout: float = _SILENCE
    patience: float = _PATIENCE
    ca: str = field(default="", repr=False)


@dataclass(frozen=True, slots=True)
class Registered:
    id: int
    text: str


def read_settings(name: str, settings: Mapping[str, Any]) -> RegistrySettings:
    """The settings of a registry from a target.

    Raises ProjectError: a key is missing, unknown or wrong; no value is shown.
    """
    place = f"the schema registry '{name}'"
    if unknown := sorted(set(settings) - REGISTRY.names):
        raise ProjectError("unknown-key", f"{place} has no key '{unknown[0]}'", near(unknown[0], REGISTRY.names))
    hint = "Set 'url: https://host:port', with the path of its API if it has one."
    if not isinstance(settings.get("url"), str):
        raise ProjectError("missing-key", f"{place} has no 'url'", hint)
    try:
        address = web_address(settings["url"], login=True)
    except AddressError as error:
        raise ProjectError("bad-value", f"the url of {place} {error}", hint) from error
    authorization = ""
    if "auth" in settings:
        authorization = _authorization(place, settings["auth"])
    elif address.login is not None:
        user, _, password = address.login.partition(":")
        authorization = _basic(unquote(user), unquote(password))
    patience = _seconds(place, settings["timeout"]) if "timeout" in settings else _PATIENCE
    ca = str(settings.get("ca") or "")
    if ca and not _is_certificate(ca):
        hint = 'Give the text of the PEM file by a variable: export REGISTRY_CA="$(cat ca.pem)".'
        raise ProjectError("bad-value", f"the 'ca' of {place} is not a PEM text of certificates", hint)
    url = str(replace(address, query="")).rstrip("/")
    return RegistrySettings(name, url, authorization, min(_SILENCE, patience), patience, ca)


def _is_certificate(text: str) -> bool:
    try:
        ssl.create_default_context(cadata=text)
    except (ssl.SSLError, ValueError):
        return False
    return True


def _seconds(place: str, timeout: Any) -> float:
    duration = re.fullmatch(r"(\d+) (second|minute)s?", timeout) if isinstance(timeout, str) else None
    if duration is None or int(duration[1]) == 0:
        raise ProjectError("bad-value", f"the 'timeout' of {place} is not a duration", "Write 'timeout: 20 seconds'.")
    return float(duration[1]) * (60 if duration[2] == "minute" else 1)


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
    raise ProjectError("bad-value", f"the 'auth' of {place} has neither form", hint)


def _basic(user: str, password: str) -> str:
    return f"Basic {base64.b64encode(f'{user}:{password}'.encode()).decode()}"


@dataclass(slots=True)
class Registry:
    settings: RegistrySettings
    _schemas: dict[int, Registered] = field(default_factory=dict)
    _subjects: dict[str, tuple[float, Any]] = field(default_factory=dict)

    def schema(self, schema_id: int) -> Registered:
        """The schema of an id.

        Raises:
            MissingSchemaError: `registry-id`, or `registry-schema` for one that is no Avro schema.
            SetupError: `registry-unreachable`, `registry-auth` or `registry-answer`.
        """
        if schema_id not in self._schemas:
            deadline = self._deadline()
            schema_answer = read_answer(self._get(f"/schemas/ids/{schema_id}", deadline))
            if schema_answer is None:
                raise self._odd(f"its response for schema id {schema_id} has no schema")
            self._schemas[schema_id] = self._registered(schema_id, schema_answer, deadline)
        return self._schemas[schema_id]

    def version(self, subject: str, version: int | str = "latest") -> Registered:
        """A version of a subject.

        Raises:
            MissingSchemaError: `registry-subject`, or `registry-schema`.
            SetupError: as `schema`.
        """
        return self._version(subject, version, self._deadline())

    def versions(self, subject: str, most: int) -> list[Registered]:
        """The newest versions of a subject, newest first; those that are no Avro schema are left out.

        All of them have three times the patience of one.

        Raises:
            MissingSchemaError: `registry-subject`.
            SetupError: as `schema`.
        """
        whole = time.monotonic() + 3 * self.settings.patience
        numbers = self._lately(f"{_subject(subject)}/versions", self._deadline(), read_versions)
        if numbers is None:
            raise self._odd(f"its response for '{subject}' is not a list of versions")
        newest_versions = []
        for number in sorted(numbers, reverse=True)[:most]:
            try:
                newest_versions.append(self._version(subject, number, min(whole, self._deadline())))
            except MissingSchemaError:  # deleted since, or of another kind
                continue
        return newest_versions

    def check(self) -> None:
        """Ask the registry something that costs nothing. Raises SetupError: as `schema`."""
        self._get("/subjects?offset=0&limit=1", self._deadline())

    def _deadline(self) -> float:
        return time.monotonic() + self.settings.patience

    def _version(self, subject: str, version: int | str, deadline: float) -> Registered:
        schema_answer = self._lately(f"{_subject(subject)}/versions/{version}", deadline, read_answer)
        if schema_answer is None or schema_answer.id is None:
            raise self._odd(f"its response for '{subject}' has no id, or no schema")
        if schema_answer.id not in self._schemas:
            self._schemas[schema_answer.id] = self._registered(schema_answer.id, schema_answer, deadline)
        return self._schemas[schema_answer.id]

    def _registered(self, schema_id: int, schema_answer: Answer, deadline: float) -> Registered:
        if schema_answer.kind != "AVRO":
            message = f"schema id {schema_id} has the type {schema_answer.kind}, not Avro"
            raise MissingSchemaError("registry-schema", message, _AVRO_ONLY)
        imported: dict[Reference, str] = {}
        try:
            self._import(schema_answer, imported, (), deadline)
            text = to_json(parse(schema_answer.schema, imported.values()), docs=True)
        except AvroError as error:
            message = f"schema id {schema_id} is not a readable Avro schema: {error}"
            raise MissingSchemaError("registry-schema", message, _AVRO_ONLY) from error
        return Registered(schema_id, text)

    def _import(
        self, importing: Answer, imported: dict[Reference, str], around: tuple[Reference, ...], deadline: float
    ) -> None:
        """Import the schemas that one refers to, their own first; raise AvroError for a cycle, or too many."""
        for reference in importing.references:
            if reference in around:
                raise AvroError(f"it references itself, through version {reference[1]} of '{short(reference[0])}'")
            if reference in imported:
                continue
            if len(around) >= _MOST_LEVELS or len(imported) >= _MOST_REFERENCES:
                message = (
                    f"it references more than {_MOST_REFERENCES} schemas, or is nested more than {_MOST_LEVELS} levels"
                )
                raise AvroError(message)
            referenced = self._lately(f"{_subject(reference[0])}/versions/{reference[1]}", deadline, read_answer)
            if referenced is None:
                raise self._odd(f"its response for '{short(reference[0])}' has no schema")
            self._import(referenced, imported, (*around, reference), deadline)
            imported[reference] = referenced.schema
            if sum(map(len, imported.values())) > MOST_TEXT:
                raise AvroError(f"with its references it has more than {MOST_TEXT:,} characters")

    def _lately(self, path: str, deadline: float, read: Callable[[Any], Kept | None]) -> Kept | None:
        """What a path answered within the last seconds, checked; None: it is not of the form."""
        now = time.monotonic()
        if path not in self._subjects or now - self._subjects[path][0] > _SUBJECT_SECONDS:
            parsed = read(self._get(path, deadline))
            recent = {key: value for key, value in self._subjects.items() if now - value[0] <= _SUBJECT_SECONDS}
            self._subjects = recent if parsed is None else {**recent, path: (time.monotonic(), parsed)}
            return parsed
        cached: Kept = self._subjects[path][1]
        return cached

    def _get(self, path: str, deadline: float) -> Any:
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
        patience = {"timeout": self.settings.timeout, "deadline": deadline}
        place, _, query = path.partition("?")
        try:
            address = web_address(self.settings.url).below(place, query)
            body = fetch(address, headers, most_bytes=_MOST_BYTES, ca=self.settings.ca, **patience)
        except BodyTooLargeError as error:
            raise self._odd(str(error)) from error
        try:
            return json.loads(body)
        except (ValueError, RecursionError) as error:
            raise self._odd(f"{path} did not answer with JSON, or its JSON is nested too deeply") from error

    def _judge(self, path: str, error: urllib.error.HTTPError) -> str:
        """What a refusal means; returns the reason of one that may pass."""
        with error:
            code = _error_code(error)
        if error.code in _PASSING:
            return f"it answers {error.code} {short(error.reason)}"
        if error.code in _REFUSED:
            hint = "Correct 'auth' of the registry in the target, or get read permission."
            message = f"the schema registry '{self.settings.name}' at {self.settings.url} denied access ({error.code})"
            raise SetupError("registry-auth", message, hint)
        if code == _NO_SCHEMA:
            schema_id = path.rpartition("/")[2]
            message = f"the schema registry '{self.settings.name}' has no id {schema_id}"
            hint = "Correct 'schema_registry' or 'schema_id' of the source, or register the schema again."
            raise MissingSchemaError("registry-id", message, hint)
        if code in _NO_SUBJECT:
            subject, _, version = unquote(path.removeprefix("/subjects/")).partition("/versions")
            missing = f"version {version[1:]} of the subject" if code != min(_NO_SUBJECT) else "subject"
            hint = "A producer registers it with its first record; to use another one, set 'subject:'."
            message = f"the schema registry '{self.settings.name}' has no {missing} '{subject}'"
            raise MissingSchemaError("registry-subject", message, hint)
        raise self._odd(f"{path} answers {error.code} {short(error.reason)}")

    def _down(self, reason: str) -> SetupError:
        hint = "Start it, or correct its 'url' in the target. No records are lost: the next build reads them."
        if "certificate" in reason.lower():
            hint = "Set 'ca' of the registry to the PEM text of the authority that signed its certificate."
        message = f"the schema registry '{self.settings.name}' at {self.settings.url} cannot be reached: {reason}"
        return SetupError("registry-unreachable", scrub(message), hint)

    def _odd(self, reason: str) -> SetupError:
        hint = "Set 'url' to the root of its API; for Apicurio it ends with /apis/ccompat/v7."
        message = f"{self.settings.url} does not respond like a schema registry: {reason}"
        return SetupError("registry-answer", scrub(message), hint)


def _subject(name: str) -> str:
    """Return the path of a subject; raise MissingSchemaError, `registry-subject`, if none has such a name."""
    if not is_subject(name):
        message = f"there can be no subject {short(name)!r} in a schema registry"
        raise MissingSchemaError("registry-subject", message, "Set 'subject:' to a name of at most 1,000 characters.")
    return f"/subjects/{quote(name, safe='')}"


def _error_code(error: urllib.error.HTTPError) -> int | None:
    try:
        data = json.loads(error.read(_MOST_BYTES))
    except (ValueError, OSError, RecursionError, http.client.HTTPException):
        return None
    code = data.get("error_code") if isinstance(data, dict) else None
    return code if isinstance(code, int) else None


def _reason(error: Exception) -> str:
    inner = error.reason if isinstance(error, urllib.error.URLError) else error
    return getattr(inner, "strerror", None) or str(inner) or type(inner).__name__
