"""The chosen target, rendered. It travels beside the manifest and alone can reach secrets: they are read when used."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from engine import local_paths
from engine.compile.config.session_settings import recorded_first
from engine.compile.declarations.catalog_config import NAME, NOWHERE, SQLITE, Catalog, load_catalog, without_secrets
from engine.compile.declarations.declared_addresses import check_block, is_open_template
from engine.compile.declarations.s3_config import ObjectStoreConfig, load_object_store
from engine.compile.declarations.s3_config import without_secrets as without_s3_secrets
from engine.compile.declarations.shared_folders import check_folders
from engine.compile.declarations.spark_config import is_argument, read_spark
from engine.compile.templates.rendered_values import ValueRenderer
from engine.compile.templates.secret_settings import SecretSettings
from engine.errors import Diagnostic, Level, ProjectError, near
from engine.project import LoadedProject
from engine.project.project_files import first_link
from engine.project.yaml_section import Section, is_name, is_target_name, quote_text
from engine.schema.target_keys import ALERTS, CONNECTION, OPENLINEAGE_TYPES, SECURITY, TARGET
from engine.secrets.scrubber import register_settings
from engine.secrets.secret_places import Gift
from engine.sources import Place
from engine.spark_master import is_on_this_machine

# Rendered when they are used, so that a command that reads no such source needs no secret.
LATE_KEYS = ("connections", "schema_registries")
# Of OpenLineage's settings and of alerts: they are in events, in names of files, and in arguments of programs.
NAMING_KEYS = ("type", "path", "namespace", "timeout", "command", "lag", "bad_records", "restarts")
# A bucket and a folder in it.
_STATE_IN_S3 = re.compile(r"s3[an]?://([a-z0-9][a-z0-9.-]+(?:/[\w.=-]+)*)/*")
# The target of a project that names none; its keys all have defaults.
DEFAULT_TARGET = "dev"


@dataclass(frozen=True, slots=True)
class Late:
    """Settings that are rendered when they are called for; secrets are in what that gives, and nowhere else."""

    part: Section = field(repr=False)
    values: ValueRenderer = field(repr=False)

    def __call__(self) -> Mapping[str, Any]:
        """Return the settings, with secrets, which are masked in all texts from now on.

        Raises:
            ProjectError: a variable is missing, a secret is misplaced, or the settings are not a mapping.
        """
        settings = self._rendered()
        settings = self.values.secrets.resolved(settings, self.name) if self.values.secrets else settings
        register_settings(settings)
        return settings

    @property
    def name(self) -> str:
        """Which block it is: `connections.main`."""
        return ".".join(str(key) for key in self.part.path[2:])

    def gifts(self) -> tuple[Gift, ...]:
        """Return what the block would give away, without reading a secret; raises as `__call__`."""
        return self.values.secrets.gifts(self._rendered(), self.name) if self.values.secrets else ()

    def masked(self) -> Mapping[str, Any]:
        """Return the settings for people, without reading a secret; raises as `__call__`."""
        settings = self._rendered()
        return self.values.secrets.masked(settings) if self.values.secrets else settings

    def _rendered(self) -> Mapping[str, Any]:
        diagnostics: list[Diagnostic] = []
        rendered = self.values.rendered(msgspec.structs.replace(self.part, diagnostics=diagnostics))
        check_block(str(self.part.path[2]), rendered, self.values.secrets)
        if self.values.secrets and self.part.path[-1:] in {("openlineage",), ("alerts",)}:
            checked_values = {
                key: self.values.secrets.refuse(part) for key, part in rendered.mapping() if key in NAMING_KEYS
            }
            rendered = rendered.holding({**rendered.value, **checked_values}) if checked_values else rendered
        settings = {key: value for key, value in rendered.mapping() if value.value is not None}
        if diagnostics:
            raise ProjectError.from_diagnostics(diagnostics)
        return {key: value.value for key, value in settings.items()}


@dataclass(frozen=True, slots=True)
class Target:
    """A place to build into.

    `text` is the address of a state in a bucket (`s3a://bucket/folder`). `conf` has the user's Spark settings; what a
    session is started with is `spark_conf`. `driver_memory` is in Java's form (2g). `connections`, `openlineage` and
    `alerts` are rendered when called for, and secrets are in what that gives. `stalled_after`: how long unread input
    may wait for a commit; None: five minutes. `require_replayable`: sources whose records cannot be re-read are
    rejected. `allow_after_reading`: folders outside the project in which files of sources may be archived or deleted.
    `schema_varies`: the schema is a template's, so that tables of another schema may be in use.
    """

    name: str
    catalog: Catalog
    schema: str
    state: Path | str
    master: str = "local[*]"
    conf: Mapping[str, str] = field(default_factory=dict)
    driver_memory: str | None = None
    shared_folders: bool = False
    connections: Mapping[str, Late] = field(default_factory=dict)
    registries: Mapping[str, Late] = field(default_factory=dict)
    openlineage: Late | None = None
    alerts: Late | None = None
    stalled_after: str | None = None
    require_replayable: bool = False
    allow_after_reading: tuple[Path, ...] = ()
    s3: ObjectStoreConfig | None = None
    schema_varies: bool = False
    secrets: SecretSettings | None = field(default=None, repr=False)

    @property
    def executors_elsewhere(self) -> bool:
        return not self.shared_folders and not is_on_this_machine(self.master)

    def spark_conf(self) -> Mapping[str, str]:
        """The user's Spark settings with secrets in them. Raises ProjectError: env-missing, a secret is not set."""
        conf = self.secrets.resolved(self.conf, "spark.conf") if self.secrets else self.conf
        register_settings(conf)
        return conf

    def gifts(self) -> tuple[Gift, ...]:
        """Every secret that is set, and every place that the target would give it to; no secret is read.

        Raises:
            ProjectError: a connection, registry or OpenLineage cannot be rendered.
        """
        late = (*self.connections.values(), *self.registries.values(), *filter(None, [self.openlineage, self.alerts]))
        conf = self.secrets.gifts(self.conf, "spark.conf") if self.secrets else ()
        store = self.s3.gifts() if self.s3 is not None else ()
        all_gifts = (*self.catalog.gifts(), *store, *conf, *(gift for block in late for gift in block.gifts()))
        return tuple(sorted(set(all_gifts)))

    def place(self, root: Path) -> Place:
        return Place(
            root,
            partial(_block_settings, self.connections, "connection"),
            partial(_block_settings, self.registries, "registry"),
            catalog=self.catalog,
            store=self.s3,
        )


