"use strict";

/* Moving through the graph: mouse, fingers and keyboard. */
(() => {
  const { h, BOX, Graph, ZOOM } = headrace;

  class Moving {
    listen() {
      const { element } = this;
      const pointers = new Map();
      let moved = 0;
      element.addEventListener("pointerdown", (event) => {
        if (event.button) return;
        pointers.set(event.pointerId, [event.clientX, event.clientY]);
        moved = 0;
      });
      element.addEventListener("pointermove", (event) => {
        const before = pointers.get(event.pointerId);
        if (!before) return;
        const now = [event.clientX, event.clientY];
        const other = [...pointers.entries()].find(([id]) => id !== event.pointerId);
        if (other) this.pinch(before, now, other[1]);
        else this.pan(now[0] - before[0], now[1] - before[1]);
        moved += Math.hypot(now[0] - before[0], now[1] - before[1]);
        pointers.set(event.pointerId, now);
        if (moved > 4 && !element.hasPointerCapture(event.pointerId)) element.setPointerCapture(event.pointerId);
      });
      const release = (event) => pointers.delete(event.pointerId);
      element.addEventListener("pointerup", release);
      element.addEventListener("pointercancel", release);
      element.addEventListener("dragstart", (event) => event.preventDefault());
      element.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
      element.addEventListener("click", (event) => {
        if (moved > 4) event.preventDefault();
        else this.click(event);
      });
      element.addEventListener("dblclick", (event) => {
        const rect = element.getBoundingClientRect();
        this.zoom(2 * ZOOM.step, event.clientX - rect.left, event.clientY - rect.top);
      });
      element.addEventListener("keydown", (event) => this.key(event));
      element.addEventListener("focusin", (event) => this.reveal(event.target.closest(".box")));
    }

    pinch(before, now, other) {
      const rect = this.element.getBoundingClientRect();
      const [was, is] = [before, now].map(([x, y]) => Math.hypot(x - other[0], y - other[1]));
      if (was) this.zoom(is / was, (now[0] + other[0]) / 2 - rect.left, (now[1] + other[1]) / 2 - rect.top);
    }

    wheel(event) {
      // Inside a page that scrolls, the wheel alone scrolls the page.
      if (!this.options.tall && !event.ctrlKey && !event.metaKey) return;
      event.preventDefault();
      const rect = this.element.getBoundingClientRect();
      this.zoom(
        Math.exp(-event.deltaY * (event.deltaMode ? 0.05 : 0.0015)),
        event.clientX - rect.left,
        event.clientY - rect.top,
      );
    }

    click(event) {
      const box = event.target.closest(".box");
      if (!this.options.tall || event.ctrlKey || event.metaKey || event.shiftKey) return;
      if (!box) {
        this.light(this.outlined ? this.under(event) : null);
      } else if (Number(box.dataset.number) !== this.focus) {
        event.preventDefault();
        this.light(Number(box.dataset.number));
      }
    }

    /* The node at a point of the outline; null if there is none. */
    under(event) {
      const rect = this.element.getBoundingClientRect();
      const [x, y] = [
        (event.clientX - rect.left - this.view.x) / this.view.scale,
        (event.clientY - rect.top - this.view.y) / this.view.scale,
      ];
      const hit = this.order.find((number) => {
        const [left, middle] = this.layout.places.get(number);
        return x >= left && x <= left + BOX.width && Math.abs(y - middle) <= BOX.height / 2;
      });
      return hit === undefined ? null : hit;
    }

    /* A box that got the focus by the keyboard comes into view. */
    reveal(box) {
      if (!box || !box.matches(":focus-visible") || !this.view) return;
      const [rect, frame] = [box.getBoundingClientRect(), this.element.getBoundingClientRect()];
      const over = (low, high, from, to) => (low < from ? from - low + 24 : high > to ? to - high - 24 : 0);
      this.pan(
        over(rect.left, rect.right, frame.left, frame.right),
        over(rect.top, rect.bottom, frame.top, frame.bottom),
      );
      this.element.scrollTo(0, 0);
    }

    key(event) {
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      const box = event.target.closest(".box");
      const arrows = { ArrowLeft: [1, 0], ArrowRight: [-1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] };
      const done = {
        "+": () => this.zoom(ZOOM.step),
        "=": () => this.zoom(ZOOM.step),
        "-": () => this.zoom(1 / ZOOM.step),
        0: () => this.fit(),
        Escape: () => this.light(null),
      }[event.key];
      if (done) done();
      else if (event.key in arrows && box) this.step(Number(box.dataset.number), event.key);
      else if (event.key in arrows) this.pan(...arrows[event.key].map((part) => part * 60));
      else return;
      event.preventDefault();
    }

    /* Give a box the focus, in sight or not. */
    visit(number) {
      const [x, y] = this.layout.places.get(number);
      const { scale } = this.view;
      if (!this.boxOf(number).isConnected) {
        this.view = {
          scale,
          x: this.element.clientWidth / 2 - (x + BOX.width / 2) * scale,
          y: this.element.clientHeight / 2 - y * scale,
        };
        this.paint();
      }
      this.boxOf(number).focus();
    }

    /* From box to box: left to what it reads, right to what reads it, up and down within the column. */
    step(number, key) {
      const { places } = this.layout;
      const [x, y] = places.get(number);
      const beside = { ArrowLeft: this.edges.up, ArrowRight: this.edges.down }[key];
      const others = beside
        ? beside[number].filter((n) => places.has(n))
        : [...places.keys()].filter(
            (n) => n !== number && places.get(n)[0] === x && places.get(n)[1] > y === (key === "ArrowDown"),
          );
      others.sort((a, b) => Math.abs(places.get(a)[1] - y) - Math.abs(places.get(b)[1] - y));
      if (others.length) this.visit(others[0]);
    }
  }

  for (const name of Object.getOwnPropertyNames(Moving.prototype)) {
    if (name !== "constructor") Graph.prototype[name] = Moving.prototype[name];
  }

  /* Buttons beside a graph. */
  function controls(graph) {
    const button = (label, sign, action) =>
      h("button", { type: "button", class: "square", title: label, "aria-label": label, onclick: action }, sign);
    return h(
      "div",
      { class: "controls", role: "group", "aria-label": "Zoom" },
      button("Zoom in", "+", () => graph.zoom(ZOOM.step)),
      button("Zoom out", "−", () => graph.zoom(1 / ZOOM.step)),
      button("Show all", "⤢", () => graph.fit()),
    );
  }

  Object.assign(headrace, { controls });
})();
