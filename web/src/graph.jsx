// The graph of one step, laid out; changed nodes are marked, a click chooses a node.
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { Canvas, KINDS, kindOf, palette } from "./canvas.js";
import { nodesBelow } from "./trace.js";

const worker = new Worker(URL.createObjectURL(new Blob([WORKER_SOURCE], { type: "text/javascript" })));
const waiting = new Map();
let tickets = 0;
worker.onmessage = ({ data }) => { waiting.get(data.ticket)?.(data); waiting.delete(data.ticket); };
const layOut = (nodes, edges) => new Promise((done) => { waiting.set(++tickets, done); worker.postMessage({ ticket: tickets, nodes, edges }); });

const READABLE = 0.8;
const FEW = 80; // nodes that are better seen all at once, if smaller
const CROWD = 12;
const FONT = "12px ui-monospace, SFMono-Regular, Menlo, Consolas, monospace";
const SMALL_FONT = "10.5px ui-sans-serif, system-ui, sans-serif";

// Constants and loop counters stand inside of the nodes that use them: a graph has few shapes then.
const isLeaf = (node) => node.op === "CONST" || node.op === "RANGE";

function leafText(trace, node) {
  return node.op === "CONST" ? short(node.arg ?? "") : `r${node.arg}`;
}

// Six digits of a number say what it is; the panel of a node has all of them.
const short = (text) => (text.length > 8 && Number.isFinite(Number(text)) ? String(Number(Number(text).toPrecision(6))) : text);

function describe(trace, node) {
  const inner = (node.src ?? []).map((id) => trace.nodes.get(id)).filter((n) => n && isLeaf(n) && n.arg !== "True");
  const leaves = inner.slice(0, 4).map((n) => leafText(trace, n)).join(" ");
  const title = node.op === "REDUCE" || node.op === "SCAN" ? `${node.op} ${(node.arg ?? "").split(" ")[0]}` : node.op;
  const plain = node.op === "PARAM" ? ` ${(node.arg ?? "").match(/\d+/)?.[0] ?? ""}` : node.op === "CONST" ? ` ${node.arg}` : "";
  let below = [node.dtype, node.shape ? `[${node.shape}]` : ""].filter(Boolean).join(" ");
  if (leaves) below = below ? `${below} · ${leaves}` : leaves;
  return [title + plain, below.length > 34 ? `${below.slice(0, 33)}…` : below];
}

export async function prepare(trace, root, groups) {
  const all = nodesBelow(trace, root);
  const shown = all.filter((node) => (!isLeaf(node) || node.id === root) && !node.isHidden);
  const place = new Map(shown.map((node, i) => [node.id, i]));
  const edges = [];
  shown.forEach((node, i) => {
    const seen = new Set();
    for (const source of node.src ?? []) {
      const from = place.get(source);
      if (from !== undefined && !seen.has(from)) { seen.add(from); edges.push([from, i]); }
    }
  });
  const labels = shown.map((node) => describe(trace, node));
  const nodes = labels.map(([title, below]) => ({ width: Math.max(58, title.length * 7.6 + 22, below.length * 5.6 + 22), height: below ? 40 : 28 }));
  const { x, y } = await layOut(nodes, edges);
  const order = Array.from(shown.keys()).sort((a, b) => y[a] - y[b]);
  const usersOf = new Map();
  for (const node of all) for (const s of node.src ?? []) { if (!usersOf.has(s)) usersOf.set(s, []); usersOf.get(s).push(node.id); }
  // A node that everything leads to, such as the end of a program, would hide the rest.
  const counts = new Int32Array(shown.length);
  for (const [, b] of edges) counts[b]++;
  const isCrowded = Array.from(counts, (n) => n > CROWD);
  return { isCrowded, shown, place, edges, labels, nodes, x, y, order, sortedY: order.map((i) => y[i]), groups, usersOf, all };
}

