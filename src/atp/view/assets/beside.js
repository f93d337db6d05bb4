// Two or more runs beside each other, by the classes of `atp compare`; and a case of them, with what differs marked.

const CLASS_WORDS = { regressed: "worse", improved: "better", same: "the same", inconclusive: "inconclusive", changed: "changed" };
const CLASS_RANK = ["regressed", "improved", "changed", "only in A", "only in B", "inconclusive", "same"];
const CLASS_LOOK = { regressed: "failed", improved: "passed", changed: "inconclusive", inconclusive: "inconclusive" };

source.views.compare = () => {
  const element = h("div", { class: "view compare-view" });
  const only = h("input", { type: "checkbox", id: "only-differing", on: { change: () => draw() } });
  only.checked = true;
  const field = h("input", { type: "search", placeholder: "Search cases", "aria-label": "Search cases", autocomplete: "off", on: { input: () => draw() } });
  const found = h("p", { class: "found", role: "status" });
  const none = h("p", { class: "none" });
  let [asked, lines, grid, list] = ["", [], null, null];

  async function load(at) {
    const runs = [at.run, ...at.with.split(",").filter(Boolean)];
    const { comparisons } = await source.get(`/api/compare?${new URLSearchParams(runs.map((run) => ["run", run]))}`);
    asked = `${at.run} ${at.with}`;
    lines = paired(comparisons);
    grid?.close();
    const columns = [
      { name: "case", label: "Case", class: "c-case", cell: (line) => lineCell(line) },
      ...runs.map((run, place) => ({ name: "by", label: h("span", { title: run }, place ? `${letter(place)}` : "A"), class: "c-tally num", cell: (line) => tallyCell(line.tallies[place]) })),
      ...comparisons.map((_, place) => ({ name: "class", label: comparisons.length > 1 ? `${letter(place + 1)} against A` : "B against A", class: "c-class", cell: (line) => classCell(line.by[place]) })),
    ];
    view.grid = grid = new Grid({ label: "Cases of the runs", columns });
    list = [
      h("header", { class: "lead" }, h("h1", null, `${plural(runs.length, "run")} side by side`), h("ol", { class: "sides" }, [comparisons[0].a, ...comparisons.map((one) => one.b)].map(side))),
      h("section", { class: "whys" }, comparisons.map((one, place) => overallPart(one, letter(place + 1)))),
      h("section", { class: "cases-part" }, h("div", { class: "filters", role: "search" }, h("label", { class: "search" }, icon("search"), field, h("kbd", { "aria-hidden": "true" }, "/")), h("label", { class: "check" }, only, "Only where they differ"), found), grid.element, none),
    ];
  }

  function shownLines() {
    const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
    return lines.filter((line) => (!only.checked || line.differs) && words.every((word) => line.searched.includes(word)));
  }

  function draw() {
    const rows = shownLines();
    grid.show(rows);
    found.textContent = rows.length === lines.length ? plural(lines.length, "case") : `${number(rows.length)} of ${plural(lines.length, "case")}`;
    none.textContent = rows.length ? "" : lines.length && only.checked && !field.value ? "The runs differ in no case." : "No case fits.";
  }

  function step(by) {
    const at = state();
    if (!at.case) return undefined;
    const rows = shownLines();
    const next = rows[rows.findIndex((line) => isLine(line, at)) + by];
    if (next) goTo(lineLink(next));
    return true;
  }

  const view = {
    element,
    grid: null,
    search: () => (state().case ? go(NO_CASE) : field.focus()),
    keys: {
      j: (event) => step(1) ?? LIST_KEYS.j(event),
      k: (event) => step(-1) ?? LIST_KEYS.k(event),
      Escape: () => (state().case ? go(NO_CASE) : goTo("#")),
      f: () => only.click(),
    },
    async update(at) {
      if (asked !== `${at.run} ${at.with}`) await load(at);
      if (!at.case) {
        if (!element.contains(grid.element)) element.replaceChildren(...list);
        draw();
        return;
      }
      const line = lines.find((one) => isLine(one, at));
      element.replaceChildren(await caseBeside(at, line));
      scrollTo(0, 0);
    },
  };
  return view;
};

function letter(place) {
  return String.fromCharCode(65 + place);
}

