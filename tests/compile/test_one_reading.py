"""A query is understood in one place: what its names refer to, which expressions are one, what it reads."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tests.test_layers import ROOT, modules_with

# Who reads a text of SQL outside of `compile/sql`, and why it is no text of a query that was bound already.
READERS = {
    "compile/columns/column_texts.py": "expressions of headers",
    "compile/columns/find_columns.py": "expressions of headers",
    "compile/columns/lambda_checks.py": "what the parser drops of a lambda",
    "compile/config/condition_config.py": "expressions of headers",
    "compile/config/operation_config.py": "hooks",
    "compile/config/window_config.py": "expressions of headers",
    "compile/refresh/part_text.py": "the text of a part, which is compared with its tree",
    "compile/stateful/aggregate_order.py": "the places of the items of a SELECT",
    "compile/stateful/bound_expressions.py": "what the tree lacks of a call",
    "compile/streaming/check_query.py": "windows, to name them in messages",
    "compile/streaming/parse_statement.py": "statements without a model",
    "compile/test_nodes/data_test_nodes.py": "tests",
    "compile/test_nodes/unit_test_rows.py": "rows of unit tests",
    "plan/edits/affected_columns.py": "the places of the items of a SELECT",
}
# Who asks what a node of the parser's tree is, outside of `compile/sql` and of where queries are bound. No more may come.
TREE_READERS = {
    "compile/config/condition_config.py",
    "compile/output/clause_checks.py", "compile/output/null_event_times.py", "compile/output/output_columns.py",
    "compile/output/output_mode.py", "compile/output/stream_columns.py", "compile/output/infer_columns.py",
    "compile/references/expand_windows.py", "compile/references/metadata_column.py",
    "compile/refresh/part_text.py", "compile/refresh/query_block.py",
    "compile/refresh/read_blocks.py", "compile/stateful/aggregate_order.py", "compile/stateful/blocks.py",
    "compile/stateful/bound_expressions.py",
    "compile/stateful/read_columns.py", "compile/stateful/stateful_steps.py", "compile/test_nodes/data_test_nodes.py",
    "compile/test_nodes/unit_test_rows.py",
    "compile/types/spark_types.py",
    "plan/comparable_facts.py", "plan/edits/affected_columns.py", "plan/edits/changed_clauses.py",
    "plan/edits/present_names.py", "plan/changed_query.py",
}  # fmt: skip
_READING = {"parse_text", "parse_tokens", "tokenize"}


def _called(source: str) -> Iterator[str]:
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            yield node.func.id


def _in(path: object) -> str:
    return str(path.relative_to(ROOT))  # type: ignore[attr-defined]


def test_no_other_module_of_compile_and_plan_reads_the_text_of_a_query() -> None:
    found = {
        name
        for path, text in modules_with("|".join(_READING))
        if (name := _in(path) if ROOT in path.parents else "").startswith(("compile/", "plan/"))
        and not name.startswith("compile/sql/")
        and _READING & {*_called(text)}
    }
    assert found == READERS.keys()


def _modules_with(words: str) -> set[str]:
    found = {_in(path) for path, _ in modules_with(words) if ROOT in path.parents}
    return {name for name in found if name.startswith(("compile/", "plan/"))}


def test_no_more_modules_of_compile_and_plan_read_the_tree_of_the_parser() -> None:
    found = _modules_with(r"from sqlglot import .*\bexp\b|sqlglot\.exp\b|sqlglot\.expressions")
    outside = {name for name in found if not name.startswith(("compile/sql/", "compile/columns/"))}
    assert outside <= TREE_READERS
    assert not any(name.startswith("compile/streaming/") for name in found)


def test_one_module_says_whether_two_expressions_are_the_same() -> None:
    # A text of a tree is its class and its arguments; SQL that is printed is shown, not compared.
    assert _modules_with(r"__name__\}[\[(]") == {"compile/sql/same_expression.py"}
    assert _modules_with(r"\.sql\([^)]*\)(\.lower\(\))? (==|!=|in|not in) ") == set()


def test_one_module_says_which_names_a_query_reads() -> None:
    """What is stored among facts has the words of the text: other words would be other facts."""
    assert _modules_with("def read_names|def reads_unnamed|def renames_columns") == {"compile/sql/read_names.py"}
    assert _modules_with(r"_(WORDS?|TOKEN)\.findall") == {
        "compile/stateful/read_columns.py",
        # Texts that are no queries, and lines of a difference.
        "plan/comparable_facts.py", "plan/edits/definition_diff.py",
    }  # fmt: skip
