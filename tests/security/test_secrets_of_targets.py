"""Secrets of a target: a placeholder until they are used, no place that shows them, no command that reads them unasked."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from engine.compile import Compiled
from engine.compile.templates.secret_settings import SecretSettings
from engine.errors import ProjectError
from engine.secrets.scrubber import MASK, scrub
from tests.project.small_projects import compiled, findings, line, only, write

pytestmark = pytest.mark.slow

SECRET = "Sup3r-s3cret&value"
ENV = {"ENGINE_SECRET_X": SECRET, "PLAIN": "plain"}
TARGET = """\
name: shop
targets:
  dev:
    catalog: {type: sqlite, name: lake, path: .engine/lake}
    schema: main
"""
USED = (
    TARGET
    + """\
    spark: {conf: {spark.hadoop.fs.s3a.secret.key: "{{ env_var('ENGINE_SECRET_X') }}", a.b: "x-{{ env_var('PLAIN') }}"}}
    connections: {main: {bootstrap_servers: "h:1", security: {protocol: SASL_SSL, mechanism: PLAIN, username: u, password: "{{ env_var('ENGINE_SECRET_X') }}"}}}
    schema_registries: {main: {url: "https://u:{{ env_var('ENGINE_SECRET_X') | urlencode }}@h", auth: {password: "a{{ env_var('ENGINE_SECRET_X') }}b"}}}
    openlineage: {type: http, url: "https://h", api_key: "{{ env_var('ENGINE_SECRET_X') }}"}
