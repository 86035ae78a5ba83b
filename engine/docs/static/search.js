"use strict";

/* The search box: names of models, sources, macros and columns, ranked; below them words of descriptions, tests and SQL; and
   the selection syntax of the command line. */
(() => {
  const { h, icon, plural } = headrace;
  const MOST = { names: 12, texts: 6 };
  // Shorter ones are in every text.
  const LETTERS = 3;
  // Of names that fit as well: a model or source before what reads it, a macro and a column.
  const LEAD = { node: 3, exposure: 2, macro: 1, column: 0 };

  /* What is around the place where a text was found, in one line. */
  function excerpt(text, place, length) {
    const flat = (part) => part.replace(/\s+/g, " ");
    const before = flat(text.slice(0, place)).split(" ").slice(-3).join(" ");
    return `${before}${flat(text.slice(place, place + length + 40))}`.trim();
  }

  function searchBox(site) {
    const list = h("ul", { id: "found", role: "listbox", class: "found", hidden: true, "aria-label": "Found" });
    const input = h("input", {
      type: "search",
      id: "search",
      role: "combobox",
      autocomplete: "off",
      spellcheck: "false",
      placeholder: "Search, or select: +routes, tag:mart",
      "aria-label": "Search models, sources, macros, columns and texts, or write a selection",
      "aria-expanded": "false",
      "aria-controls": "found",
      "aria-autocomplete": "list",
      oninput: () => update(),
      onfocus: () => update(),
      onkeydown: key,
      onblur: () => setTimeout(close, 150),
    });
    let options = [];
    let current = -1;
    let asked = 0;

    async function update() {
      const text = input.value.trim();
      asked += 1;
      const mine = asked;
      if (!text) return close();
      show(options_(text, [], []));
      if (text.length > 1) {
        const found = await Promise.all([named(text), within(text)]);
        if (mine === asked && document.activeElement === input) show(options_(text, ...found));
      }
      return undefined;
    }

    /* What fits, the best first: names, then texts that have the words, then the selection. */
    function options_(text, columns, texts) {
      const lower = text.toLowerCase();
      const names = [...nodes(lower), ...macros(lower), ...columns].sort((a, b) => b.score - a.score).slice(0, MOST.names);
      const shown = new Set(names.map(({ href }) => href));
      return [...names, ...texts.map(ofText).filter(({ href }) => !shown.has(href)), selection(text)].filter(Boolean);
    }

    const fitting = (name, lower, kind, more) => {
      const found = headrace.match(name, lower);
      return found ? [{ ...more(), name: headrace.marked(name, found), note: [more().note, found.why].filter(Boolean).join(" · "), score: found.score + LEAD[kind] }] : [];
    };

    const nodes = (lower) =>
      site.index.nodes.flatMap((node) =>
        fitting(node.name, lower, node.kind === "exposure" ? "exposure" : "node", () => ({ href: headrace.hrefOf(node), sign: icon(node.kind), note: node.what })),
      );

    const macros = (lower) =>
      site.index.macros.flatMap((name) =>
        fitting(name, lower, "macro", () => ({ href: `#/macro/${name}`, sign: h("code", {}, "{%"), note: "macro" })),
      );

    const ofText = ([node, what, column, found]) => ({
      href: column ? headrace.hrefOfColumn(site.index.nodes[node], column) : headrace.hrefOf(site.index.nodes[node]),
      sign: h("code", {}, "…"),
      name: h("bdi", {}, [site.index.nodes[node].name, column].filter(Boolean).join(".")),
      note: `${what}: ${found}`,
    });

    /* Columns whose name fits; model.column names a model too. */
    async function named(text) {
      const records = await headrace.need("lineage");
      const parts = text.toLowerCase().split(".");
      const lower = parts.pop();
      if (!lower) return [];
      const of = parts.join(".");
      const found = records.flatMap((record, number) => {
        const node = site.index.nodes[number];
        if (of && !headrace.match(node.name, of)) return [];
        return record.columns.flatMap(([name]) => {
          const fit = headrace.match(name, lower);
          if (!fit) return [];
          return [{ number, column: name, fit, score: fit.score + LEAD.column }];
        });
      });
      return found
        .sort((a, b) => b.score - a.score)
        .slice(0, MOST.names)
        .map(({ number, column, fit, score }) => ({
          href: headrace.hrefOfColumn(site.index.nodes[number], column),
          sign: h("code", {}, "▤"),
          name: h("span", {}, h("bdi", {}, `${site.index.nodes[number].name}.`), headrace.marked(column, fit)),
          note: ["column", fit.why].filter(Boolean).join(" · "),
          score,
        }));
    }

    /* Where descriptions, tests and SQL have the words that were typed; a text of each node and column, at most. */
    async function within(text) {
      if (text.length < LETTERS || /[+:@*]/.test(text)) return [];
      const records = await headrace.need("texts");
      const lower = text.toLowerCase();
      const found = new Map();
      records.forEach((texts, node) => {
        for (const [what, column, whole] of texts) {
          const place = whole.toLowerCase().indexOf(lower);
          const key = `${node} ${column}`;
          if (place >= 0 && !found.has(key)) found.set(key, [node, what, column, excerpt(whole, place, text.length)]);
        }
      });
      return [...found.values()].slice(0, MOST.texts);
    }

    function selection(text) {
      try {
        const found = headrace.select(site.graph, text);
        if (!found.size) return null;
        return {
          selection: true,
          href: `#/graph?select=${encodeURIComponent(text)}`,
          sign: h("code", {}, "⌖"),
          name: text,
          note: `show ${plural(found.size, "node")} in the graph`,
        };
      } catch (error) {
        if (!(error instanceof headrace.SelectionError)) throw error;
        return { selection: true, sign: h("code", {}, "!"), name: error.message, note: "selection" };
      }
    }

    function show(found) {
      options = found;
      current = -1;
      list.replaceChildren(
        ...found.map((option, i) =>
          h(
            "li",
            {
              role: "option",
              id: `found-${i}`,
              "aria-selected": "false",
              onmousedown: (event) => {
                event.preventDefault();
                go(i);
              },
            },
            option.sign,
            typeof option.name === "string" ? h("bdi", {}, option.name) : option.name,
            h("span", { class: "under" }, option.note),
          ),
        ),
      );
      if (!found.length)
        list.replaceChildren(
          h(
            "li",
            { class: "none", role: "option", "aria-disabled": "true", "aria-selected": "false" },
            "Nothing is called that, and no text has it.",
          ),
        );
      list.hidden = false;
      input.setAttribute("aria-expanded", "true");
      input.removeAttribute("aria-activedescendant");
    }

    function mark(to) {
      current = (to + options.length) % options.length;
      [...list.children].forEach((item, i) => item.setAttribute("aria-selected", i === current));
      input.setAttribute("aria-activedescendant", `found-${current}`);
      list.children[current].scrollIntoView({ block: "nearest" });
    }

    function key(event) {
      if (event.key === "Escape") {
        if (list.hidden) input.blur();
        close();
      } else if (event.key === "ArrowDown" && options.length) mark(current + 1);
      else if (event.key === "ArrowUp" && options.length) mark(current < 0 ? options.length - 1 : current - 1);
      else if (event.key === "Enter") enter();
      else return;
      event.preventDefault();
    }

    /* Enter without a choice: the selection if the text is one that no name could be, else the best name. */
    function enter() {
      if (!options.length) return;
      const selected = options.findIndex((option) => option.selection);
      go(current >= 0 ? current : /[+:@*,\s]/.test(input.value.trim()) && selected >= 0 ? selected : 0);
    }

    function go(place) {
      const { href } = options[place];
      if (!href) return;
      close();
      input.value = "";
      input.blur();
      window.location.hash = href;
    }

    function close() {
      list.hidden = true;
      input.setAttribute("aria-expanded", "false");
      input.removeAttribute("aria-activedescendant");
    }

    document.addEventListener("keydown", (event) => {
      if (event.key !== "/" || event.target.closest("input, textarea, select")) return;
      event.preventDefault();
      input.focus();
    });
    return h("div", { class: "search", role: "search" }, input, h("kbd", { "aria-hidden": "true" }, "/"), list);
  }

  Object.assign(headrace, { searchBox });
})();
