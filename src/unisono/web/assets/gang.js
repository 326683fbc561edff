// One workload: its progress, why it waits and what would change that, its pods and their nodes.

import { t } from "./language.js";
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
  const crumbs = h("nav", { class: "crumbs", "aria-label": t("Where this is") }, h("a", { href: "#/workloads" }, t("Workloads")), ` / ${rest[0]} / ${rest[1]}`);
  if (one.absent) {
    return [crumbs, heading(rest[1]), empty(t("Workload not found"), t("It may have been deleted, or you have no access to its namespace."))];
  }
  return [
    crumbs,
    heading(one.job.slice(one.job.indexOf("/") + 1), t("{0}, user {1}, namespace {2}", one.job.split("/")[0], one.user, rest[0]), chip(one), elsewhere(one.panel)),
    card(t("Progress"), steps(one)),
    why(one),
    one.state === "over" ? null : actions({ target: "workload", namespace: rest[0], name: rest[1], state: `${one.state} ${one.stage} ${one.priority} ${one.local}` }, context),
    use(one, model),
    one.purchase ? purchase(one.purchase) : null,
    h("div", { class: "two" }, card(t("About"), about(one)), card(t("History"), history(one))),
    card(t("Pods"), members(model)),
    details({ namespace: rest[0], name: rest[1], pods: model.order }, context),
  ];
}

// ---- created → quota → nodes → start → running → finished ---------------------------------------------

function steps(one) {
  const at = one.times;
  const line = [
    [t("Created"), at.created], [t("Quota reserved"), at.quota], [t("Admitted"), at.nodes], [t("First pod started"), at.start || at.ready],
    [t("All pods ready"), at.ready], [t("Finished"), at.over],
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
      took ? h("small", {}, t("after {0}", took)) : null);
  }));
}

function next(one) {
  if (one.state === "waits" && one.start) return starts(one.start, one.promised);
  if (one.state === "runs") return one.limit ? t("by {0}", clock((one.times.nodes || one.times.quota) + one.limit)) : t("running");
  return t("pending");
}

// ---- why it waits ---------------------------------------------------------------------------------

function why(one) {
  if (one.state !== "waits") return null;
  const [namespace, name] = one.key.split("/");
  const root = one.rootCause;
  // What refuses in a flavor that was tried is among the ways already.
  const told = (fact) => root && root.ways.length > 1 && root.ways.some((text) => text.includes(fact.says));
  const facts = one.facts.length ? one.facts.filter((fact) => !told(fact)) : [{ fact: "", says: one.says || t("Not evaluated yet."), changes: one.changes.join("; ") }];
  const place = one.place ? t("Position {0} of {1} in queue {2}. ", count(one.place), count(one.inLine), one.queue) : "";
  return h("section", { class: "card why", "aria-label": t("Why it waits") },
    h("h2", {}, t("Why it waits")),
    root ? cause(root) : null,
    facts.length ? h("ul", { class: root ? "facts below-root" : "facts" }, facts.map((fact) => h("li", { "data-key": fact.says },
      h("p", { class: "says" }, plain(fact.says)),
      fact.changes ? h("p", { class: "changes" }, h("b", {}, t("To change that: ")), plain(fact.changes)) : null))) : null,
    h("p", { class: "estimate" }, place, h("b", {}, start(one, root)),
      one.start ? (one.promised ? t("Reserved: backfill does not delay it.") : t("An estimate: no resources are reserved.")) : guess(root)),
    h("p", { class: "quiet" }, t("In a terminal: "), command(`unisono why workload/${name} -n ${namespace}`)));
}

function start(one, root) {
  if (one.start) return t("Starts {0}. ", starts(one.start, one.promised));
  if (root && root.verdict === "never") return t("Never in this cluster as it is. ");
  return root && root.startsBy > now() ? t("Starts {0}. ", starts(root.startsBy, true)) : t("Start time unknown. ");
}

// What a start without an estimate depends on.
function guess(root) {
  if (!root || root.verdict === "never") return "";
  if (root.startsBy > now()) return t("At the latest, if no other workload goes first.");
  return root.endless ? t("An estimate needs time limits on the running workloads.") : "";
}

