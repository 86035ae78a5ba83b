"""Random damage for a project: templates that attack, and files that nobody would write by hand, by seed and number."""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tests.security.test_texts_of_objects import MADE, TEXTS, names

# Ways out of Jinja's sandbox that were one once, here or elsewhere.
ESCAPES = (
    "''.__class__.__mro__[1].__subclasses__()", "'' | attr('__class__') | attr('__base__')", "lipsum.__globals__.os.environ",
    "cycler.__init__.__globals__.os.popen('id').read()", "self._TemplateReference__context", "self.__init__.__globals__",
    "config.__class__.__init__.__globals__", "'{0.__class__.__init__.__globals__}'.format(ref)",
    "'{x.__init__.__globals__}'.format_map({'x': var})", "'{0.__class__}'.format | string", "('{0.__self__}').format(ref)",
    "([1] | map('string')).gi_frame.f_back.f_globals", "[ref] | map(attribute='__globals__') | list", "ref.__code__.co_consts",
    "[env_var] | map(attribute='__self__.environ') | list | string", "env_var.__closure__[0].cell_contents", "env_var.__wrapped__",
    "[1] | sort(attribute='__class__.__mro__') | string", "dict.__base__.__subclasses__()", "namespace.__init__.__globals__",
    "[''] | groupby('__class__') | list | string", "exceptions.warn.__func__.__globals__", "modules.os.environ", "builtins.open('/etc/passwd')",
    "run_query('select 1').__class__", "env_var('ENGINE_SECRET_X') | list", "env_var('ENGINE_SECRET_X')[::-1]", "env_var('ENGINE_SECRET' ~ '_X')",
    "env_var('HOME', env_var('ENGINE_SECRET_X')) | upper", "env_var | string", "context | string", "[varargs, kwargs] | string",
    "'%s' | format(env_var)", "fromyaml('!!python/object/apply:os.system [id]')", "fromjson('[' * 9999)", "fromyaml('[' * 9999)",
    "fromjson('9' * 9999)", "fromyaml('9' * 9999)", "tojson(1.0 * 10 ** 400)", "1e999 | int", "(1e308 * 10) | string", "'9' * 5000 | int",
    "('9' * 5000) | int", "0 ** -1", "1 % 0", "1 // 0", "'\\ud800'", "'\\ud800' | urlencode", "'\\x00'", "'a\\x00b' | tojson", "[] | first",
    "{}[[]]", "'x'.encode('idna')", "'x'.encode('nope')", "'%'", "'%z' % 1", "'%(a)s' % 1", "'{'.format()", "'{0[x]}'.format(1)", "[].pop()",
    "'a' | truncate(-9)", "'x'.split('')", "range(1, 2, 0)", "'' | first", "1 | list", "[1] | batch(0) | list", "[1] | slice(0) | list",
    "5 | round(99999)", "'x'.join(1)", "[3, 'a'] | sort", "none.x.y", "ref()", "ref(1)", "ref('a', 'b', 'c')", "source()", "source('a')",
    "var()", "var([])", "config(1)", "config(materialized=[])", "this()", "loop.index", "caller()", "varargs[9]", "super()",
)  # fmt: skip
BOMBS = (
    "{{ 'a' * 999999999999 }}", "{{ [0] * 10 ** 12 }}", "{{ 10 ** 10 ** 10 }}", "{{ 9 ** 9 ** 9 }}", "{{ '%999999999d' % 1 }}",
    "{{ '%*d' % (999999999, 1) }}", "{{ 'a'.ljust(10 ** 10) }}", "{{ '{:>9999999999}'.format(1) }}", "{{ range(10 ** 12) | list }}",
    "{% for a in range(10 ** 12) %}{% endfor %}", "{{ 'x' | center(10 ** 10) }}", "{{ ('a' * 1000).replace('a', 'b' * 1000000) }}",
    "{% for a in range(99999) %}{% for b in range(99999) %}x{% endfor %}{% endfor %}", "{{ 'x' | indent(10 ** 10, true) }}",
    "{% macro m() %}{{ m() }}{{ m() }}{% endmacro %}{{ m() }}", "{% macro m(n) %}{{ m(n + 1) }}{% endmacro %}{{ m(1) }}",
    "{% set n = namespace(x='a') %}{% for i in range(99) %}{% set n.x = n.x ~ n.x %}{% endfor %}{{ n.x }}", "{{ (1, 2) * 10 ** 10 }}",
    "{% set n = namespace(x=[1]) %}{% for i in range(99) %}{% set n.x = [n.x, n.x] %}{% endfor %}{{ n.x }}", "{{ '\t'.expandtabs(10 ** 12) }}",
    "{% set n = namespace(x=3) %}{% for i in range(99) %}{% set n.x = n.x * n.x %}{% endfor %}{{ n.x }}", "{{ 'a'.zfill(10 ** 12) }}",
    "{% for i in [1] recursive %}{{ loop([1]) }}{% endfor %}", "{{ lipsum(10 ** 9) }}", "{{ [1] | batch(10 ** 12, 1) | list }}",
    "{% set x %}{% for i in range(99999) %}{{ 'a' * 99 }}{% endfor %}{% endset %}{{ x }}", "{{ ',' | join(',') }}" * 2000,
    "{{ " + "(" * 3000 + "1" + ")" * 3000 + " }}", "{{ " + "[" * 3000 + "]" * 3000 + " }}", "{% if 1 %}" * 3000 + "{% endif %}" * 3000,
    "{{ 1" + " + 1" * 5000 + " }}", "{{ x" + ".x" * 5000 + " }}", "{{ x" + " | upper" * 3000 + " }}", "{{ " + "not " * 3000 + "1 }}",
    "{{ " + "-" * 3000 + "1 }}", "{{ 9" + "9" * 5000 + " }}", "{{ 1e999 }}", "{% import 'os' as os %}", "{% include '/etc/passwd' %}",
    "{% extends 'x' %}", "{% block a %}{% endblock %}", "{% raw %}", "{#", "{%", "{{", "{% for %}", "{% set %}", "{% macro %}",
    "{% call %}{% endcall %}", "{% filter nope %}{% endfilter %}", "{% do ref.x %}", "{% autoescape true %}{% endautoescape %}",
    "{% trans %}{% endtrans %}", "{% debug %}", "{% macro ref() %}{% endmacro %}", "{% set ref = 1 %}", "{% import 'a' as ref %}",
    "{% snapshot a %}{% endsnapshot %}", "{% test a(model) %}{% endtest %}", "{% materialization a, default %}{% endmaterialization %}",
)  # fmt: skip
_STEPS = (
    ".__class__", ".__init__", ".__globals__", ".__dict__", ".__mro__", "[1]", "[0]", "['__class__']", "['__init__']", ".mro()", "()",
    ".__subclasses__()", " | attr('__class__')", ".__self__", ".__func__", ".__code__", ".gi_frame", ".f_back", ".__module__", ".__doc__",
    ".__reduce_ex__(2)", ".format", ".items()", " | list", " | first", " | string", ".__getattribute__('__class__')", ".x", "['x']",
    ".__slots__", ".__call__", ".__closure__", ".__wrapped__", ".__builtins__", ".__loader__", ".environment", "._env", ".name",
)  # fmt: skip


