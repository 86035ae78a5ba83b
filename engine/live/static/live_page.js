"use strict";

/* The page `Live`: what is failing, stalled or behind, and why; the graph; the turns of the last minutes; the log. */
(() => {
  const { h, section } = headrace;
  const { live } = headrace;
  const MINUTES = 15;
  // The history takes this part of the time, at most.
  const SHARE = 0.1;
  const EVERY = 2000;

  function logList(lines) {
    const line = ([at, level, text]) =>
      h(
        "li",
        { class: ["error", "warning"].includes(level) ? level : null },
        h("time", { datetime: at }, at.slice(11, 19)),
        h("span", { dir: "auto" }, ["error", "warning"].includes(level) ? h("b", {}, `${level}: `) : null, text),
      );
    return h("ol", { class: "live-log", tabindex: "0", "aria-label": "Log, newest first; times in UTC" }, lines.slice(-100).reverse().map(line));
  }

  function page(site) {
    const view = new headrace.Graph(site.index, { tall: true, label: "Graph of sources and models with their state" });
    const [turns, log] = [h("div", {}), h("div", {})];
    const parts = [
      () => [headrace.liveSummary(), section("Needs attention", headrace.attention())],
    ].map(headrace.block);
    headrace.shown = view;
    let [asked, took, ran, busy] = [-Infinity, 0, -1, false];

    /* Turns and log, if there are new ones. */
    async function history() {
      const all = [...live.nodes.values()].reduce((sum, node) => sum + node.turns, 0);
      const waited = performance.now() - asked;
      // The timeline moves with the clock.
      if (busy || waited < Math.max(EVERY, took / SHARE) || (all === ran && waited < 15_000)) return;
      if (turns.contains(document.activeElement) || turns.matches(":hover")) return;
      [busy, asked, ran] = [true, performance.now(), all];
      try {
        const [found, lines] = await Promise.all([live.ask("turns", { hours: MINUTES / 60 }), live.ask("log")]);
        const at = turns.firstChild ? turns.firstChild.scrollLeft : Infinity;
        turns.replaceChildren(headrace.timeline(found, MINUTES * 60));
        turns.firstChild.scrollLeft = Math.min(at, turns.firstChild.scrollWidth); // on a narrow window, the newest
        headrace.morph(log, h("div", {}, logList(lines)));
      } catch (error) {
        turns.replaceChildren(h("p", { class: "notice" }, error.message));
      } finally {
        took = performance.now() - asked;
        busy = false;
      }
    }

    function update() {
      parts.forEach((part) => part.update());
      history();
    }
    window.setTimeout(history, 0);
    return {
      title: "Live",
      update,
      page: h(
        "div",
        { class: "page live" },
        h("h1", {}, "Live"),
        parts[0].element,
        section("Graph", h("div", { class: "frame tall" }, view.element, headrace.controls(view)), headrace.legend(site.index)),
        section(`Turns of the last ${MINUTES} minutes`, turns, headrace.timelineLegend()),
        section("Log", log),
      ),
    };
  }

  headrace.added = { live: (site, names, query) => (names[0] ? headrace.liveModel(site, names[0], query) : page(site)) };
})();
