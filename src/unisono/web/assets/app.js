// The page: which part of it is open, the signed-in user, keys, and light or dark.

import { LANGUAGES, language, speak, t } from "./language.js";
import { fill, forget, h } from "./dom.js";
import { follow, hasToken, signIn, signOut, stop, takeToken, whoAmI } from "./live.js";
import { heading } from "./parts.js";
import * as overview from "./overview.js";

const PAGE = document.getElementById("page");
const MAIN = document.getElementById("main");
const LIVE = document.getElementById("live");

// The first page is loaded with the rest; the others when they are opened.
const PARTS = {
  overview: async () => overview,
  queues: () => import("./queues.js"),
  workloads: () => import("./workloads.js"),
  gang: () => import("./gang.js"),
  map: () => import("./map.js"),
  timeline: () => import("./timeline.js"),
  nodes: () => import("./nodes.js"),
  node: () => import("./node.js"),
  reports: () => import("./reports.js"),
  alerts: () => import("./alerts.js"),
};

const NAV = [
  ["overview", t("Overview"), "#/", "M3 13h8V3H3zM13 21h8V11h-8zM3 21h8v-6H3zM13 3v6h8V3z", "o"],
  ["queues", t("Queues"), "#/queues", "M4 6h16M4 12h11M4 18h7", "q"],
  ["workloads", t("Workloads"), "#/workloads", "M12 3l9 5-9 5-9-5zM3 13l9 5 9-5", "w"],
  ["map", t("Map"), "#/map", "M4 4h6v6H4zM14 4h6v6h-6zM4 14h6v6H4zM14 14h6v6h-6z", "m"],
  ["timeline", t("Timeline"), "#/timeline", "M4 7h9M8 12h10M5 17h6M20 4v16", "t"],
  ["nodes", t("Nodes"), "#/nodes", "M4 4h16v6H4zM4 14h16v6H4zM8 7h.01M8 17h.01", "n"],
  ["alerts", t("Alerts"), "#/alerts", "M12 4 2.5 20h19zM12 10v4M12 17h.01", "a"],
  ["reports", t("Reports"), "#/reports", "M5 20V10M12 20V4M19 20v-7", "r"],
];

let person = null;
let route = null;
let part = null;
let model = null;
let opening = 0;

// ---- where we are -----------------------------------------------------------------------------------

