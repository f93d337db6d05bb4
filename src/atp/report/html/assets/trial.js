// One case: its trials, and all about the one that is looked at.

let looking = 0;

async function showCase(page, at) {
  const mine = ++looking;
  const row = caseOf(at);
  if (!row) {
    page.replaceChildren(h("section", { class: "view lead" }, h("h1", null, "There is no such case in this report"), h("p", null, say(at.case, 200)), h("p", null, h("a", { href: link(NO_CASE) }, "All cases"))));
    return;
  }
  const trial = wantedTrial(row, at.trial);
  const [about, found] = await Promise.all([row.at ? detail(row.at) : {}, trial ? detail(trial.at) : {}]);
  if (mine !== looking) return; // somebody went on before it was unpacked
  source.looksAt?.(trial?.at);
  const seen = { ...found, status: found.status ?? row.status, verdicts: found.verdicts };
  page.replaceChildren(
    h(
      "article",
      { class: "view case-view" },
      caseHead(row, trial, seen, about),
      h("div", { class: "case-body" }, h("div", { class: "case-main" }, [() => checksPart(seen), () => talkPart(seen, about), () => source.answerLabels?.(), () => logsPart(seen), () => besidePart(row, trial), () => source.pastPart?.(row)].map(guarded)), guarded(() => factsPart(row, seen, about))),
    ),
  );
  settleQuotes(page);
}

/** A part of the page. One that can't be shown says so, and the others are there. */
function guarded(make) {
  try {
    return make();
  } catch (error) {
    console.error(error);
    return h("section", { class: "part" }, h("p", { class: "bad" }, `This part could not be shown: ${error}`));
  }
}

function wantedTrial(row, asked) {
  const [variation, run] = asked.split(".").map(Number);
  const exact = asked && row.trials.find((trial) => trial.variation + 1 === variation && trial.run === run);
  return exact || row.trials.find((trial) => trial.status === row.status) || row.trials[0];
}

function caseHead(row, trial, seen, about) {
  const rows = listed();
  const place = rows.indexOf(row);
  const to = (other, label, name) => h("a", { class: "step-to", href: other ? caseLink(other) : null, "aria-disabled": other ? null : "true", "aria-label": label, title: label }, icon(name));
  const several = new Set(row.trials.map((one) => one.variation)).size > 1;
  const told = (seen.verdicts ?? []).some((verdict) => verdict.outcome !== "passed" && verdict.message === seen.error);
  const why = seen.status !== "passed" && !told ? seen.error : null;
  const reason = row.status !== "passed" && row.error && row.error !== (why ?? "").slice(0, row.error.length) && row.trials.every((one) => one.status === "passed") && row.error !== about.long_run ? row.error : null;
  return h(
    "header",
    { class: "case-head" },
    h("nav", { class: "crumbs", "aria-label": "Cases" }, h("a", { href: link(NO_CASE) }, icon("back"), "All cases"), h("span", { class: "dim" }, place >= 0 ? `${number(place + 1)} of ${number(rows.length)}` : ""), to(rows[place - 1], "Previous case", "back"), to(rows[place + 1], "Next case", "next")),
    h("h1", null, icon(row.status, row.status), say(row.id, 300), row.name && h("span", { class: "name" }, say(row.name, 300))),
    h(
      "p",
      { class: "about" },
      h("span", { class: `word is-${row.status}` }, row.status),
      row.status === "error" && row.blame && h("span", null, `, ${BLAMES[row.blame] ?? row.blame}`),
      data.agents.length > 0 && row.agent && [" · ", say(row.agent, 80)],
      trial && ` · ${duration(seen.duration_ms ?? trial.duration_ms)}`,
      row.tags.map((tag) => [" ", h("a", { class: "tag", href: link({ ...NO_FILTER, ...NO_CASE, tag }) }, say(tag, 40))]),
    ),
    row.flaky && h("p", { class: "about" }, row.flaky),
    (about.judge ?? []).map((line) => h("p", { class: "about" }, say(line, 400))),
    row.quarantine && h("p", { class: "about" }, say(row.quarantine, 400)),
    row.planned > 1 && trialsPart(row, trial, seen, several, about),
    reason && h("div", { class: "why-box is-failed" }, block(reason)),
    why && h("div", { class: `why-box is-${seen.status}` }, block(why)),
  );
}

function trialsPart(row, trial, seen, several, about) {
  const found = row.stability;
  const needed = about.required_rate === undefined ? "" : `, ${percent(about.required_rate, 1)} needed`;
  const origin = seen.origin ? ` (${seen.origin})` : "";
  return h(
    "div",
    { class: "trials" },
    runGrid(row, trial),
    h("p", null, h("b", null, several ? `Variation ${trial.variation + 1}${origin}, run ${trial.run}` : `Run ${trial.run}`), h("span", { class: "dim" }, `${row.passed} of ${row.planned} passed, ${classOf(row)}${needed}${found.output_consistency === null ? "" : `, same answer ${percent(found.output_consistency, 1)}`}${trial.surplus ? ", surplus: the case was decided without this run" : ""}`)),
    about.long_run && h("p", { class: "dim long-run" }, `${about.long_run[0].toUpperCase()}${about.long_run.slice(1)}.`),
  );
}

/** What other agents did with the same case. */
function besidePart(row, trial) {
  if (!data.several || !row.agent) return null;
  const others = data.agents.map((agent) => data.rows.find((one) => one.agent === agent && one.id === row.id && one.file === row.file)).filter(Boolean);
  if (others.length < 2) return null;
  const box = h("div", { class: "columns" });
  Promise.all(others.map((one) => column(one, one === row ? trial : wantedTrial(one, ""), one === row))).then((made) => box.replaceChildren(...made));
  return h("section", { class: "part" }, h("h2", null, "Side by side"), box);
}

async function column(row, trial, here) {
  const found = await detail(trial.at);
  const output = found.transcript?.turns?.at(-1)?.output;
  const facts = [row.planned > 1 && `${row.passed} of ${row.planned}`, duration(trial.duration_ms), typeof trial.score === "number" && `score ${trial.score.toFixed(0)}`, found.transcript?.usage?.cost_usd !== undefined && money(found.transcript.usage.cost_usd)];
  return h(
    "div",
    { class: `column ${here ? "here" : ""}` },
    h("p", { class: "who" }, icon(row.status, row.status), here ? h("b", null, say(row.agent, 60)) : h("a", { href: caseLink(row) }, say(row.agent, 60))),
    h("p", { class: "dim" }, facts.filter(Boolean).join(" · ")),
    found.error && trial.status !== "passed" && h("p", { class: "bad" }, say(found.error, 300)),
    output === undefined ? h("p", { class: "dim" }, "no answer") : block(output, { first: 1200 }),
  );
}

/** A quotation that isn't marked anywhere leads nowhere. */
function settleQuotes(page) {
  for (const quote of page.querySelectorAll("button.quote")) {
    const there = page.querySelector(`mark[data-quote="${CSS.escape(quote.dataset.to)}"]`);
    quote.disabled = !there;
    if (!there) quote.title = "";
  }
}
