"use strict";

/* The data of the site as they are now: loaded again after runs and edits, while the reader stays where he is. */
(() => {
  const { h } = headrace;
  const { now, changed, restateAll } = headrace.live;
  // Pages of a large project take this part of the time, at most.
  const SHARE = 0.05;
  const LEAST = 3000;
  const main = document.getElementById("main");
  let loading = false;
  let next = 0;
  let insisted = false;

  const projectOf = (version) => version.split(".")[0];
  const newest = () => (now.head && now.head.site) || "";
  const edited = () => projectOf(newest()) !== projectOf(headrace.site.index.live);

  /* Whether something would be lost if the page were drawn again: a text that is typed or selected. */
  function busy() {
    const { activeElement: field } = document;
    if (field instanceof HTMLInputElement && field.type === "text" && main.contains(field)) return true;
    const selection = window.getSelection();
    return Boolean(selection && !selection.isCollapsed && main.contains(selection.anchorNode));
  }

  /* Load what has changed, unless that was done just now or would disturb. */
  function follow() {
    const { site } = headrace;
    if (!site.index.live || !newest() || newest() === site.index.live || loading || document.hidden) return;
    if (edited() && busy() && !insisted) return;
    if (performance.now() < next && !edited()) return;
    load(site);
  }

  async function load(site) {
    loading = true;
    insisted = false;
    const begin = performance.now();
    try {
      headrace.renew(projectOf(site.index.live));
      const index = await headrace.again("index");
      if (projectOf(index.live) === projectOf(site.index.live)) {
        take(site.index, index);
        restateAll();
        await headrace.redraw();
      } else {
        await headrace.renewSite(index, restateAll);
      }
    } catch (error) {
      console.info(error.message);
    } finally {
      loading = false;
      next = performance.now() + Math.max(LEAST, (performance.now() - begin) / SHARE);
    }
  }

  /* Put newer values in the place of older ones: graphs hold the nodes themselves. */
  function take(old, index) {
    index.nodes.forEach((node, place) => {
      const kept = old.nodes[place];
      for (const key of Object.keys(kept)) delete kept[key];
      Object.assign(kept, node);
    });
    Object.assign(old, { ...index, nodes: old.nodes });
  }

  /* What is said while a newer version waits for the reader. */
  function newer() {
    const { site } = headrace;
    if (!site || !site.index || !site.index.live || !newest() || !edited() || !busy()) return null;
    const show = () => {
      insisted = true;
      changed();
    };
    return h("p", { class: "notice" }, "The project has changed. ", h("button", { type: "button", onclick: show }, "Show it"));
  }

  Object.assign(headrace, { follow, newer });
})();
