// The conversation of a trial as a timeline: messages, tool calls, other events, checkpoints.

function talkPart(trial, about) {
  const seen = trial.transcript ?? {};
  const quotes = quotesOf(trial);
  const pictures = about.pictures ?? {};
  const steps = talkSteps(trial);
  if (!steps.length) return h("section", { class: "part" }, h("h2", null, "Conversation"), h("p", { class: "dim" }, about.input === undefined ? "Nothing was said." : "Nothing was said. It was to begin with:"), about.input !== undefined && block(about.input), about.input_data && [h("p", { class: "dim" }, "Input data"), block(about.input_data)]);
  const inherited = steps.filter((step) => step.inherited);
  const own = withData(steps.filter((step) => !step.inherited), about.input_data);
  const turns = seen.turns?.length ?? 0;
  return h(
    "section",
    { class: "part talk" },
    h("h2", null, "Conversation ", h("span", { class: "aside" }, [plural(turns, "turn"), (seen.tool_calls ?? []).length && plural(seen.tool_calls.length, "tool call")].filter(Boolean).join(", "))),
    timeline(trial),
    inherited.length > 0 && h("details", { class: "inherited" }, h("summary", null, `${plural(inherited.length, "message")} from the cases before it`), h("ol", { class: "steps" }, inherited.map((step) => stepItem(step, quotes, pictures)))),
    h("ol", { class: "steps" }, own.map((step) => stepItem(step, quotes, pictures))),
    Object.entries(trial.more ?? {}).map(([name, count]) => h("p", { class: "dim" }, `${number(count)} more of the ${name.replace("_", " ")} are in the journal.`)),
  );
}

/** What the task hands to the agent stands below its first message. */
function withData(steps, data) {
  if (data === undefined) return steps;
  const after = steps.findIndex((step) => step.kind === "message" && step.message.role === "user") + 1;
  return [...steps.slice(0, after), { kind: "data", data }, ...steps.slice(after)];
}

/** Everything in the order in which it happened, as far as that is known. */
function talkSteps(trial) {
  const seen = trial.transcript ?? {};
  const messages = answered(seen);
  const inherited = seen.inherited ?? 0;
  const held = turnStarts(messages, inherited, seen.turns ?? []);
  const steps = [];
  messages.slice(0, held[0]?.from ?? messages.length).forEach((message, place) => steps.push({ kind: "message", message, inherited: place < inherited, given: place >= inherited }));
  held.forEach(({ turn, from, to }) => steps.push(...turnSteps(trial, turn, messages.slice(from, to)).map((step) => ({ ...step, inherited: from < inherited }))));
  const known = new Set(held.map(({ turn }) => turn.turn));
  const last = trial.simulated_user?.turns?.at(-1);
  if (last && !known.has(last.turn)) steps.push({ kind: "note", text: `The simulated user ${last.goal_achieved ? "has what it wanted" : "has nothing more to say"}`, reasoning: last.reasoning });
  const others = [...(seen.events ?? []), ...(seen.tool_calls ?? [])].some((one) => !known.has(one.turn ?? 1));
  if (others) for (const number of [...new Set([...(seen.events ?? []), ...(seen.tool_calls ?? [])].map((one) => one.turn ?? 1))].sort((a, b) => a - b)) if (!known.has(number)) steps.push(...turnSteps(trial, { turn: number }, []));
  return steps;
}

/** The messages without the empty answer that stands for an agent which crashed or was too late. */
function answered({ messages = [], turns = [] }) {
  const last = messages.at(-1);
  const empty = last?.role === "assistant" && !content(last) && !toolCalls(last).length;
  return empty && turns.length < messages.filter((one) => one.role === "user").length ? messages.slice(0, -1) : messages;
}

/** Which messages belong to which turn. A turn begins with the last user message before an answer. */
function turnStarts(messages, inherited, turns) {
  const speaks = (place) => messages[place]?.role === "user" && messages[place + 1]?.role !== "user";
  const own = messages.map((_, place) => place).filter((place) => place >= inherited && speaks(place));
  const all = messages.map((_, place) => place).filter(speaks);
  const pending = messages.at(-1)?.role === "user" && turns.length < own.length ? 1 : 0;
  const wanted = turns.length + pending;
  const starts = (own.length >= wanted ? own : all).slice(wanted ? -wanted : messages.length);
  return starts.map((from, place) => ({ turn: turns[place] ?? { turn: (turns.at(-1)?.turn ?? 0) + 1, pending: true }, from, to: starts[place + 1] ?? messages.length }));
}

