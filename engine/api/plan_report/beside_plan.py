"""What a comparison with an earlier manifest finds beside the plan of a build."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from engine.compile import Manifest
from engine.compile.artifacts.dbt_manifest import unique_id

GONE = "no longer in the project, their tables stay"
DESCRIBED = "only a description, a tag or another setting changed that no row depends on"
UNKNOWN = (
    "compared with an earlier manifest alone: what is unread, and whether tables and checkpoints are as they were, "
    "is not known"
)


@dataclass(frozen=True, slots=True)
class BesidePlan:
    """What differs from an earlier manifest and is not an action of a build.

    Attributes:
        removed: names of models that are not in the project any more.
        described: names of models that compute what they did, and of which other settings changed.
        without_catalog: the plan comes from two manifests, and nothing that is deployed was looked at.
    """

    removed: tuple[str, ...] = ()
    described: tuple[str, ...] = ()
    without_catalog: bool = False

    def lines(self) -> Iterator[str]:
        for title, names in ((GONE, self.removed), (DESCRIBED, self.described)):
            if names:
                yield f"{title}: {', '.join(names)}"
        if self.without_catalog:
            yield UNKNOWN


NOTHING_BESIDE: Final = BesidePlan()


def removed_record(manifest: Manifest, name: str) -> dict[str, Any]:
    return {
        "unique_id": unique_id(f"model.{name}", manifest.project),
        "name": name,
        "action": "removed",
        "unchanged": False,
        "reasons": ["it is no longer in the project; its table stays"],
        **{key: [] for key in ("notes", "affects", "exposures", "reads", "refusals")},
        **dict.fromkeys(("materialized", "relation", "change", "writes", "rows", "about_seconds")),
        "deferred": {},
    }
