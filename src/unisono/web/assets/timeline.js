// What ran, runs and is planned, as bars over time, in lanes of queues or of nodes.

import { t } from "./language.js";
import { own } from "./colours.js";
import { h } from "./dom.js";
import { rowsOf } from "./live.js";
import { choices, denied, empty, gangAddress, gangLink, heading, table } from "./parts.js";
import { clock, count, lasting, now, plural, time, timeExact, weekday } from "./words.js";

const HOUR = 3600;
const SPANS = [["3600", t("1 hour")], ["21600", t("6 hours")], ["86400", t("1 day")], ["604800", t("1 week")], ["2592000", t("30 days")]];
const SHORTEST = 120;
const LONGEST = 366 * 24 * HOUR;
const STEPS = [10, 30, 60, 300, 600, 1800, HOUR, 2 * HOUR, 6 * HOUR, 12 * HOUR, 24 * HOUR, 2 * 24 * HOUR, 7 * 24 * HOUR, 30 * 24 * HOUR];
const MOST_ROWS = 14; // of one lane; more are told of
const MOST_LANES = 200;
const PLANNED_LANE = t("Planned (nodes not chosen yet)");
const KINDS = [["runs", t("running")], ["over", t("finished")], ["left", t("evicted or failed")], [t("planned"), t("planned")]];

let chosen = ""; // the bar that keys have reached

export const title = () => t("Timeline");

export function ask({ query }) {
  const made = { page: "timeline", span: query.get("span") || "21600" };
  for (const name of ["end", "by", "queue"]) if (query.get(name)) made[name] = query.get(name);
  return made;
}

export function draw(model, context) {
  const { query } = context;
  const { head } = model;
  const by = query.get("by") === "node" ? "node" : "queue";
  const to = (fields) => address(query, fields);
  if (head.denied) return [heading(t("Timeline")), denied(head.denied)];
  const bars = rowsOf(model);
  const view = { since: head.since, until: head.until };
  const isTable = query.get("view") === "table";
  return [
    heading(t("Timeline"), `${clock(head.since)} – ${clock(head.until)}${head.live ? t(", live") : ""}`),
    h("div", { class: "tools" },
      choices(t("Lanes"), [["queue", t("Queues")], ["node", t("Nodes")]], by, (value) => to({ by: value === "queue" ? "" : value })),
      choices(t("Time range"), SPANS, query.get("span") || "21600", (value) => to({ span: value })),
      h("div", { class: "buttons" },
        button(t("Earlier"), "←", () => pan(head, context, -0.5)), button(t("Later"), "→", () => pan(head, context, 0.5)),
        button(t("Zoom in"), "+", () => zoom(head, context, 0.5)), button(t("Zoom out"), "−", () => zoom(head, context, 2)),
        head.live ? null : h("a", { class: "button", href: to({ end: "" }) }, t("Now"))),
      h("a", { class: "button", href: to({ view: isTable ? "" : "table" }) }, isTable ? t("Chart") : t("Table")),
      query.get("queue") ? h("a", { class: "tag", href: to({ queue: "" }), "aria-label": t("Queue {0}; show all queues", query.get("queue")) }, t("queue {0} ×", query.get("queue"))) : null),
    !bars.length ? empty(t("Nothing in this time range"), head.undated ? t("{0} waiting, without an estimated start.", plural(head.undated, "workload")) : t("Choose a longer or an earlier range."))
      : isTable ? h("div", { class: "card flush" }, asTable(bars)) : chart(bars, view, by, context),
    h("div", { class: "below" },
      h("ul", { class: "legend" }, KINDS.map(([kind, name]) => h("li", {}, h("i", { class: `k-${kind}`, "aria-hidden": "true" }), name)),
        h("li", {}, h("i", { class: "k-wait", "aria-hidden": "true" }), t("waiting"))),
      h("p", { class: "quiet" }, [
        head.left ? t("{0} hidden. ", plural(head.left, "shorter bar")) : "",
        head.undated ? t("{0} waiting without an estimated start. ", plural(head.undated, "workload")) : "",
        t("Keys: + and − zoom, ← and → move, J and K select a bar, Enter opens it, 0 returns to now."),
      ].join(""))),
  ];
}

const button = (name, text, click) => h("button", { type: "button", class: "button", "aria-label": name, title: name, on: { click } }, text);

