"""The `catalog:` of a target: where tables are registered, and what both clients need to connect."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from engine import local_paths
from engine.compile.declarations.declared_addresses import check_catalog
from engine.compile.declarations.s3_config import ObjectStoreConfig
from engine.compile.templates.secret_settings import SecretSettings
from engine.errors import Location, near
from engine.object_store.s3_settings import ANYWHERE, bucket_and_key, iceberg_properties, is_s3
from engine.project.yaml_section import Section, is_plain
from engine.schema.target_keys import CATALOG, CATALOG_PREFIXES, CATALOG_TYPES
from engine.secrets.machine_logins import machine_gifts
from engine.secrets.scrubber import register_settings
from engine.secrets.secret_places import Gift

SQLITE = "sqlite"
NAME = "lake"
# What people know them by, and what to write instead.
_OTHER_TYPES = {
    "nessie": "Use its REST endpoint: {type: rest, uri: https://<host>:19120/iceberg/main}.",
    "glue": "Use its REST endpoint, https://glue.<region>.amazonaws.com/iceberg; see docs/catalogs.md.",
    "hive": "Use {type: jdbc} or {type: rest}; a Hive metastore is not supported.",
    "hadoop": "Use {type: sqlite} on one machine, or {type: jdbc} or {type: rest} for several.",
    "postgres": "Write {type: jdbc, uri: jdbc:postgresql://<host>:5432/<database>}.",
    "postgresql": "Write {type: jdbc, uri: jdbc:postgresql://<host>:5432/<database>}.",
    **dict.fromkeys(
        ("polaris", "unity", "lakekeeper", "gravitino", "s3tables"),
        "It is a REST catalog: {type: rest, uri: .., warehouse: .., credential: ..}; see docs/catalogs.md.",
    ),
}
_EXAMPLES = {
    ("jdbc", "uri"): "uri: jdbc:postgresql://<host>:5432/<database>",
}
_ADDRESSES = {"jdbc": ("jdbc:postgresql://",), "rest": ("http://", "https://")}
# Shown in messages and artifacts: no secret may be in them.
_SHOWN = ("type", "name", "path", "uri", "warehouse")
_OWN = ("type", "name", "path")
# Iceberg's RESTSessionCatalog puts the environment's value in its place (EnvironmentUtil.resolveAll).
_ENVIRONMENT = "env:"
# A folder that is never there, for one that must not be used, or that is not on this machine.
NOWHERE = Path(os.devnull) / "nowhere"


@dataclass(frozen=True, slots=True)
class Catalog:
    """Where tables are registered.

    `name`: both clients see nothing of each other's tables under different names. `path`: the folder of a local
    catalog; of a server's that of the tables' files, where it is on this machine. `keys`: of a server's catalog, as
    Iceberg has them; placeholders stand for secrets. `objects`: `s3://bucket/folder`; `s3://`: where a server has them;
    empty: none.
    """

    type: str
    name: str
    path: Path
    keys: Mapping[str, str] = field(default_factory=dict, repr=False)
    place: Location | None = None
    secrets: SecretSettings | None = field(default=None, repr=False, compare=False)
    objects: str = ""
    store: ObjectStoreConfig | None = field(default=None, repr=False, compare=False)

    def settings(self) -> Mapping[str, str]:
        """Return the keys with secrets in them, which are masked in all texts from now on.

        Raises:
            ProjectError: `env-missing`, a secret is not set; `secret-untrusted`.
        """
        if self.secrets:
            self.secrets.require_trust((*machine_gifts(self.type, self.keys), *self._of_store()))
        settings = self.secrets.resolved(self.keys, "catalog") if self.secrets else dict(self.keys)
        if self.store is not None:
            settings = {**iceberg_properties(self.store()), **settings}
        register_settings(settings)
        return settings

    def gifts(self) -> tuple[Gift, ...]:
        """What the block would give away; no secret is read."""
        secret_gifts = self.secrets.gifts(self.keys, "catalog") if self.secrets else ()
        return (*secret_gifts, *machine_gifts(self.type, self.keys), *self._of_store())

    def _of_store(self) -> tuple[Gift, ...]:
        """What goes with the login of the target's `s3:` to an endpoint that the catalog sets for itself."""
        endpoint = self.keys.get("s3.endpoint")
        if endpoint is None or self.store is None or self.store.secrets is None:
            return ()
        return self.store.secrets.gifts({**self.store.keys, "endpoint": endpoint}, "s3")


def load_catalog(
    part: Section,
    default: Catalog,
    store: ObjectStoreConfig | None,
    folder: Callable[[Section, str], Path],
    secrets: SecretSettings | None = None,
) -> Catalog:
    """Read the block; what is wrong is a finding, and the default takes the place of an unknown catalog."""
    kind = part.child("type")
    catalog_type = kind.text() if kind else SQLITE
    if kind and catalog_type in _OTHER_TYPES:
        message = f"the catalog type '{catalog_type}' is not supported in this version"
        kind.report("not-supported", message, _OTHER_TYPES[catalog_type])
        return default
    kinds = CATALOG.choices("type")
    if kind and kind.choice(*kinds) not in kinds:
        return default
    if not _check_block(part, catalog_type, secrets):
        return default
    name, path = part.child("name"), part.child("path")
    catalog_name = (name.identifier() if name else "") or default.name
    objects = _table_files_address(part, catalog_type, store)
    if catalog_type == SQLITE:
        place = folder(path, path.text() or ".engine/lake") if path else default.path
        return Catalog(catalog_type, catalog_name, place, secrets=secrets, objects=objects, store=store)
    keys = {key: value.option() for key, value in part.mapping() if key not in _OWN and is_plain(value.value)}
    return Catalog(
        catalog_type, catalog_name, _warehouse(part, keys, folder), keys, part.place, secrets, objects, store
    )


