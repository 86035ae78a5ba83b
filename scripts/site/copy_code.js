// A button on each block of code. Of a terminal's block only what is typed is copied.
"use strict";

function typed(text) {
  const lines = text.replace(/\n+$/, "").split("\n");
  const found = [];
  let continues = false;
  for (const line of lines) {
    if (line.startsWith("$ ") || continues) {
      found.push(line.replace(/^\$ /, ""));
      continues = line.endsWith("\\");
    }
  }
  return (found.length ? found : lines).join("\n");
}

function button(block, pre) {
  const made = document.createElement("button");
  made.type = "button";
  made.className = "copy";
  made.textContent = "Copy";
  made.addEventListener("click", async () => {
    await navigator.clipboard.writeText(typed(pre.textContent));
    made.textContent = "Copied";
    setTimeout(() => (made.textContent = "Copy"), 2000);
  });
  block.append(made);
}

document.addEventListener("DOMContentLoaded", () => {
  for (const pre of document.querySelectorAll("article div.highlight pre")) {
    // Rows of a table are scrolled; other lines wrap.
    pre.classList.toggle("wrapped", !/^[|+│]/m.test(pre.textContent));
    if (navigator.clipboard) button(pre.parentElement, pre);
  }
});
