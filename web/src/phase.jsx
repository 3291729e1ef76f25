// A phase: its passes in a row, the graph after the chosen one, and its rewrites one by one.
import { useEffect, useMemo, useState } from "preact/hooks";
import { Graph } from "./graph.jsx";
import { address } from "./address.js";
import { lineOf, nodesBelow, time } from "./trace.js";

export function PhaseView({ trace, at, theme }) {
  const phase = trace.phaseById.get(at.path[0]);
  const firstChange = Math.max(0, phase.passes.findIndex((p) => p.root));
  const number = at.path[1] >= 0 ? at.path[1] : firstChange;
  const pass = phase.passes[number] ?? { name: "given", before: phase.given, after: phase.given };
  const step = at.path[2] ?? -1;
  const rewrites = pass.rewrites ?? [];
  const rewrite = rewrites[step];
  const [chosen, setChosen] = useState(null);
  const [before, after] = rewrite ? [rewrite[1], rewrite[2]] : [pass.before, pass.after];
  const isChanged = rewrite || pass.root;
  const marked = useMemo(() => (isChanged ? fresh(trace, before, after) : null), [trace, before, after]);
  const gone = useMemo(() => (rewrite ? fresh(trace, after, before) : null), [trace, before, after]);
  useEffect(() => setChosen(null), [pass, step]);
  useEffect(() => {
    const go = (p, s) => { location.hash = address("phase", ...[phase.id, p, s].filter((x) => x != null && x >= 0)); };
    const press = (event) => {
      if (event.target.tagName === "INPUT") return;
      const by = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      const pass = { ArrowDown: 1, ArrowUp: -1 }[event.key];
      if (by && rewrites.length) { event.preventDefault(); go(number, Math.min(rewrites.length - 1, Math.max(-1, step + by))); }
      if (pass) { event.preventDefault(); go(Math.min(phase.passes.length - 1, Math.max(0, number + pass))); }
    };
    addEventListener("keydown", press);
    return () => removeEventListener("keydown", press);
  }, [phase, number, step, rewrites.length]);
  const kernel = trace.kernels.find((k) => k.phase === phase.id);
  return (
    <div class="view">
      <div class="bar">
        <h1>{phase.phase === "schedule" ? `Schedule of ${phase.title}` : phase.title}</h1><span class="faint">{phase.phase}, {time(phase.end - phase.start)}</span>
        {kernel && <a class="link" href={address("kernel", kernel.id)}>source and times</a>}
      </div>
      <ol class="passes">
        {phase.passes.map((p, i) => (
          <li><a class={`${i === number ? "on" : ""} ${p.root ? "changed" : ""} ${p.skipped ? "off" : ""}`} title={p.because} href={address("phase", phase.id, i)}>{p.name}<em>{p.skipped ? "–" : time(p.us)}</em></a></li>
        ))}
      </ol>
      <div class="reason"><b>{pass.name}</b> {pass.because}{!pass.root && !rewrite && <i> · {pass.skipped ? "nothing for it to do" : "changed nothing"}</i>}</div>
      {rewrites.length > 0 && (
        <div class="stepper">
          <button onClick={() => { location.hash = address("phase", phase.id, number, ...(step > 0 ? [step - 1] : [])); }}>←</button>
          <input type="range" min={-1} max={rewrites.length - 1} value={step} aria-label="rewrite" onInput={(e) => { const s = Number(e.target.value); location.hash = address("phase", phase.id, number, ...(s >= 0 ? [s] : [])); }} />
          <button onClick={() => { location.hash = address("phase", phase.id, number, Math.min(rewrites.length - 1, step + 1)); }}>→</button>
          {rewrite ? <span class="rule"><b>{trace.rules.get(rewrite[0])?.name}</b> {rewrite[3]} <em>{step + 1} of {rewrites.length}</em></span> : <span class="rule"><em>{rewrites.length} rewrites: step through them with ← →</em></span>}
        </div>
      )}
      {rewrite && <div class="beforeafter"><code class="was">{expression(trace, rewrite[1])}</code><span>→</span><code class="now">{expression(trace, rewrite[2])}</code></div>}
      <div class="split">
        {rewrite && <Graph trace={trace} root={before} gone={gone} chosen={chosen} onChoose={setChosen} theme={theme} />}
        <Graph trace={trace} root={after} marked={marked} chosen={chosen} onChoose={setChosen} theme={theme} />
        {chosen && <NodePanel trace={trace} phase={phase} id={chosen} onChoose={setChosen} />}
      </div>
    </div>
  );
}

