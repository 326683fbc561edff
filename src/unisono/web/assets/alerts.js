// Alerts that fire or soon will, the most urgent first; each with what it is about.

import { h } from "./dom.js";
import { rowsOf } from "./live.js";
import { elsewhere, empty, gangAddress, heading, nodeAddress } from "./parts.js";
import { ago, count, plural } from "./words.js";

export const title = () => "Alerts";

export const ask = () => ({ page: "alerts" });

const SEVERITIES = { critical: "bad", warning: "waits", info: "over" };

export function draw(model) {
  const { head } = model;
  if (head.absent) {
    return [heading("Alerts"), empty("No alerts are evaluated here", "They come from a Prometheus with the rules of Unisono:", "unisono controller --prometheus URL")];
  }
  if (head.trouble) return [heading("Alerts"), empty("Alerts are not known now", head.trouble)];
  const rows = rowsOf(model);
  return [
    heading("Alerts", said(head)),
    rows.length ? h("ul", { class: "alerts" }, rows.map(alert))
      : empty(head.known ? "Nothing fires" : "Not evaluated yet", head.known ? "Rules are evaluated every 15 seconds." : ""),
  ];
}

function said(head) {
  const parts = [[head.critical, "critical"], [head.warning, "warning"], [head.info, "info"]].filter(([value]) => value);
  return parts.length ? `Firing: ${parts.map(([value, name]) => `${count(value)} ${name}`).join(", ")}.` : "Nothing fires now.";
}

function alert(one) {
  const all = one.firing + one.pending;
  return h("li", { class: `card ${one.firing && one.severity === "critical" ? "alarm" : ""}`, "data-key": one.name, "data-severity": one.severity },
    h("div", { class: "heading" },
      h("div", {}, h("h2", {}, one.summary), h("p", { class: "quiet" }, h("code", {}, one.name), `, ${one.severity}, since ${ago(one.since)}`)),
      h("div", { class: "aside" }, h("span", { class: `chip ${one.firing ? SEVERITIES[one.severity] : "over"}` }, one.firing ? `firing ${count(one.firing)}` : `pending ${count(one.pending)}`), elsewhere(one.panel))),
    h("ul", { class: "things" }, one.things.map((some) => h("li", { "data-key": some.about },
      h("span", { class: `chip ${some.state === "firing" ? SEVERITIES[one.severity] : "over"}` }, some.state === "firing" ? `for ${ago(some.since)}` : `pending for ${ago(some.since)}`),
      h("span", { class: "about" }, some.about || "the cluster"), links(some)))),
    all > one.things.length ? h("p", { class: "quiet" }, `and ${plural(all - one.things.length, "more thing")}`) : null);
}

function links(some) {
  return h("span", { class: "links" },
    some.gang ? h("a", { href: gangAddress(some.gang) }, "Workload") : null,
    some.node ? h("a", { href: nodeAddress(some.node) }, "Node") : null,
    some.queue && !some.gang ? h("a", { href: `#/workloads?queue=${encodeURIComponent(some.queue)}` }, "Queue") : null,
    elsewhere(some.panel));
}
