"use strict";

/* Columns in the graph: a box opens to its columns, and the path of one lights up across the whole graph. */
(() => {
  const { s, BOX, cutText } = headrace;
  const ROW = 21;
  const MOST = 14;
  const FONT = "12px system-ui, sans-serif";
  const keyOf = ([node, column]) => `${node} ${column.toLowerCase()}`;

  class Lists {
    heightOf(id) {
      const rows = this.rowsOf(id);
      return BOX.height + (rows.length ? rows.length * ROW + 8 : 0);
    }

    /* The columns that a box shows: those on the path that is lit, else all of a box that is open. */
    rowsOf(id) {
      if (typeof id !== "number" || !this.columns) return [];
      const path = this.path && this.path.rows.get(id);
      if (!this.opened.has(id)) return path || [];
      const all = this.columns.records[id].columns.map(([column, type, sql]) => ({ column, type, sql }));
      const lit = new Set((path || []).map(({ column }) => column.toLowerCase()));
      const rest = all.filter(({ column }) => !lit.has(column.toLowerCase()));
      const shown = [...(path || []), ...rest].slice(0, Math.max(MOST, lit.size));
      const left = all.length - shown.length;
      return left > 0 ? [...shown, { more: left }] : shown;
    }

    heightsChanged() {
      for (const [id, [, , tall]] of this.layout.places) if (this.heightOf(id) !== tall) return true;
      return false;
    }

    /* Open a box to its columns, or shut it. */
    async open(number) {
      if (typeof number !== "number" || !this.index.nodes[number].columns) return;
      this.columns = await headrace.columnsOf(this.index, this.edges);
      if (!this.opened.delete(number)) this.opened.add(number);
      this.redraw(number);
      if (this.options.onFocus) this.options.onFocus(this.focus, this.near);
    }

    /* Put the path of a column into the light: where its values come from and go to, and the columns that decide on its rows. */
    async lightColumn(start) {
      this.columns = await headrace.columnsOf(this.index, this.edges);
      if (!this.columns.find(start)) return;
      const anchor = this.layout.places.has(start[0]) ? start[0] : null;
      this.path = pathOf(this.columns, start);
      this.focus = start[0];
      this.near = new Set([...this.path.rows.keys(), ...this.path.deciders.map(({ model }) => model)].filter((n) => !this.chosen || this.chosen.has(n)));
      for (const number of this.near) this.groups.loose.add(number);
      this.redraw(anchor);
      this.lit();
    }

    /* The rows of a box, drawn over it. */
    listOf(id) {
      if (!this.lists.has(id)) this.lists.set(id, this.list(id));
      return this.lists.get(id);
    }

    list(id) {
      const [x, y, tall] = this.layout.places.get(id);
      const node = this.index.nodes[id];
      return s(
        "g",
        { class: `list${this.isLit(id) ? " lit" : ""}`, transform: `translate(${x} ${y - tall / 2 + BOX.height})` },
        this.rowsOf(id).map((row, i) => (row.more ? this.rest(row.more, i, node) : this.row(id, node, row, i))),
      );
    }

    row(id, node, { column, type, sql, how }, i) {
      const spot = [id, column];
      const start = this.path && keyOf(this.path.start) === keyOf(spot);
      const made = sql && sql !== "*" && sql !== column ? ` = ${sql}` : "";
      const text = how ? `${column} (${how.join(", ")})` : column;
      return s(
        "a",
        {
          class: `row${start ? " start" : ""}${how ? " decides" : ""}`,
          href: headrace.hrefOfColumn(node, column),
          transform: `translate(0 ${i * ROW})`,
          "aria-label": `${node.name}.${column}${type ? `, ${type}` : ""}${made}`,
          onclick: (event) => {
            event.stopPropagation();
            if (event.ctrlKey || event.metaKey || event.shiftKey || start) return;
            event.preventDefault();
            this.lightColumn(spot);
          },
        },
        s("title", {}, `${column}${type ? `: ${type}` : ""}${made}`),
        s("rect", { x: 1, width: BOX.width - 2, height: ROW }),
        s("text", { x: 14, y: 15 }, cutText(text, FONT, BOX.width - 28)),
      );
    }

    rest(more, i, node) {
      return s(
        "a",
        { class: "row", href: headrace.hrefOf(node), transform: `translate(0 ${i * ROW})` },
        s("rect", { x: 1, width: BOX.width - 2, height: ROW }),
        s("text", { x: 14, y: 15 }, `${headrace.plural(more, "more column")} on the page`),
      );
    }

    /* Where a column is drawn: the middle of its row, or of its box. */
    heightOfColumn([node, column]) {
      const [, y, tall] = this.layout.places.get(node);
      const lower = column.toLowerCase();
      const place = this.rowsOf(node).findIndex((row) => {
        const theirs = row.column && row.column.toLowerCase();
        return theirs && (theirs === lower || theirs.startsWith(`${lower}.`) || lower.startsWith(`${theirs}.`));
      });
      return y - tall / 2 + (place < 0 ? BOX.height / 2 : BOX.height + place * ROW + ROW / 2);
    }

    /* The links between the columns of the path that is lit. */
    flows() {
      if (!this.path) return [];
      const { places } = this.layout;
      const drawn = ({ from, to, kind, text }) => {
        if (!places.has(from[0]) || !places.has(to[0])) return null;
        const start = [places.get(from[0])[0], this.heightOfColumn(from)];
        const end = [places.get(to[0])[0], kind === "value" ? this.heightOfColumn(to) : this.heightOfColumn([to[0], ""])];
        const line = this.lines.find((one) => one.from === from[0] && one.to === to[0]);
        const points = line ? [start, ...line.points.slice(1, -1), [...end, line.points[line.points.length - 1][2]]] : [start, end];
        return s("path", { class: `flowing ${kind}`, d: headrace.route({ points }) }, s("title", {}, text));
      };
      return this.path.edges.map(drawn).filter(Boolean);
    }
  }

  /* The columns of each node on the path of a column, and what leads from one to another. */
  function pathOf(columns, start) {
    const trace = headrace.trace(columns, start);
    const impact = headrace.impact(columns, start);
    const rows = new Map();
    const name = ([node, column]) => `${columns.nodes[node].name}.${column}`;
    const add = (spot, more) => {
      const [node, column] = spot;
      if (!rows.has(node)) rows.set(node, []);
      const same = rows.get(node).find((row) => row.column.toLowerCase() === column.toLowerCase());
      if (!same) rows.get(node).push({ column, ...more });
      else if (more.how && same.how) same.how.push(...more.how.filter((kind) => !same.how.includes(kind)));
    };
    const values = trace.steps.map(({ spot, type, sql, origins }) => ({ spot, type, sql, origins }));
    for (const spot of impact.values) {
      const [, type, sql, origins] = columns.find(spot);
      values.push({ spot, type, sql, origins });
    }
    for (const { spot, type, sql } of values) add(spot, { type, sql });
    const near = ([node, column]) => {
      const lower = column.toLowerCase();
      const row = (rows.get(node) || []).find(({ column: other, how }) => !how && within(other.toLowerCase(), lower));
      return row && [node, row.column];
    };
    const edges = values.flatMap(({ spot, sql, origins }) =>
      origins
        .map((origin) => near(origin))
        .filter(Boolean)
        .map((from) => ({ from, to: spot, kind: "value", text: `${name(spot)} = ${sql === "*" ? from[1] : sql}` })),
    );
    const deciders = [...trace.deciders, ...impact.rows];
    for (const { spot, kind } of deciders) if (!near(spot)) add(spot, { how: [kind] });
    for (const { model, spot, kind } of deciders)
      edges.push({ from: spot, to: [model, ""], kind: "rows", text: `${name(spot)} decides on the rows of ${columns.nodes[model].name} (${kind})` });
    return { start, rows, edges, deciders, trace };
  }

  const within = (a, b) => a === b || a.startsWith(`${b}.`) || b.startsWith(`${a}.`);

  headrace.extendGraph(Lists);
})();