"""
)  # fmt: skip


def of(tmp_path, text: str, env: dict[str, str] = ENV) -> Compiled:
    return compiled(tmp_path, {"project.yml": text, "models/a.sql": "select 1 as x"}, env=env)


class Watched(dict):
    """An environment that knows which of its variables were read."""

    def __init__(self, *args) -> None:
        super().__init__(*args)
        self.read: list[str] = []

    def __getitem__(self, name: str) -> str:
        self.read.append(name)
        return super().__getitem__(name)

    def get(self, name: str, default=None):
        self.read.append(name)
        return super().get(name, default)


def test_the_value_is_put_in_where_it_is_used_and_nowhere_else(tmp_path):
    env = Watched(ENV)
    target = of(tmp_path, USED, env).target
    assert "ENGINE_SECRET_X" not in env.read
    assert SECRET not in repr(target)
    assert SECRET not in str(target.conf)
    assert target.spark_conf() == {"spark.hadoop.fs.s3a.secret.key": SECRET, "a.b": "x-plain"}
    place = target.place(tmp_path)
    assert place.connection("main")["security"]["password"] == SECRET
    assert place.registry("main") == {"url": "https://u:Sup3r-s3cret%26value@h", "auth": {"password": f"a{SECRET}b"}}
    assert target.openlineage()["api_key"] == SECRET
    assert "ENGINE_SECRET_X" in env.read
    assert target.connections["main"].masked()["security"]["password"] == MASK
    assert SECRET not in repr(target)


def test_a_variable_that_is_missing_is_reported_at_its_use_with_its_place(tmp_path):
    result = of(tmp_path, USED, {"PLAIN": "plain"})
    assert result.manifest.errors == ()
    uses = [result.target.spark_conf, result.target.openlineage]
    uses += [result.target.connections["main"], result.target.registries["main"]]
    for use, place in zip(uses, ("6:52", "9:58", "7:", "8:"), strict=True):
        with pytest.raises(ProjectError) as caught:
            use()
        for found in caught.value.diagnostics:
            assert line(found).startswith(f"env-missing project.yml:{place}")
            assert "the environment variable 'ENGINE_SECRET_X' is not set" in found.message


@pytest.mark.parametrize(
    ("value", "env", "expected"),
    [
        ("{{ env_var('ENGINE_SECRET_Y', 'by default') }}", ENV, "by default"),
        ("{{ env_var('ENGINE_SECRET_Y', '') }}", ENV, ""),
        ("{{ env_var('ENGINE_SECRET_X', 'by default') }}", {"ENGINE_SECRET_X": ""}, ""),
        ("{{ env_var('ENGINE_SECRET_X') }}", {"ENGINE_SECRET_X": "<secret ENGINE_SECRET_X 0/0>"}, "<secret ENGINE_SECRET_X 0/0>"),
        ("{{ env_var('AWS_SECRET_ACCESS_KEY') }}", {"AWS_SECRET_ACCESS_KEY": "abcdefgh"}, "abcdefgh"),
        ("{{ var('mine') }}", ENV, SECRET),
        ("{{ env_var('ENGINE_SECRET_X') }}:{{ env_var('ENGINE_SECRET_Z') }}", {**ENV, "ENGINE_SECRET_Z": "\\g<0>"}, f"{SECRET}:\\g<0>"),
    ],
)  # fmt: skip
def test_values_come_as_they_are(tmp_path, value, env, expected):
    text = f'{TARGET}    spark: {{conf: {{k: "{value}"}}}}\nvars: {{mine: "{{{{ env_var(\'ENGINE_SECRET_X\') }}}}"}}\n'
    assert of(tmp_path, text, env).target.spark_conf() == {"k": expected}


CHANGED = [
    "env_var('ENGINE_SECRET_X') | upper", "env_var('ENGINE_SECRET_X') | reverse", "env_var('ENGINE_SECRET_X')[:3]",
    "env_var('ENGINE_SECRET_X') | length", "env_var('ENGINE_SECRET_X') | tojson", "env_var('ENGINE_SECRET_X') | e",
    "env_var('ENGINE_SECRET_X') == 'a'", "env_var('ENGINE_SECRET_X') | list", "env_var('ENGINE_SECRET_X') | replace('s', 'S')",
    "env_var('ENGINE_SECRET_X') | truncate(9)", "'a' if env_var('ENGINE_SECRET_X') else 'b'",
    "env_var('ENGINE_SECRET_X') | wordwrap(4)", "env_var('ENGINE_SECRET_X').split(' ')", "env_var('ENGINE_SECRET_X') | title",
    "env_var('ENGINE_SECRET_X') ~ env_var('ENGINE_SECRET_X')[9:]", "env_var('ENGINE_SECRET_X').hex", "env_var('ENGINE_SECRET_X') | first",
]  # fmt: skip


@pytest.mark.parametrize("expression", CHANGED)
def test_a_secret_that_is_changed_is_an_error_at_its_place_and_nothing_of_it_is_seen(tmp_path, expression):
    found = findings(
        tmp_path,
        {"project.yml": f'{TARGET}    spark: {{conf: {{k: "{{{{ {expression} }}}}"}}}}\n'},
        env={**ENV, "ENGINE_SECRET_X": "abcdefgh"},
    )
    (error,) = [d for d in found if d.is_error]
    assert error.code in {"secret-misplaced", "jinja-undefined"}
    assert str(error.location) == "project.yml:6:23"
    assert "abcdefgh" not in error.message + error.hint


MISPLACED = [
    ("schema: main", "schema: \"{{ env_var('ENGINE_SECRET_X') }}\"", "5:13", "schema"),
    ("schema: main", "schema: \"s_{{ env_var('ENGINE_SECRET_X', 'd') }}\"", "5:13", "schema"),
    ("schema: main", "schema: \"{{ env_var('GITHUB_TOKEN') }}\"", "5:13", "schema"),
    ("name: lake", "name: \"{{ env_var('ENGINE_SECRET_X') }}\"", "4:35", "name"),
    (".engine/lake", "\"{{ env_var('ENGINE_SECRET_X') }}\"", "4:47", "path"),
    (".engine/lake", "\"lake/{{ var('mine') }}\"", "4:47", "path"),
    ("schema: main", "schema: main\n    state: \"{{ env_var('ENGINE_SECRET_X') }}\"", "6:12", "state"),
    ("schema: main", "schema: main\n    spark: {master: \"{{ env_var('ENGINE_SECRET_X') }}\"}", "6:21", "master"),
    ("schema: main", "schema: main\n    spark: {driver_memory: \"{{ env_var('ENGINE_SECRET_X') }}\"}", "6:28", "driver_memory"),
    ("schema: main", "schema: main\n    spark: {conf: {spark.sql.ansi.enabled: \"{{ env_var('ENGINE_SECRET_X') }}\"}}", "6:44", "spark.sql.ansi.enabled"),
]  # fmt: skip


@pytest.mark.parametrize(("before", "after", "place", "key"), MISPLACED)
def test_a_secret_in_a_name_or_path_is_an_error(tmp_path, before, after, place, key):
    text = TARGET.replace(before, after) + "vars: {mine: \"{{ env_var('ENGINE_SECRET_X') }}\"}\n"
    result = of(tmp_path, text)
    found = only(tuple(d for d in result.manifest.errors if d.code == "secret-misplaced"))
    assert line(found).startswith(f"secret-misplaced project.yml:{place} the secret '")
    assert found.message.endswith(f"would be readable in '{key}'")
    shown = repr(result.target) + str(result.manifest.model("a").relation)
    assert SECRET not in shown
    assert "<secret" not in shown


@pytest.mark.parametrize("key", ["path", "namespace"])
def test_openlineage_has_no_secret_in_what_it_names(tmp_path, key):
    settings = {"type": "file", "path": "events.jsonl", key: "{{ env_var('ENGINE_SECRET_X') }}"}
    target = of(tmp_path, f"{TARGET}    openlineage: {json.dumps(settings)}\n").target
    with pytest.raises(ProjectError, match=f"would be readable in '{key}'") as caught:
        target.openlineage()
    assert caught.value.diagnostic.code == "secret-misplaced"


OUTSIDE = [
    "ENGINE_SECRET_X",
    "AWS_SECRET_ACCESS_KEY",
    "GITHUB_TOKEN",
    "DB_PASSWORD",
    "API_KEY",
    "SOME_CREDENTIALS",
    "DB_PWD",
]


@pytest.mark.parametrize("name", OUTSIDE)
@pytest.mark.parametrize("default", ["", ", 'x'"])
def test_a_credential_is_not_read_outside_targets(tmp_path, name, default):
    files = {"models/a.sql": f"select '{{{{ env_var('{name}'{default}) }}}}' as x"}
    found = only(findings(tmp_path, files, env={name: SECRET}))
    assert line(found).startswith("secret-outside-target models/a.sql:1:20 the ")
    assert SECRET not in found.message


@pytest.mark.parametrize(
    "name", ["PARTITION_KEY", "SORT_KEY", "PWD", "TOKENIZER", "KEYSPACE", "PASSENGERS", "HOME", "REGION"]
)
def test_honest_names_are_read(tmp_path, name):
    manifest = compiled(
        tmp_path, {"models/a.sql": f"select '{{{{ env_var('{name}') }}}}' as x"}, env={name: "v"}
    ).manifest
    assert manifest.errors == ()
    assert "'v'" in manifest.model("a").sql


SCHEMA = "schema: \"{{ env_var('SERVICE') }}\""
CREDENTIALS = [
    "postgres://u:p@h/db", "-----BEGIN RSA PRIVATE KEY-----\nx", "ghp_abcdefghijklmnopqrstuvwx", "AKIAABCDEFGHIJKLMNOP",
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.x", "xoxb-1234567890-a",
]  # fmt: skip


@pytest.mark.parametrize("value", CREDENTIALS)
def test_a_value_that_is_a_credential_by_its_form_is_not_read_outside_targets(tmp_path, value):
    found = only(findings(tmp_path, {"models/a.sql": "select '{{ env_var('SERVICE') }}' as x"}, env={"SERVICE": value}))
    assert line(found).startswith("secret-outside-target models/a.sql:1:20")
    assert value not in found.message


def test_such_a_value_is_a_secret_in_a_target_too(tmp_path):
    text = f"{TARGET.replace('schema: main', SCHEMA)}    spark: {{conf: {{k: \"{{{{ env_var('SERVICE') }}}}\"}}}}\n"
    result = of(tmp_path, text, {"SERVICE": CREDENTIALS[0]})
    assert line(only(result.manifest.errors)).startswith("secret-misplaced project.yml:5:13 the secret 'SERVICE'")
    assert CREDENTIALS[0] not in repr(result.target)
    assert result.target.spark_conf() == {"k": CREDENTIALS[0]}


def test_a_placeholder_cannot_be_guessed_or_used_in_another_process():
    one, other = SecretSettings(ENV, Path()), SecretSettings(ENV, Path())
    text = one.placeholder("ENGINE_SECRET_X", None)
    assert other.resolved({"a": text}, "x") == {"a": text}
    assert one.resolved({"a": [text]}, "x") == {"a": [SECRET]}
    guessed = "<secret ENGINE_SECRET_X 00000000000000000000000000000000/0>"
    assert one.resolved({"a": guessed}, "x") == {"a": guessed}


def test_what_is_used_is_masked_from_then_on(tmp_path):
    text = f"{TARGET}    connections: {{main: {{options: {{a.password: other-password-1}}}}}}\n"
    of(tmp_path, text).target.connections["main"]()
    assert scrub("login with other-password-1") == f"login with {MASK}"


def test_a_short_secret_is_used_with_one_warning(tmp_path, caplog):
    settings = SecretSettings({"ENGINE_SECRET_SHORT": "abc"}, Path())
    for _ in range(2):
        assert settings.resolved({"a": settings.placeholder("ENGINE_SECRET_SHORT", None)}, "x") == {"a": "abc"}
    assert [r.getMessage() for r in caplog.records] == [
        "the secret ENGINE_SECRET_SHORT has fewer than 4 characters and is not masked in the output"
    ]


@pytest.mark.parametrize("value", [None, SECRET])
def test_commands_that_run_nothing_need_no_secret_and_write_none(tmp_path, value):
    write(tmp_path, {"project.yml": USED, "models/a.sql": "select 1 as x"})
    env = {key: text for key, text in os.environ.items() if not key.startswith("ENGINE_SECRET_")} | {"PLAIN": "plain"}
    env |= {"ENGINE_SECRET_X": value} if value else {}
    for command in (
        ["parse"],
        ["compile"],
        ["ls"],
        ["ls", "--output", "json"],
        ["lineage"],
        ["lineage", "a.x"],
        ["docs", "generate"],
    ):
        arguments = [sys.executable, "-m", "engine", *command, "--project-dir", str(tmp_path)]
        done = subprocess.run(arguments, capture_output=True, text=True, env=env, check=False)
        assert done.returncode == 0, (command, done.stderr)
        assert "s3cret" not in done.stdout + done.stderr
    for path in tmp_path.rglob("target/**/*"):
        if path.is_file():
            assert b"s3cret" not in path.read_bytes()
            assert b"<secret" not in path.read_bytes()
