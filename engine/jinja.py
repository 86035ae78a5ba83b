"""The one Jinja sandbox, and maps from rendered text back to the template.

Names that are not defined are errors (`StrictUndefined`), and templates cannot reach Python
(`ImmutableSandboxedEnvironment`). What the sandbox does not limit is time and memory: a project is
trusted not to loop for ever.

Positions: literal text of a template is marked with its offset before rendering, and the marks are taken
out of the result again. Text inside blocks that capture output (macro, call, filter, block set) is not
marked, so that comparing or measuring it gives what the author expects; it counts as written where the
capture is used.
"""

from __future__ import annotations

import bisect
import contextlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from types import TracebackType
from typing import Any

import jinja2
from jinja2 import nodes
from jinja2.exceptions import SecurityError
from jinja2.sandbox import ImmutableSandboxedEnvironment

from engine.errors import Diagnostic, EngineError, Location, ProjectError, near

# What rendering may raise: all of it is the template's fault. (SyntaxError and MemoryError come from Python's
# compiler when blocks or brackets are nested too deeply.)
FAILURES = (
    jinja2.TemplateError, EngineError, ArithmeticError, TypeError, ValueError, LookupError, AttributeError,
    RecursionError, SyntaxError, MemoryError,
)  # fmt: skip
CRASH = "the template failed: "
_MARK = re.compile("\x01([0-9]{1,9})\x02")
_TAG = re.compile(r"\{[{%#]")
_MACRO = re.compile(r"\{%[-+]?\s*macro\s+(\w+)")
_CAPTURES = {
    "macro": "endmacro", "call": "endcall", "filter": "endfilter", "set": "endset", "block": "endblock",
}  # fmt: skip
_BLOCKS = {*_CAPTURES, "if", "for", "with"}
_BEGINS = {"block_begin": "{%", "variable_begin": "{{", "comment_begin": "{#", "raw_begin": ""}


@dataclass(frozen=True, slots=True)
class Rendered:
    """Rendered text with the way back to the template.

    Attributes:
        text: what the template gave.
        template: the template's own text.
        file: the template's file as shown to users.
        runs: (offset in `text`, offset in `template`, whether what follows is literal), ascending.
    """

    text: str
    template: str
    file: str
    runs: tuple[tuple[int, int, bool], ...] = ((0, 0, True),)
    starts: tuple[int, ...] = field(default=(0,))

    def location(self, offset: int) -> Location:
        """The place in the template that gave the character at an offset of the text."""
        index = max(bisect.bisect_right(self.starts, offset) - 1, 0)
        begin, origin, literal = self.runs[index]
        at = min(origin + (offset - begin if literal else 0), len(self.template))
        line = self.template.count("\n", 0, at) + 1
        return Location(self.file, line, at - self.template.rfind("\n", 0, at))

    def location_of_line(self, line: int, column: int) -> Location:
        """The same for a line and column (from 1) of the text."""
        lines = self.text.split("\n")
        offset = sum(len(text) + 1 for text in lines[: line - 1]) + max(column - 1, 0)
        return self.location(min(offset, len(self.text)))


@dataclass(frozen=True, slots=True)
class MacroFile:
    """A file of macros: where it is, as shown to users, and its text."""

    file: str
    text: str


