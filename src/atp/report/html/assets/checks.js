// What the checks of a trial found.

/** All quotations that judges gave, with the names that marks of them have. */
function quotesOf(trial) {
  const found = [];
  const walk = (verdicts, path) =>
    (verdicts ?? []).forEach((verdict, place) => {
      const name = `${path}${place}`;
      (verdict.evidence ?? []).forEach((text, number) => typeof text === "string" && text.trim() && found.push({ text, name: `${name}.${number}` }));
      walk(verdict.parts, `${name}-`);
    });
  walk(trial.verdicts, "");
  return found;
}

function checksPart(trial) {
  const points = new Map((trial.checkpoints ?? []).map((point) => [point.id, point]));
  const verdicts = trial.verdicts ?? [];
  if (!verdicts.length) {
    const none = (trial.warnings ?? []).includes("no assertions") ? "Nothing was checked: the case has no assertions." : "No check was reached.";
    return h("section", { class: "part" }, h("h2", null, "Checks"), h("p", { class: "dim" }, none));
  }
  const passed = verdicts.filter((one) => one.outcome === "passed").length;
  const order = verdicts.map((verdict, place) => ({ verdict, name: String(place) })).sort((a, b) => (a.verdict.outcome === "passed") - (b.verdict.outcome === "passed"));
  return h(
    "section",
    { class: "part checks" },
    h("h2", null, "Checks ", h("span", { class: "aside" }, `${passed} of ${verdicts.length} passed`)),
    h("ul", { class: "verdicts" }, order.map(({ verdict, name }) => verdictItem(verdict, name, points))),
    judgeCalls(trial),
  );
}

function verdictItem(verdict, name, points) {
  const bad = verdict.outcome !== "passed";
  // The name of a failed exact check is the value that it looked for, which stands below.
  const named = verdict.judged || verdict.type === "checkpoint" || !bad;
  const title = (named ? (verdict.name ?? verdict.message) : (verdict.message ?? verdict.name)) ?? verdict.type;
  const message = verdict.message && verdict.message !== title ? verdict.message : "";
  return h(
    "li",
    { class: `verdict-item is-${verdict.outcome}` },
    icon(verdict.outcome, verdict.outcome === "unjudged" ? "not judged" : verdict.outcome),
    h(
      "div",
      { class: "body" },
      h("p", { class: "title" }, say(words(title), 600), " ", labels(verdict)),
      message && h("p", { class: "message", dir: "auto" }, verdict.outcome === "unjudged" && h("b", null, "Not judged: "), say(message, 4000)),
      bad && compared(verdict),
      quotations(verdict, name),
      source.labelPart?.(name),
      verdict.type === "checkpoint" && points?.has(verdict.name) && wantedLine(points.get(verdict.name)),
      verdict.parts && [partsTitle(verdict), h("ul", { class: "verdicts" }, verdict.parts.map((part, place) => verdictItem(part, `${name}-${place}`)))],
    ),
  );
}

function wantedLine(point) {
  const wanted = wantedPart(point);
  return wanted && h("p", { class: "wanted" }, "Has to hold: ", wanted);
}

/** What the verdicts inside of another one are: the votes of a judge, or how near a checkpoint came. */
function partsTitle(verdict) {
  const [first] = verdict.parts;
  if (first.type === "vote") return h("p", { class: "nearest" }, `${verdict.parts.filter((vote) => vote.outcome === "passed").length} of ${plural(verdict.parts.length, "vote")} for it`);
  if (verdict.type !== "checkpoint") return null;
  const held = first.parts?.filter((part) => part.outcome === "passed").length;
  const near = first.parts?.length ? `: ${held} of ${first.parts.length} held` : "";
  return h("p", { class: "nearest" }, "It came nearest", first.where && [" in ", say(first.where, 80)], near);
}

function labels(verdict) {
  const made = [
    verdict.type,
    verdict.judged && "judged",
    verdict.critical && "critical",
    verdict.score !== undefined && `score ${Math.round(verdict.score * 100) / 100}`,
    verdict.weight !== undefined && verdict.weight !== 1 && `weight ${verdict.weight}`,
  ].filter(Boolean);
  return h("span", { class: "labels" }, made.map((text) => h("span", { class: "label" }, say(text, 60))), verdict.where && h("span", { class: "where" }, "in ", say(verdict.where, 160)));
}

/** Expected against found. `compared` has both as they compare best, where the check's own values are cut or unlike. */
function compared(verdict) {
  const [expected, found] = verdict.compared ?? [verdict.expected, verdict.found];
  return expected === undefined && found === undefined ? null : versus(expected ?? undefined, found ?? undefined);
}

function quotations(verdict, name) {
  const quotes = (verdict.evidence ?? []).filter((text) => typeof text === "string" && text.trim());
  if (!quotes.length) return null;
  const button = (text, number) => h("button", { type: "button", class: "quote", "data-to": `${name}.${number}`, title: "Show where it stands", on: { click: showQuote } }, say(text, 600));
  return h("div", { class: "quotes" }, quotes.map(button));
}

/** Go from a quotation to the place where it stands, or from there back to the check that quotes it. */
function showQuote(event) {
  const mark = document.querySelector(`mark[data-quote="${CSS.escape(event.currentTarget.dataset.to)}"]`);
  if (!mark) return announce("This quotation stands in something that is not shown");
  for (let outer = mark.closest("details"); outer; outer = outer.parentElement.closest("details")) outer.open = true;
  document.querySelectorAll("mark.here").forEach((one) => one.classList.remove("here"));
  mark.classList.add("here");
  visit(mark);
}

function showQuoting(event) {
  const button = document.querySelector(`button.quote[data-to="${CSS.escape(event.currentTarget.dataset.quote)}"]`);
  if (button) visit(button);
}

function visit(element) {
  element.focus({ preventScroll: true });
  element.scrollIntoView({ block: "center", behavior: matchMedia("(prefers-reduced-motion: reduce)").matches ? "auto" : "smooth" });
}
