// The language of the page: English, or Korean by the browser's preference or by choice.
//
// The English text is what a message is called; the catalogue has the others. It is read before any
// other script runs (they wait for this one), so messages are ready wherever they are made.

const KEY = "unisono-language";
const KNOWN = ["en", "ko"];

/** The languages that there are, each by its own name. */
export const LANGUAGES = { en: "English", ko: "한국어" };

function preferred() {
  const chosen = localStorage.getItem(KEY);
  if (KNOWN.includes(chosen)) return chosen;
  const found = navigator.languages.map((one) => one.slice(0, 2).toLowerCase()).find((one) => KNOWN.includes(one));
  return found || "en";
}

export let language = preferred();

async function read() {
  try {
    return await (await fetch(`/${language}.json`)).json();
  } catch { // without it the page is in English, and says so to screen readers
    language = "en";
    return {};
  }
}

const catalogue = language === "en" ? {} : await read();
document.documentElement.lang = language;

/** Choose a language, for good. */
export function speak(chosen) {
  localStorage.setItem(KEY, chosen);
  window.location.reload();
}

/** Return a message in the language of the page; {0}, {1} … are what follows. */
export function t(text, ...values) {
  const found = Object.hasOwn(catalogue, text) ? catalogue[text] : text;
  return values.length ? found.replace(/\{(\d)\}/g, (whole, at) => (at < values.length ? values[at] : whole)) : found;
}
