"""Templates that would take all memory or all time: every method, filter, test, global and operator that templates
reach, each with huge operands, and what grows by being done again and again."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from jinja2.defaults import DEFAULT_FILTERS, DEFAULT_TESTS
from jinja2.sandbox import SandboxedEnvironment

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
    "a macro twice": _MACRO.replace("BODY", "{% if n %}{{ m(n-1) }}{{ m(n-1) }}{% endif %}"),
    "a macro without end": _MACRO.replace("BODY", "{{ m(n+1) }}"),
    "a macro twice, its text doubled": _MACRO.replace("BODY", "{% set a = m(n-1) if n else 'x' %}{{ a ~ a }}"),
    "a caller of itself": "{% macro m(n) %}{{ caller() }}{{ caller() }}{% endmacro %}" + "{% call m(1) %}" * 40 + "x" + "{% endcall %}" * 40,
    "a recursive loop": "{% for i in [[1] * 9] * 9 recursive %}{{ loop([[1] * 9] * 9) if i is iterable }}{% endfor %}1",
    "loops in loops in loops": "{% for i in range(9999) %}{% for j in range(9999) %}{% for k in range(9999) %}{% endfor %}{% endfor %}{% endfor %}1",
    "loops that are filtered": "{% for i in range(99999) if not i %}{% for j in range(99999) if j < 0 %}{% endfor %}{% endfor %}" * 90 + "1",
    "a list that holds itself": "{% set l = [1] %}{% do l.append(l) %}{{ l }}",
    "a list that holds itself, compared": "{% set l = [1] %}{% do l.append(l) %}{% set k = [1] %}{% do k.append(k) %}{{ l == k }}",
    "a list that holds itself, as JSON": "{% set l = [1] %}{% do l.append(l) %}{{ l | tojson }}",
    "a list that holds itself, as YAML": "{% set l = [1] %}{% do l.append(l) %}{{ toyaml(l) }}",
    "a list that holds itself, pretty": "{% set l = [1] %}{% do l.append(l) %}{{ l | pprint }}",
    "a list that holds itself, joined": "{% set l = [1] %}{% do l.append(l) %}{{ l | join(',') }}",
    "a list that holds itself, in a set": "{% set l = [1] %}{% do l.append(l) %}{{ set(l) }}",
    "a list that holds itself, in config": "{% set l = [1] %}{% do l.append(l) %}{{ config(meta={'a': l}) }}1",
    "a list that grows in its loop": "{% set l = [1] %}{% for i in l %}{% do l.append(i) %}{% endfor %}1",
    "a list that grows as it is filtered": "{% set l = [1] %}{% macro f(x) %}{% do l.append(x) %}{% endmacro %}{% for i in l if f(i) == '' %}{% do l.append(1) %}{% endfor %}1",
    "a list extended by itself": "{% set l = [1] %}{% for i in range(90) %}{% do l.extend(l) %}{% endfor %}1",
    "a list extended by its values": "{% set l = [1] %}{% for i in range(90) %}{% do l.extend(l | list) %}{% endfor %}1",
    "a list extended by an iterator of itself": "{% set l = [1] %}{% do l.extend(l | map('int')) %}1",
    "a list in a slice of nested lists": "{% set ns = namespace(x=[1]) %}{% for i in range(90) %}{% set ns.x = [ns.x] * 99 %}{% endfor %}{{ ns.x == ns.x | list }}{{ ns.x }}",
    "nested lists, compared": "{% set ns = namespace(x=[1], y=[1]) %}{% for i in range(40) %}{% set ns.x = [ns.x, ns.x] %}{% set ns.y = [ns.y, ns.y] %}{% endfor %}{{ ns.x == ns.y }}",
    "nested tuples as keys": "{% set ns = namespace(x=(1,)) %}{% for i in range(40) %}{% set ns.x = (ns.x, ns.x) %}{% endfor %}{{ {ns.x: 1} | length }}",
    "nested lists, sorted": "{% set ns = namespace(x=[1], y=[1]) %}{% for i in range(40) %}{% set ns.x = [ns.x, ns.x] %}{% set ns.y = [ns.y, ns.y] %}{% endfor %}{{ [ns.x, ns.y] | sort | length }}",
    "nested lists, hashed": "{% set ns = namespace(x=(1,)) %}{% for i in range(40) %}{% set ns.x = (ns.x, ns.x) %}{% endfor %}{{ [ns.x] | unique | list | length }}",
    "nested lists, in a format": "{% set ns = namespace(x=[1]) %}{% for i in range(40) %}{% set ns.x = [ns.x, ns.x] %}{% endfor %}{{ '%s' % (ns.x,) }}",
    "nested lists, in another format": "{% set ns = namespace(x=[1]) %}{% for i in range(40) %}{% set ns.x = [ns.x, ns.x] %}{% endfor %}{{ '{}'.format(ns.x) }}",
    "nested lists, by conversion": "{% set ns = namespace(x=[1]) %}{% for i in range(40) %}{% set ns.x = [ns.x, ns.x] %}{% endfor %}{{ '{!r}'.format(ns.x) }}",
    "nested lists, in a warning": "{% set ns = namespace(x=[1]) %}{% for i in range(40) %}{% set ns.x = [ns.x, ns.x] %}{% endfor %}{{ exceptions.warn(ns.x) }}1",
    "nested lists, in an error": "{% set ns = namespace(x=[1]) %}{% for i in range(40) %}{% set ns.x = [ns.x, ns.x] %}{% endfor %}{{ exceptions.raise_compiler_error(ns.x) }}1",
    "nested lists, in a ref": "{% set ns = namespace(x=[1]) %}{% for i in range(40) %}{% set ns.x = [ns.x, ns.x] %}{% endfor %}{{ ref(ns.x) }}1",
    "nested lists, in an undefined": "{% set ns = namespace(x=[1]) %}{% for i in range(40) %}{% set ns.x = [ns.x, ns.x] %}{% endfor %}{{ {}[ns.x] }}{{ 'a'[ns.x] }}1",
    "nested lists, as a default": "{% set ns = namespace(x=[1]) %}{% for i in range(40) %}{% set ns.x = [ns.x, ns.x] %}{% endfor %}{{ ns.x | urlencode }}{{ ns.x | upper }}1",
    "nested mappings, as JSON": "{% set ns = namespace(x={}) %}{% for i in range(40) %}{% set ns.x = {'a': ns.x, 'b': ns.x} %}{% endfor %}{{ ns.x | tojson }}",
    "a join of a generator": "{% set t = 'x' * 1900000 %}{{ range(99999) | map('string') | join(t) | length }}",
    "a join method of a generator": "{% set t = 'x' * 1900000 %}{{ t.join(range(99999) | map('string')) | length }}",
    "a join method of views": "{% set t = 'x' * 1900000 %}{{ t.join(dict(zip(range(9999) | map('string'), range(9999)))) | length }}",
    "a join method of keys": "{% set t = 'x' * 1900000 %}{{ t.join(dict(zip(range(9999) | map('string'), range(9999))).keys()) | length }}",
    "a join of bytes": "{% set t = ('x' * 1900000).encode() %}{{ t.join([t] * 1900) | length }}",
    "a format of the width of a value": "{{ '{:{}}'.format(1, 10**10) }}",
    "a format of many fields": "{% set t = 'x' * 1900000 %}{{ ('{0}' * 90000).format(t) | length }}",
    "a percent of many fields": "{% set t = 'x' * 1900000 %}{{ ('%(a)s' * 90000) % {'a': t} | length }}",
    "a percent by a filter": "{% set t = 'x' * 1900000 %}{{ ('%(a)s' * 90000) | format(a=t) | length }}",
    "a percent of bytes": "{{ '%4000000000d'.encode() % 1 }}",
    "a percent with a name in brackets": "{{ '%(a(b))4000000000d' % {'a(b)': 1} }}",
    "a percent with a long modifier": "{{ '%-+ #04000000000ld' % 1 }}",
    "a percent with two stars": "{{ '%*.*f' % (10**10, 10**10, 1.0) }}",
    "to_bytes": "{{ (1).to_bytes(10**10, 'big') | length }}",
    "bytes ljust": "{{ 'x'.encode().ljust(10**10) | length }}",
    "bytes zfill": "{{ 'x'.encode().zfill(10**10) | length }}",
    "a range of a range": "{% for i in range(99999) | map('string') | map('list') | map('join', 'x' * 99999) | list %}{% endfor %}1",
    "a chain of maps": "{{ range(99999)" + " | map('string')" * 400 + " | list | length }}",
    "equal hashes": "{% set l = [] %}{% for i in range(90000) %}{% do l.append(i * 2305843009213693951) %}{% endfor %}{{ set(l) | length }}",
    "equal hashes, five times": "{% set l = [] %}{% for i in range(99999) %}{% for k in range(5) %}{% do l.append((k * 99999 + i) * 2305843009213693951) %}{% endfor %}{% endfor %}{{ set(l) | length }}",
    "slow search from the right": "{% set t = 'x' * 1900000 %}{{ t.rfind('y' ~ 'x' * 900000) }}",
    "slow search of bytes": "{% set t = ('x' * 1900000).encode() %}{{ t.rfind(('y' ~ 'x' * 900000).encode()) }}",
    "slow search and split": "{% set t = 'x' * 1900000 %}{{ t.rsplit('y' ~ 'x' * 900000) | length }}",
    "division of large numbers": "{% set n = ('f' * 1900000) | int(base=16) %}{{ n % (('7' * 900000) | int(base=16)) > 1 }}",
    "a product of large numbers": "{% set n = ('f' * 1900000) | int(base=16) %}{{ n * n > 1 }}",
    "a large number, printed": "{{ ('f' * 1900000) | int(base=16) }}",
    "a large number, in hex": "{{ '%x' % (('f' * 1900000) | int(base=16)) | length }}",
    "a large number as a float": "{{ (('f' * 1900000) | int(base=16)) | float }}",
    "a large number, rounded": "{{ (('f' * 1900000) | int(base=16)) | round(10**9) }}",
    "rounded to many places": "{{ (12345678901234567890 | round(-10**9, 'floor')) }}{{ 1.5 | round(10**9) }}",
    "filesizeformat": "{{ (('f' * 1900000) | int(base=16)) | filesizeformat }}",
    "a large base": "{{ ('z' * 1900000) | int(base=36) > 1 }}",
    "a large number in base 32": "{{ ('v' * 1900000) | int(base=32) | string | length }}",
    "a sum of texts": "{{ range(99999) | map('string') | list | sum(start='') }}",
    "a sum of lists": "{{ ([r] * 99999) | sum(start=[]) | length }}{% set r = [1] * 99999 %}",
    "a sum of lists, from an iterator": "{% set r = [1] * 99999 %}{{ ([r] * 9999) | map('list') | sum(start=[]) | length }}",
    "a sum of tuples": "{% set r = (1, 2) * 49999 %}{{ ([r] * 9999) | sum(start=()) | length }}",
    "wordwrap": "{{ ('x' * 1900000) | wordwrap(1) | length }}",
    "wordwrap with a long join": "{{ ('x ' * 900000) | wordwrap(1, wrapstring='y' * 1900000) | length }}",
    "urlize": "{{ ('<' * 1900000) | urlize | length }}",
    "urlize of mails": "{{ ('a@b.' * 400000) | urlize | length }}",
    "urlize, with a long target": "{{ ('www.a.b ' * 200000) | urlize(target='x' * 1900000) | length }}",
    "striptags": "{{ ('<' * 1900000) | striptags | length }}",
    "striptags of comments": "{{ ('<!-' * 600000) | striptags | length }}",
    "striptags of open comments": "{{ ('<!--' * 400000) | striptags | length }}",
    "xmlattr": "{{ dict(zip(range(99999) | map('string'), ['x' * 90000] * 99999)) | xmlattr | length }}",
    "indent with blanks": "{{ ('\n' * 1900000) | indent('x' * 90000, blank=true) | length }}",
    "tojson with an indent": "{{ ([[1]] * 400000) | tojson(indent=9999) | length }}",
    "tojson with a text as indent": "{{ ([[1]] * 400000) | tojson(indent='x' * 9999) | length }}",
    "pprint": "{{ ([[1] * 9] * 99999) | pprint | length }}",
    "pprint of words": "{{ ('x ' * 900000) | pprint | length }}",
    "groupby": "{{ ('x' * 1900000) | groupby(0) | length }}",
    "random words": "{{ lipsum(n=10**9) }}",
    "a slice of many": "{{ ('x' * 1900000) | slice(1900000) | list | length }}",
    "a batch of many": "{{ ('x' * 1900000) | batch(1) | list | length }}",
    "a batch that is filled": "{{ [1] | batch(1900000, 'x') | map('join') | join | length }}",
    "batches that are filled": "{{ ([1] | batch(1900000, 'x') | list) * 99999 | map('join') | list | length }}",
    "a replace of nothing": "{{ ('x' * 1900000).replace('', 'y' * 90000) | length }}",
    "a replace of nothing by a filter": "{{ ('x' * 1900000) | replace('', 'y' * 90000) | length }}",
    "a replace with a keyword": "{{ ('x' * 190000) | replace(old='x', new='y' * 90000) | length }}",
    "a replace of bytes": "{{ ('x' * 190000).encode().replace('x'.encode(), ('y' * 90000).encode()) | length }}",
    "a translation": "{{ ('x' * 190000).translate({120: 'y' * 90000}) | length }}",
    "a table of a translation": "{{ ('x' * 190000).translate('x'.maketrans({'x': 'y' * 90000})) | length }}",
    "a table in a list": "{{ ('\x01' * 190000).translate(['', 'y' * 90000]) | length }}",
    "an encoding": "{{ ('x' * 1900000).encode('idna') | length }}",
    "an encoding of names": "{{ ('\u00fc' * 60000).encode('punycode') | length }}",
    "a decoding of names": "{{ ('a' * 900000 ~ '-' ~ 'b' * 900000).encode().decode('punycode') | length }}",
    "an encoding with names of characters": "{{ ('\u00fc' * 1900000).encode('ascii', 'namereplace') | length }}",
    "an encoding in seven bits": "{{ ('\u00fc' * 1900000).encode('utf-7') | length }}",
    "a decoding of escapes": "{{ ('x' * 1900000).encode().decode('unicode_escape') | length }}",
    "a decoding of zip": "{{ ('x' * 1900000).encode().decode('zlib') | length }}",
    "an expansion of tabs": "{{ ('\t' * 1900000).expandtabs(tabsize=9999) | length }}",
    "an expansion of tabs of bytes": "{{ ('\t' * 1900000).encode().expandtabs(9999) | length }}",
    "hex with separators": "{{ ('x' * 1900000).encode().hex('-', 1) | length }}",
    "YAML that is long": "{{ fromyaml('- a\n' * 400000) | length }}",
    "YAML that is deep": "{{ fromyaml('[' * 90000) }}1",
    "YAML of aliases": "{{ fromyaml('a: &a [1,1]\nb: &b [*a,*a]\nc: &c [*b,*b]\nd: &d [*c,*c]\ne: &e [*d,*d]\nf: &f [*e,*e]\n' ) | string | length }}",
    "JSON that is deep": "{{ fromjson('[' * 900000) }}1",
    "JSON with a long number": "{{ fromjson('1' * 1900000) }}1",
    "JSON with a large exponent": "{{ fromjson('1e' ~ '9' * 900000) }}1",
    "a number in the template": "{{ " + "9" * 900000 + " }}",
    "a text in the template, repeated by the compiler": "{{ 'x' * 2000 * 2000 * 2000 * 2000 }}",
    "a power by the compiler": "{{ 9 ** 9 ** 9 }}",
    "a product by the compiler": "{{ " + " * ".join(["9999999999999999"] * 900) + " > 1 }}",
    "a list by the compiler": "{{ ([1] * 9999) * 9999 * 9999 }}",
    "a format by the compiler": "{{ '%4000000000d' % 1 }}",
    "a filter by the compiler": "{{ 'x' | center(4000000000) }}",
    "a filter of a filter by the compiler": "{{ ('x' | center(1999999)) | list | batch(1) | list | length }}",
    "deep brackets": "{{ " + "(" * 90000 + "1" + ")" * 90000 + " }}",
    "deep lists": "{{ " + "[" * 900 + "]" * 900 + " }}",
    "deep blocks": "{% if 1 %}" * 9000 + "1" + "{% endif %}" * 9000,
    "deep loops": "{% for i in [1, 2] %}" * 60 + "1" + "{% endfor %}" * 60,
    "deep loops of few": "{% for i in [1, 2] %}" * 19 + "{{ 'x' * 99999 }}" + "{% endfor %}" * 19,
    "many assignments": "{% set x = 'x' * 1900000 %}" * 3 + "".join(f"{{% set v{i} = 'x' * 1900000 ~ {i} %}}" for i in range(2000)) + "1",
    "many names": "".join(f"{{% set v{i} = 1 %}}" for i in range(20000)) + "1",
    "a cycle": "{% for i in range(99999) %}{{ loop.cycle('x' * 1900000, 'y') }}{% endfor %}",
    "changed": "{% set l = [1] * 1900000 %}{% for i in range(99999) %}{{ loop.changed(l, l + [i]) }}{% endfor %}",
    "a loop over a large text": "{% for c in 'x' * 1900000 %}{% for d in 'x' * 1900000 %}{% endfor %}{% endfor %}1",
    "a caller kept": "{% set l = [] %}{% macro m() %}{% do l.append('x' * 1900000 ~ l | length) %}{% endmacro %}{% for i in range(9999) %}{{ m() }}{% endfor %}1",
    "a recursion that keeps": "{% macro m(n, t) %}{{ m(n + 1, t ~ 'x' * 1900000) if n < 900 }}{% endmacro %}{{ m(0, '') }}1",
    "a recursion that keeps lists": "{% macro m(n) %}{% set l = [n] * 1900000 %}{{ m(n + 1) if n < 900 }}{% endmacro %}{{ m(0) }}1",
    "a map over texts": "{{ (['x' * 90000] * 99999) | map('upper') | list | length }}",
    "a map that repeats": "{{ (['x'] * 99999) | map('center', 99999) | list | length }}",
    "a map that reads lists": "{{ ([range(99999)] * 99999) | map('list') | list | length }}",
    "a map that sums": "{{ ([range(99999)] * 99999) | map('sum') | list | length }}",
    "a select in lists": "{% set r = range(99999) | list %}{{ r | reject('in', r) | list | length }}",
    "a select in long lists": "{% set l = [0] * 1900000 %}{{ range(1, 99999) | select('in', l) | list | length }}",
    "a sort of ranges": "{{ ([range(99999)] * 999) | map('list') | sort | length }}",
    "a sort by an attribute": "{{ ([[1] * 99] * 99999) | sort(attribute='0,1,2,3,4,5,6,7,8,9') | length }}",
    "a unique of lists": "{{ (['x' * 900000] * 99999) | unique | list | length }}",
    "a count of lists": "{% set l = [[1] * 9999] * 99999 %}{{ l.count([1] * 9998 + [2]) }}",
    "max of large texts": "{{ (['x' * 900000] * 99999) | max | length }}",
    "a long attribute": "{{ [1] | map(attribute='a.' * 900000) | list }}",
    "attributes of texts": "{{ ([{'a': 1}] * 99999) | map(attribute='a' ~ '.a' * 90000) | list }}",
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
