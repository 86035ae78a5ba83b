"use strict";

/* The one global of the site. Data files call put(); pages ask for data with need() and build elements with h() and s(). */
const headrace = (() => {
  const held = new Map();
  const waiting = new Map();

  // Of a site whose project changes while it is open: the version to which the numbers of nodes belong.
  let project = "";

  // The only address a script may be loaded from; browsers without trusted types get the same check.
  function dataFile(name) {
    if (!/^[a-z]+[0-9]*$/.test(name)) throw new TypeError(`no data file: ${name}`);
    return `data/${name}.js${project && name !== "index" ? `?project=${project}` : ""}`;
  }
  const policy = window.trustedTypes
    ? window.trustedTypes.createPolicy("headrace", { createScriptURL: dataFile })
    : { createScriptURL: dataFile };

  function put(name, record) {
    if (outdated()) return;
    held.set(name, record);
    if (waiting.has(name)) waiting.get(name).resolve(record);
    waiting.delete(name);
  }

  /* Whether the data file that runs now was asked for before the project changed. */
  const outdated = () => document.currentScript?.dataset.project && document.currentScript.dataset.project !== project;

  /* The record of a data file, loaded on first use. */
  function need(name) {
    if (held.has(name)) return Promise.resolve(held.get(name));
    if (!waiting.has(name)) waiting.set(name, load(name));
    return waiting.get(name).promise;
  }

  /* The record of a data file as it is now. */
  function again(name) {
    held.delete(name);
    return need(name);
  }

  /* Have all data loaded again when they are needed, as those of a version of the project. */
  function renew(version) {
    if (!/^[0-9]*$/.test(version)) throw new TypeError(`no version: ${version}`);
    if (version !== project) {
      held.clear();
      for (const name of waiting.keys()) giveUp(name);
    } else for (const name of [...held.keys()].filter((key) => key.startsWith("nodes"))) held.delete(name);
    project = version;
  }

  /* A data file of another version of the project was asked for. */
  function stale(name) {
    if (!outdated()) giveUp(name);
  }

  function giveUp(name) {
    const changed = new Error("The project has changed; this page loads again.");
    if (waiting.has(name)) waiting.get(name).reject(Object.assign(changed, { stale: true }));
    waiting.delete(name);
  }

  const BUNDLE = 25;

  /* The record of the page of a node, by the node's number. */
  const needNode = (number) => need(`nodes${Math.floor(number / BUNDLE)}`).then((bundle) => bundle[number % BUNDLE]);

  function load(name) {
    const entry = {};
    entry.promise = new Promise((resolve, reject) => Object.assign(entry, { resolve, reject }));
    const script = document.createElement("script");
    script.dataset.project = project;
    script.src = policy.createScriptURL(name);
    script.onload = () => script.remove();
    script.onerror = () => {
      script.remove();
      if (waiting.get(name) === entry) waiting.delete(name);
      entry.reject(new Error(`data/${name}.js cannot be read`));
    };
    document.head.append(script);
    return entry;
  }

  const attributes = new Set(["value", "checked", "disabled", "hidden", "open", "selected"]);

  function fill(element, properties, children) {
    for (const [key, value] of Object.entries(properties || {})) {
      if (value === undefined || value === null || value === false) continue;
      if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
      else if (attributes.has(key)) element[key] = value;
      else element.setAttribute(key, value === true ? "" : value);
    }
    element.append(...children.flat(Infinity).filter((c) => c !== null && c !== undefined && c !== false && c !== ""));
    return element;
  }

  /* An HTML element; text children stay text. */
  const h = (tag, properties, ...children) => fill(document.createElement(tag), properties, children);

  /* An SVG element. */
  const s = (tag, properties, ...children) =>
    fill(document.createElementNS("http://www.w3.org/2000/svg", tag), properties, children);

  /* A dotted name, which may break behind each dot, or behind other signs. */
  const dotted = (name, signs = /(?<=\.)/) =>
    h(
      "bdi",
      {},
      name.split(signs).map((part, i) => [i ? document.createElement("wbr") : null, part]),
    );

  const count = new Intl.NumberFormat("en");
  const number = (value) => (value === undefined || value === null ? "–" : count.format(value));
  const plural = (value, one, many = `${one}s`) => `${number(value)} ${value === 1 ? one : many}`;

  function bytes(value) {
    const units = ["B", "kB", "MB", "GB", "TB", "PB"];
    let step = 0;
    while (value >= 1000 && step < units.length - 1) [value, step] = [value / 1000, step + 1];
    return `${value >= 100 || step === 0 ? Math.round(value) : value.toFixed(1)} ${units[step]}`;
  }

  const spans = [
    ["year", 31557600],
    ["month", 2629800],
    ["day", 86400],
    ["hour", 3600],
    ["minute", 60],
    ["second", 1],
  ];

  /* A length of time in its largest unit: 13 years, 4 minutes. */
  function span(milliseconds) {
    const seconds = Math.max(0, milliseconds / 1000);
    const [unit, size] = spans.find(([, length]) => seconds >= length) || spans[spans.length - 1];
    return plural(Math.floor(seconds / size), unit);
  }

  const ago = (at) => (Date.now() - at < 1000 ? "just now" : `${span(Date.now() - at)} ago`);
  const stamp = (at) => new Date(at).toISOString().replace("T", " ").slice(0, 19);

  /* A time in UTC; how long ago it was, without seconds, or without the day, where that is of more use. */
  function time(at, { relative = false, brief = false, clock = false } = {}) {
    if (!at) return "–";
    const text = `${stamp(at)} UTC`;
    const shown = relative ? ago(at) : brief ? stamp(at).slice(0, 16) : clock ? stamp(at).slice(11) : text;
    return h("time", { datetime: new Date(at).toISOString(), title: text }, shown);
  }

  /* What a node is: a source, a model or an exposure. */
  const kindOf = (node) => (["source", "exposure"].includes(node.kind) ? node.kind : "model");

  /* What selects a node. */
  const termOf = (node) => (kindOf(node) === "model" ? node.name : `${node.kind}:${node.name}`);

  return { put, need, again, renew, stale, needNode, h, s, kindOf, termOf, dotted, number, plural, bytes, span, stamp, time };
})();
