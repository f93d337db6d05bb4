// Small charts, drawn as SVG or as boxes with a width.

/** A bar of shares: `[{name, count, href, label}]`. */
function shares(parts, label) {
  const total = parts.reduce((sum, one) => sum + one.count, 0);
  const shown = parts.filter((one) => one.count);
  return h(
    "div",
    { class: "shares", role: "img", "aria-label": label },
    shown.map((one) => h("span", { class: `share is-${one.name}`, style: { "flex-grow": String(one.count / total) }, title: `${one.label}: ${number(one.count)}` })),
  );
}

const GRID_MOST = 40;
const CELL_MOST = 24;

/** One square a trial, each a link; variations of the prompt are set apart. `current` is the trial that is shown, on the page of a case. */
function runGrid(row, current) {
  const inCell = current === undefined;
  // A cell has two lines of squares. Where there are more, the sum takes the place of the last ones.
  const shown = row.trials.slice(0, !inCell ? GRID_MOST : row.trials.length > CELL_MOST ? CELL_MOST / 2 : CELL_MOST);
  const many = new Set(row.trials.map((trial) => trial.variation)).size > 1;
  const squares = shown.map((trial, place) => {
    const name = `${many ? `variation ${trial.variation + 1}, ` : ""}run ${trial.run}: ${trial.status}, ${duration(trial.duration_ms)}`;
    const first = place && trial.variation !== shown[place - 1].variation ? " apart" : "";
    return h("a", { class: `square is-${trial.status}${first}`, href: caseLink(row, trial), title: name, "aria-label": name, "aria-current": trial === current && "true" });
  });
  const more = row.trials.length - shown.length;
  const sum = more > 0 && h("span", { class: inCell ? "dim sum" : "dim" }, inCell ? `… ${number(row.passed)} of ${number(row.planned)} passed` : `+${more}`);
  return h("span", { class: "runs" }, squares, sum);
}

/** A pass rate as a bar with its number. */
function rateBar(row) {
  const share = row.rate ?? 0;
  const kind = row.stability?.classification ?? (row.planned > row.trials.length ? "cut_short" : share === 1 ? "stable" : "highly_unstable");
  return h(
    "span",
    { class: "rate", title: `${row.passed} of ${row.planned} passed` },
    h("span", { class: "track", "aria-hidden": "true" }, h("span", { class: `level is-${kind}`, style: { width: `${share * 100}%` } })),
    h("span", { class: "figure" }, percent(row.passed, row.planned)),
  );
}

/** A logarithmic scale for durations, from 0 to 1: most trials are short, and one that hangs must not hide that. */
function timeScale(values) {
  const known = values.filter((value) => value > 0);
  const low = known.reduce((least, value) => Math.min(least, value), Infinity);
  const high = known.reduce((most, value) => Math.max(most, value), 0);
  if (!known.length) return { low: 0, high: 1, share: () => 0, value: () => 0 };
  const width = Math.log(high / low) || 1;
  return { low, high, share: (ms) => Math.max(0, Math.log(Math.max(ms, low) / low) / width), value: (share) => low * Math.exp(share * width) };
}

/** The durations of a case's trials on one scale: the range, each trial, and the mean. */
function spread(row, scale) {
  const found = row.stability;
  const width = 160;
  const x = (ms) => 4 + (width - 8) * Math.min(1, scale.share(ms));
  const label = `${duration(found.min_duration_ms)} to ${duration(found.max_duration_ms)}, ${duration(found.avg_duration_ms)} on average, deviation ${duration(found.std_deviation_ms)}`;
  return svg(
    "svg",
    { class: "spread", viewBox: `0 0 ${width} 20`, role: "img", "aria-label": label },
    svg("title", null, label),
    svg("line", { x1: 4, x2: width - 4, y1: 10, y2: 10, class: "axis" }),
    svg("line", { x1: x(found.min_duration_ms), x2: x(found.max_duration_ms), y1: 10, y2: 10, class: "range" }),
    row.trials.slice(0, 200).map((trial) => svg("circle", { cx: x(trial.duration_ms), cy: 10, r: 2.8, class: `dot is-${trial.status}` })),
    svg("line", { x1: x(found.avg_duration_ms), x2: x(found.avg_duration_ms), y1: 3, y2: 17, class: "mean" }),
  );
}

/** A share and its interval, on a line from 0 to 1. */
function likely(share, [low, high], label) {
  const width = 160;
  const x = (value) => 4 + (width - 8) * value;
  return svg(
    "svg",
    { class: "spread", viewBox: `0 0 ${width} 20`, role: "img", "aria-label": label },
    svg("title", null, label),
    svg("line", { x1: 4, x2: width - 4, y1: 10, y2: 10, class: "axis" }),
    svg("line", { x1: x(low), x2: x(high), y1: 10, y2: 10, class: "range" }),
    svg("line", { x1: x(share), x2: x(share), y1: 3, y2: 17, class: "mean" }),
  );
}

/** How many trials took how long. */
function histogram(values, scale) {
  const [width, height] = [520, 110];
  const bins = Math.min(40, Math.max(8, Math.ceil(2 * Math.sqrt(values.length))));
  const counts = new Array(bins).fill(0);
  for (const value of values) counts[Math.min(bins - 1, Math.floor(scale.share(value) * bins))]++;
  const most = Math.max(...counts);
  const step = width / bins;
  const bars = counts.map((count, place) => {
    const tall = count ? Math.max(2, ((height - 24) * count) / most) : 0;
    const label = `${duration(scale.value(place / bins))} to ${duration(scale.value((place + 1) / bins))}: ${plural(count, "trial")}`;
    return svg("rect", { x: place * step + 1, y: height - 20 - tall, width: step - 2, height: tall, rx: 1.5 }, svg("title", null, label));
  });
  const [middle, late] = quantiles(values, [0.5, 0.95]);
  const label = `Durations of ${plural(values.length, "trial")}: half took at most ${duration(middle)}, 95% at most ${duration(late)}`;
  const at = scale.share(middle) * width;
  return svg(
    "svg",
    { class: "histogram", viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label },
    bars,
    svg("line", { x1: 0, x2: width, y1: height - 19.5, y2: height - 19.5, class: "axis" }),
    svg("text", { x: 0, y: height - 5 }, duration(scale.low)),
    svg("text", { x: width, y: height - 5, "text-anchor": "end" }, duration(scale.high)),
    svg("line", { x1: at, x2: at, y1: 4, y2: height - 20, class: "mean" }),
  );
}

function quantiles(values, wanted) {
  const order = [...values].sort((a, b) => a - b);
  return wanted.map((share) => order[Math.min(order.length - 1, Math.max(0, Math.ceil(share * order.length) - 1))] ?? 0);
}
