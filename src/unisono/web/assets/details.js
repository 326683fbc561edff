// Events, logs and the manifest of a gang: folded, and asked for when they are opened.

import { t } from "./language.js";
import { h } from "./dom.js";
import { headers } from "./live.js";
import { command, empty, table } from "./parts.js";
import { clock, count } from "./words.js";

const kept = new Map(); // by part of a gang: what was answered
const unfolded = new Set();
const MOST_KEPT = 12;
let chosen = { gang: "", pod: "", container: "" };

const PARTS = [["events", t("Events")], ["logs", t("Logs")], ["manifest", t("Manifest")]];

export function details({ namespace, name, pods }, { person, redraw }) {
  if (!person.details) return null;
  const gang = `${namespace}/${name}`;
  if (chosen.gang !== gang) chosen = { gang, pod: "", container: "" };
  return PARTS.map(([part, title]) => {
    const key = `${part} ${gang}`;
    const isOpen = unfolded.has(key);
    const where = { namespace, name, ...(part === "logs" ? { pod: chosen.pod || pods[0] || "", container: chosen.container } : {}) };
    const load = () => { ask(key, part, where, redraw); };
    if (isOpen && !kept.has(key) && (part !== "logs" || where.pod)) load();
    const toggle = (event) => {
      if (event.target.open === unfolded.has(key)) return;
      if (event.target.open) unfolded.add(key);
      else { unfolded.delete(key); kept.delete(key); }
      redraw();
    };
    return h("details", { class: "card part", "data-key": key, open: isOpen, on: { toggle } },
      h("summary", {}, title),
      isOpen ? h("div", {}, DRAW[part](kept.get(key), { namespace, name, pods, where, load, redraw, key })) : null);
  });
}

async function ask(key, part, where, redraw) {
  while (kept.size >= MOST_KEPT) kept.delete(kept.keys().next().value);
  const mine = { ...(kept.get(key) || {}), isAsked: true };
  kept.set(key, mine);
  let found;
  try {
    const answer = await fetch(`/details/${part}?${new URLSearchParams(where)}`, { headers: headers(), cache: "no-store" });
    found = answer.ok ? await answer.json() : { trouble: (await answer.text()).trim() };
  } catch {
    found = { trouble: t("no connection") };
  }
  if (kept.get(key) !== mine) return;
  kept.set(key, found);
  redraw();
}

const again = (load) => h("button", { type: "button", class: "button", on: { click: load } }, t("Read again"));

function state(known) {
  if (known && known.trouble) return h("p", { class: "wrong", role: "alert" }, known.trouble);
  return h("p", { class: "quiet" }, "…");
}

const DRAW = {
  events(known, { namespace, load }) {
    if (!known || !known.events) return state(known);
    return [
      known.events.length
        ? table(t("Events of the gang, the newest first"), [[t("Time")], [t("Reason")], [t("About"), { id: true }], [t("Message"), { wide: true }]],
          known.events.map((one, at) => ({ key: String(at), cells: [clock(one.at, true),
            h("span", { class: one.type === "Warning" ? "chip bad" : null }, one.reason, one.count > 1 ? ` × ${count(one.count)}` : ""), one.about, one.message] })), { class: "stack" })
        : empty(t("No events"), t("The API keeps events for an hour.")),
      known.isCut ? h("p", { class: "quiet" }, t("There are more events in this namespace than were read.")) : null,
      h("p", { class: "tools" }, again(load), command(`kubectl events -n ${namespace}`)),
    ];
  },
  logs(known, { namespace, pods, where, load, redraw, key }) {
    if (!pods.length) return empty(t("No pods"), t("Logs begin when the pods do."));
    const take = (field) => (event) => {
      chosen = { ...chosen, pod: where.pod, [field]: event.target.value };
      if (field === "pod") chosen.container = "";
      kept.delete(key);
      redraw();
    };
    const choice = (field, label, options, value) => h("label", { class: "field" }, h("span", {}, label),
      h("select", { "data-key": field, on: { change: take(field) } }, options.map((one) => h("option", { value: one, selected: one === value }, one))));
    return [
      h("div", { class: "tools" }, choice("pod", t("Pod"), pods, where.pod),
        known && known.containers && known.containers.length > 1 ? choice("container", t("Container"), known.containers, known.container) : null),
      known && known.text !== undefined
        ? [h("pre", { class: "log", tabindex: "0", "aria-label": t("The last lines of {0}", where.pod) }, known.text || t("(nothing was written)")),
          h("p", { class: "quiet" }, t("The last {0} lines.", count(known.lines)))]
        : state(known),
      h("p", { class: "tools" }, again(load), command(`unisono logs ${where.pod} -n ${namespace}`)),
    ];
  },
  manifest(known, { load }) {
    if (!known || known.manifest === undefined) return state(known);
    const copy = async (event) => {
      const button = event.target;
      try {
        await navigator.clipboard.writeText(known.manifest);
        button.textContent = t("Copied");
      } catch { // without permission, or not over TLS: at least it is selected
        window.getSelection().selectAllChildren(button.closest("details").querySelector("pre"));
        button.textContent = t("Selected");
      }
    };
    return [h("pre", { class: "log", tabindex: "0", "aria-label": t("Manifest") }, known.manifest),
      h("p", { class: "tools" }, h("button", { type: "button", class: "button", on: { click: copy } }, t("Copy")), again(load))];
  },
};
