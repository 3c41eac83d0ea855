// The inferences over the run, each a dot at its time, with a histogram beside them; a click selects one.

const ENGINE_FILLS = ["#566bcb", "#ff9600", "#3da682", "#9744ff", "#a06a00", "#b2245f"];

function inferencesOf(trace, place, on) {
  const { doc, tables } = trace, all = tables.inferences, inLayers = place.querySelector(".said");
  const canvas = place.querySelector("canvas"), pen = canvas.getContext("2d"), list = place.querySelector(".slow");
  const shown = [];
  for (let row = 0; row < all.rows; row++) if (all.time[row] >= 0) shown.push(row);
  const group = new Map(doc.groups.map(one => [one.id, one]));
  const times = row => { const like = group.get(all.group[row]); return like && like.median ? all.time[row] / like.median : 1; };
  const outlier = row => all.outlier[row] === 1, said = row => `${timesWords(times(row), doc.outlier)} the median`;
  const left = 64, bottom = 20, side = 120, height = 200;
  let dots, cut, step;  // what is drawn: [inference, time], the time at the top and between two lines
  /** Draws these times, of inferences or of layers in them; those far above nearly all others stand at the top. */
  function scale(given) {
    dots = given;
    const sorted = given.map(([, time]) => time).sort((one, two) => one - two);
    cut = Math.max(1, Math.min(sorted[sorted.length - 1] || 1, Math.max(sorted[Math.floor(sorted.length * 0.99)] * 2 || 1, sorted[sorted.length >> 1] * 2.5 || 1)));
    step = nice(cut / 4);
    cut = Math.ceil(cut / step) * step;
  }
  const ran = [...new Set(shown.map(row => all.engine[row]))].sort((one, two) => one - two), several = ran.length > 1;
  const of = row => several && all.engine[row] >= 0 ? ` (${doc.short_engines[all.engine[row]]})` : "";
  const fill = row => { const plain = ENGINE_FILLS[several ? ran.indexOf(all.engine[row]) % ENGINE_FILLS.length : outlier(row) ? 1 : 0]; return isDark() ? onDark(plain) : plain; };
  let selection = null, width = 0;
  if (!shown.length) { place.hidden = true; return { update() {}, theme() {} }; }

  const toX = row => left + (width - left - side - 10) * all.start[row] / doc.duration;
  const toY = time => height - bottom - (height - bottom - 8) * Math.min(time, cut) / cut;
  function draw() {
    const ratio = window.devicePixelRatio || 1, style = getComputedStyle(document.body);
    width = place.clientWidth;
    canvas.width = width * ratio;
    canvas.height = height * ratio;
    canvas.style.height = height + "px";
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    pen.clearRect(0, 0, width, height);
    pen.font = "11px " + style.fontFamily;
    pen.fillStyle = style.color;
    for (let time = 0; time <= cut; time += step) {
      pen.globalAlpha = 0.7;
      pen.fillText(time ? duration(time, step) : "0", 2, toY(time) + 4);
      pen.globalAlpha = 0.15;
      pen.fillRect(left, toY(time), width - left - side, 1);
    }
    const bins = new Array(40).fill(0);
    for (const [row, time] of dots) {
      const odd = outlier(row), on = selection && (selection.inference === row || (selection.range && all.start[row] < selection.range[1] && all.end[row] > selection.range[0]));
      const dim = selection && (selection.inference !== null || selection.range) && !on;
      pen.globalAlpha = dim ? 0.2 : 0.85;
      pen.fillStyle = fill(row);
      pen.beginPath();
      if (odd) { const [x, y] = [toX(row), toY(time)]; pen.moveTo(x, y - 5); pen.lineTo(x + 5, y + 4); pen.lineTo(x - 5, y + 4); }
      else pen.arc(toX(row), toY(time), on && selection.inference === row ? 5 : 2.5, 0, 7);
      pen.fill();
      bins[Math.min(39, Math.floor(Math.min(time, cut) / cut * 40))]++;
    }
    pen.fillStyle = "#566bcb";
    pen.globalAlpha = 0.6;
    const most = Math.max(1, ...bins), tall = (height - bottom - 8) / 40;
    bins.forEach((count, at) => pen.fillRect(width - side, height - bottom - (at + 1) * tall, (side - 4) * count / most, tall - 0.5));
    pen.globalAlpha = 0.7;
    pen.fillStyle = style.color;
    pen.fillText("time of the run →", left, height - 5);
    pen.fillText("count", width - side, height - 5);
    pen.globalAlpha = 1;
  }
  const legend = place.querySelector(".legend");
  if (several) for (const engine of ran) { const made = element("span", null, legend); element("i", null, made).style.background = ENGINE_FILLS[ran.indexOf(engine) % ENGINE_FILLS.length]; made.append(engine < 0 ? "no engine known" : doc.engines[engine]); }
  /** Whether it is an outlier and so are all earlier ones of its kind: maybe still warm-up. */
  function early(row) {
    return outlier(row) && shown.every(other => other >= row || all.group[other] !== all.group[row] || outlier(other));
  }
  const slow = shown.filter(row => times(row) > 1.1).sort((one, two) => times(two) - times(one)).slice(0, 8);
  if (!slow.length) element("li", `No ${doc.one} takes more than 1.1 times the median of its kind.`, list, "note");
  else if (!outlier(slow[0])) element("li", `No outliers: none takes ${doc.outlier} times the median of its kind.`, list, "note");
  for (const row of slow) {
    const cause = all.cause[row] < 0 ? null : doc.texts.inferences.cause[all.cause[row]];
    const item = element("li", null, list);
    button(`${doc.one} ${row}`, item, () => on.inference(row));
    item.append(`${of(row)}: ${duration(all.time[row])}, ${said(row)}` + (cause && all.extra[row] > 0 ? `; ${duration(all.extra[row])} more ${doc.causes[cause].name}` : "") + (trace.artefact(row) ? `, ${ARTEFACT}` : "") + (early(row) ? "; among the first of its kind: may be warm-up" : ""));
  }
  function nearest(event) {
    const box = canvas.getBoundingClientRect(), x = event.clientX - box.left, y = event.clientY - box.top;
    let best = null, distance = 14 ** 2;
    for (const [row, time] of dots) {
      const off = (toX(row) - x) ** 2 + (toY(time) - y) ** 2;
      if (off < distance) [best, distance] = [row, off];
    }
    return best;
  }
  canvas.addEventListener("click", event => { const row = nearest(event); if (row !== null) on.inference(row); });
  canvas.addEventListener("pointermove", event => {
    const row = nearest(event);
    canvas.title = row === null ? "" : `${doc.one} ${row}${of(row)}: ${duration(all.time[row])}, ${said(row)} of its kind${early(row) ? ", among the first: may be warm-up" : ""}`;
    canvas.style.cursor = row === null ? "" : "pointer";
  });
  canvas.addEventListener("keydown", event => {
    const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!by) return;
    event.preventDefault();
    const at = selection && selection.inference !== null ? shown.indexOf(selection.inference) + by : 0;
    if (at >= 0 && at < shown.length) on.inference(shown[at]);
  });
  new ResizeObserver(() => { if (dots) draw(); }).observe(place);
  return {
    update(given) {
      const before = selection && chosenLayers(selection), chosen = chosenLayers(given);
      selection = given;
      if (!dots || String([...before || []]) !== String([...chosen || []])) {
        const spent = chosen && trace.summed({ ...given, inference: null, range: null }, row => tables.kernels.inference[row]);
        scale(spent ? shown.filter(row => spent.has(row)).map(row => [row, spent.get(row).time]) : shown.map(row => [row, all.time[row]]));
        inLayers.textContent = chosen ? `Now: the time of the selected ${chosen.size === 1 ? "layer's" : "layers'"} kernels in each ${doc.one}.` : "";
      }
      draw();
    },
    theme: draw,
  };
}
