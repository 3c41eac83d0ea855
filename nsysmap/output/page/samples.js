// Sampled hardware counters: one lane per metric below the streams of its GPU, drawn as the mean over each pixel's time.

const METRIC = 11;

/** The lanes of a GPU's counters; `add` is called for each. */
function sampleLanes(doc, tables, device) {
  const lanes = [];
  for (const gpu of doc.samples) {
    if (gpu.device !== device) continue;
    const table = tables[gpu.table], { start, rows } = table, end = Float64Array.from(start, (from, row) => from + table.dur[row]);
    gpu.metrics.forEach((metric, number) => {
      const values = table[metric.column], total = new Float64Array(rows + 1), spent = new Float64Array(rows + 1);
      let highest = 1;
      for (let at = 0; at < rows; at++) {
        const known = values[at] >= 0;
        total[at + 1] = total[at] + (known ? values[at] * table.dur[at] : 0);
        spent[at + 1] = spent[at] + (known ? table.dur[at] : 0);
        highest = Math.max(highest, values[at]);
      }
      lanes.push({
        name: `${doc.devices > 1 ? `GPU ${device} ` : ""}${metric.title}${metric.unit === "MHz" ? ` (to ${highest.toLocaleString("en")} MHz)` : ", %"}`, type: METRIC, height: 22, device, gpu, metric,
        fill: METRIC_FILLS[number % METRIC_FILLS.length], start, end, values, total, spent, top: 0, highest: metric.unit === "MHz" ? highest : 100, types: [], row: [],
      });
    });
  }
  return lanes;
}
const METRIC_FILLS = ["#566bcb", "#3da682", "#9744ff", "#a06a00", "#b2245f", "#4a7a96"];

/** The mean of a lane's values over the sampled part of an interval; null if nothing was sampled. */
function meanIn(lane, from, to) {
  const first = after(lane.end, from), last = after(lane.start, to) - 1;
  if (last < first) return null;
  let total = lane.total[last + 1] - lane.total[first], spent = lane.spent[last + 1] - lane.spent[first];
  for (const [at, outside] of [[first, from - lane.start[first]], [last, lane.end[last] - to]]) {  // the parts outside the interval
    if (outside <= 0 || lane.values[at] < 0) continue;
    total -= outside * lane.values[at];
    spent -= outside;
  }
  return spent > 0 ? { mean: total / spent, samples: (last - first + 1) * lane.gpu.each } : null;
}
/** A lane's value in words. */
function measuredWords(lane, mean) {
  return lane.metric.unit === "MHz" ? `${Math.round(mean).toLocaleString("en")} MHz` : `${mean.toFixed(mean < 10 ? 1 : 0)}%`;
}
/** A value with its standard error in words. */
function withError([value, error]) {
  return value === null ? "not known well enough" : `${value.toFixed(0)}% ± ${Math.max(1, Math.round(error))}`;
}