function parse() {
  const [path, query] = location.hash.replace(/^#\/?/, "").split("?");
  const [first, ...rest] = path.split("/").filter(Boolean).map(decodeURIComponent);
  const name = first === "workloads" && rest.length === 2 ? "gang"
    : first === "nodes" && rest.length === 1 ? "node" : first || "overview";
  return { name: Object.hasOwn(PARTS, name) ? name : "absent", rest, query: new URLSearchParams(query || "") };
}

/** What pages get besides their model: their address, the user, and how to change the address. */
function context() {
  return { ...route, person, redraw: draw, change };
}

/** Change a part of the address without leaving the page; `null` removes a field. */
function change(fields) {
  const query = new URLSearchParams(route.query);
  for (const [name, value] of Object.entries(fields)) {
    if (value === null || value === "") query.delete(name);
    else query.set(name, value);
  }
  const text = query.toString();
  history.replaceState(null, "", `${location.hash.split("?")[0] || "#/"}${text ? `?${text}` : ""}`);
  open(true);
}

async function open(isSame) {
  route = parse();
  opening += 1;
  const mine = opening;
  navigation();
  if (!person || !person.name) { askForToken(); return; }
  if (route.name === "absent") { stop(); model = null; part = null; absent(); return; }
  if (!isSame) { model = null; forget(); }
  const loaded = await PARTS[route.name]();
  if (mine !== opening) return;
  part = loaded;
  document.title = `${part.title(context())} · Unisono`;
  if (!isSame) { fill(PAGE, [h("div", { class: "waiting", "aria-hidden": "true" })]); window.scrollTo(0, 0); MAIN.focus({ preventScroll: true }); }
  const question = part.ask ? part.ask(context()) : null;
  if (question) {
    follow(question, {
      tell: (made) => { if (mine === opening) { model = made; draw(); } },
      say,
      refused: () => { person = { ...person, name: "" }; askForToken(); },
    });
  } else {
    stop();
    say("live");
    if (part.load) {
      const loading = part.load(context());
      if (!isSame) fill(PAGE, [...part.draw(null, context()), h("div", { class: "waiting", hidden: true })]);
      await loading;
    }
    if (mine === opening) draw();
  }
}

function draw() {
  if (!part || !route || (part.ask && !model)) return;
  fill(PAGE, part.draw(model, context()));
  const field = isSearching && document.getElementById("search");
  if (field) { isSearching = false; field.focus(); }
  performance.mark("drawn");
  document.body.dataset.drawn = route.name;
}

function absent() {
  document.title = t("Page not found · Unisono");
  say("live");
  fill(PAGE, [heading(t("Page not found"), t("The address may be from another version.")), h("p", {}, h("a", { href: "#/" }, t("Back to the overview")))]);
  document.body.dataset.drawn = "absent";
}

const icon = (path) => h("svg", { viewBox: "0 0 24 24", width: 18, height: 18, "aria-hidden": "true", class: "icon" }, h("path", { d: path }));

function navigation() {
  const open = { gang: "workloads", node: "nodes" }[route.name] || route.name;
  fill(document.getElementById("nav"), NAV.map(([name, title, href, path, key]) =>
    h("a", { href, "data-key": name, "aria-current": name === open ? "page" : null, "aria-keyshortcuts": `g ${key}` },
      icon(path), h("span", {}, title))));
}

const SAID = { live: t("live"), gone: t("no connection, retrying") };

function say(what) {
  if (LIVE.dataset.state === what) return;
  LIVE.dataset.state = what;
  LIVE.textContent = SAID[what] || what;
}

// ---- sign-in ----------------------------------------------------------------------------------------

function askForToken() {
  stop();
  model = null;
  part = null;
  document.title = t("Sign in · Unisono");
  say(t("not signed in"));
  account();
  const wrong = h("p", { class: "wrong", role: "alert" });
  const input = h("input", { type: "password", id: "token", autocomplete: "off", spellcheck: "false", required: true });
  const submit = async (event) => {
    event.preventDefault();
    const found = await signIn(input.value.trim()).catch(() => null);
    if (!found) { wrong.textContent = t("This token is not valid."); input.focus(); return; }
    person = found;
    account();
    open();
  };
  fill(PAGE, [h("form", { class: "sign-in card", "aria-label": t("Sign in"), "data-key": `sign-in-${Date.now()}`, on: { submit } },
    h("img", { src: "/icon.svg", alt: "", width: 44, height: 44 }),
    h("h1", {}, t("Sign in")),
    person && person.cookie
      ? h("p", {}, t("With a token of the cluster, for example from "), h("code", {}, "kubectl create token ACCOUNT"), t(". You see what the token’s account may list."))
      : h("p", {}, t("The address that "), h("code", {}, "unisono up"), t(" printed signs you in. Or paste the token from the file "), h("code", {}, "web-token"), t(" of its folder.")),
    h("label", { for: "token" }, t("Token")), input, wrong,
    h("button", { type: "submit", class: "button main" }, t("Sign in")))]);
  document.body.dataset.drawn = "sign-in";
  document.getElementById("token").focus();
}

function account() {
  const isIn = person && person.name;
  const theme = h("button", { type: "button", class: "quiet", on: { click: turnTheme }, "aria-label": t("Colours: {0}", THEME_NAMES[themeName()]) }, THEME_NAMES[themeName()]);
  const other = language === "ko" ? "en" : "ko";
  const tongue = h("button", { type: "button", class: "quiet", lang: other, on: { click: () => speak(other) } }, LANGUAGES[other]);
  fill(document.getElementById("account"), [
    isIn ? h("span", { class: "person", title: person.name }, person.name) : null, theme, tongue,
    isIn ? h("button", { type: "button", class: "quiet", on: { click: async () => { await signOut(); person = { ...person, name: "" }; askForToken(); } } }, t("sign out")) : null,
  ]);
}

// ---- light and dark ---------------------------------------------------------------------------------

const THEMES = ["auto", "light", "dark"];
const THEME_NAMES = { auto: t("auto"), light: t("light"), dark: t("dark") };
const themeName = () => localStorage.getItem("unisono-theme") || "auto";

function applyTheme() {
  const chosen = themeName();
  if (chosen === "auto") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = chosen;
}

function turnTheme() {
  localStorage.setItem("unisono-theme", THEMES[(THEMES.indexOf(themeName()) + 1) % THEMES.length]);
  applyTheme();
  account();
}

// ---- keys -------------------------------------------------------------------------------------------

let isSearching = false; // the next page that has a field to search with gets the focus there
let isGoing = 0; // when `g` was pressed, as the first of two keys

function press(event) {
  if (document.querySelector("dialog[open]")) return; // it has keys of its own
  if (event.ctrlKey || event.metaKey || event.altKey || /input|select|textarea/i.test(event.target.tagName)) return;
  if (isGoing && Date.now() - isGoing < 1500) {
    const found = NAV.find(([, , , , key]) => key === event.key);
    isGoing = 0;
    if (found) { event.preventDefault(); location.hash = found[2]; return; }
  }
  if (event.key === "g") isGoing = Date.now();
  else if (event.key === "/") {
    event.preventDefault();
    const field = document.getElementById("search");
    if (field) field.focus();
    else { isSearching = true; location.hash = "#/workloads"; }
  } else if (part && part.press) part.press(event, model, context());
}

// ---- begin ------------------------------------------------------------------------------------------

async function begin() {
  document.querySelector(".skip").textContent = t("Skip to the content");
  applyTheme();
  takeToken();
  route = parse();
  navigation();
  // With a token at hand the first page is loaded at once, and the name of the user beside it.
  const isKnown = hasToken();
  const asking = whoAmI();
  if (isKnown) { person = { name: "…", cookie: false, reports: true, acts: false }; open(); }
  try {
    person = await asking;
  } catch {
    stop();
    say("gone");
    setTimeout(begin, 2000);
    return;
  }
  account();
  if (!isKnown || !person.name) open();
  else draw(); // what depends on the user, such as actions
}

window.addEventListener("hashchange", () => {
  if (location.hash === "#main") { MAIN.focus(); history.replaceState(null, "", "#/"); return; }
  takeToken();
  open();
});
document.addEventListener("keydown", press);
// Browsers allow six connections to one host, for all tabs together: a hidden tab closes its own.
document.addEventListener("visibilitychange", () => {
  if (!person || !person.name || !part || !part.ask) return;
  if (document.hidden) stop();
  else open(true);
});
window.addEventListener("pagehide", stop);
window.addEventListener("pageshow", (event) => { if (event.persisted) open(true); });
// Ages grow without anything happening in the cluster.
setInterval(() => { if (model && !document.hidden) draw(); }, 10000);
begin();
