"use strict";

/* The path of a column drawn: cards of the nodes on the way, and lines between their columns. */
(() => {
  const { h, s, icon } = headrace;

  const keyOf = ([node, column]) => `${node} ${column}`;

  /* The path drawn, with row-level lineage if that is wanted: at first only where no value leads anywhere. */
  function columnPath(site, columns, start, trace, impact) {
    const bare = trace.steps.length === 1 && trace.deciders.length > 0;
    const holder = h("div", {}, flow(site, columns, start, trace, impact, bare));
    if (!trace.deciders.length) return holder;
    const box = h("input", {
      type: "checkbox",
      checked: bare,
      onchange: () => holder.replaceChildren(flow(site, columns, start, trace, impact, box.checked)),
    });
    return [h("label", { class: "toggle" }, box, "also row-level lineage (dashed)"), holder];
  }

  /* Cards of the nodes on the way, sources left, with lines between their columns. */
  function flow({ index }, columns, start, trace, impact, withRows) {
    const spots = new Map(trace.steps.map(({ spot, sql, origins }) => [keyOf(spot), { spot, sql, origins }]));
    for (const spot of impact.values) {
      const column = columns.find(spot);
      if (!spots.has(keyOf(spot))) spots.set(keyOf(spot), { spot, sql: column[2], origins: column[3] });
    }
    const others = withRows ? trace.deciders : [];
    for (const { spot, kind } of others) {
      if (!spots.has(keyOf(spot))) spots.set(keyOf(spot), { spot, sql: "", origins: [], how: [] });
      const { how } = spots.get(keyOf(spot));
      if (how && !how.includes(kind)) how.push(kind);
    }
    const rows = new Map();
    const stops = new Map();
    for (const item of spots.values()) {
      const current = keyOf(item.spot) === keyOf(start);
      const row = h(
        "li",
        { class: current ? "current" : null },
        h(
          "a",
          {
            href: headrace.hrefOfColumn(index.nodes[item.spot[0]], item.spot[1]),
            "aria-current": current ? "true" : null,
          },
          h("bdi", {}, item.spot[1]),
        ),
        item.sql && item.sql !== "*" && item.sql !== item.spot[1] ? h("code", {}, item.sql) : null,
        item.how ? h("span", { class: "how" }, `${item.how.join(", ")}: decides on rows`) : null,
      );
      rows.set(keyOf(item.spot), row);
      if (!stops.has(item.spot[0])) stops.set(item.spot[0], stop(index.nodes[item.spot[0]]));
      stops.get(item.spot[0]).querySelector("ul").append(row);
    }
    const lines = s("svg", { class: "lines", "aria-hidden": "true" });
    const cards = lanes(index, stops);
    const frame = h("div", { class: "flow" }, lines, cards);
    frame.style.setProperty("--lanes", cards.length);
    const values = [...spots.values()].flatMap(({ spot, origins }) =>
      origins.map((origin) => [nearest(rows, origin), rows.get(keyOf(spot)), "value"]),
    );
    const dashed = others.map(({ model, spot }) => [
      rows.get(keyOf(spot)),
      stops.get(model).querySelector("p"),
      "rows",
    ]);
    const pairs = [...values, ...dashed].filter(([from]) => from);
    const region = h("div", { class: "scroll flow-frame", role: "region", "aria-label": "Path of the column", tabindex: "0" }, frame);
    let shown = false;
    new ResizeObserver(() => {
      connect(frame, lines, pairs);
      // A path that is too long begins at the column of the page.
      if (!shown) region.scrollLeft = rows.get(keyOf(start)).offsetParent.offsetLeft - region.clientWidth / 2;
      shown = true;
    }).observe(frame);
    return region;
  }

  const stop = (node) =>
    h(
      "div",
      { class: `stop ${node.kind}` },
      h("p", {}, icon(node.kind), h("a", { href: headrace.hrefOf(node) }, h("bdi", {}, node.name))),
      h("ul", {}),
    );

  /* The cards in columns, as the graph would place their nodes. */
  function lanes(index, stops) {
    const places = headrace.lanesOf(index, new Set(stops.keys()));
    const found = new Map();
    for (const [node, element] of stops) {
      const [x, y] = places.get(node);
      if (!found.has(x)) found.set(x, []);
      found.get(x).push([y, element]);
    }
    return [...found.keys()]
      .sort((a, b) => a - b)
      .map((x) =>
        h(
          "div",
          { class: "lane" },
          found
            .get(x)
            .sort((a, b) => a[0] - b[0])
            .map(([, element]) => element),
        ),
      );
  }

  /* The row of a column, or of the struct or field it belongs to. */
  function nearest(rows, [node, column]) {
    const exact = rows.get(keyOf([node, column]));
    if (exact) return exact;
    const lower = column.toLowerCase();
    for (const [key, row] of rows) {
      const [other, theirs] = [key.slice(0, key.indexOf(" ")), key.slice(key.indexOf(" ") + 1).toLowerCase()];
      if (
        other === String(node) &&
        (theirs === lower || theirs.startsWith(`${lower}.`) || lower.startsWith(`${theirs}.`))
      )
        return row;
    }
    return null;
  }

  // What a sheet of A4 holds between the margins of site.css.
  const PAPER = 655;

  /* On paper the path keeps the form that it has on the screen, and becomes smaller as a whole. */
  for (const [event, yes] of [
    ["beforeprint", true],
    ["afterprint", false],
  ])
    window.addEventListener(event, () => {
      for (const { style, offsetWidth } of document.querySelectorAll(".flow")) {
        style.width = yes ? `${offsetWidth}px` : "";
        style.zoom = yes ? Math.min(1, PAPER / offsetWidth) : "";
      }
    });

  function connect(frame, lines, pairs) {
    if (frame.style.zoom) return;
    const base = frame.getBoundingClientRect();
    lines.setAttribute("width", frame.scrollWidth);
    lines.setAttribute("height", frame.scrollHeight);
    lines.replaceChildren(
      ...pairs.map(([from, to, kind]) => {
        const [a, b] = [from.getBoundingClientRect(), to.getBoundingClientRect()];
        const [x0, y0, x1, y1] = [
          a.right - base.left,
          a.top + a.height / 2 - base.top,
          b.left - base.left,
          b.top + b.height / 2 - base.top,
        ];
        const middle = (x0 + x1) / 2;
        const lit = from.classList.contains("current") || to.classList.contains("current") ? "lit" : "";
        return s("path", {
          class: `link ${kind} ${lit}`,
          d: `M${x0} ${y0}C${middle} ${y0} ${middle} ${y1} ${x1} ${y1}`,
        });
      }),
    );
  }

  Object.assign(headrace, { columnPath });
})();
