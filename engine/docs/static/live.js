"use strict";

/* A page that `engine docs serve` serves: it loads itself again when the site is written again, and stays where it is. */
(() => {
  const EVERY = 1000;
  const MOST = 15000;
  const PLACE = "headrace-place";
  const loaded = document.currentScript.dataset.version;
  let pause = EVERY;

  /* Where the reader is: page, scroll, folders that are open, and the part of the graph. */
  function place() {
    const graph = headrace.shown && headrace.shown.element.isConnected ? headrace.shown : null;
    return {
      hash: window.location.hash,
      top: window.scrollY,
      side: document.getElementById("side").scrollTop,
      open: [...document.querySelectorAll("#nodes details[open]")].map((details) => details.dataset.title),
      node: graph && graph.focus !== null ? graph.index.nodes[graph.focus].id : null,
      view: graph ? graph.view : null,
    };
  }

  /* Back to a place, as far as the site still has it. */
  function back(was) {
    for (const details of document.querySelectorAll("#nodes details"))
      details.open = was.open.includes(details.dataset.title);
    const graph = headrace.shown;
    if (graph && was.view) {
      const number = graph.index.nodes.findIndex((node) => node.id === was.node);
      if (number >= 0 && graph.layout.places.has(number)) graph.light(number);
      graph.fitted = true;
      graph.move(was.view.x, was.view.y, was.view.scale);
    }
    document.getElementById("side").scrollTop = was.side;
    window.scrollTo(0, was.top);
  }

  function stored() {
    try {
      const text = window.sessionStorage.getItem(PLACE);
      window.sessionStorage.removeItem(PLACE);
      return JSON.parse(text);
    } catch {
      return null;
    }
  }

  function reload() {
    try {
      window.sessionStorage.setItem(PLACE, JSON.stringify(place()));
    } catch {
      // The page begins at its top.
    }
    window.location.reload();
  }

  /* Reading in the search or a form is not interrupted. */
  const busy = () => document.activeElement instanceof HTMLInputElement && document.activeElement.value !== "";

  async function look() {
    if (!document.hidden && !busy()) {
      try {
        if ((await headrace.again("version")) !== loaded) {
          reload();
          return;
        }
        pause = EVERY;
      } catch {
        // The server has gone; it may come back.
        pause = Math.min(2 * pause, MOST);
      }
    }
    window.setTimeout(look, pause);
  }

  const was = stored();
  const root = document.documentElement;

  function begin() {
    if (!root.dataset.ready) return;
    drawn.disconnect();
    if (was && was.hash === window.location.hash) window.requestAnimationFrame(() => back(was));
    window.setTimeout(look, pause);
  }

  const drawn = new MutationObserver(begin);
  drawn.observe(root, { attributes: true, attributeFilter: ["data-ready"] });
  begin(); // the page may be drawn already
})();
