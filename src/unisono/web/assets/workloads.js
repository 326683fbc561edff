// Waiting, running and finished workloads, in pages, filtered by words.

import { t } from "./language.js";
import { claim } from "./colours.js";
import { h } from "./dom.js";
import { rowsOf } from "./live.js";
import { busy, chip, choices, empty, gangLink, heading, pager, queueLink, reason, search, table } from "./parts.js";
import { ago, count, plural } from "./words.js";

const FIELDS = ["state", "q", "queue", "page"];

export const title = () => t("Workloads");

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
    heading(t("Workloads"), t("{0} running, {1} waiting, {2} finished", count(counts.runs), count(counts.waits), count(counts.over))),
    h("div", { class: "tools" },
      choices(t("State"), [["", t("All"), counts.runs + counts.waits + counts.over], ["waits", t("Waiting"), counts.waits], ["runs", t("Running"), counts.runs], ["over", t("Finished"), counts.over]],
        query.get("state") || "", (state) => to({ state })),
      search(t("Filter by name, user, queue (press /)"), query.get("q") || "", (q) => change({ q, page: null })),
      queue ? h("a", { class: "tag", href: to({ queue: "" }), "aria-label": t("Queue {0}; show all queues", queue) }, t("queue {0} ×", queue)) : null),
    rows.length ? h("div", { class: "card flush" }, list(rows, head)) : empty(query.get("q") || queue ? t("No match") : t("No workloads"),
      query.get("q") || queue ? t("Try fewer letters, or another state.") : t("Jobs with a queue label appear here as soon as they are created.")),
    pager(head, (page) => to({ page: page > 1 ? String(page) : "" })),
  ];
}

const list = (rows, head, isMeasured = rows.some((one) => one.busy !== undefined)) => table(`${plural(head.found, "workload")}`, [
  [t("Workload")], [t("State")], [t("User"), { hide: true }], [t("Queue"), { hide: true }], [t("GPUs"), { n: true }], [t("Pods"), { n: true, hide: true }], [t("Position"), { n: true, hide: true }], [t("Age"), { n: true }], [isMeasured ? t("Reason, or how busy") : t("Reason"), { wide: true }],
], rows.map((one) => ({
  key: one.key,
  cells: [gangLink(one.key, one.job), chip(one), one.user, queueLink(one.queue), count(one.gpus), count(one.pods),
    one.place ? count(one.place) : "", ago(one.since), one.busy === undefined ? reason(one) : busy(one.busy, one.idle)],
})), { class: "stack" });
