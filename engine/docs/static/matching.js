"use strict";

/* How well a name fits what was typed: the whole of it, its beginning, a word in it, its initials, or a name with another spelling. */
(() => {
  const SCORES = { whole: 100, beginning: 80, word: 60, part: 40, initials: 30, spelling: 20 };
  const WORDS = /[^\p{L}\p{N}]+/u;

  /* The fit of a name for a text in lower case: {score, why, from, to}; null: none. Of several words each must fit. */
  function match(name, text) {
    const lower = name.toLowerCase();
    const at = lower.indexOf(text);
    if (at >= 0) return found(lower, text, at);
    const wanted = text.split(/\s+/).filter(Boolean);
    if (wanted.length > 1) {
      const each = wanted.map((word) => match(name, word));
      return each.every(Boolean) ? { score: Math.min(...each.map(({ score }) => score)) - 5, why: "has all words" } : null;
    }
    const words = lower.split(WORDS).filter(Boolean);
    if (text.length > 1 && words.map((word) => word[0]).join("").startsWith(text)) return { score: SCORES.initials, why: "initials" };
    const most = text.length < 4 ? 0 : text.length < 8 ? 1 : 2;
    const near = most && [lower, ...words].some((part) => distance(part, text, most) <= most);
    return near ? { score: SCORES.spelling, why: "similar name" } : null;
  }

  function found(lower, text, at) {
    const span = { from: at, to: at + text.length };
    if (lower === text) return { score: SCORES.whole, why: "", ...span };
    // Of two names with the same beginning the shorter is meant.
    const short = Math.max(0, 10 - lower.length / 8);
    if (at === 0) return { score: SCORES.beginning + short, why: "", ...span };
    const word = WORDS.test(lower[at - 1]);
    return { score: (word ? SCORES.word : SCORES.part) + short, why: "", ...span };
  }

  /* How many letters must be added, left out, replaced or exchanged to make one text of another; more than `most` is not counted. */
  function distance(a, b, most) {
    if (Math.abs(a.length - b.length) > most) return most + 1;
    let [before, last] = [[], Array.from({ length: b.length + 1 }, (_, j) => j)];
    for (let i = 1; i <= a.length; i += 1) {
      const row = [i];
      let least = i;
      for (let j = 1; j <= b.length; j += 1) {
        const same = a[i - 1] === b[j - 1];
        let cost = Math.min(last[j] + 1, row[j - 1] + 1, last[j - 1] + (same ? 0 : 1));
        if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]) cost = Math.min(cost, before[j - 2] + 1);
        row.push(cost);
        least = Math.min(least, cost);
      }
      if (least > most) return most + 1;
      [before, last] = [last, row];
    }
    return last[b.length];
  }

  /* A name with the part that was typed marked. */
  function marked(name, { from, to } = {}) {
    if (from === undefined || name.toLowerCase().length !== name.length) return headrace.h("bdi", {}, name);
    return headrace.h("bdi", {}, name.slice(0, from), headrace.h("mark", {}, name.slice(from, to)), name.slice(to));
  }

  Object.assign(headrace, { match, marked });
})();
