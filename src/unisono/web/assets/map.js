// Every node and every GPU of it: who holds it, and what is wrong.

import { h, remember } from "./dom.js";
import { choices, denied, empty, gangAddress, heading, legend, nodeAddress } from "./parts.js";
import { count, hue, plural } from "./words.js";

const GROUPS = [["type", "By type"], ["zone", "By zone"], ["pool", "By pool"]];

export const title = () => "Map";

export const ask = () => ({ page: "map" });

export function draw(model, { query }) {
  if (model.head.denied) return [heading("Map"), denied(model.head.denied)];
  if (!model.order.length) {
    return [heading("Map"), empty("There are no nodes", "They appear here as they join, or as machines are bought for a gang.")];
  }
  const by = query.get("by") || "type";
  const groups = new Map();
  const totals = { held: 0, free: 0, down: 0, gpus: 0 };
  for (const name of model.order) {
    const row = model.rows.get(name);
    const key = row[by] || (by === "pool" ? "no pool" : by === "zone" ? "no zone" : "others");
    if (!groups.has(key)) groups.set(key, []);
    groups.get(key).push([name, row]);
    for (const [who, amount] of row.by) {
      totals.gpus += amount;
      totals[who ? "held" : row.bad ? "down" : "free"] += amount;
    }
  }
  return [
    heading("Map", `${plural(totals.gpus, "GPU")} on ${plural(model.order.length, "node")}. A square is a GPU; each gang has its colour.`),
    h("div", { class: "tools" },
      choices("How nodes are grouped", GROUPS, by, (value) => `#/map?by=${value}`),
      legend([[totals.held, "held", "in use"], [totals.free, "free", "free"], [totals.down, "down", "out of service"]])),
    [...groups].sort(([one], [other]) => one.localeCompare(other)).map(([key, nodes]) => group(key, nodes, model.order.length > 120)),
  ];
}

function group(key, nodes, isDense) {
  const held = nodes.reduce((sum, [, row]) => sum + row.by.reduce((some, [who, amount]) => some + (who ? amount : 0), 0), 0);
  const all = nodes.reduce((sum, [, row]) => sum + row.by.reduce((some, [, amount]) => some + amount, 0), 0);
  return h("section", { class: "card rack", "aria-label": key, "data-key": `group ${key}` },
    h("h2", {}, key, h("small", {}, `${plural(nodes.length, "node")}, ${count(held)} of ${plural(all, "GPU")} in use`)),
    h("ul", { class: isDense ? "map dense" : "map", on: { keydown: move } },
      nodes.map(([name, row], at) => remember(`map ${name}`, [row, isDense, at === 0], () => node(name, row, at === 0)))));
}

function node(name, row, isFirst) {
  const holders = new Map();
  for (const [who, amount] of row.by) if (who) holders.set(who, (holders.get(who) || 0) + amount);
  const held = [...holders.values()].reduce((sum, amount) => sum + amount, 0);
  const all = row.by.reduce((sum, [, amount]) => sum + amount, 0);
  const whose = [...holders].map(([who, amount]) => `${amount} by ${who === "·" ? "another team" : who}`).join(", ");
  const label = `${name}: ${held} of ${plural(all, "GPU")} in use${whose ? `, ${whose}` : ""}${row.bad ? `; ${row.bad}` : ""}`;
  const cells = row.by.flatMap(([who, amount]) => Array.from({ length: amount }, () => cell(who, row)));
  return h("li", { class: row.bad ? "bad" : null, "data-key": name },
    h("a", { href: nodeAddress(name), "aria-label": label, title: label, tabindex: isFirst ? "0" : "-1" },
      h("b", {}, name), row.bad ? h("small", {}, row.bad) : null),
    h("div", { class: "cells", "aria-hidden": "true", on: { click: follow } }, cells));
}

function cell(who, row) {
  if (!who) return h("i", { class: row.bad ? "down" : "free" });
  return h("i", { class: who === "·" ? "held" : `c${hue(who)}`, title: who === "·" ? "another team" : who, "data-who": who });
}

function follow(event) {
  const who = event.target.dataset.who;
  if (who && who !== "·") location.hash = gangAddress(who);
}

// Arrows go from node to node, so that a thousand of them are one stop for the tabulator.
function move(event) {
  const links = [...event.currentTarget.querySelectorAll("a")];
  const at = links.indexOf(document.activeElement);
  if (at < 0) return;
  const top = links[0].getBoundingClientRect().top;
  const perRow = Math.max(1, links.findIndex((one) => one.getBoundingClientRect().top > top + 2));
  const step = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: perRow, ArrowUp: -perRow, Home: -at, End: links.length - 1 - at }[event.key];
  if (step === undefined) return;
  event.preventDefault();
  const next = links[Math.min(links.length - 1, Math.max(0, at + step))];
  links[at].tabIndex = -1;
  next.tabIndex = 0;
  next.focus();
}
