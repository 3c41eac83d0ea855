// The timeline: lanes of events on a canvas.  Events narrower than a pixel are drawn as the share of each pixel's time that they take.

const GUTTER = Math.min(168, Math.round(window.innerWidth / 4)), RULER = 22, GAP_BETWEEN = 3, NEXT_TEXT = 26;

/** Draws the trace's lanes into `place`; `on.pick(event)`, `on.range(range)` and `on.move()` are called for the reader's actions. */
function timelineOf(trace, place, on) {
  const canvas = place.querySelector("canvas"), tip = byId("tip");
  const pen = canvas.getContext("2d");
  const end = trace.doc.duration;
  const ink = {};
  let view = { from: 0, to: end }, width = 0, mode = "kind", selection = null, passes = null, picked = null, asked = false;
  const lanes = trace.lanes;
  let height = RULER;
  for (const lane of lanes) { lane.top = height; height += lane.height + GAP_BETWEEN; }
  canvas.style.height = height + "px";

  function colours() {
    const style = getComputedStyle(document.documentElement);
    const probe = document.createElement("i");
    document.body.append(probe);
    for (const name of ["ground", "panel", "ink", "faint", "rule", "accent", "edge"]) {
      probe.style.color = `var(--${name})`;
      ink[name] = getComputedStyle(probe).color;
    }
    probe.remove();
    ink.dark = isDark();
    ink.sans = style.getPropertyValue("--sans");
  }
  /** Follows the width of its place: what is shown keeps its scale, so that nothing moves below the mouse. */
  function resize() {
    const ratio = window.devicePixelRatio || 1, wide = place.clientWidth;
    if (wide === width && canvas.width === Math.round(width * ratio)) return;
    const scaled = (view.to - view.from) * (wide - GUTTER) / (width - GUTTER);
    const kept = width > GUTTER && wide > GUTTER && (view.from > 0 || view.to < end) ? scaled : 0;
    width = wide;
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    if (kept) {
      const past = picked ? trace.startOf(picked.type, picked.row) - (view.from + kept * 0.98) : 0;
      const from = view.from + Math.max(past > 0 && trace.startOf(picked.type, picked.row) < view.to ? past : 0, 0);
      set(from, from + kept);
      draw();
    } else redraw();
  }
  const toX = time => GUTTER + (time - view.from) * (width - GUTTER) / (view.to - view.from);
  const toTime = x => view.from + (x - GUTTER) * (view.to - view.from) / (width - GUTTER);
  function redraw() {
    if (asked) return;
    asked = true;
    requestAnimationFrame(() => { asked = false; draw(); });
  }

  function fillOf(type, row) {
    if (ink.dark && type === RANGE) return trace.shared(RANGE, "domain", row) === "TensorRT" ? "#38526f" : "#3d454e";
    if (ink.dark && type === INFERENCE) return trace.tables.inferences.warmup[row] || !trace.tables.inferences.complete[row] ? "#555d66" : row % 2 ? "#41699b" : "#33557f";
    return ink.dark ? onDark(plainFill(type, row)) : plainFill(type, row);
  }
  function plainFill(type, row) {
    const { doc, tables } = trace;
    if (type === KERNEL) {
      const of = tables.kernels.class[row];
      if (mode === "kind") return doc.kinds[doc.kernel_kinds[of]].fill;
      const layer = trace.layerOf(row);
      return layer < 0 ? doc.kinds[doc.kinds.length - 1].fill : LAYER_FILLS[layer % LAYER_FILLS.length];
    }
    if (type === GAP) return doc.causes[trace.shared(GAP, "cause", row)].fill;
    if (type === RANGE) return trace.shared(RANGE, "domain", row) === "TensorRT" ? "#c7d7ea" : "#dfe3e8";
    if (type === CALL) return CALL_FILLS[trace.shared(CALL, "kind", row)] || "#c3c9d0";
    if (type === INFERENCE) return trace.tables.inferences.warmup[row] || !trace.tables.inferences.complete[row] ? "#c3c9d0" : row % 2 ? "#8fb3dc" : "#b3cdea";
    return FILLS[type];
  }

  function draw() {
    const begun = performance.now();
    pen.fillStyle = ink.ground;
    pen.fillRect(0, 0, width, height);
    ruler();
    pen.save();
    pen.beginPath();
    pen.rect(GUTTER, RULER, width - GUTTER, height);
    pen.clip();
    if (selection && selection.range) shade(selection.range);
    for (const lane of lanes) drawLane(lane);
    if (picked) flow();
    pen.restore();
    names();
    on.drawn(performance.now() - begun);
  }
  function shade([from, to]) {
    pen.fillStyle = ink.accent;
    pen.globalAlpha = 0.1;
    pen.fillRect(toX(from), RULER, toX(to) - toX(from), height);
    pen.globalAlpha = 1;
  }
  function drawLane(lane) {
    if (lane.type === METRIC) return drawSamples(lane);
    const { start, end: ends, types, row, busy, reach, top } = lane;
    const perPixel = (view.to - view.from) / (width - GUTTER);
    const stop = after(start, view.to);
    let at = after(reach, view.from);
    if (lane.type === INFERENCE) waits(lane, at, Math.min(stop + 1, start.length));
    while (at < stop) {
      const left = toX(start[at]), right = toX(ends[at]);
      if (right - left >= 1.5 || types[at] === LEFT_OUT) {
        box(lane, at, Math.max(left, GUTTER - 2), Math.min(right, width + 2));
        at++;
        continue;
      }
      const pixel = Math.floor(left), until = toTime(pixel + 1);
      let next = at + 1;
      if (next < stop && start[next] < until) next = after(start, until, next, stop);
      const wide = widest(lane, at, next, 1.5 * perPixel);
      if (wide >= 0) next = wide;  // drawn in its own turn
      let longest = at, hit = !passes;
      const step = Math.max(1, (next - at) >> 4);
      for (let one = at; one < next; one += passes ? 1 : step) {
        if (passes && !passes(types[one], row[one])) continue;
        if (!hit || ends[one] - start[one] > ends[longest] - start[longest]) longest = one;
        hit = true;
      }
      const share = Math.min(1, (busy[next] - busy[at]) / perPixel);
      const tall = Math.max(2, lane.height * (lane.type === KERNEL || lane.type === GAP ? Math.max(share, 0.15) : 1));
      pen.globalAlpha = hit ? 1 : 0.15;
      pen.fillStyle = fillOf(types[longest], row[longest]);
      pen.fillRect(pixel, top + lane.height - tall, 1, tall);
      at = next;
    }
    pen.globalAlpha = 1;
  }
  /** A line for the time that each inference waited since the one before it ended. */
  function waits({ row, start, top, height: tall }, from, to) {
    pen.fillStyle = ink.faint;
    for (let at = from; at < to; at++) {
      const left = Math.max(toX(trace.waitOf(row[at])), GUTTER), right = toX(start[at]);
      pen.globalAlpha = !passes || passes(INFERENCE, row[at]) ? 1 : 0.15;
      if (right - left >= 2) pen.fillRect(left, top + tall / 2, right - left, 1);
    }
  }
  /** The first of these events that is at least so long; -1 where none is.  Where none overlaps the next, only the last can be. */
  function widest(lane, from, to, least) {
    const { start, end: ends, types } = lane;
    for (let at = lane.apart ? to - 1 : from + 1; at < to; at++) if (at > from && (ends[at] - start[at] >= least || types[at] === LEFT_OUT)) return at;
    return -1;
  }
  function drawSamples(lane) {
    const bottom = lane.top + lane.height;
    pen.fillStyle = ink.panel;
    pen.fillRect(GUTTER, lane.top, width - GUTTER, lane.height);
    pen.fillStyle = ink.dark ? onDark(lane.fill) : lane.fill;
    const [from, to] = selection ? trace.windowOf(selection) : [0, end];
    for (let x = GUTTER; x < width; x++) {
      pen.globalAlpha = toTime(x + 1) > from && toTime(x) < to ? 1 : 0.15;
      const found = meanIn(lane, toTime(x), toTime(x + 1));
      if (!found) continue;
      const tall = Math.max(found.mean > 0 ? 1 : 0, lane.height * Math.min(1, found.mean / lane.highest));
      pen.fillRect(x, bottom - tall, 1, tall);
    }
    pen.globalAlpha = 1;
  }
  function box(lane, at, left, right) {
    const { types, row, top } = lane, tall = lane.height, type = types[at];
    const hit = !passes || passes(type, row[at]), wide = Math.max(1, right - left - (right - left > 4 ? 1 : 0));
    pen.globalAlpha = hit ? 1 : 0.15;
    const fill = fillOf(type, row[at]);
    pen.fillStyle = fill;
    if (type === LEFT_OUT) return hatched(lane, at, left, wide);
    pen.fillRect(left, top, wide, tall);
    if (fill === "#ffffff" && wide > 3) { pen.strokeStyle = ink.faint; pen.strokeRect(left + 0.5, top + 0.5, wide - 1, tall - 1); }
    if (picked && picked.type === type && picked.row === row[at]) {
      pen.globalAlpha = 1;
      pen.strokeStyle = ink.accent;
      pen.lineWidth = 3;
      pen.strokeRect(left, top + 1, wide, tall - 2);
      pen.lineWidth = 1;
    }
    if (wide > NEXT_TEXT && hit) {
      const dark = inkOn(fill);
      label(trace.titleOf(type, row[at]), left + 3, top + (type === KERNEL ? 13 : tall / 2 + 4), wide - 5, dark);
      if (type === KERNEL) label(trace.layers.has(trace.layerOf(row[at])) ? trace.kernelTitle(row[at]) : "no layer", left + 3, top + 27, wide - 5, dark, 0.8);
    }
    pen.globalAlpha = 1;
  }
  function hatched(lane, at, left, wide) {
    pen.strokeStyle = ink.faint;
    pen.globalAlpha = 0.5;
    pen.strokeRect(left + 0.5, lane.top + 4.5, Math.max(1, wide - 1), lane.height - 9);
    pen.globalAlpha = 1;
    if (wide > 60) label(trace.titleOf(LEFT_OUT, lane.row[at]), left + 4, lane.top + lane.height / 2 + 4, wide - 8, ink.faint);
  }
  function label(text, x, y, room, fill, alpha = 1) {
    const most = Math.floor(room / 5.7);
    if (most < 3) return;
    pen.font = `11px ${ink.sans}`;
    pen.fillStyle = fill;
    pen.globalAlpha *= alpha;
    pen.fillText(text.length <= most ? text : fitted(text, most), x, y, room);
    pen.globalAlpha /= alpha;
  }
  function names() {
    pen.fillStyle = ink.ground;
    pen.fillRect(0, 0, GUTTER - 1, height);
    pen.fillStyle = ink.rule;
    pen.fillRect(GUTTER - 1, 0, 1, height);
    label(`0 = ${duration(trace.doc.origin, 1000)} of the report`, 4, 13, GUTTER - 8, ink.faint);
    for (const lane of lanes) label(lane.name, 4, lane.top + lane.height / 2 + 4, GUTTER - 8, ink.ink);
  }
  function ruler() {
    const span = view.to - view.from, step = nice(span / Math.max(2, (width - GUTTER) / 110));
    for (let time = Math.ceil(view.from / step) * step; time <= view.to; time += step) {
      const x = Math.round(toX(time));
      pen.fillStyle = ink.rule;
      pen.fillRect(x, RULER - 6, 1, height);
      label(duration(time + 0, step), x + 3, 13, 105, ink.faint);
    }
  }
  /** The line from the launching call to the kernel. */
  function flow() {
    const launch = (trace.tables[TABLES[picked.type]].launch || [])[picked.row];
    if (launch === undefined || launch < 0) return;
    const mine = lanes.find(lane => lane.type === KERNEL && lane.stream === trace.shared(picked.type, "lane", picked.row));
    const host = lanes.find(lane => lane.type === CALL && lane.thread === trace.shared(CALL, "thread", launch));
    if (!mine || !host) return;
    const x = toX(trace.startOf(picked.type, picked.row)), y = mine.top + mine.height, from = toX(trace.tables.calls.start[launch]);
    pen.strokeStyle = ink.accent;
    pen.lineWidth = 1.5;
    pen.beginPath();
    pen.moveTo(from, host.top);
    pen.bezierCurveTo(from, (host.top + y) / 2, x, (host.top + y) / 2, x, y);
    pen.stroke();
    pen.lineWidth = 1;
    pen.strokeRect(from, host.top, Math.max(2, toX(trace.tables.calls.end[launch]) - from), host.height);
  }

  function set(from, to) {
    tip.hidden = true;  // what it names is no longer below the mouse
    if (place.clientWidth !== width) resize();  // what is asked for is to fill the width as it is now, beside details that just opened
    const span = Math.min(Math.max(to - from, 50), end * 1.02);
    const begin = Math.min(Math.max(from, -end * 0.01), end * 1.01 - span);
    view = { from: begin, to: begin + span };
    redraw();
    on.move();
  }
  /** What keys zoom about: the mouse, without it over the lanes the selected event if it is in view, otherwise the middle. */
  function centre() {
    if (mouse !== null) return mouse;
    const at = picked ? toX((trace.startOf(picked.type, picked.row) + trace.endOf(picked.type, picked.row)) / 2) : -1;
    return at >= GUTTER && at <= width ? at : (width + GUTTER) / 2;
  }
  function zoom(factor, x = centre()) {
    const fixed = toTime(Math.max(x, GUTTER)), span = (view.to - view.from) / factor;
    const part = (fixed - view.from) / (view.to - view.from);
    set(fixed - part * span, fixed + (1 - part) * span);
  }
  function pan(share) { const by = (view.to - view.from) * share; set(view.from + by, view.to + by); }
  /** Shows an interval with some margin. */
  function show(from, to) { const room = Math.max((to - from) * 0.08, 200); set(from - room, to + room); }

  function eventAt(x, y) {
    const lane = lanes.find(one => y >= one.top && y < one.top + one.height);
    if (!lane || x < GUTTER) return null;
    if (lane.type === METRIC) return { type: METRIC, lane, time: toTime(x) };
    const time = toTime(x), near = 3 * (view.to - view.from) / (width - GUTTER);
    let best = null, distance = near;
    const last = after(lane.start, time + near);
    for (let at = Math.max(0, last - 50); at < last; at++) {
      const off = Math.max(lane.start[at] - time, time - lane.end[at], 0);
      if (off < distance || (off === 0 && off <= distance)) { best = { type: lane.types[at], row: lane.row[at] }; distance = off; }
    }
    return best;
  }
  /** The previous or next event in the lane of the picked one. */
  function beside(step) {
    if (!picked) return null;
    for (const lane of lanes) {
      if (!lane.types.includes(picked.type)) continue;
      let at = after(lane.start, trace.startOf(picked.type, picked.row)) - 1;
      while (at >= 0 && !(lane.row[at] === picked.row && lane.types[at] === picked.type) && lane.start[at] === trace.startOf(picked.type, picked.row)) at--;
      if (at < 0 || lane.row[at] !== picked.row || lane.types[at] !== picked.type) continue;
      for (let to = at + step; to >= 0 && to < lane.row.length; to += step) {
        if (!passes || passes(lane.types[to], lane.row[to])) return { type: lane.types[to], row: lane.row[to] };
      }
    }
    return null;
  }

  let drag = null, mouse = null;  // mouse: how far right it is, while it is over the lanes
  const here = event => { const box = canvas.getBoundingClientRect(); return [event.clientX - box.left, event.clientY - box.top]; };
  canvas.addEventListener("wheel", event => {
    const sideways = Math.abs(event.deltaX) > Math.abs(event.deltaY);
    if (!sideways && !event.ctrlKey && !event.metaKey && document.activeElement !== canvas) return;  // the page scrolls
    event.preventDefault();
    if (sideways || event.shiftKey) pan((event.deltaX || event.deltaY) / width);
    else zoom(Math.exp(-event.deltaY * (event.deltaMode ? 0.05 : 0.002)), here(event)[0]);
  }, { passive: false });
  const marked = x => [Math.min(drag.from, toTime(x)), Math.max(drag.from, toTime(x))];
  canvas.addEventListener("pointerdown", event => {
    const [x, y] = here(event);
    drag = { x, from: toTime(x), view: { ...view }, moved: false, marks: event.shiftKey || y < RULER };
    canvas.setPointerCapture(event.pointerId);
  });
  canvas.addEventListener("pointermove", event => {
    const [x, y] = here(event);
    mouse = event.pointerType === "mouse" && x >= GUTTER ? x : null;
    if (!drag) return hover(x, y, event);
    if (Math.abs(x - drag.x) > 3) drag.moved = true;
    if (!drag.moved) return;
    tip.hidden = true;
    if (drag.marks) on.range(marked(x), false);
    else { const by = (drag.x - x) * (drag.view.to - drag.view.from) / (width - GUTTER); set(drag.view.from + by, drag.view.to + by); }
  });
  canvas.addEventListener("pointerup", event => {
    const was = drag;
    drag = null;
    if (was && was.moved && was.marks) on.range([Math.min(was.from, toTime(here(event)[0])), Math.max(was.from, toTime(here(event)[0]))], true);
    if (!was || was.moved) return;
    const at = eventAt(...here(event));
    if (at && at.type === METRIC) on.sampled(at); else on.pick(at);
  });
  canvas.addEventListener("pointercancel", () => { drag = null; });
  canvas.addEventListener("pointerleave", () => { tip.hidden = true; mouse = null; });
  place.addEventListener("scroll", () => { tip.hidden = true; });
  canvas.addEventListener("dblclick", event => { const at = eventAt(...here(event)); if (at && at.type !== METRIC) show(trace.startOf(at.type, at.row), trace.endOf(at.type, at.row)); });
  function hover(x, y, event) {
    const at = eventAt(x, y);
    tip.hidden = !at;
    if (!at) return;
    tip.style.left = Math.min(event.clientX + 14, window.innerWidth - 340) + "px";
    tip.style.top = event.clientY + 16 + "px";
    if (at.type === METRIC) {
      const half = (view.to - view.from) / (width - GUTTER) / 2, found = meanIn(at.lane, at.time - half, at.time + half);
      tip.textContent = `${at.lane.metric.title}: ${found ? measuredWords(at.lane, found.mean) : "not sampled here"}` + (found && found.samples > 1 ? `\nmean of ${found.samples.toLocaleString("en")} samples` : "");
      return;
    }
    const waited = at.type === INFERENCE ? trace.startOf(INFERENCE, at.row) - trace.waitOf(at.row) : 0;
    const more = waited > 0 ? `, after a wait of ${duration(waited)} since the one before ended` : at.type === KERNEL ? `\n${trace.layers.has(trace.layerOf(at.row)) ? trace.kernelTitle(at.row) : "no layer"}` : at.type === GAP ? `\n${trace.doc.causes[trace.shared(GAP, "cause", at.row)].words}` : "";
    tip.textContent = `${fitted(trace.titleOf(at.type, at.row), 90)}\n${duration(trace.endOf(at.type, at.row) - trace.startOf(at.type, at.row))}${more}`;
  }
  const KEYS = {
    w: () => zoom(1.5), s: () => zoom(1 / 1.5), a: () => pan(-0.2), d: () => pan(0.2), "+": () => zoom(1.5), "-": () => zoom(1 / 1.5), "0": () => set(0, end), r: () => on.range([view.from, view.to], true),
    f: () => { if (picked) show(trace.startOf(picked.type, picked.row), trace.endOf(picked.type, picked.row)); },
    ArrowLeft: () => step(-1), ArrowRight: () => step(1), Home: () => set(0, view.to - view.from), End: () => set(end - (view.to - view.from), end),
  };
  function step(by) {
    const next = beside(by);
    if (!next) return pan(by * 0.1);
    on.pick(next);
    if (trace.startOf(next.type, next.row) < view.from || trace.endOf(next.type, next.row) > view.to) {
      const middle = trace.startOf(next.type, next.row), half = (view.to - view.from) / 2;
      set(middle - half, middle + half);
    }
  }
  /** Handles a key that moves the timeline; returns whether it did. */
  function key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return false;
    const act = KEYS[event.key.length === 1 ? event.key.toLowerCase() : event.key];
    if (act) { event.preventDefault(); tip.hidden = true; act(); }
    return Boolean(act);
  }
  canvas.addEventListener("keydown", event => { if (key(event)) event.stopPropagation(); });
  new ResizeObserver(resize).observe(place);
  colours();
  resize();
  return {
    set, zoom, pan, show, redraw, key,
    focus() { canvas.focus({ preventScroll: true }); },
    color(name) { mode = name; redraw(); },
    theme() { colours(); draw(); },
    select(given) {
      selection = given;
      const any = given.layer !== null || given.layers || given.inference !== null || given.range !== null || given.found;
      passes = any ? trace.chosenBy(given) : null;
      redraw();
    },
    pick(event) { picked = event; tip.hidden = true; redraw(); },
    /** Scrolls the lanes so that the event's one is in sight. */
    uncover(type, row) {
      const lane = lanes.find(one => one.types.includes(type) && one.row.some((other, at) => other === row && one.types[at] === type));
      if (lane && (lane.top < place.scrollTop || lane.top + lane.height > place.scrollTop + place.clientHeight)) place.scrollTop = lane.top + lane.height / 2 - place.clientHeight / 2;
    },
    get view() { return view; },
    lanes,
  };
}

const LAYER_FILLS = ["#566bcb", "#ff9600", "#3da682", "#fddf77", "#9744ff", "#a06a00", "#b2f9b6", "#ff98f6"];
const CALL_FILLS = {
  launch: "#9db7d5", "graph-launch": "#6c2687", copy: "#793114", memset: "#a06a00", sync: "#2144e9", event: "#b9c4cf", alloc: "#ffa400", free: "#ffa400",
};
const FILLS = { [COPY]: "#793114", [FILL]: "#a06a00", [GRAPH]: "#6c2687", [OSRT]: "#afab62", [OVERHEAD]: "#55ac6d" };
