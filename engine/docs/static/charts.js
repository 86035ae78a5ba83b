"use strict";

/* Small charts, drawn as SVG; each says in words what it shows. */
(() => {
  const { h, s, number, stamp } = headrace;
  const SIZE = { width: 320, height: 72 };

  function svg(label, ...children) {
    return s(
      "svg",
      {
        class: "chart",
        viewBox: `0 0 ${SIZE.width} ${SIZE.height}`,
        preserveAspectRatio: "none",
        role: "img",
        "aria-label": label,
      },
      children,
    );
  }

  const top = (values) => Math.max(1, ...values);
  const round = (value) => Math.round(value * 100) / 100;

  /* Bars, one for each value; titles say what each is. A line is drawn left of those in `begins`. */
  function bars(label, values, titles, begins = []) {
    const step = SIZE.width / Math.max(values.length, 12);
    const most = top(values);
    return svg(
      `${label}: ${values.length} values, the last ${number(values[values.length - 1])}, the greatest ${number(most)}`,
      begins.map((i) => s("path", { class: "begin", d: `M${round(i * step - step * 0.14)} 0V${SIZE.height}` })),
      values.map((value, i) => {
        const tall = value > 0 ? Math.max(1.5, (value / most) * (SIZE.height - 2)) : 0.75;
        return s(
          "rect",
          {
            class: value > 0 ? "bar" : "bar none",
            x: round(i * step),
            y: round(SIZE.height - tall),
            width: round(Math.max(step * 0.72, step - 3)),
            height: round(tall),
          },
          s("title", {}, titles[i]),
        );
      }),
    );
  }

  /* A line over an area; `shown` turns a value into words. */
  function line(label, values, shown = number) {
    const low = Math.min(...values);
    const most = Math.max(...values);
    const base = low >= 0 && low < most / 2 ? 0 : low;
    const height = (value) =>
      most === base ? SIZE.height / 2 : SIZE.height - 3 - ((value - base) / (most - base)) * (SIZE.height - 8);
    const step = values.length > 1 ? SIZE.width / (values.length - 1) : 0;
    const points = values.map((value, i) => `${round(i * step)} ${round(height(value))}`);
    const path = values.length > 1 ? `M${points.join("L")}` : `M0 ${height(values[0])}H${SIZE.width}`;
    return svg(
      `${label}: from ${shown(values[0])} to ${shown(values[values.length - 1])}`,
      s("path", { class: "area", d: `${path}V${SIZE.height}H0Z` }),
      s("path", { class: "line", d: path }),
    );
  }

  /* A chart with its title and its last value. */
  const figure = (title, value, chart, note) =>
    h(
      "figure",
      { class: "figure" },
      h("figcaption", {}, h("span", {}, title), h("b", {}, value)),
      chart,
      note ? h("p", { class: "note" }, note) : null,
    );

  /* Bars small enough for a table's cell. */
  function spark(label, values) {
    const most = top(values);
    const width = 4;
    return s(
      "svg",
      {
        class: "spark",
        viewBox: `0 0 ${width * 40} 24`,
        role: "img",
        "aria-label": `${label}: ${values.map(number).join(", ")}`,
      },
      values.map((value, i) => {
        const tall = value > 0 ? Math.max(1.5, (value / most) * 23) : 0.75;
        return s("rect", {
          class: value > 0 ? "bar" : "bar none",
          x: i * width,
          y: round(24 - tall),
          width: width - 1,
          height: round(tall),
        });
      }),
    );
  }

  /* The charts of a table and of its last run. */
  function charts(run, table) {
    const found = [];
    if (table && table.history.length > 1) {
      const history = table.history;
      const added = history.map(([, rows]) => rows);
      const begins = history.flatMap((commit, i) => (commit[5] ? [i] : []));
      found.push(
        figure(
          "Rows written by each commit",
          number(added[added.length - 1]),
          bars(
            "Rows written by each commit",
            added,
            history.map(([at, rows]) => `${stamp(at)}: ${number(rows)}`),
            begins,
          ),
          begins.length ? `${headrace.plural(begins.length + 1, "run")}` : null,
        ),
      );
      found.push(
        figure(
          "Rows in the table",
          number(table.rows),
          line(
            "Rows in the table",
            history.map((snapshot) => snapshot[3]),
          ),
        ),
      );
    }
    const quarantined = table ? table.quarantined : [];
    if (quarantined.length) {
      const last = quarantined[quarantined.length - 1];
      found.push(
        figure(
          "Rows in quarantine",
          number(last[2]),
          bars(
            "Rows quarantined by each commit",
            quarantined.map(([, rows]) => rows),
            quarantined.map(([at, rows]) => `${stamp(at)}: ${number(rows)}`),
          ),
        ),
      );
    }
    return [...found, ...ofRun(run)];
  }

  function ofRun(run) {
    const batches = (run && run.progress) || [];
    if (batches.length < 2) return [];
    const found = [];
    const of = (place) => batches.map((batch) => batch[place]);
    const titles = (place) => batches.map((batch) => `batch ${batch[0]}: ${number(batch[place])}`);
    const sum = (values) => values.reduce((a, b) => a + b, 0);
    found.push(figure("Rows in, by batch", number(sum(of(1))), bars("Rows in by batch", of(1), titles(1))));
    if (of(3).some(Boolean))
      found.push(figure("Late rows, by batch", number(sum(of(3))), bars("Late rows by batch", of(3), titles(3))));
    if (of(6).some(Boolean))
      found.push(
        figure("Quarantined rows, by batch", number(sum(of(6))), bars("Quarantined rows by batch", of(6), titles(6))),
      );
    if (of(4).some(Boolean))
      found.push(figure("Rows in state", number(of(4)[batches.length - 1]), line("Rows in state", of(4))));
    const marks = of(5).filter(Boolean);
    if (marks.length > 1)
      found.push(figure("Watermark", stamp(marks[marks.length - 1]), line("Watermark", marks, stamp)));
    return found;
  }

  Object.assign(headrace, { charts, spark });
})();