/** One line a case, with its tally in each run and its class against the first. */
function paired(comparisons) {
  const found = new Map();
  comparisons.forEach((comparison, place) => {
    for (const one of comparison.cases) {
      const key = JSON.stringify([one.file, one.id, one.agent]);
      if (!found.has(key)) found.set(key, { id: one.id, name: one.name, agent: one.agent, file: one.file, tallies: new Array(comparisons.length + 1), by: new Array(comparisons.length) });
      const line = found.get(key);
      line.tallies[0] ??= one.a;
      line.tallies[place + 1] = one.b;
      line.by[place] = one;
    }
  });
  const lines = [...found.values()];
  for (const line of lines) {
    const classes = line.by.filter(Boolean).map((one) => one.class);
    const rates = new Set(line.tallies.map((one) => (one ? `${one.pass_rate} ${one.errors}` : "")));
    line.differs = rates.size > 1 || classes.some((one) => one !== "same" && one !== "inconclusive");
    line.rank = Math.min(...classes.map((one) => CLASS_RANK.indexOf(one)));
    line.worst = Math.min(...line.by.map((one) => one?.difference ?? 0));
    line.status = line.worst < 0 ? "failed" : "passed";
    line.searched = [line.id, line.name, line.agent, line.file].join("\n").toLowerCase();
  }
  return lines.sort((a, b) => a.rank - b.rank || b.differs - a.differs || a.worst - b.worst || (a.id < b.id ? -1 : 1));
}

function isLine(line, at) {
  return line.id === at.case && (!at.by || line.agent === at.by) && (!at.in || line.file === at.in);
}

function lineLink(line) {
  return link({ case: line.id, by: line.agent, in: line.file });
}

function lineCell(line) {
  return h("span", { class: "case-cell" }, h("a", { class: "open", href: lineLink(line) }, say(line.id, 120), h("span", { class: "dim" }, " ", say(line.agent, 40))), line.name ? h("span", { class: "sub" }, say(line.name, 160)) : "");
}

function tallyCell(tally) {
  if (!tally) return h("span", { class: "dim" }, "–");
  const all = tally.judged + tally.errors;
  const kind = tally.passed === all ? "passed" : tally.judged ? "failed" : "error";
  return h("span", { class: `word is-${kind}` }, all > 1 ? `${tally.passed} of ${all}` : kind);
}

function classCell(one) {
  if (!one) return "";
  const seen = one.class === "inconclusive" && one.observed && one.observed !== "equal" ? `${one.observed}, not sure` : "";
  return [h("span", { class: `chip-word is-${CLASS_LOOK[one.class] ?? "skipped"}` }, CLASS_WORDS[one.class] ?? one.class), one.why ? h("span", { class: "sub" }, say(one.why, 120)) : seen && h("span", { class: "sub" }, seen)];
}

function side(one, place) {
  const code = [one.commit?.slice(0, 7), one.dirty && "with changes"].filter(Boolean).join(" ");
  return h("li", null, h("b", null, letter(place)), " ", h("a", { href: link({ run: one.run }, {}) }, say(one.run, 60)), h("span", { class: "dim" }, ` ${when(new Date(1000 * one.at).toISOString())}`, code && [" · ", say(code, 60)], one.pass_rate !== null && ` · ${Math.round(10 * one.pass_rate) / 10}% passed`));
}

const OVERALL = { regressed: ["failed", "is worse"], improved: ["passed", "is better"], same: ["passed", "is the same"], inconclusive: ["inconclusive", "may be the same or not: no difference is shown"] };

function overallPart(one, name) {
  const { overall } = one;
  const [kind, words] = OVERALL[overall.class];
  const points = (value) => `${value > 0 ? "+" : value < 0 ? "−" : ""}${Math.abs(Math.round(10 * value) / 10)}`;
  const sure = overall.interval ? `, 95% interval ${points(overall.interval[0])} to ${points(overall.interval[1])}, p = ${overall.p_value.toPrecision(2)}` : "";
  return h(
    "div",
    { class: "overall" },
    h("p", { class: "reason" }, icon(kind), " ", h("b", null, `${name} ${words}`)),
    h("p", { class: "cases" }, overall.difference === null ? "No case could be compared." : `${points(overall.difference)} points over ${plural(overall.cases, "case")}${sure}. `, `${plural(one.regressed, "case")} worse, ${number(one.improved)} better.`),
    one.notes.map((note) => h("p", { class: "dim" }, say(note, 300))),
  );
}

