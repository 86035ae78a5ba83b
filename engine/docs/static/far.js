"use strict";

/* Many boxes at once, drawn on a canvas: it moves smoothly, and a name can be read wherever its box is wide enough. */
(() => {
  const { BOX, readable, LETTERS } = headrace;
  // In pixels on the screen.
  const NAMED = 40;
  const KINDS = ["source", "stream", "table", "view", "exposure"];

  let known = null;

  /* The colours of the theme, read once for a frame. */
  function colours() {
    const { theme } = document.documentElement.dataset;
    if (known && known.theme === theme) return known;
    requestAnimationFrame(() => {
      known = null;
    });
    const style = getComputedStyle(document.documentElement);
    const of = (name) => style.getPropertyValue(`--${name}`).trim();
    const named = ["card", "raised", "line", "strong-line", "ink", "soft", "accent", "bad", "warn"].map((name) => [name, of(name)]);
    known = Object.fromEntries([["theme", theme], ...named, ...KINDS.flatMap((kind) => [[kind, of(kind)], [`${kind}-back`, of(`${kind}-back`)]])]);
    return known;
  }

  class Far {
    /* Draw these boxes and links on the canvas behind the picture. */
    paintFar(seen, lines) {
      const { clientWidth: w, clientHeight: hgt } = this.element;
      const { x, y, scale } = this.view;
      const dense = window.devicePixelRatio || 1;
      const pen = this.far.getContext("2d");
      if (this.far.width !== Math.round(w * dense) || this.far.height !== Math.round(hgt * dense))
        Object.assign(this.far, { width: Math.round(w * dense), height: Math.round(hgt * dense) });
      pen.setTransform(1, 0, 0, 1, 0, 0);
      pen.clearRect(0, 0, this.far.width, this.far.height);
      pen.setTransform(dense * scale, 0, 0, dense * scale, dense * x, dense * y);
      const colour = colours();
      pen.lineWidth = Math.max(1.2, 0.8 / scale);
      const webs = this.websOf(lines);
      for (const lit of [false, true]) {
        pen.globalAlpha = this.near && !lit ? 0.18 : 1;
        pen.strokeStyle = lit && this.near ? colour.stream : colour["strong-line"];
        pen.stroke(lit ? webs.lit : webs.others);
      }
      for (const id of seen) this.boxFar(pen, colour, id);
      pen.globalAlpha = 1;
    }

    /* The links in the light and the others, each as one path. Whoever sees most of them moves one path of all. */
    websOf(lines) {
      if (lines.length * 2 < this.lines.length) return this.woven(lines);
      if (!this.web || this.web.of !== this.lines || this.web.near !== this.near)
        this.web = { of: this.lines, near: this.near, ...this.woven(this.lines) };
      return this.web;
    }

    woven(lines) {
      const webs = { lit: new Path2D(), others: new Path2D() };
      for (const line of lines) {
        const lit = this.near !== null && this.isLit(line.from) && this.isLit(line.to);
        (lit ? webs.lit : webs.others).addPath((line.shape = line.shape || new Path2D(headrace.route(line))));
      }
      return webs;
    }

    boxFar(pen, colour, id) {
      const [left, middle, tall] = this.layout.places.get(id);
      const { kind, tone, name } = this.shortOf(id);
      pen.globalAlpha = !this.near || this.isLit(id) ? 1 : 0.18;
      pen.fillStyle = colour[`${kind}-back`] || colour.raised;
      pen.fillRect(left, middle - tall / 2, BOX.width, tall);
      pen.strokeStyle = id === this.focus ? colour.accent : colour[tone] || colour[kind] || colour.source;
      pen.strokeRect(left, middle - tall / 2, BOX.width, tall);
      if (BOX.width * this.view.scale < NAMED) return;
      const size = LETTERS[this.level];
      const written = readable(name, this.level);
      pen.fillStyle = colour.ink;
      pen.font = `600 ${size}px system-ui, sans-serif`;
      const top = middle - tall / 2 + BOX.height / 2 + size * 0.36 - ((written.length - 1) * size * 1.05) / 2;
      written.forEach((line, i) => pen.fillText(line, left + 9, top + i * size * 1.05));
    }

    /* The kind, the tone and the name of a box. */
    shortOf(id) {
      if (typeof id !== "number") return { kind: "group", tone: headrace.standingOf(this.index, this.items.get(id).numbers).tone, name: id };
      const node = this.index.nodes[id];
      return { kind: node.kind, tone: headrace.standing(node).tone, name: node.name };
    }
  }

  headrace.extendGraph(Far);
  Object.assign(headrace, { graphColours: colours });
})();
