// The engines' graphs on the page, drawn by picture/graph.js when they scroll into view, with the findings marked.

function graphsOf(doc, on) {
  const place = byId("graph"), drawn = [];
  let shown = 0, selection = null, passes = null;
  if (!doc.graphs.some(Boolean)) { if (place) place.hidden = true; return { update() {}, search() {}, has: () => false, show() {} }; }
  const picker = byId("graph-engine"), views = byId("graph-view"), coloured = byId("graph-color");
  doc.graphs.forEach((graph, number) => { if (graph) element("option", doc.engines[number], picker).value = String(number); });
  picker.parentElement.hidden = doc.graphs.filter(Boolean).length < 2;
  const spent = number => doc.layers.reduce((sum, layer) => sum + (layer.engine === number ? layer.share || 0 : 0), 0);
  shown = doc.graphs.reduce((best, graph, number) => graph && (best < 0 || spent(number) > spent(best)) ? number : best, -1);  // the one that takes most
  picker.value = String(shown);
  const layerAt = new Map(doc.layers.filter(layer => layer.engine !== null && layer.index !== null).map(layer => [`${layer.engine} ${layer.index}`, layer]));

  function graph() {
    if (drawn[shown]) return drawn[shown];
    const data = doc.graphs[shown], canvas = element("div", null, byId("graph-canvas"), "graph");
    const made = engineGraph(canvas, data, {
      select(view, box) {
        if (box === null) { made.select(null); return; }
        const { layers, title } = data.views[view].boxes[box], known = layers.map(index => layerAt.get(`${shown} ${index}`)).filter(Boolean);
        made.select(box);
        if (known.length) on.layers(known.map(layer => layer.id), title);
      },
      wheel: event => event.ctrlKey || event.metaKey || canvas.contains(document.activeElement),
    });
    const marks = new Map();
    const known = new Map(doc.layers.map(layer => [layer.id, layer]));
    for (const finding of doc.findings) for (const layer of finding.layers) {
      const one = known.get(layer);
      if (one && one.engine === shown) marks.set(one.index, (marks.get(one.index) || 0) + 1);
    }
    made.mark(marks);
    drawn[shown] = { made, canvas, data };
    return drawn[shown];
  }
  function refresh() {
    const { made, data } = graph();
    drawn.forEach((one, number) => { if (one) one.canvas.hidden = number !== shown; });
    views.replaceChildren(...data.views.map((view, number) => { const option = element("option", view.name); option.value = number; return option; }));
    views.parentElement.hidden = data.views.length < 2;
    coloured.replaceChildren(...data.modes.map(mode => element("option", mode)));
    coloured.value = made.mode;
    made.show(made.view);
    views.value = made.view;
    legend();
    marked();
  }
  function legend() {
    const { made, data } = graph();
    drawLegend(data.views[made.view].legends[made.mode], byId("graph-legend"));
  }
  function marked() {
    if (!drawn[shown]) return;
    const { made } = drawn[shown], one = selection && selection.layer !== null ? doc.layers.find(layer => layer.id === selection.layer) : null;
    const box = one && one.engine === shown ? made.boxOf(one.index) : -1;
    made.select(box < 0 ? null : box);
    const several = selection && selection.layers ? new Set(selection.layers) : null;
    if (several && !passes) return made.search(index => { const layer = layerAt.get(`${shown} ${index}`); return Boolean(layer && several.has(layer.id)); });
    const ran = selection && (selection.range || selection.inference !== null) && !passes && selection.layer === null ? on.within(selection) : null;
    if (ran && ![...layerAt.values()].every(layer => layer.engine !== shown || !layer.kernels || ran.has(layer.id))) return made.search(index => { const layer = layerAt.get(`${shown} ${index}`); return Boolean(layer && ran.has(layer.id)); });
    made.search(passes ? index => { const layer = layerAt.get(`${shown} ${index}`); return Boolean(layer && passes(`${layer.title} ${layer.name} ${layer.onnx || ""} ${layer.tactic || ""}`)); } : null);
  }
  picker.addEventListener("change", () => { shown = +picker.value; refresh(); });
  views.addEventListener("change", () => { graph().made.show(+views.value); legend(); marked(); });
  coloured.addEventListener("change", () => { graph().made.color(coloured.value); legend(); });
  byId("graph-fit").addEventListener("click", () => graph().made.fit());
  byId("graph-in").addEventListener("click", () => graph().made.zoom(1.3));
  byId("graph-out").addEventListener("click", () => graph().made.zoom(1 / 1.3));
  const seen = new IntersectionObserver(entries => { if (entries.some(entry => entry.isIntersecting)) { seen.disconnect(); refresh(); } });
  seen.observe(place);
  addEventListener("beforeprint", () => {
    seen.disconnect();
    refresh();
    graph().made.fit();
    const svg = graph().canvas.querySelector("svg.shown"), area = svg.getBoundingClientRect(), frame = byId("graph-canvas");
    svg.setAttribute("viewBox", `0 0 ${area.width} ${area.height}`);  // so that it becomes smaller with a page that is narrower than the window
    frame.style.aspectRatio = `${area.width} / ${area.height}`;
    frame.style.height = "auto";
  });
  addEventListener("afterprint", () => {
    for (const svg of place.querySelectorAll("svg.view")) svg.removeAttribute("viewBox");
    byId("graph-canvas").removeAttribute("style");
  });
  return {
    has: id => { const one = doc.layers.find(layer => layer.id === id); return Boolean(one && one.engine !== null && doc.graphs[one.engine]); },
    update(given) { selection = given; marked(); },
    search(given) { passes = given; marked(); },
    show(id) {
      const one = doc.layers.find(layer => layer.id === id);
      if (!one || one.engine === null || !doc.graphs[one.engine]) return;
      shown = one.engine;
      picker.value = String(shown);
      refresh();
      const box = graph().made.boxOf(one.index);
      if (box >= 0) graph().made.center(box);
    },
  };
}
