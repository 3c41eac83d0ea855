// The trace as the page's script works with it: events by table, lanes that the timeline draws, and what lies in a selection.

const KERNEL = 0, COPY = 1, FILL = 2, GRAPH = 3, LEFT_OUT = 4, GAP = 5, CALL = 6, RANGE = 7, INFERENCE = 8, OSRT = 9, OVERHEAD = 10;
const ON_GPU = new Set([COPY, FILL, GRAPH]);
const TABLES = ["kernels", "copies", "fills", "graphs", "left_out", "gaps", "calls", "ranges", "inferences", "osrt", "overheads"];

/** The index of the first of the ascending `values` that is greater than `wanted`. */
function after(values, wanted, low = 0, high = values.length) {
  while (low < high) {
    const middle = (low + high) >> 1;
    if (values[middle] > wanted) high = middle; else low = middle + 1;
  }
  return low;
}

function traceOf(doc, tables) {
  for (const name of TABLES) {
    const table = tables[name];
    if (name === "gaps" || name === "inferences") continue;
    table.end = Float64Array.from(table.start, (start, row) => start + table.dur[row]);
  }
  const { gaps, kernels, inferences } = tables;
  gaps.start = Float64Array.from(gaps.from, (from, row) => from + (gaps.before[row] < 0 ? 0 : kernels.end[gaps.before[row]]));
  gaps.end = Float64Array.from(gaps.to, (to, row) => (gaps.after[row] < 0 ? 0 : kernels.start[gaps.after[row]]) - to);
  const text = (table, column, row) => {
    const code = tables[table][column][row];
    return code < 0 ? null : doc.texts[table][column][code];
  };
  const shared = (type, column, row) => {  // a value of an event's class: a text, or a number
    const table = TABLES[type] + "_classes", at = tables[TABLES[type]].class[row];
    return column in (doc.texts[table] || {}) ? text(table, column, at) : tables[table][column][at];
  };
  const layerOf = row => tables.kernel_layer[kernels.class[row]];
  tables.kernel_layer = tables.kernels_classes.layer_id;
  const layers = new Map(doc.layers.map(layer => [layer.id, layer]));
  const lanes = lanesOf(doc, tables, shared);

  function kernelTitle(row) {
    const code = tables.kernels_classes.name[kernels.class[row]];
    return doc.kernels[code].summary;
  }
  /** The layer, or what the kernel is if it has none. */
  function kernelWords(row) {
    const layer = layers.get(layerOf(row));
    return layer ? layer.title : kernelTitle(row);
  }
  function titleOf(type, row) {
    if (type === KERNEL) return kernelWords(row);
    if (type === COPY) return "copy " + shared(COPY, "kind", row);
    if (type === FILL) return "memset";
    if (type === GRAPH) return "CUDA graph, its kernels hidden";
    if (type === LEFT_OUT) return `${tables.left_out.count[row].toLocaleString("en")} not shown event by event`;
    if (type === GAP) return doc.causes[shared(GAP, "cause", row)].name;
    if (type === CALL) return shared(CALL, "api", row);
    if (type === INFERENCE) return `${doc.one} ${row}` + (inferences.warmup[row] ? " (warm-up)" : "");
    return shared(type, "name", row);
  }
  function startOf(type, row) { return tables[TABLES[type]].start[row]; }
  function endOf(type, row) { return tables[TABLES[type]].end[row]; }

  /** Whether the selection (a layer, an inference, an interval) contains an event. */
  function chosenBy(selection) {
    const { inference, range, found } = selection, chosen = chosenLayers(selection), mine = inference === null ? null : alongside(inference);
    return (type, row) => {
      if (found && !found(type, row)) return false;
      if (range && (endOf(type, row) <= range[0] || startOf(type, row) >= range[1])) return false;
      if (inference !== null) {
        if (type === KERNEL) { if (kernels.inference[row] !== inference) return false; }
        else if (type === INFERENCE) { if (row !== inference) return false; }
        else if (!mine(type, row)) return false;
      }
      if (chosen) {
        if (type === KERNEL) return chosen.has(layerOf(row));
        if (type === GAP) return chosen.has(layerAfter(row));
        if (type === CALL) { for (const layer of launchedFor(row)) if (chosen.has(layer)) return true; return false; }
        return type === INFERENCE;
      }
      return true;
    };
  }
  /** A test whether an event is in the time of an inference, and on its GPU or its thread. */
  function alongside(inference) {
    const [from, to] = windowOf({ range: null, inference }), device = inferences.device[inference], thread = inferences.thread[inference];
    return (type, row) => {
      if (endOf(type, row) <= from || startOf(type, row) >= to) return false;
      const on = type === GAP ? shared(GAP, "device", row) : type === LEFT_OUT ? doc.lanes[tables.left_out.lane[row]].device : ON_GPU.has(type) ? doc.lanes[shared(type, "lane", row)].device : -1;
      return on >= 0 ? device < 0 || on === device : thread < 0 || shared(type, "thread", row) === thread;
    };
  }
  /** The layer of the kernel at whose begin idle time ends; -1 for none. */
  function layerAfter(gap) { return gaps.after[gap] < 0 ? -1 : layerOf(gaps.after[gap]); }
  let launched = null;
  function launchedFor(call) {
    if (!launched) {
      launched = new Map();
      for (let row = 0; row < kernels.rows; row++) {
        const at = kernels.launch[row];
        if (at < 0) continue;
        if (!launched.has(at)) launched.set(at, new Set());
        launched.get(at).add(layerOf(row));
      }
    }
    return launched.get(call) || NONE;
  }

  /** The first and last of the rows among which the kernels of a selection are: they are by start, `reach` is the latest end so far. */
  let reach = null;
  function kernelsIn({ range, inference }) {
    const [from, to] = range || (inference !== null && inferences.gpu_start[inference] >= 0 ? [inferences.gpu_start[inference], inferences.gpu_end[inference]] : [-Infinity, Infinity]);
    if (!reach) { reach = Float64Array.from(kernels.end); for (let row = 1; row < reach.length; row++) reach[row] = Math.max(reach[row], reach[row - 1]); }
    return [after(reach, from - 1), after(kernels.start, to)];
  }
  /** Kernels of the selection by what `keyOf(row)` gives: {key: {time, kernels, each: their times, cut: whether the interval cuts one}}; of those that it cuts, what is in it counts. */
  function summed(selection, keyOf) {
    const passes = chosenBy({ ...selection, found: null }), found = new Map(), [first, last] = kernelsIn(selection), [from, to] = selection.range || [-Infinity, Infinity];
    for (let row = first; row < last; row++) {
      if (!passes(KERNEL, row)) continue;
      const key = keyOf(row), spent = Math.min(kernels.end[row], to) - Math.max(kernels.start[row], from);
      if (!found.has(key)) found.set(key, { time: 0, kernels: 0, each: [], cut: false });
      const sum = found.get(key);
      sum.time += spent;
      sum.kernels++;
      sum.each.push(spent);
      sum.cut ||= spent < kernels.dur[row];
    }
    return found;
  }
  /** Idle time of the selection by cause, and its window: of an inference that of its GPU, otherwise of all; of layers that directly before their kernels. */
  function idle(selection) {
    const [from, to] = windowOf(selection), found = new Map(), chosen = chosenLayers(selection), device = selection.inference === null ? -1 : inferences.device[selection.inference];
    for (let row = 0; row < gaps.rows; row++) {
      if ((device >= 0 && shared(GAP, "device", row) !== device) || (chosen && !chosen.has(layerAfter(row)))) continue;
      const time = Math.min(gaps.end[row], to) - Math.max(gaps.start[row], from);
      if (time <= 0) continue;
      const cause = shared(GAP, "cause", row), sum = found.get(cause) || { time: 0, gaps: 0 };
      sum.time += time;
      sum.gaps++;
      found.set(cause, sum);
    }
    return { found, window: to - from, devices: device < 0 ? doc.devices : 1 };
  }
  /** The idle intervals of a cause in the time of an inference, on its GPU. */
  function idleIn(inference, cause) {
    const inside = chosenBy({ inference, range: null, layer: null, layers: null, found: null });
    return [...gaps.start.keys()].filter(row => shared(GAP, "cause", row) === cause && inside(GAP, row));
  }
  function windowOf({ range, inference }) {
    if (range) return range;
    if (inference === null) return [0, doc.duration];
    return inferences.time[inference] < 0 ? [inferences.start[inference], inferences.end[inference]] : [waitOf(inference), waitOf(inference) + inferences.time[inference]];
  }
  /** When the inference before ended, from which on its time counts; its own beginning where none came before. */
  function waitOf(inference) {
    const time = inferences.time[inference], ended = inferences.gpu_end[inference];
    return time < 0 ? inferences.start[inference] : (ended < 0 ? inferences.end[inference] : ended) - time;
  }
  /** Whether most of what an inference took longer than the median of its kind is the profiler's own work. */
  function artefact(inference) {
    const { cause, extra, time, group } = inferences, like = doc.groups.find(one => one.id === group[inference]);
    return cause[inference] >= 0 && doc.texts.inferences.cause[cause[inference]] === "profiler" && Boolean(like) && 2 * extra[inference] > time[inference] - like.median;
  }
  /** The times of all executions of a kernel name that the page shows, ascending. */
  function timesOf(name) {
    return [...kernels.dur].filter((_, row) => tables.kernels_classes.name[kernels.class[row]] === name).sort((one, two) => one - two);
  }
  /** Other executions of the same kernel with the same grid for the same layer: their median. */
  function median(row) {
    const times = [];
    for (let other = 0; other < kernels.rows; other++) if (kernels.class[other] === kernels.class[row]) times.push(kernels.dur[other]);
    times.sort((one, two) => one - two);
    return { median: medianOf(times), count: times.length };
  }
  /** The NVTX ranges of a thread that are open at a time, the outermost first. */
  function rangesAt(thread, moment) {
    const found = [];
    for (const lane of lanes) {
      if (lane.thread !== thread || lane.type !== RANGE) continue;
      const at = after(lane.start, moment) - 1;
      if (at >= 0 && lane.end[at] >= moment) found.push(lane.row[at]);
    }
    return found;
  }
  /** How long a thread was in CUDA calls within a part of time; a call within another counts once. */
  function inCalls(thread, from, to) {
    let total = 0;
    for (const lane of lanes) {
      if (lane.thread !== thread || lane.type !== CALL) continue;
      let reached = from;
      for (let at = after(lane.reach, from); at < lane.start.length && lane.start[at] < to; at++) {
        total += Math.max(0, Math.min(lane.end[at], to) - Math.max(lane.start[at], reached));
        reached = Math.max(reached, lane.end[at]);
      }
    }
    return total;
  }
  return {
    doc, tables, lanes, layers, shared, text, layerOf, kernelTitle, kernelWords, titleOf, startOf, endOf, chosenBy, summed, idle, idleIn, windowOf, waitOf, median, timesOf, artefact,
    rangesAt, inCalls,
  };
}
/** Whether a selection leaves out some of the kernels: an inference, an interval or layers. */
function isPart(selection) {
  return Boolean(selection && (selection.range || selection.inference !== null || chosenLayers(selection)));
}
/** The layers of a selection: those of a finding, or one; null if it has none. */
function chosenLayers({ layer, layers }) {
  return layers ? new Set(layers) : layer === null ? null : new Set([layer]);
}
const NONE = new Set(), DEEPEST = 24, ARTEFACT = "most of the difference: an artefact of profiling, not of the program";

