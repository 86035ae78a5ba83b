"use strict";

/* The charts of the live page: series over time with an axis from zero, and the timeline of turns. Each value can be
   reached with a pointer, a finger or the arrow keys. */
(() => {
  const { h, s, number } = headrace;
  const SIZE = { width: 640, height: 170, left: 72, bottom: 28, top: 10, right: 10 };
  const ROW = 20;
  const NBSP = "\u00a0";
  const iso = (seconds) => new Date(seconds * 1000).toISOString();
  const clock = (seconds) => iso(seconds).slice(11, 19);
  const day = (seconds) => iso(seconds).slice(5, 16).replace("T", " ");

  /* A round number not below a value: 1, 2 or 5 times a power of ten. */
  function ceiling(value) {
    if (!(value > 0)) return 1;
    const power = 10 ** Math.floor(Math.log10(value));
    return [1, 2, 5, 10].map((n) => n * power).find((n) => n >= value);
  }

  const short = (value) =>
    value >= 1e9 ? `${value / 1e9} G` : value >= 1e6 ? `${value / 1e6} M` : value >= 1e4 ? `${value / 1e3} k` : `${+value.toFixed(3)}`;
  const exact = (value) => number(Math.round(value * 1000) / 1000);

  /* A picture whose values are reached one after the other: `at` gives the value below a pointer, `mark` shows one and
     returns it in words. It is one stop of the Tab key; the arrow keys go on from there. */
  function readable(svg, label, count, { at, mark, key = () => null }) {
    let current = -1;
    const output = h("output", { class: "reading", "aria-live": "polite" }, "\u00a0");
    const frame = h("div", { class: "readable", tabindex: "0", role: "group", "aria-label": label }, svg);
    function show(place) {
      current = place;
      output.textContent = place < 0 ? NBSP : mark(place);
      if (place < 0) mark(-1);
    }
    frame.addEventListener("keydown", (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      const last = count - 1;
      const steps = { ArrowRight: Math.min(last, current + 1), ArrowLeft: current < 0 ? last : Math.max(0, current - 1), Home: 0, End: last, Escape: -1 };
      const next = event.key in steps ? steps[event.key] : key(event.key, current);
      if (next === null || next === undefined || !count) return;
      event.preventDefault();
      show(next);
    });
    frame.addEventListener("focus", () => {
      if (current < 0 && count && frame.matches(":focus-visible")) show(count - 1);
    });
    const point = (event) => {
      const box = svg.getBoundingClientRect();
      const place = at(((event.clientX - box.left) / box.width) * svg.viewBox.baseVal.width, ((event.clientY - box.top) / box.height) * svg.viewBox.baseVal.height);
      if (place >= 0 && place !== current) show(place);
    };
    frame.addEventListener("pointermove", point);
    frame.addEventListener("pointerdown", point);
    frame.addEventListener("pointerleave", (event) => {
      if (event.pointerType === "mouse" && document.activeElement !== frame) show(-1);
    });
    return { frame, output };
  }

  /* Bars over time: points are [seconds since 1970, value]; the axis begins at zero. A level has no sum.
     `choose` is called with the time range that was drawn over with the mouse. */
  function series(title, unit, points, { from, to, step, tone = "", level = false, choose = null }) {
    const { width, height, left, bottom, top, right } = SIZE;
    const seen = points.filter(([at]) => at + step > from && at <= to);
    const greatest = Math.max(0, ...seen.map(([, value]) => value));
    const most = ceiling(greatest);
    const scale = (width - left - right) / (to - from);
    const x = (at) => left + (at - from) * scale;
    const y = (value) => height - bottom - (value / most) * (height - bottom - top);
    const wide = Math.max(1.5, scale * step - 1);
    const sum = seen.reduce((all, [, value]) => all + value, 0);
    const together = level || unit.includes("per") ? "" : `, together ${number(Math.round(sum))}`;
    const label = `${title}, ${unit}: the greatest ${exact(greatest)}${together}`;
    const bars = seen.map(([at, value]) => {
      const begin = Math.max(left, x(at));
      return s("rect", { class: `value ${tone}`, x: begin, y: y(value), width: Math.max(1, Math.min(wide, width - right - begin)), height: value > 0 ? Math.max(1, height - bottom - y(value)) : 0 });
    });
    const cursor = s("path", { class: "cursor", d: "" });
    const span = s("rect", { class: "span", y: top, height: height - bottom - top, width: 0 });
    const times = to - from < 180 ? clock : day;
    const svg = s(
      "svg",
      { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label },
      [0, most / 2, most].map((tick) => [
        s("path", { class: "axis", d: `M${left} ${y(tick)}H${width - right}` }),
        s("text", { class: "tick end", x: left - 8, y: y(tick) + 4 }, short(tick)),
      ]),
      [0, 0.5, 1].map((part, i) =>
        s("text", { class: `tick ${["", "middle", "end"][i]}`, x: x(from + (to - from) * part), y: height - 6 }, times(from + (to - from) * part)),
      ),
      span,
      bars,
      cursor,
    );
    const { frame, output } = readable(svg, `${label}. Arrow keys go through the values.`, seen.length, {
      at: (px) => nearest(seen.map(([at]) => x(at + step / 2)), px),
      mark: (place) => {
        bars.forEach((bar, i) => bar.classList.toggle("current", i === place));
        cursor.setAttribute("d", place < 0 ? "" : `M${x(seen[place][0] + step / 2)} ${top}V${height - bottom}`);
        return place < 0 ? "" : `${day(seen[place][0])} UTC: ${exact(seen[place][1])} ${unit.split(",")[0]}`;
      },
    });
    if (choose) drawOver(svg, span, { x, from, to, scale, choose });
    const empty = greatest > 0 ? null : h("p", { class: "under none" }, seen.length ? "None in this time." : "No micro-batch in this time.");
    return h("figure", { class: "live-chart" }, h("figcaption", {}, h("span", {}, title), h("span", { class: "under" }, unit)), frame, empty || output);
  }

  /* The place of the value that is nearest to a pointer; -1: there is none. */
  const nearest = (places, px) =>
    places.reduce((best, place, i) => (best < 0 || Math.abs(place - px) < Math.abs(places[best] - px) ? i : best), -1);

  /* Choose a range by drawing over it with the mouse; a finger scrolls the page, and uses the buttons. */
  function drawOver(svg, span, { x, from, to, scale, choose }) {
    let begin = null;
    const timeAt = (event) => {
      const box = svg.getBoundingClientRect();
      const px = ((event.clientX - box.left) / box.width) * SIZE.width;
      return Math.min(to, Math.max(from, from + (px - SIZE.left) / scale));
    };
    svg.addEventListener("pointerdown", (event) => {
      if (event.button || event.pointerType !== "mouse") return;
      begin = timeAt(event);
      svg.setPointerCapture(event.pointerId);
    });
    svg.addEventListener("pointermove", (event) => {
      if (begin === null) return;
      const [one, other] = [begin, timeAt(event)].sort((a, b) => a - b);
      span.setAttribute("x", x(one));
      span.setAttribute("width", (other - one) * scale);
    });
    svg.addEventListener("pointerup", (event) => {
      if (begin === null) return;
      const [one, other] = [begin, timeAt(event)].sort((a, b) => a - b);
      begin = null;
      span.setAttribute("width", 0);
      if ((other - one) * scale > 12) choose(one, other);
    });
    svg.addEventListener("pointercancel", () => {
      begin = null;
      span.setAttribute("width", 0);
    });
  }

  const FAILED = new Set(["error", "fail", "skipped"]);
  const failed = (turn) => FAILED.has(turn.status) && Boolean(turn.message);

  /* Turns that could not be told apart at this scale are one bar. */
  function merged(turns, least) {
    const found = [];
    for (const turn of [...turns].sort((a, b) => a.begin - b.begin)) {
      const last = found[found.length - 1];
      if (last && failed(last.last) === failed(turn) && turn.end - last.begin < least) {
        Object.assign(last, { end: Math.max(last.end, turn.end), count: last.count + 1, rows: last.rows + turn.rows_in, last: turn });
      } else {
        found.push({ begin: turn.begin, end: turn.end, waited: turn.waited, count: 1, rows: turn.rows_in, last: turn });
      }
    }
    return found;
  }

  function inWords(name, { begin, end, waited, count, rows, last }) {
    const read = headrace.plural(rows, "row");
    if (count > 1) return `${name}: ${number(count)} turns from ${clock(begin)} to ${clock(end)}, ${read} read`;
    const message = last.message ? `; ${last.message}` : "";
    return `${name}: ${clock(begin)}, ${last.status} in ${(end - begin).toFixed(2)} s after ${waited.toFixed(2)} s, because: ${last.reason || "–"}; ${read} read${message}`;
  }

  /* Who ran when, how long, and how long it waited: one row a model. */
  function timeline(turns, seconds, most = 40) {
    const to = Math.max(Date.now() / 1000, ...turns.map((turn) => turn.end));
    const from = to - seconds;
    const rows = new Map();
    for (const turn of turns) {
      if (turn.end < from) continue;
      if (!rows.has(turn.name)) rows.set(turn.name, []);
      rows.get(turn.name).push(turn);
    }
    const names = [...rows.keys()].sort((a, b) => a.localeCompare(b));
    if (!names.length) return h("p", { class: "note" }, "No turn ended in this time.");
    const shown = names.slice(0, most);
    const [width, left, right] = [900, 190, 10];
    const height = shown.length * ROW + 28;
    const scale = (width - left - right) / seconds;
    const x = (at) => left + Math.max(0, at - from) * scale;
    const all = shown.flatMap((name, row) => merged(rows.get(name), 2 / scale).map((turn) => ({ name, row, turn })));
    const bar = (row, begin, end, style) =>
      s("rect", { class: style, x: x(begin), y: row * ROW + 4, width: Math.max(1.5, x(end) - x(begin)), height: ROW - 8, rx: 2 });
    const marks = all.map(({ row, turn }) => [
      turn.waited > 0 && turn.count === 1 ? bar(row, turn.begin - turn.waited, turn.begin, "waited") : "",
      bar(row, turn.begin, turn.end, `turn ${failed(turn.last) ? "bad" : ""}`),
    ]);
    const svg = s(
      "svg",
      { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": `Turns of ${shown.join(", ")}` },
      [0, 0.25, 0.5, 0.75, 1].map((part) => [
        s("path", { class: "axis", d: `M${x(from + seconds * part)} 0V${height - 22}` }),
        s("text", { class: `tick ${part === 1 ? "end" : part ? "middle" : ""}`, x: x(from + seconds * part), y: height - 6 }, clock(from + seconds * part)),
      ]),
      shown.map((name, row) => s("text", { class: "tick end", x: left - 10, y: row * ROW + ROW - 6 }, cutName(name))),
      marks,
    );
    const label = `Turns of ${headrace.plural(shown.length, "model or group of tests", "models and groups of tests")}. Arrow keys go through them.`;
    const next = (name, current) => {
      const step = { ArrowDown: 1, ArrowUp: -1 }[name];
      if (!step) return null;
      const row = current < 0 ? 0 : all[current].row + step;
      const inRow = all.map((one, i) => [one, i]).filter(([one]) => one.row === row);
      return inRow.length ? inRow[nearest(inRow.map(([one]) => x(one.turn.end)), current < 0 ? width : x(all[current].turn.end))][1] : current;
    };
    const { frame, output } = readable(svg, label, all.length, {
      at: (px, py) => {
        const inRow = all.map((one, i) => [one, i]).filter(([one]) => one.row === Math.floor(py / ROW));
        return inRow.length && px >= left ? inRow[nearest(inRow.map(([one]) => (x(one.turn.begin) + x(one.turn.end)) / 2), px)][1] : -1;
      },
      mark: (place) => {
        marks.forEach(([, rect], i) => rect.classList.toggle("current", i === place));
        return place < 0 ? "" : inWords(all[place].name, all[place].turn);
      },
      key: next,
    });
    return h(
      "div",
      { class: "timeline" },
      frame,
      output,
      names.length > shown.length ? h("p", { class: "note" }, `${number(names.length - shown.length)} more ran.`) : null,
    );
  }

  /* What the bars of the timeline mean. */
  const timelineLegend = () =>
    h(
      "p",
      { class: "legend" },
      [["waited", "waited for its turn"], ["turn", "ran"], ["turn bad", "failed"]].map(([style, text]) =>
        h("span", {}, s("svg", { class: "sample", viewBox: "0 0 34 10", "aria-hidden": "true" }, s("rect", { class: style, width: 34, height: 10, rx: 2 })), text),
      ),
      h("span", {}, "Times in UTC"),
    );

  const cutName = (name) => (name.length > 26 ? `${name.slice(0, 25)}…` : name);

  Object.assign(headrace, { liveSeries: series, timeline, timelineLegend, clock, day });
})();
