// GPU usage and cost of a period, and files of it to download.

import { h } from "./dom.js";
import { headers } from "./live.js";
import { card, choices, empty, figure, figures, heading, meter, table } from "./parts.js";
import { count, day, hours, lasting, money, now, percent, plural, weekday } from "./words.js";

const RANGES = [["1", "1 day"], ["7", "7 days"], ["30", "30 days"], ["90", "90 days"]];
const FORMATS = [["html", "Page"], ["csv", "CSV"], ["json", "JSON"], ["md", "Markdown"]];
const DAY = 86400;

let made = null;
let trouble = "";

export const title = () => "Reports";

const period = (query) => {
  const until = Number(query.get("until")) || Math.floor(now() / 60) * 60;
  const since = Number(query.get("since")) || until - (Number(query.get("days")) || 7) * DAY;
  return { since, until };
};

const address = (form, { since, until }) => `/report/${form}?since=${since}&until=${until}`;

/** Ask for the figures; they are not live, because a report is of a time that has passed. */
export async function load({ query, person }) {
  made = null;
  trouble = person.reports ? "" : "no usage ledger is kept here, or you may not see the usage of all users";
  if (trouble) return;
  const answer = await fetch(address("figures", period(query)), { headers: headers(), cache: "no-store" });
  if (answer.ok) made = await answer.json();
  else trouble = (await answer.text()).trim();
}

async function keep(form, query) {
  const answer = await fetch(address(form, period(query)), { headers: headers(), cache: "no-store" });
  if (!answer.ok) return;
  const name = /filename="([^"]+)"/.exec(answer.headers.get("Content-Disposition") || "");
  const link = h("a", { href: URL.createObjectURL(await answer.blob()), download: name ? name[1] : `report.${form}` });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

export function draw(model, { query }) {
  const { since, until } = period(query);
  const tools = h("div", { class: "tools" },
    choices("Period", RANGES, query.get("since") ? "" : query.get("days") || "7", (days) => `#/reports?days=${days}`),
    made ? h("div", { class: "buttons", role: "group", "aria-label": "Download" }, FORMATS.map(([form, name]) =>
      h("button", { type: "button", class: "button", "data-format": form, "aria-label": `Download as ${name}`, on: { click: () => keep(form, query) } }, `↓ ${name}`))) : null);
  const top = heading("Reports", `${day(since)} – ${day(until)}: GPU usage, utilization and cost`);
  if (!made) {
    return [top, trouble.includes("ledger") ? null : tools,
      empty(trouble ? "No report" : "Loading …", trouble ? `${trouble[0].toUpperCase()}${trouble.slice(1)}.` : "")];
  }
  const { headline, before } = made;
  const used = headline.amounts;
  return [
    top, tools,
    figures(
      figure(hours(used.allocated), "GPU-hours used", "", change(used.allocated, before.amounts.allocated)),
      figure(percent(used.allocated, headline.capacity), "of GPU capacity"),
      figure(percent(used.busy, used.busy + used.idle), "busy, of measured hours", used.busy < used.idle ? "warn" : ""),
      figure(money((used.costCents + headline.overheadCents) / 100), "spent", "", used.wastedCents ? `of which ${money(used.wastedCents / 100)} idle or lost` : ""),
      figure(lasting(headline.waits.p50), "median wait", "", headline.waits.count ? `p95 ${lasting(headline.waits.p95)}` : ""),
      figure(count(headline.jobs), headline.jobs === 1 ? "job" : "jobs")),
    card("GPU-hours by day", days()),
    h("div", { class: "two" }, card("Teams", shares(made.teams, "Team")), card("Users", shares(made.users, "User"))),
    card("Queues", made.queues.length ? queues() : empty("No queue was used in this period", "")),
    made.waste.length ? card("Largest waste", waste()) : null,
    made.faults.length ? card("Broken and slow nodes", faults()) : null,
  ];
}

function change(is, was) {
  if (!was) return "none in the period before";
  const part = Math.round((100 * (is - was)) / was);
  return `${part >= 0 ? "+" : "−"}${Math.abs(part)} % compared to the period before`;
}

function days() {
  const all = Object.entries(made.byDay);
  if (!all.length) return empty("No usage in this period", "");
  const most = Math.max(...all.map(([, amount]) => amount), 1e-9);
  return h("ul", { class: "days" }, all.map(([at, amount]) => h("li", { title: `${weekday(Number(at))}: ${hours(amount)} GPU-hours` },
    h("span", { class: "n" }, hours(amount)),
    h("i", { style: { height: `${Math.max(1, (100 * amount) / most)}px` }, "aria-hidden": "true" }),
    h("small", {}, weekday(Number(at))))));
}

function shares(of, word) {
  if (!of.length) return empty("No usage in this period", "");
  const most = Math.max(...of.map((one) => one.amounts.allocated), 1e-9);
  return table(`GPU-hours by ${word.toLowerCase()}`, [[word], ["Jobs", { n: true, hide: true }], ["GPU-hours", { n: true }], ["Busy", { n: true }], ["Cost", { n: true }]],
    of.slice(0, 20).map((one) => ({
      key: one.name,
      cells: [h("div", {}, one.name, meter([[one.amounts.allocated, "held"]], most, `${one.name}: ${hours(one.amounts.allocated)} GPU-hours`, true)), count(one.jobs), hours(one.amounts.allocated), percent(one.amounts.busy, one.amounts.busy + one.amounts.idle), money(one.amounts.costCents / 100)],
    })), { class: "stack" });
}

const queues = () => table("Queues in this period, in GPU-hours", [["Queue"], ["Quota", { n: true }], ["Used", { n: true }], ["Borrowed", { n: true, hide: true }], ["Unmet within quota", { n: true, hide: true }], ["Median wait", { n: true }], ["Still waiting", { n: true }]],
  made.queues.map((one) => ({
    key: one.name,
    cells: [one.isDeleted ? `${one.name} (deleted)` : one.name, hours(one.nominal), hours(one.used), hours(one.borrowed), hours(one.starved), one.waits.count ? lasting(one.waits.p50) : "–", count(one.stillWaiting)],
  })), { class: "stack" });

const faults = () => table("Work lost to broken and slow nodes", [["Node", { id: true }], ["Problem"], ["Duration", { n: true }], ["Jobs", { n: true }], ["GPU-hours lost", { n: true }], ["Cost", { n: true }], ["Users", { wide: true }]],
  made.faults.map((one) => ({
    key: `${one.node}/${one.problem}`,
    cells: [one.node, one.problem, lasting(one.seconds), count(one.jobs), hours(one.gpuHours), money(one.costCents / 100), Object.entries(one.owners).map(([name, amount]) => `${name} ${hours(amount)}`).join(", ") || "–"],
  })), { class: "stack" });

const waste = () => table("Jobs with the largest waste", [["Job"], ["User"], ["GPUs", { n: true }], ["Wasted", { n: true }], ["Recommendation", { wide: true }]],
  made.waste.map((one) => ({
    key: `${one.namespace}/${one.name}`,
    cells: [`${one.namespace}/${one.name}`, one.user, count(one.gpus), money(one.amounts.wastedCents / 100), one.advice.join("; ") || plural(one.gpus, "GPU")],
  })), { class: "stack" });
