// Where the time of layers goes by module of the model, as boxes as wide as their time: modules, below them layers, their ONNX nodes, their kernels.

const BOX_TALL = 22, LEAST_WIDE = 4, MOST_BOXES = 600;

/**
 * The tree of boxes: `layers` as in the page's data, `spent` their times by id, `kernels` rows of {layer, name, summary, time};
 * `engines` are their names where there are several, and `share` says how much of the whole a layer is where times are of different inferences.
 * Modules with one module only are joined with it.
 */
function moduleTree(layers, spent, kernels, engines = [], share = layer => spent.get(layer.id) || 0) {
  const root = { name: "all layers", kind: "module", time: 0, part: 0, layers: [], children: [], below: new Map() }, ran = new Map();
  for (const row of kernels) {
    if (!ran.has(row.layer)) ran.set(row.layer, []);
    ran.get(row.layer).push(row);
  }
  const into = (parent, name) => {
    if (!parent.below.has(name)) {
      const made = { name, kind: "module", time: 0, part: 0, layers: [], children: [], below: new Map() };
      parent.below.set(name, made);
      parent.children.push(made);
    }
    return parent.below.get(name);
  };
  for (const layer of layers) {
    const time = spent.get(layer.id) || 0, part = share(layer);
    if (time <= 0) continue;
    const path = [...(engines.length > 1 && layer.engine !== null ? [engines[layer.engine]] : []), ...layer.module];
    let at = root;
    const all = [root];
    for (const name of path) all.push(at = into(at, name));
    for (const one of all) { one.time += time; one.part += part; one.layers.push(layer.id); }
    const leaf = { name: layer.title, full: layer.name, kind: "layer", time, part, layers: [layer.id], swatch: layer.swatch, children: [] };
    at.children.push(leaf);
    const mine = ran.get(layer.id) || [], whole = mine.reduce((sum, one) => sum + one.time, 0);
    const parts = mine.map(one => ({ name: one.summary, full: one.name, kind: "kernel", time: whole ? time * one.time / whole : 0, part: whole ? part * one.time / whole : 0, layers: [layer.id], swatch: layer.swatch, children: [] }));
    if (layer.nodes.length) leaf.children.push({ name: layer.nodes.map(node => node.split("/").pop()).join(" + "), full: layer.nodes.join("\n"), kind: "ONNX", time, part, layers: [layer.id], children: parts });
    else leaf.children.push(...parts);
  }
  const tidy = node => {
    delete node.below;
    while (node !== root && node.kind === "module" && node.children.length === 1 && node.children[0].kind === "module") {
      const [only] = node.children;
      node.name += "/" + only.name;
      node.children = only.children;
    }
    node.children.forEach(tidy);
    node.children.sort((one, two) => two.part - one.part);
  };
  tidy(root);
  return root;
}

/** Where the boxes stand while `shown` has the whole width: [{node, left, wide, level}] in shares of the width; what lies above it is as wide as all. */
function placedBoxes(root, shown, least) {
  const found = [], above = [];
  const way = node => node === shown || node.children.some(child => way(child) && above.unshift(child));
  way(root);
  if (root !== shown) above.unshift(root);
  above.filter(node => node !== shown).forEach((node, level) => found.push({ node, left: 0, wide: 1, level }));
  const put = (node, left, wide, level) => {
    if (found.length >= MOST_BOXES) return;
    found.push({ node, left, wide, level });
    let from = left;
    for (const child of node.children) {
      const part = node.part ? wide * child.part / node.part : 0;
      if (part >= least) put(child, from, part, level + 1);
      from += part;
    }
  };
  put(shown, 0, 1, found.length);
  return found;
}

