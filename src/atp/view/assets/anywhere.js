// Search in all that was said and found, in all runs or in one.

source.views.anywhere = () => {
  const field = h("input", { type: "search", placeholder: "Search all conversations", "aria-label": "Search all conversations", autocomplete: "off" });
  const submit = (event) => {
    event.preventDefault();
    go({ view: "anywhere", q: field.value.trim() });
  };
  const form = h("form", { class: "search-form", role: "search", on: { submit } }, h("label", { class: "search" }, icon("search"), field, h("kbd", { "aria-hidden": "true" }, "/")));
  const about = h("p", { class: "about", role: "status" });
  const list = h("ol", { class: "hits" });
  const element = h("div", { class: "view" }, h("header", { class: "lead" }, h("h1", null, "Search"), form, about), list);
  let asked = null;
  return {
    element,
    search: () => field.focus(),
    async update(at) {
      field.value = at.q;
      if (asked === at.q) return;
      asked = at.q;
      about.textContent = "Searching…";
      const { found, more } = await source.get(`/api/search?q=${encodeURIComponent(at.q)}`);
      if (asked !== at.q) return;
      about.textContent = found.length ? `${more ? "The newest " : ""}${plural(found.length, "trial")}` : "Nothing was found.";
      list.replaceChildren(...found.map((one) => hit(one, at.q)));
    },
  };
};

function hit(one, wanted) {
  const address = link({ run: one.run, case: one.case, by: one.agent, trial: `${one.variation + 1}.${one.trial}` }, {});
  return h("li", null, icon(one.status, one.status), h("div", null, h("a", { href: address }, say(one.case, 100)), h("span", { class: "dim" }, " ", say(one.agent, 40), " · ", say(one.run, 40)), h("p", { class: "hit", dir: "auto" }, marked(one.text, wanted))));
}

function marked(text, wanted) {
  const at = text.toLowerCase().indexOf(wanted.toLowerCase());
  if (at < 0 || !wanted) return visible(text);
  return [visible(text.slice(0, at)), h("mark", null, visible(text.slice(at, at + wanted.length))), visible(text.slice(at + wanted.length))];
}