class Sandbox:
    """An environment with the names that templates may use.

    Functions are given once; what differs between models (the model at hand) they find out themselves.
    """

    def __init__(self, names: Mapping[str, Any]) -> None:
        self._env = ImmutableSandboxedEnvironment(
            undefined=jinja2.StrictUndefined, keep_trailing_newline=True, autoescape=False
        )
        kept = {name: self._env.globals[name] for name in ("range", "namespace")}
        self._env.globals.clear()
        self._env.globals.update({**kept, **names})
        self._texts: dict[str, str] = {}
        self.macros: dict[str, Callable[..., str]] = {}
        self.macro_files: dict[str, str] = {}

    def add_macros(self, files: Iterable[MacroFile]) -> list[Diagnostic]:
        """Define the macros of some files for all templates; later files replace earlier ones.

        The macros of a broken file are known and cannot be called, so that its fault is reported once.
        """
        found: list[Diagnostic] = []
        templates = []
        for macro_file in files:
            self._texts[macro_file.file] = macro_file.text
            try:
                tree = self._env.parse(macro_file.text, name=macro_file.file)
                names = [node.name for node in tree.find_all(nodes.Macro)]
                templates.append((macro_file, names))
            except FAILURES as error:
                found.extend(self._failure(error, macro_file.file))
                names = _MACRO.findall(macro_file.text)
            for name in names:
                self.macro_files[name] = macro_file.file
                self._env.globals[name] = self._late(name)
        for macro_file, names in templates:
            try:
                module = self._module(macro_file)
            except FAILURES as error:
                found.extend(self._failure(error, macro_file.file))
                continue
            self.macros.update({name: getattr(module, name) for name in names})
        return found

    def _module(self, macro_file: MacroFile) -> Any:
        try:
            return self._template(macro_file.text, macro_file.file).make_module()
        except FAILURES:
            # Unlike render(), make_module() leaves the lines of Jinja's Python in the traceback.
            return self._env.handle_exception()

    def _late(self, name: str) -> Callable[..., str]:
        """A stand-in, so that macros of different files can call each other."""

        def call(*args: Any, **kwargs: Any) -> str:
            if name not in self.macros:
                raise _carrying(())
            return self.macros[name](*args, **kwargs)

        return call

    def _template(self, text: str, file: str) -> jinja2.Template:
        code = self._env.compile(text, name=file, filename=file)
        return jinja2.Template.from_code(self._env, code, self._env.globals)

    def render(self, text: str, file: str, names: Mapping[str, Any] | None = None) -> Rendered:
        """Render a template.

        Raises:
            ProjectError: with the place in the template (or in the macro it called).
        """
        if not _TAG.search(text):
            return Rendered(text, text, file)
        self._texts[file] = text
        try:
            marked, origins = _mark(self._env, text, file)
            output = self._template(marked, file).render(names or {})
        except FAILURES as error:
            raise _carrying(self._failure(error, file)) from error
        return _unmark(output, origins, text, file)

    def render_value(self, text: str, location: Location, names: Mapping[str, Any]) -> str:
        """Render one value of a header or of project.yml; errors stand at the value."""
        try:
            return self._template(text, location.file).render(names)
        except FAILURES as error:
            raise _carrying(d.at(location) for d in self.explain(error)) from error

    def explain(self, error: BaseException) -> tuple[Diagnostic, ...]:
        """What went wrong, without the place."""
        if isinstance(error, EngineError):
            return error.diagnostics
        if isinstance(error, jinja2.UndefinedError):
            return (self._undefined(error),)
        if isinstance(error, SecurityError):
            return (Diagnostic("jinja-security", f"not allowed in a template: {error}", _SANDBOX),)
        if isinstance(error, jinja2.TemplateSyntaxError):
            message, hint = _said(self._env, error)
            return (Diagnostic("jinja-syntax", f"Jinja: {message}", hint),)
        return (_crash(error),)

    def _undefined(self, error: jinja2.UndefinedError) -> Diagnostic:
        message = re.sub(r"'engine[\w.]*\._?(\w+) object'", lambda m: f"'{m[1].lower()}'", error.message or "")
        name = _undefined_name(error)
        hint = undefined_hint(name, self._env.globals) if name else "Correct the name, or give it a default."
        if name in _VARYING:
            return Diagnostic("run-varying-value", f"'{name}' differs from run to run", hint)
        return Diagnostic("jinja-undefined", message or "a name is undefined", hint)

    def _failure(self, error: BaseException, file: str) -> tuple[Diagnostic, ...]:
        known = self.explain(error)
        if isinstance(error, jinja2.TemplateSyntaxError):
            place = _syntax_place(self._env, error, file, self._texts[file])
            return tuple(d.at(place) for d in known)
        frames = self._frames(error.__traceback__)
        inner, line = frames[-1] if frames else (file, 1)
        text = self._texts[inner]
        offset = _find(self._env, inner, text, _line_start(text, line), _words(error))
        outer = [f"{f}:{n}" for f, n in frames if f != inner]
        if outer:
            known = tuple(replace(d, hint=f"{d.hint} Called from {outer[0]}.".strip()) for d in known)
        return tuple(d.at(_place(text, offset, inner)) for d in known)

    def _frames(self, trace: TracebackType | None) -> list[tuple[str, int]]:
        frames = []
        while trace is not None:
            name = trace.tb_frame.f_code.co_filename
            if name in self._texts:
                frames.append((name, trace.tb_lineno))
            trace = trace.tb_next
        return frames


