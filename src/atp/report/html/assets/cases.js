// All cases in a table, with what narrows it down.

const casesView = { grid: null, element: null };

function makeCases() {
  casesView.grid?.close();
  const columns = [
    { name: "case", label: "Case", sort: "case", class: "c-case", cell: caseCell },
    { name: "status", label: "Status", sort: "status", class: "c-status", cell: statusCell },
    data.several && { name: "agent", label: "Agent", sort: "agent", class: "c-agent", cell: (row) => say(row.agent, 60) },
    data.repeated && { name: "runs", label: data.runs ? "Runs" : "Trials", sort: "rate", class: "c-runs", cell: (row) => (row.planned > 1 ? runGrid(row) : "") },
    data.scored && { name: "score", label: "Score", sort: "score", class: "c-score num", cell: (row) => (typeof row.score === "number" ? row.score.toFixed(0) : "") },
    data.priced && { name: "cost", label: "Cost", sort: "cost", downFirst: true, class: "c-cost num", cell: (row) => (row.usage.cost_usd === undefined ? "" : money(row.usage.cost_usd)) },
    { name: "duration", label: "Time", sort: "duration", downFirst: true, class: "c-time num", cell: (row) => (row.trials.length ? duration(row.duration_ms) : "") },
  ].filter(Boolean);
  casesView.grid = new Grid({ label: "All cases", columns });
  casesView.search = h("input", { type: "search", id: "search", placeholder: "Search, or status:failed cost>0.01", "aria-label": "Search cases and reasons", "aria-describedby": "search-problem", autocomplete: "off", spellcheck: "false", on: { input: typed } });
  casesView.statuses = h("div", { class: "chips", role: "group", "aria-label": "Status" });
  casesView.found = h("p", { class: "found", role: "status" });
  casesView.none = h("p", { class: "none", id: "search-problem", role: "status" });
  casesView.tag = picker("tag", "All tags", data.tags);
  casesView.agent = data.several ? picker("agent", "All agents", data.agents) : null;
  casesView.element = h(
    "section",
    { class: "cases-part", id: "cases" },
    h("h2", { class: "away" }, "All cases"),
    h(
      "div",
      { class: "filters", role: "search" },
      h("label", { class: "search" }, icon("search"), casesView.search, h("kbd", { "aria-hidden": "true" }, "/")),
      casesView.statuses,
      data.tags.length > 0 && casesView.tag,
      casesView.agent,
      casesView.found,
    ),
    casesView.grid.element,
    casesView.none,
  );
}

function caseCell(row) {
  const where = row.bad && row.error ? say(row.error, 200, { class: "sub why-line" }) : h("span", { class: "sub" }, row.name ? say(row.name, 200) : "", row.no_assertions ? " no assertions" : "");
  return h(
    "span",
    { class: "case-cell" },
    h("a", { class: "open", href: caseLink(row), "aria-describedby": `status-${row.place}` }, say(row.id, 120), row.bad && row.name ? h("span", { class: "dim" }, " ", say(row.name, 120)) : "", fileName(row)),
    where.textContent.trim() ? where : "",
  );
}

function statusCell(row) {
  return [icon(row.status), h("span", { class: `word is-${row.status}`, id: `status-${row.place}` }, row.status), row.status === "error" && row.blame ? h("span", { class: "dim" }, ` ${row.blame}`) : "", row.quarantine ? h("span", { class: "dim" }, " quarantined") : ""];
}

function picker(name, all, options) {
  const change = (event) => go({ [name]: event.target.value, ...NO_CASE });
  return h("select", { "aria-label": all, "data-name": name, on: { change } }, h("option", { value: "" }, all), options.map((one) => h("option", { value: one }, visible(one.slice(0, 60)))));
}

let typing = 0;

/** The address has each letter at once; the table waits for a pause in the typing, or for the next key that needs it. */
function typed() {
  amend({ q: casesView.search.value });
  clearTimeout(typing);
  typing = setTimeout(render, 80);
}

function updateCases(grown = false) {
  const at = state();
  const rows = chosen(at);
  if (document.activeElement !== casesView.search || !casesView.search.value !== !at.q) casesView.search.value = at.q;
  casesView.tag.value = at.tag;
  if (casesView.agent) casesView.agent.value = at.agent;
  const counts = tally(chosen({ ...at, status: "", blame: "", sort: "" }));
  casesView.statuses.replaceChildren(...RANK.filter((name) => data.counts[name]).map((name) => chip(name, counts[name] ?? 0, at)));
  casesView.grid.show(rows, grown);
  const filtered = Object.keys(NO_FILTER).some((name) => at[name]);
  const { problem } = searchOf(at.q);
  casesView.search.setAttribute("aria-invalid", String(problem !== null));
  casesView.found.replaceChildren(
    filtered ? `${number(rows.length)} of ${plural(data.rows.length, "case")}` : plural(rows.length, "case"),
    filtered ? h("button", { type: "button", class: "quiet", on: { click: () => go(NO_FILTER) } }, "Clear") : "",
  );
  if (problem) casesView.none.replaceChildren(h("b", null, say(problem.message)), ...(problem.hint ? [". ", say(problem.hint, 600)] : []));
  else casesView.none.textContent = rows.length ? "" : data.rows.length ? "No case fits these filters." : data.run.verdict.kind === "running" ? "No case has ended yet." : "There are no cases.";
}

function chip(name, count, at) {
  const pressed = at.status.split(",").includes(name);
  const click = () => {
    const now = new Set(state().status.split(","));
    if (!now.delete(name)) now.add(name);
    go({ status: RANK.filter((one) => now.has(one)).join(","), blame: "" });
  };
  return h("button", { type: "button", class: `chip is-${name}`, "aria-pressed": String(pressed), "data-status": name, on: { click } }, icon(name), h("span", null, name), h("span", { class: "dim" }, number(count)));
}
