// What people say of an answer or a check: a thumb, a verdict, a comment. The server keeps it beside the run.

const labelled = { path: "", all: null, drawers: [] };

/** From now on labels are about the trial at this place. */
function looksAt(at) {
  labelled.drawers = [];
  labelled.path = at ? `/api/runs/${encodeURIComponent(source.run)}/cases/${at[0]}/trials/${at[1]}/labels` : "";
  labelled.all = at ? source.get(labelled.path) : null;
  labelled.all?.catch(console.error);
}

/** The labels of the answer as a whole. */
function answerLabels() {
  if (!labelled.all) return null;
  return h("section", { class: "part" }, h("h2", null, "Your judgement ", h("span", { class: "aside" }, "of the answer as a whole")), labelPart(""));
}

/** The controls for a label on a check (`0`, or `0-1` in a group) or on the answer (an empty name). */
function labelPart(name) {
  if (!labelled.all) return null;
  const check = name ? name.split("-").map(Number) : [];
  const box = h("div", { class: "label-part", role: "group", "aria-label": name ? "Your judgement of this check" : "Your judgement of the answer" });
  const { path } = labelled;
  const draw = ({ labels, by }) => {
    const here = labels.filter((one) => String(one.check ?? []) === String(check));
    const own = here.find((one) => one.by === by) ?? {};
    const keep = (changes) => give(path, { check, ...(own.thumb && { thumb: own.thumb }), ...(own.verdict && { verdict: own.verdict }), ...(own.comment && { comment: own.comment }), ...changes });
    const toggle = (kind, value, text, label) =>
      h("button", { type: "button", class: `chip is-${value}`, "aria-pressed": String(own[kind] === value), "aria-label": label, title: label, "data-kind": kind, on: { click: () => keep({ [kind]: own[kind] === value ? null : value }) } }, text);
    const comment = h("input", { type: "text", class: "comment", placeholder: "Comment", "aria-label": "Comment", maxlength: "10000", on: { change: (event) => keep({ comment: event.target.value.trim() || null }) } });
    comment.value = own.comment ?? "";
    const focused = box.contains(document.activeElement) ? [...box.querySelectorAll("button, input")].indexOf(document.activeElement) : -1;
    box.replaceChildren(
      toggle("thumb", "up", icon("up"), "Good"),
      toggle("thumb", "down", icon("down"), "Bad"),
      toggle("verdict", "passed", [icon("passed"), "passed"], "In my judgement: passed"),
      toggle("verdict", "failed", [icon("failed"), "failed"], "In my judgement: failed"),
      comment,
      ...here.filter((one) => one.by !== by).map((one) => h("p", { class: "dim" }, say(one.by, 60), ": ", [one.thumb && (one.thumb === "up" ? "good" : "bad"), one.verdict].filter(Boolean).join(", "), one.comment ? [" ", say(one.comment, 400)] : "")),
    );
    if (focused >= 0) box.querySelectorAll("button, input")[focused]?.focus();
  };
  labelled.drawers.push(draw);
  labelled.all.then(draw, () => box.remove());
  return box;
}

async function give(path, label) {
  try {
    const found = await source.post(path, label);
    if (path !== labelled.path) return;
    labelled.all = Promise.resolve(found);
    for (const draw of labelled.drawers) draw(found);
    announce("Kept");
  } catch (error) {
    announce(`It could not be kept: ${error.message}`);
  }
}
