"use strict";

/* Signs of the kinds of nodes, and the status of a node in a word. */
(() => {
  const { h, s } = headrace;
  const ICONS = {
    source: "M3 5c0-2 10-2 10 0v6c0 2-10 2-10 0zM3 5c0 2 10 2 10 0M3 8c0 2 10 2 10 0",
    stream: "M1 5q2-3 4.7 0t4.7 0T15 5M1 8.5q2-3 4.7 0t4.7 0 4.600 0M1 12q2-3 4.7 0t4.7 0 4.600 0",
    table: "M2 3h12v10H2zM2 6.500h12M6.500 3v10",
    view: "M1 8q7-9 14 0-7 9-14 0zM8 6a2 2 0 1 0 .01 0",
    group: "M1.500 4h4.500l1.500 2h7v7.500h-13z",
    exposure: "M1.500 3h13v8h-13zM5 14h6M8 11v3M4 8.500l2.500-2.500 2 1.500 3-2.500",
  };

  const icon = (kind) =>
    s("svg", { class: `icon ${kind}`, viewBox: "0 0 16 16", "aria-hidden": "true" }, s("path", { d: ICONS[kind] }));

  /* What a look at a source says, by dbt's words for it. */
  const FRESH = {
    pass: ["fresh", "good"],
    warn: ["late", "warn"],
    error: ["stale", "bad"],
    "runtime error": ["unknown", "bad"],
  };

  /* The status of a node, in a word and a tone. */
  function standing(node) {
    if (node.live) return node.live;
    if (node.broken) return { word: "does not compile", tone: "bad" };
    if (node.run && node.run.tone !== "good") return { word: node.run.status, tone: node.run.tone };
    if (node.failing) return { word: `${headrace.plural(node.failing, "test")} failing`, tone: "bad" };
    if (node.waiting) return { word: "waits for its tests", tone: "warn" };
    if (node.fresh && node.fresh !== "pass") {
      const [word, tone] = FRESH[node.fresh];
      return { word, tone };
    }
    return { word: "", tone: "" };
  }

  const legend = ({ nodes }) =>
    h(
      "p",
      { class: "legend" },
      [
        ["source", "source"],
        ["stream", "streaming table"],
        ["table", "table"],
        ["view", "view"],
        ...(nodes.some(({ kind }) => kind === "exposure") ? [["exposure", "exposure"]] : []),
      ].map(([kind, text]) => h("span", {}, icon(kind), text)),
      h(
        "span",
        {},
        s(
          "svg",
          { class: "sample", viewBox: "0 0 34 10", "aria-hidden": "true" },
          s("path", { class: "link stream", d: "M0 5h34" }),
        ),
        "read as a stream",
      ),
      h(
        "span",
        {},
        s(
          "svg",
          { class: "sample", viewBox: "0 0 34 10", "aria-hidden": "true" },
          s("path", { class: "link", d: "M0 5h34" }),
        ),
        "read in full",
      ),
    );

  Object.assign(headrace, { ICONS, FRESH, icon, standing, legend });
})();
