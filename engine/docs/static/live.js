"use strict";

/* A page that `engine docs serve` serves: it loads itself again when the site is written again, and stays where it is. */
(() => {
  const EVERY = 1000;
  const MOST = 15000;
  const PLACE = "headrace-place";
  const loaded = document.currentScript.dataset.version;
  let pause = EVERY;

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
      window.sessionStorage.setItem(PLACE, JSON.stringify(headrace.place()));
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
    if (was && was.hash === window.location.hash) window.requestAnimationFrame(() => headrace.back(was));
    window.setTimeout(look, pause);
  }

  const drawn = new MutationObserver(begin);
  drawn.observe(root, { attributes: true, attributeFilter: ["data-ready"] });
  begin(); // the page may be drawn already
})();
