// The axis, its ticks and its texts.

// ---- The axis: places of round times or numbers ----
const STEPS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400, 172800, 604800, 1209600]; // seconds
function ticks() {
  const room = Math.max(2, (width - GUTTER) / 110), wish = (state.x1 - state.x0) / room;
  const isTime = state.byTime && (axis.kind === "time" || axis.clock);
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
  const east = (ms) => offset(axis.zone, ms) * 60000, first = ((Number(axis.base) + state.x0) / per) * 1000;
  const start = new Date(first + east(first));
  const found = [];
  for (let n = Math.ceil((start.getUTCFullYear() * 12 + start.getUTCMonth()) / months) * months, i = 0; i < 60; n += months, i++) {
    const date = new Date(0);
    date.setUTCFullYear(Math.floor(n / 12), n % 12, 1);
    const begin = date - east(date - east(+date)); // midnight in the time zone
    const x = (begin / 1000) * per - Number(axis.base);
    if (isNaN(x) || x > state.x1) break;
    found.push([x, date.toISOString().slice(0, months < 12 ? 7 : 4)]);
  }
  return found;
}
function tickText(x, seconds) {
  const digits = seconds >= 1 ? 0 : Math.min(9, Math.ceil(-Math.log10(seconds) - 1e-9));
  const text = timeText(Math.round(x), axis), clock = text.split(" ").pop(), day = text.slice(0, -clock.length).trim();
  if (seconds >= 86400) return day || clock;
  if (seconds >= 60) return day && clock.slice(0, 5) === "00:00" ? day : clock.slice(0, 5);
  if (!digits) return clock.slice(0, 8);
  const [whole, rest = ""] = clock.split(".");
  return `${whole.slice(3)}.${rest.padEnd(digits, "0").slice(0, digits)}`;
}
function drawTicks(pen, lines, found) {
  pen.font = "11px system-ui, sans-serif";
  pen.textAlign = "center";
  pen.strokeStyle = style.line;
  pen.fillStyle = style.soft;
  pen.lineWidth = 1;
  for (const [x, text] of found) {
    const p = Math.round(px(x)) + 0.5;
    if (lines) { pen.beginPath(); pen.moveTo(p, TOP); pen.lineTo(p, height); pen.stroke(); }
    else if (p > GUTTER + 20) pen.fillText(text, Math.min(p, width - 30), OVERVIEW + AXIS / 2);
  }
  if (lines || !xs.length) return;
  pen.textAlign = "left";
  const isTime = state.byTime && axis.kind === "time";
  const zone = isTime ? axis.zone ?? "" : state.byTime ? `time${axis.unit && !axis.clock ? ` (${axis.unit})` : ""}` : "position";
  pen.fillText(clipped(pen, isTime ? `${timeText(Math.max(0, state.x0), axis, 0).slice(0, 10)} ${zone}` : zone, GUTTER - 10), 8, OVERVIEW + AXIS / 2);
}
