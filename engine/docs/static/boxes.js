"use strict";

/* Boxes of the graph: nodes and groups. What they say depends on their size on the screen; their name can always be read. */
(() => {
  const { s, BOX, ICONS, standing } = headrace;
  const SANS = "system-ui, sans-serif";
  // Letters are at least 11 pixels high: the further away, the larger they are in the units of the boxes.
  const LETTERS = [13.5, 16, 19, 23, 28, 34, 40, 46];
  const LEAST = 11;
  const measure = document.createElement("canvas").getContext("2d");

  /* How far away the reader is: 0 reads all of a box, others its name in larger letters. */
  function levelOf(scale, near) {
    if (scale >= near) return 0;
    const level = LETTERS.findIndex((size, i) => i && size * scale >= LEAST);
    return level < 0 ? LETTERS.length - 1 : level;
  }

  /* A text cut to a width, by what the browser would draw. */
  function cut(text, font, width) {
    measure.font = font;
    if (measure.measureText(text).width <= width) return text;
    let [fits, over] = [0, text.length];
    while (over - fits > 1) {
      const middle = (fits + over) >> 1;
      if (measure.measureText(`${text.slice(0, middle)}…`).width <= width) fits = middle;
      else over = middle;
    }
    return `${text.slice(0, fits).replace(/[\ud800-\udbff]$/, "")}…`;
  }

  const lines = new Map();

  /* A name as far as it can be read at a level, in one line or two. */
  function readable(name, level) {
    const key = `${level} ${name}`;
    if (!lines.has(key)) lines.set(key, broken(name, LETTERS[level], BOX.width - 18));
    return lines.get(key);
  }

  function broken(name, size, width) {
    const font = `600 ${size}px ${SANS}`;
    const whole = cut(name, font, width);
    if (whole === name || size * 2.2 > BOX.height) return [whole];
    const first = whole.slice(0, -1);
    const at = Math.max(...["_", ".", "-", "/"].map((sign) => first.lastIndexOf(sign))) + 1;
    const head = at > first.length / 3 ? first.slice(0, at) : first;
    return [head, cut(name.slice(head.length), font, width)];
  }

  const countOf = (numbers) => headrace.plural(numbers.length, "node");

  class Boxes {
    box(id) {
      return typeof id === "number" ? this.nodeBox(id) : this.groupBox(id);
    }

    nodeBox(number) {
      const node = this.index.nodes[number];
      const state = standing(node);
      const under = [node.change === node.what ? "" : node.change, state.word, state.flow].filter(Boolean).join(" · ") || node.what; // the sign shows what it is, too
      return this.frameOf(number, {
        style: `${node.kind} ${state.tone} ${node.change || ""}`,
        href: headrace.hrefOf(node),
        label: [node.name, node.what, node.change === node.what ? "" : node.change, state.word, state.flow, node.summary].filter(Boolean).join(", "),
        title: node.summary ? `${node.name}: ${node.summary}` : node.name,
        name: node.name,
        under,
        sign: ICONS[node.kind] || ICONS.exposure,
      });
    }

    groupBox(key) {
      const { numbers } = this.items.get(key);
      const { word, tone } = headrace.standingOf(this.index, numbers);
      return this.frameOf(key, {
        style: `group ${tone}`,
        href: "#/graph",
        label: [`Group ${key}`, countOf(numbers), word].filter(Boolean).join(", "),
        title: `${key}: ${countOf(numbers)}${word ? `, ${word}` : ""}`,
        name: key,
        under: [countOf(numbers), word].filter(Boolean).join(" · "),
        sign: ICONS.group,
      });
    }

    frameOf(id, { style, href, label, title, name, under, sign }) {
      const [x, y, tall] = this.layout.places.get(id);
      const group = typeof id !== "number";
      const box = s(
        "a",
        {
          class: `box ${style}${this.isLit(id) ? " lit" : ""}${id === this.focus ? " chosen" : ""}`,
          href,
          transform: `translate(${x} ${y - tall / 2})`,
          "aria-label": label,
          "data-id": id,
        },
        s("title", {}, title),
        group ? s("rect", { class: "card behind", x: 5, y: -5, width: BOX.width, height: tall, rx: 10 }) : null,
        s("rect", { class: "card", width: BOX.width, height: tall, rx: 10 }),
        s("path", { class: "mark", d: `M10 0H38V${BOX.height}H10a10 10 0 0 1-10-10V10a10 10 0 0 1 10-10z` }),
        s("g", { transform: "translate(11 20)", class: "sign" }, s("path", { d: sign })),
        s("text", { class: "name" }),
        s("text", { class: "under", x: 47, y: 42 }, cut(under, `12px ${SANS}`, BOX.width - 55)),
      );
      box.name = name;
      this.relabel(box, id);
      return box;
    }

    /* Write the name of a box as large as it must be to be read. */
    relabel(box) {
      const level = this.level || 0;
      box.level = level;
      const text = box.querySelector(".name");
      const size = LETTERS[level];
      text.setAttribute("font-size", size);
      if (!level) {
        // A long name has two lines: many begin alike.
        const written = broken(box.name, size, BOX.width - 57);
        const two = written.length > 1;
        text.setAttribute("transform", `translate(47 ${two ? 18 : 24})`);
        text.replaceChildren(...(two ? written.map((line, i) => s("tspan", { x: 0, y: 15 * i }, line)) : written));
        box.querySelector(".under").setAttribute("y", two ? 49 : 42);
        return;
      }
      const written = readable(box.name, level);
      const top = BOX.height / 2 + size * 0.36 - ((written.length - 1) * size * 1.05) / 2;
      text.setAttribute("transform", `translate(9 ${top})`);
      text.replaceChildren(...written.map((line, i) => s("tspan", { x: 0, y: i * size * 1.05 }, line)));
    }
  }

  headrace.extendGraph(Boxes);
  Object.assign(headrace, { levelOf, cutText: cut, readable, LETTERS });
})();
