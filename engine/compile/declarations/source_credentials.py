"""Credentials in the declaration of a source: reported with their place, and taken out of what is compiled."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from engine.project.yaml_section import Section
from engine.secrets.scrubber import MASK
from engine.sources import source_traits
from engine.sources.credentials import in_address, is_credential, masked

_KAFKA = "Write Kafka's brokers and login under 'connections:' of the target, the login in 'security:'."
_OPTION = (
    "Write it in the target, connections: {{main: {{options: {{{key}: \"{{{{ env_var('ENGINE_SECRET_..') }}}}\"}}}}}}, "
    "and write 'connection: main' here."
)
_ADDRESS = (
    "Remove it from the address, write it in the target, connections: {main: {options: {fs.s3a.secret.key: "
    "\"{{ env_var('ENGINE_SECRET_..') }}\"}}}, and write 'connection: main' here."
)
# Where values of many keys are, whose keys say what they are.
_OPTIONS = "options"


def report_credentials(levels: Iterable[Section], keys: Iterable[str], name: str) -> None:
    """Report each credential of a declaration and of what it says for each target, without its value."""
    sorted_keys = sorted(keys)
    for level in levels:
        for key in sorted_keys:
            part = level.child(key)
            for section, message, at_key in _credentials_in(part, name) if part is not None else ():
                section.report("source-credentials", message, _hint(level, section), at_key=at_key)


def _hint(level: Section, section: Section) -> str:
    if isinstance(level.value, dict) and source_traits(str(level.value.get("format", ""))).connects:
        return _KAFKA
    return _OPTION.format(key=_masked_key(section.name)) if _OPTIONS in section.path[:-1] else _ADDRESS


def _credentials_in(part: Section, name: str) -> Iterator[tuple[Section, str, bool]]:
    key = part.name
    if isinstance(part.value, dict):
        for inner, section in part.mapping():
            if isinstance(inner, str) and _by_key(section, inner):
                yield section, f"the option '{_masked_key(inner)}' of source '{name}' is a credential", True
            else:
                yield from _credentials_in(section, name)
    elif isinstance(part.value, list):
        for section in part.items():
            yield from _credentials_in(section, name)
    elif isinstance(part.value, str) and in_address(part.value, key):
        yield part, f"'{_masked_key(key)}' of source '{name}' holds a password or a token", False


def _by_key(section: Section, key: str) -> bool:
    return _OPTIONS in section.path and is_credential(key) and not isinstance(section.value, (dict, list))


def without_credentials(section: Section) -> Section:
    """A value of a declaration without the credentials that `report` finds in it."""
    clean = _value_without_credentials(section)
    return section if clean is section.value else section.holding(clean)


def _value_without_credentials(part: Section) -> Any:
    value = part.value
    if isinstance(value, dict):
        cleaned = {
            k: _value_without_credentials(s) for k, s in part.mapping() if not (isinstance(k, str) and _by_key(s, k))
        }
        same = len(cleaned) == len(value) and all(cleaned[key] is value[key] for key in value)
        return value if same else cleaned
    if isinstance(value, list):
        items = [_value_without_credentials(section) for section in part.items()]
        return value if all(new is old for new, old in zip(items, value, strict=True)) else items
    return (masked(value, part.name) or MASK) if isinstance(value, str) and in_address(value, part.name) else value


def _masked_key(key: str) -> str:
    return masked(key, "url")
