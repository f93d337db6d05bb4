// JSON with its inner objects folded, and texts that may be JSON or Markdown with a switch to their source.

const MOST_NODES = 14; // an object with no more values than this is not folded
const MOST_CHILDREN = 100;
const LONGEST_LEAF = 200;
const MOST_PARSED = 200_000;
const FIRST_OF_QUOTED = 600; // what stands around a quotation is shown, too

/** A value that was given or found: a text as it is said, anything else as JSON, folded where it is long. */
function display(value, options = {}) {
  if (typeof value === "string") return said(value, options);
  if (!isObject(value) || isSmall(value)) return block(value, options);
  return foldable(value, value, options);
}

/** An object as a tree, or its source: a quotation is marked in the source, because it may be more than one value. */
function foldable(object, value, options = {}) {
  const quoted = marks(words(value), options.quotes ?? []).length > 0;
  return switched(() => h("div", { class: "tree" }, tree(object, true)), () => block(value, quoted ? { ...options, first: FIRST_OF_QUOTED } : options), !quoted);
}

/** One of two views, with a button that switches between them. */
function switched(rendered, source, first) {
  const box = h("div", { class: "said-text" });
  const show = (isRendered) => {
    const other = h("button", { type: "button", class: "quiet switch", "aria-pressed": String(!isRendered), on: { click: () => toggle(!isRendered) } }, "Source");
    box.replaceChildren(isRendered ? rendered() : source(), other);
  };
  const toggle = (isRendered) => {
    show(isRendered);
    box.lastElementChild.focus();
  };
  show(first);
  return box;
}

/** The object in a text that is JSON and too long to be read at a glance; else nothing. */
function folded(text) {
  if (text.length > MOST_PARSED || !/^\s*[[{]/.test(text) || !/[\]}]\s*$/.test(text)) return null;
  try {
    const value = parse(text);
    return isObject(value) && !isSmall(value) ? value : null;
  } catch {
    return null;
  }
}

function isObject(value) {
  return typeof value === "object" && value !== null && !JSON.isRawJSON?.(value);
}

/** Whether a value has few values in it, and they are short. */
function isSmall(value) {
  let left = MOST_NODES;
  const count = (one) => {
    left -= typeof one === "string" ? 1 + Math.floor(one.length / 80) : 1;
    if (left >= 0 && isObject(one)) for (const child of Object.values(one)) if (left >= 0) count(child);
  };
  count(value);
  return left >= 0;
}

function tree(value, open) {
  if (!isObject(value)) return leaf(value);
  const list = Array.isArray(value);
  const names = Object.keys(value);
  if (!names.length) return h("span", null, list ? "[]" : "{}");
  const body = h("ul");
  const fillBody = (from) => {
    for (const name of names.slice(from, from + MOST_CHILDREN)) body.append(h("li", null, !list && [h("span", { class: "key" }, visible(name.slice(0, LONGEST_LEAF))), ": "], tree(value[name], isSmall(value[name]))));
    const rest = names.length - from - MOST_CHILDREN;
    if (rest <= 0) return;
    const more = h("li", null, h("button", { type: "button", class: "quiet", on: { click: () => (more.remove(), fillBody(from + MOST_CHILDREN)) } }, `Show ${number(Math.min(rest, MOST_CHILDREN))} of ${number(rest)} more`));
    body.append(more);
  };
  const begin = () => body.firstChild || fillBody(0);
  if (open) begin();
  return h("details", { open, on: { toggle: begin } }, h("summary", null, h("span", { class: "dim" }, list ? `[ ${plural(names.length, "item")} ]` : `{ ${glance(names)} }`)), body);
}

/** The first names of an object, as far as they fit on a line. */
function glance(names) {
  const text = visible(names.slice(0, 12).join(", ")).replace(/\s+/g, " ");
  return text.length > 60 || names.length > 12 ? `${text.slice(0, 60)}…` : text;
}

function leaf(value) {
  if (typeof value === "string" && (value.length > LONGEST_LEAF || value.includes("\n"))) return block(value, { first: 600 });
  return h("span", { class: `leaf is-${value === null ? "null" : typeof value}` }, visible(JSON.stringify(value) ?? ""));
}
