"""Reading a model's SQL with sqlglot: one query, and the relations it reads.

The tree is only looked at: what runs is the user's text with replacements (`engine.compile.references.ephemeral`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise

from sqlglot import exp
from sqlglot.errors import ParseError, SqlglotError, TokenError
from sqlglot.tokens import Token  # type: ignore[attr-defined]

from engine.compile.sql.argument_counts import WrongCall, confirm_calls, wrong_calls
from engine.compile.sql.determinism import deterministic
from engine.compile.sql.dialect import UNFORESEEN, parse_tokens, tokenize
from engine.compile.sql.foreign_syntax import ABSENT, absent_constructs, in_hint
from engine.compile.sql.lexer.lexemes import continued_comments, has_comment
from engine.compile.sql.lexer.tokens import TokenType
from engine.compile.sql.normalize import spelling
from engine.compile.sql.query_nodes import QueryNodes
from engine.compile.sql.select_items import ItemPlace, item_places
from engine.compile.sql.token_checks import WINDOW_TABLES, check_depth, check_numbers, check_tokens, variable
from engine.compile.templates.template_names import REF, SOURCE, THIS, spoken
from engine.errors import Diagnostic, Level, near
from engine.jinja import Rendered

TYPES = (
    "string", "boolean", "tinyint", "smallint", "int", "bigint", "float", "double", "decimal", "date", "timestamp",
    "timestamp_ntz", "binary", "array", "map", "struct", "variant",
)  # fmt: skip
_STARTS = {"SELECT", "WITH", "FROM", "(", "VALUES", "TABLE"}
UNDECLARED_HINT = "Write {{ ref('model') }} or {{ source('name', 'table') }}, so that the dependency is known."
_STRAY_REF = "Use it in FROM or JOIN, and refer to its columns by the model's name or an alias."


@dataclass(frozen=True, slots=True)
class RelationReference:
    """A relation in the FROM of some SELECT; the offsets are those of the placeholder.

    `name` and `alias` are as the user writes them. `bare`: followed by a clause (TABLESAMPLE, VERSION AS OF) that an
    alias may not precede.
    """

    kind: str
    name: str
    alias: str
    bare: bool
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class ParsedQuery:
    """A parsed model.

    `qualifiers`: references that are before a column ({{ ref('flights') }}.origin): start, end, name. `spelling`: the
    normal form, empty if nobody asked. `end`: where the query ends in the rendered text, before a semicolon. `items`:
    where those of the outer SELECT are. `double_quoted`: strings in double quotes, each with its offset.
    """

    tree: exp.Expr
    references: tuple[RelationReference, ...]
    qualifiers: tuple[tuple[int, int, str], ...]
    spelling: str
    end: int
    nodes: QueryNodes
    deterministic: bool
    items: tuple[ItemPlace, ...]
    double_quoted: tuple[tuple[int, str], ...] = ()


def parse(rendered: Rendered, node: str, diagnostics: list[Diagnostic], *, compared: bool = True) -> ParsedQuery | None:
    """Parse a rendered model; findings carry the place in the user's file. `compared`: its normal form is needed."""
    reader = _Reader(rendered, node, diagnostics)
    tokens = reader.tokens()
    if tokens is None:
        return None
    while len(tokens) > 1 and tokens[-1].token_type is TokenType.SEMICOLON:
        tokens.pop()
    before = len(diagnostics)
    check_tokens(tokens, rendered.text, reader.report)
    wrong = wrong_calls(tokens) if len(diagnostics) == before else []
    tree = reader.tree(tokens, wrong) if len(diagnostics) == before else None
    if tree is None:
        return None
    nodes = QueryNodes.of_tree(tree)
    _place_group_by_all(nodes, tokens)
    if not reader.spark_has(nodes, confirm_calls(wrong, tree) if wrong else ()):
        return None
    references, qualifiers = reader.references(nodes, tokens)
    end = tokens[-1].end + 1
    items = item_places(tokens)
    text = rendered.text
    form = spelling(text, tokens, nodes.every(exp.Identifier), nodes.every(exp.Paren)) if compared else ""
    double_quoted = tuple(
        (token.start, token.text)
        for token in (tokens if '"' in text else ())
        if token.token_type is TokenType.STRING and text[token.start] == '"'
    )
    reader.warn_of_continued_comments()
    stay = nodes.lasting(), deterministic(nodes)
    return ParsedQuery(tree, references, qualifiers, form, end, *stay, items, double_quoted)


