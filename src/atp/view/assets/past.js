// What a case came to in earlier runs.

const PAST_SHOWN = 40;

/** The results of a case in all runs, the newest on the right. Empty until they are there. */
function pastPart(row) {
  const box = h("section", { class: "part past" });
  const query = new URLSearchParams({ case: row.id, ...(row.agent && { agent: row.agent }) });
  source.get(`/api/history?${query}`).then(({ results: found }) => {
    if (found.length < 2) return;
    const shownRuns = found.slice(0, PAST_SHOWN).reverse();
    const passed = shownRuns.filter((one) => one.status === "passed").length;
    const squares = shownRuns.map((one) => {
      const label = `${when(one.at)}: ${one.status}${one.runs > 1 ? `, ${one.passed} of ${one.runs}` : ""}${one.commit ? `, ${one.commit.slice(0, 7)}` : ""}`;
      return h("a", { class: `square is-${one.status}`, href: link({ run: one.run, case: row.id, by: one.agent }, {}), title: label, "aria-label": label, "aria-current": one.run === source.run && "true" });
    });
    const at = found.findIndex((one) => one.run === source.run);
    const earlier = at >= 0 ? found[at + 1] : null;
    box.append(
      h("h2", null, "In earlier runs", h("span", { class: "aside" }, `passed in ${passed} of ${plural(shownRuns.length, "run")}`)),
      h("p", { class: "runs" }, squares),
      earlier ? h("p", null, h("a", { href: link({ view: "compare", run: earlier.run, with: source.run, case: row.id, by: row.agent }, {}) }, "Compare with the run before")) : "",
    );
  }, console.error);
  return box;
}
