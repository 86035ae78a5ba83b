"""A Flare job as records, each key with its place; what nobody asks for is known at the end."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from engine.errors import Diagnostic, ProjectError
from engine.project.parse_yaml import Path as Keys
from engine.project.parse_yaml import Yaml, load_yaml
from engine_import.output.input_folder import read_bounded

MOST_BYTES = 4 * 2**20


@dataclass(frozen=True, slots=True)
class JobPart:
    """A value of a job and where it is.

    Attributes:
        asked: paths of all values that were asked for.
    """

    doc: Yaml
    path: Keys
    value: Any
    asked: set[Keys] = field(default_factory=set)

    def child(self, key: str) -> JobPart:
        """Return the value of a key; one of None if there is none."""
        path = (*self.path, key)
        self.asked.add(path)
        value = self.value.get(key) if isinstance(self.value, dict) else None
        return JobPart(self.doc, path, value, self.asked)

    def items(self) -> list[JobPart]:
        """Return the items of a list; a mapping is a list of one."""
        values = self.value if isinstance(self.value, list) else [self.value] if isinstance(self.value, dict) else []
        listed = isinstance(self.value, list)
        return [
            JobPart(self.doc, (*self.path, n) if listed else self.path, v, self.asked) for n, v in enumerate(values)
        ]

    def entries(self) -> list[tuple[str, JobPart]]:
        return [(str(key), self.child(str(key))) for key in self.value] if isinstance(self.value, dict) else []

    def text(self) -> str:
        """Return a string; numbers as they are written, empty if it is something else."""
        if isinstance(self.value, bool) or not isinstance(self.value, (str, int, float)):
            return ""
        return self.doc.written.get(self.path) or str(self.value)

    @property
    def place(self) -> str:
        location = self.doc.key_at(self.path)
        return f"{location.file}:{location.line}"

    def whole(self) -> None:
        self.asked.update(_paths(self.path, self.value))

    def left(self) -> Iterator[JobPart]:
        if isinstance(self.value, dict):
            for key, value in self.value.items():
                path = (*self.path, str(key))
                part = JobPart(self.doc, path, value, self.asked)
                if path not in self.asked:
                    yield part
                else:
                    yield from part.left()
        elif isinstance(self.value, list):
            for number, value in enumerate(self.value):
                yield from JobPart(self.doc, (*self.path, number), value, self.asked).left()


def read_jobs(file: Path) -> list[JobPart]:
    """Read the jobs of a file: the items of `dag`, or of `workflow.dag`.

    Raises:
        ProjectError: `import-unreadable`, or what is wrong with the YAML, with its place.
    """
    content = read_bounded(file.parent, file.name, MOST_BYTES)
    hint = "Give the YAML file of a Flare job, with its inputs, steps and outputs."
    if content is None:
        raise ProjectError("import-unreadable", f"'{file}' cannot be imported: there is no such file", hint)
    doc, findings = load_yaml(content.decode("utf-8", "replace"), file.name)
    errors: list[Diagnostic] = [finding for finding in findings if finding.is_error]
    if errors:
        raise ProjectError.from_diagnostics(errors)
    root = JobPart(doc, (), doc.data)
    dag = root.child("dag") if root.child("dag").value else root.child("workflow").child("dag")
    jobs = [job for job in dag.items() if isinstance(job.value, dict)]
    if not jobs:
        raise ProjectError("import-unreadable", f"'{file}' cannot be imported: it has no jobs under 'dag'", hint)
    return jobs


def job_spec(job: JobPart) -> JobPart:
    """Return the part of a job with inputs and steps; its grammar has two forms."""
    spec = job.child("spec")
    spec.child("stack")
    for path in (("flare", "job"), ("stackSpec", "job")):
        part = spec
        for key in path:
            part = part.child(key)
        if part.value is not None:
            return part
    return spec


def _paths(path: Keys, value: Any) -> Iterator[Keys]:
    yield path
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _paths((*path, str(key)), inner)
    elif isinstance(value, list):
        for number, inner in enumerate(value):
            yield from _paths((*path, number), inner)
