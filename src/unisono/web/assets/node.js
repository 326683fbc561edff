// One node, device by device.

import { actions } from "./actions.js";
import { h } from "./dom.js";
import { card, denied, empty, gangLink, heading, meter, table } from "./parts.js";
import { ago, clock, count, lasting, money, now, plural } from "./words.js";

export const title = ({ rest }) => rest[0];

export const ask = ({ rest }) => ({ page: "node", name: rest[0] });

export function draw(model, context) {
  const { rest } = context;
  const one = model.head;
  const crumbs = h("nav", { class: "crumbs", "aria-label": "Where this is" }, h("a", { href: "#/nodes" }, "Nodes"), ` / ${rest[0]}`);
  if (one.denied) return [crumbs, heading(rest[0]), denied(one.denied)];
  if (one.absent) return [crumbs, heading(rest[0]), empty("Node not found", "It may have been removed.")];
  const about = [
    ["GPUs", one.gpus ? `${one.gpus} × ${one.model || "GPU"}` : "none"], ["Type", one.type || "–"], ["Capacity type", one.sold || "–"], ["Zone", one.zone || "–"], ["Pool", one.pool || "none"],
    ["Price", one.price ? `${money(one.price)} per hour` : "unknown"],
    ["Created", one.since ? `${clock(one.since)} (${ago(one.since)})` : "–"],
    ["Provisioned for", one.heldFor ? gangLink(one.heldFor) : null],
    ["Idle, removed at", one.idleUntil ? `${clock(one.idleUntil)} (${one.idleUntil > now() ? `in ${lasting(one.idleUntil - now())}` : "now"})` : null],
  ];
  return [
    crumbs,
    heading(one.name, `${one.held} of ${plural(one.gpus, "GPU")} in use`,
      h("span", { class: `chip ${one.bad ? "bad" : one.held ? "runs" : "over"}` }, one.bad || (one.held ? "in use" : "idle"))),
    one.gpus ? card("GPUs", meter([[one.held, "held"]], one.gpus, `${one.held} of ${one.gpus} GPUs in use`), devices(one)) : null,
    actions({ target: "node", name: one.name, state: `${one.bad} ${one.closed}` }, context),
    h("div", { class: "two" },
      card("Pods", model.order.length ? pods(model) : empty("No pods with GPUs", "")),
      card("About", h("dl", { class: "pairs" }, about.filter(([, value]) => value !== null).map(([name, value]) => [h("dt", {}, name), h("dd", {}, value)])),
        h("p", { class: "more" }, h("a", { href: "#/timeline?by=node" }, "Nodes on the timeline")))),
  ];
}

const devices = (one) => table("GPUs of this node", [["GPU"], ["Workload"]],
  one.by.map((holder, at) => ({ key: String(at), cells: [`GPU ${at}`, holder ? gangLink(holder) : h("span", { class: "quiet" }, one.bad ? "out of service" : "free")] })));

const pods = (model) => table("Pods with GPUs on this node", [["Pod"], ["Workload", { hide: true }], ["GPUs", { n: true }], ["Age", { n: true }]],
  model.order.map((name) => {
    const pod = model.rows.get(name);
    return { key: name, cells: [h("span", { class: "pod" }, name), pod.gang ? gangLink(pod.gang) : "–", count(pod.gpus), ago(pod.since)] };
  }));
