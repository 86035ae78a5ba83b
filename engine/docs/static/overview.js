"use strict";

/* The first page: the project at a glance, and how every stream and table is doing. */
(() => {
  const { h, number, plural, bytes, time, nodeLink, tile, table, cell, amount, section } = headrace;

  /* How models and tests ended, as one says it. */
  const ENDED = { success: "built", pass: "passed", fail: "failed", error: "failed", warn: "warned" };

  function tiles(index) {
    const models = index.nodes.filter((node) => headrace.kindOf(node) === "model");
    const of = (kind) => index.nodes.filter((node) => node.kind === kind).length;
    const streams = models.filter((node) => node.kind === "stream");
    const weak = streams.filter((node) => node.guarantee === "no guarantee").length;
    const errors = index.problems.filter((found) => found.level === "error").length;
    const warnings = index.problems.length - errors;
    const run = index.run;
    const counted = (pairs = [], what) =>
      pairs
        .map(([status, many], i) => `${i ? number(many) : plural(many, what)} ${ENDED[status] || status}`)
        .join(", ");
    const failed =
      run && [...(run.models || []), ...(run.tests || [])].some(([status]) => ["error", "fail"].includes(status));
    return h(
      "dl",
      { class: "tiles" },
      tile(
        "Models",
        number(models.length),
        [
          plural(of("source"), "source"),
          plural(index.tests, "test"),
          index.unit_tests ? plural(index.unit_tests, "unit test") : "",
          of("exposure") ? plural(of("exposure"), "exposure") : "",
        ]
          .filter(Boolean)
          .join(", "),
      ),
      tile(
        "Streams",
        number(streams.length),
        streams.length ? (weak ? `${number(weak)} without a guarantee` : "all exactly once") : "",
        weak ? "warn" : "",
      ),
      index.live ? headrace.nowTile(models) : null,
      index.live
        ? null
        : run
        ? tile(
            "Last run",
            run.at ? time(run.at, { relative: true }) : "there was one",
            [counted(run.models, "model"), counted(run.tests, "test")].filter(Boolean).join("; "),
            failed ? "bad" : "good",
          )
        : tile("Last run", "none yet", "engine build"),
      tile(
        "Problems",
        number(index.problems.length),
        [errors && plural(errors, "error"), warnings && plural(warnings, "warning")].filter(Boolean).join(", ") ||
          "none found",
        errors ? "bad" : index.problems.length ? "warn" : "",
      ),
    );
  }

  /* The numbers of a stream: while engine start runs since it began, else of the last run. */
  function numbersOf({ live, run = {}, table: stored = {}, watermark }) {
    if (!live)
      return { ...run, at: stored.at || run.at, watermark, quarantined: run.quarantined === undefined ? stored.quarantined : run.quarantined };
    return {
      ...live,
      at: live.last_commit ? live.last_commit * 1000 : stored.at,
      watermark: live.watermark ? Date.parse(live.watermark) : watermark,
      counted: headrace.badCounts(live),
    };
  }

  function streamRow(node) {
    const run = numbersOf(node);
    const stored = node.table || {};
    return h(
      "tr",
      { "data-key": node.id },
      h(
        "th",
        { scope: "row" },
        nodeLink(node),
        h("span", { class: "under" }, node.summary),
        (run.counted || []).map(([what, name, rows]) =>
          h("span", { class: "under counted" }, `${what} `, h("bdi", {}, name), `: ${plural(rows, "row")}`),
        ),
      ),
      cell("Last batch", time(run.at, { relative: true })),
      cell("Watermark (UTC)", lag(run.watermark, node.run)),
      amount("Rows in", run.rows_in),
      amount("Rows out", run.rows_out),
      amount("Late", run.late),
      amount("Quarantined", run.quarantined),
      cell(
        "Rows by commit",
        stored.added && stored.added.length ? headrace.spark("Rows written by the last commits", stored.added) : "–",
      ),
    );
  }

  /* The watermark, and how far it was behind the clock when the run ended. */
  function lag(watermark, run) {
    if (!watermark) return "–";
    return [time(watermark, { brief: true }), h("span", { class: "under" }, headrace.behind(watermark, run))];
  }

  const behind = (watermark, run) => {
    const at = (run && run.at) || Date.now();
    return at >= watermark ? `${headrace.span(at - watermark)} behind real time` : "ahead of real time";
  };

  function tableRow(node) {
    const stored = node.table || {};
    return h(
      "tr",
      { "data-key": node.id },
      h("th", { scope: "row" }, nodeLink(node), h("span", { class: "under" }, node.about || node.what)),
      cell("Kind", node.what),
      cell("Last written", time(stored.at, { relative: true })),
      amount("Rows", stored.rows),
      h("td", { "data-head": "Size", class: "amount" }, stored.bytes === undefined ? "–" : bytes(stored.bytes)),
      cell(
        "Rows by commit",
        stored.added && stored.added.length ? headrace.spark("Rows written by the last commits", stored.added) : "–",
      ),
    );
  }

  /* Sources; how fresh they are where that is known. */
  function sources(nodes) {
    const dated = nodes.some((node) => node.newest);
    const row = (node) =>
      h(
        "tr",
        {},
        h("th", { scope: "row" }, nodeLink(node), h("span", { class: "under" }, node.about || "")),
        cell("Where", h("bdi", {}, node.summary)),
        dated ? cell("Newest record", node.newest ? time(node.newest, { relative: true }) : "–") : null,
      );
    return listed("Sources", nodes, row, [["Source"], ["Where"], dated && ["Newest record"]].filter(Boolean));
  }

  const LISTED = 200;

  function listed(title, nodes, row, heads, note, style = "cards") {
    if (!nodes.length) return null;
    const rest = nodes.length - LISTED;
    return section(
      title,
      note ? h("p", { class: "note above" }, note) : null,
      table(title, heads, nodes.slice(0, LISTED).map(row), style),
      rest > 0 ? h("p", { class: "note" }, `and ${number(rest)} more; search, or look at the list beside`) : null,
    );
  }

  function overview(site) {
    const { index } = site;
    const of = (...kinds) => index.nodes.filter((node) => kinds.includes(node.kind));
    const graph = new headrace.Graph(index, { tall: index.nodes.length > 40 });
    headrace.shown = graph;
    const parts = [
      () => tiles(index),
      () => (index.problems.length ? section("Problems", headrace.problems(index)) : null),
      () => [streams(index, of("stream")), tables(of("table", "view")), sources(of("source"))],
    ].map(headrace.block);
    const [glance, found, lists] = parts.map((part) => part.element);
    const page = h(
      "div",
      { class: "page overview" },
      h(
        "header",
        { class: "title" },
        h("h1", {}, h("bdi", {}, index.project)),
        h(
          "p",
          { class: "lead" },
          index.version ? `version ${index.version} · ` : "",
          "target ",
          h("b", {}, index.target),
          index.live ? ", kept up to date by engine start" : [" · as of ", time(index.at)],
        ),
      ),
      glance,
      found,
      h(
        "section",
        { class: "wide" },
        h("h2", {}, "Lineage", h("a", { class: "more", href: "#/graph" }, "Open the graph")),
        index.nodes.length
          ? h("div", { class: "frame" }, graph.element, headrace.controls(graph))
          : h("p", { class: "note" }, "The project has no sources and no models."),
        index.nodes.length ? headrace.legend(index) : null,
      ),
      lists,
    );
    return { title: index.project, page, update: () => parts.forEach((part) => part.update()) };
  }

  const streams = (index, nodes) =>
    listed(
      "Streams",
      nodes,
      streamRow,
      [
        ["Stream"],
        ["Last batch"],
        ["Watermark (UTC)"],
        ["Rows in", "amount"],
        ["Rows out", "amount"],
        ["Late", "amount"],
        ["Quarantined", "amount"],
        ["Rows by commit"],
      ],
      index.live
        ? "Rows in, out, late and in quarantine are those of all turns of engine start in this folder."
        : index.run
          ? "Rows in, out, late and in quarantine are those of the last run."
          : "",
      "cards wide-table",
    );

  const tables = (nodes) =>
    listed("Tables and views", nodes, tableRow, [
      ["Name"],
      ["Kind"],
      ["Last written"],
      ["Rows", "amount"],
      ["Size", "amount"],
      ["Rows by commit"],
    ]);

  Object.assign(headrace, { overview, behind });
})();
