// The first page: GPUs by state, who is next in every queue and why it waits, what runs, who uses it.

import { h } from "./dom.js";
import { rowsOf } from "./live.js";
import { card, empty, figure, figures, gangLink, heading, legend, meter, nodeLink, queueLink, reason, table } from "./parts.js";
import { ago, count, money, percent, plural } from "./words.js";

export const title = () => "Overview";

export const ask = () => ({ page: "overview" });

export function draw(model) {
  const { head } = model;
  const running = rowsOf(model);
  return [
    heading("Overview", said(head)),
    head.gpus ? gpuCard(head) : null,
    figures(
      figure(count(head.counts.runs), head.counts.runs === 1 ? "gang runs" : "gangs run"),
      figure(count(head.counts.waits), head.counts.waits === 1 ? "gang waits" : "gangs wait", head.counts.waits ? "warn" : ""),
      head.gpus ? figure(count(head.gpus.wanted), "GPUs wanted by those who wait") : null,
      head.gpus ? figure(percent(head.gpus.held, head.gpus.there), "of the GPUs in use") : null,
      head.gpus && head.gpus.cost ? figure(money(head.gpus.cost), "an hour, all nodes") : null,
    ),
    head.troubles.length ? troubles(head.troubles) : null,
    card("Next in every queue", head.heads.length ? next(head.heads)
      : empty("Nobody waits", "Whoever submits now starts as soon as there is room.")),
    h("div", { class: "two" },
      card("What runs", running.length ? runs(running, head)
        : empty("Nothing runs", "Submit a job as always, or watch a story:", "unisono demo")),
      card("Who uses the GPUs", head.users.length ? users(head) : empty("Nobody", "No gang holds a GPU."))),
  ];
}

function said(head) {
  if (!head.gpus) return "What you may see of the cluster, as it is now.";
  return `${plural(head.gpus.there, "GPU")} on ${plural(head.nodes, "node")} in ${plural(head.queues, "queue")}, as it is now.`;
}

function gpuCard(head) {
  const { there, held, free, down } = head.gpus;
  const parts = [[held, "held", "in use"], [free, "free", "free"], [down, "down", "out of service"]];
  return card("GPUs",
    there ? meter(parts, there, `${held} of ${there} GPUs in use, ${free} free, ${down} out of service`)
      : empty("There are no GPUs yet", "Nodes appear here as they join, or as machines are bought for a gang."),
    there ? legend(parts) : null,
    head.models.length > 1 ? h("ul", { class: "models" }, head.models.map((one) => h("li", {},
      h("span", {}, one.model), meter([[one.held, "held"]], one.there, `${one.held} of ${one.there} in use`, true),
      h("span", { class: "n" }, `${count(one.held)} of ${count(one.there)}`)))) : null);
}

const next = (heads) => table("Who is next in every queue", [
  ["Queue"], ["Waiting", { n: true }], ["Next"], ["GPUs", { n: true }], ["Why it waits", { wide: true }],
], heads.map((one) => ({
  key: one.queue,
  cells: [queueLink(one.queue), count(one.waits), one.head ? gangLink(one.head.key, one.head.job) : gangLink("·"),
    one.head ? count(one.head.gpus) : "", one.head ? reason(one.head) : ""],
})));

const runs = (running, head) => [
  table("The latest to start", [["Gang"], ["Owner", { hide: true }], ["Queue", { hide: true }], ["GPUs", { n: true }], ["For", { n: true }]],
    running.map((one) => ({
      key: one.key,
      cells: [gangLink(one.key, one.job), one.user, queueLink(one.queue), count(one.gpus), ago(one.since)],
    }))),
  head.counts.runs > running.length
    ? h("p", { class: "more" }, h("a", { href: "#/workloads?state=runs" }, `All ${count(head.counts.runs)} that run`)) : null,
];

function users(head) {
  const most = Math.max(...head.users.map((one) => one.gpus));
  return h("ul", { class: "users" }, head.users.map((one) => h("li", {},
    h("a", { class: "plain", href: `#/workloads?q=${encodeURIComponent(one.user)}` }, one.user),
    meter([[one.gpus, "held"]], most, `${one.user}: ${one.gpus} GPUs`, true),
    h("span", { class: "n" }, count(one.gpus)))));
}

function troubles(of) {
  return h("section", { class: "card alarm", "aria-label": "Nodes to look at" },
    h("h2", {}, "Nodes to look at"),
    h("ul", {}, of.map((one) => (one.more ? h("li", {}, h("a", { href: "#/map" }, `and ${count(one.more)} more`))
      : h("li", {}, nodeLink(one.name), `: ${trouble(one)}`)))));
}

function trouble(one) {
  const said = one.why.map((why) => why.replace("=", ": ").replace(/: $/, ""));
  if (!one.ready) said.unshift("not ready");
  else if (one.closed && !said.length) said.push("closed to new pods");
  if (one.broken) said.push(`${plural(one.broken, "GPU")} unhealthy`);
  return `${said.join(", ")}${one.held ? ` – ${plural(one.held, "GPU")} still in use` : ""}`;
}