def deep(opened: str, inner: str, closed: str, times: int) -> str:
    return opened * times + inner + closed * times


# Values for YAML, as they are written there.
VALUES = (
    "9" * 5000, "-" + "9" * 5000, "0x" + "f" * 5000, "0o" + "7" * 9000, "0b" + "1" * 20000, "1" + ":59" * 3000, "1e999", "-1e999", ".nan",
    ".inf", "-.inf", deep("[", "", "]", 3000), deep("{a: ", "1", "}", 3000), deep("[", "", "", 3000), deep("- ", "1", "", 3000),
    '"' + deep("struct<a:", "int", ">", 3000) + '"', '"a ' + deep("struct<a:", "int", ">", 3000) + '"', '"a ' + "struct<" * 3000 + '"',
    '"a ' + deep("array<", "int", ">", 3000) + '"', '"a ' + deep("map<int,", "int", ">", 3000) + '"', '"a ' + deep("array<", "int", ">", 200) + '"',
    f'"a decimal({"9" * 5000}, 2)"', '"a decimal(38, 99)"', '"a varchar(' + "9" * 5000 + ')"', '"' + "a int, " * 5000 + 'a int"', '"a int,"',
    '"\\ud800"', '"\\udfff x"', '"\\ud800\\udc00"', '"\\0"', '"\\x07"', '"\\x85"', '"\\u2028"', '"\\u202e"', '"\\ufeff"', "\ufffe", "\x00", "\t",
    "0001-01-01", "0000-00-00", "99999-01-01", "2013-13-45", "2013-02-30", "10000-01-01 99:99:99", "2013-01-01T25:61:61Z", "9999-12-31",
    "0001-01-01T00:00:00+23:59", "9999-12-31T23:59:59-23:59", "2013-01-01 00:00:00 +99:99", "!!timestamp x", "!!int x", "!!float x",
    "!!binary x", "!!python/object/apply:os.system [id]", "!!python/name:os.environ", "!!set {a, b}", "!!omap [a: 1]", "!!bool x", "!!null x",
    "!!pairs [a: 1]", "!<tag:yaml.org,2002:int> 1", "!x y", "&a [*a]", "*missing", "{<<: 1}", "{<<: [1]}", "{<<: {a: 1}, a: 2}", "{? [a] : b}",
    "{? {a: 1} : b}", "{[]: 1}", "{{a: 1}: 2}", "{null: 1}", "{1: 2, 1: 3}", "{.nan: 1}", "{2013-01-01: 1}", "{true: 1}", "null", "~", "''", '""',
    "[]", "{}", "[null]", "[[]]", "{a: null}", "0", "-1", "1.5", "true", "|", ">-", "? a", "- a", "%YAML 9.9", "---", "...", "@", "`", "=", "<<",
    "'", '"', "[", "{", "]", "}", ": :", "#", "&", "*", "!", "../../../x", "/etc/passwd", "~/x", "a/../../b", "C:\\x", "file:///etc/passwd",
    "s3a://key:secret@bucket/x", "http://127.0.0.1:1/x", "${env:HOME}", "$(id)", "`id`", "x" * 100_000, "x " * 50_000, "a" * 300, "é" * 300,
    "\U0001f600", "\u0440\u0430\u0443\u0440\u0430l", "interval '" + "1" * 5000 + "' day", '"' + "1 day " * 5000 + '"', "9" * 400 + " days", "99999999999 years",
    "-1 days", "1e9 days", "0 seconds", "1 fortnight", "tumbling(" * 500, "tumbling(scheduled_at, " + "9" * 5000 + " hours)",
    "tumbling(scheduled_at, 0 hours)", "hopping(a, b, c, d, e, f)", "session(scheduled_at, '1')", "day(day(day(x)))", "bucket(" + "9" * 5000 + ", x)",
    "truncate(0, x)", "* * * * *", "99 99 99 99 99", "0/" + "9" * 5000 + " * * * *", "*/0 * * * *", ">=" + "9" * 5000, ">=1,<" * 2000, "==*", "()",
)  # fmt: skip
# Pieces of SQL.
SQL = (
    deep("(", "1", ")", 3000), deep("abs(", "1", ")", 3000), deep("case when 1 then ", "1", " end", 1000), "1" + " + 1" * 5000,
    "1 in (" + "1, " * 20_000 + "1)", "9" * 5000, "1e99999", "9" * 5000 + ".5", "0x" + "f" * 5000, "interval '" + "1 day " * 3000 + "'",
    "interval " + "9" * 5000 + " day", "interval '" + "9" * 5000 + "' hour to second", "'" + "x" * 100_000 + "'", "'", '"', "`", "``", "`" + "a" * 5000 + "`",
    "/*", "*/", "/*---", "---*/", "/*" * 3000, "--", ";", "; drop table x;", "\x00", "\x1b[2J", "\u202e", "\u200b", "\ufeff", "\u00a0", "\u0440\u0430\u0443\u0440\u0430l",
    "date '99999-99-99'", "timestamp '0000-00-00'", "date '-1'", "cast(1 as decimal(99, 99))", "cast(1 as " + deep("array<", "int", ">", 500) + ")",
    "decimal(" + "9" * 5000 + ")", "lag(1, " + "9" * 5000 + ") over ()", "substr('a', " + "9" * 400 + ")", "repeat('a', 999999999)", "x'zz'", "x'0'",
    "r'\\", "'\\u{110000}'", "'\\ud800'", "$$", "@x", ":x", "?", "%s", "${env:HOME}", "{", "}", "[1]", "select", "from", "with a as (", "union all",
    "select * from a union all " * 500, "not " * 3000, "- " * 3000, "~" * 3000, " . " * 500, "a" + ".a" * 3000, "a[0]" + "[0]" * 3000, "a::int" + "::int" * 1000,
    "exists (" * 300, "(select " * 300, "lateral view explode(a) b as c " * 300, "join a using (a) " * 300, "cross join a " * 300, "values " + "(1), " * 5000,
    "x -> " * 1000, "transform(a, x -> " * 300, "like '%' escape ''", "rlike '(a+)+$'", "tablesample (1 rows)", "group by cube (" + "a, " * 50 + "a)",
    "percentile_approx(a, array(" + "1, " * 3000 + "1))", "named_struct(" + "'a', 1, " * 3000 + "'a', 1)", "current_timestamp" + "()" * 100, "*", "* except (",
)  # fmt: skip
_YAML_LINES = (
    "? x",
    "x: &x [*x]",
    "<<: *x",
    "<<: [*x, *x]",
    "- - - -",
    "\t- x",
    "a: b: c",
    "x: 1\nx: 2",
    "&a a: *a",
    "--- ",
    "...",
    "%TAG ! x",
)
_CODINGS = ("utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-8-sig", "utf-7", "cp037")
_NAMES = (
    b"\xff.sql", b"a\xed\xa0\x80.sql", b"a\nb.sql", b"::error::x.sql", b"\x1b[2J.sql", b"a" * 250 + b".sql", "\u202eлqs.sql".encode(), b" .sql",
    b"..sql", b".sql", b"-rf.sql", b"$(id).sql", b"a b.sql", b"CON.sql", b"A.SQL", b"a.sql.sql", b"\xff/x.sql", b"\xff.yml", b"con\x01.yaml",
)  # fmt: skip

