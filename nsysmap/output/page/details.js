// Everything known about one event, beside the page: a kernel with its launch and the evidence for its layer, idle time with its cause.

function detailsOf(trace, panel, on) {
  const { doc, tables, shared } = trace;
  const PICTURED = {
    [KERNEL]: kernel, [COPY]: copy, [FILL]: copy, [GRAPH]: plain, [LEFT_OUT]: leftOut, [GAP]: gap, [CALL]: call, [RANGE]: plain, [INFERENCE]: inference, [OSRT]: plain,
    [OVERHEAD]: plain,
  };
  function rows(heading, given) {
    const kept = given.filter(row => row && row[1] !== null && row[1] !== undefined && row[1] !== "" && row[1] !== -1);
    if (!kept.length) return;
    if (heading) element("h3", heading, panel);
    const table = element("table", null, panel);
    for (const [name, value, go, means] of kept) {
      const row = element("tr", null, table), cell = (element("td", name, row), element("td", null, row, "name"));
      if (go) button(String(value), cell, go);
      else cell.textContent = value;
      if (means) element("small", means, cell);
    }
  }
  /** When something begins: since the begin of the timeline, and in the report's own time. */
  const begins = time => ["begins", duration(time, 10), null, `${inReport(doc, time)} in the report`];
  const at = (type, row) => [begins(trace.startOf(type, row)), ["takes", duration(trace.endOf(type, row) - trace.startOf(type, row))]];
  const inferenceRow = row => row >= 0 && [doc.one, row, () => on.inference(row)];
  const laneWords = type => row => {
    const lane = doc.lanes[shared(type, "lane", row)];
    return [["GPU", lane.device], ["stream", lane.stream], ["context", lane.context], ["process", lane.pid]];
  };
  function launch(row, start) {
    if (row < 0) return rows("Launch", [["", "its launch call is not in the trace"]]);
    const begun = tables.calls.start[row], ended = tables.calls.end[row];
    rows("Launch", [
      ["call", shared(CALL, "api", row), () => on.pick({ type: CALL, row })], ["thread", doc.threads[shared(CALL, "thread", row)]?.tid],
      ["begins", duration(begun, 10)], ["takes", duration(ended - begun)], ["begins before it by", duration(start - begun)],
    ]);
    const open = trace.rangesAt(shared(CALL, "thread", row), begun);
    rows("NVTX ranges around the launch, outermost first", open.map(one => [shared(RANGE, "domain", one) || "NVTX", shared(RANGE, "name", one), () => on.pick({ type: RANGE, row: one })]));
  }
  function kernel(row) {
    const of = tables.kernels.class[row], layer = trace.layers.get(trace.layerOf(row)), told = doc.kernels[tables.kernels_classes.name[of]];
    const { median, count } = trace.median(row), named = trace.timesOf(tables.kernels_classes.name[of]), spent = tables.kernels.dur[row];
    const three = name => ["x", "y", "z"].map(axis => tables.kernels_classes[name + axis][of]).join(" × ");
    element("h2", layer ? layer.title : "Kernel without a layer", panel);
    rows(null, [
      ["kernel", shared(KERNEL, "name", row)], ["what it is", told.summary], ["patterns", told.patterns], ...at(KERNEL, row),
      ["median of those like it", count > 1 ? `${duration(median)} of ${count.toLocaleString("en")} (this one ${(spent / median).toFixed(2)} ×)` : null, null, `the same kernel${layer ? ", layer" : ""}, grid and graph node`],
      named.length > count && ["median of its name", `${duration(medianOf(named))} of ${named.length.toLocaleString("en")}`, null, doc.reduced ? "of those on this page" : "wherever it ran"],
      inferenceRow(tables.kernels.inference[row]),
    ]);
    const counted = measuredOf(row);
    if (counted) rows("Hardware counters (mean over the duration of all executions)", Object.entries(doc.metrics).map(([metric, title]) => counted[metric] && [title, typeof counted[metric] === "string" ? `not known: ${counted[metric]}` : withError(counted[metric])]));
    remarks(told, layer, doc.lanes[shared(KERNEL, "lane", row)].device);
    const sure = shared(KERNEL, "confidence", row) / 1000, method = shared(KERNEL, "method", row);
    rows("Layer, and the evidence for it", [
      ["layer", layer && layer.name, layer && (() => on.layer(layer.id))], ["part", (shared(KERNEL, "part", row) || "").replace("$$myelin$$", "")], ["part known from", doc.part_by[shared(KERNEL, "part_by", row)]],
      ["method", `${method}: ${doc.methods[method] || ""}`], ["how sure", method === "none" ? null : sure === 1 ? "exact" : sure.toFixed(2)],
      ["reason", shared(KERNEL, "reason", row)],
    ]);
    if (layer) layerRows(layer, "The layer in the engine");
    if (told.said.length || told.rest) rows("What its name says", [...told.said.map(([label, value, means]) => [label, value, null, means]), ["not understood", told.rest]]);
    launch(tables.kernels.launch[row], tables.kernels.start[row]);
    captured(row);
    rows("Grid and resources", [
      ["grid", three("grid_")], ["block", three("block_")], ["registers per thread", shared(KERNEL, "registers", row)],
      ["shared memory per block", `${(shared(KERNEL, "static_shared_bytes", row) + shared(KERNEL, "dynamic_shared_bytes", row)).toLocaleString("en")} bytes`],
      ...laneWords(KERNEL)(row), ["CUDA graph", shared(KERNEL, "graph_id", row)], ["graph node", shared(KERNEL, "graph_node_id", row)], ["kernel_id", tables.kernels.id[row]],
    ]);
  }
  /** When the node of a CUDA graph was captured, which a graph's launch replays, and the ranges around that, which name its layer. */
  function captured(row) {
    const node = shared(KERNEL, "graph_node_id", row), found = doc.nodes[`${doc.lanes[shared(KERNEL, "lane", row)].pid} ${node}`];
    if (!found) return;
    const [time, thread] = found;
    rows("The capture of its graph node", [["node", node], ["captured", duration(time, 10), null, `${inReport(doc, time)} in the report`], ["thread", doc.threads[thread]?.tid]]);
    const open = thread < 0 ? [] : trace.rangesAt(thread, time);
    rows("NVTX ranges around that capture, outermost first", open.length ? open.map(one => [shared(RANGE, "domain", one) || "NVTX", shared(RANGE, "name", one), () => on.pick({ type: RANGE, row: one })]) : [["", "none is on this page"]]);
  }
  /** What a kernel's name says beside its GPU and its layer: facts, none of them a finding. */
  function remarks(told, layer, device) {
    const has = doc.capabilities[device], older = told.arch && has && (told.arch[0] - has[0] || told.arch[1] - has[1]) < 0;
    rows("What to know of it", [
      older && ["architecture", `written for compute capability ${told.arch.join(".")}; this GPU has ${has.join(".")}`, null, "Common, and no defect: it runs on later GPUs too, without the instructions that came with them."],
      layer && layer.precision && told.types.length && !told.types.includes(layer.precision) &&
        ["data type", `the engine file says ${layer.precision}, this kernel's name only ${told.types.join(", ")}`, null, "It may be one step of the layer, or not do what its name says."],
    ]);
  }
  const measured = new Map(doc.measured.map(([device, sequence, position, told]) => [`${device} ${sequence} ${position}`, told]));
  function measuredOf(row) {
    const inference = tables.kernels.inference[row];
    if (inference < 0 || !measured.size) return null;
    return measured.get(`${doc.lanes[shared(KERNEL, "lane", row)].device} ${tables.inferences.kernel_sequence[inference]} ${tables.kernels.position[row]}`);
  }
  /** All counters at a moment, and what ran then. */
  function sampled({ lane, time }, lanes) {
    open();
    const { gpu } = lane, at = after(lane.start, time) - 1;
    element("h2", `Hardware counters of GPU ${gpu.device}`, panel);
    if (at < 0 || time > lane.end[at]) return element("p", "No samples here.", panel, "note");
    rows(null, [["sampled from", duration(lane.start[at], 10)], ["for", duration(lane.end[at] - lane.start[at])], gpu.each > 1 ? ["mean of", counted(gpu.each, "sample")] : null]);
    rows(null, lanes.filter(one => one.gpu === gpu).map(one => [one.metric.title, one.values[at] < 0 ? "no value" : measuredWords(one, one.values[at]), null]));
    const ran = [];
    for (const one of lanes) {
      if (one.type !== KERNEL || one.device !== gpu.device) continue;
      for (let place = after(one.reach, lane.start[at]); place < one.start.length && one.start[place] < lane.end[at] && ran.length < 40; place++) if (one.end[place] > lane.start[at]) ran.push({ type: one.types[place], row: one.row[place] });
    }
    rows("What ran at that time", ran.map(event => [duration(trace.endOf(event.type, event.row) - trace.startOf(event.type, event.row)), trace.titleOf(event.type, event.row), () => on.pick(event)]));
    element("p", `nsys sampled the whole GPU ${Math.round(gpu.frequency).toLocaleString("en")} times a second.` + (gpu.aligned ? "" : " The samples' clock could not be aligned with the kernels': they may be off by a few µs."), panel, "note");
    panel.scrollTop = 0;
  }
  function layerRows(layer, heading) {
    rows(heading, [
      ["kind", layer.kind], ["type", layer.type], ["data type", layer.precision], ["tactic", layer.tactic], ["reformat for", layer.origin],
      [doc.mean, layer.time === null ? null : duration(layer.time)], ["share of kernel time", layer.share === null ? null : percent(layer.share)],
      ["trtexec's profile", layer.trtexec === null ? null : duration(layer.trtexec)],
      ["of roofline", layer.fraction === null ? null : percent(layer.fraction), null, layer.bound === null ? null : `at least ${duration(layer.bound)}`], ["limited by", layer.verdict && layer.verdict.replace("-bound", "") + (layer.counted ? ", measured" : ""), null, layer.reason],
      layer.differs && ["counters and engine file", layer.differs],
      ["ONNX nodes", layer.onnx],
      ...Object.entries(doc.metrics).map(([metric, title]) => layer.measured && layer.measured[metric] && [title, withError(layer.measured[metric])]),
    ]);
  }
  function layer(id) {
    const one = trace.layers.get(id);
    open();
    element("h2", one.title, panel);
    rows(null, [["layer", one.name], ["#", one.index], ["engine", one.engine === null ? null : doc.engines[one.engine]]]);
    layerRows(one, null);
    const ran = doc.kernel_time.filter(row => row.layer === id);
    rows(`Its kernels (${doc.mean})`, ran.map(row => [kernelsWords(row), `${row.summary}\n${row.name}`]));
    for (const name of new Set(ran.map(row => row.name))) { const at = doc.texts.kernels_classes.name.indexOf(name); if (at >= 0) remarks(doc.kernels[at], one, Object.keys(doc.capabilities)[0]); }
    const found = doc.findings.filter(finding => finding.layers.includes(id));
    rows("Findings about it", found.map(finding => [finding.severity, finding.rule, () => on.finding(finding.number)]));
    const tools = element("p", null, panel);
    button("first kernel in the timeline", tools, () => on.first(id));
    if (one.engine !== null && one.index !== null) { tools.append(" · "); button("in the engine graph", tools, () => on.graph(id)); }
  }
  function kernelsWords({ kernels, time }) { return `${duration(time)} in ${counted(+kernels.toFixed(2), "kernel")}`; }
  /** Several layers: those that a finding is about, or that are alike. */
  function layers(ids, title) {
    open();
    element("h2", title, panel);
    if (!ids.length) return element("p", "It is not about particular layers.", panel, "note");
    const mine = ids.map(id => trace.layers.get(id)), chosen = new Set(ids), kernels = new Map();
    const sum = column => mine.every(one => one[column] === null) ? null : mine.reduce((total, one) => total + (one[column] || 0), 0), only = column => [...new Set(mine.map(one => one[column]).filter(Boolean))].join(", ");
    const time = sum("time"), share = sum("share");
    rows(null, [
      [doc.mean, time === null ? null : duration(time), null, "the sum of theirs"], ["share of kernel time", share === null ? null : percent(share)], ["kind", only("kind")], ["type", only("type")],
      ["data type", only("precision")],
    ]);
    for (const row of doc.kernel_time) if (chosen.has(row.layer)) kernels.set(row.name, { summary: row.summary, kernels: row.kernels + (kernels.get(row.name)?.kernels || 0), time: row.time + (kernels.get(row.name)?.time || 0) });
    const ran = [...kernels].sort(([, one], [, two]) => two.time - one.time);
    rows(`Their kernels (${doc.mean})`, ran.map(([name, one]) => [kernelsWords(one), `${one.summary}\n${name}`]));
    rows(`${counted(ids.length, "layer")}, marked in every figure`, mine.map(one => [one.time === null ? one.kind : duration(one.time), one.title, () => on.layer(one.id)]));
    button("first kernel in the timeline", element("p", null, panel), () => on.first(ids[0]));
  }
  function copy(row, type) {
    const table = tables[TABLES[type]];
    element("h2", trace.titleOf(type, row), panel);
    rows(null, [
      ...at(type, row), ["bytes", table.bytes[row].toLocaleString("en")], ["rate", table.dur[row] > 0 ? `${(table.bytes[row] / table.dur[row]).toFixed(2)} GB/s` : null],
      ["from", shared(type, "source", row)], ["to", shared(type, "target", row)], ["requested by", shared(type, "api", row)], ...laneWords(type)(row),
    ]);
    launch(table.launch[row], table.start[row]);
  }
  function gap(row) {
    const cause = shared(GAP, "cause", row), call = tables.gaps.call[row], before = tables.gaps.before[row], after = tables.gaps.after[row];
    element("h2", `GPU ${shared(GAP, "device", row)} idle: ${doc.causes[cause].name}`, panel);
    rows(null, [["what it means", doc.causes[cause].words], ...at(GAP, row), inferenceRow(tables.gaps.inference[row])]);
    rows("Evidence", [
      ["on the host", shared(GAP, "evidence", row), call >= 0 ? () => on.pick({ type: CALL, row: call }) : null], ["thread", doc.threads[shared(GAP, "thread", row)]?.tid],
      ["began", call >= 0 ? duration(tables.calls.start[call], 10) : tables.gaps.evidence_dur[row] >= 0 ? duration(tables.gaps.evidence[row], 10) : null],
      ["took", call >= 0 ? duration(tables.calls.dur[call]) : tables.gaps.evidence_dur[row] >= 0 ? duration(tables.gaps.evidence_dur[row]) : null],
    ]);
    const thread = shared(GAP, "thread", row), began = tables.gaps.start[row], ended = tables.gaps.end[row], ranges = thread < 0 ? [] : trace.rangesAt(thread, began), around = ranges[ranges.length - 1];
    if (thread >= 0) rows("What that thread did meanwhile", [
      ["in CUDA calls", `${duration(trace.inCalls(thread, began, ended))} of ${duration(ended - began)}`],
      around !== undefined && ["innermost range when it began", shared(RANGE, "name", around), () => on.pick({ type: RANGE, row: around })],
    ]);
    rows("Between", [
      before >= 0 && ["before", trace.kernelWords(before), () => on.pick({ type: KERNEL, row: before })], after >= 0 && ["after", trace.kernelWords(after), () => on.pick({ type: KERNEL, row: after })],
    ]);
  }
  function call(row) {
    element("h2", shared(CALL, "api", row), panel);
    rows(null, [...at(CALL, row), ["kind", shared(CALL, "kind", row)], ["thread", doc.threads[shared(CALL, "thread", row)]?.tid]]);
    const launched = [];
    for (let one = 0; one < tables.kernels.rows && launched.length < 60; one++) if (tables.kernels.launch[one] === row) launched.push(one);
    rows("Launched", launched.map(one => [duration(tables.kernels.dur[one]), trace.kernelWords(one), () => on.pick({ type: KERNEL, row: one })]));
    rows("NVTX ranges around it, outermost first", trace.rangesAt(shared(CALL, "thread", row), tables.calls.start[row]).map(one => [shared(RANGE, "domain", one) || "NVTX", shared(RANGE, "name", one)]));
  }
  function inference(row) {
    const all = tables.inferences, like = doc.groups.find(one => one.id === all.group[row]);
    element("h2", `${doc.one[0].toUpperCase()}${doc.one.slice(1)} ${row}`, panel);
    if (!all.shown[row]) element("p", "The trace is too long: this inference's events are not on this page.", panel, "note");
    const begun = all.start[row], waited = begun - trace.waitOf(row), timed = all.time[row] >= 0;
    rows(null, [
      ["engine", all.engine[row] < 0 ? null : doc.engines[all.engine[row]]], all.warmup[row] ? ["excluded", "warm-up"] : null, all.complete[row] ? null : ["excluded", "cut by the capture"],
      timed && ["time", duration(all.time[row]), null, "from the end of the one before on its thread to its own"],
      timed && waited > 0 && ["of it waiting to begin", duration(waited), null, "the line before it in the timeline"], like && timed && ["of its kind", `median ${duration(like.median)}, this one ${timesWords(all.time[row] / like.median, doc.outlier).replace(" ", "\u00a0")}`],
      ["its box in the timeline", duration(all.end[row] - all.start[row]), null, "from its first call or GPU work to its last"],
      ["GPU time", all.gpu_busy[row] < 0 ? null : duration(all.gpu_busy[row])], ["first to last GPU work", all.gpu_start[row] < 0 ? null : duration(all.gpu_end[row] - all.gpu_start[row])],
      ["enqueue", all.enqueue_start[row] < 0 ? null : duration(all.enqueue_end[row] - all.enqueue_start[row])], ["idle", all.idle[row] < 0 ? null : duration(all.idle[row])],
      ["more idle than the median", all.cause[row] < 0 ? null : `${duration(all.extra[row])} ${doc.causes[doc.texts.inferences.cause[all.cause[row]]].name}`, null, trace.artefact(row) ? ARTEFACT : null], longestOf(row), ["kernels", doc.hidden && !all.kernels[row] ? "hidden" : all.kernels[row]],
    ]);
    counters(...trace.windowOf({ inference: row, range: null }), all.device[row]);
  }
  /** The longest idle interval, in an inference, of the cause that it has more of than the median. */
  function longestOf(row) {
    const { cause } = tables.inferences, all = cause[row] < 0 ? [] : trace.idleIn(row, doc.texts.inferences.cause[cause[row]]);
    if (!all.length) return null;
    const length = one => trace.endOf(GAP, one) - trace.startOf(GAP, one), longest = all.reduce((best, one) => length(one) > length(best) ? one : best), next = tables.gaps.after[longest];
    return ["the longest of that", `${duration(length(longest))}${next < 0 ? "" : ` before ${trace.kernelWords(next)}`}`, () => on.pick({ type: GAP, row: longest }), `of ${counted(all.length, "interval")}`];
  }
  /** The sampled counters of a GPU, or of all, as means over a part of time. */
  function counters(from, to, device = -1) {
    const sampled = trace.lanes.filter(lane => lane.type === METRIC && (device < 0 || lane.device === device)).map(lane => [lane, meanIn(lane, from, to)]).filter(([, found]) => found);
    rows("Hardware counters, mean over that time", sampled.map(([lane, { mean }]) => [`${lane.metric.title}${doc.devices > 1 ? `, GPU ${lane.device}` : ""}`, measuredWords(lane, mean)]));
  }
  /** What ran in a part of time. */
  function range([from, to]) {
    open();
    const chosen = { range: [from, to], inference: null, layer: null, layers: null }, ran = trace.summed(chosen, () => 0).get(0), { found } = trace.idle(chosen);
    element("h2", `${duration(to - from)} from ${duration(from, 1000)}`, panel);
    rows(null, [["in the report", `--since ${inReport(doc, from).replace(" ", "")} --until ${inReport(doc, to).replace(" ", "")}`], ran && ["kernels", ran.kernels.toLocaleString("en"), null, `${duration(ran.time)} in all`], ...[...found].sort(([, one], [, two]) => two.time - one.time).map(([cause, { time }]) => [`idle, ${doc.causes[cause].name}`, duration(time)])]);
    counters(from, to);
    panel.scrollTop = 0;
  }
  function leftOut(row) {
    element("h2", "Not shown event by event", panel);
    rows(null, [...at(LEFT_OUT, row), ["pieces of GPU work", tables.left_out.count[row].toLocaleString("en")], ["their time", duration(tables.left_out.busy[row])]]);
    element("p", doc.reduced, panel, "note");
  }
  function plain(row, type) {
    element("h2", trace.titleOf(type, row), panel);
    rows(null, [...at(type, row), type === RANGE && ["domain", shared(RANGE, "domain", row) || "default"], type === GRAPH && ["graph", shared(GRAPH, "graph_id", row)]]);
    if (type === GRAPH) launch(tables.graphs.launch[row], tables.graphs.start[row]);
  }
  function open() {
    document.body.classList.remove("quiet");
    panel.replaceChildren();
    button("×", panel, close, "close").setAttribute("aria-label", "close the details");
  }
  function close() {
    document.body.classList.add("quiet");
    panel.replaceChildren();
  }
  return {
    close, sampled, range,
    event(event) {
      open();
      PICTURED[event.type](event.row, event.type);
      panel.scrollTop = 0;
    },
    layer, layers,
  };
}
