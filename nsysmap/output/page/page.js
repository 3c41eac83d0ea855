// The page: one selection (an inference, a layer, an interval, a search) that every figure shows.

async function start() {
  const panel = byId("details"), chips = byId("chips"), find = byId("find"), count = byId("count");
  const [{ head: doc }, rows] = await Promise.all([inflated("doc"), inflated("rows")]);
  const trace = traceOf(doc, unpacked(rows));
  const { tables } = trace;
  let selection = { inference: null, layer: null, layers: null, range: null, found: null, cause: null, rule: null };  // layers: those of a finding, instead of a single one
  const listed = byId("hits"), MOST_LISTED = 60, NOUNS = { [KERNEL]: ["kernel"], [COPY]: ["copy", "copies"], [RANGE]: ["NVTX range"], [CALL]: ["call"], [GAP]: ["interval"], [INFERENCE]: [doc.one] };
  let went = false;  // whether the last click led to another part of the page
  let hits = [], next = -1, byType = new Map(), sought = "";  // sought: what the matches are of

  const details = detailsOf(trace, panel, {
    inference, layer, first, finding, graph: id => toGraph(id),
    pick(event) { pick(event); reveal(event); },
  });
  const timeline = timelineOf(trace, byId("lanes"), {
    pick, sampled(at) { details.sampled(at, timeline.lanes); }, range: dragged, move() { overview.draw(); },
    drawn(milliseconds) { document.body.dataset.drawn = milliseconds.toFixed(1); },
  });
  const overview = overviewOf(trace, byId("overview"), timeline);
  const tabs = tabsOf({ state: settings, visit: told => { if (restored(told)) return; apply(told); } });
  const layers = !byId("layers") ? { update() {}, uncover() {} } : layersOf(trace, byId("layers"), { layers: (ids, title) => ids.length === 1 ? layer(ids[0], true) : same(ids) ? change({ layer: null }) : mark(ids, title) });
  const icicle = byId("icicle") ? icicleOf(trace, byId("icicle"), { layers: (ids, title) => ids.length === 1 ? layer(ids[0], true) : mark(ids, title) }) : { update() {}, theme() {} };
  const kernels = kernelsOf(trace, byId("kernels"));
  const idle = idleOf(trace, byId("idle"), { cause: name => cause(name) });
  const spread = inferencesOf(trace, byId("inferences"), { inference });
  const regions = doc.regions.length ? regionsOf(trace, byId("region-list")) : { update() {} };
  const whatif = whatifOf(trace, byId("whatif"));
  const graphs = graphsOf(doc, { layers: mark, within: chosen => trace.summed(chosen, trace.layerOf) });

  function change(given) {
    selection = { ...selection, ...("layer" in given ? { layers: null } : {}), ...given };
    if (selection.cause && !("cause" in given)) { hits = intervals(row => selection.found(GAP, row)); next = -1; count.textContent = ""; }
    timeline.select(selection);
    layers.update(selection);
    icicle.update(selection);
    kernels.update(selection);
    regions.update(selection);
    whatif.update(selection);
    idle.update(selection);
    spread.update(selection);
    graphs.update(selection);
    touched();
    chosen();
  }
  function chosen() {
    chips.replaceChildren();
    const chip = (words, clear) => button(words + " ×", chips, () => change(clear), "chip");
    if (selection.inference !== null) chip(`${doc.one} ${selection.inference}`, { inference: null });
    if (selection.layer !== null) chip(`layer ${fitted(trace.layers.get(selection.layer).title, 40)}`, { layer: null });
    if (selection.layers) chip(`${fitted(selection.title, 40)}: ${counted(selection.layers.length, "layer")}`, { layers: null });
    if (selection.range) chip(`${duration(selection.range[1] - selection.range[0])} from ${duration(selection.range[0], 1000)}`, { range: null });
    if (selection.cause) button(`idle: ${doc.causes[selection.cause].name} ×`, chips, search, "chip");
    if (selection.rule) button(`${selection.rule} ×`, chips, search, "chip");
    chips.hidden = !chips.children.length;
    const told = tabs.state(), { id } = addressOf(location.hash);
    if (String(settings()) || !id || !byId(id)) tell(told);
  }
  /** The settings of the address that say what is selected. */
  function settings() {
    const told = new URLSearchParams();
    if (selection.inference !== null) told.set("inference", selection.inference);
    if (selection.layer !== null) told.set("layer", selection.layer);
    if (selection.layers) told.set("layers", selection.layers.join("."));
    if (selection.range) told.set("range", selection.range.map(Math.round).join("-"));
    return told;
  }
  /** Whether an address asks for what is selected already. */
  function restored(told) {
    const mine = settings();
    return ["inference", "layer", "layers", "range"].every(name => mine.get(name) === told.get(name));
  }
  let newest = null;
  /** A drag asks for a part of time more often than all figures can follow: once a frame is enough.  Details open when it is `done`: they would narrow the timeline below the mouse. */
  function dragged(range, done) {
    if (!newest) requestAnimationFrame(() => { const last = newest; newest = null; change({ range: last.range }); if (last.done || !document.body.classList.contains("quiet")) details.range(last.range); });
    newest = { range, done: done || Boolean(newest && newest.done) };
  }
  function pick(event) {
    timeline.pick(event);
    if (!event) return;
    if (event.type === INFERENCE) inference(event.row, false);
    details.event(event);
  }
  function reveal({ type, row }) {
    timeline.uncover(type, row);
    const [from, to] = [trace.startOf(type, row), trace.endOf(type, row)], view = timeline.view, span = view.to - view.from;
    if (from < view.from || to > view.to || to - from < span / 400) {
      const half = Math.max((to - from) * 12, 20000);
      timeline.set((from + to) / 2 - half, (from + to) / 2 + half);
    }
  }
  function inference(row, move = true) {
    change({ inference: row, range: null });
    details.event({ type: INFERENCE, row });
    if (!move) return;
    timeline.show(...trace.windowOf({ inference: row, range: null }));
  }
  function layer(id, again = false) {
    if (again && selection.layer === id) return change({ layer: null });
    change({ layer: id });
    details.layer(id);
  }
  /** Shows the first kernel of a layer in a typical inference; returns whether it has one. */
  function first(id, within = null) {
    const typical = within || typicalInference(), rows = [];
    for (let row = 0; row < tables.kernels.rows; row++) {
      if (trace.layerOf(row) !== id) continue;
      if (typical === null || (tables.kernels.start[row] >= typical[0] && tables.kernels.start[row] <= typical[1])) { rows.push(row); break; }
      if (!rows.length) rows.push(row);
    }
    if (!rows.length) return false;
    const event = { type: KERNEL, row: rows[rows.length - 1] };
    timeline.pick(event);
    if (typical) timeline.show(...typical);
    reveal(event);
    to("timeline");
    details.event(event);
    return true;
  }
  /** An inference as near the median of its kind as any: of the kind that takes the most time, of those that are in an interval. */
  function typicalInference([from, to] = [-Infinity, Infinity]) {
    const { inferences } = tables, groups = new Map(doc.groups.map(one => [one.id, one]));
    let best = null, off = Infinity, most = -1;
    for (let row = 0; row < inferences.rows; row++) {
      const like = groups.get(inferences.group[row]);
      if (!inferences.shown[row] || !like || like.time < most || inferences.time[row] < 0 || inferences.start[row] < from || inferences.end[row] > to) continue;
      const away = Math.abs(inferences.time[row] - like.median);
      if (like.time > most || away < off) [best, off, most] = [row, away, like.time];
    }
    return best === null ? null : trace.windowOf({ inference: best, range: null });
  }
  function to(id) {
    went = true;
    if (tabs.reveal(id) && byId("tab-" + id)) tabs.uncover(); else byId(id).scrollIntoView({ block: "start" });
  }
  /** Scrolls to the timeline unless its lanes are in sight. */
  function toLanes() {
    const { top, bottom } = byId("lanes").getBoundingClientRect(), head = headOf();
    if (top < head || Math.min(bottom, top + window.innerHeight / 2) > window.innerHeight) to("timeline");
  }
  /** Selects the idle time of a cause and shows its longest interval within the selection, without one in a typical inference, or of all; next and previous go through them. */
  function cause(name, device = null) {
    const passes = row => trace.shared(GAP, "cause", row) === name && (device === null || trace.shared(GAP, "device", row) === device), part = isPart(selection);
    hits = intervals(passes);
    if (!hits.length && !part) return to("idle");
    find.value = "";
    byType = new Map();
    list();
    graphs.search(null);
    change({ cause: name, rule: null, found: (type, row) => type === INFERENCE || (type === GAP && passes(row)) });
    if (!hits.length) { next = -1; count.textContent = "none within the selection"; return toLanes(); }
    const [from, till] = (!part && typicalInference()) || [0, doc.duration], long = hit => trace.endOf(GAP, hit.row) - trace.startOf(GAP, hit.row);
    const within = hits.filter(hit => trace.startOf(GAP, hit.row) >= from && trace.endOf(GAP, hit.row) <= till);
    go(hits.indexOf((within.length ? within : hits).reduce((best, hit) => long(hit) > long(best) ? hit : best)));
  }
  /** The idle intervals within the selection that pass a test. */
  function intervals(passes) {
    const inside = isPart(selection) ? trace.chosenBy({ ...selection, found: null }) : () => true, found = [];
    for (let row = 0; row < tables.gaps.rows; row++) if (passes(row) && inside(GAP, row)) found.push({ type: GAP, row });
    return found;
  }
  /** Selects the idle time, copies or kernels that a finding about no layers is about; next and previous go through them. */
  function matching(one, [from, till]) {
    const type = one.causes.length ? GAP : one.copies.length ? COPY : KERNEL;
    const passes = row => type === KERNEL || (type === GAP ? one.causes.includes(trace.shared(GAP, "cause", row)) : one.copies.includes(trace.shared(COPY, "kind", row)));
    hits = [...tables[TABLES[type]].start.keys()].filter(row => passes(row) && trace.endOf(type, row) > one.start && trace.startOf(type, row) < one.end).map(row => ({ type, row }));
    find.value = "";
    byType = new Map();
    list();
    graphs.search(null);
    change({ rule: `${one.rule}: ${counted(hits.length, ...NOUNS[type])}`, found: (other, row) => other === INFERENCE || (other === type && passes(row)) });
    const long = hit => trace.endOf(type, hit.row) - trace.startOf(type, hit.row), near = hits.filter(hit => trace.startOf(type, hit.row) >= from && trace.endOf(type, hit.row) <= till);
    if (hits.length) go(hits.indexOf((near.length ? near : hits).reduce((best, hit) => long(hit) > long(best) ? hit : best)));
  }
  function toGraph(id) {
    layer(id);
    to("graph");
    graphs.show(id);
  }

  // --- findings: each links to its time and to its layer
  const cards = allOf("[data-finding]");
  function finding(number) {
    const card = cards.find(one => +one.dataset.finding === number), rest = /** @type {Known | null} */ (card.closest(".rest"));
    tabs.reveal("findings");
    if (rest) rest.open = true;
    card.scrollIntoView({ block: "center" });
    went = true;
    card.classList.add("flash");
    setTimeout(() => card.classList.remove("flash"), 1500);
  }
  function same(ids) { return Boolean(selection.layers) && selection.layers.length === ids.length && ids.every(id => selection.layers.includes(id)); }
  /** Marks all of these layers, in every figure. */
  function mark(layers, title) {
    const all = [...new Set(layers)];
    if (all.length === 1) return layer(all[0]);
    change(all.length ? { layer: null, layers: all, title } : { layer: null });
    details.layers(all, title);
  }
  for (const card of cards) {
    const one = doc.findings[+card.dataset.finding], place = card.querySelector(".places");
    button("show in the timeline", place, () => {
      if (selection.cause || selection.rule) search();
      change({ inference: null, range: null });
      if (one.layers.length) mark(one.layers, one.rule); else change({ layer: null });
      const whole = one.end - one.start > doc.duration * 0.5, [from, till] = (whole && typicalInference([one.start, one.end])) || [one.start, one.end];
      if (!whole) change({ range: [one.start, one.end] });
      if (one.layers.length === 1 && first(one.layers[0], [from, till])) return;
      timeline.show(from, till);
      if (!one.layers.length) matching(one, [from, till]);
      to("timeline");
    });
    if (one.layers.length) button(one.layers.length === 1 ? "its layer" : `its ${one.layers.length} layers`, place, () => { mark(one.layers, one.rule); to("layers"); layers.uncover(); });
    const drawn = one.layers.find(id => graphs.has(id));
    if (drawn !== undefined) button("in the engine graph", place, () => { mark(one.layers, one.rule); to("graph"); graphs.show(drawn); });
  }
  for (const article of allOf(".finding")) {
    const mine = allOf("[data-finding]", article).map(card => doc.findings[+card.dataset.finding]), layers = [...new Set(mine.flatMap(one => one.layers))];
    if (mine.length < 2 || layers.length < 2) continue;
    const tools = element("p", null, null);
    button(`select all ${layers.length} layers of these findings`, tools, () => { change({ inference: null, range: null }); mark(layers, mine[0].rule); to("timeline"); });
    article.querySelector("h3").after(tools);
  }
  for (const one of allOf("[data-inference]")) one.addEventListener("click", () => { inference(+one.dataset.inference); to("timeline"); });
  for (const one of allOf("[data-cause]")) one.addEventListener("click", () => cause(one.dataset.cause, +one.dataset.device));
  for (const one of allOf("[data-find]")) one.addEventListener("click", () => { find.value = one.dataset.find; search(); typicalKernel(one.dataset.find); });
  for (const one of allOf("[data-repeat]")) {
    const mine = doc.layers.filter(other => other.repeat !== null && other.kind === one.dataset.kind && String(other.engine ?? "") === one.dataset.engine && doc.repeats[other.repeat] === one.dataset.repeat);
    const repeat = mine.length ? mine[0].repeat : null, ids = mine.filter(other => other.repeat === repeat).map(other => other.id);
    if (ids.length) one.addEventListener("click", () => mark(ids, doc.repeat_titles[repeat] || one.dataset.repeat)); else one.disabled = true;
  }
  function touched() {
    const [from, till] = trace.windowOf(selection), timed = selection.range || selection.inference !== null, chosen = chosenLayers(selection);
    let left = 0;
    for (const card of cards) {
      const one = doc.findings[+card.dataset.finding];
      const off = (timed && (one.end <= from || one.start >= till)) || (chosen && !one.layers.some(id => chosen.has(id)));
      card.classList.toggle("off", Boolean(off));
      if (!off) left++;
    }
    for (const rest of allOf(".rest")) {
      const inside = rest.querySelectorAll(".place").length, on = rest.querySelectorAll(".place:not(.off)").length;
      rest.querySelector("summary").textContent = `${inside} more places${timed || chosen ? `, ${on} of them concern the selection` : ""}`;
    }
    byId("finding-count").textContent = timed || chosen ? `${left} of ${cards.length} concern the selection` : "";
  }

  // --- search
  function search() {
    const passes = searcher(find.value);
    sought = find.value;
    hits = [];
    next = -1;
    byType = new Map();
    if (passes) {
      const classes = [];
      for (const type of [KERNEL, COPY, RANGE, CALL]) {
        const table = tables[TABLES[type] + "_classes"], words = [];
        for (let row = 0; row < table.rows; row++) {
          const texts = Object.keys(doc.texts[TABLES[type] + "_classes"]).map(column => trace.text(TABLES[type] + "_classes", column, row) || "");
          if (type === COPY) texts.push("copy");
          if (type === KERNEL) { const one = trace.layers.get(table.layer_id[row]); texts.push(one ? `${one.title} ${one.name} ${one.onnx || ""} ${one.tactic || ""}` : "", doc.kernels[table.name[row]].summary); }
          words.push(passes(texts.join(" ")));
        }
        classes[type] = words;
      }
      for (const type of [KERNEL, COPY, RANGE, CALL]) {
        const of = tables[TABLES[type]].class, mine = [];
        for (let row = 0; row < of.length; row++) if (classes[type][of[row]]) mine.push({ type, row });
        if (mine.length) byType.set(type, mine);
      }
      const causes = new Set(Object.keys(doc.causes).filter(one => passes(`idle: ${doc.causes[one].name}`))), gaps = [...tables.gaps.start.keys()].filter(row => causes.has(trace.shared(GAP, "cause", row)));
      if (gaps.length) byType.set(GAP, gaps.map(row => ({ type: GAP, row })));
      const number = new RegExp(`^${doc.one}\\s+(\\d+)$`, "i").exec(find.value.trim()), named = number && +number[1] < tables.inferences.rows ? +number[1] : null;
      if (named !== null) byType = new Map([[INFERENCE, [{ type: INFERENCE, row: named }]], ...byType]);
      if (byType.size) [hits] = byType.values();  // next and previous go through the inference named, or kernels if any, otherwise copies, ranges, calls, idle time
      const found = (type, row) => type === INFERENCE || (type === GAP && causes.has(trace.shared(GAP, "cause", row))) || Boolean(classes[type] && classes[type][tables[TABLES[type]].class[row]]);
      change({ found, cause: null, rule: null });
      count.textContent = hits.length ? told(hits) : "nothing found";
      list();
    } else {
      count.textContent = "";
      change({ found: null, cause: null, rule: null });
      list();
    }
    graphs.search(passes);
  }
  function told(some) {
    const layers = some[0].type === KERNEL ? new Set(some.map(hit => trace.layerOf(hit.row)).filter(id => id >= 0)).size : 0;
    return counted(some.length, ...NOUNS[some[0].type]) + (layers ? ` of ${counted(layers, "layer")}` : "");
  }
  /** The list of matches: one row per layer, name or call, with its number; a click goes to the next of them. */
  function list() {
    listed.replaceChildren();
    listed.hidden = !byType.size || !find.value.trim();
    for (const mine of byType.values()) {
      element("h3", told(mine), listed);
      const groups = new Map();
      mine.forEach((hit, at) => {
        const name = trace.titleOf(hit.type, hit.row), layer = hit.type === KERNEL ? trace.layers.get(trace.layerOf(hit.row)) : undefined, key = layer ? layer.id : name;
        if (!groups.has(key)) groups.set(key, { name, places: [], time: 0, engine: layer && doc.engines.length > 1 ? doc.short_engines[layer.engine] : null });
        const group = groups.get(key);
        group.places.push(at);
        group.time += trace.endOf(hit.type, hit.row) - trace.startOf(hit.type, hit.row);
      });
      const rows = [...groups.values()].sort((one, two) => two.time - one.time), lines = element("ul", null, listed);
      for (const { name, places, time, engine } of rows.slice(0, MOST_LISTED)) {
        const row = element("li", null, lines);
        button(name, row, () => {
          hits = mine;
          const ahead = places.find(at => at > next && trace.startOf(hits[at].type, hits[at].row) >= timeline.view.from);
          go(ahead ?? places[0]);
        }, "link name");
        element("small", ` ${engine ? engine + ", " : ""}${places.length.toLocaleString("en")} ×, ${duration(time)}`, row);
      }
      if (rows.length > MOST_LISTED) element("p", `and ${counted(rows.length - MOST_LISTED, "more name")}`, listed, "note");
    }
  }
  /** Shows a match; `where` says which one it is, where that is not the next one. */
  function go(at, where = "") {
    next = at;
    count.textContent = `${(next + 1).toLocaleString("en")} of ${hits.length.toLocaleString("en")}${where}`;
    listed.hidden = true;  // it would cover the details
    pick(hits[next]);
    reveal(hits[next]);
    toLanes();
  }
  function jump(by) {
    if (!hits.length) return;
    if (next >= 0) return go((next + by + hits.length) % hits.length);
    const seen = hits.findIndex(hit => trace.startOf(hit.type, hit.row) >= timeline.view.from);
    if (by > 0) go(Math.max(0, seen), seen > 0 ? ", first in view" : ""); else go((Math.max(0, seen) - 1 + hits.length) % hits.length);
  }
  /** Shows an execution of the kernel of that name that takes its median time. */
  function typicalKernel(name) {
    const code = doc.texts.kernels_classes.name.indexOf(name);
    const mine = hits.filter(({ type, row }) => type === KERNEL && tables.kernels_classes.name[tables.kernels.class[row]] === code);
    if (!mine.length) return jump(1);
    const sorted = [...mine].sort((one, two) => tables.kernels.dur[one.row] - tables.kernels.dur[two.row]);
    go(hits.indexOf(sorted[sorted.length >> 1]));
  }
  find.addEventListener("focus", () => { if (byType.size) listed.hidden = false; });
  document.addEventListener("pointerdown", event => { if (!targetOf(event).closest(".find")) listed.hidden = true; });
  document.addEventListener("pointerdown", () => { went = false; }, true);
  document.addEventListener("click", event => {
    const sheet = panel.getBoundingClientRect(), covers = sheet.height && getComputedStyle(panel).position === "fixed" && event.detail && !panel.contains(targetOf(event));
    if (covers && !went && event.clientY > sheet.top - 40) window.scrollBy(0, event.clientY - sheet.top + 80);  // what was clicked would be below the details
  });
  let typing = 0;
  find.addEventListener("input", () => { clearTimeout(typing); typing = setTimeout(search, 120); });
  find.addEventListener("keydown", event => {
    if (event.key === "Enter") { event.preventDefault(); clearTimeout(typing); if (find.value !== sought) search(); jump(event.shiftKey ? -1 : 1); if (hits.length) timeline.focus(); }
  });
  byId("next").addEventListener("click", () => jump(1));
  byId("previous").addEventListener("click", () => jump(-1));

  /** The next inference in that direction of those with a time, which are the dots; of all where none has one. */
  function beside(by) {
    const all = [...tables.inferences.time.keys()], timed = all.filter(row => tables.inferences.time[row] >= 0), some = timed.length ? timed : all;
    if (selection.inference === null) return some[0];
    return by > 0 ? some.find(row => row > selection.inference) : some.findLast(row => row < selection.inference);
  }
  function inSight(id) {
    const { top, bottom } = byId(id).getBoundingClientRect();
    return top < window.innerHeight / 2 && bottom > window.innerHeight / 2;
  }
  document.addEventListener("keydown", event => {
    const typed = targetOf(event).closest("input, select, textarea");
    if (event.key === "Escape") {
      const searched = find.value;
      clearTimeout(typing);
      if (event.target === find) find.blur();
      find.value = "";
      if (searched || selection.cause || selection.rule) search();
      if (!searched) { timeline.pick(null); details.close(); change({ inference: null, layer: null, range: null }); }
      return;
    }
    if (typed || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "/") { event.preventDefault(); find.select(); }
    else if (event.key === "n") jump(1);
    else if (event.key === "p") jump(-1);
    else if (event.key === "?") byId("keys").showModal();
    else if (event.key === "[" || event.key === "]") {
      const row = beside(event.key === "]" ? 1 : -1);
      if (row === undefined) return;
      inference(row);
      if (!inSight("inferences")) toLanes();
    } else if ("wasdfr0".includes(event.key.toLowerCase())) timeline.key(event);
  });
  byId("in").addEventListener("click", () => timeline.zoom(1.6));
  byId("out").addEventListener("click", () => timeline.zoom(1 / 1.6));
  byId("whole").addEventListener("click", () => timeline.set(0, doc.duration));
  byId("typical").addEventListener("click", () => { const part = typicalInference(); if (part) timeline.show(...part); });
  byId("help").addEventListener("click", () => byId("keys").showModal());
  byId("color").addEventListener("change", event => { timeline.color(targetOf(event).value); legend(targetOf(event).value); });
  framed(repaint);
  const answerEnds = [byId("lanes"), document.querySelector("aside")];  // these only, as every element below one that is told gets its style again
  new ResizeObserver(() => { const height = byId("answer").offsetHeight + 6 + "px"; for (const place of answerEnds) place.style.setProperty("--answer", height); }).observe(byId("answer"));
  function repaint() { layers.update(selection); icicle.theme(); idle.update(selection); timeline.theme(); overview.draw(); spread.theme(); legend(byId("color").value); }
  function legend(mode) {
    const place = byId("legend");
    place.replaceChildren();
    const entry = (fill, words) => { const made = element("span", null, place); element("i", null, made).style.background = isDark() ? onDark(fill) : fill; made.append(words); };
    if (mode === "kind") for (const at of [...new Set(doc.kernel_kinds)].sort((one, two) => one - two)) entry(doc.kinds[at].fill, doc.kinds[at].words);
    else element("span", "one colour per layer, eight colours in rotation, so that neighbouring layers differ", place);
    if (!doc.idle.length) return;
    element("span", null, place, "break");
    element("b", "idle:", place);
    for (const row of doc.idle) entry(doc.causes[row.cause].fill, doc.causes[row.cause].name);
  }

  /** Selects what the settings of an address say. */
  function apply(asked) {
    change({ inference: null, layer: null, range: null });
    if (asked.has("find")) { find.value = asked.get("find"); search(); }
    if (asked.has("range")) { const range = /** @type {[number, number]} */ (asked.get("range").split("-").map(Number)), [start, end] = range; if (range.length === 2 && end > start) { change({ range }); details.range(range); timeline.show(start, end); } }
    if (asked.has("inference") && +asked.get("inference") < tables.inferences.rows) inference(+asked.get("inference"));
    const marked = (asked.get("layers") || "").split(".").map(Number).filter(id => trace.layers.has(id));
    const alike = new Set(marked.map(id => trace.layers.get(id).repeat));
    if (marked.length > 1) mark(marked, (alike.size === 1 && doc.repeat_titles[[...alike][0]]) || "selected");
    if (asked.has("layer") && trace.layers.has(+asked.get("layer"))) layer(+asked.get("layer"));
  }
  legend("kind");
  const asked = location.hash, named = addressOf(asked).id;
  change({});
  const typical = typicalInference();
  if (typical) timeline.set(typical[0] - (typical[1] - typical[0]), typical[1] + (typical[1] - typical[0]));
  const begun = tabs.begin(asked);
  if ([...begun.told.keys()].some(name => name !== "tab")) apply(begun.told);
  if (selection.layer !== null || selection.layers) {
    const timed = selection.range || selection.inference !== null;
    if (timed) to("timeline"); else if (!begun.told.has("tab")) to("layers");
    if (!timed) layers.uncover();
  }
  if (named && begun.place) { if (begun.isTab) { tell(tabs.state()); tabs.uncover(); } else begun.place.scrollIntoView({ block: "start" }); }  // the figures above it are there only now
  document.body.dataset.ready = String(Math.round(performance.now()));
}

