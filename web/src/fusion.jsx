// The tensor graph in groups, one for each kernel, with what each decision would have cost. A large
// graph is folded: a node for each kernel, which a click unfolds.
import { useMemo, useState } from "preact/hooks";
import { address } from "./address.js";
import { fold, labelOf, unfold } from "./fold.js";
import { Graph } from "./graph.jsx";
import { NodePanel } from "./phase.jsx";
import { bytes, lineOf, time } from "./trace.js";

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
  const cuts = useMemo(() => new Map(schedule.decisions.filter((d) => d.to === "memory").map((d) => [d.node, d])), [schedule]);
  const go = (which) => { setChosen(null); location.hash = address("fusion", schedule.id, which); };
  const choose = (id) => { const group = open === -1 && id !== null ? view.owner.get(id) : undefined; if (group !== undefined) go(group); else setChosen(id); };
  return (
    <div class="view">
      <div class="bar"><h1>Fusion</h1><span class="faint">{schedule.kernels.length} kernel{schedule.kernels.length === 1 ? "" : "s"} on {schedule.device}, {bytes(schedule.arena)} of temporaries</span><span class="grow" />
        <span class="tabs"><button class={open === -1 ? "on" : ""} onClick={() => go(-1)}>kernels</button>{open >= 0 && <button class="on">{labelOf(trace, groups[open])}</button>}<button class={open === -2 ? "on" : ""} onClick={() => go(-2)}>every node</button></span></div>
      <div class="split">
        {view && <Graph key={open} trace={view.trace} root={view.root} groups={view.groups} chosen={chosen} onChoose={choose} theme={theme} note={open === -1 ? "a click unfolds a kernel" : "colours: kernels"} />}
        {chosen && trace.nodes.has(chosen) ? <NodePanel trace={trace} phase={phase} id={chosen} onChoose={setChosen} /> : (
          <aside>
            <h2>Kernels</h2>
            <ol class="groups">{groups.map((group, i) => <Group trace={trace} group={group} number={i} cut={cuts.get(group.outputs[0])} isOn={i === open} onClick={() => (isLarge ? go(i) : setChosen(group.outputs[0]))} />).reverse()}</ol>
            <Decisions trace={trace} decisions={schedule.decisions} onChoose={setChosen} />
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

// A kernel, what it computes, and what the cut behind it costs: storing against computing it again.
function Group({ trace, group, number, cut, isOn, onClick }) {
  const head = trace.nodes.get(group.outputs[0]);
  return (
    <li class={isOn ? "on" : ""} onClick={onClick}>
      <i style={`background:var(--series-${(number % 8) + 1})`} />
      <b>{labelOf(trace, group)}</b><span class="where">{lineOf(trace, group.line)}</span>
      <em>{head?.shape ? `[${head.shape.replaceAll(",", ", ")}]` : "one number"} · {group.nodes.length} nodes</em>
      {cut && <em class="cut">{cut.refused ? cut.refused.replace("inlining refused: ", "cut: ") : <>cut: stored {time(cut.memory)}, computed again {time(cut.recompute)}</>}</em>}
    </li>
  );
}

const SHOWN = 40;

function Decisions({ trace, decisions, onChoose }) {
  const [all, setAll] = useState(false);
  const sorted = useMemo(() => [...decisions].sort((a, b) => weight(b) - weight(a)), [decisions]);
  const shown = all ? sorted : sorted.slice(0, SHOWN);
  return (
    <>
      <h2>Decisions<i>{decisions.length || ""}</i></h2>
      {!decisions.length && <p class="faint">every value is used once, at one index: nothing to decide</p>}
      <ul class="decisions">{shown.map((d) => (
        <li onClick={() => trace.nodes.has(d.node) && onChoose(d.node)}>
          <b class={d.to === "memory" ? "kept" : "inlined"}>{d.to}</b>{d.text.split(":")[0]}<span class="where">{lineOf(trace, d.line)}</span>
          <em>{d.refused ?? `${d.uses} use${d.uses === 1 ? "" : "s"}, ${d.evaluations.toLocaleString()} evaluations of ${d.size.toLocaleString()}`}</em>
          {!d.refused && <Costs decision={d} />}
        </li>))}</ul>
      {sorted.length > shown.length && <button class="more" onClick={() => setAll(true)}>all {sorted.length} decisions</button>}
    </>
  );
}

// What hung on a decision: the refusals first, then by the difference of the costs.
const weight = (d) => (d.refused ? Infinity : Math.abs(d.memory - d.recompute));

// Both costs side by side; the smaller one wins.
function Costs({ decision: { memory, recompute, to } }) {
  const most = Math.max(memory, recompute, 1e-9);
  const row = (name, us, isTaken) => <div class={isTaken ? "taken" : ""}><span>{name}</span><i style={`width:${Math.max(2, (100 * us) / most)}%`} /><span>{time(us)}</span></div>;
  return <div class="costs">{row("memory", memory, to === "memory")}{row("recompute", recompute, to === "inline")}</div>;
}
