"""Random damage to answers and artifacts: to what they say, to their bytes, and to how they are sent."""

from __future__ import annotations

import gzip
import json
import random
import sys
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler
from typing import Any

_ODD: tuple[Any, ...] = (
    None, True, False, 0, 5, -1, 2**31, 2**63, 2**64, 10**40, 1.5, 1e308, "", "x", " ", "\0", "\x1b[2J", "..", "../..", "/etc/passwd",
    "file:///dev/zero", "s3://bucket/x", "http://127.0.0.1:9/x", "org.example.Run", "subprocess.Popen", "é", "\u202e", "\ud800",
    "x" * 100_000, "9" * 5_000, [], {}, [[]], {"": {}}, [None] * 1_000, {"a": 1}, "{{ 1 }}", "NaN", "-0",
)  # fmt: skip
_MOST = 1 << 23
_STATUSES = (100, 200, 201, 204, 206, 301, 302, 304, 307, 400, 401, 403, 404, 409, 419, 429, 500, 503, 599, 999)


def damaged_json(chance: random.Random, value: Any) -> bytes:
    """A JSON text with one to four values changed."""
    made = json.loads(json.dumps(value))
    for _ in range(chance.randint(1, 4)):
        # A part that is there three thousand times may have got a long text.
        made = _changed(chance, made) if _size(made) <= _MOST else value
    made = made if _size(made) <= _MOST else value
    limit = sys.getrecursionlimit()
    try:
        # Up to four nestings inside each other.
        sys.setrecursionlimit(10 * limit)
        return json.dumps(made, ensure_ascii=chance.random() < 0.9).encode("utf-8", "surrogatepass")
    finally:
        sys.setrecursionlimit(limit)


def _changed(chance: random.Random, value: Any) -> Any:
    """The value with one part changed, at a random depth."""
    inner = list(value) if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
    if inner and chance.random() < 0.85:
        key = chance.choice(list(inner))
        act = chance.random()
        if act < 0.12:
            del value[key]
        elif act < 0.2 and isinstance(value, dict):
            value[chance.choice(["", "x", "nodes", "name", "type", "config"])] = value.pop(key)
        elif act < 0.28 and isinstance(value, list):
            value.extend([value[key]] * _times(value[key], chance.choice([1, 10, 3_000])))
        else:
            value[key] = _changed(chance, value[key])
        return value
    act = chance.random()
    if act < 0.1:
        return _nested(value, chance.choice([1, 50, 500, 900]))
    if act < 0.2:
        return [value]
    if act < 0.3 and isinstance(value, str):
        return value * _times(value, chance.choice([0, 2, 1_000]))
    return json.loads(json.dumps(chance.choice(_ODD)))


def _times(value: Any, times: int) -> int:
    """As often, or once: the damage itself is not to take the memory that its readers may."""
    return times if _size(value) * times <= _MOST else 1


def _size(value: Any) -> int:
    """About the length of its JSON."""
    size, waiting = 0, [value]
    while waiting:
        part = waiting.pop()
        size += len(part) if isinstance(part, str) else 1
        waiting += [*part, *part.values()] if isinstance(part, dict) else part if isinstance(part, list) else ()
    return size


def _nested(value: Any, depth: int) -> Any:
    for _ in range(depth):
        value = [value] if depth % 2 else {"a": value}
    return value


def damaged_bytes(chance: random.Random, content: bytes) -> bytes:
    """The bytes with some of them flipped, gone, or again."""
    made = bytearray(content)
    for _ in range(chance.randint(1, 8)):
        at = chance.randrange(len(made) + 1)
        act = chance.random()
        if act < 0.3 and made:
            made[at % len(made)] = chance.randrange(256)
        elif act < 0.5:
            del made[at : at + chance.choice([1, 10, 1_000])]
        elif act < 0.7:
            made[at:at] = made[at : at + 200] * chance.choice([1, 5, 500])
        elif act < 0.85:
            made[at:at] = chance.choice(
                [b"{", b"[", b'"', b"}", b"\0", b"\xff", b"<", b"&a;", b"[" * 2_000, b"[]," * 50_000]
            )
        else:
            del made[at:]
    return bytes(made[:_MOST])


def damaged_reply(chance: random.Random, reply: Any) -> Callable[[BaseHTTPRequestHandler], None]:
    """An answer whose content, status, headers or pace do not fit."""
    content = reply if isinstance(reply, bytes) else json.dumps(reply).encode()
    act = chance.random()
    if act < 0.55 and not isinstance(reply, bytes):
        content = damaged_json(chance, reply)
    elif act < 0.8:
        content = damaged_bytes(chance, content)
    status = 200 if chance.random() < 0.8 else chance.choice(_STATUSES)
    headers = {"Content-Type": "application/json", "Content-Length": str(len(content))}
    act = chance.random()
    if act < 0.03:
        headers["Content-Length"] = chance.choice(["-1", "x", "99999999999", "0", "1"])
    elif act < 0.06:
        headers["Content-Encoding"] = chance.choice(["gzip", "br", "deflate", "gzip, gzip", "identity"])
    elif act < 0.09:
        content = gzip.compress(content)
        headers |= {"Content-Encoding": "gzip", "Content-Length": str(len(content))}
    elif act < 0.11:
        headers = {"Transfer-Encoding": "chunked"}
    elif act < 0.13:
        headers["Location"] = "http://127.0.0.1:9/elsewhere"
    elif act < 0.15:
        headers |= {f"X-{number}": "x" * 100 for number in range(200)}
    elif act < 0.16:
        headers["X"] = "x" * 100_000
    slow = chance.random() < 0.01

    def write(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(status)
        for key, value in headers.items():
            handler.send_header(key, value)
        handler.end_headers()
        if not slow:
            handler.wfile.write(content)
            return
        import time

        for at in range(min(len(content), 40)):
            handler.wfile.write(content[at : at + 1])
            handler.wfile.flush()
            time.sleep(0.05)

    return write
