// Where the nodes of a graph stand: layers from sources to users, few crossings.
// Small graphs get dagre's layout; large ones a layered one in near linear time.
import dagre from "@dagrejs/dagre";

const SMALL = 120;
const GAP_X = 18;
const GAP_Y = 26;

// nodes: [{id, width, height}], edges: [[from, to]] by index in nodes. Gives x, y of each centre.
export function layout(nodes, edges) {
  return nodes.length <= SMALL ? byDagre(nodes, edges) : byLayers(nodes, edges);
}

function byDagre(nodes, edges) {
  const graph = new dagre.graphlib.Graph({ multigraph: true });
  graph.setGraph({ rankdir: "TB", nodesep: GAP_X, ranksep: GAP_Y, ranker: "network-simplex" });
  graph.setDefaultEdgeLabel(() => ({}));
  nodes.forEach((node, i) => graph.setNode(String(i), { width: node.width, height: node.height }));
  edges.forEach(([a, b], i) => graph.setEdge(String(a), String(b), {}, String(i)));
  dagre.layout(graph);
  const x = new Float32Array(nodes.length);
  const y = new Float32Array(nodes.length);
  nodes.forEach((_, i) => { const at = graph.node(String(i)); x[i] = at.x; y[i] = at.y; });
  return { x, y };
}

function byLayers(nodes, edges) {
  const count = nodes.length;
  const [into, from] = [Array.from({ length: count }, () => []), Array.from({ length: count }, () => [])];
  for (const [a, b] of edges) { into[b].push(a); from[a].push(b); }
  const rank = ranks(count, into, from);
  const layers = [];
  for (let i = 0; i < count; i++) (layers[rank[i]] ??= []).push(i);
  const place = new Float32Array(count);
  layers.forEach((layer) => layer.forEach((node, i) => { place[node] = i; }));
  for (let sweep = 0; sweep < 6; sweep++) {
    const down = sweep % 2 === 0;
    const order = down ? layers : [...layers].reverse();
    for (const layer of order) settle(layer, place, down ? into : from);
  }
  return coordinates(nodes, layers, place, into, from);
}

// A node is one layer below the lowest of its sources, and its leaves are pulled next to it.
function ranks(count, into, from) {
  const rank = new Int32Array(count);
  const left = into.map((list) => list.length);
  const ready = [];
  for (let i = 0; i < count; i++) if (!left[i]) ready.push(i);
  for (let k = 0; k < ready.length; k++) {
    for (const user of from[ready[k]]) {
      rank[user] = Math.max(rank[user], rank[ready[k]] + 1);
      if (!--left[user]) ready.push(user);
    }
  }
  for (let k = ready.length - 1; k >= 0; k--) {
    const node = ready[k];
    if (!into[node].length && from[node].length) rank[node] = Math.min(...from[node].map((u) => rank[u])) - 1;
  }
  return rank;
}

function settle(layer, place, beside) {
  const wanted = new Map();
  for (const node of layer) {
    const near = beside[node];
    let sum = 0;
    for (const other of near) sum += place[other];
    wanted.set(node, near.length ? sum / near.length : place[node]);
  }
  layer.sort((a, b) => wanted.get(a) - wanted.get(b));
  layer.forEach((node, i) => { place[node] = i; });
}

function coordinates(nodes, layers, place, into, from) {
  const x = new Float32Array(nodes.length);
  const y = new Float32Array(nodes.length);
  let top = 0;
  for (const layer of layers) {
    if (!layer) continue;
    let at = 0;
    let height = 0;
    for (const node of layer) {
      x[node] = at + nodes[node].width / 2;
      at += nodes[node].width + GAP_X;
      height = Math.max(height, nodes[node].height);
    }
    for (const node of layer) { x[node] -= at / 2; y[node] = top + height / 2; }
    top += height + GAP_Y + Math.min(160, layer.length / 8);
  }
  for (let sweep = 0; sweep < 4; sweep++) {
    const down = sweep % 2 === 0;
    for (const layer of down ? layers : [...layers].reverse()) if (layer) pull(layer, nodes, x, down ? into : from);
  }
  return { x, y };
}

// Move the nodes of a layer towards their neighbours, as far as the order allows.
function pull(layer, nodes, x, beside) {
  const wanted = layer.map((node) => {
    const near = beside[node];
    if (!near.length) return x[node];
    let sum = 0;
    for (const other of near) sum += x[other];
    return sum / near.length;
  });
  let least = -Infinity;
  const left = layer.map((node, i) => {
    const at = Math.max(wanted[i], least + nodes[node].width / 2);
    least = at + nodes[node].width / 2 + GAP_X;
    return at;
  });
  let most = Infinity;
  for (let i = layer.length - 1; i >= 0; i--) {
    const node = layer[i];
    const right = Math.min(Math.max(wanted[i], -Infinity), most - nodes[node].width / 2);
    x[node] = (left[i] + Math.max(right, i ? left[i - 1] : -Infinity)) / 2;
    most = right - nodes[node].width / 2 - GAP_X;
  }
  for (let i = 1; i < layer.length; i++) {
    const need = x[layer[i - 1]] + (nodes[layer[i - 1]].width + nodes[layer[i]].width) / 2 + GAP_X;
    if (x[layer[i]] < need) x[layer[i]] = need;
  }
}
