// Nodes with their prices and holders, pools that machines are bought from, machines on their way.

import { t } from "./language.js";
import { claim } from "./colours.js";
import { h } from "./dom.js";
import { rowsOf } from "./live.js";
import { busy, card, denied, empty, figure, figures, gangLink, heading, learn, nodeLink, pager, search, table } from "./parts.js";
import { ago, count, lasting, money, now, plural } from "./words.js";

export const title = () => t("Nodes");

export function ask({ query }) {
  const made = { page: "nodes" };
  if (query.get("q")) made.q = query.get("q");
  if (query.get("page")) made.at = query.get("page");
  return made;
}

export function draw(model, { query, change }) {
  const { head } = model;
  if (head.denied) return [heading(t("Nodes")), denied(head.denied)];
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
    heading(t("Nodes"), t("{0} with {1}", plural(head.nodes, "node"), plural(head.gpus, "GPU"))),
    head.cost ? figures(figure(money(head.cost), t("per hour, all nodes")),
      figure(money(head.idleCost), t("per hour for idle nodes"), head.idleCost ? "warn" : ""),
      figure(money(head.cost * 730), t("per month at this rate"))) : null,
    head.claims.length ? card(t("NodeClaims"), claims(head.claims)) : null,
    head.pools.length ? card(t("NodePools"), pools(head.pools)) : null,
    h("div", { class: "tools" }, search(t("Filter by name, type, zone, pool (press /)"), query.get("q") || "", (q) => change({ q, page: null }))),
    rows.length ? h("div", { class: "card flush" }, list(rows, head))
      : empty(query.get("q") ? t("No match") : t("No nodes"), query.get("q") ? t("Try fewer letters.") : t("Nodes appear here when they join the cluster or are provisioned.")),
    pager(head, to),
  ];
}

const list = (rows, head, isMeasured = rows.some((one) => one.busy !== undefined)) => table(plural(head.found, "node"), [
  [t("Node"), { id: true }], [t("Type"), { id: true }], [t("Zone"), { id: true, hide: true }], [t("GPUs in use"), { n: true }], ...(isMeasured ? [[t("Busy")], [t("Hottest"), { n: true, hide: true }]] : []), [t("Workloads"), { wide: true }], [t("Price"), { n: true }], [t("State")],
], rows.map((one) => ({
  key: one.name,
  cells: [nodeLink(one.name), h("span", {}, one.type || "–", one.sold ? h("small", { class: "under" }, one.sold) : null), h("span", {}, one.zone || "–", one.pool ? h("small", { class: "under" }, one.pool) : null),
    one.gpus ? t("{0} of {1}", one.held, one.gpus) : "–", ...(isMeasured ? [busy(one.busy), one.hottest === undefined || one.hottest === null ? "–" : `${Math.round(one.hottest)} °C`] : []), holders(one.by), one.price ? money(one.price) : "–", state(one)],
})), { class: "stack" });

function holders(by) {
  if (!by.length) return h("span", { class: "quiet" }, "–");
  const shown = by.slice(0, 3);
  return h("ul", { class: "holders" }, shown.map(([holder, amount]) => h("li", {}, gangLink(holder), h("small", { class: "quiet" }, ` ${plural(amount, "GPU")}`))),
    by.length > shown.length ? h("li", {}, t("and {0} more", by.length - shown.length)) : null);
}

function state(one) {
  if (one.bad) return h("span", { class: "chip bad" }, one.bad);
  if (one.idleUntil) return h("span", { class: "chip over" }, one.idleUntil > now() ? t("idle, removed in {0}", lasting(one.idleUntil - now())) : t("idle, being removed"));
  if (one.idle) return h("span", { class: "chip over" }, t("idle"));
  return h("span", { class: "chip runs" }, one.gpus ? t("in use") : t("ready"));
}

const STATES = { launching: ["starts", t("launching")], launched: ["starts", t("launched")], ready: ["runs", t("ready, held")], refused: ["bad", t("failed")], going: ["over", t("terminating")] };

const claims = (of) => table(t("NodeClaims that are launching, held, failed or terminating"), [
  [t("NodeClaim"), { id: true }], [t("Type"), { id: true }], [t("Zone"), { id: true, hide: true }], [t("Workload"), { wide: true }], [t("Price"), { n: true }], [t("Age"), { n: true }], [t("State"), { wide: true }],
], of.map((one) => ({
  key: one.name,
  cells: [one.name, h("span", {}, one.type, h("small", { class: "under" }, `${one.pool}, ${one.sold}`)), one.zone, one.for ? gangLink(one.for) : "–",
    one.price ? money(one.price) : "–", ago(one.since),
    h("div", {}, h("span", { class: `chip ${STATES[one.state][0]}` }, STATES[one.state][1]), one.says ? h("p", { class: "quiet" }, one.says) : null)],
})), { class: "stack" });

const pools = (of) => table(t("NodePools"), [
  [t("NodePool"), { id: true }], [t("Instance types")], [t("Nodes"), { n: true }], [t("Launching"), { n: true }], [t("GPUs"), { n: true }], [t("Per hour"), { n: true }], [t("Limits"), { hide: true }], [t("Consolidate after"), { hide: true }],
], of.map((one) => ({
  key: one.name,
  cells: [h("span", {}, one.name, one.ready ? null : h("small", { class: "under bad" }, one.says || t("not ready"))),
    h("span", {}, one.types.length ? one.types.join(", ") + (one.moreTypes ? t(" and {0} more", one.moreTypes) : "") : t("any type"), one.sold.length ? h("small", { class: "under" }, one.sold.join(", ")) : null),
    count(one.nodes), count(one.coming), count(one.gpus), one.cost ? money(one.cost) : "–",
    Object.entries(one.limits).map(([name, amount]) => `${amount} ${name}`).join(", ") || t("none"),
    one.replicas !== null ? t("static, {0} nodes", one.replicas) : one.keeps < 0 ? t("never") : one.keeps ? lasting(one.keeps) : t("at once")],
})), { class: "stack" });

