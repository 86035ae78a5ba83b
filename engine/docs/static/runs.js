"use strict";

/* The runs that the project still has, and of each when its nodes waited and ran, and how many rows they read and wrote. */
(() => {
  const { h, number, plural, time, badge, section, table, cell, amount, nodeLink } = headrace;
  // Times of nodes are known to about so many seconds.
  const SLACK = 1;
  // So many lines of the log are drawn at once.
  const SHOWN = 100;
  const seconds = (value) => (value === null || value === undefined ? "–" : value < 10 ? `${value.toFixed(1)} s` : headrace.span(value * 1000));

  async function runsPage(site, place) {
    const runs = await headrace.need("runs");
    if (place !== undefined) return runs[Number(place)] ? oneRun(site, runs, Number(place)) : null;
    const row = (run, i) =>
      h(
        "tr",
        {},
        h("th", { scope: "row" }, h("a", { href: `#/runs/${i}` }, run.at ? time(run.at) : `run ${i + 1}`)),
        cell("Command", h("code", {}, run.command)),
        cell("Target", run.target),
        cell("Took", seconds(run.seconds)),
        cell("Ended", ended(run)),
        amount("Rows in", sum(run.results, 5)),
        amount("Rows out", sum(run.results, 6)),
      );
    const heads = [["Began"], ["Command"], ["Target"], ["Took"], ["Ended"], ["Rows in", "amount"], ["Rows out", "amount"]];
    return {
      title: "Runs",
      page: h(
        "div",
        { class: "page runs" },
        h("header", { class: "title" }, h("h1", {}, "Runs")),
        runs.length ? table("Runs", heads, runs.map(row)) : h("p", { class: "notice" }, "No run is recorded yet. Run engine build."),
      ),
    };
  }

  const sum = (results, place) => results.reduce((total, result) => total + (result[place] || 0), 0);

  /* How the nodes of a run ended, the worst first. */
  function ended({ results }) {
    const counted = new Map();
    for (const [, status, tone] of results) counted.set(status, { tone, count: (counted.get(status) || { count: 0 }).count + 1 });
    const order = ["bad", "warn", "good", "plain"];
    return [...counted]
      .sort((a, b) => order.indexOf(a[1].tone) - order.indexOf(b[1].tone))
      .map(([status, { tone, count }]) => [badge(`${number(count)} ${status}`, tone), " "]);
  }

  /* What a node waits for: a model for what it reads and for its unit tests, a data test for its model. */
  function inputsOf(site, spans) {
    const unitTests = new Map();
    for (const { name, result } of spans) {
      const [model, later] = result[8].tested || [];
      if (model !== undefined && !later) unitTests.set(model, [...(unitTests.get(model) || []), name]);
    }
    return ({ name, result }) => {
      if (typeof name === "number") return [...site.graph.up[name], ...(unitTests.get(name) || [])];
      const [model, later] = result[8].tested || [];
      return later ? [model] : [];
    };
  }

  /* When each node could have begun, and the chain of nodes that the end of the run waited for. */
  function timed(site, results) {
    const spans = results.filter(([, , , began]) => began !== null).map((result) => ({ result, name: result[0], began: result[3], ended: result[4] }));
    const byNode = new Map(spans.map((span) => [span.name, span]));
    const inputs = inputsOf(site, spans);
    const start = Math.min(...spans.map(({ began }) => began));
    for (const span of spans) {
      const parents = inputs(span).map((parent) => byNode.get(parent)).filter((parent) => parent && parent !== span && parent.ended <= span.began + SLACK);
      span.after = parents.sort((a, b) => b.ended - a.ended)[0] || null;
      span.ready = Math.min(span.began, Math.max(start, span.after ? span.after.ended : start));
      // It waited for another node to make room for it.
      if (span.began - span.ready > SLACK) span.after = spans.filter((other) => other !== span && other.ended <= span.began + SLACK / 2).sort((a, b) => b.ended - a.ended)[0] || span.after;
    }
    const models = spans.filter(({ name }) => typeof name === "number");
    let last = [...(models.length ? models : spans)].sort((a, b) => b.ended - a.ended)[0];
    for (; last && !last.critical; last = last.after) last.critical = true;
    return spans.sort((a, b) => a.began - b.began || a.ended - b.ended);
  }

  function oneRun(site, runs, place) {
    const run = runs[place];
    const spans = timed(site, run.results);
    const [from, to] = [Math.min(...spans.map(({ began }) => began)), Math.max(...spans.map((span) => span.ended))];
    const left = run.results.filter(([, , , began]) => began === null);
    const critical = spans.filter((span) => span.critical);
    return {
      title: "Run",
      page: h(
        "div",
        { class: "page runs" },
        h(
          "header",
          { class: "title" },
          h("p", { class: "crumbs" }, h("a", { href: "#/runs" }, "Runs")),
          h("h1", {}, h("code", {}, run.command || "run"), " ", run.at ? time(run.at) : ""),
          h("p", { class: "lead" }, `target ${run.target} · ${seconds(run.seconds)} · `, ended(run)),
        ),
        spans.length ? section("Timeline", legend(), chart(site, spans, from, Math.max(to - from, 0.001))) : null,
        critical.length > 1
          ? section(
              "Critical path",
              h("p", { class: "note" }, `The end of the run waited for these ${number(critical.length)} nodes, one after another: each for an input, or for room to run.`),
              h("ul", { class: "plain" }, critical.map(({ name, began, ended: end }) => h("li", {}, label(site, name), " ", h("span", { class: "under" }, seconds(end - began))))),
            )
          : null,
        left.length
          ? section("Not begun", h("p", { class: "note" }, plural(left.length, "node")), h("ul", { class: "plain many" }, left.slice(0, 200).map(([name, status, tone, , , , , message]) => h("li", {}, label(site, name), " ", badge(status, tone), message ? h("span", { class: "under" }, ` ${message}`) : null))))
          : null,
        run.reported.length ? section("Warnings and errors", reported(site, run)) : null,
        run.results.length ? section("Log", log(site, run)) : null,
      ),
    };
  }

  /* What the run warned about, as the terminal showed it. */
  function reported(site, { reported: all, more }) {
    const item = ({ level, code, message, hint, node, place }) =>
      h(
        "li",
        { class: level },
        badge(level, level === "error" ? "bad" : "warn"),
        h("p", { dir: "auto" }, message),
        hint ? h("p", { class: "hint", dir: "auto" }, hint) : null,
        h("p", { class: "where" }, node !== undefined ? label(site, node) : null, place ? h("code", {}, place) : null, h("code", {}, code)),
      );
    return [rest("ul", { class: "problems" }, all, item), more ? h("p", { class: "note" }, `and ${plural(more, "more that is", "more that are")} not recorded`) : null];
  }

  /* A list that begins with a part of its items, and a button that brings the rest. */
  function rest(tag, properties, items, item) {
    const list = h(tag, properties, items.slice(0, SHOWN).map(item));
    if (items.length <= SHOWN) return list;
    return [list, headrace.more(`Show all ${number(items.length)}`, (before) => before.append(...items.slice(SHOWN).map(item)))];
  }

  /* What each node did, in the order in which they ended: inputs, output, counts. */
  function log(site, { results }) {
    const done = results.filter(([, , , began]) => began !== null).sort((a, b) => a[4] - b[4]);
    const entry = ([name, status, tone, , ended, rowsIn, rowsOut, message, written]) => {
      const counts = { rows_in: rowsIn, rows_out: rowsOut, ...written.counts };
      const texts = headrace.COUNTS.filter(([key]) => counts[key]).map(([key, text]) => `${text.toLowerCase()}: ${number(counts[key])}`);
      texts.push(...(written.counted || []).map(([what, of, rows]) => `${what.toLowerCase()} (${of}): ${number(rows)}`));
      const inputs = typeof name === "number" ? [...new Set(site.graph.up[name])] : [];
      const [tested] = written.tested || [];
      return h(
        "li",
        {},
        time(ended * 1000, { clock: true }),
        h(
          "div",
          {},
          h("p", {}, typeof name === "number" ? nodeName(site, name) : label(site, name), " ", badge(status, tone), " ", texts.join(", ")),
          inputs.length ? h("p", { class: "note" }, "read ", inputs.map((input, i) => [i ? ", " : "", nodeName(site, input)])) : null,
          tested === undefined ? null : h("p", { class: "note" }, "tested ", nodeName(site, tested)),
          written.table ? h("p", { class: "note" }, "wrote ", h("code", {}, written.table), written.snapshot ? `, snapshot ${written.snapshot}` : "") : null,
          message ? h("p", { class: "note", dir: "auto" }, message) : null,
          written.note ? h("p", { class: "note" }, written.note) : null,
        ),
      );
    };
    return rest("ul", { class: "log" }, done, entry);
  }

  const nodeName = ({ index }, place) => h("a", { href: headrace.hrefOf(index.nodes[place]) }, h("bdi", {}, index.nodes[place].name));

  const label = ({ index }, name) => (typeof name === "number" ? nodeLink(index.nodes[name]) : h("code", {}, headrace.dotted(name, /(?<=[._])/)));

  const legend = () =>
    h("p", { class: "legend" }, [["ran", "ran"], ["ran critical", "critical path"], ["waited", "waited, inputs ready"]].map(([style, text]) => h("span", {}, h("i", { class: `sample-bar ${style}`, "aria-hidden": "true" }), text)));

  function chart(site, spans, from, length) {
    const share = (value) => `${(100 * value) / length}%`;
    const bar = (style, begin, end) => {
      const element = h("i", { class: style });
      element.style.left = share(begin - from);
      element.style.width = share(end - begin);
      return element;
    };
    const row = (span) => {
      const [name, status, tone, , , rowsIn, rowsOut, message] = span.result;
      return h(
        "tr",
        {},
        h("th", { scope: "row" }, label(site, name), message ? h("span", { class: "under", dir: "auto" }, message) : null),
        h(
          "td",
          { class: "track", "data-head": "Timeline" },
          h("div", { "aria-hidden": "true" }, span.began > span.ready ? bar("waited", span.ready, span.began) : null, bar(`ran ${tone === "bad" ? "bad" : ""} ${span.critical ? "critical" : ""}`, span.began, span.ended)),
        ),
        cell("Waited", seconds(span.began - span.ready)),
        cell("Took", seconds(span.ended - span.began), span.critical ? h("span", { class: "hidden" }, " (critical path)") : null),
        amount("Rows in", rowsIn),
        amount("Rows out", rowsOut),
        cell("Status", badge(status, tone)),
      );
    };
    const heads = [["Node"], ["Timeline"], ["Waited"], ["Took"], ["Rows in", "amount"], ["Rows out", "amount"], ["Status"]];
    return table("Timeline of the run", heads, spans.map(row), "cards gantt");
  }

  Object.assign(headrace, { runsPage });
})();
