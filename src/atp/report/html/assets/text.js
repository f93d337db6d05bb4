// Long texts: cut at first, all of it on request, with quotations marked where they stand.

const FIRST = 3000;
const FIRST_LINES = 40;
const STEP = 200_000;
const MARK_CONTEXT = 300;

/** A value in words: a text as it is, anything else as JSON. */
function words(value) {
  if (typeof value === "string") return value;
  return value === undefined ? "" : JSON.stringify(value, null, 2);
}

/**
 * A block of text: its beginning, and what stands around the quotations that are marked in it, `{text, name}` each. The
 * rest is shown on request.
 */
function block(value, { quotes = [], about = {}, first = FIRST } = {}) {
  const text = words(value);
  const found = marks(text, quotes);
  const box = h("div", { class: `text ${typeof value === "string" ? "" : "is-json"}`, dir: "auto", tabindex: null, ...about });
  const isLong = text.length > first || lines(text) > FIRST_LINES;
  const ranges = isLong ? shownRanges(text, found, cutAt(text, first)) : [[0, text.length]];
  const whole = h("div", { class: "long" }, box);
  const more = h("div", { class: "more" });
  const draw = () => {
    for (let place = ranges.length - 1; place > 0; place--) if (ranges[place - 1][1] >= ranges[place][0]) ranges[place - 1][1] = Math.max(ranges[place - 1][1], ranges.splice(place, 1)[0][1]);
    box.replaceChildren(...ranges.flatMap(([from, to], place) => [...pieces(text, found, from, to), to < text.length && place < ranges.length - 1 ? gap(ranges[place], ranges[place + 1][0]) : ""]));
    more.replaceChildren();
    const last = ranges.at(-1);
    if (last[1] >= text.length) return;
    box.append("…");
    const rest = text.length - last[1];
    const step = Math.min(rest, STEP);
    more.append(h("button", { type: "button", class: "quiet", on: { click: () => reveal(last, step) } }, step === rest ? `Show all (${number(rest)} more characters)` : `Show ${number(step)} of ${number(rest)} more characters`));
  };
  const gap = (range, next) => h("button", { type: "button", class: "quiet gap", on: { click: () => reveal(range, Math.min(next - range[1], STEP)) } }, `… ${number(next - range[1])} more characters …`);
  const reveal = (range, step) => {
    range[1] += step;
    draw();
  };
  draw();
  if (isLong) whole.append(more);
  return whole;
}

/** From where to where a long text is shown: its beginning, and some lines around each mark. */
function shownRanges(text, found, cut) {
  const ranges = [[0, cut]];
  for (const { from, to } of found) {
    const begin = Math.max(0, from - MARK_CONTEXT);
    if (begin <= ranges.at(-1)[1]) ranges.at(-1)[1] = Math.max(ranges.at(-1)[1], Math.min(text.length, to + MARK_CONTEXT));
    else ranges.push([begin, Math.min(text.length, to + MARK_CONTEXT)]);
  }
  return ranges;
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

function pieces(text, found, begin, end) {
  const made = [];
  let place = begin;
  for (const { from, to, name } of found) {
    if (from < begin || from >= end) continue;
    made.push(visible(text.slice(place, from)), h("mark", { "data-quote": name, tabindex: "-1", title: "Back to the check that quotes it", on: { click: showQuoting } }, visible(text.slice(from, to))));
    place = to;
  }
  made.push(visible(text.slice(place, Math.max(place, end))));
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
