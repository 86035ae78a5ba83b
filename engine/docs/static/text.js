"use strict";

/* Texts of the project: descriptions with a little Markdown, and SQL with its words coloured. All of it stays text. */
(() => {
  const { h } = headrace;

  const INLINE =
    /`([^`\n]+)`|\*\*([^*\n]+)\*\*|\[([^\]\n]+)\]\(([^)\s]+)\)|(https?:\/\/[^\s<>()"']+[^\s<>()"'.,;:!?])/g;
  const SAFE_LINK = /^(https?:\/\/|mailto:)/i;

  function inline(text) {
    const parts = [];
    let at = 0;
    for (const match of text.matchAll(INLINE)) {
      const [all, code, strong, label, target, bare] = match;
      parts.push(text.slice(at, match.index));
      if (code) parts.push(h("code", {}, code));
      else if (strong) parts.push(h("strong", {}, strong));
      else parts.push(link(all, label || bare, target || bare));
      at = match.index + all.length;
    }
    return [...parts, text.slice(at)];
  }

  /* Links lead to web pages and mail addresses only; anything else stays as it was written. */
  function link(written, label, target) {
    if (!SAFE_LINK.test(target)) return written;
    return h("a", { href: target, rel: "noopener noreferrer nofollow", target: "_blank" }, label);
  }

  /* A description: paragraphs, lists, `code`, **strong** words and links. */
  function prose(text) {
    const blocks = text
      .trim()
      .split(/\n\s*\n/)
      .filter(Boolean);
    return h("div", { class: "prose", dir: "auto" }, blocks.map(block));
  }

  function block(text) {
    const lines = text.split("\n");
    const first = lines.findIndex((line) => /^\s*[-*] /.test(line));
    if (first < 0) return h("p", { dir: "auto" }, inline(text));
    const items = lines
      .slice(first)
      .join("\n")
      .split(/\n?^\s*[-*] /m)
      .filter(Boolean);
    const before = lines.slice(0, first).join("\n");
    return [
      before && h("p", { dir: "auto" }, inline(before)),
      h(
        "ul",
        {},
        items.map((item) => h("li", { dir: "auto" }, inline(item))),
      ),
    ];
  }

  const KEYWORDS = new Set(
    (
      "add all and any array as asc between both by case cast cross current_date current_timestamp desc distinct else end " +
      "except exists false filter first following for from full group grouping having if in inner intersect interval into is " +
      "join last lateral left like limit map natural not null nulls offset on or order outer over partition pivot preceding " +
      "qualify range right rlike rollup row rows select semi sets struct table then true unbounded union unnest unpivot using " +
      "values view when where window with within"
    ).split(" "),
  );
  const PYTHON = new Set("from import as def return if else for in not and or None True False with".split(" "));

  const SQL_TOKENS = new RegExp(
    [
      "(?<jinja>\\{\\{[\\s\\S]*?\\}\\}|\\{%[\\s\\S]*?%\\})",
      "(?<comment>--[^\\n]*|/\\*[\\s\\S]*?\\*/|\\{#[\\s\\S]*?#\\})",
      "(?<string>'(?:[^'\\\\]|\\\\.|'')*')",
      '(?<name>`[^`]*`|"[^"]*")',
      "(?<number>\\b\\d+(?:\\.\\d+)?\\b)",
      "(?<word>[\\p{L}_][\\p{L}\\p{N}_]*)",
    ].join("|"),
    "gu",
  );
  const PYTHON_TOKENS = new RegExp(
    [
      "(?<comment>#[^\\n]*)",
      '(?<string>"""[\\s\\S]*?"""|"(?:[^"\\\\\\n]|\\\\.)*"|\'(?:[^\'\\\\\\n]|\\\\.)*\')',
      "(?<number>\\b\\d+(?:\\.\\d+)?\\b)",
      "(?<word>[\\p{L}_][\\p{L}\\p{N}_]*)",
    ].join("|"),
    "gu",
  );

  function coloured(text, tokens, keywords) {
    const parts = [];
    let at = 0;
    for (const match of text.matchAll(tokens)) {
      const [kind] = Object.entries(match.groups).find(([, value]) => value !== undefined);
      const style = kind === "word" ? wordStyle(text, match, keywords) : kind;
      if (!style) continue;
      parts.push(text.slice(at, match.index), h("span", { class: `t-${style}` }, match[0]));
      at = match.index + match[0].length;
    }
    return [...parts, text.slice(at)];
  }

  function wordStyle(text, match, keywords) {
    if (keywords.has(match[0]) || keywords.has(match[0].toLowerCase())) return "keyword";
    return text[match.index + match[0].length] === "(" ? "function" : "";
  }

  const sql = (text) => h("code", { class: "sql" }, coloured(text, SQL_TOKENS, KEYWORDS));
  const python = (text) => h("code", { class: "sql" }, coloured(text, PYTHON_TOKENS, PYTHON));

  /* Several texts, one at a time, as tabs: [[title, element, plain text], ...]. */
  function tabs(name, panes) {
    const buttons = panes.map(([title], i) =>
      h(
        "button",
        {
          type: "button",
          role: "tab",
          id: `${name}-tab-${i}`,
          "aria-controls": `${name}-pane-${i}`,
          onclick: () => choose(i),
          onkeydown: (event) => key(event, i),
        },
        title,
      ),
    );
    const bodies = panes.map(([title, element, plain], i) =>
      h(
        "div",
        { class: "pane", role: "tabpanel", id: `${name}-pane-${i}`, "aria-labelledby": `${name}-tab-${i}` },
        copyButton(title, plain),
        h("pre", { tabindex: "0" }, element),
      ),
    );
    function choose(chosen) {
      buttons.forEach((button, i) => {
        button.setAttribute("aria-selected", i === chosen);
        button.tabIndex = i === chosen ? 0 : -1;
        bodies[i].classList.toggle("closed", i !== chosen);
      });
    }
    function key(event, i) {
      const to = { ArrowRight: i + 1, ArrowLeft: i - 1, Home: 0, End: panes.length - 1 }[event.key];
      if (to === undefined) return;
      const next = (to + panes.length) % panes.length;
      choose(next);
      buttons[next].focus();
      event.preventDefault();
    }
    choose(0);
    return h("div", { class: "tabs" }, h("div", { role: "tablist", "aria-label": "Texts" }, buttons), bodies);
  }

  function copyButton(title, text) {
    const button = h(
      "button",
      { type: "button", class: "copy", "aria-label": `Copy: ${title}`, onclick: copy },
      "Copy",
    );
    async function copy() {
      try {
        await navigator.clipboard.writeText(text);
        button.textContent = "Copied";
      } catch {
        button.textContent = "Not allowed";
      }
      setTimeout(() => {
        button.textContent = "Copy";
      }, 1500);
    }
    return button;
  }

  Object.assign(headrace, { prose, inline, sql, python, tabs });
})();
