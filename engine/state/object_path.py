"""A path in a bucket, with those operations of `pathlib.Path` that state is read and removed with."""

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
    """A store of objects; folders are the parts of their keys between slashes."""

    @property
    def uri(self) -> str:
        """The address of the store, as Hadoop takes it."""

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
    """An object, or all that is under a prefix.

    Attributes:
        store: that it is in.
        key: in the store; empty: the whole store.
        found: `file` or `folder` if a listing has just shown it, so that nobody asks again.
    """

    store: KeyedStore = field(compare=False, repr=False)
    key: str = ""
    found: str = field(default="", compare=False, repr=False)

    @property
    def uri(self) -> str:
        """As Hadoop takes it: `s3a://bucket/key`."""
        return f"{self.store.uri}/{self.key}".rstrip("/")

    def __str__(self) -> str:
        return self.uri

    @property
    def name(self) -> str:
        """See `StatePath`."""
        return (self.key or self.store.uri).rpartition("/")[2]

    @property
    def suffix(self) -> str:
        """See `StatePath`."""
        stem, dot, end = self.name.rpartition(".")
        return dot + end if stem and end else ""

    @property
    def parent(self) -> ObjectPath:
        """See `StatePath`."""
        return ObjectPath(self.store, self.key.rpartition("/")[0])

    def __truediv__(self, name: str) -> ObjectPath:
        return ObjectPath(self.store, _joined(self.key, name))

    def with_name(self, name: str) -> ObjectPath:
        """See `StatePath`."""
        return self.parent / name

    def exists(self) -> bool:
        """See `StatePath`."""
        return self.is_file() or self.is_dir()

    def is_file(self) -> bool:
        """See `StatePath`."""
        return self.found == "file" or (not self.found and self.store.get(self.key) is not None)

    def is_dir(self) -> bool:
        """See `StatePath`."""
        return self.found == "folder" or (not self.found and bool(self.store.entries(self.key)))

    def is_symlink(self) -> bool:
        """See `StatePath`."""
        return False

    def read_bytes(self) -> bytes:
        """See `StatePath`."""
        content = self.store.get(self.key)
        if content is None:
            raise FileNotFoundError(self.uri)
        return content

    def read_text(self, encoding: str | None = None, errors: str | None = None) -> str:
        """See `StatePath`."""
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
        fits = _compiled(pattern)
        for key, kind in self._all():
            if fits.fullmatch(key):
                yield ObjectPath(self.store, _joined(self.key, key), kind)

    def rglob(self, pattern: str) -> Iterator[ObjectPath]:
        """See `StatePath`."""
        return self.glob(f"{_ANY_FOLDERS}/{pattern}")

    def _matching(self, parts: list[str]) -> Iterator[ObjectPath]:
        first, *rest = parts
        fits = _compiled(first)
        for name, folder in self.store.entries(self.key):
            if not fits.fullmatch(name):
                continue
            path = ObjectPath(self.store, _joined(self.key, name), "folder" if folder else "file")
            if not rest:
                yield path
            elif folder:
                yield from path._matching(rest)

    def _all(self) -> Iterator[tuple[str, str]]:
        """All below it, files and folders, by their keys from here."""
        files = self.store.keys(self.key)
        folders = {above for key in files for above in _above(key)}
        yield from sorted([*((key, "file") for key in files), *((key, "folder") for key in folders)])

    def unlink(self, missing_ok: bool = False) -> None:
        """See `StatePath`."""
        if not missing_ok and not self.is_file():
            raise FileNotFoundError(self.uri)
        self.store.remove((self.key,))

    def rmdir(self) -> None:
        """See `StatePath`."""

    def remove(self) -> None:
        """Remove the object, or all that is under the prefix."""
        self.store.delete(self.key)

    def as_store(self) -> Store:
        """The store whose keys begin here."""
        return _Below(self)


@dataclass(frozen=True, slots=True)
class _Below:
    """What is below a prefix, as a store."""

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
    """A pattern of names with `/` between them, where `**` is any folders, none of them included."""
    parts = ("(?:[^/]+/)*" if part == _ANY_FOLDERS else _name(part) + "/" for part in pattern.split("/"))
    return re.compile("".join(parts).removesuffix("/"), re.DOTALL)


def _name(pattern: str) -> str:
    """The expression of a pattern with `*` and sets of characters."""
    pieces = _PIECES.findall(pattern)
    sets = (p.startswith("[") and p.endswith("]") for p in pieces)
    return "".join(
        p if is_set else "[^/]*" if p == "*" else re.escape(p) for p, is_set in zip(pieces, sets, strict=True)
    )
