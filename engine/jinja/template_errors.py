"""What a template's failure says, in our words, and where it is."""

from __future__ import annotations

import re
from types import TracebackType
from typing import Any

import jinja2
from jinja2.exceptions import SecurityError
from jinja2.sandbox import SandboxedEnvironment

from engine.errors import Diagnostic, EngineError, Location, near
from engine.jinja.environment import Environment
from engine.jinja.template_limits import too_much
from engine.jinja.template_tokens import find, line_start, place, readable_tokens


class Returned(Exception):  # noqa: N818 - how `return` leaves a macro; a fault only outside of one
    def __init__(self, value: Any) -> None:
        super().__init__()
        self.value = value


# What rendering may raise: all of it is the template's fault. (SyntaxError and MemoryError come from Python's
# compiler when blocks or brackets are nested too deeply.)
FAILURES = (
    jinja2.TemplateError, EngineError, ArithmeticError, TypeError, ValueError, LookupError, AttributeError,
    RecursionError, SyntaxError, MemoryError, AssertionError, Returned,
)  # fmt: skip
CRASH = "the template failed: "
# Macros have other names inside Jinja, so that those of one file find each other like those of several.
INSIDE = "engine_macro__"
_BLOCKS = {"macro", "call", "filter", "set", "block", "if", "for", "with"}
_SANDBOX = "Templates cannot access Python attributes; use Jinja's filters."
_OTHER_HINTS = {"expected '%}', got 'if'": "After else another condition is {% elif ... %}."}
_OTHER_BLOCKS = {
    "snapshot": "A history of changes is a streaming table with unique_key, sequence_by and history: true.",
    "materialization": "Set 'materialized' in the header; custom materializations are not supported.",
    "docs": "Write the text as 'description' in the header.",
    "test": "A test kind is a macro: {% macro test_name(model, column_name) %}.",
    "data_test": "A test kind is a macro: {% macro test_name(model, column_name) %}.",
    "include": "Macros of the folder macros/ are called by name.",
}


def diagnostics_of(env: Environment, error: BaseException) -> tuple[Diagnostic, ...]:
    if isinstance(error, EngineError):
        return error.diagnostics
    if isinstance(error, SecurityError):
        return (Diagnostic("jinja-security", f"not allowed in a template: {error}", _SANDBOX),)
    if isinstance(error, jinja2.UndefinedError):
        return (_undefined(env, error),)
    if isinstance(error, jinja2.TemplateSyntaxError):
        message, hint = _syntax_message(env, error)
        return (Diagnostic("jinja-syntax", f"Jinja: {message}", hint),)
    if isinstance(error, MemoryError) and not _in_compiler(error):
        return too_much().diagnostics
    return (_crash(error),)


