// Sphinx fetches the pages that it has found for their excerpts, which browsers do not allow for pages opened from disk.
// There they come from a script that `make site` writes.
"use strict";

if (location.protocol === "file:") {
  const escaped = (text) => text.replace(/&/g, "&amp;").replace(/</g, "&lt;");
  const loaded = new Promise((done) => {
    const texts = document.createElement("script");
    texts.src = "_static/page_texts.js";
    texts.onload = done;
    document.head.append(texts);
  });
  window.fetch = async (address) => {
    await loaded;
    const page = String(address).replace(/^\.\//, "").replace(/\.html.*$/, "");
    const sections = (window.PAGE_TEXTS[page] || []).map(
      ([id, text]) => `<section id="${escaped(id)}">${escaped(text)}</section>`,
    );
    return { text: async () => `<div role="main">${sections.join("\n")}</div>` };
  };
}