// The root cause first; then all of it, if the sentence names only some; then every flavor that was tried.
function cause(root) {
  const rest = root.inTheWay.length > 3 || root.more ? root.inTheWay : [];
  return h("div", { class: "root" },
    h("p", { class: "says" }, plain(root.says)),
    rest.length ? h("details", { "data-key": "all" }, h("summary", {}, t("All {0} that are in the way", count(rest.length + root.more))),
      h("ul", {}, rest.map((text) => h("li", {}, plain(text))), root.more ? h("li", {}, t("and {0} more", count(root.more))) : null)) : null,
    root.ways.length > 1 ? [h("h3", {}, t("Tried")), h("ul", { class: "ways" }, root.ways.map((text) => h("li", {}, plain(text))))] : null);
}

function purchase(one) {
  const machines = one.machines.map((some) => `${some.count} × ${some.type} (${some.sold}, ${some.zone})`).join(", ");
  return card(t("Provisioned machines"), h("p", {}, t("{0}, {1} per hour in total.", machines, money(one.price))),
    h("p", { class: "quiet" }, one.ready ? t("All are ready.") : one.readyBy > now() ? t("On their way; expected by {0}.", clock(one.readyBy)) : t("On their way; late, expected at {0}.", clock(one.readyBy))));
}

// ---- what its GPUs do -----------------------------------------------------------------------------

function use(one, model) {
  const { use: some } = one;
  if (!some) return null;
  const { series } = some;
  const slow = [...model.rows].filter(([, pod]) => pod.slower);
  const part = (name, value, line, more) => h("li", {}, h("span", { class: "name" }, name), h("b", {}, value), more ? h("small", { class: "quiet" }, more) : null, line);
  return h("section", { class: some.idle || slow.length ? "card alarm" : "card", "aria-label": t("GPUs in use") },
    h("h2", {}, t("GPUs"), h("small", {}, t("{0}, now and in the last half hour", plural(some.devices, "GPU")))),
    some.idle ? h("p", { class: "warned" }, t("Idle: its GPUs did nothing for ten minutes. Cancel it, or look at its logs.")) : null,
    slow.length ? h("p", { class: "warned" }, t("Held up by {0}{1}.", slow.slice(0, 3).map(([name, pod]) => t("{0} (its steps take {1} times as long)", name, pod.slower)).join(", "), slow.length > 3 ? t(" and {0} more", slow.length - 3) : "")) : null,
    h("ul", { class: "use" },
      some.busy === null ? null : part(t("Utilisation"), `${Math.round(some.busy)} %`, spark(series.busy, 100, t("Utilisation in the last half hour")), t("least busy GPU {0} %", Math.round(some.least))),
      some.used === null ? null : part(t("Memory"), gib(some.used), spark(series.used, some.memory || undefined, t("Memory in the last half hour")), some.memory ? t("of {0}", gib(some.memory)) : ""),
      some.hottest === null ? null : part(t("Temperature"), `${Math.round(some.hottest)} °C`, spark(series.celsius, 100, t("Temperature in the last half hour")), t("the hottest GPU")),
      some.watts === null ? null : part(t("Power"), watts(some.watts), spark(series.watts, undefined, t("Power in the last half hour")), t("all GPUs"))));
}

// ---- about ----------------------------------------------------------------------------------------

function about(one) {
  const asks = one.asks.map((some) => h("div", {}, `${some.name}: ${plural(some.pods, "pod")}`,
    h("small", {}, Object.entries(some.each).map(([name, amount]) => plain(`${amount} ${name}`)).join(", ") || t("no requests"))));
  const entries = [
    [t("Queue"), h("span", {}, queueLink(one.queue), one.local && one.local !== one.queue ? h("small", {}, t("LocalQueue {0}", one.local)) : null)], [t("GPUs"), count(one.gpus)], [t("Requests"), asks.length ? asks : plural(one.pods, "pod")],
    [t("Priority"), count(one.priority)],
    [t("Time limit"), one.limit ? lasting(one.limit) : t("none")],
    [t("Progress"), one.progress ? t("step {0}{1}", count(one.progress.step), one.progress.total ? t(" of {0}", count(one.progress.total)) : "") : null],
    [t("Nodes"), one.places.length ? placesOf(one.places) : null],
  ];
  return h("dl", { class: "pairs" }, entries.filter(([, value]) => value !== null).map(([name, value]) => [h("dt", {}, name), h("dd", {}, value)]));
}

