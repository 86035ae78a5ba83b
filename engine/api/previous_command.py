"""The last run of a project, as target/run_results.json has it: what `retry` repeats of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast, get_args

from engine.api.requests import THREADS, Command, RunOptions, Selection
from engine.errors import UsageError

if TYPE_CHECKING:
    from engine.compile import Compiled, Manifest

# What failed or was skipped.
UNFINISHED = Selection(("result:error", "result:fail", "result:skipped"))
_MOST_THREADS = 64
_OPTION_TYPES = {"threads": int, "fail_fast": bool, "no_cache": bool, "store_failures": bool, "full_refresh": bool,
          "empty": bool, "discard_refresh": bool}  # fmt: skip


@dataclass(frozen=True, slots=True)
class PreviousCommand:
    """A command that ran models or tests.

    `vars` None: they hold a secret, and were not kept. `started_at` is UTC; empty: not known. `held`: models whose
    staged rows it did not publish. `deferral`: where models were read that were not selected.
    """

    command: Command
    target: str
    vars: Mapping[str, Any] | None = field(default_factory=dict)
    warn_error: bool | None = None
    options: RunOptions = field(default_factory=RunOptions)
    started_at: str = ""
    deferral: Selection = field(default_factory=Selection)
    unpublished: frozenset[str] = frozenset()

    def nodes_to_retry(self, manifest: Manifest, unfinished: Iterable[str]) -> list[str]:
        """Return what a retry runs; a model whose tests are gone is built, which publishes its staged rows."""
        from engine.compile import DataTest, Model
        from engine.plan.actions.state_checks import deciding, waits

        nodes = set(unfinished)
        tested = {node.model for i in nodes if isinstance(node := manifest.nodes[i], DataTest)}
        for i in {*nodes, *tested, *(f"model.{name}" for name in self.unpublished)}:
            model = manifest.nodes.get(i)
            if isinstance(model, Model) and waits(model):
                nodes |= deciding(manifest, model) or {model.id}
        return [i for i in manifest.order if i in nodes]


def run_arguments(
    variables: Mapping[str, Any], warn_error: bool | None, options: RunOptions, compiled: Compiled | None = None
) -> dict[str, Any]:
    """Return what run_results.json keeps of the options of a command; `previous_command` reads it."""
    import json

    from engine.secrets.scrubber import scrub

    text = json.dumps(variables, default=str)
    set_options = {key: value for key, value in options.items() if value is not None and value != ()}
    return {
        "vars": dict(variables) if scrub(text) == text else None,
        **({} if warn_error is None else {"warn_error": warn_error}),
        **_deferral(compiled),
        **set_options,
    }


def _deferral(compiled: Compiled | None) -> dict[str, Any]:
    if compiled is None or compiled.deferred_to is None:
        return {}
    return {"defer": True, "favor_state": compiled.favors_state, "state": str(compiled.deferred_to.absolute())}


def previous_command(folder: Path) -> PreviousCommand | None:
    """Read the last run from the folder of artifacts; None: no run has left its results.

    Raises UsageError: the command had --reset-checkpoint, which cannot be repeated.
    """
    from engine.runtime.context.run_results import read_results

    results = read_results(folder) or {}
    stored_args = results.get("args")
    args = stored_args if isinstance(stored_args, dict) else {}
    if args.get("which") not in get_args(Command):
        return None
    command = cast("Command", args["which"])
    if reset := args.get("reset_checkpoint"):
        message = f"the last {command} had --reset-checkpoint {reset}, which is not repeated"
        raise UsageError("usage", message, f"Run engine plan, then engine {command} for the models that need it.")
    options = {key: args[key] for key, kind in _OPTION_TYPES.items() if isinstance(args.get(key), kind)}
    if not 0 < options.get("threads", THREADS) <= _MOST_THREADS:
        del options["threads"]
    if isinstance(accepted := args.get("accept"), list):
        options["accept"] = tuple(map(str, accepted))
    metadata = results.get("metadata")
    started = metadata.get("invocation_started_at") if isinstance(metadata, dict) else None
    variables = args.get("vars", {})
    strict = args.get("warn_error")
    return PreviousCommand(
        command,
        str(args.get("target") or ""),
        variables if isinstance(variables, dict) else None,
        strict if isinstance(strict, bool) else None,
        cast("RunOptions", options),
        str(started or ""),
        _deferred(args),
        frozenset(_unpublished_models(results, args)),
    )


def _unpublished_models(record: Mapping[str, Any], args: Mapping[str, Any]) -> Iterator[str]:
    """Yield the models whose rows were not published; where only tests ran, the run has the diagnostic."""
    from engine.plan.actions.state_checks import HELD

    stored_results = record.get("results")
    results = [r for r in stored_results if isinstance(r, dict)] if isinstance(stored_results, list) else []
    for part in [args, *(r.get("adapter_response") for r in results)]:
        diagnostics = part.get("diagnostics") if isinstance(part, dict) else None
        for one in diagnostics if isinstance(diagnostics, list) else ():
            if isinstance(one, dict) and one.get("code") == HELD and isinstance(one.get("node"), str):
                yield one["node"]


def _deferred(args: Mapping[str, Any]) -> Selection:
    if args.get("defer") is not True or not isinstance(args.get("state"), str):
        return Selection(defer=False)
    return Selection(state=Path(args["state"]), defer=True, favor_state=args.get("favor_state") is True)