def with_printed(hint: str, rendered: Rendered, offset: int) -> str:
    """A hint about a place in the text; where a macro made it, the user is shown what it made."""
    printed = rendered.printed(offset)
    return f"{hint} The template rendered to: {printed}".lstrip() if printed else hint


@dataclass(frozen=True, slots=True)
class _Reader:
    """Reads one rendered text and reports what is wrong with it."""

    rendered: Rendered
    node: str
    diagnostics: list[Diagnostic]

    def report(self, code: str, message: str, hint: str, offset: int) -> None:
        place = self.rendered.location(offset)
        full_hint = with_printed(hint, self.rendered, offset)
        self.diagnostics.append(Diagnostic(code, message, full_hint, node=self.node, location=place))

    def warn_of_continued_comments(self) -> None:
        for offset in continued_comments(self.rendered.text):
            message = "the comment ends in a backslash, so that the next line belongs to it"
            hint = "Remove the backslash, or begin the next line with --."
            place = self.rendered.location(offset)
            self.diagnostics.append(Diagnostic("comment-continues", message, hint, Level.WARNING, self.node, place))

    def tokens(self) -> list[Token] | None:
        text = self.rendered.text
        try:
            tokens = tokenize(text)
        except TokenError as error:
            hint = "Close the quote or comment that starts here."
            self.report("sql-syntax", "the SQL ends inside a quote or comment", hint, error.start or 0)
            return None
        if not tokens:
            self.report("not-a-query", "the model has no SQL", "Write a SELECT below the header.", len(text))
            return None
        return tokens

    def tree(self, tokens: list[Token], wrong: list[WrongCall]) -> exp.Expr | None:
        word, before = tokens[0].text.upper(), len(self.diagnostics)
        if word not in _STARTS:
            self.no_query(word, tokens[0].start)
            return None
        second = next((i for i, t in enumerate(tokens) if t.token_type is TokenType.SEMICOLON), None)
        if second is not None:
            hint = "Keep one SELECT; a model is one query."
            self.report("not-a-query", "a second statement in the model", hint, tokens[second + 1].start)
            return None
        tree = self.read(tokens, wrong)
        if len(self.diagnostics) > before:
            return None
        if not isinstance(tree, exp.Query):
            self.no_query(tree.key.upper() if tree is not None else word, tokens[0].start)
            return None
        return tree

    def read(self, tokens: list[Token], wrong: list[WrongCall]) -> exp.Expr | None:
        """The parser's tree, or what it cannot read."""
        try:
            return parse_tokens(tokens, self.rendered.text)[0]
        except ParseError as error:
            # The parser counts the arguments of many functions, too, and reports them in words of its own.
            counted = [call for call in wrong if call.code == "argument-count" or not call.placed]
            if counted:
                self.wrong(counted)
            else:
                self.parse_error(error, tokens)
        except RecursionError:
            self.report("sql-too-deep", "the SQL is nested too deeply", "Use CTEs.", tokens[0].start)
        except UNFORESEEN as error:
            hint = (
                "Look for a function call with NULL or an empty argument where a keyword is required, such as "
                "trunc(ts, null)."
            )
            if wrong:
                self.wrong(wrong)
            else:
                self.report("sql-syntax", f"the SQL cannot be read: {error}", hint, tokens[0].start)
        return None

    def no_query(self, word: str, offset: int) -> None:
        hint = "Write the SELECT only; Headrace creates and fills the table."
        self.report("not-a-query", f"a model is a SELECT, not {word}", hint, offset)

    def parse_error(self, error: ParseError, tokens: list[Token]) -> None:
        detail = error.errors[0]
        at = (detail.get("line"), detail.get("col"))
        token = next((t for t in tokens if (t.line, t.col) == at), tokens[-1])
        near_what = spoken(self.rendered.text[token.start : token.end + 1])
        description = detail.get("description") or ""
        if description.lower().startswith("expected type"):
            self.report("sql-syntax", f"unknown type '{near_what}'", near(near_what, TYPES), token.start)
            return
        expected = f" ('{description[10:]}' is expected)" if description.startswith("Expecting ") else ""
        hint = detail.get("hint") or "Check for a missing or extra comma, keyword or bracket near this place."
        place = tokens.index(token)
        if any(before.token_type is TokenType.COLON for before in tokens[max(place - 3, 0) : place]):
            hint = "Write variant_get(v, '$.a', 'string') for v:a."
        self.report("sql-syntax", f"syntax error near '{near_what}'{expected}", hint, token.start)

    def wrong(self, calls: Iterable[WrongCall]) -> None:
        for call in calls:
            self.report(call.code, call.message, call.hint, call.offset)

    def spark_has(self, nodes: QueryNodes, calls: Iterable[WrongCall]) -> bool:
        before = len(self.diagnostics)
        self.wrong(calls)
        for select in nodes.every(exp.Select):
            qualify = select.args.get("qualify")
            if qualify is not None:
                hint = "Filter on the window function in an outer SELECT."
                self.report("qualify-not-supported", "Spark has no QUALIFY", hint, first_offset(qualify))
            distinct = select.args.get("distinct")
            if distinct is not None and distinct.args.get("on") is not None:
                hint = "Select the best row of a key: max_by(struct(*), ts) ... group by the key."
                self.report("sql-syntax", "Spark has no DISTINCT ON", hint, first_offset(distinct))
        for message, hint, node in absent_constructs(nodes.every(*ABSENT)):
            self.report("sql-syntax", message, hint, first_offset(node))
        for table in nodes.every(exp.Table):
            function = table.this
            name = function.name.upper() if isinstance(function, exp.Anonymous) else ""
            if name in WINDOW_TABLES:
                self.report("sql-syntax", f"Spark has no {name}()", WINDOW_TABLES[name], first_offset(function))
        return len(self.diagnostics) == before

    def references(
        self, nodes: QueryNodes, tokens: list[Token]
    ) -> tuple[tuple[RelationReference, ...], tuple[tuple[int, int, str], ...]]:
        references = sorted(self.tables(nodes), key=lambda r: r.start)
        tables = {r.start for r in references}
        qualifiers: list[tuple[int, int, str]] = []
        for identifier in nodes.every(exp.Identifier):
            kind, name = _placeholder(identifier)
            if not kind or span(identifier)[0] in tables:
                continue
            column = identifier.parent
            qualifies = isinstance(column, exp.Column) and identifier is not column.this
            if qualifies or (isinstance(column, exp.Table) and in_hint(column)):
                alias = next((r.alias for r in references if r.name == name), "")
                qualifiers.append((*span(identifier), alias or name.rsplit(".", 1)[-1]))
            else:
                self.stray(identifier.this, span(identifier)[0])
        for token in tokens:
            if token.token_type is TokenType.STRING and f"`{REF}" in token.text:
                self.stray(token.text, token.start)
        return tuple(references), tuple(qualifiers)

    def stray(self, text: str, offset: int) -> None:
        reference_text = spoken(text if "`" in text else f"`{text}`")
        self.report("sql-syntax", f"{reference_text} is used where no table is read", _STRAY_REF, offset)

    def tables(self, nodes: QueryNodes) -> Iterator[RelationReference]:
        ctes = {cte.alias.lower() for cte in nodes.every(exp.CTE)}
        for table in nodes.every(exp.Table):
            identifier = table.this
            if not isinstance(identifier, exp.Identifier) or in_hint(table):
                continue
            start, end = span(identifier)
            kind, name = _placeholder(identifier)
            if kind:
                bare = bool(table.args.get("sample") or table.args.get("version"))
                bare = bare or isinstance(table.parent, exp.TableSample)
                yield RelationReference(kind, name, table.alias, bare, start, end)
            elif (
                table.args.get("db") is not None
                or identifier.this.lower() not in ctes
                or not _is_visible(table, identifier.this.lower())
            ):
                dotted_name = ".".join(part.name for part in table.parts)
                message = f"'{dotted_name}' is neither a model, a source nor a CTE"
                self.report("undeclared-relation", message, UNDECLARED_HINT, first_offset(table.parts[0]))


