"use strict";
// The charts of the page. Figures come ready from the element #content; here they are only drawn.
(() => {
  const data = JSON.parse(document.getElementById("content").textContent);
  const said = document.getElementById("said");
  const shown = data.policies.map(() => true);
  const redraws = [];

  // --- words and colours ---------------------------------------------------------------------

  const color = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  // What is legible on a colour: light or dark, whichever has more contrast (WCAG).
  const inkOn = (fill) => {
    const [red, green, blue] = [1, 3, 5].map((at) => parseInt(fill.slice(at, at + 2), 16) / 255)
      .map((one) => (one <= 0.04045 ? one / 12.92 : ((one + 0.055) / 1.055) ** 2.4));
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue > 0.179 ? "#16181b" : "#fff";
  };
  const policyColor = (place) => `var(--p${place % 6})`;
  const digits = (value) => {
    const size = Math.abs(value);
    if (size >= 1000 || Number.isInteger(value)) return Math.round(value).toLocaleString("en");
    return size >= 10 ? value.toFixed(1) : size >= 0.1 ? value.toFixed(2) : value.toPrecision(2);
  };
  const UNITS = [[86400, "d"], [3600, "h"], [60, "min"], [1, "s"]];
  const duration = (seconds) => {
    const [size, unit] = UNITS.find(([one]) => Math.abs(seconds) >= one) || UNITS[3];
    return `${digits(seconds / size)} ${unit}`;
  };
  // A time on an axis whose marks are `step` apart: no finer than that, and no coarser.
  const mark = (seconds, step) => {
    const days = Math.floor(seconds / 86400 + 1e-9), rest = Math.round(seconds - 86400 * days);
    const two = (value) => String(Math.floor(value)).padStart(2, "0");
    if (step >= 86400) return `${digits(days)} d`;
    const clock = step < 60 ? `${two(rest / 3600)}:${two(rest / 60 % 60)}:${two(rest % 60)}`
      : step % 3600 ? `${two(rest / 3600)}:${two(rest / 60 % 60)}` : `${Math.floor(rest / 3600)} h`;
    return days ? `${digits(days)} d ${clock}` : clock;
  };
  const moment = (seconds) => {
    const after = `${duration(seconds - data.first)} after the first job`;
    if (!data.epoch) return after;
    const date = new Date(1000 * (data.epoch + seconds));
    return `${date.toISOString().slice(0, 16).replace("T", " ")} UTC, ${after}`;
  };
  const escaped = (text) => {
    const span = document.createElement("span");
    span.textContent = text;
    return span.innerHTML;
  };
  const swatch = (fill) => `<i style="background:${fill}"></i>`;

  // --- small helpers -------------------------------------------------------------------------

  const make = (tag, attributes = {}, parent = null) => {
    const isSvg = ["svg", "path", "line", "text", "rect", "circle", "g"].includes(tag);
    const made = isSvg
      ? document.createElementNS("http://www.w3.org/2000/svg", tag) : document.createElement(tag);
    for (const [key, value] of Object.entries(attributes)) {
      if (key === "text") made.textContent = value; else made.setAttribute(key, value);
    }
    if (parent) parent.appendChild(made);
    return made;
  };
  // Steps of 1, 2 or 5, or of a whole unit of time, about `count` of them.
  const NICE_TIMES = [1, 5, 15, 30, 60, 300, 900, 1800, 3600, 7200, 14400, 21600, 43200, 86400,
    2 * 86400, 5 * 86400, 10 * 86400, 25 * 86400, 50 * 86400, 100 * 86400, 250 * 86400,
    500 * 86400, 1000 * 86400, 2500 * 86400];
  const stepFor = (length, count, isTime) => {
    const raw = length / Math.max(count, 1);
    if (isTime) {
      const found = NICE_TIMES.find((one) => one >= raw);
      if (found) return found;
    }
    const power = 10 ** Math.floor(Math.log10(raw));
    return power * [1, 2, 5, 10].find((one) => one * power >= raw);
  };
  const ticks = (low, high, count, isTime) => {
    const step = stepFor(high - low, count, isTime);
    const found = [];
    for (let at = Math.ceil(low / step) * step; at <= high + step * 1e-9; at += step) found.push(at);
    return found;
  };
  const showTip = (tip, figure, x, y, inside) => {
    tip.innerHTML = inside;
    tip.hidden = false;
    const left = Math.min(Math.max(x + 14, 0), figure.clientWidth - tip.offsetWidth);
    tip.style.left = `${left < x && left + tip.offsetWidth > x - 8 ? Math.max(x - tip.offsetWidth - 14, 0) : left}px`;
    tip.style.top = `${Math.max(y - tip.offsetHeight - 12, 0)}px`;
  };

  // --- curves --------------------------------------------------------------------------------

  // chart: {figure, label, height, xs, isLog, curves: [{which, values, peaks}], top, least, form, at, say}
  const lineChart = (chart) => {
    const { figure } = chart;
    const svg = make("svg", { role: "img", tabindex: "0", "aria-label": chart.label }, figure);
    const tip = make("div", { class: "tip" }, figure);
    tip.hidden = true;
    const pad = { left: 46, right: 10, top: 8, bottom: 24 };
    let place = -1;
    let cross = null;
    const fraction = (x) => (chart.isLog
      ? Math.log(x / chart.xs[0]) / Math.log(chart.xs.at(-1) / chart.xs[0])
      : (x - chart.xs[0]) / (chart.xs.at(-1) - chart.xs[0]));
    const width = () => figure.clientWidth || 300;
    const xOf = (x) => pad.left + fraction(x) * (width() - pad.left - pad.right);
    const mine = () => chart.curves.filter((curve) => shown[curve.which]);
    const top = () => Math.max(...mine().flatMap((curve) => curve.peaks || curve.values), chart.least || 1e-9);
    // Curves that are far apart cannot share a plain scale: the lower ones would lie flat at the bottom.
    let bent = false;
    const isBent = () => {
      const tops = mine().map((curve) => Math.max(...curve.peaks || curve.values, chart.least || 1e-9));
      return !chart.top && Math.max(...tops) > 12 * Math.min(...tops);
    };
    const yOf = (y, most) => chart.height - pad.bottom - Math.min(bent
      ? Math.log1p(y) / Math.log1p(most) : y / most, 1) * (chart.height - pad.top - pad.bottom);

    const draw = () => {
      const most = chart.top || top() * 1.04;
      if (chart.curves.length === 1) figure.parentElement.hidden = !mine().length;
      bent = isBent();
      if (chart.scale) chart.scale.textContent = bent ? "Log scale." : "The shade is the peak.";
      svg.replaceChildren();
      svg.setAttribute("viewBox", `0 0 ${width()} ${chart.height}`);
      svg.setAttribute("height", chart.height);
      const heights = bent ? [0, 1, 10, 100, 1000, 10000, 100000].filter((y) => y < most)
        : ticks(0, most, chart.lines || 5, false);
      for (const y of heights) {
        const at = yOf(y, most);
        make("line", { class: "rule", x1: pad.left, x2: width() - pad.right, y1: at, y2: at }, svg);
        make("text", { x: pad.left - 7, y: at + 4, "text-anchor": "end", text: chart.form(y) }, svg);
      }
      const length = chart.xs.at(-1) - chart.xs[0];
      const step = stepFor(length, width() / 90, true);
      const marks = chart.isLog
        ? [1, 10, 60, 600, 3600, 21600, 86400, 604800, 2592000].filter((x) => x <= chart.xs.at(-1))
        : ticks(0, length, width() / 90, true).map((x) => x + chart.xs[0]);
      let last = -99;
      for (const x of marks) {
        const at = xOf(x);
        if (at - last < 54 || at > width() - 20) continue;
        last = at;
        make("line", { class: "rule", x1: at, x2: at, y1: chart.height - pad.bottom,
          y2: chart.height - pad.bottom + 4 }, svg);
        make("text", { x: at, y: chart.height - 7, "text-anchor": "middle",
          text: chart.isLog ? duration(x) : mark(x - chart.xs[0], step) }, svg);
      }
      mine().forEach((curve) => {
        const { which } = curve;
        const line = (values) => values.map(
          (value, at) => `${at ? "L" : "M"}${xOf(chart.xs[at]).toFixed(1)} ${yOf(value, most).toFixed(1)}`);
        if (curve.peaks && !bent) {
          const base = yOf(0, most);
          make("path", { class: "shade", fill: policyColor(which), d:
            `${line(curve.peaks).join("")}L${xOf(chart.xs.at(-1))} ${base}L${xOf(chart.xs[0])} ${base}Z` }, svg);
        }
        make("path", { class: "curve", stroke: policyColor(which), d: line(curve.values).join("") }, svg);
      });
      cross = make("line", { class: "cross", y1: pad.top, y2: chart.height - pad.bottom,
        visibility: "hidden" }, svg);
      point(place);
    };
    const point = (at, speak) => {
      place = at;
      if (at < 0 || !cross) { tip.hidden = true; if (cross) cross.setAttribute("visibility", "hidden"); return; }
      const x = xOf(chart.xs[at]);
      cross.setAttribute("visibility", "visible");
      cross.setAttribute("x1", x);
      cross.setAttribute("x2", x);
      const rows = mine().map((curve) => `${swatch(policyColor(curve.which))}${
        escaped(data.policies[curve.which].name)} <b>${chart.say(curve, at)}</b>`);
      showTip(tip, figure, x, chart.height / 2, [chart.at(chart.xs[at]), ...rows].join("<br>"));
      if (speak) said.textContent = tip.innerText.replaceAll("\n", "; ");
    };
    svg.addEventListener("pointermove", (event) => {
      const x = event.clientX - svg.getBoundingClientRect().left;
      let best = 0;
      chart.xs.forEach((one, at) => { if (Math.abs(xOf(one) - x) < Math.abs(xOf(chart.xs[best]) - x)) best = at; });
      point(best);
    });
    svg.addEventListener("pointerleave", () => point(-1));
    svg.addEventListener("blur", () => point(-1));
    svg.addEventListener("keydown", (event) => {
      const moves = { ArrowRight: 1, ArrowLeft: -1, PageDown: 20, PageUp: -20 };
      const last = chart.xs.length - 1;
      if (event.key in moves) point(Math.min(Math.max(place + moves[event.key], 0), last), true);
      else if (event.key === "Home") point(0, true);
      else if (event.key === "End") point(last, true);
      else if (event.key === "Escape") point(-1);
      else return;
      event.preventDefault();
    });
    redraws.push(draw);
    new ResizeObserver(draw).observe(figure);
  };

  const bins = data.policies[0].use.length;
  const middles = Array.from({ length: bins }, (_, at) => data.first + (at + 0.5) * (data.last - data.first) / bins);
  const percent = (mille) => `${digits(mille / 10)} %`;
  const hint = "Arrow keys move along the curves.";
  const each = (curve) => data.policies.map((one, which) => ({ which, ...curve(one) }));
  const many = `one curve for each of ${data.policies.length} policies. ${hint}`;
  lineChart({ figure: document.getElementById("waits"), height: 250, xs: data.waits, isLog: true, top: 1000,
    curves: each((one) => ({ values: one.waits })), form: percent,
    label: `Share of jobs by wait, ${many}`,
    at: (x) => `wait at most ${duration(x)}`, say: (curve, at) => percent(curve.values[at]) });
  lineChart({ figure: document.getElementById("queue"), height: 250, xs: middles, least: 1,
    curves: each((one) => ({ values: one.queue, peaks: one.peak })), form: digits,
    scale: document.getElementById("queue-scale"),
    label: `Waiting jobs over time, ${many}`, at: moment,
    say: (curve, at) => `${digits(curve.values[at])}, peak ${digits(curve.peaks[at])}` });
  const money = document.querySelector("#money");  // only where prices are known
  if (money) {
    lineChart({ figure: money, height: 220, xs: middles, least: 1,
      curves: each((one) => ({ values: one.money || middles.map(() => 0), peaks: one.moneyPeak || middles.map(() => 0) })),
      form: (value) => `$${digits(value)}`, scale: document.querySelector("#money-scale"),
      label: `What an hour of all machines cost over time, ${many}`, at: moment,
      say: (curve, at) => `$${digits(curve.values[at])} an hour` });
  }
  // Use goes up and down all the time: curves on top of each other would hide each other.
  each((one) => ({ values: one.use, peaks: one.use })).forEach((curve) => {
    const { name } = data.policies[curve.which];
    const figure = make("figure", { style: `--mark:${policyColor(curve.which)}` }, document.getElementById("use"));
    make("figcaption", { text: name }, figure);
    lineChart({ figure: make("figure", {}, figure), height: 104, xs: middles, top: 1000, lines: 2,
      curves: [curve], form: percent, label: `Utilisation over time under ${name}. ${hint}`,
      at: moment, say: (one, at) => percent(one.values[at]) });
  });

  // --- bars ----------------------------------------------------------------------------------

  const view = { window: 0, left: 0, right: 1, top: 0, bottom: 1, by: "wait", job: "" };
  const named = data.queues.length > 1;
  if (named) view.by = "queue";
  const STEPS = [60, 3600, 6 * 3600, 86400];
  const WAITS = ["under a minute", "under an hour", "under 6 h", "under a day", "a day or more"];
  const FIELDS = 5;  // of a bar: job, low, high, start, end
  const weights = data.queues.map(() => 0);
  for (const window of data.windows) for (const [, queue] of window.charts[0].jobs) weights[queue] += 1;
  const ranked = data.queues.map((_, at) => at).sort((a, b) => weights[b] - weights[a] || a - b);
  const rank = []; ranked.forEach((queue, at) => { rank[queue] = Math.min(at, 8); });
  const classOf = (job) => (view.by === "queue"
    ? rank[job[1]] : STEPS.filter((step) => job[3] >= step).length);

  const controls = document.getElementById("controls");
  const choose = (label, options, set) => {
    const around = make("label", { text: label }, controls);
    const select = make("select", {}, around);
    options.forEach(([value, text]) => make("option", { value, text }, select));
    select.addEventListener("change", () => { set(select.value); redrawBars(); });
    return select;
  };
  const whole = () => Object.assign(view, { left: 0, right: 1, top: 0, bottom: 1, job: "" });
  choose("Show", data.windows.map((one, at) => [at, `${one.title}, ${duration(one.length)}`]),
    (value) => { view.window = Number(value); whole(); });
  if (named) choose("Colour", [["queue", "queue"], ["wait", "wait"]], (value) => { view.by = value; });
  const zoom = (factor, x = 0.5, y = 0.5) => {
    for (const [low, high, at] of [["left", "right", x], ["top", "bottom", y]]) {
      const length = Math.min((view[high] - view[low]) * factor, 1);
      const fixed = view[low] + (view[high] - view[low]) * at;
      view[low] = Math.min(Math.max(fixed - length * at, 0), 1 - length);
      view[high] = view[low] + length;
    }
    redrawBars();
  };
  const pan = (x, y) => {
    for (const [low, high, by] of [["left", "right", x], ["top", "bottom", y]]) {
      const length = view[high] - view[low];
      view[low] = Math.min(Math.max(view[low] + by * length, 0), 1 - length);
      view[high] = view[low] + length;
    }
    redrawBars();
  };
  for (const [text, label, act] of [["+", "Zoom in", () => zoom(0.6)], ["−", "Zoom out", () => zoom(1 / 0.6)],
    ["Reset", "Show everything", () => { whole(); redrawBars(); }]]) {
    make("button", { type: "button", text, "aria-label": label }, controls).addEventListener("click", act);
  }
  const keys = make("div", { class: "keys" });
  const gantt = document.getElementById("gantt");
  const charts = [];
  const isOverview = () => "cells" in data.windows[view.window].charts[0];
  const redrawBars = () => {
    document.getElementById("colour-of").textContent = view.by === "queue" ? "which queue it came from" : "how long it waited";
    const names = view.by === "wait" ? WAITS
      : ranked.slice(0, 8).map((queue) => data.queues[queue] || "no queue").concat(ranked.length > 8 ? ["others"] : []);
    const tone = view.by === "wait" ? "w" : "q";
    keys.innerHTML = isOverview() ? "The stronger the colour, the more of a node is in use." : names.map((name, at) => `<span>${swatch(`var(--${tone}${at})`)}${escaped(name)}</span>`).join("");
    charts.forEach((draw) => draw());
  };

  data.policies.forEach((policy, which) => {
    const figure = make("figure", { style: `--mark:${policyColor(which)}` }, gantt);
    make("figcaption", { text: policy.name }, figure);
    const frame = make("figure", {}, figure);
    const canvas = make("canvas", { tabindex: "0", role: "img" }, frame);
    const tip = make("div", { class: "tip" }, frame);
    tip.hidden = true;
    const pad = { left: 58, bottom: 20 };
    const height = data.policies.length > 2 ? 230 : 300;
    const chart = () => data.windows[view.window].charts[which];
    const size = () => ({ wide: frame.clientWidth - pad.left, high: height - pad.bottom });
    const boxOf = (bars, at) => {
      const { wide: across, high } = size();
      const x = (value) => pad.left + ((value / 10000 - view.left) / (view.right - view.left)) * across;
      const y = (value) => ((value / data.capacity - view.top) / (view.bottom - view.top)) * high;
      const left = Math.max(x(bars[at + 3]), pad.left), right = Math.min(x(bars[at + 4]), pad.left + across);
      const top = Math.max(y(bars[at + 1]), 0), bottom = Math.min(y(bars[at + 2]), high);
      return [left, top, right - left, bottom - top];
    };
    const axes = (pen) => {
      const { wide: across, high } = size();
      const window = data.windows[view.window];
      pen.fillStyle = color("--soft");
      pen.font = "11.5px system-ui, sans-serif";
      pen.textAlign = "right";
      const low = view.top * data.capacity, most = view.bottom * data.capacity;
      const at = (y) => ((y - low) / (most - low)) * high;
      const named_ = data.nodes && high / ((most - low) / (data.capacity / data.nodes.names.length)) > 13;
      if (named_) {
        let below = 0;
        data.nodes.names.forEach((name, node) => {
          const middle = at(below + data.nodes.sizes[node] / 2);
          if (middle > 4 && middle < high - 2) pen.fillText(name.length > 9 ? `…${name.slice(-8)}` : name, pad.left - 5, middle + 4);
          below += data.nodes.sizes[node];
        });
      } else {
        for (const y of ticks(low, most, 4, false)) pen.fillText(digits(y), pad.left - 6, Math.min(Math.max(at(y) + 4, 10), high));
      }
      pen.textAlign = "center";
      const begin = window.start - data.first + view.left * window.length;
      const length = (view.right - view.left) * window.length;
      const step = stepFor(length, across / 110, true);
      for (const x of ticks(begin, begin + length, across / 110, true)) {
        const place = pad.left + ((x - begin) / length) * across;
        const text = mark(x, step), half = pen.measureText(text).width / 2;
        if (place > pad.left + half && place < pad.left + across - half) pen.fillText(text, place, height - 5);
      }
    };
    // The whole run: a small picture of alpha values, tinted and stretched.
    const picture = (pen) => {
      const { cells, columns, rows } = chart();
      const raw = atob(cells);
      const small = make("canvas", { width: columns, height: rows.length });
      const brush = small.getContext("2d");
      const image = brush.createImageData(columns, rows.length);
      for (let at = 0; at < raw.length; at += 1) image.data[4 * at + 3] = raw.charCodeAt(at);
      brush.putImageData(image, 0, 0);
      brush.globalCompositeOperation = "source-in";
      brush.fillStyle = color(`--p${which % 6}`);
      brush.fillRect(0, 0, columns, rows.length);
      const { wide: across, high } = size();
      pen.imageSmoothingEnabled = false;
      pen.drawImage(small, view.left * columns, view.top * rows.length, (view.right - view.left) * columns,
        (view.bottom - view.top) * rows.length, pad.left, 0, across, high);
    };
    const cellAt = (x, y) => {
      const { cells, columns, rows } = chart(), { wide: across, high } = size();
      const right = view.left + ((x - pad.left) / across) * (view.right - view.left);
      const down = view.top + (y / high) * (view.bottom - view.top);
      const [column, row] = [Math.floor(right * columns), Math.floor(down * rows.length)];
      if (x < pad.left || row < 0 || row >= rows.length || column < 0 || column >= columns) return "";
      const used = atob(cells).charCodeAt(row * columns + column) / 255;
      const window = data.windows[view.window];
      return `<b>${escaped(rows[row])}</b><br>${digits(Math.round(100 * used))} % in use<br>${
        moment(window.start + right * window.length)}`;
    };
    const draw = () => {
      figure.hidden = !shown[which];
      if (figure.hidden || frame.clientWidth < 80) return;
      const scale = window.devicePixelRatio || 1;
      canvas.width = frame.clientWidth * scale;
      canvas.height = height * scale;
      canvas.style.height = `${height}px`;
      const pen = canvas.getContext("2d");
      pen.scale(scale, scale);
      const { wide: across, high } = size();
      pen.fillStyle = color("--idle");
      pen.fillRect(pad.left, 0, across, high);
      if (isOverview()) picture(pen);
      const { bars, jobs } = chart();
      const tone = view.by === "wait" ? "w" : "q";
      const fills = Array.from({ length: 9 }, (_, at) => color(`--${tone}${at}`));
      const card = color("--card"), ink = color("--ink");
      let chosen = null;
      for (let at = 0; at < bars.length; at += FIELDS) {
        const [x, y, w, h] = boxOf(bars, at);
        if (w <= 0 || h <= 0) continue;
        pen.fillStyle = fills[classOf(jobs[bars[at]])];
        pen.fillRect(x, y, Math.max(w, 0.6), Math.max(h, 0.6));
        if (w > 3 && h > 3) { pen.strokeStyle = card; pen.lineWidth = 1; pen.strokeRect(x, y, w, h); }
        if (jobs[bars[at]][0] === view.job) (chosen = chosen || []).push([x, y, w, h]);
        if (w > 60 && h > 15) {
          pen.fillStyle = inkOn(pen.fillStyle);
          pen.font = "11px system-ui, sans-serif";
          pen.textAlign = "left";
          pen.save();
          pen.beginPath(); pen.rect(x, y, w - 4, h); pen.clip();
          pen.fillText(jobs[bars[at]][0], x + 5, y + h / 2 + 4);
          pen.restore();
        }
      }
      for (const box of chosen || []) { pen.strokeStyle = ink; pen.lineWidth = 2; pen.strokeRect(...box); }
      axes(pen);
      canvas.setAttribute("aria-label", isOverview() ? `${policy.name}: use of every node over the whole run.`
        : `${policy.name}: ${jobs.length} jobs in ${data.windows[view.window].title}. `
        + "N and P go from job to job, arrow keys move, plus and minus zoom, 0 shows all.");
    };
    const describe = (job) => [`<b>${escaped(job[0])}</b>`, named ? `queue ${escaped(data.queues[job[1]] || "none")}` : "",
      `${digits(job[2])} ${data.unit}`, `waited ${duration(job[3])}`, `ran ${duration(job[4])}`,
      job[5] ? `preempted ${job[5]} times` : ""].filter(Boolean).join("<br>");
    const point = (job, x, y, speak) => {
      if (job[0] !== view.job) { view.job = job[0]; redrawBars(); }
      showTip(tip, frame, x, y, describe(job));
      if (speak) said.textContent = `${policy.name}: ${tip.innerText.replaceAll("\n", ", ")}`;
    };
    const leave = () => { tip.hidden = true; if (view.job) { view.job = ""; redrawBars(); } };
    const under = (x, y) => {
      const { bars, jobs } = chart();
      for (let at = bars.length - FIELDS; at >= 0; at -= FIELDS) {
        const [left, top, w, h] = boxOf(bars, at);
        if (w > 0 && x >= left - 1 && x <= left + w + 1 && y >= top && y <= top + h) return jobs[bars[at]];
      }
      return null;
    };
    let drag = null;
    canvas.addEventListener("pointerdown", (event) => {
      drag = [event.clientX, event.clientY];
      canvas.setPointerCapture(event.pointerId);
    });
    canvas.addEventListener("pointerup", () => { drag = null; });
    canvas.addEventListener("pointermove", (event) => {
      const box = canvas.getBoundingClientRect();
      if (drag && event.buttons) {
        pan((drag[0] - event.clientX) / size().wide, (drag[1] - event.clientY) / size().high);
        drag = [event.clientX, event.clientY];
        return;
      }
      const [x, y] = [event.clientX - box.left, event.clientY - box.top];
      const cell = isOverview() ? cellAt(x, y) : "";
      if (cell) { showTip(tip, frame, x, y, cell); return; }
      const job = under(x, y);
      if (job) point(job, x, y); else leave();
    });
    canvas.addEventListener("pointerleave", leave);
    canvas.addEventListener("blur", leave);
    canvas.addEventListener("dblclick", (event) => {
      const box = canvas.getBoundingClientRect();
      zoom(0.5, (event.clientX - box.left - pad.left) / size().wide, (event.clientY - box.top) / size().high);
    });
    let place = -1;
    const step = (by) => {
      const { bars, jobs } = chart();
      if (!jobs.length) return;
      place = (place + by + jobs.length) % jobs.length;
      for (let at = 0; at < bars.length; at += FIELDS) {
        if (bars[at] !== place) continue;
        const [x, y, w] = boxOf(bars, at);
        point(jobs[place], x + Math.max(w, 0) / 2, Math.max(y, 0), true);
        return;
      }
    };
    canvas.addEventListener("keydown", (event) => {
      const acts = { ArrowLeft: () => pan(-0.2, 0), ArrowRight: () => pan(0.2, 0), ArrowUp: () => pan(0, -0.2),
        ArrowDown: () => pan(0, 0.2), "+": () => zoom(0.6), "=": () => zoom(0.6), "-": () => zoom(1 / 0.6),
        0: () => { whole(); redrawBars(); }, n: () => step(1), p: () => step(-1), Escape: leave };
      if (!(event.key in acts) || event.ctrlKey || event.metaKey) return;
      acts[event.key]();
      event.preventDefault();
    });
    charts.push(draw);
    new ResizeObserver(draw).observe(frame);
  });
  gantt.after(keys);
  redraws.push(redrawBars);

  // --- which policies ------------------------------------------------------------------------

  document.querySelectorAll(".tile").forEach((tile) => {
    tile.style.setProperty("--mark", policyColor(Number(tile.dataset.policy)));
  });
  const switches = document.getElementById("policies");
  data.policies.forEach((policy, which) => {
    const button = make("button", { type: "button", "aria-pressed": "true", text: policy.name,
      style: `--mark:${policyColor(which)}` }, switches);
    button.addEventListener("click", () => {
      shown[which] = !shown[which];
      button.setAttribute("aria-pressed", shown[which]);
      redraws.forEach((draw) => draw());
    });
  });
  const redrawAll = () => redraws.forEach((draw) => draw());
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redrawAll);
  redrawAll();
  document.documentElement.dataset.drawn = "yes";
})();
