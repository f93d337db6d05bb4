// The other views of the whole run: how stable cases are, agents beside each other, and how the run was made.

const otherViews = {};

function makeStability() {
  const rows = data.rows.filter((row) => row.planned > 1);
  const trials = rows.flatMap((row) => row.trials);
  const scale = timeScale(trials.map((trial) => trial.duration_ms));
  const columns = [
    { name: "case", label: "Case", sort: "case", class: "c-case", cell: stableCell },
    { name: "rate", label: "Pass rate", sort: "rate", class: "c-rate", cell: rateBar },
    { name: "runs", label: data.runs ? "Runs" : "Trials", class: "c-runs", cell: (row) => runGrid(row) },
    { name: "answers", label: "Same answer", sort: "answers", class: "c-answers num", cell: (row) => (row.stability.output_consistency === null ? "–" : percent(row.stability.output_consistency, 1)) },
    { name: "spread", label: `Time, ${duration(scale.low)} to ${duration(scale.high)}`, sort: "spread", downFirst: true, class: "c-spread", cell: (row) => spread(row, scale) },
  ];
  const grid = new Grid({ label: "Stability of each case", columns });
  const parts = classesOf(rows);
  const mixed = rows.filter((row) => row.passed > 0 && row.passed < row.trials.length).length;
  const [middle, late] = quantiles(trials.map((trial) => trial.duration_ms), [0.5, 0.95]);
  const element = h(
    "div",
    { class: "view" },
    h("header", { class: "lead" }, h("h1", null, mixed ? `${plural(mixed, "case")} of ${number(rows.length)} ${mixed === 1 ? "goes" : "go"} one way or the other` : "Every case goes the same way each time"), h("p", { class: "about" }, "Stable means that every trial passed, mostly stable at least 80% of them, unstable at least 50%, highly unstable fewer or none.")),
    h(
      "div",
      { class: "two" },
      h("section", null, h("h2", null, "Cases by pass rate"), shares(parts, "Shares of stable and unstable cases"), classLegend(parts)),
      h("section", null, h("h2", null, `How long trials took`, h("span", { class: "aside" }, `median ${duration(middle)}, p95 ${duration(late)}`)), histogram(trials.map((trial) => trial.duration_ms), scale)),
    ),
    h("section", { class: "cases-part" }, h("h2", { class: "away" }, "Case by case"), grid.element),
  );
  const update = () => grid.show(sorted(rows, state().sort || "mixed"));
  return { element, grid, update };
}

function stableCell(row) {
  return h(
    "span",
    { class: "case-cell" },
    h("a", { class: "open", href: caseLink(row) }, say(row.id, 120), data.several && h("span", { class: "dim" }, " ", say(row.agent, 40)), fileName(row)),
    h("span", { class: "sub" }, classOf(row), row.status === "passed" && row.rate < 1 ? ", enough for its pass_rate" : row.low ? ", but failed: its score is too low" : ""),
  );
}

/** One line a case, one column an agent. */
function makeAgents() {
  const lines = new Map();
  for (const row of data.rows) {
    if (!row.agent) continue;
    const key = `${row.file ?? ""}\n${row.id}`;
    if (!lines.has(key)) lines.set(key, { id: row.id, name: row.name, by: new Map(), place: row.place, status: "passed" });
    lines.get(key).by.set(row.agent, row);
  }
  const all = [...lines.values()];
  for (const one of all) {
    const found = [...one.by.values()];
    one.differs = new Set(found.map((row) => row.status)).size > 1;
    one.first = found[0];
    one.status = found.some((row) => row.bad) ? "failed" : "passed";
  }
  const columns = [
    { name: "case", label: "Case", class: "c-case", cell: (line) => h("span", { class: "case-cell" }, h("a", { class: "open", href: caseLink(line.first) }, say(line.id, 120), fileName(line.first)), line.name ? h("span", { class: "sub" }, say(line.name, 160)) : "") },
    ...data.agents.map((agent) => ({ name: "by", label: say(agent, 80), class: "c-by", cell: (line) => byCell(line.by.get(agent)) })),
  ];
  const grid = new Grid({ label: "Cases by agent", columns });
  const only = h("input", { type: "checkbox", id: "only", on: { change: () => go({ differ: only.checked ? "yes" : "" }) } });
  const differing = all.filter((line) => line.differs).length;
  const element = h(
    "div",
    { class: "view" },
    h("header", { class: "lead" }, h("h1", null, `${plural(data.agents.length, "agent")} side by side`), h("p", { class: "about" }, differing ? `They differ in ${plural(differing, "case")} of ${number(all.length)}.` : "They agree in every case.")),
    agentsPart(false),
    h("section", { class: "cases-part" }, h("div", { class: "filters" }, h("label", { class: "check" }, only, "Only where they differ")), h("div", { class: "wide-table", style: { "--agents": String(data.agents.length) } }, grid.element)),
  );
  const update = () => {
    only.checked = state().differ !== "";
    grid.show(only.checked ? all.filter((line) => line.differs) : all);
  };
  return { element, grid, update };
}

function byCell(row) {
  if (!row) return h("span", { class: "dim" }, "–");
  const facts = [row.planned > 1 ? `${row.passed} of ${row.planned}` : "", duration(row.duration_ms), row.usage.cost_usd === undefined ? "" : money(row.usage.cost_usd), typeof row.score === "number" ? `score ${row.score.toFixed(0)}` : ""];
  return h("a", { class: "by", href: caseLink(row), title: row.error ? visible(row.error) : null }, h("span", { class: `word is-${row.status}` }, icon(row.status), row.status), h("span", { class: "sub" }, facts.filter(Boolean).join(" · ")));
}

/** Where, when and with what it ran. */
function makeRun() {
  const { summary, metadata, environment, notes, made_with: made } = data.run;
  const known = [
    ["Run", metadata.run_id],
    ["Input", metadata.input.join(", ")],
    ["Agents", data.agents.join(", ")],
    ["Command", made.command],
    ["Commit", made.commit],
    ["Connector", summary.connector],
    ...Object.entries(made.roles),
    ["Models", made.models.join(", ")],
    ["Runs", data.run.planned.runs > 1 ? runsEach(summary) : "1 of each case"],
    ["Trials at a time", metadata.parallel],
    ["Began", when(metadata.started_at)],
    ["Ended", when(metadata.completed_at)],
    ["Took", duration(summary.duration_ms)],
    ["Taken over from before", metadata.resumed ? plural(metadata.resumed, "trial") : null],
    ["Exit code", summary.exit_code],
    ["Journal", metadata.journal],
    ["ATP", metadata.version],
    ["Python", [made.python, made.platform && `on ${made.platform}`].filter(Boolean).join(" ")],
    ["Job", made.job],
  ];
  const pairs = (list) => h("dl", { class: "pairs" }, list.filter(([, value]) => value !== null && value !== undefined && value !== "").map(([name, value]) => [h("dt", null, say(name, 60)), h("dd", null, say(words(value), 2000))]));
  const element = h(
    "div",
    { class: "view" },
    h("header", { class: "lead" }, h("h1", null, "About this run")),
    h("div", { class: "two" }, h("section", null, h("h2", null, "Run"), pairs(known)), h("section", null, h("h2", null, "Environment"), pairs(Object.entries(environment)), notes.length > 0 && [h("h2", null, "Notes"), h("ul", null, notes.map((note) => h("li", null, say(note, 2000))))])),
  );
  return { element, update: () => {} };
}
