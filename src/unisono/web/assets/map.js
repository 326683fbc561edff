// Every node and every GPU of it: which workload uses it, and what is wrong.

import { h, remember } from "./dom.js";
import { choices, denied, empty, gangAddress, heading, legend, nodeAddress } from "./parts.js";
import { count, hue, plural } from "./words.js";

const GROUPS = [["type", "By type"], ["zone", "By zone"], ["pool", "By pool"]];

export const title = () => "Map";

export const ask = () => ({ page: "map" });

export function draw(model, { query }) {
  if (model.head.denied) return [heading("Map"), denied(model.head.denied)];
  if (!model.order.length) {
    return [heading("Map"), empty("No nodes", "Nodes appear here when they join the cluster or are provisioned.")];
  }
  const by = query.get("by") || "type";
  const groups = new Map();
  const totals = { held: 0, free: 0, down: 0, gpus: 0 };
  for (const name of model.order) {
    const row = model.rows.get(name);
    const key = row[by] || (by === "pool" ? "no pool" : by === "zone" ? "no zone" : "unknown type");
    if (!groups.has(key)) groups.set(key, []);
    groups.get(key).push([name, row]);
    for (const [holder, amount] of row.by) {
      totals.gpus += amount;
      totals[holder ? "held" : row.bad ? "down" : "free"] += amount;
    }
  }
  return [
    heading("Map", `${plural(totals.gpus, "GPU")} on ${plural(model.order.length, "node")}. Each square is a GPU, coloured by workload.`),
    h("div", { class: "tools" },
      choices("Group nodes by", GROUPS, by, (value) => `#/map?by=${value}`),
      legend([[totals.held, "held", "in use"], [totals.free, "free", "free"], [totals.down, "down", "out of service"]])),
    [...groups].sort(([one], [other]) => one.localeCompare(other)).map(([key, nodes]) => group(key, nodes, model.order.length > 120)),
  ];
}

function group(key, nodes, isDense) {
  const held = nodes.reduce((sum, [, row]) => sum + row.by.reduce((some, [holder, amount]) => some + (holder ? amount : 0), 0), 0);
  const all = nodes.reduce((sum, [, row]) => sum + row.by.reduce((some, [, amount]) => some + amount, 0), 0);
  return h("section", { class: "card rack", "aria-label": key, "data-key": `group ${key}` },
    h("h2", {}, key, h("small", {}, `${plural(nodes.length, "node")}, ${count(held)} of ${plural(all, "GPU")} in use`)),
    h("ul", { class: isDense ? "map dense" : "map", on: { keydown: move } },
      nodes.map(([name, row], at) => remember(`map ${name}`, [row, isDense, at === 0], () => node(name, row, at === 0)))));
}

function node(name, row, isFirst) {
  const holders = new Map();
  for (const [holder, amount] of row.by) if (holder) holders.set(holder, (holders.get(holder) || 0) + amount);
  const held = [...holders.values()].reduce((sum, amount) => sum + amount, 0);
  const all = row.by.reduce((sum, [, amount]) => sum + amount, 0);
  const users = [...holders].map(([holder, amount]) => `${amount} by ${holder === "·" ? "another namespace" : holder}`).join(", ");
  const label = `${name}: ${held} of ${plural(all, "GPU")} in use${users ? `, ${users}` : ""}${row.bad ? `; ${row.bad}` : ""}`;
  const cells = row.by.flatMap(([holder, amount]) => Array.from({ length: amount }, () => cell(holder, row)));
  return h("li", { class: row.bad ? "bad" : null, "data-key": name },
    h("a", { href: nodeAddress(name), "aria-label": label, title: label, tabindex: isFirst ? "0" : "-1" },
      h("b", {}, name), row.bad ? h("small", {}, row.bad) : null),
    h("div", { class: "cells", "aria-hidden": "true", on: { click: follow } }, cells));
}

function cell(holder, row) {
  if (!holder) return h("i", { class: row.bad ? "down" : "free" });
  return h("i", { class: holder === "·" ? "held" : `c${hue(holder)}`, title: holder === "·" ? "another namespace" : holder, "data-holder": holder });
}

function follow(event) {
  const holder = event.target.dataset.holder;
  if (holder && holder !== "·") location.hash = gangAddress(holder);
}

// Arrows go from node to node, so that a thousand of them are one tab stop.
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
