"""`engine debug`: a line for each part of the machine and of the target."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from engine.characters import one_line
from engine.cli.command_setup import CommandSettings, Warnings, compile_and_report
from engine.cli.console.safe_output import Styled, write
from engine.compile import Compiled
from engine.lake.catalog.catalog_settings import CatalogConfig, is_local
from engine.lake.clients.catalog_errors import address
from engine.project import is_project, missing_project
from engine.runtime.operations.debug import Finding, checkup, machine


def debug(settings: CommandSettings, *, spark_conf: bool = False) -> bool:
    """Print what is checked; False if something will not do.

    In a folder that is not a project only the machine is checked, and nothing is made there.
    """
    if not is_project(settings.root):
        finding = missing_project(settings.root)
        _print([*machine(), Finding("project", False, finding.message, finding.hint)])
        return False
    if spark_conf:
        from engine.runtime.operations.submit import shown_conf

        result = compile_and_report(settings, warnings=Warnings.DAILY)
        for key, value in shown_conf(result.target, settings.target_dir, result.manifest).items():
            write(f"{key} {one_line(value)}")
        return True
    result = compile_and_report(settings, fail_on_errors=False, warnings=Warnings.DAILY)
    target = result.target
    return _print([*checkup(target, settings.root, result.manifest), *_shared_schema(result, settings)])


def _shared_schema(result: Compiled, settings: CommandSettings) -> Iterator[Finding]:
    """Other targets that write to the tables of this one; those that cannot be rendered here are not known."""
    from engine.compile.pipeline.compile_project import targets_of

    this_target = result.target
    other_targets = (
        other
        for other, problems in targets_of(result.project, settings.project.vars)
        if other.name != this_target.name and not problems
    )
    for other in other_targets:
        if other.schema != this_target.schema or _place(other.catalog) != _place(this_target.catalog):
            continue
        text = (
            f"target '{other.name}' has the catalog and schema of '{this_target.name}': both write to the same tables"
        )
        yield Finding("targets", True, text, f"Give one of them another 'schema', such as {other.schema}_{other.name}.")


def _place(catalog: CatalogConfig) -> tuple[object, ...]:
    """What distinguishes a catalog from others: a server may keep several, by their names or warehouses."""
    if is_local(catalog):
        return catalog.type, catalog.name, catalog.path
    return catalog.type, catalog.name, address(catalog), catalog.settings().get("warehouse")


def _print(findings: Iterable[Finding]) -> bool:
    good = True
    for finding in findings:
        good = good and finding.good
        mark = Styled("OK   ", "green") if finding.good else Styled("ERROR", "red")
        write(mark, f" {finding.part.ljust(10)} {one_line(finding.text)}")
        if finding.remedy:
            write(f"      {' ' * 10} {one_line(finding.remedy)}")
    return good
