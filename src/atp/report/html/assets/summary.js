// The first screen: the verdict, what did not pass and why, and the figures of the run.

const NAMES = { passed: "passed", failed: "failed", timeout: "timed out", error: "errors", blocked: "blocked", cancelled: "cancelled", inconclusive: "inconclusive", skipped: "skipped" };
const BLAMES = {
  agent: "the agent broke",
  simulator: "the simulated user broke, not the agent",
  judge: "it could not be judged, which is not the agent’s fault",
  environment: "something around the agent broke, not the agent",
  internal: "ATP itself broke, not the agent",
};
const GROUPS_FIRST = 5;
const GROUPS_PRINTED = 100;
const CASES_FIRST = 4;

function summaryView() {
  return [verdictPart(), source.progressPart?.(), gatesPart(), baselinePart(), whyPart(), figuresPart(), ratesPart(), judgesPart(), metricsPart(), data.several && agentsPart(), data.repeated && stabilityPart()].filter(Boolean);
}

function verdictPart() {
  const { verdict, summary, metadata } = data.run;
  const { counts } = data;
  const parts = RANK.map((name) => ({ name, label: NAMES[name], count: counts[name] ?? 0 })).sort((a, b) => ORDER.indexOf(a.name) - ORDER.indexOf(b.name));
  if (summary.not_run) parts.push({ name: "unrun", label: verdict.kind === "running" ? "to come" : "not run", count: summary.not_run });
  const stopped = summary.stopped && verdict.kind !== "running" && h("p", { class: "stopped" }, icon("error"), h("span", null, data.run.damaged ? "" : "The run ended early: ", say(summary.stopped), "."));
  return h(
    "section",
    { class: `verdict is-${verdict.kind}` },
    h("h1", null, icon(verdict.kind), h("span", null, verdict.words)),
    h("p", { class: "about" }, aboutRun(summary, metadata)),
    stopped,
    data.rows.length > 0 && shares(parts, "Shares of how cases ended"),
    h("ul", { class: "legend" }, parts.filter((one) => one.count).map((one) => h("li", null, legend(one)))),
  );
}

const ORDER = ["passed", "failed", "timeout", "error", "blocked", "cancelled", "inconclusive", "skipped"];

function legend({ name, label, count }) {
  if (name === "unrun") return h("span", { class: "count" }, icon("skipped"), h("b", null, number(count)), ` ${label}`);
  const blamed = {};
  if (name === "error") for (const row of data.rows) if (row.status === name && row.blame) blamed[row.blame] = (blamed[row.blame] ?? 0) + 1;
  return [
    h("a", { class: "count", href: link({ status: name }, {}) }, icon(name), h("b", null, number(count)), ` ${count === 1 && name === "error" ? "error" : label}`),
    Object.entries(blamed).map(([blame, some], place) => [place ? ", " : " ", h("a", { class: "blame", href: link({ status: name, blame }, {}) }, `${blame} ${number(some)}${blame === "agent" ? " (counts as failed)" : ""}`)]),
  ];
}

function aboutRun(summary, metadata) {
  const agents = data.agents.length > 3 ? [`${data.agents.length} agents`] : data.agents.map((name) => say(name, 60));
  const given = metadata.input.length > 2 ? `${metadata.input.length} inputs` : metadata.input.map((one, place) => [place ? ", " : "", say(baseName(one), 80)]);
  return [
    given,
    agents.length > 0 && [" against ", agents.map((one, place) => [place ? ", " : "", one])],
    summary.connector && [" on ", say(summary.connector, 60)],
    data.run.planned.runs > 1 && `, ${runsEach(summary)}`,
    h("span", { class: "dim" }, ` · ${when(metadata.started_at)}`),
  ];
}

/** `6 runs each`, or `up to 6 runs each` where cases differ. */
function runsEach(summary) {
  return `${summary.runs_per_case === null ? "up to " : ""}${data.run.planned.runs} runs each`;
}

function baseName(path) {
  return path.includes(" ") ? path : path.split(/[\\/]/).pop() || path;
}

function when(text) {
  const date = new Date(text);
  return Number.isNaN(date.valueOf()) ? text : date.toLocaleString("en-GB", { day: "numeric", month: "short", year: "numeric", hour: "2-digit", minute: "2-digit" });
}