export function Graph({ trace, root, marked, gone, chosen, onChoose, groups, theme, note }) {
  const element = useRef();
  const canvas = useRef();
  const state = useRef({});
  const [ready, setReady] = useState(null);
  useEffect(() => {
    let here = true;
    setReady(null);
    if (root) prepare(trace, root, groups).then((made) => here && setReady(made));
    return () => { here = false; };
  }, [trace, root, groups]);
  useEffect(() => {
    const made = new Canvas(element.current, (c, view) => paint(c, view, state.current), {
      onClick: (x, y) => onChoose(hit(state.current.ready, x, y)),
      onHover: (x, y) => {
        const over = hit(state.current.ready, x, y);
        if (over !== state.current.over) { state.current.over = over; made.ask(); }
        element.current.style.cursor = over ? "pointer" : "grab";
      },
    });
    canvas.current = made;
    window.weftCanvas = made;
    return () => made.stop();
  }, []);
  useEffect(() => {
    state.current = { ...state.current, ready, marked, gone, chosen, colors: palette() };
    canvas.current?.ask();
  }, [ready, marked, gone, chosen, theme]);
  useEffect(() => {
    if (!ready) return;
    const go = () => fit(canvas.current, ready);
    if (canvas.current.width) go();
    else canvas.current.onResize = () => { canvas.current.onResize = null; go(); };
  }, [ready]);
  useEffect(() => {
    if (!ready || !chosen || !ready.place.has(chosen)) return;
    reveal(canvas.current, ready, ready.place.get(chosen));
  }, [chosen, ready]);
  return (
    <div class="graph">
      <canvas ref={element} tabIndex={0} aria-label="graph" />
      <div class="tools">
        <button title="zoom in (+)" onClick={() => canvas.current.zoom(1.3)}>+</button>
        <button title="zoom out (-)" onClick={() => canvas.current.zoom(1 / 1.3)}>−</button>
        <button title="fit (0)" onClick={() => ready && fit(canvas.current, ready)}>⤢</button>
      </div>
      <div class="foot"><Legend groups={groups} note={note} /><span class="hint">{ready ? `${ready.shown.length.toLocaleString()} node${ready.shown.length === 1 ? "" : "s"}` : root ? "laying out…" : ""}</span></div>
    </div>
  );
}

function Legend({ groups, note }) {
  if (groups) return <div class="legend">{note ?? "colours: kernels"}</div>;
  return <div class="legend">{KINDS.slice(0, 5).map((kind) => <span><i style={`background:var(--kind-${kind})`} />{kind}</span>)}</div>;
}

function fit(canvas, ready) {
  let [left, top, right, bottom] = [Infinity, Infinity, -Infinity, -Infinity];
  ready.nodes.forEach((node, i) => {
    left = Math.min(left, ready.x[i] - node.width / 2);
    right = Math.max(right, ready.x[i] + node.width / 2);
    top = Math.min(top, ready.y[i] - node.height / 2);
    bottom = Math.max(bottom, ready.y[i] + node.height / 2);
  });
  canvas.least = Math.min(0.2, 0.5 * Math.min(canvas.width / (right - left + 1), canvas.height / (bottom - top + 1)));
  canvas.fit(left, top, right, bottom);
  // Text that nobody can read helps nobody: begin at the results of a large graph instead.
  const least = ready.nodes.length < FEW ? 0.6 * READABLE : READABLE;
  if (canvas.scale < least && ready.nodes.length < 5000) {
    canvas.scale = READABLE;
    const [x, y] = densest(ready, canvas.width / READABLE, canvas.height / READABLE);
    canvas.x = canvas.width / 2 - x * READABLE;
    canvas.y = canvas.height / 2 - y * READABLE;
    canvas.ask();
  }
}

// The middle of the window that shows most nodes; of equal ones the nearest to the results.
function densest(ready, wide, high) {
  const counts = new Map();
  const inRow = new Map();
  ready.y.forEach((at) => inRow.set(Math.round(at), (inRow.get(Math.round(at)) ?? 0) + 1));
  ready.nodes.forEach((_, i) => {
    if (inRow.get(Math.round(ready.y[i])) > CROWD) return; // a wide row, such as all results, tells little
    const [column, row] = [Math.floor(ready.x[i] / (wide / 2)), Math.floor(ready.y[i] / (high / 2))];
    for (const key of [[column, row], [column - 1, row], [column, row - 1], [column - 1, row - 1]]) counts.set(key.join(), (counts.get(key.join()) ?? 0) + 1);
  });
  let best = ["0,0", 0];
  for (const [key, n] of counts) if (n >= best[1]) best = [key, n];
  if (!best[1]) return [ready.x[ready.nodes.length - 1], ready.y[ready.nodes.length - 1]];
  const [column, row] = best[0].split(",").map(Number);
  // Its nodes in the middle: they rarely fill it evenly.
  const [left, top] = [column * (wide / 2), row * (high / 2)];
  const inside = Array.from(ready.nodes.keys()).filter((i) => ready.x[i] >= left && ready.x[i] < left + wide && ready.y[i] >= top && ready.y[i] < top + high);
  const middle = (at) => { const sorted = inside.map((i) => at[i]).sort((a, b) => a - b); return (sorted[0] + sorted[sorted.length - 1]) / 2; };
  return [middle(ready.x), middle(ready.y)];
}

function reveal(canvas, ready, i) {
  const [px, py] = [ready.x[i] * canvas.scale + canvas.x, ready.y[i] * canvas.scale + canvas.y];
  const pad = 60;
  if (px > pad && px < canvas.width - pad && py > pad && py < canvas.height - pad) return;
  if (canvas.scale < 0.4) canvas.scale = 0.8;
  canvas.x = canvas.width / 2 - ready.x[i] * canvas.scale;
  canvas.y = canvas.height / 2 - ready.y[i] * canvas.scale;
  canvas.ask();
}

function range(ready, top, bottom) {
  const find = (value) => { let [a, b] = [0, ready.sortedY.length]; while (a < b) { const m = (a + b) >> 1; if (ready.sortedY[m] < value) a = m + 1; else b = m; } return a; };
  return [find(top - 30), find(bottom + 30)];
}