def _table_files_address(part: Section, catalog_type: str, store: ObjectStoreConfig | None) -> str:
    """Where the tables' files are in an object store; empty: not there, or the catalog places them itself."""
    value = part.child("warehouse")
    address = value.text() if value is not None and isinstance(value.value, str) else ""
    if value is not None and is_s3(address):
        if not bucket_and_key(address)[0]:
            value.report("bad-value", f"'{address}' has no bucket name", "Write s3://<bucket>/<folder>.")
            return ""
        if store is not None:
            return f"s3://{'/'.join(bucket_and_key(address))}".rstrip("/")
        if catalog_type == SQLITE or (catalog_type == "jdbc" and part.child("io-impl") is None):
            hint = "Add it: s3: {region: ..}, with a login, or 's3: {}' to use the role of the machine."
            value.report("missing-key", "'warehouse' is in an object store, and the target has no 's3'", hint)
        return ""
    if value is not None and catalog_type == SQLITE:
        hint = "Write s3://<bucket>/<folder>; a local folder belongs under 'path'."
        value.report("bad-value", f"the 'warehouse' of a catalog of type sqlite is not '{address}'", hint)
    # A server knows warehouses by name, and places tables itself.
    return ANYWHERE if catalog_type == "rest" and store is not None and not _is_folder(address, "") else ""


def without_secrets(part: Section, secrets: SecretSettings) -> Section:
    """The block without secrets in what is shown of it."""
    if not isinstance(part.value, dict):
        return part
    checked_values = {key: secrets.refuse(value) for key, value in part.mapping() if key in _SHOWN}
    return part.holding({**part.value, **checked_values})


def _check_block(part: Section, catalog_type: str, secrets: SecretSettings | None) -> bool:
    block = CATALOG_TYPES[catalog_type]
    prefixes = CATALOG_PREFIXES[catalog_type]
    before = len(part.diagnostics)
    for key, value in part.mapping():
        if key in block.names or (key.startswith(prefixes) and key not in prefixes):
            continue
        hint = near(key, block.names)
        if key in CATALOG.names:
            hint = f"It is for {', '.join(name for name, other in CATALOG_TYPES.items() if key in other.names)}."
        value.report("unknown-key", f"a catalog of type {catalog_type} has no key '{key}'", hint, at_key=True)
    for needed in block.keys:
        if needed.required and part.child(needed.name) is None:
            message = f"a catalog of type {catalog_type} has no '{needed.name}'"
            part.report("missing-key", message, f"Add {_EXAMPLES.get((catalog_type, needed.name), needed.example)}.")
    for _, value in part.mapping():
        if isinstance(value.value, str) and value.value.startswith(_ENVIRONMENT):
            hint = "Write \"{{ env_var('<name>') }}\": that holds for Spark and Python alike, and is masked."
            value.report("bad-value", f"'{value.name}' would make Java read an environment variable", hint)
    uri = part.child("uri")
    begin = _ADDRESSES.get(catalog_type, ())
    if begin and uri is not None and isinstance(uri.value, str) and not uri.value.startswith(begin):
        uri.report("bad-value", *_wrong_kind(catalog_type, uri.value))
    else:
        check_catalog(catalog_type, part, secrets)
    return len(part.diagnostics) == before


def _wrong_kind(catalog_type: str, uri: str) -> tuple[str, str]:
    if catalog_type == "jdbc" and uri.startswith(("postgresql:", "postgres:")):
        return "'uri' of a JDBC catalog begins with jdbc:", "Write jdbc:postgresql://<host>:5432/<database>."
    message = f"'uri' must begin with {' or '.join(_ADDRESSES[catalog_type])}"
    other = "Other databases than PostgreSQL are not supported."
    return message, other if catalog_type == "jdbc" else "Write https://<host>/<path>."


def _warehouse(part: Section, keys: dict[str, str], folder: Callable[[Section, str], Path]) -> Path:
    """The folder of the tables' files where `warehouse` (or `path`) is one; JDBC's becomes an absolute address."""
    for name in ("path", "warehouse"):
        value = part.child(name)
        if value is None or not isinstance(value.value, str):
            continue
        text = value.text()
        if text.startswith("file:"):
            path = local_paths.path_of_location(text)
            if path is None:
                value.report(
                    "bad-value",
                    f"'{text}' is not a local folder URL",
                    "Write file:/// and an absolute path, without a host.",
                )
                return NOWHERE
            return folder(value, path)
        if _is_folder(text, keys.get("uri", "")):
            warehouse_folder = folder(value, text)
            if name == "warehouse":
                keys["warehouse"] = local_paths.iceberg(warehouse_folder)
            return warehouse_folder
    return NOWHERE


def _is_folder(text: str, uri: str) -> bool:
    """Whether a warehouse is a folder: a REST server has names for warehouses, too."""
    return text.startswith(("/", "~", "./")) or (uri.startswith("jdbc:") and "://" not in text)