/** What did not pass, the same reasons together. */
function whyPart() {
  if (!data.groups.length) return null;
  const list = h("ol", { class: "why" });
  const more = h("p", { class: "more" });
  const draw = (most) => {
    const made = Math.max(most, GROUPS_PRINTED); // the folded ones are there for the printer
    list.replaceChildren(...data.groups.slice(0, made).map((group, place) => h("li", { class: place < most ? null : "folded" }, reasonItem(group))));
    const rest = data.groups.length - most;
    const click = () => draw(most + 50);
    more.replaceChildren(rest > 0 ? h("button", { type: "button", class: "quiet", on: { click } }, `Show ${plural(rest, "more reason")}`) : "");
  };
  draw(GROUPS_FIRST);
  return h("section", { class: "whys" }, h("h2", null, "What did not pass"), list, more);
}

function reasonItem({ key, why, status, blame, rows, same }) {
  const first = rows.slice(0, CASES_FIRST);
  const rest = rows.length - first.length;
  return [
    icon(status, status),
    h(
      "div",
      null,
      h("p", { class: "reason" }, say(why, 300), !same && h("span", { class: "dim" }, " and alike")),
      h(
        "p",
        { class: "cases" },
        first.map((row) => h("a", { class: "case", href: caseLink(row, null, {}) }, say(row.id, 60), data.several && h("span", { class: "dim" }, " ", say(row.agent, 30)), fileName(row))),
        rest > 0 && h("a", { class: "rest", href: link({ why: key }, {}) }, `and ${plural(rest, "other case")}`),
        status === "error" && blame && h("span", { class: "note" }, BLAMES[blame]),
      ),
    ),
    h("span", { class: "times", title: plural(rows.length, "case") }, rows.length > 1 ? `×${number(rows.length)}` : ""),
  ];
}

function figuresPart() {
  const { summary } = data.run;
  const trials = data.rows.flatMap((row) => row.trials);
  const passed = trials.filter((trial) => trial.status === "passed").length;
  const planned = data.rows.reduce((sum, row) => sum + row.planned, 0);
  const low = data.rows.filter((row) => row.low).length;
  const [cost, judged] = [spent(data.rows, "usage", "cost_usd"), spent(data.rows, "role_usage", "cost_usd")];
  const [tokens, judgedTokens] = [spent(data.rows, "usage", "tokens"), spent(data.rows, "role_usage", "tokens")];
  const scores = data.rows.map((row) => row.score).filter((score) => typeof score === "number");
  const [middle, late] = quantiles(trials.map((trial) => trial.duration_ms), [0.5, 0.95]);
  return h(
    "section",
    { class: "figures" },
    h("h2", { class: "away" }, "Figures"),
    h(
      "dl",
      null,
      figure("Pass rate", planned ? percent(passed, planned) : "–", [planned === data.rows.length ? plural(planned, "trial") : `${number(passed)} of ${plural(planned, "trial")}`, low > 0 && `; ${plural(low, "case")} below min_score`]),
      figure("Duration", duration(summary.duration_ms), trials.length > 1 && `${duration(middle)} median, ${duration(late)} p95`),
      scores.length > 0 && figure("Score", (scores.reduce((sum, one) => sum + one, 0) / scores.length).toFixed(1), "mean of cases, of 100"),
      figure("Cost", cost === undefined ? "not reported" : money(cost), judged !== undefined && `and ${money(judged)} for judging`, cost === undefined),
      figure("Tokens", tokens === undefined ? "not reported" : number(tokens), judgedTokens !== undefined && `and ${number(judgedTokens)} for judging`, tokens === undefined),
    ),
  );
}

