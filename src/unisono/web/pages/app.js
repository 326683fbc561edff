// The page: asks for the picture, draws it, and asks again whenever the server says that it changed.
"use strict";

const MAIN = document.getElementById("main");
const LIVE = document.getElementById("live");
const TOKEN = "unisono-token";
let picture = null;
let filter = "";

// ---- small things ---------------------------------------------------------------------------------

function make(tag, properties, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(properties || {})) {
    if (name in made && name !== "list") made[name] = value;
    else made.setAttribute(name, value);
  }
  for (const child of children.flat()) {
    if (child !== null && child !== undefined) made.append(child);
  }
  return made;
}

const lasting = (seconds) => {
  const whole = Math.max(0, Math.round(seconds));
  if (whole < 60) return `${whole} s`;
  if (whole < 3600) return `${Math.floor(whole / 60)} min`;
  if (whole < 86400) return `${Math.floor(whole / 3600)} h ${Math.floor((whole % 3600) / 60)} min`;
  return `${Math.floor(whole / 86400)} d ${Math.floor((whole % 86400) / 3600)} h`;
};

const ago = (at) => (at ? lasting(Date.now() / 1000 - at) : "–");

const clock = (at) => {
  if (!at) return "";
  const date = new Date(at * 1000);
  const isToday = date.toDateString() === new Date().toDateString();
  return isToday ? date.toLocaleTimeString() : date.toLocaleString();
};

const WORDS = {
  pending: "waits", inadmissible: "waits", admitted: "starts", running: "runs", finished: "is over",
};

const state = (one) => make("span", { className: `state ${one.state}` }, WORDS[one.state] || one.state);

const workloadLink = (key) =>
  make("a", { href: `#/workloads/${key.split("/").map(encodeURIComponent).join("/")}` }, key);

function table(caption, headings, rows) {
  const cell = (tag, content, at) =>
    make(tag, headings[at].endsWith("#") ? { className: "n" } : {}, content);
  const head = make("tr", {}, headings.map((one, at) => {
    const made = cell("th", one.replace("#", ""), at);
    made.scope = "col";
    return made;
  }));
  const body = rows.map((row) => make("tr", {}, row.map((content, at) => cell("td", content, at))));
  return make("div", { className: "wide" }, make("table", {},
    make("caption", {}, caption), make("thead", {}, head), make("tbody", {}, body)));
}

const empty = (text) => make("p", { className: "empty" }, text);

function share(used, of, label, isSmall) {
  const part = make("i");
  part.style.width = `${of ? Math.min(100, (100 * used) / of) : 0}%`;
  return make("div", { className: isSmall ? "bar small" : "bar", role: "img", ariaLabel: label }, part);
}

// ---- pages ----------------------------------------------------------------------------------------

function overview() {
  const gpus = picture.gpus;
  const tiles = [
    [gpus.there, "GPUs"], [gpus.held, "held by jobs"], [gpus.free, "free"],
    [gpus.down, "on closed nodes"], [gpus.wanted, "wanted by those who wait"],
    [picture.counts.running, "workloads run"], [picture.counts.waiting, "workloads wait"],
  ];
  if (gpus.costHour) tiles.push([`$${gpus.costHour.toFixed(2)}`, "an hour, all nodes"]);
  const heads = picture.queues.filter((one) => one.head);
  const running = picture.workloads.filter((one) => ["running", "admitted"].includes(one.state));
  return [
    make("h2", {}, "GPUs"),
    make("div", { className: "tiles" }, tiles.map(([value, text]) =>
      make("div", { className: "tile" }, make("b", {}, String(value)), make("span", {}, text)))),
    share(gpus.held, gpus.there, `${gpus.held} of ${gpus.there} GPUs are held by jobs`),
    make("h2", {}, "Next in every queue"),
    heads.length ? table("The head of each queue, and why it waits", ["Queue", "Workload", "Starts", "Why it waits"],
      heads.map((one) => [one.name, workloadLink(one.head), estimate(one.planned), says(one.says)]))
      : empty("Nobody waits."),
    make("h2", {}, "What runs"),
    running.length ? table(`${running.length} workloads`, ["Workload", "Owner", "Queue", "GPUs#", "For#"],
      running.slice(0, 25).map((one) => [workloadLink(one.key), one.user, one.queue, String(one.gpus), ago(one.times[3] || one.times[2])]))
      : empty("Nothing runs. Submit a job with kubectl apply, or see unisono demo."),
  ];
}

const says = (text) => make("span", { className: "says" }, text || "its turn has not come");

const estimate = (at) => (at ? `by ${clock(at)}` : "not known");

