// The page: a trace on the left, what was chosen of it in the middle. The address holds the state.
import { render } from "preact";
import { useEffect, useState } from "preact/hooks";
import { address, readAddress } from "./address.js";
import { AccessView } from "./access.jsx";
import { FusionView } from "./fusion.jsx";
import { KernelView } from "./kernel.jsx";
import { ModelView } from "./model.jsx";
import { Overview } from "./overview.jsx";
import { PhaseView } from "./phase.jsx";
import { Side } from "./side.jsx";
import { Timeline } from "./timeline.jsx";
import { readTrace } from "./trace.js";

const HELP = [
  ["← →", "previous and next rewrite of a pass"], ["↑ ↓", "previous and next pass"], ["/", "search kernels, rules, lines"],
  ["+ − 0", "zoom in, out, fit"], ["o t m", "overview, timeline, model"], ["d", "dark or light"], ["?", "this help"], ["Esc", "close"],
];

function App({ load }) {
  const [trace, setTrace] = useState(null);
  const [failure, setFailure] = useState("");
  const [at, setAt] = useState(readAddress());
  const [help, setHelp] = useState(false);
  const [theme, setTheme] = useState(document.documentElement.dataset.theme);
  useEffect(() => { load().then((text) => setTrace(readTrace(text))).catch((e) => setFailure(String(e))); }, []);
  useEffect(() => {
    const follow = () => setAt(readAddress());
    addEventListener("hashchange", follow);
    return () => removeEventListener("hashchange", follow);
  }, []);
  useEffect(() => {
    const press = (event) => {
      if (event.target.tagName === "INPUT") { if (event.key === "Escape") event.target.blur(); return; }
      if (event.key === "?") setHelp((h) => !h);
      if (event.key === "Escape") setHelp(false);
      if (event.key === "/") { event.preventDefault(); document.querySelector("#search")?.focus(); }
      if (event.key === "d") switchTheme();
      if (event.key === "o") location.hash = address("overview");
      if (event.key === "t") location.hash = address("timeline");
      if (event.key === "m") location.hash = address("model");
      if (event.key === "+" || event.key === "=") window.weftCanvas?.zoom(1.25);
      if (event.key === "-") window.weftCanvas?.zoom(0.8);
    };
    addEventListener("keydown", press);
    return () => removeEventListener("keydown", press);
  }, []);
  const switchTheme = () => {
    const next = document.documentElement.dataset.theme === "dark" ? "light" : "dark";
    document.documentElement.dataset.theme = next;
    try { localStorage.setItem("weft-theme", next); } catch { /* a file may not keep anything */ }
    setTheme(next);
  };
  if (failure) return <p class="failure">This trace cannot be read: {failure}</p>;
  if (!trace) return <p class="failure">reading…</p>;
  return (
    <div class="page">
      <Side trace={trace} at={at} onTheme={switchTheme} onHelp={() => setHelp(true)} theme={theme} />
      <main><View trace={trace} at={at} theme={theme} /></main>
      {help && <div class="help" onClick={() => setHelp(false)}><div><h2>Keys</h2><table>{HELP.map(([key, what]) => <tr><td><kbd>{key}</kbd></td><td>{what}</td></tr>)}</table></div></div>}
    </div>
  );
}

function View({ trace, at, theme }) {
  const [first] = at.path;
  if (at.view === "phase" && trace.phaseById.has(first)) return <PhaseView key={first} trace={trace} at={at} theme={theme} />;
  if (at.view === "kernel" && trace.kernelById.has(first)) return <KernelView key={first} trace={trace} at={at} theme={theme} />;
  if (at.view === "fusion" && trace.schedules.some((s) => s.id === first)) return <FusionView key={first} trace={trace} at={at} theme={theme} />;
  if (at.view === "access" && trace.kernelById.has(first)) return <AccessView key={first} trace={trace} at={at} />;
  if (at.view === "model") return <ModelView trace={trace} />;
  if (at.view === "timeline") return <Timeline trace={trace} at={at} theme={theme} />;
  return <Overview trace={trace} theme={theme} />;
}

// A trace is inside of the page, packed, or beside it where `weft viz` serves it.
async function load() {
  const inside = document.getElementById("trace");
  if (inside) {
    const packed = Uint8Array.from(atob(inside.textContent.trim()), (c) => c.charCodeAt(0));
    return new Response(new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"))).text();
  }
  const answer = await fetch("trace.jsonl");
  if (!answer.ok) throw new Error(`the server says ${answer.status}`);
  return answer.text();
}

let saved = null;
try { saved = localStorage.getItem("weft-theme"); } catch { /* a file may not keep anything */ }
const wanted = new URLSearchParams(location.search).get("theme") ?? saved;
document.documentElement.dataset.theme = wanted ?? (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
render(<App load={load} />, document.getElementById("app"));
