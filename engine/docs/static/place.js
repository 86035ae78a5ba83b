"use strict";

/* Where the reader of a page is, so that the page can be drawn again around him. */
(() => {
  const main = document.getElementById("main");
  const folders = () => [...document.querySelectorAll("#nodes details")];

  /* What is marked by the keyboard: an element of the page that will be there again. */
  function focused() {
    const element = document.activeElement;
    if (!element || !main.contains(element)) return null;
    if (element.id) return `#${CSS.escape(element.id)}`;
    const href = element.getAttribute("href");
    return href ? `${element.localName}[href="${CSS.escape(href)}"]` : null;
  }

  /* Page, scroll, folders that are open, the part of the graph, fields and tabs. */
  function place() {
    const graph = headrace.shown && headrace.shown.element.isConnected ? headrace.shown : null;
    return {
      hash: window.location.hash,
      top: window.scrollY,
      side: document.getElementById("side").scrollTop,
      folders: folders().map((details) => details.dataset.title),
      open: folders().filter((details) => details.open).map((details) => details.dataset.title),
      node: graph && typeof graph.focus === "number" ? graph.index.nodes[graph.focus].id : null,
      groups: graph ? { by: graph.groups.by, open: [...graph.groups.open] } : null,
      view: graph && graph.view ? { ...graph.view } : null,
      fields: [...main.querySelectorAll("input[id], select[id]")].map(({ id, value, checked }) => ({ id, value, checked })),
      tabs: [...main.querySelectorAll("[role=tab][aria-selected=true]")].map((tab) => tab.id),
      scrolled: [...main.querySelectorAll(".scroll, pre")].map((element) => element.scrollLeft),
      focused: focused(),
    };
  }

  /* Back to a place, as far as the site still has it. */
  function back(was) {
    for (const details of folders())
      if (was.folders.includes(details.dataset.title)) details.open = was.open.includes(details.dataset.title);
    fill(was.fields);
    const graph = headrace.shown && headrace.shown.element.isConnected ? headrace.shown : null;
    if (graph && was.view) {
      const number = graph.index.nodes.findIndex((node) => node.id === was.node);
      if (was.groups.open.length && was.groups.by === graph.groups.by) {
        was.groups.open.forEach((key) => graph.groups.open.add(key));
        graph.redraw();
      }
      if (number >= 0 && (!graph.chosen || graph.chosen.has(number))) graph.light(number);
      // The reader chose this part of the graph; the box may be out of sight.
      window.cancelAnimationFrame(graph.uncovering);
      graph.fitted = true;
      graph.move(was.view.x, was.view.y, was.view.scale);
    }
    for (const id of was.tabs) {
      const tab = document.getElementById(id);
      if (tab) tab.click();
    }
    [...main.querySelectorAll(".scroll, pre")].forEach((element, i) => {
      element.scrollLeft = was.scrolled[i] || 0;
    });
    document.getElementById("side").scrollTop = was.side;
    const element = was.focused && main.querySelector(was.focused);
    if (element) element.focus({ preventScroll: true });
    window.scrollTo(0, was.top);
  }

  function fill(fields) {
    let last = null;
    for (const { id, value, checked } of fields) {
      const field = document.getElementById(id);
      if (!field || !main.contains(field) || (field.value === value && field.checked === checked)) continue;
      Object.assign(field, { value, checked });
      last = field;
    }
    if (last) last.dispatchEvent(new Event("change"));
  }

  Object.assign(headrace, { place, back });
})();
