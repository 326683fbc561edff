// Waiting, running and finished workloads, in pages, filtered by words.

import { claim } from "./colours.js";
import { h } from "./dom.js";
import { rowsOf } from "./live.js";
import { busy, chip, choices, empty, gangLink, heading, pager, queueLink, reason, search, table } from "./parts.js";
import { ago, count, plural } from "./words.js";

const FIELDS = ["state", "q", "queue", "page"];

export const title = () => "Workloads";

// `page` is the name of the page, so the number of it travels as `at`.
export function ask({ query }) {
  const made = { page: "workloads" };
  for (const name of FIELDS) if (query.get(name)) made[name === "page" ? "at" : name] = query.get(name);
  return made;
}

export function draw(model, { query, change }) {
  const { head } = model;
  const rows = rowsOf(model);
  claim(rows.filter((one) => one.state === "runs" || one.state === "starts").map((one) => one.key));
  const to = (changes) => {
    const made = new URLSearchParams(query);
    for (const [name, value] of Object.entries({ page: "", ...changes })) {
      if (value) made.set(name, value);
      else made.delete(name);
    }
    return `#/workloads${made.toString() ? `?${made}` : ""}`;
  };
  const { counts } = head;
  const queue = query.get("queue");
  return [
    heading("Workloads", `${count(counts.runs)} running, ${count(counts.waits)} waiting, ${count(counts.over)} finished`),
    h("div", { class: "tools" },
      choices("State", [["", "All", counts.runs + counts.waits + counts.over], ["waits", "Waiting", counts.waits], ["runs", "Running", counts.runs], ["over", "Finished", counts.over]],
        query.get("state") || "", (state) => to({ state })),
      search("Filter by name, user, queue (press /)", query.get("q") || "", (q) => change({ q, page: null })),
      queue ? h("a", { class: "tag", href: to({ queue: "" }), "aria-label": `Queue ${queue}; show all queues` }, `queue ${queue} ×`) : null),
    rows.length ? h("div", { class: "card flush" }, list(rows, head)) : empty(query.get("q") || queue ? "No match" : "No workloads",
      query.get("q") || queue ? "Try fewer letters, or another state." : "Jobs with a queue label appear here as soon as they are created."),
    pager(head, (page) => to({ page: page > 1 ? String(page) : "" })),
  ];
}

const list = (rows, head, isMeasured = rows.some((one) => one.busy !== undefined)) => table(`${plural(head.found, "workload")}`, [
  ["Workload"], ["State"], ["User", { hide: true }], ["Queue", { hide: true }], ["GPUs", { n: true }], ...(isMeasured ? [["Busy"]] : []), ["Pods", { n: true, hide: true }], ["Position", { n: true, hide: true }], ["Age", { n: true }], ["Reason", { wide: true }],
], rows.map((one) => ({
  key: one.key,
  cells: [gangLink(one.key, one.job), chip(one), one.user, queueLink(one.queue), count(one.gpus), ...(isMeasured ? [one.busy === undefined ? "" : busy(one.busy, one.idle)] : []), count(one.pods),
    one.place ? count(one.place) : "", ago(one.since), reason(one)],
})), { class: "stack" });
