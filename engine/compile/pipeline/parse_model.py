"""The first half of a model's compilation: header, Jinja and SQL, which need no other model."""

from __future__ import annotations

from dataclasses import dataclass

from engine.compile.config.model_config import ModelConfig, model_config
from engine.compile.config.window_config import Window, read_windows
from engine.compile.declarations.compile_context import CompileContext
from engine.compile.nodes.model_interface import ModelInterface
from engine.compile.output.change_rows import merges_like
from engine.compile.output.output_mode import why_rows_change
from engine.compile.sql.parse import ParsedQuery, parse
from engine.errors import Diagnostic, Location, ProjectError
from engine.jinja import Rendered
from engine.project import ModelFile, ModelText, open_model
from engine.relations import Relation


@dataclass(frozen=True, slots=True)
class Read:
    """A model read: `certain` if its settings could be; `rendered` and `query` are None if that failed.

    `env` names the environment variables it asked for; `repeatable`: reading it again would give the same.
    """

    file: ModelFile
    config: ModelConfig
    rendered: Rendered | None
    query: ParsedQuery | None
    relation: Relation
    certain: bool
    windows: tuple[Window, ...]
    problems: tuple[Diagnostic, ...]
    env: frozenset[str]
    repeatable: bool

    @property
    def face(self) -> ModelInterface:
        """What the others must know of it."""
        config, query = self.config, self.query
        selected = query.tree.named_selects if query is not None else ()  # type: ignore[attr-defined]
        return ModelInterface(
            name=self.file.name,
            file=self.file.file,
            relation=self.relation,
            kind=config.materialized if self.certain else None,
            enabled=config.enabled,
            rewritten=why_rows_change(config.materialized, config.write) if self.certain else "",
            selects=tuple(name.lower() for name in selected if name and name != "*"),
            reads=_reads(query),
            place=config.alias_place,
            renamed_from=config.operation.renamed_from,
            merges_like=merges_like(config) if self.certain else "",
        )

    def place_of(self, name: str) -> Location:
        if self.query is not None and self.rendered is not None:
            for reference in self.query.references:
                if reference.kind == "ref" and reference.name == name:
                    return self.rendered.location(reference.start)
        return Location(self.file.file)


def read_model(source: ModelText, shared: CompileContext) -> Read:
    """Read one model; what is wrong with it is in its `problems`."""
    problems: list[Diagnostic] = []
    model = open_model(source, problems)
    names = shared.names
    names.begin()
    rendered = _render(model, shared, problems, run_values=True)
    certain = not model.broken and (rendered is not None or "config" not in model.sql)
    config = model_config(shared.project, model, names.calls, shared.values, problems, certain=certain)
    repeatable = names.repeatable and model.stable
    if names.varied and (config.streams or not config.materialized.traits.recomputed):
        rendered = _render(model, shared, problems, run_values=False)
    readable = rendered is not None and config.enabled and not (model.broken and not model.sql.strip())
    query = parse(rendered, model.name, problems) if rendered is not None and readable else None
    schema = f"{shared.target.schema}_{config.schema}" if config.schema else shared.target.schema
    relation = Relation(shared.target.catalog.name, schema, config.alias or model.name)
    windows = read_windows(config.windows, model.name, problems)
    env = frozenset(names.used_env)
    return Read(model, config, rendered, query, relation, certain, windows, tuple(problems), env, repeatable)


def _render(
    model: ModelFile, shared: CompileContext, problems: list[Diagnostic], *, run_values: bool
) -> Rendered | None:
    """The query's text, with or without values of this run allowed in it; None if there is none."""
    shared.names.run_values = run_values
    try:
        return shared.sandbox.render(model.sql, model.file)
    except ProjectError as error:
        problems += [d.at(None, model.name) for d in error.diagnostics]
        return None
    finally:
        shared.names.run_values = False


def _reads(query: ParsedQuery | None) -> tuple[str, ...]:
    kinds = {"ref": "model", "source": "source"}
    nodes = (f"{kinds[r.kind]}.{r.name}" for r in (query.references if query else ()) if r.kind in kinds)
    return tuple(dict.fromkeys(nodes))
