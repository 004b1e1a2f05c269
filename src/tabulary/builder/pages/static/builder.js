// Makes the pages quicker to use. Every page works without it: a form is sent, a link is followed.

const announcement = document.getElementById("announcement");

/** Say something to whoever listens rather than looks. */
function announce(words) {
  announcement.textContent = "";
  // The change has to be seen as one, even if the words are the same.
  setTimeout(() => { announcement.textContent = words; }, 50);
}

function element(name, attributes, ...content) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...content);
  return made;
}

// --- Lists that can be searched -------------------------------------------------------------------------------------

function searchable(page) {
  for (const field of page.querySelectorAll("input[data-filters]")) {
    field.closest("[hidden]")?.removeAttribute("hidden");
    const entries = [...page.querySelector("#" + field.dataset.filters).querySelectorAll(":scope > [data-words]")];
    const words = entries.map((entry) => entry.dataset.words.toLocaleLowerCase());
    field.addEventListener("input", () => {
      const wanted = field.value.toLocaleLowerCase().split(/\s+/).filter(Boolean);
      let left = 0;
      entries.forEach((entry, i) => {
        entry.hidden = !wanted.every((word) => words[i].includes(word));
        left += !entry.hidden;
      });
      announce(`${left} of ${entries.length} shown`);
    });
    // Enter here would send the form, and nobody who searches means that.
    field.addEventListener("keydown", (event) => { if (event.key === "Enter") event.preventDefault(); });
  }
}

// --- Choosing variables: the table and its accuracy at once -----------------------------------------------------------

