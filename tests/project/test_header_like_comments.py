"""First comments that look like a header are no silent comments, and others stay comments."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.project.model_header import split_header
from tests.project.small_projects import findings, line, only

BODY = "streams: [shop.orders]\ntests: {id: [not_null]}\n"
LIKE = [
    f"/* ---\n{BODY}--- */\n", f"/*----\n{BODY}----*/\n", f"/*--\n{BODY}--*/\n", f"/**---\n{BODY}---*/\n", f"/*\n{BODY}*/\n",
    f"/*-\n{BODY}-*/\n", f"/*\n---\n{BODY}---\n*/\n", f"/* --- \n{BODY}*/\n", f"/*\n---\n{BODY}*/\n", f"/**\n{BODY}**/\n",
    f"/*\t---\n{BODY}---*/\n", "/* streams: [shop.orders] */\n", "/* --- streams: [shop.orders] --- */\n", "/* {streams: [shop.orders]} */\n",
    "/**---\n * streams: [shop.orders]\n * unique_key: id\n ---*/\n", "/* ---\nstrems: [shop.orders]\n--- */\n",
    "/* ---\nstreams: [shop.orders\n--- */\n", "/* ---\ndescription: all orders\n--- */\n", "/*\nunique_key: id\nsequence_by: ts\n*/\n",
    f"-- of the shop\n\n/* ---\n{BODY}--- */\n", f"/* of the shop */\n/* ---\n{BODY}--- */\n", f"{{# of the shop #}}\n/* ---\n{BODY}--- */\n",
    "/* ---\nmaterialized: view\n--- */\n", "/*\nmaterialized: table\npartition_by: day(ts)\n*/\n", f"\n\n  /* ---\n{BODY}--- */\n",
    "/* ---\n'streams': [shop.orders]\n--- */\n", "/*\nrefresh: incremental\n*/\n",
]  # fmt: skip
ORDINARY = [
    "/* all orders */\n", "/*\nDescription: all orders\nOwner: shop\n*/\n", "/*\ndescription: all orders\n*/\n", "/* --- all orders --- */\n",
    "/*----------------------\n description: all orders\n----------------------*/\n", "/* tests: see schema.yml for them */\n",
    "/* refresh: incremental would be wrong here */\n", "/* Note: the key is id, so that streams: merge */\n", "/*---- orders ----*/\n",
    "/* ---\nNote: all of them\nAuthor: a\n--- */\n", "/* schema: id int, name string */\n", "/* http://example.com: see there */\n",
    "/**\n * All orders.\n * @param x: nothing\n */\n", "/* TODO: remove */\n", "-- streams: [shop.orders]\n", "-- ---\n-- tags: [a]\n",
    "/*+ broadcast(o) */\n", "/* enabled: by default */\n", "/* ---\n1. first\n2. second\n--- */\n", "/* a: 1, b: 2 */\n", "/**/\n", "/*--*/\n", "/* ---- */\n",
    "/*\nhistory:\n  2024: the first\n*/\n", "/* title: Orders */\n", "/* {{ var('x') }}: y */\n", "{# /* --- streams: [a] */ #}\n",
]  # fmt: skip


@pytest.mark.parametrize("comment", LIKE)
def test_a_comment_that_looks_like_a_header_is_an_error(tmp_path: Path, comment: str) -> None:
    found = only(findings(tmp_path, {"models/a.sql": f"{comment}select id from {{{{ source('shop', 'orders') }}}}\n"}))
    begin = comment.index("/* ---" if comment.count("/*") > 1 else "/*")
    number, column = comment.count("\n", 0, begin) + 1, begin - comment.rfind("\n", 0, begin)
    assert (
        line(found) == f"header-form models/a.sql:{number}:{column} a comment that looks like a header, and is not one"
    )
    assert "/*---" in (found.hint or "")


@pytest.mark.parametrize("comment", ORDINARY)
def test_other_comments_stay_comments(comment: str) -> None:
    text = f"{comment}select 1 as id\n"
    found = split_header(text, "models/a.sql")
    assert (found.header, found.sql, found.problems) == (None, text, ())


def test_a_header_stays_one_before_such_a_comment() -> None:
    text = f"/*---\n{BODY}---*/\n/* ---\n{BODY}--- */\nselect 1 as id\n"
    assert split_header(text, "models/a.sql").problems == ()
