"""The models that histories are made of: their texts, their edits, and which edits must be rejected."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

Settings = Mapping[str, str]

EVENTS, MORE, CHANGES, FEED = "events", "more", "changes", "feed"


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of model.

    Attributes:
        name: of the model.
        text: of its file, with `<setting>` for each setting.
        sources: that it streams; empty: it streams the table of `upstream`.
        settings: the values of each setting, the first one is that of the beginning.
        meaning: the settings that say what its checkpoint holds: an edit of one must be rejected.
        key: the columns of its unique key; empty: rows are appended.
        stateful: whether Spark keeps state for it.
        watermark: whether its inputs have one.
        upstream: the model whose table it streams.
        keeps_now: whether rows stay right after `--reset-checkpoint now`.
        batch: whether it is computed in full from what there is.
        tested: the column that its test looks at; empty: its rows do not wait for a test.
    """

    name: str
    text: str
    sources: tuple[str, ...]
    settings: Mapping[str, tuple[str, ...]]
    meaning: tuple[str, ...] = ()
    key: tuple[str, ...] = ()
    stateful: bool = False
    watermark: bool = False
    upstream: str = ""
    keeps_now: bool = True
    batch: bool = False
    tested: str = ""

    def file(self, settings: Settings) -> str:
        """The text of the model's file."""
        text = self.text
        if "order" in settings:
            names = {"a": EVENTS, "b": MORE}
            first, second = (names[letter] for letter in settings["order"])
            text = text.replace("<first>", first).replace("<second>", second)
        for name, value in settings.items():
            # A value may name another setting.
            text = text.replace(f"<{name}>", value.replace("<aggregate>", settings.get("aggregate", "")))
        return STYLES[settings["style"]](text)


def _upper(text: str) -> str:
    """Upper-case keywords and aliases, but not what is quoted or a template."""
    header, sep, body = text.partition("---*/\n")
    parts = _AS_WRITTEN.split(body)
    # What the expression matches is every second part.
    return header + sep + "".join(part if index % 2 else part.upper() for index, part in enumerate(parts))


_AS_WRITTEN = re.compile(r"(\{\{.*?\}\}|'[^']*')")


_SELECT = re.compile(
    r"select (.+?)\sfrom (\{\{[^}]+\}\}(?: as s)?)(?: where (.+?))?(?:\sgroup by (.+?))?(?: having (.+?))?\s*",
    re.DOTALL,
)


def _piped(text: str) -> str:
    """The query as a pipe, if it is one SELECT over one input."""
    header, sep, body = text.partition("---*/\n")
    match = _SELECT.fullmatch(body) if "union" not in body else None
    if match is None:
        return text
    listed, relation, where, keys, having = match.groups()
    items = _AT_COMMAS.split(listed)
    steps = [f"from {relation}", *([f"where {where}"] if where else [])]
    if keys:
        results = [item for item in items if _AGGREGATES.match(item)]
        steps.append(f"aggregate {', '.join(results)} group by {keys}")
        steps += [f"where {having.replace('count(*)', 'n')}"] if having else []
        items = [item.rpartition(" as ")[2] if item in results else item for item in items]
    select = ", ".join(items)
    return f"{header}{sep}{' |> '.join([*steps, f'select {select}'])}\n"


_AGGREGATES = re.compile(r"(?:count|sum|max|min)\(")
# Commas in no brackets; those of templates are in brackets too.
_AT_COMMAS = re.compile(r", (?![^(]*\))")

STYLES: dict[str, Callable[[str], str]] = {
    "plain": lambda text: text,
    "pipe": _piped,
    "comment": lambda text: text + "-- as it was\n",
    "lines": lambda text: text.replace(", ", ",\n    ") if "---*/" not in text else _lines(text),
    "upper": _upper,
}


def _lines(text: str) -> str:
    header, sep, body = text.partition("---*/\n")
    return header + sep + body.replace(" from ", "\nfrom ").replace("select ", "select\n    ")


_EXPECT = "expectations: [{name: small, check: <value> < 5, on_fail: <fail>}]\n"
_STYLE = {"style": ("plain", "comment", "lines", "upper", "pipe")}
_HOOK = {"hook": ("", 'pre_hook: "set spark.sql.session.timeZone = America/New_York"\n')}
_DELAY = {"delay": ("10 minutes", "30 minutes", "5 minutes")}
_ALIAS = {"alias": ("", " as s")}


