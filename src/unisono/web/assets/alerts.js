// Alerts that fire or soon will, the most urgent first; each with what it is about.

import { t } from "./language.js";
import { h } from "./dom.js";
import { rowsOf } from "./live.js";
import { elsewhere, empty, gangAddress, heading, nodeAddress } from "./parts.js";
import { ago, count, plural } from "./words.js";

export const title = () => t("Alerts");

export const ask = () => ({ page: "alerts" });

const SEVERITIES = { critical: "bad", warning: "waits", info: "over" };

export function draw(model) {
  const { head } = model;
  if (head.absent) {
    return [heading(t("Alerts")), empty(t("No alerts are evaluated here"), t("They come from a Prometheus with the rules of Unisono:"), "unisono controller --prometheus URL")];
  }
  if (head.trouble) return [heading(t("Alerts")), empty(t("Alerts are not known now"), head.trouble)];
  const rows = rowsOf(model);
  return [
    heading(t("Alerts"), said(head)),
    rows.length ? h("ul", { class: "alerts" }, rows.map(alert))
      : empty(head.known ? t("Nothing fires") : t("Not evaluated yet"), head.known ? t("Rules are evaluated every 15 seconds.") : ""),
  ];
}

function said(head) {
  const parts = [[head.critical, t("critical")], [head.warning, t("warning")], [head.info, t("info")]].filter(([value]) => value);
  return parts.length ? t("Firing: {0}.", parts.map(([value, name]) => `${count(value)} ${name}`).join(", ")) : t("Nothing fires now.");
}

function alert(one) {
  const all = one.firing + one.pending;
  return h("li", { class: `card ${one.firing && one.severity === "critical" ? "alarm" : ""}`, "data-key": one.name, "data-severity": one.severity },
    h("div", { class: "heading" },
      h("div", {}, h("h2", {}, one.summary), h("p", { class: "quiet" }, h("code", {}, one.name), t(", {0}, since {1}", t(one.severity), ago(one.since)))),
      h("div", { class: "aside" }, h("span", { class: `chip ${one.firing ? SEVERITIES[one.severity] : "over"}` }, one.firing ? t("firing {0}", count(one.firing)) : t("pending {0}", count(one.pending))), elsewhere(one.panel))),
    h("ul", { class: "things" }, one.things.map((some) => h("li", { "data-key": some.about },
      h("span", { class: `chip ${some.state === "firing" ? SEVERITIES[one.severity] : "over"}` }, some.state === "firing" ? t("for {0}", ago(some.since)) : t("pending for {0}", ago(some.since))),
      h("span", { class: "about" }, some.about || t("the cluster")), links(some)))),
    all > one.things.length ? h("p", { class: "quiet" }, t("and {0}", plural(all - one.things.length, "more thing"))) : null);
}

function links(some) {
  return h("span", { class: "links" },
    some.gang ? h("a", { href: gangAddress(some.gang) }, t("Workload")) : null,
    some.node ? h("a", { href: nodeAddress(some.node) }, t("Node")) : null,
    some.queue && !some.gang ? h("a", { href: `#/workloads?queue=${encodeURIComponent(some.queue)}` }, t("Queue")) : null,
    elsewhere(some.panel));
}
