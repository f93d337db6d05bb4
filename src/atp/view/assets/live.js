// A run while it happens: how far it is, what it costs, what is running.

const SHOWN_RUNNING = 8;
const progressView = { element: null };

function progressPart() {
  progressView.bar = h("div", { class: "level" });
  progressView.words = h("p", { class: "words" });
  progressView.running = h("ul", { class: "now", "aria-label": "Running now" });
  progressView.track = h("div", { class: "track", role: "progressbar", "aria-label": "Trials that have ended", "aria-valuemin": "0" }, progressView.bar);
  progressView.element = h("section", { class: "progress", id: "progress" }, progressView.track, progressView.words, progressView.running);
  updateProgress();
  return progressView.element;
}

/** Show the progress that came last. The part is hidden when the run is over. */
function updateProgress() {
  const { progress } = source;
  if (!progressView.element || !data.run) return;
  progressView.element.hidden = !progress;
  if (!progress) return;
  const running = data.run.state === "running";
  progressView.element.hidden = !running && progress.read;
  progressView.track.hidden = progress.read && progress.planned_trials === progress.planned_cases; // the shares above say the same
  const [done, planned] = [progress.trials, Math.max(progress.planned_trials, progress.trials)];
  progressView.bar.style.setProperty("width", `${planned ? (100 * done) / planned : 0}%`);
  progressView.track.setAttribute("aria-valuemax", String(planned));
  progressView.track.setAttribute("aria-valuenow", String(done));
  const parts = [
    progress.read ? "" : "Reading the journal",
    planned ? `${number(done)} of ${plural(planned, "trial")}` : plural(done, "trial"),
    progress.cost_usd === null ? "" : money(progress.cost_usd),
    progress.read && progress.elapsed_ms !== null ? duration(progress.elapsed_ms) : "",
    progress.left_ms === null || !progress.read ? "" : `about ${duration(progress.left_ms)} left`,
  ];
  progressView.words.textContent = parts.filter(Boolean).join(" · ");
  const now = Date.now() / 1000;
  const shown = progress.running.slice(0, SHOWN_RUNNING);
  const more = progress.running.length - shown.length;
  progressView.running.replaceChildren(
    ...shown.map((one) => h("li", null, icon("running"), say(one.case, 60), data.several && h("span", { class: "dim" }, " ", say(one.agent, 30)), h("span", { class: "dim" }, `${one.run > 1 ? ` run ${one.run}` : ""} ${duration(Math.max(0, 1000 * (now - one.since)))}`))),
    ...(more > 0 ? [h("li", { class: "dim" }, `and ${number(more)} more`)] : []),
  );
}

/** Make parts of the page anew, and give the focus to what stands now where it was. */
function keepingFocus(act) {
  const focused = document.activeElement;
  const [tag, id, address, name] = [focused.localName, focused.id, focused.getAttribute("href"), focused.textContent];
  act();
  if (focused.isConnected || focused === document.body) return;
  const alike = [...document.querySelectorAll(tag)].find((one) => (id ? one.id === id : one.getAttribute("href") === address && (address || one.textContent === name)));
  alike?.focus({ preventScroll: true });
}

let told = 0;

/** Draw what a run has by now, without taking the focus, what was typed, or the place from the reader. */
function grow() {
  if (source.run !== state().run) return;
  const view = source.view(state());
  document.title = view === "case" ? document.title : title;
  if (view === "" && results) {
    keepingFocus(() => {
      for (const one of results) if (one !== casesView.element) one.remove();
      results = [...summaryView(), casesView.element];
      if (page.contains(casesView.element)) casesView.element.before(...results.slice(0, -1));
      updateCases(true);
    });
  } else if (view !== "case" && !source.views[view]) {
    remake();
    render();
  }
  tell();
}

/** Say new failures to somebody who can't see them come. */
function tell() {
  const bad = data.rows.filter((row) => row.bad).length;
  if (data.run.state === "running" && bad > told) announce(`${plural(bad, "case")} did not pass so far`);
  told = bad;
}
