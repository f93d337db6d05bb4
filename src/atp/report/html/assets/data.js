// The data of a run: an object about the run, rows of cases, and details that are got when asked for.

const CHUNKS_KEPT = 8;

const data = { run: null, rows: [] };

/**
 * Where the data comes from. A report has all of it in the page (`Embedded`); the live view asks its server (`Fetched`).
 * `begin()` gets ready, `view(at)` names the view of an address, `show(at)` gets what that view needs, and `detail(at)`
 * the details of a case or a trial.
 */
class Embedded {
  /** Chunks that were unpacked, the one used last at the end. */
  chunks = new Map();

  async begin() {
    const [run, ran, skipped] = await Promise.all(["run", "rows", "skipped"].map((id) => unpack(document.getElementById(id))));
    data.run = run;
    addRows(ran);
    addRows(skipped);
    digest();
  }

  view(at) {
    return at.case ? "case" : at.view;
  }

  show() {}

  async detail([chunk, place]) {
    if (!this.chunks.has(chunk)) this.chunks.set(chunk, element(`chunk-${chunk}`).then(unpack));
    const found = this.chunks.get(chunk);
    this.chunks.delete(chunk);
    this.chunks.set(chunk, found);
    if (this.chunks.size > CHUNKS_KEPT) this.chunks.delete(this.chunks.keys().next().value);
    return (await found)[place];
  }
}

let source = new Embedded();

async function unpack(element) {
  const packed = fromBase64(element.textContent);
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
  return parse(await new Response(stream).text());
}

function fromBase64(text) {
  if (Uint8Array.fromBase64) return Uint8Array.fromBase64(text);
  const letters = atob(text);
  const found = new Uint8Array(letters.length);
  for (let place = 0; place < letters.length; place++) found[place] = letters.charCodeAt(place);
  return found;
}

/** JSON, with whole numbers that JavaScript would round kept as they were written. */
function parse(text) {
  if (!JSON.rawJSON || !/[:,[]\s*-?\d{16,}[,\]}]/.test(text)) return JSON.parse(text);
  return JSON.parse(text, (_, value, { source } = {}) =>
    typeof value === "number" && !Number.isSafeInteger(value) && /^-?\d+$/.test(source) ? JSON.rawJSON(source) : value,
  );
}

function addRows(rows) {
  for (const row of rows) {
    complete(row, data.rows.length);
    data.rows.push(row);
  }
}

/** Work out what the views need of all rows together. */
function digest() {
  const { run } = data;
  data.counts = tally(data.rows);
  data.agents = run.summary.agents;
  data.several = data.agents.length > 1;
  data.repeated = data.rows.some((row) => row.planned > 1);
  data.varied = data.rows.some((row) => row.trials.some((trial) => trial.variation > 0));
  data.runs = !data.varied && data.rows.some((row) => row.trials.some((trial) => trial.run > 1));
  data.tags = [...new Set(data.rows.flatMap((row) => row.tags))].sort();
  data.files = [...new Set(data.rows.map((row) => row.file))];
  data.scored = data.rows.some((row) => typeof row.score === "number");
  data.priced = data.rows.some((row) => row.usage.cost_usd !== undefined);
  data.groups = reasons(data.rows.filter((row) => row.bad));
  const ids = new Map();
  for (const row of data.rows) {
    const key = `${row.agent}\n${row.id}`;
    if (ids.has(key)) row.ambiguous = ids.get(key).ambiguous = true;
    ids.set(key, row);
  }
}

/** The file of a case, where the run has several. */
function fileName(row) {
  return data.files.length > 1 && row.file ? h("span", { class: "dim" }, " ", say(row.file, 80)) : "";
}

const RANK = ["failed", "timeout", "error", "blocked", "cancelled", "inconclusive", "passed", "skipped"];

function complete(row, place) {
  row.place = place;
  row.tags ??= [];
  row.agent ??= "";
  row.name = row.name && row.name !== row.id ? row.name : "";
  row.duration_ms ??= 0;
  row.usage ??= {};
  row.role_usage ??= {};
  row.trials = (row.trials ?? []).map(([status, duration_ms, variation, run, score, chunk, spot, surplus]) => ({ status, duration_ms, variation, run, score, surplus: surplus ?? false, at: [chunk, spot] }));
  const counted = row.trials.filter((trial) => !trial.surplus);
  row.passed = counted.filter((trial) => trial.status === "passed").length;
  row.planned = row.stability?.planned ?? counted.length; // more than there are, if a stop cut the case short
  row.rate = row.planned ? row.passed / row.planned : null;
  row.bad = row.status !== "passed" && row.status !== "skipped";
  row.rank = RANK.indexOf(row.status);
}

/** The details at a place: a case's or a trial's. */
function detail(at) {
  return source.detail(at);
}

/** An element that the browser may not have read yet: the details are the end of a long file. */
async function element(id) {
  const found = document.getElementById(id);
  if (found || document.readyState !== "loading") return found;
  await new Promise((done) => document.addEventListener("DOMContentLoaded", done, { once: true }));
  return document.getElementById(id);
}

/**
 * The cases that did not pass, by reason, the most frequent first. Reasons that differ only in numbers, or in what was
 * found, are one; what was expected must be the same.
 */
function reasons(rows) {
  const groups = new Map();
  for (const row of rows) {
    const why = row.error || row.status;
    const key = hash(`${row.status} ${row.blame ?? ""} ${alike(why)}`);
    row.why = key;
    if (!groups.has(key)) groups.set(key, { key, why, status: row.status, blame: row.blame, rows: [], same: true });
    const group = groups.get(key);
    group.same &&= group.why === why;
    group.rows.push(row);
  }
  return [...groups.values()].sort((a, b) => b.rows.length - a.rows.length || RANK.indexOf(a.status) - RANK.indexOf(b.status));
}

const QUOTATION = /"[^"]*"|'[^']*'|`[^`]*`/g;

/** A reason without what may differ between cases that failed for the same reason. */
function alike(why) {
  const place = why.search(/\bfound\b/);
  const [expected, found] = place < 0 ? [why, ""] : [why.slice(0, place), why.slice(place)];
  const kept = expected.match(QUOTATION) ?? [];
  return [expected.replace(QUOTATION, "“”").replace(/\d+/g, "0"), ...kept, found.replace(QUOTATION, "“”").replace(/\d+/g, "0")].join("\n").toLowerCase();
}

function hash(text) {
  let found = 5381;
  for (let place = 0; place < text.length; place++) found = ((found * 33) ^ text.charCodeAt(place)) >>> 0;
  return found.toString(36);
}

/** Sums over cases: what is not known is undefined, not zero. */
function spent(rows, kind, name) {
  const known = rows.map((row) => row[kind][name]).filter((value) => value !== undefined);
  return known.length ? known.reduce((sum, value) => sum + value, 0) : undefined;
}

function tally(rows) {
  const counts = {};
  for (const row of rows) counts[row.status] = (counts[row.status] ?? 0) + 1;
  return counts;
}
