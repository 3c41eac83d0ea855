// The engine's layers and tensors as SVG that can be moved, zoomed, searched and clicked.  The data is made by output/picture/html.py.

const SVG = "http://www.w3.org/2000/svg";

function drawn(name, attributes, parent) {
  const made = document.createElementNS(SVG, name);
  for (const key in attributes) made.setAttribute(key, attributes[key]);
  if (parent) parent.append(made);
  return made;
}

/** Puts a legend into `place`: its title, and its colours with what they mean. */
function drawLegend(legend, place) {
  place.replaceChildren();
  element("b", legend.title, place);
  for (const [fill, said, untold] of legend.swatches) {
    const swatch = element("span", null, place);
    element("i", null, swatch, untold ? "untold" : "").style.background = fill;
    swatch.append(said);
  }
}

/** Draws the views of `data` into `place`; `on.select(view, box)` is called for clicks (box is null for a click outside all boxes). */
function engineGraph(place, data, on) {
  const views = data.views.map(view => drawView(view));
  const at = views.map(() => ({ x: 0, y: 0, scale: 1, fitted: false }));
  let shown = 0, mode = data.mode;

  function drawView(view) {
    const svg = drawn("svg", { class: "view", "aria-label": view.name, role: "group" }, place);
    const scene = drawn("g", { class: "scene" }, svg);
    const ways = drawn("g", { class: "ways" }, scene);
    const trunks = view.trunks.map(trunk => {
      const way = drawn("g", trunk.order ? { class: "order" } : {}, ways);
      drawn("title", {}, way).textContent = trunk.words;
      drawn("path", { d: trunk.d }, way);
      if (trunk.heads) drawn("path", { class: "head", d: trunk.heads }, way);
      return way;
    });
    const chosenWay = drawn("path", { class: "chosen" }, scene);
    const boxes = view.boxes.map((box, number) => drawBox(box, number, scene));
    return { svg, scene, trunks, boxes, chosenWay };
  }

  function drawBox(box, number, scene) {
    const { width, height, strip } = data.box;
    const group = drawn("g", { class: box.layers.length > 1 ? "box many" : "box", "data-box": number, tabindex: 0, role: "button" }, scene);
    drawn("title", {}, group).textContent = box.tip;
    drawn("rect", { class: "face", x: box.x, y: box.y, width, height }, group);
    const strips = drawn("g", {}, group);
    for (const of in box.strips) {
      for (const [fill, left, part] of box.strips[of]) {
        drawn("rect", { class: "strip " + of, x: box.x + left, y: box.y + height - strip, width: part, height: strip, fill }, strips);
      }
    }
    drawn("text", { x: box.x + data.box.padding, y: box.y + 16 }, group).textContent = box.title;
    drawn("text", { class: "sub", x: box.x + data.box.padding, y: box.y + 30 }, group).textContent = box.subtitle;
    return group;
  }

  function color(name) {
    mode = name;
    data.views.forEach((view, number) => view.boxes.forEach((box, place) => {
      const group = views[number].boxes[place];
      const [fill, ink, untold] = box.colours[mode];
      const face = group.querySelector(".face");
      face.setAttribute("fill", fill);
      if (untold) face.setAttribute("stroke-dasharray", "4 3"); else face.removeAttribute("stroke-dasharray");
      group.querySelectorAll("text").forEach(text => text.setAttribute("fill", ink));
      group.querySelectorAll(".strip").forEach(part => part.setAttribute("visibility", part.classList.contains(mode) ? "visible" : "hidden"));
    }));
  }

  function draw() {
    const { x, y, scale } = at[shown];
    views[shown].scene.setAttribute("transform", `translate(${x} ${y}) scale(${scale})`);
  }
  function room() {
    return views[shown].svg.getBoundingClientRect();
  }
  function fit() {
    const { width, height } = data.views[shown], here = room(), to = at[shown];
    to.scale = Math.min((here.width - 32) / width, (here.height - 32) / height, 1.5) || 1;
    to.x = (here.width - width * to.scale) / 2;
    to.y = Math.max(16, (here.height - height * to.scale) / 2);
    to.fitted = here.width > 0;
    draw();
  }
  function zoom(factor, x, y) {
    const here = room(), to = at[shown];
    if (x === undefined) [x, y] = [here.width / 2, here.height / 2];
    const scale = Math.min(Math.max(to.scale * factor, 0.02), 6);
    to.x = x - (x - to.x) * scale / to.scale;
    to.y = y - (y - to.y) * scale / to.scale;
    to.scale = scale;
    draw();
  }
  function center(number) {
    const here = room(), to = at[shown], box = data.views[shown].boxes[number];
    to.scale = Math.max(to.scale, 0.9);
    to.x = here.width / 2 - (box.x + data.box.width / 2) * to.scale;
    to.y = here.height / 2 - (box.y + data.box.height / 2) * to.scale;
    to.fitted = true;
    draw();
  }
  function show(number) {
    shown = number;
    views.forEach((view, one) => view.svg.classList.toggle("shown", one === number));
    if (!at[number].fitted) fit();
  }

  /** Marks a box and the tensors that it reads and writes. */
  function select(number) {
    const view = views[shown];
    view.boxes.forEach((box, one) => box.classList.toggle("on", one === number));
    const way = [];
    if (number !== null) data.views[shown].trunks.forEach(trunk => {
      const ends = trunk.ends.filter(([source, target]) => source === number || target === number);
      if (!ends.length) return;
      const pieces = trunk.d.split("M");  // one line segment after each M
      for (let [, , piece] of ends) for (; piece >= 0; piece = trunk.before[piece]) way.push("M" + pieces[piece + 1]);
    });
    view.chosenWay.setAttribute("d", [...new Set(way)].join(""));
  }
  /** Shows which boxes contain a layer that passes the test (null: no search); returns them. */
  function search(passes) {
    const found = [];
    views[shown].boxes.forEach((box, number) => {
      const hit = passes !== null && data.views[shown].boxes[number].layers.some(passes);
      box.classList.toggle("found", hit);
      if (hit) found.push(number);
    });
    views[shown].svg.classList.toggle("finding", passes !== null);
    return found;
  }
  /** Puts a badge on each box that contains one of these layers: a Map of layer to number. */
  function mark(marks) {
    data.views.forEach((view, number) => view.boxes.forEach((box, place) => {
      const count = box.layers.reduce((sum, layer) => sum + (marks.get(layer) || 0), 0);
      if (!count) return;
      const badge = drawn("g", { class: "badge" }, views[number].boxes[place]);
      drawn("circle", { cx: box.x + data.box.width, cy: box.y, r: 8 }, badge);
      drawn("text", { x: box.x + data.box.width, y: box.y + 3.5 }, badge).textContent = count;
    }));
  }
  function boxOf(layer) {
    return data.views[shown].boxes.findIndex(box => box.layers.includes(layer));
  }

  views.forEach(({ svg }) => {
    let from = null;
    svg.addEventListener("wheel", event => {
      if (on.wheel && !on.wheel(event)) return;
      event.preventDefault();
      const here = svg.getBoundingClientRect();
      zoom(Math.exp(-event.deltaY * (event.deltaMode ? 0.05 : 0.0015)), event.clientX - here.left, event.clientY - here.top);
    }, { passive: false });
    svg.addEventListener("pointerdown", event => { from = { x: event.clientX, y: event.clientY, moved: false, id: event.pointerId }; });
    svg.addEventListener("pointermove", event => {
      if (!from) return;
      const dx = event.clientX - from.x, dy = event.clientY - from.y;
      if (!from.moved && Math.hypot(dx, dy) < 4) return;
      if (!from.moved) svg.setPointerCapture(from.id);
      svg.classList.add("moving");
      at[shown].x += dx;
      at[shown].y += dy;
      from = { x: event.clientX, y: event.clientY, moved: true, id: from.id };
      draw();
    });
    const end = event => {
      svg.classList.remove("moving");
      const moved = from && from.moved;
      from = null;
      if (moved || event.type !== "pointerup") return;
      const box = event.target.closest(".box");
      on.select(shown, box ? +box.dataset.box : null);
    };
    svg.addEventListener("pointerup", end);
    svg.addEventListener("pointercancel", end);
    svg.addEventListener("keydown", event => {
      const box = event.target.closest(".box");
      if (event.key === "Enter" && box) { event.preventDefault(); on.select(shown, +box.dataset.box); }
    });
  });
  color(mode);
  return {
    color, fit, zoom, center, show, select, search, mark, boxOf, redraw: draw,
    get view() { return shown; }, get mode() { return mode; },
  };
}