Change = Callable[[Path], None]


@dataclass(frozen=True)
class Mutation:
    """One change of a project: what it is, and what does it."""

    said: str
    change: Change


def mutations(seed: int, number: int, files: list[str]) -> list[Mutation]:
    """The changes of a case: one to three, the same for the same seed, number and files."""
    chance = random.Random(f"{seed}/{number}")
    kinds = (_templates, _templates, _values, _values, _values, _bytes, _lines, _codings, _sql, _sql, _odd_files)
    return [chance.choice(kinds)(chance, files) for _ in range(chance.choice((1, 1, 1, 2, 3)))]


def template(chance: random.Random) -> str:
    """A text with a template in it."""
    kind = chance.randrange(5)
    if kind == 0:
        return "{{ " + chance.choice(ESCAPES) + " }}"
    if kind == 1:
        return chance.choice(BOMBS)
    value = chance.choice((*MADE, *sorted(names().for_models())))
    if kind == 2:
        return "{{ " + value + "".join(chance.choices(_STEPS, k=chance.randint(1, 5))) + " }}"
    return "{% set v = " + value + " %}" + chance.choice(TEXTS)


def _rewritten(said: str, file: str, change: Callable[[bytes], bytes]) -> Mutation:
    def rewrite(root: Path) -> None:
        path = root / file
        # Another change of this case may have put something else in its place.
        if path.is_file() and not path.is_symlink():
            path.write_bytes(change(path.read_bytes()))

    return Mutation(f"{file}: {said[:200]}", rewrite)


