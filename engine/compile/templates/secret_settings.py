"""Secrets in a target's settings: templates get a placeholder, and the value takes its place where it is used.

A place gets one only if the user trusts the project with that (`engine.secrets.trusted_projects`). A placeholder holds
a random text, and characters that every escaping filter changes: what is cut or encoded is found, and is an error.
"""

from __future__ import annotations

import logging
import re
import secrets
from collections.abc import Iterable, Iterator, Mapping
from copy import copy
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NoReturn
from urllib.parse import quote

from engine.errors import Diagnostic, Location, ProjectError
from engine.project.yaml_section import UNKNOWN, Section
from engine.secrets.scrubber import MASK, MIN_LENGTH, MIN_LENGTH_OTHERS, PREFIX, register_secret
from engine.secrets.secret_places import MARK, Gift, changed_host, places
from engine.secrets.trusted_projects import unconfirmed_gifts

_log = logging.getLogger("engine.project")
_UNCHANGED = "Write \"{{{{ env_var('{}') }}}}\" without filters, slices or conditions."
_MISPLACED = (
    "Secrets are for connections, schema_registries, openlineage (url, api_key), spark.conf, the login of s3 "
    "(access_key_id, secret_access_key, session_token) and the catalog login (credential, token, header.*, jdbc.*, "
    "s3.*) of a target. If it is not a secret, rename the variable."
)


def reject_credential(name: str) -> NoReturn:
    """Raise the ProjectError (secret-outside-target) of a secret outside targets."""
    if name.startswith(PREFIX):
        hint = "Use it in the target's settings in project.yml; models and sources are written to artifacts."
        raise ProjectError("secret-outside-target", f"the secret '{name}' is used outside a target", hint)
    message = f"the environment variable '{name}' looks like a credential and is used outside a target"
    hint = f"Use it in the target's settings, best as {PREFIX}{name}. If it is not a secret, rename the variable."
    raise ProjectError("secret-outside-target", message, hint)


@dataclass(frozen=True, slots=True)
class _Asked:
    placeholder: str
    name: str
    default: str | None
    place: Location | None = None


