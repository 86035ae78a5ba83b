"""Where in the user's files an error of Spark belongs: by the SQL that it quotes, or the function that it names.

What an error of Spark says: one sentence, and how to fix it, without wrappers, class names and plans.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from sqlglot.tokens import TokenType  # type: ignore[attr-defined]

from engine.compile import DataTest, Model
from engine.compile.output.condition_types import conditions
from engine.compile.sql.dialect import tokenize
from engine.errors import Location
from engine.spark.exceptions import spark_exceptions

# What asking an error for its place may raise beside exceptions of Spark.
_CONTEXT_ERRORS: tuple[type[Exception], ...] = (
    AssertionError,
    AttributeError,
    NotImplementedError,
    TypeError,
    ValueError,
)
_POSITION = re.compile(r"\(line (\d+), pos (\d+)\)")
_QUOTED = re.compile(r"== SQL \(line (\d+), position (\d+)\) ==\n([^\n]*)\n( *)(\^+)")
_NAMED = re.compile(r"`(\w+)`")
# They read a text as something else.
READERS = {"from_json", "from_csv", "from_xml", "parse_json"}
# Errors without a place that only some functions raise.
_FUNCTIONS = {
    "DUPLICATED_MAP_KEY": (
        "map", "map_from_arrays", "map_from_entries", "map_concat", "str_to_map", "transform_keys",
    ),
    "CANNOT_PARSE_TIMESTAMP": ("to_date", "to_timestamp", "to_unix_timestamp", "unix_timestamp"),
    "INVALID_FORMAT": ("to_number", "to_char", "to_varchar", "to_binary"),
    "INVALID_TIMEZONE": ("from_utc_timestamp", "to_utc_timestamp", "convert_timezone"),
    "CANNOT_DECODE_URL": ("url_decode",),
    "INVALID_INDEX_OF_ZERO": ("element_at", "split_part"),
    "USER_RAISED_EXCEPTION": ("raise_error", "assert_true"),
    "DATETIME_FIELD_OUT_OF_BOUNDS": ("make_date", "make_timestamp", "make_timestamp_ntz", "make_timestamp_ltz"),
    "MALFORMED_RECORD_IN_PARSING": tuple(READERS),
    "CAST_OVERFLOW": ("cast",),
    "Illegal sequence boundaries": ("sequence",),
    "array_repeat failed": ("array_repeat",),
    "IllegalFormatConversionException": ("format_string", "printf"),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class ErrorSpot:
    place: Location
    fragment: str = ""


def place_in_model(error: Exception, text: str, model: Model) -> ErrorSpot:
    def locate(offset: int) -> Location:
        return model.positions.locate(model.file, offset)

    quoted = list(_quoted(error, text, model.sql))
    for start, fragment in quoted:
        # SQL of a condition or of a view is a text of its own: its places are not those of the query.
        if fragment and model.sql[start : start + len(fragment)] == fragment:
            return ErrorSpot(locate(start), fragment)
    for _, fragment in quoted:
        for sql, key in _header_sql(model):
            if fragment and fragment in sql:
                return ErrorSpot(model.positions.settings.get(key) or Location(model.file), fragment)
    if match := _POSITION.search(str(error)):
        return ErrorSpot(locate(_offset(model.sql, int(match[1]), int(match[2]))))
    return _by_function(text, model.sql, locate) if not quoted else ErrorSpot(Location(model.file))


def place_in_test(error: Exception, text: str, test: DataTest) -> ErrorSpot:
    test_place = test.location or Location(test.file)
    if not test.positions.runs:
        return ErrorSpot(test_place)

    def locate(offset: int) -> Location:
        return test.positions.locate(test.file, offset)

    quoted = list(_quoted(error, text, test.sql))
    for start, fragment in quoted:
        # Around the user's query is a little of the engine's, so that it begins later.
        offsets = [match.start() for match in re.finditer(re.escape(fragment), test.sql) if match.start() <= start]
        if fragment and offsets:
            return ErrorSpot(locate(offsets[-1]), fragment)
    return _by_function(text, test.sql, locate) if not quoted else ErrorSpot(test_place)


def _header_sql(model: Model) -> Iterator[tuple[str, str]]:
    for _, sql, key in conditions(model):
        yield sql, key
    for item in model.inputs:
        if item.watermark is not None and item.watermark.expression is not None:
            yield item.watermark.expression, f"streams.{item.name}.watermark"


def _quoted(error: Exception, text: str, sql: str) -> Iterator[tuple[int, str]]:
    """Yield the pieces of SQL that an error is about: where each begins in its own text, and the piece.

    A context of a DataFrame raises when asked; what ends a stream may have lost its contexts, and quotes its SQL.
    """
    yield from _contexts(error)
    for line, position, quoted, indent, carets in _QUOTED.findall(text):
        yield _offset(sql, int(line), int(position) - 1), quoted[len(indent) : len(indent) + len(carets)]


def _contexts(error: Exception) -> Iterator[tuple[int, str]]:
    try:
        contexts: list[Any] = getattr(error, "getQueryContext", list)() or []
    except _CONTEXT_ERRORS + spark_exceptions():
        return
    for context in contexts:
        try:
            if context.contextType().name == "SQL":
                yield int(context.startIndex()), str(context.fragment())
        except _CONTEXT_ERRORS + spark_exceptions():
            continue


def _offset(sql: str, line: int, column: int) -> int:
    return sum(len(before) + 1 for before in sql.split("\n")[: line - 1]) + column


def _by_function(text: str, sql: str, locate: Callable[[int], Location]) -> ErrorSpot:
    names = {name for sign, functions in _FUNCTIONS.items() if sign in text for name in functions}
    names |= {name.lower() for name in _NAMED.findall(text)} if "INVALID_PARAMETER_VALUE" in text else set()
    calls = [start for name, start in _calls(sql) if name in names] if names else []
    return ErrorSpot(locate(calls[0])) if len(calls) == 1 else ErrorSpot(Location(locate(0).file))


def called(sql: str) -> set[str]:
    return {name for name, _ in _calls(sql)}


def _calls(sql: str) -> Iterator[tuple[str, int]]:
    tokens = tokenize(sql)
    for token, next_token in itertools.pairwise(tokens):
        if next_token.token_type is TokenType.L_PAREN:
            yield token.text.lower(), token.start


_CLASS = re.compile(r"\[([A-Z0-9_.]+)\]\s*")
_NOISE = re.compile(r"(?<!\s)\s*+SQLSTATE: \w++\s*+")
_WRAPPERS = ("STREAM_FAILED", "FOREACH_BATCH_USER_FUNCTION_ERROR")
_QUERY = re.compile(r"Query \[id = [^]\[]*+\] terminated with exception: ")
_TASK = re.compile(
    r"Job aborted due to stage failure: (?:(?!Job aborted|Lost task).)*Lost task [^:(]*+\(TID \d++\) \([^()]*+\): "
)
_JAVA_CLASS = re.compile(r"^(?:: ?)?(?:[\w$]+\.)+([\w$]+(?:Exception|Error))(?:: |$)")
_CAUSED = re.compile(r"^Caused by: ((?:[\w$]+\.)+[\w$]+(?:Exception|Error): .+)$", re.MULTILINE)
# Behind these is why.
_EMPTY = (
    "Exception thrown in awaitResult", "Job aborted", "Writing job aborted", "Task failed while writing rows",
    "Multiple failures in stage materialization", "Failed to execute",
)  # fmt: skip
# Where an error of analysis was found, which is reported as a place.
_AT = re.compile(r"(?<![;.\s])[;.\s]*+line \d++ pos \d++[;\s]*+$")
_SENTENCE = re.compile(r"(?<=[.!?])\s+(?=[A-Z])")
_ADVICE = ("Use ", "Correct ", "Please ", "To ", "Consider ", "Set ", "You can ", "If necessary", "Try ")
_MISMATCH = re.compile(r'^Cannot resolve ".*?" due to data type mismatch: ', re.DOTALL)
# Of Java, where the sentence says nothing without its class.
_OF_JAVA = {
    "IllegalFormatConversionException": "a pattern of format_string() does not fit its value: ",
    "NumberFormatException": "not a number: ",
    "ArrayIndexOutOfBoundsException": "an index is out of bounds: ",
}
_TYPES = {"org.apache.spark.unsafe.types.UTF8String": "string", "java.lang.": ""}
_LONGEST = 400


def summary(text: str) -> str:
    """The first sentence that says something: without class names, wrappers, plans and advice."""
    return explained(text)[0]


def explained(text: str, trace: str = "", fragment: str = "") -> tuple[str, str]:
    """What an error says, and its advice; `trace` has the causes where the text lacks them, `fragment` the SQL."""
    head = _head(text)
    if head.rstrip(":. ").startswith(_EMPTY):
        head = next((cause for cause in causes(f"{text}\n{trace}") if not cause.startswith(_EMPTY)), head)
    kind = _CLASS.search(head)
    sentence = _AT.sub("", _CLASS.sub("", head)).strip()
    if fragment:
        sentence = _MISMATCH.sub(lambda _: f"'{' '.join(fragment.split())}': ", sentence)
    message, advice = _split_advice(sentence or "Spark failed without a message")
    message = message if len(message) <= _LONGEST else f"{message[:_LONGEST]}..."
    return f"{message} [{kind[1]}]" if kind else message, advice


def causes(text: str) -> Iterator[str]:
    for cause in reversed(_CAUSED.findall(text)):
        yield _of_java(_NOISE.sub(" ", cause).strip())


def deepest(text: str) -> str:
    cause = next(causes(text), None)
    return _CLASS.sub("", cause).strip() if cause else summary(text)


def _head(text: str) -> str:
    head = text
    for end in ("=== Streaming Query ===", "\n\nJVM stacktrace", "== SQL", "\n\tat ", "\n\\tat "):
        head = head.partition(end)[0]
    head = _QUERY.sub("", head)
    for wrapper in _WRAPPERS:
        head = head.replace(f"[{wrapper}] ", "")
    lines = [line.strip() for line in _NOISE.sub(" ", head).splitlines() if line.strip()]
    if lines and lines[0].startswith("An error occurred while calling"):
        lines = lines[1:]
    if not lines:
        return ""
    first, *rest = lines
    while first.endswith(":") and rest:
        first = f"{first} {rest.pop(0).removeprefix('- ')}"
    return _of_java(_TASK.sub("", first))


def _of_java(text: str) -> str:
    class_match = _JAVA_CLASS.match(text)
    if class_match is None:
        return text
    message = text[class_match.end() :]
    if _JAVA_CLASS.match(message):
        return _of_java(message)
    for name, sql_type in _TYPES.items():
        message = message.replace(name, sql_type)
    return f"{_OF_JAVA.get(class_match[1], '')}{message}" or class_match[1]


def _split_advice(sentence: str) -> tuple[str, str]:
    parts = _SENTENCE.split(sentence)
    first = next((i for i, part in enumerate(parts) if i and part.startswith(_ADVICE)), len(parts))
    advice = [part for part in parts[first:] if "spark.sql." not in part and "ANSI" not in part]
    message = " ".join(parts[:first]).strip()
    return message.removesuffix(".") if not message.endswith("..") else message, " ".join(advice)
