"use strict";

/* The page of the graph: selection, filters, and what is known of the node in the light. */
(() => {
  const { h, icon, number, plural } = headrace;
  const collator = new Intl.Collator("en", { numeric: true });

  function graphPage(site, query) {
    const { index, graph } = site;
    const text = query.get("select") || "";
    const focus = site.byId.get(query.get("focus"));
    const info = h("aside", { class: "info", "aria-live": "polite" });
    const count = h("p", { class: "note", role: "status" });
    const view = new headrace.Graph(index, {
      tall: true,
      onFocus: (place, near) => describe(site, info, place, near),
      covered: () =>
        info.hidden || getComputedStyle(info).position === "static"
          ? [0, 0]
          : [info.offsetLeft + info.offsetWidth, info.offsetTop + info.offsetHeight],
    });
    const box = h("input", {
      type: "text",
      id: "select",
      value: text,
      spellcheck: "false",
      autocomplete: "off",
      placeholder: "all; or +routes, tag:mart, path:models/marts",
    });
    const kinds = [
      ["source", "Sources"],
      ["stream", "Streams"],
      ["table", "Tables"],
      ["view", "Views"],
      ["exposure", "Exposures"],
    ].filter(([kind]) => index.nodes.some((node) => node.kind === kind));
    const checks = kinds.map(([kind, title]) => [
      kind,
      h("input", { type: "checkbox", checked: true, onchange: apply, id: `kind-${kind}` }),
      title,
    ]);
    const tags = [...new Set(index.nodes.flatMap((node) => node.tags || []))].sort();
    const folders = [...new Set(index.nodes.filter((node) => headrace.kindOf(node) === "model").map((node) => node.folder || ""))]
      .filter(Boolean)
      .sort(collator.compare);
    const choice = (id, title, values) =>
      h(
        "select",
        { id, onchange: apply, "aria-label": title },
        h("option", { value: "" }, title),
        values.map((value) => h("option", { value }, value)),
      );
    const [tag, folder] = [choice("tag", "Any tag", tags), choice("folder", "Any folder", folders)];

    function wanted() {
      const chosen = box.value.trim() ? headrace.select(graph, box.value) : new Set(index.nodes.keys());
      const off = new Set(checks.filter(([, check]) => !check.checked).map(([kind]) => kind));
      return new Set(
        [...chosen].filter((place) => {
          const node = index.nodes[place];
          return (
            !off.has(node.kind) &&
            (!tag.value || (node.tags || []).includes(tag.value)) &&
            (!folder.value ||
              (node.folder || "") === folder.value ||
              (node.folder || "").startsWith(`${folder.value}/`))
          );
        }),
      );
    }

    function apply() {
      let chosen;
      try {
        chosen = wanted();
        box.setCustomValidity("");
      } catch (error) {
        if (!(error instanceof headrace.SelectionError)) throw error;
        count.textContent = error.message;
        box.setCustomValidity(error.message);
        return;
      }
      const all = chosen.size === index.nodes.length;
      describe(site, info, null);
      view.show(all ? null : chosen);
      count.textContent = all
        ? `All ${plural(chosen.size, "node")}`
        : `${number(chosen.size)} of ${plural(index.nodes.length, "node")}`;
    }

    function submit(event) {
      event.preventDefault();
      history.replaceState(
        null,
        "",
        box.value.trim() ? `#/graph?select=${encodeURIComponent(box.value.trim())}` : "#/graph",
      );
      apply();
    }

    const form = h(
      "form",
      { class: "filters", onsubmit: submit },
      h("label", { for: "select" }, "Selection"),
      box,
      h("button", { type: "submit" }, "Select"),
      h(
        "span",
        { class: "kinds" },
        checks.map(([kind, check, title]) => h("label", {}, check, icon(kind), title)),
      ),
      tags.length ? tag : null,
      folders.length ? folder : null,
      count,
    );
    apply();
    if (focus !== undefined && view.layout.places.has(focus)) view.light(focus);
    headrace.shown = view;
    return {
      title: "Graph",
      page: h(
        "div",
        { class: "page graph-page" },
        h("h1", { class: "hidden" }, "Graph"),
        form,
        h("div", { class: "frame tall" }, view.element, headrace.controls(view), info),
        headrace.legend(index),
      ),
    };
  }

  /* What is known of the node in the light. */
  function describe(site, info, place, near) {
    info.hidden = place === null;
    if (place === null) return;
    const node = site.index.nodes[place];
    const { up, down } = site.graph;
    const [above, below] = [up, down].map((edges) => headrace.walk(new Set([place]), edges, 1e6).size);
    const own = headrace.termOf(node);
    info.replaceChildren(
      h("h2", {}, icon(node.kind), h("bdi", {}, node.name)),
      h("p", { class: "under" }, [node.what, node.guarantee].filter(Boolean).join(" · "), " ", headrace.stateBadge(node)),
      node.summary ? h("p", {}, h("bdi", {}, node.summary)) : null,
      node.about ? h("p", { dir: "auto" }, node.about) : null,
      h("p", { class: "under" }, `${number(above)} above, ${number(below)} below`),
      h(
        "p",
        { class: "ways" },
        h("a", { href: headrace.hrefOf(node) }, "Open page"),
        near && near.size < site.index.nodes.length
          ? h(
              "a",
              { href: `#/graph?select=${encodeURIComponent(`+${own}+`)}&focus=${encodeURIComponent(node.id)}` },
              "Show only these",
            )
          : null,
      ),
    );
  }

  Object.assign(headrace, { graphPage });
})();
