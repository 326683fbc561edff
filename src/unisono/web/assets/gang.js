// One workload: its progress, why it waits and what would change that, its pods and their nodes.

import { actions } from "./actions.js";
import { claim } from "./colours.js";
import { details } from "./details.js";
import { h } from "./dom.js";
import { busy, card, chip, command, elsewhere, empty, heading, nodeLink, queueLink, spark, table } from "./parts.js";
import { ago, clock, count, gib, lasting, money, now, plain, plural, starts, watts } from "./words.js";

export const title = ({ rest }) => rest[1];

export const ask = ({ rest }) => ({ page: "gang", namespace: rest[0], name: rest[1] });

export function draw(model, context) {
  const { rest } = context;
  const one = model.head;
  if (one.state === "runs" || one.state === "starts") claim([one.key]);
  const crumbs = h("nav", { class: "crumbs", "aria-label": "Where this is" }, h("a", { href: "#/workloads" }, "Workloads"), ` / ${rest[0]} / ${rest[1]}`);
  if (one.absent) {
    return [crumbs, heading(rest[1]), empty("Workload not found", "It may have been deleted, or you have no access to its namespace.")];
  }
  return [
    crumbs,
    heading(one.job.slice(one.job.indexOf("/") + 1), `${one.job.split("/")[0]}, user ${one.user}, namespace ${rest[0]}`, chip(one), elsewhere(one.panel)),
    card("Progress", steps(one)),
    why(one),
    one.state === "over" ? null : actions({ target: "workload", namespace: rest[0], name: rest[1], state: `${one.state} ${one.stage} ${one.priority} ${one.local}` }, context),
    use(one, model),
    one.purchase ? purchase(one.purchase) : null,
    h("div", { class: "two" }, card("About", about(one)), card("History", history(one))),
    card("Pods", members(model)),
    details({ namespace: rest[0], name: rest[1], pods: model.order }, context),
  ];
}

// ---- created → quota → nodes → start → running → finished ---------------------------------------------

function steps(one) {
  const at = one.times;
  const line = [
    ["Created", at.created], ["Quota reserved", at.quota], ["Admitted", at.nodes], ["First pod started", at.start || at.ready],
    ["All pods ready", at.ready], ["Finished", at.over],
  ];
  const done = line.filter(([, when]) => when).length;
  let before = 0;
  return h("ol", { class: "steps" }, line.map(([name, when], number) => {
    const took = when && before ? lasting(when - before) : "";
    if (when) before = when;
    const isNext = number === done && one.state !== "over";
    const state = when ? "done" : isNext ? "next" : "";
    return h("li", { class: state, "data-key": name, "aria-current": isNext ? "step" : null },
      h("b", {}, name),
      h("span", {}, when ? clock(when, true) : isNext ? next(one) : "–"),
      took ? h("small", {}, `after ${took}`) : null);
  }));
}

function next(one) {
  if (one.state === "waits" && one.start) return starts(one.start, one.promised);
  if (one.state === "runs") return one.limit ? `by ${clock((one.times.nodes || one.times.quota) + one.limit)}` : "running";
  return "pending";
}

// ---- why it waits ---------------------------------------------------------------------------------

function why(one) {
  if (one.state !== "waits") return null;
  const [namespace, name] = one.key.split("/");
  const root = one.rootCause;
  const facts = one.facts.length ? one.facts : [{ fact: "", says: one.says || "Not evaluated yet.", changes: one.changes.join("; ") }];
  const place = one.place ? `Position ${count(one.place)} of ${count(one.inLine)} in queue ${one.queue}. ` : "";
  return h("section", { class: "card why", "aria-label": "Why it waits" },
    h("h2", {}, "Why it waits"),
    root ? cause(root) : null,
    h("ul", { class: root ? "facts below-root" : "facts" }, facts.map((fact) => h("li", { "data-key": fact.says },
      h("p", { class: "says" }, plain(fact.says)),
      fact.changes ? h("p", { class: "changes" }, h("b", {}, "To change that: "), plain(fact.changes)) : null))),
    h("p", { class: "estimate" }, place, h("b", {}, one.start ? `Starts ${starts(one.start, one.promised)}. ` : "Start time unknown. "),
      one.start ? (one.promised ? "Reserved: backfill does not delay it." : "An estimate: no resources are reserved.") : "An estimate needs time limits on the running workloads."),
    h("p", { class: "quiet" }, "In a terminal: ", command(`unisono why workload/${name} -n ${namespace}`)));
}

