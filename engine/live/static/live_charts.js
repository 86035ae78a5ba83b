"use strict";

/* The charts of the live page: series over time with an axis from zero, and the timeline of turns. */
(() => {
  const { h, s, number } = headrace;
  const SIZE = { width: 640, height: 170, left: 62, bottom: 24, top: 10, right: 10 };
  const ROW = 20;
  const clock = (seconds) => new Date(seconds * 1000).toISOString().slice(11, 19);
  const day = (seconds) => new Date(seconds * 1000).toISOString().slice(5, 16).replace("T", " ");

  /* A round number not below a value: 1, 2 or 5 times a power of ten. */
  function ceiling(value) {
    if (!(value > 0)) return 1;
    const power = 10 ** Math.floor(Math.log10(value));
    return [1, 2, 5, 10].map((n) => n * power).find((n) => n >= value);
  }

  const short = (value) =>
    value >= 1e9 ? `${value / 1e9} G` : value >= 1e6 ? `${value / 1e6} M` : value >= 1e4 ? `${value / 1e3} k` : `${+value.toFixed(3)}`;

  /* Bars over time: points are [seconds since 1970, value]; the axis begins at zero. A level has no sum. */
  function series(title, unit, points, { from, to, step, tone = "", level = false }) {
    const { width, height, left, bottom, top, right } = SIZE;
    const most = ceiling(Math.max(0, ...points.map(([, value]) => value)));
    const x = (at) => left + ((at - from) / (to - from)) * (width - left - right);
    const y = (value) => height - bottom - (value / most) * (height - bottom - top);
    const wide = Math.max(1, ((width - left - right) * step) / (to - from) - 1);
    const ticks = [0, most / 2, most];
    const times = [0, 0.5, 1].map((part) => from + (to - from) * part);
    const sum = points.reduce((all, [, value]) => all + value, 0);
    const together = level ? "" : `, together ${number(Math.round(sum))}`;
    return h(
      "figure",
      { class: "live-chart" },
      h("figcaption", {}, h("span", {}, title), h("span", { class: "under" }, unit)),
      s(
        "svg",
        { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": `${title}, ${unit}: the greatest ${number(Math.max(0, ...points.map(([, v]) => v)))}${together}` },
        ticks.map((tick) => [
          s("path", { class: "axis", d: `M${left} ${y(tick)}H${width - right}` }),
          s("text", { class: "tick end", x: left - 8, y: y(tick) + 4 }, short(tick)),
        ]),
        times.map((at, i) =>
          s("text", { class: `tick ${["", "middle", "end"][i]}`, x: x(at), y: height - 6 }, `${day(at)}`),
        ),
        points
          .filter(([at, value]) => value > 0 && at >= from)
          .map(([at, value]) =>
            s(
              "rect",
              { class: `value ${tone}`, x: x(at), y: y(value), width: wide, height: Math.max(1, height - bottom - y(value)) },
              s("title", {}, `${day(at)} UTC: ${number(Math.round(value * 1000) / 1000)} ${unit}`),
            ),
          ),
      ),
    );
  }

  /* Who ran when, how long, and how long it waited: one row a model. */
  function timeline(turns, nameOf, seconds, most = 40) {
    const to = Math.max(Date.now() / 1000, ...turns.map((turn) => turn.end));
    const from = to - seconds;
    const rows = new Map();
    for (const turn of turns) {
      if (turn.end < from) continue;
      if (!rows.has(turn.node)) rows.set(turn.node, []);
      rows.get(turn.node).push(turn);
    }
    const shown = [...rows].slice(0, most);
    const [width, left, right] = [900, 190, 10];
    const height = shown.length * ROW + 28;
    const x = (at) => left + (Math.max(0, at - from) / seconds) * (width - left - right);
    const bar = (turn, begin, end, style) =>
      s("rect", { class: style, x: x(begin), width: Math.max(1.5, x(end) - x(begin)), height: ROW - 8, rx: 2 });
    if (!shown.length) return h("p", { class: "note" }, "No turn ended in this time.");
    return h(
      "div",
      { class: "timeline" },
      s(
        "svg",
        { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": `Timeline of the turns of ${shown.length} models` },
        [0, 0.25, 0.5, 0.75, 1].map((part) => [
          s("path", { class: "axis", d: `M${x(from + seconds * part)} 0V${height - 22}` }),
          s("text", { class: `tick ${part === 1 ? "end" : part ? "middle" : ""}`, x: x(from + seconds * part), y: height - 6 }, clock(from + seconds * part)),
        ]),
        shown.map(([node, some], i) =>
          s(
            "g",
            { transform: `translate(0 ${i * ROW})` },
            s("text", { class: "tick end", x: left - 10, y: ROW - 7 }, cutName(nameOf(node))),
            s("g", { transform: "translate(0 3)" }, some.slice(0, 300).map((turn) =>
              s(
                "g",
                {},
                turn.waited > 0 ? bar(turn, turn.begin - turn.waited, turn.begin, "waited") : "",
                bar(turn, turn.begin, turn.end, `turn ${["error", "fail", "skipped"].includes(turn.status) ? "bad" : ""}`),
                s("title", {}, `${nameOf(node)}: ${turn.status}, ${(turn.end - turn.begin).toFixed(2)} s, waited ${turn.waited.toFixed(2)} s for: ${turn.reason || "–"}; ${number(turn.rows_in)} rows${turn.message ? `; ${turn.message}` : ""}`),
              ),
            )),
          ),
        ),
      ),
      rows.size > shown.length ? h("p", { class: "note" }, `${number(rows.size - shown.length)} more models ran.`) : null,
    );
  }

  const cutName = (name) => (name.length > 26 ? `${name.slice(0, 25)}…` : name);

  Object.assign(headrace, { liveSeries: series, timeline, clock });
})();
