// The tables: layers, idle time by cause, regions; each for the whole trace, or for the selection.

const MOST_ROWS = 300, NO_LAYER = "#8a94a0";

/** The table of layers; `on.layer(id)` is called for clicks. */
function layersOf(trace, place, on) {
  const { doc } = trace, body = place.querySelector("tbody"), said = place.querySelector(".said");
  const filter = byId("layer-filter"), shown = byId("layer-rows");
  const opened = new Set();
  let sort = doc.engines.length > 1 ? "share" : "time", down = true, all = false, selection = null;
  const metrics = doc.layers.some(layer => layer.measured) ? Object.keys(doc.metrics) : [];
  for (const metric of metrics) place.querySelector("th[data-by=index]").before(element("th", doc.metrics[metric], null, "right tight"));
  const heads = [...place.querySelectorAll("th[data-by]")], engines = heads.some(head => head.dataset.by === "source");
  for (const head of heads) {
    const name = head.textContent;
    head.textContent = "";
    head.addEventListener("click", event => { if (event.target === head) head.querySelector("button").click(); });
    button(name, head, () => {
      down = sort === head.dataset.by ? !down : !["title", "kind", "index", "precision", "source", "verdict"].includes(head.dataset.by);
      sort = head.dataset.by;
      update();
    });
  }
  const part = () => Boolean(selection && (selection.range || selection.inference !== null));
  if (new Set(doc.layers.map(layer => layer.repeat)).size === doc.layers.length) shown.value = "each";
  if (!doc.layers.some(layer => layer.block)) shown.querySelector("[value=block]").remove();
  const exported = () => [heads.map(head => head.textContent), ...ordered(rowsNow()).flatMap(row => [row, ...(isOpen(row) ? row.members : [])]).map(row => [...line(row, 1).cells].map(cell => cell.textContent))];
  exportable(place.querySelector(".head"), "layers", exported);
  filter.addEventListener("input", () => update());
  shown.addEventListener("change", () => update());

  function rowsNow() {
    const some = part() ? trace.summed({ ...selection, layer: null, layers: null }, trace.layerOf) : null;
    let whole = 0;
    if (some) for (const { time } of some.values()) whole += time;
    let rows = doc.layers.map(layer => {
      const sum = some && some.get(layer.id);
      return {
        ...layer, source: doc.short_engines[layer.engine] || "", layers: [layer], time: some ? (sum ? sum.time : null) : layer.time, count: some ? (sum ? sum.kernels : null) : layer.kernels,
        share: some ? (sum ? sum.time / whole : null) : layer.share, least: some ? leastOf(layer, sum) : leastOf(layer, layer), fraction: null,
      };
    });
    if (some && some.get(-1)) rows.push({ id: -1, title: "no layer", kind: "", layers: [], ...some.get(-1), count: some.get(-1).kernels, share: some.get(-1).time / whole, index: null });
    if (!some && doc.layers.length) doc.others.forEach((one, at) => rows.push({ id: -2 - at, title: one.name, kind: "", layers: [], time: one.time, count: one.kernels, share: one.share, index: null, swatch: -1 }));
    const passes = searcher(filter.value);
    if (passes) rows = rows.filter(row => passes([row.title, row.name, row.kind, row.source, row.precision, row.tactic, row.onnx, row.verdict].join(" ")));
    if (shown.value !== "each") rows = merged(rows);
    for (const row of rows) {  // of the layers that ran in the selection
      const ran = (row.members || [row]).filter(one => one.time);
      for (const one of ran) one.fraction = (one.least ?? null) === null ? null : one.least / one.time;
      row.fraction = ran.length && ran.every(one => one.fraction !== null) ? ran.reduce((sum, one) => sum + one.least, 0) / ran.reduce((sum, one) => sum + one.time, 0) : null;
    }
    return rows;
  }
  /** The least time for the executions of a layer in a selection; null where it is unknown or the selection cuts one. */
  function leastOf(layer, ran) {
    const times = ran && layer.kernels ? ran.kernels / layer.kernels : 0;
    return layer.fraction === null || !times || ran.cut || (ran !== layer && ran.kernels * doc.runs[layer.engine ?? -1] % layer.kernels) ? null : layer.fraction * layer.time * times;
  }
  function merged(rows) {
    const found = new Map();
    for (const row of rows) {
      const block = shown.value === "block", key = block ? row.block && `${row.engine} ${row.block}` : row.repeat;
      if (key === null || key === undefined) { found.set("#" + row.id, row); continue; }
      if (!found.has(key)) { found.set(key, { ...row, key, layers: [...row.layers], members: [row] }); continue; }
      const sum = found.get(key);
      sum.layers.push(...row.layers);
      sum.members.push(row);
      for (const name of ["time", "count", "share"]) if (row[name] !== null) sum[name] = (sum[name] || 0) + row[name];
      sum.measured = meanMeasured(sum.layers);
    }
    return [...found.values()].map(row => {
      if (row.layers.length < 2) return row;
      const [title, name] = shown.value === "block" ? [row.block, row.block] : [doc.repeat_titles[row.repeat] || row.title, doc.repeats[row.repeat]];
      const same = column => row.layers.every(layer => layer[column] === row.layers[0][column]);
      return { ...row, title, name, kind: same("kind") ? row.kind : "", precision: same("precision") ? row.precision : "", swatch: same("swatch") ? row.swatch : -1, verdict: same("verdict") ? row.verdict : "" };
    });
  }
  function ordered(rows) {
    const sign = down ? -1 : 1;
    return rows.sort((one, two) => {
      const [a, b] = [one[sort], two[sort]];
      if (a === b) return (one.index ?? -1) - (two.index ?? -1);
      if (a === null || a === undefined) return 1;
      if (b === null || b === undefined) return -1;
      return sign * (typeof a === "string" ? a.localeCompare(b) : a - b);
    });
  }
  function update() {
    const rows = ordered(rowsNow());
    for (const head of heads) head.setAttribute("aria-sort", head.dataset.by === sort ? (down ? "descending" : "ascending") : "none");
    const most = rows.reduce((best, row) => Math.max(best, row.share || 0), 0), shown = all ? rows : rows.slice(0, MOST_ROWS);
    body.replaceChildren(...shown.flatMap(row => [line(row, most), ...(isOpen(row) ? row.members.map(one => line(one, most, "member")) : [])]));
    const limited = doc.layers.reduce((sum, layer) => sum + (layer.fraction === null ? 0 : layer.share || 0), 0);
    said.textContent = `${counted(rows.length, "row")}; ${part() ? "times (µs) and kernels within the selection" : `times (µs): ${doc.mean}; of roofline known for ${percent(limited)} of kernel time`}`;
    const more = place.querySelector(".more");
    more.replaceChildren();
    if (shown.length < rows.length) button(`show all ${rows.length.toLocaleString("en")} rows`, more, () => { all = true; update(); });
  }
  /** Whether the rows of layers that are alike stand below their sum: asked for, or where some of them are selected. */
  function isOpen(row) {
    const chosen = selection && chosenLayers(selection), many = row.layers.length > 1;
    return many && (opened.has(row.key) || Boolean(chosen && row.layers.some(layer => chosen.has(layer.id)) && !row.layers.every(layer => chosen.has(layer.id))));
  }
  function line(row, most, kind = "") {
    const made = document.createElement("tr");
    const chosen = selection && chosenLayers(selection);
    made.className = kind;
    if (chosen && row.layers.length && row.layers.every(layer => chosen.has(layer.id))) made.classList.add("on");
    const swatch = doc.kinds[row.swatch] || { fill: row.layers.length ? null : NO_LAYER };
    const share = element("td", null, made, "right");
    bar(most ? (row.share || 0) / most : 0, swatch.fill, share);
    element("span", percent(row.share), share, "num");
    element("td", microseconds(row.time ?? null), made, "right");
    const cell = element("td", null, made, "name text");
    if (row.layers.length) button(row.title, cell, () => on.layers(row.layers.map(layer => layer.id), row.title)).title = row.name;
    else cell.append(row.title);
    if (engines) element("td", row.source || "–", made);
    element("td", row.count === null || row.count === undefined ? "–" : row.count.toLocaleString("en"), made, "right");
    element("td", row.kind, made);
    element("td", row.precision || "", made);
    element("td", row.fraction === 0 ? "<0.1%" : percent(row.fraction ?? null), made, "right");
    element("td", limit(row.verdict), made).title = row.reason || "";
    for (const metric of metrics) element("td", row.measured && row.measured[metric] && row.measured[metric][0] !== null ? `${row.measured[metric][0].toFixed(0)}%` : "–", made, "right").title = row.measured && row.measured[metric] ? withError(row.measured[metric]) : "";
    const last = element("td", row.layers.length > 1 ? null : row.index ?? "–", made, "right");
    if (row.layers.length > 1) button(`${row.layers.length} × ${isOpen(row) ? "▾" : "▸"}`, last, () => { if (!opened.delete(row.key)) opened.add(row.key); update(); }).title = "each of them";
    return made;
  }
  /** What limits a layer, in a word. */
  function limit(verdict) { return !verdict || verdict === "unknown" ? "–" : verdict.replace("-bound", ""); }
  return {
    update(given) { selection = given; update(); },
    /** Scrolls the table so that the first selected row is in sight. */
    uncover() {
      const row = body.querySelector("tr.on"), scroll = place.querySelector(".scroll");
      if (row) scroll.scrollTop = row.offsetTop - scroll.clientHeight / 3;
    },
  };
}

