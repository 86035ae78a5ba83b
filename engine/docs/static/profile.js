"use strict";

/* What the columns of a table hold, and some of its rows: only where the site was generated with --profile. */
(() => {
  const { h, number, section } = headrace;

  const share = (part, all) => (all ? ` (${part && part < all / 100 ? "<1" : Math.round((100 * part) / all)}%)` : "");

  function profile(node, known) {
    if (!known) return null;
    const { rows, total, columns, sample, left_out: hidden } = known;
    const of = rows < total ? `The first ${number(rows)} of ${number(total)} rows` : headrace.plural(rows, "row");
    return section(
      "Profile",
      columns.length ? h("p", { class: "note above" }, `${of}, as of when this site was generated.`) : null,
      hidden.length
        ? h(
            "p",
            { class: "note above" },
            "Left out, as personal data or not described by the model: ",
            hidden.map((name, i) => [i ? ", " : "", h("code", {}, h("bdi", {}, name))]),
          )
        : null,
      columns.length ? columnsOf(node, rows, columns) : null,
      sample.length ? sampleOf(node, columns, sample) : null,
    );
  }

  function columnsOf(node, rows, columns) {
    const row = ([name, type, nulls, distinct, least, greatest, frequent]) =>
      h(
        "tr",
        {},
        h("th", { scope: "row" }, h("a", { class: "column-link", href: headrace.hrefOfColumn(node, name) }, code(name))),
        h("td", { "data-head": "NULLs", class: "amount" }, number(nulls), nulls ? share(nulls, rows) : ""),
        headrace.amount("Distinct", distinct),
        headrace.cell("Min", least ? code(least) : null),
        headrace.cell("Max", greatest ? code(greatest) : null),
        headrace.cell(
          "Top values",
          frequent.map(([value, times]) =>
            h("span", { class: "origin" }, h("bdi", {}, value), h("span", { class: "under" }, `${number(times)} times`)),
          ),
        ),
      );
    const heads = [["Name"], ["NULLs", "amount"], ["Distinct", "amount"], ["Min"], ["Max"], ["Top values"]];
    return headrace.table(`Profile of ${node.name}`, heads, columns.map(row), "cards profile");
  }

  function sampleOf(node, columns, sample) {
    const cell = (value) => h("td", {}, value === null ? h("span", { class: "under" }, "NULL") : h("bdi", { title: value }, value));
    const rows = sample.map((values) => h("tr", {}, values.map(cell)));
    const heads = columns.map(([name]) => [h("bdi", {}, name)]);
    return [h("h3", {}, "Sample rows"), headrace.table(`Sample rows of ${node.name}`, heads, rows, "numbers preview")];
  }

  const code = (text) => h("code", {}, h("bdi", {}, text));

  Object.assign(headrace, { profile });
})();
