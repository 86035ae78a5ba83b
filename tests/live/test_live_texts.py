"""The live page shows what there is: texts of rows and errors steer neither the browser's text direction nor hide in it."""

from __future__ import annotations

import json
import re
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from engine.events import Status
from engine.live.live_server import _LivePages
from engine.live.observer import observing
from tests.live.sequences import started, turn

ODD = "a\x1b[2Jb\x00c\u202ed\u2066e\u200bf\x9bg\ufeffh"
SHOWN = "a\\x1b[2Jb\\x00c\\u202ed\\u2066e\\u200bf\\x9bg\\ufeffh"
STEERING = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2066-\u2069\ufeff]")


def texts(value: Any) -> list[str]:
    if isinstance(value, dict):
        return [text for key, inner in value.items() for text in (*texts(key), *texts(inner))]
    if isinstance(value, list):
        return [text for inner in value for text in texts(inner)]
    return [value] if isinstance(value, str) else []


@pytest.mark.parametrize("path", ["/live/events", "/live/log", "/live/turns", "/live/states"])
def test_characters_that_cannot_be_seen_are_written_out(
    path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ENGINE_SECRET_X", "planted\tsecret-word")
    with observing(tmp_path, {}) as observer:
        observer.on_event(started())
        for event in turn(status=Status.ERROR, message=f"{ODD} planted\tsecret-word"):
            observer.on_event(event)
        observer.write(observer.status.to_json())
        answer = _LivePages(observer, Event()).answer(path, "node=model.orders")
        assert answer is not None
        body = answer.body if isinstance(answer.body, bytes) else next(iter(answer.body))
    found = texts(json.loads(body.decode().removeprefix("data: ")))
    assert not [text for text in found if STEERING.search(text)]
    assert not [text for text in found if "secret-word" in text]
    if path in {"/live/events", "/live/log"}:
        assert any(SHOWN in text for text in found), found
