"use strict";

/* The whole graph in small, in a corner, with a frame around what is in sight: a click or a drag there moves the graph. */
(() => {
  const { BOX } = headrace;
  const MOST = { width: 180, height: 120, seen: 0.6 };
  const LEAST_BOXES = 30;

  class Minimap {
    /* Draw the map, unless the graph is small or most of it is in sight. */
    paintMap() {
      const { width, height } = this.layout;
      const { x, y, scale } = this.view;
      const [w, hgt] = [this.element.clientWidth, this.element.clientHeight];
      const seen = Math.min(1, w / (width * scale)) * Math.min(1, hgt / (height * scale));
      this.map.hidden = this.order.length < LEAST_BOXES || seen > MOST.seen || w < 500 || !this.options.tall;
      if (this.map.hidden) return;
      const small = Math.min(MOST.width / width, MOST.height / height);
      const dense = window.devicePixelRatio || 1;
      const [wide, tall] = [Math.max(24, width * small), Math.max(16, height * small)];
      const theme = `${headrace.graphColours().card} ${small} ${dense} ${this.focus} ${this.near ? this.near.size : 0}`;
      if (this.mapped !== theme) this.drawMap(small, dense, wide, tall);
      this.mapped = theme;
      const pen = this.map.getContext("2d");
      pen.setTransform(1, 0, 0, 1, 0, 0);
      pen.clearRect(0, 0, this.map.width, this.map.height);
      pen.drawImage(this.ground, 0, 0);
      pen.setTransform(dense, 0, 0, dense, 0, 0);
      pen.strokeStyle = headrace.graphColours().accent;
      pen.lineWidth = 1.5;
      const box = [(-x / scale) * small, (-y / scale) * small, (w / scale) * small, (hgt / scale) * small];
      const [left, top] = [Math.max(1, box[0]), Math.max(1, box[1])];
      pen.strokeRect(left, top, Math.max(3, Math.min(wide - 1, box[0] + box[2]) - left), Math.max(3, Math.min(tall - 1, box[1] + box[3]) - top));
    }

    drawMap(small, dense, wide, tall) {
      const size = { width: Math.round(wide * dense), height: Math.round(tall * dense) };
      Object.assign(this.map, size);
      Object.assign(this.map.style, { width: `${wide}px`, height: `${tall}px` });
      this.ground = Object.assign(document.createElement("canvas"), size);
      const pen = this.ground.getContext("2d");
      pen.setTransform(dense, 0, 0, dense, 0, 0);
      const colour = headrace.graphColours();
      for (const id of this.order) {
        const [left, middle, high] = this.layout.places.get(id);
        const { kind, tone } = this.shortOf(id);
        pen.globalAlpha = !this.near || this.isLit(id) ? 1 : 0.25;
        pen.fillStyle = colour[tone] || colour[kind] || colour.soft;
        pen.fillRect(left * small, (middle - high / 2) * small, Math.max(1, BOX.width * small), Math.max(1, high * small));
      }
      this.small = small;
    }

    /* Follow the mouse on the map. */
    followMap() {
      const go = (event) => {
        const rect = this.map.getBoundingClientRect();
        const { scale } = this.view;
        const [px, py] = [(event.clientX - rect.left) / this.small, (event.clientY - rect.top) / this.small];
        this.move(this.element.clientWidth / 2 - px * scale, this.element.clientHeight / 2 - py * scale, scale);
      };
      this.map.addEventListener("pointerdown", (event) => {
        event.stopPropagation();
        this.map.setPointerCapture(event.pointerId);
        go(event);
      });
      this.map.addEventListener("pointermove", (event) => {
        event.stopPropagation();
        if (this.map.hasPointerCapture(event.pointerId)) go(event);
      });
      for (const type of ["click", "dblclick"]) this.map.addEventListener(type, (event) => event.stopPropagation());
    }
  }

  headrace.extendGraph(Minimap);
})();
