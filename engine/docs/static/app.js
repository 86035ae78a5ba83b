"use strict";

/* The frame of all pages: header, list of nodes, and the way from an address to a page. */
(() => {
  const { h, icon, number, kindOf } = headrace;

  /* A name as a part of an address; half a pair of surrogates has no such form. */
  const encoded = (text) => encodeURIComponent(text.replace(/\p{Surrogate}/gu, "\ufffd"));
  headrace.hrefOf = (node) => `#/${kindOf(node)}/${encoded(node.name)}`;
  headrace.hrefOfColumn = (node, column) => `#/column/${kindOf(node)}/${encoded(node.name)}/${encoded(column)}`;

  const collator = new Intl.Collator("en", { numeric: true });
  const main = document.getElementById("main");
  const site = {};

  async function start() {
    theme();
    if (headrace.live) headrace.live.changed();
    try {
      site.index = await headrace.need("index");
    } catch {
      main.replaceChildren(
        h(
          "p",
          { class: "notice bad" },
          "The data of this site cannot be read: the folder data/ is missing beside this page.",
        ),
      );
      return;
    }
    use(site.index);
    if (headrace.live) headrace.live.restateAll();
    document.getElementById("nodes").replaceChildren(...tree());
    document.getElementById("tools").prepend(headrace.searchBox(site));
    if (site.index.compared) document.querySelector("#bar nav").append(h("a", { href: "#/changes" }, "Changes"));
    window.addEventListener("hashchange", () => route());
    await route();
    if (headrace.live) headrace.live.changed();
  }

  /* Take the project and its nodes from a record. */
  function use(index) {
    if (index.live) headrace.renew(index.live.split(".")[0]);
    Object.assign(site, { index, graph: headrace.graphOf(index) });
    site.byId = new Map(index.nodes.map((node, place) => [node.id, place]));
    document.getElementById("project").replaceChildren(h("bdi", {}, index.project || "project"));
  }

  /* An address: #/kind/name/column?key=value. */
  function address() {
    const [path, query] = window.location.hash.replace(/^#\/?/, "").split("?");
    return { parts: path.split("/").filter(Boolean).map(decoded), query: new URLSearchParams(query || "") };
  }

  function decoded(text) {
    try {
      return decodeURIComponent(text);
    } catch {
      return text;
    }
  }

  async function pageOf({ parts: [kind, ...names], query }) {
    if (kind && headrace.added && headrace.added[kind]) return headrace.added[kind](site, names, query);
    if (!kind) return headrace.overview(site);
    if (kind === "graph") return headrace.graphPage(site, query);
    if (kind === "runs") return headrace.runsPage(site, names[0]);
    if (kind === "changes") return headrace.changesPage(site);
    if (kind === "macro") return headrace.macroPage(site, names[0]);
    const node = site.byId.get(`${kind === "column" ? names[0] : kind}.${kind === "column" ? names[1] : names[0]}`);
    if (node === undefined) return null;
    return kind === "column" ? headrace.columnPage(site, node, names[2] || "") : headrace.nodePage(site, node);
  }

  let turn = 0;
  let shown = null;

  /* Draw the page of the address; `was`: the reader has it open, and stays at that place. */
  async function route(was = null) {
    turn += 1;
    const mine = turn;
    const focused = document.activeElement;
    if (!was) delete document.documentElement.dataset.ready;
    const where = address();
    let found;
    try {
      found = await pageOf(where);
    } catch (error) {
      found = { title: "Error", page: h("div", { class: "page" }, h("p", { class: "notice bad" }, error.message)) };
      if (mine === turn && !error.stale) console.error(error);
    }
    if (mine !== turn) return;
    found = found || {
      title: "Not found",
      page: h(
        "div",
        { class: "page" },
        h("h1", {}, "Page not found"),
        was ? h("p", { class: "notice" }, "What was shown here is not in the project any more.") : null,
        h("p", {}, h("a", { href: "#/" }, "Back to the overview")),
      ),
    };
    // Whoever has turned to the search while the page was read keeps typing there.
    const elsewhere = document.activeElement !== focused;
    document.title = `${found.title} · ${site.index.project}`;
    main.replaceChildren(found.page);
    shown = found;
    mark();
    if (was) {
      headrace.back(was);
      document.documentElement.dataset.ready = "true";
      return;
    }
    document.getElementById("side").open = false;
    window.scrollTo(0, 0);
    // The page is announced and the keyboard begins there, but not at the first opening.
    if (mine > 1 && !elsewhere) main.focus({ preventScroll: true });
    document.documentElement.dataset.ready = "true";
  }

  /* Draw the parts of the page that show data again. */
  async function redraw() {
    const mine = turn;
    if (shown && shown.update) await shown.update(() => mine === turn);
  }

  /* Show another version of the site in place of this one. */
  async function renew(index, prepare) {
    const was = headrace.place();
    use(index);
    prepare();
    document.getElementById("nodes").replaceChildren(...tree());
    await route(was);
  }

  /* Links to the page that is shown are marked as such. */
  function mark() {
    const hash = window.location.hash.split("?")[0] || "#/";
    for (const a of document.querySelectorAll("#side a, #bar a")) {
      if (a.getAttribute("href") === hash) a.setAttribute("aria-current", "page");
      else a.removeAttribute("aria-current");
    }
    const {
      parts: [kind, name],
    } = address();
    const node = site.index.nodes[site.byId.get(`${kind}.${name}`)];
    for (const details of document.querySelectorAll("#nodes details"))
      if (node && details.dataset.title === titleOf(node)) details.open = true;
  }

  const titleOf = (node) => ({ source: "Sources", exposure: "Exposures" })[node.kind] || node.folder || "models";

  /* All nodes by folder. */
  function tree() {
    const groups = new Map();
    for (const node of site.index.nodes) {
      const title = titleOf(node);
      if (!groups.has(title)) groups.set(title, []);
      groups.get(title).push(node);
    }
    const many = site.index.nodes.length > 60;
    const entry = (node) => h("li", {}, headrace.entry(node));
    const group = (title, nodes) =>
      fold(title, nodes.length, !many, () => [...nodes].sort((a, b) => collator.compare(a.name, b.name)).map(entry));
    const macro = (name) =>
      h("li", {}, h("a", { href: `#/macro/${name}` }, h("code", { "aria-hidden": "true" }, "{%"), h("bdi", {}, name)));
    const macros = site.index.macros.length
      ? fold("Macros", site.index.macros.length, !many, () => site.index.macros.map(macro))
      : [];
    const folders = [...groups.keys()].filter((title) => !["Sources", "Exposures"].includes(title));
    return ["Sources", ...folders.sort(collator.compare), "Exposures"]
      .filter((title) => groups.has(title))
      .map((title) => group(title, groups.get(title)))
      .concat(macros);
  }

  /* A part of the list that folds; what is in it is made when it is first open. */
  function fold(title, count, open, items) {
    const list = h("ul", {});
    const fill = () => {
      if (!list.children.length) list.append(...items());
    };
    if (open) fill();
    return h(
      "details",
      {
        open,
        "data-title": title,
        ontoggle: (event) => {
          if (event.target.open) {
            fill();
            mark();
          }
        },
      },
      h("summary", {}, headrace.dotted(title, /(?<=[\/_])/), h("span", { class: "count" }, number(count))),
      list,
    );
  }

  /* Light, dark, or as the system has it; kept where the browser allows it. */
  function theme() {
    const button = document.getElementById("theme");
    const order = ["auto", "light", "dark"];
    let chosen = "auto";
    try {
      chosen = window.localStorage.getItem("headrace-theme") || "auto";
    } catch {
      // Some browsers keep nothing for pages of the file system.
    }
    function apply(next) {
      chosen = order.includes(next) ? next : "auto";
      if (chosen === "auto") delete document.documentElement.dataset.theme;
      else document.documentElement.dataset.theme = chosen;
      button.textContent = { auto: "Theme: auto", light: "Theme: light", dark: "Theme: dark" }[chosen];
      button.setAttribute("aria-label", `Colours: ${chosen}; press to change`);
      if (headrace.shown && headrace.shown.view) headrace.shown.paint();
    }
    button.addEventListener("click", () => {
      apply(order[(order.indexOf(chosen) + 1) % order.length]);
      try {
        window.localStorage.setItem("headrace-theme", chosen);
      } catch {
        // As above.
      }
    });
    apply(chosen);
  }

  Object.assign(headrace, { site, redraw, renewSite: renew });
  start();
})();
