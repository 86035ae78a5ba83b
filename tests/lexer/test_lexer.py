"""Texts that lexers read differently, and a slice of the random ones; `python -m tests.lexer` runs as many as one likes."""

from __future__ import annotations

from pathlib import Path

import pytest
from sqlglot.errors import TokenError

from engine.compile.sql.dialect import parse_text, spark, tokenize
from engine.compile.sql.lexer.lexemes import has_comment
from engine.compile.sql.lexer.string_values import string_value
from engine.compile.sql.normalize import same_meaning, spelling_of
from tests.lab import LabSession
from tests.lexer.compare import difference
from tests.lexer.spark_tokens import SparkLexer
from tests.lexer.texts import text
from tests.project.small_projects import findings, line, only

# Pairs that Spark reads differently.
OTHER = {
    "adjacent strings and a doubled quote": ("select 'it' 's' as a", "select 'it''s' as a"),
    "the same in double quotes": ('select "a" "b" as a', 'select "a""b" as a'),
    "a backslash at the end of a comment": (
        "select id from t where id > 0 -- C:\\data\\\nand kind = 'a'", "select id from t where id > 0 -- C:\\data\nand kind = 'a'",
    ),
    "line breaks in a string": ("select 'a\r\nb' as a", "select 'a\nb' as a"),
    "a carriage return in a string": ("select 'a\rb' as a", "select 'a\nb' as a"),
    "a hint in a comment": ("select 1 as a /* /*+ */ , 2 as b", "select 1 as a /* /* */ */"),
    "a raw string": (r"select r'\n' as a", r"select '\n' as a"),
    "an escape": (r"select '\t' as a", "select 't' as a"),
    "a shift behind array": ("select 1 >> 1 as a, array(1) as b", "select 1 > 1 as a, array(1) as b"),
}  # fmt: skip
# And those that it does not.
SAME = {
    "quotes": ("select 'a' as a", 'select "a" as a'),
    "a quote": ("select 'it''s' as a", "select \"it's\" as a"),
    "an escaped quote": ("select 'it''s' as a", r"select 'it\'s' as a"),
    "a raw string": (r"select r'\d+' as a", r"select '\\d+' as a"),
    "a code point": (r"select '\u0041' as a", "select 'A' as a"),
    "an octal number": (r"select '\101' as a", "select 'A' as a"),
    "half pairs": (r"select '\uD83D\uDE00' as a", "select '\U0001f600' as a"),
    "hexadecimal digits": ("select x'ab' as a", 'select X "AB" as a'),
    "a comment between two words": ("select a from t group /* c */ by a", "select a from t group by a"),
    "two signs of one meaning": ("select a !> b as c from t", "select a <= b as c from t"),
    "a comment that goes on": ("select a -- c\\\n, b\nfrom t", "select a from t"),
    "a hint in a comment": ("select a /* /*+ */ from t", "select a from t"),
    "other blanks": ("select\u00a0a\u3000from\ft", "select a from t"),
}  # fmt: skip


@pytest.mark.parametrize("pair", OTHER.values(), ids=OTHER.keys())
def test_texts_that_spark_reads_differently_are_not_the_same(pair: tuple[str, str]) -> None:
    assert not same_meaning(*pair)


@pytest.mark.parametrize("pair", SAME.values(), ids=SAME.keys())
def test_texts_that_spark_reads_alike_are_the_same(pair: tuple[str, str]) -> None:
    assert same_meaning(*pair)
    assert same_meaning(spelling_of(pair[0]), pair[1])


@pytest.mark.parametrize("number", range(60))
def test_the_value_of_a_string_survives_what_is_made_of_it(number: int) -> None:
    """In the normal form, and in the SQL that the parser's tree is written as."""
    for token in [t for t in tokenize_known(text(3, number)) if t.token_type.name == "STRING"]:
        sql = f"select {spelling_of(_literal(token.text))} as a"
        assert parse_text(sql).expressions[0].this.name == token.text
        assert parse_text(parse_text(sql).sql(spark())).expressions[0].this.name == token.text


def tokenize_known(sql: str) -> list[object]:
    try:
        return tokenize(sql)
    except TokenError:
        return []


def _literal(value: str) -> str:
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"