function queues() {
  if (!picture.queues.length) return [make("h2", {}, "Queues"), empty("There are no ClusterQueues.")];
  const cohorts = new Map();
  for (const one of picture.queues) {
    if (!cohorts.has(one.cohort)) cohorts.set(one.cohort, []);
    cohorts.get(one.cohort).push(one);
  }
  return [...cohorts].sort().flatMap(([cohort, of]) => [
    make("h2", {}, cohort ? `Cohort ${cohort}` : "Queues of their own"),
    table("GPUs by queue and flavor", ["Queue", "Flavor", "Used#", "Own#", "Borrowed#", "In use", "Runs#", "Waits#", "Wanted#"],
      of.flatMap((queue) => (queue.flavors.length ? queue.flavors : [{ name: "–", used: 0, nominal: 0 }]).map((flavor, at) => [
        at ? "" : queue.name + (queue.active ? "" : " (stopped)"), flavor.name, String(flavor.used), String(flavor.nominal),
        String(Math.max(0, flavor.used - flavor.nominal)),
        share(flavor.used, flavor.nominal, `${flavor.used} of ${flavor.nominal} GPUs`, true),
        at ? "" : String(queue.running), at ? "" : String(queue.waiting), at ? "" : String(queue.pending),
      ]))),
  ]);
}

function workloads() {
  const wanted = filter.toLowerCase();
  const found = picture.workloads.filter((one) =>
    !wanted || `${one.key} ${one.job} ${one.user} ${one.queue} ${WORDS[one.state]}`.toLowerCase().includes(wanted));
  const counts = picture.counts;
  const input = make("input", { type: "search", value: filter, id: "filter", autocomplete: "off" });
  input.addEventListener("input", () => { filter = input.value; draw(); });
  return [
    make("h2", {}, "Workloads"),
    make("label", { className: "filter", htmlFor: "filter" }, "Filter (press /)", input),
    found.length ? table(
      `${found.length} shown; ${counts.waiting} wait, ${counts.running} run, ${counts.over} are over`,
      ["Workload", "State", "Job", "Owner", "Queue", "Place#", "GPUs#", "Pods#", "Since#", "Why"],
      found.slice(0, 400).map((one) => [workloadLink(one.key), state(one), one.job, one.user, one.queue,
        one.place ? String(one.place) : "", String(one.gpus), String(one.size), ago(since(one)), says1(one)]))
      : empty("None that matches."),
  ];
}

const says1 = (one) => (one.says ? make("span", { className: "says" }, one.says) : "");

const since = (one) => one.times[4] || one.times[3] || one.times[2] || one.times[1] || one.times[0];

function workload(key) {
  const one = picture.workloads.find((some) => some.key === key);
  if (!one) return [make("h2", {}, key), empty("There is no such workload any more, or it is not among those shown.")];
  const [created, reserved, admitted, ready, finished] = one.times;
  const steps = [
    ["created", created, 0], ["has quota", reserved, created], ["has nodes", admitted, reserved],
    ["all pods run", ready, admitted], ["is over", finished, ready],
  ];
  return [
    make("h2", {}, one.key),
    make("dl", {}, [["State", state(one)], ["Job", one.job], ["Owner", one.user], ["Queue", one.queue],
      ["GPUs", `${one.gpus} on ${one.size} pods`], ["Priority", String(one.priority)],
      ["Place in its queue", one.place ? String(one.place) : "–"],
      ["Had to leave", `${one.evictions} times`], ["Restarted", `${one.restarts} times`],
    ].flatMap(([name, value]) => [make("dt", {}, name), make("dd", {}, value)])),
    one.says ? make("h2", {}, "Why it waits") : null,
    one.says ? make("p", {}, one.says) : null,
    one.changes.length ? make("p", {}, "What would change it: ", one.changes.join("; "), ".") : null,
    one.says ? make("p", {}, one.planned ? `It starts by ${clock(one.planned)}. ` : "When it starts is not known. ", make("code", {}, `unisono why workload/${one.key.split("/")[1]} -n ${one.key.split("/")[0]}`), " says more.") : null,
    make("h2", {}, "So far"),
    make("ol", { className: "time" }, steps.map(([name, at, before]) =>
      make("li", { className: at ? "done" : "" }, make("b", {}, name), at ? clock(at) : "not yet",
        at && before ? make("span", {}, ` (after ${lasting(at - before)})`) : null))),
    make("h2", {}, "Pods"),
    one.pods.length ? table(`${one.pods.length} pods`, ["Pod", "Node", "Phase"], one.pods.map((pod) => [pod[0], pod[1] || "–", pod[2]]))
      : empty("It has no pods."),
  ];
}