/** The kernels' table, which stands in the page already: its filter, and within a selection the kernels of that. */
function kernelsOf(trace, place) {
  const { doc, tables } = trace, filter = byId("kernel-filter"), unmapped = byId("kernel-unmapped"), said = place.querySelector(".said");
  const codes = new Map((doc.texts.kernels_classes.name || []).map((name, code) => [name, code]));
  const rows = [...place.querySelectorAll("tbody tr")].map(row => ({ row, cells: [...row.cells].slice(0, 4), of: [...row.cells].slice(0, 4).map(cell => cell.textContent), text: `${row.textContent} ${row.dataset.family}`, code: codes.get(row.querySelector("[data-find]").dataset.find) }));
  let selection = null;
  function update() {
    const passes = searcher(filter.value), some = isPart(selection) ? trace.summed(selection, row => tables.kernels_classes.name[tables.kernels.class[row]]) : null;
    let left = 0, whole = 0;
    if (some) for (const { time } of some.values()) whole += time;
    for (const { row, cells, of, text, code } of rows) {
      const found = some && some.get(code);
      row.hidden = (passes && !passes(text)) || Boolean(unmapped && unmapped.checked && !("unmapped" in row.dataset)) || Boolean(some && !found);
      left += row.hidden ? 0 : 1;
      const told = found ? [percent(found.time / whole), duration(found.time), found.each.length.toLocaleString("en"), duration(medianOf(found.each.sort((one, two) => one - two)))] : of;
      cells.forEach((cell, at) => { cell.textContent = told[at]; });
    }
    place.querySelector(".whole-run").hidden = Boolean(some);
    said.textContent = (some ? "within the selection; " : "") + (left < rows.length ? `${left} of ${counted(rows.length, "row")}` : counted(rows.length, "row"));
  }
  filter.addEventListener("input", update);
  if (unmapped) unmapped.addEventListener("change", update);
  for (const link of allOf("a[data-family]")) link.addEventListener("click", () => { filter.value = link.dataset.family; if (unmapped) unmapped.checked = true; update(); });
  return { update(given) { selection = given; update(); } };
}