class Build {
  constructor(form) {
    this.form = form;
    this.variables = [...form.querySelectorAll(".variable")];
    this.forecast = form.querySelector("#forecast");
    // Variables stand in the order in which they were chosen.
    this.order = { rows: JSON.parse(form.dataset.rows), columns: JSON.parse(form.dataset.columns) };
    form.querySelector(".preview").hidden = true;
    form.querySelector(".swap").hidden = false;
    form.addEventListener("change", (event) => this.changed(event));
    form.addEventListener("click", (event) => this.clicked(event));
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      location.assign(this.address(form.action));
    });
    this.show();
  }

  place(variable) {
    return variable.querySelector(".places input:checked").value;
  }

  label(variable) {
    return variable.querySelector("h3").textContent;
  }

  changed(event) {
    if (!event.target.closest(".variable")) return;
    this.show();
    this.foresee();
  }

  clicked(event) {
    const button = event.target.closest("button[data-act]");
    if (!button) return;
    if (button.dataset.act === "swap") {
      const turned = { rows: "columns", columns: "rows" };
      const before = this.order;
      for (const variable of this.variables) {
        const other = turned[this.place(variable)];
        if (other) variable.querySelector(`.places input[value=${other}]`).checked = true;
      }
      this.order = { rows: before.columns, columns: before.rows };
    } else {
      const variable = this.variables.find((each) => each.dataset.name === button.dataset.name);
      variable.querySelector('.places input[value=""]').checked = true;
      variable.querySelector(".places input:checked").focus();
    }
    this.show();
    this.foresee();
  }

  /** Bring the order up to date, and show what was chosen. */
  show() {
    for (const place of ["rows", "columns"]) {
      const here = this.variables.filter((each) => this.place(each) === place).map((each) => each.dataset.name);
      const known = this.order[place].filter((name) => here.includes(name));
      this.order[place] = [...known, ...here.filter((name) => !known.includes(name))];
      this.chips(place, this.order[place].map((name) => this.variables.find((each) => each.dataset.name === name)));
    }
    this.chips("filter", this.variables.filter((each) => this.place(each) === "filter"));
    for (const variable of this.variables) {
      const levels = variable.querySelectorAll(".levels input");
      const kept = variable.querySelectorAll(".levels input:checked").length;
      variable.querySelector(".chosen").textContent = kept ? `: ${kept} of ${levels.length}` : "";
    }
  }

  chips(place, variables) {
    const shown = variables.map((variable) => {
      const name = this.label(variable);
      const select = variable.querySelector(".only select");
      const words = place === "filter" ? `${name}: ${select.selectedOptions[0].textContent}` : name;
      const off = element("button", { type: "button", "data-act": "drop", "data-name": variable.dataset.name,
        "aria-label": `Leave out ${name}`, title: `Leave out ${name}` }, "×");
      return element("span", { class: "chip" }, words, off);
    });
    const target = this.form.querySelector(`[data-place=${place}] dd`);
    target.replaceChildren(...(shown.length ? shown : [element("span", { class: "soft" }, "none")]));
  }

  /** Return the question as it is asked of the API (`by`) or of a page (`rows` and `columns`). */
  query(ofApi) {
    const asked = new URLSearchParams();
    for (const place of ["rows", "columns"]) {
      for (const name of this.order[place]) asked.append(ofApi ? "by" : place, name);
    }
    for (const variable of this.variables) {
      const place = this.place(variable);
      const name = variable.dataset.name;
      if (place === "filter") asked.append("where", `${name}:${variable.querySelector(".only select").value}`);
      const kept = [...variable.querySelectorAll(".levels input:checked")];
      const all = variable.querySelectorAll(".levels input").length;
      if (this.order.rows.includes(name) || this.order.columns.includes(name)) {
        if (kept.length < all) for (const each of kept) asked.append("keep", each.value);
      }
    }
    if (!ofApi) {
      for (const hidden of this.form.querySelectorAll("input[type=hidden]")) asked.append(hidden.name, hidden.value);
    }
    return asked;
  }

  address(path) {
    const asked = this.query(false).toString();
    return asked ? `${path}?${asked}` : path;
  }

  /** Ask how large and how accurate the table will be; the last question counts. */
  foresee() {
    history.replaceState(null, "", this.address(this.form.dataset.here));
    clearTimeout(this.timer);
    this.forecast.classList.add("busy");
    this.timer = setTimeout(async () => {
      this.asking?.abort();
      const asking = this.asking = new AbortController();
      try {
        const answer = await fetch(`${this.form.dataset.accuracy}?${this.query(true)}`, { signal: asking.signal });
        this.tell(answer.ok, await answer.json());
      } catch (problem) {
        if (problem.name !== "AbortError") this.tell(false, { detail: "The service does not answer." });
      }
    }, 150);
  }

  tell(allowed, found) {
    const words = this.forecast.dataset;
    const lines = [];
    if (allowed) {
      const cells = found.cells.toLocaleString("en") + (found.cells === 1 ? " cell" : " cells");
      const width = found.half_width_95;
      const shown = width?.toLocaleString("en", Number.isInteger(width) ? {} : { minimumFractionDigits: 1, maximumFractionDigits: 1 });
      lines.push(element("p", {}, element("b", { class: "size" }, cells)));
      lines.push(element("p", { class: "accuracy" }, width === null ? words.unknown : words.accuracy.replace("{}", shown)));
      lines.push(element("p", { class: "price" }, found.price ? words.price : words.free));
    } else {
      const detail = found.detail[0].toUpperCase() + found.detail.slice(1);
      lines.push(element("p", { class: "refusal" }, element("b", {}, "This table is not given."), " " + detail));
    }
    this.forecast.replaceChildren(...lines);
    this.forecast.classList.remove("busy");
    announce(lines.map((line) => line.textContent).filter(Boolean).join(", "));
  }
}

// --- A table: changed in place ----------------------------------------------------------------------------------------

const parser = new DOMParser();
let swapping;

/** Let the browser do other things: a large table is read, put in its place and laid out in steps of their own. */
const pause = () => new Promise((go) => { setTimeout(go); });