/** A case in each of the runs: how it ended, and what was said, compared with the first run. */
async function caseBeside(at, line) {
  const runs = [at.run, ...at.with.split(",").filter(Boolean)];
  const sides = await Promise.all(runs.map((run, place) => caseIn(run, at, letter(place))));
  const only = h("input", { type: "checkbox", on: { change: () => talk.classList.toggle("only-differing", only.checked) } });
  only.checked = true;
  const talk = h("div", { class: "talks only-differing" }, sides.slice(1).map((one) => talkBeside(sides[0], one, sides.length > 2)));
  return h(
    "article",
    { class: "case-view" },
    h("header", { class: "case-head" }, h("nav", { class: "crumbs" }, h("a", { href: link(NO_CASE) }, icon("back"), "All cases of the comparison")), h("h1", null, say(at.case, 300)), line && h("p", { class: "about" }, line.by.map((one) => [classCell(one), " "]))),
    h("div", { class: "columns" }, sides.map(sideColumn)),
    h("section", { class: "part" }, h("h2", null, "Conversation"), h("label", { class: "check" }, only, "Only where they differ"), talk),
  );
}

async function caseIn(run, at, name) {
  const query = new URLSearchParams({ case: at.case, ...(at.by && { agent: at.by }) });
  const { cases } = await source.get(`/api/runs/${encodeURIComponent(run)}/cases?${query}`);
  const row = cases[0];
  if (!row) return { name, run, row: null, seen: {} };
  complete(row, 0);
  const place = Math.max(0, row.trials.findIndex((trial) => trial.status === row.status));
  const seen = row.trials.length ? await source.get(`/api/runs/${encodeURIComponent(run)}/cases/${row.at[0]}/trials/${place}`) : {};
  return { name, run, row, seen };
}

function sideColumn({ name, run, row, seen }) {
  if (!row) return h("div", { class: "column" }, h("p", { class: "who" }, h("b", null, name), " ", say(run, 40)), h("p", { class: "dim" }, "The run has no such case."));
  const facts = [row.planned > 1 && `${row.passed} of ${row.planned} passed`, duration(row.duration_ms), row.usage.cost_usd !== undefined && money(row.usage.cost_usd), typeof row.score === "number" && `score ${row.score.toFixed(0)}`];
  return h(
    "div",
    { class: "column" },
    h("p", { class: "who" }, icon(row.status, row.status), h("b", null, name), " ", h("a", { href: link({ run, case: row.id, by: row.agent }, {}) }, say(run, 40))),
    h("p", { class: "dim" }, facts.filter(Boolean).join(" · ")),
    (seen.error ?? row.error) && h("p", { class: "bad" }, say(seen.error ?? row.error, 400)),
  );
}

/** The messages of two runs, one below the other; those that are the same can be hidden. */
function talkBeside(one, other, named) {
  const [left, right] = [messagesOf(one.seen), messagesOf(other.seen)];
  const rows = [];
  for (let place = 0; place < Math.max(left.length, right.length); place++) {
    const [a, b] = [left[place], right[place]];
    const same = JSON.stringify(a) === JSON.stringify(b);
    const role = (a ?? b).role;
    rows.push(h("li", { class: same ? "same" : "differs" }, h("p", { class: "role" }, role, same && h("span", { class: "dim" }, " the same")), same ? block(a.content, { first: 400 }) : versus(a?.content, b?.content, [one.name, other.name])));
  }
  const alike = !rows.some((row) => row.classList.contains("differs"));
  return h("div", null, named && h("h3", null, `${one.name} and ${other.name}`), h("ol", { class: "beside-talk" }, rows), alike && h("p", { class: "dim" }, "They said the same."));
}

function messagesOf(seen) {
  const { transcript } = seen;
  const messages = (transcript?.messages ?? []).map((message) => ({ role: message.role, content: message.content ?? message }));
  const output = transcript?.turns?.at(-1)?.output;
  const last = messages.findLast((message) => message.role === "assistant");
  if (output !== undefined && words(output) !== words(last?.content)) messages.push({ role: "answer", content: output });
  for (const call of transcript?.tool_calls ?? []) messages.push({ role: `tool ${call.name}`, content: { arguments: call.arguments, result: call.error ?? call.result } });
  return messages;
}