def _crash(error: BaseException) -> Diagnostic:
    if isinstance(error, (RecursionError, SyntaxError, MemoryError)):
        return Diagnostic("jinja-error", "the template is nested too deeply", "Write it flatter.")
    text = re.sub(r"\b(?:Names|_Exceptions)\.", "", str(error)) or type(error).__name__
    if "no loader" in text:
        hint = "Macros of the folder macros/ are called by name, without import."
        return Diagnostic("jinja-error", "templates do not include or import each other", hint)
    return Diagnostic("jinja-error", f"{CRASH}{text}", "Check the arguments of the call.")


_VARYING = {"run_started_at", "invocation_id"}
_SANDBOX = "Templates reach names and values, not Python; use Jinja's filters."


def _carrying(diagnostics: Iterable[Diagnostic]) -> ProjectError:
    failure = ProjectError("jinja-error", "the template failed")
    failure.diagnostics = tuple(diagnostics)
    return failure


def undefined_hint(name: str, known: Iterable[str]) -> str:
    """What to do about an undefined name; dbt's own names are answered by name."""
    unvarying = "A query over kept state has one text in all runs"
    unconnected = "Templates are rendered without a connection"
    named = {
        "run_started_at": f"{unvarying}; current_timestamp() is the time of the micro-batch.",
        "invocation_id": f"{unvarying}.",
        "execute": f"{unconnected}; there is nothing to execute.",
        "run_query": f"{unconnected}; write the query as a model and ref() it.",
        "adapter": f"{unconnected}; there is no adapter.",
        "dbt_utils": "There are no packages: copy the macro into macros/.",
    }
    close = near(name, known)
    if name in named or close.startswith("Did you mean"):
        return named.get(name, close)
    return f"A variable of the project is var('{name}'), one of the environment env_var('{name}')."


def _undefined_name(error: jinja2.UndefinedError) -> str:
    match = re.match(r"'([^']+)' is undefined", error.message or "")
    return match[1] if match else ""


def _words(error: BaseException) -> list[str]:
    """The names an error is about, as they may stand in the template, best first."""
    if isinstance(error, EngineError) and error.diagnostics:
        first = error.diagnostic
        named = ["raise_compiler_error"] if first.code == "compiler-error" else []
        return named + [word.removesuffix("()") for word in re.findall(r"'([^']+)'", first.message)]
    return re.findall(r"'([^']+)'", _in_our_words(str(error)))[::-1]


def _in_our_words(message: str) -> str:
    for theirs, ours in (("end of print statement", "}}"), ("end of statement block", "%}"), ("token '", "'")):
        message = message.replace(theirs, ours)
    return message


def _place(text: str, offset: int, file: str) -> Location:
    return Location(file, text.count("\n", 0, offset) + 1, offset - text.rfind("\n", 0, offset))


def _line_start(text: str, line: int) -> int:
    return sum(len(part) + 1 for part in text.split("\n")[: line - 1])