function turnSteps(trial, turn, messages) {
  const seen = trial.transcript ?? {};
  const here = (one) => (one.turn ?? 1) === turn.turn;
  const calls = (seen.tool_calls ?? []).filter(here);
  const events = (seen.events ?? []).filter(here);
  const called = events.filter((event) => event.type === "tool_call");
  calls.forEach((call, place) => (call.at_ms = called[place]?.at_ms));
  const waiting = [...calls];
  const other = [...modelSteps(trial, turn.turn, events), ...events.filter((event) => event.type !== "tool_call" && event.type !== "llm_request").map((event) => ({ kind: "event", event, at: event.at_ms ?? 0 }))].sort((a, b) => a.at - b.at);
  const steps = [{ kind: "turn", turn }];
  const asked = (trial.model_calls ?? []).filter((call) => call.role === "simulator" && (call.turn ?? 1) === turn.turn);
  steps.push(...asked.map((call) => ({ kind: "model", call, at: endOf(call), name: "Simulator" })));
  const rest = messages.slice(1);
  const said = (trial.simulated_user?.turns ?? []).find((one) => one.turn === turn.turn);
  if (messages.length) steps.push({ kind: "message", message: messages[0], simulated: Boolean(said), reasoning: said?.reasoning });
  const last = rest.findLastIndex((message) => message.role === "assistant" && !toolCalls(message).length);
  const before = (at) => {
    while (other.length && other[0].at < at) steps.push(other.shift());
  };
  const flush = () => {
    const left = waiting.splice(0).map((call) => ({ kind: "call", call, at: call.at_ms }));
    steps.push(...[...other.splice(0), ...left].sort((a, b) => (a.at ?? Infinity) - (b.at ?? Infinity)));
  };
  rest.forEach((message, place) => {
    if (place === last) flush();
    const wanted = toolCalls(message);
    if (wanted.length) {
      const some = waiting.splice(0, wanted.length);
      before(some[0]?.at_ms);
      if (content(message)) steps.push({ kind: "message", message });
      for (const call of some) {
        before(call.at_ms);
        steps.push({ kind: "call", call, at: call.at_ms });
      }
      if (!some.length) steps.push(...wanted.map((call) => ({ kind: "call", call: asked(call) })));
    } else if (message.role !== "tool" || !calls.length) steps.push({ kind: "message", message, final: place === last });
  });
  flush();
  if (turn.pending) steps.push({ kind: "note", text: "No answer came." });
  for (const point of trial.checkpoints ?? []) if (point.reached_at_turn === turn.turn) steps.push({ kind: "checkpoint", point });
  return steps;
}

function toolCalls(message) {
  return Array.isArray(message.tool_calls) ? message.tool_calls : [];
}

function asked(call) {
  const about = call?.function ?? call ?? {};
  let given = about.arguments;
  try {
    given = typeof given === "string" ? JSON.parse(given) : given;
  } catch {
    // as the model wrote it
  }
  return { name: String(about.name ?? "tool"), arguments: given };
}

function content(message) {
  const said = message.content;
  return Array.isArray(said) ? said.length > 0 : said !== null && said !== undefined && said !== "";
}

function stepItem(step, quotes, pictures) {
  const at = typeof step.at === "number" ? h("time", null, `+${duration(step.at)}`) : null;
  switch (step.kind) {
    case "turn":
      return h("li", { class: "step turn", "data-step": `turn-${step.turn.turn}` }, h("span", null, `Turn ${step.turn.turn}`), step.turn.duration_ms !== undefined && h("span", { class: "dim" }, duration(step.turn.duration_ms)));
    case "message":
      return messageItem(step, quotes, pictures);
    case "call":
      return callItem(step.call, at, quotes);
    case "model":
      return modelItem(step, at, step.name);
    case "event":
      return eventItem(step.event, at, quotes);
    case "data":
      return h("li", { class: "step note" }, h("p", { class: "dim" }, "Input data"), display(step.data, { quotes }));
    case "checkpoint":
      return h("li", { class: "step checkpoint" }, h("p", null, icon("passed"), "Checkpoint ", h("b", null, say(step.point.id, 200)), " reached"));
    default:
      return h("li", { class: "step note" }, h("p", { class: "dim" }, step.text, step.reasoning && [": ", say(step.reasoning, 2000)]));
  }
}

const ROLES = { user: "User", assistant: "Agent", system: "System", developer: "Developer", tool: "Tool" };

function messageItem({ message, given, inherited, simulated, reasoning }, quotes, pictures) {
  const role = typeof message.role === "string" ? message.role : "?";
  const kind = Object.hasOwn(ROLES, role) ? role : "other";
  return h(
    "li",
    { class: `step message is-${kind}` },
    h("p", { class: "who" }, h("b", null, ROLES[kind] ?? say(role, 40)), message.name && h("span", { class: "dim" }, " ", say(message.name, 60)), given && h("span", { class: "label" }, "given"), simulated && h("span", { class: "label" }, "simulated"), inherited && h("span", { class: "label" }, "before")),
    parts(message, quotes, pictures),
    reasoning && h("p", { class: "reasoning dim" }, "Why: ", say(reasoning, 2000)),
  );
}

