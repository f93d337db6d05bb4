// Markdown in what was said, as elements. Every text of it becomes a text node: what looks like HTML stays text, a link or
// a picture shows its address and leads nowhere.

const MOST_RENDERED = 20_000;
const MOST_INLINE = 5_000; // letters of a paragraph in which marks are looked for
const DEEPEST_BLOCK = 6;
const MARKS = /(^|\n) {0,3}(#{1,6} |[-*+] |\d{1,3}[.)] |> |```|~~~|\|.+\|)|\*\*\S|`[^`\n]+`|\[[^\]\n]+\]\([^)\n]+\)/;

/** A text that was said: rendered if it is Markdown, folded if it is JSON, with a switch to its source. */
function said(value, options) {
  const source = () => block(value, options);
  if (typeof value !== "string") return isObject(value) ? display(value, options) : source();
  const object = folded(value);
  if (object) return foldable(object, value, options);
  const first = marks(value, options?.quotes ?? []).length === 0; // a quotation is marked in the source
  if (value.length > MOST_RENDERED || !MARKS.test(value)) return source();
  return switched(() => h("div", { class: "rich", dir: "auto" }, blocks(value.replace(/\r\n?/g, "\n").split("\n"), 0)), source, first);
}

const ITEM = /^( {0,3})([-*+]|\d{1,9}[.)])( +|$)/;
const FENCE = /^ {0,3}(`{3,}|~{3,})\s*([^`]*)$/;
const RULE = /^ {0,3}([-*_])( *\1){2,} *$/;
const TABLE_RULE = /^ *\|?( *:?-+:? *\|)+( *:?-+:? *)?$/;

function blocks(lines, depth) {
  const made = [];
  let place = 0;
  while (place < lines.length) {
    const line = lines[place];
    const [element, next] = line.trim() === "" ? [null, place + 1] : blockAt(lines, place, depth);
    if (element) made.push(element);
    place = next;
  }
  return made;
}

/** The block that begins on a line, and the line after it. */
function blockAt(lines, place, depth) {
  const line = lines[place];
  const fence = FENCE.exec(line);
  if (fence) return fenced(lines, place, fence[1]);
  const heading = /^ {0,3}(#{1,6}) +(.*?)( +#+)? *$/.exec(line);
  if (heading) return [h("p", { class: `heading level-${heading[1].length}` }, inline(heading[2], 0)), place + 1];
  if (RULE.test(line)) return [h("hr"), place + 1];
  if (line.includes("|") && TABLE_RULE.test(lines[place + 1] ?? "")) return table(lines, place);
  if (depth < DEEPEST_BLOCK && /^ {0,3}>/.test(line)) return quoted(lines, place, depth);
  if (depth < DEEPEST_BLOCK && ITEM.test(line)) return list(lines, place, depth);
  return paragraph(lines, place, depth);
}

function fenced(lines, place, mark) {
  let end = place + 1;
  while (end < lines.length && !(lines[end].trim().startsWith(mark) && /^[`~]+$/.test(lines[end].trim()))) end++;
  return [h("pre", { class: "text is-json" }, visible(lines.slice(place + 1, end).join("\n"))), end + 1];
}

function quoted(lines, place, depth) {
  let end = place;
  while (end < lines.length && /^ {0,3}>/.test(lines[end])) end++;
  return [h("blockquote", null, blocks(lines.slice(place, end).map((line) => line.replace(/^ {0,3}> ?/, "")), depth + 1)), end];
}

function table(lines, place) {
  let end = place + 2;
  while (end < lines.length && lines[end].includes("|")) end++;
  const cells = (line) => line.trim().replace(/^\|/, "").replace(/\|$/, "").split(/(?<!\\)\|/).map((cell) => inline(cell.trim(), 0));
  const body = lines.slice(place + 2, end).map((line) => h("tr", null, cells(line).map((cell) => h("td", null, cell))));
  return [h("div", { class: "wide-table" }, h("table", { class: "plain" }, h("thead", null, h("tr", null, cells(lines[place]).map((cell) => h("th", { scope: "col" }, cell)))), h("tbody", null, body))), end];
}

function list(lines, place, depth) {
  const numbered = /\d/.test(ITEM.exec(lines[place])[2]);
  const items = [];
  let end = place;
  while (end < lines.length) {
    const found = ITEM.exec(lines[end]);
    if (!found || RULE.test(lines[end]) || /\d/.test(found[2]) !== numbered) break;
    const indent = found[0].length;
    const own = [lines[end].slice(indent)];
    for (end++; end < lines.length; end++) {
      const blank = lines[end].trim() === "";
      const inside = /^\s/.test(lines[end]) && lines[end].search(/\S/) >= Math.min(indent, 2);
      if (blank ? !/^\s+\S/.test(lines[end + 1] ?? "") : !inside && (ITEM.test(lines[end]) || FENCE.test(lines[end]) || /^ {0,3}(#{1,6} |>)/.test(lines[end]) || lines[end - 1].trim() === "")) break;
      own.push(lines[end].replace(new RegExp(`^ {0,${indent}}`), ""));
    }
    items.push(h("li", null, blocks(own, depth + 1)));
    if (lines[end]?.trim() === "" && ITEM.test(lines[end + 1] ?? "")) end++;
  }
  return [h(numbered ? "ol" : "ul", { start: numbered ? parseInt(ITEM.exec(lines[place])[2], 10) : null }, items), end];
}

function paragraph(lines, place, depth) {
  let end = place + 1;
  const ends = (line) => line.trim() === "" || FENCE.test(line) || /^ {0,3}(#{1,6} |>)/.test(line) || RULE.test(line) || (depth < DEEPEST_BLOCK && ITEM.test(line));
  while (end < lines.length && !ends(lines[end])) end++;
  return [h("p", null, inline(lines.slice(place, end).map((line) => line.trim()).join("\n"), 0)), end];
}

// Emphasis needs a blank or a mark outside of it, so that 2*3*4 and snake_case_names stay as they are.
const INLINE = /\\([!-/:-@[-`{-~])|(`+)([^`]|[^`].*?[^`])\2(?!`)|(\*\*|__)(?=\S)(.+?)(?<=\S)\4|(?<![\w*_])([*_])(?=[^\s*_])(.+?)(?<=\S)\6(?![\w*_])|~~(?=\S)(.+?)(?<=\S)~~|(!?)\[([^\]\n]*)\]\(([^()\s]*)(?:\s+"[^"]*")?\)/s;

function inline(text, depth) {
  if (text.length > MOST_INLINE || depth > DEEPEST_BLOCK) return [visible(text)];
  const made = [];
  let rest = text;
  for (let found = INLINE.exec(rest); found; found = INLINE.exec(rest)) {
    made.push(visible(rest.slice(0, found.index)), mark(found, depth));
    rest = rest.slice(found.index + found[0].length);
  }
  return [...made, visible(rest)];
}

function mark([, escaped, , code, , strong, , emphasis, struck, picture, label, address], depth) {
  if (escaped !== undefined) return escaped;
  if (code !== undefined) return h("code", null, visible(code));
  if (strong !== undefined) return h("strong", null, inline(strong, depth + 1));
  if (emphasis !== undefined) return h("em", null, inline(emphasis, depth + 1));
  if (struck !== undefined) return h("s", null, inline(struck, depth + 1));
  return h("span", { class: "address" }, picture ? "picture " : "", inline(label, depth + 1), h("span", { class: "dim" }, ` (${visible(address)})`));
}