/** How the run compares with its baseline, as the console says it: the verdict in sentences, then the cases. */
function baselinePart() {
  const { baseline } = data.run;
  if (!baseline) return null;
  const row = ([name, ...cells]) => h("tr", null, h("th", { scope: "row" }, say(name, 100)), cells.map((cell) => h("td", null, say(cell, 300))));
  const table = (one) => [
    h("tbody", { class: `is-${one.kind.replaceAll(" ", "-")}` }, h("tr", { class: "title" }, h("th", { scope: "rowgroup", colspan: "4" }, one.title)), one.rows.map(row)),
    one.more > 0 && h("tbody", null, h("tr", null, h("td", { colspan: "4", class: "dim" }, `… and ${number(one.more)} more`))),
  ];
  return h(
    "section",
    { class: "beside baseline" },
    h("h2", null, "Compared with the baseline"),
    baseline.sentences.map((sentence, place) => h("p", { class: place ? null : "first" }, say(sentence, 400))),
    baseline.sides.map((side) => h("p", { class: "dim" }, say(side, 400))),
    baseline.tables.length > 0 && h("table", { class: "plain" }, baseline.tables.map(table)),
    baseline.notes.map((note) => h("p", { class: "dim" }, say(note, 400))),
  );
}

/** What the run had to reach, beside its cases. */
function gatesPart() {
  const { gates } = data.run;
  if (!gates.length) return null;
  const items = gates.map((gate) => h("li", { class: `is-${gate.outcome}` }, icon(gate.outcome), h("div", null, h("p", { class: "reason" }, say(gate.gate, 300)), h("p", { class: "cases" }, h("span", { class: "note" }, say(gate.text, 400))))));
  return h("section", { class: "whys gates" }, h("h2", null, "Gates"), h("ol", { class: "why" }, items));
}

/** The pass rates of all cases, agents, tags and files, with where they lie in the long run. */
function ratesPart() {
  const { rates } = data.run.groups;
  if (!rates.length) return null;
  const line = (one) =>
    h(
      "tr",
      null,
      h("th", { scope: "row" }, one.kind && h("span", { class: "dim" }, `${one.kind} `), one.kind === "tag" ? h("a", { href: link({ tag: one.name }, {}) }, say(one.name, 60)) : say(one.name, 60)),
      h("td", { class: "num" }, number(one.cases)),
      h("td", { class: "num" }, `${Math.round(1000 * one.rate) / 10}%`),
      h("td", { class: "bar-cell" }, likely(one.rate, one.interval, one.text), h("span", { class: "dim" }, one.likely)),
    );
  return h(
    "section",
    { class: "beside rates" },
    h("h2", null, "Pass rates"),
    h("p", { class: "dim" }, "The line is where the rate lies for other cases like these, with 95% confidence."),
    h("table", { class: "plain" }, h("thead", null, h("tr", null, ["", "Cases", "Pass rate", "In the long run"].map((label, place) => h("th", { scope: "col", class: place === 3 ? "bar-cell" : place ? "num" : null }, label)))), h("tbody", null, rates.map(line))),
  );
}

/** What the verdicts of judges are worth: the share that passed, and what labels of people make of it. */
function judgesPart() {
  const { judges } = data.run;
  if (!judges) return null;
  const names = ["Criterion", "Judged", "Passed", "Corrected"];
  const share = (value) => (typeof value === "number" ? `${Math.round(1000 * value) / 10}%` : "–");
  const line = (one) =>
    h(
      "tr",
      null,
      h("th", { scope: "row" }, say(one.criterion, 200), one.more && h("span", { class: "dim" }, say(one.more, 400))),
      h("td", { class: "num" }, number(one.judged)),
      h("td", { class: "num" }, share(one.rate)),
      h("td", { class: "num" }, share(one.corrected), one.interval && h("span", { class: "dim" }, one.interval.map(share).join(" – "))),
    );
  const table = (judge) =>
    h(
      "table",
      { class: "plain" },
      h("caption", null, say(judge.judge, 200)),
      h("thead", null, h("tr", null, names.map((label, place) => h("th", { scope: "col", class: place ? "num" : null }, label)))),
      h("tbody", null, judge.rows.map(line), judge.left && h("tr", null, h("td", { colspan: "4", class: "dim" }, judge.left))),
    );
  return h(
    "section",
    { class: "beside judges" },
    h("h2", null, "Judges"),
    h("p", { class: "dim" }, "Corrected: the share of good answers, by labels of people, and where it lies with 95% confidence."),
    judges.map(table),
  );
}

