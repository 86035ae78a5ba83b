"""A store that is asked for each object and each folder once: a look at a model reads some of them five times."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from engine.state.object_path import KeyedStore


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
