// A trace file as tables: what the views read. Unknown kinds of records are passed over; a trace of
// another version is refused, because its records mean something else.

const VERSION = 4; // of weft/rewrite/trace_file.py

export function readTrace(text) {
  const trace = {
    head: {}, nodes: new Map(), lines: new Map(), rules: new Map(), phases: [], schedules: [],
    kernels: [], launches: [], copies: [], memory: [], realizes: [], checks: [], fusions: [],
    compiled: [], calls: [], traced: [], collectives: [], end: null,
  };
  let begin = 0;
  while (begin < text.length) {
    let stop = text.indexOf("\n", begin);
    if (stop < 0) stop = text.length;
    if (stop > begin) add(trace, JSON.parse(text.slice(begin, stop)));
    begin = stop + 1;
  }
  return finish(trace);
}

const LISTS = {
  phase: "phases", schedule: "schedules", kernel: "kernels", launch: "launches", copy: "copies",
  memory: "memory", realize: "realizes", check: "checks", fusion: "fusions", compiled: "compiled",
  call: "calls", traced: "traced", collective: "collectives",
};

function add(trace, record) {
  const { kind } = record;
  if (kind === "node") trace.nodes.set(record.id, record);
  else if (kind === "line") trace.lines.set(record.id, record);
  else if (kind === "rule") trace.rules.set(record.id, record);
  else if (kind === "trace") { requireVersion(record.version); trace.head = record; }
  else if (kind === "end") trace.end = record;
  else if (LISTS[kind]) trace[LISTS[kind]].push(record);
}

function requireVersion(version) {
  if (version === VERSION) return;
  const fix = version > VERSION ? "open it with the Weft that wrote it, or a newer one" : "write it again: VIZ=1 python program.py";
  throw new Error(`it has version ${version}, and this page reads version ${VERSION}; ${fix}`);
}

function finish(trace) {
  trace.phaseById = new Map(trace.phases.map((p) => [p.id, p]));
  trace.kernelById = new Map(trace.kernels.map((k) => [k.id, k]));
  trace.kernelByBody = new Map(trace.kernels.filter((k) => k.body).map((k) => [k.body, k]));
  trace.fusionByPhase = new Map(trace.fusions.map((f) => [f.phase, f]));
  for (const kernel of trace.kernels) Object.assign(kernel, { launches: [], us: 0, compile: 0 });
  for (const launch of trace.launches) {
    const kernel = trace.kernelById.get(launch.kernel);
    if (!kernel) continue;
    kernel.launches.push(launch);
    kernel.us += launch.end - launch.start;
  }
  for (const made of trace.compiled) {
    const kernel = trace.kernelById.get(made.kernel);
    if (kernel) kernel.compile += made.us;
  }
  for (const phase of trace.phases) {
    // The graph after each pass: that of the last pass which changed it.
    let root = phase.given;
    for (const pass of phase.passes) {
      pass.before = root;
      root = pass.root ?? root;
      pass.after = root;
    }
  }
  trace.from = 0;
  trace.to = 1;
  for (const records of [trace.launches, trace.phases, trace.copies, trace.calls]) for (const r of records) trace.to = Math.max(trace.to, r.end);
  return trace;
}

// ---- words and numbers

export function lineOf(trace, id) {
  const line = trace.lines.get(id);
  return line ? `${line.file.split("/").pop()}:${line.row}` : "";
}

export function time(us) {
  if (us == null) return "";
  if (us === 0) return "0";
  if (us < 999.5) return `${us < 10 ? us.toFixed(1) : us.toFixed(0)} µs`;
  if (us < 999.95e3) return `${(us / 1e3).toFixed(us < 1e4 ? 2 : 1)} ms`;
  return `${(us / 1e6).toFixed(2)} s`;
}

export function bytes(n) {
  if (n < 1e3) return `${n} B`;
  if (n < 1e6) return `${(n / 1e3).toFixed(1)} kB`;
  if (n < 1e9) return `${(n / 1e6).toFixed(1)} MB`;
  return `${(n / 1e9).toFixed(2)} GB`;
}

// What a kernel reached: operations and bytes a second, and the share of what the machine can do.
// One that moves more than memory can has its operands in a cache: then memory bounds nothing.
export function rates(kernel) {
  const runs = kernel.launches.length;
  if (!runs || !kernel.us) return { flops: 0, moved: 0, share: 0, bound: "", isCached: false };
  let best = Infinity;
  for (const launch of kernel.launches) best = Math.min(best, (launch.end - launch.start) * 1e-6);
  const flops = best ? kernel.operations / best : 0;
  const moved = best ? kernel.bytes / best : 0;
  const peaks = kernel.peaks ?? {};
  const computing = peaks.operations ? flops / peaks.operations : 0;
  const moving = peaks.bytes ? moved / peaks.bytes : 0;
  const isCached = moving > 1 && moving > computing;
  return { flops, moved, share: isCached ? computing : Math.max(computing, moving), bound: computing > moving || isCached ? "flops" : "bytes", isCached };
}

// How much time some spans take together; where they overlap, it counts once.
export function covered(...lists) {
  const spans = lists.flat().sort((a, b) => a[0] - b[0]);
  let [total, last] = [0, -Infinity];
  for (const [start, end] of spans) { total += Math.max(0, end - Math.max(start, last)); last = Math.max(last, end); }
  return total;
}

// Where the time of a program went: parts that add up to all of it.
export function partsOf(trace) {
  const spans = (records) => records.map((r) => [r.start, r.end ?? r.start + r.us]);
  const known = [];
  let before = 0;
  const part = (name, color, records) => {
    known.push(spans(records));
    const now = covered(...known);
    const us = now - before;
    before = now;
    return { name, color, us };
  };
  const parts = [
    part("kernels", 1, trace.launches), part("copies", 6, trace.copies), part("compiling", 2, [...trace.phases, ...trace.compiled]),
    part("calling jitted functions", 5, trace.calls), part("tracing jitted functions", 4, trace.traced),
  ];
  parts.push({ name: "Python and all else", color: 0, us: Math.max(0, trace.to - before) });
  return parts.filter((p) => p.us > 0);
}

// The nodes below a root, sources first.
export function nodesBelow(trace, root) {
  const order = [];
  const seen = new Set();
  const stack = [[root, 0]];
  while (stack.length) {
    const top = stack[stack.length - 1];
    const node = trace.nodes.get(top[0]);
    const src = node?.src ?? [];
    if (top[1] < src.length) {
      const next = src[top[1]++];
      if (!seen.has(next)) { seen.add(next); stack.push([next, 0]); }
    } else {
      stack.pop();
      if (node) order.push(node);
    }
  }
  return order;
}