// The root cause first; then all of it, if the sentence names only some; then every flavor that was tried.
function cause(root) {
  const rest = root.inTheWay.length > 3 || root.more ? root.inTheWay : [];
  return h("div", { class: "root" },
    h("p", { class: "says" }, plain(root.says)),
    rest.length ? h("details", { "data-key": "all" }, h("summary", {}, `All ${count(rest.length + root.more)} that are in the way`),
      h("ul", {}, rest.map((text) => h("li", {}, plain(text))), root.more ? h("li", {}, `and ${count(root.more)} more`) : null)) : null,
    root.ways.length > 1 ? [h("h3", {}, "Tried"), h("ul", { class: "ways" }, root.ways.map((text, at) => h("li", {}, plain(text), at === root.nearest ? h("span", { class: "tag" }, "nearest") : null)))] : null);
}

function purchase(one) {
  const machines = one.machines.map((some) => `${some.count} × ${some.type} (${some.sold}, ${some.zone})`).join(", ");
  return card("Provisioned machines", h("p", {}, `${machines}, ${money(one.price)} per hour in total.`),
    h("p", { class: "quiet" }, one.phase === "Ready" ? "All are ready." : `${one.phase}; expected by ${clock(one.readyBy)}.`));
}

// ---- what its GPUs do -----------------------------------------------------------------------------

function use(one, model) {
  const { use: some } = one;
  if (!some) return null;
  const { series } = some;
  const slow = [...model.rows].filter(([, pod]) => pod.slower);
  const part = (name, value, line, more) => h("li", {}, h("span", { class: "name" }, name), h("b", {}, value), more ? h("small", { class: "quiet" }, more) : null, line);
  return h("section", { class: some.idle || slow.length ? "card alarm" : "card", "aria-label": "GPUs in use" },
    h("h2", {}, "GPUs", h("small", {}, `${plural(some.devices, "GPU")}, now and in the last half hour`)),
    some.idle ? h("p", { class: "warned" }, `Idle: its GPUs did nothing for ten minutes. Cancel it, or look at its logs.`) : null,
    slow.length ? h("p", { class: "warned" }, `Held up by ${slow.slice(0, 3).map(([name, pod]) => `${name} (its steps take ${pod.slower} times as long)`).join(", ")}${slow.length > 3 ? ` and ${slow.length - 3} more` : ""}.`) : null,
    h("ul", { class: "use" },
      some.busy === null ? null : part("Utilisation", `${Math.round(some.busy)} %`, spark(series.busy, 100, "Utilisation in the last half hour"), `least busy GPU ${Math.round(some.least)} %`),
      some.used === null ? null : part("Memory", gib(some.used), spark(series.used, some.memory || undefined, "Memory in the last half hour"), some.memory ? `of ${gib(some.memory)}` : ""),
      some.hottest === null ? null : part("Temperature", `${Math.round(some.hottest)} °C`, spark(series.celsius, 100, "Temperature in the last half hour"), "the hottest GPU"),
      some.watts === null ? null : part("Power", watts(some.watts), spark(series.watts, undefined, "Power in the last half hour"), "all GPUs")));
}

// ---- about ----------------------------------------------------------------------------------------

