// Requests that ATP sent to models: in the conversation those of the agent and the simulated user, below the checks the judge's.

const ASKED_BY = { agent: "Model call", simulator: "Simulator", judge: "Judge", test: "Model call" };

/**
 * The model calls of the agent in a turn, each with the event that the agent told of it, in order. One that could not be
 * used and was made again has no event; an agent that calls its model itself tells events and no calls.
 */
function modelSteps(trial, turn, events) {
  const calls = (trial.model_calls ?? []).filter((call) => call.role !== "judge" && call.role !== "simulator" && (call.turn ?? 1) === turn);
  const left = new Set(calls);
  const told = events.filter((event) => event.type === "llm_request").map((event) => {
    const newest = calls.findLast((call) => endOf(call) <= (event.at_ms ?? 0) + 2); // times are rounded
    return { kind: "model", event, call: left.delete(newest) ? newest : undefined, at: event.at_ms ?? 0 };
  });
  return [...told, ...[...left].map((call) => ({ kind: "model", call, at: endOf(call) }))].sort((a, b) => a.at - b.at);
}

function endOf(call) {
  return (call.at_ms ?? 0) + (call.duration_ms ?? 0);
}

/** A call in the conversation: what it cost in a line, and what was sent and came when it is opened. */
function modelItem({ event, call }, at, kind = "Model call") {
  const payload = isObject(event?.payload) ? event.payload : {};
  const used = { ...call?.usage, ...payload };
  const known = ["model", "input_tokens", "output_tokens", "cost_usd", "duration_ms"];
  const facts = [
    words(payload.model ?? call?.model ?? ""),
    used.input_tokens !== undefined && `${words(used.input_tokens)} in`,
    used.output_tokens !== undefined && `${words(used.output_tokens)} out`,
    typeof used.cost_usd === "number" && money(used.cost_usd),
    typeof (call?.duration_ms ?? used.duration_ms) === "number" && duration(call?.duration_ms ?? used.duration_ms),
    call?.waited_ms >= 1 && `waited ${duration(call.waited_ms)}`,
  ].filter(Boolean);
  const rest = Object.fromEntries(Object.entries(payload).filter(([name]) => !known.includes(name)));
  const more = Object.keys(rest).length > 0;
  const failed = Boolean(call?.error);
  const head = [
    h("span", { class: "kind" }, kind),
    h("span", { class: "used" }, say(facts.join(" · "), 200)),
    call?.retries?.length > 0 && h("span", { class: "label" }, `tried ${call.retries.length + 1} times`),
    failed && h("span", { class: "label is-failed" }, "failed"),
    at,
  ];
  return h(
    "li",
    { class: `step event model is-llm_request ${failed ? "is-bad" : ""}` },
    call || more ? lazily({ class: "model-call" }, h("summary", { class: "head" }, head), () => [call && callBody(call), more && block(rest)]) : h("p", { class: "head" }, head),
    failed && h("p", { class: "bad" }, say(call.error, 600)),
  );
}

/** What the judge was asked for a trial. */
function judgeCalls(trial) {
  const calls = (trial.model_calls ?? []).filter((call) => call.role === "judge");
  if (!calls.length) return null;
  return h(
    "details",
    { class: "judge-calls" },
    h("summary", null, `What the judge was asked, and said (${plural(calls.length, "call")})`),
    h("ol", { class: "steps" }, calls.map((call) => modelItem({ call }, null, "Judge"))),
  );
}

/** Details whose content is made when they are opened for the first time. */
function lazily(about, summary, make) {
  const box = h("details", about, summary);
  box.addEventListener("toggle", () => box.open && box.childElementCount === 1 && box.append(h("div", { class: "opened" }, make())));
  return box;
}

function callBody(call) {
  const { messages, tools, system, ...settings } = isObject(call.request) && !Array.isArray(call.request) ? call.request : { other: call.request };
  const list = Array.isArray(messages) ? messages : [];
  const text = answerText(call.answer);
  return h(
    "dl",
    { class: "io call-body" },
    call.retries?.length > 0 && [h("dt", null, "tried again"), h("dd", null, call.retries.map((why) => h("p", null, say(why, 600))))],
    h("dt", null, "sent"),
    h(
      "dd",
      null,
      call.request === undefined && h("p", { class: "dim" }, "Left out: the trial had too many long requests."),
      system !== undefined && sentMessage("system", partsText(system)),
      call.repeated > 0 && h("p", { class: "dim" }, `${plural(call.repeated, "message")} as in the call before, and then:`),
      list.map((one) => sentMessage(one?.role, isObject(one) ? partsText(one.content) : one, isObject(one) && one.tool_calls)),
      tools !== undefined && h("details", null, h("summary", null, `${plural(tools?.length ?? 0, "tool")} offered`), display(tools)),
      Object.values(settings).some((one) => one !== undefined) && display(settings.other !== undefined && Object.keys(settings).length === 1 ? settings.other : settings),
    ),
    h("dt", null, "came"),
    h("dd", null, call.error && h("p", { class: "bad" }, say(call.error, 600)), text && display(text), call.answer !== undefined && (text ? lazily({}, h("summary", null, "the whole answer"), () => block(call.answer)) : display(call.answer)), call.answer === undefined && !call.error && h("p", { class: "dim" }, "nothing")),
  );
}

function sentMessage(role, told, uses) {
  return h("div", { class: "sent" }, h("p", { class: "who dim" }, say(role ?? "?", 40)), told !== undefined && told !== null && told !== "" && block(told, { first: 800 }), Array.isArray(uses) && display(uses));
}

/** The text in the parts of a message; the parts themselves if there is anything else in them. */
function partsText(content) {
  if (!Array.isArray(content)) return content;
  return content.every((part) => part?.type === "text" && typeof part.text === "string") ? content.map((part) => part.text).join("\n") : content;
}

/** The text in an answer of either wire format, or in one that pydantic-ai gave. */
function answerText(answer) {
  if (!isObject(answer)) return "";
  const told = answer.choices?.[0]?.message?.content ?? answer.text ?? answer.content;
  const parts = Array.isArray(told) ? told.filter((part) => typeof part?.text === "string").map((part) => part.text).join("\n") : told;
  return typeof parts === "string" ? parts : "";
}
