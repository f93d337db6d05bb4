// What is known of a trial besides what was said: score, usage, artifacts, retries, warnings, logs, how to run it again.

function factsPart(row, trial, about) {
  return h("aside", { class: "facts", "aria-label": "Facts" }, [againPart(about), scorePart(trial), usagePart(trial), checkpointsPart(trial), userPart(trial, about), artifactsPart(trial), troublePart(trial), factList(row, trial)].filter(Boolean));
}

function againPart(about) {
  if (!about.command) return null;
  return h("section", { class: "again" }, h("h3", null, "Run it again"), h("pre", { class: "command", tabindex: "0" }, visible(about.command)), copyButton(about.command));
}

function scorePart(trial) {
  const parts = Object.entries(trial.dimensions ?? {});
  const left = Object.entries(trial.left_out ?? {});
  if (trial.score === undefined && !parts.length) return null;
  const bar = ([name, value]) => h("li", null, h("span", null, say(name, 40)), h("span", { class: "track", "aria-hidden": "true" }, h("span", { class: "level", style: { width: `${Math.max(0, Math.min(1, value)) * 100}%` } })), h("span", { class: "figure" }, (value * 100).toFixed(0)));
  return h(
    "section",
    null,
    h("h3", null, "Score"),
    trial.score !== undefined && h("p", { class: "big" }, trial.score.toFixed(1), h("span", { class: "dim" }, " of 100")),
    h("ul", { class: "dimensions" }, parts.map(bar), left.map(([name, why]) => h("li", { class: "left-out" }, h("span", null, say(name, 40)), h("span", { class: "dim" }, "left out: ", say(why, 160))))),
  );
}

const USAGE = { cost_usd: "cost", total_tokens: "tokens", input_tokens: "tokens in", output_tokens: "tokens out", cache_creation_tokens: "put in cache", cache_read_tokens: "read from cache", llm_calls: "model calls", tool_calls: "tool calls", steps: "steps", wall_time_seconds: "its own clock" };

function usagePart(trial) {
  const agent = trial.transcript?.usage;
  const roles = trial.role_usage;
  const list = (usage) => Object.entries(USAGE).filter(([name]) => typeof usage?.[name] === "number").map(([name, label]) => [h("dt", null, label), h("dd", null, name === "cost_usd" ? money(usage[name]) : name === "wall_time_seconds" ? duration(usage[name] * 1000) : number(usage[name]))]);
  const [own, theirs] = [list(agent), list(roles)];
  if (!own.length && !theirs.length) return null;
  return h("section", null, h("h3", null, "Usage"), own.length > 0 && h("dl", { class: "pairs tight" }, own), theirs.length > 0 && [h("h4", null, "For judging and simulating"), h("dl", { class: "pairs tight" }, theirs)]);
}

function checkpointsPart(trial) {
  if (!trial.checkpoints?.length) return null;
  const state = (point) => (point.reached_at_turn ? `turn ${point.reached_at_turn}` : point.required === false ? "optional, not reached" : "not reached");
  const item = (point) =>
    h(
      "li",
      null,
      icon(point.reached_at_turn ? "passed" : point.required === false ? "skipped" : "failed", point.reached_at_turn ? "reached" : "not reached"),
      h("span", { class: "point" }, say(point.id, 120), " ", h("span", { class: "dim" }, state(point)), point.description && h("span", { class: "wanted" }, say(point.description, 400)), wantedPart(point)),
    );
  return h("section", null, h("h3", null, "Checkpoints"), h("ul", { class: "points" }, trial.checkpoints.map(item)));
}

/** What has to hold for a checkpoint, and what must come before it. */
function wantedPart(point) {
  const { type, ...given } = isObject(point.assertion) ? point.assertion : {};
  if (type === undefined && !point.after?.length) return null;
  return h("span", { class: "wanted" }, type !== undefined && [h("code", null, say(type, 80)), Object.keys(given).length > 0 && [" ", h("code", null, say(assertionWords(given), 400))]], point.after?.length > 0 && ["; after ", say(point.after.join(", "), 400)]);
}

/** The keys of an assertion on a line; a single `value` needs no name. */
function assertionWords(given) {
  const names = Object.keys(given);
  if (names.length === 1 && names[0] === "value") return JSON.stringify(given.value);
  return names.map((name) => `${name}: ${JSON.stringify(given[name])}`).join(", ");
}

