"""Templates that would take all memory or all time: every method, filter, test, global and operator that templates
reach, each with huge operands, and what grows by being done again and again."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path

from jinja2.defaults import DEFAULT_FILTERS, DEFAULT_TESTS
from jinja2.sandbox import SandboxedEnvironment

from tests.fixtures import read_rows, unescape

_SET = {
    "t": "'x' * 1900000",
    "u": "'y' ~ 'x' * 900000",
    "b": "('x' * 1900000).encode()",
    "c": "('y' ~ 'x' * 900000).encode()",
    "l": "[1] * 1900000",
    "r": "range(99999) | list",
    "n": "('f' * 1900000) | int(base=16)",
    "m": "('7' * 900000) | int(base=16)",
    "d": "dict(zip(range(99999), range(99999)))",
    "s": "'x \n\t' * 470000",
    "w": "'<a@b.c www.x.y ' * 120000",
}
# What the methods are called on, and by which of the names above.
_OWNERS = {str: ("t", "s", "'x\t'"), bytes: ("b", "b'x'"), int: ("n", "7"), float: ("1.5",), list: ("l", "r"),
           dict: ("d",), tuple: ("(1, 2)",), range: ("range(99999)",)}  # fmt: skip
_HUGE = ("10**9", "4 * 10**9", "10**13")
_ARGUMENTS = ("", "10**9", "10**13", "u", "c", "l", "r", "u, t", "c, b", "10**9, 'x'", "'x', u", "l | map('string')")


def _needed(args: str, body: str) -> str:
    words = f"{args} {body}"
    used = [name for name in _SET if any(word == name for word in _words(words))]
    return "".join(f"{{% set {name} = {_SET[name]} %}}" for name in used)


def _words(text: str) -> list[str]:
    return "".join(c if c.isalnum() or c == "_" else " " for c in text).split()


def _sets(body: str) -> str:
    return f"{_needed('', body)}{{% set z = {body} %}}1"


def methods() -> Iterator[tuple[str, str]]:
    """Each public method of the values that templates make."""
    for kind, owners in _OWNERS.items():
        for name in dir(kind):
            if name.startswith("_"):
                continue
            for owner, args in itertools.product(owners, _ARGUMENTS):
                owner_text = owner.replace("b'x'", "'x'.encode()")
                call = f"({owner_text}).{name}({args})"
                yield f"{kind.__name__}.{name}: {call}", _sets(call)


def filters() -> Iterator[tuple[str, str]]:
    """Each filter of Jinja."""
    made = SandboxedEnvironment()
    arguments = ("", "10**9", "10**9, 'x'", "u", "'x', u", "10**13", "'upper'", "'in', r")
    for name in sorted({*DEFAULT_FILTERS, *made.filters}):
        for owner, args in itertools.product(("t", "s", "w", "l", "r", "d", "n", "1.5"), arguments):
            body = f"{owner} | {name}({args})"
            yield f"filter {body}", _sets(body)
            yield f"filter, listed {body}", _sets(f"({body}) | list")


def tests() -> Iterator[tuple[str, str]]:
    """Each test of Jinja."""
    for name in sorted(DEFAULT_TESTS):
        if not name.isalpha():
            continue
        for owner, args in itertools.product(("t", "l", "n"), ("", "(u)", "(l)", "(m)")):
            body = f"{owner} is {name}{args}"
            yield f"test {body}", _sets(body)


def globals_() -> Iterator[tuple[str, str]]:
    """Each function that templates may call, with large things and deep ones."""
    names = ("range", "dict", "namespace", "set", "zip", "tojson", "fromjson", "toyaml", "fromyaml", "return", "var",
             "env_var", "ref", "source", "config", "log", "print", "joiner", "cycler", "lipsum",
             "exceptions.warn", "exceptions.raise_compiler_error")  # fmt: skip
    for name, args in itertools.product(names, ("10**9", "t", "l", "r", "d", "n", "l, l, l, l", "'[' * 900000", "w")):
        call = f"{name}({args})"
        yield f"global {call}", _sets(call)


def operators() -> Iterator[tuple[str, str]]:
    """Each operator."""
    operands = ("t", "b", "l", "n", "10**9", "10**13", "1.5", "'%' ~ 10**9 ~ 'd'", "'%*d'", "(10**9, 1)", "u", "m")
    for sign in ("+", "-", "*", "/", "//", "%", "**", "~", "==", "<", "in", "not in", "and", "or"):
        for left, right in itertools.product(operands, operands):
            body = f"({left}) {sign} ({right})"
            yield f"operator {body}", _sets(body)


_GROW = "{{% set ns = namespace(x={first}) %}}{{% for i in range(90000) %}}{{% set ns.x = {step} %}}{{% endfor %}}1"
_KEEP = "{{% set kept = [] %}}{{% for i in range(90000) %}}{{% do kept.append({made}) %}}{{% endfor %}}1"
_AGAIN = "{sets}{{% for i in range(90000) %}}{{% set z = {made} %}}{{% endfor %}}1"


def growth() -> Iterator[tuple[str, str]]:
    """What is small once and is done again: kept, doubled, nested, formatted, called by itself."""
    steps = {
        "'x'": ("ns.x ~ ns.x", "ns.x + ns.x", "[ns.x, ns.x] | join", "ns.x.replace('x', 'xx')", "ns.x | replace('x', 'xx')",
                "'{0}{0}'.format(ns.x)", "'{a}{a}'.format_map({'a': ns.x})", "'%s%s' % (ns.x, ns.x)",
                "'%s%s' | format(ns.x, ns.x)", "ns.x.join([ns.x, ns.x])", "ns.x | indent(900)", "(ns.x | tojson) * 2",
                "ns.x | urlencode ~ '%'", "(ns.x ~ '\"') | tojson", "ns.x.translate({120: 'xx'})",
                "ns.x.center(2 * (ns.x | length))", "ns.x.encode('utf-16').decode('latin-1')"),
        "'x'.encode()": ("ns.x + ns.x", "ns.x * 2", "ns.x.join([ns.x, ns.x])", "ns.x.replace('x'.encode(), 'xx'.encode())",
                         "ns.x.center(2 * (ns.x | length))", "ns.x.hex().encode()"),
        "[1]": ("ns.x + ns.x", "ns.x * 2", "[ns.x, ns.x]", "zip(ns.x + ns.x, ns.x + ns.x)", "(ns.x, ns.x)",
                "{'a': ns.x, 'b': ns.x}", "ns.x | list + ns.x | list", "[ns.x | string, ns.x | string]",
                "[ns.x | tojson, ns.x | tojson]", "[toyaml(ns.x), toyaml(ns.x)]", "ns.x | batch(9, 1) | list"),
        "3": ("ns.x * ns.x", "ns.x ** 2", "ns.x * 2 ** 9000", "(ns.x | string) | int * 10 ** 4000"),
    }  # fmt: skip
    for first, some in steps.items():
        for step in some:
            yield f"doubled: {step}", _GROW.format(first=first, step=step)
    made = ("'x' * 1900000 ~ i", "[i] * 1900000", "range(99999) | list", "'x'.encode() * 1900000", "'x'.center(1900000)",
            "('x' * 900000 ~ i).encode()", "zip(range(99999), range(99999))", "dict(zip(range(99999), range(99999)))",
            "kept * 2", "kept | list", "kept | string", "kept | tojson", "i.to_bytes(1900000, 'big')",
            "('x' * 900000 ~ i) | upper", "'%9999d' % i", "'{:9999}'.format(i)", "('f' * 900000) | int(base=16)",
            "range(99999) | map('string') | list", "['x' * 90000 ~ i]", "namespace(a='x' * 900000 ~ i)")  # fmt: skip
    for each in made:
        yield f"kept: {each}", _KEEP.format(made=each)
    again = ("t.replace('x', 'y')", "t | upper", "t == t ~ ''", "u in t", "t.rfind(u)", "t.count('xx')", "l + [1]", "l == l + []",
             "2 in l", "l.count(2)", "l.index(2)", "l | sort", "l | unique | list", "l | sum", "l | length", "t | title",
             "t | wordcount", "t | reverse", "t | list", "s.split()", "s.splitlines()", "t | escape", "n % m", "n // m",
             "n == m", "n < m", "n | string", "n ~ ''", "t[::2]", "l[::2]", "t | urlize", "t | striptags", "t | wordwrap(1)",
             "l | groupby(0) | list", "l | tojson", "s | indent", "d | dictsort", "d | xmlattr", "t | truncate(5)",
             "t.encode().hex()", "t.partition(u)", "t.rpartition(u)", "t.rsplit(u)", "t.strip('x')", "t.translate({120: 121})")  # fmt: skip
    for each in again:
        yield f"again: {each}", _AGAIN.format(sets=_needed("", each), made=each)
    yield from _SPECIAL.items()


_MACRO = "{% macro m(n) %}BODY{% endmacro %}{{ m(30) }}1"
_SPECIAL = {
    **{name: unescape(text) for name, text in read_rows(Path(__file__).with_suffix(".txt"), "special", 2)},
    "a macro twice": _MACRO.replace("BODY", "{% if n %}{{ m(n-1) }}{{ m(n-1) }}{% endif %}"),
    "a macro without end": _MACRO.replace("BODY", "{{ m(n+1) }}"),
    "a macro twice, its text doubled": _MACRO.replace("BODY", "{% set a = m(n-1) if n else 'x' %}{{ a ~ a }}"),
    "a caller of itself": "{% macro m(n) %}{{ caller() }}{{ caller() }}{% endmacro %}" + "{% call m(1) %}" * 40 + "x" + "{% endcall %}" * 40,
    "loops that are filtered": "{% for i in range(99999) if not i %}{% for j in range(99999) if j < 0 %}{% endfor %}{% endfor %}" * 90 + "1",
    "a chain of maps": "{{ range(99999)" + " | map('string')" * 400 + " | list | length }}",
    "a number in the template": "{{ " + "9" * 900000 + " }}",
    "a product by the compiler": "{{ " + " * ".join(["9999999999999999"] * 900) + " > 1 }}",
    "deep brackets": "{{ " + "(" * 90000 + "1" + ")" * 90000 + " }}",
    "deep lists": "{{ " + "[" * 900 + "]" * 900 + " }}",
    "deep blocks": "{% if 1 %}" * 9000 + "1" + "{% endif %}" * 9000,
    "deep loops": "{% for i in [1, 2] %}" * 60 + "1" + "{% endfor %}" * 60,
    "deep loops of few": "{% for i in [1, 2] %}" * 19 + "{{ 'x' * 99999 }}" + "{% endfor %}" * 19,
    "many assignments": "{% set x = 'x' * 1900000 %}" * 3 + "".join(f"{{% set v{i} = 'x' * 1900000 ~ {i} %}}" for i in range(2000)) + "1",
    "many names": "".join(f"{{% set v{i} = 1 %}}" for i in range(20000)) + "1",
}  # fmt: skip


def attacks() -> dict[str, str]:
    """All templates, by what they do."""
    found: dict[str, str] = {}
    for name, text in itertools.chain(methods(), filters(), tests(), globals_(), operators(), growth()):
        found.setdefault(name, text)
    return found


def special() -> dict[str, str]:
    """Those that grow by being done again, and those that were thought of one by one."""
    return dict(growth())