function about(one) {
  const asks = one.asks.map((some) => h("div", {}, `${plural(some.pods, "pod")} of ${some.name}`,
    h("small", {}, Object.entries(some.each).map(([name, amount]) => plain(`${amount} ${name}`)).join(", ") || "no requests")));
  const entries = [
    ["Queue", h("span", {}, queueLink(one.queue), one.local && one.local !== one.queue ? h("small", {}, `LocalQueue ${one.local}`) : null)], ["GPUs", count(one.gpus)], ["Requests", asks.length ? asks : plural(one.pods, "pod")],
    ["Priority", count(one.priority)],
    ["Time limit", one.limit ? lasting(one.limit) : "none"],
    ["Progress", one.progress ? `step ${count(one.progress.step)}${one.progress.total ? ` of ${count(one.progress.total)}` : ""}` : null],
    ["Nodes", one.places.length ? placesOf(one.places) : null],
  ];
  return h("dl", { class: "pairs" }, entries.filter(([, value]) => value !== null).map(([name, value]) => [h("dt", {}, name), h("dd", {}, value)]));
}

function placesOf(places) {
  const shown = places.slice(0, 8);
  return h("ul", { class: "places" }, shown.map((one) => h("li", {}, nodeLink(one.node), ` ${plural(one.pods, "pod")}`)),
    places.length > shown.length ? h("li", {}, `and ${places.length - shown.length} more`) : null);
}

function history(one) {
  const evictions = one.evictions.reduce((sum, some) => sum + some.count, 0);
  const entries = [
    ["Restarts", count(one.restarts || 0)],
    ["Evictions", evictions ? one.evictions.map((some) => `${count(some.count)} ${some.reason}`).join(", ") : "0"],
  ];
  if (one.lastEviction && evictions) entries.push(["Last eviction", one.lastEviction]);
  if (one.ended) entries.push(["Result", one.ended]);
  const span = Math.max(3600, Math.ceil((now() - one.times.created) * 1.3));
  return [
    h("dl", { class: "pairs" }, entries.map(([name, value]) => [h("dt", {}, name), h("dd", {}, value)])),
    h("p", { class: "more" }, h("a", { href: `#/timeline?queue=${encodeURIComponent(one.queue)}&span=${span}` }, "Show on the timeline")),
  ];
}

// ---- members --------------------------------------------------------------------------------------

function members(model) {
  const one = model.head;
  const isMeasured = [...model.rows.values()].some((pod) => pod.use);
  if (!one.members) return empty("No pods", one.state === "waits" ? "Pods are created together once the whole gang is placed." : "");
  const phases = Object.entries(one.phases).map(([phase, amount]) => `${count(amount)} ${phase.toLowerCase()}`).join(", ");
  if (!model.order.length) return empty(`${plural(one.members, "pod")}: ${phases}`, "You have no permission to list pods in this namespace.");
  return [
    h("p", { class: "quiet" }, `${plural(one.members, "pod")}: ${phases}${one.members > model.order.length ? `; the first ${model.order.length} are shown` : ""}`),
    table("Pods of the workload", [["Pod"], ["Node"], ["State"], ["GPUs", { n: true }], ...(isMeasured ? [["Busy"], ["Memory", { n: true, hide: true }], ["Hottest", { n: true, hide: true }], ["Power", { n: true, hide: true }], ["Last half hour", { hide: true }]] : []), ["Age", { n: true }]],
      model.order.map((name) => {
        const pod = model.rows.get(name);
        return { key: name, cells: [h("span", { class: "pod" }, name), nodeLink(pod.node), h("span", { class: `chip ${phaseKind(pod)}` }, phaseWord(pod), pod.slower ? ` · ${pod.slower} × slower` : ""), count(pod.gpus), ...(isMeasured ? measured(pod.use) : []), ago(pod.since)], kind: pod.slower ? "slow" : null };
      }), { class: "stack" }),
  ];
}

function measured(some) {
  if (!some) return ["–", "–", "–", "–", ""];
  return [busy(some.busy), some.used === null ? "–" : gib(some.used), some.hottest === null ? "–" : `${Math.round(some.hottest)} °C`,
    some.watts === null ? "–" : watts(some.watts), spark(some.series.busy, 100, "Utilisation in the last half hour", true) || ""];
}

const phaseWord = (pod) => (pod.phase === "Running" && !pod.ready ? "running, not ready" : pod.phase.toLowerCase());
const phaseKind = (pod) => ({ Running: pod.ready ? "runs" : "starts", Pending: "waits", Failed: "bad" })[pod.phase] || "over";