/** The counters of several layers: the mean over their time, the errors as if all were off in the same direction; none where one is not known. */
function meanMeasured(layers) {
  const found = {}, whole = layers.reduce((sum, layer) => sum + (layer.time || 0), 0);
  for (const metric of Object.keys(layers[0].measured || {})) {
    const known = whole > 0 && layers.every(layer => layer.measured && layer.measured[metric] && layer.measured[metric][0] !== null);
    found[metric] = known ? [0, 1].map(at => layers.reduce((sum, layer) => sum + layer.measured[metric][at] * (layer.time || 0), 0) / whole) : [null, null];
  }
  return found;
}

/** Idle time by cause, of the whole trace or within a selection; `on.cause(name)` is called for clicks. */
function idleOf(trace, place, on) {
  const { doc } = trace;
  return {
    update(selection) {
      const part = isPart(selection) ? trace.idle(selection) : null, timed = selection.range || selection.inference !== null;
      const rows = part ? [...part.found].map(([cause, { time, gaps }]) => ({ cause, time, gaps, share: time / part.window / part.devices })) : doc.idle;
      const body = place.querySelector("tbody"), each = place.querySelector(".each");
      each.hidden = Boolean(part) || !rows.length || rows.some(row => typeof row.each !== "number");
      rows.sort((one, two) => two.time - one.time);
      body.replaceChildren(...rows.map(row => {
        const made = document.createElement("tr"), share = element("td", null, made, "right");
        bar(row.share, doc.causes[row.cause].fill, share);
        element("span", percent(row.share), share, "num");
        if (!each.hidden) element("td", duration(row.each), made, "right");
        element("td", duration(row.time), made, "right");
        element("td", row.gaps.toLocaleString("en"), made, "right");
        button(doc.causes[row.cause].name, element("td", null, made, "text"), () => on.cause(row.cause)).title = "show its longest interval";
        made.classList.toggle("on", selection.cause === row.cause);
        element("td", doc.causes[row.cause].words, made, "text");
        return made;
      }));
      if (!rows.length) element("td", "no idle time between two pieces of GPU work", element("tr", null, body), "text").colSpan = 6;
      place.querySelector(".said").textContent = part ? `within the ${timed ? "selection" : "whole trace"} (${duration(part.window)})${chosenLayers(selection) ? ", directly before kernels of the selected layers" : ""}` : doc.idle_of;
    },
  };
}

