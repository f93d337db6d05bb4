// The data of the live view: asked from its server, which sends what a run has by now and whatever comes.

const TOKEN = "atp-token";
const LEAST_PAUSE = 250; // milliseconds between two drawings of a run that grows
const DETAILS_KEPT = 200;

class Fetched {
  views = {};
  keys = [
    ["x", "mark a run (list of runs)"],
    ["c", "compare the runs that are marked"],
  ];
  run = "";
  generation = 0;
  progress = null;
  lost = false;
  kept = new Map();
  #token = "";
  #stream = null;
  #timer = 0;
  #first = null;
  #features = "";
  #hasRun = null;

  /** Take the token out of the address, so that no link, picture or history has it. */
  async begin() {
    this.#token = new URLSearchParams(location.search).get("token") ?? "";
    sessionStorage.setItem(TOKEN, this.#token);
    history.replaceState(null, "", `/${location.hash}`);
    const others = new BroadcastChannel(TOKEN);
    others.onmessage = ({ data: asked }) => asked.wanted && others.postMessage({ token: this.#token });
    if (location.hash.length > 1) return;
    const { opened } = await this.get("/api/runs");
    if (opened) history.replaceState(null, "", link({ run: opened }, {}));
  }

  /** The answer of the server to a request, as JSON. */
  async get(path, about = {}) {
    const answer = await fetch(path, { ...about, headers: { ...about.headers, Authorization: `Bearer ${this.#token}` } });
    const found = parse(await answer.text());
    if (!answer.ok) throw new Error(found.error ?? answer.statusText);
    return found;
  }

  post(path, body) {
    return this.get(path, { method: "POST", body: JSON.stringify(body), headers: { "Content-Type": "application/json" } });
  }

  /** Call `take(kind, data)` for each server-sent event until `signal` ends it; connect again if the connection is lost. */
  async follow(path, signal, take) {
    for (let pause = 250; !signal.aborted; pause = Math.min(4000, pause * 2)) {
      try {
        const answer = await fetch(path(), { signal, headers: { Authorization: `Bearer ${this.#token}` } });
        if (!answer.ok) throw new Error((await answer.json()).error);
        this.#connection(true);
        pause = 125;
        await this.#events(answer.body.pipeThrough(new TextDecoderStream()).getReader(), take);
      } catch (error) {
        if (signal.aborted) return;
        if (!(error instanceof TypeError)) throw error; // a TypeError is a lost connection
      }
      this.#connection(false);
      await new Promise((done) => setTimeout(done, pause));
    }
  }

  async #events(reader, take) {
    let rest = "";
    let worked = performance.now();
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return;
      const parts = (rest + value).split("\n\n");
      rest = parts.pop();
      for (const part of parts) {
        const found = /^event: (\w+)\ndata: /.exec(part);
        if (found) take(found[1], parse(part.slice(found[0].length)));
        if (performance.now() - worked < 30) continue;
        await new Promise((go) => setTimeout(go)); // the reader's keys come first
        worked = performance.now();
      }
    }
  }

  #connection(there) {
    if (this.lost === !there) return;
    this.lost = !there;
    document.documentElement.toggleAttribute("data-lost", this.lost);
    if (this.lost) announce("The connection to atp view is lost");
  }

  view(at) {
    if (!at.run) return this.views[at.view] ? at.view : "runs";
    if (at.view === "compare") return "compare";
    return at.case ? "case" : at.view;
  }

  /** Get the run of an address; nothing to wait for if it is there. */
  show(at) {
    if (this.#hasRun !== Boolean(at.run)) {
      this.#hasRun = Boolean(at.run);
      makeBar();
    }
    if (at.run === this.run || (at.run && at.view === "compare")) return null;
    return this.#open(at.run);
  }

  async #open(run) {
    this.#stream?.abort();
    clearTimeout(this.#timer);
    this.#timer = 0;
    this.run = run;
    this.progress = null;
    this.kept.clear();
    this.#forget();
    data.run = null;
    title = document.title = "ATP";
    if (!run) return makeBar();
    this.#stream = new AbortController();
    const { signal } = this.#stream;
    const first = new Promise((done, failed) => (this.#first = { done, failed }));
    const path = () => `/api/runs/${encodeURIComponent(run)}/events?generation=${this.generation}&from=${data.rows.length}`;
    this.follow(path, signal, (kind, message) => signal.aborted || this.#take(kind, message)).catch((error) => this.#first.failed(error));
    try {
      await first;
    } catch (error) {
      this.run = "";
      throw error;
    }
    this.#draw();
  }

  #forget() {
    data.rows = [];
    this.generation = 0;
    this.#features = "";
    remake();
  }

  #take(kind, message) {
    if (message.generation !== undefined && message.generation !== this.generation) {
      if (this.generation) this.#forget();
      this.generation = message.generation;
    }
    if (kind === "run") {
      data.run = message.run;
      data.run.state = message.state;
      if (!message.read) data.run.verdict = { kind: "running", words: "Reading the journal" };
    } else if (kind === "cases") addRows(message.cases.slice(data.rows.length - message.from));
    else if (kind === "problem") announce(message.error);
    else if (kind === "progress") {
      this.progress = message;
      updateProgress();
    }
    if (kind !== "run") this.#first.done();
    if (!this.#timer && this.#features && kind !== "progress") this.#timer = setTimeout(() => this.#draw(), this.pause ?? LEAST_PAUSE);
  }

  /** Show what has come. A run of very many cases is drawn less often, so that the page stays quick. */
  #draw() {
    this.#timer = 0;
    const began = performance.now();
    digest();
    const features = JSON.stringify([data.several, data.repeated, data.runs, data.scored, data.priced, data.tags, data.agents, data.run.verdict.kind, data.files.length > 1]);
    title = `${data.run.verdict.words} – ${data.run.metadata?.input.join(", ") ?? this.run}`;
    if (features !== this.#features) {
      this.#features = features;
      keepingFocus(() => {
        makeBar();
        makeCases();
        remake();
        if (this.run === state().run && this.view(state()) !== "case") render();
      });
    } else grow();
    this.pause = Math.max(LEAST_PAUSE, 3 * (performance.now() - began));
  }

  async detail([number, place]) {
    const path = `/api/runs/${encodeURIComponent(this.run)}/cases/${number}${place < 0 ? "" : `/trials/${place}`}`;
    return this.once(path);
  }

  /** The answer to a request whose answer stays the same. */
  once(path) {
    if (!this.kept.has(path)) {
      this.kept.set(path, this.get(path));
      if (this.kept.size > DETAILS_KEPT) this.kept.delete(this.kept.keys().next().value);
    }
    return this.kept.get(path);
  }

  tabs() {
    const about = { href: "#", class: "up" };
    if (!state().run) about["aria-current"] = "page";
    return h("a", about, state().run && icon("back"), "Runs");
  }

  progressPart() {
    return progressPart();
  }

  looksAt(at) {
    looksAt(at);
  }

  labelPart(name) {
    return labelPart(name);
  }

  answerLabels() {
    return answerLabels();
  }

  pastPart(row) {
    return pastPart(row);
  }
}

source = new Fetched();
