"""What an error of Spark says: one sentence, and how to fix it, without wrappers, class names and plans."""

from __future__ import annotations

import re
from collections.abc import Iterator

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
    message, advice = _apart(sentence or "Spark failed without a message")
    message = message if len(message) <= _LONGEST else f"{message[:_LONGEST]}..."
    return f"{message} [{kind[1]}]" if kind else message, advice


def causes(text: str) -> Iterator[str]:
    """The causes in a trace of Java's, the deepest first, without their classes."""
    for cause in reversed(_CAUSED.findall(text)):
        yield _of_java(_NOISE.sub(" ", cause).strip())


def deepest(text: str) -> str:
    """The deepest cause that a text has, else its summary."""
    found = next(causes(text), None)
    return _CLASS.sub("", found).strip() if found else summary(text)


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
    found = _JAVA_CLASS.match(text)
    if found is None:
        return text
    said = text[found.end() :]
    if _JAVA_CLASS.match(said):
        return _of_java(said)
    for name, ours in _TYPES.items():
        said = said.replace(name, ours)
    return f"{_OF_JAVA.get(found[1], '')}{said}" or found[1]


def _apart(sentence: str) -> tuple[str, str]:
    parts = _SENTENCE.split(sentence)
    first = next((i for i, part in enumerate(parts) if i and part.startswith(_ADVICE)), len(parts))
    advice = [part for part in parts[first:] if "spark.sql." not in part and "ANSI" not in part]
    message = " ".join(parts[:first]).strip()
    return message.removesuffix(".") if not message.endswith("..") else message, " ".join(advice)
