// Where the time went: Python, compiling and kernels; the kernels that cost most; the roofline.
import { useMemo, useState } from "preact/hooks";
import { Card } from "./kernel.jsx";
import { address } from "./address.js";
import { Roofline } from "./roofline.jsx";
import { bytes, lineOf, partsOf, rates, time } from "./trace.js";

export function Overview({ trace, theme }) {
  const kernels = useMemo(() => trace.kernels.filter((k) => k.launches.length).sort((a, b) => b.us - a.us), [trace]);
  const device = kernels.reduce((sum, k) => sum + k.us, 0);
  const parts = useMemo(() => partsOf(trace), [trace]);
  const compile = parts.find((p) => p.name === "compiling")?.us ?? 0;
  const peak = trace.memory.reduce((most, m) => Math.max(most, m.used), 0);
  const [all, setAll] = useState(false);
  const shown = all ? kernels : kernels.slice(0, 15);
  return (
    <div class="view scroll">
      <div class="bar"><h1>Overview</h1><span class="faint">{trace.head.program}</span></div>
      <div class="cards">
        <Card name="from first to last" value={time(trace.to)} note={trace.calls.length ? `${count(trace.calls.length, "jitted call")}` : count(trace.realizes.length, "realize")} />
        <Card name="kernels" value={time(device)} note={`${trace.launches.length.toLocaleString()} runs of ${kernels.length}`} />
        <Card name="compiling" value={time(compile)} note={count(trace.schedules.length, "schedule")} />
        <Card name="peak memory" value={bytes(peak)} note={[...new Set(trace.memory.map((m) => m.device))].join(", ")} />
        <Card name="rewrites" value={trace.phases.reduce((n, p) => n + p.passes.reduce((m, s) => m + Object.values(s.rules ?? {}).reduce((a, b) => a + b, 0), 0), 0).toLocaleString()} note={`${trace.rules.size} rules fired`} />
      </div>
      {trace.checks.map((check) => <div class="found"><b>{check.check}</b> {check.text}</div>)}
      <Where parts={parts} whole={trace.to} />
      <Calls trace={trace} />
      <h2>Kernels</h2>
      <table class="kernels">
        <thead><tr><th>computes</th><th class="wide">kernel</th><th>line</th><th class="n">time</th><th /><th class="n">runs</th><th class="n">each</th><th class="n">GFLOP/s</th><th class="n">GB/s</th><th class="n">of peak</th></tr></thead>
        <tbody>
          {shown.map((k) => {
            const { flops, moved, share, isCached } = rates(k);
            return (
              <tr onClick={() => { location.hash = address("kernel", k.id); }}>
                <td><b class="label">{k.label || k.name}</b></td><td class="wide"><a href={address("kernel", k.id)}>{k.name}</a></td><td class="where">{lineOf(trace, k.launches.find((l) => l.line)?.line)}</td>
                <td class="n">{time(k.us)}</td><td class="meter"><i style={`width:${(100 * k.us) / (kernels[0].us || 1)}%`} /></td>
                <td class="n">{k.launches.length}</td><td class="n">{time(k.us / k.launches.length)}</td><td class="n">{(flops / 1e9).toFixed(1)}</td><td class="n">{(moved / 1e9).toFixed(1)}</td><td class="n">{isCached ? <span class="faint" title="it moves more than memory can: its operands are in a cache">in cache</span> : `${(100 * share).toFixed(0)} %`}</td>
              </tr>
            );
          })}
        </tbody>
      </table>
      {kernels.length > shown.length && <button class="more" onClick={() => setAll(true)}>all {kernels.length} kernels</button>}
      <Roofline trace={trace} theme={theme} />
      <Lines trace={trace} />
    </div>
  );
}

const count = (n, what) => `${n.toLocaleString()} ${what}${n === 1 ? "" : "s"}`;

// All of the time in one bar, and what its parts are.
function Where({ parts, whole }) {
  const color = (p) => (p.color ? `var(--series-${p.color})` : "var(--rest)");
  return (
    <section class="where-bar">
      <div class="stack">{parts.map((p) => <i style={`width:${(100 * p.us) / whole}%;background:${color(p)}`} title={`${p.name}, ${time(p.us)}`} />)}</div>
      <ul>{parts.map((p) => <li><i style={`background:${color(p)}`} />{p.name}<b>{time(p.us)}</b><span>{((100 * p.us) / whole).toFixed(0)} %</span></li>)}</ul>
    </section>
  );
}

// The calls of each jitted function: the first one, and what a later one is of.
function Calls({ trace }) {
  const rows = useMemo(() => {
    const byName = new Map();
    const starts = trace.launches.map((l) => [l.start, l.end]).sort((a, b) => a[0] - b[0]);
    const inside = (from, to) => {
      let [a, b] = [0, starts.length];
      while (a < b) { const m = (a + b) >> 1; if (starts[m][0] < from) a = m + 1; else b = m; }
      let sum = 0;
      for (; a < starts.length && starts[a][0] < to; a++) sum += starts[a][1] - starts[a][0];
      return sum;
    };
    const making = trace.phases.map((p) => p.start);
    for (const call of trace.calls) {
      if (!byName.has(call.name)) byName.set(call.name, { name: call.name, line: call.line, calls: [] });
      const compiles = making.some((at) => at >= call.start && at < call.end);
      byName.get(call.name).calls.push({ us: call.end - call.start - call.own, kernels: inside(call.start, call.end), compiles });
    }
    return [...byName.values()].map((row) => {
      const usual = row.calls.some((c) => !c.compiles) ? row.calls.filter((c) => !c.compiles) : row.calls;
      const mean = (of) => usual.reduce((sum, c) => sum + of(c), 0) / usual.length;
      return { ...row, first: row.calls[0].us, each: mean((c) => c.us), kernels: mean((c) => c.kernels) };
    }).sort((a, b) => b.each * b.calls.length - a.each * a.calls.length);
  }, [trace]);
  if (!rows.length) return null;
  return (
    <>
      <h2>Jitted functions</h2>
      <table class="kernels calls"><thead><tr><th>function</th><th>called at</th><th class="n">calls</th><th class="n">first</th><th class="n">each</th><th class="n">kernels</th><th class="n">around them</th></tr></thead>
        <tbody>{rows.slice(0, 8).map((r) => <tr><td><b class="label">{r.name}</b></td><td class="where">{lineOf(trace, r.line)}</td><td class="n">{r.calls.length.toLocaleString()}</td><td class="n">{time(r.first)}</td><td class="n">{time(r.each)}</td><td class="n">{time(r.kernels)}</td><td class="n">{time(Math.max(0, r.each - r.kernels))}</td></tr>)}</tbody></table>
    </>
  );
}

function Lines({ trace }) {
  const rows = useMemo(() => {
    const sums = new Map();
    for (const launch of trace.launches) if (launch.line) sums.set(launch.line, (sums.get(launch.line) ?? 0) + launch.end - launch.start);
    return [...sums].sort((a, b) => b[1] - a[1]).slice(0, 12);
  }, [trace]);
  if (!rows.length) return null;
  return (
    <>
      <h2>Lines of the program</h2>
      <table class="kernels"><tbody>{rows.map(([id, us]) => { const line = trace.lines.get(id); return <tr><td class="where">{line.file}:{line.row}</td><td class="meter"><i style={`width:${(100 * us) / rows[0][1]}%`} /></td><td class="n">{time(us)}</td><td><code>{line.text.split("\n")[0]}</code></td></tr>; })}</tbody></table>
    </>
  );
}