def _some(chance: random.Random, files: list[str], *ends: str) -> str:
    return chance.choice([file for file in files if file.endswith(ends or "")])


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _at(content: bytes, where: float, piece: bytes, instead: int = 0) -> bytes:
    at = int(where * (len(content) + 1))
    return content[:at] + piece + content[at + instead :]


def _of_lines(content: bytes, where: float, change: Callable[[bytes], list[bytes]]) -> bytes:
    lines = content.split(b"\n")
    at = int(where * len(lines))
    lines[at : at + 1] = change(lines[at])
    return b"\n".join(lines)


def _templates(chance: random.Random, files: list[str]) -> Mutation:
    text, where = template(chance), chance.random()
    if chance.random() < 0.5:
        file = _some(chance, files, ".sql")
        return _rewritten(f"template {text}", file, lambda content: content + b"\n" + _encoded(text))
    return _value(
        _some(chance, files, ".yml", ".sql"), where, '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
    )


def _values(chance: random.Random, files: list[str]) -> Mutation:
    return _value(_some(chance, files, ".yml", ".sql"), chance.random(), chance.choice(VALUES))


def _value(file: str, where: float, value: str) -> Mutation:
    """Put a value where one stands, in a YAML file or in a model's header."""

    def change(content: bytes) -> bytes:
        lines = content.split(b"\n")
        end = lines.index(b"---*/") if file.endswith(".sql") and b"---*/" in lines else len(lines)
        keys = [at for at in range(end) if b":" in lines[at]]
        if keys:
            at = keys[int(where * len(keys))]
            lines[at] = lines[at].partition(b":")[0] + b": " + _encoded(value)
        return b"\n".join(lines)

    return _rewritten(f"value {value!r} at {where:.3f}", file, change)


