// Memory of a kernel: each access with how well it vectorizes or coalesces, and a picture of which
// thread, lane or iteration touches which bytes.
import { useMemo } from "preact/hooks";
import { accessesOf } from "./access.js";
import { address } from "./address.js";

const CELL = 30;
const HIGH = 24;
const MOST_ROWS = 24;

export function AccessView({ trace, at }) {
  const kernel = trace.kernelById.get(at.path[0]);
  const accesses = useMemo(() => accessesOf(trace, kernel), [trace, kernel]);
  const chosen = Math.min(at.path[1] ?? 0, accesses.length - 1);
  return (
    <div class="view scroll">
      <div class="bar"><h1>Memory access</h1><a class="link" href={address("kernel", kernel.id)}>{kernel.name}</a><span class="faint">{kernel.label}</span></div>
      {accesses.length ? (
        <div class="accesses">
          <table class="kernels"><thead><tr><th>access</th><th>of</th><th class="n">bytes</th><th class="n">copies</th><th>pattern</th><th class="n">{accesses[0].isGpu ? "sectors" : "cache lines"}</th><th class="n">used</th></tr></thead>
            <tbody>{accesses.map((a, i) => (
              <tr class={i === chosen ? "on" : ""} onClick={() => { location.hash = address("access", kernel.id, i); }}>
                <td><a href={address("access", kernel.id, i)}>{a.title}</a></td><td class="where">{a.dtype}{a.shape && ` [${a.shape}]`}{a.loops.length ? ` in ${a.loops.map((l) => l.key).join(" ")}` : ""}</td>
                <td class="n">{a.wide}</td><td class="n">{a.copies}</td><td><span class={`grade ${a.grade}`}>{a.verdict}</span></td><td class="n">{a.lines} of {a.least}</td><td class="n">{(100 * a.efficiency).toFixed(0)} %</td>
              </tr>))}</tbody></table>
          <Picture access={accesses[chosen]} />
        </div>
      ) : <p class="faint">its program is not in this trace: kernels that were found on disk have none</p>}
    </div>
  );
}

function Picture({ access }) {
  const unit = 4; // bytes of a cell
  const across = access.isShared ? 32 : access.line / unit * (access.isGpu ? 4 : 1);
  const row = across * unit;
  const cells = new Map();
  access.at.forEach((start, i) => { for (let b = 0; b < access.wide; b += Math.min(unit, access.size)) { const c = Math.floor((start + b) / unit); if (!cells.has(c)) cells.set(c, []); if (!cells.get(c).includes(i)) cells.get(c).push(i); } });
  const rows = [...new Set([...cells.keys()].map((c) => Math.floor((c * unit) / row)))].sort((a, b) => a - b);
  const shown = rows.slice(0, MOST_ROWS);
  const width = 76 + across * CELL;
  const hue = (i) => Math.round((300 * i) / Math.max(1, access.at.length - 1));
  return (
    <section class="picture">
      <h2>{access.title}: {access.verdict}</h2>
      <p class="faint">Numbers are {access.who}, colours too. A row is {access.isShared ? "all 32 banks of shared memory" : access.isGpu ? "128 bytes, four sectors" : "a cache line of 64 bytes"}; a cell is {unit} bytes.{rows.length > shown.length && ` The first ${shown.length} of ${rows.length} rows.`}</p>
      <svg viewBox={`0 0 ${width} ${24 + shown.length * (HIGH + 4)}`} style={`max-width:${width}px`} role="img" aria-label="bytes">
        {Array.from({ length: across }, (_, i) => (i % 4 === 0 ? <text class="tick" x={76 + i * CELL + 2} y="14">{access.isShared ? `bank ${i}` : `+${i * unit}`}</text> : null))}
        {shown.map((line, r) => (
          <g transform={`translate(0 ${20 + r * (HIGH + 4)})`}>
            <text class="tick" x="68" y={HIGH / 2 + 4} text-anchor="end">{line * row}</text>
            {Array.from({ length: across }, (_, i) => {
              const who = cells.get((line * row) / unit + i);
              return (
                <g transform={`translate(${76 + i * CELL} 0)`}>
                  <rect width={CELL - 2} height={HIGH} rx="4" class={who ? "" : "idle"} style={who ? `fill:hsl(${hue(who[0])} 52% 45%)` : ""}>{who && <title>{who.join(", ")}</title>}</rect>
                  {who && <text class="who" x={CELL / 2 - 1} y={HIGH / 2 + 4}>{who.length > 2 ? `×${who.length}` : who.join(" ")}</text>}
                </g>
              );
            })}
            {!rows.includes(line + 1) && r < shown.length - 1 && <line x1="76" x2={width} y1={HIGH + 2} y2={HIGH + 2} class="gap" />}
          </g>
        ))}
      </svg>
    </section>
  );
}