def load_target(
    project: LoadedProject, name: str | None, values: ValueRenderer, diagnostics: list[Diagnostic]
) -> Target:
    """Render and check one target of project.yml; a faulty one comes back with its defaults."""
    top = Section.of_document(project.doc, diagnostics)
    targets = top.child("targets")
    target_name = name or project.target or DEFAULT_TARGET
    section = targets.child(target_name) if targets else None
    _check_names(targets)
    if section is None:
        if not project.broken and (targets is not None or target_name != DEFAULT_TARGET):
            _no_target(target_name, top, targets, from_project=name is None)
        lake, state = (_folder(top, project.root, name) for name in (".engine/lake", ".engine/state"))
        return Target(target_name, Catalog(SQLITE, NAME, lake), _schema(project.name, target_name), state)
    connections, registries = (_late_blocks(section.child(key), values) for key in LATE_KEYS)
    _check_connections(section.child("connections"))
    registries_part, lineage = section.child("schema_registries"), section.child("openlineage")
    for key, part in registries_part.mapping() if registries_part else ():
        _warn_of_plain_http(part, "auth", f"the schema registry '{key}'")
    if lineage:
        _warn_of_plain_http(lineage, "api_key", "'openlineage'")
    openlineage = _openlineage(section.child("openlineage"), values)
    alerts = _alerts(section.child("alerts"), values)
    written = section.child("schema")
    section = values.rendered(_without(section, (*LATE_KEYS, "openlineage", "alerts")))
    section = _without_secrets(section, values)
    section.check_keys(TARGET, f"target '{target_name}'")
    schema, replay, stalled = (section.child(key) for key in ("schema", "require_replayable", "stalled_after"))
    if schema is None and targets is not None and len(list(targets.mapping())) > 1:
        # Else two targets would build into the same tables.
        hint = (
            f"Add 'schema: {_schema(target_name, target_name)}'; "
            "only a single target has a default, the project's name."
        )
        section.report("missing-key", f"target '{target_name}' has no 'schema'", hint, at_key=True)
    store = load_object_store(section.child("s3"), values.secrets)
    loaded = Target(
        name=target_name,
        catalog=_catalog(section, project.root, values.secrets, store),
        schema=(schema.namespace() if schema else "") or _schema(project.name, target_name),
        state=_state(section, project.root),
        connections=connections,
        registries=registries,
        openlineage=openlineage,
        alerts=alerts,
        stalled_after=(stalled.positive_duration() or None) if stalled else None,
        require_replayable=replay.boolean() if replay else False,
        allow_after_reading=tuple(_allowed_folders(section.child("allow_after_reading"))),
        s3=store,
        schema_varies=written is not None and "{" in str(written.value),
        secrets=values.secrets,
        **read_spark(section.child("spark")),
    )
    if loaded.executors_elsewhere:
        check_folders(section, loaded.catalog, str(loaded.state), loaded.master)
    return loaded


