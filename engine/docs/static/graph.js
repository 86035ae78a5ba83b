"use strict";

/* The graph: boxes and links as SVG, to be moved, zoomed, searched and narrowed down. Many boxes at once are drawn on a canvas. */
(() => {
  const { h, s, BOX } = headrace;
  // A name is readable from `readable` on; a graph that does not fit then is scrolled, not shrunk.
  const ZOOM = { least: 0.01, most: 2.5, step: 1.25, readable: 0.8, near: 0.7 };
  const MARGIN = 28;
  // More boxes than these would not move smoothly as elements.
  const MOST_BOXES = 220;

  const graphs = new WeakMap();
  for (const [event, yes] of [
    ["beforeprint", true],
    ["afterprint", false],
  ])
    window.addEventListener(event, () => {
      for (const element of document.querySelectorAll(".canvas")) graphs.get(element).onPaper(yes);
    });

  class Graph {
    /* options: chosen (a Set, or null for all), tall (takes the wheel), groups, label, onFocus (called with what is lit). */
    constructor(index, options = {}) {
      Object.assign(this, { index, options, focus: null, near: null, chosen: options.chosen || null });
      this.groups = options.groups || (this.chosen ? new headrace.Groups(index) : headrace.groupsAtFirst(index));
      this.edges = headrace.graphOf(index);
      this.opened = new Set();
      this.path = null;
      this.world = s("g", { class: "world" });
      this.svg = s(
        "svg",
        { class: "graph", role: "group", "aria-label": options.label || "Graph of sources and models" },
        this.world,
      );
      this.far = h("canvas", { class: "far", "aria-hidden": "true" });
      this.map = h("canvas", { class: "minimap", "aria-hidden": "true", hidden: true });
      this.element = h(
        "div",
        {
          class: "canvas",
          tabindex: "0",
          role: "region",
          "aria-label":
            "Graph. Drag or use the arrow keys to move, plus and minus to zoom, Tab to go through the boxes, C to open their columns.",
        },
        this.far,
        this.svg,
        this.map,
      );
      this.draw();
      this.listen();
      this.followMap();
      // The size is known once the element is in the page.
      new ResizeObserver(() => this.resized()).observe(this.element);
      graphs.set(this.element, this);
    }

    /* Show other nodes: a Set of numbers, or null for all. */
    show(chosen) {
      Object.assign(this, { chosen, focus: null, near: null, path: null });
      this.redraw();
      this.fitted = false;
      this.resized();
    }

    /* Collapse nodes in another way. */
    group(groups) {
      this.groups = groups;
      this.show(this.chosen);
    }

    /* What can be shown at a readable size, in the units of the boxes. */
    room() {
      const main = document.getElementById("main");
      const width = this.element.clientWidth || main.clientWidth - 2 * MARGIN;
      const height = this.element.clientHeight || window.innerHeight / 2;
      return { width: (width - 2 * MARGIN) / ZOOM.readable, height: height / ZOOM.readable };
    }

    draw() {
      const { items, links } = this.groups.drawn(this.chosen);
      this.items = items;
      for (const item of items.values()) item.height = this.heightOf(item.id);
      this.layout = headrace.laidOut([...items.values()], links, this.room());
      const { places } = this.layout;
      this.order = [...places.keys()].sort(
        (a, b) => places.get(a)[0] - places.get(b)[0] || places.get(a)[1] - places.get(b)[1],
      );
      this.boxes = new Map();
      this.lists = new Map();
      this.lines = this.layout.links.map((link) => ({ ...link, extent: headrace.extent(link) }));
      this.parts = Object.fromEntries(["links", "boxes", "lists", "flows", "labels"].map((name) => [name, s("g", { class: name })]));
      this.parts.links.setAttribute("aria-hidden", "true");
      this.parts.labels.setAttribute("aria-hidden", "true");
      this.world.replaceChildren(...Object.values(this.parts));
      this.world.classList.toggle("focused", this.near !== null);
      this.mapped = null;
      if (this.view) this.paint();
    }

    /* Draw all again; the box with this id, or the one in the light, stays where it is on the screen. */
    redraw(anchor = this.focus) {
      const before = anchor !== null && this.layout.places.get(anchor);
      const held = this.element.contains(document.activeElement) ? document.activeElement.getAttribute("aria-label") : null;
      this.draw();
      if (held && this.view) (this.world.querySelector(`[aria-label="${CSS.escape(held)}"]`) || this.element).focus({ preventScroll: true });
      const after = before && this.layout.places.get(anchor);
      if (after && this.view) {
        const { x, y, scale } = this.view;
        const [dx, dy] = [before[0] - after[0], before[1] - before[2] / 2 - (after[1] - after[2] / 2)];
        this.move(x + dx * scale, y + dy * scale, scale);
      }
    }

    /* Bring into the picture what is in sight: as elements, or on the canvas where these would be too many. */
    paint() {
      const { x, y, scale } = this.view;
      const [w, hgt] = [this.element.clientWidth, this.element.clientHeight];
      const few = this.order.length <= MOST_BOXES;
      const sight = few
        ? [-Infinity, -Infinity, Infinity, Infinity]
        : [(-x - w / 4) / scale, (-y - hgt / 4) / scale, (w * 1.25 - x) / scale, (hgt * 1.25 - y) / scale];
      const { places } = this.layout;
      const seen = this.order.filter((id) => {
        const [left, middle, tall] = places.get(id);
        return left < sight[2] && left + BOX.width > sight[0] && middle - tall / 2 < sight[3] && middle + tall / 2 > sight[1];
      });
      const lines = this.lines.filter(({ extent: [l, t, r, b] }) => l < sight[2] && r > sight[0] && t < sight[3] && b > sight[1]);
      this.outlined = seen.length > MOST_BOXES;
      this.level = headrace.levelOf(scale, ZOOM.near);
      this.world.setAttribute("transform", `translate(${x} ${y}) scale(${scale})`);
      this.svg.classList.toggle("far", this.level > 0);
      // Dashes of hundreds of long lines would take most of the time of a frame.
      this.svg.classList.toggle("many", !few);
      this.far.hidden = !this.outlined;
      if (this.outlined) this.paintFar(seen, lines);
      this.bring(this.outlined ? [] : seen, this.outlined ? [] : lines);
      this.paintMap();
    }

    /* Let the picture have these boxes and links as elements. */
    bring(seen, lines) {
      keep(this.parts.boxes, seen.map((id) => this.boxOf(id)));
      keep(this.parts.links, lines.map((line) => this.lineOf(line)));
      const listed = seen.filter((id) => this.rowsOf(id).length);
      keep(this.parts.lists, listed.map((id) => this.listOf(id)));
      this.parts.flows.replaceChildren(...(this.outlined ? [] : this.flows()));
      this.parts.labels.replaceChildren(...(this.level > 2 || !seen.length ? [] : this.flowLabels()));
    }

    /* Draw these nodes again, and the labels of links: [{ from, to, text, tone }], at most so many as can be read. */
    refresh(numbers, labels) {
      for (const id of new Set([...numbers].map((number) => this.groups.of(number))))
        if (this.boxes.has(id)) this.boxes.set(id, headrace.morph(this.boxes.get(id), this.box(id), ["aria-current"]));
      this.labels = labels;
      if (this.view) this.paint();
    }

    /* What links carry, above the boxes of their readers: there is room between the rows. */
    flowLabels() {
      const { places } = this.layout;
      const readers = new Map();
      for (const { from, to, text, tone } of this.labels || []) {
        const [start, end] = [this.groups.of(from), this.groups.of(to)];
        if (!places.has(start) || !places.has(end) || start === end) continue;
        const label = readers.get(end) || { texts: [], tone };
        readers.set(end, { texts: [...label.texts, text], tone: label.tone === "bad" ? "bad" : tone });
      }
      return [...readers].map(([id, { texts, tone }]) => {
        const [left, middle, tall] = places.get(id);
        return s("g", { class: `flow ${tone}`, transform: `translate(${left + 3} ${middle - tall / 2 - 6})` }, s("text", {}, texts.join(" · ")));
      });
    }

    boxOf(id) {
      if (!this.boxes.has(id)) this.boxes.set(id, this.box(id));
      const box = this.boxes.get(id);
      if (box.level !== this.level) this.relabel(box, id);
      return box;
    }

    lineOf(line) {
      if (!line.path) line.path = s("path", { class: line.stream ? "link stream" : "link", d: headrace.route(line) });
      line.path.classList.toggle("lit", this.isLit(line.from) && this.isLit(line.to));
      return line.path;
    }

    isLit(id) {
      if (this.near === null) return false;
      return typeof id === "number" ? this.near.has(id) : this.items.get(id).numbers.some((number) => this.near.has(number));
    }

    /* Put a node, or a group, and what is above and below it into the light; at most so many steps up and down. */
    light(id, { up = Infinity, down = Infinity } = {}) {
      const hidden = typeof id === "number" && !this.layout.places.has(id);
      this.path = null;
      this.focus = id;
      if (hidden) this.groups.loose.add(id);
      if (id === null) this.near = null;
      else {
        const start = new Set(typeof id === "number" ? [id] : this.items.get(id).numbers);
        this.near = new Set([...start, ...headrace.walk(start, this.edges.up, up), ...headrace.walk(start, this.edges.down, down)]);
      }
      if (hidden || this.heightsChanged()) this.redraw();
      this.lit();
    }

    /* Show what is in the light and what is not. */
    lit() {
      this.world.classList.toggle("focused", this.near !== null);
      for (const [id, box] of this.boxes) {
        box.classList.toggle("lit", this.isLit(id));
        box.classList.toggle("chosen", id === this.focus);
        if (id === this.focus) box.setAttribute("aria-current", "true");
        else box.removeAttribute("aria-current");
      }
      if (this.view) this.paint();
      if (this.options.onFocus) this.options.onFocus(this.focus, this.near);
      // The card beside the graph may have made it narrower.
      if (this.view && this.focus !== null) this.uncovering = requestAnimationFrame(() => (this.path ? this.frame([...this.path.rows.keys()]) : this.uncover(this.focus)));
    }

    resized() {
      if (!this.element.clientWidth) return;
      if (!this.fitted) {
        this.fitted = true;
        this.fit();
      } else if (this.view) this.move(this.view.x, this.view.y, this.view.scale);
    }

    /* Show all if it can be read then; else as much of its width as can be read, from its beginning or around the box in the light. */
    fit() {
      const { places, width, height } = this.layout;
      const [w, hgt] = [this.element.clientWidth, this.element.clientHeight];
      const [wide, tall] = [(w - 2 * MARGIN) / width, (hgt - 2 * MARGIN) / height];
      const scale = Math.min(1, wide, tall) >= ZOOM.readable ? Math.min(1, wide, tall) : Math.max(ZOOM.readable, Math.min(1, wide));
      const within = (start, size, room) => (size * scale <= room - MARGIN ? (room - size * scale) / 2 : Math.max(room - MARGIN - size * scale, Math.min(MARGIN, start)));
      const start = this.focus !== null && places.get(this.focus);
      const [top, bottom] = start ? [start[1], start[1]] : firstColumn(places);
      const begin = (bottom - top) * scale > hgt ? MARGIN - top * scale : (hgt - (top + bottom) * scale) / 2;
      this.move(within(start ? w / 2 - (start[0] + BOX.width / 2) * scale : MARGIN, width, w), within(begin, height, hgt), scale);
    }

    /* Bring these boxes into view together if they can be read then, else the one in the light. */
    frame(ids) {
      const found = ids.map((id) => this.layout.places.get(id)).filter(Boolean);
      const [left, right] = [Math.min(...found.map(([x]) => x)), Math.max(...found.map(([x]) => x + BOX.width))];
      const [top, bottom] = [Math.min(...found.map(([, y, tall]) => y - tall / 2)), Math.max(...found.map(([, y, tall]) => y + tall / 2))];
      const [w, hgt] = [this.element.clientWidth, this.element.clientHeight];
      const scale = Math.min(1, (w - MARGIN) / (right - left), (hgt - MARGIN) / (bottom - top));
      if (scale >= ZOOM.near) this.move((w - (left + right) * scale) / 2, (hgt - (top + bottom) * scale) / 2, scale);
      else this.uncover(this.focus);
    }

    /* Show the whole graph, whether its names can be read or not. */
    fitAll() {
      const { width, height } = this.layout;
      const [w, hgt] = [this.element.clientWidth, this.element.clientHeight];
      const scale = Math.max(ZOOM.least, Math.min(1, (w - 2 * MARGIN) / width, (hgt - 2 * MARGIN) / height));
      this.move((w - width * scale) / 2, (hgt - height * scale) / 2, scale);
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
        [this.outlined, this.level] = [false, 0];
        this.bring(this.order, this.lines);
        this.far.hidden = true;
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

  /* The top and the bottom of the first column, where the reader begins. */
  function firstColumn(places) {
    const first = [...places.values()].filter(([x]) => x === 0);
    return first.length ? [Math.min(...first.map(([, y, tall]) => y - tall / 2)), Math.max(...first.map(([, y, tall]) => y + tall / 2))] : [0, 0];
  }

  /* Let a group hold just these elements, and move none that is there: the focus would be lost. */
  function keep(group, elements) {
    const wanted = new Set(elements);
    for (const element of [...group.children])
      if (!wanted.has(element) && element !== document.activeElement) element.remove();
    for (const element of elements) if (!element.isConnected || element.parentNode !== group) group.append(element);
  }

  /* The methods of a class, for the graph: each module brings one side of it. */
  function extend(side) {
    for (const name of Object.getOwnPropertyNames(side.prototype))
      if (name !== "constructor") Graph.prototype[name] = side.prototype[name];
  }

  Object.assign(headrace, { Graph, ZOOM, extendGraph: extend, graphIn: (element) => graphs.get(element) });
})();
