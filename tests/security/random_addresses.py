"""Random addresses of every kind of server that a target names: good ones, disguised ones, damaged ones."""

from __future__ import annotations

import random
from typing import Final

_SCHEMES: Final = (*["https", "http"] * 8, "HTTP", "Https", "ftp", "", "javascript", "http+unix", "h%74tp")
_SEPARATORS: Final = (*["://"] * 50, ":///", ":/", "//", ":\\\\", ":////", "://\t", ": //")
_USERS: Final = (
    *[""] * 90, "u@", "u:p@", "u:p@ss@", "good.example@", "good.example:443@", "u:p%40@", "good.example\\@",
    "good.example#@", "good.example?@", "good.example/@", "u:12/ss@", "u:12#ss@", "u:12?ss@",
)  # fmt: skip
_HOSTS: Final = (
    *["good.example", "evil.example", "catalog", "Good.Example", "a-b.c_d.example", "10.1.2.3", "127.0.0.1", "localhost", "[::1]", "[2001:DB8::0001]"] * 12,
    "127.1", "2130706433", "0x7f.0.0.1", "0x7f000001", "0177.0.0.1", "127.0.0.01", "1.2.3.256", "1.2.3.4.5", "1.2.3.4.",
    "example.1", "[::1]", "[2001:DB8::0001]", "[2001:db8:0:0::1]", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[::127.0.0.1]",
    "[fe80::1%eth0]", "[fe80::1%25eth0]", "[::1", "::1", "[good.example]", "[::1]evil.example", "LOCALHOST.", "good.example.",
    "good.example..", ".good.example", "a..b", "-bad.example", "bad-.example", "g\u043e\u043ed.example",
    "good\u3002example", "\uff47ood.example", "good.example\uff0fevil.example", "xn--gd-8ka.example", "good.example%2eevil.example",
    "good%00.evil.example", "%67ood.example", "good.example,evil.example", "good.example;evil.example", "good.example&evil.example",
    "good.example:80@evil.example", "", "*", "good!.example", "a" * 64 + ".example", ("a" * 60 + ".") * 5 + "example",
)  # fmt: skip
_PORTS: Final = (
    *[*[""] * 6, ":443", ":80", ":8443", ":8181", ":5432", ":9092", ":9083", ":1", ":65535"] * 6,
    ":0", ":65536", ":99999", ":080", ":", ":\u0663", ":1:2", ":80 ", ":+80", ":-1", ":8_0", ":0x50", ":http",
)  # fmt: skip
_PATHS: Final = (
    *["", "/", "/x", "/iceberg/main", "/x/", "/x?y=1"] * 10, "/x?y=http://good.example", "//evil.example", "//evil.example/token?x=http://good",
    "/@evil.example", "\\@evil.example", "?@evil.example", "#@evil.example", "/../..//evil.example", "/%2f%2fevil.example",
    "/http://evil.example", "?x=good.example/", "#", "/x;y=z", "/x y", "/\u00fc", "/[x]", "/{x}", "/x|y",
)  # fmt: skip
_ODD: Final = (
    " ", "\t", "\n", "\r", "\r\n", "\x0b", "\x0c", "\x00", "\x1f", "\x7f", "\x85", "\xa0", "\u2028", "\u200b", "\u202e",
    "\ufeff", "\xad", "\u2060", "\uff0f", "\uff0e", "\uff20", "\uff1a", "\uff03", "\u2100", "\u3002", "\u212a", "\u0131", "\u017f", "\xdf",
    "\\", "@", "#", "?", "/", "//", ":", "%", "[", "]", "%0a", "%40", "%2e", "%", "|", "^", "`", "{", "}", "<", ">", '"', "'", "*", "$", "&",
    "=", ";", ",", ".", "..", "-", "_", "~", "!", "(", ")", "+",
)  # fmt: skip
_DATABASES: Final = (
    *["/lake", "/lake?sslmode=verify-full", "/lake?ssl=true&currentSchema=x"] * 12, "", "/", "/lake?host=evil.example",
    "/lake?PGHOST=evil.example&PGPORT=1", "/lake?service=x", "/lake?port=1", "/lake?hostaddr=10.0.0.1", "/lake?%68ost=evil.example",
    "/a/b", "/lake#x", "/lake?password=x", "/lake?a=b;host=evil.example", "/lake?a=b&host", "/lake?HOST=evil.example",
)  # fmt: skip
# By kind: which settings of a target have such an address.
KINDS: Final = (*["web"] * 12, "postgres", "postgres", "kafka", "kafka")


def random_address(chance: random.Random, kind: str) -> str:
    """Return an address of a kind, or what somebody could take for one."""
    place = chance.choice(_USERS) + chance.choice(_HOSTS) + chance.choice(_PORTS)
    if kind == "web":
        text = chance.choice(_SCHEMES) + chance.choice(_SEPARATORS) + place + chance.choice(_PATHS)
    elif kind == "postgres":
        begin = chance.choice(
            ("jdbc:postgresql://",) * 30 + ("postgresql://", "jdbc:postgresql:", "JDBC:postgresql://")
        )
        text = begin + place + chance.choice(_DATABASES)
    else:
        text = ",".join(_listed(chance) for _ in range(chance.choice((1, 1, 1, 2, 3))))
    for _ in range(chance.choice((0, 0, 0, 0, 1, 2))):
        text = _damaged(chance, text)
    return text


def _listed(chance: random.Random) -> str:
    host = chance.choice(_USERS[:95]) + chance.choice(_HOSTS)
    port = chance.choice(_PORTS) or ":9092"
    return chance.choice(("",) * 20 + (" ", "SASL_SSL://", "http://")) + host + port


def _damaged(chance: random.Random, text: str) -> str:
    at = chance.randrange(len(text) + 1)
    how = chance.random()
    if how < 0.7:
        return text[:at] + chance.choice(_ODD) + text[at:]
    if how < 0.8:
        return text[:at] + text[at + 1 :]
    if how < 0.9:
        return text[:at] + text[at : at + 4] + text[at:]
    return text[:at] + text[at:].swapcase()
