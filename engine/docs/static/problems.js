"use strict";

/* Errors and warnings; those that differ in nothing but names share a box with a list of their places. */
(() => {
  const { h, number, badge, more, plural } = headrace;
  const SHOWN = 12;
  const PLACES = 200;
  const NAMES = /'[^']*'|"[^"]*"|`[^`]*`|\d+/g;

  /* Problems of all nodes, or those of one. */
  function problems(index, places) {
    const all = [...(places || index.problems.keys())].map((place) => index.problems[place]);
    const kinds = new Map();
    for (const problem of all) {
      const key = [problem.level, problem.code, problem.message.replace(NAMES, "…")].join("\n");
      kinds.set(key, [...(kinds.get(key) || []), problem]);
    }
    const boxes = [...kinds.values()].map((alike) => () => (alike.length > 1 ? several(index, alike) : single(index, alike[0], Boolean(places))));
    const list = h("ul", { class: "problems" }, boxes.slice(0, SHOWN).map((box) => box()));
    if (boxes.length <= SHOWN) return list;
    return [list, more(`Show all ${number(boxes.length)}`, (before) => before.append(...boxes.slice(SHOWN).map((box) => box())))];
  }

  function box({ level, hint }, title, ...content) {
    return h(
      "li",
      { class: level },
      badge(level, level === "error" ? "bad" : "warn"),
      h("p", { dir: "auto" }, title),
      hint ? h("p", { class: "hint", dir: "auto" }, hint) : null,
      content,
    );
  }

  const single = (index, problem, own) => box(problem, problem.message, h("p", { class: "where" }, where(index, problem, own), h("code", {}, problem.code)));

  const where = (index, { node, place }, own) => [
    node !== null && !own ? h("a", { href: headrace.hrefOf(index.nodes[node]) }, h("bdi", {}, index.nodes[node].name)) : null,
    place ? h("code", {}, place) : null,
  ];

  function several(index, alike) {
    const [first] = alike;
    const same = alike.every(({ message, hint }) => message === first.message && hint === first.hint);
    const item = (problem) => h("li", {}, where(index, problem, false), same ? null : h("span", { class: "under", dir: "auto" }, (problem.message.match(NAMES) || []).join(", ")));
    const list = h("ul", {});
    const fill = () => {
      if (!list.children.length) list.append(...alike.slice(0, PLACES).map(item));
    };
    return box(
      first,
      same ? first.message : `For example: ${first.message}`,
      h("p", { class: "where" }, h("code", {}, first.code), h("b", {}, plural(alike.length, "time"))),
      h(
        "details",
        { ontoggle: fill },
        h("summary", {}, "Where"),
        list,
        alike.length > PLACES ? h("p", { class: "note" }, `and ${number(alike.length - PLACES)} more`) : null,
      ),
    );
  }

  Object.assign(headrace, { problems });
})();
