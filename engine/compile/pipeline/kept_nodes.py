"""The bytes of the nodes in the cache, one behind the other: a node is read from its place when it is looked at."""

from __future__ import annotations

import mmap
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec

from engine.bounds.regular_file import MOST_OF_A_CACHE, open_regular

if TYPE_CHECKING:
    from engine.compile.artifacts.node_json import Buffer, Encoded

# Before the head: its length.
_LENGTH_BYTES = 8
# Of a model are some 15 KB; they are not read at once.
_MOST_BYTES = 1 << 32
_Number = Annotated[int, msgspec.Meta(ge=0)]


class NodePlace(msgspec.Struct, frozen=True, array_like=True):
    """Where a node is: the offset, the lengths of its JSON and of its entry in manifest.json, which follows it.

    `depends_on`: ids of the nodes it names; `key` changes with everything that is written of the node.
    """

    depends_on: tuple[str, ...]
    key: str
    start: _Number
    json: _Number
    record: _Number

    def json_in(self, data: Buffer) -> memoryview:
        return memoryview(data)[self.start : self.start + self.json]

    def record_in(self, data: Buffer) -> memoryview:
        return memoryview(data)[self.start + self.json : self.start + self.json + self.record]


def read_kept(path: Path) -> tuple[memoryview, memoryview]:
    """Return the head of a cache and the bytes of its nodes; raise OSError, or ValueError if it is too short."""
    with open_regular(path, _MOST_BYTES) as file:
        whole = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
    end = _LENGTH_BYTES + int.from_bytes(whole[:_LENGTH_BYTES])
    if end > min(len(whole), MOST_OF_A_CACHE):
        raise ValueError(path.name)
    return whole[_LENGTH_BYTES:end], whole[end:]


def content_of(head: bytes, nodes: Iterable[Buffer]) -> list[Buffer]:
    """The content of a cache."""
    return [len(head).to_bytes(_LENGTH_BYTES), head, *nodes]


def place_nodes(
    ids: Iterable[str],
    fresh: Mapping[str, tuple[Encoded, str]],
    places: Mapping[str, NodePlace],
    data: Buffer,
) -> tuple[dict[str, NodePlace], list[Buffer]]:
    """Return where nodes will be, and their bytes.

    `ids` are in the order of the manifest; `fresh` are new ones, each with its key; the others have `places` in `data`.
    """
    moved: dict[str, NodePlace] = {}
    content: list[Buffer] = []
    at = 0
    for i in ids:
        if i in fresh:
            node, key = fresh[i]
            depends_on, json, record = node.depends_on, memoryview(node.json), memoryview(node.record)
        else:
            old = places[i]
            depends_on, key, json, record = old.depends_on, old.key, old.json_in(data), old.record_in(data)
        moved[i] = NodePlace(depends_on, key, at, len(json), len(record))
        content += (json, record)
        at += len(json) + len(record)
    return moved, content
