"""A compiled model as JSON, for the cache and other processes: facts only, as a tree is as slow to load as to parse."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from engine.compile.artifacts.dbt_manifest import About, node_dict
from engine.compile.nodes.exposure import Exposure
from engine.compile.nodes.manifest import DataTest, Model, Node, Source
from engine.compile.nodes.sink import Sink
from engine.compile.nodes.unit_test_steps import UnitTest
from engine.errors import Diagnostic, ProjectError

Buffer = bytes | memoryview | msgspec.Raw


def plain_value(value: Any) -> Any:
    """Kinds of text that msgspec does not take for text; of JSON, what it says."""
    if isinstance(value, msgspec.Raw):
        return msgspec.json.decode(value)
    if isinstance(value, str):
        return str.__str__(value)
    raise NotImplementedError(type(value))


_ENCODER = msgspec.json.Encoder(enc_hook=plain_value)
_KINDS: Mapping[str, type] = {
    "model": Model,
    "source": Source,
    "test": DataTest,
    "unit_test": UnitTest,
    "exposure": Exposure,
    "sink": Sink,
}
_DECODERS: Mapping[str, Any] = {name: msgspec.json.Decoder(kind) for name, kind in _KINDS.items()}


@dataclass(frozen=True, slots=True)
class Encoded:
    id: str
    depends_on: tuple[str, ...]
    json: msgspec.Raw
    record: msgspec.Raw


@dataclass(frozen=True, slots=True)
class CompiledEntry:
    """A compiled model and its tests.

    `given` is what it gives to those that read it, as JSON; `nodes` are the model, then its tests. `reads` are the ids
    of everything whose columns it was compiled against, `mentions` of everything else that its tests name. `env` has
    digests of the environment variables that its templates read, "" for one that is not set. `certain`: reading the
    same again would give the same; `repeatable`: and without an error.
    """

    given: msgspec.Raw
    problems: tuple[Diagnostic, ...]
    nodes: tuple[Encoded, ...]
    reads: tuple[str, ...]
    mentions: tuple[str, ...]
    env: Mapping[str, str]
    certain: bool
    repeatable: bool


def encoded(node: Node, about: About) -> Encoded:
    depends_on = () if isinstance(node, Source) else node.depends_on
    return Encoded(node.id, depends_on, to_json(node), to_json(node_dict(node, about)))


def to_json(value: Any) -> msgspec.Raw:
    """A record as JSON; half a surrogate pair, which has no UTF-8 form, becomes a question mark."""
    try:
        return msgspec.Raw(_ENCODER.encode(value))
    except UnicodeEncodeError:
        text = json.dumps(_whole(msgspec.to_builtins(value, enc_hook=plain_value)), ensure_ascii=False)
        return msgspec.Raw(text.encode("utf-8"))


def _whole(value: Any) -> Any:
    if isinstance(value, dict):
        return {_whole(key): _whole(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [_whole(inner) for inner in value]
    return value.encode("utf-8", "replace").decode("utf-8") if isinstance(value, str) else value


def digest(value: Any) -> str:
    return hashlib.blake2b(to_json(value), digest_size=16).hexdigest()


class Nodes(Mapping[str, Node]):
    """Nodes by id; those that come as JSON (`load`) are decoded when they are looked at."""

    def __init__(self, nodes: Mapping[str, Node | None], load: Callable[[str], Buffer] | None = None) -> None:
        self._nodes = dict(nodes)
        self._load = load

    def __getitem__(self, node_id: str) -> Node:
        node = self._nodes[node_id]
        if node is None:
            if self._load is None:
                raise KeyError(node_id)
            node = self._nodes[node_id] = _decoded(node_id, self._load(node_id))
        return node

    def __iter__(self) -> Iterator[str]:
        return iter(self._nodes)

    def __len__(self) -> int:
        return len(self._nodes)


def _decoded(node_id: str, data: Buffer) -> Node:
    try:
        node: Node = _DECODERS[node_id.split(".", 1)[0]].decode(data)
    except (msgspec.MsgspecError, ValueError, KeyError, RecursionError) as error:
        message = f"the cache entry of '{node_id}' is damaged"
        raise ProjectError("cache-damaged", message, "Run 'engine clean', then the command again.") from error
    return node
