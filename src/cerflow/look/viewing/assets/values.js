// The data of the page, and its values as text.
// A "mark" is an event with its labels, as matches contain it. These files make one script, one behind the other.

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
const firsts = Uint16Array.from(marks.labels, (set) => sets[set][0]), first = (mark) => firsts[mark];
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
  const days = Math.floor(ms / 86400000), day = about.clock ? (days ? `${days} d ` : "") : date.toISOString().slice(0, -5).replace("T", " ").slice(0, -8);
  return day + date.toISOString().slice(-13, -5) + (rest ? `.${rest.padEnd(Math.min(3, digits), "0")}` : "");
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
  if (about.kind === "time" || about.clock) return timeText(value, about);
  if (about.kind === "duration") return durationText(value, "s");
  return plain(value + Number(about.base ?? 0));
}
const axisText = (event) => (!axis ? String(positions[event]) : show(axis, event));
