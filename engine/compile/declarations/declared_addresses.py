"""Addresses in a target: what programs could read differently is reported, before and after rendering."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from engine.addresses import BEGIN as POSTGRES
from engine.addresses import (
    AddressError,
    WebAddress,
    is_open,
    kafka_server,
    postgres_address,
    split_addresses,
    web_address,
)
from engine.compile.templates.secret_settings import SecretSettings
from engine.project.yaml_section import UNKNOWN, Section
from engine.secrets.secret_places import MARK

Parse = Callable[[str], object]
_WEB: Final = "Write https://<host>:<port>/<path> in ASCII; a host in other letters in punycode (xn--..)."
_LIST: Final = (
    "Write <host>:<port>, with commas between several, in ASCII; a host in other letters in punycode (xn--..)."
)
_POSTGRES: Final = f"Write {POSTGRES}<host>:<port>/<database>, and set jdbc.user and jdbc.password."
_DATABASE: Final = f"Write {POSTGRES}<host>:<port>/<database>, and set username and password."
_REST: Final = f"{_WEB} A login is set by credential or token."
_STORE: Final = f"{_WEB} A login is set by access_key_id and secret_access_key."
# How templates begin and end.
_TEMPLATES: Final = (("{{", "}}"), ("{%", "%}"))
_ENDS: Final = ("uri", "url", "endpoint")


def _with_login(text: str) -> object:
    return web_address(text, login=True)


def _brokers(text: str) -> object:
    return [kafka_server(part) for part in split_addresses(text)]


def _without_query(text: str) -> WebAddress:
    address = web_address(text)
    if address.query:
        raise AddressError("contains ?, and paths are added behind it")
    return address


def _store(text: str) -> object:
    if "_" in _without_query(text).server.host:
        raise AddressError("has a host with an underscore, which the AWS SDK rejects")
    return text


# By block: its addresses, how each is parsed and what to write.
_BLOCKS: Final[Mapping[str, tuple[tuple[str, Parse, str], ...]]] = {
    "connections": (("bootstrap_servers", _brokers, _LIST), ("uri", postgres_address, _DATABASE)),
    "schema_registries": (("url", _with_login, _WEB),),
    "openlineage": (("url", _with_login, _WEB),),
    "alerts": (("url", web_address, _WEB),),
    "s3": (("endpoint", _store, _STORE),),
}


def check_block(kind: str, part: Section, secrets: SecretSettings | None) -> None:
    """Report the addresses of a block if clients could not connect to what they seem to name."""
    for key, parse, hint in _BLOCKS[kind]:
        if (value := part.child(key)) is not None:
            for item in value.items() if isinstance(value.value, list) else (value,):
                _check(item, parse, hint, secrets, key)


def check_catalog(kind: str, part: Section, secrets: SecretSettings | None) -> None:
    """Report the addresses of a catalog in the same way."""
    for key, value in part.mapping():
        if not isinstance(value.value, str):
            continue
        if key == "uri" and kind == "jdbc":
            _check(value, postgres_address, _POSTGRES, secrets, key)
        elif key == "uri":
            _check(value, _without_query, _REST, secrets, key)
        elif key == "s3.endpoint":
            _check(value, _store, _STORE, secrets, key)
        elif key == "oauth2-server-uri" or _is_another(key, value.value):
            _check(value, web_address, _WEB, secrets, key)


def is_open_template(text: str) -> bool:
    """Whether credentials for an address can be read on their way; of a host that is a template nothing is known."""
    for begin, end in _TEMPLATES:
        first, *rest = text.split(begin)
        text = "".join((first, *(f"{MARK}{part.partition(end)[2]}" for part in rest)))
    return is_open(text)


def _is_another(key: str, value: str) -> bool:
    return key.rpartition(".")[2].rpartition("-")[2] in _ENDS and "://" in value


def _check(part: Section, parse: Parse, hint: str, secrets: SecretSettings | None, key: str) -> None:
    text = part.value
    if text is UNKNOWN or not isinstance(text, str) or not text or _has_template(text):
        return
    marked = secrets.marked(text) if secrets else text
    if marked != text and marked.startswith(MARK):
        return
    # A secret may be a part of a host, or a port.
    texts = [marked.replace(MARK, part) for part in ("x", "1")] if marked != text else [text]
    if (fault := _fault(texts, parse)) is not None:
        part.report("bad-value", f"'{key}' {fault}", hint)


def _has_template(text: str) -> bool:
    return any(begin in text for begin, _ in _TEMPLATES)


def _fault(texts: list[str], parse: Parse) -> AddressError | None:
    fault = None
    for text in texts:
        try:
            parse(text)
        except AddressError as error:
            fault = error
        else:
            return None
    return fault
