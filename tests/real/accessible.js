// Checks a page for users who see little or nothing; returns what is wrong with it.
(() => {
  const wrong = [];
  const say = (what, element) => wrong.push(`${what}: ${(element.outerHTML || String(element)).slice(0, 160)}`);
  const isShown = (element) => element.checkVisibility({ visibilityProperty: true }) && element.getClientRects().length > 0;

  // Everything that can be used has a name.
  const nameOf = (element) => {
    const labelled = element.getAttribute("aria-labelledby");
    const own = element.getAttribute("aria-label") || (labelled && document.getElementById(labelled)?.textContent) || "";
    const label = element.labels && element.labels.length ? element.labels[0].textContent : "";
    return (own || label || element.textContent || element.getAttribute("title") || "").trim();
  };
  for (const element of document.querySelectorAll("a[href], button, input, select, [role=img], [role=region], [role=group]")) {
    if (isShown(element) && !nameOf(element)) say("has no name", element);
  }
  for (const element of document.querySelectorAll("img:not([alt])")) say("picture without words", element);
  for (const element of document.querySelectorAll("a:not([href])")) say("link to nowhere", element);
  for (const element of document.querySelectorAll("a a, a button, button a")) say("one control within another", element);

  // Ids are unique; headings do not jump; there is one first heading, one main part, a language.
  const ids = [...document.querySelectorAll("[id]")].map((element) => element.id);
  for (const id of new Set(ids)) if (ids.filter((one) => one === id).length > 1) say("id is there twice", id);
  let level = 0;
  for (const heading of document.querySelectorAll("h1, h2, h3, h4")) {
    if (!isShown(heading)) continue;
    const own = Number(heading.tagName[1]);
    if (own > level + 1) say(`heading jumps from ${level} to ${own}`, heading);
    level = own;
  }
  if ([...document.querySelectorAll("h1")].filter(isShown).length !== 1) say("not exactly one first heading", document.body);
  if (document.querySelectorAll("main").length !== 1) say("not exactly one main part", document.body);
  if (!document.documentElement.lang) say("no language", document.documentElement);
  if (!document.title) say("no title", document.head);

  // Tables say what their columns are; what scrolls can be reached by keys; lists have only items.
  for (const table of document.querySelectorAll("table")) {
    if (!table.caption) say("table without a caption", table);
    if (!table.querySelector("thead th[scope=col]")) say("table without column headings", table);
  }
  for (const element of document.querySelectorAll("#page *")) {
    if (!["auto", "scroll"].includes(getComputedStyle(element).overflowX) || element.scrollWidth <= element.clientWidth + 1) continue;
    if (element.tabIndex < 0 && !element.querySelector("a[href], button, input")) say("scrolls, and keys do not reach it", element);
  }
  for (const list of document.querySelectorAll("ul, ol")) {
    for (const child of list.children) if (child.tagName !== "LI") say("not an item in a list", child);
  }
  for (const list of document.querySelectorAll("dl")) {
    for (const child of list.children) if (!["DT", "DD", "DIV"].includes(child.tagName)) say("not a pair in a list", child);
  }
  for (const element of document.querySelectorAll("[aria-hidden=true] a[href], [aria-hidden=true] button")) say("hidden, and keys reach it", element);

  // Letters stand out from what is behind them: 4.5 to 1, large ones 3 to 1.
  const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const rgb = (text) => {
    canvas.clearRect(0, 0, 1, 1);
    canvas.fillStyle = text;
    canvas.fillRect(0, 0, 1, 1);
    const [r, g, b, a] = canvas.getImageData(0, 0, 1, 1).data;
    return [r, g, b, a / 255];
  };
  const over = (top, below) => [0, 1, 2].map((at) => top[at] * top[3] + below[at] * (1 - top[3])).concat(1);
  const behind = (element) => {
    const layers = [];
    for (let one = element; one; one = one.parentElement) {
      const style = getComputedStyle(one);
      if (style.backgroundImage !== "none") return null;
      const colour = rgb(style.backgroundColor);
      if (Number(style.opacity) < 1) return null; // fades with its text
      if (colour[3] > 0) layers.push(colour);
      if (colour[3] === 1) break;
    }
    return layers.reverse().reduce((below, top) => over(top, below), [255, 255, 255, 1]);
  };
  const light = ([r, g, b]) => [r, g, b].map((one) => one / 255)
    .map((one) => (one <= 0.03928 ? one / 12.92 : ((one + 0.055) / 1.055) ** 2.4))
    .reduce((sum, one, at) => sum + one * [0.2126, 0.7152, 0.0722][at], 0);
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  const seen = new Set();
  while (walker.nextNode()) {
    const element = walker.currentNode.parentElement;
    if (!walker.currentNode.data.trim() || seen.has(element) || !isShown(element)) continue;
    seen.add(element);
    const style = getComputedStyle(element);
    const ground = behind(element);
    if (!ground || style.clipPath !== "none" || element.closest(".unseen, .off")) continue;
    const one = light(over(rgb(style.color), ground));
    const other = light(ground);
    const ratio = (Math.max(one, other) + 0.05) / (Math.min(one, other) + 0.05);
    const isLarge = parseFloat(style.fontSize) >= 24 || (parseFloat(style.fontSize) >= 18.6 && Number(style.fontWeight) >= 700);
    if (ratio < (isLarge ? 3 : 4.5)) say(`letters are ${ratio.toFixed(2)} to 1 (${style.color} on ${ground.slice(0, 3).map(Math.round)})`, element);
  }

  // Nothing hangs over the side, and fingers can hit what is to be hit.
  if (document.documentElement.scrollWidth > innerWidth + 1) say(`wider than the screen by ${document.documentElement.scrollWidth - innerWidth}`, document.body);
  for (const element of document.querySelectorAll("#nav a, .button")) {
    const box = element.getBoundingClientRect();
    if (isShown(element) && (box.height < 24 || box.width < 24)) say("too small to hit", element);
  }
  return wrong;
})()