def _schema(project: str, target: str) -> str:
    """The schema where none is set: the first of the project's name and the target's that could be one."""
    return next((name for name in (project, target) if is_name(name)), "unnamed")


def _without(section: Section, keys: tuple[str, ...]) -> Section:
    if not isinstance(section.value, dict):
        return section
    return section.holding({key: value for key, value in section.value.items() if key not in keys})


def _without_secrets(section: Section, values: ValueRenderer) -> Section:
    """The target without secrets outside spark.conf and the logins of catalog and s3: the rest is shown."""
    if values.secrets is None or not isinstance(section.value, dict):
        return section
    checked_values = {
        key: values.secrets.refuse(part) for key, part in section.mapping() if key not in {"spark", "catalog", "s3"}
    }
    if (catalog := section.child("catalog")) is not None:
        checked_values["catalog"] = without_secrets(catalog, values.secrets).value
    if (s3 := section.child("s3")) is not None:
        checked_values["s3"] = without_s3_secrets(s3, values.secrets).value
    spark = section.child("spark")
    if spark and isinstance(spark.value, dict):
        spark_values = {key: values.secrets.refuse(part) for key, part in spark.mapping() if key != "conf"}
        conf = spark.child("conf")
        if conf and isinstance(conf.value, dict):
            # What decides on rows is kept with the tables.
            open_ = [key for key, _ in conf.mapping() if recorded_first(key) or is_argument(key)]
            conf_values = {key: values.secrets.refuse(part) for key, part in conf.mapping() if key in open_}
            spark_values["conf"] = {**conf.value, **conf_values}
        checked_values["spark"] = {**spark.value, **spark_values}
    return section.holding({**section.value, **checked_values})


def _late_blocks(section: Section | None, values: ValueRenderer) -> dict[str, Late]:
    """The blocks by name; addresses without templates in them are checked at once."""
    blocks = dict(section.mapping()) if section else {}
    for part in blocks.values():
        check_block(str(part.path[2]), part, None)
    return {name: Late(part, values) for name, part in blocks.items()}


def _check_connections(section: Section | None) -> None:
    for name, part in section.mapping() if section else ():
        for key, value in part.mapping():
            if key not in CONNECTION.names:
                hint = near(key, CONNECTION.names)
                if not hint.startswith("Did"):
                    hint += f" Options of Spark's readers go under 'options:': {{options: {{{key}: ..}}}}."
                value.report("unknown-key", f"the connection '{name}' has no key '{key}'", hint, at_key=True)
        security = part.child("security")
        if security:
            security.check_keys(SECURITY)


def _warn_of_open_catalog(part: Section) -> None:
    keys = {key for key, _ in part.mapping()}
    login = keys & {"credential", "token"} or any(key.startswith("header.") for key in keys)
    for name in ("uri", "oauth2-server-uri"):
        url = part.child(name)
        if login and url is not None and isinstance(url.value, str) and is_open_template(url.value):
            message = "the login of the catalog is sent unencrypted, over plain http"
            hint = "Write an https address, or connect on this machine: http://127.0.0.1:<port>."
            url.diagnostics.append(Diagnostic("plain-http", message, hint, Level.WARNING, url.node, url.place))


def _warn_of_plain_http(part: Section, credential: str, owner: str) -> None:
    url = part.child("url")
    if url is None or not isinstance(url.value, str) or not is_open_template(url.value):
        return
    if part.child(credential) is not None or "@" in url.value:
        message = f"the credentials of {owner} are sent unencrypted, over plain http"
        hint = "Write an https address, or connect on this machine: http://127.0.0.1:<port>."
        url.diagnostics.append(Diagnostic("plain-http", message, hint, Level.WARNING, url.node, url.place))


def _openlineage(part: Section | None, values: ValueRenderer) -> Late | None:
    """Where run events go: `{type: file, path: ..}` or `{type: http, url: ..}`."""
    if part is None:
        return None
    kind = part.child("type")
    if kind is None:
        hint = "Write {type: file, path: openlineage.jsonl} or {type: http, url: ..}."
        part.report("missing-key", "'openlineage' has no 'type'", hint)
        return None
    transport = kind.choice(*OPENLINEAGE_TYPES)
    if transport not in OPENLINEAGE_TYPES:
        return None
    part.check_keys(OPENLINEAGE_TYPES[transport])
    needed = "path" if transport == "file" else "url"
    if part.child(needed) is None:
        part.report("missing-key", f"'openlineage' of type {transport} has no '{needed}'", f"Add '{needed}: ..'.")
        return None
    if transport == "http":
        check_block("openlineage", part, None)
    return Late(part, values)


