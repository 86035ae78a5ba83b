"use strict";

/* How a model is doing: its last run, its table, charts, and its snapshots. */
(() => {
  const { h, number, bytes, time, badge, section } = headrace;

  /* How it is doing: the last run, the table, and charts. */
  function state({ run, table }) {
    if (!run && !table) return null;
    const tiles = [];
    const { tile } = headrace;
    if (run)
      tiles.push(tile("Last run", badge(run.status, run.tone), run.at ? time(run.at, { relative: true }) : "", ""));
    if (table && table.history.length)
      tiles.push(
        tile(
          "Last commit",
          time(table.history[table.history.length - 1][0], { relative: true }),
          `${number(table.commits)} kept`,
        ),
      );
    if (run && run.watermark)
      tiles.push(
        tile(
          "Watermark",
          headrace.stamp(run.watermark),
          run.at && run.at >= run.watermark ? `${headrace.span(run.at - run.watermark)} behind the clock` : "",
        ),
      );
    for (const [key, label] of [
      ["rows_in", "Rows in"],
      ["rows_out", "Rows out"],
      ["late", "Late rows"],
      ["quarantined", "Quarantined"],
      ["state_rows", "Held in state"],
      ["batches", "Micro-batches"],
    ]) {
      if (run && run[key] !== undefined)
        tiles.push(tile(label, number(run[key]), "", key === "late" && run[key] ? "warn" : ""));
    }
    for (const [why, rows] of (run && run.taken_out) || []) tiles.push(tile("Taken out", number(rows), why, "warn"));
    if (table)
      tiles.push(tile("Rows", number(table.rows), `${bytes(table.bytes)} in ${headrace.plural(table.files, "file")}`));
    if (table && table.quarantined.length && !(run && run.quarantined !== undefined))
      tiles.push(tile("Quarantined", number(table.quarantined[table.quarantined.length - 1][2]), "", "warn"));
    const drawn = headrace.charts(run, table);
    return section(
      "How it is doing",
      h("dl", { class: "tiles" }, tiles),
      run && run.message ? h("p", { class: `notice ${run.tone}`, dir: "auto" }, run.message) : null,
      run && run.note ? h("p", { class: "note" }, run.note) : null,
      drawn.length ? h("div", { class: "charts" }, drawn) : null,
    );
  }

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
    return section(
      "Snapshots",
      headrace.table(
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
        rows,
        "numbers",
      ),
    );
  }

  Object.assign(headrace, { state, snapshots });
})();
