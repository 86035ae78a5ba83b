"use strict";

/* What pages are made of: sections, tables, tiles, badges. */
(() => {
  const { h, number, icon } = headrace;

  const badge = (text, tone) =>
    text ? h("span", { class: `badge ${tone || ""}` }, h("i", { class: "sign", "aria-hidden": "true" }), text) : null;

  /* What shows the state of a node carries its id, so that it can be drawn again when that changes. */
  const ofNode = (node, ...content) => h("span", { class: "of-node", "data-node": node.id }, content);

  const stateBadge = (node) => {
    const { word, tone } = headrace.standing(node);
    return ofNode(node, badge(word, tone));
  };

  /* A link to a node's page, with its icon and what is wrong with it. */
  const nodeLink = (node) =>
    h(
      "span",
      { class: "node-link" },
      icon(node.kind),
      h("a", { href: headrace.hrefOf(node) }, h("bdi", {}, node.name)),
      stateBadge(node),
    );

  /* A node in the list beside the page. */
  function entry(node) {
    const { word, tone } = headrace.standing(node);
    return h(
      "a",
      { href: headrace.hrefOf(node), class: tone, title: word || null, "data-node": node.id },
      icon(node.kind),
      h("bdi", {}, node.name),
      word ? h("span", { class: tone === "bad" ? "state" : "hidden" }, tone === "bad" ? word : ` (${word})`) : null,
    );
  }

  /* Draw the state of these nodes again, wherever the list and the page show it. */
  function restate(nodes) {
    for (const node of nodes)
      for (const element of document.querySelectorAll(`[data-node="${CSS.escape(node.id)}"]`))
        headrace.morph(element, element.localName === "a" ? entry(node) : stateBadge(node), ["aria-current"]);
  }

  /* A part of a page, and how to draw it again: what stays as it is keeps its place, its focus and what is selected in it. */
  function block(draw) {
    const element = h("div", { class: "part" }, draw());
    return { element, update: () => headrace.morph(element, h("div", { class: "part" }, draw())) };
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

  /* A button that brings what is left to the element before it, and goes. */
  function more(text, bring) {
    const button = h(
      "button",
      {
        type: "button",
        class: "more-rows",
        onclick: () => {
          bring(button.previousElementSibling);
          // A part that is drawn again shows all from the beginning.
          const whole = button.closest(".part");
          if (whole) whole.dataset.whole = "true";
          button.remove();
        },
      },
      text,
    );
    return button;
  }

  Object.assign(headrace, { badge, stateBadge, nodeLink, entry, restate, block, tile, table, cell, amount, section, more });
})();
