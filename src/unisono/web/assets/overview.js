// The first page: GPUs by state, the next workload of every queue and why it waits, what runs, usage by user.

import { claim } from "./colours.js";
import { h } from "./dom.js";
import { rowsOf } from "./live.js";
import { busy, card, empty, figure, figures, gangLink, heading, legend, meter, nodeLink, queueLink, reason, table } from "./parts.js";
import { ago, count, money, percent, plural } from "./words.js";

export const title = () => "Overview";

export const ask = () => ({ page: "overview" });

export function draw(model) {
  const { head } = model;
  const running = rowsOf(model);
  claim(running.map((one) => one.key));
  const isMeasured = running.some((one) => one.busy !== undefined);
  return [
    heading("Overview", said(head)),
    head.gpus ? gpuCard(head) : null,
    figures(
      figure(count(head.counts.runs), "running"),
      figure(count(head.counts.waits), "waiting", head.counts.waits ? "warn" : ""),
      head.gpus ? figure(count(head.gpus.wanted), "GPUs requested by waiting workloads") : null,
      head.gpus ? figure(percent(head.gpus.held, head.gpus.there), "GPUs in use") : null,
      head.gpus && head.gpus.cost ? figure(money(head.gpus.cost), "per hour, all nodes") : null,
    ),
    alarms(head.alerts),
    head.troubles.length ? troubles(head.troubles) : null,
    card("Next in each queue", head.heads.length ? next(head.heads)
      : empty("No workloads are waiting", "A job submitted now starts as soon as quota and nodes allow.")),
    h("div", { class: "two" },
      card("Running", running.length ? runs(running, head, isMeasured)
        : empty("No workloads are running", "Submit a job as usual, or run a demo:", "unisono demo")),
      card("GPUs by user", head.users.length ? users(head) : empty("No GPUs in use", ""))),
  ];
}

function alarms(of) {
  const parts = of ? [[of.critical, "critical"], [of.warning, "warning"]].filter(([value]) => value) : [];
  if (!parts.length) return null;
  return h("p", { class: `card ${of.critical ? "alarm" : ""}` }, h("a", { href: "#/alerts" }, `Alerts: ${parts.map(([value, name]) => `${count(value)} ${name}`).join(", ")}`));
}

function said(head) {
  if (!head.gpus) return "Live state of the cluster, as far as you have access.";
  return `${plural(head.gpus.there, "GPU")} on ${plural(head.nodes, "node")}, ${plural(head.queues, "queue")}.`;
}

function gpuCard(head) {
  const { there, held, free, down } = head.gpus;
  const parts = [[held, "held", "in use"], [free, "free", "free"], [down, "down", "out of service"]];
  return card("GPUs",
    there ? meter(parts, there, `${held} of ${there} GPUs in use, ${free} free, ${down} out of service`)
      : empty("No GPUs yet", "Nodes appear here when they join the cluster or are provisioned."),
    there ? legend(parts) : null,
    head.models.length > 1 ? h("ul", { class: "models" }, head.models.map((one) => h("li", {},
      h("span", {}, one.model), meter([[one.held, "held"]], one.there, `${one.held} of ${one.there} in use`, true),
      h("span", { class: "n" }, `${count(one.held)} of ${count(one.there)}`)))) : null);
}

const next = (heads) => table("Next workload of each queue", [
  ["Queue"], ["Waiting", { n: true }], ["Next"], ["GPUs", { n: true }], ["Reason", { wide: true }],
], heads.map((one) => ({
  key: one.queue,
  cells: [queueLink(one.queue), count(one.waits), one.head ? gangLink(one.head.key, one.head.job) : gangLink("·"),
    one.head ? count(one.head.gpus) : "", one.head ? reason(one.head) : ""],
})), { class: "stack" });

const runs = (running, head, isMeasured) => [
  table("Latest started workloads", [["Workload"], ["User", { hide: true }], ["Queue", { hide: true }], ["GPUs", { n: true }], ...(isMeasured ? [["Busy"]] : []), ["Running for", { n: true }]],
    running.map((one) => ({
      key: one.key,
      cells: [gangLink(one.key, one.job), one.user, queueLink(one.queue), count(one.gpus), ...(isMeasured ? [busy(one.busy, one.idle)] : []), ago(one.since)],
    }))),
  head.counts.runs > running.length
    ? h("p", { class: "more" }, h("a", { href: "#/workloads?state=runs" }, `All ${count(head.counts.runs)} running workloads`)) : null,
];

function users(head) {
  const most = Math.max(...head.users.map((one) => one.gpus));
  return h("ul", { class: "users" }, head.users.map((one) => h("li", {},
    h("a", { class: "plain", href: `#/workloads?q=${encodeURIComponent(one.user)}` }, one.user),
    meter([[one.gpus, "held"]], most, `${one.user}: ${one.gpus} GPUs`, true),
    h("span", { class: "n" }, count(one.gpus)))));
}

function troubles(of) {
  return h("section", { class: "card alarm", "aria-label": "Nodes with problems" },
    h("h2", {}, "Nodes with problems"),
    h("ul", {}, of.map((one) => (one.more ? h("li", {}, h("a", { href: "#/map" }, `and ${count(one.more)} more`))
      : h("li", {}, nodeLink(one.name), `: ${trouble(one)}`)))));
}

function trouble(one) {
  const said = one.why.map((why) => why.replace("=", ": ").replace(/: $/, ""));
  if (!one.ready) said.unshift("not ready");
  else if (one.closed && !said.length) said.push("cordoned");
  if (one.broken) said.push(`${plural(one.broken, "GPU")} unhealthy`);
  return `${said.join(", ")}${one.held ? ` – ${plural(one.held, "GPU")} still in use` : ""}`;
}
