"""Reading the files of a project: what is found, what is refused, and where."""

from __future__ import annotations

import pytest

from engine.project import load_project, open_model
from tests.project.small_projects import ORDERS, PROJECT, findings, line, load, only


def problems(root, files) -> list[tuple[str, bool]]:
    return [(line(d), bool(d.hint)) for d in load(root, files).diagnostics]


def test_models_with_their_folders_in_name_order(tmp_path):
    files = {"models/b/c/two.sql": ORDERS, "models/a.sql": ORDERS, "models/.hidden/x.sql": "", "models/b/notes.md": ""}
    models = load(tmp_path, files).models
    assert [(m.name, m.file, m.folders) for m in models] == [
        ("a", "models/a.sql", ()),
        ("two", "models/b/c/two.sql", ("b", "c")),
    ]


def test_other_line_ends_and_a_byte_order_mark(tmp_path):
    text = b"\xef\xbb\xbf/*---\r\ntags: [a]\r\n---*/\r\nselect 1\r\n"
    (source,) = load(tmp_path, {"models/a.sql": text}).models
    model = open_model(source, [])
    assert model.header is not None
    assert model.header.data == {"tags": ["a"]}
    assert model.sql.strip() == "select 1"


def test_paths_of_the_project(tmp_path):
    files = {"project.yml": PROJECT + "paths: {models: queries}\n", "queries/a.sql": ORDERS, "models/b.sql": ORDERS}
    assert [m.file for m in load(tmp_path, files).models] == ["queries/a.sql"]


def test_a_version_is_text_as_written(tmp_path):
    assert load(tmp_path, {"project.yml": PROJECT + "version: 1.10\n"}).version == "1.10"


def test_no_project(tmp_path):
    found = only(load_project(tmp_path).diagnostics)
    assert line(found) == f"project-missing None there is no project.yml in {tmp_path.name}"
    assert "--project-dir" in found.hint


def test_a_dbt_project(tmp_path):
    (tmp_path / "dbt_project.yml").write_text("name: shop\n")
    assert "project.yml, with name, targets" in only(load_project(tmp_path).diagnostics).hint


PROJECT_ERRORS = [
    ("modles: {}", "unknown-key project.yml:6:1 project.yml has no key 'modles'"),
    ("paths: {mcros: x}", "unknown-key project.yml:6:9 paths has no key 'mcros'"),
    ("paths: {models: ../x}", "path-outside project.yml:6:17 the path '../x' is outside the project"),
    ("paths: {sources: /etc}", "path-outside project.yml:6:18 the path '/etc' is outside the project"),
    ("paths: {models: queries}", "bad-value project.yml:6:17 folder 'queries' not found"),
    ("require_engine_version: '>=99'",
     "engine-version project.yml:6:25 the project requires Headrace >=99, but this is 0.1.0"),
    ("require_engine_version: ['>=0.1', '<0.1']",
     "engine-version project.yml:6:25 the project requires Headrace <0.1, but this is 0.1.0"),
    ("require_engine_version: latest", "bad-value project.yml:6:25 'latest' is not a version range"),
]  # fmt: skip


@pytest.mark.parametrize(("more", "finding"), PROJECT_ERRORS)
def test_project_file(more, finding, tmp_path):
    assert problems(tmp_path, {"project.yml": f"{PROJECT}{more}\n"}) == [(finding, True)]


@pytest.mark.parametrize("wanted", [">=0.1,<0.2", "==0.1.0", ">0.0.9", "!=2", "<=0.1", ">= 0.1"])
def test_versions_that_admit_this_engine(wanted, tmp_path):
    assert problems(tmp_path, {"project.yml": f"{PROJECT}require_engine_version: '{wanted}'\n"}) == []


@pytest.mark.parametrize(
    ("text", "finding"),
    [
        ("", "missing-key project.yml:1:1 project.yml has no 'name'"),
        ("targets: {}\n", "missing-key project.yml:1:1 project.yml has no 'name'"),
        ("name: My-Shop\n", "bad-name project.yml:1:7 'My-Shop' is not a valid name"),
        ("name: a: b\n", "yaml-syntax project.yml:1:8 YAML: unexpected ':'"),
        ("name: a\nname: b\n", "yaml-duplicate-key project.yml:2:1 'name' is set twice (first in line 1)"),
    ],
)
def test_project_file_alone(text, finding, tmp_path):
    assert problems(tmp_path, {"project.yml": text}) == [(finding, True)]


