// What is shown is in the address, so that every view can be linked to, and the browser's back button works.

const SETTINGS = ["run", "with", "view", "q", "status", "blame", "tag", "agent", "file", "why", "sort", "differ", "case", "by", "in", "trial"];

/** The address as an object; what isn't there is the empty text. */
function state() {
  const given = new URLSearchParams(location.hash.slice(1));
  return Object.fromEntries(SETTINGS.map((name) => [name, given.get(name) ?? ""]));
}

/** An address like this one, but with these changes. It stays in the same run. */
function link(changes, from = state()) {
  const wanted = new URLSearchParams();
  for (const [name, value] of Object.entries({ run: state().run, ...from, ...changes })) if (value) wanted.set(name, value);
  return `#${wanted}`;
}

const NO_FILTER = { q: "", status: "", blame: "", tag: "", agent: "", file: "", why: "" };
const NO_CASE = { case: "", by: "", in: "", trial: "" };

function go(changes) {
  goTo(link(changes));
}

/** Go to an address of this page and show it at once. The event `hashchange` comes later, perhaps after the next key. */
function goTo(address) {
  if (new URL(address, location.href).hash === location.hash) return;
  history.pushState(null, "", address);
  render();
}

/** Change the address without a step in the history. Whoever calls it renders the page. */
function amend(changes) {
  history.replaceState(null, "", link(changes));
}

/** The address of a case, or of one of its trials. */
function caseLink(row, trial, from = state()) {
  return link({
    case: row.id,
    by: data.several ? row.agent : "",
    in: row.ambiguous ? row.file ?? "" : "",
    trial: trial ? `${trial.variation + 1}.${trial.run}` : "",
  }, from);
}

function caseOf(at) {
  const fits = (row) => row.id === at.case && (!at.by || row.agent === at.by) && (!at.in || (row.file ?? "") === at.in);
  return data.rows.find(fits);
}

let lastSearch = { q: null };

/** The search of a query: `matches`, a test of a row, or `problem`, a `SearchError`. */
function searchOf(q) {
  if (lastSearch.q === q) return lastSearch;
  lastSearch = { q, matches: () => false, problem: null };
  try {
    lastSearch.matches = parseSearch(q);
  } catch (error) {
    if (!(error instanceof SearchError)) throw error;
    lastSearch.problem = error;
  }
  return lastSearch;
}

/** The rows that the filters leave, in the order asked for. A query that can't be understood leaves none. */
function chosen(at = state()) {
  const { matches } = searchOf(at.q);
  const statuses = at.status ? new Set(at.status.split(",")) : null;
  const found = data.rows.filter(
    (row) =>
      (!statuses || statuses.has(row.status)) &&
      (!at.blame || row.blame === at.blame) &&
      (!at.tag || row.tags.includes(at.tag)) &&
      (!at.agent || row.agent === at.agent) &&
      (!at.file || row.file === at.file) &&
      (!at.why || row.why === at.why) &&
      matches(row),
  );
  return sorted(found, at.sort);
}

/** The rows of the list that a case was opened from. */
function listed(at = state()) {
  if (at.view !== "stability") return chosen(at);
  return sorted(data.rows.filter((row) => row.planned > 1), at.sort || "mixed");
}

const SORTS = {
  status: (row) => row.rank,
  case: (row) => row.id.toLowerCase(),
  agent: (row) => row.agent.toLowerCase(),
  rate: (row) => row.rate ?? 2,
  mixed: (row) => (row.rate > 0 && row.rate < 1 ? row.rate : 1 + row.rate),
  score: (row) => row.score ?? 101,
  duration: (row) => row.duration_ms,
  cost: (row) => row.usage.cost_usd ?? -1,
  spread: (row) => (row.stability ? row.stability.std_deviation_ms / (row.stability.avg_duration_ms || 1) : -1),
  answers: (row) => row.stability?.output_consistency ?? 2,
};

function sorted(rows, by) {
  const value = SORTS[by.replace(/^-/, "")];
  if (!value) return rows;
  const sign = by.startsWith("-") ? -1 : 1;
  const order = (a, b) => (a < b ? -sign : a > b ? sign : 0);
  return rows.map((row) => [value(row), row]).sort((a, b) => order(a[0], b[0]) || a[1].place - b[1].place).map(([, row]) => row);
}