def _expecting(value: str) -> dict[str, tuple[str, ...]]:
    expect = _EXPECT.replace("<value>", value)
    return {"expect": ("", expect.replace("<fail>", "quarantine"), expect.replace("<fail>", "drop"))}


PLAIN = Kind(
    "plain",
    """/*---
streams: [shop.events]
on_schema_change: <onchange>
<hook><expect>---*/
select id, at, kind, <amount> as <name>, cast(at as date) as day<more> from {{ source('shop', 'events') }}<alias><where>
""",
    (EVENTS,),
    {
        "onchange": ("append_columns", "fail"),
        "amount": ("amount", "amount * {{ var('factor') }}", "{{ scaled('amount') }}", "cast(amount as int)"),
        "name": ("amount", "AMOUNT"),
        "more": ("", ", kind as label"),
        "where": ("", " where amount > 2"),
        **_expecting("amount"),
        **_ALIAS,
        **_HOOK,
        **_STYLE,
    },
)
BOTH = Kind(
    "both",
    """/*---
streams: [shop.events, shop.more]
---*/
select id, amount from {{ source('shop', '<first>') }}<where>
union all
select id, amount from {{ source('shop', '<second>') }}
""",
    (EVENTS, MORE),
    {"order": ("ab", "ba"), "where": ("", " where amount > 2"), **_STYLE},
    meaning=("order",),
)
UNIQUE = Kind(
    "uniq",
    """/*---
state_store: {partitions: 1}
streams: {shop.events: {watermark: at delay <delay>, dedup: <keys>}}
---*/
select id, kind, at from {{ source('shop', 'events') }}<alias>
""",
    (EVENTS,),
    {"keys": ("[id, kind]", "[kind, id]", "[id]", "[kind]"), **_DELAY, **_ALIAS, **_STYLE},
    meaning=("keys",),
    stateful=True,
    watermark=True,
)
_WINDOW = """windows: {hour: 'tumbling(at, <size>)'}
---*/
select hour.start as hour, <columns> from {{ source('shop', 'events') }}<alias> group by hour<having>
"""
_WINDOWED = {
    "size": ("1 hour", "60 minutes", "30 minutes"),
    "aggregate": ("sum(amount)", "max(amount)", "sum(amount * {{ var('factor') }})", "sum({{ scaled('amount') }})"),
    "columns": ("count(*) as n, <aggregate> as amount", "<aggregate> as amount, count(*) as n"),
    **_DELAY,
    **_ALIAS,
    **_STYLE,
}
HOURLY = Kind(
    "hourly",
    "/*---\nstate_store: {partitions: 1}\nstreams: {shop.events: {watermark: at delay <delay>}}\n" + _WINDOW,
    (EVENTS,),
    {**_WINDOWED, "having": ("", " having count(*) > 1")},
    meaning=("size", "aggregate"),
    stateful=True,
    watermark=True,
)
UPDATES = Kind(
    "updates",
    "/*---\nstate_store: {partitions: 1}\nstreams: {shop.events: {watermark: at delay <delay>}}\noutput_mode: update\n"
    + _WINDOW.replace("<having>", ""),
    (EVENTS,),
    _WINDOWED,
    meaning=("size", "aggregate"),
    key=("hour",),
    stateful=True,
    watermark=True,
)
_TOTALS = "select kind, count(*) as n, <aggregate> as amount from {{ source('shop', 'events') }}<alias> group by kind\n"
_AGGREGATE = {"aggregate": _WINDOWED["aggregate"], **_ALIAS, **_STYLE}
TOTALS = Kind(
    "totals",
    "/*---\nstate_store: {partitions: 1}\nstreams: [shop.events]\noutput_mode: complete\n---*/\n" + _TOTALS,
    (EVENTS,),
    _AGGREGATE,
    meaning=("aggregate",),
    stateful=True,
    keeps_now=False,
)
RUNNING = Kind(
    "running",
    "/*---\nstate_store: {partitions: 1}\nstreams: [shop.events]\noutput_mode: update\n---*/\n" + _TOTALS,
    (EVENTS,),
    _AGGREGATE,
    meaning=("aggregate",),
    key=("kind",),
    stateful=True,
    keeps_now=False,
)
_CHANGES = """/*---
streams: [shop.changes]
unique_key: key
sequence_by: seq
delete_when: op = 'd'
exclude: [op]
<history><expect>---*/
select key, seq, op, <val> as val from {{ source('shop', 'changes') }}<alias>
"""
_VALUE = {"val": ("val", "val * {{ var('factor') }}", "{{ scaled('val') }}"), **_expecting("val"), **_ALIAS, **_STYLE}
CURRENT = Kind("current", _CHANGES.replace("<history>", ""), (CHANGES,), _VALUE, key=("key",))
VERSIONS = Kind("versions", _CHANGES.replace("<history>", "history: true\n"), (CHANGES,), _VALUE, key=("key",))
JOINED = Kind(
    "joined",
    """/*---
state_store: {partitions: 1}
streams:
  shop.events: {watermark: at delay 10 minutes}
  shop.more: {watermark: at delay 10 minutes}
---*/
select e.id, e.at, m.amount
from {{ source('shop', 'events') }} e
join {{ source('shop', 'more') }} m on m.id = e.id and m.at between e.at and e.at + interval <bound>
""",
    (EVENTS, MORE),
    {"bound": ("1 hour", "60 minutes", "2 hours"), "style": ("plain", "comment", "lines")},
    meaning=("bound",),
    stateful=True,
    watermark=True,
)
DOWN = Kind(
    "down",
    "/*---\nstreams: [plain]\n---*/\nselect <columns> from {{ ref('plain') }}<alias>\n",
    (),
    # Which columns there are is decided at the beginning: an edit would be about some rows only.
    {"columns": ("id, kind, amount",), **_ALIAS, **_STYLE},
    upstream="plain",
)
COUNTS = Kind(
    "counts",
    """/*---
state_store: {partitions: 1}
streams: [plain]
output_mode: update
---*/
select kind, count(*) as n, sum(amount) as amount from {{ ref('plain') }}<alias> group by kind
""",
    (),
    {**_ALIAS, **_STYLE},
    key=("kind",),
    stateful=True,
    upstream="plain",
    keeps_now=False,
)
SESSIONS = Kind(
    "sessions",
    """/*---
state_store: {partitions: 1}
streams: {shop.events: {watermark: at delay <delay>}}
windows: {visit: 'session(at, 10 minutes)'}
---*/
select visit.start as begins, visit.end as ends, kind, <columns> from {{ source('shop', 'events') }}<alias>
group by visit, kind
""",
    (EVENTS,),
    {name: _WINDOWED[name] for name in ("aggregate", "columns", "delay", "alias", "style")},
    meaning=("aggregate",),
    stateful=True,
    watermark=True,
)
CHAINED = Kind(
    "chained",
    """/*---
state_store: {partitions: 1}
streams: {shop.events: {watermark: at delay <delay>}}
---*/
with few as (
    select window(at, '10 minutes') as part, kind, sum(amount) as amount
    from {{ source('shop', 'events') }}<alias> group by window(at, '10 minutes'), kind
)
select window(part, '1 hour').start as hour, count(*) as n, <top>(amount) as amount from few
group by window(part, '1 hour')
""",
    (EVENTS,),
    {"top": ("max", "min"), **_DELAY, **_ALIAS, "style": ("plain", "comment", "lines")},
    meaning=("top",),
    stateful=True,
    watermark=True,
)
OUTER = Kind(
    "outer",
    JOINED.text.replace("\njoin ", "\nleft join "),
    (EVENTS, MORE),
    JOINED.settings,
    meaning=("bound",),
    stateful=True,
    watermark=True,
)
ROLLUP = Kind(
    "rollup",
    """/*---
materialized: table
<expect>---*/
select kind, count(*) as n, <aggregate> as amount from {{ ref('plain') }}<alias><where> group by kind
""",
    (),
    {
        "aggregate": ("sum(amount)", "max(amount)"),
        "where": ("", " where kind <> 'b'", " where kind <> 'B'"),
        "expect": ("", "expectations: [{name: few, check: n < 3, on_fail: drop}]\n"),
        **_ALIAS,
        **_STYLE,
    },
    upstream="plain",
    batch=True,
)
DAILY = Kind(
    "daily",
    """/*---
materialized: table
---*/
select kind, max(to_json(struct(amount as <field>))) as top, min(<bits>) as bits
from {{ source('shop', 'events') }}<alias> group by kind
""",
    (EVENTS,),
    # Spark distinguishes these, though a careless comparison of texts would not.
    {
        "field": ("amount", "Amount", "`amount`"),
        "bits": ("id | 4 & 2", "(id | 4) & 2", "id | (4 & 2)"),
        **_ALIAS,
        "style": ("plain", "comment", "lines"),
    },
    batch=True,
)
_WAITING = """publish: on_tests_pass
columns: {<column>: {tests: [{expression: {expression: "<= <limit>", name: <model>_is_small}}]}}
"""
VETTED = Kind(
    "vetted",
    "/*---\nstreams: [shop.events]\n"
    + _WAITING.replace("<column>", "amount").replace("<model>", "vetted")
    + """---*/
select id, kind, amount from {{ source('shop', 'events') }}<alias><where>
""",
    (EVENTS,),
    {"where": ("", " where amount < 8"), "limit": ("10", "5", "2.75"), **_ALIAS, **_STYLE},
    tested="amount",
)
SHOWN = Kind(
    "shown",
    "/*---\nstreams: [vetted]\n---*/\nselect id, kind, amount from {{ ref('vetted') }}<alias>\n",
    (),
    {**_ALIAS, **_STYLE},
    upstream="vetted",
)
GATED = Kind(
    "gated",
    "/*---\nmaterialized: table\n"
    + _WAITING.replace("<column>", "n").replace("<model>", "gated")
    + """---*/
select kind, count(*) as n, <aggregate> as amount from {{ ref('plain') }}<alias><where> group by kind
""",
    (),
    {**ROLLUP.settings, "expect": ("",), "limit": ("1000", "3", "2")},
    upstream="plain",
    batch=True,
    tested="n",
)
FED = Kind(
    "fed",
    """/*---
streams: [shop.feed]
<expect>---*/
select id, at, kind, <amount> as amount from {{ source('shop', 'feed') }}<alias><where>
""",
    (FEED,),
    {
        "amount": ("amount", "amount * {{ var('factor') }}", "{{ scaled('amount') }}"),
        "where": ("", " where amount > 2"),
        **_expecting("amount"),
        **_ALIAS,
        **_STYLE,
    },
)
POLLED = Kind(
    "polled",
    UPDATES.text.replace("shop.events", "shop.feed").replace("'events'", "'feed'"),
    (FEED,),
    _WINDOWED,
    meaning=("size", "aggregate"),
    key=("hour",),
    stateful=True,
    watermark=True,
)
KINDS = {
    kind.name: kind
    for kind in (
        PLAIN, BOTH, UNIQUE, HOURLY, UPDATES, TOTALS, RUNNING, CURRENT, VERSIONS, JOINED, DOWN, COUNTS, SESSIONS,
        CHAINED, OUTER, ROLLUP, DAILY, VETTED, SHOWN, GATED, FED, POLLED,
    )
}  # fmt: skip
# Words that say the same.
SAME = {"60 minutes": "1 hour", "[kind, id]": "[id, kind]"}

