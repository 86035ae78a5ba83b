"use strict";

/* How a model is doing: its last run, its table, charts, and its snapshots. */
(() => {
  const COUNTS = [
    ["rows_in", "Rows in"],
    ["rows_out", "Rows out"],
    ["rows_updated", "Rows updated"],
    ["rows_deleted", "Rows deleted"],
    ["late", "Late rows"],
    ["quarantined", "Quarantined"],
    ["state_rows", "Rows in state"],
    ["batches", "Micro-batches"],
  ];
  const { h, number, bytes, time, badge, section } = headrace;

  const WAITING = "Rows wait until its tests pass. Readers see the table as it was before them.";

  /* How it is doing: the last run, the table, and charts. */
  function state(node, { run, table, fresh, watermark }) {
    if (fresh) return section("Status", ofSource(fresh));
    if (node.live) return headrace.liveState(node.live, tableTiles(table), headrace.charts(null, table), waits(node));
    if (!run && !table && !watermark) return null;
    const tiles = [];
    const { tile } = headrace;
    if (run)
      tiles.push(tile(run.attempt ? "Last finished run" : "Last run", badge(finishedOf(run), run.attempt ? "" : run.tone), run.at ? time(run.at, { relative: true }) : "", ""));
    if (run && run.attempt) tiles.push(tile("Last attempt", badge(run.attempt[0], run.attempt[0] === "error" ? "bad" : "warn"), run.attempt[1] && run.attempt[0] === "skipped" ? run.attempt[1] : "", ""));
    if (table && table.history.length)
      tiles.push(
        tile(
          "Last commit",
          time(table.history[table.history.length - 1][0], { relative: true }),
          headrace.plural(table.commits, "snapshot"),
        ),
      );
    if (watermark) tiles.push(tile("Watermark", headrace.stamp(watermark), headrace.behind(watermark, run)));
    for (const [key, label] of COUNTS) {
      if (run && run[key] !== undefined)
        tiles.push(tile(label, number(run[key]), "", key === "late" && run[key] ? "warn" : ""));
    }
    for (const [what, name, rows] of (run && run.counted) || []) tiles.push(tile(what, number(rows), name, "warn"));
    tiles.push(...tableTiles(table));
    if (table && table.quarantined.length && !(run && run.quarantined !== undefined))
      tiles.push(tile("Quarantined", number(table.quarantined[table.quarantined.length - 1][2]), "", "warn"));
    const drawn = headrace.charts(run, table);
    return section(
      "Status",
      h("dl", { class: "tiles" }, tiles),
      waits(node),
      run && run.message ? h("p", { class: `notice ${run.tone}`, dir: "auto" }, run.message) : null,
      run && run.note ? h("p", { class: "notice" }, `${run.note.charAt(0).toUpperCase()}${run.note.slice(1)}`) : null,
      drawn.length ? h("div", { class: "charts" }, drawn) : null,
    );
  }

  /* How the last finished run ended: an error of a later attempt is said beside it. */
  const finishedOf = ({ status, attempt }) => (attempt && attempt[0] !== "skipped" ? "success" : status);

  const waits = (node) => (node.waiting ? h("p", { class: "notice warn" }, WAITING) : null);

  const tableTiles = (table) =>
    table
      ? [headrace.tile("Rows", number(table.rows), `${bytes(table.bytes)} in ${headrace.plural(table.files, "file")}`)]
      : [];

  /* How new the records of a source were when it was last looked at. */
  function ofSource({ status, at, newest, bounds, error }) {
    const { tile } = headrace;
    const [word, tone] = headrace.FRESH[status];
    return [
      h(
        "dl",
        { class: "tiles" },
        tile("Freshness", badge(word, tone), bounds || ""),
        newest ? tile("Newest record", time(newest), at ? `${headrace.span(at - newest)} old when looked at` : "") : null,
        at ? tile("Checked", time(at, { relative: true }), headrace.stamp(at)) : null,
      ),
      error ? h("p", { class: "notice bad", dir: "auto" }, error) : null,
    ];
  }

  const SNAPSHOTS_SHOWN = 8;

  function snapshots(table) {
    if (!table || !table.snapshots.length) return null;
    const rows = table.snapshots.map(([id, at, operation, added, removed, rows_, batch]) =>
      h(
        "tr",
        {},
        h("th", { scope: "row" }, time(at)),
        headrace.cell("Operation", operation),
        headrace.amount("Added", added),
        headrace.amount("Removed", removed),
        headrace.amount("Rows", rows_),
        headrace.amount("Batch", batch),
        headrace.cell("Snapshot", h("code", {}, id)),
      ),
    );
    const shown = headrace.table(
      "Snapshots",
      [
        ["Committed"],
        ["Operation"],
        ["Added", "amount"],
        ["Removed", "amount"],
        ["Rows", "amount"],
        ["Batch", "amount"],
        ["Snapshot"],
      ],
      rows.slice(0, SNAPSHOTS_SHOWN),
      "numbers",
    );
    const rest = rows.slice(SNAPSHOTS_SHOWN);
    const add = (before) => before.querySelector("tbody").append(...rest);
    return section("Snapshots", shown, rest.length ? headrace.more(`Show the last ${number(rows.length)}`, add) : null);
  }

  /* The runs that wrote the table, by the marks of their commits. */
  function runs(table) {
    if (!table || !table.runs || !table.runs.length) return null;
    const row = ([at, commits, added, removed, rows, run]) =>
      h(
        "tr",
        {},
        h("th", { scope: "row" }, time(at)),
        headrace.amount("Commits", commits),
        headrace.amount("Added", added),
        headrace.amount("Removed", removed),
        headrace.amount("Rows", rows),
        headrace.cell("Run", h("code", {}, h("bdi", {}, run))),
      );
    const heads = [
      ["Last commit"],
      ["Commits", "amount"],
      ["Added", "amount"],
      ["Removed", "amount"],
      ["Rows", "amount"],
      ["Run"],
    ];
    return section("Runs", headrace.table("Runs that wrote this table", heads, table.runs.map(row), "numbers"));
  }

  /* Some rows of a table, and what its columns hold. */
  function rows({ rows: found }) {
    if (!found) return null;
    const names = found.profiles.map(([name]) => name);
    const text = (value) => (value === null ? h("i", { class: "under" }, "NULL") : h("bdi", {}, value));
    const profile = ([name, nulls, distinct, least, greatest]) =>
      h(
        "tr",
        {},
        h("th", { scope: "row" }, h("bdi", {}, name)),
        headrace.amount("NULL", nulls),
        headrace.amount("Distinct", distinct),
        headrace.cell("Least", least === null ? "–" : text(least)),
        headrace.cell("Greatest", greatest === null ? "–" : text(greatest)),
      );
    const heads = [["Column"], ["NULL", "amount"], ["Distinct", "amount"], ["Least"], ["Greatest"]];
    return section(
      "Rows",
      found.hidden.length ? h("p", { class: "note" }, "Left out, as they may hold personal data: ", found.hidden.map((name, i) => [i ? ", " : "", h("code", {}, name)])) : null,
      found.rows.length && names.length
        ? headrace.table("Rows", names.map((name) => [name]), found.rows.map((row) => h("tr", {}, row.map((value) => h("td", {}, text(value))))), "numbers values")
        : h("p", { class: "notice" }, names.length ? "The table has no rows." : "The table has no other columns."),
      found.profiles.length ? [h("h3", {}, `Profile of ${headrace.plural(found.profiled, "row")}`), headrace.table("Profile", heads, found.profiles.map(profile), "numbers")] : null,
    );
  }

  Object.assign(headrace, { COUNTS, state, snapshots, rows, runs });
})();
