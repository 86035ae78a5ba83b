"""Names of dbt's templates that do not hold here, each with the form that does."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from engine.jinja import Absent

_ONE_QUERY = "Write the plain SELECT: a stream reads only new rows, and a full refresh runs the same query."
_UNVARYING = "The query of a streaming table must be the same in every run"
_UNCONNECTED = "Templates are rendered without a connection"
_PACKAGE = "A package of macros is a folder of the project: packages/{name}/macros/."
_SPARK = "There is one engine, Spark: call its function directly."

_PER_RUN = {
    "run_started_at": f"{_UNVARYING}, and a view's is kept; current_timestamp() is the time of the micro-batch, or of "
    "the query that reads the view. A batch table's may hold it.",
    "invocation_id": f"{_UNVARYING}, and a view's is kept; a batch table's query may hold it.",
    "invocation_args_dict": f"{_UNVARYING}; a variable is var('name').",
    "selected_resources": f"{_UNVARYING}.",
    "thread_id": f"{_UNVARYING}.",
    "flags": f"{_UNVARYING}, also in a full refresh.",
}
_QUERIES = f"{_UNCONNECTED}; write the query as a model and ref() it, or the values as a list: var('names')."
_NONE = {
    "run_query": _QUERIES,
    "statement": _QUERIES,
    "load_result": _QUERIES,
    "store_result": _QUERIES,
    "store_raw_result": _QUERIES,
    "api": f"{_UNCONNECTED}.",
    "submit_python_job": "A model is a SELECT.",
    "graph": "A model reads others through ref(); 'engine ls --output json' lists all nodes.",
    "model": "The properties of a model are in its header; {{ this }} is its table.",
    "schema": "Write {{ target.schema }}.",
    "database": "Write {{ target.catalog }}.",
    "schemas": "Write {{ target.schema }}.",
    "dbt_version": "require_engine_version in project.yml sets the versions of Headrace that the project accepts.",
    "builtins": "Macros cannot replace ref(), source() and config(), so the originals need no other name.",
    "context": "Write the name itself.",
    "dispatch": "Call the macro by its name: there is one engine, Spark.",
    "doc": "Write the text as 'description' in the header.",
    "metric": "Write a metric as a model.",
    "debug": "Use {{ log(value, info=True) }}.",
    "local_md5": "Write md5(...) in SQL.",
    "try_or_compiler_error": "Use exceptions.raise_compiler_error('message').",
}
_ADAPTER = {
    "dispatch": "Call the macro by its name: there is one engine, Spark.",
    "get_columns_in_relation": "Columns are not known while templates are rendered: star(except=['id']) selects "
    "all but some.",
    "get_relation": "Write ref(), source() or this.",
    "quote": "Quote a name with backquotes.",
    "execute": _QUERIES,
}
_MODULES = {
    "datetime": f"{_UNVARYING}; current_timestamp() is the time of the micro-batch, and date '2024-01-31' a day.",
    "re": "Use Jinja's filters (replace, split, select), or Spark's regexp_extract() and rlike.",
}
_SQL = {
    "type_string": "Write string.",
    "type_int": "Write int.",
    "type_bigint": "Write bigint.",
    "type_float": "Write double.",
    "type_numeric": "Write decimal(28, 6).",
    "type_boolean": "Write boolean.",
    "type_timestamp": "Write timestamp.",
    "dateadd": "Write ts + interval 1 hour, or date_add(day, 1).",
    "datediff": "Write timestampdiff(hour, a, b), or datediff(a, b) for days.",
    "date_trunc": "Write date_trunc('hour', ts); to group a stream by it, declare a window.",
    "current_timestamp": "Write current_timestamp() in the SQL: the time of the micro-batch.",
    "split_part": "Write split_part(name, '-', 1).",
    "concat": "Write concat(a, b), or a || b.",
    "hash": "Write md5(cast(id as string)), or surrogate_key(['id']).",
    "safe_cast": "Write safe_cast('amount', 'double').",
    "cast_bool_to_text": "Write cast(flag as string).",
    "bool_or": "Write bool_or(flag).",
    "any_value": "Write any_value(name).",
    "listagg": "Write array_join(collect_list(name), ', ').",
    "last_day": "Write last_day(day).",
    "string_literal": "Write the string in quotes.",
    "escape_single_quotes": "Write \\' inside the text.",
}
_UTILS = {
    "star": "Write star(except=['id']).",
    "generate_surrogate_key": "Write surrogate_key(['id', 'name']).",
    "surrogate_key": "Write surrogate_key(['id', 'name']).",
    "group_by": "Write group by all, or group by 1, 2.",
    "deduplicate": "Set 'dedup: [id]' for the stream in the header, or 'unique_key: id' for the table.",
    "date_spine": "Write select explode(sequence(date '2024-01-01', date '2024-12-31')) as day.",
    "get_column_values": _QUERIES,
    "get_filtered_columns_in_relation": _ADAPTER["get_columns_in_relation"],
    "union_relations": "Write UNION ALL of two SELECTs with the same columns.",
    "pivot": "Write count(*) filter (where kind = 'a') as a for each value, in a loop over a list.",
    "unpivot": "Write Spark's UNPIVOT.",
    "safe_divide": "Write try_divide(a, b).",
    "safe_add": "Write coalesce(a, 0) + coalesce(b, 0).",
    "safe_subtract": "Write coalesce(a, 0) - coalesce(b, 0).",
    "nullcheck_table": "Write nullif(trim(name), '').",
    "haversine_distance": "Write it as a macro in macros/.",
    "width_bucket": "Write width_bucket(amount, 0, 100, 10).",
    "get_url_host": "Write parse_url(url, 'HOST').",
    "get_url_parameter": "Write parse_url(url, 'QUERY', 'name').",
    "get_url_path": "Write parse_url(url, 'PATH').",
    "pretty_time": f"{_UNVARYING}.",
}
_PACKAGES = (
    "dbt_utils", "dbt_date", "dbt_expectations", "codegen", "audit_helper", "elementary", "dbt_external_tables",
    "dbt_project_evaluator", "dbt_profiler", "metrics", "fivetran_utils", "spark_utils",
)  # fmt: skip
# Macros that dbt calls by itself where a project has them: here they would be ignored silently.
_CALLED_BY_DBT = {
    "generate_schema_name": "'schema: marts' makes <target schema>_marts: remove the macro.",
    "generate_alias_name": "'alias' in the header names the table: remove the macro.",
    "generate_database_name": "The catalog is set in the target: remove the macro.",
}


def dbt_names() -> Mapping[str, Absent]:
    """By name; macros and packages of the project may take these names, except those that dbt would call."""
    refused = ("is_incremental", "is_streaming", "is_full_refresh", "should_full_refresh")
    packages = {name: Absent(name, _PACKAGE.format(name=name)) for name in _PACKAGES}
    return {
        **{name: Absent(name, hint) for name, hint in {**_SQL, **_NONE}.items()},
        **{name: _varying_function(name, hint) for name, hint in _PER_RUN.items()},
        **{name: _refused_function(name) for name in refused},
        **{name: Absent(name, hint, name_hint=hint) for name, hint in _CALLED_BY_DBT.items()},
        **packages,
        "dbt_utils": Absent("dbt_utils", _PACKAGE.format(name="dbt_utils"), _UTILS),
        "dbt": Absent("dbt", _SPARK, _SQL),
        "adapter": Absent("adapter", f"{_UNCONNECTED}; there is no adapter.", _ADAPTER),
        "modules": Absent("modules", "Templates cannot use Python modules.", _MODULES),
    }


def package_answer(package: str, name: str) -> str:
    """What to write instead of a macro of a package; empty if it is not known."""
    return _UTILS.get(name, "").rstrip(".") if package == "dbt_utils" else ""


def value_names(names: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "this": Absent("this", "{{ this }} can be used in pre_hook, post_hook and the query."),
        "ref": Absent("ref", "A setting names a model without Jinja: flights, or ref('flights')."),
        "source": Absent(
            "source", "A setting names a source without Jinja: github.events, or source('github', 'events')."
        ),
        "doc": Absent("doc", _NONE["doc"]),
        "config": Absent("config", "Write the setting as a key of its own."),
        **{name: _varying_function(name, hint) for name, hint in _PER_RUN.items()},
        **names,
    }


def _varying_function(name: str, hint: str) -> Absent:
    return Absent(name, hint, code="run-varying-value", message="'{}' differs from run to run")


def _refused_function(name: str) -> Absent:
    return Absent(name, _ONE_QUERY, code="run-varying-value", message="'{}()' is not supported")
