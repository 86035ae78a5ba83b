"use strict";

/* What one model does, and what needs attention, in tiles, tables and words. */
(() => {
  const { h, number, span, badge, plural, tile } = headrace;
  const { nodes, rate, behind, unread, since } = headrace.live;

  const isModel = (node) => node.node.startsWith("model.");
  const models = () => [...nodes.values()].filter(isModel);
  const sum = (counts) => Object.values(counts).reduce((all, count) => all + count, 0);

  /* 2 idle, 1 running: models by their words. */
  function byWord(some) {
    const counts = new Map();
    for (const node of some) counts.set(node.word, (counts.get(node.word) || 0) + 1);
    return [...counts].sort((a, b) => b[1] - a[1]).map(([word, count]) => `${number(count)} ${word}`).join(", ");
  }

  const worst = (some) => (some.some((node) => node.tone === "bad") ? "bad" : some.some((node) => node.health !== "healthy") ? "warn" : "good");

  /* The tile of the overview that tells how the models of the site are doing. */
  function nowTile(shown) {
    const live = shown.map((node) => node.live).filter(Boolean);
    if (!live.length) return tile("Now", "–", "no model is kept running");
    const bad = live.filter((node) => node.tone === "bad").length;
    return tile("Now", bad ? `${number(bad)} failing` : "all well", byWord(live), worst(live));
  }

  const badCounts = (node) => [
    ...Object.entries(node.bad_records).map(([input, count]) => ["Bad records of", input, count]),
    ...Object.entries(node.failed_checks).map(([check, count]) => ["Failed expectation", check, count]),
  ];

  /* For example why records of an input could not be read; empty: no reason is known. */
  const badReason = (node, input) => (node.bad_reasons[input] ? `, for example: ${node.bad_reasons[input]}` : "");

  /* Why a model is in the list of what needs attention. */
  const whys = (node) => [...node.reasons, ...Object.entries(node.bad_reasons).map(([input, reason]) => `unreadable records of ${input}: ${reason}`)];

  function lagTile(node) {
    const late = behind(node);
    const unknown = node.lag.some((lag) => lag.count === null);
    const text = late.map(unread).join(", ") || (unknown ? "not known" : "none");
    const age = late.length && node.lag_seconds ? `the oldest for ${span(node.lag_seconds * 1000)}` : "";
    return tile("Unread", text, age, "");
  }

  function testsTile(node) {
    const tests = nodes.get(`tests.${node.node}`);
    if (!tests && !Object.keys(node.tests_failing).length) return null;
    const failing = Object.keys({ ...node.tests_failing, ...(tests ? tests.tests_failing : {}) }).length;
    const word = failing ? `${number(failing)} failing` : tests.health === "failed" ? "cannot be run" : tests.turns ? "passing" : "not run yet";
    return tile("Tests", word, tests ? tests.word : "", word === "passing" || word === "not run yet" ? "" : "bad");
  }

  /* What a model does, in tiles. */
  function liveTiles(node) {
    const at = node.watermark ? node.watermark.slice(0, 19).replace("T", " ") : "none";
    const age = node.watermark_age_seconds;
    const marks = [node.watermark && age > 0 ? `${span(age * 1000)} behind the clock` : "", node.watermark_held || "", node.note];
    const dropped = node.duplicates;
    return [
      tile("State", node.word, node.health === "healthy" ? node.reason : "", node.tone),
      lagTile(node),
      tile("Rows per second", rate(node.rows_per_second_1m), "read over the last minute"),
      tile("Rows read", number(node.rows_in), `${number(node.rows_out)} written`),
      tile("Last commit", since(node.last_commit)),
      node.kind === "streaming_table" ? tile("Watermark", at, marks.filter(Boolean).join("; ")) : null,
      node.late || node.watermark ? tile("Late", number(node.late), node.late === 1 ? "row behind the watermark" : "rows behind the watermark", node.late ? "warn" : "") : null,
      dropped ? tile("Duplicates", number(dropped), "dropped by dedup") : null,
      node.held.length || node.state_rows
        ? tile("Held in state", number(node.state_rows), [...new Set(node.held.map((held) => held.meaning))].join(", ") || "rows")
        : null,
      tile("Turns", number(node.turns), node.failed_turns ? `${number(node.failed_turns)} failed` : ""),
      testsTile(node),
    ];
  }

  const notices = (node) => node.reasons.map((reason) => h("p", { class: `notice ${node.tone}`, dir: "auto" }, reason));

  const hrefOf = (node) => `#/live/${encodeURIComponent(node.name)}`;

  /* The section of a model's page of the documentation. */
  const liveState = (node, more, charts, waits) =>
    headrace.section(
      "Status",
      notices(node),
      waits,
      h("dl", { class: "tiles" }, liveTiles(node), more),
      h("p", { class: "ways" }, h("a", { href: hrefOf(node) }, "Charts, turns and states over time")),
      charts.length ? h("div", { class: "charts" }, charts) : null,
    );

  /* The models at a glance. */
  function liveSummary() {
    const all = models();
    const count = (test) => all.filter(test).length;
    const failing = count((node) => node.tone === "bad");
    const stalled = count((node) => node.health === "stalled" && node.tone !== "bad");
    const late = count((node) => behind(node).length);
    const [running, queued] = ["running", "queued"].map((state) => count((node) => node.state === state));
    const ofAll = `of ${plural(all.length, "model")}`;
    const rows = [...nodes.values()].reduce((total, node) => total + node.rows_per_second_1m, 0);
    return h(
      "dl",
      { class: "tiles" },
      tile("Failing", number(failing), ofAll, failing ? "bad" : "good"),
      tile("Stalled", number(stalled), ofAll, stalled ? "warn" : "good"),
      tile("Running", number(running), ofAll),
      tile("Queued", number(queued), ofAll),
      tile("With unread input", number(late), ofAll),
      tile("Rows per second", rate(rows), "read over the last minute"),
    );
  }

  /* Whether input waits that no turn reads, nor will soon. */
  const left = (node) => behind(node).length > 0 && !["running", "queued"].includes(node.state);

  const RANK = { bad: 0, warn: 1, good: 2, "": 3 };

  /* What somebody should look at, worst first: models, with what is wrong with their tests, and sinks. */
  function attention() {
    const own = [...nodes.values()].filter((node) => !node.node.startsWith("tests.") || !nodes.has(node.node.replace(/^tests\./, "")));
    const wrong = own
      .filter((node) => node.reasons.length || left(node) || sum(node.bad_records) || node.state === "paused")
      .sort((a, b) => RANK[a.tone] - RANK[b.tone] || b.lag_seconds - a.lag_seconds || a.name.localeCompare(b.name));
    if (!wrong.length) return h("p", { class: "note" }, "Nothing needs attention.");
    const row = (node) =>
      h(
        "tr",
        { "data-key": node.node },
        headrace.cell("Model", h("a", { href: hrefOf(node) }, h("bdi", {}, node.name))),
        headrace.cell("State", badge(node.word, node.tone)),
        headrace.cell("Why", h("span", { dir: "auto" }, whys(node).join("; ") || "–")),
        headrace.cell("Unread", behind(node).map((lag) => `${unread(lag)} of ${lag.input}`).join(", ") || "–"),
        headrace.cell("Bad records", number(sum(node.bad_records))),
        headrace.cell("Last commit", since(node.last_commit)),
      );
    return [
      headrace.table("What needs attention", [["Model"], ["State"], ["Why"], ["Unread"], ["Bad records"], ["Last commit"]], wrong.slice(0, 50).map(row)),
      wrong.length > 50 ? h("p", { class: "note" }, `${number(wrong.length - 50)} more.`) : null,
    ];
  }

  /* What the query keeps between micro-batches, as of the last one. */
  function heldTable(node) {
    const row = (held) =>
      h(
        "tr",
        {},
        headrace.cell("What", h("span", { dir: "auto" }, held.meaning)),
        headrace.amount("How many", held.count),
        headrace.cell("Memory", headrace.bytes(held.memory_bytes)),
        headrace.cell("Meaning", h("span", { dir: "auto" }, held.explanation || "–")),
      );
    return headrace.section(
      "Held in state",
      headrace.table("Held in state", [["What"], ["How many", "amount"], ["Memory"], ["Meaning"]], node.held.map(row)),
      h("p", { class: "note" }, `After the last micro-batch. Some of it: engine state ${node.name}`),
    );
  }

  /* Records and rows that were not as they should be. */
  function badList(node) {
    const counted = [
      ...Object.entries(node.bad_records).map(([input, count]) => [count, `${count === 1 ? "unreadable record" : "unreadable records"} of ${input}${badReason(node, input)}`]),
      ...Object.entries(node.failed_checks).map(([check, count]) => [count, `${count === 1 ? "row that does" : "rows that do"} not meet ${check}`]),
      ...(node.quarantined ? [[node.quarantined, `${node.quarantined === 1 ? "row" : "rows"} in the quarantine`]] : []),
    ];
    if (!counted.length) return null;
    return headrace.section("Bad records", h("ul", {}, counted.map(([count, text]) => h("li", { dir: "auto" }, h("b", {}, number(count)), ` ${text}`))));
  }

  Object.assign(headrace, { nowTile, badCounts, liveTiles, liveNotices: notices, liveState, liveSummary, attention, heldTable, badList });
})();
