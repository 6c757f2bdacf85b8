// Pointer, keys and the controls above the picture; the start of the page.

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
rows.addEventListener("click", (event) => {
  const m = rowOf(event);
  if (m >= 0) choose(m, { toRow: false });
  // The first click draws the rows again, so the browser sees no double click on one of them.
  if (m >= 0 && event.detail > 1) zoomTo(m);
});

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
  chip.title = "Show or hide; double click: only this label";
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
// The page is as its address says (#dark, #light), else as the system is; #dark,picture shows the picture alone.
const followTheme = () => {
  const asked = /^#(dark|light)(,picture)?$/.exec(location.hash);
  document.documentElement.toggleAttribute("data-alone", !!asked?.[2]);
  setTheme(asked?.[1] ?? (dark.matches ? "dark" : "light"));
};
dark.addEventListener("change", followTheme);
addEventListener("hashchange", followTheme);

id("title").textContent = head.title;
id("count").textContent = `${plural(size, "match", "matches")} · ${plural(head.events, "event", "events")}`;
id("notices").append(...head.notices.map((text) => element("div", "", text)));
setAxis();
followTheme();
nameKeys();
filter();
new ResizeObserver(resize).observe(picture);
// For tests and measurements.
window.cerflow = { state, timing, ticks, head, draw: () => { baseWanted = true; draw(); return timing.last; }, px, laneY, choose, shown: () => shown, setView, bounds: () => [least, most], events: (m) => Array.from(members.subarray(offsets[m], offsets[m + 1]), (mark) => marks.events[mark]), place: (event) => [px(xs[event]), laneY(lane().values[event])] };
