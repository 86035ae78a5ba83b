"""Rewriting a value from its writer's schema into the reader's, bytes to bytes.

By the schema resolution of the Avro specification, as Avro's Java library (1.12) applies it, with one addition: a value
whose unit differs (timestamp-millis, timestamp-micros; the scale of a decimal) does not fit, where Java would be wrong
by a factor. A field that both sides have in the same form is found and copied, not decoded.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from engine.sources.avro_schema.avro_types import (  # fmt: skip
    Array,
    AvroUnion,
    Enum,
    Field,
    Fixed,
    Map,
    Named,
    Primitive,
    Record,
    Schema,
    Type,
)
from engine.sources.avro_schema.binary_encoding import MOST_ITEMS, CorruptError, Skip, read_long, skips, write_long
from engine.sources.avro_schema.default_values import default_bytes

# Bytes and a position to the value in the reader's form and the position behind it.
Move = Callable[[bytes, int], tuple[bytes, int]]

_PROMOTED: Final = {
    "int": ("long", "float", "double"), "long": ("float", "double"), "float": ("double",),
    "string": ("bytes",), "bytes": ("string",),
}  # fmt: skip
# The slot of a field that the reader does not have.
_SKIPPED: Final = -1


# Unions in unions are compared again for each branch that could take a value: twice as often a level.
_MOST_STEPS: Final = 100_000


class _TooManyStepsError(Exception):
    pass


class UnsuitableError(ValueError):
    pass


@dataclass(frozen=True, slots=True)
class Resolution:
    """`doubts` is empty if every value fits; `java`: Java's library reads them alike."""

    transcode: Callable[[bytes, int], bytes]
    doubts: tuple[str, ...] = ()
    java: bool = True


def resolve(writer: Schema, reader: Schema) -> Resolution:
    """How to read values of the writer's schema with the reader's, which does not contain itself.

    Raises UnsuitableError: no value can be read; the message names the first field and what is wrong with it.
    """
    resolver = _Resolver(writer, reader)
    try:
        move = resolver.move(writer.record, reader.record, "")
    except (_TooManyStepsError, RecursionError) as error:
        raise UnsuitableError("the schemas have too many nested unions to be compared") from error
    transcode = _guarded(move) if move else _rest
    return Resolution(transcode, tuple(resolver.doubts), resolver.java)


def _rest(value: bytes, start: int) -> bytes:
    return value[start:]


def _guarded(move: Move) -> Callable[[bytes, int], bytes]:
    def transcode(value: bytes, start: int) -> bytes:
        try:
            moved, end = move(value, start)
        except (IndexError, struct.error, RecursionError, OverflowError) as error:
            raise CorruptError from error
        if end > len(value):
            raise CorruptError
        return moved

    return transcode