def _is_visible(table: exp.Table, name: str) -> bool:
    """Whether a CTE of a name, in lower case, can be read here: one before, or of a query around (CTESubstitution)."""
    below: exp.Expr = table
    node = table.parent
    while node is not None:
        clause = node.args.get("with_")
        if isinstance(node, exp.With):
            for cte in node.expressions:
                if cte is below and not node.args.get("recursive"):
                    break
                if cte.alias.lower() == name:
                    return True
                if cte is below:
                    break
        elif clause is not None and clause is not below and any(c.alias.lower() == name for c in clause.expressions):
            return True
        below, node = node, node.parent
    return False


def _placeholder(identifier: exp.Identifier) -> tuple[str, str]:
    text = identifier.this
    for prefix, kind in ((REF, "ref"), (SOURCE, "source")):
        if text.startswith(prefix):
            return kind, text[len(prefix) :]
    return ("this", text) if text == THIS else ("", "")


def _place_group_by_all(nodes: QueryNodes, tokens: list[Token]) -> None:
    """Note where the ALL of each GROUP BY ALL is, which the tree does not show."""
    groups = [group for group in nodes.every(exp.Group) if group.args.get("all")]
    places = [
        (following.start, following.end + 1)
        for token, following in pairwise(tokens if groups else ())
        if token.token_type is TokenType.GROUP_BY and following.token_type is TokenType.ALL
    ]
    if len(groups) == len(places) == 1:
        groups[0].meta["all"] = places[0]


