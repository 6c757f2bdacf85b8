"use strict";
// The page of matches in their stream. A "mark" is an event with its labels in a match; positions of pixels are in CSS pixels.
(async () => {
  const id = (name) => document.getElementById(name);
  const head = JSON.parse(id("head").textContent);

  // ---- Data: arrays from one compressed block ----
  const packed = Uint8Array.from(atob(id("data").textContent), (c) => c.charCodeAt(0));
  const unpacked = new Response(new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate")));
  const bytes = await unpacked.arrayBuffer();
  id("data").remove();
  const KINDS = { u1: Uint8Array, u2: Uint16Array, u4: Uint32Array, f8: Float64Array };
  const array = (about) => {
    const found = new KINDS[about.as](bytes, about.at, about.size);
    if (about.from === undefined) return found;
    const sums = new Float64Array(found.length); // kept as differences
    let sum = about.from;
    for (let i = 0; i < sums.length; i++) sums[i] = sum += i ? found[i] : 0;
    return sums;
  };
  const column = (about) => ({ ...about, values: array(about.values), nulls: about.nulls ? array(about.nulls) : null });
  const axis = head.axis && { ...column(head.axis), base: BigInt(head.axis.base) };
  const positions = array(head.positions);
  const lanes = head.lanes.map(column);
  const marks = { events: array(head.marks.events), labels: array(head.marks.labels), columns: head.marks.columns.map(column) };
  const offsets = array(head.matches.offsets), members = array(head.matches.marks), size = head.matches.size;
  const own = head.matches.columns.map(column);
  const labels = [...new Set(head.marks.sets.flat())];
  const sets = head.marks.sets.map((names) => names.map((name) => labels.indexOf(name)));
  // A mark is drawn in the colour of the first label of its event.
  const first = (mark) => sets[marks.labels[mark]][0];
  const PALETTE = ["#2f7ed8", "#e8833a", "#2ca089", "#c2479d", "#8c6bd6", "#b59b12", "#d6453d", "#4fa3c7", "#7a9a2e", "#a1745a"];
  const colours = labels.map((_, k) => PALETTE[k] ?? `hsl(${(k * 137.5) % 360} 55% 52%)`);

  // ---- Values as text ----
  const NUMBER = { s: 1n, ms: 1000n, us: 1000000n, ns: 1000000000n };
  const DIGITS = { s: 0, ms: 3, us: 6, ns: 9 };
  const zones = new Map();
  const offset = (zone, ms) => { // minutes east of Greenwich, at a time
    const fixed = zone && /^([+-])(\d\d):?(\d\d)$/.exec(zone);
    if (!zone || /^(UTC|GMT|Z)$/i.test(zone)) return 0;
    if (fixed) return (fixed[1] === "-" ? -1 : 1) * (fixed[2] * 60 + +fixed[3]);
    const key = `${zone} ${Math.floor(ms / 900000)}`;
    if (!zones.has(key)) {
      let found = 0;
      try {
        const options = { timeZone: zone, hourCycle: "h23", year: "numeric", month: "numeric", day: "numeric", hour: "numeric", minute: "numeric" };
        const p = Object.fromEntries(new Intl.DateTimeFormat("en", options).formatToParts(ms).map((x) => [x.type, +x.value]));
        found = Math.round((Date.UTC(p.year, p.month - 1, p.day, p.hour, p.minute) - Math.floor(ms / 60000) * 60000) / 60000);
      } catch { /* a zone that this browser does not know is shown in UTC */ }
      if (zones.size > 5000) zones.clear();
      zones.set(key, found);
    }
    return zones.get(key);
  };
  const grouped = new Intl.NumberFormat("en");
  const plural = (n, one, many) => `${grouped.format(n)} ${n === 1 ? one : many}`;
  const floorDiv = (a, b) => (a - (((a % b) + b) % b)) / b;
  function timeText(value, about, digits = DIGITS[about.unit]) {
    const whole = BigInt(about.base) + BigInt(Math.floor(value));
    const per = NUMBER[about.unit], seconds = floorDiv(whole, per);
    const ms = Number(seconds) * 1000, shift = offset(about.zone, ms) * 60000;
    const date = new Date(ms + shift);
    if (isNaN(date)) return `${whole} ${about.unit}`;
    const rest = String(whole - seconds * per).padStart(DIGITS[about.unit], "0").slice(0, digits).replace(/0+$/, "");
    return date.toISOString().slice(0, -5).replace("T", " ") + (rest ? `.${rest.padEnd(Math.min(3, digits), "0")}` : "");
  }
  const plain = (value) => String(Math.abs(value) >= 1e15 || Number.isInteger(value) ? value : +value.toPrecision(15));
  function durationText(value, unit) {
    let seconds = value / Number(NUMBER[unit] ?? 1n);
    const sign = seconds < 0 ? "−" : "";
    seconds = Math.abs(seconds);
    const parts = [];
    for (const [name, length] of [["d", 86400], ["h", 3600], ["min", 60]]) {
      const count = Math.floor(seconds / length);
      if (count || parts.length) parts.push(`${count} ${name}`);
      seconds -= count * length;
    }
    if (parts.length < 3 && (seconds || !parts.length)) {
      parts.push(seconds && seconds < 1 && !parts.length ? `${+(seconds * 1000).toPrecision(6)} ms` : `${+seconds.toFixed(3)} s`);
    }
    return sign + parts.join(" ");
  }
  function show(about, k) { // the value of a column in row k
    const value = about.values[k];
    if (about.kind === "text") return about.texts[value] ?? "";
    if (about.nulls ? about.nulls[k] : Number.isNaN(value) && about.kind !== "number") return "";
    if (about.kind === "time") return timeText(value, about);
    if (about.kind === "duration") return durationText(value, "s");
    return plain(value + Number(about.base ?? 0));
  }
  const axisText = (event) => (!axis ? String(positions[event]) : show(axis, event));

  // ---- State ----
  const state = { lanes: 0, byTime: !!axis, x0: 0, x1: 1, top: 0, laneHeight: 30, chosen: -1, pointed: -1, key: "", words: [], on: labels.map(() => true) };
  let shown = new Uint32Array(0); // the matches that pass the filters, in the order of the table
  let sort = { column: 0, down: false };
  let xs, least, most, begins, ends; // places on the axis: of events, the bounds, of the first and last event of each match
  const picture = id("picture"), base = id("base"), over = id("over");
  const GUTTER = 112, OVERVIEW = 54, AXIS = 24, TOP = OVERVIEW + AXIS;
  let width = 0, height = 0, ratio = 1;
  const lane = () => lanes[state.lanes];

  function setAxis() {
    xs = state.byTime ? axis.values : positions;
    const last = xs.length - 1, pad = last < 0 ? 1 : (xs[last] - xs[0] || 1) * 0.01;
    least = last < 0 ? 0 : xs[0] - pad;
    most = last < 0 ? 1 : xs[last] + pad;
    begins = new Float64Array(size);
    ends = new Float64Array(size);
    for (let m = 0; m < size; m++) {
      const from = offsets[m], to = offsets[m + 1];
      begins[m] = to > from ? xs[marks.events[members[from]]] : NaN;
      ends[m] = to > from ? xs[marks.events[members[to - 1]]] : NaN;
    }
    [state.x0, state.x1] = [least, most];
  }
  const shortest = () => (state.byTime ? Math.max(1e-5 * Number(NUMBER[axis.unit] ?? 100n), 1e-9 * (most - least)) : 2);
  const px = (x) => GUTTER + ((x - state.x0) / (state.x1 - state.x0)) * (width - GUTTER);
  const at = (p) => state.x0 + ((p - GUTTER) / (width - GUTTER)) * (state.x1 - state.x0);
  const laneY = (k) => TOP + (k + 0.5) * state.laneHeight - state.top;
  function bound(value) { // the number of the first event at this place or behind it
    let low = 0, high = xs.length;
    while (low < high) { const middle = (low + high) >> 1; if (xs[middle] < value) low = middle + 1; else high = middle; }
    return low;
  }
  function setView(x0, x1) {
    const length = Math.min(Math.max(x1 - x0, shortest()), most - least);
    const middle = (x0 + x1) / 2;
    state.x0 = Math.min(Math.max(middle - length / 2, least), most - length);
    state.x1 = state.x0 + length;
    redraw();
  }
  function zoom(factor, place = (state.x0 + state.x1) / 2) {
    const length = Math.max((state.x1 - state.x0) * factor, shortest());
    const share = (place - state.x0) / (state.x1 - state.x0);
    setView(place - share * length, place + (1 - share) * length);
  }
  const move = (share) => setView(state.x0 + share * (state.x1 - state.x0), state.x1 + share * (state.x1 - state.x0));
  function scroll(by) {
    const whole = lane().texts.length * state.laneHeight;
    state.top = Math.min(Math.max(state.top + by, 0), Math.max(0, whole - (height - TOP)));
    redraw();
  }

  // ---- Drawing ----
  let style = {}, wanted = 0, baseWanted = true, bars = null;
  const strip = document.createElement("canvas");
  const timing = { frames: 0, last: 0, drawn: "" };
  function redraw(all = true) {
    baseWanted ||= all;
    wanted ||= requestAnimationFrame(() => { wanted = 0; draw(); });
  }
  function draw() {
    const start = performance.now();
    if (baseWanted) drawBase();
    baseWanted = false;
    drawOver();
    timing.frames++;
    timing.last = performance.now() - start;
  }
  function resize() {
    ratio = window.devicePixelRatio || 1;
    width = picture.clientWidth;
    height = picture.clientHeight;
    for (const canvas of [base, over]) { canvas.width = width * ratio; canvas.height = height * ratio; }
    fitLanes();
    bars = null;
    drawRows();
    redraw();
  }
  function fitLanes() {
    const count = Math.max(1, lane().texts.length);
    state.laneHeight = Math.min(64, Math.max(22, (height - TOP - 4) / count));
    scroll(0);
  }
  function begin(canvas) {
    const pen = canvas.getContext("2d");
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    pen.clearRect(0, 0, width, height);
    pen.font = "12px system-ui, sans-serif";
    pen.textBaseline = "middle";
    return pen;
  }
  const rgb = (colour) => { // a colour as numbers, for pixels
    const pen = strip.getContext("2d", { willReadFrequently: true });
    pen.fillStyle = colour;
    const hex = /^#(..)(..)(..)/.exec(pen.fillStyle);
    return hex ? hex.slice(1).map((part) => parseInt(part, 16)) : [128, 128, 128];
  };
  function readStyle() {
    const computed = getComputedStyle(document.documentElement);
    for (const name of ["back", "panel", "text", "soft", "line", "event", "link", "choice", "accent", "band"]) style[name] = computed.getPropertyValue(`--${name}`).trim();
    style.pixels = { event: rgb(style.event), labels: colours.map(() => null) };
    strip.width = 1;
    colours.forEach((colour, k) => {
      const pen = strip.getContext("2d", { willReadFrequently: true });
      pen.fillStyle = colour;
      pen.fillRect(0, 0, 1, 1);
      style.pixels.labels[k] = [...pen.getImageData(0, 0, 1, 1).data.slice(0, 3)];
    });
  }

  function drawBase() {
    const pen = begin(base);
    const names = lane().texts, h = state.laneHeight;
    const from = Math.max(0, Math.floor(state.top / h)), to = Math.min(names.length, Math.ceil((state.top + height - TOP) / h));
    pen.save();
    pen.beginPath();
    pen.rect(0, TOP, width, height - TOP);
    pen.clip();
    for (let k = from; k < to; k++) {
      if (k % 2) { pen.fillStyle = style.band; pen.fillRect(0, laneY(k) - h / 2, width, h); }
    }
    drawTicks(pen, true);
    const events = drawEvents(pen, from, to);
    const seen = drawMatches(pen, from, to);
    pen.fillStyle = style.panel;
    pen.fillRect(0, TOP, GUTTER - 1, height - TOP);
    pen.fillStyle = style.text;
    pen.textAlign = "right";
    for (let k = from; k < to; k++) pen.fillText(clipped(pen, names[k], GUTTER - 16), GUTTER - 8, laneY(k));
    pen.restore();
    if (names.length * h > height - TOP + 1) {
      const share = (height - TOP) / (names.length * h);
      pen.fillStyle = style.line;
      pen.fillRect(width - 5, TOP + state.top * share, 4, (height - TOP) * share);
    }
    drawOverview(pen);
    drawTicks(pen, false);
    const links = seen.step > 1 ? `; lines of every ${seen.step}th match, zoom in for all` : "";
    timing.drawn = `${plural(events, "event", "events")}, ${plural(seen.count, "match", "matches")} in view${links}`;
    pen.font = "11px system-ui, sans-serif";
    const said = pen.measureText(timing.drawn).width + 12;
    pen.fillStyle = style.panel;
    pen.globalAlpha = 0.85;
    pen.fillRect(width - said - 8, height - 20, said + 8, 20);
    pen.globalAlpha = 1;
    pen.fillStyle = style.soft;
    pen.textAlign = "right";
    pen.fillText(timing.drawn, width - 10, height - 10);
    pen.strokeStyle = style.line;
    pen.strokeRect(GUTTER - 0.5, OVERVIEW, 0, height);
  }
  const clips = new Map();
  function clipped(pen, text, room) {
    if (clips.has(text)) return clips.get(text);
    let found = text.replace(/\s+/g, " ");
    while (found && pen.measureText(found).width > room) found = found.slice(0, -2).replace(/…?$/, "…");
    if (clips.size > 5000) clips.clear();
    clips.set(text, found);
    return found;
  }

  function drawEvents(pen, from, to) {
    const low = bound(state.x0), high = bound(state.x1 + 1e-12), codes = lane().values;
    const tall = Math.min(16, state.laneHeight * 0.5);
    if (high - low <= 2000) {
      pen.fillStyle = style.event;
      pen.globalAlpha = 0.75;
      for (let i = low; i < high; i++) {
        if (codes[i] >= from && codes[i] < to) pen.fillRect(px(xs[i]) - 1, laneY(codes[i]) - tall / 2, 2, tall);
      }
      pen.globalAlpha = 1;
      return high - low;
    }
    // Many events: each pixel of a lane is as dark as events are dense there.
    const w = Math.floor(width - GUTTER), rows = to - from, scale = w / (state.x1 - state.x0), left = state.x0;
    const counts = new Uint32Array(w * rows);
    for (let i = low; i < high; i++) {
      const row = codes[i] - from, column = ((xs[i] - left) * scale) | 0;
      if (row >= 0 && row < rows && column < w) counts[row * w + column]++;
    }
    let greatest = 1;
    for (const n of counts) if (n > greatest) greatest = n;
    paint(pen, w, from, to, tall, (k) => counts[k] && 50 + 150 * (Math.log(counts[k]) / Math.log(greatest + 1)), () => style.pixels.event);
    return high - low;
  }
  function paint(pen, w, from, to, tall, alpha, colour) { // a picture with a row of pixels for each lane
    const rows = to - from;
    if (rows <= 0 || w <= 0) return;
    const image = new ImageData(w, rows), data = image.data;
    for (let k = 0; k < w * rows; k++) {
      const a = alpha(k);
      if (a) { const c = colour(k); data[4 * k] = c[0]; data[4 * k + 1] = c[1]; data[4 * k + 2] = c[2]; data[4 * k + 3] = a; }
    }
    strip.width = w;
    strip.height = rows;
    strip.getContext("2d").putImageData(image, 0, 0);
    pen.imageSmoothingEnabled = false;
    for (let k = from; k < to; k++) pen.drawImage(strip, 0, k - from, w, 1, GUTTER, laneY(k) - tall / 2, w, tall);
  }

  function inView() {
    const found = [], { x0, x1 } = state;
    for (let k = 0; k < shown.length; k++) { const m = shown[k]; if (ends[m] >= x0 && begins[m] <= x1) found.push(m); }
    return found;
  }
  function link(pen, m) {
    const codes = lane().values;
    let x = 0, y = 0;
    for (let k = offsets[m]; k < offsets[m + 1]; k++) {
      if (!state.on[first(members[k])]) continue;
      const event = marks.events[members[k]], nx = px(xs[event]), ny = laneY(codes[event]);
      if (!x) pen.moveTo(nx, ny);
      else if (ny === y) pen.quadraticCurveTo((x + nx) / 2, y - Math.min(state.laneHeight * 0.8, 6 + (nx - x) / 6), nx, ny);
      else pen.bezierCurveTo((x + nx) / 2, y, (x + nx) / 2, ny, nx, ny);
      [x, y] = [nx, ny];
    }
  }
  function drawMatches(pen, from, to) {
    const found = inView(), step = Math.ceil(found.length / 1200), codes = lane().values;
    pen.strokeStyle = style.link;
    pen.lineWidth = found.length > 300 ? 0.7 : 1.3;
    pen.globalAlpha = found.length > 300 ? 0.28 : 0.6;
    pen.beginPath();
    for (let k = 0; k < found.length; k += step) link(pen, found[k]);
    pen.stroke();
    pen.globalAlpha = 1;
    if (found.length <= 400) {
      for (const m of found) dots(pen, m, 4);
      return { count: found.length, step };
    }
    // Many: in each pixel of a lane the label that occurs most often.
    const w = Math.floor((width - GUTTER) / 2), rows = to - from, kinds = labels.length;
    const scale = w / (state.x1 - state.x0), left = state.x0;
    const counts = new Uint32Array(w * rows * kinds), most = new Uint32Array(w * rows), which = new Uint16Array(w * rows);
    for (const m of found) {
      for (let k = offsets[m]; k < offsets[m + 1]; k++) {
        const mark = members[k], event = marks.events[mark], label = first(mark);
        const row = codes[event] - from, column = Math.floor((xs[event] - left) * scale);
        if (row < 0 || row >= rows || column < 0 || column >= w || !state.on[label]) continue;
        const cell = row * w + column, n = ++counts[cell * kinds + label];
        if (n > most[cell]) { most[cell] = n; which[cell] = label; }
      }
    }
    pen.save();
    pen.beginPath();
    pen.rect(GUTTER, TOP, width, height);
    pen.clip();
    pen.translate(GUTTER, 0);
    pen.scale(2, 1);
    pen.translate(-GUTTER, 0);
    const tall = Math.min(10, state.laneHeight * 0.34);
    paint(pen, w, from, to, tall, (k) => most[k] && Math.min(255, 150 + 30 * Math.log2(most[k])), (k) => style.pixels.labels[which[k]]);
    pen.restore();
    return { count: found.length, step };
  }
  function dots(pen, m, radius, edge = style.panel) {
    const codes = lane().values;
    for (let k = offsets[m]; k < offsets[m + 1]; k++) {
      const mark = members[k], event = marks.events[mark];
      if (!state.on[first(mark)]) continue;
      pen.beginPath();
      pen.arc(px(xs[event]), laneY(codes[event]), radius, 0, 7);
      pen.fillStyle = colours[first(mark)];
      pen.fill();
      pen.strokeStyle = edge;
      pen.lineWidth = 1.2;
      pen.stroke();
    }
  }
  function drawOverview(pen) {
    const w = Math.max(1, Math.floor((width - GUTTER) / 2)), tall = OVERVIEW - 16;
    if (!bars) {
      bars = new Uint32Array(w);
      const scale = w / (most - least);
      for (const m of shown) if (ends[m] === ends[m]) bars[Math.min(w - 1, Math.floor((ends[m] - least) * scale))]++;
    }
    let greatest = 1;
    for (const n of bars) if (n > greatest) greatest = n;
    pen.fillStyle = style.soft;
    pen.textAlign = "right";
    pen.font = "11px system-ui, sans-serif";
    pen.fillText("matches", GUTTER - 8, OVERVIEW / 2 - 6);
    pen.fillText(`at most ${grouped.format(greatest)}`, GUTTER - 8, OVERVIEW / 2 + 8);
    pen.fillStyle = style.accent;
    for (let k = 0; k < w; k++) {
      const tip = bars[k] ? Math.max(1.5, (tall * bars[k]) / greatest) : 0;
      pen.fillRect(GUTTER + 2 * k, OVERVIEW - 6 - tip, 1.6, tip);
    }
    const [a, b] = [state.x0, state.x1].map((x) => GUTTER + ((x - least) / (most - least)) * (width - GUTTER));
    pen.globalAlpha = 0.13;
    pen.fillRect(a, 4, Math.max(2, b - a), OVERVIEW - 8);
    pen.globalAlpha = 1;
    pen.strokeStyle = style.accent;
    pen.lineWidth = 1;
    pen.strokeRect(a + 0.5, 4.5, Math.max(1, b - a - 1), OVERVIEW - 9);
  }

  // ---- The axis: places of round times or numbers ----
  const STEPS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400, 172800, 604800, 1209600]; // seconds
  function ticks() {
    const room = Math.max(2, (width - GUTTER) / 110), wish = (state.x1 - state.x0) / room;
    const isTime = state.byTime && axis.kind === "time";
    const per = isTime ? Number(NUMBER[axis.unit]) : 1;
    let step = wish / per;
    if (isTime && step > 1209600) return calendar(step);
    const power = 10 ** Math.floor(Math.log10(step));
    step = isTime && step > 0.5 ? STEPS.find((s) => s >= step) : [1, 2, 5, 10].map((s) => s * power).find((s) => s >= step * 0.999);
    step = isTime ? Math.max(step * per, 1) : state.byTime ? step : Math.max(step, 1);
    // Round places count from 1970 (in the time zone) or from 0, distances on the axis from the base.
    let shift = 0;
    if (isTime) {
      const middle = Number(axis.base) / per + (state.x0 + state.x1) / 2 / per;
      const start = axis.base + BigInt(Math.round(offset(axis.zone, middle * 1000) * 60 * per));
      const round = BigInt(Math.round(step));
      shift = Number(((start % round) + round) % round);
    } else if (state.byTime) shift = Number(axis.base % BigInt(Math.max(1, Math.round(step))));
    const found = [];
    for (let k = Math.ceil((state.x0 + shift) / step), i = 0; i < 60; k++, i++) {
      const x = k * step - shift;
      if (x > state.x1) break;
      found.push([x, isTime ? tickText(x, step / per) : plain(+(x + (state.byTime ? Number(axis.base) : 0)).toPrecision(12))]);
    }
    return found;
  }
  function calendar(step) { // months or years
    const per = Number(NUMBER[axis.unit]), months = [1, 2, 3, 6, 12, 24, 60, 120, 240, 600, 1200, 6000, 12000].find((n) => n * 2629746 >= step) ?? 60000;
    const start = new Date((Number(axis.base) / per + state.x0 / per) * 1000);
    const found = [];
    for (let n = Math.ceil((start.getUTCFullYear() * 12 + start.getUTCMonth()) / months) * months, i = 0; i < 60; n += months, i++) {
      const date = new Date(0);
      date.setUTCFullYear(Math.floor(n / 12), n % 12, 1);
      const x = (date / 1000) * per - Number(axis.base);
      if (isNaN(x) || x > state.x1) break;
      found.push([x, date.toISOString().slice(0, months < 12 ? 7 : 4)]);
    }
    return found;
  }
  function tickText(x, seconds) {
    const digits = seconds >= 1 ? 0 : Math.min(9, Math.ceil(-Math.log10(seconds) - 1e-9));
    const text = timeText(Math.round(x), axis), [day, clock = ""] = text.split(" ");
    if (seconds >= 86400) return day;
    if (seconds >= 60) return clock.slice(0, 5) === "00:00" ? day : clock.slice(0, 5);
    if (!digits) return clock.slice(0, 8);
    const [whole, rest = ""] = clock.split(".");
    return `${whole.slice(3)}.${rest.padEnd(digits, "0").slice(0, digits)}`;
  }
  function drawTicks(pen, lines) {
    pen.font = "11px system-ui, sans-serif";
    pen.textAlign = "center";
    pen.strokeStyle = style.line;
    pen.fillStyle = style.soft;
    pen.lineWidth = 1;
    for (const [x, text] of ticks()) {
      const p = Math.round(px(x)) + 0.5;
      if (lines) { pen.beginPath(); pen.moveTo(p, TOP); pen.lineTo(p, height); pen.stroke(); }
      else if (p > GUTTER + 20) pen.fillText(text, Math.min(p, width - 30), OVERVIEW + AXIS / 2);
    }
    if (lines || !xs.length) return;
    pen.textAlign = "left";
    const isTime = state.byTime && axis.kind === "time";
    const zone = isTime ? axis.zone ?? "" : state.byTime ? `time${axis.unit ? ` (${axis.unit})` : ""}` : "position";
    pen.fillText(clipped(pen, isTime ? `${timeText(Math.max(0, state.x0), axis, 0).slice(0, 10)} ${zone}` : zone, GUTTER - 10), 8, OVERVIEW + AXIS / 2);
  }

  function drawOver() {
    const pen = begin(over);
    pen.beginPath();
    pen.rect(GUTTER, TOP, width, height);
    pen.clip();
    for (const [m, wide] of [[state.pointed, 2], [state.chosen, 3]]) {
      if (m < 0 || !(ends[m] >= state.x0 && begins[m] <= state.x1)) continue;
      pen.strokeStyle = style.choice;
      pen.lineWidth = wide;
      pen.beginPath();
      link(pen, m);
      pen.stroke();
      dots(pen, m, wide + 3, style.choice);
    }
  }

  // ---- Matches under the pointer ----
  function matchAt(x, y) {
    const codes = lane().values;
    let best = -1, nearest = 9 * 9;
    for (const m of inView()) {
      for (let k = offsets[m]; k < offsets[m + 1]; k++) {
        const event = marks.events[members[k]], dx = px(xs[event]) - x;
        if (dx * dx >= nearest || !state.on[first(members[k])]) continue;
        const dy = laneY(codes[event]) - y, distance = dx * dx + dy * dy;
        // Of matches with the same event the chosen one stays, and the next one follows it.
        if (distance < nearest || (distance === nearest && m === state.chosen)) [best, nearest] = [m, distance];
      }
    }
    return best;
  }
  function eventAt(x, y) {
    const row = Math.floor((y - TOP + state.top) / state.laneHeight), codes = lane().values, place = at(x), reach = Math.abs(at(x + 4) - place);
    let best = -1;
    for (let i = bound(place - reach), tried = 0; i < xs.length && xs[i] <= place + reach && tried < 5000; i++, tried++) {
      if (codes[i] === row && (best < 0 || Math.abs(xs[i] - place) < Math.abs(xs[best] - place))) best = i;
    }
    return best;
  }
  function tipText(m, event) {
    const lines = [];
    if (m >= 0) {
      lines.push(`Match ${grouped.format(m + 1)} · ${plural(offsets[m + 1] - offsets[m], "event", "events")} · ${spanText(m)}`);
      for (const about of own) lines.push(`${about.name}: ${show(about, m)}`);
      for (let k = offsets[m]; k < Math.min(offsets[m + 1], offsets[m] + 8); k++) lines.push(`${namesOf(members[k])}: ${axisText(marks.events[members[k]])}`);
    } else if (event >= 0) {
      lines.push(`${axis ? `${axisText(event)} · ` : ""}position ${grouped.format(positions[event])}`);
      for (const each of lanes) lines.push(`${each.name}: ${each.texts[each.values[event]]}`);
    }
    return lines.join("\n");
  }
  const namesOf = (mark) => sets[marks.labels[mark]].map((k) => labels[k]).join(", ");
  function spanText(m) {
    const from = marks.events[members[offsets[m]]], to = marks.events[members[offsets[m + 1] - 1]];
    if (from === undefined) return "";
    return axis && axis.unit ? durationText(axis.values[to] - axis.values[from], axis.unit) : String((axis ? axis.values[to] - axis.values[from] : positions[to] - positions[from]));
  }

  // ---- The table ----
  const eventOf = (m, last) => marks.events[members[last ? offsets[m + 1] - 1 : offsets[m]]];
  const filled = (m) => offsets[m + 1] > offsets[m];
  const columns = [{ name: "#", number: true, wide: 64, text: (m) => String(m + 1), value: (m) => m }];
  for (const [name, last] of [["start", false], ["end", true]]) {
    columns.push({ name, wide: axis?.kind === "time" ? 172 : 90, number: axis?.kind !== "time", text: (m) => (filled(m) ? axisText(eventOf(m, last)) : ""), value: (m) => (filled(m) ? (axis ? axis.values : positions)[eventOf(m, last)] : NaN) });
  }
  columns.push({ name: axis?.unit ? "duration" : "length", number: true, wide: 86, text: (m) => spanText(m), value: (m) => (filled(m) ? (axis ? axis.values : positions)[eventOf(m, true)] - (axis ? axis.values : positions)[eventOf(m, false)] : NaN) });
  columns.push({ name: "events", number: true, wide: 64, text: (m) => String(offsets[m + 1] - offsets[m]), value: (m) => offsets[m + 1] - offsets[m] });
  for (const about of own) {
    columns.push({ name: about.name, number: about.kind === "number", wide: 100, text: (m) => show(about, m), value: (m) => (about.kind === "text" ? about.texts[about.values[m]] ?? "" : about.values[m]) });
  }
  labels.forEach((label, k) => {
    const of = (m) => Array.from(members.subarray(offsets[m], offsets[m + 1])).filter((mark) => sets[marks.labels[mark]].includes(k));
    const used = new Set(marks.labels.length ? Array.from(marks.labels.keys()).filter((mark) => sets[marks.labels[mark]].includes(k)) : []);
    for (const about of marks.columns) {
      let any = false;
      for (const mark of used) if (show(about, mark) !== "") { any = true; break; }
      if (!any) continue;
      const text = (m) => { const found = of(m), some = found.slice(0, 20).map((mark) => show(about, mark)).join(", "); return found.length > 20 ? `${some}, …` : some; };
      columns.push({ name: `${label}.${about.name}`, number: about.kind === "number", wide: 96, colour: colours[k], text, value: (m) => { const mark = of(m)[0]; return mark === undefined ? NaN : about.kind === "text" ? about.texts[about.values[mark]] ?? "" : about.values[mark]; } });
    }
  });
  const ROW = 24, table = id("table"), rows = id("rows"), titles = id("titles");
  function element(kind, className, text) {
    const found = document.createElement(kind);
    if (className) found.className = className;
    if (text !== undefined) found.textContent = text;
    return found;
  }
  function drawTitles() {
    titles.replaceChildren(...columns.map((about, k) => {
      const arrow = sort.column === k && (k || sort.down) ? (sort.down ? " ↓" : " ↑") : "";
      const cell = element("button", `cell${about.number ? " number" : ""}`, about.name + arrow);
      cell.style.width = `${about.wide}px`;
      if (about.colour) cell.style.setProperty("--colour", about.colour);
      cell.setAttribute("role", "columnheader");
      cell.setAttribute("aria-sort", sort.column === k ? (sort.down ? "descending" : "ascending") : "none");
      cell.title = `Sort by ${about.name}`;
      cell.onclick = () => { sort = { column: k, down: sort.column === k && !sort.down }; filter(); };
      return cell;
    }));
  }
  function drawRows() {
    rows.style.height = `${Math.min(shown.length * ROW, 1.5e7)}px`; // browsers have a greatest height
    const from = Math.max(0, Math.floor(table.scrollTop / ROW) - 4), to = Math.min(shown.length, from + Math.ceil(table.clientHeight / ROW) + 8);
    const drawn = [];
    for (let k = from; k < to; k++) {
      const m = shown[k], row = element("div", "match");
      row.style.top = `${k * ROW}px`;
      row.setAttribute("role", "row");
      row.setAttribute("aria-selected", String(m === state.chosen));
      row.dataset.match = m;
      for (const about of columns) {
        const text = about.text(m), cell = element("div", `cell${about.number ? " number" : ""}`, text);
        cell.style.width = `${about.wide}px`;
        if (text.length > 11) cell.title = text;
        row.append(cell);
      }
      drawn.push(row);
    }
    rows.replaceChildren(...drawn);
  }
  function drawDetails() {
    const m = state.chosen;
    if (m < 0) return id("details").replaceChildren();
    const grid = element("table"), titleRow = element("tr");
    grid.append(element("caption", "", `Match ${grouped.format(m + 1)} · ${spanText(m)}${own.map((about) => ` · ${about.name} ${show(about, m)}`).join("")}`), titleRow);
    const about = [["label", null], [axis ? "time" : "position", (mark) => axisText(marks.events[mark])], ...lanes.map((each) => [each.name, (mark) => each.texts[each.values[marks.events[mark]]]]), ...marks.columns.filter((each) => !lanes.some((one) => one.name === each.name)).map((each) => [each.name, (mark) => show(each, mark)])];
    if (axis) about.push(["position", (mark) => grouped.format(positions[marks.events[mark]])]);
    for (const [name] of about) titleRow.append(element("th", "", name));
    for (let k = offsets[m]; k < Math.min(offsets[m + 1], offsets[m] + 200); k++) {
      const mark = members[k], row = element("tr"), dot = element("span", "dot"), cell = element("td");
      dot.style.setProperty("--colour", colours[first(mark)]);
      cell.append(dot, namesOf(mark));
      row.append(cell, ...about.slice(1).map(([, text]) => element("td", "", text(mark))));
      grid.append(row);
    }
    if (offsets[m + 1] - offsets[m] > 200) grid.append(element("caption", "", `The first 200 of ${grouped.format(offsets[m + 1] - offsets[m])} events.`));
    id("details").replaceChildren(grid);
  }

  // ---- Filters ----
  function hits(about, word) { // which rows of a column contain a word
    const found = new Uint8Array(about.values.length);
    if (about.kind === "text") {
      const texts = about.texts.map((text) => (text ?? "").toLowerCase().includes(word));
      for (let k = 0; k < found.length; k++) found[k] = texts[about.values[k]];
    } else for (let k = 0; k < found.length; k++) found[k] = show(about, k).toLowerCase().includes(word);
    return found;
  }
  function matchesWith(word) {
    const found = new Uint8Array(size), inMarks = [...marks.columns.map((about) => hits(about, word))];
    for (const each of lanes) { // the type and the keys
      const texts = each.texts.map((text) => text.toLowerCase().includes(word));
      inMarks.push(Uint8Array.from(marks.events, (event) => texts[each.values[event]]));
    }
    if (axis) { const times = new Map(); inMarks.push(Uint8Array.from(marks.events, (event) => { if (!times.has(event)) times.set(event, axisText(event).includes(word)); return times.get(event); })); }
    for (const about of own) hits(about, word).forEach((hit, m) => { if (hit) found[m] = 1; });
    for (let m = 0; m < size; m++) {
      if (!found[m] && String(m + 1) === word) found[m] = 1;
      for (let k = offsets[m]; !found[m] && k < offsets[m + 1]; k++) found[m] = inMarks.some((hit) => hit[members[k]]) ? 1 : 0;
    }
    return found;
  }
  const remembered = new Map();
  function filter() {
    const words = state.words.map((word) => {
      if (!remembered.has(word)) { if (remembered.size > 20) remembered.clear(); remembered.set(word, matchesWith(word)); }
      return remembered.get(word);
    });
    // Where lanes are types, the key is looked for in the first key.
    const keys = lanes[state.lanes || Math.min(1, lanes.length - 1)];
    const wanted = state.key && keys.texts.map((text) => text.toLowerCase().includes(state.key));
    const exact = wanted && keys.texts.findIndex((text) => text.toLowerCase() === state.key);
    const fits = (event) => (exact >= 0 ? keys.values[event] === exact : wanted[keys.values[event]]);
    const all = state.on.every(Boolean);
    const found = [];
    for (let m = 0; m < size; m++) {
      if (!words.every((hit) => hit[m])) continue;
      let labelled = all || !filled(m), keyed = !wanted;
      for (let k = offsets[m]; k < offsets[m + 1] && !(labelled && keyed); k++) {
        labelled ||= sets[marks.labels[members[k]]].some((label) => state.on[label]);
        keyed ||= fits(marks.events[members[k]]);
      }
      if (labelled && keyed) found.push(m);
    }
    if (sort.column) {
      const values = new Array(size), collator = new Intl.Collator("en", { numeric: true });
      for (const m of found) values[m] = columns[sort.column].value(m);
      const missing = (v) => v === "" || v !== v;
      const compare = (a, b) => (typeof a === "string" && typeof b === "string" ? collator.compare(a, b) : a - b);
      found.sort((a, b) => missing(values[a]) - missing(values[b]) || (missing(values[a]) ? 0 : sort.down ? compare(values[b], values[a]) : compare(values[a], values[b])) || a - b);
    } else if (sort.down) found.reverse();
    shown = Uint32Array.from(found);
    bars = null;
    id("found").textContent = shown.length === size ? `${grouped.format(size)}` : `${grouped.format(shown.length)} of ${grouped.format(size)}`;
    drawTitles();
    table.scrollTop = 0;
    drawRows();
    redraw();
  }

  // ---- Choosing ----
  function choose(m, { toRow = true, toPlace = true } = {}) {
    state.chosen = m;
    if (m >= 0 && toRow) {
      const row = shown.indexOf(m), y = row * ROW;
      if (row >= 0 && (y < table.scrollTop || y > table.scrollTop + table.clientHeight - 2 * ROW - 28)) table.scrollTop = y - table.clientHeight / 2;
    }
    if (m >= 0 && toPlace && filled(m)) {
      if (ends[m] < state.x0 || begins[m] > state.x1) setView((begins[m] + ends[m] - state.x1 + state.x0) / 2, (begins[m] + ends[m] + state.x1 - state.x0) / 2);
      const y = laneY(lane().values[eventOf(m, false)]);
      if (y < TOP || y > height) scroll(y - (TOP + height) / 2);
    }
    drawRows();
    drawDetails();
    redraw(false);
  }
  function zoomTo(m) {
    if (m < 0 || !filled(m)) return;
    const room = Math.max((ends[m] - begins[m]) * 0.35, shortest());
    setView(begins[m] - room, ends[m] + room);
  }
  function step(by) {
    if (!shown.length) return;
    const row = shown.indexOf(state.chosen);
    choose(shown[row < 0 ? 0 : Math.min(shown.length - 1, Math.max(0, row + by))]);
  }

  // ---- Pointer and keys ----
  let held = null;
  const place = (event) => { const box = picture.getBoundingClientRect(); return [event.clientX - box.left, event.clientY - box.top]; };
  const onOverview = (x) => least + ((x - GUTTER) / (width - GUTTER)) * (most - least);
  picture.addEventListener("wheel", (event) => {
    event.preventDefault();
    const [x] = place(event), unit = event.deltaMode ? 16 : 1;
    if (event.shiftKey || x < GUTTER) scroll((event.deltaY || event.deltaX) * unit);
    else if (Math.abs(event.deltaX) > Math.abs(event.deltaY)) move((event.deltaX * unit) / width);
    else zoom(Math.exp(event.deltaY * unit * 0.002), at(Math.max(x, GUTTER)));
  }, { passive: false });
  picture.addEventListener("pointerdown", (event) => {
    const [x, y] = place(event);
    held = { x, y, x0: state.x0, x1: state.x1, top: state.top, moved: false, overview: y < OVERVIEW };
    picture.setPointerCapture(event.pointerId);
  });
  picture.addEventListener("pointermove", (event) => {
    const [x, y] = place(event);
    if (!held) return hover(x, y);
    if (!held.moved && Math.hypot(x - held.x, y - held.y) < 4) return;
    held.moved = true;
    picture.classList.add("moving");
    id("tip").hidden = true;
    if (held.overview) { const by = onOverview(x) - onOverview(held.x); return setView(held.x0 + by, held.x1 + by); }
    const by = ((held.x - x) / (width - GUTTER)) * (held.x1 - held.x0);
    setView(held.x0 + by, held.x1 + by);
    scroll(held.top + held.y - y - state.top);
  });
  picture.addEventListener("pointerup", (event) => {
    const [x, y] = place(event);
    if (held && !held.moved) {
      if (held.overview) { const middle = onOverview(x), half = (state.x1 - state.x0) / 2; setView(middle - half, middle + half); }
      else choose(matchAt(x, y), { toPlace: false });
    }
    held = null;
    picture.classList.remove("moving");
  });
  picture.addEventListener("dblclick", (event) => { const [x, y] = place(event), m = matchAt(x, y); if (m >= 0) zoomTo(m); else if (y > OVERVIEW) zoom(0.25, at(x)); });
  picture.addEventListener("pointerleave", () => { id("tip").hidden = true; if (state.pointed >= 0) { state.pointed = -1; redraw(false); } });
  let hovering = 0;
  function hover(x, y) {
    hovering ||= requestAnimationFrame(() => {
      hovering = 0;
      const m = y > TOP && x > GUTTER ? matchAt(x, y) : -1, text = y > TOP && x > GUTTER ? tipText(m, m < 0 ? eventAt(x, y) : -1) : "", tip = id("tip");
      tip.hidden = !text;
      tip.textContent = text;
      tip.style.left = `${x > width - 260 ? Math.max(0, x - 14 - tip.offsetWidth) : x + 14}px`;
      tip.style.top = `${Math.max(0, Math.min(y + 14, height - tip.offsetHeight - 6))}px`;
      if (m !== state.pointed) { state.pointed = m; redraw(false); }
    });
  }
  document.addEventListener("keydown", (event) => {
    const typing = /^(INPUT|SELECT)$/.test(event.target.tagName);
    if (event.key === "Escape") { if (typing) event.target.blur(); return choose(-1); }
    if (typing || event.ctrlKey || event.metaKey || event.altKey) return;
    const inTable = id("side").contains(event.target), down = (by) => () => (inTable ? step(by) : scroll(by * state.laneHeight * 2));
    const actions = { ArrowLeft: () => move(-0.15), ArrowRight: () => move(0.15), ArrowUp: down(-1), ArrowDown: down(1), PageUp: () => step(-20), PageDown: () => step(20), "+": () => zoom(0.6), "=": () => zoom(0.6), "-": () => zoom(1 / 0.6), "0": () => setView(least, most), Home: () => setView(least, least + state.x1 - state.x0), End: () => setView(most - state.x1 + state.x0, most), n: () => step(1), p: () => step(-1), "/": () => id("search").focus(), "?": () => id("help").click() };
    if (event.key === "Enter" && event.target.tagName !== "BUTTON") { event.preventDefault(); return zoomTo(state.chosen); }
    if (!actions[event.key]) return;
    event.preventDefault();
    actions[event.key]();
  });
  table.addEventListener("scroll", drawRows);
  const rowOf = (event) => { const row = event.target.closest(".match"); return row ? +row.dataset.match : -1; };
  rows.addEventListener("click", (event) => { const m = rowOf(event); if (m >= 0) choose(m, { toRow: false }); });
  rows.addEventListener("dblclick", (event) => zoomTo(rowOf(event)));

  // ---- Controls ----
  function fill(select, names, change) {
    select.replaceChildren(...names.map((name, k) => { const option = element("option", "", name); option.value = k; return option; }));
    select.disabled = names.length < 2;
    select.onchange = () => change(+select.value);
  }
  function nameKeys() {
    const keys = lanes[state.lanes || Math.min(1, lanes.length - 1)];
    id("key").placeholder = `any ${keys.name}`;
    id("key-values").replaceChildren(...keys.texts.slice(0, 500).map((text) => { const option = element("option"); option.value = text; return option; }));
  }
  fill(id("lanes"), lanes.map((each) => each.name), (k) => { state.lanes = k; state.top = 0; nameKeys(); fitLanes(); filter(); });
  fill(id("axis"), axis ? ["time", "position"] : ["position"], (k) => { state.byTime = !!axis && !k; setAxis(); filter(); });
  labels.forEach((label, k) => {
    const chip = element("button", "label", label);
    chip.style.setProperty("--colour", colours[k]);
    chip.setAttribute("aria-pressed", "true");
    chip.title = "Show or hide; double click: this label alone";
    const press = () => { [...id("labels").children].forEach((each, i) => each.setAttribute("aria-pressed", String(state.on[i]))); filter(); };
    chip.onclick = () => { state.on[k] = !state.on[k]; press(); };
    chip.ondblclick = () => { const alone = state.on.every((on, i) => on === (i === k)); state.on = labels.map((_, i) => alone || i === k); press(); };
    id("labels").append(chip);
  });
  let waiting = 0;
  id("search").oninput = () => { clearTimeout(waiting); waiting = setTimeout(() => { state.words = id("search").value.toLowerCase().split(/\s+/).filter(Boolean); filter(); }, 120); };
  id("key").oninput = () => { state.key = id("key").value.trim().toLowerCase(); filter(); };
  id("in").onclick = () => zoom(0.6);
  id("out").onclick = () => zoom(1 / 0.6);
  id("all").onclick = () => setView(least, most);
  id("help").onclick = () => { id("keys").hidden = !id("keys").hidden; id("help").setAttribute("aria-expanded", String(!id("keys").hidden)); };
  const dark = matchMedia("(prefers-color-scheme: dark)");
  function setTheme(name) { document.documentElement.dataset.theme = name; readStyle(); redraw(); }
  id("theme").onclick = () => setTheme(document.documentElement.dataset.theme === "dark" ? "light" : "dark");
  dark.addEventListener("change", () => setTheme(dark.matches ? "dark" : "light"));

  id("title").textContent = head.title;
  id("count").textContent = `${plural(size, "match", "matches")} · ${plural(head.events, "event", "events")}`;
  id("notices").append(...head.notices.map((text) => element("div", "", text)));
  setAxis();
  setTheme(dark.matches ? "dark" : "light");
  nameKeys();
  filter();
  new ResizeObserver(resize).observe(picture);
  // For tests and measurements.
  window.cerflow = { state, timing, head, draw: () => { baseWanted = true; draw(); return timing.last; }, px, laneY, choose, shown: () => shown, setView, bounds: () => [least, most], events: (m) => Array.from(members.subarray(offsets[m], offsets[m + 1]), (mark) => marks.events[mark]), place: (event) => [px(xs[event]), laneY(lane().values[event])] };
})();
