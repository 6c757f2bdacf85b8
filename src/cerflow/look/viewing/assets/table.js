// The table, the filters, and the match that is chosen.

// ---- The table ----
const eventOf = (m, last) => marks.events[members[last ? offsets[m + 1] - 1 : offsets[m]]];
const filled = (m) => offsets[m + 1] > offsets[m];
// Where all events are of one day, the table does not repeat it.
const oneDay = axis?.kind === "time" && head.events && axisText(0).slice(0, 11) === axisText(head.events - 1).slice(0, 11) ? 11 : 0;
const columns = [{ name: "#", number: true, wide: 64, text: (m) => String(m + 1), value: (m) => m }];
for (const [name, last] of [["start", false], ["end", true]]) {
  columns.push({ name, wide: axis?.kind !== "time" ? 90 : oneDay ? 104 : 172, number: axis?.kind !== "time", text: (m) => (filled(m) ? axisText(eventOf(m, last)).slice(oneDay) : ""), value: (m) => (filled(m) ? (axis ? axis.values : positions)[eventOf(m, last)] : NaN) });
}
columns.push({ name: axis?.unit ? "duration" : "length", number: true, wide: axis?.unit ? 140 : 86, text: (m) => spanText(m), value: (m) => (filled(m) ? (axis ? axis.values : positions)[eventOf(m, true)] - (axis ? axis.values : positions)[eventOf(m, false)] : NaN) });
columns.push({ name: "events", number: true, wide: 76, text: (m) => String(offsets[m + 1] - offsets[m]), value: (m) => offsets[m + 1] - offsets[m] });
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
// Browsers have a greatest height; beyond it, a pixel of the scroll bar stands for several.
const TALLEST = 1.5e7;
const scale = () => Math.max(1, (shown.length * ROW - table.clientHeight) / (TALLEST - table.clientHeight));
function drawRows() {
  rows.style.height = `${Math.min(shown.length * ROW, TALLEST)}px`;
  const above = table.scrollTop * scale(), from = Math.max(0, Math.floor(above / ROW) - 4), to = Math.min(shown.length, from + Math.ceil(table.clientHeight / ROW) + 8);
  const drawn = [];
  for (let k = from; k < to; k++) {
    const m = shown[k], row = element("div", "match");
    row.style.top = `${table.scrollTop + k * ROW - above}px`;
    row.setAttribute("role", "row");
    row.setAttribute("aria-selected", String(m === state.chosen));
    row.dataset.match = m;
    for (const about of columns) {
      const text = about.text(m), cell = element("div", `cell${about.number ? " number" : ""}`, text);
      cell.setAttribute("role", "gridcell");
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
  if (axis && /[:-]/.test(word)) { const times = new Map(); inMarks.push(Uint8Array.from(marks.events, (event) => { if (!times.has(event)) times.set(event, axisText(event).includes(word)); return times.get(event); })); }
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
  // A page around this one may show the same match.
  if (m !== state.chosen) dispatchEvent(new CustomEvent("chosen", { detail: m }));
  state.chosen = m;
  if (m >= 0 && toRow) {
    const row = shown.indexOf(m), y = (row * ROW) / scale();
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