class _Resolver:
    """Makes the moves; None stands for a move that changes nothing."""

    def __init__(self, writer: Schema, reader: Schema) -> None:
        self.writer, self.reader = writer, reader
        self.skips = skips(writer)
        self.doubts: list[str] = []
        self.java = True
        self.steps = 0
        # A reader's aliases rename what the writer calls otherwise.
        self.renamed = {alias: name for name, type_ in reader.named_types.items() for alias in type_.aliases}

    def step(self) -> None:
        self.steps += 1
        if self.steps > _MOST_STEPS:
            raise _TooManyStepsError

    def copy(self, type_: Type) -> Move:
        return _copy(self.skips(type_))

    def move(self, wrote: Type, reads: Type, at: str) -> Move | None:
        self.step()
        w, r = self.writer.follow(wrote), self.reader.follow(reads)
        if isinstance(w, AvroUnion):
            return self.from_union(w, r, at)
        if isinstance(r, AvroUnion):
            index = self.branch(w, r, at)
            return _behind(write_long(index), self.move(w, r.branches[index], at) or self.copy(w))
        if isinstance(w, Primitive) and isinstance(r, Primitive):
            return self.primitive(w, r, at)
        return self.composed(w, r, at)

    def primitive(self, w: Primitive, r: Primitive, at: str) -> Move | None:
        if w.kind != r.kind and r.kind not in _PROMOTED.get(w.kind, ()):
            raise UnsuitableError(f"{_field(at)}{_type_name(w)} cannot be read as {_type_name(r)}")
        self.same_unit(w, r, at)
        if w.kind == "float" and r.kind == "double":
            return lambda value, pos: (struct.pack("<d", *struct.unpack_from("<f", value, pos)), pos + 4)
        if r.kind in {"float", "double"} and w.kind != r.kind:
            return _number(struct.Struct("<f" if r.kind == "float" else "<d"))
        return None

    def same_unit(self, w: Primitive | Fixed, r: Primitive | Fixed, at: str) -> None:
        if _differ(w, r):
            # Whatever becomes of this place, in a union for example: Java sees no difference.
            self.java = False
            raise UnsuitableError(f"{_field(at)}{_type_name(w)} cannot be read as {_type_name(r)}")

    def composed(self, w: Type, r: Type, at: str) -> Move | None:
        if isinstance(w, Record) and isinstance(r, Record):
            return self.record(w, r, at)
        if isinstance(w, Array) and isinstance(r, Array):
            item = self.move(w.items, r.items, f"{at}[]")
            return _blocks(item, None) if item else None
        if isinstance(w, Map) and isinstance(r, Map):
            item = self.move(w.values, r.values, f"{at}[]")
            return _blocks(item, self.skips(Primitive("string"))) if item else None
        if isinstance(w, Enum) and isinstance(r, Enum) and self.same_name(w, r):
            return self.enum(w, r, at)
        if not (isinstance(w, Fixed) and isinstance(r, Fixed) and self.same_name(w, r) and w.size == r.size):
            raise UnsuitableError(f"{_field(at)}{_type_name(w)} cannot be read as {_type_name(r)}")
        self.same_unit(w, r, at)
        return None

    def same_name(self, w: Named, r: Named) -> bool:
        return self.renamed.get(w.name, w.name).rpartition(".")[2] == r.name.rpartition(".")[2]

    def record(self, w: Record, r: Record, at: str) -> Move | None:
        slots = {field.name: slot for slot, field in enumerate(r.fields)}
        if self.renamed.get(w.name, w.name) == r.name:
            slots |= {alias: slot for slot, field in enumerate(r.fields) for alias in field.aliases}
        steps: list[tuple[int, Type, Move | None]] = []
        for field in w.fields:
            slot = slots.get(field.name, _SKIPPED)
            is_read = slot >= 0 and all(slot != other for other, _, _ in steps)
            inner = self.move(field.type, r.fields[slot].type, _below(at, field.name)) if is_read else None
            steps.append((slot if is_read else _SKIPPED, field.type, inner))
        missing = set(range(len(r.fields))) - {slot for slot, _, _ in steps}
        blank = [self.default(field, at) if slot in missing else b"" for slot, field in enumerate(r.fields)]
        if [slot for slot, _, _ in steps] == list(range(len(r.fields))) and not any(inner for *_, inner in steps):
            return None
        return _fields(self.runs(steps), blank)

    def default(self, field: Field, at: str) -> bytes:
        if not field.default:
            name = _below(at, field.name)
            raise UnsuitableError(f"the field '{name}' is not in the writer's schema and has no default")
        if isinstance(self.reader.follow(field.type), AvroUnion) and field.default == ([],):
            # Java then asks the union for the type of its items, and fails (measured).
            self.java = False
        return default_bytes(self.reader, field)

    def runs(self, steps: Sequence[tuple[int, Type, Move | None]]) -> list[tuple[int, Skip, Move | None]]:
        merged_runs: list[tuple[int, Skip, Move | None]] = []
        last = len(steps)
        for slot, type_, inner in steps:
            skip = self.skips(type_)
            neighbours = slot == last + 1 > 0 or slot == last == _SKIPPED
            if neighbours and inner is None and merged_runs[-1][2] is None:
                merged_runs[-1] = (merged_runs[-1][0], _skip_both(merged_runs[-1][1], skip), None)
            else:
                merged_runs.append((slot, skip, inner))
            last = slot
        return merged_runs

    def enum(self, w: Enum, r: Enum, at: str) -> Move | None:
        reader_indices = {symbol: index for index, symbol in enumerate(r.symbols)}
        default = reader_indices.get(r.default) if r.default is not None else None
        indices = [reader_indices.get(symbol, default) for symbol in w.symbols]
        if indices == list(range(len(w.symbols))):
            return None
        self.doubts += [_unknown(at, s) for s, index in zip(w.symbols, indices, strict=True) if index is None]
        codes = [write_long(index) if index is not None else None for index in indices]

        def move(value: bytes, pos: int) -> tuple[bytes, int]:
            number, pos = read_long(value, pos)
            code = codes[number] if number >= 0 else b""
            if not code:
                raise UnsuitableError(_unknown(at, w.symbols[number])) if number >= 0 else CorruptError
            return code, pos

        return move

    def from_union(self, w: AvroUnion, r: Type, at: str) -> Move | None:
        # Unions of one form are read branch by branch, as Java does; else each branch looks for its own.
        pairs = isinstance(r, AvroUnion) and self.alike(w, r)
        inner: list[Move | None] = []
        moves: list[Move | str] = []
        for index, branch in enumerate(w.branches):
            try:
                inner.append(self.move(branch, r.branches[index] if isinstance(r, AvroUnion) and pairs else r, at))
            except UnsuitableError as error:
                moves.append(str(error))
                continue
            branch_move = inner[-1] or self.copy(branch)
            moves.append(_behind(write_long(index), branch_move) if pairs else branch_move)
        faults = [move for move in moves if isinstance(move, str)]
        if pairs and not faults and not any(inner):
            return None
        if len(faults) == len(moves):
            # That NULL does not fit says less than what is wrong with the other branch.
            of_values = [f for f, b in zip(faults, w.branches, strict=True) if b.kind != "null"]
            raise UnsuitableError((of_values or faults or [f"{_field(at)}the union is empty"])[0])
        self.doubts += faults
        return _one_of(moves)

    def alike(self, wrote: Type, reads: Type) -> bool:
        self.step()
        w, r = self.writer.follow(wrote), self.reader.follow(reads)
        if isinstance(w, Named) and isinstance(r, Named) and not self.same_name(w, r):
            return False
        if isinstance(w, Fixed) and isinstance(r, Fixed):
            return w.size == r.size
        if isinstance(w, Enum) and isinstance(r, Enum):
            return w.symbols == r.symbols
        names = [[f.name for f in side.fields] if isinstance(side, Record) else [] for side in (w, r)]
        inner = [_inner(side) for side in (w, r)]
        return (
            w.kind == r.kind
            and names[0] == names[1]
            and len(inner[0]) == len(inner[1])
            and all(map(self.alike, *inner))
        )

    def branch(self, w: Type, r: AvroUnion, at: str) -> int:
        """The branch of the reader's union that takes a type: the same one, or else the first wider one."""
        alike = -1
        for index, branch in enumerate(r.branches):
            reader_branch = self.reader.follow(branch)
            if reader_branch.kind != w.kind:
                continue
            if not isinstance(w, Named) or not isinstance(reader_branch, Named):
                return index
            name = self.renamed.get(w.name, w.name)
            if name == reader_branch.name:
                return index
            if isinstance(w, Record) and self.fits(w, reader_branch):
                same = name.rpartition(".")[2] == reader_branch.name.rpartition(".")[2]
                alike = index if alike < 0 or same else alike
        if alike >= 0:
            return alike
        for index, branch in enumerate(r.branches):
            if branch.kind in _PROMOTED.get(w.kind, ()):
                return index
        raise UnsuitableError(f"{_field(at)}{_type_name(w)} is none of {', '.join(_type_name(b) for b in r.branches)}")

    def fits(self, w: Type, r: Type) -> bool:
        doubts = len(self.doubts)
        try:
            self.move(w, r, "")
        except UnsuitableError:
            return False
        finally:
            del self.doubts[doubts:]
        return True


