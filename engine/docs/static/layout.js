"use strict";

/* The places of boxes and links. The whole project was laid out when the site was made; a part of it keeps that order. */
(() => {
  const BOX = { width: 224, height: 56 };
  const GAP = { x: 88, y: 24, bend: 4 };
  const ROUNDS = 6;

  const column = (layer) => layer * (BOX.width + GAP.x);

  /* Places of all nodes: {places: Map(number -> [x, middle]), links: [{from, to, stream, bends}], width, height}. */
  function whole(index) {
    const places = new Map(index.nodes.map((node, number) => [number, [column(node.x), node.y]]));
    const links = index.links.map(([from, to, stream, ...bends]) => ({ from, to, stream, bends }));
    const last = Math.max(0, ...index.nodes.map((node) => node.x));
    return { places, links, width: column(last) + BOX.width, height: index.height };
  }

  /* The same for some of the nodes, moved together. */
  function part(index, chosen) {
    const links = index.links.filter(([from, to]) => chosen.has(from) && chosen.has(to) && from !== to);
    const layer = layers(index, chosen, links);
    const vertices = [...chosen].map((number) => ({
      number,
      layer: layer.get(number),
      key: index.nodes[number].y,
      size: BOX.height,
    }));
    const at = new Map(vertices.map((vertex) => [vertex.number, vertex]));
    const made = links.map(([from, to, stream]) => chain(at.get(from), at.get(to), stream, vertices));
    const rows = [];
    for (const vertex of vertices) (rows[vertex.layer] = rows[vertex.layer] || []).push(vertex);
    rows.forEach((row) => row.sort((a, b) => a.key - b.key));
    place(rows, made);
    const top = Math.min(...vertices.map((vertex) => vertex.y - vertex.size / 2));
    vertices.forEach((vertex) => {
      vertex.y -= top;
    });
    return {
      places: new Map(vertices.filter((v) => v.number !== undefined).map((v) => [v.number, [column(v.layer), v.y]])),
      links: made.map(({ from, to, stream, path }) => ({ from, to, stream, bends: path.slice(1, -1).map((v) => v.y) })),
      width: column(Math.max(0, rows.length - 1)) + BOX.width,
      height: Math.max(0, ...vertices.map((vertex) => vertex.y + vertex.size / 2)),
    };
  }

  /* Longest paths from the left; what reads nothing here is beside its readers. */
  function layers(index, chosen, links) {
    const order = [...chosen].sort((a, b) => index.nodes[a].x - index.nodes[b].x);
    const parents = new Map(order.map((number) => [number, []]));
    const children = new Map(order.map((number) => [number, []]));
    for (const [from, to] of links) {
      if (index.nodes[from].x >= index.nodes[to].x) continue; // closes a cycle
      parents.get(to).push(from);
      children.get(from).push(to);
    }
    const layer = new Map();
    for (const number of order) layer.set(number, Math.max(-1, ...parents.get(number).map((p) => layer.get(p))) + 1);
    for (const number of order) {
      const readers = children.get(number).map((child) => layer.get(child));
      if (!parents.get(number).length && readers.length) layer.set(number, Math.max(0, Math.min(...readers) - 1));
    }
    return layer;
  }

  /* A link with a bend in each layer that it crosses; the bends are added to the vertices. */
  function chain(from, to, stream, vertices) {
    const path = [from];
    for (let layer = from.layer + 1; layer < to.layer; layer += 1) {
      const share = (layer - from.layer) / (to.layer - from.layer);
      path.push({ layer, key: from.key + share * (to.key - from.key), size: GAP.bend });
    }
    vertices.push(...path.slice(1));
    path.push(to);
    return { from: from.number, to: to.number, stream, path };
  }

  /* Heights: each vertex as near to its neighbours as the order and the gaps allow. */
  function place(rows, links) {
    const ups = new Map();
    const downs = new Map();
    const add = (map, key, value) => map.set(key, [...(map.get(key) || []), value]);
    for (const { path } of links) {
      for (let step = 1; step < path.length; step += 1) {
        add(ups, path[step], path[step - 1]);
        add(downs, path[step - 1], path[step]);
      }
    }
    for (const row of rows) {
      let below = 0;
      row.forEach((vertex, i) => {
        if (i) below += (row[i - 1].size + vertex.size) / 2 + GAP.y;
        vertex.offset = below;
      });
      row.forEach((vertex) => {
        vertex.y = vertex.offset - below / 2;
      });
    }
    for (let round = 0; round < ROUNDS; round += 1) {
      rows.forEach((row) => align(row, ups));
      [...rows].reverse().forEach((row) => align(row, downs));
    }
  }

  function align(row, neighbours) {
    const shifts = row.map((vertex) => {
      const near = neighbours.get(vertex) || [];
      return (near.length ? near.reduce((sum, n) => sum + n.y, 0) / near.length : vertex.y) - vertex.offset;
    });
    ascending(shifts).forEach((shift, i) => {
      row[i].y = shift + row[i].offset;
    });
  }

  /* The nearest sequence that never falls: neighbours that fall are pooled. */
  function ascending(values) {
    const pools = [];
    for (const value of values) {
      let pool = { total: value, count: 1 };
      while (pools.length && pools[pools.length - 1].total / pools[pools.length - 1].count > pool.total / pool.count) {
        const before = pools.pop();
        pool = { total: before.total + pool.total, count: before.count + pool.count };
      }
      pools.push(pool);
    }
    return pools.flatMap(({ total, count }) => Array(count).fill(total / count));
  }

  /* The path of a link: from the right of a box, straight through the columns it crosses, to the left of a box. */
  function route(places, { from, to, bends }) {
    const [x0, y0] = places.get(from);
    const [x1, y1] = places.get(to);
    let [x, y] = [x0 + BOX.width, y0];
    if (x1 <= x0) return back(x, y, x1, y1);
    const parts = [`M${x} ${round(y)}`];
    const stops = [...bends.map((bend, i) => [x0 + (i + 1) * (BOX.width + GAP.x), bend]), [x1, y1]];
    stops.forEach(([nextX, nextY], i) => {
      const middle = (x + nextX) / 2;
      parts.push(`C${middle} ${round(y)} ${middle} ${round(nextY)} ${nextX} ${round(nextY)}`);
      if (i < stops.length - 1) parts.push(`h${BOX.width}`);
      [x, y] = [nextX + BOX.width, nextY];
    });
    return parts.join("");
  }

  /* The rectangle that a link stays in. */
  function extent(places, { from, to, bends }) {
    const [x0, y0] = places.get(from);
    const [x1, y1] = places.get(to);
    const ys = [y0, y1, ...bends];
    return [
      Math.min(x0, x1) - BOX.width,
      Math.min(...ys) - 2,
      Math.max(x0, x1) + 2 * BOX.width,
      Math.max(...ys) + 2 * BOX.height,
    ];
  }

  const round = (value) => Math.round(value * 10) / 10;

  /* A link that closes a cycle: out to the right, back below the boxes, in from the left. */
  function back(x, y, toX, toY) {
    const below = Math.max(y, toY) + BOX.height;
    return `M${x} ${y}C${x + 60} ${y} ${x + 60} ${below} ${x} ${below}H${toX}C${toX - 60} ${below} ${toX - 60} ${toY} ${toX} ${toY}`;
  }

  Object.assign(headrace, { BOX, whole, part, route, extent });
})();
