// The search language: `status:failed tag:refund tool:pay cost>0.01 turns>5 "free text"`.
//
// report/search.py has the same language for `atp report -k`. Both are tested with tests/report/search.json, so a change
// to one is a change to the other.

const TERM = /(?<minus>-(?=\S))?(?:(?<field>[A-Za-z_]+)(?<relation>:|\s*(?:>=|<=|[><=])\s*)(?<value>(?:"[^"]*"?|[^\s",]+)?(?:,(?:"[^"]*"?|[^\s",]+))*)|"(?<quoted>[^"]*)"?|(?<word>\S+))/g;
const LISTED = /"([^"]*)"?|([^\s",]+)/g;
const NUMERAL = /^(?:[0-9]+(?:\.[0-9]+)?|\.[0-9]+)$/;
const DURATION_PART = /([0-9]+(?:\.[0-9]+)?|\.[0-9]+)(ms|s|m|h)/g;
const UNIT_MS = { ms: 1, s: 1000, m: 60_000, h: 3_600_000 };

/** A query that can't be understood, and what to do about it. */
class SearchError extends Error {
  constructor(message, hint = "") {
    super(message);
    this.hint = hint;
  }
}

const numeral = (text) => (NUMERAL.test(text) ? Number(text) : null);

function countNumeral(text) {
  const unit = { k: 1000, m: 1_000_000 }[text.at(-1)?.toLowerCase()];
  const found = numeral(unit ? text.slice(0, -1) : text);
  return found === null ? null : found * (unit ?? 1);
}

/** `500ms`, `1m30s`; a number without a unit is seconds. */
function milliseconds(text) {
  const seconds = numeral(text);
  if (seconds !== null) return seconds * 1000;
  const parts = [...text.matchAll(DURATION_PART)];
  if (!parts.length || parts.map((part) => part[0]).join("") !== text) return null;
  return parts.reduce((sum, [, amount, unit]) => sum + Number(amount) * UNIT_MS[unit], 0);
}

/** The names of the tools that were called; a tool of an MCP server has two: `bank__pay`, and `pay`. */
function toolNames(row) {
  const names = row.tools ?? [];
  return [...names, ...names.filter((name) => name.includes("__")).map((name) => name.slice(name.indexOf("__") + 2))];
}

const ifRun = (name) => (row) => (row.trials.length ? row[name] ?? 0 : null);
const textOf = (name) => (row) => [row[name] ?? ""];

/** `values` of a text, which are the given word if `whole`, else contain it; or `value`, a number that may be unknown. */
const FIELDS = {
  status: { values: textOf("status"), whole: true },
  tag: { values: (row) => row.tags, whole: true },
  tool: { values: toolNames, whole: true },
  blame: { values: textOf("blame"), whole: true },
  id: { values: textOf("id") },
  name: { values: textOf("name") },
  agent: { values: textOf("agent") },
  file: { values: textOf("file") },
  error: { values: textOf("error") },
  cost: { value: (row) => row.usage.cost_usd, parse: (text) => numeral(text.replace(/^\$/, "")), example: "cost>0.01" },
  tokens: { value: (row) => row.usage.tokens, parse: countNumeral, example: "tokens>1.5k" },
  turns: { value: ifRun("turns"), parse: numeral, example: "turns>5" },
  duration: { value: ifRun("duration_ms"), parse: milliseconds, example: "duration>1m30s" },
  score: { value: (row) => row.score, parse: numeral, example: "score<80" },
};

const HOLDS = {
  ">": (found, wanted) => found > wanted,
  ">=": (found, wanted) => found >= wanted,
  "<": (found, wanted) => found < wanted,
  "<=": (found, wanted) => found <= wanted,
  "=": (found, wanted) => found === wanted,
  ":": (found, wanted) => found === wanted,
};

/** A test of a row: true if every term of the query holds. Throws `SearchError`. */
function parseSearch(query) {
  const tests = [...query.matchAll(TERM)].map(termTest);
  return (row) => tests.every((test) => test(row));
}

