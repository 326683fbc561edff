// GPU usage and cost of a period, and files of it to download.

import { t } from "./language.js";
import { h } from "./dom.js";
import { headers } from "./live.js";
import { card, choices, empty, figure, figures, heading, meter, table } from "./parts.js";
import { count, day, hours, lasting, money, now, percent, plural, weekday } from "./words.js";

const RANGES = [["1", t("1 day")], ["7", t("7 days")], ["30", t("30 days")], ["90", t("90 days")]];
const FORMATS = [["html", t("Page")], ["csv", t("CSV")], ["json", t("JSON")], ["md", t("Markdown")]];
const DAY = 86400;

let made = null;
let trouble = "";

export const title = () => t("Reports");

const period = (query) => {
  const until = Number(query.get("until")) || Math.floor(now() / 60) * 60;
  const since = Number(query.get("since")) || until - (Number(query.get("days")) || 7) * DAY;
  return { since, until };
};

const address = (form, { since, until }) => `/report/${form}?since=${since}&until=${until}`;

/** Ask for the figures; they are not live, because a report is of a time that has passed. */
export async function load({ query, person }) {
  made = null;
  trouble = person.reports ? "" : t("no usage ledger is kept here, or you may not see the usage of all users");
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
    choices(t("Period"), RANGES, query.get("since") ? "" : query.get("days") || "7", (days) => `#/reports?days=${days}`),
    made ? h("div", { class: "buttons", role: "group", "aria-label": t("Download") }, FORMATS.map(([form, name]) =>
      h("button", { type: "button", class: "button", "data-format": form, "aria-label": t("Download as {0}", name), on: { click: () => keep(form, query) } }, `↓ ${name}`))) : null);
  const top = heading(t("Reports"), t("{0} – {1}: GPU usage, utilization and cost", day(since), day(until)));
  if (!made) {
    return [top, trouble.includes("ledger") ? null : tools,
      empty(trouble ? t("No report") : t("Loading …"), trouble ? `${trouble[0].toUpperCase()}${trouble.slice(1)}.` : "")];
  }
  const { headline, before } = made;
  const used = headline.amounts;
  return [
    top, tools,
    figures(
      figure(hours(used.allocated), t("GPU-hours used"), "", change(used.allocated, before.amounts.allocated)),
      figure(percent(used.allocated, headline.capacity), t("of GPU capacity")),
      figure(percent(used.busy, used.busy + used.idle), t("busy, of measured hours"), used.busy < used.idle ? "warn" : ""),
      figure(money((used.costCents + headline.overheadCents) / 100), t("spent"), "", used.wastedCents ? t("of which {0} idle or lost", money(used.wastedCents / 100)) : ""),
      figure(lasting(headline.waits.p50), t("median wait"), "", headline.waits.count ? `p95 ${lasting(headline.waits.p95)}` : ""),
      figure(count(headline.jobs), headline.jobs === 1 ? t("job") : t("jobs"))),
    card(t("GPU-hours by day"), days()),
    h("div", { class: "two" }, card(t("Teams"), shares(made.teams, t("Team"))), card(t("Users"), shares(made.users, t("User")))),
    card(t("Queues"), made.queues.length ? queues() : empty(t("No queue was used in this period"), "")),
    made.waste.length ? card(t("Largest waste"), waste()) : null,
    made.faults.length ? card(t("Broken and slow nodes"), faults()) : null,
  ];
}

function change(is, was) {
  if (!was) return t("none in the period before");
  const part = Math.round((100 * (is - was)) / was);
  return t("{0}{1} % compared to the period before", part >= 0 ? "+" : "−", Math.abs(part));
}

function days() {
  const all = Object.entries(made.byDay);
  if (!all.length) return empty(t("No usage in this period"), "");
  const most = Math.max(...all.map(([, amount]) => amount), 1e-9);
  return h("ul", { class: "days" }, all.map(([at, amount]) => h("li", { title: t("{0}: {1} GPU-hours", weekday(Number(at)), hours(amount)) },
    h("span", { class: "n" }, hours(amount)),
    h("i", { style: { height: `${Math.max(1, (100 * amount) / most)}px` }, "aria-hidden": "true" }),
    h("small", {}, weekday(Number(at))))));
}

function shares(of, word) {
  if (!of.length) return empty(t("No usage in this period"), "");
  const most = Math.max(...of.map((one) => one.amounts.allocated), 1e-9);
  return table(t("GPU-hours by {0}", word.toLowerCase()), [[word], [t("Jobs"), { n: true, hide: true }], [t("GPU-hours"), { n: true }], [t("Busy"), { n: true }], [t("Cost"), { n: true }]],
    of.slice(0, 20).map((one) => ({
      key: one.name,
      cells: [h("div", {}, one.name, meter([[one.amounts.allocated, "held"]], most, t("{0}: {1} GPU-hours", one.name, hours(one.amounts.allocated)), true)), count(one.jobs), hours(one.amounts.allocated), percent(one.amounts.busy, one.amounts.busy + one.amounts.idle), money(one.amounts.costCents / 100)],
    })), { class: "stack" });
}

const queues = () => table(t("Queues in this period, in GPU-hours"), [[t("Queue")], [t("Quota"), { n: true }], [t("Used"), { n: true }], [t("Borrowed"), { n: true, hide: true }], [t("Unmet within quota"), { n: true, hide: true }], [t("Median wait"), { n: true }], [t("Still waiting"), { n: true }]],
  made.queues.map((one) => ({
    key: one.name,
    cells: [one.isDeleted ? t("{0} (deleted)", one.name) : one.name, hours(one.nominal), hours(one.used), hours(one.borrowed), hours(one.starved), one.waits.count ? lasting(one.waits.p50) : "–", count(one.stillWaiting)],
  })), { class: "stack" });

const faults = () => table(t("Work lost to broken and slow nodes"), [[t("Node"), { id: true }], [t("Problem")], [t("Duration"), { n: true }], [t("Jobs"), { n: true }], [t("GPU-hours lost"), { n: true }], [t("Cost"), { n: true }], [t("Users"), { wide: true }]],
  made.faults.map((one) => ({
    key: `${one.node}/${one.problem}`,
    cells: [one.node, one.problem, lasting(one.seconds), count(one.jobs), hours(one.gpuHours), money(one.costCents / 100), Object.entries(one.owners).map(([name, amount]) => `${name} ${hours(amount)}`).join(", ") || "–"],
  })), { class: "stack" });

const waste = () => table(t("Jobs with the largest waste"), [[t("Job")], [t("User")], [t("GPUs"), { n: true }], [t("Wasted"), { n: true }], [t("Recommendation"), { wide: true }]],
  made.waste.map((one) => ({
    key: `${one.namespace}/${one.name}`,
    cells: [`${one.namespace}/${one.name}`, one.user, count(one.gpus), money(one.amounts.wastedCents / 100), one.advice.join("; ") || plural(one.gpus, "GPU")],
  })), { class: "stack" });
