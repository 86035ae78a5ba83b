"""The one sandbox: macros are made known to it, templates are rendered by it, failures get their places."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from types import CodeType, TracebackType
from typing import Any

import jinja2

from engine.errors import Diagnostic, Location, ProjectError
from engine.jinja.environment import Environment
from engine.jinja.macro_calls import MacroCall, bodies, renamed
from engine.jinja.macro_file import OWN, MacroFile
from engine.jinja.macro_library import Library
from engine.jinja.rendered_text import Rendered, mark, spliced, unmark
from engine.jinja.template_errors import FAILURES, diagnostics_of, syntax_place, words
from engine.jinja.template_limits import bounded
from engine.jinja.template_tokens import TAG, find, line_start, place

_CALLERS = 4
_REFERENCE = re.compile(r"""\s*(ref|source)\(\s*((?:'[\w.]+'|"[\w.]+")(?:\s*,\s*(?:'[\w.]+'|"[\w.]+"))*)\s*\)\s*""")
_NAME = re.compile(r"[\w.]+")
# The engine's own macros are the same for every project that a process compiles (a watching one, say).
_OWN_CODE: dict[MacroFile, CodeType] = {}


@dataclass(frozen=True, slots=True)
class _Frame:
    file: str
    line: int
    macro_call: MacroCall | None = None


class Sandbox:
    """An environment with the names that templates may use.

    Functions are given once; what differs between models (the model at hand) they find out themselves.
    """

    def __init__(self, names: Mapping[str, Any]) -> None:
        self._env = Environment(names)
        self._texts: dict[str, str] = {}
        self._library = Library(self._env)
        self._expressions: dict[str, jinja2.Template] = {}

    @property
    def macros(self) -> Mapping[str, MacroCall]:
        return self._library.working

    @property
    def macro_files(self) -> Mapping[str, str]:
        return self._library.files

    def add_macros(self, files: Iterable[MacroFile]) -> list[Diagnostic]:
        """Define the macros of some files for all templates.

        The project's macros win over the engine's; those of a package are called as `package.macro()`. Two
        macros of one name are an error. The macros of a broken file are known and cannot be called, so
        that its fault is reported once.
        """
        diagnostics: list[Diagnostic] = []
        trees = []
        for macro_file in files:
            self._texts[macro_file.file] = macro_file.text
            if macro_file.package == OWN:
                self._library.define_unread(macro_file, partial(self._run_own, macro_file))
                continue
            try:
                with bounded(macro_file.file):
                    trees.append((macro_file, self._library.define(macro_file, diagnostics)))
            except FAILURES as error:
                diagnostics.extend(self._failure(error, macro_file.file))
                self._library.define_unread(macro_file)
        self._library.publish(diagnostics)
        for macro_file, tree in trees:
            try:
                with bounded(macro_file.file):
                    self._run(macro_file, self._env.compile(tree, name=macro_file.file, filename=macro_file.file))
            except FAILURES as error:
                diagnostics.extend(self._failure(error, macro_file.file))
        self._library.publish_names()
        return diagnostics

    def _run_own(self, macro_file: MacroFile) -> None:
        if macro_file not in _OWN_CODE:
            tree = self._env.parse(macro_file.text, name=macro_file.file)
            renamed(tree)
            _OWN_CODE[macro_file] = self._env.compile(tree, name=macro_file.file, filename=macro_file.file)
        self._run(macro_file, _OWN_CODE[macro_file])

    def _run(self, macro_file: MacroFile, code: CodeType) -> None:
        try:
            names = self._library.names_for(macro_file.package)
            defined, values = bodies(jinja2.Template.from_code(self._env, code, names))
            self._env.share(values)
        except FAILURES:
            # Unlike render(), running a file leaves the lines of Jinja's Python in the traceback.
            self._env.handle_exception()
        self._library.fill(macro_file, defined)

    def _template(self, text: str, file: str) -> jinja2.Template:
        code = self._env.compile(text, name=file, filename=file)
        return jinja2.Template.from_code(self._env, code, self._env.globals)

    def render(self, text: str, file: str, names: Mapping[str, Any] | None = None) -> Rendered:
        """Render a template. Raises ProjectError: with the place in the template (or in the macro it called)."""
        if not TAG.search(text):
            return Rendered(text, text, file)
        self._texts[file] = text
        self._env.steps.begin()
        try:
            with bounded(file):
                return self._rendered(text, file, names)
        except FAILURES as error:
            raise ProjectError.from_diagnostics(self._failure(error, file)) from error

    def _rendered(self, text: str, file: str, names: Mapping[str, Any] | None) -> Rendered:
        if not names and (quick := spliced(text, file, self._printed)) is not None:
            return quick
        marked, origins = mark(self._env, text, file)
        return unmark(self._template(marked, file).render(names or {}), origins, text, file)

    def _printed(self, expression: str) -> str:
        if reference := _REFERENCE.fullmatch(expression):
            function: Any = self._env.globals[reference[1]]
            return str(function(*_NAME.findall(reference[2])))
        if expression not in self._expressions:
            self._expressions[expression] = self._env.from_string("{{" + expression + "}}")
        template = self._expressions[expression]
        # An expression sets no names: it needs no copy of all that there are.
        names: Any = template.globals
        return str(self._env.concat(template.root_render_func(template.new_context(names, shared=True))))

    def render_value(self, text: str, location: Location, names: Mapping[str, Any]) -> str:
        """Render one value of a header or of project.yml; errors are at the value."""
        self._env.steps.begin()
        try:
            with bounded(location.file):
                return self._template(text, location.file).render(names)
        except FAILURES as error:
            raise ProjectError.from_diagnostics(d.at(location) for d in self.explain(error)) from error

    def call(self, name: str, *args: Any, **kwargs: Any) -> Any:
        """Call a macro of `macros`. Raises ProjectError: with the place in the macro, if it is one of the project's."""
        self._env.steps.begin()
        try:
            with bounded(self._library.files.get(name, "")):
                return self.macros[name](*args, **kwargs)
        except FAILURES:
            try:
                self._env.handle_exception()
            except FAILURES as error:
                raise ProjectError.from_diagnostics(self._failure(error)) from error

    def explain(self, error: BaseException) -> tuple[Diagnostic, ...]:
        return diagnostics_of(self._env, error)

    def _failure(self, error: BaseException, file: str | None = None) -> tuple[Diagnostic, ...]:
        diagnostics = self.explain(error)
        if isinstance(error, jinja2.TemplateSyntaxError) and file is not None:
            at = syntax_place(self._env, error, file, self._texts[file])
            return tuple(d.at(at) for d in diagnostics)
        frames = self._frames(error.__traceback__) or ([_Frame(file, 1)] if file is not None else [])
        if isinstance(error, RecursionError):
            # Where in its round a macro was when the depth ran out is chance; its calls are not.
            frames = [frame for frame in frames if frame.macro_call] or frames
        if not frames:
            return diagnostics
        macro_call = frames[-1].macro_call
        at = self._place(frames[-1], [macro_call.name] if macro_call else words(error))
        if callers := self._callers(frames[:-1]):
            diagnostics = tuple(replace(d, hint=f"{d.hint} Called from {callers}.".strip()) for d in diagnostics)
        return tuple(d.at(at) for d in diagnostics)

    def _place(self, frame: _Frame, names: list[str]) -> Location:
        text = self._texts[frame.file]
        return place(text, find(self._env, frame.file, text, line_start(text, frame.line), names), frame.file)

    def _callers(self, frames: list[_Frame]) -> str:
        inner = [str(self._place(f, [f.macro_call.name])) for f in reversed(frames) if f.macro_call]
        if len(inner) > _CALLERS:
            inner = [*inner[: _CALLERS - 1], inner[-1]]
        return ", from ".join(inner)

    def _frames(self, trace: TracebackType | None) -> list[_Frame]:
        """The lines of templates that were running, down to the call of a macro of the engine's own."""
        frames: list[_Frame] = []
        while trace is not None:
            frame = trace.tb_frame
            if frame.f_code.co_filename in self._texts:
                template_frame = _Frame(frame.f_code.co_filename, trace.tb_lineno)
                if not (frames and _is_lineless(template_frame, frames[-1])):
                    frames.append(template_frame)
            elif frame.f_code is MacroCall.__call__.__code__ and frames:
                macro = frame.f_locals["self"]
                frames[-1] = replace(frames[-1], macro_call=macro)
                if macro.package == OWN:
                    break
            trace = trace.tb_next
        return frames


def _is_lineless(frame: _Frame, outer: _Frame) -> bool:
    """Whether a frame is a function that Jinja made of a loop, resumed: in no line of the template; Jinja says 1."""
    return frame.line == 1 and frame.file == outer.file and outer.macro_call is None and outer.line > 1
