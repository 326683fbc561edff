// Queues as a tree of cohorts: quota, usage, borrowed and lent GPUs.

import { t } from "./language.js";
import { actions } from "./actions.js";
import { h } from "./dom.js";
import { rowsOf } from "./live.js";
import { card, denied, elsewhere, empty, gangLink, heading, meter, queueLink, reason } from "./parts.js";
import { count, plural } from "./words.js";

export const title = () => t("Queues");

export const ask = () => ({ page: "queues" });

let here = null; // what pages get besides their model

export function draw(model, context) {
  here = context;
  if (model.head.denied) return [heading(t("Queues")), denied(model.head.denied)];
  const rows = rowsOf(model);
  if (!rows.length) {
    return [heading(t("Queues")), empty(t("No queues yet"), t("A ClusterQueue defines how much a team may use:"), "kubectl apply -f queues.yaml")];
  }
  const waits = rows.reduce((sum, one) => sum + one.waits, 0);
  return [
    heading(t("Queues"), t("{0}, {1} waiting. Queues of a cohort borrow unused quota from each other.", plural(rows.length, "queue"), plural(waits, "workload"))),
    ...tree(rows).map(cohort),
    rows.filter((one) => !one.cohorts.length).length
      ? card(t("Queues without a cohort"), h("div", { class: "queues" }, rows.filter((one) => !one.cohorts.length).map(queue))) : null,
  ];
}

// Cohorts by name, each with the cohorts below it.
function tree(rows) {
  const top = new Map();
  for (const row of rows) {
    let level = top;
    let place = null;
    for (const name of row.cohorts) {
      if (!level.has(name)) level.set(name, { name, below: new Map(), queues: [] });
      place = level.get(name);
      level = place.below;
    }
    if (place) place.queues.push(row);
  }
  return [...top.values()];
}

function all(one) {
  return [...one.queues, ...[...one.below.values()].flatMap(all)];
}

function cohort(one) {
  const sums = new Map();
  for (const row of all(one)) {
    for (const flavor of row.flavors) {
      const sum = sums.get(flavor.name) || { used: 0, nominal: 0 };
      sums.set(flavor.name, { used: sum.used + flavor.used, nominal: sum.nominal + flavor.nominal });
    }
  }
  return h("section", { class: "card cohort", "aria-label": t("Cohort {0}", one.name), "data-key": `cohort ${one.name}` },
    h("h2", {}, h("small", {}, t("Cohort")), one.name),
    h("ul", { class: "sums" }, [...sums].map(([name, sum]) => h("li", {}, h("span", {}, name),
      meter([[Math.min(sum.used, sum.nominal), "held"], [Math.max(0, sum.used - sum.nominal), "borrowed"]], sum.nominal, t("{0} of {1} GPUs of {2} used", sum.used, sum.nominal, name), true),
      h("span", { class: "n" }, t("{0} of {1}", count(sum.used), count(sum.nominal)))))),
    h("div", { class: "queues" }, one.queues.map(queue)),
    [...one.below.values()].map(cohort));
}

function queue(one) {
  return h("article", { class: "queue", "data-key": one.name, "aria-label": t("Queue {0}", one.name) },
    h("header", {}, h("h3", {}, queueLink(one.name)), one.active ? null : h("span", { class: "chip over" }, t("stopped")),
      h("p", {}, t("{0} running, {1} waiting", count(one.runs), count(one.waits)), one.wanted ? t(" ({0} requested)", plural(one.wanted, "GPU")) : "", one.panel ? " · " : "", elsewhere(one.panel))),
    one.flavors.length ? one.flavors.map(flavor) : h("p", { class: "quiet" }, t("No GPU quota.")),
    one.head ? h("div", { class: "head" }, h("p", {}, t("Next: "), gangLink(one.head.key, one.head.job)), reason(one.head)) : null,
    actions({ target: "queue", name: one.name, state: String(one.active), isFolded: true }, here));
}

function flavor(one) {
  const own = Math.min(one.used, one.nominal);
  const notes = [
    one.borrowed ? h("span", { class: "tag borrowed" }, t("{0} borrowed", count(one.borrowed))) : null,
    one.lent ? h("span", { class: "tag lent" }, t("{0} lent", count(one.lent))) : null,
    one.mayBorrow !== null ? h("span", { class: "tag" }, t("may borrow {0}", count(one.mayBorrow))) : null,
    one.mayLend !== null ? h("span", { class: "tag" }, t("may lend {0}", count(one.mayLend))) : null,
  ].filter(Boolean);
  const label = t("{0}: {1} of {2} GPUs used, {3} borrowed, {4} lent", one.name, one.used, one.nominal, one.borrowed, one.lent);
  return h("div", { class: "flavor", "data-key": one.name },
    h("span", { class: "name" }, one.name),
    meter([[own, "held"], [one.borrowed, "borrowed"], [one.lent, "lent"]], one.nominal, label, true),
    h("span", { class: "n" }, t("{0} of {1}", count(one.used), count(one.nominal))),
    notes.length ? h("div", { class: "tags" }, notes) : null);
}
