// One node, device by device.

import { actions } from "./actions.js";
import { claim } from "./colours.js";
import { h } from "./dom.js";
import { busy, card, denied, empty, gangLink, heading, learn, meter, spark, table } from "./parts.js";
import { ago, clock, count, gib, lasting, money, now, plural, watts } from "./words.js";

export const title = ({ rest }) => rest[0];

export const ask = ({ rest }) => ({ page: "node", name: rest[0] });

export function draw(model, context) {
  const { rest } = context;
  const one = model.head;
  const crumbs = h("nav", { class: "crumbs", "aria-label": "Where this is" }, h("a", { href: "#/nodes" }, "Nodes"), ` / ${rest[0]}`);
  if (one.denied) return [crumbs, heading(rest[0]), denied(one.denied)];
  if (one.absent) return [crumbs, heading(rest[0]), empty("Node not found", "It may have been removed.")];
  learn(one.jobs);
  claim(one.by);
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
    one.gpus ? card("GPUs", meter([[one.held, "held"]], one.gpus, `${one.held} of ${one.gpus} GPUs in use`), together(one.use), devices(one)) : null,
    actions({ target: "node", name: one.name, state: `${one.bad} ${one.closed}` }, context),
    h("div", { class: "two" },
      card("Pods", model.order.length ? pods(model) : empty("No pods with GPUs", "")),
      card("About", h("dl", { class: "pairs" }, about.filter(([, value]) => value !== null).map(([name, value]) => [h("dt", {}, name), h("dd", {}, value)])),
        h("p", { class: "more" }, h("a", { href: "#/timeline?by=node" }, "Nodes on the timeline")))),
  ];
}

function together(some) {
  if (!some) return null;
  const said = [some.busy === null ? "" : `${Math.round(some.busy)} % busy`, some.used === null ? "" : `${gib(some.used)}${some.memory ? ` of ${gib(some.memory)}` : ""}`,
    some.hottest === null ? "" : `up to ${Math.round(some.hottest)} °C`, some.watts === null ? "" : watts(some.watts)];
  return h("p", { class: "quiet below-meter" }, said.filter(Boolean).join(", "));
}

// GPU by GPU with what each does; without measurements those of one workload are one line.
function devices(one) {
  const isMeasured = one.devices.some((some) => some);
  const holder = (name) => (name ? gangLink(name) : h("span", { class: "quiet" }, one.bad ? "out of service" : "free"));
  if (!isMeasured) {
    const runs = [];
    one.by.forEach((name, at) => {
      const last = runs[runs.length - 1];
      if (last && last.name === name) last.until = at;
      else runs.push({ name, since: at, until: at });
    });
    return table("GPUs of this node", [["GPU"], ["Workload"]], runs.map(({ name, since, until }) => ({
      key: String(since), cells: [since === until ? `GPU ${since}` : `GPU ${since}–${until}`, holder(name)],
    })));
  }
  return table("GPUs of this node", [["GPU"], ["Workload", { wide: true }], ["Busy"], ["Memory", { n: true }], ["Temperature", { n: true }], ["Power", { n: true }], ["Last half hour", { hide: true }]],
    one.by.map((name, at) => {
      const some = one.devices[at];
      const value = (found, write) => (some && found(some) !== null ? write(found(some)) : "–");
      return { key: String(at), cells: [`GPU ${at}`, holder(name), some ? busy(some.busy) : "–", value((of) => of.used, gib),
        value((of) => of.hottest, (celsius) => h("span", { class: celsius >= 85 ? "chip bad" : null }, `${Math.round(celsius)} °C`)), value((of) => of.watts, watts),
        (some && spark(some.series.busy, 100, `Utilisation of GPU ${at} in the last half hour`, true)) || ""] };
    }), { class: "stack" });
}

const pods = (model) => table("Pods with GPUs on this node", [["Pod"], ["Workload", { hide: true }], ["GPUs", { n: true }], ["Age", { n: true }]],
  model.order.map((name) => {
    const pod = model.rows.get(name);
    return { key: name, cells: [h("span", { class: "pod" }, name), pod.gang ? gangLink(pod.gang) : "–", count(pod.gpus), ago(pod.since)] };
  }));
