// What a person does with an object: buttons, and a dialog that shows what follows before it is done.
//
// The server decides which actions apply and whether the user may; a confirmation from there is good
// for exactly what the dialog showed. Beside it stands the same as a command.

import { language, t } from "./language.js";
import { fill, h } from "./dom.js";
import { headers } from "./live.js";

const offers = new Map(); // by object: { state, list, trouble }
const unfolded = new Set(); // objects whose folded actions are open
const MOST_KEPT = 64;
const PAUSE_MS = 250;

/** Buttons for an object; `state` is what changes when other actions apply. */
export function actions({ target, namespace, name, state, isFolded }, { person, redraw }) {
  if (!person.acts) return null;
  const key = `${target}/${namespace || ""}/${name}`;
  const isOpen = !isFolded || unfolded.has(key);
  if (isOpen) ask(key, { target, namespace: namespace || "", name, state }, redraw);
  const known = offers.get(key);
  const content = isOpen ? h("div", { class: "actions" }, buttons(known, { target, namespace: namespace || "", name }, key, redraw)) : null;
  if (!isFolded) return h("section", { class: "card act", "aria-label": t("Actions"), "data-key": `act-${key}` }, content);
  const toggle = (event) => {
    if (event.target.open === unfolded.has(key)) return;
    if (event.target.open) unfolded.add(key);
    else unfolded.delete(key);
    redraw();
  };
  return h("details", { class: "act", "data-key": `act-${key}`, open: isOpen, on: { toggle } }, h("summary", {}, t("Actions")), content);
}

async function ask(key, { target, namespace, name, state }, redraw) {
  const known = offers.get(key);
  if (known && known.state === state) return;
  while (offers.size >= MOST_KEPT) offers.delete(offers.keys().next().value);
  const mine = { state, list: known ? known.list : null, trouble: "" };
  offers.set(key, mine);
  const answer = await send(`/actions?${new URLSearchParams({ target, namespace, name, lang: language })}`);
  if (answer.ok) mine.list = answer.said.actions;
  else mine.trouble = answer.said;
  if (offers.get(key) === mine) redraw();
}

function buttons(known, where, key, redraw) {
  if (known && known.trouble) return h("p", { class: "quiet" }, t("No actions: {0}", known.trouble));
  if (!known || !known.list) return h("p", { class: "quiet" }, "…");
  if (!known.list.length) return h("p", { class: "quiet" }, t("No action applies to it as it is."));
  const missing = new Map();
  for (const one of known.list.filter((some) => some.missing)) missing.set(one.missing, [...(missing.get(one.missing) || []), one.label]);
  const again = () => { offers.delete(key); redraw(); };
  return [
    h("div", { class: "buttons" }, known.list.map((one) => h("button", {
      type: "button", class: one.grave ? "button grave" : "button", disabled: Boolean(one.missing), title: one.missing ? t("You lack the permission to {0}", one.missing) : null,
      "data-key": one.action, "data-action": one.action, on: { click: (event) => open(one, where, event.target, again) },
    }, one.label))),
    [...missing].map(([right, labels]) => h("p", { class: "quiet" }, t("{0}: you lack the permission to ", labels.join(", ")), h("code", {}, right), ".")),
  ];
}

async function send(path, body) {
  try {
    const answer = await fetch(path, body === undefined
      ? { headers: headers(), cache: "no-store" }
      : { method: "POST", headers: { ...headers(), "Content-Type": "application/json" }, body: JSON.stringify(body) });
    return { ok: answer.ok, said: answer.ok ? await answer.json() : (await answer.text()).trim() };
  } catch {
    return { ok: false, said: t("no connection") };
  }
}

// ---- the dialog -------------------------------------------------------------------------------------

