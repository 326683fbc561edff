// Parts that several pages are made of.

import { t } from "./language.js";
import { dot } from "./colours.js";
import { h } from "./dom.js";
import { STAGES, STATES, count, plain, plural, starts } from "./words.js";

/** The head of a page: its name, a line about it, and what stands at the right. */
export function heading(title, about, ...aside) {
  return h("div", { class: "heading" },
    h("div", {}, h("h1", {}, title), about ? h("p", { class: "about" }, about) : null),
    aside.length ? h("div", { class: "aside" }, aside) : null);
}

export function card(title, ...content) {
  return h("section", { class: "card", "aria-label": title }, title ? h("h2", {}, title) : null, content);
}

/** A figure with its name; `kind` colours it. */
export function figure(value, name, kind, more) {
  return h("div", { class: `figure ${kind || ""}` }, h("dt", {}, name), h("dd", {}, value), more ? h("p", {}, more) : null);
}

export function figures(...of) {
  return h("dl", { class: "figures" }, of);
}

/** A table; columns as [name, {n: number, id: a name that stays on its line, wide: text that may wrap, hide: not on phones}]. */
export function table(caption, columns, rows, options) {
  const about = (at) => columns[at][1] || {};
  const classes = (at) => [about(at).n ? "n" : "", about(at).id ? "id" : "", about(at).wide ? "long" : "", about(at).hide ? "spare" : ""].filter(Boolean).join(" ") || null;
  const told = (at, content) => (about(at).id && typeof content === "string" ? content : null);
  const head = columns.map(([name], at) => h("th", { scope: "col", class: classes(at) }, name));
  const body = rows.map(({ key, cells, kind }) => h("tr", { "data-key": key, class: kind || null },
    cells.map((content, at) => (at === 0
      ? h("th", { scope: "row", class: classes(at), title: told(at, content) }, content)
      : h("td", { class: classes(at), "data-name": columns[at][0] || null, title: told(at, content) }, content)))));
  return h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": caption },
    h("table", { class: (options && options.class) || null },
      h("caption", { class: options && options.shows ? null : "unseen" }, caption),
      h("thead", {}, h("tr", {}, head)), h("tbody", {}, body)));
}

export function empty(title, text, command) {
  return h("div", { class: "empty" }, h("p", { class: "big" }, title), text ? h("p", {}, text) : null,
    command ? h("p", {}, h("code", {}, command)) : null);
}

export const denied = (right) =>
  empty(t("Access denied"), t("Ask an administrator for the permission to"), right);

/** The state of a workload: a dot and a word. */
export function chip(one) {
  const stage = one.state === "waits" && one.stage ? STAGES[one.stage] || one.stage : "";
  return h("span", { class: `chip ${one.state}` }, stage ? t("waiting: {0}", stage) : STATES[one.state] || one.state);
}

/** A bar of parts: [value, class, name]. */
export function meter(parts, whole, label, isSmall) {
  const total = Math.max(whole, parts.reduce((sum, [value]) => sum + value, 0), 1);
  return h("div", { class: isSmall ? "meter small" : "meter", role: "img", "aria-label": label },
    parts.filter(([value]) => value > 0).map(([value, kind]) =>
      h("i", { class: kind, style: { width: `${(100 * value) / total}%` } })));
}

/** How busy GPUs are, as a bar and a number. */
export function busy(value, isIdle) {
  if (value === undefined || value === null) return h("span", { class: "quiet" }, "–");
  return h("span", { class: "busy" }, meter([[value, isIdle ? "down" : "held"]], 100, t("{0} % busy", Math.round(value)), true),
    `${Math.round(value)} %`, isIdle ? h("span", { class: "tag warn" }, t("idle")) : null);
}

/** A line of the last half hour; `top` is the value at the upper edge. */
export function spark(values, top, label, isSmall) {
  const known = values.filter((one) => one !== null);
  if (known.length < 2) return null;
  const least = top === undefined ? Math.min(...known) : 0;
  const span = Math.max((top === undefined ? Math.max(...known) : top) - least, 1);
  const step = 100 / (values.length - 1);
  let path = "";
  let isOn = false;
  values.forEach((one, at) => {
    if (one === null) { isOn = false; return; }
    path += `${isOn ? "L" : "M"}${(at * step).toFixed(1)} ${(30 - (28 * (one - least)) / span).toFixed(1)}`;
    isOn = true;
  });
  return h("svg", { class: isSmall ? "spark small" : "spark", viewBox: "0 0 100 32", preserveAspectRatio: "none", role: "img", "aria-label": label }, h("path", { d: path }));
}

