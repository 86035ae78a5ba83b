"""Credentials in the options and addresses of sources: what certainly is one is rejected, what may be one is masked.

A value is judged by its key (`password`, `fs.s3a.access.key`) and, where it is an address, by its parts
(`s3a://key:secret@bucket`, `jdbc:..;password=..`, `?sig=..`). Credentials are settings of a target's connections.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final
from urllib.parse import unquote

from engine.secrets.scrubber import MASK, scrub

# Keys are compared without dots, dashes and underscores, in lower case.
_CERTAIN: Final = re.compile(
    r"password|passwd|passphrase|secret|credential|jaas|accesskey|privatekey|apikey|accountkey|sharedkey|encryptionkey"
    r"|signature$|^sig$|^pwd$|userpwd$|^pass$|^token$"
    r"|(?:access|auth|bearer|session|security|sas|refresh|api|oauth|id|client|personal)tokens?(?:$|id|value|fixed)"
)
_POSSIBLE: Final = re.compile(
    r"pass|pwd|secret|cred|token|auth|signature|sig$|sas|key|login|licen[sc]e|cookie|jwt|session"
)
# Options of Spark's own readers, and of many others, that only look like it.
_PLAIN: Final = re.compile(r"^(?:keyspace|keydeserializer|recordkey|primarykey|partitionkey|sortkey|passthrough)\w*$")
_SEPARATORS: Final = re.compile(r"[^a-z0-9]+")
# A text that is an address: it begins with a scheme, or with the first of several pairs.
_ADDRESS: Final = re.compile(r"\s*[A-Za-z][A-Za-z0-9+.-]*:\S|\s*[A-Za-z]\w{0,80}=[^;]*;")
_ADDRESS_KEY: Final = re.compile(r"(?:path|location|url|uri|dsn|endpoint|address|connectionstring|options)$")
_AUTHORITY: Final = re.compile(r"(?<=://)[^/?#;\s]*")
_PORT: Final = re.compile(r"\d{0,5}")
_PAIR: Final = re.compile(r"(?:^|(?<=[?&;,(\s]))([^=&;,()\s?]{1,80})=")
_VALUE_END: Final = re.compile(r"[&;)\s]|\Z")
# How far behind a host the rest of a secret with a slash in it is looked for.
_MOST_OF_A_SECRET: Final = 1000
# Oracle writes user/password@//host.
_ORACLE: Final = re.compile(r"(?i)(?<=\bjdbc:oracle:)(\w{1,20}:)[^/@\s]{0,200}/([^@\s]{1,200})(?=@)")
_USERS: Final = ("user", "username")
_WEB: Final = ("http", "https", "ftp", "ftps", "sftp")
# What `identified` puts behind a masked text.
_DIGEST: Final = re.compile(r" #[0-9a-f]+$")
# Options that say which data is read, by the last word of their key; the others say how.
_WHERE: Final = (
    "url", "uri", "path", "location", "endpoint", "host", "hosts", "port", "server", "servers", "database", "db",
    "dbtable", "table", "query", "keyspace", "collection", "bucket", "account", "project", "dataset", "namespace",
    "region", "index", "queue", "stream", "subscription", "schema", "catalog", "warehouse", "instance",
)  # fmt: skip


def is_credential(key: str) -> bool:
    return bool(_CERTAIN.search(_squashed(key)))


def may_be_credential(key: str) -> bool:
    squashed = _squashed(key)
    return bool(_CERTAIN.search(squashed) or (_POSSIBLE.search(squashed) and not _PLAIN.match(squashed)))


def in_address(text: str, key: str = "") -> bool:
    """Whether an address holds a user with a password, or a parameter that is a credential."""
    if not _is_address(text, key):
        return False
    if _ORACLE.search(text) or any(_users(text)):
        return True
    return any(is_credential(name) and start < end for name, start, end in _pairs(text))


def masked(text: str, key: str = "") -> str:
    """The text with whatever in it may be a credential masked, for people and artifacts."""
    if not _is_address(text, key):
        return text
    text = _without(_ORACLE.sub(rf"\g<1>{MASK}", text), [(start, end) for start, _, end in _users(text)])
    return _without(text, [(start, end) for name, start, end in _pairs(text) if may_be_credential(name)])


def masked_options(options: Mapping[str, str]) -> dict[str, str]:
    return {key: MASK if may_be_credential(key) else masked(value, key) for key, value in options.items()}


def shown_setting(value: Any, key: str = "") -> Any:
    if isinstance(value, Mapping) and key == "options":
        return {k: MASK if may_be_credential(str(k)) else shown_setting(v, str(k)) for k, v in value.items()}
    if isinstance(value, Mapping):
        return {k: shown_setting(v, str(k)) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(shown_setting(item, key) for item in value)
    return masked(value, key) if isinstance(value, str) else value


def identified(text: str, key: str = "") -> str:
    """A text as facts keep it: masked, with a digest that distinguishes one masked text from another."""
    clean = MASK if may_be_credential(key) else masked(text, key)
    return text if clean == text else f"{clean} #{_digest(text)}"


def without_digest(text: str) -> str:
    """A text of `identified` without its digest, by which a short credential could be guessed."""
    return _DIGEST.sub("", text) if MASK in text else text


def data_digest(options: Mapping[str, str]) -> str:
    """A digest of the options that say which data is read, without the credentials in them; empty if there are none.

    Another password leaves it as it is; another database, host or table does not. An address that is a secret as a
    whole counts as it is; only its digest leaves this function.
    """
    location_options = {key.lower(): _without_secrets(value, key) for key, value in options.items() if _says_where(key)}
    return (
        _digest("\n".join(f"{key}={value}" for key, value in sorted(location_options.items())))
        if location_options
        else ""
    )


def credentials_of(options: Mapping[str, str]) -> Iterator[str]:
    for key, value in options.items():
        if is_credential(key):
            yield value
        elif _is_address(value, key):
            yield from _parts(value)


def _parts(text: str) -> Iterator[str]:
    secrets = [match[2] for match in _ORACLE.finditer(text)]
    secrets += [text[password:end] for _, password, end in _users(text)]
    secrets += [text[start:end] for name, start, end in _pairs(text) if is_credential(name)]
    for part in secrets:
        yield from dict.fromkeys((part, unquote(part)))


def _says_where(key: str) -> bool:
    words = re.sub(r"([a-z0-9])([A-Z])", r"\1.\2", key).lower()
    return _SEPARATORS.split(words)[-1] in _WHERE and not is_credential(key)


def _without_secrets(text: str, key: str) -> str:
    """An address without user, password and tokens, also where only the environment knows that something is secret."""
    text = masked(text, key)
    text = _without(text, [(start, end) for name, start, end in _pairs(text) if name.lower() in _USERS])
    clean = scrub(text)
    return text if clean == MASK else clean


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:16]


def _squashed(key: str) -> str:
    return _SEPARATORS.sub("", key.lower())


def _is_address(text: str, key: str) -> bool:
    if "@" not in text and "=" not in text:
        return False
    return bool(_ADDRESS.match(text) or _ADDRESS_KEY.search(_squashed(key)))


def _users(text: str) -> Iterator[tuple[int, int, int]]:
    """Where each user, password and end of both before a host are; those without a password are not secrets.

    A secret with a slash, `?` or `#` in it ends the authority too early: what follows the colon is not a port then.
    """
    for match in _AUTHORITY.finditer(text):
        start, inside = match.start(), match[0].rfind("@")
        end = start + inside
        if inside < 0:
            end = -1 if _is_host(match[0]) else text.find("@", match.end(), match.end() + _MOST_OF_A_SECRET)
        if end < 0:
            continue
        user, colon, password = text[start:end].partition(":")
        # abfss://container@account has no secret; a web address with a user only has a token.
        scheme = text[max(0, start - 20) : start - 3].rpartition(":")[2].lower()
        if password or (scheme in _WEB and user):
            yield start, start + len(user) + 1 if colon else start, end


def _is_host(authority: str) -> bool:
    ports = (
        part.rpartition("]")[2].rpartition(":")[2] for part in authority.split(",") if ":" in part.rpartition("]")[2]
    )
    return all(map(_PORT.fullmatch, ports))


def _pairs(text: str) -> Iterator[tuple[str, int, int]]:
    """The name of each parameter, and where its value begins and ends: behind its brace, or before what separates."""
    # The next of each kind is looked for once, not again by each parameter before it: a long text may have thousands.
    separator = brace = -1
    for match in _PAIR.finditer(text):
        start = match.end()
        if text.startswith("{", start) and brace < start:
            closing_brace = text.find("}", start)
            brace = closing_brace if closing_brace >= 0 else len(text)
        if text.startswith("{", start) and brace < len(text):
            yield unquote(match[1]), start, brace + 1
            continue
        if separator < start and (end := _VALUE_END.search(text, start)):
            separator = end.start()
        yield unquote(match[1]), start, separator


def _without(text: str, spans: list[tuple[int, int]]) -> str:
    pieces, at = [], 0
    for start, end in sorted(spans):
        if start < end and end > at:
            pieces += [text[at:start], MASK] if start >= at else []
            at = end
    return "".join((*pieces, text[at:]))
