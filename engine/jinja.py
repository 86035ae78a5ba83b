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
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any

import jinja2
from jinja2 import nodes
from jinja2.sandbox import ImmutableSandboxedEnvironment, SecurityError

from engine.errors import Diagnostic, EngineError, Location, ProjectError, near

_MARK = re.compile("\x01(\\d+)\x02")
_TAG = re.compile(r"\{[{%#]")
_CAPTURES = {"macro": "endmacro", "call": "endcall", "filter": "endfilter", "set": "endset"}
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
        self._env.globals.clear()
        self._env.globals.update({"range": jinja2.defaults.DEFAULT_NAMESPACE["range"]})
        self._env.globals.update({"namespace": jinja2.defaults.DEFAULT_NAMESPACE["namespace"]})
        self._env.globals.update(names)
        self._files: set[str] = set()
        self.macros: dict[str, Callable[..., str]] = {}
        self.macro_files: dict[str, str] = {}

    def add_macros(self, files: Iterable[MacroFile]) -> list[Diagnostic]:
        """Define the macros of some files for all templates; later files replace earlier ones."""
        found: list[Diagnostic] = []
        templates = []
        for macro_file in files:
            try:
                tree = self._env.parse(macro_file.text, name=macro_file.file)
            except jinja2.TemplateSyntaxError as error:
                found.append(_syntax(error, macro_file.file, macro_file.text))
                continue
            names = [node.name for node in tree.find_all(nodes.Macro)]
            for name in names:
                self.macro_files[name] = macro_file.file
                self._env.globals[name] = self._late(name)
            templates.append((macro_file, names))
        for macro_file, names in templates:
            try:
                module = self._template(macro_file.text, macro_file.file).make_module()
            except (jinja2.TemplateError, EngineError) as error:
                found.extend(self._failure(error, macro_file.file, macro_file.text))
                continue
            self.macros.update({name: getattr(module, name) for name in names})
        return found

    def _late(self, name: str) -> Callable[..., str]:
        """A stand-in, so that macros of different files can call each other."""

        def call(*args: Any, **kwargs: Any) -> str:
            return self.macros[name](*args, **kwargs)

        return call

    def _template(self, text: str, file: str) -> jinja2.Template:
        self._files.add(file)
        code = self._env.compile(text, name=file, filename=file)
        return jinja2.Template.from_code(self._env, code, self._env.globals)

    def render(self, text: str, file: str, names: Mapping[str, Any] | None = None) -> Rendered:
        """Render a template.

        Raises:
            ProjectError: with the place in the template (or in the macro it called).
        """
        if not _TAG.search(text):
            return Rendered(text, text, file)
        try:
            marked, origins = _mark(self._env, text, file)
            output = self._template(marked, file).render(names or {})
        except (jinja2.TemplateError, EngineError) as error:
            failure = ProjectError("jinja-error", "")
            failure.diagnostics = tuple(self._failure(error, file, text))
            raise failure from error
        except (ArithmeticError, TypeError, ValueError, LookupError, AttributeError, RecursionError) as error:
            failure = ProjectError("jinja-error", "")
            failure.diagnostics = tuple(self._failure(error, file, text))
            raise failure from error
        return _unmark(output, origins, text, file)

    def render_value(self, text: str, location: Location, names: Mapping[str, Any]) -> str:
        """Render one value of a header or of project.yml; errors stand at the value."""
        try:
            return self._template(text, location.file).render(names)
        except (jinja2.TemplateError, EngineError) as error:
            failure = ProjectError("jinja-error", "")
            known = error.diagnostics if isinstance(error, EngineError) else (self._plain(error),)
            failure.diagnostics = tuple(d.at(location) for d in known)
            raise failure from error

    def _plain(self, error: Exception) -> Diagnostic:
        if isinstance(error, jinja2.UndefinedError):
            name = _undefined_name(error)
            hint = undefined_hint(name, self._env.globals) if name else ""
            return Diagnostic("jinja-undefined", error.message or "a name is undefined", hint)
        if isinstance(error, SecurityError):
            return Diagnostic("jinja-security", f"not allowed in a template: {error}")
        if isinstance(error, jinja2.TemplateSyntaxError):
            return Diagnostic("jinja-syntax", f"Jinja: {error.message}")
        return Diagnostic("jinja-error", f"{type(error).__name__}: {error}")

    def _failure(self, error: Exception, file: str, text: str) -> list[Diagnostic]:
        if isinstance(error, jinja2.TemplateSyntaxError):
            return [_syntax(error, file, text)]
        frames = self._frames(error.__traceback__)
        inner_file, line = frames[-1] if frames else (file, 1)
        column = 1
        if inner_file == file:
            lines = text.split("\n")
            source = lines[line - 1] if line <= len(lines) else ""
            column = _column(source, error)
        location = Location(inner_file, line, column)
        known = error.diagnostics if isinstance(error, EngineError) else (self._plain(error),)
        callers = [f"{f}:{n}" for f, n in frames[:-1] if (f, n) != frames[-1]]
        if callers and inner_file != file:
            note = f"Called from {callers[0]}."
            known = tuple(
                Diagnostic(d.code, d.message, f"{d.hint} {note}".strip(), d.level, d.node, d.location)
                for d in known
            )
        return [d.at(location) for d in known]

    def _frames(self, trace: TracebackType | None) -> list[tuple[str, int]]:
        frames = []
        while trace is not None:
            name = trace.tb_frame.f_code.co_filename
            if name in self._files:
                frames.append((name, trace.tb_lineno))
            trace = trace.tb_next
        return frames


