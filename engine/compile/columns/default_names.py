"""What Spark calls a column without an alias: the expression as it prints it."""

from __future__ import annotations

import re
from collections.abc import Callable

from sqlglot import exp

from engine.compile.columns.column_scope import ColumnScope
from engine.compile.columns.walk import WORDS, Walk, children, path
from engine.compile.sql.precedence.variant_paths import is_path, path_name
from engine.compile.types import spark_types
from engine.compile.types.function_types import has_result_type
from engine.compile.types.widening import is_numeric

_DECIMAL = re.compile(r"(?:0|[1-9]\d*)\.\d{1,6}")
_SIGNS: dict[type[exp.Expr], str] = {
    exp.Add: "+", exp.Sub: "-", exp.Mul: "*", exp.Div: "/", exp.Mod: "%", exp.IntDiv: "div", exp.EQ: "=",
    exp.GT: ">", exp.GTE: ">=", exp.LT: "<", exp.LTE: "<=", exp.NullSafeEQ: "<=>", exp.And: "AND", exp.Or: "OR",
    exp.BitwiseAnd: "&", exp.BitwiseOr: "|", exp.BitwiseXor: "^",
}  # fmt: skip
# Arithmetic with other than numbers is another function for Spark, with another name.
_OF_NUMBERS = (exp.Add, exp.Sub, exp.Mul, exp.Div)


class _UnsureError(Exception):
    """Spark's name is not known."""


def column_name(walk: Walk, node: exp.Expr, scope: ColumnScope) -> tuple[str, bool]:
    if isinstance(node, exp.Alias):
        return node.alias, True
    if isinstance(node, exp.Column):
        return node.name, node.name.lower() not in WORDS or bool(node.table)
    identifiers, base = path(node)
    if base is None and identifiers:
        return identifiers[-1].name, True
    name = _inner_name(walk, _bare(node), scope)
    if name:
        return name, True
    try:
        return _Printer(walk, scope).text(node), True
    except _UnsureError:
        return node.output_name or _fallback_name(walk, node), False


def _inner_name(walk: Walk, node: exp.Expr, scope: ColumnScope) -> str:
    """The name of a column that is cast, or of a path into a VARIANT, cast or not; empty if it is neither."""
    cast = isinstance(node, (exp.Cast, exp.TryCast)) or _casts(node)
    inner = _bare(node.expressions[0] if isinstance(node, exp.Anonymous) else node.this) if cast else node
    if isinstance(inner, (exp.Bracket, exp.Dot)) and is_path(inner, walk.text):
        return path_name(inner)
    names, base = path(inner) if cast else ([], None)
    return names[-1].name if base is None and names and len(_unqualified(names, scope)) == 1 else ""


def _casts(node: exp.Expr) -> bool:
    """Whether it is a function with the name of a type, of those that sqlglot does not read as a cast."""
    return isinstance(node, exp.Anonymous) and node.name.lower() in _TYPES and len(node.expressions) == 1


def _fallback_name(walk: Walk, node: exp.Expr) -> str:
    return walk.name_of(node) or node.key


def _bare(node: exp.Expr) -> exp.Expr:
    while isinstance(node, exp.Paren):
        node = node.this
    return node


def _unqualified(names: list[exp.Identifier], scope: ColumnScope) -> list[exp.Identifier]:
    """A name without the alias of a relation in front."""
    around: ColumnScope | None = scope
    while len(names) > 1 and around is not None:
        if around.relation_named(names[0].name.lower()) is not None:
            return names[1:]
        around = around.outer
    return names


