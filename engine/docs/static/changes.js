"use strict";

/* What the project adds, removes and changes against an earlier one: on a page of its own, and on the page of each node. */
(() => {
  const { h, plural, badge, section, nodeLink } = headrace;
  const TONES = { added: "good", changed: "warn", removed: "bad" };

  const changeBadge = (kind) => (kind ? badge(kind, TONES[kind]) : null);

  async function changesPage(site) {
    const { index, graph } = site;
    const changes = await headrace.need("changes");
    if (!index.compared) return null;
    const of = (kind) => changes.filter((change) => change.kind === kind);
    const chosen = new Set(changes.flatMap(({ node }) => [node, ...graph.up[node], ...graph.down[node]]));
    const view = changes.length ? new headrace.Graph(index, { chosen, tall: chosen.size > 40, label: "What changes, and what is next to it" }) : null;
    if (view) headrace.shown = view;
    return {
      title: "Changes",
      page: h(
        "div",
        { class: "page changes" },
        h(
          "header",
          { class: "title" },
          h("h1", {}, "Changes"),
          h("p", { class: "lead" }, ["added", "changed", "removed"].map((kind) => [changeBadge(`${of(kind).length} ${kind}`), " "])),
        ),
        changes.length ? null : h("p", { class: "notice good" }, "Nothing differs from the earlier project."),
        view ? section("Affected part", h("div", { class: "frame" }, view.element, headrace.controls(view)), headrace.legend(index)) : null,
        ["added", "changed", "removed"].map((kind) =>
          of(kind).length ? section(kind.charAt(0).toUpperCase() + kind.slice(1), h("ul", { class: "problems" }, of(kind).map((change) => entry(index, change)))) : null,
        ),
      ),
    };
  }

  const entry = (index, change) =>
    h("li", { class: change.kind }, h("div", { class: "change" }, h("p", {}, nodeLink(index.nodes[change.node]), " ", changeBadge(change.kind)), content(change)));

  /* What differs of a node. */
  const content = ({ details, sql, action }) => [
    action ? h("p", {}, h("span", { class: "under" }, "A build: "), h("bdi", {}, action)) : null,
    details.length ? h("dl", { class: "words" }, details.map(([about, text]) => h("div", {}, h("dt", {}, about), h("dd", { dir: "auto" }, text)))) : null,
    sql.length
      ? h("pre", { class: "diff", tabindex: "0" }, sql.map((line) => h("span", { class: { "+": "plus", "-": "minus", "@": "place" }[line[0]] || null }, `${line}\n`)))
      : null,
  ];

  /* The part of a node's page about its change; null: it is as it was. */
  async function changeOf(index, number) {
    if (!index.compared || !index.nodes[number].change) return null;
    const change = (await headrace.need("changes")).find(({ node }) => node === number);
    return change ? section("Change", h("p", {}, changeBadge(change.kind)), content(change)) : null;
  }

  Object.assign(headrace, { changesPage, changeOf });
})();
