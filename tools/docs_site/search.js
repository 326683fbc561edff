// Finds pages by words of their titles and texts; PAGES stands in the line above.
const box = document.getElementById("search");
const found = document.getElementById("found");
const up = document.body.dataset.up;

box.addEventListener("input", () => {
  const words = box.value.toLowerCase().split(/\s+/).filter(Boolean);
  found.replaceChildren();
  found.hidden = words.length === 0;
  if (!words.length) return;
  const rated = PAGES.map((page) => {
    const title = page.title.toLowerCase();
    const text = page.text.toLowerCase();
    const hits = words.map((word) => (title.includes(word) ? 3 : text.includes(word) ? 1 : 0));
    return [hits.includes(0) ? 0 : hits.reduce((sum, hit) => sum + hit, 0), page];
  });
  const best = rated.filter(([rate]) => rate > 0).sort((a, b) => b[0] - a[0]).slice(0, 12);
  for (const [, page] of best) {
    const link = document.createElement("a");
    link.href = up + page.address;
    link.textContent = page.title;
    const item = document.createElement("li");
    item.append(link);
    found.append(item);
  }
  if (!best.length) found.append("nothing found");
});
document.addEventListener("keydown", (event) => {
  if (event.key === "/" && document.activeElement !== box) {
    event.preventDefault();
    box.focus();
  }
  if (event.key === "Escape") {
    box.value = "";
    found.hidden = true;
  }
});
