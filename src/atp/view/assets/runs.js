// The list of runs, with their trend.

const MOST_BARS = 60;
const STATES = { running: "running", stopped: "stopped" };

source.views.runs = () => {
  const picked = new Set();
  const columns = [
    { name: "pick", label: h("span", { class: "away" }, "Compare"), class: "c-pick", cell: (run) => pick(run) },
    { name: "run", label: "Run", class: "c-case", cell: runCell },
    { name: "status", label: "Status", class: "c-state", cell: stateCell },
    { name: "cases", label: "Cases", class: "c-shares", cell: runShares },
    { name: "passed", label: "Passed", class: "c-score num", cell: (run) => percent(run.passed, run.finished) },
    { name: "change", label: h("span", { title: "Against the run before of the same input" }, "Change"), class: "c-change num", cell: changeCell },
    { name: "duration", label: "Time", class: "c-time num", cell: (run) => duration(run.duration_ms) },
  ];
  const grid = new Grid({ label: "Runs, newest first", columns, height: 56 });
  const input = h("select", { "aria-label": "All inputs", on: { change: () => view.draw() } });
  const compare = h("button", { type: "button", class: "tool-button strong", disabled: true, on: { click: beside } }, "Compare");
  const field = h("input", { type: "search", placeholder: "Search all conversations", "aria-label": "Search all conversations", autocomplete: "off" });
  const form = h("form", { class: "search-form", role: "search", on: { submit: find } }, h("label", { class: "search" }, icon("search"), field, h("kbd", { "aria-hidden": "true" }, "/")));
  const chart = h("div");
  const about = h("p", { class: "about" });
  const none = h("p", { class: "none" });
  const element = h(
    "div",
    { class: "view runs-view" },
    h("header", { class: "lead" }, h("h1", null, "Runs"), about),
    chart,
    h("section", { class: "cases-part" }, h("div", { class: "filters" }, form, input, compare), grid.element, none),
  );
  let runs = [];
  let stream = null;

  function pick(run) {
    const box = h("input", { type: "checkbox", "aria-label": `Compare ${run.id}`, on: { change: () => mark(run, box.checked) } });
    box.checked = picked.has(run.id);
    return box;
  }
  function mark(run, on) {
    if (on) picked.add(run.id);
    else picked.delete(run.id);
    compare.disabled = picked.size < 2;
    compare.textContent = picked.size > 1 ? `Compare ${picked.size} runs` : "Compare";
  }
  function beside() {
    const order = runs.filter((run) => picked.has(run.id)).map((run) => run.id).reverse(); // the oldest first
    if (order.length > 1) go({ view: "compare", run: order[0], with: order.slice(1).join(",") });
  }
  function find(event) {
    event.preventDefault();
    if (field.value.trim()) go({ view: "anywhere", q: field.value.trim() });
  }

  const view = {
    element,
    grid,
    keys: { x: () => toggle(), c: beside },
    search: () => field.focus(),
    update() {
      stream ??= listen();
      view.draw();
    },
    draw() {
      const inputs = [...new Set(runs.map(inputOf))];
      const chosenInput = inputs.includes(input.value) ? input.value : "";
      input.replaceChildren(h("option", { value: "" }, "All inputs"), ...inputs.map((one) => h("option", { value: one }, visible(one.slice(0, 60)))));
      input.value = chosenInput;
      input.hidden = inputs.length < 2;
      const shownRuns = runs.filter((run) => !input.value || inputOf(run) === input.value);
      const focused = grid.active;
      grid.show(shownRuns, true);
      if (focused !== null && grid.active === null) grid.focus(focused);
      const going = runs.filter((run) => run.state === "running").length;
      about.textContent = [plural(runs.length, "run"), going ? `${number(going)} running` : ""].filter(Boolean).join(", ");
      chart.replaceChildren(trend(shownRuns) ?? "");
      none.textContent = runs.length || !stream ? "" : "No runs yet: atp test makes the first one.";
    },
  };
  function toggle() {
    const place = grid.active;
    if (place === null) return false;
    grid.made.get(place)?.querySelector("input")?.click();
  }
  function listen() {
    const known = new Map();
    const gone = new AbortController();
    source.follow(() => "/api/events", gone.signal, (_, message) => {
      // A run that did not change stays the same object, so that its row stays as it is.
      runs = withChanges(message.runs).map((run) => {
        const text = JSON.stringify(run);
        if (known.get(run.id)?.text !== text) known.set(run.id, { text, run });
        return known.get(run.id).run;
      });
      if (page.contains(element)) view.draw();
      document.documentElement.dataset.listed = String(runs.length);
    });
    return gone;
  }
  return view;
};

