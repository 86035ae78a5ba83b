"use strict";

/* The page of the graph: selection, filters, groups, and beside it what is known of the box in the light. */
(() => {
  const { h, icon, number, plural } = headrace;
  // So many nodes of a selection are shown without groups.
  const PART = 60;
  const collator = new Intl.Collator("en", { numeric: true });

  function graphPage(site, query) {
    const { index, graph } = site;
    const text = query.get("select") || "";
    const focus = site.byId.get(query.get("focus"));
    const info = h("aside", { class: "info", "aria-live": "polite", hidden: true });
    const count = h("p", { class: "note", role: "status" });
    const view = new headrace.Graph(index, {
      tall: true,
      onFocus: () => headrace.graphCard(site, view, info),
      onGroups: () => unfolded(),
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
    const by = h(
      "select",
      { id: "group-by", "aria-label": "Group by", onchange: () => view.group(new headrace.Groups(index, by.value)) || unfolded() },
      [
        ["", "No groups"],
        ["folder", "Group by folder"],
        ["tag", "Group by tag"],
        ["source", "Group by source"],
      ].map(([value, title]) => h("option", { value, selected: value === view.groups.by }, title)),
    );
    const open = h("p", { class: "open-groups" });

    /* The groups that are open, each with a button that shuts it. */
    function unfolded() {
      const keys = [...view.groups.open];
      open.hidden = !keys.length;
      open.replaceChildren(
        ...keys.map((key) => h("button", { type: "button", "aria-label": `Collapse ${key}`, onclick: () => view.fold(key) }, h("bdi", {}, key), " ×")),
      );
      if (!box.validationMessage) said();
    }

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
      // A part that is asked for is shown as it is, unless it is large.
      view.groups = all || chosen.size > PART ? new headrace.Groups(index, by.value) : new headrace.Groups(index);
      view.show(all ? null : chosen);
      headrace.graphCard(site, view, info);
      unfolded();
    }

    function said() {
      const { chosen } = view;
      const shut = [...view.items.keys()].filter((id) => typeof id === "string").length;
      const all = chosen === null ? `All ${plural(index.nodes.length, "node")}` : `${number(chosen.size)} of ${plural(index.nodes.length, "node")}`;
      count.textContent = shut ? `${all}, ${plural(shut, "group")} collapsed` : all;
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
      by,
      count,
      open,
    );
    apply();
    if (focus !== undefined && (!view.chosen || view.chosen.has(focus))) {
      if (query.get("column")) view.lightColumn([focus, query.get("column")]);
      else view.light(focus);
    }
    headrace.shown = view;
    return {
      title: "Graph",
      page: h(
        "div",
        { class: "page graph-page" },
        h("h1", { class: "hidden" }, "Graph"),
        form,
        h("div", { class: "frame tall beside" }, h("div", { class: "drawing" }, view.element, headrace.controls(view)), info),
        headrace.legend(index),
      ),
    };
  }

  Object.assign(headrace, { graphPage });
})();
