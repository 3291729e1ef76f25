// What happened when: compiling, realizes, kernels and copies in lanes, with memory below.
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import uPlot from "uplot";
import { Canvas, palette } from "./canvas.js";
import { address } from "./address.js";
import { aliveAtPeak } from "./memory.js";
import { bytes, lineOf, time } from "./trace.js";

const LANE = 30;
const LEFT = 90; // the names of lanes; the axis of memory is as wide

function lanesOf(trace) {
  const lanes = [
    { name: "calls", bars: trace.calls.map((c) => ({ start: c.start, end: c.end, title: c.name, sub: lineOf(trace, c.line), color: 8 })) },
    { name: "tracing", bars: trace.traced.map((c) => ({ start: c.start, end: c.end, title: c.name, color: 4 })) },
    { name: "realize", bars: trace.realizes.map((r) => ({ start: r.at, end: r.at + 1, title: "realize", sub: lineOf(trace, r.line), color: 4 })) },
    { name: "passes", bars: trace.phases.map((p) => ({ start: p.start, end: p.end, title: `${p.phase} ${p.title}`, href: address("phase", p.id), color: p.phase === "schedule" ? 3 : 2 })) },
    { name: "compiler", bars: trace.compiled.map((c) => ({ start: c.start, end: c.start + c.us, title: [c.step, trace.kernelById.get(c.kernel)?.name].filter(Boolean).join(" "), href: c.kernel ? address("kernel", c.kernel) : "", color: 5 })) },
    { name: "collectives", bars: trace.collectives.map((c) => ({ start: c.at, end: c.at + 1, title: `${c.name} of ${c.devices.join(", ")}`, sub: `${bytes(c.bytes.reduce((a, b) => a + b, 0))}  ${lineOf(trace, c.line)}`, color: 7 })) },
  ];
  const place = (device, stream) => (stream ? `${device} · ${stream}` : device);
  const devices = [...new Set([...trace.launches.map((l) => place(l.device, l.stream)), ...trace.copies.map((c) => place(c.target, c.stream))])];
  for (const device of devices) {
    const bars = trace.launches.filter((l) => place(l.device, l.stream) === device).map((l) => ({ start: l.start, end: l.end, title: trace.kernelById.get(l.kernel)?.name ?? "", sub: lineOf(trace, l.line), href: address("kernel", l.kernel), color: 1 }));
    bars.push(...trace.copies.filter((c) => place(c.target, c.stream) === device).map((c) => ({ start: c.start, end: c.end, title: `copy ${bytes(c.bytes)} from ${c.source}`, color: 6 })));
    lanes.push({ name: device, bars });
  }
  for (const lane of lanes) { lane.bars.sort((a, b) => a.start - b.start); stack(lane); }
  return lanes.filter((lane) => lane.bars.length);
}

// Bars that overlap stand in rows below each other.
function stack(lane) {
  const ends = [];
  for (const bar of lane.bars) {
    let row = ends.findIndex((end) => end <= bar.start);
    if (row < 0) row = Math.min(ends.length, 3);
    ends[row] = bar.end;
    bar.row = row;
  }
  lane.rows = Math.max(1, ends.length);
}

export function Timeline({ trace, theme }) {
  const element = useRef();
  const memory = useRef();
  const [over, setOver] = useState(null);
  const lanes = useMemo(() => lanesOf(trace), [trace]);
  const height = 40 + lanes.reduce((sum, lane) => sum + lane.rows * LANE + 12, 0);
  useEffect(() => {
    let fitted = false;
    const find = (x, y) => at(lanes, x, y);
    const view = new Canvas(element.current, (c) => { paint(c, view, lanes, palette(), trace); plot?.setScale("x", { min: view.toWorld(LEFT, 0)[0] / 1e3, max: view.toWorld(view.width, 0)[0] / 1e3 }); }, {
      lockY: true,
      onHover: (x, y) => { const bar = find(x, y); setOver(bar); element.current.style.cursor = bar?.href ? "pointer" : "grab"; },
      onClick: (x, y) => { const bar = find(x, y); if (bar?.href) location.hash = bar.href; },
    });
    view.most = 100;
    view.least = 1e-7;
    view.onResize = () => { if (!fitted) { fitted = true; view.scale = (view.width - LEFT - 24) / trace.to; view.x = LEFT + 4; } plot?.setSize({ width: view.width, height: 150 }); };
    const plot = memoryPlot(memory.current, trace, palette());
    window.weftCanvas = view;
    return () => { view.stop(); plot?.destroy(); };
  }, [trace, lanes, theme]);
  return (
    <div class="view scroll">
      <div class="bar"><h1>Timeline</h1><span class="faint">{time(trace.to)} · wheel zooms, drag moves</span></div>
      <div class="lanes" style={`height:${height}px`}><canvas ref={element} aria-label="timeline" /></div>
      <div class="over">{over ? <><b>{over.title}</b> {time(over.end - over.start)} at {time(over.start)} <span class="faint">{over.sub}</span></> : <span class="faint">a bar tells what it is when the pointer is over it</span>}</div>
      {trace.memory.length > 1 && <><h2>Memory</h2><div ref={memory} class="memory" /></>}
      {[...new Set(trace.memory.map((m) => m.device))].map((device) => <Alive trace={trace} device={device} />)}
    </div>
  );
}

