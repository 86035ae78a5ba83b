"use strict";

/* What the process does now: it comes as events, and every page of the site shows it in the same words. */
(() => {
  const { h, number, span } = headrace;
  const nodes = new Map();
  // Nodes that have changed since the page was drawn.
  const fresh = new Set();
  // The last status without its nodes; whether events come; whether another process answers.
  const now = { head: null, connected: false, refused: false };
  let source = null;
  let drawing = false;
  let [drawn, took] = [0, 0];

  /* Have the page drawn soon; a page that is slow to draw is drawn less often. */
  function changed() {
    if (drawing) return;
    drawing = true;
    const wait = Math.max(0, drawn + 10 * took - performance.now());
    window.setTimeout(() => window.requestAnimationFrame(draw), wait);
  }

  function draw() {
    drawing = false;
    if (!headrace.site) return; // not all scripts have come
    const begin = performance.now();
    headrace.morph(strip, told());
    if (headrace.site.graph) {
      headrace.restate(assign(headrace.site));
      refreshGraphs(headrace.site);
      headrace.redraw();
      headrace.follow();
    }
    drawn = performance.now();
    took = drawn - begin;
  }

  const rate = (value) => (value >= 100 ? number(Math.round(value)) : `${+value.toFixed(1)}`);
  const behind = (node) => node.lag.filter((lag) => lag.count);

  /* Units of the status in the singular, too: 1 file, 2 files. */
  const unread = (lag) => headrace.plural(lag.count, (lag.what || "records").replace(/s$/, ""));

  /* Give the nodes of the site what they do; which of them are in another state now. */
  function assign(site) {
    const others = [];
    for (const id of fresh) {
      const place = site.byId.get(id);
      if (place === undefined) continue;
      const node = site.index.nodes[place];
      const [was, live] = [node.live, nodes.get(id)];
      if (!live) delete node.live;
      else node.live = { ...live, flow: live.rows_per_second_1m && live.tone !== "bad" ? `${rate(live.rows_per_second_1m)} rows/s` : "" };
      const is = node.live || {};
      if (!was || was.word !== is.word || was.tone !== is.tone || was.flow !== is.flow) others.push(node);
    }
    fresh.clear();
    return others.map((node) => {
      restated.add(node.id);
      return node;
    });
  }

  const restated = new Set();

  function refreshGraphs(site) {
    const numbers = [...restated].map((id) => site.byId.get(id)).filter((place) => place !== undefined);
    restated.clear();
    for (const element of document.querySelectorAll(".canvas")) headrace.graphIn(element).refresh(numbers, labels(site));
  }

  /* What each link carries that has not been read. */
  function labels(site) {
    // A sink may have the name of the model that it delivers.
    const read = site.index.nodes.filter((node) => !/^(?:sink|exposure)\./.test(node.id));
    const byName = new Map(read.flatMap((node) => [[node.name.split(".").pop(), node], [node.name, node]]));
    for (const node of read) byName.set(node.name, node);
    const found = [];
    for (const node of nodes.values()) {
      const to = site.byId.get(node.node);
      if (to === undefined) continue;
      for (const lag of behind(node)) {
        const from = byName.get(lag.input);
        if (from) found.push({ from: site.byId.get(from.id), to, text: unread(lag), tone: "behind" });
      }
    }
    return found;
  }

  /* What is to be known on every page. */
  function told() {
    const { head, connected, refused } = now;
    const notice = (text, tone) => h("p", { class: `notice ${tone}`, dir: "auto" }, text);
    const found = [];
    if (refused) found.push(notice("Another engine start answers here. Open the link that it printed.", "bad"));
    else if (!head) found.push(connected ? null : notice("Connecting.", ""));
    else if (head.stopped_at) found.push(notice(`engine start has stopped: ${head.stop_reason}`, "bad"));
    else if (!connected) found.push(notice(`The connection is lost; this is the status of ${span(Date.now() - head.at * 1000)} ago.`, "bad"));
    if (head && head.rejected) found.push(notice(head.rejected.replace(/^./u, (letter) => letter.toUpperCase()), "bad"));
    if (head && head.problem) found.push(notice(head.problem, "bad"));
    found.push(headrace.newer());
    return h("div", { id: "told", role: "status" }, found);
  }

  const strip = h("div", { id: "told", role: "status" });
  document.getElementById("frame").before(strip);

  function take(event) {
    const head = JSON.parse(event.data);
    now.head = head;
    // The first message of a connection has all nodes.
    const gone = head.all ? [...nodes.keys()].filter((id) => !head.nodes.some((node) => node.node === id)) : head.gone;
    for (const id of gone) {
      nodes.delete(id);
      fresh.add(id);
    }
    for (const node of head.nodes) {
      nodes.set(node.node, node);
      fresh.add(node.node);
    }
    changed();
  }

  function connect() {
    source = new EventSource("live/events");
    source.onopen = () => {
      now.connected = true;
      changed();
    };
    source.onmessage = take;
    source.onerror = () => {
      now.connected = false;
      // After a lost connection it tries again by itself; not after an answer without events.
      now.refused = source.readyState === EventSource.CLOSED;
      changed();
    };
  }

  /* A page that nobody sees holds no connection: a browser gives a host six in all. */
  const UNSEEN = 20_000;
  let leaving = 0;
  document.addEventListener("visibilitychange", () => {
    window.clearTimeout(leaving);
    if (document.hidden) leaving = window.setTimeout(() => source.close(), UNSEEN);
    else if (source.readyState === EventSource.CLOSED && !now.refused) connect();
  });

  async function ask(path, query = {}) {
    const answer = await fetch(`live/${path}?${new URLSearchParams(query)}`);
    if (!answer.ok) throw new Error(`The server answers with ${answer.status}`);
    return answer.json();
  }

  const since = (at) => (at ? `${span((Date.now() / 1000 - at) * 1000)} ago` : "–");

  /* Take the states of all nodes into a site that was loaded again. */
  function restateAll() {
    for (const id of nodes.keys()) fresh.add(id);
    headrace.restate(assign(headrace.site));
  }

  Object.assign(headrace, { live: { nodes, now, changed, ask, rate, behind, unread, since, restateAll } });
  if (!window.location.hash) window.location.replace("#/live");
  connect();
  // Ages grow without events.
  window.setInterval(changed, 5000);
})();