def _alerts(part: Section | None, values: ValueRenderer) -> Late | None:
    """Where alerts go: to a webhook (`url`), a `command`, or both."""
    if part is None:
        return None
    part.check_keys(ALERTS)
    if not any(part.child(key) for key in ("url", "command")):
        part.report("missing-key", "'alerts' has neither 'url' nor 'command'", "Add 'url: ..' or 'command: [..]'.")
        return None
    check_block("alerts", part, None)
    _warn_of_plain_http(part, "token", "'alerts'")
    return Late(part, values)


def _block_settings(blocks: Mapping[str, Late], noun: str, name: str) -> Mapping[str, Any]:
    if name not in blocks:
        raise ProjectError("unknown-connection", f"the target has no {noun} '{name}'", near(name, blocks))
    return blocks[name]()


def _check_names(targets: Section | None) -> None:
    """Report names of targets that no command could be given: they are in hints, and in what shells complete."""
    for name, section in targets.mapping() if targets and isinstance(targets.value, dict) else ():
        if not is_target_name(name):
            hint = "Use letters, digits, underscores, hyphens and dots."
            section.report("bad-name", f"{quote_text(name)} is not the name of a target", hint, at_key=True)


def _no_target(target_name: str, top: Section, targets: Section | None, *, from_project: bool) -> None:
    target_names = [key for key, _ in targets.mapping() if is_target_name(key)] if targets else [DEFAULT_TARGET]
    hint = near(target_name, target_names)
    if is_name(target_name) and not hint.startswith("Did you mean"):
        hint = f"{hint} To add it, write targets: {{{target_name}: {{schema: {target_name}}}}} in project.yml.".lstrip()
    place = (top.child("target") if from_project else None) or targets or top
    place.report("unknown-target", f"target '{target_name}' not found", hint)


def _catalog(section: Section, root: Path, secrets: SecretSettings | None, store: ObjectStoreConfig | None) -> Catalog:
    part = section.child("catalog")
    default = Catalog(SQLITE, NAME, _folder(section, root, ".engine/lake"), store=store)
    if part is None:
        return default
    _warn_of_open_catalog(part)
    return load_catalog(part, default, store, lambda value, text: _folder(value, root, text), secrets)


def _allowed_folders(part: Section | None) -> Iterator[Path]:
    for item in part.items() if part else ():
        text = item.text()
        if text and (not text.startswith("/") or not text.strip("/.")):
            item.report("bad-value", f"'{text}' is not the absolute path of a folder", "Write /data/landing.")
        elif text:
            yield Path(text)


def _state(section: Section, root: Path) -> Path | str:
    part = section.child("state")
    if part is None:
        return _folder(section, root, ".engine/state")
    if "://" in part.text():
        if (address := _STATE_IN_S3.fullmatch(part.text())) is not None:
            return f"s3a://{address[1]}"
        message = f"'state' cannot be at '{part.text()}'"
        hint = (
            "Name a local folder, or one such as 's3a://bucket/engine-state'. Locks need a store with S3's interface."
        )
        part.report("not-supported", message, hint)
    return _folder(part, root, part.text() or ".engine/state")


def _folder(part: Section, root: Path, text: str) -> Path:
    """The folder of a value; nowhere, and a finding, if a link of the project is on the way."""
    try:
        folder = root.resolve() / os.path.expanduser(text)  # noqa: PTH111 - keeps a leading ~ readable in errors
        link = first_link(root.resolve(), Path(os.path.normpath(folder)))
        if link is None and (fault := local_paths.name_fault(folder.resolve())):
            part.report("bad-value", f"the folder {folder.resolve()} {fault}", "Rename the folder.")
            return NOWHERE
        if link is None:
            return folder.resolve()
    except (OSError, RuntimeError, ValueError) as error:
        part.report("bad-value", f"'{text}' cannot be a folder: {error}")
        return NOWHERE
    message = f"'{text}' contains a symbolic link, {link}"
    hint = "Remove the link, and write the folder it points to: 'path' of the catalog, 'state' of the target."
    part.report("path-outside", message, hint)
    return NOWHERE
