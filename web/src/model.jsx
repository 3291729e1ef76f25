// The user's modules as a tree, with the time of their kernels and the memory alive at the peak.
import { useMemo, useState } from "preact/hooks";
import { address } from "./address.js";
import { aliveAtPeak } from "./memory.js";
import { bytes, time } from "./trace.js";

function treeOf(trace) {
  const root = { name: "", path: "", us: 0, bytes: 0, own: 0, runs: 0, kernels: new Map(), parts: new Map() };
  const reach = (module) => {
    const chain = [root];
    let node = root;
    for (const name of module.split(".")) {
      if (!node.parts.has(name)) node.parts.set(name, { name, path: node.path ? `${node.path}.${name}` : name, us: 0, bytes: 0, own: 0, runs: 0, kernels: new Map(), parts: new Map() });
      node = node.parts.get(name);
      chain.push(node);
    }
    return chain;
  };
  for (const launch of trace.launches) {
    const module = trace.lines.get(launch.line)?.module || "outside of modules";
    const spent = launch.end - launch.start;
    const chain = reach(module);
    for (const node of chain) { node.us += spent; node.runs += 1; }
    const last = chain[chain.length - 1];
    last.own += spent;
    last.kernels.set(launch.kernel, (last.kernels.get(launch.kernel) ?? 0) + spent);
  }
  for (const device of new Set(trace.memory.map((m) => m.device)))
    for (const row of aliveAtPeak(trace, device))
      for (const part of shares(row)) {
        const module = trace.lines.get(part.line)?.module || "outside of modules";
        for (const node of reach(module)) node.bytes += part.bytes;
      }
  return root;
}

// Temporaries share memory over time: each has its share of what they take together.
function shares(row) {
  if (!row.inner?.length) return row.parts;
  const whole = row.inner.reduce((sum, [size]) => sum + size, 0);
  return row.inner.map(([size, , line]) => ({ line, bytes: (row.bytes * size) / whole }));
}

export function ModelView({ trace }) {
  const root = useMemo(() => treeOf(trace), [trace]);
  const [open, setOpen] = useState(() => new Set([...root.parts.values()].flatMap((p) => [p.path, `${p.path}.blocks`, `${p.path}.layers`])));
  const fold = (path) => setOpen((before) => { const next = new Set(before); if (!next.delete(path)) next.add(path); return next; });
  const all = (node) => [node.path, ...[...node.parts.values()].flatMap(all)];
  return (
    <div class="view scroll">
      <div class="bar"><h1>Model</h1><span class="faint">the modules of the program, with what they cost: forward and backward together</span>
        <button class="more" onClick={() => setOpen(new Set(all(root)))}>unfold all</button><button class="more" onClick={() => setOpen(new Set())}>fold all</button></div>
      <table class="kernels model">
        <thead><tr><th>module</th><th class="n">time</th><th /><th class="n">share</th><th class="n">kernels run</th><th class="n">memory at the peak</th><th /></tr></thead>
        <tbody><Rows node={root} depth={0} open={open} fold={fold} whole={root} trace={trace} /></tbody>
      </table>
    </div>
  );
}

function Rows({ node, depth, open, fold, whole, trace }) {
  const parts = [...node.parts.values()].sort((a, b) => order(a, b));
  return parts.map((part) => {
    const isOpen = open.has(part.path);
    const kernels = [...part.kernels].sort((a, b) => b[1] - a[1]).slice(0, 6);
    const hasMore = part.parts.size > 0 || kernels.length > 0;
    return (
      <>
        <tr onClick={() => fold(part.path)}>
          <td style={`padding-left:${10 + depth * 20}px`}><span class="twist">{hasMore ? (isOpen ? "▾" : "▸") : ""}</span><b class="module">{part.name}</b></td>
          <td class="n">{time(part.us)}</td><td class="meter"><i style={`width:${(100 * part.us) / (whole.us || 1)}%`} /></td><td class="n">{((100 * part.us) / (whole.us || 1)).toFixed(1)} %</td><td class="n">{part.runs.toLocaleString()}</td>
          <td class="n">{part.bytes ? bytes(Math.round(part.bytes)) : ""}</td><td class="meter mem">{part.bytes > 0 && <i style={`width:${(100 * part.bytes) / (whole.bytes || 1)}%`} />}</td>
        </tr>
        {isOpen && <Rows node={part} depth={depth + 1} open={open} fold={fold} whole={whole} trace={trace} />}
        {isOpen && kernels.map(([id, us]) => { const k = trace.kernelById.get(id); return k && <tr class="inner" onClick={() => { location.hash = address("kernel", id); }}><td style={`padding-left:${34 + depth * 20}px`}><a href={address("kernel", id)}>{k.label || k.name}</a> <span class="where">{k.label ? k.name : ""}</span></td><td class="n">{time(us)}</td><td class="meter"><i class="soft" style={`width:${(100 * us) / (whole.us || 1)}%`} /></td><td /><td /><td /><td /></tr>; })}
      </>
    );
  });
}

// Numbers in order, as layers are; others by time.
function order(a, b) {
  const [x, y] = [Number(a.name), Number(b.name)];
  return Number.isFinite(x) && Number.isFinite(y) ? x - y : b.us - a.us;
}
