// The picture: lanes, events, matches, the axis and what lies under the pointer. Lengths are in pixels of CSS.

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
const shortest = () => (state.byTime ? Math.max(1e-5 * Number(NUMBER[axis.unit] ?? 100n), 1e-13 * (most - least)) : 2);
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
const sheets = new Map(), pool = new Map();
function scratch(name, kind, length) { // zeros, in the same memory each time
  if (!(pool.get(name)?.length >= length)) pool.set(name, new kind(length));
  return pool.get(name).fill(0, 0, length);
}
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
  state.laneHeight = Math.min(150, Math.max(22, (height - TOP - 4) / count));
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
  const pen = Object.assign(document.createElement("canvas"), { width: 1, height: 1 }).getContext("2d");
  pen.fillStyle = colour;
  pen.fillRect(0, 0, 1, 1);
  return [...pen.getImageData(0, 0, 1, 1).data.slice(0, 3)];
};
function readStyle() {
  const computed = getComputedStyle(document.documentElement);
  for (const name of ["back", "panel", "text", "soft", "line", "event", "link", "choice", "accent", "band"]) style[name] = computed.getPropertyValue(`--${name}`).trim();
  style.pixels = { event: rgb(style.event), labels: colours.map(rgb) };
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
  const round = ticks();
  drawTicks(pen, true, round);
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
  drawTicks(pen, false, round);
  const links = seen.step > 1 ? `; one match in ${grouped.format(seen.step)} has lines; zoom in for all` : "";
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

let stretches = null;
function counted() { // the number of events of each lane in short stretches of the axis
  if (stretches?.xs === xs && stretches.lane === lane()) return stretches;
  const codes = lane().values, bins = Math.min(16384, Math.floor(4e6 / lane().texts.length));
  const counts = new Uint32Array(bins * lane().texts.length), scale = bins / (most - least);
  for (let i = 0; i < xs.length; i++) counts[codes[i] * bins + (((xs[i] - least) * scale) | 0)]++;
  return (stretches = { xs, lane: lane(), bins, counts });
}
function drawEvents(pen, from, to) {
  const low = bound(state.x0), high = bound(state.x1 + 1e-12), codes = lane().values;
  const tall = Math.min(18, state.laneHeight * 0.5);
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
  const counts = scratch("events", Uint32Array, w * rows);
  const known = counted();
  if ((state.x1 - left) / (most - least) > (4 * w) / known.bins) {
    // Counts of short stretches do, if there are several to a pixel.
    const length = (most - least) / known.bins, begin = Math.max(0, Math.ceil((left - least) / length - 0.5));
    for (let b = begin; b < known.bins; b++) {
      const column = ((least + (b + 0.5) * length - left) * scale) | 0;
      if (column >= w) break;
      for (let row = 0; row < rows; row++) counts[row * w + column] += known.counts[(row + from) * known.bins + b];
    }
  } else {
    for (let i = low; i < high; i++) {
      const row = codes[i] - from, column = ((xs[i] - left) * scale) | 0;
      if (row >= 0 && row < rows && column < w) counts[row * w + column]++;
    }
  }
  let greatest = 1;
  for (let k = 0; k < w * rows; k++) if (counts[k] > greatest) greatest = counts[k];
  paint(pen, "events", w, from, to, tall, (k) => counts[k] && 50 + 150 * (Math.log(counts[k]) / Math.log(greatest + 1)), () => style.pixels.event);
  return high - low;
}
function paint(pen, name, w, from, to, tall, alpha, colour) { // a picture with a row of pixels for each lane
  const rows = to - from;
  if (rows <= 0 || w <= 0) return;
  let sheet = sheets.get(name);
  if (sheet?.image.width !== w || sheet.image.height !== rows) {
    const canvas = Object.assign(document.createElement("canvas"), { width: w, height: rows });
    sheets.set(name, (sheet = { canvas, image: new ImageData(w, rows) }));
  }
  const data = sheet.image.data.fill(0);
  for (let k = 0; k < w * rows; k++) {
    const a = alpha(k);
    if (a) { const c = colour(k); data[4 * k] = c[0]; data[4 * k + 1] = c[1]; data[4 * k + 2] = c[2]; data[4 * k + 3] = a; }
  }
  sheet.canvas.getContext("2d").putImageData(sheet.image, 0, 0);
  pen.imageSmoothingEnabled = false;
  for (let k = from; k < to; k++) pen.drawImage(sheet.canvas, 0, k - from, w, 1, GUTTER, laneY(k) - tall / 2, w, tall);
}

const room = new Uint32Array(size), seenMarks = new Uint32Array(marks.events.length);
let looks = 0;
function inView() { // the matches in view, until the next call
  const { x0, x1 } = state;
  let count = 0;
  for (let k = 0; k < shown.length; k++) { const m = shown[k]; if (ends[m] >= x0 && begins[m] <= x1) room[count++] = m; }
  return room.subarray(0, count);
}
function marksOf(found, most) { // the different marks of matches; none if there are more
  const different = [];
  looks++;
  for (const m of found) {
    for (let k = offsets[m]; k < offsets[m + 1]; k++) {
      if (seenMarks[members[k]] === looks) continue;
      seenMarks[members[k]] = looks;
      if (different.push(members[k]) > most) return null;
    }
  }
  return different;
}
let used = null;
const order = Uint32Array.from(marks.events.keys()).sort((a, b) => marks.events[a] - marks.events[b]);
function uses() { // the marks in the order of their events, and how many of the matches that pass the filters have each
  if (used?.shown === shown) return used;
  const times = new Uint32Array(marks.events.length);
  for (const m of shown) for (let k = offsets[m]; k < offsets[m + 1]; k++) times[members[k]]++;
  return (used = { shown, order, times });
}
function link(pen, m) {
  const codes = lane().values;
  let x = 0, y = 0;
  for (let k = offsets[m]; k < offsets[m + 1]; k++) {
    if (!state.on[first(members[k])]) continue;
    const event = marks.events[members[k]], nx = px(xs[event]), ny = laneY(codes[event]);
    if (!x) pen.moveTo(nx, ny);
    else if (ny === y) pen.quadraticCurveTo((x + nx) / 2, y - Math.min(state.laneHeight * 0.85, 6 + (nx - x) / 4), nx, ny);
    else pen.bezierCurveTo((x + nx) / 2, y, (x + nx) / 2, ny, nx, ny);
    [x, y] = [nx, ny];
  }
}
function drawMatches(pen, from, to) {
  const found = inView(), codes = lane().values;
  // Where they are very many, single lines say little, and the densities below say it.
  const step = Math.ceil(found.length / (found.length > 20000 ? 400 : 1200));
  pen.strokeStyle = style.link;
  pen.lineWidth = found.length > 300 ? 0.7 : 1.3;
  pen.globalAlpha = found.length > 300 ? 0.28 : 0.6;
  pen.beginPath();
  for (let k = 0; k < found.length; k += step) link(pen, found[k]);
  pen.stroke();
  pen.globalAlpha = 1;
  const few = marksOf(found, 800);
  if (few) {
    dots(pen, few, few.length > 200 ? 3 : 4, few.length > 200 ? null : style.panel);
    return { count: found.length, step };
  }
  // Many: in each pixel of a lane the label that occurs most often.
  const w = Math.floor((width - GUTTER) / 2), rows = to - from, kinds = labels.length;
  const scale = w / (state.x1 - state.x0), left = state.x0;
  const counts = scratch("labels", Uint32Array, w * rows * kinds), most = scratch("most", Uint32Array, w * rows), which = scratch("which", Uint16Array, w * rows);
  const { order, times } = uses();
  for (let k = 0; k < order.length; k++) {
    const mark = order[k], event = marks.events[mark], x = xs[event], label = firsts[mark];
    if (!times[mark] || x < left) continue;
    if (x > state.x1) break;
    const row = codes[event] - from, column = Math.floor((x - left) * scale);
    if (row < 0 || row >= rows || column >= w || !state.on[label]) continue;
    const cell = row * w + column, n = (counts[cell * kinds + label] += times[mark]);
    if (n > most[cell]) { most[cell] = n; which[cell] = label; }
  }
  pen.save();
  pen.beginPath();
  pen.rect(GUTTER, TOP, width, height);
  pen.clip();
  pen.translate(GUTTER, 0);
  pen.scale(2, 1);
  pen.translate(-GUTTER, 0);
  const tall = Math.min(10, state.laneHeight * 0.34);
  paint(pen, "labels", w, from, to, tall, (k) => most[k] && Math.min(255, 150 + 30 * Math.log2(most[k])), (k) => style.pixels.labels[which[k]]);
  pen.restore();
  return { count: found.length, step };
}
function dots(pen, some, radius, edge) {
  const codes = lane().values;
  for (const mark of some) {
    const event = marks.events[mark];
    if (!state.on[first(mark)]) continue;
    pen.beginPath();
    pen.arc(px(xs[event]), laneY(codes[event]), radius, 0, 7);
    pen.fillStyle = colours[first(mark)];
    pen.fill();
    if (!edge) continue;
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
    dots(pen, members.subarray(offsets[m], offsets[m + 1]), wide + 3, style.choice);
  }
}

// ---- Matches under the pointer ----
function matchAt(x, y) {
  const codes = lane().values;
  const from = at(x - 9), to = at(x + 9);
  let best = -1, nearest = 9 * 9;
  for (const m of shown) {
    if (!(ends[m] >= from && begins[m] <= to)) continue;
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
