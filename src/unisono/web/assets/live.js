// The connection: one stream of lines for the page that is open, and the token that opens it.
//
// A line is JSON: `head`, `set` (rows that changed), `order` (of all rows), `now`. The first one has
// everything. When the stream ends it is opened again, and begins with everything again.

import { language } from "./language.js";
import { setClock } from "./words.js";

const KEY = "unisono-token";
const AGAIN_MS = [500, 1000, 2000, 5000];
let current = null;

export class NotSignedIn extends Error {}

/** The headers that authenticate; none where a cookie does. */
export function headers() {
  const token = sessionStorage.getItem(KEY);
  return token ? { Authorization: `Bearer ${token}` } : {};
}

export const hasToken = () => Boolean(sessionStorage.getItem(KEY));

/** Take a token from the address, which then loses it. */
export function takeToken() {
  const given = location.hash.match(/^#token=([\w.~-]+)(\/.*)?$/);
  if (!given) return;
  sessionStorage.setItem(KEY, given[1]);
  history.replaceState(null, "", `/#${given[2] || "/"}`);
}

export async function whoAmI() {
  const answer = await fetch("/session", { headers: headers(), cache: "no-store" });
  const about = await answer.json();
  setClock(about.now);
  return about;
}

/** Sign in with a token; return the session, or null. */
export async function signIn(token) {
  const answer = await fetch("/session", { method: "POST", headers: { Authorization: `Bearer ${token}` } });
  if (!answer.ok) return null;
  const about = await answer.json();
  if (!about.cookie) sessionStorage.setItem(KEY, token);
  return about;
}

export async function signOut() {
  sessionStorage.removeItem(KEY);
  await fetch("/session", { method: "DELETE" });
}

/** Follow a page; `tell` gets its model whenever it changed, `say` what the connection does. */
export function follow(question, { tell, say, refused }) {
  stop();
  const stream = { aborter: new AbortController(), isOver: false };
  current = stream;
  run(stream, question, tell, say, refused);
}

export function stop() {
  if (current) {
    current.isOver = true;
    current.aborter.abort();
  }
  current = null;
}

async function run(stream, question, tell, say, refused) {
  for (let tries = 0; !stream.isOver;) {
    try {
      await read(stream, question, (model) => { tries = 0; say("live"); tell(model); });
    } catch (trouble) {
      if (trouble instanceof NotSignedIn && !stream.isOver) { refused(); return; }
    }
    if (stream.isOver) return;
    if (tries) say("gone");
    await new Promise((resolve) => { setTimeout(resolve, AGAIN_MS[Math.min(tries, AGAIN_MS.length - 1)]); });
    tries += 1;
  }
}

async function read(stream, question, tell) {
  const answer = await fetch(`/live?${new URLSearchParams(language === "en" ? question : { ...question, lang: language })}`,
    { headers: headers(), cache: "no-store", signal: stream.aborter.signal });
  if (answer.status === 401) throw new NotSignedIn();
  if (!answer.ok) throw new Error(String(answer.status));
  const model = { head: null, rows: new Map(), order: [] };
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done || stream.isOver) return;
    const lines = (rest + value).split("\n");
    rest = lines.pop();
    for (const line of lines) take(model, JSON.parse(line));
    if (lines.length && model.head) tell(model);
  }
}

function take(model, message) {
  if (message.signedOut) throw new NotSignedIn();
  if (message.now) setClock(message.now);
  if (message.head) model.head = message.head;
  for (const [name, row] of Object.entries(message.set || {})) model.rows.set(name, row);
  if (message.order) {
    model.order = message.order;
    const there = new Set(message.order);
    for (const name of [...model.rows.keys()]) if (!there.has(name)) model.rows.delete(name);
  }
}

/** The rows of a model, in order. */
export const rowsOf = (model) => model.order.map((name) => model.rows.get(name));