function fresh(trace, before, after) {
  const old = new Set(nodesBelow(trace, before).map((n) => n.id));
  return new Set(nodesBelow(trace, after).filter((n) => !old.has(n.id)).map((n) => n.id));
}

const SIGNS = { ADD: "+", MUL: "*", DIV: "/", FLOORDIV: "//", MOD: "%", LESS: "<", LESS_EQUAL: "<=", EQUAL: "==", AND: "&", OR: "|", XOR: "^", SHIFT_LEFT: "<<", SHIFT_RIGHT: ">>", IDIV: "//" };

// A node as one line, as the text form has it; the far end is cut.
export function expression(trace, id, depth = 4) {
  const node = trace.nodes.get(id);
  if (!node) return "?";
  if (node.op === "CONST") return node.arg ?? "";
  if (node.op === "RANGE") return `r${node.arg}`;
  if (node.op === "PARAM") return `p${(node.arg ?? "").match(/\d+/)?.[0] ?? ""}`;
  const src = node.src ?? [];
  if (!src.length || !depth) return src.length ? `${node.op}(…)` : node.op;
  const parts = src.slice(0, 5).map((s) => expression(trace, s, depth - 1));
  if (SIGNS[node.op] && parts.length === 2) return `(${parts[0]} ${SIGNS[node.op]} ${parts[1]})`;
  return `${node.op.toLowerCase()}(${parts.join(", ")}${src.length > 5 ? ", …" : ""})`;
}

// What is known of a node, where it came from in this phase, and what became of it.
export function NodePanel({ trace, phase, id, onChoose }) {
  const node = trace.nodes.get(id);
  const line = trace.lines.get(node.line);
  const life = useMemo(() => history(trace, phase, id), [trace, phase, id]);
  const Ref = ({ to }) => <a class="ref" onClick={() => onChoose(to)}>{trace.nodes.get(to)?.op} <i>{to}</i></a>;
  return (
    <aside>
      <h2>{node.op}<i>{node.id}</i></h2>
      <dl>
        {node.dtype && <><dt>dtype</dt><dd>{node.dtype}</dd></>}
        {node.shape && <><dt>shape</dt><dd>[{node.shape}]</dd></>}
        {node.bounds && <><dt>bounds</dt><dd>{node.bounds}</dd></>}
        {node.arg && <><dt>arg</dt><dd><code>{node.arg}</code></dd></>}
        {line && <><dt>line</dt><dd>{line.file}:{line.row}<pre>{line.text}</pre></dd></>}
        <dt>text</dt><dd><code>{expression(trace, id)}</code></dd>
        {node.src && <><dt>sources</dt><dd>{node.src.slice(0, 12).map((s) => <Ref to={s} />)}</dd></>}
        {life.madeBy && <><dt>made by</dt><dd>{life.madeBy.pass}{life.madeBy.rule && `, ${life.madeBy.rule}`}{life.madeBy.from && <>, of <Ref to={life.madeBy.from} /></>}</dd></>}
        {life.became && <><dt>became</dt><dd><Ref to={life.became.to} /> in {life.became.pass}, {life.became.rule}</dd></>}
      </dl>
    </aside>
  );
}

function history(trace, phase, id) {
  const life = {};
  for (const pass of phase?.passes ?? []) {
    for (const [rule, before, after] of pass.rewrites ?? []) {
      if (after === id && !life.madeBy) life.madeBy = { pass: pass.name, rule: trace.rules.get(rule)?.name, from: before };
      if (before === id) life.became = { pass: pass.name, rule: trace.rules.get(rule)?.name, to: after };
    }
    if (!life.madeBy && pass.root && !below(trace, pass.before).has(id) && below(trace, pass.after).has(id)) life.madeBy = { pass: pass.name };
  }
  return life;
}

const known = new Map();
function below(trace, root) {
  if (!known.has(root)) known.set(root, new Set(nodesBelow(trace, root).map((n) => n.id)));
  return known.get(root);
}
