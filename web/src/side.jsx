// What the trace holds: schedules with their kernels, and a search over kernels, rules and lines.
import { useMemo, useState } from "preact/hooks";
import { address } from "./address.js";
import { lineOf, time } from "./trace.js";

export function Side({ trace, at, onTheme, onHelp, theme }) {
  const [query, setQuery] = useState("");
  return (
    <nav>
      <header>
        <a class="brand" href={address("overview")}><Logo />weft</a>
        <span class="grow" />
        <button title="dark or light (d)" onClick={onTheme}>{theme === "dark" ? "☀" : "☾"}</button>
        <button title="keys (?)" onClick={onHelp}>?</button>
      </header>
      <input id="search" placeholder="search kernels, rules, lines  /" value={query} onInput={(e) => setQuery(e.target.value)} />
      <div class="list">
        {query ? <Found trace={trace} query={query.toLowerCase()} /> : <Contents trace={trace} at={at} />}
      </div>
      <footer>{trace.head.program}{trace.end && <div class="warn">the trace is full: {Object.entries(trace.end.left_out).map(([k, n]) => `${n} ${k}`).join(", ")} left out</div>}</footer>
    </nav>
  );
}

function Logo() {
  return <svg viewBox="0 0 24 24" width="20" height="20" aria-hidden="true"><g fill="none" stroke="currentColor" stroke-width="2.2" stroke-linecap="round"><path d="M3 7c3 0 3 10 6 10s3-10 6-10 3 10 6 10" /><path d="M3 17c3 0 3-10 6-10s3 10 6 10 3-10 6-10" opacity=".45" /></g></svg>;
}

function Item({ href, isOn, title, note, sub, deep = 0 }) {
  return <a class={`item deep${deep} ${isOn ? "on" : ""}`} href={href}><span class="title">{title}</span><span class="note">{note}</span>{sub && <span class="sub">{sub}</span>}</a>;
}

function Contents({ trace, at }) {
  const [first] = at.path;
  return (
    <>
      <Item href={address("overview")} isOn={at.view === "overview"} title="Overview" />
      <Item href={address("timeline")} isOn={at.view === "timeline"} title="Timeline" note={time(trace.to)} />
      <Item href={address("model")} isOn={at.view === "model"} title="Model" />
      {trace.schedules.map((schedule, i) => <ScheduleItems key={schedule.id} trace={trace} schedule={schedule} number={i + 1} at={at} first={first} />)}
      {!trace.schedules.length && trace.phases.map((p) => <Item href={address("phase", p.id)} isOn={at.view === "phase" && first === p.id} title={`${p.phase} ${p.title}`} note={time(p.end - p.start)} />)}
    </>
  );
}

function ScheduleItems({ trace, schedule, number, at, first }) {
  const phase = trace.phaseById.get(schedule.phase);
  const kernels = schedule.kernels.map((k) => ({ ...k, made: trace.kernelByBody.get(k.body) }));
  const isInside = (at.view === "phase" && first === schedule.phase) || (at.view === "fusion" && first === schedule.id)
    || kernels.some((k) => k.made && (((at.view === "kernel" || at.view === "access") && first === k.made.id) || (at.view === "phase" && first === k.made.phase)));
  // Layers of a model share kernels: each is listed once.
  const rows = [...new Map(kernels.map((k) => [k.made?.id ?? `${k.name} ${k.line}`, k])).values()];
  const times = (k) => kernels.filter((o) => (k.made ? o.made === k.made : o.name === k.name && o.line === k.line)).length;
  const [open, setOpen] = useState(null);
  const isOpen = open ?? (isInside || trace.schedules.length < 4);
  return (
    <section>
      <button class="fold" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}><span>{isOpen ? "▾" : "▸"}</span> schedule {number}<em>{schedule.kernels.length} kernel{schedule.kernels.length === 1 ? "" : "s"} · {schedule.device}</em></button>
      {isOpen && <>
        {phase && <Item deep={1} href={address("phase", phase.id)} isOn={at.view === "phase" && first === phase.id} title="passes" note={time(phase.end - phase.start)} />}
        <Item deep={1} href={address("fusion", schedule.id)} isOn={at.view === "fusion" && first === schedule.id} title="fusion" note={`${schedule.decisions.length} decision${schedule.decisions.length === 1 ? "" : "s"}`} />
        {rows.map((k) => k.made
          ? <Item deep={1} href={address("kernel", k.made.id)} isOn={((at.view === "kernel" || at.view === "access") && first === k.made.id) || (at.view === "phase" && first === k.made.phase)} title={`${k.made.label || k.name}${times(k) > 1 ? ` ×${times(k)}` : ""}`} note={time(k.made.us)} sub={`${lineOf(trace, k.line)} ${k.made.label ? k.name : ""}`} />
          : <span class="item deep1 off"><span class="title">{k.name}</span><span class="sub">{lineOf(trace, k.line)}</span></span>)}
      </>}
    </section>
  );
}

function Found({ trace, query }) {
  const rows = useMemo(() => search(trace, query), [trace, query]);
  if (!rows.length) return <p class="empty">nothing is called “{query}”</p>;
  return rows.map((row) => <Item href={row.href} title={row.title} note={row.note} sub={row.sub} />);
}

const MOST = 80;

function search(trace, query) {
  const rows = [];
  for (const kernel of trace.kernels)
    if (`${kernel.name} ${kernel.label ?? ""}`.toLowerCase().includes(query)) rows.push({ href: address("kernel", kernel.id), title: kernel.label || kernel.name, sub: kernel.name, note: time(kernel.us) });
  for (const schedule of trace.schedules)
    for (const k of schedule.kernels) {
      const line = trace.lines.get(k.line);
      const made = trace.kernelByBody.get(k.body);
      if (line && made && `${line.file}:${line.row} ${line.text}`.toLowerCase().includes(query)) rows.push({ href: address("kernel", made.id), title: k.name, note: "line", sub: `${line.file}:${line.row}  ${line.text}` });
    }
  const rules = new Map([...trace.rules.values()].filter((r) => r.name.toLowerCase().includes(query)).map((r) => [r.id, r]));
  if (rules.size)
    for (const phase of trace.phases)
      phase.passes.forEach((pass, p) => {
        const step = (pass.rewrites ?? []).findIndex((r) => rules.has(r[0]));
        if (step >= 0 && rows.length < MOST) rows.push({ href: `${address("phase", phase.id, p, step)}`, title: rules.get(pass.rewrites[step][0]).name, note: "rule", sub: `${phase.title} · ${pass.name}` });
      });
  return rows.slice(0, MOST);
}
