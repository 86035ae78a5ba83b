"use strict";

/* The live page of a model: what it does, its charts over a range of time, its turns and its changes of state. */
(() => {
  const { h, number, section, badge, cell, amount } = headrace;
  const { live } = headrace;
  const LEAST = 120;
  const HOURS = [[1, "1 hour"], [24, "1 day"], [168, "7 days"], [720, "30 days"]];
  const EVERY = 5000;

  const address = (name, query) => {
    const text = new URLSearchParams(query).toString();
    return `#/live/${encodeURIComponent(name)}${text ? `?${text}` : ""}`;
  };

  async function page(site, name, query) {
    const id = ([...live.nodes.values()].find((node) => node.name === name) || { node: `model.${name}` }).node;
    const asked = Object.fromEntries(["hours", "from", "to"].filter((key) => query.get(key)).map((key) => [key, query.get(key)]));
    let found = await read();
    let [read_at, busy, seen] = [performance.now(), false, -1];

    async function read() {
      const series = await live.ask("series", { node: id, ...asked });
      const range = { node: id, from: series.from, to: series.to };
      const [turns, states] = await Promise.all([live.ask("turns", range), live.ask("states", { node: id })]);
      return { series, turns, states };
    }

    const charts = h("div", { class: "live-charts" }, drawn());
    const ways = headrace.block(() => range(name, found.series, asked));
    const parts = [
      () => facts(id),
      () => [
        section("Turns", found.turns.length ? turnTable(found.turns) : h("p", { class: "note" }, "No turn ended in this time.")),
        section("Changes of state", stateList(found.states)),
      ],
    ].map(headrace.block);

    function drawn() {
      const { series } = found;
      const span = {
        from: series.from,
        to: series.to,
        step: series.step * 60,
        choose: (from, to) => go(name, from, to),
      };
      const seconds = series.step * 60;
      const points = (key, per = 1) => series.rows.map((row) => [row.minute * 60, row[key] / per]);
      const some = (key) => series.rows.some((row) => row[key]);
      return [
        headrace.liveSeries("Rows read", "rows per second", points("rows_in", seconds), span),
        headrace.liveSeries("Rows written", "rows per second", points("rows_out", seconds), span),
        headrace.liveSeries("Time in micro-batches", "seconds per minute", points("seconds", series.step), span),
        headrace.liveSeries("Late rows", "rows", points("late"), { ...span, tone: "warn" }),
        headrace.liveSeries("Bad records", "records", points("bad"), { ...span, tone: "bad" }),
        some("held") || some("state_memory")
          ? [
              headrace.liveSeries("Held in state", "rows, the most at a time", points("held"), { ...span, level: true }),
              headrace.liveSeries("Memory of state", "MB, the most at a time", points("state_memory", 1e6), { ...span, level: true }),
            ]
          : [],
      ].flat();
    }

    /* Charts follow the clock, but not under the hands of the reader. */
    async function refresh() {
      const node = live.nodes.get(id);
      const now = node ? node.turns + node.batches : 0;
      const used = charts.contains(document.activeElement) || charts.matches(":hover");
      if (busy || used || asked.to || now === seen || performance.now() - read_at < EVERY) return;
      [busy, seen] = [true, now];
      try {
        found = await read();
        charts.replaceChildren(...drawn());
        [ways, ...parts].forEach((part) => part.update());
      } catch (error) {
        console.info(error.message);
      } finally {
        [busy, read_at] = [false, performance.now()];
      }
    }

    return {
      title: name,
      update: () => {
        parts[0].update();
        refresh();
      },
      page: h(
        "div",
        { class: "page live" },
        h(
          "header",
          { class: "title" },
          h("p", { class: "crumbs" }, h("a", { href: "#/live" }, "Live")),
          h("h1", {}, h("bdi", {}, name)),
          site.byId.has(id)
            ? h("p", { class: "ways" }, h("a", { href: `#/model/${encodeURIComponent(name)}` }, "Columns, SQL, lineage and table of this model"))
            : null,
        ),
        parts[0].element,
        section("Charts", ways.element, charts),
        parts[1].element,
      ),
    };
  }

  const go = (name, from, to) => {
    window.location.hash = address(name, { from: Math.floor(from), to: Math.ceil(Math.max(to, from + LEAST)) });
  };

  /* The range of time that is shown, and the ways to others. */
  function range(name, { from, to, first }, asked) {
    const length = to - from;
    const link = (text, query, current) => h("a", { href: address(name, query), "aria-current": current ? "true" : null }, text);
    const zoomed = (factor, shift = 0) => {
      const middle = (from + to) / 2 + shift * length;
      const half = Math.max(LEAST, length * factor) / 2;
      return { from: Math.floor(middle - half), to: Math.ceil(Math.min(middle + half, Date.now() / 1000 + 60)) };
    };
    return [
      h(
        "nav",
        { class: "ways", "aria-label": "Range of time" },
        link("All data", {}, !Object.keys(asked).length),
        HOURS.map(([hours, text]) => link(text, { hours }, Number(asked.hours) === hours)),
        link("Zoom in", zoomed(0.5)),
        link("Zoom out", zoomed(2)),
        link("Earlier", zoomed(1, -0.5)),
        link("Later", zoomed(1, 0.5)),
      ),
      h(
        "p",
        { class: "note" },
        `${headrace.day(from)} to ${headrace.day(to)} UTC. Draw over a chart to zoom in; the arrow keys go through its values.`,
        first ? "" : " There are no data yet.",
      ),
    ];
  }

  function facts(id) {
    const node = live.nodes.get(id);
    if (!node) return h("p", { class: "notice" }, "This model is not kept running.");
    return [
      headrace.liveNotices(node),
      h("dl", { class: "tiles" }, headrace.liveTiles(node)),
      node.held.length ? headrace.heldTable(node) : null,
      headrace.badList(node),
    ];
  }

  const FAILED = new Set(["error", "fail"]);

  function turnTable(turns) {
    const row = (turn) =>
      h(
        "tr",
        { "data-key": `${turn.number} ${turn.begin}` },
        cell("Began", headrace.time(turn.begin * 1000)),
        cell("Status", badge(turn.status, FAILED.has(turn.status) ? "bad" : turn.status === "skipped" ? "warn" : "good")),
        cell("Took", `${(turn.end - turn.begin).toFixed(2)} s`),
        cell("Waited", `${turn.waited.toFixed(2)} s`),
        cell("Because", h("span", { dir: "auto" }, turn.message || turn.reason || "–")),
        amount("Rows read", turn.rows_in),
        amount("Rows written", turn.rows_out),
      );
    const heads = [["Began"], ["Status"], ["Took"], ["Waited"], ["Because"], ["Rows read", "amount"], ["Rows written", "amount"]];
    return [
      headrace.table("Turns", heads, turns.slice(0, 50).map(row)),
      turns.length > 50 ? h("p", { class: "note" }, `${number(turns.length - 50)} more in this time.`) : null,
    ];
  }

  const stateList = (states) =>
    states.length
      ? h(
          "ul",
          {},
          states.slice(0, 20).map((change) =>
            h("li", {}, headrace.time(change.at * 1000), ` ${change.state}`, change.reason ? h("span", { class: "under", dir: "auto" }, `: ${change.reason}`) : null),
          ),
        )
      : h("p", { class: "note" }, "No change was recorded.");

  Object.assign(headrace, { liveModel: page });
})();
