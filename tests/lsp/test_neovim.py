"""A session in Neovim on the example, over the language client that it comes with."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from engine import Project

pytestmark = pytest.mark.slow

SESSION = Path(__file__).with_name("neovim_session.lua")


@pytest.mark.skipif(shutil.which("nvim") is None, reason="nvim is not installed")
def test_a_session_in_neovim(project, tmp_path):
    seen = tmp_path / "seen.json"
    settings = {"PROJECT": str(project), "SEEN": str(seen), "PYTHON": sys.executable, "HOME": str(tmp_path)}
    command = ["nvim", "--headless", "-u", "NONE", "-n", "-i", "NONE", "-c", f"luafile {SESSION}"]
    done = subprocess.run(
        command, env={**os.environ, **settings}, cwd=project, capture_output=True, text=True, timeout=180, check=False
    )
    assert seen.exists(), done.stderr
    found = json.loads(seen.read_text())
    assert found.get("failure") is None, (found, done.stderr)
    assert "from `flights.departure_delay`" in found["hover"]
    assert found["diagnostic"]["code"] == "unknown-column"
    assert "Did you mean 'departure_delay'" in found["diagnostic"]["message"]
    assert set(found["actions"]) >= {"Change to 'departure_delay'", "Explain 'unknown-column'"}
    assert found["line"].strip() == "avg(departure_delay) as mean_delay"
    flights = Project(project).compile().manifest.model("flights")
    assert {column.name: column.type for column in flights.columns}.items() <= found["completion"].items()
    assert found["definition"] == str(project / "models/staging/flights.sql")
    assert (project / "models/marts/departures_hourly.sql").read_text().count("departure_delai") == 0
