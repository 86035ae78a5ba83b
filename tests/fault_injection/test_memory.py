"""Java has no memory left in the middle of a build."""

from __future__ import annotations

import pytest

from tests.fault_injection import shop
from tests.lab import Lab, run_alone

pytestmark = [pytest.mark.spark, pytest.mark.nightly]

# A row of 1 GB for each thousand of `amount`.
BIG = """/*---
streams: [shop.events]
---*/
select id, size(transform(sequence(1, cast(amount as int)), x -> repeat('x', 1000000 + x))) as n
from {{ source('shop', 'events') }}
"""
PLAIN = "/*---\nstreams: [big]\n---*/\nselect id from {{ ref('big') }}\n"


def test_a_build_without_memory_says_so_and_the_next_goes_on(lab: Lab) -> None:
    text = (lab.root / "project.yml").read_text()
    lab.write("project.yml", text.replace("spark: {", "spark: {driver_memory: 480m, "))
    lab.model("big", BIG)
    lab.model("plain", PLAIN)
    lab.land("a", [shop.paid(1, "10:00")])
    lab.land("b", [shop.paid(2, "10:00") | {"amount": 2000.0}])
    ended = run_alone(lab.root, "build")
    assert "java.lang.OutOfMemoryError" in (lab.root / "target" / "logs" / "spark.log").read_text()
    assert ended.returncode == 1, ended.stdout + ended.stderr
    assert ended.stdout.count('"java-ended"') == 1, ended.stdout
    assert "driver_memory" in ended.stdout
    assert "Traceback" not in ended.stdout + ended.stderr
    assert lab.rows("big") == []
    # The shared session has a larger heap; with the rows as they are it would not do either.
    lab.model("big", BIG.replace("cast(amount as int)", "1"))
    lab.build()
    assert lab.ids("plain") == [1, 2]
