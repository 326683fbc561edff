// The first page: GPUs by state, the next workload of every queue and why it waits, what runs, usage by user.

import { t } from "./language.js";
import { claim } from "./colours.js";
import { h } from "./dom.js";
import { rowsOf } from "./live.js";
import { busy, card, empty, figure, figures, gangLink, heading, legend, meter, nodeLink, queueLink, reason, table } from "./parts.js";
import { ago, count, money, percent, plural } from "./words.js";

export const title = () => t("Overview");

export const ask = () => ({ page: "overview" });

export function draw(model) {
  const { head } = model;
  const running = rowsOf(model);
  claim(running.map((one) => one.key));
  const isMeasured = running.some((one) => one.busy !== undefined);
  return [
    heading(t("Overview"), said(head)),
    head.gpus ? gpuCard(head) : null,
    figures(
      figure(count(head.counts.runs), t("running")),
      figure(count(head.counts.waits), t("waiting"), head.counts.waits ? "warn" : ""),
      head.gpus ? figure(count(head.gpus.wanted), t("GPUs requested by waiting workloads")) : null,
      head.gpus ? figure(percent(head.gpus.held, head.gpus.there), t("GPUs in use")) : null,
      head.gpus && head.gpus.cost ? figure(money(head.gpus.cost), t("per hour, all nodes")) : null,
    ),
    alarms(head.alerts),
    head.troubles.length ? troubles(head.troubles) : null,
    card(t("Next in each queue"), head.heads.length ? next(head.heads)
      : empty(t("No workloads are waiting"), t("A job submitted now starts as soon as quota and nodes allow."))),
    h("div", { class: "two" },
      card(t("Running"), running.length ? runs(running, head, isMeasured)
        : empty(t("No workloads are running"), t("Submit a job as usual, or run a demo:"), "unisono demo")),
      card(t("GPUs by user"), head.users.length ? users(head) : empty(t("No GPUs in use"), ""))),
  ];
}

function alarms(of) {
  const parts = of ? [[of.critical, t("critical")], [of.warning, t("warning")]].filter(([value]) => value) : [];
  if (!parts.length) return null;
  return h("p", { class: `card ${of.critical ? "alarm" : ""}` }, h("a", { href: "#/alerts" }, t("Alerts: {0}", parts.map(([value, name]) => `${count(value)} ${name}`).join(", "))));
}

function said(head) {
  if (!head.gpus) return t("Live state of the cluster, as far as you have access.");
  return t("{0} on {1}, {2}.", plural(head.gpus.there, "GPU"), plural(head.nodes, "node"), plural(head.queues, "queue"));
}

function gpuCard(head) {
  const { there, held, free, down } = head.gpus;
  const parts = [[held, "held", t("in use")], [free, "free", t("free")], [down, "down", t("out of service")]];
  return card(t("GPUs"),
    there ? meter(parts, there, t("{0} of {1} GPUs in use, {2} free, {3} out of service", held, there, free, down))
      : empty(t("No GPUs yet"), t("Nodes appear here when they join the cluster or are provisioned.")),
    there ? legend(parts) : null,
    head.models.length > 1 ? h("ul", { class: "models" }, head.models.map((one) => h("li", {},
      h("span", {}, one.model), meter([[one.held, "held"]], one.there, t("{0} of {1} in use", one.held, one.there), true),
      h("span", { class: "n" }, t("{0} of {1}", count(one.held), count(one.there)))))) : null);
}

const next = (heads) => table(t("Next workload of each queue"), [
  [t("Queue")], [t("Waiting"), { n: true }], [t("Next")], [t("GPUs"), { n: true }], [t("Reason"), { wide: true }],
], heads.map((one) => ({
  key: one.queue,
  cells: [queueLink(one.queue), count(one.waits), one.head ? gangLink(one.head.key, one.head.job) : gangLink("·"),
    one.head ? count(one.head.gpus) : "", one.head ? reason(one.head) : ""],
})), { class: "stack" });

const runs = (running, head, isMeasured) => [
  table(t("Latest started workloads"), [[t("Workload")], [t("User"), { hide: true }], [t("Queue"), { hide: true }], [t("GPUs"), { n: true }], ...(isMeasured ? [[t("Busy")]] : []), [t("Running for"), { n: true }]],
    running.map((one) => ({
      key: one.key,
      cells: [gangLink(one.key, one.job), one.user, queueLink(one.queue), count(one.gpus), ...(isMeasured ? [busy(one.busy, one.idle)] : []), ago(one.since)],
    })), { class: "stack" }),
  head.counts.runs > running.length
    ? h("p", { class: "more" }, h("a", { href: "#/workloads?state=runs" }, t("All {0} running workloads", count(head.counts.runs)))) : null,
];

function users(head) {
  const most = Math.max(...head.users.map((one) => one.gpus));
  return h("ul", { class: "users" }, head.users.map((one) => h("li", {},
    h("a", { class: "plain", href: `#/workloads?q=${encodeURIComponent(one.user)}` }, one.user),
    meter([[one.gpus, "held"]], most, t("{0}: {1} GPUs", one.user, one.gpus), true),
    h("span", { class: "n" }, count(one.gpus)))));
}

function troubles(of) {
  return h("section", { class: "card alarm", "aria-label": t("Nodes with problems") },
    h("h2", {}, t("Nodes with problems")),
    h("ul", {}, of.map((one) => (one.more ? h("li", {}, h("a", { href: "#/map" }, t("and {0} more", count(one.more))))
      : h("li", {}, nodeLink(one.name), `: ${trouble(one)}`)))));
}

function trouble(one) {
  const said = one.why.map((why) => why.replace(/^quarantine/, t("quarantine")).replace("=", ": ").replace(/: $/, ""));
  if (!one.ready) said.unshift(t("not ready"));
  else if (one.closed && !said.length) said.push(t("cordoned"));
  if (one.broken) said.push(t("{0} unhealthy", plural(one.broken, "GPU")));
  return `${said.join(", ")}${one.held ? t(" – {0} still in use", plural(one.held, "GPU")) : ""}`;
}
