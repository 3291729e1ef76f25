// Where the time went: Python, compiling and kernels; the kernels that cost most; the roofline.
import { useMemo, useState } from "preact/hooks";
import { Card } from "./kernel.jsx";
import { address } from "./address.js";
import { Roofline } from "./roofline.jsx";
import { bytes, lineOf, rates, time } from "./trace.js";

export function Overview({ trace, theme }) {
  const kernels = useMemo(() => trace.kernels.filter((k) => k.launches.length).sort((a, b) => b.us - a.us), [trace]);
  const device = kernels.reduce((sum, k) => sum + k.us, 0);
  const making = [...trace.phases.map((p) => [p.start, p.end]), ...trace.compiled.map((c) => [c.start, c.start + c.us])];
  const compile = covered(making);
  const peak = Math.max(0, ...trace.memory.map((m) => m.used));
  const [all, setAll] = useState(false);
  const shown = all ? kernels : kernels.slice(0, 15);
  return (
    <div class="view scroll">
      <div class="bar"><h1>Overview</h1><span class="faint">{trace.head.program}</span></div>
      <div class="cards">
        <Card name="from first to last" value={time(trace.to)} note={`${trace.realizes.length} realizes`} />
        <Card name="kernels" value={time(device)} note={`${trace.launches.length} launches of ${kernels.length}`} />
        <Card name="compiling" value={time(compile)} note={`${trace.schedules.length} schedules`} />
        <Card name="peak memory" value={bytes(peak)} note={[...new Set(trace.memory.map((m) => m.device))].join(", ")} />
        <Card name="rewrites" value={trace.phases.reduce((n, p) => n + p.passes.reduce((m, s) => m + Object.values(s.rules ?? {}).reduce((a, b) => a + b, 0), 0), 0).toLocaleString()} note={`${trace.rules.size} rules fired`} />
      </div>
      {trace.checks.map((check) => <div class="found"><b>{check.check}</b> {check.text}</div>)}
      <h2>Kernels</h2>
      <table class="kernels">
        <thead><tr><th>computes</th><th class="wide">kernel</th><th>line</th><th class="n">time</th><th /><th class="n">runs</th><th class="n">each</th><th class="n">GFLOP/s</th><th class="n">GB/s</th><th class="n">of peak</th></tr></thead>
        <tbody>
          {shown.map((k) => {
            const { flops, moved, share } = rates(k);
            return (
              <tr onClick={() => { location.hash = address("kernel", k.id); }}>
                <td><b class="label">{k.label || k.name}</b></td><td class="wide"><a href={address("kernel", k.id)}>{k.name}</a></td><td class="where">{lineOf(trace, k.launches.find((l) => l.line)?.line)}</td>
                <td class="n">{time(k.us)}</td><td class="meter"><i style={`width:${(100 * k.us) / (kernels[0].us || 1)}%`} /></td>
                <td class="n">{k.launches.length}</td><td class="n">{time(k.us / k.launches.length)}</td><td class="n">{(flops / 1e9).toFixed(1)}</td><td class="n">{(moved / 1e9).toFixed(1)}</td><td class="n">{(100 * share).toFixed(0)} %</td>
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

// How much time some spans take together; where they overlap, it counts once.
function covered(spans) {
  let [total, last] = [0, -Infinity];
  for (const [start, end] of spans.sort((a, b) => a[0] - b[0])) { total += Math.max(0, end - Math.max(start, last)); last = Math.max(last, end); }
  return total;
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
