"use strict";

/* The live page: what is behind, what is failing, and why; the same graph as the site's, with what its nodes are doing. */
(() => {
  const { h, number, plural, span, badge } = headrace;
  const nodes = new Map();
  let head = null;
  let connected = false;
  let refused = false;
  const listeners = new Set();
  let drawing = false;

  function changed() {
    if (drawing) return;
    drawing = true;
    window.requestAnimationFrame(() => {
      drawing = false;
      for (const [element, draw] of listeners) {
        if (element.isConnected) draw();
      }
    });
  }

  /* One page listens at a time. */
  function follow(element, draw) {
    listeners.clear();
    listeners.add([element, draw]);
  }

  let fresh = new Set();

  function connect() {
    const source = new EventSource("live/events");
    source.onopen = () => {
      connected = true;
      changed();
    };
    source.onmessage = (event) => {
      head = JSON.parse(event.data);
      head.received = Date.now();
      for (const id of head.gone) nodes.delete(id);
      for (const node of head.nodes) {
        nodes.set(node.node, node);
        fresh.add(node.node);
      }
      changed();
    };
    source.onerror = () => {
      connected = false;
      // After a lost connection it tries again by itself; not after an answer without events.
      refused = source.readyState === EventSource.CLOSED;
      changed();
    };
  }

  async function ask(path, query = {}) {
    const answer = await fetch(`live/${path}?${new URLSearchParams(query)}`);
    if (!answer.ok) throw new Error(`The server answers with ${answer.status}`);
    return answer.json();
  }

  const rate = (value) => `${value >= 100 ? number(Math.round(value)) : +value.toFixed(1)} rows/s`;
  const behind = (node) => node.lag.filter((lag) => lag.count);
  const lagText = (node) => behind(node).map((lag) => `${number(lag.count)} ${lag.what} of ${lag.input}`).join(", ");
  const bad = (node) => Object.values(node.bad_records).reduce((all, count) => all + count, 0);
  const since = (at) => (at ? `${span((Date.now() / 1000 - at) * 1000)} ago` : "–");

  function tone(node) {
    if (node.health === "failed") return "bad";
    if (node.health === "stalled" || node.state === "paused" || node.state === "waiting") return "warn";
    return node.state === "running" ? "good" : "";
  }

  /* A node in a word, for the graph and the lists. */
  function live(node) {
    if (!node) return null;
    const state = node.health === "stalled" ? "stalled" : node.state;
    const flow = node.rows_per_second_1m ? ` · ${rate(node.rows_per_second_1m)}` : "";
    return { word: `${state}${flow}`, tone: tone(node) };
  }

  /* What each link carries: unread input, else rows per second. */
  function labels(site) {
    const byName = new Map();
    for (const node of site.index.nodes) {
      byName.set(node.name, node);
      byName.set(node.name.split(".").pop(), node);
    }
    const found = [];
    for (const node of nodes.values()) {
      const to = site.byId.get(node.node);
      if (to === undefined) continue;
      for (const lag of behind(node)) {
        const from = byName.get(lag.input);
        if (from) found.push({ from: site.byId.get(from.id), to, text: `${number(lag.count)} ${lag.what}`, tone: "behind" });
      }
    }
    return found;
  }

  const link = (node) => h("a", { href: `#/live/${encodeURIComponent(node.name)}` }, h("bdi", {}, node.name));

  function why(node) {
    const parts = [];
    if (node.health === "failed" && node.last_error) parts.push(node.last_error);
    for (const [test, message] of Object.entries(node.tests_failing)) parts.push(`test ${test.replace(/^[^.]*\./, "")} fails: ${message}`);
    if (node.stalled) parts.push(node.stalled);
    if (!parts.length && node.reason) parts.push(node.reason);
    return parts.join("; ");
  }

  function tiles() {
    const all = [...nodes.values()];
    const count = (test) => all.filter(test).length;
    const [failed, stalled] = [count((n) => n.health === "failed"), count((n) => n.health === "stalled")];
    const late = count((n) => behind(n).length);
    const rows = all.reduce((sum, node) => sum + node.rows_per_second_1m, 0);
    return h(
      "dl",
      { class: "tiles" },
      headrace.tile("Failing", number(failed), failed ? "models" : "none", failed ? "bad" : "good"),
      headrace.tile("Stalled", number(stalled), stalled ? "input arrives, nothing is committed" : "none", stalled ? "warn" : "good"),
      headrace.tile("Behind", number(late), "models with unread input", late ? "warn" : "good"),
      headrace.tile("Read", rate(rows), "over the last minute"),
      headrace.tile("Running now", number(count((n) => n.state === "running")), `of ${plural(all.length, "model")}`),
    );
  }

  function notice() {
    if (refused) return h("p", { class: "notice bad" }, "Another engine start answers here. Open the link that it printed.");
    if (!head) return h("p", { class: "notice" }, connected ? "Waiting for the first status." : "Connecting.");
    if (head.stopped_at) return h("p", { class: "notice bad" }, `engine start has stopped: ${head.stop_reason}`);
    if (!connected) return h("p", { class: "notice bad" }, `The connection is lost; this is the status of ${since(head.at)}.`);
    if (head.rejected) return h("p", { class: "notice bad" }, head.rejected.replace(/^./u, (letter) => letter.toUpperCase()));
    return head.problem ? h("p", { class: "notice bad" }, head.problem) : null;
  }

  const RANK = { failed: 0, stalled: 1, healthy: 2 };

  /* What somebody should look at, worst first. */
  function attention() {
    const wrong = [...nodes.values()]
      .filter((node) => node.health !== "healthy" || behind(node).length || bad(node))
      .sort((a, b) => RANK[a.health] - RANK[b.health] || b.lag_seconds - a.lag_seconds || a.name.localeCompare(b.name));
    if (!wrong.length) return h("p", { class: "note" }, "Nothing is failing, stalled or behind.");
    const row = (node) =>
      h(
        "tr",
        {},
        headrace.cell("Model", link(node)),
        headrace.cell("State", badge(node.health === "healthy" ? node.state : node.health, tone(node) || "warn")),
        headrace.cell("Why", h("span", { dir: "auto" }, why(node) || "–")),
        headrace.cell("Unread", lagText(node) || "–"),
        headrace.cell("Bad records", number(bad(node))),
        headrace.cell("Last commit", since(node.last_commit)),
      );
    return [
      headrace.table("What needs attention", [["Model"], ["State"], ["Why"], ["Unread"], ["Bad records"], ["Last commit"]], wrong.slice(0, 50).map(row)),
      wrong.length > 50 ? h("p", { class: "note" }, `${number(wrong.length - 50)} more.`) : null,
    ];
  }

  function logList(lines) {
    return h(
      "ol",
      { class: "live-log", tabindex: "0", "aria-label": "Log" },
      lines.slice(-100).reverse().map(([at, level, text]) =>
        h("li", { class: level === "error" ? "bad" : "" }, h("time", { datetime: at }, at.slice(11, 19)), h("span", { dir: "auto" }, text)),
      ),
    );
  }

  function overview(site) {
    const [told, summary, wrong] = [h("div", { role: "status" }), h("div", {}), h("div", {})];
    const [turns, log] = [h("div", {}), h("div", {})];
    for (const node of site.index.nodes) node.live = live(nodes.get(node.id));
    const view = new headrace.Graph(site.index, { tall: true, label: "Graph of sources and models with their live state" });
    const page = h(
      "div",
      { class: "page live" },
      h("h1", {}, "Live"),
      told,
      summary,
      headrace.section("Needs attention", wrong),
      headrace.section("Graph", h("div", { class: "frame tall" }, view.element, headrace.controls(view)), headrace.legend(site.index)),
      headrace.section("Turns of the last 15 minutes", turns, h("p", { class: "note" }, "A pale bar is the time that a turn waited, a dark one its run; times in UTC.")),
      headrace.section("Log", log),
    );
    headrace.shown = view;
    let asked = 0;
    async function history() {
      asked = Date.now();
      try {
        const [ran, lines] = await Promise.all([ask("turns", { hours: 0.25 }), ask("log")]);
        turns.replaceChildren(headrace.timeline(ran, nameOf, 900));
        turns.firstChild.scrollLeft = turns.firstChild.scrollWidth; // on a narrow window, the newest
        log.replaceChildren(logList(lines));
      } catch (error) {
        turns.replaceChildren(h("p", { class: "notice" }, error.message));
      }
    }
    function draw() {
      const told_now = notice();
      told.replaceChildren(...(told_now ? [told_now] : []));
      summary.replaceChildren(tiles());
      wrong.replaceChildren(...[attention()].flat().filter(Boolean));
      const numbers = [];
      for (const id of fresh) {
        const place = site.byId.get(id);
        if (place === undefined) continue;
        const now = live(nodes.get(id));
        const was = site.index.nodes[place].live;
        if (!was || was.word !== now.word || was.tone !== now.tone) {
          site.index.nodes[place].live = now;
          numbers.push(place);
        }
      }
      fresh = new Set();
      view.refresh(numbers, labels(site));
      if (Date.now() - asked > 3000) history();
    }
    follow(page, draw);
    window.setTimeout(draw, 0);
    return { title: "Live", page };
  }

  const nameOf = (id) => id.replace(/^[^.]*\./, "");

  async function modelPage(site, name, query) {
    const id = `model.${name}`;
    const hours = Math.min(720, Math.max(1, Number(query.get("hours")) || 24));
    const [found, turns, states] = await Promise.all([
      ask("series", { node: id, hours }),
      ask("turns", { node: id, hours }),
      ask("states", { node: id }),
    ]);
    const facts = h("div", {});
    const span_ = { from: found.now - hours * 3600, to: found.now, step: found.step * 60 };
    const points = (key, per = 1) => found.rows.map((row) => [row.minute * 60, row[key] / per]);
    const seconds = found.step * 60;
    const choice = [[1, "1 hour"], [24, "1 day"], [168, "7 days"], [720, "30 days"]].map(([n, title]) =>
      h("a", { href: `#/live/${encodeURIComponent(name)}?hours=${n}`, "aria-current": n === hours ? "true" : null }, title),
    );
    const page = h(
      "div",
      { class: "page live" },
      h("h1", {}, h("bdi", {}, name)),
      h("p", { class: "ways" }, h("a", { href: "#/live" }, "All models"), h("a", { href: `#/model/${encodeURIComponent(name)}` }, "Its documentation")),
      facts,
      h("nav", { class: "ways", "aria-label": "Time" }, choice),
      h(
        "div",
        { class: "live-charts" },
        headrace.liveSeries("Rows read", "rows per second", points("rows_in", seconds), span_),
        headrace.liveSeries("Rows written", "rows per second", points("rows_out", seconds), span_),
        headrace.liveSeries("Time in micro-batches", "seconds per minute", points("seconds", found.step), span_),
        headrace.liveSeries("Late rows", "rows", points("late"), { ...span_, tone: "warn" }),
        headrace.liveSeries("Bad records", "records", points("bad"), { ...span_, tone: "bad" }),
        found.rows.some((row) => row.held || row.state_memory)
          ? [
              headrace.liveSeries("Held in state", "rows, the most at a time", points("held"), { ...span_, level: true }),
              headrace.liveSeries("Memory of state", "MB, the most at a time", points("state_memory", 1e6), { ...span_, level: true }),
            ]
          : null,
      ),
      headrace.section("Turns", turns.length ? turnTable(turns) : h("p", { class: "note" }, "No turn ended in this time.")),
      headrace.section("States", stateList(states)),
    );
    function draw() {
      const node = nodes.get(id);
      facts.replaceChildren(...(node ? [factsOf(node)] : [h("p", { class: "notice" }, "This model is not kept running.")]));
    }
    follow(page, draw);
    window.setTimeout(draw, 0);
    return { title: name, page };
  }

  function factsOf(node) {
    const counted = [
      ...Object.entries(node.bad_records).map(([input, count]) => [`unreadable records of ${input}`, count]),
      ...Object.entries(node.failed_checks).map(([check, count]) => [`rows that do not meet ${check}`, count]),
      ...(node.quarantined ? [["rows in the quarantine", node.quarantined]] : []),
    ];
    return h(
      "div",
      {},
      node.health === "healthy" ? null : h("p", { class: `notice ${tone(node)}` }, why(node)),
      h(
        "dl",
        { class: "tiles" },
        headrace.tile("State", node.health === "stalled" ? "stalled" : node.state, node.reason, tone(node)),
        headrace.tile("Unread", behind(node).map((lag) => `${number(lag.count)} ${lag.what}`).join(", ") || "none", behind(node).length ? `for ${span(node.lag_seconds * 1000)}` : ""),
        headrace.tile("Read", rate(node.rows_per_second_1m), `${number(node.rows_in)} rows since the start`),
        headrace.tile("Last commit", since(node.last_commit)),
        headrace.tile("Watermark", node.watermark ? node.watermark.slice(0, 19).replace("T", " ") : "none", node.note),
        headrace.tile("Late", number(node.late), "rows behind the watermark", node.late ? "warn" : ""),
        headrace.tile("Held in state", number(node.state_rows), node.held.length ? [...new Set(node.held.map((held) => held.meaning))].join(", ") : "rows"),
        headrace.tile("Turns", number(node.turns), node.failed_turns ? `${number(node.failed_turns)} failed` : "", node.failures ? "bad" : ""),
      ),
      node.held.length ? headrace.section("Held in state", heldTable(node)) : null,
      counted.length
        ? headrace.section("Bad records", h("ul", {}, counted.map(([text, count]) => h("li", {}, h("b", {}, number(count)), ` ${text}`))))
        : null,
    );
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
    return [
      headrace.table("Held in state", [["What"], ["How many", "amount"], ["Memory"], ["Meaning"]], node.held.map(row)),
      h("p", { class: "note" }, `After the last micro-batch. Some of it: engine state ${node.name}`),
    ];
  }

  function turnTable(turns) {
    const row = (turn) =>
      h(
        "tr",
        {},
        headrace.cell("Began", headrace.time(turn.begin * 1000)),
        headrace.cell("Status", badge(turn.status, turn.message ? "bad" : "good")),
        headrace.cell("Took", `${(turn.end - turn.begin).toFixed(2)} s`),
        headrace.cell("Waited", `${turn.waited.toFixed(2)} s`),
        headrace.cell("Because", h("span", { dir: "auto" }, turn.message || turn.reason || "–")),
        headrace.amount("Rows read", turn.rows_in),
        headrace.amount("Rows written", turn.rows_out),
      );
    return headrace.table("Turns", [["Began"], ["Status"], ["Took"], ["Waited"], ["Because"], ["Rows read", "amount"], ["Rows written", "amount"]], turns.slice(0, 50).map(row));
  }

  const stateList = (states) =>
    states.length
      ? h("ul", {}, states.slice(0, 20).map((change) => h("li", {}, headrace.time(change.at * 1000), ` ${change.state}`, change.reason ? h("span", { class: "under", dir: "auto" }, `: ${change.reason}`) : null)))
      : h("p", { class: "note" }, "No change was recorded.");

  headrace.added = {
    live: (site, names, query) => (names[0] ? modelPage(site, names[0], query) : overview(site)),
  };
  if (!window.location.hash) window.location.replace("#/live");
  connect();
  // Ages grow without events.
  window.setInterval(changed, 5000);
})();