/** Parts of a region, those whose names differ only in numbers as one, the most time first. */
function alikeParts(parts) {
  const found = new Map();
  for (const part of parts) {
    const key = part.part.replace(/ #\d+$/, "").replace(/\d+/g, "*");
    if (!found.has(key)) found.set(key, []);
    found.get(key).push(part);
  }
  const sum = (mine, column) => mine.reduce((total, part) => total + part[column], 0);
  const only = (mine, column) => [...new Set(mine.map(part => part[column]))].join("; ");
  return [...found].map(([key, mine]) => ({
    part: mine.length > 1 ? key : mine[0].part, parts: mine, share: sum(mine, "share"), time: sum(mine, "time"), kernels: sum(mine, "kernels"),
    summary: only(mine, "summary"), told_by: only(mine, "told_by"),
  })).sort((one, two) => two.time - one.time);
}

/** Regions of one engine whose names differ in numbers only as one, their parts together, the most time first: over the run, if `ran` says how often each engine ran. */
function alikeRegions(regions, ran = {}) {
  const found = new Map();
  for (const region of regions) {
    const key = `${region.engine} ${region.name.replace(/\d+/g, "*")}`;
    if (!found.has(key)) found.set(key, []);
    found.get(key).push(region);
  }
  return [...found.values()].map(mine => {
    const time = mine.reduce((total, region) => total + region.time, 0);
    return mine.length === 1 ? mine[0] : {
      name: mine[0].name.replace(/\d+/g, "*"), engine: mine[0].engine, time, regions: mine.length,
      parts: mine.flatMap(region => region.parts.map(part => ({ ...part, share: time ? part.time / time : 0 }))),
    };
  }).sort((one, two) => two.time * (ran[two.engine] ?? 1) - one.time * (ran[one.engine] ?? 1));
}

/** The opaque regions and those of Myelin with their parts, of the whole trace or within a selection; similar regions and parts as one on request. */
function regionsOf(trace, place) {
  const { doc, tables } = trace, alike = byId("region-alike"), said = byId("region-said"), opened = new Map();
  let selection = null;
  function list() {
    const some = isPart(selection) ? within() : doc.regions.map(region => ({ ...region, parts: region.parts.filter(one => one.kernels) })).filter(region => region.parts.length);
    const regions = alike.checked ? alikeRegions(some, isPart(selection) ? {} : doc.ran) : some;
    place.replaceChildren(...regions.map(region => pictured(region, regions.length === 1)));
    said.textContent = !isPart(selection) ? `times: ${doc.mean}` : regions.length ? "times and kernels within the selection" : "no kernel of a region is in the selection";
  }
  /** The regions with the kernels of a selection. */
  function within() {
    const found = trace.summed(selection, row => tables.kernels.part[row]);
    return doc.regions.map(region => {
      const parts = region.parts.filter(one => found.has(one.number)).map(one => ({ ...one, ...found.get(one.number) })), time = parts.reduce((total, one) => total + one.time, 0);
      return { ...region, time, parts: parts.map(one => ({ ...one, share: time ? one.time / time : 0 })) };
    }).filter(region => region.parts.length).sort((one, two) => two.time - one.time);
  }
  function pictured(region, alone) {
    const made = document.createElement("details"), title = element("summary", null, made), source = doc.short_engines[region.engine], key = `${region.engine} ${region.name}`;
    title.append(`${duration(region.time)}${doc.engines.length > 1 && source ? ` (${source})` : ""}, ${region.regions ? region.regions + " regions, " : ""}${counted(region.parts.length, "part")}: `);
    element("span", region.name, title, "name");
    made.addEventListener("toggle", () => { opened.set(key, made.open); if (made.open && !made.querySelector("table")) fill(made, region); });
    made.open = alone || opened.get(key) || false;
    if (made.open) fill(made, region);
    return made;
  }
  function fill(made, region) {
    const parts = alike.checked ? alikeParts(region.parts) : region.parts.map(part => ({ ...part, parts: [part] }));
    const longest = parts.reduce((most, part) => Math.max(most, part.share), 0);
    const tools = element("p", null, made, "tools"), scroll = element("div", null, made, "scroll tall");
    scrollable(scroll);
    const table = element("table", null, scroll, "rows");
    exportable(tools, `parts of ${region.name.replace(/[^\w.-]+/g, "_").replace(/^_|_$/g, "").slice(0, 60)}`, () => rowsOf(table));
    const head = element("tr", null, element("thead", null, table));
    for (const [name, side] of [["share of the region", "right"], ["µs", "right"], ["kernels", "right"], ["part", "text"], ["what it is", "text"], ["known from", ""]]) element("th", name, head, side);
    const body = element("tbody", null, table);
    for (const part of parts) {
      const row = element("tr", null, body), share = element("td", null, row, "right");
      bar(longest ? part.share / longest : 0, null, share);
      element("span", percent(part.share), share, "num");
      element("td", microseconds(part.time), row, "right");
      element("td", (Math.round(part.kernels * 10) / 10).toLocaleString("en"), row, "right");
      const named = element("td", part.part, row, "name text");
      if (part.parts.length > 1) element("small", ` ${part.parts.length} ×`, named);
      element("td", part.summary, row, "text");
      element("td", part.told_by, row, "plain");
    }
  }
  alike.addEventListener("change", list);
  return { update(given) { selection = given; list(); } };
}

/** What changes would make of the run, which stands on the page already, or of the selected inferences as far as they were replayed. */
function whatifOf(trace, place) {
  const { doc, tables } = trace, { before, changes } = doc.whatif, said = place.querySelector(".said"), whole = said.textContent;
  const rows = [...place.querySelectorAll("[data-change]")].map(row => ({ row, change: changes[row.dataset.change], cells: [...row.cells].slice(1, 6), of: [...row.cells].slice(1, 6).map(cell => cell.textContent) }));
  const mean = numbers => numbers.reduce((sum, one) => sum + one, 0) / numbers.length;
  return {
    update(selection) {
      const chosen = chosenLayers(selection), [from, to] = trace.windowOf(selection), { start, end } = tables.inferences;
      const some = selection.inference !== null ? [selection.inference] : selection.range ? [...start.keys()].filter(row => start[row] < to && end[row] > from) : null;
      const replayed = some && some.filter(row => row in before);
      for (const { row, change, cells, of } of rows) {
        const told = replayed && replayed.length && replayed.every(one => one in change.after), now = told && mean(replayed.map(one => before[one])), then = told && mean(replayed.map(one => change.after[one]));
        cells.forEach((cell, at) => { cell.textContent = told ? [duration(now - then), "–", "–", duration(now), duration(then)][at] : replayed && replayed.length ? "–" : of[at]; });
        row.classList.toggle("off", Boolean(some && !replayed.length) || Boolean(chosen && change.layers && !change.layers.some(layer => chosen.has(layer))));
      }
      const about = chosen ? ` ${rows.filter(({ row }) => !row.classList.contains("off")).length} of ${counted(rows.length, "change")} concern the selected layers; their figures are of all layers.` : "";
      said.textContent = (!some ? whole : replayed.length ? `Now: ${some.length === 1 ? `of the selected ${doc.one}` : `means of ${replayed.length} of the ${some.length} selected ${doc.one}s, those that were replayed`}; – for ranges, which are of the run, and for changes that run several at once.` : `None of the selected ${doc.one}s was replayed: the figures are of the whole run.`) + about;
    },
  };
}