/** Put the page of an address in the place of this one; the address, the title and the focus go with it. */
async function swap(url, remember) {
  swapping?.abort();
  const asking = swapping = new AbortController();
  const main = document.getElementById("main");
  const focus = document.activeElement?.dataset?.focus;
  main.classList.add("busy");
  try {
    const answer = await fetch(url, { headers: { Accept: "text/html" }, signal: asking.signal });
    const page = parser.parseFromString(await answer.text(), "text/html");
    const fresh = page.getElementById("main");
    await pause();
    if (asking.signal.aborted) return;
    document.title = page.title;
    main.replaceWith(document.adoptNode(fresh));
    enhance(fresh);
    await pause();
    const same = focus && fresh.querySelector(`[data-focus="${CSS.escape(focus)}"]`);
    (same || fresh).focus({ preventScroll: true });
    if (remember) history.pushState(null, "", answer.url);
    // The last one is the most particular: the outcome of a test, if there is one.
    announce([...fresh.querySelectorAll("[data-announce]")].at(-1)?.dataset.announce ?? document.title);
  } catch (problem) {
    if (problem.name !== "AbortError") location.assign(url);
  }
}

function changeable(page) {
  for (const form of page.querySelectorAll("form[data-swap]")) {
    const send = (submitter) => {
      const url = new URL(form.action);
      url.search = new URLSearchParams(new FormData(form, submitter));
      url.hash = "";
      swap(url, true);
    };
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      send(event.submitter);
    });
    if (form.dataset.swap !== "change") continue;
    form.querySelector("[type=submit]").hidden = true;
    form.addEventListener("change", () => send());
  }
}

/** Two cells can be picked in the table itself: one listener, however many cells there are. */
function pickable(page) {
  const region = page.querySelector(".region");
  const button = page.querySelector("button[data-act=pick]");
  if (!region || !button) return;
  button.hidden = false;
  button.addEventListener("click", () => {
    const on = button.getAttribute("aria-pressed") !== "true";
    button.setAttribute("aria-pressed", String(on));
    region.classList.toggle("picking", on);
    if (!on) return;
    announce("Click two cells of the table.");
    region.scrollIntoView({ block: "nearest" });
  });
  const picked = [];
  region.addEventListener("click", (event) => {
    const cell = event.target.closest("td[data-cell]");
    if (!cell || !region.classList.contains("picking")) return;
    picked.push(cell);
    if (picked.length > 2) picked.shift().classList.remove("picked");
    cell.classList.add("picked");
    picked.forEach((each, number) => {
      const levels = new URLSearchParams(each.dataset.cell);
      for (const select of page.querySelectorAll(`select[name=${number ? "second" : "first"}]`)) {
        const level = levels.get(select.dataset.name);
        // Of a total, a variable has no level.
        select.value = level === null ? "" : `${select.dataset.name}:${level}`;
      }
    });
    if (picked.length === 2) page.querySelector("button[value=difference]").focus();
  });
}

function copyable(page) {
  for (const code of page.querySelectorAll("[data-copy]")) {
    const button = element("button", { type: "button", class: "copy" }, "Copy");
    button.addEventListener("click", async () => {
      try {
        await navigator.clipboard.writeText(code.textContent);
        announce("Copied");
        button.textContent = "Copied";
      } catch {
        // Not allowed here: select it, so that one key is enough.
        getSelection().selectAllChildren(code);
        announce("Selected");
      }
    });
    code.after(button);
  }
}

function enhance(page) {
  searchable(page);
  changeable(page);
  pickable(page);
  copyable(page);
  const form = page.querySelector("form.build");
  if (form) new Build(form);
}

document.addEventListener("click", (event) => {
  const link = event.target.closest?.("a[data-swap]");
  if (!link || event.button || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
  event.preventDefault();
  swap(link.href, true);
});
addEventListener("popstate", () => {
  // A jump to a heading of this page is the browser's.
  if (!location.hash) swap(location.href, false);
});

enhance(document);
