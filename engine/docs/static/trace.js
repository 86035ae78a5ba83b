"use strict";

/* Column lineage over the whole project, as the command `engine lineage` shows it. A spot is [node, column]. */
(() => {
  const STAR = "*";
  const keyOf = ([node, column]) => `${node} ${column}`;

  function touches([node, column], [other, theirs]) {
    if (node !== other) return false;
    const [mine, its] = [column.toLowerCase(), theirs.toLowerCase()];
    return mine === its || mine.startsWith(`${its}.`) || its.startsWith(`${mine}.`);
  }

  class Columns {
    constructor(records, graph, nodes) {
      Object.assign(this, { records, graph, nodes });
      this.known = new Map();
    }

    of(node) {
      if (!this.known.has(node)) {
        const columns = this.records[node].columns;
        this.known.set(node, new Map(columns.map((column) => [column[0].toLowerCase(), column])));
      }
      return this.known.get(node);
    }

    /* The column that a spot is, or is a field of: [name, type, sql, origins]. */
    find([node, column]) {
      const known = this.of(node);
      let path = column.toLowerCase();
      while (!known.has(path) && path.includes(".")) path = path.slice(0, path.lastIndexOf("."));
      return known.get(path);
    }
  }

  /* Where a column comes from: {spot, type, sql, origins} step by step, and row-level lineage on the way. */
  function trace(columns, start) {
    const steps = new Map();
    const waiting = [start];
    for (let spot = waiting.shift(); spot; spot = waiting.shift()) {
      if (steps.has(keyOf(spot))) continue;
      const column = columns.find(spot);
      const origins = column ? distinct(column[3]) : [];
      steps.set(keyOf(spot), { spot, type: column ? typeOf(column, spot) : "", sql: column ? column[2] : "", origins });
      waiting.push(...origins);
    }
    const found = [...steps.values()];
    const models = new Set(found.map((step) => step.spot[0]));
    const deciders = [...models].flatMap((model) =>
      columns.records[model].indirect.map(([node, column, kind]) => ({ model, spot: [node, column], kind })),
    );
    return { steps: found, deciders };
  }

  /* The type of a column, or of a field of it. */
  function typeOf([name, type, , , fields = []], [, path]) {
    if (name.toLowerCase() === path.toLowerCase()) return type;
    const found = fields.find(([field]) => field.toLowerCase() === path.toLowerCase());
    return found ? found[1] : "";
  }

  function distinct(spots) {
    return [...new Map(spots.map((spot) => [keyOf(spot), spot])).values()];
  }

  /* What goes with a column: see engine/docs/site/column_trace.py for the meaning of each part. */
  function impact(columns, start) {
    const values = closure(columns, start, false);
    const rows = new Map();
    for (const spot of [start, ...values]) {
      for (const d of decided(columns, spot)) rows.set(`${d.model} ${keyOf(d.spot)} ${d.kind}`, d);
    }
    const gone = closure(columns, start, true);
    const breaks = new Set([start, ...gone].flatMap((spot) => naming(columns, spot)));
    const below = [...headrace.walk(breaks, columns.graph.down, columns.nodes.length)].filter((n) => !breaks.has(n));
    const isExposure = (number) => columns.nodes[number].kind === "exposure";
    const stops = below.filter((number) => !isExposure(number));
    const tables = new Set([
      start[0],
      ...values.map((spot) => spot[0]),
      ...[...rows.values()].map((decider) => decider.model),
      ...breaks,
      ...stops,
    ]);
    const readers = [...tables].flatMap((number) => columns.graph.down[number].filter(isExposure));
    return {
      values,
      rows: [...rows.values()],
      gone,
      breaks: [...breaks],
      stops,
      tests: tests(columns, [start, ...gone], breaks, stops),
      exposures: [...new Set(readers)].sort((a, b) => a - b),
    };
  }

  function closure(columns, start, starsOnly) {
    const found = new Map();
    const waiting = [start];
    for (let spot = waiting.shift(); spot; spot = waiting.shift()) {
      for (const { spot: made, sql } of computed(columns, spot)) {
        const key = keyOf(made);
        if (found.has(key) || key === keyOf(start) || (starsOnly && sql !== STAR)) continue;
        found.set(key, made);
        waiting.push(made);
      }
    }
    return [...found.values()];
  }

  function computed(columns, spot) {
    return columns.graph.down[spot[0]].flatMap((model) =>
      columns.records[model].columns
        .filter(([, , , origins]) => origins.some((origin) => touches(spot, origin)))
        .map(([name, , sql]) => ({ spot: [model, name], sql })),
    );
  }

  function decided(columns, spot) {
    return columns.graph.down[spot[0]].flatMap((model) =>
      columns.records[model].indirect
        .filter(([node, column]) => touches(spot, [node, column]))
        .map(([node, column, kind]) => ({ model, spot: [node, column], kind })),
    );
  }

  function naming(columns, spot) {
    const named = computed(columns, spot).filter(({ sql }) => sql !== STAR);
    return [...named.map((made) => made.spot[0]), ...decided(columns, spot).map((decider) => decider.model)];
  }

  function tests(columns, gone, breaks, stops) {
    const lost = new Set(gone.map(([node, column]) => keyOf([node, column.toLowerCase()])));
    const stopped = new Set([...breaks, ...stops]);
    const found = columns.records.flatMap((record, node) =>
      record.tests.filter(
        ([, column]) => stopped.has(node) || (column && lost.has(keyOf([node, column.toLowerCase()]))),
      ),
    );
    // A unit test is listed with each column that it names; its name is its model's own.
    return [...new Map(found.map(([name, , model]) => [`${model} ${name}`, name])).values()];
  }

  /* The columns of the project, loaded when they are first asked for. */
  let columns;
  async function columnsOf(index, graph) {
    const records = await headrace.need("lineage");
    columns = columns || new Columns(records, graph, index.nodes);
    return columns;
  }

  Object.assign(headrace, { trace, impact, columnsOf, typeOf });
})();
