// Long texts: cut at first, all of it on request, with quotations marked where they stand.

const FIRST = 3000;
const FIRST_LINES = 40;
const STEP = 200_000;

/** A value in words: a text as it is, anything else as JSON. */
function words(value) {
  if (typeof value === "string") return value;
  return value === undefined ? "" : JSON.stringify(value, null, 2);
}

/** A block of text. `quotes` are marked: a list of `{text, name}`. */
function block(value, { quotes = [], about = {}, first = FIRST } = {}) {
  const text = words(value);
  const found = marks(text, quotes);
  const box = h("div", { class: `text ${typeof value === "string" ? "" : "is-json"}`, dir: "auto", tabindex: null, ...about });
  const last = found.reduce((most, mark) => Math.max(most, mark.to), 0);
  let shown = text.length;
  if (text.length > first || lines(text) > FIRST_LINES) shown = Math.min(text.length, Math.max(cutAt(text, first), last < STEP ? last : 0));
  const whole = h("div", { class: "long" }, box);
  const more = h("div", { class: "more" });
  const draw = () => {
    box.replaceChildren(...pieces(text.slice(0, shown), found));
    more.replaceChildren();
    if (shown >= text.length) return;
    box.append("…");
    const rest = text.length - shown;
    const step = Math.min(rest, STEP);
    const all = step === rest;
    const show = () => {
      shown += step;
      draw();
    };
    more.append(h("button", { type: "button", class: "quiet", on: { click: show } }, all ? `Show all (${number(rest)} more characters)` : `Show ${number(step)} of ${number(rest)} more characters`));
  };
  draw();
  if (shown < text.length) whole.append(more);
  return whole;
}

function lines(text) {
  let count = 1;
  for (let place = text.indexOf("\n"); place >= 0 && count <= FIRST_LINES; place = text.indexOf("\n", place + 1)) count++;
  return count;
}

/** Where to cut: after the first lines, or the first letters, and not in the middle of a word if it can be helped. */
function cutAt(text, first) {
  let end = -1;
  for (let line = 0; line < FIRST_LINES; line++) {
    const next = text.indexOf("\n", end + 1);
    if (next < 0 || next > first) break;
    end = next;
    if (line === FIRST_LINES - 1) return end;
  }
  const blank = text.lastIndexOf(" ", first);
  return blank > first * 0.8 ? blank : first;
}

/** Where quotations stand: blanks and line breaks may differ, as they may for the judge. */
function marks(text, quotes) {
  const found = [];
  for (const { text: quote, name } of quotes) {
    for (const form of forms(quote)) {
      const place = new RegExp(form.split(/\s+/).map((word) => word.replace(/[.*+?^${}()|[\]\\]/g, "\\$&")).join("\\s+")).exec(text);
      if (!place) continue;
      found.push({ from: place.index, to: place.index + place[0].length, name });
      break;
    }
  }
  found.sort((a, b) => a.from - b.from || b.to - a.to);
  return found.filter((mark, number) => !number || mark.from >= Math.max(...found.slice(0, number).map((one) => one.to)));
}

function forms(quote) {
  const plain = quote.trim().slice(0, 2000);
  const bare = /^["“'`«„](.+)["”'`»“]$/s.exec(plain)?.[1]?.trim();
  return [plain, bare, plain && JSON.stringify(plain).slice(1, -1)].filter(Boolean);
}

function pieces(text, found) {
  const made = [];
  let place = 0;
  for (const { from, to, name } of found) {
    if (from >= text.length) break;
    made.push(visible(text.slice(place, from)), h("mark", { "data-quote": name }, visible(text.slice(from, to))));
    place = to;
  }
  made.push(visible(text.slice(place)));
  return made;
}

function copyButton(text, label = "Copy") {
  const words = h("span", null, label);
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text);
    } catch {
      // From the disk some browsers give no clipboard; the old way still works.
      const area = h("textarea", { class: "away", readonly: true, "aria-hidden": "true" });
      area.value = text;
      document.body.append(area);
      area.select();
      document.execCommand("copy");
      area.remove();
    }
    words.textContent = "Copied";
    announce("Copied");
    setTimeout(() => (words.textContent = label), 1500);
  };
  return h("button", { type: "button", class: "quiet", on: { click: copy } }, icon("copy"), words);
}
