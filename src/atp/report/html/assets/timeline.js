// The time of a trial in lanes: turns, model calls, tool calls, the simulated user, the judge. All of it stands in the
// conversation, too, where a click on a bar leads.

const MOST_SPANS = 400;

function timeline(trial) {
  const spans = timeSpans(trial);
  const total = trial.duration_ms ?? 0;
  const turns = trial.transcript?.turns ?? [];
  if (!spans.some((one) => one.lane === "Agent") || !total || trial.transcript.inherited === trial.transcript.messages?.length) return null;
  const whole = Math.max(total, ...spans.map((one) => one.to));
  const lanes = [...new Set(LANES.filter((lane) => spans.some((one) => one.lane === lane)))];
  const worked = turns.reduce((sum, turn) => sum + (turn.duration_ms ?? 0), 0);
  const waited = (trial.model_calls ?? []).reduce((sum, call) => sum + (call.waited_ms ?? 0), 0);
  const ofRole = (role) => (trial.model_calls ?? []).filter((call) => call.role === role).reduce((sum, call) => sum + (call.duration_ms ?? 0), 0);
  const user = ofRole("simulator");
  const rest = Math.max(0, total - worked - user);
  const note = [`Agent ${duration(worked)}`, waited >= 1 && `models were waited for ${duration(waited)}`, user > 0 && `simulated user ${duration(user)}`, rest > total * 0.02 && `${duration(rest)} checking and the rest`].filter(Boolean).join(", ");
  const bar = (one) => h("span", { class: `span is-${one.kind}`, style: { left: `${(100 * one.from) / whole}%`, width: `${(100 * (one.to - one.from)) / whole}%` }, title: one.title, on: { click: () => goToStep(one.step) } });
  return h(
    "figure",
    { class: "timeline" },
    h(
      "div",
      { class: "lanes", role: "img", "aria-label": `Timeline: ${note}` },
      lanes.map((lane) => h("div", { class: "lane" }, h("span", { class: "lane-name" }, lane), h("span", { class: "lane-track" }, spans.filter((one) => one.lane === lane).slice(0, MOST_SPANS).map(bar)))),
      h("div", { class: "lane axis" }, h("span", { class: "lane-name" }), h("span", { class: "lane-track" }, h("span", null, "0"), h("span", null, duration(whole / 2)), h("span", null, duration(whole)))),
    ),
    h("figcaption", { class: "dim" }, note),
  );
}

const LANES = ["User", "Agent", "Models", "Tools", "Events", "Judge"];

/** What is known to have taken time, in milliseconds after the trial's start. */
function timeSpans(trial) {
  const found = [];
  const calls = trial.model_calls ?? [];
  const events = trial.transcript?.events ?? [];
  const add = (lane, kind, from, took, title, step) => found.push({ lane, kind, from: Math.max(0, from), to: Math.max(0, from) + Math.max(0, took), title: `${title}: ${duration(took)}, at ${duration(Math.max(0, from))}`, step });
  let end = 0;
  for (const turn of trial.transcript?.turns ?? []) {
    const asked = calls.filter((call) => call.role === "simulator" && (call.turn ?? 1) === turn.turn);
    const from = Math.max(end, ...asked.map(endOf)); // when exactly a turn begins is not recorded
    if (turn.duration_ms > 0) add("Agent", "turn", from, turn.duration_ms, `Turn ${turn.turn}`, `turn-${turn.turn}`);
    end = from + (turn.duration_ms ?? 0);
  }
  const owned = { agent: "Models", test: "Models", simulator: "User", judge: "Judge" };
  for (const call of calls) add(owned[call.role ?? "agent"] ?? "Models", call.error ? "bad" : "model", call.at_ms ?? 0, call.duration_ms ?? 0, ASKED_BY[call.role ?? "agent"] ?? "Model call", `turn-${call.turn ?? 1}`);
  const own = calls.some((call) => call.role === undefined || call.role === "agent");
  for (const event of events) {
    const payload = isObject(event.payload) ? event.payload : {};
    const took = typeof payload.duration_ms === "number" ? payload.duration_ms : 0;
    const at = event.at_ms ?? 0;
    const step = `turn-${event.turn ?? 1}`;
    if (event.type === "tool_call") add("Tools", payload.status === "error" || payload.status === "failed" ? "bad" : "tool", at - took, took, visible(String(payload.tool ?? "Tool call")).slice(0, 80), step);
    else if (event.type !== "llm_request") add("Events", event.type === "error" ? "bad" : "event", at, 0, Object.hasOwn(EVENTS, event.type) ? EVENTS[event.type] : "Event", step);
    else if (!own) add("Models", "model", at - took, took, "Model call", step);
  }
  return found;
}

function goToStep(name) {
  document.querySelector(`[data-step="${CSS.escape(name)}"]`)?.scrollIntoView({ block: "start", behavior: matchMedia("(prefers-reduced-motion: reduce)").matches ? "auto" : "smooth" });
}