function placesOf(places) {
  const shown = places.slice(0, 8);
  return h("ul", { class: "places" }, shown.map((one) => h("li", {}, nodeLink(one.node), ` ${plural(one.pods, "pod")}`)),
    places.length > shown.length ? h("li", {}, t("and {0} more", places.length - shown.length)) : null);
}

function history(one) {
  const evictions = one.evictions.reduce((sum, some) => sum + some.count, 0);
  const entries = [
    [t("Restarts"), count(one.restarts || 0)],
    [t("Evictions"), evictions ? one.evictions.map((some) => `${count(some.count)} ${some.reason}`).join(", ") : "0"],
  ];
  if (one.lastEviction && evictions) entries.push([t("Last eviction"), one.lastEviction]);
  if (one.ended) entries.push([t("Result"), one.ended]);
  const span = Math.max(3600, Math.ceil((now() - one.times.created) * 1.3));
  return [
    h("dl", { class: "pairs" }, entries.map(([name, value]) => [h("dt", {}, name), h("dd", {}, value)])),
    h("p", { class: "more" }, h("a", { href: `#/timeline?queue=${encodeURIComponent(one.queue)}&span=${span}` }, t("Show on the timeline"))),
  ];
}

const PHASES = { Pending: t("pending"), Running: t("running"), Succeeded: t("succeeded"), Failed: t("failed"), Unknown: t("unknown") };

// ---- members --------------------------------------------------------------------------------------

function members(model) {
  const one = model.head;
  const isMeasured = [...model.rows.values()].some((pod) => pod.use);
  if (!one.members) return empty(t("No pods"), one.state === "waits" ? t("Pods are created together once the whole gang is placed.") : "");
  const phases = Object.entries(one.phases).map(([phase, amount]) => `${count(amount)} ${PHASES[phase] || phase.toLowerCase()}`).join(", ");
  if (!model.order.length) return empty(`${plural(one.members, "pod")}: ${phases}`, t("You have no permission to list pods in this namespace."));
  return [
    h("p", { class: "quiet" }, `${plural(one.members, "pod")}: ${phases}${one.members > model.order.length ? t("; the first {0} are shown", model.order.length) : ""}`),
    table(t("Pods of the workload"), [[t("Pod")], [t("Node")], [t("State")], [t("GPUs"), { n: true }], ...(isMeasured ? [[t("Busy")], [t("Memory"), { n: true, hide: true }], [t("Hottest"), { n: true, hide: true }], [t("Power"), { n: true, hide: true }], [t("Last half hour"), { hide: true }]] : []), [t("Age"), { n: true }]],
      model.order.map((name) => {
        const pod = model.rows.get(name);
        return { key: name, cells: [h("span", { class: "pod" }, name), nodeLink(pod.node), h("span", { class: `chip ${phaseKind(pod)}` }, phaseWord(pod), pod.slower ? t(" · {0} × slower", pod.slower) : ""), count(pod.gpus), ...(isMeasured ? measured(pod.use) : []), ago(pod.since)], kind: pod.slower ? "slow" : null };
      }), { class: "stack" }),
  ];
}

function measured(some) {
  if (!some) return ["–", "–", "–", "–", ""];
  return [busy(some.busy), some.used === null ? "–" : gib(some.used), some.hottest === null ? "–" : `${Math.round(some.hottest)} °C`,
    some.watts === null ? "–" : watts(some.watts), spark(some.series.busy, 100, t("Utilisation in the last half hour"), true) || ""];
}

const phaseWord = (pod) => (pod.phase === "Running" && !pod.ready ? t("running, not ready") : PHASES[pod.phase] || pod.phase.toLowerCase());
const phaseKind = (pod) => ({ Running: pod.ready ? "runs" : "starts", Pending: "waits", Failed: "bad" })[pod.phase] || "over";

