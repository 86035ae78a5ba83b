"""A path in a bucket, with those operations of `pathlib.Path` that state is read and removed with.

A store that is asked for each object and each folder once: a look at a model reads some of them five times.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Protocol

from engine.state.blob_store import Store

_ANY_FOLDERS = "**"
_PIECES = re.compile(r"\[[^]]++]|\*|[^*\[]++|\[[^]]*+\Z")


class KeyedStore(Store, Protocol):
    @property
    def uri(self) -> str: ...

    def entries(self, prefix: str) -> tuple[tuple[str, bool], ...]:
        """The names directly under a prefix, in order, each with whether it is a folder."""

    def keys(self, prefix: str) -> tuple[str, ...]:
        """The keys of all objects under a prefix, without the prefix, in order."""

    def remove(self, keys: Iterable[str]) -> None:
        """Remove objects; those that are not there are no error."""

    def copy(self, key: str, to: str, /) -> bool:
        """Copy an object, without its content coming here; False: it is not there."""


@dataclass(frozen=True, slots=True, order=True)
class ObjectPath:
    """`key` is empty for the whole store; `listed_as` is what a listing has just shown, so that nobody asks again."""

    store: KeyedStore = field(compare=False, repr=False)
    key: str = ""
    listed_as: str = field(default="", compare=False, repr=False)

    @property
    def uri(self) -> str:
        return f"{self.store.uri}/{self.key}".rstrip("/")

    def __str__(self) -> str:
        return self.uri

    @property
    def name(self) -> str:
        return (self.key or self.store.uri).rpartition("/")[2]

    @property
    def suffix(self) -> str:
        stem, dot, end = self.name.rpartition(".")
        return dot + end if stem and end else ""

    @property
    def parent(self) -> ObjectPath:
        return ObjectPath(self.store, self.key.rpartition("/")[0])

    def __truediv__(self, name: str) -> ObjectPath:
        return ObjectPath(self.store, _joined(self.key, name))

    def with_name(self, name: str) -> ObjectPath:
        return self.parent / name

    def exists(self) -> bool:
        return self.is_file() or self.is_dir()

    def is_file(self) -> bool:
        return self.listed_as == "file" or (not self.listed_as and self.store.get(self.key) is not None)

    def is_dir(self) -> bool:
        return self.listed_as == "folder" or (not self.listed_as and bool(self.store.entries(self.key)))

    def is_symlink(self) -> bool:
        return False

    def read_bytes(self) -> bytes:
        content = self.store.get(self.key)
        if content is None:
            raise FileNotFoundError(self.uri)
        return content

    def read_text(self, encoding: str | None = None, errors: str | None = None) -> str:
        return self.read_bytes().decode(encoding or "utf-8", errors or "strict")

    def iterdir(self) -> Iterator[ObjectPath]:
        """See `StatePath`; a folder that is not there has nothing in it."""
        for name, folder in self.store.entries(self.key):
            yield ObjectPath(self.store, _joined(self.key, name), "folder" if folder else "file")

    def glob(self, pattern: str) -> Iterator[ObjectPath]:
        """See `StatePath`; a pattern without `**` is followed folder by folder, any other lists all there is."""
        parts = pattern.split("/")
        if _ANY_FOLDERS not in parts:
            yield from self._matching(parts)
            return
        key_pattern = _compiled(pattern)
        for key, kind in self._all():
            if key_pattern.fullmatch(key):
                yield ObjectPath(self.store, _joined(self.key, key), kind)

    def rglob(self, pattern: str) -> Iterator[ObjectPath]:
        return self.glob(f"{_ANY_FOLDERS}/{pattern}")

    def _matching(self, parts: list[str]) -> Iterator[ObjectPath]:
        first, *parts_below = parts
        name_pattern = _compiled(first)
        for name, folder in self.store.entries(self.key):
            if not name_pattern.fullmatch(name):
                continue
            path = ObjectPath(self.store, _joined(self.key, name), "folder" if folder else "file")
            if not parts_below:
                yield path
            elif folder:
                yield from path._matching(parts_below)

    def _all(self) -> Iterator[tuple[str, str]]:
        files = self.store.keys(self.key)
        folders = {above for key in files for above in _above(key)}
        yield from sorted([*((key, "file") for key in files), *((key, "folder") for key in folders)])

    def unlink(self, missing_ok: bool = False) -> None:
        if not missing_ok and not self.is_file():
            raise FileNotFoundError(self.uri)
        self.store.remove((self.key,))

    def rmdir(self) -> None: ...

    def remove(self) -> None:
        self.store.delete(self.key)

    def as_store(self) -> Store:
        return _Below(self)


@dataclass(frozen=True, slots=True)
class _Below:
    root: ObjectPath

    def get(self, key: str) -> bytes | None:
        return self.root.store.get(self._full(key))

    def put(self, key: str, content: bytes) -> None:
        self.root.store.put(self._full(key), content)

    def put_if_absent(self, key: str, content: bytes) -> bool:
        return self.root.store.put_if_absent(self._full(key), content)

    def age(self, key: str) -> float | None:
        return self.root.store.age(self._full(key))

    def list(self, prefix: str) -> tuple[str, ...]:
        return self.root.store.list(self._full(prefix))

    def delete(self, prefix: str) -> None:
        self.root.store.delete(self._full(prefix))

    def _full(self, key: str) -> str:
        return _joined(self.root.key, key)


def _joined(folder: str, name: str) -> str:
    return f"{folder}/{name}" if folder and name else folder or name


def _above(key: str) -> Iterable[str]:
    parts = key.split("/")[:-1]
    return ("/".join(parts[: depth + 1]) for depth in range(len(parts)))


@lru_cache(maxsize=64)
def _compiled(pattern: str) -> re.Pattern[str]:
    parts = ("(?:[^/]+/)*" if part == _ANY_FOLDERS else _name(part) + "/" for part in pattern.split("/"))
    return re.compile("".join(parts).removesuffix("/"), re.DOTALL)


def _name(pattern: str) -> str:
    pieces = _PIECES.findall(pattern)
    sets = (p.startswith("[") and p.endswith("]") for p in pieces)
    return "".join(
        p if is_set else "[^/]*" if p == "*" else re.escape(p) for p, is_set in zip(pieces, sets, strict=True)
    )


@dataclass(frozen=True, slots=True)
class ReadOnce:
    """A store as it was when it was first asked, for one thread; what is written is forgotten here."""

    store: KeyedStore
    _contents: dict[str, bytes | None] = field(default_factory=dict, repr=False)
    _entries: dict[str, tuple[tuple[str, bool], ...]] = field(default_factory=dict, repr=False)
    _names: dict[str, tuple[str, ...]] = field(default_factory=dict, repr=False)

    @property
    def uri(self) -> str:
        return self.store.uri

    def get(self, key: str) -> bytes | None:
        if key not in self._contents:
            folder, _, name = key.rpartition("/")
            listed = self._names.get(folder)
            self._contents[key] = None if listed is not None and name not in listed else self.store.get(key)
        return self._contents[key]

    def entries(self, prefix: str) -> tuple[tuple[str, bool], ...]:
        if prefix not in self._entries:
            self._entries[prefix] = self.store.entries(prefix)
            self._names[prefix] = tuple(name for name, _ in self._entries[prefix])
        return self._entries[prefix]

    def list(self, prefix: str) -> tuple[str, ...]:
        self.entries(prefix)
        return self._names[prefix]

    def keys(self, prefix: str) -> tuple[str, ...]:
        return self.store.keys(prefix)

    def age(self, key: str) -> float | None:
        return self.store.age(key)

    def put(self, key: str, content: bytes) -> None:
        self._forget()
        self.store.put(key, content)

    def put_if_absent(self, key: str, content: bytes) -> bool:
        self._forget()
        return self.store.put_if_absent(key, content)

    def delete(self, prefix: str) -> None:
        self._forget()
        self.store.delete(prefix)

    def remove(self, keys: Iterable[str]) -> None:
        self._forget()
        self.store.remove(keys)

    def copy(self, key: str, to: str) -> bool:
        self._forget()
        return self.store.copy(key, to)

    def _forget(self) -> None:
        self._contents.clear()
        self._entries.clear()
        self._names.clear()
