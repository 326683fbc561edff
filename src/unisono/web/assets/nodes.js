// Nodes with their prices and holders, pools that machines are bought from, machines on their way.

import { h } from "./dom.js";
import { rowsOf } from "./live.js";
import { card, denied, empty, figure, figures, gangLink, heading, nodeLink, pager, search, table } from "./parts.js";
import { ago, count, lasting, money, now, plural } from "./words.js";

export const title = () => "Nodes";

export function ask({ query }) {
  const made = { page: "nodes" };
  if (query.get("q")) made.q = query.get("q");
  if (query.get("page")) made.at = query.get("page");
  return made;
}

export function draw(model, { query, change }) {
  const { head } = model;
  if (head.denied) return [heading("Nodes"), denied(head.denied)];
  const rows = rowsOf(model);
  const to = (page) => {
    const made = new URLSearchParams(query);
    if (page > 1) made.set("page", page);
    else made.delete("page");
    return `#/nodes${made.toString() ? `?${made}` : ""}`;
  };
  return [
    heading("Nodes and purchases", `${plural(head.nodes, "node")} with ${plural(head.gpus, "GPU")}`),
    head.cost ? figures(figure(money(head.cost), "an hour, all nodes"),
      figure(money(head.idleCost), "of that for nodes that nobody uses", head.idleCost ? "warn" : ""),
      figure(money(head.cost * 730), "a month at this rate")) : null,
    head.claims.length ? card("Machines on their way", claims(head.claims)) : null,
    head.pools.length ? card("Pools", pools(head.pools)) : null,
    h("div", { class: "tools" }, search("Filter by name, type, zone, pool (press /)", query.get("q") || "", (q) => change({ q, page: null }))),
    rows.length ? h("div", { class: "card flush" }, list(rows, head))
      : empty(query.get("q") ? "None that matches" : "There are no nodes", query.get("q") ? "Try fewer letters." : "They appear here as they join, or as machines are bought for a gang."),
    pager(head, to),
  ];
}

const list = (rows, head) => table(plural(head.found, "node"), [
  ["Node", { id: true }], ["Type", { id: true }], ["Pool", { id: true, hide: true }], ["Zone", { id: true, hide: true }], ["GPUs in use", { n: true }], ["Held by", { wide: true }], ["Price", { n: true }], ["State"],
], rows.map((one) => ({
  key: one.name,
  cells: [nodeLink(one.name), h("span", {}, one.type || "–", one.sold ? h("small", { class: "under" }, one.sold) : null), one.pool || "–", one.zone || "–",
    one.gpus ? `${one.held} of ${one.gpus}` : "–", holders(one.by), one.price ? money(one.price) : "–", state(one)],
})), { class: "stack" });

function holders(by) {
  if (!by.length) return h("span", { class: "quiet" }, "nobody");
  const shown = by.slice(0, 3);
  return h("ul", { class: "holders" }, shown.map(([who, amount]) => h("li", {}, gangLink(who), h("small", { class: "quiet" }, ` ${plural(amount, "GPU")}`))),
    by.length > shown.length ? h("li", {}, `and ${by.length - shown.length} more`) : null);
}

function state(one) {
  if (one.bad) return h("span", { class: "chip bad" }, one.bad);
  if (one.idleUntil) return h("span", { class: "chip over" }, one.idleUntil > now() ? `idle, goes in ${lasting(one.idleUntil - now())}` : "idle, about to go");
  if (one.idle) return h("span", { class: "chip over" }, "idle");
  return h("span", { class: "chip runs" }, one.gpus ? "in use" : "ready");
}

const STATES = { launching: ["starts", "asked for"], launched: ["starts", "starting"], ready: ["runs", "ready, held"], refused: ["bad", "refused"], going: ["over", "going"] };

const claims = (of) => table("Machines that are bought, refused or given back", [
  ["Machine", { id: true }], ["Type", { id: true }], ["Zone", { id: true, hide: true }], ["For", { wide: true }], ["Price", { n: true }], ["Since", { n: true }], ["State", { wide: true }],
], of.map((one) => ({
  key: one.name,
  cells: [one.name, h("span", {}, one.type, h("small", { class: "under" }, `${one.pool}, ${one.sold}`)), one.zone, one.for ? gangLink(one.for) : "–",
    one.price ? money(one.price) : "–", ago(one.since),
    h("div", {}, h("span", { class: `chip ${STATES[one.state][0]}` }, STATES[one.state][1]), one.says ? h("p", { class: "quiet" }, one.says) : null)],
})), { class: "stack" });

const pools = (of) => table("Pools that machines are bought from", [
  ["Pool", { id: true }], ["Machines"], ["Nodes", { n: true }], ["Coming", { n: true }], ["GPUs", { n: true }], ["An hour", { n: true }], ["Limits", { hide: true }], ["Empty nodes go", { hide: true }],
], of.map((one) => ({
  key: one.name,
  cells: [h("span", {}, one.name, one.ready ? null : h("small", { class: "under bad" }, one.says || "not ready")),
    h("span", {}, one.types.length ? one.types.join(", ") + (one.moreTypes ? ` and ${one.moreTypes} more` : "") : "any type", one.sold.length ? h("small", { class: "under" }, one.sold.join(", ")) : null),
    count(one.nodes), count(one.coming), count(one.gpus), one.cost ? money(one.cost) : "–",
    Object.entries(one.limits).map(([name, amount]) => `${amount} ${name}`).join(", ") || "none",
    one.replicas !== null ? `stays at ${one.replicas}` : one.keeps < 0 ? "never" : one.keeps ? `after ${lasting(one.keeps)}` : "at once"],
})), { class: "stack" });