function Alive({ trace, device }) {
  const rows = useMemo(() => aliveAtPeak(trace, device), [trace, device]);
  const [all, setAll] = useState(false);
  if (!rows.length) return null;
  const whole = rows.reduce((sum, r) => sum + r.bytes, 0);
  const shown = all ? rows : rows.slice(0, 12);
  return (
    <>
      <h2>Alive at the peak of {device}, {bytes(whole)}</h2>
      <table class="kernels alive"><tbody>{shown.map((r) => <tr><td class="n">{bytes(r.bytes)}</td><td class="meter"><i style={`width:${(100 * r.bytes) / rows[0].bytes}%`} /></td><td>{r.count > 1 && `${r.count} × `}{r.what}</td><td class="where">{lineOf(trace, r.line)}</td><td><code>{trace.lines.get(r.line)?.text.split("\n")[0]}</code></td></tr>)}</tbody></table>
      {rows.length > shown.length && <button class="more" onClick={() => setAll(true)}>all {rows.length}</button>}
    </>
  );
}

function memoryPlot(element, trace, colors) {
  if (!element || trace.memory.length < 2) return null;
  const devices = [...new Set(trace.memory.map((m) => m.device))];
  const last = Object.fromEntries(devices.map((d) => [d, 0]));
  const xs = [];
  const series = devices.map(() => []);
  for (const m of trace.memory) { last[m.device] = m.used; xs.push(m.at / 1e3); devices.forEach((d, i) => series[i].push(last[d] / 1e6)); }
  xs.push(trace.to / 1e3);
  devices.forEach((d, i) => series[i].push(last[d] / 1e6));
  const axis = { stroke: colors.faint, grid: { stroke: colors.line, width: 0.5 }, ticks: { stroke: colors.line }, font: "11px ui-sans-serif, system-ui" };
  return new uPlot({
    width: element.clientWidth || 800, height: 150, cursor: { drag: { x: false, y: false } }, legend: { show: devices.length > 1 },
    scales: { x: { time: false }, y: { range: (_, low, high) => [0, high * 1.1 || 1] } },
    padding: [10, 0, 0, 0],
    axes: [{ ...axis, size: 34, splits: (u, _, from, to) => ticksOf(from * 1e3, to * 1e3, u.width - LEFT).map((t) => t / 1e3), values: (u, v) => v.map((x) => (u.valToPos(x, "x") < u.width - LEFT - 24 ? time(x * 1e3) : "")) }, { ...axis, size: LEFT - 1, space: 34, values: (_, v) => v.map((x) => bytes(x * 1e6)) }],
    series: [{}, ...devices.map((d, i) => ({ label: d, stroke: colors.series[i], fill: `${colors.series[i]}33`, width: 1.5, points: { show: false }, paths: uPlot.paths.stepped({ align: 1 }) }))],
  }, [xs, ...series], element);
}

function at(lanes, x, y) {
  let top = 34;
  for (const lane of lanes) {
    const high = lane.rows * LANE;
    if (y >= top && y < top + high) {
      const row = Math.floor((y - top) / LANE);
      let best = null;
      for (const bar of lane.bars) { if (bar.start > x) break; if (bar.row === row && bar.end >= x) best = bar; }
      return best;
    }
    top += high + 12;
  }
  return null;
}

function paint(c, view, lanes, colors, trace) {
  const [from] = view.toWorld(LEFT, 0);
  const [to] = view.toWorld(view.width, 0);
  ruler(c, view, colors, from, to);
  let top = 34;
  for (const lane of lanes) {
    const high = lane.rows * LANE;
    c.fillStyle = colors.panel;
    c.fillRect(LEFT, top, view.width - LEFT, high);
    let lastX = -1;
    for (const bar of lane.bars) {
      if (bar.start > to) break;
      if (bar.end < from) continue;
      const x = Math.max(LEFT, bar.start * view.scale + view.x);
      const right = bar.end * view.scale + view.x;
      const width = Math.max(1, right - x);
      if (width <= 1 && Math.floor(x) === lastX) continue; // a pixel is painted once
      lastX = Math.floor(x);
      const y = top + bar.row * LANE + 3;
      c.fillStyle = colors.series[bar.color - 1];
      c.globalAlpha = 0.75;
      if (width > 6) { c.beginPath(); c.roundRect(x, y, width - 0.5, LANE - 6, 4); c.fill(); } else c.fillRect(x, y, width, LANE - 6);
      c.globalAlpha = 1;
      if (width > 46) {
        c.save();
        c.beginPath();
        c.rect(x + 4, y, width - 8, LANE);
        c.clip();
        c.fillStyle = colors.onbar ?? "#fff";
        c.font = "11px ui-monospace, monospace";
        c.textAlign = "left";
        c.textBaseline = "middle";
        c.fillText(bar.title, x + 6, y + (LANE - 6) / 2);
        c.restore();
      }
    }
    c.clearRect(0, top, LEFT, high);
    c.fillStyle = colors.faint;
    c.font = "12px ui-sans-serif, system-ui, sans-serif";
    c.textAlign = "right";
    c.textBaseline = "middle";
    c.fillText(lane.name, LEFT - 10, top + Math.min(high, LANE) / 2);
    top += high + 12;
  }
}

// Round times from one to the other, some 130 pixels apart.
function ticksOf(from, to, width) {
  const raw = (to - from) / Math.max(2, width / 130);
  const unit = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((m) => m * unit).find((s) => s >= raw);
  const found = [];
  for (let t = Math.ceil(from / step) * step; t < to; t += step) found.push(Math.abs(t) < step / 1e6 ? 0 : t);
  return found;
}

function ruler(c, view, colors, from, to) {
  c.font = "11px ui-sans-serif, system-ui, sans-serif";
  c.textAlign = "center";
  c.textBaseline = "middle";
  for (const t of ticksOf(from, to, view.width - LEFT)) {
    const x = t * view.scale + view.x;
    c.fillStyle = colors.faint;
    if (x < view.width - 24) c.fillText(time(t), x, 12);
    c.fillStyle = colors.line;
    c.fillRect(x, 24, 1, view.height);
  }
}
