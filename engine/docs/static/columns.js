"use strict";

/* The columns of a model or source as a table: what each is made from, and how it is tested. */
(() => {
  const { h, number, badge, section } = headrace;

  const SHOWN = 200;

  const asField = ([path, type, description]) => ({ name: path, type, description, field: path.slice(path.indexOf(".")) });

  /* A struct whose fields have rows of their own needs no more than the word. */
  const shortType = ({ type, fields, field }) =>
    fields || (field && type.startsWith("struct<")) ? "struct" : type || "unknown";

  /* The columns as a table; of a very wide one the first, then the rest on demand. */
  function columnTable({ index }, node, { columns }) {
    const all = columns.flatMap((column) => [column, ...(column.fields || []).map(asField)]);
    const made = all.some((column) => column.sql || column.origins);
    const tested = all.some((column) => column.tests);
    const described = all.some((column) => column.description || column.meta);
    const heads = [["Name"], ["Type"], made && ["Derived from"], described && ["Description"], tested && ["Tests"]].filter(
      Boolean,
    );
    const row = (column) =>
      h(
        "tr",
        { class: column.field ? "field" : null },
        h(
          "th",
          { scope: "row" },
          h(
            "a",
            {
              class: "column-link",
              href: headrace.hrefOfColumn(node, column.name),
              title: "Where it comes from, and what goes with it",
            },
            h("code", {}, h("bdi", {}, column.field || column.name)),
          ),
        ),
        h("td", { "data-head": "Type", class: "type" }, h("code", { title: column.type }, shortType(column))),
        made ? h("td", { "data-head": "Derived from" }, origins(index, column)) : null,
        described
          ? h("td", { "data-head": "Description" }, column.description ? headrace.prose(column.description) : null, metas(column))
          : null,
        tested
          ? h(
              "td",
              { "data-head": "Tests" },
              (column.tests || []).map((test) => testLine(index, test)),
            )
          : null,
      );
    const table = headrace.table(`Columns of ${node.name}`, heads, all.slice(0, SHOWN).map(row));
    if (all.length <= SHOWN) return table;
    const bring = (before) => before.querySelector("tbody").append(...all.slice(SHOWN).map(row));
    return [table, headrace.more(`Show all ${number(columns.length)} columns`, bring)];
  }

  const metas = ({ meta = [] }) =>
    meta.map(([key, text]) => h("span", { class: "under" }, h("bdi", {}, key), ": ", h("bdi", {}, text)));

  /* The text that makes a column, if it says more than the origins do, and the columns in it. */
  function origins(index, { sql, origins: from = [] }) {
    const links = from.map(([node, column]) =>
      h(
        "a",
        { class: "origin", href: headrace.hrefOfColumn(index.nodes[node], column) },
        headrace.dotted(`${index.nodes[node].name}.${column}`),
      ),
    );
    const plain =
      from.length === 1 && (sql === "*" || sql.split(".").pop().replaceAll("`", "") === from[0][1].split(".").pop());
    return [sql && !plain ? h("code", { class: "expression" }, sql) : null, links];
  }

  function rowDeciders({ index }, { indirect }) {
    if (!indirect) return null;
    return section(
      "Row-level lineage (filters, joins, group by)",
      h(
        "ul",
        { class: "plain" },
        indirect.map(([node, column, kind]) =>
          h(
            "li",
            {},
            badge(kind, "kind"),
            " ",
            h(
              "a",
              { class: "origin", href: headrace.hrefOfColumn(index.nodes[node], column) },
              headrace.dotted(`${index.nodes[node].name}.${column}`),
            ),
          ),
        ),
      ),
    );
  }

  function testLine(index, test) {
    return h(
      "span",
      { class: "test", title: test.message || test.description || test.name },
      test.what,
      (test.reads || []).map((other) => [
        " ",
        h("a", { href: headrace.hrefOf(index.nodes[other]) }, index.nodes[other].name),
      ]),
      test.status ? [" ", badge(test.status, test.tone)] : null,
      test.history ? [" ", past(test.history)] : null,
    );
  }

  /* How a test ended in the last runs, the oldest first. */
  function past(runs) {
    const counted = new Map();
    for (const [, status] of runs) counted.set(status, (counted.get(status) || 0) + 1);
    const words = [...counted].map(([status, count]) => `${count} ${status}`).join(", ");
    const title = runs.map(([at, status]) => `${at ? headrace.stamp(at) : "?"} ${status}`).join("\n");
    return h("span", { class: "past", role: "img", "aria-label": `last ${runs.length} runs: ${words}`, title }, runs.map(([, , tone]) => h("i", { class: tone })));
  }

  Object.assign(headrace, { columnTable, rowDeciders, testLine, metas });
})();
