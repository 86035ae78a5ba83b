"""`engine publish MODEL --accept`."""

from __future__ import annotations

from engine.cli.command_setup import CommandSettings, Warnings, compile_and_report, find_model, log_file, print_warnings
from engine.compile import Manifest
from engine.errors import UsageError


def accept_rows(settings: CommandSettings, name: str, *, accept: bool) -> None:
    """Show the rows of a model that wait for its tests.

    Raises:
        UsageError: there is no such model, or the user does not say that they are accepted.
        StateError: see `engine.runtime.operations.publish_by_hand`.
    """
    from engine.runtime.operations.publish_by_hand import accept as accept_staged

    with log_file(settings):
        result = compile_and_report(settings, warnings=Warnings.SELECTED)
        manifest: Manifest = result.manifest
        model = find_model(manifest, name)
        print_warnings(settings, manifest, [model.id], daily=True)
        if not accept:
            hint = (
                f"To publish them anyway: engine publish {name} --accept. To test and publish them: engine test "
                f"-s {name}"
            )
            raise UsageError("usage", "the staged rows have not passed their tests", hint)
        snapshot = accept_staged(manifest, result.target, settings.root, model, settings.target_dir)
        outcome = "no rows are staged" if snapshot is None else f"staged rows published (snapshot {snapshot})"
        settings.out.say(f"{model.relation}: {outcome}")
