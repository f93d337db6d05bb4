// Expected against found, word by word.

const MOST_CELLS = 4_000_000;
const ALIKE = 0.3;

/** Two panes; where the texts are alike, what differs in them is marked. */
function versus(expected, found, labels = ["Expected", "Found"]) {
  const [left, right] = [words(expected), words(found)];
  const parts = compare(left, right);
  return h(
    "div",
    { class: "versus" },
    pane(labels[0], "expected", expected, parts?.left),
    pane(labels[1], "found", found, parts?.right),
  );
}

function pane(label, side, value, parts) {
  const body = value === undefined ? h("div", { class: "text nothing" }, "nothing") : parts ? h("div", { class: `text ${typeof value === "string" ? "" : "is-json"}`, dir: "auto" }, parts.map(part)) : block(value);
  return h("figure", { class: `pane is-${side}` }, h("figcaption", null, label), body);
}

function part({ text, differs, kind }) {
  return differs ? h(kind, null, visible(text)) : visible(text);
}

/** What both texts have in common and what not; nothing if they have too little, or if they are too long. */
function compare(left, right) {
  if (!left || !right || left === right || left.length + right.length > 40_000) return null;
  const [a, b] = [tokens(left), tokens(right)];
  let head = 0;
  while (head < a.length && head < b.length && a[head] === b[head]) head++;
  let tail = 0;
  while (tail < a.length - head && tail < b.length - head && a.at(-1 - tail) === b.at(-1 - tail)) tail++;
  const [n, m] = [a.length - head - tail, b.length - head - tail];
  if (n * m > MOST_CELLS) return null;
  const [keepA, keepB, common] = longestCommon(a.slice(head, head + n), b.slice(head, head + m));
  const same = weight(a.slice(0, head)) + weight(a.slice(a.length - tail)) + common;
  if ((2 * same) / (weight(a) + weight(b)) < ALIKE) return null;
  const runs = (all, keep, kind) => joined(all.map((text, place) => ({ text, kind, differs: place >= head && place < all.length - tail && !keep[place - head] })));
  return { left: runs(a, keepA, "del"), right: runs(b, keepB, "ins") };
}

function tokens(text) {
  return text.match(/\p{N}+(?:[.,]\p{N}+)*|[\p{L}\p{N}_]+|\s+|[^\p{L}\p{N}_\s]/gu) ?? [];
}

/** Letters, not blanks: two texts are not alike because both have spaces. */
function weight(list) {
  return list.reduce((sum, token) => sum + token.trim().length, 0);
}

function longestCommon(a, b) {
  const width = b.length + 1;
  const table = new Uint32Array((a.length + 1) * width);
  for (let i = a.length - 1; i >= 0; i--)
    for (let j = b.length - 1; j >= 0; j--)
      table[i * width + j] = a[i] === b[j] ? table[(i + 1) * width + j + 1] + a[i].trim().length + 1 : Math.max(table[(i + 1) * width + j], table[i * width + j + 1]);
  const [keepA, keepB] = [new Uint8Array(a.length), new Uint8Array(b.length)];
  let common = 0;
  for (let i = 0, j = 0; i < a.length && j < b.length; ) {
    if (a[i] === b[j]) {
      common += a[i].trim().length;
      keepA[i++] = keepB[j++] = 1;
    } else if (table[(i + 1) * width + j] >= table[i * width + j + 1]) i++;
    else j++;
  }
  return [keepA, keepB, common];
}

function joined(parts) {
  const made = [];
  for (const one of parts) {
    if (made.length && made.at(-1).differs === one.differs) made.at(-1).text += one.text;
    else made.push({ ...one });
  }
  return made;
}