/** Draws the tree; `on.layers(ids, title)` is called for clicks. */
function icicleOf(trace, place, on) {
  const { doc, tables } = trace, boxes = byId("icicle-boxes"), path = byId("icicle-path");
  let root = null, shown = null, selection = null, names = [], width = 0;
  function whole() { return { spent: new Map(doc.layers.map(layer => [layer.id, layer.time || 0])), kernels: doc.kernel_time }; }
  function within() {
    const spent = new Map(), kernels = [];
    for (const [key, { time }] of trace.summed({ ...selection, layer: null, layers: null }, row => trace.layerOf(row) + " " + tables.kernels_classes.name[tables.kernels.class[row]])) {
      const [layer, name] = String(key).split(" ").map(Number);
      if (layer < 0) continue;
      spent.set(layer, (spent.get(layer) || 0) + time);
      kernels.push({ layer, name: doc.texts.kernels_classes.name[name], summary: doc.kernels[name].summary, time });
    }
    return { spent, kernels };
  }
  /** Whether the times of its layers are of the same inferences, and add up. */
  const sums = node => node !== root || doc.engines.length < 2 || selection.inference !== null || Boolean(selection.range);
  const said = node => `${node.kind === "module" ? counted(node.layers.length, "layer") + ", " : node.kind === "layer" ? "" : node.kind + ", "}${sums(node) ? duration(node.time) + ", " : ""}${percent(root.part ? node.part / root.part : 0)}`;
  function tellOf(node) { path.textContent = `${fitted(node.name, 60)}: ${said(node)}`; }
  function draw() {
    if (!root) return;
    width = boxes.clientWidth;
    if (!width) return;
    const placed = placedBoxes(root, shown, LEAST_WIDE / width), chosen = selection && chosenLayers(selection), focused = boxes.contains(document.activeElement);
    boxes.replaceChildren();
    boxes.style.height = (Math.max(...placed.map(one => one.level)) + 1) * BOX_TALL + "px";
    names = placed;
    placed.forEach(({ node, left, wide, level }, at) => {
      const made = element("div", wide * width > 24 ? node.name : "", boxes, `brick ${node.kind}`);
      made.setAttribute("role", "treeitem");
      made.setAttribute("aria-level", String(level + 1));
      made.setAttribute("aria-label", `${node.name}: ${said(node)}`);
      made.setAttribute("aria-selected", String(Boolean(chosen && node.layers.some(id => chosen.has(id)))));
      made.tabIndex = at === 0 ? 0 : -1;
      made.title = `${node.full || node.name}\n${said(node)}`;
      made.style.left = left * 100 + "%";
      made.style.width = `max(1px, calc(${wide * 100}% - 1px))`;
      made.style.top = level * BOX_TALL + "px";
      if (node.swatch !== undefined && doc.kinds[node.swatch]) {
        const fill = isDark() ? onDark(doc.kinds[node.swatch].fill) : doc.kinds[node.swatch].fill;
        made.style.background = fill;
        made.style.color = inkOn(fill);
      }
      if (chosen) made.classList.add(node.layers.some(id => chosen.has(id)) ? "on" : "off");
      made.addEventListener("click", () => press(node));
      made.addEventListener("focus", () => { for (const one of boxes.children) /** @type {HTMLElement} */ (one).tabIndex = -1; made.tabIndex = 0; tellOf(node); });
      made.addEventListener("pointerenter", () => tellOf(node));
    });
    if (focused) /** @type {HTMLElement} */ (boxes.children[names.findIndex(one => one.node === shown)]).focus();
  }
  /** Shows a box closer and selects its layers; the box that is shown already gives way to the one above it. */
  function press(node) {
    if (node.kind === "module") {
      shown = node === shown && node !== root ? parentOf(node) : node;
      if (shown === root) on.layers([], ""); else on.layers(shown.layers, shown.name);
      draw();
    } else on.layers(node.layers, node.name);
    tellOf(node);
  }
  function parentOf(node, from = root) {
    if (from.children.includes(node)) return from;
    for (const child of from.children) { const found = parentOf(node, child); if (found) return found; }
    return null;
  }
  boxes.setAttribute("role", "tree");
  boxes.setAttribute("aria-label", "time by module of the model");
  boxes.addEventListener("keydown", event => {
    const at = [...boxes.children].indexOf(document.activeElement), node = names[at]?.node;
    if (!node) return;
    const beside = () => parentOf(node)?.children.filter(child => names.some(one => one.node === child)) || [node];
    const to = {
      ArrowDown: () => node.children.find(child => names.some(one => one.node === child)), ArrowUp: () => parentOf(node),
      ArrowLeft: () => beside()[beside().indexOf(node) - 1], ArrowRight: () => beside()[beside().indexOf(node) + 1],
    }[event.key];
    if (event.key === "Enter" || event.key === " ") { event.preventDefault(); event.stopPropagation(); press(node); return; }
    if (!to) return;
    event.preventDefault();
    event.stopPropagation();
    const found = names.findIndex(one => one.node === to());
    if (found >= 0) /** @type {HTMLElement} */ (boxes.children[found]).focus();
  });
  new ResizeObserver(() => { if (boxes.clientWidth !== width) draw(); }).observe(boxes);
  return {
    update(given) {
      const timed = given.range || given.inference !== null, before = selection && (selection.range || selection.inference !== null);
      const same = root && !timed && !before;
      selection = given;
      if (!same) {
        const { spent, kernels } = timed ? within() : whole();
        root = shown = moduleTree(doc.layers, spent, kernels, doc.short_engines, timed || doc.engines.length < 2 ? undefined : layer => layer.share || 0);
        place.hidden = !root.time;
        tellOf(root);
      }
      draw();
    },
    theme: draw,
  };
}