/** The metrics of all runs, in figures with their intervals. */
function metricsPart() {
  const { metrics } = data.run.groups;
  if (!metrics.length) return null;
  const names = ["Metric", "Runs", "Mean", "Median", "p95"];
  return h(
    "section",
    { class: "beside metrics" },
    h("h2", null, "Metrics"),
    h("p", { class: "dim" }, "In brackets: where the figure lies with 95% confidence; of means, approximately."),
    h(
      "table",
      { class: "plain" },
      h("thead", null, h("tr", null, names.map((label, place) => h("th", { scope: "col", class: place ? "num" : null }, label)))),
      h("tbody", null, metrics.map((one) => h("tr", null, h("th", { scope: "row" }, say(one.name, 80)), [number(one.runs), one.mean, one.median, one.p95].map((text) => h("td", { class: "num" }, text))))),
    ),
  );
}

function figure(label, value, note, faint) {
  return h("div", null, h("dt", null, label), h("dd", { class: faint ? "faint" : null }, value), note ? h("dd", { class: "note" }, note) : null);
}

/** The agents beside each other, in figures. */
function agentsPart(more = true) {
  const compared = data.run.compared ?? {};
  const beside = Object.keys(compared).length > 0;
  const lines = data.agents.map((agent) => {
    const rows = data.rows.filter((row) => row.agent === agent);
    const counts = tally(rows);
    const trials = rows.flatMap((row) => row.trials);
    const parts = ORDER.map((name) => ({ name, label: NAMES[name], count: counts[name] ?? 0 }));
    const cost = spent(rows, "usage", "cost_usd");
    const scores = rows.map((row) => row.score).filter((score) => typeof score === "number");
    return h(
      "tr",
      null,
      h("th", { scope: "row" }, h("a", { href: link({ agent }, {}) }, say(agent, 60))),
      h("td", { class: "num" }, `${number(counts.passed ?? 0)} of ${number(rows.length)}`),
      h("td", { class: "bar-cell" }, shares(parts, `How the cases of this agent ended`)),
      data.scored && h("td", { class: "num" }, scores.length ? (scores.reduce((sum, one) => sum + one, 0) / scores.length).toFixed(1) : "–"),
      h("td", { class: "num" }, duration(quantiles(trials.map((trial) => trial.duration_ms), [0.5])[0])),
      h("td", { class: "num" }, cost === undefined ? "–" : money(cost)),
      beside && h("td", { class: "compared" }, compared[agent] ? say(compared[agent], 200) : "–"),
    );
  });
  return h(
    "section",
    { class: "beside" },
    h("h2", { class: more ? null : "away" }, "Agents ", more && h("a", { class: "aside", href: link({ view: "agents" }, {}) }, "side by side")),
    h(
      "table",
      { class: "plain" },
      h("thead", null, h("tr", null, ["Agent", "Passed", "", data.scored && "Score", "Median", "Cost", beside && "Compared with the first"].filter((one) => one !== false).map((label, place) => h("th", { scope: "col", class: place === 2 ? "bar-cell" : label === "Compared with the first" ? "compared" : place ? "num" : null }, label)))),
      h("tbody", null, lines),
    ),
  );
}

const CLASSES = { stable: "stable", mostly_stable: "mostly stable", unstable: "unstable", highly_unstable: "highly unstable", cut_short: "cut short" };

/** How stable a case is, or how much of it there is. */
function classOf(row) {
  return row.planned > row.trials.length ? `only ${row.trials.length} of ${row.planned} trials ran` : CLASSES[row.stability.classification];
}

function classesOf(rows) {
  return Object.entries(CLASSES).map(([name, label]) => ({ name, label, count: rows.filter((row) => row.stability && (row.stability.classification ?? "cut_short") === name).length }));
}

function stabilityPart() {
  const parts = classesOf(data.rows);
  return h(
    "section",
    { class: "stable-part" },
    h("h2", null, "Stability ", h("a", { class: "aside", href: link({ view: "stability" }, {}) }, "case by case")),
    shares(parts, "Shares of stable and unstable cases"),
    classLegend(parts),
  );
}

function classLegend(parts) {
  return h("ul", { class: "legend" }, parts.filter((one) => one.count).map((one) => h("li", null, h("span", { class: `swatch is-${one.name}` }), h("b", null, number(one.count)), ` ${one.label}`)));
}