function address(query, fields) {
  const made = new URLSearchParams(query);
  for (const [name, value] of Object.entries(fields)) {
    if (value) made.set(name, value);
    else made.delete(name);
  }
  return `#/timeline${made.toString() ? `?${made}` : ""}`;
}

// ---- the chart ------------------------------------------------------------------------------------

function chart(bars, view, by, context) {
  const lanes = new Map();
  for (const bar of bars) {
    const lane = by === "node" && bar.kind === "planned" ? PLANNED_LANE : bar.lane || t("no queue");
    if (!lanes.has(lane)) lanes.set(lane, []);
    lanes.get(lane).push(bar);
  }
  const shown = [...lanes].sort(([one], [other]) => (one === PLANNED_LANE) - (other === PLANNED_LANE) || one.localeCompare(other, [], { numeric: true }));
  const at = 100 * (now() - view.since) / (view.until - view.since);
  return h("div", { class: "chart card flush", role: "group", "aria-label": t("Workloads over time; keys are listed below"), tabindex: "0" },
    h("div", { class: "axis", "aria-hidden": "true" }, ticks(view).map(({ left, text }) => h("span", { style: { left: `${left}%` } }, text))),
    h("div", { class: "lanes" },
      h("div", { class: "grid", "aria-hidden": "true" }, ticks(view).map(({ left }) => h("i", { style: { left: `${left}%` } })),
        at >= 0 && at <= 100 ? h("i", { class: "now", style: { left: `${at}%` } }) : null),
      shown.slice(0, MOST_LANES).map(([name, of]) => lane(name, of, view, context))),
    shown.length > MOST_LANES ? h("p", { class: "quiet" }, t("{0}; shorten the range to see them.", plural(shown.length - MOST_LANES, "more lane"))) : null,
    h("p", { class: "unseen", role: "status" }, spoken(bars)));
}

function lane(name, bars, view, context) {
  const rows = [];
  let left = 0;
  for (const bar of [...bars].sort((one, other) => begin(one) - begin(other))) {
    const row = rows.findIndex((end) => end <= begin(bar));
    if (row >= 0) { rows[row] = ending(bar); bar.row = row; }
    else if (rows.length < MOST_ROWS) { bar.row = rows.length; rows.push(ending(bar)); }
    else { bar.row = -1; left += 1; }
  }
  const high = Math.max(1, rows.length);
  return h("section", { class: "lane", "aria-label": `${name}: ${plural(bars.length, "bar")}`, "data-key": name },
    h("h2", {}, name, h("small", {}, `${plural(bars.length, "workload")}${left ? t(", {0} hidden", count(left)) : ""}`)),
    h("div", { class: "bars", style: { height: `${high * 22 + 8}px` } },
      bars.filter((bar) => bar.row >= 0).map((bar) => draw1(bar, view, context))));
}

const begin = (bar) => bar.from;
const ending = (bar) => Math.max(bar.to || bar.latest || now(), bar.from) + 1;

function draw1(bar, view) {
  const span = view.until - view.since;
  const place = (at) => Math.max(0, Math.min(100, (100 * (at - view.since)) / span));
  const from = place(bar.from);
  const until = bar.kind === "planned" ? bar.to || bar.from + HOUR : bar.to || now();
  const width = Math.max(0.15, place(until) - from);
  const waited = bar.waited && bar.waited < bar.from && bar.kind !== "planned" ? place(bar.waited) : from;
  const rest = bar.latest && !bar.to ? place(bar.latest) - place(until) : 0;
  const top = `${bar.row * 22 + 4}px`;
  const isOther = bar.key === "·";
  const attributes = {
    class: `bar k-${bar.kind} ${isOther ? "" : own(bar.key)} ${chosen === bar.id ? "chosen" : ""}`, "data-key": bar.id,
    title: words(bar), style: { left: `${from}%`, width: `${width}%`, top },
  };
  const text = h("span", {}, isOther ? "" : bar.name);
  return [
    waited < from ? h("i", { class: "waited", "data-key": `w ${bar.id}`, style: { left: `${waited}%`, width: `${from - waited}%`, top } }) : null,
    rest > 0 ? h("i", { class: "rest", "data-key": `r ${bar.id}`, style: { left: `${from + width}%`, width: `${rest}%`, top } }) : null,
    isOther ? h("span", attributes, text)
      : h("a", { ...attributes, href: gangAddress(bar.key), tabindex: "-1", "aria-label": words(bar) }, text),
  ];
}

