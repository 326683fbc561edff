// Elements, and bringing a page up to date without losing what its reader does on it.
//
// A page is made anew as a tree whenever something changed; `fill` then makes the tree on the screen
// equal to it, touching only what differs. Focus, selection and scrolling stay where they are.

const SVG = "http://www.w3.org/2000/svg";
const SVG_TAGS = new Set(["svg", "path", "rect", "line", "g", "circle", "text", "title"]);

/** Make an element: properties, `on` with listeners, `data` with data attributes, children. */
export function h(tag, properties, ...children) {
  const isSvg = SVG_TAGS.has(tag);
  const made = isSvg ? document.createElementNS(SVG, tag) : document.createElement(tag);
  for (const [name, value] of Object.entries(properties || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name === "on") listen(made, value);
    else if (name === "style") for (const [key, one] of Object.entries(value)) setStyle(made, key, one);
    else if (name === "value" || name === "checked" || name === "selected") made[name] = value;
    else made.setAttribute(name === "class" ? "class" : name, value === true ? "" : value);
  }
  append(made, children);
  return made;
}

// Through the object model: the policy of the page allows no style attributes in markup.
function setStyle(made, key, value) {
  if (key.startsWith("--")) made.style.setProperty(key, value);
  else made.style[key] = value;
}

function append(parent, children) {
  for (const child of children) {
    if (Array.isArray(child)) append(parent, child);
    else if (child !== null && child !== undefined && child !== false) parent.append(child);
  }
}

function listen(element, handlers) {
  element.handlers = handlers;
  element.heard = new Set(Object.keys(handlers));
  for (const name of element.heard) {
    element.addEventListener(name, (event) => element.handlers[name] && element.handlers[name](event));
  }
}

/** Make the children of an element equal to those wanted. */
export function fill(parent, wanted) {
  const keyed = new Map();
  for (const child of parent.children) {
    if (child.dataset && child.dataset.key !== undefined) keyed.set(child.dataset.key, child);
  }
  let at = parent.firstChild;
  for (const want of wanted.flat(Infinity)) {
    if (want === null || want === undefined || want === false) continue;
    const node = want instanceof Node ? want : document.createTextNode(want);
    if (node.parentNode === parent && node.kept) {
      if (node === at) at = at.nextSibling;
      else parent.insertBefore(node, at);
      continue;
    }
    const key = node.dataset && node.dataset.key;
    const have = key !== undefined ? keyed.get(key) : at;
    if (have && have.kept && node.kept && have.parentNode === parent) {
      // Made anew, but the one on the screen may have the focus: it stays, and becomes the same.
      if (have === at) at = at.nextSibling;
      else parent.insertBefore(have, at);
      update(have, node);
      memory.get(node.kept).made = have;
      have.kept = node.kept;
      continue;
    }
    if (have && have.parentNode === parent && alike(have, node)) {
      if (have === at) at = at.nextSibling;
      else parent.insertBefore(have, at);
      update(have, node);
    } else {
      parent.insertBefore(node, at);
    }
  }
  while (at) {
    const next = at.nextSibling;
    at.remove();
    at = next;
  }
}

function alike(have, want) {
  if (have.nodeName !== want.nodeName || have.kept || want.kept) return false;
  return (have.dataset && have.dataset.key) === (want.dataset && want.dataset.key);
}

function update(have, want) {
  if (have.nodeType === Node.TEXT_NODE) {
    if (have.data !== want.data) have.data = want.data;
    return;
  }
  for (const { name, value } of want.attributes) {
    if (have.getAttribute(name) === value) continue;
    if (name === "style") have.style.cssText = value;
    else have.setAttribute(name, value);
  }
  for (const { name } of [...have.attributes]) {
    if (!want.hasAttribute(name) && name !== "open") have.removeAttribute(name);
  }
  if (want.handlers) {
    const fresh = {};
    for (const name of Object.keys(want.handlers)) {
      if (!have.heard || !have.heard.has(name)) fresh[name] = want.handlers[name];
    }
    const heard = have.heard;
    if (Object.keys(fresh).length) listen(have, fresh);
    have.heard = new Set([...(heard || []), ...Object.keys(want.handlers)]);
    have.handlers = want.handlers;
  }
  // A field in use keeps what the user types.
  if ("value" in want && have !== document.activeElement && have.value !== want.value) have.value = want.value;
  fill(have, [...want.childNodes]);
}

const memory = new Map();

/** Return what was made for a key the last time, as long as nothing that it depends on changed. */
export function remember(key, reasons, make) {
  const known = memory.get(key);
  if (known && known.reasons.length === reasons.length && known.reasons.every((one, at) => one === reasons[at])) {
    return known.made;
  }
  const made = make();
  made.kept = key;
  memory.set(key, { reasons, made });
  return made;
}

/** Forget what was remembered; on leaving a page. */
export function forget() {
  memory.clear();
}