def _find(env: jinja2.Environment, file: str, text: str, start: int, words: list[str]) -> int:
    """The offset of the best of some words inside a tag, from an offset on; else of the line's first tag."""
    first: dict[str, int] = {}
    for at, _, kind, value in _readable_tokens(env, text, file):
        if at >= start and kind not in {"data", "comment", "raw_begin"}:
            first.setdefault(value, at)
            first.setdefault(value.strip("'\""), at)
    for word in words:
        if word in first:
            return first[word]
    tag = _TAG.search(text, start)
    end = text.find("\n", start)
    return tag.start() if tag and (end < 0 or tag.start() < end) else start


def _readable_tokens(env: jinja2.Environment, text: str, file: str) -> Iterator[tuple[int, int, str, str]]:
    """The tokens up to the first place that is none."""
    with contextlib.suppress(jinja2.TemplateSyntaxError):
        yield from _tokens(env, text, file)


def _said(env: jinja2.Environment, error: jinja2.TemplateSyntaxError) -> tuple[str, str]:
    """Jinja's message in our words, and what to do."""
    message = error.message or "the template cannot be read"
    if block := _unclosed_block(error):
        return f"'{block}' is not closed", f"Add {{% end{block} %}}."
    if _is_unclosed_tag(error):
        return "a tag is not closed", "Close the {{, {% or {# that begins here."
    message = _in_our_words(message.split(". ")[0].rstrip("."))
    message = message[0].lower() + message[1:]
    if match := re.match(r"no (filter|test) named '(\w+)'", message):
        return message, near(match[2], env.filters if match[1] == "filter" else env.tests)
    if match := re.match(r"encountered unknown tag '(\w+)'", message):
        tag = match[1]
        if tag.startswith("end") or tag in {"else", "elif"}:
            return f"nothing is open that '{tag}' could end", "Take it out, or open the block before it."
        return f"there is no block '{tag}'", _OTHER_BLOCKS.get(tag) or near(tag, _BLOCKS)
    return message, "Check the tag: {{ value }}, {% statement %}, {# comment #}."


_OTHER_BLOCKS = {
    "snapshot": "Snapshots are dbt's; a history of changes is not part of this version.",
    "test": "A test kind is a macro: {% macro test_name(model, column_name) %}.",
    "include": "Macros of the folder macros/ are called by name.",
    "do": "Write {% set _ = ... %}.",
}


def _unclosed_block(error: jinja2.TemplateSyntaxError) -> str:
    message = error.message or ""
    match = re.search(r"innermost block that needs to be closed is '(\w+)'", message)
    ends = message.startswith(("Unexpected end of template", "Encountered unknown tag 'end"))
    return match[1] if match and ends else ""


def _is_unclosed_tag(error: jinja2.TemplateSyntaxError) -> bool:
    message = error.message or ""
    return message.startswith(("unexpected end of template", "Missing end of"))


def _syntax_place(env: jinja2.Environment, error: jinja2.TemplateSyntaxError, file: str, text: str) -> Location:
    block = _unclosed_block(error)
    if not block and not _is_unclosed_tag(error):
        start = _faulty_tag(env, text, file, _line_start(text, error.lineno))
        return _place(text, _find(env, file, text, start, _words(error)), file)
    opened: list[tuple[str, int]] = []
    begin, after = 0, ""
    for at, _, kind, value in _readable_tokens(env, text, file):
        if kind in _BEGINS:
            begin = at
        elif kind == "name" and after == "block_begin":
            if value.startswith("end") and opened:
                if value != f"end{opened[-1][0]}":
                    break
                opened.pop()
            elif value in _BLOCKS:
                opened.append((value, begin))
        after = kind if kind != "whitespace" else after
    matching = [at for word, at in opened if word == block]
    return _place(text, matching[-1] if matching else begin, file)


