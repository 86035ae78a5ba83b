"use strict";

/* Making an element like another one: only what differs is touched, so that focus, selection and scroll stay. */
(() => {
  /* Attributes in `kept` stay as they are. */
  function morph(old, fresh, kept = []) {
    if (old.dataset && old.dataset.whole && old.classList.contains("part")) {
      for (const button of [...fresh.querySelectorAll(".more-rows")]) button.click();
      kept = [...kept, "data-whole"];
    }
    if (old.isEqualNode(fresh)) return old;
    // A button of these has the rows that it brings.
    const same = old.nodeName === fresh.nodeName && keyOf(old) === keyOf(fresh) && !(fresh.matches && fresh.matches(".more-rows"));
    if (!same) {
      old.replaceWith(fresh);
      return fresh;
    }
    if (old.nodeType !== Node.ELEMENT_NODE) {
      old.data = fresh.data;
      return old;
    }
    for (const name of old.getAttributeNames())
      if (!fresh.hasAttribute(name) && !kept.includes(name)) old.removeAttribute(name);
    for (const name of fresh.getAttributeNames())
      if (old.getAttribute(name) !== fresh.getAttribute(name) && !kept.includes(name))
        old.setAttribute(name, fresh.getAttribute(name));
    children(old, fresh);
    return old;
  }

  const keyOf = (node) => (node.nodeType === Node.ELEMENT_NODE ? node.getAttribute("data-key") : null);

  function children(old, fresh) {
    const byKey = new Map([...old.children].filter(keyOf).map((child) => [keyOf(child), child]));
    let at = old.firstChild;
    for (const child of [...fresh.childNodes]) {
      const twin = keyOf(child) ? byKey.get(keyOf(child)) : at;
      if (!twin || (!keyOf(child) && keyOf(twin))) {
        old.insertBefore(child, at);
        continue;
      }
      // An element before its twin has gone, or comes later.
      if (twin !== at) old.insertBefore(twin, at);
      at = morph(twin, child).nextSibling;
    }
    while (at) {
      const next = at.nextSibling;
      at.remove();
      at = next;
    }
  }

  Object.assign(headrace, { morph });
})();