/** An overview of the whole trace with the part that the timeline shows: how busy the GPUs were, pixel by pixel. */
function overviewOf(trace, canvas, timeline) {
  const pen = canvas.getContext("2d"), height = 34, { duration: end } = trace.doc;
  const lanes = trace.lanes.filter(lane => lane.type === KERNEL);
  let width = 0, drag = false;
  function draw() {
    const ratio = window.devicePixelRatio || 1, style = getComputedStyle(document.body);
    width = canvas.clientWidth;
    canvas.width = width * ratio;
    canvas.height = height * ratio;
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    pen.clearRect(0, 0, width, height);
    const per = end / width;
    pen.fillStyle = "#566bcb";
    for (const lane of lanes) {
      let before = 0, at = 0;
      pen.globalAlpha = 0.9 / lanes.length + 0.1;
      for (let x = 0; x < width; x++) {
        at = after(lane.start, (x + 1) * per, at);
        const last = at - 1, until = last < 0 ? 0 : lane.busy[at] - (lane.busy[at] - lane.busy[last]) * Math.max(0, lane.end[last] - (x + 1) * per) / (lane.end[last] - lane.start[last] || 1);
        const share = Math.min(1, Math.max(0, until - before) / per);
        pen.fillRect(x, height - (height - 4) * share, 1, (height - 4) * share);
        before = until;
      }
    }
    const left = timeline.view.from / per, wide = Math.max(2, (timeline.view.to - timeline.view.from) / per);
    pen.globalAlpha = 0.18;
    pen.fillStyle = style.color;
    pen.fillRect(left, 0, wide, height);
    pen.globalAlpha = 1;
    pen.strokeStyle = style.color;
    pen.strokeRect(left + 0.5, 0.5, wide - 1, height - 1);
  }
  function move(event) {
    const half = (timeline.view.to - timeline.view.from) / 2, at = (event.clientX - canvas.getBoundingClientRect().left) / width * end;
    timeline.set(at - half, at + half);
  }
  canvas.addEventListener("pointerdown", event => { drag = true; canvas.setPointerCapture(event.pointerId); move(event); });
  canvas.addEventListener("pointermove", event => { if (drag) move(event); });
  canvas.addEventListener("pointerup", () => { drag = false; });
  canvas.addEventListener("keydown", event => {
    const by = { ArrowLeft: -0.5, ArrowRight: 0.5 }[event.key];
    if (!by) return;
    event.preventDefault();
    timeline.pan(by);
  });
  new ResizeObserver(draw).observe(canvas);
  return { draw };
}

start().catch(error => {
  document.body.classList.add("broken");
  const place = byId("broken");
  place.hidden = false;
  place.textContent = `The figures below the answer cannot be drawn: ${error.message}. They need a browser of 2023 or later.`;
  throw error;
});