/** What the timeline draws, from top to bottom.  A lane's events are sorted by start. */
function lanesOf(doc, tables, shared) {
  const lanes = [];
  const add = (lane, events) => {  // events: [type, row] pairs as numbers type * 2^32 + row
    if (!events.length) return;
    const start = new Float64Array(events.length), end = new Float64Array(events.length);
    const type = new Uint8Array(events.length), row = new Int32Array(events.length);
    const busy = new Float64Array(events.length + 1), reach = new Float64Array(events.length);
    events.forEach(([kind, at], place) => {
      start[place] = tables[TABLES[kind]].start[at];
      end[place] = tables[TABLES[kind]].end[at];
      type[place] = kind;
      row[place] = at;
      busy[place + 1] = busy[place] + (kind === LEFT_OUT ? tables.left_out.busy[at] : end[place] - start[place]);
      reach[place] = Math.max(end[place], place ? reach[place - 1] : -Infinity);
    });
    const apart = start.every((from, place) => !place || from >= reach[place - 1]);
    lanes.push({ ...lane, start, end, types: type, row, busy, reach, apart });
  };
  const sorted = events => events.sort((one, two) => tables[TABLES[one[0]]].start[one[1]] - tables[TABLES[two[0]]].start[two[1]]);
  const split = (type, key) => {  // events of a table by the result of `key`
    const found = new Map();
    for (let row = 0; row < tables[TABLES[type]].rows; row++) {
      const value = key(row);
      if (!found.has(value)) found.set(value, []);
      found.get(value).push([type, row]);
    }
    return found;
  };
  const laneOf = type => split(type, type === LEFT_OUT ? row => tables.left_out.lane[row] : row => shared(type, "lane", row));
  const work = [KERNEL, COPY, FILL, GRAPH, LEFT_OUT].map(laneOf);
  const idle = split(GAP, row => shared(GAP, "device", row));
  const inferences = split(INFERENCE, row => tables.inferences.thread[row]);
  const several = doc.threads.length > 1;
  const first = ([thread, events]) => [tables.inferences.device[events[0][1]], thread];
  for (const [thread, events] of [...inferences].sort((one, two) => first(one)[0] - first(two)[0] || first(one)[1] - first(two)[1])) {
    const gpus = new Set(events.map(([, row]) => tables.inferences.device[row])), gpu = doc.devices > 1 && gpus.size === 1 && !gpus.has(-1) ? `, GPU ${[...gpus][0]}` : "";
    const name = `${doc.one}s${gpu}` + (several && thread >= 0 ? `, thread ${doc.threads[thread].tid}` : "");
    stacked(tables, events).forEach((part, depth) => add({ name: depth ? "" : name, type: INFERENCE, height: 18, thread: -2 }, part));
  }
  for (const device of [...new Set(doc.lanes.map(lane => lane.device))].sort((one, two) => one - two)) {
    const label = `GPU ${device}`;
    add({ name: `${label} idle, by cause`, type: GAP, height: 20, device }, idle.get(device) || []);
    const own = doc.lanes.map((lane, number) => ({ lane, number, events: sorted(work.flatMap(found => found.get(number) || [])) })).filter(one => one.lane.device === device);
    for (const one of own) one.busy = one.events.reduce((sum, [kind, row]) => sum + (kind === LEFT_OUT ? tables.left_out.busy[row] : tables[TABLES[kind]].end[row] - tables[TABLES[kind]].start[row]), 0);
    for (const { lane, number, events } of own.sort((one, two) => two.busy - one.busy || one.number - two.number)) {  // the stream with the most work is seen first
      const where = (new Set(doc.lanes.map(other => other.pid)).size > 1 ? ` pid ${lane.pid}` : "")
        + (doc.lanes.filter(other => other.device === device && other.pid === lane.pid && other.stream === lane.stream).length > 1 ? ` context ${lane.context}` : "");
      add({ name: `${label} stream ${lane.stream}${where}`, type: KERNEL, height: 34, device, stream: number }, events);
    }
    lanes.push(...sampleLanes(doc, tables, device));
  }
  const ranges = split(RANGE, row => shared(RANGE, "thread", row));
  const calls = split(CALL, row => shared(CALL, "thread", row));
  const others = [OSRT, OVERHEAD].map(type => split(type, row => shared(type, "thread", row)));
  const rank = thread => inferences.has(thread) ? 0 : calls.has(thread) || ranges.has(thread) ? 1 : 2;  // who runs inferences stands next to the GPU
  for (const thread of [...doc.threads.keys()].sort((one, two) => rank(one) - rank(two) || one - two)) {
    const { tid } = doc.threads[thread];
    stacked(tables, ranges.get(thread) || []).forEach((part, depth) => {
      const name = depth === DEEPEST ? `${counted(part.length, "range")} deeper` : depth ? "" : `thread ${tid} NVTX`;
      add({ name, type: RANGE, height: 16, thread }, part);
    });
    add({ name: `thread ${tid} CUDA calls`, type: CALL, height: 18, thread }, calls.get(thread) || []);
    ["OS runtime", "profiler"].forEach((what, at) => add({ name: `thread ${tid} ${what}`, type: at ? OVERHEAD : OSRT, height: 14, thread }, others[at].get(thread) || []));
  }
  return lanes;
}

/** Nested events as rows without overlaps, the outermost first; everything that is nested too deeply shares the last row. */
function stacked(tables, events) {
  const rows = [], reached = [];
  const { start: starts, end: ends } = events.length ? tables[TABLES[events[0][0]]] : {};
  events.sort((one, two) => starts[one[1]] - starts[two[1]] || ends[two[1]] - ends[one[1]]);
  for (const event of events) {
    const start = starts[event[1]], end = ends[event[1]];
    let depth = 0;
    while (depth < reached.length && reached[depth] > start) depth++;
    if (depth >= DEEPEST) { (rows[DEEPEST] ??= []).push(event); continue; }
    if (depth === rows.length) { rows.push([]); reached.push(0); }
    reached[depth] = end;
    for (let deeper = depth + 1; deeper < reached.length; deeper++) reached[deeper] = Math.min(reached[deeper], start);
    rows[depth].push(event);
  }
  return rows;
}
