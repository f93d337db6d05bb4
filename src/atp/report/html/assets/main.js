// The frame: the bar at the top, which view is shown, the keyboard.

let title = document.title;
const page = document.getElementById("page");
let shown = "";
let left = null; // how far the list was scrolled when a case was opened from it
let opened = null;

function makeBar() {
  const views = data.run ? [["", "Results"], data.repeated && ["stability", "Stability"], data.several && ["agents", "Agents"], ["run", "Run"]].filter(Boolean) : [];
  const tabs = views.map(([view, label]) => h("a", { href: link({ ...NO_CASE, view }), "data-view": view }, label));
  const menu = h(
    "div",
    { id: "export", popover: "auto", class: "menu" },
    h("button", { type: "button", on: { click: () => closing(exportJson) } }, "JSON, with conversations"),
    h("button", { type: "button", on: { click: () => closing(exportCsv) } }, "CSV, one line a case"),
    h("button", { type: "button", on: { click: () => closing(print) } }, "Print"),
    h("p", { class: "dim" }, "Of the cases that the filters leave."),
  );
  const closing = (act) => {
    menu.hidePopover();
    act();
  };
  document.getElementById("bar").replaceChildren(
    h("a", { class: "brand", href: link({ run: state().run }, {}) }, data.run && icon(data.run.verdict.kind, data.run.verdict.kind), "ATP"),
    h("nav", { class: "tabs", "aria-label": "Views" }, source.tabs?.(), tabs),
    h("span", { class: "tools" }, data.run && h("button", { type: "button", class: "tool-button", popovertarget: "export", "aria-label": "Export" }, icon("export"), h("span", { class: "wide" }, "Export")), h("button", { type: "button", class: "tool-button", "aria-label": "Light or dark", title: "Light or dark (t)", id: "theme", on: { click: toggleTheme } }, icon("theme")), h("button", { type: "button", class: "tool-button keys", "aria-label": "Keyboard", title: "Keyboard (?)", on: { click: help } }, h("kbd", null, "?"))),
    menu,
  );
}

function openExport() {
  const menu = document.getElementById("export");
  menu.showPopover();
  menu.querySelector("button").focus();
}

function toggleTheme() {
  const root = document.documentElement;
  const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = dark ? "light" : "dark";
  announce(`${dark ? "Light" : "Dark"} colours`);
  try {
    localStorage.setItem("atp-theme", root.dataset.theme);
  } catch {
    // a browser that keeps nothing for files from the disk
  }
}

function rememberTheme() {
  try {
    const kept = localStorage.getItem("atp-theme");
    if (kept === "dark" || kept === "light") document.documentElement.dataset.theme = kept;
  } catch {
    // as above
  }
}

const KEYS = [
  ["/", "search"],
  ["j k", "next, previous case (also ↓ ↑)"],
  ["Enter", "open the case"],
  ["[ ]", "previous, next trial of a case"],
  ["f", "only what did not pass"],
  ["1 2 3 4", "the views at the top"],
  ["e", "export or print"],
  ["Esc", "back, or clear the search"],
  ["t", "light or dark"],
  ["?", "this list"],
];

const SEARCHES = [
  ["refund \"no rate\"", "these texts, anywhere in the id, name, agent, file, reason or tags"],
  ["status:failed,error", "any of these; also tag: tool: blame:"],
  ["file:travel", "contains this; also id: name: agent: error:"],
  ["cost>0.01 duration>1m30s", "numbers, with < <= = >= >; also tokens>1.5k turns>5 score<80"],
  ["-tag:slow", "not this"],
];

