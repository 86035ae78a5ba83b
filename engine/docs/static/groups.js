"use strict";

/* Groups of nodes by folder, tag or source: one box stands for a group until it is opened. */
(() => {
  const MANY = 60;
  const { kindOf } = headrace;

  const WAYS = {
    folder: (index) => (node) =>
      kindOf(node) === "model" ? prefixes(node.folder) : node.kind === "source" ? [`source ${node.folder}`] : [`${node.kind}s`],
    tag: () => (node) => (kindOf(node) === "source" ? [`source ${node.folder}`] : node.tags && node.tags.length ? [`#${node.tags[0]}`] : []),
    source: (index) => {
      const read = sourcesOf(index);
      return (node, number) => {
        const found = [...read[number]];
        return found.length > 1 ? ["several sources"] : found.map((name) => `source ${name}`);
      };
    },
  };

  /* marts/finance: in marts, and in that in marts/finance. */
  function prefixes(folder) {
    if (!folder) return [];
    const parts = folder.split("/");
    return parts.map((_, i) => parts.slice(0, i + 1).join("/"));
  }

  /* For each node the sources, by their group, that it reads at any distance. */
  function sourcesOf(index) {
    const depth = headrace.depthOf(index);
    const read = index.nodes.map((node) => new Set(node.kind === "source" ? [node.folder] : []));
    const links = index.links.filter(([from, to]) => depth[from] < depth[to]).sort((a, b) => depth[a[0]] - depth[b[0]]);
    for (const [from, to] of links) for (const name of read[from]) read[to].add(name);
    return read;
  }

  class Groups {
    /* by: folder, tag, source, or nothing for none. */
    constructor(index, by) {
      Object.assign(this, { index, by, open: new Set(), loose: new Set() });
      const way = WAYS[by] ? WAYS[by](index) : () => [];
      this.paths = index.nodes.map((node, number) => way(node, number));
      this.members = new Map();
      this.paths.forEach((path, number) => {
        for (const key of path) this.members.set(key, [...(this.members.get(key) || []), number]);
      });
      // A group of one, or one that holds all of its only subgroup, would hide a name and show no less.
      this.paths = this.paths.map((path) => path.filter((key, i) => this.members.get(key).length > 1 && !(path[i + 1] && this.members.get(path[i + 1]).length === this.members.get(key).length)));
    }

    /* What stands for a node: its number, or the key of the group that is shut. */
    of(number) {
      if (this.loose.has(number)) return number;
      const shut = this.paths[number].find((key) => !this.open.has(key));
      return shut === undefined ? number : shut;
    }

    /* The innermost open group of a node. */
    openOf(number) {
      return [...this.paths[number]].reverse().find((key) => this.open.has(key));
    }

    shut(key) {
      this.open.delete(key);
      for (const number of this.members.get(key)) this.loose.delete(number);
    }

    /* The boxes and links that stand for these nodes: items by id, and links between them. */
    drawn(chosen) {
      const { index } = this;
      const depth = headrace.depthOf(index);
      const items = new Map();
      for (const number of chosen || index.nodes.keys()) {
        const id = this.of(number);
        if (!items.has(id)) items.set(id, { id, numbers: [], hint: 0 });
        items.get(id).numbers.push(number);
      }
      for (const item of items.values()) item.hint = item.numbers.reduce((sum, n) => sum + depth[n], 0) / item.numbers.length;
      const links = new Map();
      for (const [a, b, stream] of index.links) {
        const [from, to] = [this.of(a), this.of(b)];
        if (!items.has(from) || !items.has(to) || (from === to && a !== b)) continue;
        if (chosen && !(chosen.has(a) && chosen.has(b))) continue;
        const key = `${from} ${to}`;
        const link = links.get(key) || { from, to, stream: 0, many: 0 };
        links.set(key, Object.assign(link, { stream: link.stream || stream, many: link.many + 1 }));
      }
      return { items, links: [...links.values()] };
    }
  }

  /* Whether groups show the order of the project: few links lead back. */
  function ordered(groups) {
    const { items, links } = groups.drawn(null);
    const keys = [...items.keys()];
    if (keys.length < 2 || keys.length > groups.index.nodes.length / 2) return false;
    const back = links.filter(({ from, to }) => items.get(from).hint > items.get(to).hint).length;
    return back <= links.length / 6;
  }

  /* The groups to begin with: none in a small project, folders in a large one if they show its order. */
  function beginning(index) {
    const by = index.nodes.length > MANY && ordered(new Groups(index, "folder")) ? "folder" : "";
    return new Groups(index, by);
  }

  const TONES = ["bad", "warn"];

  /* The state of a group: how many of its nodes have which, and the worst of them. */
  function standingOf(index, numbers) {
    const counted = new Map();
    for (const number of numbers) {
      const { word, tone } = headrace.standing(index.nodes[number]);
      if (!TONES.includes(tone)) continue;
      const short = word.replace(/^\d[\d,]* /, "");
      counted.set(short, { tone, count: (counted.get(short) || { count: 0 }).count + 1 });
    }
    const states = [...counted].sort((a, b) => TONES.indexOf(a[1].tone) - TONES.indexOf(b[1].tone));
    return {
      tone: states.length ? states[0][1].tone : "",
      word: states.map(([word, { count }]) => `${headrace.number(count)} ${word}`).join(", "),
    };
  }

  Object.assign(headrace, { Groups, groupsAtFirst: beginning, standingOf });
})();
