"""`engine publish MODEL --accept`."""

from __future__ import annotations

from engine.cli.command_setup import CommandSettings, Warnings, compiled, log_file, named_model, warn
from engine.compile import Manifest
from engine.errors import UsageError


def accept_rows(chosen: CommandSettings, name: str, *, accept: bool) -> None:
    """Show the rows of a model that wait for its tests.

    Raises:
        UsageError: there is no such model, or the user does not say that they are accepted.
        StateError: see `engine.runtime.operations.publish_by_hand`.
    """
    from engine.runtime.operations.publish_by_hand import accept as shown

    with log_file(chosen):
        result = compiled(chosen, warnings=Warnings.SELECTED)
        manifest: Manifest = result.manifest
        model = named_model(manifest, name)
        warn(chosen, manifest, [model.id], daily=True)
        if not accept:
            hint = (
                f"To publish them anyway: engine publish {name} --accept. To test and publish them: engine test "
                f"-s {name}"
            )
            raise UsageError("usage", "the staged rows have not passed their tests", hint)
        snapshot = shown(manifest, result.target, chosen.root, model, chosen.target_dir)
        what = "no rows are staged" if snapshot is None else f"staged rows published (snapshot {snapshot})"
        chosen.out.say(f"{model.relation}: {what}")
