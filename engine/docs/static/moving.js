"use strict";

/* Moving through the graph: mouse, fingers and keyboard. */
(() => {
  const { h, BOX, ZOOM } = headrace;

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
      const lines = event.deltaMode ? 24 : 1;
      // A pinch on a touchpad arrives as a turn of the wheel with Control.
      if (event.ctrlKey || event.metaKey)
        this.zoom(Math.exp(-event.deltaY * lines * 0.003), event.clientX - rect.left, event.clientY - rect.top);
      else if (event.shiftKey) this.pan(-event.deltaY * lines, 0);
      else this.pan(-event.deltaX * lines, -event.deltaY * lines);
    }

    click(event) {
      const box = event.target.closest(".box");
      if (event.ctrlKey || event.metaKey || event.shiftKey || event.target.closest(".row")) return;
      const id = box ? idOf(box) : this.outlined ? this.under(event) : null;
      const group = typeof id === "string";
      if (!this.options.tall && !group) return;
      if (id === null) this.light(null);
      else if (group || id !== this.focus) {
        event.preventDefault();
        if (group && (id === this.focus || !this.options.tall)) this.unfold(id);
        else this.light(id);
      }
    }

    /* Open a group: its nodes, or the groups in it, are drawn in its place. */
    unfold(key) {
      const before = this.layout.places.get(key);
      const numbers = this.items.get(key).numbers;
      this.groups.open.add(key);
      Object.assign(this, { focus: null, near: null });
      this.draw();
      const first = numbers.map((number) => this.groups.of(number)).sort((a, b) => this.layout.places.get(a)[0] - this.layout.places.get(b)[0])[0];
      const after = this.layout.places.get(first);
      if (this.view) this.move(this.view.x + (before[0] - after[0]) * this.view.scale, this.view.y + (before[1] - after[1]) * this.view.scale, this.view.scale);
      this.told(first);
    }

    /* Shut a group again. */
    fold(key) {
      this.groups.shut(key);
      Object.assign(this, { focus: null, near: null, path: null });
      this.draw();
      this.told(key);
    }

    /* After groups have changed: say so, and move the focus to a box. */
    told(id) {
      const held = this.element.contains(document.activeElement);
      this.lit();
      if (this.options.onGroups) this.options.onGroups();
      if (held && this.layout.places.has(id)) this.visit(id);
    }

    /* The box at a point of the canvas; null if there is none. */
    under(event) {
      const rect = this.element.getBoundingClientRect();
      const [x, y] = [
        (event.clientX - rect.left - this.view.x) / this.view.scale,
        (event.clientY - rect.top - this.view.y) / this.view.scale,
      ];
      const hit = this.order.find((id) => {
        const [left, middle, tall] = this.layout.places.get(id);
        return x >= left && x <= left + BOX.width && Math.abs(y - middle) <= tall / 2;
      });
      return hit === undefined ? null : hit;
    }

    /* Move a box into view, if it is not there. */
    uncover(id) {
      const place = this.layout.places.get(id);
      if (!place) return;
      const { x, y, scale } = this.view;
      const over = (low, high, room) => (high - low > room ? 24 - low : low < 24 ? 24 - low : high > room - 24 ? room - 24 - high : 0);
      const [left, top] = [place[0] * scale + x, (place[1] - place[2] / 2) * scale + y];
      const dx = over(left, left + BOX.width * scale, this.element.clientWidth);
      const dy = over(top, top + Math.min(place[2] * scale, this.element.clientHeight - 60), this.element.clientHeight);
      if (dx || dy) this.pan(dx, dy);
    }

    /* A box that got the focus by the keyboard comes into view. */
    reveal(box) {
      if (!box || !box.matches(":focus-visible") || !this.view) return;
      this.uncover(idOf(box));
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
        0: () => this.fitAll(),
        1: () => this.fit(),
        Escape: () => this.light(null),
      }[event.key];
      const ofBox = box && { c: () => this.open(idOf(box)), x: () => this.foldOf(idOf(box)) }[event.key.toLowerCase()];
      if (done) done();
      else if (ofBox) ofBox();
      else if (event.key in arrows && box) this.step(idOf(box), event.key);
      else if (event.key in arrows) this.pan(...arrows[event.key].map((part) => part * 60));
      else return;
      event.preventDefault();
    }

    /* Shut the group that a node is in. */
    foldOf(id) {
      const key = typeof id === "number" ? this.groups.openOf(id) : undefined;
      if (key !== undefined) this.fold(key);
    }

    /* Give a box the focus, in sight or not; on the canvas it is in the light instead. */
    visit(id) {
      const [x, y] = this.layout.places.get(id);
      if (this.outlined || !this.boxOf(id).isConnected) {
        const scale = this.outlined ? Math.max(this.view.scale, ZOOM.readable) : this.view.scale;
        this.view = {
          scale,
          x: this.element.clientWidth / 2 - (x + BOX.width / 2) * scale,
          y: this.element.clientHeight / 2 - y * scale,
        };
        this.paint();
      }
      this.boxOf(id).focus();
    }

    /* From box to box: left to what it reads, right to what reads it, up and down within the column. */
    step(id, key) {
      const { places, links } = this.layout;
      const [x, y] = places.get(id);
      const others =
        key === "ArrowLeft"
          ? links.filter(({ to }) => to === id).map(({ from }) => from)
          : key === "ArrowRight"
            ? links.filter(({ from }) => from === id).map(({ to }) => to)
            : [...places.keys()].filter((n) => n !== id && places.get(n)[0] === x && places.get(n)[1] > y === (key === "ArrowDown"));
      others.sort((a, b) => Math.abs(places.get(a)[1] - y) - Math.abs(places.get(b)[1] - y));
      if (others.length) this.visit(others[0]);
    }
  }

  /* What a box stands for: the number of a node, or the key of a group. */
  const idOf = (box) => (box.classList.contains("group") ? box.dataset.id : Number(box.dataset.id));

  headrace.extendGraph(Moving);

  /* Buttons beside a graph. */
  function controls(graph) {
    const button = (label, sign, action) =>
      h("button", { type: "button", class: "square", title: label, "aria-label": label, onclick: action }, sign);
    return h(
      "div",
      { class: "controls", role: "group", "aria-label": "Zoom" },
      button("Zoom in", "+", () => graph.zoom(ZOOM.step)),
      button("Zoom out", "−", () => graph.zoom(1 / ZOOM.step)),
      button("Readable size", "Aa", () => graph.fit()),
      button("Show all", "⤢", () => graph.fitAll()),
    );
  }

  Object.assign(headrace, { controls });
})();