PROJECT_SETTINGS: dict[str, tuple[str, ...]] = {
    "factor": ("2", "3"),
    "macro": ("4", "8"),
    "schema": (
        "id int, at timestamp, kind string, amount double",
        "at timestamp, amount double, id int, kind string",
        "id int, at timestamp, kind string, amount double, extra string",
    ),
    "path": ("landing/events", "landing/events/", "./landing/events"),
}
SOURCES = """
sources:
  - name: shop
    tables:
      - name: events
        format: json
        path: <path>
        schema: "<schema>"
        on_bad_record: quarantine
        max_files_per_trigger: 2
      - name: more
        format: json
        path: landing/more
        schema: "id int, at timestamp, kind string, amount double"
        on_bad_record: quarantine
        max_files_per_trigger: 2
      - name: changes
        format: json
        path: landing/changes
        schema: "key int, seq timestamp, op string, val double"
        on_bad_record: quarantine
        max_files_per_trigger: 2
"""
FED_SOURCE = """\
      - name: feed
        format: kafka
        connection: main
        topic: <topic>
        starting_offsets: earliest
        schema: "id int, at timestamp, kind string, amount double"
        on_bad_record: quarantine
        max_offsets_per_trigger: 3
"""
CONNECTION = "    connections: {main: {bootstrap_servers: '<address>'}}\n"
MACRO = "{% macro scaled(column) %}{{ column }} * <macro>{% endmacro %}\n"
