// Which bytes the threads, lanes and iterations of a kernel touch, worked out from its program.
import { programOf } from "./loops.js";

export const WARP = 32;
const SECTOR = 32; // bytes that a GPU moves at least
const BANK = 4; // bytes of a bank of shared memory
const SIZES = { float64: 8, int64: 8, uint64: 8, float32: 4, int32: 4, uint32: 4, float16: 2, bfloat16: 2, int16: 2, uint16: 2 };

function typeOf(dtype) {
  const [, scalar, lanes] = (dtype ?? "").match(/^(.*?)(?:x(\d+))?$/);
  return { size: SIZES[scalar] ?? 1, lanes: Number(lanes ?? 1) };
}

const floorDiv = (a, b) => (b ? Math.floor(a / b) : 0);
const OPS = {
  ADD: (a, b) => a + b, MUL: (a, b) => a * b, NEG: (a) => -a, FLOORDIV: floorDiv, TRUNCDIV: (a, b) => (b ? Math.trunc(a / b) : 0),
  FLOORMOD: (a, b) => (b ? a - b * Math.floor(a / b) : 0), TRUNCMOD: (a, b) => (b ? a % b : 0), SHL: (a, b) => a * 2 ** b, SHR: (a, b) => Math.floor(a / 2 ** b),
  AND: (a, b) => a & b, OR: (a, b) => a | b, XOR: (a, b) => a ^ b, NOT: (a) => (a === true ? false : a === false ? true : ~a),
  MIN: Math.min, MAX: Math.max, CAST: (a) => Number(a), BITCAST: (a) => a, LESS: (a, b) => a < b, LESS_EQUAL: (a, b) => a <= b, EQUAL: (a, b) => a === b,
  WHERE: (a, b, c) => (a ? b : c),
};

// The value of an index where counters have these values; what comes from memory counts as 0.
export function evaluate(trace, id, counters, known = new Map()) {
  if (known.has(id)) return known.get(id);
  const node = trace.nodes.get(id);
  let value = 0;
  if (node.op === "CONST") value = node.arg === "True" ? true : node.arg === "False" ? false : Number(node.arg);
  else if (node.op === "RANGE") value = counters[`r${node.arg}`] ?? 0;
  else if (node.op === "SPECIAL") value = counters[node.arg.replace(/[(),]/g, "")] ?? 0;
  else if (OPS[node.op]) value = OPS[node.op](...node.src.map((s) => evaluate(trace, s, counters, known)));
  known.set(id, value);
  return value;
}

function readsMemory(trace, id, seen = new Set()) {
  if (seen.has(id)) return false;
  seen.add(id);
  const node = trace.nodes.get(id);
  return node.op === "LOAD" || (node.src ?? []).some((s) => readsMemory(trace, s, seen));
}

// The accesses of a kernel to memory outside of registers, equal patterns together.
export function accessesOf(trace, kernel) {
  const program = programOf(trace, kernel);
  const found = new Map();
  const open = [];
  for (const id of program?.src ?? []) {
    const node = trace.nodes.get(id);
    if (node?.op === "RANGE") open.push({ key: `r${node.arg}`, size: Number(trace.nodes.get(node.src[0])?.arg ?? 2) });
    else if (node?.op === "END") open.pop();
    else if (node?.op === "LOAD" || node?.op === "STORE") add(trace, kernel, found, node, open.filter((loop) => loop.size !== 1));
  }
  return [...found.values()].map((access) => judge(trace, kernel, access)).sort((a, b) => b.deep - a.deep || a.title.localeCompare(b.title));
}

function add(trace, kernel, found, node, open) {
  const index = trace.nodes.get(node.src[0]);
  if (index?.op !== "INDEX") return;
  const base = trace.nodes.get(index.src[0]);
  const isLocal = base.op === "MEMORY" && /local|shared/.test(base.arg ?? "");
  const isShared = isLocal && kernel.threads.reduce((a, b) => a * b, 1) > 1; // in banks
  if (base.op !== "PARAM" && !isLocal) return;
  const { size, lanes } = typeOf(index.dtype);
  const name = isLocal ? (base.arg.match(/\w+/)?.[0] ?? "shared") : `p${base.arg.match(/\d+/)[0]}`;
  const place = index.src[2];
  const access = { kind: node.op === "LOAD" ? "load" : "store", name, isShared, size, lanes, place, loops: [...open], deep: open.length, copies: 1, byData: readsMemory(trace, place), dtype: index.dtype, shape: base.shape ?? "" };
  access.units = unitsOf(kernel, access);
  const at = access.units.map((counters) => evaluate(trace, place, counters));
  access.at = at.map((x) => x * size);
  const key = [access.kind, name, index.dtype, open.map((l) => l.key).join(), at.map((x) => x - at[0]).join()].join("|");
  if (found.has(key)) found.get(key).copies += 1;
  else found.set(key, access);
}