function words(bar) {
  const name = bar.key === "·" ? t("workload of another namespace") : bar.key;
  const owner = bar.user ? t(" of {0}", bar.user) : "";
  const size = plural(bar.gpus, "GPU");
  const waited = bar.waited && bar.waited < bar.from ? t(", after waiting {0}", lasting(bar.from - bar.waited)) : "";
  if (bar.kind === "planned") {
    const whole = bar.to ? t(", for {0} at most", lasting(bar.to - bar.from)) : "";
    return bar.promised ? t("{0}{1}: {2}, starts by {3}{4}", name, owner, size, clock(bar.from), whole) : t("{0}{1}: {2}, about {3}{4}", name, owner, size, clock(bar.from), whole);
  }
  if (!bar.to) return t("{0}{1}: {2} since {3}{4}{5}", name, owner, size, clock(bar.from), bar.latest ? t(", until {0} at the latest", clock(bar.latest)) : "", waited);
  return `${name}${owner}: ${size}, ${clock(bar.from)} – ${clock(bar.to)} (${lasting(bar.to - bar.from)})${waited}${bar.kind === "left" ? t("; evicted or failed") : ""}`;
}

function ticks(view) {
  const span = view.until - view.since;
  const most = window.innerWidth < 700 ? 4 : 9;
  const step = STEPS.find((one) => span / one <= most) || STEPS[STEPS.length - 1];
  const shift = new Date().getTimezoneOffset() * 60;
  const made = [];
  for (let at = Math.ceil((view.since - shift) / step) * step + shift; at < view.until; at += step) {
    const text = step >= 24 * HOUR ? weekday(at) : step < 60 ? timeExact(at) : time(at);
    const left = (100 * (at - view.since)) / span;
    if (left < 97) made.push({ left, text });
  }
  return made;
}

const asTable = (bars) => table(plural(bars.length, "bar"), [[t("Workload")], [t("Lane")], [t("GPUs"), { n: true }], [t("From")], [t("To")], [t("State")]],
  bars.map((bar) => ({
    key: bar.id,
    cells: [gangLink(bar.key), bar.lane, count(bar.gpus), clock(bar.from), bar.to ? clock(bar.to) : bar.latest ? t("by {0}", clock(bar.latest)) : "–",
      (KINDS.find(([kind]) => kind === bar.kind) || ["", t("starts")])[1]],
  })), { class: "stack" });

// ---- moving about ---------------------------------------------------------------------------------

function show(context, since, until, isLive) {
  const span = Math.round(Math.min(LONGEST, Math.max(SHORTEST, until - since)));
  context.change({ span: String(span), end: isLive ? null : String(Math.round((since + until) / 2 + span / 2)) });
}

function pan(head, context, part) {
  const shift = (head.until - head.since) * part;
  show(context, head.since + shift, head.until + shift, false);
}

function zoom(head, context, factor) {
  const middle = (head.since + head.until) / 2;
  const half = ((head.until - head.since) / 2) * factor;
  show(context, middle - half, middle + half, head.live);
}

const spoken = (bars) => {
  const bar = bars.find((one) => one.id === chosen);
  return bar ? words(bar) : "";
};

export function press(event, model, context) {
  if (!model || !model.head || model.head.denied) return;
  const moves = {
    "+": () => zoom(model.head, context, 0.5), "=": () => zoom(model.head, context, 0.5), "-": () => zoom(model.head, context, 2),
    ArrowLeft: () => pan(model.head, context, -0.25), ArrowRight: () => pan(model.head, context, 0.25),
    0: () => context.change({ end: null }), j: () => reach(1, context), k: () => reach(-1, context),
  };
  if (event.key === "Enter" && chosen && event.target.classList.contains("chart")) {
    const bar = model.rows.get(chosen);
    if (bar && bar.key !== "·") location.hash = gangAddress(bar.key);
  } else if (moves[event.key]) {
    event.preventDefault();
    moves[event.key]();
  }
}

// From bar to bar, as they stand on the screen.
function reach(step, context) {
  const bars = [...document.querySelectorAll(".bar[data-key]")];
  if (!bars.length) return;
  const at = bars.findIndex((one) => one.dataset.key === chosen);
  const next = bars[at < 0 ? (step > 0 ? 0 : bars.length - 1) : (at + step + bars.length) % bars.length];
  chosen = next.dataset.key;
  context.redraw();
  document.querySelector(".chart").focus({ preventScroll: true });
  next.scrollIntoView({ block: "nearest" });
}
