"use strict";
// The page of an engine's graph: its controls, the search, and the details of what is clicked.

const data = JSON.parse(byId("data").textContent);
const panel = byId("details");
const find = byId("find");
const count = byId("count");
const words = data.layers.map(layer => [layer.name, ...layer.onnx, layer.tactic || "", ...layer.kernels.map(kernel => kernel.name)].join("\n").toLowerCase());
let found = [], next = 0;
const graph = engineGraph(document.querySelector("main"), data, { select: (view, box) => select(box) });

function rows(heading, given) {
  const kept = given.filter(row => row[1] !== null && row[1] !== undefined && row[1] !== "");
  if (!kept.length) return;
  if (heading) element("h3", heading, panel);
  const table = element("table", null, panel);
  for (const [name, value, right, go] of kept) {
    const row = element("tr", null, table);
    const first = element("td", go ? null : name, row);
    if (go) element("button", name, first, "link").addEventListener("click", go);
    element("td", value, row, "name");
    if (right !== undefined) element("td", right, row, "right");
  }
}
function details(index) {
  const layer = data.layers[index];
  document.body.classList.remove("quiet");
  panel.replaceChildren();
  element("h2", `#${layer.index} ${layer.name}`, panel);
  rows(null, [
    ["time", layer.time], ["profile", layer.profile], ["kind", layer.kind], ["type", layer.type], ["data type", layer.precision],
    ["tactic", layer.tactic], ["", layer.decoded], ["region", layer.region], ["reformat for", layer.origin], ["stream", layer.stream],
  ]);
  rows(data.per, layer.kernels.flatMap(kernel => [[kernel.count, kernel.name, kernel.time], ["", kernel.summary]]));
  rows("reads", layer.inputs.map(tensor => [tensor.words, tensor.name, tensor.format]));
  rows("writes", layer.outputs.map(tensor => [tensor.words, tensor.name, tensor.format]));
  rows("ONNX nodes", layer.onnx.map(node => ["", node]));
}
function several(title, layers) {
  document.body.classList.remove("quiet");
  panel.replaceChildren();
  element("h2", title, panel);
  element("p", `${layers.length} layers, in the order of execution`, panel, "note");
  rows(null, layers.map(index => [`#${index}`, data.layers[index].title, data.layers[index].time || "", () => details(index)]));
}
function select(box) {
  graph.select(box);
  document.body.classList.toggle("quiet", box === null);
  if (box === null) return;
  const { title, layers } = data.views[graph.view].boxes[box];
  if (layers.length > 1) several(title, layers);
  else details(layers[0]);
}
function search() {
  const wanted = find.value.trim().toLowerCase().split(/\s+/).filter(Boolean);
  const hits = wanted.length ? words.map(text => wanted.every(word => text.includes(word))) : [];
  found = graph.search(wanted.length ? layer => hits[layer] : null);
  next = 0;
  const layers = hits.filter(Boolean).length;
  count.textContent = wanted.length ? `${layers} ${layers === 1 ? "layer" : "layers"}` : "";
}
function jump() {
  if (!found.length) return;
  const box = found[next++ % found.length];
  select(box);
  graph.center(box);
}
function show(view) {
  graph.show(view);
  legends();
  search();
}
function color(mode) {
  graph.color(mode);
  document.body.dataset.color = mode;
  legends();
}
function legends() {
  drawLegend(data.views[graph.view].legends[graph.mode], byId("legend"));
}

find.addEventListener("input", search);
document.addEventListener("keydown", event => {
  if (event.key === "/" && document.activeElement !== find) { event.preventDefault(); find.select(); }
  if (event.key === "Escape") { find.value = ""; search(); }
  if (event.key === "Enter" && document.activeElement === find) jump();
});
const coloured = byId("color");
coloured.value = data.mode;
coloured.addEventListener("change", () => color(coloured.value));
const chosen = byId("view");
if (chosen) chosen.addEventListener("change", () => { select(null); show(+chosen.value); });
byId("fit").addEventListener("click", graph.fit);
byId("in").addEventListener("click", () => graph.zoom(1.3));
byId("out").addEventListener("click", () => graph.zoom(1 / 1.3));
window.addEventListener("resize", graph.redraw);

// a link into the page: #find=MatMul&layer=12&color=kind&view=1
const asked = new URLSearchParams(location.hash.slice(1));
show(Math.min(Math.max(+asked.get("view") || 0, 0), data.views.length - 1));
if (chosen) chosen.value = String(graph.view);
color(data.modes.includes(asked.get("color")) ? asked.get("color") : data.mode);
coloured.value = graph.mode;
if (asked.has("find")) { find.value = asked.get("find"); search(); }
if (asked.has("layer")) {
  const layer = +asked.get("layer"), box = graph.boxOf(layer);
  if (box >= 0) { select(box); graph.center(box); details(layer); }
}