class _Printer:
    def __init__(self, walk: Walk, scope: ColumnScope) -> None:
        self.walk = walk
        self.scope = scope

    def text(self, node: exp.Expr) -> str:
        sign = _SIGNS.get(type(node))
        if sign is not None:
            return self.operation(node, sign)
        printer = _PRINTERS.get(type(node))
        if printer is not None:
            return printer(self, node)
        if isinstance(node, exp.TsOrDsToDate) and "start" not in node.meta:
            return self.text(node.this)
        if _casts(node):
            return self.text(node.expressions[0])
        if isinstance(node, (exp.Func, exp.Anonymous)):
            return self.call(node)
        raise _UnsureError

    def operation(self, node: exp.Expr, sign: str) -> str:
        left_operand, right_operand = node.this, node.expression
        if self.walk.name_of(node):
            return self.call(node)
        if any(
            isinstance(side, exp.Literal) and "." in side.name and not side.is_string
            for side in (left_operand, right_operand)
        ):
            raise _UnsureError
        if isinstance(node, _OF_NUMBERS):
            for side in (left_operand, right_operand):
                type_ = self.walk.value(side, self.scope).type
                if type_ is None or not (is_numeric(type_) or type_ in {"string", "void"}):
                    raise _UnsureError
        return f"({self.text(left_operand)} {sign} {self.text(right_operand)})"

    def column(self, node: exp.Expr) -> str:
        identifiers, base = path(node)
        if not identifiers:
            raise _UnsureError
        if base is not None:
            return ".".join([self.text(base), *(i.name for i in identifiers)])
        names = [i.name for i in _unqualified(identifiers, self.scope)]
        if names[0].lower() in self.scope.computed and not any(
            c.name.lower() == names[0].lower() for c in self.scope.columns
        ):
            window = self.walk.windows.get(names[0].lower())
            if window is None:
                raise _UnsureError
            names[0] = window.function
        return ".".join(names)

    def literal(self, node: exp.Expr) -> str:
        if "start" not in node.meta or "\\" in node.name or "\n" in node.name:
            raise _UnsureError
        if node.is_string or node.is_int or _DECIMAL.fullmatch(node.name):
            return node.name if node.is_string or not node.is_int else str(int(node.name))
        raise _UnsureError

    def negative(self, node: exp.Expr) -> str:
        is_literal = isinstance(node.this, exp.Literal)
        return f"-{self.text(node.this)}" if is_literal else f"(- {self.text(node.this)})"

    def not_(self, node: exp.Expr) -> str:
        if isinstance(node.this, exp.Is):
            raise _UnsureError
        return f"(NOT {self.text(node.this)})"

    def not_equal(self, node: exp.Expr) -> str:
        return f"(NOT ({self.text(node.this)} = {self.text(node.expression)}))"

    def is_(self, node: exp.Expr) -> str:
        if not isinstance(node.expression, exp.Null):
            raise _UnsureError
        return f"({self.text(node.this)} IS NULL)"

    def in_(self, node: exp.Expr) -> str:
        if not node.expressions:
            raise _UnsureError
        return f"({self.text(node.this)} IN ({self.listed(node.expressions)}))"

    def like(self, node: exp.Expr) -> str:
        return f"{self.text(node.this)} LIKE {self.text(node.expression)}"

    def case(self, node: exp.Expr) -> str:
        words = ["CASE"]
        for branch in node.args.get("ifs") or ():
            test = self.text(branch.this)
            if isinstance(node.this, exp.Expr):
                test = f"({self.text(node.this)} = {test})"
            words += ["WHEN", test, "THEN", self.text(branch.args["true"])]
        default = node.args.get("default")
        if default is not None:
            words += ["ELSE", self.text(default)]
        return " ".join([*words, "END"])

    def if_(self, node: exp.Expr) -> str:
        branches = [node.this, node.args.get("true"), node.args.get("false")]
        return f"(IF({self.listed([b for b in branches if isinstance(b, exp.Expr)])}))"

    def cast(self, node: exp.Expr) -> str:
        name = self.walk.name_of(node)
        if name.startswith("to_"):
            return self.call(node)
        type_ = spark_types.of_node(node.args["to"])
        literal = isinstance(node.this, (exp.Literal, exp.Null))
        if type_ is None or literal or (name and name != type_):
            raise _UnsureError
        return f"{'TRY_CAST' if node.args.get('safe') else 'CAST'}({self.text(node.this)} AS {type_.upper()})"

    def bracket(self, node: exp.Expr) -> str:
        if is_path(node, self.walk.text):
            raise _UnsureError
        if self.walk.name_of(node):
            return self.call(node)
        return f"{self.text(node.this)}[{self.listed(node.expressions)}]"

    def distinct(self, node: exp.Expr) -> str:
        return f"DISTINCT {self.listed(node.expressions)}"

    def filtered(self, node: exp.Expr) -> str:
        where = node.expression
        if not isinstance(where, exp.Where):
            raise _UnsureError
        return f"{self.text(node.this)} FILTER (WHERE {self.text(where.this)})"

    def struct(self, node: exp.Expr) -> str:
        if self.walk.name_of(node) != "struct" or any(isinstance(e, exp.PropertyEQ) for e in node.expressions):
            raise _UnsureError
        return f"struct({self.listed(node.expressions)})"

    def call(self, node: exp.Expr) -> str:
        name = self.walk.name_of(node)
        if name in {"window", "session_window"}:
            return name
        arguments = self.arguments(node)
        if (
            name in _UNSURE
            or not (has_result_type(name) or name in _SPECIAL)
            or any(isinstance(a, (exp.Var, exp.Lambda)) for a in arguments)
        ):
            raise _UnsureError
        if name == "count" and arguments and isinstance(arguments[0], exp.Star):
            return "count(1)"
        default = _DEFAULTS.get(name)
        argument_texts = [self.text(argument) for argument in arguments]
        if default is not None and len(arguments) < default[0]:
            if len(arguments) != default[0] - 1:
                raise _UnsureError
            argument_texts.append(default[1])
        capitals = name in _IN_CAPITALS and (len(argument_texts) == 1 or name not in {"ceil", "floor"})
        return f"{name.upper() if capitals else name}({', '.join(argument_texts)})"

    def arguments(self, node: exp.Expr) -> list[exp.Expr]:
        """The arguments, if sqlglot keeps them in the order of the text."""
        left_out = (exp.DataType, exp.Var) if isinstance(node, exp.TsOrDsAdd) else exp.DataType
        arguments = [c for c in children(node) if not isinstance(c, left_out)]
        places = [min((n.meta["start"] for n in c.walk() if "start" in n.meta), default=-1) for c in arguments]
        known_places = [place for place in places if place >= 0]
        if known_places != sorted(known_places):
            raise _UnsureError
        return arguments

    def listed(self, nodes: list[exp.Expr]) -> str:
        return ", ".join(self.text(node) for node in nodes)


