// Nodes with their prices and holders, pools that machines are bought from, machines on their way.

import { claim } from "./colours.js";
import { h } from "./dom.js";
import { rowsOf } from "./live.js";
import { busy, card, denied, empty, figure, figures, gangLink, heading, learn, nodeLink, pager, search, table } from "./parts.js";
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
  for (const row of rows) learn(row.jobs);
  claim(rows.flatMap((one) => one.by.map(([holder]) => holder)));
  const to = (page) => {
    const made = new URLSearchParams(query);
    if (page > 1) made.set("page", page);
    else made.delete("page");
    return `#/nodes${made.toString() ? `?${made}` : ""}`;
  };
  return [
    heading("Nodes", `${plural(head.nodes, "node")} with ${plural(head.gpus, "GPU")}`),
    head.cost ? figures(figure(money(head.cost), "per hour, all nodes"),
      figure(money(head.idleCost), "per hour for idle nodes", head.idleCost ? "warn" : ""),
      figure(money(head.cost * 730), "per month at this rate")) : null,
    head.claims.length ? card("NodeClaims", claims(head.claims)) : null,
    head.pools.length ? card("NodePools", pools(head.pools)) : null,
    h("div", { class: "tools" }, search("Filter by name, type, zone, pool (press /)", query.get("q") || "", (q) => change({ q, page: null }))),
    rows.length ? h("div", { class: "card flush" }, list(rows, head))
      : empty(query.get("q") ? "No match" : "No nodes", query.get("q") ? "Try fewer letters." : "Nodes appear here when they join the cluster or are provisioned."),
    pager(head, to),
  ];
}

const list = (rows, head, isMeasured = rows.some((one) => one.busy !== undefined)) => table(plural(head.found, "node"), [
  ["Node", { id: true }], ["Type", { id: true }], ["Pool", { id: true, hide: true }], ["Zone", { id: true, hide: true }], ["GPUs in use", { n: true }], ...(isMeasured ? [["Busy"], ["Hottest", { n: true, hide: true }]] : []), ["Workloads", { wide: true }], ["Price", { n: true }], ["State"],
], rows.map((one) => ({
  key: one.name,
  cells: [nodeLink(one.name), h("span", {}, one.type || "–", one.sold ? h("small", { class: "under" }, one.sold) : null), one.pool || "–", one.zone || "–",
    one.gpus ? `${one.held} of ${one.gpus}` : "–", ...(isMeasured ? [busy(one.busy), one.hottest === undefined || one.hottest === null ? "–" : `${Math.round(one.hottest)} °C`] : []), holders(one.by), one.price ? money(one.price) : "–", state(one)],
})), { class: "stack" });

function holders(by) {
  if (!by.length) return h("span", { class: "quiet" }, "–");
  const shown = by.slice(0, 3);
  return h("ul", { class: "holders" }, shown.map(([holder, amount]) => h("li", {}, gangLink(holder), h("small", { class: "quiet" }, ` ${plural(amount, "GPU")}`))),
    by.length > shown.length ? h("li", {}, `and ${by.length - shown.length} more`) : null);
}

function state(one) {
  if (one.bad) return h("span", { class: "chip bad" }, one.bad);
  if (one.idleUntil) return h("span", { class: "chip over" }, one.idleUntil > now() ? `idle, removed in ${lasting(one.idleUntil - now())}` : "idle, being removed");
  if (one.idle) return h("span", { class: "chip over" }, "idle");
  return h("span", { class: "chip runs" }, one.gpus ? "in use" : "ready");
}

const STATES = { launching: ["starts", "launching"], launched: ["starts", "launched"], ready: ["runs", "ready, held"], refused: ["bad", "failed"], going: ["over", "terminating"] };

const claims = (of) => table("NodeClaims that are launching, held, failed or terminating", [
  ["NodeClaim", { id: true }], ["Type", { id: true }], ["Zone", { id: true, hide: true }], ["Workload", { wide: true }], ["Price", { n: true }], ["Age", { n: true }], ["State", { wide: true }],
], of.map((one) => ({
  key: one.name,
  cells: [one.name, h("span", {}, one.type, h("small", { class: "under" }, `${one.pool}, ${one.sold}`)), one.zone, one.for ? gangLink(one.for) : "–",
    one.price ? money(one.price) : "–", ago(one.since),
    h("div", {}, h("span", { class: `chip ${STATES[one.state][0]}` }, STATES[one.state][1]), one.says ? h("p", { class: "quiet" }, one.says) : null)],
})), { class: "stack" });

const pools = (of) => table("NodePools", [
  ["NodePool", { id: true }], ["Instance types"], ["Nodes", { n: true }], ["Launching", { n: true }], ["GPUs", { n: true }], ["Per hour", { n: true }], ["Limits", { hide: true }], ["Consolidate after", { hide: true }],
], of.map((one) => ({
  key: one.name,
  cells: [h("span", {}, one.name, one.ready ? null : h("small", { class: "under bad" }, one.says || "not ready")),
    h("span", {}, one.types.length ? one.types.join(", ") + (one.moreTypes ? ` and ${one.moreTypes} more` : "") : "any type", one.sold.length ? h("small", { class: "under" }, one.sold.join(", ")) : null),
    count(one.nodes), count(one.coming), count(one.gpus), one.cost ? money(one.cost) : "–",
    Object.entries(one.limits).map(([name, amount]) => `${amount} ${name}`).join(", ") || "none",
    one.replicas !== null ? `static, ${one.replicas} nodes` : one.keeps < 0 ? "never" : one.keeps ? lasting(one.keeps) : "at once"],
})), { class: "stack" });