def _bytes(chance: random.Random, files: list[str]) -> Mutation:
    file, places = _some(chance, files), [(chance.random(), chance.randrange(256)) for _ in range(chance.randint(1, 6))]
    kind, size = chance.randrange(4), chance.choice((1, 10, 100))

    def change(content: bytes) -> bytes:
        for where, byte in places:
            at = int(where * len(content))
            if kind == 0:
                content = _at(content, where, bytes([byte]), 1)
            elif kind == 1:
                content = _at(content, where, b"", size)
            elif kind == 2:
                content = _at(content, where, content[at : at + size] * 2)
            else:
                content = content[: int(places[0][0] * len(content))]
        return content

    return _rewritten(f"bytes {('flipped', 'removed', 'doubled', 'cut')[kind]} {places}", file, change)


def _lines(chance: random.Random, files: list[str]) -> Mutation:
    file, where, kind = _some(chance, files), chance.random(), chance.randrange(6)
    extra = _encoded(chance.choice(_YAML_LINES))

    def change(line: bytes) -> list[bytes]:
        dent = line[: len(line) - len(line.lstrip())]
        return [
            [line, line],
            [],
            [b"  " + line],
            [b"\t" + line.lstrip()],
            [line, dent + extra],
            [line + b" " * 100_000 + b"x"],
        ][kind]

    said = ("doubled", "removed", "indented", "tab", f"extra {extra!r}", "long")[kind]
    return _rewritten(f"line {said} at {where:.3f}", file, lambda content: _of_lines(content, where, change))


def _codings(chance: random.Random, files: list[str]) -> Mutation:
    file, coding, kind = _some(chance, files), chance.choice(_CODINGS), chance.randrange(6)

    def change(content: bytes) -> bytes:
        if kind == 0:
            return b""
        if kind == 1:
            return content + b"\xff\xfe\xed\xa0\x80"
        if kind == 2:
            return content.replace(b"\n", b"\r" if len(content) % 2 else b"\r\n")
        return content.decode("utf-8", "replace").encode(coding, "replace")

    return _rewritten(f"encoding {(coding, 'empty', 'no UTF-8', 'CR')[kind + 1 if kind < 3 else 0]}", file, change)


def _sql(chance: random.Random, files: list[str]) -> Mutation:
    file, piece, where, kind = _some(chance, files, ".sql"), chance.choice(SQL), chance.random(), chance.randrange(3)

    def change(content: bytes) -> bytes:
        header, mark, body = content.rpartition(b"---*/")
        words = body.split(b" ")
        at = int(where * len(words))
        words[at : at + (kind > 0)] = [_encoded(piece)]
        if kind == 2:
            words = [*body.replace(b"\nfrom", b",\n" + _encoded(piece) + b" as nasty\nfrom", 1).split(b" ")]
        return header + mark + b" ".join(words)

    return _rewritten(f"sql {piece!r} {('before', 'instead', 'as a column')[kind]} {where:.3f}", file, change)


def _odd_files(chance: random.Random, files: list[str]) -> Mutation:
    folder, name = chance.choice(("models", "sources", "macros", "tests/models", ".")), chance.choice(_NAMES)
    file, kind = _some(chance, files), chance.randrange(8)

    def change(root: Path) -> None:
        path, under = root / file, root / folder
        under.mkdir(parents=True, exist_ok=True)
        if kind < 2:
            odd = under / os.fsdecode(name)
            odd.parent.mkdir(exist_ok=True)
            odd.write_text("select 1 as a")
        elif kind == 2:
            (under / "loop").symlink_to(under)
            (under / "round.sql").symlink_to("round.sql")
            (under / "round.yml").symlink_to("round.yml")
        elif kind == 7:
            deepest = under.joinpath(*["d" * 50] * 60)
            deepest.mkdir(parents=True, exist_ok=True)
            (deepest / "x.sql").write_text("select 1 as a")
        elif path.is_file():
            path.unlink()
            if kind == 3:
                path.mkdir()
            elif kind == 4:
                path.symlink_to("/dev/zero")
            elif kind == 5:
                path.symlink_to("../" * 20 + "etc/passwd")
            else:
                os.mkfifo(path)

    said = (name, name, "links in a circle", "folder", "link to a device", "link out", "pipe", "deep folders")[kind]
    return Mutation(f"{folder if kind in (0, 1, 2, 7) else file}: {said!r}", change)
