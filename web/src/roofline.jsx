// Each kernel under the roof of its machine: operations a byte across, operations a second up.
import { useEffect, useRef, useState } from "preact/hooks";
import { Canvas, palette } from "./canvas.js";
import { address } from "./address.js";
import { rates, time } from "./trace.js";

export function Roofline({ trace, theme, only }) {
  const element = useRef();
  const [over, setOver] = useState(null);
  const points = trace.kernels.filter((k) => k.launches.length && k.operations && k.bytes && k.peaks?.operations)
    .map((k) => ({ kernel: k, x: k.operations / k.bytes, y: rates(k).flops }));
  useEffect(() => {
    if (!points.length) return undefined;
    const near = (x, y) => { const s = scales(view, points); let best = null; let least = 14; for (const p of points) { const d = Math.hypot(s.x(p.x) - x, s.y(p.y) - y); if (d < least) { least = d; best = p; } } return best; };
    const view = new Canvas(element.current, (c) => paint(c, view, points, palette(), only), {
      onHover: (x, y) => setOver(near((x * view.scale) + view.x, y * view.scale + view.y)),
      onClick: (x, y) => { const p = near(x * view.scale + view.x, y * view.scale + view.y); if (p) location.hash = address("kernel", p.kernel.id); },
    });
    view.zoom = () => {};
    return () => view.stop();
  }, [trace, theme, only]);
  if (!points.length) return null;
  return (
    <>
      <h2>Roofline</h2>
      <div class="roof"><canvas ref={element} aria-label="roofline" />{over && <div class="hint">{over.kernel.name}: {(over.y / 1e9).toFixed(1)} GFLOP/s, {over.x.toFixed(2)} operations a byte, {time(over.kernel.us)}</div>}</div>
    </>
  );
}

function scales(view, points) {
  const peaks = points[0].kernel.peaks;
  const xs = points.map((p) => p.x);
  const ys = points.map((p) => p.y);
  const ridge = peaks.operations / peaks.bytes;
  const [x0, x1] = [Math.min(0.1, ...xs) / 2, Math.max(ridge * 4, ...xs) * 2];
  const [y0, y1] = [Math.max(1e6, Math.min(...ys) / 3), peaks.operations * 2];
  const [left, right, top, bottom] = [62, view.width - 16, 14, view.height - 34];
  const log = (v, a, b, p, q) => p + ((Math.log(v) - Math.log(a)) / (Math.log(b) - Math.log(a))) * (q - p);
  return { x: (v) => log(v, x0, x1, left, right), y: (v) => log(v, y0, y1, bottom, top), x0, x1, y0, y1, left, right, top, bottom, peaks, ridge };
}

function paint(c, view, points, colors, only) {
  const s = scales(view, points);
  c.font = "11px ui-sans-serif, system-ui, sans-serif";
  c.lineWidth = 1;
  for (let e = Math.ceil(Math.log10(s.x0)); 10 ** e < s.x1; e++) tick(c, colors, s.x(10 ** e), s.top, s.x(10 ** e), s.bottom, String(10 ** e), s.x(10 ** e), s.bottom + 16, "center");
  for (let e = Math.ceil(Math.log10(s.y0)); 10 ** e < s.y1; e++) tick(c, colors, s.left, s.y(10 ** e), s.right, s.y(10 ** e), `${10 ** (e - 9)} G`, s.left - 8, s.y(10 ** e) + 4, "right");
  c.fillStyle = colors.faint;
  c.textAlign = "right";
  c.fillText("operations a byte", s.right, s.bottom + 30);
  c.beginPath();
  c.moveTo(s.x(s.x0), s.y(Math.max(s.y0, s.x0 * s.peaks.bytes)));
  c.lineTo(s.x(s.ridge), s.y(s.peaks.operations));
  c.lineTo(s.x(s.x1), s.y(s.peaks.operations));
  c.strokeStyle = colors.accent;
  c.lineWidth = 2;
  c.stroke();
  const most = Math.max(...points.map((p) => p.kernel.us));
  for (const p of points) {
    c.beginPath();
    c.arc(s.x(p.x), s.y(p.y), 4 + 9 * Math.sqrt(p.kernel.us / most), 0, 7);
    c.globalAlpha = !only || only === p.kernel ? 0.6 : 0.15;
    c.fillStyle = only === p.kernel ? colors.accent : colors.series[0];
    c.fill();
    c.globalAlpha = 1;
  }
}

function tick(c, colors, x0, y0, x1, y1, text, tx, ty, align) {
  c.beginPath();
  c.moveTo(x0, y0);
  c.lineTo(x1, y1);
  c.strokeStyle = colors.line;
  c.globalAlpha = 0.45;
  c.stroke();
  c.globalAlpha = 1;
  c.fillStyle = colors.faint;
  c.textAlign = align;
  c.fillText(text, tx, ty);
}