function termTest({ 0: whole, groups: term }) {
  let test;
  if (term.field !== undefined) test = fieldTest(term.field, term.relation.trim(), term.value, whole.replace(/^-/, ""));
  else {
    const text = (term.quoted ?? term.word).toLowerCase();
    test = (row) => searched(row).includes(text);
  }
  return term.minus ? (row) => !test(row) : test;
}

function fieldTest(given, relation, value, term) {
  const name = given.toLowerCase();
  const field = Object.hasOwn(FIELDS, name) ? FIELDS[name] : null;
  if (!field) {
    const meant = nearMiss(name, Object.keys(FIELDS));
    const fields = meant ? `did you mean \`${meant}\`?` : `the fields are ${Object.keys(FIELDS).join(", ")}`;
    throw new SearchError(`there is no field \`${given}\` to search`, `${fields}; quote a text: "${term.trim()}"`);
  }
  const items = [...value.matchAll(LISTED)].map(([, quoted, bare]) => quoted || bare || "");
  if (!items.length) throw new SearchError(`\`${name}${relation}\` needs a value`);
  if (field.values) return textTest(name, field, relation, items);
  const wanted = field.parse(value);
  if (wanted === null) throw new SearchError(`\`${name}\` is compared with a number, and \`${value}\` is none`, `as in ${field.example}`);
  return (row) => {
    const found = field.value(row);
    return typeof found === "number" && HOLDS[relation](found, wanted);
  };
}

function textTest(name, field, relation, items) {
  if (relation !== ":" && relation !== "=") throw new SearchError(`\`${name}\` is a text, which \`${relation}\` can't compare`, `as in ${name}:${items[0]}`);
  const wanted = items.map((item) => item.toLowerCase());
  const unknown = name === "status" ? wanted.find((item) => !RANK.includes(item)) : undefined;
  if (unknown !== undefined) {
    const meant = nearMiss(unknown, STATUSES);
    throw new SearchError(`there is no status \`${unknown}\``, meant ? `did you mean \`${meant}\`?` : `the statuses are ${STATUSES.join(", ")}`);
  }
  return (row) => {
    const found = field.values(row).map((value) => value.toLowerCase());
    return wanted.some((item) => (field.whole ? found.includes(item) : found.some((value) => value.includes(item))));
  };
}

/** What free text is searched in. */
function searched(row) {
  row.searched ??= [row.id, row.name, row.agent, row.file ?? "", row.status, row.blame ?? "", row.error ?? "", ...row.tags].join("\n").toLowerCase();
  return row.searched;
}

const STATUSES = ["passed", "failed", "error", "timeout", "skipped", "blocked", "cancelled", "inconclusive"];

/** The known word that a mistyped word most likely stands for, as `base/near.py` finds it. */
function nearMiss(word, known) {
  let best = null;
  for (const candidate of known) {
    const allowed = candidate.length > 4 ? 2 : 1;
    const distance = edits(word, candidate);
    if (distance <= allowed && (!best || distance < best.distance)) best = { distance, candidate };
  }
  return best?.candidate;
}

/** The edit distance: letters inserted, left out, replaced, or swapped with a neighbour. */
function edits(word, other) {
  if (Math.abs(word.length - other.length) > 2) return 3;
  let [before, last, line] = [[], [], Array.from({ length: other.length + 1 }, (_, place) => place)];
  for (let i = 1; i <= word.length; i++) {
    [before, last, line] = [last, line, [i]];
    for (let j = 1; j <= other.length; j++) {
      let cost = Math.min(last[j] + 1, line[j - 1] + 1, last[j - 1] + (word[i - 1] !== other[j - 1]));
      if (i > 1 && j > 1 && word[i - 1] === other[j - 2] && word[i - 2] === other[j - 1]) cost = Math.min(cost, before[j - 2] + 1);
      line.push(cost);
    }
  }
  return line.at(-1);
}