def test_a_project_file_that_is_no_mapping(tmp_path):
    assert problems(tmp_path, {"project.yml": "- a\n"}) == [
        ("wrong-type project.yml:1:1 the file must be a mapping (key: value), not a list", False)
    ]


def test_a_project_file_that_cannot_be_read_is_reported_alone(tmp_path):
    files = {"project.yml": "name: [\n", "models/a.sql": "select * from nowhere"}
    assert only(findings(tmp_path, files)).code == "yaml-syntax"


FILE_ERRORS = [
    (
        "models/_shop.yml",
        "version: 2",
        "properties-file models/_shop.yml:1:1 properties files under models/ are dbt syntax",
    ),
    ("profiles.yml", "shop: {}", "profiles-file profiles.yml:1:1 profiles.yml is dbt syntax"),
    ("models/My Orders.sql", ORDERS, "bad-name models/My Orders.sql:1:1 'My Orders' is not a valid model name"),
    ("models/tag_x.sql", ORDERS, "bad-name models/tag_x.sql:1:1 'tag_x' is not a valid model name"),
    ("models/a__deleted.sql", ORDERS, "bad-name models/a__deleted.sql:1:1 'a__deleted' is not a valid model name"),
    ("models/a.sql", b"select\n  '\xe4'", "file-unreadable models/a.sql:2:4 the file is not UTF-8"),
    ("macros/m.sql", b"\xff\xfe{", "file-unreadable macros/m.sql:1:1 the file is not UTF-8"),
    ("sources/x.yml", b"a: \xe4", "file-unreadable sources/x.yml:1:4 the file is not UTF-8"),
    (
        "models/a.sql",
        "select 1,\n  \x00",
        "control-character models/a.sql:2:3 the file contains the control character U+0000",
    ),
    ("macros/m.sql", "{# \x1b #}", "control-character macros/m.sql:1:4 the file contains the control character U+001B"),
]


@pytest.mark.parametrize(("file", "content", "finding"), FILE_ERRORS)
def test_files(file, content, finding, tmp_path):
    assert problems(tmp_path, {file: content}) == [(finding, True)]


def test_two_models_with_one_name(tmp_path):
    found = only(load(tmp_path, {"models/x/a.sql": ORDERS, "models/y/a.sql": ORDERS}).diagnostics)
    assert line(found) == (
        "duplicate-name models/y/a.sql:1:1 two models have the name 'a': models/x/a.sql and models/y/a.sql"
    )
    assert found.hint == "Rename one of them."


def test_links_that_lead_out_of_the_project(tmp_path):
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "x.sql").write_text(ORDERS)
    root = tmp_path / "shop"
    load(root, {"models/a.sql": ORDERS})
    (root / "models" / "b.sql").symlink_to(outside / "x.sql")
    (root / "models" / "folder").symlink_to(outside)
    (root / "macros").symlink_to(outside)
    found = load_project(root).diagnostics
    message = "symbolic links to folders, or to files outside the project, are not followed"
    assert sorted(line(d) for d in found) == [
        f"path-outside macros:1:1 {message}",
        f"path-outside models/b.sql:1:1 {message}",
        f"path-outside models/folder:1:1 {message}",
    ]
    assert all(d.hint for d in found)


def test_a_link_within_the_project_is_followed(tmp_path):
    load(tmp_path, {"shared/b.sql": ORDERS, "models/a.sql": ORDERS})
    (tmp_path / "models" / "b.sql").symlink_to(tmp_path / "shared" / "b.sql")
    project = load_project(tmp_path)
    assert project.diagnostics == ()
    assert [m.name for m in project.models] == ["a", "b"]


def test_a_link_to_nothing(tmp_path):
    load(tmp_path, {"models/a.sql": ORDERS})
    (tmp_path / "models" / "b.sql").symlink_to(tmp_path / "gone.sql")
    found = only(load_project(tmp_path).diagnostics)
    assert line(found) == "file-unreadable models/b.sql:1:1 the file cannot be read: No such file or directory"