function nodes() {
  if (!picture.nodes.length) return [make("h2", {}, "Nodes"), empty("There are no nodes.")];
  return [
    make("h2", {}, `${picture.nodes.length} nodes`),
    make("div", { className: "nodes" }, picture.nodes.map((node) => {
      const bad = [node.ready ? "" : "not ready", node.closed && node.ready ? "closed" : "",
        ...node.why.map((one) => one.replace("=", ": "))].filter(Boolean);
      const held = node.holders.filter(Boolean).length;
      return make("section", { className: "node", ariaLabel: node.name },
        make("h3", {}, node.name),
        make("p", {}, `${node.type || node.model}${node.zone ? ` · ${node.zone}` : ""}`,
          make("br"), node.holders.length ? `${held} of ${node.holders.length} GPUs held` : "no GPUs"),
        bad.length ? make("p", { className: "bad" }, bad.join(", ")) : null,
        make("div", { className: "gpus" }, node.holders.map((holder, at) => holder
          ? make("a", { className: `c${hash(holder)}`, href: workloadLink(holder).getAttribute("href"), title: `GPU ${at}: ${holder}`, ariaLabel: `GPU ${at}: ${holder}` })
          : make("span", { title: `GPU ${at}: free`, role: "img", ariaLabel: `GPU ${at}: free` }))));
    })),
  ];
}

const hash = (text) => [...text].reduce((sum, one) => (sum * 31 + one.charCodeAt(0)) >>> 0, 7) % 8;

// ---- drawing --------------------------------------------------------------------------------------

function draw() {
  const [page, ...rest] = location.hash.replace(/^#\/?/, "").split("/").map(decodeURIComponent);
  for (const link of document.querySelectorAll("nav a")) {
    const own = link.getAttribute("href").slice(2);
    if (own === page) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  document.title = `${page ? page[0].toUpperCase() + page.slice(1) : "Overview"} – Unisono`;
  if (!picture) return;
  const made = page === "queues" ? queues() : page === "nodes" ? nodes()
    : page === "workloads" ? (rest.length ? workload(rest.join("/")) : workloads()) : overview();
  const typing = document.activeElement && document.activeElement.id === "filter";
  const at = typing ? document.activeElement.selectionStart : 0;
  const scrolled = [window.scrollX, window.scrollY];
  MAIN.replaceChildren(...made.filter(Boolean));
  if (typing) {
    const input = document.getElementById("filter");
    if (input) { input.focus(); input.setSelectionRange(at, at); }
  }
  window.scrollTo(...scrolled);
}

// ---- asking ---------------------------------------------------------------------------------------

function headers() {
  return { Authorization: `Bearer ${sessionStorage.getItem(TOKEN) || ""}` };
}

async function load() {
  const answer = await fetch("/picture.json", { headers: headers(), cache: "no-store" });
  if (answer.status === 401) { askForToken(); throw new Error("token"); }
  picture = await answer.json();
  LIVE.textContent = `live · ${new Date().toLocaleTimeString()}`;
  draw();
}

async function follow() {
  for (;;) {
    try {
      await load();
      const answer = await fetch("/changes", { headers: headers(), cache: "no-store" });
      const reader = answer.body.getReader();
      for (;;) {
        const { done } = await reader.read();
        if (done) break;
        await load();
      }
    } catch (trouble) {
      if (trouble.message === "token") return;
    }
    LIVE.textContent = "the cluster does not answer; trying again";
    await new Promise((resolve) => setTimeout(resolve, 2000));
  }
}

function askForToken() {
  LIVE.textContent = "not signed in";
  const input = make("input", { type: "password", id: "token", autocomplete: "off" });
  const form = make("form", {}, make("label", { className: "filter", htmlFor: "token" }, "Token", input));
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    sessionStorage.setItem(TOKEN, input.value.trim());
    follow();
  });
  MAIN.replaceChildren(make("h2", {}, "Sign in"),
    make("p", {}, "The address that ", make("code", {}, "unisono up"), " printed signs you in; or paste the token from the file ", make("code", {}, "web-token"), " of its folder."), form);
  input.focus();
}

const given = location.hash.match(/^#token=([\w-]+)(\/.*)?$/);
if (given) {
  sessionStorage.setItem(TOKEN, given[1]);
  history.replaceState(null, "", `/#${given[2] || "/"}`);
}
window.addEventListener("hashchange", () => { draw(); window.scrollTo(0, 0); MAIN.focus(); });
document.addEventListener("keydown", (event) => {
  if (event.key !== "/" || /input/i.test(document.activeElement.tagName)) return;
  event.preventDefault();
  if (!location.hash.startsWith("#/workloads")) location.hash = "#/workloads";
  setTimeout(() => { const input = document.getElementById("filter"); if (input) input.focus(); }, 0);
});
draw();
follow();