def _faulty_tag(env: jinja2.Environment, text: str, file: str, start: int) -> int:
    """The offset of the first tag at which reading fails, from a line's start on."""
    begin = start
    for at, _, kind, value in _readable_tokens(env, text, file):
        if kind in {"variable_begin", "block_begin"} and at >= start:
            begin = at
        if kind in {"variable_end", "block_end"} and at >= start:
            try:
                env.parse(text[: at + len(value)])
            except jinja2.TemplateSyntaxError as error:
                if not (error.message or "").lower().startswith("unexpected end of template"):
                    return begin
    return start


def _tokens(env: jinja2.Environment, text: str, file: str) -> Iterator[tuple[int, int, str, str]]:
    """Jinja's tokens: offset, number of line ends that whitespace control took before it, kind, text."""
    cursor = 0
    for _, kind, value in env.lexer.tokeniter(text, file, file):
        at = text.index(value, cursor)
        yield at, text.count("\n", cursor, at), kind, value
        cursor = at + len(value)


def _mark(env: jinja2.Environment, text: str, file: str) -> tuple[str, list[tuple[int, bool]]]:
    """The template with a mark before each piece of output, and each mark's (offset, literal).

    Whitespace control is applied here already, since a mark beside a tag would hide the blanks from it;
    line ends that it removes are kept inside the tags, so that Jinja's own line numbers stay right.
    """
    out: list[str] = []
    origins: list[tuple[int, bool]] = []
    captures = _Captures()
    tag: list[str] = []

    def mark(offset: int, literal: bool) -> None:
        if not captures.depth:
            origins.append((offset, literal))
            out.append(f"\x01{len(origins) - 1}\x02")

    for at, lost, kind, value in _tokens(env, text, file):
        if kind == "data":
            mark(at, True)
            out.append(value)
        elif kind in _BEGINS:
            if kind in {"variable_begin", "block_begin"}:
                mark(at, False)
            tag = []
            lines = "\n" * (lost + value.count("\n"))
            out.append(f"{_BEGINS[kind]}{lines}" if _BEGINS[kind] else f"{{% raw{lines}%}}")
        elif kind in {"block_end", "variable_end", "comment_end"}:
            if kind == "block_end":
                captures.pass_tag(tag)
            out.append("\n" * (lost + value.count("\n")) + value.strip().strip("-+"))
        elif kind == "raw_end":
            out.append("{% endraw" + "\n" * (lost + value.count("\n")) + "%}")
        else:
            tag.append(value)
            out.append("\n" * lost + value)
    return "".join(out), origins


class _Captures:
    """Counts the open blocks whose output goes into a value (macro, call, block set, recursive for)."""

    def __init__(self) -> None:
        self.depth = 0
        self._loops: list[int] = []

    def pass_tag(self, tag: list[str]) -> None:
        words = [value for value in tag if not value.isspace()]
        first = words[0] if words else ""
        if first == "for":
            self._loops.append(int("recursive" in words))
            self.depth += self._loops[-1]
        elif first == "endfor":
            self.depth -= self._loops.pop() if self._loops else 0
        elif first == "set":
            self.depth += not _assigns(words)
        elif first in _CAPTURES:
            self.depth += 1
        elif first in _CAPTURES.values():
            self.depth -= 1


def _assigns(words: list[str]) -> bool:
    """Whether a `set` has its value in the tag: an = outside brackets."""
    depth = 0
    for word in words:
        depth += (word in {"(", "[", "{"}) - (word in {")", "]", "}"})
        if word == "=" and depth == 0:
            return True
    return False


def _unmark(output: str, origins: list[tuple[int, bool]], template: str, file: str) -> Rendered:
    pieces: list[str] = []
    runs: list[tuple[int, int, bool]] = []
    length = 0
    for index, piece in enumerate(_MARK.split(output)):
        if index % 2 and int(piece) < len(origins):
            runs.append((length, *origins[int(piece)]))
        elif index % 2 == 0:
            pieces.append(piece)
            length += len(piece)
    runs = runs or [(0, 0, False)]
    return Rendered("".join(pieces), template, file, tuple(runs), tuple(run[0] for run in runs))