export function legend(parts) {
  return h("ul", { class: "legend" }, parts.filter(([value]) => value > 0).map(([value, kind, name]) =>
    h("li", {}, h("i", { class: kind, "aria-hidden": "true" }), h("b", {}, count(value)), ` ${name}`)));
}

const address = (key) => key.split("/").map(encodeURIComponent).join("/");

export const gangAddress = (key) => `#/workloads/${address(key)}`;
export const nodeAddress = (name) => `#/nodes/${encodeURIComponent(name)}`;

const jobs = new Map(); // names of jobs by workload, as far as pages told them

/** Take the names of jobs, so that links show them in place of the names of their workloads. */
export function learn(of) {
  if (jobs.size > 20000) jobs.clear();
  for (const [key, name] of Object.entries(of || {})) jobs.set(key, name);
}

/** The name of a job, with its namespace. */
export const jobOf = (key) => (jobs.has(key) ? `${key.split("/")[0]}/${jobs.get(key)}` : key);

/** A link to a workload: its own name first, its namespace smaller. */
export function gangLink(key, job) {
  if (!key || key === "·") return h("span", { class: "quiet" }, t("another namespace"));
  const [namespace, name] = key.split("/");
  const own = job ? job.slice(job.indexOf("/") + 1) : jobs.get(key) || name;
  return h("a", { class: "gang", href: gangAddress(key), title: key },
    h("i", { class: dot(key), "aria-hidden": "true" }),
    h("span", {}, h("b", {}, own), " ", h("small", {}, namespace)));
}

export const nodeLink = (name) => (name ? h("a", { href: nodeAddress(name) }, name) : "–");

export const queueLink = (name) => (name ? h("a", { class: "plain", href: `#/workloads?queue=${encodeURIComponent(name)}` }, name) : "–");

/** Why a workload waits, and when it starts. */
export function reason(one) {
  if (one.state !== "waits") return "";
  return h("div", { class: "reason" },
    h("p", {}, plain(one.says || t("Not evaluated yet."))),
    one.start ? h("p", { class: "when" }, t("starts {0}", starts(one.start, one.promised))) : null);
}

/** A link to a panel of Grafana; nothing without its address. */
export const elsewhere = (panel) => (panel ? h("a", { href: panel, target: "_blank", rel: "noopener noreferrer" }, "Grafana ↗") : null);

/** Links to the pages of a list. */
export function pager(head, to) {
  if (head.pages <= 1) return null;
  const link = (page, text, name, isOn) => (isOn
    ? h("a", { class: "button", href: to(page), "aria-label": name }, text)
    : h("span", { class: "button off", "aria-hidden": "true" }, text));
  return h("nav", { class: "pager", "aria-label": t("Pages of this list") },
    link(head.page - 1, t("← Previous"), t("Previous page"), head.page > 1),
    h("span", {}, t("Page {0} of {1}", count(head.page), count(head.pages))),
    link(head.page + 1, t("Next →"), t("Next page"), head.page < head.pages));
}

/** A field to search with; it tells what was typed when typing pauses. */
export function search(label, value, tell) {
  let timer = 0;
  return h("label", { class: "search" }, h("span", { class: "unseen" }, label),
    h("input", {
      type: "search", id: "search", value, placeholder: label, autocomplete: "off", spellcheck: "false",
      on: { input: (event) => { clearTimeout(timer); const text = event.target.value; timer = setTimeout(() => tell(text), 150); } },
    }));
}

/** A row of choices, one of which is on. */
export function choices(label, of, chosen, to) {
  return h("div", { class: "choices", role: "group", "aria-label": label }, of.map(([value, name, more]) =>
    h("a", { href: to(value), "aria-current": value === chosen ? "true" : null }, name,
      more !== undefined ? h("small", {}, count(more)) : null)));
}

export const gpus = (value) => plural(value, "GPU");

export const command = (text) => h("code", { class: "command" }, text);