/** Who the agent talked to: the simulated user of a dialogue, and what the case itself says of its user. */
function userPart(trial, about) {
  const { persona, goal } = trial.simulated_user ?? {};
  const facts = [["Persona", persona], ["Goal", goal], ["User", about.user], ["Team", about.team]].filter(([, value]) => value);
  if (!facts.length && !about.metadata) return null;
  return h(
    "section",
    { class: "who-part" },
    h("h3", null, trial.simulated_user ? "Simulated user" : "Run as"),
    facts.length > 0 && h("dl", { class: "pairs tight" }, facts.map(([name, value]) => [h("dt", null, name), h("dd", null, say(value, 2000))])),
    about.metadata && h("details", null, h("summary", null, "Metadata"), display(about.metadata)),
  );
}

/** What the agent handed over, and the files that it left in its workspace. One that is both stands there once. */
function artifactsPart(trial) {
  const files = trial.files ?? [];
  const same = (made, file) => made.name === file.name && (!made.sha256 || !file.sha256 || made.sha256 === file.sha256);
  const isShown = (file) => file.text !== undefined || file.picture !== undefined;
  const handed = (trial.transcript?.artifacts ?? []).filter((made) => !files.some((file) => isShown(file) && same(made, file)));
  const left = files.filter((file) => !handed.some((made) => same(made, file)));
  const quotes = quotesOf(trial);
  return [madeList("Artifacts", handed, quotes), madeList("Files", left, quotes)];
}

function madeList(title, made, quotes) {
  if (!made.length) return null;
  return h("section", null, h("h3", null, title), h("ul", { class: "artifacts" }, made.map((one) => madeItem(one, quotes))));
}

function madeItem(made, quotes) {
  const body = made.text ?? made.data;
  const size = made.size_bytes ?? made.size;
  const about = [made.content_type && say(made.content_type, 60), typeof size === "number" && bytes(size), made.kind === "reference" && "only named", made.binary && "not text", made.kept === false && "content not kept", made.kept && body === undefined && !made.picture && "content in the run's folder"].filter(Boolean);
  const head = [h("b", null, say(made.name, 160)), h("span", { class: "dim" }, about.map((one, place) => [place ? ", " : " ", one]))];
  const hash = made.sha256 && h("p", { class: "dim hash" }, "sha256 ", say(made.sha256, 64));
  if (PICTURE.test(made.picture ?? "")) return h("li", null, h("figure", { class: "picture" }, h("img", { src: made.picture, alt: visible(made.name), loading: "lazy" }), h("figcaption", null, head, hash)));
  if (body === undefined) return h("li", null, h("p", null, head), hash);
  return h("li", null, h("details", { open: marks(words(body), quotes).length > 0 }, h("summary", null, head), display(body, { quotes, first: 1500 }), hash));
}

function troublePart(trial) {
  const warnings = trial.warnings ?? [];
  const retries = trial.retries ?? [];
  return [
    warnings.length > 0 && h("section", { class: "warnings" }, h("h3", null, "Warnings"), h("ul", null, warnings.map((text) => h("li", null, say(text, 600))))),
    retries.length > 0 && h("section", null, h("h3", null, `Tried ${trial.attempt} times`), h("ol", null, retries.map((text) => h("li", null, say(text, 600))))),
  ];
}

function factList(row, trial) {
  const began = trial.started_at ? when(new Date(trial.started_at * 1000).toISOString()) : null;
  const facts = [
    ["File", row.file ? `${row.file}${row.line ? `:${row.line}` : ""}` : null],
    ["Agent", row.agent],
    ["Began", began],
    ["Took", trial.duration_ms === undefined ? null : duration(trial.duration_ms)],
    ["Prompt", trial.origin],
    ["Models", modelNames(trial)],
    ["Commit", data.run?.made_with?.commit],
    ["Workspace", trial.workspace],
    ["Key", trial.key],
  ];
  return h("section", null, h("h3", null, "Trial"), h("dl", { class: "pairs tight" }, facts.filter(([, value]) => value).map(([name, value]) => [h("dt", null, name), h("dd", { class: name === "Key" ? "hash" : null }, say(value, 600))])));
}

/** The models that answered in the trial, as far as they are known, with who asked them. */
function modelNames(trial) {
  const names = new Map();
  const add = (name, who) => name && names.set(String(name), (names.get(String(name)) ?? new Set()).add(who));
  for (const call of trial.model_calls ?? []) add(call.model, call.role ?? "agent");
  for (const event of trial.transcript?.events ?? []) if (event.type === "llm_request") add(event.payload?.model, "agent");
  return [...names].map(([name, asked]) => `${name} (${[...asked].join(", ")})`).join(", ");
}

function logsPart(trial) {
  const logs = trial.transcript?.logs ?? [];
  if (!logs.length) return null;
  return h("section", { class: "part" }, h("details", { class: "logs" }, h("summary", null, h("h2", null, "Log ", h("span", { class: "aside" }, plural(logs.length, "line")))), block(logs.join("\n"), { quotes: quotesOf(trial), about: { class: "text is-json" } })));
}
