// The colour and the pattern of a gang that holds GPUs: different for up to 32 of them at a time.
//
// A gang takes the first free one of 32 combinations when it is first seen with GPUs, and keeps it on
// every page of this tab. One that has not been seen for longest gives its own away.

import { hue } from "./words.js";

const KEY = "unisono-colours";
const COLOURS = 8;
const PATTERNS = 4;
const SLOTS = COLOURS * PATTERNS;
const taken = new Map(read()); // by gang, the one that was not seen for longest first

function read() {
  try {
    const found = JSON.parse(sessionStorage.getItem(KEY) || "[]");
    return found.filter(([name, slot]) => typeof name === "string" && Number.isInteger(slot) && slot >= 0 && slot < SLOTS);
  } catch {
    return [];
  }
}

/** Give every one of these gangs a colour of its own, as far as there are enough. */
export function claim(keys) {
  const present = new Set([...keys].filter((key) => key && key !== "·"));
  const before = taken.size;
  let isNew = false;
  for (const key of present) {
    let slot = taken.get(key);
    if (slot === undefined) {
      slot = free(present);
      if (slot === null) continue; // more gangs than combinations: the rest share some
      isNew = true;
    }
    taken.delete(key); // so that it stands last
    taken.set(key, slot);
  }
  if (isNew || before !== taken.size) sessionStorage.setItem(KEY, JSON.stringify([...taken]));
}

function free(present) {
  const used = new Set(taken.values());
  for (let slot = 0; slot < SLOTS; slot += 1) if (!used.has(slot)) return slot;
  for (const [key, slot] of taken) {
    if (!present.has(key)) {
      taken.delete(key);
      return slot;
    }
  }
  return null;
}

// Neighbours differ in both; the two of the first eight that share a pattern have colours that are
// different to every kind of eyes.
const classes = (slot) => `c${slot % COLOURS} p${(slot + Math.floor(slot / COLOURS)) % PATTERNS}`;

/** The classes of a gang that holds GPUs; those of a shared one if there are too many gangs. */
export const own = (key) => classes(taken.has(key) ? taken.get(key) : hue(key));

/** The classes of a gang wherever it is named: its own, or hollow while it holds nothing. */
export const dot = (key) => (taken.has(key) ? `dot ${own(key)}` : `dot hollow c${hue(key)}`);