def span(node: exp.Expr) -> tuple[int, int]:
    """Begin and end (exclusive) of an identifier, or of a column of several, in the text."""
    identifiers = [node] if isinstance(node, exp.Identifier) else list(node.find_all(exp.Identifier))
    spans = [(i.meta["start"], i.meta["end"] + 1) for i in identifiers if "start" in i.meta]
    return min(s for s, _ in spans), max(e for _, e in spans)


def first_offset(node: exp.Expr) -> int:
    """Where the first of the words of a node is that have a place."""
    return min((n.meta["start"] for n in node.walk() if "start" in n.meta), default=0)


def is_expression(text: str) -> bool:
    """Whether a text of the header is one SQL expression, without comments (they would hide what follows)."""
    try:
        tokens = tokenize(text)
        too_deep: list[str] = []
        check_depth(tokens, lambda code, *_: too_deep.append(code))
        check_numbers(tokens, lambda code, *_: too_deep.append(code))
        trees = parse_tokens(tokenize(f"SELECT {text}"), f"SELECT {text}") if tokens and not too_deep else []
    except (SqlglotError, RecursionError):
        return False
    if variable(text) or has_comment(text) or len(trees) != 1 or not isinstance(trees[0], exp.Select):
        return False
    arguments = [key for key, value in trees[0].args.items() if value]
    return arguments == ["expressions"] and len(trees[0].expressions) == 1 and not trees[0].expressions[0].alias
