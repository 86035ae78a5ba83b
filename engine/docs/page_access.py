"""Who may read a served page: whoever has the link that the command printed, with its token.

All users of a machine reach a port of 127.0.0.1. The token is in the link once; the answer to it sets a cookie and
leads to the address without the token. Programs send it as `Authorization: Bearer`. Cookies do not know ports: the name
has the port, and the cookie of another process opens nothing.
"""

from __future__ import annotations

import hmac
import os
import re
import secrets
import stat
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from email.message import Message
from typing import TextIO
from urllib.parse import parse_qs

from engine.errors import UsageError
from engine.secrets.scrubber import register_secret

VARIABLE = "ENGINE_PAGE_TOKEN"
_TOKEN = re.compile(r"[A-Za-z0-9._~-]{22,200}")
_BYTES = 32
_MOST_FIELDS = 20
_OTHERS_READ = stat.S_IRGRP | stat.S_IROTH


@dataclass(frozen=True, slots=True)
class PageAccess:
    """The token of one server; nothing prints it by accident.

    `session`: what the cookie holds: it ends with the process, also where the token stays the same.
    """

    token: str = field(repr=False)
    session: str = field(repr=False)

    def link(self, address: str, fragment: str = "") -> str:
        return f"{address}?token={self.token}{fragment}"

    def admits(self, headers: Message, port: int) -> bool:
        """Whether a request's headers hold the token, or the cookie of this port."""
        name = f"{_cookie_name(port)}="
        cookies = [part.strip() for text in headers.get_all("Cookie") or () for part in text.split(";")]
        sessions = [cookie.removeprefix(name) for cookie in cookies if cookie.startswith(name)]
        schemes = [text.strip().partition(" ") for text in headers.get_all("Authorization") or ()]
        tokens = [token.strip() for scheme, _, token in schemes if scheme.lower() == "bearer"]
        return _is_among(self.session, sessions) or _is_among(self.token, tokens)

    def is_in(self, query: str) -> bool:
        try:
            return _is_among(self.token, parse_qs(query, max_num_fields=_MOST_FIELDS).get("token", ()))
        except ValueError:
            return False

    def cookie(self, port: int) -> str:
        """The header's value for a browser: no script reads the cookie, and no page of another site has it sent."""
        return f"{_cookie_name(port)}={self.session}; Path=/; HttpOnly; SameSite=Strict"


def page_access(env: Mapping[str, str] | None = None) -> PageAccess:
    """A new token, or that of ENGINE_PAGE_TOKEN, for programs that ask again and again.

    Raises UsageError: the variable holds no token.
    """
    given_token = (os.environ if env is None else env).get(VARIABLE, "")
    if given_token and not _TOKEN.fullmatch(given_token):
        message = f"{VARIABLE} must be 22 to 200 letters, digits and characters of .-_~"
        hint = f"Make one: {VARIABLE}=$(python3 -c 'import secrets; print(secrets.token_urlsafe(32))')"
        raise UsageError("usage", message, hint)
    register_secret(given_token)
    return PageAccess(given_token or secrets.token_urlsafe(_BYTES), secrets.token_urlsafe(_BYTES))


def others_read(stream: TextIO) -> bool:
    """Whether what is printed goes to a file that other users of the machine can read."""
    try:
        mode = os.fstat(stream.fileno()).st_mode
    except (OSError, ValueError):
        return False
    return stat.S_ISREG(mode) and bool(mode & _OTHERS_READ)


def _cookie_name(port: int) -> str:
    return f"headrace-{port}"


def _is_among(own: str, values: Sequence[str]) -> bool:
    digests = [hmac.compare_digest(own.encode(), value.encode("utf-8", "replace")) for value in values]
    return any(digests)
