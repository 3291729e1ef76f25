// A kernel: its graph, loops, source and assembly with the same loop marked, its cost and its opts.
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import hljs from "highlight.js/lib/core";
import c from "highlight.js/lib/languages/c";
import llvm from "highlight.js/lib/languages/llvm";
import python from "highlight.js/lib/languages/python";
import asm from "highlight.js/lib/languages/x86asm";
import { address } from "./address.js";
import { Graph } from "./graph.jsx";
import { assemblyLoops, nestOf, sourceLoops, textLoops } from "./loops.js";
import { bytes, nodesBelow, rates, time } from "./trace.js";
import { Roofline } from "./roofline.jsx";

for (const [name, language] of Object.entries({ c, llvm, python, asm })) hljs.registerLanguage(name, language);
const LONGEST = 3000; // lines of a pane

// Code of which each line knows its loops: those of the chosen loop are marked, in every pane.
function Code({ text, language, loops, loop, onLoop }) {
  const lines = text.split("\n");
  const shown = lines.length > LONGEST ? [...lines.slice(0, LONGEST), "…"] : lines;
  const html = useMemo(() => hljs.highlight(shown.join("\n"), { language }).value.split("\n"), [text]);
  const own = useRef();
  useEffect(() => {
    if (!loop || !own.current || own.current.matches(":hover")) return;
    const first = own.current.querySelector(".in");
    if (first) own.current.scrollTop = first.offsetTop - 40;
  }, [loop, text]);
  return (
    <pre class="code" ref={own}>{html.map((line, i) => {
      const keys = loops?.[i] ?? [];
      return <div class={loop && keys.includes(loop) ? "in" : ""} data-loop={keys[keys.length - 1]} onClick={() => keys.length && onLoop?.(keys[keys.length - 1])} dangerouslySetInnerHTML={{ __html: line || " " }} />;
    })}</pre>
  );
}

export function KernelView({ trace, at, theme }) {
  const kernel = trace.kernelById.get(at.path[0]);
  const [assembly, setAssembly] = useState(kernel.assembly ?? null);
  const [tab, setTab] = useState("assembly");
  const [left, setLeft] = useState("graph");
  useEffect(() => {
    if (kernel.assembly || location.protocol === "file:") return;
    fetch(`assembly/${kernel.id}`).then((r) => (r.ok ? r.text() : "")).then(setAssembly).catch(() => setAssembly(""));
  }, [kernel]);
  const nest = useMemo(() => nestOf(trace, kernel), [trace, kernel]);
  const source = useMemo(() => sourceLoops(kernel.source, nest.loops), [kernel, nest]);
  const machine = useMemo(() => (assembly ? assemblyLoops(assembly, source.names) : []), [assembly, source]);
  const written = useMemo(() => textLoops(kernel.text ?? "", nest.rows), [kernel, nest]);
  const row = nest.rows[at.path[1]];
  const loop = row?.key ?? "";
  const choose = (key) => { const i = nest.rows.findIndex((r) => r.key === key); location.hash = key && key !== loop && i >= 0 ? address("kernel", kernel.id, i) : address("kernel", kernel.id); };
  const marked = useMemo(() => (row ? nodesOver(trace, kernel.body, row.from) : null), [trace, kernel, row]);
  const runs = kernel.launches.length;
  const { flops, moved, share, bound, isCached } = rates(kernel);
  const lines = [...new Set(kernel.launches.map((l) => l.line).filter(Boolean))].map((id) => trace.lines.get(id));
  const language = kernel.source.includes("define ") ? "llvm" : "c";
  const panes = { loop, onLoop: choose };
  return (
    <div class="view scroll">
      <div class="bar"><h1>{kernel.label || kernel.name}</h1><code class="faint">{kernel.name}</code><span class="faint">{kernel.device}</span><span class="grow" />
        {kernel.phase && <a class="link" href={address("phase", kernel.phase)}>its passes, step by step</a>}
        {kernel.phase && <a class="link" href={address("access", kernel.id)}>memory access</a>}</div>
      <div class="cards">
        <Card name="time" value={time(kernel.us / Math.max(1, runs))} note={`${runs} run${runs === 1 ? "" : "s"}, ${time(kernel.us)} in all`} />
        <Card name="compute" value={`${(flops / 1e9).toFixed(1)} GFLOP/s`} note={`${(kernel.operations / 1e6).toFixed(2)} M operations`} />
        <Card name="memory" value={`${(moved / 1e9).toFixed(1)} GB/s`} note={`${bytes(kernel.bytes)} moved`} />
        <Card name="of the machine" value={isCached ? "in cache" : `${(100 * share).toFixed(0)} %`} note={isCached ? `${(100 * share).toFixed(0)} % of its flops` : bound && `bound by ${bound}`} />
        <Card name="compile" value={time(kernel.compile)} note={`grid ${kernel.groups.join("×") || 1}, threads ${kernel.threads.join("×") || 1}`} />
      </div>
      {lines.length > 0 && <div class="lines">{[...new Map(lines.map((line) => [`${line.file}:${line.row}`, line])).values()].slice(0, 3).map((line) => <div><a>{line.file.split("/").pop()}:{line.row}</a><code>{line.text.split("\n")[0]}</code><span class="faint">{modulesOf(lines, line)}</span></div>)}</div>}
      <div class="panes four">
        <section><Tabs names={["graph", "text"]} on={left} onTab={setLeft} />
          {!kernel.text ? <p class="faint">found on disk: its graph was not made</p> : left === "text" ? <Code text={kernel.text} language="python" loops={written} {...panes} />
            : <div class="small"><Graph trace={trace} root={kernel.body} marked={marked} onChoose={() => {}} theme={theme} /></div>}</section>
        <section><h2>loop nest <span class="faint">a click marks a loop in every pane</span></h2><Nest nest={nest} loop={loop} onLoop={choose} /></section>
        <section><h2>source</h2><Code text={kernel.source} language={language} loops={source.inside} {...panes} /></section>
        <section><Tabs names={["assembly", "opts"]} on={tab} onTab={setTab} />
          {tab === "assembly" && (assembly ? <Code text={assembly} language="asm" loops={machine} {...panes} /> : <p class="faint">{assembly === "" ? "this target has no assembly here" : "open the trace with `weft viz` to see it"}</p>)}
          {tab === "opts" && <Opts kernel={kernel} />}</section>
      </div>
      <Roofline trace={trace} theme={theme} only={kernel} />
    </div>
  );
}

