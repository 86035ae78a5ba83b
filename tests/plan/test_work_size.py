"""Whether a build has little to read: as far as files and tables tell."""

from __future__ import annotations

import pytest

from engine.lake.table_facts import SnapshotFacts, TableFacts
from engine.plan.deployed.deployed_facts import LITTLE, Deployed, DeployedModel, DeployedSource, is_little
from engine.sources.listing import Listed


def files(*sizes: int) -> DeployedSource:
    return DeployedSource(files=tuple(Listed(f"file:/{n}.json", size, 0) for n, size in enumerate(sizes)))


def table(size: str | None) -> TableFacts:
    summary = {} if size is None else {"total-files-size": size}
    return TableFacts("u", {}, (SnapshotFacts(2, 1, "append", summary), SnapshotFacts(1, None, "append", {})), ())


@pytest.mark.parametrize(
    ("source", "model", "little"),
    [
        (files(), DeployedModel(), True),
        (files(LITTLE // 2, LITTLE // 2), DeployedModel(), True),
        (files(LITTLE // 2, LITTLE), DeployedModel(), False),
        (files(LITTLE // 2), DeployedModel(table=table(str(LITTLE))), False),
        (files(5), DeployedModel(table=table("5")), True),
        (files(5), DeployedModel(table=table("5"), written=table(str(LITTLE))), False),
        (files(5), DeployedModel(table=table(None)), False),
        (DeployedSource(), DeployedModel(), False),
        (DeployedSource(table=table("5")), DeployedModel(), True),
    ],
)
def test_how_much_there_is_to_read(source: DeployedSource, model: DeployedModel, little: bool) -> None:
    assert is_little(Deployed(models={"model.a": model}, sources={"source.s": source})) is little