// What touches memory together: the threads of a warp, or iterations of the innermost loop.
function unitsOf(kernel, access) {
  const threads = kernel.threads.reduce((a, b) => a * b, 1);
  if (threads > 1)
    return Array.from({ length: Math.min(WARP, threads) }, (_, t) => {
      const counters = {};
      let rest = t;
      kernel.threads.forEach((n, axis) => { counters[`thread ${axis}`] = rest % n; rest = Math.floor(rest / n); });
      return counters;
    });
  const loop = access.loops[access.loops.length - 1];
  const [key, size] = loop ? [loop.key, loop.size] : ["group 0", Number(kernel.groups[0] ?? 1)];
  return Array.from({ length: Math.max(1, Math.min(16, size || 1)) }, (_, i) => ({ [key]: i }));
}

function judge(trace, kernel, access) {
  const isGpu = kernel.threads.reduce((a, b) => a * b, 1) > 1;
  const wide = access.size * access.lanes;
  const line = isGpu ? SECTOR : 64;
  const touched = new Set();
  const bytes = new Set();
  for (const start of access.at) for (let b = 0; b < wide; b += 1) { touched.add(Math.floor((start + b) / line)); bytes.add(start + b); }
  const steps = access.at.slice(1).map((a, i) => a - access.at[i]);
  const stride = steps.length && steps.every((s) => s === steps[0]) ? steps[0] : null;
  const efficiency = bytes.size / (touched.size * line);
  const who = isGpu ? "threads" : access.loops.length ? `iterations of ${access.loops[access.loops.length - 1].key}` : "groups";
  const conflicts = access.isShared ? bankConflicts(access.at, wide) : 0;
  let verdict = "scattered";
  let grade = "poor";
  if (access.byData) verdict = "at addresses from memory";
  else if (access.isShared) [verdict, grade] = conflicts > 1 ? [`${conflicts}-way bank conflicts`, "poor"] : ["no bank conflicts", "good"];
  else if (access.at.length === 1) [verdict, grade] = ["once", "good"];
  else if (stride === 0) [verdict, grade] = [isGpu ? "one address for the warp" : "the same bytes again: a broadcast", "good"];
  else if (stride === wide) [verdict, grade] = [isGpu ? "coalesced" : access.lanes > 1 ? `contiguous vectors of ${wide} bytes` : "contiguous, one element at a time", isGpu || access.lanes > 1 ? "good" : "fair"];
  else if (stride !== null) [verdict, grade] = access.lanes > 1 && !isGpu ? [`vectors of ${wide} bytes, ${stride} bytes apart`, wide >= 32 ? "good" : "fair"] : [`${stride} bytes apart`, efficiency > 0.7 ? "fair" : "poor"];
  else if (isGpu && efficiency > 0.9) [verdict, grade] = ["coalesced in pieces", "good"];
  return { ...access, isGpu, wide, line, stride, verdict, grade, efficiency, conflicts, who, lines: touched.size, least: Math.ceil(bytes.size / line), title: `${access.kind} ${access.name}` };
}

// The most words of one bank that a part of the warp wants at once; wide accesses go in parts.
export function bankConflicts(at, wide) {
  const together = wide >= 16 ? 8 : wide >= 8 ? 16 : WARP;
  let most = 1;
  for (let first = 0; first < at.length; first += together) {
    const banks = new Map();
    for (const start of at.slice(first, first + together))
      for (let b = 0; b < wide; b += BANK) {
        const word = Math.floor((start + b) / BANK);
        const bank = word % WARP;
        if (!banks.has(bank)) banks.set(bank, new Set());
        banks.get(bank).add(word);
      }
    for (const words of banks.values()) most = Math.max(most, words.size);
  }
  return most;
}
