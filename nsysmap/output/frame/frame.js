// The frame of a page: its tabs, the address that keeps their state, copy buttons, tables as CSV, light and dark.

/** What the address says after its #: settings, or one id. */
function addressOf(hash) {
  const text = hash.replace(/^#/, "");
  return text.includes("=") ? { told: new URLSearchParams(text), id: "" } : { told: new URLSearchParams(), id: safelyDecoded(text) };
}
function safelyDecoded(text) { try { return decodeURIComponent(text); } catch { return text; } }

/** Writes settings into the address: as a new entry of the browser's history, or in place of the last. */
function tell(told, fresh = false) {
  const hash = "#" + String(told);
  try { if (fresh && hash !== location.hash) history.pushState(null, "", hash); else history.replaceState(null, "", hash); } catch { /* some browsers forbid this for local files */ }
}

/** The tabs of a page: `on.opened(key)` when another one opens, `on.visit(told)` when the reader goes back or follows a link; `on.state()` are the other settings of the address. */
function tabsOf(on) {
  const bar = byId("tabs"), links = allOf("a", bar), panels = allOf("#panels > section");
  let open = "";
  let chosen = false;  // whether the reader, or the address, asked for a tab
  document.body.classList.add("tabbed");
  bar.setAttribute("role", "tablist");
  const keyOf = link => link.getAttribute("href").slice(1);
  for (const link of links) {
    link.setAttribute("role", "tab");
    link.setAttribute("aria-controls", keyOf(link));
    const panel = byId(keyOf(link));
    panel.setAttribute("role", "tabpanel");
    panel.setAttribute("aria-labelledby", link.id);
    link.addEventListener("click", event => {
      if (event.ctrlKey || event.metaKey || event.shiftKey) return;  // a window of its own
      event.preventDefault();
      go(keyOf(link), true);
    });
  }
  bar.addEventListener("keydown", event => {
    const at = links.findIndex(link => keyOf(link) === open), to = { ArrowLeft: at - 1, ArrowRight: at + 1, Home: 0, End: links.length - 1 }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    event.stopPropagation();
    const link = links[(to + links.length) % links.length];
    go(keyOf(link), false);
    link.focus({ preventScroll: true });
  });
  function show(key) {
    if (key === open) return;
    open = key;
    for (const link of links) {
      const mine = keyOf(link) === key;
      link.setAttribute("aria-selected", String(mine));
      link.tabIndex = mine ? 0 : -1;
      if (mine && (link.offsetLeft < bar.scrollLeft || link.offsetLeft + link.offsetWidth > bar.scrollLeft + bar.clientWidth)) bar.scrollLeft = link.offsetLeft - 12;
    }
    for (const panel of panels) panel.classList.toggle("shown", panel.id === key);
    if (on.opened) on.opened(key);
  }
  /** Opens a tab because the reader asked for it: the address says so from now on. */
  function go(key, scroll) {
    show(key);
    chosen = true;
    tell(state(), true);
    if (scroll) uncover();
  }
  /** Scrolls so that the tab has most of the window, unless it has already. */
  function uncover() {
    const top = byId("panels").getBoundingClientRect().top - bar.offsetHeight, head = headOf();  // where the bar would stand if it did not stay in sight
    if (top < head || top > window.innerHeight * 0.4) window.scrollBy(0, top - head);
  }
  /** Opens the tab that holds an element; returns the element, or null. */
  function reveal(id) {
    const place = byId(id), panel = place && place.closest("#panels > section");
    if (panel) { show(panel.id); chosen = true; }
    return place;
  }
  /** The settings of the address: the tab and those of the page. */
  function state() {
    const told = on.state ? on.state() : new URLSearchParams();
    if (chosen) told.set("tab", open);
    return told;
  }
  function visit() {
    const { told, id } = addressOf(location.hash);
    if (id) {
      const place = reveal(id);
      if (!place) return;
      if (panels.includes(place)) { tell(state()); uncover(); } else place.scrollIntoView({ block: "start" });
      return;
    }
    const key = told.get("tab");
    if (key && panels.some(panel => panel.id === key)) show(key); else if (!key) { chosen = false; show(keyOf(links[0])); }
    if (on.visit) on.visit(told);
  }
  addEventListener("hashchange", visit);
  if (links.length) show(keyOf(links[0]));
  return {
    show, reveal, uncover, state,
    /** Opens what the address named at first; returns its settings. */
    begin(hash) {
      const { told, id } = addressOf(hash), key = told.get("tab");
      if (key && panels.some(panel => panel.id === key)) { show(key); chosen = true; uncover(); }
      const place = id ? reveal(id) : null;
      return { told, place, isTab: panels.includes(place) };
    },
    get open() { return open; },
    get chosen() { return chosen; },
  };
}

/** How much of the window's top the header covers, wherever the page is scrolled to. */
function headOf() {
  const head = document.querySelector("header");
  return getComputedStyle(head).position === "sticky" ? head.offsetHeight : 0;
}

/** The text of a table's cell in CSV: quoted where it must be, and never a formula for a spreadsheet. */
function csvCell(text) {
  const inert = /^[=@\t\r]/.test(text) || /^\+(?![\d.])/.test(text) || /^-(?!\d)/.test(text) ? "'" + text : text;
  return /[",\n\r]/.test(inert) ? `"${inert.replaceAll('"', '""')}"` : inert;
}
/** Rows of texts as CSV. */
function csvOf(rows) { return rows.map(row => row.map(csvCell).join(",")).join("\r\n") + "\r\n"; }
/** The rows of a table as it is shown: a cell's own value where it has one (data-value), else its text. */
function rowsOf(table) {
  const text = cell => cell.dataset.value ?? cell.textContent.replace(/\s+/g, " ").trim();
  return [...table.rows].filter(row => !row.hidden).map(row => [...row.cells].map(text));
}
/** Offers a text as a file. */
function offered(name, text) {
  const link = element("a", null, document.body), address = URL.createObjectURL(new Blob([text], { type: "text/csv" }));
  link.href = address;
  link.download = name;
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(address), 1000);
}
/** A button that offers a table as CSV; `rows()` are its rows where the page shows only some of them. */
function exportable(place, name, rows) {
  const made = button("CSV", place, () => offered(`${name}.csv`, csvOf(rows())), "export");
  made.title = "this table as a CSV file";
  made.setAttribute("aria-label", `${name} as a CSV file`);
  return made;
}

/** Copies a text; returns whether that worked. */
async function copied(text) {
  try { await navigator.clipboard.writeText(text); return true; } catch { /* not allowed here: as browsers did it before */ }
  const field = element("textarea", null, document.body);
  field.value = text;
  field.select();
  const done = document.execCommand("copy");
  field.remove();
  return done;
}

/** Lets keys scroll what scrolls. */
function scrollable(place) { scrolled = scrolled || new ResizeObserver(resized); scrolled.observe(place); }
let scrolled = null;
function resized(entries) {
  const places = entries.map(entry => entry.target), scroll = places.map(place => place.scrollWidth > place.clientWidth || place.scrollHeight > place.clientHeight);
  for (const [at, place] of places.entries()) {  // all are measured before the first is changed
    if (!scroll[at]) { if (place.hasAttribute("tabindex")) place.removeAttribute("tabindex"); continue; }
    place.tabIndex = 0;
    place.setAttribute("role", "group");
    if (!place.hasAttribute("aria-label")) place.setAttribute("aria-label", "table");
  }
}

/** What every page in the frame does at once. */
function framed(repaint = () => {}) {
  for (const place of allOf(".command")) {
    const made = button("copy", place, async () => {
      made.textContent = await copied(allOf("code", place).map(one => one.textContent).join("\n")) ? "copied" : "select it";
      setTimeout(() => { made.textContent = "copy"; }, 1500);
    }, "copy");
    made.setAttribute("aria-label", `copy: ${fitted(place.querySelector("code").textContent, 60)}`);
  }
  for (const table of /** @type {any[]} */ (allOf("table.rows[data-csv]"))) {
    const around = table.closest("section"), head = table.dataset.head ? byId(table.dataset.head) : around.querySelector(".head") || around.querySelector("h2, h3");
    exportable(head, table.dataset.csv || around.id, () => rowsOf(table));
  }
  allOf(".scroll").forEach(scrollable);
  const tellHeight = (name, height) => {
    const root = document.documentElement, told = height + "px";  // the same again is not told: every element's style depends on it
    if (getComputedStyle(root).getPropertyValue(name).trim() !== told) root.style.setProperty(name, told);
  };
  const heading = () => {
    const bar = byId("tabs"), head = headOf(), tabs = bar ? bar.offsetHeight : 0;
    tellHeight("--head", head);
    if (bar) tellHeight("--tabs", tabs);
  };
  const sizes = new ResizeObserver(heading);
  sizes.observe(document.querySelector("header"));
  if (byId("tabs")) sizes.observe(byId("tabs"));
  heading();
  byId("theme").addEventListener("click", () => {
    document.documentElement.dataset.theme = isDark() ? "light" : "dark";
    repaint();
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", repaint);
  const folded = () => allOf("details:not(.closed-on-paper)"), root = document.documentElement.dataset;
  let theme;
  addEventListener("beforeprint", () => {
    for (const one of /** @type {HTMLDetailsElement[]} */ (folded())) { one.dataset.was = String(one.open); one.open = true; }
    theme = root.theme;
    root.theme = "light";  // the canvases too: the styles of paper are light
    repaint();
  });
  addEventListener("afterprint", () => {
    for (const one of /** @type {HTMLDetailsElement[]} */ (folded())) one.open = one.dataset.was === "true";
    if (theme) root.theme = theme; else delete root.theme;
    repaint();
  });
}
