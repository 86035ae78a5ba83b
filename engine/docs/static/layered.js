"use strict";

/* A layered layout (Sugiyama, Tagawa, Toda): what is read is left of what reads it, and links cross little. Layers are
   longest paths; the order comes from barycentre sweeps with transposition. The same graph always gets the same layout. */
(() => {
  const BEND = 4;
  const ROUNDS = 6;
  // A bend pulls stronger than a box: long links run straight.
  const PULL = 4;

  /* Lay out vertices of these heights; links are [from, to].

     Returns for each vertex its layer and the middle of its height (the topmost edge is at 0), and for each link the heights at
     which it crosses the layers between its ends. Links from one vertex share their bends. A link that closes a cycle has none. */
  function layered(sizes, links, gap, hints = []) {
    const layer = layersOf(sizes.length, links, hints);
    const rows = [];
    const graph = { layer: [...layer], sizes: [...sizes], ups: sizes.map(() => []), downs: sizes.map(() => []) };
    const paths = chained(graph, layer, links);
    graph.layer.forEach((at, vertex) => (rows[at] = rows[at] || []).push(vertex));
    order(rows, graph);
    const y = heights(rows, graph, gap);
    return { layer, y, bends: paths.map((path) => path.slice(1, -1).map((vertex) => y[vertex])), crossings: crossings(rows, graph) };
  }

  /* For each vertex the length of its longest path from the left; what reads nothing is beside its first reader. */
  function layersOf(count, links, hints = []) {
    const all = Array.from({ length: count }, () => []);
    for (const [from, to] of links) if (from !== to) all[from].push(to);
    const { downs, sorted } = acyclic(all, hints);
    const layer = new Array(count).fill(0);
    const reads = new Array(count).fill(false);
    for (const vertex of sorted)
      for (const reader of downs[vertex]) {
        layer[reader] = Math.max(layer[reader], layer[vertex] + 1);
        reads[reader] = true;
      }
    for (let vertex = 0; vertex < count; vertex += 1)
      if (!reads[vertex] && downs[vertex].length)
        layer[vertex] = Math.min(...downs[vertex].map((reader) => layer[reader])) - 1;
    return layer;
  }

  /* The graph without the links that close a cycle on a walk in depth, and its vertices, each before its readers. */
  function acyclic(all, hints) {
    const [open, done] = [1, 2];
    const state = new Uint8Array(all.length);
    const downs = all.map(() => []);
    const sorted = [];
    const roots = [...all.keys()];
    if (hints.length) roots.sort((a, b) => hints[a] - hints[b] || a - b);
    for (const root of roots) {
      if (state[root]) continue;
      state[root] = open;
      const stack = [[root, 0]];
      while (stack.length) {
        const top = stack[stack.length - 1];
        const [vertex, next] = top;
        if (next === all[vertex].length) {
          state[vertex] = done;
          sorted.push(vertex);
          stack.pop();
          continue;
        }
        top[1] += 1;
        const reader = all[vertex][next];
        if (state[reader] === open) continue;
        downs[vertex].push(reader);
        if (state[reader]) continue;
        state[reader] = open;
        stack.push([reader, 0]);
      }
    }
    return { downs, sorted: sorted.reverse() };
  }

  /* Each link as the vertices on its way. Bends are added to the graph: one for each layer that a vertex's links cross. */
  function chained(graph, layer, links) {
    const trunks = new Map();
    const joined = new Set();
    const join = (before, after) => {
      const key = before * 2 ** 26 + after;
      if (joined.has(key)) return;
      joined.add(key);
      graph.downs[before].push(after);
      graph.ups[after].push(before);
    };
    return links.map(([from, to]) => {
      if (layer[from] >= layer[to]) return [from, to];
      if (!trunks.has(from)) trunks.set(from, []);
      const trunk = trunks.get(from);
      const path = [from];
      for (let at = layer[from] + 1; at < layer[to]; at += 1) {
        const place = at - layer[from] - 1;
        if (place === trunk.length) {
          trunk.push(graph.layer.length);
          graph.layer.push(at);
          graph.sizes.push(BEND);
          graph.ups.push([]);
          graph.downs.push([]);
        }
        path.push(trunk[place]);
      }
      path.push(to);
      for (let step = 1; step < path.length; step += 1) join(path[step - 1], path[step]);
      return path;
    });
  }

  /* Order the vertices of each row so that few links cross: the best of two beginnings. */
  function order(rows, graph) {
    const starts = [walked(rows, graph.downs, rows), walked(rows, graph.ups, [...rows].reverse())];
    let best = null;
    for (const start of starts) {
      const found = swept(start, graph);
      if (!best || found.crossed < best.crossed) best = found;
      if (!best.crossed) break;
    }
    best.rows.forEach((row, at) => {
      rows[at] = row;
    });
  }

  /* Rows in the order in which a walk in depth meets their vertices. */
  function walked(rows, edges, from) {
    const met = rows.map(() => []);
    const seen = new Uint8Array(edges.length);
    const at = new Int32Array(edges.length);
    rows.forEach((row, layer) => row.forEach((vertex) => (at[vertex] = layer)));
    for (const root of from.flat()) {
      const stack = [root];
      while (stack.length) {
        const vertex = stack.pop();
        if (seen[vertex]) continue;
        seen[vertex] = 1;
        met[at[vertex]].push(vertex);
        for (let i = edges[vertex].length - 1; i >= 0; i -= 1) stack.push(edges[vertex][i]);
      }
    }
    return met;
  }

  /* Sweep left and right, and exchange neighbours, until that helps no more. */
  function swept(start, graph) {
    const place = new Float64Array(graph.layer.length);
    const wish = new Float64Array(graph.layer.length);
    const set = (row) => row.forEach((vertex, i) => (place[vertex] = i));
    const rows = start.map((row) => [...row]);
    rows.forEach(set);
    const most = graph.layer.length < 3000 ? 30 : graph.layer.length < 20000 ? 14 : 6;
    let [crossed, kept, idle] = [crossings(rows, graph), rows.map((row) => [...row]), 0];
    for (let sweep = 0; sweep < most && crossed && idle < 5; sweep += 1) {
      const right = sweep % 2 === 0;
      const both = sweep % 6 >= 4;
      const edges = right ? graph.ups : graph.downs;
      const other = right ? graph.downs : graph.ups;
      for (let i = 1; i < rows.length; i += 1) {
        const row = rows[right ? i : rows.length - 1 - i];
        for (const vertex of row) wish[vertex] = centre(vertex, edges, both ? other : null, place);
        row.sort((a, b) => wish[a] - wish[b] || place[a] - place[b]);
        set(row);
      }
      transpose(rows, graph, place);
      const now = crossings(rows, graph);
      idle += 1;
      if (now < crossed) [crossed, kept, idle] = [now, rows.map((row) => [...row]), 0];
    }
    return { rows: kept, crossed };
  }

  /* The mean place of what a vertex is linked to; without a link, its own. */
  function centre(vertex, edges, more, place) {
    let [sum, count] = [0, 0];
    for (const other of edges[vertex]) [sum, count] = [sum + place[other], count + 1];
    if (more) for (const other of more[vertex]) [sum, count] = [sum + place[other], count + 1];
    return count ? sum / count : place[vertex];
  }

  const EXCHANGES = 8;

  /* Exchange neighbours of a row as long as fewer links cross. A row is looked at again if it or one beside it has changed. */
  function transpose(rows, graph, place) {
    const changed = new Uint8Array(rows.length + 2).fill(1);
    for (let round = 0; round < EXCHANGES; round += 1) {
      let better = false;
      rows.forEach((row, at) => {
        if (!changed[at + 1]) return;
        changed[at + 1] = 0;
        if (!exchanged(row, graph, place)) return;
        changed.fill(1, at, at + 3);
        better = true;
      });
      if (!better) return;
    }
  }

  /* Try each pair of neighbours of a row once; whether that has changed anything. */
  function exchanged(row, { ups, downs }, place) {
    for (const vertex of row) {
      sort(ups[vertex], place);
      sort(downs[vertex], place);
    }
    let better = false;
    for (let i = 1; i < row.length; i += 1) {
      const [a, b] = [row[i - 1], row[i]];
      if (gain(ups[a], ups[b], place) + gain(downs[a], downs[b], place) <= 0) continue;
      row[i - 1] = b;
      row[i] = a;
      place[b] = i - 1;
      place[a] = i;
      better = true;
    }
    return better;
  }

  // More links than these are sorted by the browser.
  const MANY = 40;

  /* Sort vertices by their places. They are nearly sorted: little has changed since the last time. */
  function sort(vertices, place) {
    if (vertices.length > MANY) vertices.sort((a, b) => place[a] - place[b]);
    else for (let i = 1; i < vertices.length; i += 1) {
      const vertex = vertices[i];
      let at = i;
      for (; at && place[vertices[at - 1]] > place[vertex]; at -= 1) vertices[at] = vertices[at - 1];
      vertices[at] = vertex;
    }
  }

  /* How many links fewer cross if the vertex with the links to `second` comes before the one with those to `first`. */
  function gain(first, second, place) {
    if (!first.length || !second.length) return 0;
    // Most neighbours do not overlap at all.
    if (place[first[first.length - 1]] < place[second[0]]) return -first.length * second.length;
    let [count, less, most] = [0, 0, 0];
    for (let i = 0; i < first.length; i += 1) {
      const at = place[first[i]];
      while (less < second.length && place[second[less]] < at) less += 1;
      while (most < second.length && place[second[most]] <= at) most += 1;
      count += less + most - second.length;
    }
    return count;
  }

  /* How many pairs of links cross. */
  function crossings(rows, { downs }) {
    const place = new Int32Array(downs.length);
    let count = 0;
    for (let at = 1; at < rows.length; at += 1) {
      const row = rows[at];
      row.forEach((vertex, i) => (place[vertex] = i));
      const tree = new Int32Array(row.length + 1);
      let before = 0;
      for (const vertex of rows[at - 1]) {
        const readers = downs[vertex];
        for (const reader of readers) {
          let above = 0;
          for (let i = place[reader] + 1; i > 0; i -= i & -i) above += tree[i];
          count += before - above;
        }
        for (const reader of readers) for (let i = place[reader] + 1; i <= row.length; i += i & -i) tree[i] += 1;
        before += readers.length;
      }
    }
    return count;
  }

  /* The middle of every vertex: each as near to its neighbours as the order and the gaps allow. */
  function heights(rows, { ups, downs, sizes }, gap) {
    const y = new Array(sizes.length).fill(0);
    const boxes = { ups, downs, sizes, y, weight: sizes.map((size) => (size === BEND ? PULL : 1)) };
    const offsets = rows.map((row) => {
      let below = 0;
      return row.map((vertex, i) => {
        if (i) below += (sizes[row[i - 1]] + sizes[vertex]) / 2 + gap;
        return below;
      });
    });
    rows.forEach((row, at) => row.forEach((vertex, i) => (y[vertex] = offsets[at][i] - offsets[at][row.length - 1] / 2)));
    for (let round = 0; round < ROUNDS; round += 1) {
      rows.forEach((row, at) => align(row, offsets[at], [ups], boxes));
      const last = round === ROUNDS - 1 ? [ups, downs] : [downs];
      for (let at = rows.length - 1; at >= 0; at -= 1) align(rows[at], offsets[at], last, boxes);
    }
    const top = y.reduce((least, middle, vertex) => Math.min(least, middle - sizes[vertex] / 2), Infinity);
    return y.map((middle) => middle - top);
  }

  function align(row, offsets, sides, { y, weight }) {
    const shifts = row.map((vertex, i) => {
      let [sum, total] = [0, 0];
      for (const side of sides)
        for (const other of side[vertex]) {
          const pull = weight[vertex] * weight[other];
          [sum, total] = [sum + pull * y[other], total + pull];
        }
      return (total ? sum / total : y[vertex]) - offsets[i];
    });
    ascending(shifts, row.map((vertex) => weight[vertex])).forEach((shift, i) => {
      y[row[i]] = shift + offsets[i];
    });
  }

  /* The nearest sequence (least squares) that never falls: neighbours that fall are pooled. */
  function ascending(values, weights = values.map(() => 1)) {
    const pools = [];
    values.forEach((value, i) => {
      let pool = { total: value * weights[i], weight: weights[i], count: 1 };
      while (pools.length && pools[pools.length - 1].total / pools[pools.length - 1].weight > pool.total / pool.weight) {
        const before = pools.pop();
        pool = { total: before.total + pool.total, weight: before.weight + pool.weight, count: before.count + pool.count };
      }
      pools.push(pool);
    });
    return pools.flatMap(({ total, weight, count }) => Array(count).fill(total / weight));
  }

  Object.assign(headrace, { layered, layersOf, ascending });
})();
