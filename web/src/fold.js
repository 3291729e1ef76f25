// A tensor graph with its kernels folded to a node each, and one of them unfolded.

const MOVEMENT = new Set(["RESHAPE", "EXPAND", "PERMUTE", "PAD", "SHRINK", "FLIP", "CAST", "DETACH"]);
const TELLING = new Set(["EXP", "EXP2", "LOG", "LOG2", "SIN", "COS", "TANH", "ERF", "SQRT", "POW", "LOGADD"]);
const REDUCTIONS = { ADD: "sum", MUL: "prod", MAX: "max", MIN: "min" };
const ROOT = -1;

function below(trace, node, through) {
  let at = node;
  while (at && through(at)) at = trace.nodes.get(at.src[0]);
  return at;
}

function isExpanded(trace, id) {
  let at = trace.nodes.get(id);
  while (at && MOVEMENT.has(at.op)) { if (at.op === "EXPAND") return true; at = trace.nodes.get(at.src[0]); }
  return false;
}

// What a kernel computes, in few words, from its tensor ops.
export function labelOf(trace, group) {
  const words = new Set();
  for (const id of group.nodes) {
    const node = trace.nodes.get(id);
    if (!node) continue;
    if (node.op === "REDUCE") {
      const value = below(trace, trace.nodes.get(node.src[0]), (n) => MOVEMENT.has(n.op));
      const isProduct = value?.op === "MUL" && value.src.every((s) => isExpanded(trace, s));
      words.add(isProduct ? "matmul" : REDUCTIONS[(node.arg ?? "").split(" ")[0]] ?? "reduce");
    } else if (TELLING.has(node.op) || node.op === "SCAN" || node.op === "SCATTER") words.add(node.op.toLowerCase());
  }
  const all = [...words];
  if (!all.length) return trace.nodes.get(group.outputs[0])?.op.toLowerCase() ?? "kernel";
  return all.length > 4 ? `${all.slice(0, 3).join(".")}.…` : all.join(".");
}

// For each node the group that writes it, else one that computes it.
function writers(fusion) {
  const owner = new Map();
  fusion.groups.forEach((group, i) => group.nodes.forEach((id) => { if (!owner.has(id)) owner.set(id, i); }));
  fusion.groups.forEach((group, i) => group.outputs.forEach((id) => owner.set(id, i)));
  return owner;
}

export function fold(trace, fusion) {
  const owner = writers(fusion);
  const nodes = new Map();
  const groups = new Map();
  const heads = new Map();
  fusion.groups.forEach((group, i) => {
    const inside = new Set(group.nodes);
    const from = new Set();
    for (const id of group.nodes) for (const s of trace.nodes.get(id)?.src ?? []) { const other = owner.get(s); if (!inside.has(s) && other !== undefined && other !== i) from.add(other); }
    const head = trace.nodes.get(group.outputs[0]);
    nodes.set(group.outputs[0], { id: group.outputs[0], op: labelOf(trace, group), dtype: head?.dtype, shape: head?.shape, src: [...from].map((g) => fusion.groups[g].outputs[0]) });
    groups.set(group.outputs[0], i);
    heads.set(group.outputs[0], i);
  });
  nodes.set(ROOT, { id: ROOT, op: "SINK", src: [...heads.keys()], isHidden: true });
  return { trace: { ...trace, nodes }, root: ROOT, groups, owner: heads };
}

export function unfold(trace, fusion, which) {
  const owner = writers(fusion);
  const group = fusion.groups[which];
  const inside = new Set([...group.nodes, ...group.outputs]);
  const nodes = new Map();
  const groups = new Map();
  for (const id of inside) {
    const node = trace.nodes.get(id);
    if (!node) continue;
    nodes.set(id, node);
    groups.set(id, which);
    for (const s of node.src ?? []) if (!inside.has(s) && !nodes.has(s)) { nodes.set(s, { ...trace.nodes.get(s), src: [] }); if (owner.has(s)) groups.set(s, owner.get(s)); }
  }
  nodes.set(ROOT, { id: ROOT, op: "SINK", src: [...group.outputs], isHidden: true });
  return { trace: { ...trace, nodes }, root: ROOT, groups, owner };
}