/** What a message says: text, and what is attached to it. */
function parts(message, quotes, pictures) {
  const told = message.content;
  if (told === "") return h("p", { class: "dim" }, "an empty text");
  if (!Array.isArray(told)) return said(told ?? "", { quotes });
  return told.map((one) => (one && one.type === "text" && typeof one.text === "string" ? said(one.text, { quotes }) : attached(one, pictures)));
}

const PICTURE = /^data:image\/(png|jpeg|gif|webp);base64,[A-Za-z0-9+/=]+$/;

function attached(part, pictures) {
  const address = typeof part?.source === "string" ? part.source : typeof part?.image_url === "string" ? part.image_url : part?.image_url?.url;
  const picture = typeof address === "string" ? [address, pictures[address] ?? ""].find((one) => PICTURE.test(one)) : undefined;
  if (!picture) return h("div", { class: "attached" }, h("span", { class: "label" }, say(part?.type ?? "part", 40)), block(part, { first: 300 }));
  const name = address === picture ? "a picture" : address.replace(/^file:\/\//, "");
  return h("figure", { class: "attached picture" }, h("img", { src: picture, alt: visible(name), loading: "lazy" }), h("figcaption", { class: "dim" }, say(name, 200)));
}

function callItem(call, at, quotes) {
  const failed = call.error !== undefined;
  const short = call.arguments === undefined ? "" : JSON.stringify(call.arguments) ?? "";
  const plain = short.length <= 90 && call.result === undefined && !failed;
  const head = [icon("tool"), h("b", { class: "tool" }, say(call.name, 120)), h("span", { class: "given" }, say(short === "{}" ? "" : short, 140)), failed && h("span", { class: "label is-failed" }, "failed"), call.duration_ms !== undefined && h("span", { class: "dim" }, duration(call.duration_ms)), at];
  if (plain) return h("li", { class: "step call" }, h("p", { class: "head" }, head));
  return h(
    "li",
    { class: `step call ${failed ? "is-bad" : ""}` },
    h(
      "details",
      { open: failed || marksIn(call, quotes) },
      h("summary", { class: "head" }, head),
      h("dl", { class: "io" }, call.arguments !== undefined && [h("dt", null, "called with"), h("dd", null, display(call.arguments, { quotes }))], call.result !== undefined && [h("dt", null, "gave"), h("dd", null, display(call.result, { quotes }))], failed && [h("dt", null, "failed"), h("dd", { class: "bad" }, block(call.error, { quotes }))]),
    ),
  );
}

function marksIn(call, quotes) {
  return [call.arguments, call.result].some((value) => value !== undefined && marks(words(value), quotes).length > 0);
}

const EVENTS = { reasoning: "Thought", error: "Error", progress: "Progress", message: "Message" };

function eventItem(event, at, quotes) {
  const payload = event.payload && typeof event.payload === "object" ? event.payload : { value: event.payload };
  const [text, ...used] = eventWords(event.type, payload);
  const rest = Object.fromEntries(Object.entries(payload).filter(([name]) => !used.includes(name)));
  const bad = event.type === "error";
  return h(
    "li",
    { class: `step event is-${Object.hasOwn(EVENTS, event.type) ? event.type : "other"} ${bad ? "is-bad" : ""}` },
    h("p", { class: "head" }, h("span", { class: "kind" }, EVENTS[event.type] ?? say(event.type, 40)), at),
    text !== "" && block(text, { quotes, first: 600 }),
    Object.keys(rest).length > 0 && h("details", null, h("summary", null, "details"), display(rest, { quotes })),
  );
}

/** An event in words, and the fields that are said by them. */
function eventWords(type, payload) {
  const text = (name) => (payload[name] === undefined || payload[name] === null ? "" : words(payload[name]));
  if (type === "reasoning") return [[text("thought"), text("plan")].filter(Boolean).join("\n"), "thought", "plan"];
  if (type === "error") return [[text("error_type"), text("message")].filter(Boolean).join(": "), "error_type", "message"];
  if (type === "progress") return [[typeof payload.percentage === "number" ? `${payload.percentage}%` : "", text("message")].filter(Boolean).join(" "), "percentage", "message"];
  if (type === "message") return [[text("role"), text("content")].filter(Boolean).join(": "), "role", "content"];
  return ["", ""];
}
