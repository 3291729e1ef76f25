// A trace file as tables: what the views read. Unknown kinds of records are kept aside, so that
// an older page opens a newer trace.

export function readTrace(text) {
  const trace = {
    head: {}, nodes: new Map(), lines: new Map(), rules: new Map(), phases: [], schedules: [],
    kernels: [], launches: [], copies: [], memory: [], realizes: [], checks: [], fusions: [],
    compiled: [], end: null,
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
};

function add(trace, record) {
  const { kind } = record;
  if (kind === "node") trace.nodes.set(record.id, record);
  else if (kind === "line") trace.lines.set(record.id, record);
  else if (kind === "rule") trace.rules.set(record.id, record);
  else if (kind === "trace") trace.head = record;
  else if (kind === "end") trace.end = record;
  else if (LISTS[kind]) trace[LISTS[kind]].push(record);
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
  trace.to = Math.max(1, ...[...trace.launches, ...trace.phases, ...trace.copies].map((r) => r.end));
  return trace;
}

// ---- words and numbers

export function lineOf(trace, id) {
  const line = trace.lines.get(id);
  return line ? `${line.file.split("/").pop()}:${line.row}` : "";
}

export function time(us) {
  if (us == null) return "";
  if (us < 1000) return `${us < 10 ? us.toFixed(1) : us.toFixed(0)} µs`;
  if (us < 1e6) return `${(us / 1e3).toFixed(us < 1e4 ? 2 : 1)} ms`;
  return `${(us / 1e6).toFixed(2)} s`;
}

export function bytes(n) {
  if (n < 1e3) return `${n} B`;
  if (n < 1e6) return `${(n / 1e3).toFixed(1)} kB`;
  if (n < 1e9) return `${(n / 1e6).toFixed(1)} MB`;
  return `${(n / 1e9).toFixed(2)} GB`;
}

// What a kernel reached: operations and bytes a second, and the share of what the machine can do.
export function rates(kernel) {
  const runs = kernel.launches.length;
  if (!runs || !kernel.us) return { flops: 0, moved: 0, share: 0, bound: "" };
  const best = Math.min(...kernel.launches.map((l) => l.end - l.start)) * 1e-6;
  const flops = kernel.operations / best;
  const moved = kernel.bytes / best;
  const peaks = kernel.peaks ?? {};
  const computing = peaks.operations ? flops / peaks.operations : 0;
  const moving = peaks.bytes ? moved / peaks.bytes : 0;
  return { flops, moved, share: Math.max(computing, moving), bound: computing > moving ? "flops" : "bytes" };
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
