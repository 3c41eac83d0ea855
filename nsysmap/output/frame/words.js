// Numbers as words, and buttons; picture/graph.js has elements.

function button(text, parent, act, className = "link") {
  const made = element("button", text, parent, className);
  made.type = "button";
  made.addEventListener("click", act);
  return made;
}
/** @type {[string, number][]} */
const UNITS = [["s", 1e9], ["ms", 1e6], ["µs", 1e3], ["ns", 1]];
/** A time in a suitable unit, with enough digits to show differences of `step`. */
function duration(time, step = Math.abs(time) / 1000) {
  if (time === null || time === undefined) return "–";
  const [unit, size] = UNITS.find(([, one]) => Math.abs(time) >= one) || UNITS[3];
  const digits = size === 1 ? 0 : Math.min(6, Math.max(0, Math.ceil(-Math.log10(Math.max(step, 1) / size))));
  return (time / size).toLocaleString("en", { minimumFractionDigits: Math.min(digits, 2), maximumFractionDigits: Math.min(digits, 3) }) + " " + unit;
}
/** A time of the timeline as the report counts it, to the nanosecond. */
function inReport(doc, time) {
  return ((doc.origin + Math.round(time)) / 1e6).toLocaleString("en", { useGrouping: false, minimumFractionDigits: 6, maximumFractionDigits: 6 }) + " ms";
}
function microseconds(time) {
  return time === null ? "–" : (time / 1000).toLocaleString("en", { minimumFractionDigits: 2, maximumFractionDigits: 2 });
}
function percent(share) {
  if (share === null || Number.isNaN(share)) return "–";
  return share !== 0 && Math.abs(share) < 0.001 ? "<0.1%" : (share * 100).toFixed(1) + "%";
}
function counted(number, noun, nouns = noun + "s") {
  return `${number.toLocaleString("en")} ${number === 1 ? noun : nouns}`;
}
/** The median of ascending numbers: of an even number of them the mean of the middle two. */
function medianOf(sorted) {
  return (sorted[(sorted.length - 1) >> 1] + sorted[sorted.length >> 1]) / 2;
}
/** How many times the median, to two digits; what is below the limit of outliers is never rounded up to it. */
function timesWords(times, limit) {
  return (times < limit && +times.toFixed(2) >= limit ? Math.floor(times * 100) / 100 : times).toFixed(2) + " ×";
}
/** A text of at most so many characters: the middle of a longer one is cut out. */
function fitted(text, most) {
  if (text.length <= most) return text;
  const head = Math.ceil((most - 1) * 0.45);
  return text.slice(0, head) + "…" + text.slice(text.length - (most - 1 - head));
}
/** The step of an axis: 1, 2 or 5 times a power of ten, at least the one asked for. */
function nice(least) {
  const power = 10 ** Math.floor(Math.log10(Math.max(least, 1)));
  return [1, 2, 5, 10].map(one => one * power).find(one => one >= least);
}
function lightness(fill) {
  const [red, green, blue] = [1, 3, 5].map(at => (parseInt(fill.slice(at, at + 2), 16) / 255) ** 2.2);
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}
/** Black or white: whichever reads better on that colour; on a lightness of 0.2 both have the same contrast ratio. */
function inkOn(fill) {
  if (!INKS.has(fill)) INKS.set(fill, lightness(fill) < 0.2 ? "#ffffff" : "#1a1d21");
  return INKS.get(fill);
}
/** The colour for a dark page: a dark colour is mixed with white. */
function onDark(fill) {
  if (!LIFTED.has(fill)) LIFTED.set(fill, lightness(fill) > 0.1 ? fill : "#" + [1, 3, 5].map(at => Math.round(parseInt(fill.slice(at, at + 2), 16) * 0.65 + 89).toString(16).padStart(2, "0")).join(""));
  return LIFTED.get(fill);
}
const LIFTED = new Map();
/** Whether the page is dark now. */
function isDark() {
  const set = document.documentElement.dataset.theme;
  return set ? set === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
}
const INKS = new Map();
/** A bar whose length is that share of its cell. */
function bar(share, fill, parent) {
  const made = element("span", null, parent, "bar");
  const part = element("i", null, made);
  part.style.width = Math.min(100, Math.max(0, share * 100)) + "%";
  if (fill) part.style.background = isDark() ? onDark(fill) : fill;
  return made;
}
/** A test whether a text contains all words searched for, ignoring case; null if nothing is searched for. */
function searcher(asked) {
  const words = asked.trim().toLowerCase().split(/\s+/).filter(Boolean);
  return words.length ? text => { const low = text.toLowerCase(); return words.every(word => low.includes(word)); } : null;
}