// The modules in which a line runs, briefly.
function modulesOf(lines, line) {
  const names = lines.filter((l) => l.row === line.row && l.file === line.file && l.module).map((l) => l.module);
  return names.length > 2 ? `${names[0]} and ${names.length - 1} others` : names.join(", ");
}

function Tabs({ names, on, onTab }) {
  return <h2 class="tabs">{names.map((name) => <button class={on === name ? "on" : ""} onClick={() => onTab(name)}>{name}</button>)}</h2>;
}

const many = (n, what) => `${n} ${what}${n === 1 ? "" : "s"}`;

function Nest({ nest, loop, onLoop }) {
  if (!nest.rows.length) return <p class="faint">its program is not in this trace</p>;
  const what = (r) => [r.loads && many(r.loads, "load"), r.stores && many(r.stores, "store"), r.math && many(r.math, "operation")].filter(Boolean).join(", ");
  return (
    <div class="code nest">{nest.rows.map((r) => (
      <div class={r.key === loop ? "in" : ""} data-loop={r.key} style={`padding-left:${8 + r.depth * 18}px`} onClick={() => onLoop(r.key)}><b>{r.title}</b>{r.from.length > 0 && <i>{r.from.map((n) => `r${n}`).join(" ")}</i>}<span>{what(r)}</span></div>
    ))}</div>
  );
}

// The nodes of a kernel's graph that run over one of these ranges.
function nodesOver(trace, root, ranges) {
  const wanted = new Set(ranges.map(String));
  const over = new Set();
  for (const node of nodesBelow(trace, root)) {
    const isOpen = node.op === "RANGE" ? wanted.has(String(node.arg)) : (node.src ?? []).some((s) => over.has(s));
    if (isOpen && node.op !== "SINK" && node.op !== "KERNEL") over.add(node.id);
  }
  return over;
}

export function Card({ name, value, note }) {
  return <div class="card"><em>{name}</em><b>{value}</b><span>{note}</span></div>;
}

function Opts({ kernel }) {
  return (
    <div class="opts">
      <h3>taken</h3>{kernel.opts?.length ? <ol>{kernel.opts.map((o) => <li><code>{o}</code></li>)}</ol> : <p class="faint">none</p>}
      <h3>refused</h3>{kernel.refused?.length ? <ul>{[...new Set(kernel.refused)].map((o) => <li><code>{o}</code></li>)}</ul> : <p class="faint">none</p>}
    </div>
  );
}
