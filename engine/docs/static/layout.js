"use strict";

/* The places of boxes and links: each part of the graph that hangs together is laid out by itself, long chains are wrapped
   like lines of text, and the parts are set side by side or one below the other. */
(() => {
  const BOX = { width: 208, height: 56 };
  const GAP = { x: 76, y: 22, part: 44, band: 72 };
  const PITCH = BOX.width + GAP.x;
  // A part is wrapped if it is this many times wider than the room and than it is high, and not much higher than the room.
  const LONG = { room: 1.25, strip: 4, high: 1.5 };

  /* Lay out items {id, height, hint} and links {from, to, stream} for a room of this width and height.

     Returns places: Map(id -> [left, middle, height]); links with the points that they pass; width and height. */
  function laidOut(items, links, room) {
    const parts = separate(items, links).map((part) => laidOutPart(part, room));
    const width = Math.max(room.width, ...parts.map((part) => part.width));
    const places = new Map();
    const made = [];
    let [x, y, tall, right] = [0, 0, 0, 0];
    for (const part of parts) {
      if (x && x + part.width > width) [x, y, tall] = [0, y + tall + GAP.part, 0];
      for (const [id, [left, middle, height]] of part.places) places.set(id, [left + x, middle + y, height]);
      for (const link of part.links) made.push({ ...link, points: link.points.map(([px, py, band]) => [px + x, py + y, band && [band[0] + y, band[1]]]) });
      right = Math.max(right, x + part.width);
      [x, tall] = [x + part.width + GAP.x, Math.max(tall, part.height)];
    }
    return { places, links: made, width: right, height: y + tall };
  }

  /* The parts of the graph that no link joins, the largest first; what no link touches is last, in a grid. */
  function separate(items, links) {
    const leader = new Map(items.map(({ id }) => [id, id]));
    const find = (id) => {
      while (leader.get(id) !== id) {
        leader.set(id, leader.get(leader.get(id)));
        id = leader.get(id);
      }
      return id;
    };
    for (const { from, to } of links) leader.set(find(from), find(to));
    const parts = new Map();
    for (const item of items) {
      const key = find(item.id);
      if (!parts.has(key)) parts.set(key, { items: [], links: [] });
      parts.get(key).items.push(item);
    }
    for (const link of links) parts.get(find(link.from)).links.push(link);
    return [...parts.values()].sort((a, b) => b.items.length - a.items.length);
  }

  function laidOutPart({ items, links }, room) {
    const number = new Map(items.map(({ id }, i) => [id, i]));
    const pairs = links.map(({ from, to }) => [number.get(from), number.get(to)]);
    const found = headrace.layered(
      items.map(({ height }) => height),
      pairs,
      GAP.y,
      items.map(({ hint = 0 }) => hint),
    );
    const layers = Math.max(0, ...found.layer) + 1;
    const tall = Math.max(...items.map(({ height }, i) => found.y[i] + height / 2), 0);
    const fits = Math.max(2, Math.floor((room.width + GAP.x) / PITCH));
    const straight = pairs.every(([from, to]) => found.layer[from] < found.layer[to]);
    const long = straight && layers > fits * LONG.room && layers * PITCH > LONG.strip * tall && tall < LONG.high * room.height;
    const bands = bandsOf(found, items, pairs, long ? fits : layers);
    const at = (layer, y) => [(layer % bands.fits) * PITCH, y + bands.shift[Math.floor(layer / bands.fits)]];
    const places = new Map(items.map(({ id, height }, i) => [id, [...at(found.layer[i], found.y[i]), height]]));
    const made = links.map((link, i) => {
      const [from, to] = pairs[i];
      const points = [];
      const heights = found.layer[from] < found.layer[to] ? [found.y[from], ...found.bends[i], found.y[to]] : [found.y[from], found.y[to]];
      heights.forEach((y, step) => {
        const last = step === heights.length - 1;
        const layer = last ? found.layer[to] : found.layer[from] + step;
        const band = Math.floor(layer / bands.fits);
        // To the next line a link runs below the line that it comes from: at this height, so far out.
        const wraps = step && band !== Math.floor((layer - 1) / bands.fits) && found.layer[from] < found.layer[to];
        const lane = (from % 9) / 8;
        points.push([...at(layer, y), wraps ? [bands.bottom[band - 1] + GAP.band * (0.2 + 0.6 * lane), 12 + 20 * lane] : null]);
      });
      return { ...link, points };
    });
    return {
      places,
      links: made,
      width: Math.min(layers, bands.fits) * PITCH - GAP.x,
      height: bands.bottom[bands.bottom.length - 1],
    };
  }

  /* The lines of a wrapped part: so many layers in each, by how much each is moved down, and where it ends. */
  function bandsOf(found, items, pairs, fits) {
    const extent = [];
    const add = (layer, top, bottom) => {
      const band = Math.floor(layer / fits);
      const now = extent[band] || [Infinity, -Infinity];
      extent[band] = [Math.min(now[0], top), Math.max(now[1], bottom)];
    };
    items.forEach(({ height }, i) => add(found.layer[i], found.y[i] - height / 2, found.y[i] + height / 2));
    found.bends.forEach((bends, i) => bends.forEach((y, step) => add(found.layer[pairs[i][0]] + 1 + step, y, y)));
    const [shift, bottom] = [[], []];
    let y = 0;
    for (const [top, end] of extent) {
      shift.push(y - top);
      bottom.push(y + end - top);
      y += end - top + GAP.band;
    }
    return { fits, shift, bottom };
  }

  const round = (value) => Math.round(value * 10) / 10;

  /* The path of a link: from the right of a box, straight through the columns that it crosses, to the left of a box. */
  function route({ points }) {
    const [[x0, y0], last] = [points[0], points[points.length - 1]];
    let [x, y] = [x0 + BOX.width, y0];
    if (points.length === 2 && last[0] <= x0 && !last[2]) return back(x, y, last[0], last[1]);
    const parts = [`M${x} ${round(y)}`];
    points.slice(1).forEach(([nextX, nextY, band], i) => {
      if (band) parts.push(wrapped(x, y, nextX, nextY, band));
      else {
        const middle = (x + nextX) / 2;
        parts.push(`C${middle} ${round(y)} ${middle} ${round(nextY)} ${nextX} ${round(nextY)}`);
      }
      if (i < points.length - 2) parts.push(`h${BOX.width}`);
      [x, y] = [nextX + BOX.width, nextY];
    });
    return parts.join("");
  }

  /* From the end of a line of a wrapped part to the beginning of the next. */
  function wrapped(x, y, toX, toY, [below, out]) {
    const r = 8;
    const [left, right] = [toX - out, x + out];
    return (
      `H${round(right - r)}Q${right} ${round(y)} ${right} ${round(y + r)}V${round(below - r)}Q${right} ${round(below)} ${right - r} ${round(below)}` +
      `H${left + r}Q${left} ${round(below)} ${left} ${round(below + r)}V${round(toY - r)}Q${left} ${round(toY)} ${left + r} ${round(toY)}H${toX}`
    );
  }

  /* A link that closes a cycle: out to the right, back below the boxes, in from the left. */
  function back(x, y, toX, toY) {
    const below = round(Math.max(y, toY) + BOX.height);
    return `M${x} ${round(y)}C${x + 50} ${round(y)} ${x + 50} ${below} ${x} ${below}H${toX}C${toX - 50} ${below} ${toX - 50} ${round(toY)} ${toX} ${round(toY)}`;
  }

  /* The rectangle that a link stays in. */
  function extent({ points }) {
    const xs = points.map(([x]) => x);
    const ys = points.flatMap(([, y, band]) => (band ? [y, band[0]] : [y]));
    return [Math.min(...xs) - BOX.width, Math.min(...ys) - 2, Math.max(...xs) + 2 * BOX.width, Math.max(...ys) + 2 * BOX.height];
  }

  /* The layers of the whole project, whatever is shown of it. */
  const depths = new WeakMap();
  function depthOf(index) {
    if (!depths.has(index.links)) depths.set(index.links, headrace.layersOf(index.nodes.length, index.links));
    return depths.get(index.links);
  }

  /* The columns of boxes of some nodes, from left to right, each from top to bottom. */
  function lanesOf(index, chosen) {
    const links = index.links.filter(([from, to]) => chosen.has(from) && chosen.has(to)).map(([from, to, stream]) => ({ from, to, stream }));
    const { places } = laidOut([...chosen].map((id) => ({ id, height: BOX.height })), links, { width: Infinity, height: 0 });
    return places;
  }

  Object.assign(headrace, { BOX, PITCH, laidOut, route, extent, depthOf, lanesOf });
})();
