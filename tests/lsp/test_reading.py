"""References, colours of the header and hints between the lines, against the example."""

import pytest

from engine import Project
from engine.lsp.answers.editor_answers import inlay_hints, state_text
from engine.lsp.answers.header_completions import LEGEND, header_tokens
from engine.lsp.answers.hovers import hover
from engine.lsp.edits.renames import named_places
from tests.lsp.conftest import compiled
from tests.lsp.test_rename import at

pytestmark = pytest.mark.slow

FILE = "models/marts/departures_hourly.sql"


@pytest.fixture
def opened(example_opened):
    return example_opened


def named(opened, file, words, offset):
    """The words at the places, by file."""
    found = {}
    for place in named_places(opened, file, at(opened, file, words, offset)):
        name = next(one for one in opened.files() if place.uri.endswith(one))
        line = opened.text(name).split("\n")[place.range.start.line]
        found.setdefault(name, []).append(line[place.range.start.character : place.range.end.character])
    return found


def test_a_model_is_found_in_queries_headers_and_tests(opened):
    found = named(opened, FILE, "ref('flights')", 6)
    assert {word for words in found.values() for word in words} == {"flights"}
    assert found[FILE] == ["flights", "flights"]  # streams: and ref()
    readers = {model.file for model in opened.manifest.models if "model.flights" in model.depends_on}
    tested = {test.file for test in opened.manifest.unit_tests if any(
        given.input == "flights" for step in test.steps for given in step.given)}  # fmt: skip
    assert readers | tested <= set(found)


def test_a_source_is_found_by_both_its_spellings(opened):
    found = named(opened, "models/staging/flights.sql", "'departures'", 3)
    assert found["models/staging/flights.sql"] == ["departures", "departures"]


def test_a_column_is_found_in_queries_headers_and_rows(opened):
    found = named(opened, FILE, "as mean_delay", 4)
    assert {word for words in found.values() for word in words} == {"mean_delay"}
    assert set(found) >= {FILE, "models/marts/busiest_hours.sql", "tests/models/departures_hourly.yml"}


def test_the_header_has_colours(opened):
    data = header_tokens(opened, FILE)
    lines, tokens, line, start = opened.text(FILE).split("\n"), [], 0, 0
    for i in range(0, len(data), 5):
        line, start = line + data[i], data[i + 1] + (start if data[i] == 0 else 0)
        tokens.append((lines[line][start : start + data[i + 2]], LEGEND[data[i + 3]]))
    assert tokens[:6] == [
        ("description", "property"), ("streams", "property"), ("flights", "class"), ("watermark", "property"),
        ("scheduled_at", "variable"), ("windows", "property"),
    ]  # fmt: skip
    assert ("hour", "type") in tokens
    assert ("true", "enumMember") in tokens
    assert not [word for word, _ in tokens if word in {"Departures", "airport", "once"}]


@pytest.mark.parametrize(
    ("model", "text"),
    [
        ("flights", "stateful: keeps 1 day"),
        ("departures_hourly", "stateful: keeps 90 minutes"),
        ("delay_trend", "stateful: keeps 210 minutes"),
        ("disruptions", "stateful: keeps 570 minutes"),
        ("journeys", "stateful"),
        ("top_destinations", "stateful: nothing expires, as there is no watermark"),
        ("aircraft", ""),
    ],
)
def test_how_long_state_is_kept(opened, model, text):
    assert state_text(opened.manifest.model(model)) == text


def test_hints_between_the_lines_are_types_and_state(opened):
    labels = [hint.label for hint in inlay_hints(opened, FILE)]
    assert labels == ["timestamp ", "string ", "bigint ", "double ", "stateful: keeps 90 minutes"]


def test_a_model_tells_how_its_last_run_ended(project):
    opened = compiled(project)
    target = opened.root / "target"
    target.mkdir()
    (target / "run_results.json").write_text(
        '{"results": [{"unique_id": "model.flights.flights", "status": "success", "rows_in": 1200, "late": 3}]}'
    )
    said = hover(opened, FILE, at(opened, FILE, "ref('flights')", 6)).contents.value
    assert "Last run: success" in said, said
    assert Project(opened.root).root == opened.root