function help() {
  let dialog = document.getElementById("help");
  if (!dialog) {
    dialog = h("dialog", { id: "help", "aria-labelledby": "help-title" }, h("h2", { id: "help-title", tabindex: "-1", autofocus: true }, "Keyboard"), h("dl", null, [...KEYS, ...(source.keys ?? [])].map(([keys, what]) => [h("dt", null, keys.split(" ").map((key) => h("kbd", null, key))), h("dd", null, what)])), h("h2", null, "Search"), h("dl", { class: "searches" }, SEARCHES.map(([query, what]) => [h("dt", null, h("code", null, query)), h("dd", null, what)])), h("form", { method: "dialog" }, h("button", { class: "tool-button" }, "Close")));
    document.body.append(dialog);
  }
  if (!dialog.open) dialog.showModal();
}

/** Show what the address says, and note in `data-shown` which address the page shows. */
async function render() {
  clearTimeout(typing);
  typing = 0;
  const wanted = location.hash;
  await draw();
  if (location.hash === wanted) document.documentElement.dataset.shown = wanted;
}

async function draw() {
  const at = state();
  const view = source.view(at);
  const wanted = location.hash;
  const getting = source.show(at);
  if (getting) await getting;
  if (location.hash !== wanted) return; // somebody went on meanwhile
  if (shown === "" && view !== "" && page.contains(casesView.element)) left = scrollY;
  document.title = at.case ? `${visible(at.case).slice(0, 80)} – ${title}` : title;
  for (const tab of document.querySelectorAll("#bar [data-view]")) {
    if (!at.case && tab.dataset.view === at.view) tab.setAttribute("aria-current", "page");
    else tab.removeAttribute("aria-current");
    tab.href = link({ ...NO_CASE, view: tab.dataset.view });
  }
  const before = shown;
  shown = view;
  if (view === "case") {
    opened = caseOf(at);
    await showCase(page, at);
    scrollTo(0, 0);
    if (before !== "case") page.focus({ preventScroll: true });
    if (opened) announce(whatIsShown(opened, at));
    return;
  }
  looking++;
  if (view === "") return showResults(before, at);
  const known = { stability: data.repeated && makeStability, agents: data.several && makeAgents, run: makeRun, ...source.views }[view];
  if (!known) {
    amend({ view: "" });
    return render();
  }
  otherViews[view] ??= known();
  if (page.firstElementChild !== otherViews[view].element) page.replaceChildren(otherViews[view].element);
  await otherViews[view].update(at);
  if (before !== view) scrollTo(0, 0);
}

/** Which case is shown, for somebody who can't see that the page changed. */
function whatIsShown(row, at) {
  const rows = listed(at);
  const trial = row.trials.length > 1 ? `, ${trialName(row, wantedTrial(row, at.trial))}` : "";
  return `${visible(row.id).slice(0, 120)}: ${row.status}${trial}, case ${number(rows.indexOf(row) + 1)} of ${number(rows.length)}`;
}

function trialName(row, trial) {
  const several = row.trials.some((one) => one.variation > 0);
  return `${several ? `variation ${trial.variation + 1}, ` : ""}run ${trial.run} ${trial.status}`;
}

let results = null;

/** Make the views that show a run anew, because another run is shown or there are more rows. */
function remake() {
  for (const [name, view] of Object.entries(otherViews)) {
    if (source.views?.[name]) continue; // of all runs
    view.grid?.close();
    delete otherViews[name];
  }
  results = null;
}

function showResults(before, at) {
  results ??= [...summaryView(), casesView.element];
  const stays = page.contains(casesView.element);
  if (!stays) page.replaceChildren(...results);
  updateCases();
  if (!stays && before !== "") scrollTo(0, left ?? 0);
  if (before === "case" && casesView.grid.rows.includes(opened)) casesView.grid.focus(casesView.grid.rows.indexOf(opened));
  const filtered = Object.keys(NO_FILTER).some((name) => name !== "q" && at[name]);
  if (stays && filtered && filters() !== lastFilters) toCases();
  lastFilters = filters();
}

let lastFilters = "";

function filters() {
  const at = state();
  return ["status", "blame", "tag", "agent", "why"].map((name) => at[name]).join("\n");
}

