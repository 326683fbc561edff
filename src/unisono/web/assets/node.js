// One node, device by device.

import { t } from "./language.js";
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
  const crumbs = h("nav", { class: "crumbs", "aria-label": t("Where this is") }, h("a", { href: "#/nodes" }, t("Nodes")), ` / ${rest[0]}`);
  if (one.denied) return [crumbs, heading(rest[0]), denied(one.denied)];
  if (one.absent) return [crumbs, heading(rest[0]), empty(t("Node not found"), t("It may have been removed."))];
  learn(one.jobs);
  claim(one.by);
  const about = [
    [t("GPUs"), one.gpus ? `${one.gpus} × ${one.model || "GPU"}` : t("none")], [t("Type"), one.type || "–"], [t("Capacity type"), one.sold || "–"], [t("Zone"), one.zone || "–"], [t("Pool"), one.pool || t("none")],
    [t("Price"), one.price ? t("{0} per hour", money(one.price)) : t("unknown")],
    [t("Created"), one.since ? `${clock(one.since)} (${ago(one.since)})` : "–"],
    [t("Provisioned for"), one.heldFor ? gangLink(one.heldFor) : null],
    [t("Idle, removed at"), one.idleUntil ? `${clock(one.idleUntil)} (${one.idleUntil > now() ? t("in {0}", lasting(one.idleUntil - now())) : t("now")})` : null],
  ];
  return [
    crumbs,
    heading(one.name, t("{0} of {1} in use", one.held, plural(one.gpus, "GPU")),
      h("span", { class: `chip ${one.bad ? "bad" : one.held ? "runs" : "over"}` }, one.bad || (one.held ? t("in use") : t("idle")))),
    one.gpus ? card(t("GPUs"), meter([[one.held, "held"]], one.gpus, t("{0} of {1} GPUs in use", one.held, one.gpus)), together(one.use), devices(one)) : null,
    actions({ target: "node", name: one.name, state: `${one.bad} ${one.closed}` }, context),
    h("div", { class: "two" },
      card(t("Pods"), model.order.length ? pods(model) : empty(t("No pods with GPUs"), "")),
      card(t("About"), h("dl", { class: "pairs" }, about.filter(([, value]) => value !== null).map(([name, value]) => [h("dt", {}, name), h("dd", {}, value)])),
        h("p", { class: "more" }, h("a", { href: "#/timeline?by=node" }, t("Nodes on the timeline"))))),
  ];
}

function together(some) {
  if (!some) return null;
  const said = [some.busy === null ? "" : t("{0} % busy", Math.round(some.busy)), some.used === null ? "" : `${gib(some.used)}${some.memory ? t(" of {0}", gib(some.memory)) : ""}`,
    some.hottest === null ? "" : t("up to {0} °C", Math.round(some.hottest)), some.watts === null ? "" : watts(some.watts)];
  return h("p", { class: "quiet below-meter" }, said.filter(Boolean).join(", "));
}

// GPU by GPU with what each does; without measurements those of one workload are one line.
function devices(one) {
  const isMeasured = one.devices.some((some) => some);
  const holder = (name) => (name ? gangLink(name) : h("span", { class: "quiet" }, one.bad ? t("out of service") : t("free")));
  if (!isMeasured) {
    const runs = [];
    one.by.forEach((name, at) => {
      const last = runs[runs.length - 1];
      if (last && last.name === name) last.until = at;
      else runs.push({ name, since: at, until: at });
    });
    return table(t("GPUs of this node"), [["GPU"], [t("Workload")]], runs.map(({ name, since, until }) => ({
      key: String(since), cells: [since === until ? t("GPU {0}", since) : t("GPU {0}–{1}", since, until), holder(name)],
    })));
  }
  return table(t("GPUs of this node"), [["GPU"], [t("Workload"), { wide: true }], [t("Busy")], [t("Memory"), { n: true }], [t("Temperature"), { n: true }], [t("Power"), { n: true }], [t("Last half hour"), { hide: true }]],
    one.by.map((name, at) => {
      const some = one.devices[at];
      const value = (found, write) => (some && found(some) !== null ? write(found(some)) : "–");
      return { key: String(at), cells: [t("GPU {0}", at), holder(name), some ? busy(some.busy) : "–", value((of) => of.used, gib),
        value((of) => of.hottest, (celsius) => h("span", { class: celsius >= 85 ? "chip bad" : null }, `${Math.round(celsius)} °C`)), value((of) => of.watts, watts),
        (some && spark(some.series.busy, 100, t("Utilisation of GPU {0} in the last half hour", at), true)) || ""] };
    }), { class: "stack" });
}

const pods = (model) => table(t("Pods with GPUs on this node"), [[t("Pod")], [t("Workload"), { hide: true }], [t("GPUs"), { n: true }], [t("Age"), { n: true }]],
  model.order.map((name) => {
    const pod = model.rows.get(name);
    return { key: name, cells: [h("span", { class: "pod" }, name), pod.gang ? gangLink(pod.gang) : "–", count(pod.gpus), ago(pod.since)] };
  }));