_PRINTERS: dict[type[exp.Expr], Callable[[_Printer, exp.Expr], str]] = {
    exp.Column: _Printer.column, exp.Dot: _Printer.column, exp.Literal: _Printer.literal,
    exp.Boolean: lambda _, node: "true" if node.this else "false", exp.Null: lambda *_: "NULL",
    exp.Paren: lambda printer, node: printer.text(node.this), exp.Neg: _Printer.negative, exp.Not: _Printer.not_,
    exp.NEQ: _Printer.not_equal, exp.Is: _Printer.is_, exp.In: _Printer.in_, exp.Like: _Printer.like,
    exp.Case: _Printer.case, exp.If: _Printer.if_, exp.Cast: _Printer.cast, exp.TryCast: _Printer.cast,
    exp.Bracket: _Printer.bracket, exp.Distinct: _Printer.distinct, exp.Filter: _Printer.filtered,
    exp.Struct: _Printer.struct,
    exp.DPipe: lambda printer, node: f"concat({printer.listed([node.this, node.expression])})",
    exp.Between: lambda p, n: f"between({p.listed([n.this, n.args['low'], n.args['high']])})",
}  # fmt: skip
_TYPES = {"bigint", "binary", "decimal", "smallint", "tinyint"}
_SPECIAL = {"bround", "date_part", "datepart", "round"}
# Functions that Spark prints in capitals.
_CAPITALS = """
acos acosh asin asinh atan atan2 atanh cbrt ceil cos cosh cot csc e exp expm1 floor hypot log log10 log1p log2
pi power radians regexp regexp_like rlike sec signum sin sinh spark_partition_id sqrt tan tanh
"""
# Arguments that Spark adds: their count with it, and its text.
_DEFAULTS = {
    "bround": (2, "0"), "locate": (3, "1"), "months_between": (3, "true"), "regexp_replace": (4, "1"),
    "round": (2, "0"), "split": (3, "-1"),
}  # fmt: skip
# Functions whose arguments or names Spark changes in other ways.
_CHANGED = """
aes_decrypt aes_encrypt approx_percentile array_agg array_sort assert_true char chr curdate current_database
current_time date_diff datediff dateadd decode from_csv from_json from_xml hll_sketch_agg hll_union hll_union_agg
isnotnull isnull listagg lpad make_dt_interval make_interval make_timestamp make_ym_interval mask mode overlay
percentile percentile_approx position positive raise_error random regexp_instr rpad sentences sort_array
str_to_map string_agg substr substring theta_difference theta_intersection theta_sketch_agg theta_union
theta_union_agg to_char to_number to_varchar trim try_aes_decrypt try_make_interval try_make_timestamp
try_to_number try_variant_get variant_get
"""
_IN_CAPITALS, _UNSURE = frozenset(_CAPITALS.split()), frozenset(_CHANGED.split())
