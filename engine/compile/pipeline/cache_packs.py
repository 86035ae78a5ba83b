"""The files in which the cache keeps nodes, one behind the other: a node is read from its place when it is looked at.

Each compilation writes what is new to a pack of its own, takes small packs and packs of mostly old nodes up into
it, and leaves large ones alone: after one edit a few kilobytes are written, not the whole project.
"""

from __future__ import annotations

import mmap
import re
import secrets
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec

if TYPE_CHECKING:
    from engine.compile.artifacts.node_json import Encoded

SUFFIX = ".pack"
_NAME = re.compile(r"[\w-]+\.[0-9a-f]+\.pack", re.ASCII)
# Smaller packs, and those of which less than half is in use, are taken up into the next one.
_SMALL = 4_000_000


_Number = Annotated[int, msgspec.Meta(ge=0)]


class PackPlace(msgspec.Struct, frozen=True, array_like=True):
    """Where a node is: the pack, the offset, the lengths of its JSON and of its record, which follows it.

    Attributes:
        depends_on: ids of the nodes it names.
        key: changes with everything that is written of the node.
    """

    depends_on: tuple[str, ...]
    key: str
    pack: _Number
    start: _Number
    json: _Number
    record: _Number


@dataclass(frozen=True, slots=True)
class Pack:
    """An open pack: its name and its bytes."""

    name: str
    data: memoryview

    def json(self, place: PackPlace) -> memoryview:
        """A node."""
        return self.data[place.start : place.start + place.json]

    def record(self, place: PackPlace) -> memoryview:
        """Its entry in manifest.json."""
        start = place.start + place.json
        return self.data[start : start + place.record]


def opened(folder: Path, names: Iterable[tuple[str, int]]) -> tuple[Pack, ...]:
    """The packs of some names and sizes.

    Raises:
        OSError: one is not there or has another size.
    """
    packs = []
    for name, size in names:
        if not _NAME.fullmatch(name):
            raise OSError(name)
        with (folder / name).open("rb") as file:
            data = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)) if size else memoryview(b"")
        if len(data) != size:
            raise OSError(name)
        packs.append(Pack(name, data))
    return tuple(packs)


def all_within(places: Iterable[PackPlace], packs: Sequence[Pack]) -> bool:
    """Whether places are in some packs."""
    sizes = [len(pack.data) for pack in packs]
    return all(p.pack < len(sizes) and p.start + p.json + p.record <= sizes[p.pack] for p in places)


def repacked(
    packs: Sequence[Pack], places: Mapping[str, PackPlace], fresh: Mapping[str, tuple[Encoded, str]]
) -> tuple[list[Pack], dict[str, PackPlace], list[memoryview | bytes]]:
    """Where all nodes are once the new ones are written: the packs that stay, all places, the new pack's content.

    Args:
        packs: the open ones.
        places: of the nodes that are in one of them.
        fresh: new nodes, each with its key.
    """
    used = [0] * len(packs)
    for i, place in places.items():
        if i not in fresh:
            used[place.pack] += place.json + place.record
    stay = [len(p.data) >= _SMALL and used[n] * 2 >= len(p.data) for n, p in enumerate(packs)]
    kept = [pack for pack, stays in zip(packs, stay, strict=True) if stays]
    numbers = {n: sum(stay[:n]) for n in range(len(packs)) if stay[n]}
    content: list[memoryview | bytes] = []
    moved: dict[str, PackPlace] = {}
    at = 0
    for i, depends_on, key, json, record, stood in _all(packs, places, fresh):
        if stood is not None and stood.pack in numbers:
            moved[i] = PackPlace(depends_on, key, numbers[stood.pack], stood.start, stood.json, stood.record)
            continue
        moved[i] = PackPlace(depends_on, key, len(kept), at, len(json), len(record))
        content += (json, record)
        at += len(json) + len(record)
    return kept, moved, content


_Row = tuple[str, tuple[str, ...], str, memoryview, memoryview, PackPlace | None]


def _all(
    packs: Sequence[Pack], places: Mapping[str, PackPlace], fresh: Mapping[str, tuple[Encoded, str]]
) -> Iterator[_Row]:
    for i, (node, key) in fresh.items():
        yield i, node.depends_on, key, memoryview(node.json), memoryview(node.record), None
    for i, place in places.items():
        if i not in fresh:
            pack = packs[place.pack]
            yield i, place.depends_on, place.key, pack.json(place), pack.record(place), place


def new_name(stem: str) -> str:
    """A name that no pack has had."""
    return f"{stem}.{secrets.token_hex(6)}{SUFFIX}"


def remove_others(folder: Path, stem: str, names: Iterable[str]) -> None:
    """Remove the packs of a target that are no longer in use, and what killed processes left half written."""
    kept = set(names)
    for path in folder.glob(f"{stem}.*{SUFFIX}*"):
        if path.name not in kept:
            with suppress(OSError):
                path.unlink()