def _differ(w: Primitive | Fixed, r: Primitive | Fixed) -> bool:
    """Whether two plain types give one value another meaning; a unit that only one of them names is the other's."""
    if "decimal" in {side.logical.name for side in (w, r) if side.logical} and w.kind != r.kind:
        # The digits of a string are not the bytes of a number.
        return True
    if w.logical is None or r.logical is None or w.logical == r.logical:
        return False
    return (
        w.logical.name != r.logical.name
        or w.logical.scale != r.logical.scale
        or w.logical.precision > r.logical.precision
    )


def _number(form: struct.Struct) -> Move:
    def move(value: bytes, pos: int) -> tuple[bytes, int]:
        number, pos = read_long(value, pos)
        return form.pack(number), pos

    return move


def _inner(type_: Type) -> list[Type]:
    if isinstance(type_, Record):
        return [field.type for field in type_.fields]
    if isinstance(type_, AvroUnion):
        return list(type_.branches)
    return [type_.items] if isinstance(type_, Array) else [type_.values] if isinstance(type_, Map) else []


def _one_of(moves: Sequence[Move | str]) -> Move:
    def move(value: bytes, pos: int) -> tuple[bytes, int]:
        number, pos = read_long(value, pos)
        if number < 0:
            raise CorruptError
        branch_move = moves[number]
        if isinstance(branch_move, str):
            raise UnsuitableError(branch_move)
        return branch_move(value, pos)

    return move


