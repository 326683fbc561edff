// Every node and every GPU of it: which workload uses it, and what is wrong.

import { t } from "./language.js";
import { claim, own } from "./colours.js";
import { h, remember } from "./dom.js";
import { choices, denied, empty, gangAddress, gangLink, heading, jobOf, learn, legend, nodeAddress } from "./parts.js";
import { count, lasting, now, plural } from "./words.js";

const GROUPS = [["type", t("By type")], ["zone", t("By zone")], ["pool", t("By pool")]];

export const title = () => t("Map");

const COLOURS = [["gang", t("By workload")], ["busy", t("By utilisation")], ["celsius", t("By temperature")], ["left", t("By time left")]];
const MOST_NAMED = 32;

// What a square shows, by the first bound that its value is below.
const HOUR = 3600;
const SCALES = {
  busy: [[5, "idle", t("below 5 %")], [40, "cool0", t("5 to 40 %")], [70, "cool1", t("40 to 70 %")], [90, "cool2", t("70 to 90 %")], [Infinity, "cool3", t("90 % and more")]],
  celsius: [[45, "heat0", t("below 45 °C")], [60, "heat1", t("45 to 60 °C")], [75, "heat2", t("60 to 75 °C")], [85, "heat3", t("75 to 85 °C")], [Infinity, "heat4", t("85 °C and more")]],
  left: [[HOUR / 4, "cool0", t("ends in 15 min")], [HOUR, "cool1", t("in 1 h")], [4 * HOUR, "cool2", t("in 4 h")], [24 * HOUR, "cool3", t("in a day")], [Infinity, "cool4", t("later")]],
};
const UNKNOWN = { busy: t("not measured"), celsius: t("not measured"), left: t("no time limit") };
const WORDS = { busy: (value) => `${value} %`, celsius: (value) => `${value} °C`, left: (value) => t("ends in {0} at the latest", lasting(value)) };

const colourOf = (query) => (Object.hasOwn(SCALES, query.get("colour")) ? query.get("colour") : "gang");

export const ask = ({ query }) => ({ page: "map", colour: colourOf(query) });

export function draw(model, { query }) {
  if (model.head.denied) return [heading(t("Map")), denied(model.head.denied)];
  if (!model.order.length) {
    return [heading(t("Map")), empty(t("No nodes"), t("Nodes appear here when they join the cluster or are provisioned."))];
  }
  for (const row of model.rows.values()) learn(row.jobs);
  const by = query.get("by") || "type";
  const groups = new Map();
  const totals = { held: 0, free: 0, down: 0, gpus: 0 };
  for (const name of model.order) {
    const row = model.rows.get(name);
    const key = row[by] || (by === "pool" ? t("no pool") : by === "zone" ? t("no zone") : t("unknown type"));
    if (!groups.has(key)) groups.set(key, []);
    groups.get(key).push([name, row]);
    for (const [holder, amount] of row.by) {
      totals.gpus += amount;
      totals[holder ? "held" : row.bad ? "down" : "free"] += amount;
    }
  }
  const colour = colourOf(query);
  const holders = new Map();
  for (const row of model.rows.values()) for (const [holder, amount] of row.by) if (holder) holders.set(holder, (holders.get(holder) || 0) + amount);
  claim(holders.keys());
  const to = (fields) => {
    const made = new URLSearchParams(query);
    for (const [name, value] of Object.entries(fields)) made.set(name, value);
    return `#/map?${made}`;
  };
  return [
    heading(t("Map"), t("{0} on {1}. Each square is a GPU.", plural(totals.gpus, "GPU"), plural(model.order.length, "node"))),
    h("div", { class: "tools" },
      choices(t("Colour GPUs"), COLOURS, colour, (value) => to({ colour: value })),
      choices(t("Group nodes"), GROUPS, by, (value) => to({ by: value })),
      legend([[totals.held, "held", t("in use")], [totals.free, "free", t("free")], [totals.down, "down", t("out of service")]])),
    colour === "gang" ? gangs(holders) : scale(colour, model.head),
    [...groups].sort(([one], [other]) => one.localeCompare(other)).map(([key, nodes]) => group(key, nodes, model.order.length > 120, colour, model.head)),
  ];
}

