"use strict";

/* The graph: boxes and links as SVG, to be moved, zoomed, searched and narrowed down. */
(() => {
  const { h, s, BOX, ICONS, standing } = headrace;
  const ZOOM = { least: 0.01, most: 2.5, step: 1.25, readable: 0.6, far: 0.4 };
  const NARROW = 700;
  // So many boxes are drawn as boxes; more in sight at once could not be read, and would not move smoothly.
  const MOST_BOXES = 200;
  const measure = document.createElement("canvas").getContext("2d");

  /* A text cut to a width, by what the browser would draw. */
  function cut(text, font, width) {
    measure.font = font;
    if (measure.measureText(text).width <= width) return text;
    const letters = [...text];
    while (letters.length && measure.measureText(`${letters.join("")}…`).width > width) letters.pop();
    return `${letters.join("")}…`;
  }

  const graphs = new WeakMap();
  for (const [event, yes] of [
    ["beforeprint", true],
    ["afterprint", false],
  ])
    window.addEventListener(event, () => {
      for (const element of document.querySelectorAll(".canvas")) graphs.get(element).onPaper(yes);
    });

  class Graph {
    /* options: chosen (a Set, or null for all), tall (takes the wheel), open (called with a node that is clicked). */
    constructor(index, options = {}) {
      Object.assign(this, { index, options, focus: null, chosen: options.chosen || null });
      this.edges = headrace.graphOf(index);
      this.world = s("g", { class: "world" });
      this.svg = s(
        "svg",
        { class: "graph", role: "group", "aria-label": options.label || "Graph of sources and models" },
        this.world,
      );
      this.element = h(
        "div",
        {
          class: "canvas",
          tabindex: "0",
          role: "region",
          "aria-label":
            "Graph. Drag or use the arrow keys to move, plus and minus to zoom, Tab to go through the boxes.",
        },
        this.svg,
      );
      this.draw();
      this.listen();
      // The size is known once the element is in the page.
      new ResizeObserver(() => this.fitOnce()).observe(this.element);
      graphs.set(this.element, this);
    }

    /* Show other nodes: a Set of numbers, or null for all. */
    show(chosen) {
      this.chosen = chosen;
      this.focus = null;
      this.draw();
      this.fitted = false;
      this.fitOnce();
    }

    draw() {
      this.layout = this.chosen ? headrace.part(this.index, this.chosen) : headrace.whole(this.index);
      const { places, links } = this.layout;
      this.order = [...places.keys()].sort(
        (a, b) => places.get(a)[0] - places.get(b)[0] || places.get(a)[1] - places.get(b)[1],
      );
      this.boxes = new Map();
      this.lines = links.map((link) => ({ ...link, extent: headrace.extent(places, link) }));
      this.parts = Object.fromEntries(["outline", "links", "boxes", "labels"].map((name) => [name, s("g", { class: name })]));
      this.parts.links.setAttribute("aria-hidden", "true");
      this.parts.outline.setAttribute("aria-hidden", "true");
      this.parts.labels.setAttribute("aria-hidden", "true");
      this.world.replaceChildren(...Object.values(this.parts));
      this.near = null;
      this.world.classList.remove("focused");
      if (this.view) this.paint();
    }

    /* Bring into the picture what is in sight: boxes and links, or their outline where these would be too many. */
    paint() {
      const { x, y, scale } = this.view;
      const [w, hgt] = [this.element.clientWidth, this.element.clientHeight];
      const few = this.order.length <= MOST_BOXES;
      const sight = few
        ? [-Infinity, -Infinity, Infinity, Infinity]
        : [(-x - w / 4) / scale, (-y - hgt / 4) / scale, (w * 1.25 - x) / scale, (hgt * 1.25 - y) / scale];
      const { places } = this.layout;
      const seen = this.order.filter((number) => {
        const [left, middle] = places.get(number);
        return (
          left < sight[2] &&
          left + BOX.width > sight[0] &&
          middle - BOX.height / 2 < sight[3] &&
          middle + BOX.height / 2 > sight[1]
        );
      });
      this.world.setAttribute("transform", `translate(${x} ${y}) scale(${scale})`);
      this.svg.classList.toggle("far", scale < ZOOM.far);
      const outlined = seen.length > MOST_BOXES;
      if (outlined !== this.outlined || this.parts.outline.near !== this.near) this.outline(outlined);
      keep(this.parts.boxes, outlined ? [] : seen.map((number) => this.boxOf(number)));
      const lines = outlined
        ? []
        : this.lines.filter(({ extent: [l, t, r, b] }) => l < sight[2] && r > sight[0] && t < sight[3] && b > sight[1]);
      keep(
        this.parts.links,
        lines.map((line) => this.lineOf(line)),
      );
      const labels = outlined || scale < ZOOM.far ? [] : (this.labels || []).filter(({ to }) => places.has(to));
      this.parts.labels.replaceChildren(...labels.filter(({ from }) => places.has(from)).map((one) => this.label(one)));
    }

    /* Draw these nodes again, and the labels of links: [{ from, to, text, tone }], at most so many as can be read. */
    refresh(numbers, labels) {
      for (const number of numbers)
        if (this.boxes.has(number))
          this.boxes.set(number, headrace.morph(this.boxes.get(number), this.box(number), ["aria-current"]));
      this.labels = labels;
      if (this.view) this.paint();
    }

    /* What a link carries, where it enters the box of its reader. */
    label({ to, text, tone }) {
      const [left, middle] = this.layout.places.get(to);
      return s("g", { class: `flow ${tone}`, transform: `translate(${left - 8} ${middle - 8})` }, s("text", {}, text));
    }

    /* All boxes of a kind, and all links, as one shape each. */
    outline(wanted) {
      const { places } = this.layout;
      this.outlined = wanted;
      this.parts.outline.near = this.near;
      const lit = (number) => !this.near || this.near.has(number);
      const shape = (kind, light) =>
        this.order
          .filter((n) => this.index.nodes[n].kind === kind && lit(n) === light)
          .map(
            (n) =>
              `M${places.get(n)[0]} ${places.get(n)[1] - BOX.height / 2}h${BOX.width}v${BOX.height}h${-BOX.width}z`,
          )
          .join("");
      const paths = (light) =>
        this.lines
          .filter(({ from, to }) => (lit(from) && lit(to)) === light)
          .map((line) => headrace.route(places, line))
          .join("");
      const parts = (light) => [
        s("path", { class: "web", d: paths(light) }),
        ["source", "stream", "table", "view", "exposure"].map((kind) =>
          s("path", { class: `mass ${kind}`, d: shape(kind, light) }),
        ),
      ];
      this.parts.outline.replaceChildren(
        ...(wanted ? [this.near ? s("g", { class: "dim" }, parts(false)) : "", s("g", {}, parts(true))] : []),
      );
    }

    boxOf(number) {
      if (!this.boxes.has(number)) this.boxes.set(number, this.box(number));
      return this.boxes.get(number);
    }

    lineOf(line) {
      if (!line.path) {
        line.path = s("path", {
          class: line.stream ? "link stream" : "link",
          d: headrace.route(this.layout.places, line),
        });
        line.path.classList.toggle("lit", this.isLit(line.from) && this.isLit(line.to));
      }
      return line.path;
    }

    isLit(number) {
      return this.near !== null && this.near.has(number);
    }

    box(number) {
      const node = this.index.nodes[number];
      const [x, y] = this.layout.places.get(number);
      const state = standing(node);
      const label = [node.name, node.what, state.word, state.flow, node.summary].filter(Boolean).join(", ");
      const under = [state.word, state.flow].filter(Boolean).join(" · ") || node.what; // the sign shows what it is, too
      return s(
        "a",
        {
          class: `box ${node.kind} ${state.tone}${this.isLit(number) ? " lit" : ""}${number === this.focus ? " chosen" : ""}`,
          href: headrace.hrefOf(node),
          transform: `translate(${x} ${y - BOX.height / 2})`,
          "aria-label": label,
          "data-number": number,
        },
        s("title", {}, node.summary ? `${node.name}: ${node.summary}` : node.name),
        s("rect", { class: "card", width: BOX.width, height: BOX.height, rx: 10 }),
        s("rect", { class: "mark", x: 0, y: 0, width: 40, height: BOX.height, rx: 10 }),
        s("g", { transform: "translate(12 20)", class: "sign" }, s("path", { d: ICONS[node.kind] })),
        s("text", { class: "name", x: 52, y: 24 }, cut(node.name, "600 13.5px system-ui, sans-serif", BOX.width - 62)),
        s("text", { class: "under", x: 52, y: 42 }, cut(under, "11.5px system-ui, sans-serif", BOX.width - 62)),
      );
    }

    /* Put a node and all above and below it into the light. */
    light(number) {
      this.focus = number;
      const { up, down } = this.edges;
      const start = new Set([number]);
      this.near =
        number === null
          ? null
          : new Set([number, ...headrace.walk(start, up, 1e6), ...headrace.walk(start, down, 1e6)]);
      this.world.classList.toggle("focused", this.near !== null);
      for (const [n, box] of this.boxes) {
        box.classList.toggle("lit", this.isLit(n));
        box.classList.toggle("chosen", n === number);
        if (n === number) box.setAttribute("aria-current", "true");
        else box.removeAttribute("aria-current");
      }
      for (const { from, to, path } of this.lines)
        if (path) path.classList.toggle("lit", this.isLit(from) && this.isLit(to));
      if (this.view) this.paint();
      if (this.options.onFocus) this.options.onFocus(number, this.near);
    }

    fitOnce() {
      if (this.fitted || !this.element.clientWidth) return;
      this.fitted = true;
      this.fit();
    }

    /* Show the whole graph beside or below what lies over its corner; on a narrow window, where that could not be read, a part of it around the node in the light. */
    fit() {
      const { places, width, height } = this.layout;
      const margin = 28;
      const [w, hgt] = [this.element.clientWidth, this.element.clientHeight];
      const [right, bottom] = this.options.covered ? this.options.covered() : [0, 0];
      const scaleIn = ([x, y]) => Math.min(1, (w - x - 2 * margin) / width, (hgt - y - 2 * margin) / height);
      const [beside, below] = [[right, 0], [0, bottom]];
      const [x0, y0] = scaleIn(beside) > scaleIn(below) ? beside : below;
      const scale = Math.max(ZOOM.least, scaleIn([x0, y0]));
      if (scale >= ZOOM.readable || w > NARROW || places.size > NARROW / 10) {
        this.move((w + x0 - width * scale) / 2, (hgt + y0 - height * scale) / 2, scale);
        return;
      }
      const number =
        this.focus === null ? [...places.keys()].sort((a, b) => places.get(a)[0] - places.get(b)[0])[0] : this.focus;
      const [x, y] = places.get(number);
      const left = this.focus === null ? margin : (w - BOX.width * ZOOM.readable) / 2;
      this.move(left - x * ZOOM.readable, hgt / 2 - y * ZOOM.readable, ZOOM.readable);
    }

    move(x, y, scale) {
      this.view = { x, y, scale };
      if (this.pending) return;
      this.pending = requestAnimationFrame(() => {
        this.pending = 0;
        this.paint();
      });
    }

    /* On paper the whole graph is shown, as wide as the paper is. */
    onPaper(yes) {
      const { width, height } = this.layout;
      if (yes) {
        this.svg.setAttribute("viewBox", `-14 -14 ${width + 28} ${height + 28}`);
        this.world.removeAttribute("transform");
      } else {
        this.svg.removeAttribute("viewBox");
        if (this.view) this.paint();
      }
    }

    pan(dx, dy) {
      this.move(this.view.x + dx, this.view.y + dy, this.view.scale);
    }

    /* Zoom by a factor; the point (x, y) of the element stays where it is. */
    zoom(factor, x = this.element.clientWidth / 2, y = this.element.clientHeight / 2) {
      const { view } = this;
      const scale = Math.max(ZOOM.least, Math.min(ZOOM.most, view.scale * factor));
      const share = scale / view.scale;
      this.move(x - (x - view.x) * share, y - (y - view.y) * share, scale);
    }
  }

  /* Let a group hold just these elements, and move none that is there: the focus would be lost. */
  function keep(group, elements) {
    const wanted = new Set(elements);
    for (const element of [...group.children])
      if (!wanted.has(element) && element !== document.activeElement) element.remove();
    for (const element of elements) if (!element.isConnected || element.parentNode !== group) group.append(element);
  }

  Object.assign(headrace, { Graph, ZOOM, graphIn: (element) => graphs.get(element) });
})();
