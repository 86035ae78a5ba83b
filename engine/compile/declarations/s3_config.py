"""The `s3:` of a target: how object storage is reached, by Spark and by Python."""

from __future__ import annotations

from dataclasses import dataclass, field

from engine.addresses import is_open
from engine.compile.declarations.declared_addresses import check_block
from engine.compile.templates.secret_settings import SecretSettings
from engine.errors import Diagnostic, Level
from engine.object_store.s3_settings import S3Settings
from engine.project.yaml_section import Section
from engine.schema.target_keys import OBJECT_STORE
from engine.secrets.machine_logins import store_gifts
from engine.secrets.scrubber import register_secret, register_settings
from engine.secrets.secret_places import Gift

_SHOWN = ("endpoint", "region", "path_style_access")


@dataclass(frozen=True, slots=True)
class ObjectStoreConfig:
    """The `s3:` block of a target; placeholders stand for secrets."""

    keys: dict[str, str] = field(default_factory=dict, repr=False)
    secrets: SecretSettings | None = field(default=None, repr=False, compare=False)

    def __call__(self) -> S3Settings:
        """Return the settings with secrets in them, which are masked in all texts from now on.

        Raises:
            ProjectError: `env-missing`, a secret is not set; `secret-untrusted`.
        """
        if self.secrets:
            self.secrets.require_trust(store_gifts(self.keys))
        settings = self.secrets.resolved(self.keys, "s3") if self.secrets else self.keys
        register_settings(settings)
        if token := settings.get("session_token"):
            register_secret(token)
        return S3Settings.from_block(settings)

    def gifts(self) -> tuple[Gift, ...]:
        """What the block would give away; no secret is read."""
        return (*(self.secrets.gifts(self.keys, "s3") if self.secrets else ()), *store_gifts(self.keys))


def load_object_store(part: Section | None, secrets: SecretSettings | None) -> ObjectStoreConfig | None:
    """Read the block; what is wrong is a finding. None: the target has none."""
    if part is None:
        return None
    part.check_keys(OBJECT_STORE, "s3")
    keys = {}
    for key, value in part.mapping():
        if key == "path_style_access":
            keys[key] = "true" if value.boolean() else "false"
        elif key in OBJECT_STORE.names and (text := value.text()):
            keys[key] = text
    _check_login(part, keys)
    check_block("s3", part, secrets)
    _warn_of_plain_http(part.child("endpoint"))
    return ObjectStoreConfig(keys, secrets)


def without_secrets(part: Section, secrets: SecretSettings) -> Section:
    """Return the block without secrets in what is shown of it."""
    if not isinstance(part.value, dict):
        return part
    checked_values = {key: secrets.refuse(value) for key, value in part.mapping() if key in _SHOWN}
    return part.holding({**part.value, **checked_values})


def _check_login(part: Section, keys: dict[str, str]) -> None:
    pair = ("access_key_id", "secret_access_key")
    present_keys = [key for key in pair if key in keys]
    if len(present_keys) == 1 or ("session_token" in keys and not present_keys):
        missing = next(key for key in pair if key not in keys)
        present_key = present_keys[0] if present_keys else "session_token"
        hint = f"Add {missing}, or remove {present_key}: without a login the AWS SDK looks for one."
        part.report("missing-key", f"'s3' has '{present_key}' and no '{missing}'", hint)


def _warn_of_plain_http(part: Section | None) -> None:
    if part is not None and isinstance(part.value, str) and is_open(part.value):
        message = "data of the object store is sent unencrypted, over plain http"
        hint = "Write an https address, or connect on this machine: http://127.0.0.1:<port>."
        part.diagnostics.append(Diagnostic("plain-http", message, hint, Level.WARNING, part.node, part.place))
