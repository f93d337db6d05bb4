// Taking the shown cases along, as JSON or CSV.

async function exportJson() {
  const rows = chosen();
  const results = [];
  for (const row of rows) {
    const { searched: _searched, place: _place, at, rank: _rank, bad: _bad, why: _why, ambiguous: _ambiguous, trials, ...rest } = row;
    const whole = [];
    for (const { at: spot, ...trial } of trials) whole.push({ ...trial, ...(await detail(spot)) });
    results.push(JSON.stringify({ ...rest, ...(at ? await detail(at) : {}), trials: whole }));
  }
  const { verdict: _verdict, ...about } = data.run;
  const head = JSON.stringify(about).slice(0, -1);
  save("json", "application/json", [head, ',"results":[\n', results.join(",\n"), "\n]}\n"]);
}

const CSV = {
  id: (row) => row.id,
  name: (row) => row.name || row.id,
  agent: (row) => row.agent,
  status: (row) => row.status,
  blame: (row) => row.blame,
  error: (row) => row.error,
  runs: (row) => row.trials.length,
  passed: (row) => row.passed,
  pass_rate: (row) => (row.rate === null ? "" : Math.floor(row.rate * 1000 + 1e-9) / 10),
  score: (row) => row.score,
  duration_ms: (row) => row.duration_ms,
  cost_usd: (row) => row.usage.cost_usd,
  tokens: (row) => row.usage.tokens,
  tags: (row) => row.tags.join(" "),
  file: (row) => row.file,
  line: (row) => row.line,
};

function exportCsv() {
  const lines = [Object.keys(CSV).join(","), ...chosen().map((row) => Object.values(CSV).map((value) => csvCell(value(row))).join(","))];
  save("csv", "text/csv", ["\ufeff", lines.join("\r\n"), "\r\n"]);
}

/** A cell that no spreadsheet takes for a formula. */
function csvCell(value) {
  if (typeof value === "number") return String(value);
  const text = visible(String(value ?? ""));
  const safe = /^(?:[\t\r\n]|\s*[=+\-@|%\uff1d\uff0b\uff0d\uff20])/.test(text) ? `'${text}` : text;
  return /[",\r\n]/.test(safe) || safe !== text ? `"${safe.replaceAll('"', '""')}"` : safe;
}

function save(ending, type, parts) {
  const address = URL.createObjectURL(new Blob(parts, { type }));
  const name = `atp-${data.run.metadata.run_id.replace(/[^\w-]+/g, "_").slice(0, 60)}.${ending}`;
  const anchor = h("a", { href: address, download: name });
  document.body.append(anchor);
  anchor.click();
  anchor.remove();
  setTimeout(() => URL.revokeObjectURL(address), 60_000);
  announce(`Saved ${name}`);
}