function hit(ready, x, y) {
  if (!ready) return null;
  const [from, to] = range(ready, y - 25, y + 25);
  for (let k = from; k < to; k++) {
    const i = ready.order[k];
    const { width, height } = ready.nodes[i];
    if (Math.abs(x - ready.x[i]) < width / 2 && Math.abs(y - ready.y[i]) < height / 2) return ready.shown[i].id;
  }
  return null;
}

function paint(c, view, { ready, marked, gone, chosen, over, colors }) {
  if (!ready || !colors) return;
  const { scale } = view;
  const [left, top] = view.toWorld(0, 0);
  const [right, bottom] = view.toWorld(view.width, view.height);
  c.translate(view.x, view.y);
  c.scale(scale, scale);
  const near = new Set();
  const focus = over ?? chosen;
  if (focus) { near.add(focus); for (const s of ready.all[0] ? (ready.shown[ready.place.get(focus)]?.src ?? []) : []) near.add(s); for (const u of ready.usersOf.get(focus) ?? []) near.add(u); }
  if (scale > 0.03 || ready.edges.length < 30000) edges(c, ready, { left, right, top, bottom }, colors, scale, focus);
  const [from, to] = range(ready, top, bottom);
  const detailed = scale > 0.32;
  for (let k = from; k < to; k++) {
    const i = ready.order[k];
    const node = ready.shown[i];
    const { width, height } = ready.nodes[i];
    const [x, y] = [ready.x[i] - width / 2, ready.y[i] - height / 2];
    if (x > right || x + width < left) continue;
    const group = ready.groups?.get(node.id);
    const color = ready.groups ? (group === undefined ? colors.faint : colors.series[group % 8]) : colors.kinds[kindOf(node.op)];
    if (!detailed) { c.fillStyle = color; c.fillRect(x, y, width, height); continue; }
    box(c, x, y, width, height, color, colors, { isMarked: marked?.has(node.id), isGone: gone?.has(node.id), isChosen: node.id === chosen, isNear: near.has(node.id) });
    const [title, below] = ready.labels[i];
    c.fillStyle = colors.text;
    c.font = FONT;
    c.textAlign = "center";
    c.textBaseline = "middle";
    c.fillText(title, ready.x[i], below ? y + 14 : ready.y[i]);
    if (below) { c.font = SMALL_FONT; c.fillStyle = colors.faint; c.fillText(below, ready.x[i], y + 29); }
  }
}

function box(c, x, y, width, height, color, colors, { isMarked, isGone, isChosen, isNear }) {
  c.beginPath();
  c.roundRect(x, y, width, height, 7);
  c.fillStyle = colors.panel;
  c.fill();
  c.globalAlpha = isMarked || isGone ? 0.38 : 0.17;
  c.fillStyle = isMarked ? colors.fresh : isGone ? colors.gone : color;
  c.fill();
  c.globalAlpha = 1;
  c.lineWidth = isChosen ? 2.6 : isMarked || isGone || isNear ? 2 : 1.1;
  c.strokeStyle = isChosen ? colors.accent : isMarked ? colors.fresh : isGone ? colors.gone : color;
  c.stroke();
}

const FAR = 420;
const isFar = (x0, y0, x1, y1) => Math.abs(x1 - x0) + Math.abs(y1 - y0) > FAR;

function edges(c, ready, box, colors, scale, focus) {
  const draw = (wanted, style, width, far) => {
    c.beginPath();
    for (const [a, b] of ready.edges) {
      const isNear = focus && (ready.shown[a].id === focus || ready.shown[b].id === focus);
      if (!!isNear !== wanted || (ready.isCrowded[b] && !isNear)) continue;
      const [x0, y0, x1, y1] = [ready.x[a], ready.y[a] + ready.nodes[a].height / 2, ready.x[b], ready.y[b] - ready.nodes[b].height / 2];
      if (!wanted && isFar(x0, y0, x1, y1) !== far) continue;
      if (Math.max(y0, y1) < box.top || Math.min(y0, y1) > box.bottom || Math.max(x0, x1) < box.left || Math.min(x0, x1) > box.right) continue;
      const bend = Math.max(14, Math.min(60, (y1 - y0) / 2));
      c.moveTo(x0, y0);
      if (scale > 0.15) c.bezierCurveTo(x0, y0 + bend, x1, y1 - bend, x1, y1);
      else c.lineTo(x1, y1);
    }
    c.strokeStyle = style;
    c.lineWidth = width;
    c.stroke();
  };
  // Edges over many layers cross all others: they are there, and in the background.
  c.globalAlpha = 0.1;
  draw(false, colors.faint, Math.max(1, 0.6 / scale), true);
  c.globalAlpha = 0.6;
  draw(false, colors.faint, Math.max(1, 0.6 / scale), false);
  c.globalAlpha = 1;
  if (focus) draw(true, colors.accent, 1.8);
}