@pytest.mark.parametrize(
    ("literal", "value"),
    [
        ("'it''s'", "it's"), ('"a""b"', 'a"b'), ("'a\"\"b'", 'a""b'), (r"'\%\_'", r"\%\_"), (r"'\e'", "e"), (r"'\177\200'", "\x7f200"),
        (r"'\uD83D'", "?"), (r"'\U0001F600'", "\U0001f600"), (r"r'\n'", r"\n"), ("R\"a'b\"", "a'b"), (r"'\0001'", "\x001"),
        ("'\ufffd'", "\ufffd"), ("'\\\n'", "\n"), (r"'\Z\b'", "\x1a\b"),
    ],
)  # fmt: skip
def test_values_of_strings(literal: str, value: str) -> None:
    assert string_value(literal) == value


@pytest.mark.parametrize(
    ("sql", "finding", "hint"),
    [
        ("select id from {o} where id > 0 -- a /* b\n and '", "sql-syntax 2:6 the SQL ends inside a quote or comment", ""),
        ("select 'a'' from {o}", "sql-syntax 1:11 the SQL ends inside a quote or comment", "Close the quote"),
        ("select /* a /* b */ id from {o}", "sql-syntax 1:8 the SQL ends inside a quote or comment", ""),
        ("select /*+ broadcast(a) id from {o}", "sql-syntax 1:8 the SQL ends inside a quote or comment", ""),
        ("select /* a /*+ b */ c */ id from {o}", "sql-syntax 1:24 */ ends no comment", ""),
        ("select 2*/*c*/3 as id from {o}", "sql-syntax 1:9 */ ends no comment", "a blank between * and /*"),
        ("select größe from {o}", "sql-syntax 1:10 'größe' has letters other than a to z", "`größe`"),
        ("select id from file://bucket/a--b", "sql-syntax 1:16 'file://bucket/a--b' is not a name", "single quotes"),
        ("select id, 'a' || \U0001f600 as b from {o}", "sql-syntax 1:19", ""),
        ("select id # all\nfrom {o}", "sql-syntax 1:11 # begins no comment in Spark's SQL", "--"),
        ("select id \\\n from {o}", "sql-syntax 1:11 a backslash outside a string", ""),
        ("select x'1g' as id from {o}", "sql-syntax 1:8 ", ""),
    ],
)  # fmt: skip
def test_what_spark_s_lexer_rejects_is_rejected_at_its_place(tmp_path: Path, sql: str, finding: str, hint: str) -> None:
    found = only(findings(tmp_path, {"models/a.sql": sql.replace("{o}", "{{ source('shop', 'orders') }}")}))
    assert line(found).replace("models/a.sql:", "").startswith(finding)
    assert hint in (found.hint or "")


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("a > 1 -- c", True),
        ("a > '--' ", False),
        ("a /* c */ > 1", True),
        ("a - -1 > '/*'", False),
        ("a > r'\\' -- '", True),
    ],
)
def test_comments_are_found(sql: str, expected: bool) -> None:
    assert has_comment(sql) is expected


def test_a_number_makes_one_text() -> None:
    assert text(1, 5) == text(1, 5)
    assert len({text(1, number) for number in range(50)}) > 45


@pytest.mark.spark
def test_texts_are_read_as_by_spark(lab_session: LabSession) -> None:
    context = lab_session.spark.sparkContext
    texts = [
        *(text(7, number) for number in range(1500)),
        *(sql for pairs in (OTHER, SAME) for pair in pairs.values() for sql in pair),
    ]
    told = zip(texts, SparkLexer(context._jvm, context._gateway).tokens(texts), strict=True)
    assert [(sql, how) for sql, theirs in told if (how := difference(sql, theirs))] == []


@pytest.mark.parametrize(
    ("sql", "place"),
    [
        ("select id {o} where id > 0 -- C:\\data\\\nand id = 'a'", "1:70"),
        ("select id {o} -- C:\\data\\\n-- and more", ""),
        ("select id {o} -- C:\\data\\\n", ""),
        ("select id {o} -- C:\\data\\\n   \n", ""),
        ("select id {o} -- C:\\data\\ \nwhere id = 'a'", ""),
        ("select id {o} -- a \\\n-- b \\\nwhere id = 'a'", "2:6"),
        ("select id, '-- \\\na' as a {o}", ""),
        ("select id /* -- a \\\n b */ {o}", ""),
    ],
)
def test_a_comment_that_takes_in_a_line_is_a_warning(tmp_path: Path, sql: str, place: str) -> None:
    found = findings(tmp_path, {"models/a.sql": sql.replace("{o}", "from {{ source('shop', 'orders') }}")})
    expected = (
        f"comment-continues models/a.sql:{place} the comment ends in a backslash, so that the next line belongs to it"
    )
    assert [line(one) for one in found] == ([expected] if place else [])
