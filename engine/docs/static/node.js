"use strict";

/* The page of a model or a source, and of a macro. */
(() => {
  const { h, number, icon, badge, section, nodeLink } = headrace;

  const GUARANTEE = { "exactly once": ["exactly once", "good"], "no guarantee": ["no guarantee", "warn"] };

  async function nodePage(site, number_) {
    const { index } = site;
    const node = index.nodes[number_];
    let more = await headrace.needNode(number_);
    const change = await headrace.changeOf(index, number_);
    const [promise, tone] = GUARANTEE[node.guarantee] || [];
    const tests = () =>
      more.tests
        ? section(
            "Tests",
            h(
              "ul",
              { class: "plain" },
              more.tests.map((test) => h("li", {}, headrace.testLine(index, test))),
            ),
          )
        : null;
    const columns = () =>
      more.columns ? section(`Columns (${number(more.columns.length)})`, headrace.columnTable(site, node, more)) : null;
    const parts = [
      () => headrace.state(node, more),
      columns,
      tests,
      () => unitTests(more),
      () => [headrace.rows(more), headrace.runs(more.table), headrace.snapshots(more.table)],
    ].map(headrace.block);
    const [status, typed, ownTests, units, written] = parts.map((part) => part.element);
    /* What a run changes is drawn again. */
    async function update(still) {
      const now = await headrace.needNode(number_);
      if (!still() || !now) return;
      more = now;
      for (const part of parts) part.update();
    }
    const page = h(
      "div",
      { class: "page node" },
      h(
        "header",
        { class: "title" },
        h(
          "p",
          { class: "crumbs" },
          { source: "Source", exposure: "Exposure" }[node.kind] || "Model",
          node.folder ? [" in ", h("bdi", {}, node.folder)] : null,
        ),
        h("h1", {}, icon(node.kind), h("bdi", {}, node.name)),
        h(
          "p",
          { class: "badges" },
          badge(node.what, "kind"),
          badge(promise, tone),
          headrace.stateBadge(node),
          (node.tags || []).map((tag) =>
            h(
              "a",
              { class: "tag", href: `#/graph?select=${encodeURIComponent(`tag:${tag}`)}`, title: "All with this tag" },
              tag,
            ),
          ),
        ),
        headrace.kindOf(node) === "model" && node.summary ? h("p", { class: "lead" }, sentence(node.summary)) : null,
        more.owner ? h("p", { class: "owner" }, "Owner: ", h("bdi", {}, more.owner)) : null,
        more.url ? h("p", {}, h("a", { href: more.url, rel: "noreferrer noopener" }, more.url)) : null,
        more.title ? h("p", { class: "lead" }, more.title) : null,
        more.description ? headrace.prose(more.description) : null,
      ),
      node.broken ? h("p", { class: "notice bad" }, "This does not compile. What could be found out is shown.") : null,
      more.problems ? section("Problems", headrace.problems(index, more.problems)) : null,
      change,
      neighbours(site, number_),
      status,
      inWords(more),
      typed,
      headrace.rowDeciders(site, more),
      ownTests,
      units,
      texts(more),
      more.macros
        ? section(
            "Macros called",
            h(
              "p",
              {},
              more.macros.map((place) => [
                h("a", { href: `#/macro/${index.macros[place]}` }, h("code", {}, index.macros[place])),
                " ",
              ]),
            ),
          )
        : null,
      written,
      facts(more),
    );
    return { title: node.name, page, update };
  }

  const sentence = (text) => `${text.charAt(0).toUpperCase()}${text.slice(1)}.`;

  /* What it reads and what reads it, as a small graph and as lists. */
  function neighbours({ index, graph }, number_) {
    const [above, below] = [graph.up[number_], graph.down[number_]].map((numbers) => [...new Set(numbers)]);
    const all = new Set([number_, ...above, ...below]);
    const name = index.nodes[number_].name;
    const select = (text) =>
      `#/graph?select=${encodeURIComponent(text)}&focus=${encodeURIComponent(index.nodes[number_].id)}`;
    const own = headrace.termOf(index.nodes[number_]);
    const lists = h(
      "div",
      { class: "columns-2" },
      [
        ["Reads", above],
        ["Read by", below],
      ].map(([title, numbers]) =>
        numbers.length
          ? h(
              "div",
              {},
              h("h3", {}, title),
              h(
                "ul",
                { class: "plain" },
                numbers.map((other) => h("li", {}, nodeLink(index.nodes[other]), how(index, number_, other))),
              ),
            )
          : null,
      ),
    );
    if (all.size < 2) return null;
    let picture = null;
    if (all.size <= 60) {
      const view = new headrace.Graph(index, { chosen: all, label: `What ${name} reads, and what reads it` });
      view.light(number_);
      view.world.classList.remove("focused");
      const tall = Math.min(460, Math.max(150, view.layout.height + 60));
      view.element.style.height = `${tall}px`;
      picture = h("div", { class: "frame small" }, view.element, headrace.controls(view));
    }
    return section(
      "Lineage",
      picture,
      h(
        "p",
        { class: "ways" },
        above.length && below.length ? h("a", { href: select(`+${own}+`) }, "All upstream and downstream") : null,
        above.length ? h("a", { href: select(`+${own}`) }, "All upstream") : null,
        below.length ? h("a", { href: select(`${own}+`) }, "All downstream") : null,
      ),
      lists,
    );
  }

  function how(index, number_, other) {
    if ([number_, other].some((place) => index.nodes[place].kind === "exposure")) return null;
    const link = index.links.find(
      ([from, to]) => (from === number_ && to === other) || (from === other && to === number_),
    );
    return h("span", { class: "under" }, link && link[2] ? "as a stream" : "in full");
  }

  function unitTests({ unit_tests: tests }) {
    if (!tests) return null;
    return section(
      "Unit tests",
      h(
        "dl",
        { class: "words stacked" },
        tests.map((test) =>
          h(
            "div",
            {},
            h(
              "dt",
              {},
              h("code", {}, h("bdi", {}, test.name)),
              " ",
              test.status ? badge(test.status, test.tone) : test.broken ? badge("cannot run", "bad") : null,
            ),
            h(
              "dd",
              {},
              test.description ? headrace.prose(test.description) : null,
              h("p", { dir: "auto" }, sentence(test.what)),
              test.message ? h("pre", { class: `notice ${test.tone}`, dir: "auto" }, test.message) : null,
              h("p", { class: "under" }, h("code", {}, test.place)),
            ),
          ),
        ),
      ),
    );
  }

  function inWords({ words, guarantee }) {
    const rows = (words || []).map(([about, text]) => [about, text]);
    if (!rows.length && !guarantee) return null;
    return section(
      "Summary",
      h(
        "dl",
        { class: "words" },
        rows.map(([about, text]) => h("div", {}, h("dt", {}, about), h("dd", { dir: "auto" }, text))),
        guarantee
          ? h("div", {}, h("dt", {}, "Guarantee"), h("dd", {}, h("b", {}, sentence(guarantee[0])), " ", guarantee[1]))
          : null,
      ),
    );
  }

  function texts({ sql, compiled, script }) {
    const panes = [];
    if (sql) panes.push(["Source", headrace.sql(sql), sql]);
    if (compiled) panes.push(["Compiled", headrace.sql(compiled), compiled]);
    if (script) panes.push(["As PySpark", headrace.python(script), script]);
    return panes.length ? section("SQL", headrace.tabs("sql", panes)) : null;
  }

  function facts({ facts: known, table }) {
    const rows = [
      ...(known || []),
      ...(table ? [["Stored columns", table.columns.map(([name, type]) => `${name} ${type}`).join(", ")]] : []),
    ];
    return section(
      "Details",
      h(
        "dl",
        { class: "words" },
        rows.map(([term, text]) => h("div", {}, h("dt", {}, term), h("dd", {}, h("code", {}, h("bdi", {}, text))))),
      ),
    );
  }

  async function macroPage({ index }, name) {
    const macros = await headrace.need("macros");
    const macro = macros.find((item) => item.name === name);
    if (!macro) return null;
    const page = h(
      "div",
      { class: "page macro" },
      h(
        "header",
        { class: "title" },
        h("p", { class: "crumbs" }, "Macro"),
        h("h1", {}, h("code", {}, `${macro.name}(${macro.arguments.join(", ")})`)),
        macro.description ? headrace.prose(macro.description) : null,
      ),
      section("Text", headrace.tabs("macro", [[macro.file, headrace.sql(macro.text), macro.text]])),
      section(
        "Called by",
        macro.used.length
          ? h(
              "ul",
              { class: "plain" },
              macro.used.map((number_) => h("li", {}, nodeLink(index.nodes[number_]))),
            )
          : h("p", { class: "note" }, "No model calls it."),
      ),
    );
    return { title: macro.name, page };
  }

  Object.assign(headrace, { nodePage, macroPage });
})();