def _copy(skip: Skip) -> Move:
    def move(value: bytes, pos: int) -> tuple[bytes, int]:
        end = skip(value, pos)
        return value[pos:end], end

    return move


def _behind(head: bytes, inner: Move) -> Move:
    def move(value: bytes, pos: int) -> tuple[bytes, int]:
        moved, pos = inner(value, pos)
        return head + moved, pos

    return move


def _skip_both(first: Skip, second: Skip) -> Skip:
    return lambda value, pos: second(value, first(value, pos))


def _blocks(item: Move, key: Skip | None) -> Move:
    """Move a list or a map: blocks of items, each with their number (and size, if that is negative); 0 ends them."""

    def move(value: bytes, pos: int) -> tuple[bytes, int]:
        parts: list[bytes] = []
        while True:
            count, pos = read_long(value, pos)
            if count == 0:
                return b"".join((*parts, b"\0")), pos
            if count < 0:
                count, (_, pos) = -count, read_long(value, pos)
            if count > MOST_ITEMS:
                raise CorruptError
            parts.append(write_long(count))
            for _ in range(count):
                if key is not None:
                    start, pos = pos, key(value, pos)
                    parts.append(value[start:pos])
                moved, pos = item(value, pos)
                parts.append(moved)

    return move


def _fields(steps: Sequence[tuple[int, Skip, Move | None]], blank: Sequence[bytes]) -> Move:
    def move(value: bytes, pos: int) -> tuple[bytes, int]:
        parts = list(blank)
        for slot, skip, inner in steps:
            if inner is not None:
                parts[slot], pos = inner(value, pos)
                continue
            start, pos = pos, skip(value, pos)
            if slot >= 0:
                parts[slot] = value[start:pos]
        return b"".join(parts), pos

    return move


def _below(at: str, name: str) -> str:
    return f"{at}.{name}" if at else name


def _field(at: str) -> str:
    return f"the field '{at}': " if at else ""


def _unknown(at: str, symbol: str) -> str:
    return f"{_field(at)}'{symbol}' is none of the declared symbols"


def _type_name(type_: Type) -> str:
    logical = getattr(type_, "logical", None)
    return str(logical) if logical else getattr(type_, "name", "") or type_.kind