class SecretSettings:
    __slots__ = ("_env", "_masks", "_placeholders", "_root", "_token")

    def __init__(self, env: Mapping[str, str], root: Path) -> None:
        self._env, self._root, self._masks = env, root, False
        self._token = secrets.token_hex(16)
        self._placeholders: list[_Asked] = []

    def __repr__(self) -> str:
        return "<secrets>"

    def placeholder(self, name: str, default: Any) -> str:
        text = f"<secret {name} {self._token}/{len(self._placeholders)}>"
        self._placeholders.append(_Asked(text, name, None if default is None else str(default)))
        return text

    def placeholder_count(self) -> int:
        return len(self._placeholders)

    def check(self, text: str, part: Section, before: int) -> Any:
        """The text of a rendered value, if what was asked for is in it unchanged; findings go to `part`."""
        self._placeholders[before:] = [replace(secret, place=part.place) for secret in self._placeholders[before:]]
        names = {secret.name for secret in self._placeholders[before:]} - {secret.name for secret in self._in(text)}
        if not names and self._broken(text):
            names = {secret.name for secret in self._placeholders[before:]}
        for name in sorted(names):
            message = f"the secret '{name}' is changed or used in a condition before it is passed on"
            part.report("secret-misplaced", message, _UNCHANGED.format(name))
        return UNKNOWN if names else text

    def refuse(self, part: Section) -> Any:
        """The value of a part without secrets in it; each that there is is a finding."""
        if isinstance(part.value, dict):
            return {key: self.refuse(value) for key, value in part.mapping()}
        if isinstance(part.value, list):
            return [self.refuse(item) for item in part.items()]
        names = sorted({secret.name for secret in self._in(part.value)}) if self._holds(part.value) else []
        for name in names:
            part.report("secret-misplaced", f"the secret '{name}' would be readable in '{part.name}'", _MISPLACED)
        return UNKNOWN if names else part.value

    def gifts(self, block: Mapping[str, Any], block_name: str) -> tuple[Gift, ...]:
        """The secrets of a block that are set, and the places it would give them to."""
        names = {secret.name for text in _texts(block) if self._holds(text) for secret in self._in(text)}
        names = {name for name in names if self._env.get(name)}
        receivers = places(self.marked(block), block_name) if names else ()
        return tuple(sorted(Gift(name, place) for name in names for place in receivers))

    def require_trust(self, gifts: Iterable[Gift]) -> None:
        """Raise ProjectError (secret-untrusted) unless the user trusts the project with what it would give away."""
        gifts = () if self._masks else tuple(gifts)
        if not gifts or not (unconfirmed := unconfirmed_gifts(self._root, gifts)):
            return
        pairs = ", ".join(f"{gift.secret} -> {gift.place}" for gift in unconfirmed)
        hosts = ",".join(dict.fromkeys(gift.place for gift in unconfirmed))
        message = f"the project would give away secrets that it has not been trusted with: {pairs}"
        hint = f"Look at it, and confirm it with engine trust (with the same --target); in CI set ENGINE_TRUST={hosts}."
        place = next((secret.place for secret in self._placeholders if secret.name == unconfirmed[0].secret), None)
        raise ProjectError("secret-untrusted", message, hint, location=place)

    def resolved(self, value: Mapping[str, Any], block_name: str) -> Any:
        """A block of the target with secrets in it; each is hidden from all texts from now on.

        Raises:
            ProjectError: env-missing, with the place of each variable that is not set; secret-untrusted;
                secret-misplaced, a secret makes an address lead to another host.
        """
        self.require_trust(self.gifts(value, block_name))
        missing: list[Diagnostic] = []
        result = self._resolved(value, missing)
        if missing:
            raise ProjectError.from_diagnostics(dict.fromkeys(missing))
        if not self._masks and (key := changed_host(self.marked(value), result)):
            secret = next(self._in(value[key]))
            message = f"the secret '{secret.name}' has characters that make '{key}' lead to another host"
            hint = f"Write \"{{{{ env_var('{secret.name}') | urlencode }}}}\"."
            raise ProjectError("secret-misplaced", message, hint, location=secret.place)
        return result

    def masked(self, value: Any) -> Any:
        return self._with(MASK, value)

    def marked(self, value: Any) -> Any:
        """The value with a mark for each secret, for those who judge where it would go: no secret is read."""
        return self._with(MARK, value)

    def _with(self, mark: str, value: Any) -> Any:
        if isinstance(value, Mapping):
            return {key: self._with(mark, inner) for key, inner in value.items()}
        if isinstance(value, (list, tuple)):
            return [self._with(mark, inner) for inner in value]
        return self._without(value, mark) if self._holds(value) else value

    def masking(self) -> SecretSettings:
        """The same, with a mask as the value of each secret: for people who want to see all settings together."""
        masked = copy(self)
        masked._env, masked._masks = _Masks(), True  # noqa: SLF001 - its own
        return masked

    def _holds(self, value: Any) -> bool:
        return isinstance(value, str) and self._token in value

    def _broken(self, text: str) -> bool:
        return self._token in self._without(text, "")

    def _without(self, text: str, mask: str) -> str:
        for secret in self._in(text):
            text = text.replace(secret.placeholder, mask).replace(quote(secret.placeholder), mask)
        return text

    def _in(self, text: str) -> Iterator[_Asked]:
        """What is asked for in a text, as it is or in the form that an address has it (`| urlencode`)."""
        for number in re.findall(rf"{self._token}/(\d{{1,9}})(?:>|%3E)", text):
            secret = self._placeholders[int(number)] if int(number) < len(self._placeholders) else None
            if secret and (secret.placeholder in text or quote(secret.placeholder) in text):
                yield secret

    def _resolved(self, value: Any, missing: list[Diagnostic]) -> Any:
        if isinstance(value, Mapping):
            return {key: self._resolved(inner, missing) for key, inner in value.items()}
        if isinstance(value, (list, tuple)):
            return [self._resolved(inner, missing) for inner in value]
        if not self._holds(value):
            return value
        texts: dict[str, str] = {}
        for secret in self._in(value):
            text = self._value(secret, missing)
            texts |= {secret.placeholder: text, quote(secret.placeholder): quote(text, safe="")}
        # One pass: a secret that looks like a placeholder stays what it is.
        return re.sub("|".join(map(re.escape, texts)), lambda match: texts[match[0]], value) if texts else value

    def _value(self, secret: _Asked, missing: list[Diagnostic]) -> str:
        value = self._env.get(secret.name, secret.default)
        if value is None:
            hint = f"Set it (export {secret.name}=...), or give env_var() a default."
            message = f"the environment variable '{secret.name}' is not set"
            missing.append(Diagnostic("env-missing", message, hint, location=secret.place))
            return ""
        register_secret(value, MIN_LENGTH if secret.name.startswith(PREFIX) else MIN_LENGTH_OTHERS)
        if 0 < len(value.strip()) < MIN_LENGTH and secret.name not in _warned_names:
            _warned_names.add(secret.name)
            message = "the secret %s has fewer than %d characters and is not masked in the output"
            _log.warning(message, secret.name, MIN_LENGTH)
        return value


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, Mapping):
        for inner in value.values():
            yield from _texts(inner)
    elif isinstance(value, (list, tuple)):
        for inner in value:
            yield from _texts(inner)
    elif isinstance(value, str):
        yield value


class _Masks(dict[str, str]):
    def get(self, _: str, default: Any = None) -> Any:  # noqa: ARG002
        return MASK


# Variables whose secrets are too short to be masked: reported once.
_warned_names: set[str] = set()
