"use strict";

/* What pages are made of: sections, tables, tiles, badges. */
(() => {
  const { h, number, icon } = headrace;

  const badge = (text, tone) =>
    text ? h("span", { class: `badge ${tone || ""}` }, h("i", { class: "sign", "aria-hidden": "true" }), text) : null;

  /* A link to a node's page, with its icon and what is wrong with it. */
  function nodeLink(node) {
    const state = headrace.standing(node);
    return h(
      "span",
      { class: "node-link" },
      icon(node.kind),
      h("a", { href: headrace.hrefOf(node) }, h("bdi", {}, node.name)),
      badge(state.word, state.tone),
    );
  }

  function tile(label, value, note, tone) {
    return h(
      "div",
      { class: `tile ${tone || ""}` },
      h("dt", {}, label),
      h("dd", {}, h("b", {}, value), note ? h("span", {}, note) : null),
    );
  }

  /* A table; on a narrow window each row becomes a card, unless it is a table of numbers. */
  function table(label, heads, rows, style = "cards") {
    return h(
      "div",
      { class: "scroll", role: "region", "aria-label": label, tabindex: "0" },
      h(
        "table",
        { class: style },
        h(
          "thead",
          {},
          h(
            "tr",
            {},
            heads.map(([text, align]) => h("th", { scope: "col", class: align }, text)),
          ),
        ),
        h("tbody", {}, rows),
      ),
    );
  }

  const cell = (head, ...children) => h("td", { "data-head": head }, children);
  const amount = (head, value) =>
    h("td", { "data-head": head, class: "amount" }, value === undefined || value === null ? "–" : number(value));

  function section(title, ...content) {
    return h("section", {}, h("h2", {}, title), content);
  }

  /* A button that brings what is left, and goes. */
  function more(text, bring) {
    const button = h(
      "button",
      {
        type: "button",
        class: "more-rows",
        onclick: () => {
          bring();
          button.remove();
        },
      },
      text,
    );
    return button;
  }

  Object.assign(headrace, { badge, nodeLink, tile, table, cell, amount, section, more });
})();
