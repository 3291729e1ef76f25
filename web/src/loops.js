// The loops of a kernel in all of its forms: its text, the loop nest of its program, source and
// assembly. Each form is lines; each line knows the loops that it stands in, by key.
//
// A key is "r2" for the loop of range 2 of the program, "grid" for groups of iterations that run on
// other cores, and "lanes 5" or "copies 4" for ranges that the opts have made into code.

export function programOf(trace, kernel) {
  const phase = trace.phaseById.get(kernel.phase);
  const passes = phase?.passes ?? [];
  const root = trace.nodes.get(passes[passes.length - 1]?.after);
  return root?.op === "LINEAR" ? root : null;
}

// Which ranges of the kernel's text each range of the program comes from; opts split and merge.
export function originsOf(kernel) {
  const origins = new Map();
  const written = [...(kernel.text ?? "").matchAll(/^ {2}r(\d+) < /gm)].map((m) => Number(m[1]));
  for (const r of written) origins.set(r, new Set([r]));
  const next = () => Math.max(-1, ...origins.keys()) + 1;
  const special = [];
  for (const text of kernel.opts ?? []) {
    const [name, rest] = text.split("(", 2);
    const get = (field) => { const m = rest.match(new RegExp(`${field}=(-?\\d+)`)); return m ? Number(m[1]) : null; };
    if (name === "Split") origins.set(next(), new Set(origins.get(get("range")) ?? []));
    if (name === "Merge") { for (const r of origins.get(get("inner")) ?? []) origins.get(get("outer"))?.add(r); origins.delete(get("inner")); }
    if (name === "Vectorize") special.push({ kind: "lanes", range: get("range") });
    if (name === "Unroll") special.push({ kind: "copies", range: get("range") });
    if (name === "Bind") special.push({ kind: /'thread/.test(rest) ? "threads" : "grid", range: get("range") });
  }
  return { origins, special };
}

const MATH = /^(ADD|MUL|NEG|DIV|SQRT|EXP|EXP2|LOG|LOG2|SIN|COS|TANH|ERF|POW|MAX|MIN|WHERE)$/;
const isFloat = (node) => /^(b?float|fp8)/.test(node.dtype ?? "");

// The loop nest: rows of {depth, key, title, note}, and the order of its loops.
export function nestOf(trace, kernel) {
  const program = programOf(trace, kernel);
  const { origins, special } = originsOf(kernel);
  const from = (ranges) => [...new Set(ranges.flatMap((r) => [...(origins.get(r) ?? [])]))].sort((a, b) => a - b);
  const rows = [];
  const loops = [];
  const add = (depth, key, title, ranges) => { const row = { depth, key, title, loads: 0, stores: 0, math: 0, from: from(ranges) }; rows.push(row); return row; };
  let depth = 0;
  for (const kind of ["grid", "threads"]) {
    const bound = special.filter((s) => s.kind === kind).map((s) => s.range);
    const sizes = (kind === "grid" ? kernel.groups : kernel.threads.filter((n) => n > 1)).join(" × ");
    if (bound.length || (sizes && sizes !== "1")) { add(depth, kind, kind === "grid" ? `grid of ${sizes || 1} groups` : `${sizes} threads a group`, bound); depth += 1; }
  }
  let here = add(depth, "body", "once", []);
  const stack = [here];
  for (const id of program?.src ?? []) {
    const node = trace.nodes.get(id);
    if (!node) continue;
    if (node.op === "RANGE") {
      const size = trace.nodes.get(node.src[0]);
      here = add(depth + stack.length, `r${node.arg}`, `for r${node.arg} < ${size?.arg ?? "n"}`, [Number(node.arg)]);
      if (size?.arg !== "1") loops.push(here.key);
      stack.push(here);
    } else if (node.op === "END") { stack.pop(); here = stack[stack.length - 1]; } else count(here, node);
  }
  const lanes = special.filter((s) => s.kind === "lanes" || s.kind === "copies");
  for (const { kind, range } of lanes) add(depth + 1, `${kind} ${range}`, kind === "lanes" ? `r${range} in lanes of a vector` : `r${range} unrolled`, [range]);
  return { rows: rows.filter((row) => row.key !== "body" || row.loads + row.stores + row.math), loops };
}

function count(row, node) {
  if (node.op === "LOAD") row.loads += 1;
  else if (node.op === "STORE") row.stores += 1;
  else if (MATH.test(node.op) && isFloat(node)) row.math += 1;
}

// Which lines of the kernel's text have a range of a row.
export function textLoops(text, rows) {
  return text.split("\n").map((line) => {
    const ranges = new Set([...line.matchAll(/\br(\d+)\b/g)].map((m) => Number(m[1])));
    return rows.filter((row) => row.from.some((r) => ranges.has(r))).map((row) => row.key);
  });
}

// LLVM names its blocks loop12, loop12_end; C has one `for` for each loop, in the same order.
export function sourceLoops(source, loops) {
  const lines = source.split("\n");
  const open = [];
  const names = new Map();
  let next = 0;
  const inside = lines.map((line) => {
    const label = line.match(/^(\w+):/)?.[1];
    if (label === "group") open.push({ key: "grid", until: "group_end" });
    else if (/^loop\d+$/.test(label ?? "")) { const key = loops[next++] ?? ""; names.set(label, key); open.push({ key, until: `${label}_end` }); }
    const top = open[open.length - 1];
    if (top && label === top.until) open.pop();
    const loop = line.match(/^(\s*)for \(/);
    if (loop) open.push({ key: loops[next++] ?? "", closing: `${loop[1]}}` });
    const keys = open.map((o) => o.key);
    if (open.length && open[open.length - 1].closing === line.trimEnd()) open.pop();
    return keys;
  });
  names.set("group", "grid");
  return { inside, names };
}

// The assembler's comments say which block is the header of a loop, and in which loop a block is.
export function assemblyLoops(assembly, names) {
  const lines = assembly.split("\n");
  const parents = new Map();
  const keys = new Map();
  const blocks = [];
  let block = null;
  for (const [i, line] of lines.entries()) {
    const label = line.match(/^[.$]?L?_*(BB\d+_\d+):/)?.[1] ?? (/^\s*[#/]+ %bb\.\d+/.test(line) ? "" : null);
    if (label !== null) { block = { label, first: i, header: "" }; blocks.push(block); }
    if (!block) continue;
    const name = line.match(/[#/]+ %(\w+)\s*$/)?.[1];
    if (name && names.has(name) && label) block.name = name;
    const parent = line.match(/Parent Loop (BB\d+_\d+) Depth=(\d+)/);
    if (parent) block.parent = parent[1];
    if (/This (Inner )?Loop Header/.test(line)) { block.header = block.label; if (block.parent) parents.set(block.label, block.parent); if (block.name) keys.set(block.label, names.get(block.name)); }
    const within = line.match(/in Loop: Header=(BB\d+_\d+)/);
    if (within) block.header = within[1];
  }
  let at = -1;
  return lines.map((_, i) => {
    while (at + 1 < blocks.length && blocks[at + 1].first <= i) at += 1;
    const found = [];
    for (let header = blocks[at]?.header; header; header = parents.get(header)) if (keys.get(header)) found.unshift(keys.get(header));
    return found;
  });
}
