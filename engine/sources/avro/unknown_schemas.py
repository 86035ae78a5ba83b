"""Records whose schema was not known when a query started: rewritten into the reader's schema, in Python workers.

A worker keeps what it has learned of a registry. A registry that cannot be asked fails the batch.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cache
from typing import Final

from engine.errors import SetupError
from engine.sources.avro.reader_schema import incompatible
from engine.sources.avro.schema_resolution import Resolution, UnsuitableError, resolve
from engine.sources.avro_schema.binary_encoding import CorruptError
from engine.sources.avro_schema.parse_schema import parse
from engine.sources.registry import MissingSchemaError, Registry, RegistrySettings

HEADER_BYTES: Final = 5
# A schema that is missing may be registered at any time.
_MISSING_SECONDS: Final = 5.0
_MARK: Final = "headrace-worker: "


class WorkerError(RuntimeError):
    """What a worker shows the driver through Spark: a code, a message and a hint as JSON."""


@dataclass(slots=True)
class Translator:
    registry: Registry
    reader: str
    _resolutions: dict[int, Resolution | str] = field(default_factory=dict)
    _missing: dict[int, tuple[float, str]] = field(default_factory=dict)

    def translate(self, value: bytes) -> tuple[bytes | None, str | None]:
        """The value in the reader's schema, or why there is none. Raises SetupError: the registry cannot be asked."""
        schema_id = int.from_bytes(value[1:HEADER_BYTES])
        how = self._resolutions.get(schema_id) or self._ask(schema_id)
        if isinstance(how, str):
            return None, how
        try:
            return how.transcode(value, HEADER_BYTES), None
        except UnsuitableError as error:
            return None, incompatible(schema_id, error)
        except CorruptError:
            return None, corrupt(schema_id)

    def _ask(self, schema_id: int) -> Resolution | str:
        since, reason = self._missing.get(schema_id, (-_MISSING_SECONDS, ""))
        if time.monotonic() - since < _MISSING_SECONDS:
            return reason
        try:
            registered = self.registry.schema(schema_id)
            self._resolutions[schema_id] = resolve(parse(registered.text), parse(self.reader))
        except MissingSchemaError as error:
            unknown = f"unknown schema id {schema_id}"
            reason = unknown if error.diagnostic.code == "registry-id" else error.diagnostic.message
            self._missing[schema_id] = (time.monotonic(), reason)
            return reason
        except UnsuitableError as error:
            self._resolutions[schema_id] = incompatible(schema_id, error)
        return self._resolutions[schema_id]


def corrupt(schema_id: int) -> str:
    return f"truncated or corrupt: the value does not follow schema id {schema_id}"


@cache
def _translator(settings: RegistrySettings, reader: str) -> Translator:
    return Translator(Registry(settings), reader)


def translate(
    settings: RegistrySettings, reader: str, values: Iterable[bytes | None]
) -> tuple[list[bytes | None], list[str | None]]:
    """Values in the reader's schema, and why there is none where there is none; None stays None.

    Raises:
        WorkerError: the registry cannot be asked.
    """
    translator = _translator(settings, reader)
    payloads: list[bytes | None] = []
    reasons: list[str | None] = []
    try:
        for value in values:
            payload, reason = (None, None) if value is None else translator.translate(value)
            payloads.append(payload)
            reasons.append(reason)
    except SetupError as error:
        diagnostic = error.diagnostic
        raise WorkerError(_MARK + json.dumps([diagnostic.code, diagnostic.message, diagnostic.hint])) from None
    return payloads, reasons


def told_by_worker(text: str) -> SetupError | None:
    for line in re.findall(rf"{_MARK}(\[(?:(?!{_MARK}).)*\])", text):
        try:
            code, message, hint = json.loads(line)
        except ValueError:
            continue
        return SetupError(code, message, hint)
    return None