// The gangs with most GPUs by name, so that no colour has to be recognised to know whose they are.
function gangs(holders) {
  const named = [...holders].filter(([holder]) => holder !== "·").sort(([one, some], [other, more]) => more - some || one.localeCompare(other));
  if (!named.length) return null;
  return h("ul", { class: "scale", "aria-label": t("Workloads and their colours") },
    named.slice(0, MOST_NAMED).map(([holder, amount]) => h("li", { "data-key": holder }, gangLink(holder), h("span", {}, plural(amount, "GPU")))),
    named.length > MOST_NAMED ? h("li", {}, t("and {0} more", count(named.length - MOST_NAMED))) : null);
}

function scale(colour, head) {
  const isMissing = colour !== "left" && !head.measured;
  return [
    h("ul", { class: "scale", "aria-label": t("What the colours mean") },
      [...SCALES[colour].map(([, kind, name]) => [kind, name]), ["unknown", UNKNOWN[colour]]].map(([kind, name]) =>
        h("li", {}, h("i", { class: `swatch ${kind}`, "aria-hidden": "true" }), name))),
    isMissing ? h("p", { class: "quiet" }, t("Nothing is measured: GPUs are shown here when dcgm-exporter is scraped by a Prometheus that the controller knows (--prometheus).")) : null,
  ];
}

function group(key, nodes, isDense, colour, head) {
  const held = nodes.reduce((sum, [, row]) => sum + row.by.reduce((some, [holder, amount]) => some + (holder ? amount : 0), 0), 0);
  const all = nodes.reduce((sum, [, row]) => sum + row.by.reduce((some, [, amount]) => some + amount, 0), 0);
  return h("section", { class: "card rack", "aria-label": key, "data-key": `group ${key}` },
    h("h2", {}, key, h("small", {}, t("{0}, {1} of {2} in use", plural(nodes.length, "node"), count(held), plural(all, "GPU")))),
    h("ul", { class: isDense ? "map dense" : "map", on: { keydown: move } },
      nodes.map(([name, row], at) => remember(`map ${name}`, [row, isDense, at === 0, kindsOf(row, colour, head).join()], () => node(name, row, at === 0, colour, head)))));
}

function node(name, row, isFirst, colour, head) {
  const holders = new Map();
  for (const [holder, amount] of row.by) if (holder) holders.set(holder, (holders.get(holder) || 0) + amount);
  const held = [...holders.values()].reduce((sum, amount) => sum + amount, 0);
  const all = row.by.reduce((sum, [, amount]) => sum + amount, 0);
  const users = [...holders].map(([holder, amount]) => t("{0} by {1}", amount, holder === "·" ? t("another namespace") : jobOf(holder))).join(", ");
  const label = t("{0}: {1} of {2} in use{3}{4}", name, held, plural(all, "GPU"), users ? `, ${users}` : "", row.bad ? `; ${row.bad}` : "");
  const kinds = kindsOf(row, colour, head);
  const values = valuesOf(row, colour, head);
  const cells = row.by.flatMap(([holder, amount]) => Array(amount).fill(holder)).map((holder, at) => cell(holder, kinds[at], colour, values[at]));
  return h("li", { class: row.bad ? "bad" : null, "data-key": name },
    h("a", { href: nodeAddress(name), "aria-label": label, title: label, tabindex: isFirst ? "0" : "-1" },
      h("b", {}, name), row.bad ? h("small", {}, row.bad) : null),
    h("div", { class: "cells", "aria-hidden": "true", on: { click: follow } }, cells));
}

/** The values of the GPUs of a node; null is unknown. */
function valuesOf(row, colour, head) {
  const holders = row.by.flatMap(([holder, amount]) => Array(amount).fill(holder));
  if (colour === "left") return holders.map((holder) => (head.ends[holder] ? Math.max(0, head.ends[holder] - now()) : null));
  return holders.map((holder, at) => (row.values && row.values[at] !== undefined ? row.values[at] : null));
}

/** The classes of the GPUs of a node. */
function kindsOf(row, colour, head) {
  const holders = row.by.flatMap(([holder, amount]) => Array(amount).fill(holder));
  const values = colour === "gang" ? [] : valuesOf(row, colour, head);
  return holders.map((holder, at) => {
    if (!holder && (colour !== "celsius" || values[at] === null)) return row.bad ? "down" : "free";
    if (colour === "gang") return holder === "·" ? "held" : own(holder);
    return values[at] === null ? "unknown" : SCALES[colour].find(([bound]) => values[at] < bound)[1];
  });
}

function cell(holder, kind, colour, value) {
  const name = holder === "·" ? t("another namespace") : holder ? jobOf(holder) : t("free");
  const title = colour !== "gang" && value !== null && value !== undefined ? `${name}: ${WORDS[colour](value)}` : name;
  return h("i", { class: kind, title, "data-holder": holder || null });
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
