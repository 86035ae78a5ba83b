"use strict";

/* The page of a column: its path to the sources with the expression at each step, and what goes with it. */
(() => {
  const { h, icon, badge, section, nodeLink, plural } = headrace;

  const nameOf = (index, [node, column]) => `${index.nodes[node].name}.${column}`;
  const link = (index, spot) =>
    h(
      "a",
      { class: "origin", href: headrace.hrefOfColumn(index.nodes[spot[0]], spot[1]) },
      headrace.dotted(nameOf(index, spot)),
    );

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
      section(
        "Path",
        headrace.columnPath(site, columns, start, trace, impact),
        h("p", { class: "ways" }, h("a", { href: `#/graph?focus=${encodeURIComponent(node.id)}&column=${encodeURIComponent(name)}` }, "Show in the graph")),
      ),
      section("Step by step", steps(index, trace)),
      section("Row-level lineage (filters, joins, group by)", deciders(index, trace)),
      section("Impact of removing this column", loss(index, start, impact)),
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

  /* In the direction of the path: from the sources to the column. */
  function steps(index, { steps: found }) {
    const depth = headrace.depthOf(index);
    return h(
      "ol",
      { class: "steps" },
      [...found].reverse().sort((a, b) => depth[a.spot[0]] - depth[b.spot[0]]).map(({ spot, type, sql, origins }) => {
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

  function loss(index, start, { values, rows, gone, breaks, stops, tests, exposures }) {
    if (!values.length && !rows.length && !tests.length && !exposures.length) return h("p", { class: "notice good" }, "Nothing reads it.");
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
        "Stop as a consequence",
        "They read a table that is no longer built.",
        stops.map((number_) => nodeLink(index.nodes[number_])),
      ),
      part(
        "Columns removed with it",
        "A star hands it on.",
        gone.map((spot) => link(index, spot)),
      ),
      part(
        "Values computed from it",
        "",
        values.map((spot) => link(index, spot)),
      ),
      part(
        "Row-level (indirect) lineage",
        "Directly, or through a column computed from it.",
        rows.map((d) => [nodeLink(index.nodes[d.model]), " ", badge(d.kind, "kind"), " ", link(index, d.spot)]),
      ),
      part(
        "Tests",
        "",
        tests.map((name) => h("code", {}, name)),
      ),
      part(
        "Exposures",
        "They read these tables.",
        exposures.map((number_) => nodeLink(index.nodes[number_])),
      ),
    ];
  }

  Object.assign(headrace, { columnPage });
})();