function open(action, where, opener, again) {
  const values = Object.fromEntries(action.fields.map((one) => [one.name, one.value]));
  const body = () => ({ ...where, action: action.action, fields: values, lang: language });
  const told = h("div", { class: "follows", "aria-live": "polite" });
  const go = h("button", { type: "submit", class: action.grave ? "button main grave" : "button main", disabled: true }, action.label);
  const back = h("button", { type: "button", class: "button", on: { click: () => dialog.close() } }, t("Back"));
  let shown = null;
  let asked = 0;
  let timer = 0;

  const preview = async () => {
    shown = null;
    go.disabled = true;
    const empty = action.fields.find((one) => one.required && !values[one.name]);
    if (empty) { fill(told, [h("p", { class: "quiet" }, t("Choose: {0}.", empty.label))]); return; }
    asked += 1;
    const mine = asked;
    const answer = await send("/actions/preview", body());
    if (mine !== asked) return;
    if (!answer.ok) { fill(told, [h("p", { class: "wrong", role: "alert" }, answer.said)]); return; }
    shown = answer.said;
    go.textContent = shown.title;
    go.disabled = !shown.confirm;
    fill(told, consequences(shown));
  };
  const change = (name) => (event) => {
    values[name] = event.target.value;
    shown = null;
    go.disabled = true;
    clearTimeout(timer);
    timer = setTimeout(preview, PAUSE_MS);
  };
  const submit = async (event) => {
    event.preventDefault();
    if (!shown || !shown.confirm) return;
    go.disabled = true;
    const answer = await send("/actions", { ...body(), confirm: shown.confirm });
    if (!answer.ok) { fill(told, [h("p", { class: "wrong", role: "alert" }, answer.said)]); return; }
    dialog.close();
    tell(answer.said.done);
    again();
  };
  const dialog = h("dialog", { class: "card", "aria-labelledby": "act-title", on: { close: () => { clearTimeout(timer); dialog.remove(); opener.focus(); } } },
    h("form", { method: "dialog", on: { submit } },
      h("h2", { id: "act-title" }, `${action.label}: ${where.name}`),
      action.fields.map((one) => field(one, change(one.name))), told,
      h("div", { class: "buttons end" }, back, go)));
  document.body.append(dialog);
  dialog.showModal();
  if (action.fields.length) dialog.querySelector("input, select").focus();
  else back.focus();
  preview();
}

function field(one, change) {
  const id = `act-${one.name}`;
  const input = one.kind === "choice"
    ? h("select", { id, on: { change } },
      one.value ? null : h("option", { value: "" }, t("choose …")),
      one.options.map(([value, name]) => h("option", { value, selected: value === one.value }, name)))
    : h("input", {
      id, value: one.value, autocomplete: "off", spellcheck: "false", maxlength: 200, on: { input: change },
      type: { number: "number", time: "datetime-local" }[one.kind] || "text", min: one.kind === "number" ? 0 : null,
    });
  return h("p", { class: "field" }, h("label", { for: id }, one.label), input);
}

function consequences(shown) {
  return [
    h("h3", {}, t("What follows")),
    h("ul", {}, [...shown.says, ...shown.follows].map((text) => h("li", {}, text))),
    h("h3", {}, t("The same as a command")),
    shown.commands.map((text) => h("p", { class: "copied" }, h("code", { class: "command" }, text),
      h("button", { type: "button", class: "button", "aria-label": t("Copy: {0}", text), on: { click: copy(text) } }, t("Copy")))),
    shown.refusal ? h("p", { class: "wrong", role: "alert" }, t("Refused: {0}.", shown.refusal)) : null,
  ];
}

const copy = (text) => async (event) => {
  const button = event.target;
  try {
    await navigator.clipboard.writeText(text);
    button.textContent = t("Copied");
  } catch { // without permission, or not over TLS: at least it is selected
    window.getSelection().selectAllChildren(button.previousElementSibling);
    button.textContent = t("Selected");
  }
};

/** Say what was done, for a while. */
function tell(text) {
  let line = document.getElementById("told");
  if (!line) {
    line = h("p", { id: "told", role: "status" });
    document.body.append(line);
  }
  line.textContent = text;
  clearTimeout(line.timer);
  line.timer = setTimeout(() => line.remove(), 6000);
}
