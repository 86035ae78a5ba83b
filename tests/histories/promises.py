"""What `engine plan` promises of a build, and whether the build keeps it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tests.histories.difference import DifferenceError
from tests.histories.points import CODE
from tests.lab import Lab, Result


@dataclass(frozen=True, slots=True)
class Promises:
    """The records of a plan, by model."""

    records: dict[str, dict[str, Any]]

    @property
    def rejected(self) -> set[str]:
        """The codes of what forbids the build."""
        return {refusal["code"] for record in self.records.values() for refusal in record["refusals"]}

    def check(self, result: Result) -> None:
        """Compare what was promised with what a build did.

        Raises:
            DifferenceError: it did something else.
        """
        ended = {e["node"].split(".", 1)[1]: e["status"] for e in result.events if e["event"] == "ModelFinished"}
        said = {e["code"] for e in result.events if e["event"] == "Diagnosed"}
        started = any(e["event"] == "RunStarted" for e in result.events)
        if self.rejected:
            if result.code == 0 or started or not self.rejected <= said:
                raise DifferenceError(f"the plan rejects it ({self.rejected}), the build: {result.code} {ended} {said}")
            return
        if not started and CODE in said:
            # The process was to die before its first model.
            return
        if not started:
            raise DifferenceError(f"the plan rejects nothing, the build: {result.code} {said} {result.text[-2000:]}")
        for name, record in self.records.items():
            status = ended.get(name, "skipped")
            if status in ("error", "skipped") or record["unchanged"] is None:
                continue
            # An edit is noted and ends as `unchanged` where there are no rows to apply it to.
            unread = any(read["new"] for read in record["reads"])
            if status == "unchanged" if unread else record["unchanged"] and status != "unchanged":
                told = {key: record[key] for key in ("action", "change", "unchanged", "reasons", "reads")}
                raise DifferenceError(f"{name}: the plan says {told}, the build ended with {status}")


def promised(lab: Lab, arguments: tuple[str, ...]) -> Promises:
    """The plan of a build with some arguments.

    Raises:
        DifferenceError: there is none.
    """
    result = lab.run("plan", *arguments, "--output", "json")
    records = {e["name"]: e for e in result.events if "unique_id" in e and "materialized" in e}
    if result.code not in (0, 1) or "Traceback" in result.text or not records:
        trace = result.text.partition("Traceback")[2]
        raise DifferenceError(f"plan ended with {result.code}: {trace[:3000] or result.text[-2000:]}")
    return Promises(records)