def undefined_hint(name: str, known: Iterable[str]) -> str:
    """What to do about an undefined name; dbt's own names are answered by name."""
    named = {
        "run_started_at": "A streaming query keeps its state between runs, so its text may not differ from run "
        "to run; use current_timestamp() for the time of the micro-batch.",
        "invocation_id": "A streaming query keeps its state between runs, so its text may not differ from run to run.",
        "execute": "Templates are rendered without a connection; there is nothing to execute.",
        "run_query": "Templates are rendered without a connection; write the query as a model and ref() it.",
        "adapter": "Templates are rendered without a connection; there is no adapter.",
        "dbt_utils": "Packages of macros are folders: copy the macro into macros/.",
    }
    return named.get(name) or near(name, (k for k in known if not k.startswith("_")))


def _undefined_name(error: jinja2.UndefinedError) -> str:
    match = re.match(r"'([^']+)' is undefined", error.message or "")
    return match[1] if match else ""


def _column(source: str, error: Exception) -> int:
    """The column of the name or call an error is about, within its line."""
    words = [_undefined_name(error)] if isinstance(error, jinja2.UndefinedError) else []
    if isinstance(error, EngineError):
        words = re.findall(r"'([^']+)'", error.diagnostic.message)
    for word in words:
        match = re.search(rf"(?<!\w){re.escape(word)}(?!\w)", source)
        if match:
            return match.start() + 1
    tag = _TAG.search(source)
    return tag.start() + 1 if tag else 1


def _syntax(error: jinja2.TemplateSyntaxError, file: str, text: str) -> Diagnostic:
    lines = text.split("\n")
    source = lines[error.lineno - 1] if error.lineno <= len(lines) else ""
    tag = _TAG.search(source)
    column = tag.start() + 1 if tag else len(source) - len(source.lstrip()) + 1
    return Diagnostic(
        "jinja-syntax", f"Jinja: {error.message}", location=Location(file, error.lineno, column)
    )


def _mark(env: jinja2.Environment, text: str, file: str) -> tuple[str, list[tuple[int, bool]]]:
    """The template with a mark before each piece of output, and each mark's (offset, literal).

    Whitespace control is applied here already, since a mark beside a tag would hide the blanks from it;
    line ends that it removes are kept inside the tags, so that Jinja's own line numbers stay right.
    """
    out: list[str] = []
    origins: list[tuple[int, bool]] = []
    cursor = 0
    depth = 0
    tag: list[str] = []

    def mark(offset: int, literal: bool) -> None:
        if depth == 0:
            origins.append((offset, literal))
            out.append(f"\x01{len(origins) - 1}\x02")

    for _, kind, value in env.lexer.tokeniter(text, file, file):
        at = text.index(value, cursor)
        lost = text.count("\n", cursor, at)
        cursor = at + len(value)
        if kind == "data":
            mark(at, True)
            out.append(value)
        elif kind in _BEGINS:
            if kind in {"variable_begin", "block_begin"}:
                mark(at, False)
            tag = []
            begin = _BEGINS[kind] or "{% raw" + "\n" * value.count("\n") + "%}"
            out.append(begin + ("\n" * lost if _BEGINS[kind] else ""))
        elif kind in {"block_end", "variable_end", "comment_end", "raw_end"}:
            depth += _depth_change(tag) if kind == "block_end" else 0
            bare = value.replace("-", "").replace("+", "")
            stripped = bare.rstrip()
            if kind == "raw_end":
                out.append(stripped)
            else:
                out.append("\n" * bare.count("\n") + stripped)
        else:
            tag.append(value)
            out.append("\n" * lost + value)
    return "".join(out), origins


def _depth_change(tag: list[str]) -> int:
    words = [value for value in tag if not value.isspace()]
    if not words:
        return 0
    if words[0] == "set":
        return 0 if "=" in words else 1
    if words[0] in _CAPTURES:
        return 1
    return -1 if words[0] in _CAPTURES.values() else 0


def _unmark(output: str, origins: list[tuple[int, bool]], template: str, file: str) -> Rendered:
    pieces: list[str] = []
    runs: list[tuple[int, int, bool]] = []
    length = 0
    for index, piece in enumerate(_MARK.split(output)):
        if index % 2:
            offset, literal = origins[int(piece)]
            runs.append((length, offset, literal))
        else:
            pieces.append(piece)
            length += len(piece)
    runs = runs or [(0, 0, False)]
    return Rendered("".join(pieces), template, file, tuple(runs), tuple(run[0] for run in runs))