def _in_compiler(error: BaseException) -> bool:
    """Whether Python's compiler raised it: of brackets that are nested too deeply it says MemoryError."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return trace is not None and trace.tb_frame.f_code is jinja2.Environment._compile.__code__  # noqa: SLF001


def _undefined(env: Environment, error: jinja2.UndefinedError) -> Diagnostic:
    message = re.sub(r"'engine[\w.]*\._?(\w+) object'", lambda m: f"'{m[1].lower()}'", error.message or "")
    match = re.match(r"'([^']+)' is undefined", message)
    hint = "Correct the name, or give it a default."
    if match:
        hint = _undefined_hint(env, match[1], called=_was_called(error.__traceback__))
    return Diagnostic("jinja-undefined", message or "a name is undefined", hint)


def _was_called(trace: TracebackType | None) -> bool:
    while trace is not None:
        if trace.tb_frame.f_code is SandboxedEnvironment.is_safe_callable.__code__:
            return True
        trace = trace.tb_next
    return False


def _undefined_hint(env: Environment, name: str, *, called: bool) -> str:
    packages = [package for package, macros in env.packages.items() if called and name in macros]
    suggestion = f"Did you mean '{packages[0]}.{name}'?" if packages else near(name, env.globals)
    if suggestion.startswith("Did you mean"):
        return suggestion
    if called:
        return "Define macros in files under macros/; call macros of a macro package as package.macro()."
    return f"A variable of the project is var('{name}'), one of the environment env_var('{name}')."


def _crash(error: BaseException) -> Diagnostic:
    if isinstance(error, Returned):
        return Diagnostic("jinja-error", "'return' outside a macro", "Define macros in files under macros/.")
    if isinstance(error, (RecursionError, SyntaxError, MemoryError)):
        return Diagnostic("jinja-error", "the template is nested too deeply", "Nest less deeply.")
    text = re.sub(r"\b(?:Names|_Exceptions)\.", "", str(error)).replace(INSIDE, "") or type(error).__name__
    if "no loader" in text:
        hint = "Macros of the folder macros/ are called by name, without import."
        return Diagnostic("jinja-error", "templates do not include or import each other", hint)
    return Diagnostic("jinja-error", f"{CRASH}{text}", "Check the arguments of the call.")


def words(error: BaseException) -> list[str]:
    """The names an error is about, as they may be in the template, best first."""
    if isinstance(error, EngineError) and error.diagnostics:
        first = error.diagnostic
        prefix_words = ["raise_compiler_error"] if first.code == "compiler-error" else []
        quoted = [word.removesuffix("()") for word in re.findall(r"'([^']+)'", first.message)]
        return [*prefix_words, *quoted, *(word.partition(".")[0] for word in quoted)]
    if isinstance(error, Returned):
        return ["return"]
    return re.findall(r"'([^']+)'", _in_our_words(str(error)).replace(INSIDE, ""))[::-1]


def _in_our_words(message: str) -> str:
    for theirs, ours in (("end of print statement", "}}"), ("end of statement block", "%}"), ("token '", "'")):
        message = message.replace(theirs, ours)
    return message


def _syntax_message(env: jinja2.Environment, error: jinja2.TemplateSyntaxError) -> tuple[str, str]:
    message = error.message or "the template cannot be read"
    if block := _unclosed_block(error):
        return f"'{block}' is not closed", f"Add {{% end{block} %}}."
    if _is_unclosed_tag(error):
        return "a tag is not closed", "Close the {{, {% or {# that starts here."
    message = _in_our_words(message.split(". ")[0].rstrip("."))
    message = message[0].lower() + message[1:]
    if match := re.match(r"no (filter|test) named '(\w+)'", message):
        return message, near(match[2], env.filters if match[1] == "filter" else env.tests)
    if match := re.match(r"encountered unknown tag '(\w+)'", message):
        tag = match[1]
        if tag.startswith("end") or tag in {"else", "elif"}:
            return f"'{tag}' has no matching start", "Remove it, or open the block before it."
        return f"unknown block '{tag}'", _OTHER_BLOCKS.get(tag) or near(tag, _BLOCKS)
    return message, _OTHER_HINTS.get(message, "Check the tag: {{ value }}, {% statement %}, {# comment #}.")


def _unclosed_block(error: jinja2.TemplateSyntaxError) -> str:
    message = error.message or ""
    match = re.search(r"innermost block that needs to be closed is '(\w+)'", message)
    ends = message.startswith(("Unexpected end of template", "Encountered unknown tag 'end"))
    return match[1] if match and ends else ""


def _is_unclosed_tag(error: jinja2.TemplateSyntaxError) -> bool:
    message = error.message or ""
    return message.startswith(("unexpected end of template", "Missing end of"))


def syntax_place(env: jinja2.Environment, error: jinja2.TemplateSyntaxError, file: str, text: str) -> Location:
    """Where a template that cannot be read goes wrong: at the word, or where the open block or tag begins."""
    block = _unclosed_block(error)
    if not block and not _is_unclosed_tag(error):
        start = _faulty_tag(env, text, file, line_start(text, error.lineno))
        return place(text, find(env, file, text, start, words(error)), file)
    opened: list[tuple[str, int]] = []
    begin, previous_kind = 0, ""
    for at, _, kind, value in readable_tokens(env, text, file):
        if kind in {"variable_begin", "block_begin", "comment_begin", "raw_begin"}:
            begin = at
        elif kind == "name" and previous_kind == "block_begin":
            if value.startswith("end") and opened:
                if value != f"end{opened[-1][0]}":
                    break
                opened.pop()
            elif value in _BLOCKS:
                opened.append((value, begin))
        previous_kind = kind if kind != "whitespace" else previous_kind
    matching = [at for word, at in opened if word == block]
    return place(text, matching[-1] if matching else begin, file)


def _faulty_tag(env: jinja2.Environment, text: str, file: str, start: int) -> int:
    begin = start
    for at, _, kind, value in readable_tokens(env, text, file):
        if kind in {"variable_begin", "block_begin"} and at >= start:
            begin = at
        if kind in {"variable_end", "block_end"} and at >= start:
            try:
                env.parse(text[: at + len(value)])
            except jinja2.TemplateSyntaxError as error:
                if not (error.message or "").lower().startswith("unexpected end of template"):
                    return begin
    return start
