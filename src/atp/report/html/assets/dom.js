// Making elements. Data becomes text and nothing else: nowhere in this script is text read as markup.

const SVG = "http://www.w3.org/2000/svg";

/** An element with attributes, listeners (`on`), styles (`style`) and children: nodes, or texts of our own. */
function h(tag, about, ...children) {
  return fill(document.createElement(tag), about, children);
}

function svg(tag, about, ...children) {
  return fill(document.createElementNS(SVG, tag), about, children);
}

function fill(element, about, children) {
  for (const [name, value] of Object.entries(about ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name === "on") for (const [event, listener] of Object.entries(value)) element.addEventListener(event, listener);
    else if (name === "style") for (const [key, one] of Object.entries(value)) element.style.setProperty(key, one);
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

function icon(name, label) {
  const use = svg("use", { href: `#i-${name}` });
  return svg("svg", { class: `icon is-${name}`, role: label ? "img" : null, "aria-label": label, "aria-hidden": !label && "true" }, use);
}

// What steers a terminal, turns text around or can't be seen is shown by its name.
const UNSEEN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff9-\ufffb]|[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]|\udb40[\udc00-\udfff]/g;

function visible(text) {
  return text.replace(/\r\n/g, "\n").replace(UNSEEN, (found) => {
    const code = found.codePointAt(0);
    if (code < 0x20) return String.fromCharCode(0x2400 + code);
    if (code === 0x7f) return "\u2421";
    // These choose how an emoji or a letter is drawn and join the parts of one; alone they do no harm.
    if (code === 0xfe0f || code === 0xfe0e || code === 0x200d || code === 0x200c) return found;
    return `\u27e8${code.toString(16).toUpperCase().padStart(4, "0")}\u27e9`;
  });
}

/** Data in a line of ours: kept apart from the direction of the text around it, and cut. */
function say(text, longest = 400, about = {}) {
  const whole = String(text ?? "");
  const cut = whole.length > longest ? `${whole.slice(0, longest - 1)}…` : whole;
  return h("bdi", about, visible(cut).replace(/\s+/g, " "));
}

const NUMBER = new Intl.NumberFormat("en-GB");

function number(value) {
  return NUMBER.format(value);
}

function plural(count, one, many = `${one}s`) {
  return `${number(count)} ${count === 1 ? one : many}`;
}

function duration(ms) {
  if (ms === null || ms === undefined) return "";
  if (ms < 1) return "< 1 ms";
  if (ms < 999.5) return `${Math.round(ms)} ms`;
  if (ms < 59950) return `${(ms / 1000).toFixed(1)} s`;
  const seconds = Math.round(ms / 1000);
  const [hours, minutes] = [Math.floor(seconds / 3600), Math.floor((seconds % 3600) / 60)];
  const rest = String(seconds % 60).padStart(2, "0");
  return hours ? `${hours} h ${String(minutes).padStart(2, "0")} min` : `${minutes} min ${rest} s`;
}

function money(usd) {
  if (usd === 0) return "$0";
  return usd < 0.01 ? `$${usd.toPrecision(2)}` : `$${usd.toFixed(usd < 1 ? 3 : 2)}`;
}

function percent(part, whole) {
  if (!whole) return "–";
  const exact = (100 * part) / whole;
  const shown = Math.round(exact * 10) / 10;
  return `${shown > exact && Number.isInteger(shown) ? shown - 0.1 : shown}%`;
}

function bytes(size) {
  if (size < 1000) return `${size} B`;
  return size < 1e6 ? `${(size / 1e3).toFixed(1)} kB` : `${(size / 1e6).toFixed(1)} MB`;
}

/** Tell somebody who can't see the page change. */
function announce(text) {
  document.getElementById("said").textContent = text;
}
