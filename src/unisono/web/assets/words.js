// Numbers, times and names as people write them.

import { language, t } from "./language.js";

let ahead = 0; // how far the server's clock is ahead of ours, in seconds

/** Take note of the server's time. */
export function setClock(now) {
  ahead = now - Date.now() / 1000;
}

/** The server's time, in seconds. */
export const now = () => Date.now() / 1000 + ahead;

export function lasting(seconds) {
  const whole = Math.max(0, Math.round(seconds));
  if (whole < 60) return t("{0} s", whole);
  if (whole < 3600) return t("{0} min", Math.floor(whole / 60));
  if (whole < 86400) return two(Math.floor(whole / 3600), "{0} h", Math.floor((whole % 3600) / 60), "{0} min");
  return two(Math.floor(whole / 86400), "{0} d", Math.floor((whole % 86400) / 3600), "{0} h");
}

const two = (large, unit, small, smaller) => (small ? `${t(unit, large)} ${t(smaller, small)}` : t(unit, large));

export const ago = (at) => (at ? lasting(now() - at) : "–");

// As the browser writes them, unless another language was chosen.
const LOCALE = navigator.language.slice(0, 2) === language ? [] : language;
const TIME = new Intl.DateTimeFormat(LOCALE, { hour: "2-digit", minute: "2-digit", hour12: false });
const TIME_S = new Intl.DateTimeFormat(LOCALE, { hour: "2-digit", minute: "2-digit", second: "2-digit", hour12: false });
const DAY = new Intl.DateTimeFormat(LOCALE, { weekday: "short", day: "numeric", month: "short" });
const DATE = new Intl.DateTimeFormat(LOCALE, { day: "numeric", month: "short", year: "numeric" });

export function clock(at, isExact) {
  if (!at) return "";
  const date = new Date(at * 1000);
  const time = (isExact ? TIME_S : TIME).format(date);
  const today = new Date(now() * 1000);
  return date.toDateString() === today.toDateString() ? time : `${DAY.format(date)}, ${time}`;
}

export const day = (at) => DATE.format(new Date(at * 1000));

export const weekday = (at) => DAY.format(new Date(at * 1000));

export const time = (at) => TIME.format(new Date(at * 1000));

export const timeExact = (at) => TIME_S.format(new Date(at * 1000));

/** When something starts, in words. */
export function starts(at, isPromised) {
  if (!at) return t("unknown");
  const left = at - now();
  if (left <= 0) return t("now");
  return isPromised ? t("by {0} (in {1})", clock(at), lasting(left)) : t("about {0} (in {1})", clock(at), lasting(left));
}

// Particles of Korean behind a consonant: the word before them has become another.
const AFTER = { 가: "이", 를: "을", 는: "은", 와: "과", 로: "으로" };

const INSTANT = /\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ/g;

/** A sentence of the scheduler, with local times, and with GPUs called by their name. */
export const plain = (text) => named(text.replace(INSTANT, (at) => clock(Date.parse(at) / 1000)));

const named = (text) => (language === "ko"
  ? text.replace(/\b([\d,]+) (?:nvidia|amd)\.com\/gpu\b([가를는와로](?=[\s,.:)]|$))?/g, (whole, amount, particle) => `GPU ${amount}장${AFTER[particle] || ""}`).replace(/\b(?:nvidia|amd)\.com\/gpu\b/g, "GPU")
  : text.replace(/\b1 (?:nvidia|amd)\.com\/gpu\b/g, "1 GPU").replace(/\b(?:nvidia|amd)\.com\/gpu\b/g, "GPUs"));

const NUMBER = new Intl.NumberFormat("en");
export const count = (value) => NUMBER.format(value);

/** So many things of a kind; `word` is one of them. */
export function plural(value, word) {
  if (language !== "en") return t(`{0} ${word}`, count(value));
  return `${count(value)} ${word}${value === 1 ? "" : word.endsWith("s") ? "es" : "s"}`;
}

const MONEY = new Intl.NumberFormat("en", { style: "currency", currency: "USD" });
const ROUND_MONEY = new Intl.NumberFormat("en", { style: "currency", currency: "USD", maximumFractionDigits: 0 });
/** Money; without cents from ten thousand on. */
export const money = (value) => (Math.abs(value) >= 10000 ? ROUND_MONEY : MONEY).format(value);

/** Memory of GPUs, which is known in MiB. */
export const gib = (mib) => `${NUMBER.format(Math.round(mib / 102.4) / 10)} GiB`;

export const watts = (value) => (value >= 10000 ? `${NUMBER.format(Math.round(value / 100) / 10)} kW` : `${NUMBER.format(Math.round(value))} W`);

export const percent = (part, whole) => (whole ? `${Math.round((100 * part) / whole)} %` : "–");

export const hours = (value) => new Intl.NumberFormat("en", { maximumFractionDigits: value < 100 ? 1 : 0 }).format(value);

export const STATES = { waits: t("waiting"), starts: t("starting"), runs: t("running"), over: t("finished") };

/** Why it waits, as one word for a label. */
export const STAGES = {
  quota: t("quota"), flavor: t("flavor"), placement: t("nodes"), preemption: t("preempting"), provision: t("provisioning"),
  order: t("queued"), hold: t("on hold"), config: t("cannot start"),
};

/** A number from 0 to 7 for a name: a colour, for what does not hold GPUs now. */
export function hue(name) {
  let sum = 7;
  for (const letter of name) sum = (sum * 31 + letter.charCodeAt(0)) >>> 0;
  return sum % 8;
}