/** Bring the table into the window, unless its head is there already. */
function toCases() {
  const top = casesView.element.getBoundingClientRect().top;
  if (top > innerHeight * 0.6 || top < 0) casesView.element.scrollIntoView({ block: "start", behavior: "instant" });
}

function onKey(event) {
  if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open], [popover]:popover-open")) return;
  const inField = event.target.matches("input, select, textarea");
  if (inField && event.key !== "Escape" && !(event.target === casesView.search && event.key === "ArrowDown")) return;
  if (typing) render();
  const act = source.view(state()) === "case" ? CASE_KEYS[event.key] : otherViews[shown]?.keys?.[event.key] ?? LIST_KEYS[event.key];
  const any = act ?? ANY_KEYS[event.key];
  if (any && any(event) !== false) event.preventDefault();
}

/** Links into this page are shown at once, as keys are. */
function onClick(event) {
  const anchor = event.target.closest?.('a[href^="#"]');
  if (!anchor || event.defaultPrevented || event.button || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
  event.preventDefault();
  if (anchor.classList.contains("to-content")) page.focus();
  else goTo(anchor.getAttribute("href"));
}

const ANY_KEYS = {
  t: toggleTheme,
  "?": help,
  "/": () => search(),
  e: openExport,
  ...Object.fromEntries([0, 1, 2, 3].map((tab) => [String(tab + 1), () => document.querySelectorAll("#bar [data-view]")[tab]?.click() ?? false])),
};

const CASE_KEYS = {
  j: () => nextCase(1),
  k: () => nextCase(-1),
  "]": () => nextTrial(1),
  "[": () => nextTrial(-1),
  Escape: (event) => (event.target.matches("input") ? false : go(NO_CASE)),
  u: () => go(NO_CASE),
};

const LIST_KEYS = {
  j: () => move(1),
  k: () => move(-1),
  ArrowDown: (event) => (event.target === casesView.search || grid()?.active !== null ? move(1) : false),
  ArrowUp: () => (grid()?.active !== null ? move(-1) : false),
  f: () => go({ status: state().status === NOT_PASSED ? "" : NOT_PASSED, blame: "" }),
  Escape: (event) => {
    if (event.target === casesView.search) {
      casesView.search.blur(); // so that the next key is a command, not a letter of the search
      go({ q: "" });
    } else if (Object.keys(NO_FILTER).some((name) => state()[name])) go(NO_FILTER);
    else return false;
  },
};

const NOT_PASSED = "failed,timeout,error,blocked,cancelled,inconclusive";

function grid() {
  return shown === "" ? casesView.grid : otherViews[shown]?.grid;
}

function move(step) {
  const table = grid();
  if (!table) return false;
  table.move(step);
}

function search() {
  if (otherViews[shown]?.search) return otherViews[shown].search();
  if (state().view || state().case) go({ view: "", ...NO_CASE });
  toCases();
  casesView.search.focus({ preventScroll: true });
  casesView.search.select();
}

// Which case and trial come next is read from the address, because the page may still show the one before.

function nextCase(step) {
  const rows = listed();
  const row = rows[rows.indexOf(caseOf(state())) + step];
  if (row) goTo(caseLink(row));
}

function nextTrial(step) {
  const row = caseOf(state());
  const trial = row?.trials[row.trials.indexOf(wantedTrial(row, state().trial)) + step];
  if (trial) goTo(caseLink(row, trial));
}

async function begin() {
  rememberTheme();
  await source.begin();
  makeBar();
  if (data.run) makeCases();
  addEventListener("hashchange", render);
  addEventListener("keydown", onKey);
  addEventListener("click", onClick);
  await render();
  document.documentElement.dataset.ready = "true";
}

begin().catch((error) => {
  page.append(h("p", { class: "broken" }, "This report could not be shown. It needs a browser of 2024 or later. ", String(error)));
  throw error;
});
