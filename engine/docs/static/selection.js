"use strict";

/* The selection syntax of the command line, over sources and models: names, methods, graph operators, unions, intersections. */
(() => {
  const TERM = /^(@)?(?:(\d*)(\+))?([^+@][^+]*?)(?:(\+)(\d*))?$/;
  const ALL = 1000000;

  class SelectionError extends Error {}

  function glob(pattern) {
    const source = pattern
      .replace(/[.+^${}()|\\]/g, "\\$&")
      .replace(/\*/g, ".*")
      .replace(/\?/g, ".");
    try {
      return new RegExp(`^${source.replace(/\[!/g, "[^")}$`, "s");
    } catch {
      return new RegExp(`^${pattern.replace(/[.*+?^${}()|[\]\\]/g, "\\$&")}$`);
    }
  }

  const matches = (text, pattern) => text !== undefined && glob(pattern).test(text);
  const { kindOf } = headrace;
  const isSource = (node) => node.kind === "source";
  const isModel = (node) => kindOf(node) === "model";

  function byName(node, text) {
    if (!isModel(node)) return false;
    if (matches(node.name, text)) return true;
    const parts = node.file
      .replace(/\.[^./]*$/, "")
      .split("/")
      .slice(1);
    const wanted = text.split(".");
    return wanted.length <= parts.length && wanted.every((want, place) => matches(parts[place], want));
  }

  const methods = {
    path(node, value) {
      const wanted = value.replace(/^\.\//, "").replace(/\/+$/, "");
      return matches(node.file, wanted) || node.file.startsWith(`${wanted}/`);
    },
    file: (node, value) => node.file.split("/").pop() === value,
    tag: (node, value) => (node.tags || []).some((tag) => matches(tag, value)),
    source: (node, value) => isSource(node) && (matches(node.name, value) || matches(node.folder, value)),
    exposure: (node, value) => node.kind === "exposure" && matches(node.name, value),
    resource_type: (node, value) => kindOf(node) === value,
    name: (node, value) => isModel(node) && matches(node.name, value),
  };

  function matcher(text) {
    const colon = text.indexOf(":");
    if (colon < 0) {
      if (text.includes("/")) return (node) => methods.path(node, text);
      return (node) => (/\.(sql|ya?ml)$/.test(text) ? methods.file(node, text) : byName(node, text));
    }
    const [method, value] = [text.slice(0, colon), text.slice(colon + 1)];
    if (method.startsWith("config.")) {
      return (node) => isModel(node) && node[method.slice("config.".length)] === value;
    }
    if (Object.hasOwn(methods, method)) return (node) => methods[method](node, value);
    throw new SelectionError(`unknown selection method '${method}:' here`);
  }

  function walk(start, edges, depth) {
    const seen = new Set();
    let level = start;
    for (; level.size && depth > 0; depth -= 1) {
      const next = new Set();
      for (const node of level) for (const other of edges[node]) if (!seen.has(other)) next.add(other);
      next.forEach((node) => seen.add(node));
      level = next;
    }
    return seen;
  }

  const union = (...sets) => new Set(sets.flatMap((set) => [...set]));
  const depthOf = (digits) => (digits ? Number(digits) : ALL);

  function term(graph, text) {
    const match = TERM.exec(text);
    if (!match) throw new SelectionError(`'${text}' is not a selection`);
    const [, at, up, plusUp, core, plusDown, down] = match;
    const test = matcher(core);
    const found = new Set([...graph.nodes.keys()].filter((number) => test(graph.nodes[number])));
    if (at) {
      const below = union(found, walk(found, graph.down, ALL));
      return union(below, walk(below, graph.up, ALL));
    }
    return union(
      found,
      plusUp ? walk(found, graph.up, depthOf(up)) : [],
      plusDown ? walk(found, graph.down, depthOf(down)) : [],
    );
  }

  /* The numbers of the chosen nodes: a blank between terms is a union, a comma an intersection. */
  function select(graph, text) {
    let found = new Set();
    for (const part of text.split(/\s+/).filter(Boolean)) {
      const sets = part
        .split(",")
        .filter(Boolean)
        .map((piece) => term(graph, piece));
      if (sets.length)
        found = union(
          found,
          sets.reduce((a, b) => new Set([...a].filter((n) => b.has(n)))),
        );
    }
    return found;
  }

  /* What select() works on: the nodes, and for each what it reads and what reads it. */
  function graphOf(index) {
    const up = index.nodes.map(() => []);
    const down = index.nodes.map(() => []);
    for (const [parent, child] of index.links) {
      up[child].push(parent);
      down[parent].push(child);
    }
    return { nodes: index.nodes, up, down };
  }

  Object.assign(headrace, { select, graphOf, walk, SelectionError });
})();
