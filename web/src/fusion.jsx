// The tensor graph in groups, one for each kernel, with what each decision would have cost. A large
// graph is folded: a node for each kernel, which a click unfolds.
import { useMemo, useState } from "preact/hooks";
import { address } from "./address.js";
import { fold, labelOf, unfold } from "./fold.js";
import { Graph } from "./graph.jsx";
import { NodePanel } from "./phase.jsx";
import { bytes, lineOf } from "./trace.js";

const LARGE = 250; // nodes that a person can still follow

export function FusionView({ trace, at, theme }) {
  const schedule = trace.schedules.find((s) => s.id === at.path[0]);
  const fusion = trace.fusionByPhase.get(schedule.phase);
  const phase = trace.phaseById.get(schedule.phase);
  const groups = fusion?.groups ?? [];
  const [chosen, setChosen] = useState(null);
  const isLarge = groups.reduce((sum, g) => sum + g.nodes.length, 0) > LARGE;
  const open = at.path[1] ?? (isLarge ? -1 : -2); // a group, all of them folded, or the whole graph
  const view = useMemo(() => {
    if (!fusion) return null;
    if (open >= 0) return unfold(trace, fusion, open);
    return open === -1 ? fold(trace, fusion) : { trace, root: fusion.graph, groups: ownersOf(fusion) };
  }, [trace, fusion, open]);
  const go = (which) => { setChosen(null); location.hash = address("fusion", schedule.id, which); };
  const choose = (id) => { const group = open === -1 && id !== null ? view.owner.get(id) : undefined; if (group !== undefined) go(group); else setChosen(id); };
  return (
    <div class="view">
      <div class="bar"><h1>Fusion</h1><span class="faint">{schedule.kernels.length} kernels on {schedule.device}, {bytes(schedule.arena)} of temporaries</span><span class="grow" />
        <span class="tabs"><button class={open === -1 ? "on" : ""} onClick={() => go(-1)}>kernels</button>{open >= 0 && <button class="on">{labelOf(trace, groups[open])}</button>}<button class={open === -2 ? "on" : ""} onClick={() => go(-2)}>every node</button></span></div>
      <div class="split">
        {view && <Graph key={open} trace={view.trace} root={view.root} groups={view.groups} chosen={chosen} onChoose={choose} theme={theme} note={open === -1 ? "a click unfolds a kernel" : "colours: kernels"} />}
        {chosen && trace.nodes.has(chosen) ? <NodePanel trace={trace} phase={phase} id={chosen} onChoose={setChosen} /> : (
          <aside>
            <h2>Kernels</h2>
            <ol class="groups">{groups.map((group, i) => <li class={i === open ? "on" : ""} onClick={() => (isLarge ? go(i) : setChosen(group.outputs[0]))}><i style={`background:var(--series-${(i % 8) + 1})`} />{labelOf(trace, group)} <span class="faint">[{trace.nodes.get(group.outputs[0])?.shape}] {group.nodes.length} nodes {lineOf(trace, group.line)}</span></li>)}</ol>
            <h2>Decisions</h2>
            {schedule.decisions.length ? <ul class="decisions">{schedule.decisions.map((text) => <Decision text={text} />)}</ul> : <p class="faint">every value is used once, at one place: nothing to decide</p>}
          </aside>
        )}
      </div>
    </div>
  );
}

function ownersOf(fusion) {
  const found = new Map();
  fusion.groups.forEach((group, i) => group.nodes.forEach((id) => { if (!found.has(id)) found.set(id, i); }));
  return found;
}

function Decision({ text }) {
  const [what, verdict] = text.split(" -> ");
  return <li><b class={verdict === "memory" ? "kept" : "inlined"}>{verdict}</b> {what}</li>;
}