function inputOf(run) {
  return (run.input ?? []).map(baseName).join(", ") || "?";
}

/** Each run with its status for the table, and how its pass rate differs from that of the run before of the same input. */
function withChanges(runs) {
  const before = new Map();
  for (const run of [...runs].reverse()) {
    run.status = STATES[run.state] ?? (run.failed ? "failed" : run.errors ? "error" : run.other ? "incomplete" : run.finished ? "passed" : "empty");
    if (run.state !== "finished" || !run.finished) continue;
    const key = JSON.stringify([run.input, run.agents]);
    const rate = run.passed / run.finished;
    if (before.has(key)) run.change = 100 * (rate - before.get(key));
    before.set(key, rate);
  }
  return runs;
}

function runCell(run) {
  const code = [run.branch, run.commit?.slice(0, 7), run.dirty && "with changes"].filter(Boolean).join(" ");
  return h(
    "span",
    { class: "case-cell" },
    h("a", { class: "open", href: link({ run: run.id }, {}) }, say(inputOf(run), 80), h("span", { class: "dim" }, " ", say((run.agents ?? []).join(", "), 60))),
    h("span", { class: "sub" }, run.started_at ? when(run.started_at) : "", " · ", say(run.id, 40), code && [" · ", say(code, 60)], run.reason && [" · ", say(run.reason, 160)]),
  );
}

function stateCell(run) {
  const words = run.state === "running" ? `${number(run.finished)} of ${number(run.total)}` : run.state === "stopped" ? "stopped" : run.status === "error" ? "errors" : run.status;
  return [icon(run.status), h("span", { class: `word is-${run.status}` }, run.state === "running" ? "running " : words), run.state === "running" && h("span", { class: "dim" }, words)];
}

function runShares(run) {
  const parts = [
    { name: "passed", label: "passed", count: run.passed },
    { name: "failed", label: "failed", count: run.failed },
    { name: "error", label: "errors", count: run.errors },
    { name: "cancelled", label: "others", count: run.other },
    { name: "unrun", label: run.state === "running" ? "to come" : "not run", count: Math.max(0, run.total - run.finished) },
  ];
  const told = parts.filter((one) => one.count).map((one) => `${number(one.count)} ${one.label}`).join(", ");
  return h("span", { class: "run-shares" }, shares(parts, told), h("span", { class: "sub" }, told));
}

function changeCell(run) {
  if (run.change === undefined) return "";
  const points = Math.round(10 * run.change) / 10;
  if (!points) return h("span", { class: "dim" }, "=");
  return h("span", { class: `word is-${points > 0 ? "passed" : "failed"}`, title: "percentage points" }, `${points > 0 ? "▲" : "▼"} ${Math.abs(points)}`);
}

/** One bar a run, the newest on the right: how its cases ended. */
function trend(runs) {
  const shownRuns = runs.filter((run) => run.finished).slice(0, MOST_BARS).reverse();
  if (shownRuns.length < 2) return null;
  const kinds = [["passed", "passed"], ["other", "cancelled"], ["errors", "error"], ["failed", "failed"]];
  const bars = shownRuns.map((run) => {
    const parts = kinds.map(([name, kind]) => run[name] > 0 && h("span", { class: `piece is-${kind}`, style: { "flex-grow": String(run[name] / run.finished) } }));
    const label = `${inputOf(run)}, ${when(run.started_at)}: ${number(run.passed)} of ${number(run.finished)} passed`;
    return h("a", { class: "bar-of-run", href: link({ run: run.id }, {}), title: label, "aria-label": label }, parts);
  });
  return h("section", { class: "trend" }, h("h2", null, "Trend", h("span", { class: "aside" }, `of ${plural(shownRuns.length, "run")}, the newest on the right`)), h("div", { class: "bars" }, bars));
}
