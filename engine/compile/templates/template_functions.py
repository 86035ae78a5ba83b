"""Functions of dbt's templates that give a value and do nothing else."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import yaml

from engine.project.parse_yaml import load_yaml

_Function = Callable[..., Any]


def plain_functions() -> Mapping[str, _Function]:
    from engine.jinja import give_back

    return {
        "return": give_back,
        "tojson": tojson,
        "fromjson": fromjson,
        "toyaml": toyaml,
        "fromyaml": fromyaml,
        "set": distinct,
        "set_strict": distinct,
        "zip": pairs,
        "zip_strict": pairs,
    }


def tojson(value: Any, default: Any = None, sort_keys: bool = False) -> Any:
    try:
        return json.dumps(value, sort_keys=sort_keys)
    except (TypeError, ValueError, RecursionError):
        return default


def fromjson(text: str, default: Any = None) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return default


def toyaml(value: Any, default: Any = None, sort_keys: bool = False) -> Any:
    try:
        return yaml.safe_dump(value, sort_keys=sort_keys)
    except yaml.YAMLError:
        return default


def fromyaml(text: str, default: Any = None) -> Any:
    document, problems = load_yaml(text, "")
    return default if problems else document.data


def distinct(values: Iterable[Any], default: Any = None) -> Any:
    """The distinct values in the order of their first appearance: Python's own sets have another one in each run."""
    try:
        return list(dict.fromkeys(values))
    except TypeError:
        return default


def pairs(*lists: Iterable[Any], default: Any = None) -> Any:
    """The lists side by side, as long as the shortest."""
    try:
        return list(zip(*lists, strict=False))
    except TypeError:
        return default
