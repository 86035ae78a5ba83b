"use strict";

/* The page of a column: its path to the sources with the expression at each step, and what goes with it. */
(() => {
  const { h, s, icon, badge, section, nodeLink, plural } = headrace;

  const nameOf = (index, [node, column]) => `${index.nodes[node].name}.${column}`;
  const link = (index, spot) =>
    h(
      "a",
      { class: "origin", href: headrace.hrefOfColumn(index.nodes[spot[0]], spot[1]) },
      headrace.dotted(nameOf(index, spot)),
    );
  const keyOf = ([node, column]) => `${node} ${column}`;

  async function columnPage(site, number_, name) {
    const { index, graph } = site;
    const columns = await headrace.columnsOf(index, graph);
    const start = [number_, name];
    const column = columns.find(start);
    if (!column) return null;
    const trace = headrace.trace(columns, start);
    const impact = headrace.impact(columns, start);
    const node = index.nodes[number_];
    const more = await headrace.needNode(number_);
    const own = described(more.columns || [], column[0], name);
    const page = h(
      "div",
      { class: "page column" },
      h(
        "header",
        { class: "title" },
        h("p", { class: "crumbs" }, "Column of ", h("a", { href: headrace.hrefOf(node) }, h("bdi", {}, node.name))),
        h(
          "h1",
          {},
          icon(node.kind),
          h("bdi", {}, name),
          headrace.typeOf(column, start) ? h("code", { class: "type" }, headrace.typeOf(column, start)) : null,
        ),
        own && own.description ? headrace.prose(own.description) : null,
        own ? h("p", {}, headrace.metas(own)) : null,
      ),
      section("Path", path(site, columns, start, trace, impact)),
      section("Step by step", steps(index, trace)),
      section("What decides on the rows", deciders(index, trace)),
      section("If this column goes", loss(index, start, impact)),
    );
    return { title: `${node.name}.${name}`, page };
  }

  /* What the project says of a column, or of a field of it. */
  function described(columns, column, name) {
    const own = columns.find((item) => item.name === column);
    if (!own || name === column) return own;
    const field = (own.fields || []).find(([path]) => path.toLowerCase() === name.toLowerCase());
    return field ? { description: field[2] } : null;
  }

  /* The path drawn, with what decides on rows if that is wanted: at first only where no value leads anywhere. */
  function path(site, columns, start, trace, impact) {
    const bare = trace.steps.length === 1 && trace.deciders.length > 0;
    const holder = h("div", {}, flow(site, columns, start, trace, impact, bare));
    if (!trace.deciders.length) return holder;
    const box = h("input", {
      type: "checkbox",
      checked: bare,
      onchange: () => holder.replaceChildren(flow(site, columns, start, trace, impact, box.checked)),
    });
    return [h("label", { class: "toggle" }, box, "also what decides on its rows (dashed)"), holder];
  }

  /* Cards of the nodes on the way, sources left, with lines between their columns. */
  function flow({ index }, columns, start, trace, impact, withRows) {
    const spots = new Map(trace.steps.map(({ spot, sql, origins }) => [keyOf(spot), { spot, sql, origins }]));
    for (const spot of impact.values) {
      const column = columns.find(spot);
      if (!spots.has(keyOf(spot))) spots.set(keyOf(spot), { spot, sql: column[2], origins: column[3] });
    }
    const others = withRows ? trace.deciders : [];
    for (const { spot, kind } of others) {
      if (!spots.has(keyOf(spot))) spots.set(keyOf(spot), { spot, sql: "", origins: [], how: [] });
      const { how } = spots.get(keyOf(spot));
      if (how && !how.includes(kind)) how.push(kind);
    }
    const rows = new Map();
    const stops = new Map();
    for (const item of spots.values()) {
      const current = keyOf(item.spot) === keyOf(start);
      const row = h(
        "li",
        { class: current ? "current" : null },
        h(
          "a",
          {
            href: headrace.hrefOfColumn(index.nodes[item.spot[0]], item.spot[1]),
            "aria-current": current ? "true" : null,
          },
          h("bdi", {}, item.spot[1]),
        ),
        item.sql && item.sql !== "*" && item.sql !== item.spot[1] ? h("code", {}, item.sql) : null,
        item.how ? h("span", { class: "how" }, `${item.how.join(", ")}: decides on rows`) : null,
      );
      rows.set(keyOf(item.spot), row);
      if (!stops.has(item.spot[0])) stops.set(item.spot[0], stop(index.nodes[item.spot[0]]));
      stops.get(item.spot[0]).querySelector("ul").append(row);
    }
    const lines = s("svg", { class: "lines", "aria-hidden": "true" });
    const frame = h("div", { class: "flow" }, lines, lanes(index, stops));
    const values = [...spots.values()].flatMap(({ spot, origins }) =>
      origins.map((origin) => [nearest(rows, origin), rows.get(keyOf(spot)), "value"]),
    );
    const dashed = others.map(({ model, spot }) => [
      rows.get(keyOf(spot)),
      stops.get(model).querySelector("p"),
      "rows",
    ]);
    const pairs = [...values, ...dashed].filter(([from]) => from);
    new ResizeObserver(() => connect(frame, lines, pairs)).observe(frame);
    return h(
      "div",
      { class: "scroll flow-frame", role: "region", "aria-label": "Path of the column", tabindex: "0" },
      frame,
    );
  }

  const stop = (node) =>
    h(
      "div",
      { class: `stop ${node.kind}` },
      h("p", {}, icon(node.kind), h("a", { href: headrace.hrefOf(node) }, h("bdi", {}, node.name))),
      h("ul", {}),
    );

  /* The cards in columns, as the graph would place their nodes. */
  function lanes(index, stops) {
    const places = headrace.part(index, new Set(stops.keys())).places;
    const found = new Map();
    for (const [node, element] of stops) {
      const [x, y] = places.get(node);
      if (!found.has(x)) found.set(x, []);
      found.get(x).push([y, element]);
    }
    return [...found.keys()]
      .sort((a, b) => a - b)
      .map((x) =>
        h(
          "div",
          { class: "lane" },
          found
            .get(x)
            .sort((a, b) => a[0] - b[0])
            .map(([, element]) => element),
        ),
      );
  }

  /* The row of a column, or of the struct or field it belongs to. */
  function nearest(rows, [node, column]) {
    const exact = rows.get(keyOf([node, column]));
    if (exact) return exact;
    const lower = column.toLowerCase();
    for (const [key, row] of rows) {
      const [other, theirs] = [key.slice(0, key.indexOf(" ")), key.slice(key.indexOf(" ") + 1).toLowerCase()];
      if (
        other === String(node) &&
        (theirs === lower || theirs.startsWith(`${lower}.`) || lower.startsWith(`${theirs}.`))
      )
        return row;
    }
    return null;
  }

  function connect(frame, lines, pairs) {
    const base = frame.getBoundingClientRect();
    lines.setAttribute("width", frame.scrollWidth);
    lines.setAttribute("height", frame.scrollHeight);
    lines.replaceChildren(
      ...pairs.map(([from, to, kind]) => {
        const [a, b] = [from.getBoundingClientRect(), to.getBoundingClientRect()];
        const [x0, y0, x1, y1] = [
          a.right - base.left,
          a.top + a.height / 2 - base.top,
          b.left - base.left,
          b.top + b.height / 2 - base.top,
        ];
        const middle = (x0 + x1) / 2;
        const lit = from.classList.contains("current") || to.classList.contains("current") ? "lit" : "";
        return s("path", {
          class: `link ${kind} ${lit}`,
          d: `M${x0} ${y0}C${middle} ${y0} ${middle} ${y1} ${x1} ${y1}`,
        });
      }),
    );
  }

  function steps(index, { steps: found }) {
    return h(
      "ol",
      { class: "steps" },
      found.map(({ spot, type, sql, origins }) => {
        const kind = index.nodes[spot[0]].kind;
        const made =
          kind === "source"
            ? h("span", { class: "under" }, "a column of the source")
            : [
                h("code", { class: "expression" }, sql || "unknown"),
                origins.length
                  ? h(
                      "p",
                      {},
                      h("span", { class: "under" }, "from"),
                      " ",
                      origins.map((origin, i) => [i ? ", " : "", link(index, origin)]),
                    )
                  : h("span", { class: "under" }, "from no column's values"),
              ];
        return h("li", {}, link(index, spot), type ? h("code", { class: "type" }, type) : null, h("div", {}, made));
      }),
    );
  }

  function deciders(index, { deciders: found }) {
    if (!found.length) return h("p", { class: "note" }, "Nothing is filtered, joined or grouped on the way.");
    const models = [...new Set(found.map((decider) => decider.model))];
    return h(
      "dl",
      { class: "words" },
      models.map((model) =>
        h(
          "div",
          {},
          h("dt", {}, nodeLink(index.nodes[model])),
          h(
            "dd",
            {},
            h(
              "ul",
              { class: "plain" },
              found
                .filter((d) => d.model === model)
                .map((d) => h("li", {}, badge(d.kind, "kind"), " ", link(index, d.spot))),
            ),
          ),
        ),
      ),
    );
  }

  function loss(index, start, { values, rows, gone, breaks, stops, tests }) {
    if (!values.length && !rows.length && !tests.length) return h("p", { class: "notice good" }, "Nothing reads it.");
    const part = (title, note, items) =>
      items.length
        ? h(
            "div",
            {},
            h("h3", {}, `${title} (${items.length})`),
            note ? h("p", { class: "note" }, note) : null,
            h(
              "ul",
              { class: "plain many" },
              items.map((item) => h("li", {}, item)),
            ),
          )
        : null;
    return [
      h(
        "p",
        { class: `notice ${breaks.length ? "bad" : "warn"}` },
        `${plural(breaks.length, "model")} would no longer compile, ${plural(stops.length, "model")} below would stop with ${breaks.length === 1 ? "it" : "them"}, ${plural(tests.length, "test")} would not run.`,
      ),
      part(
        "No longer compile",
        "They name it, or a column that goes with it.",
        breaks.map((number_) => nodeLink(index.nodes[number_])),
      ),
      part(
        "Stop with them",
        "They read a table that is no longer built.",
        stops.map((number_) => nodeLink(index.nodes[number_])),
      ),
      part(
        "Columns that go with it",
        "A star hands it on.",
        gone.map((spot) => link(index, spot)),
      ),
      part(
        "Values computed from it",
        "",
        values.map((spot) => link(index, spot)),
      ),
      part(
        "Rows it decides on",
        "Directly, or through a column computed from it.",
        rows.map((d) => [nodeLink(index.nodes[d.model]), " ", badge(d.kind, "kind"), " ", link(index, d.spot)]),
      ),
      part(
        "Tests",
        "",
        tests.map((name) => h("code", {}, name)),
      ),
    ];
  }

  Object.assign(headrace, { columnPage });
})();
