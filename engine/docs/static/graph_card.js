"use strict";

/* The card beside the graph: the node, the group or the column in the light. */
(() => {
  const { h, icon, number, plural } = headrace;
  const STEPS = [1, 2, 3, 5];
  const LISTED = 60;

  /* Fill the card with what is in the light; without that it is hidden. */
  function graphCard(site, view, card) {
    const { focus } = view;
    card.hidden = focus === null;
    if (focus === null) return;
    const content = typeof focus === "string" ? ofGroup(site, view, focus) : view.path ? ofColumn(site, view) : ofNode(site, view, focus);
    card.replaceChildren(h("button", { type: "button", class: "close", "aria-label": "Close", onclick: () => view.light(null) }, "×"), ...content.filter(Boolean));
  }

  function ofNode(site, view, place) {
    const { index, graph } = site;
    const node = index.nodes[place];
    const [above, below] = [graph.up, graph.down].map((edges) => headrace.walk(new Set([place]), edges, Infinity).size);
    const group = view.groups.openOf(place);
    return [
      h("h2", {}, icon(node.kind), h("bdi", {}, node.name)),
      h("p", { class: "under" }, [node.what, node.guarantee].filter(Boolean).join(" · "), " ", headrace.stateBadge(node)),
      node.summary ? h("p", {}, h("bdi", {}, node.summary)) : null,
      node.about ? h("p", { dir: "auto" }, node.about) : null,
      h("p", { class: "under" }, `${number(above)} above, ${number(below)} below`),
      above || below ? steps(site, view, place) : null,
      h(
        "p",
        { class: "ways" },
        h("a", { href: headrace.hrefOf(node) }, "Open page"),
        node.columns
          ? h("button", { type: "button", class: "plain", onclick: () => view.open(place) }, view.opened.has(place) ? "Hide columns" : `Show ${plural(node.columns, "column")}`)
          : null,
        group === undefined ? null : h("button", { type: "button", class: "plain", onclick: () => view.fold(group) }, `Collapse ${group}`),
      ),
    ];
  }

  /* How far up and down the light reaches, and a link to these nodes alone. */
  function steps({ index }, view, place) {
    const node = index.nodes[place];
    const own = headrace.termOf(node);
    const link = h("a", {}, "Show only these");
    const choice = (id, title, plus) =>
      h(
        "select",
        { id, onchange: () => apply(), "aria-label": title },
        h("option", { value: "all" }, `${title}: all`),
        h("option", { value: "0" }, `${title}: none`),
        STEPS.map((many) => h("option", { value: many }, `${title}: ${plural(many, "step")}`)),
      );
    const [up, down] = [choice("steps-up", "Upstream"), choice("steps-down", "Downstream")];
    const reach = ({ value }) => (value === "all" ? Infinity : Number(value));
    const said = ({ value }, one) => (value === "0" ? "" : value === "all" ? "+" : one(value));

    function name() {
      const term = `${said(up, (n) => `${n}+`)}${own}${said(down, (n) => `+${n}`)}`;
      link.setAttribute("href", `#/graph?select=${encodeURIComponent(term)}&focus=${encodeURIComponent(node.id)}`);
    }

    function apply() {
      const { onFocus } = view.options;
      // The card stays as it is.
      view.options.onFocus = null;
      view.light(place, { up: reach(up), down: reach(down) });
      view.options.onFocus = onFocus;
      name();
    }
    name();
    return h("p", { class: "steps-of" }, up, down, link);
  }

  function ofGroup({ index }, view, key) {
    const { numbers } = view.items.get(key);
    const { word, tone } = headrace.standingOf(index, numbers);
    return [
      h("h2", {}, h("bdi", {}, key)),
      h("p", { class: "under" }, plural(numbers.length, "node"), " ", headrace.badge(word, tone)),
      h("p", { class: "ways" }, h("button", { type: "button", onclick: () => view.unfold(key) }, "Open this group")),
      h("ul", { class: "plain" }, numbers.slice(0, LISTED).map((n) => h("li", {}, headrace.nodeLink(index.nodes[n])))),
      numbers.length > LISTED ? h("p", { class: "note" }, `and ${number(numbers.length - LISTED)} more`) : null,
    ];
  }

  function ofColumn({ index }, view) {
    const { start, rows, edges, trace } = view.path;
    const node = index.nodes[start[0]];
    const [own] = trace.steps;
    const values = edges.filter(({ kind }) => kind === "value").length;
    return [
      h("h2", {}, icon(node.kind), h("bdi", {}, `${node.name}.${start[1]}`)),
      own.type ? h("p", { class: "under" }, h("code", {}, own.type)) : null,
      own.sql && own.sql !== "*" ? h("code", { class: "expression" }, own.sql) : null,
      h("p", { class: "under" }, `Path over ${plural(rows.size, "node")}: ${plural(values, "value link")}, ${plural(edges.length - values, "row-level link")}`),
      h(
        "p",
        { class: "legend" },
        ["value", "rows"].map((kind) =>
          h("span", {}, headrace.s("svg", { class: "sample", viewBox: "0 0 34 10", "aria-hidden": "true" }, headrace.s("path", { class: `flowing ${kind}`, d: "M0 5h34" })), kind === "value" ? "values" : "decides on rows"),
        ),
      ),
      h(
        "p",
        { class: "ways" },
        h("a", { href: headrace.hrefOfColumn(node, start[1]) }, "Open column"),
        h("button", { type: "button", class: "plain", onclick: () => view.light(start[0]) }, "Back to the node"),
      ),
    ];
  }

  Object.assign(headrace, { graphCard });
})();
