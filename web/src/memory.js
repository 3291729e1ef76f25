// Which tensors had memory when most of it was in use, by kind and line, largest first.

export function aliveAtPeak(trace, device) {
  const records = trace.memory.filter((m) => m.device === device);
  let peak = 0;
  records.forEach((m, i) => { if (m.used > records[peak].used) peak = i; });
  const alive = new Map();
  let unnamed = 0; // given back of what was there before the trace
  for (const m of records.slice(0, peak + 1)) {
    if (m.take !== undefined) alive.set(m.take, m);
    else if (!alive.delete(m.free)) unnamed += m.bytes ?? 0;
  }
  const rest = alive.get(-1);
  if (rest && unnamed) { alive.delete(-1); if (rest.bytes > unnamed) alive.set(-1, { ...rest, bytes: rest.bytes - unnamed }); }
  const rows = new Map();
  for (const m of alive.values()) {
    const key = `${m.what}|${m.line}`;
    if (!rows.has(key)) rows.set(key, { what: m.what, line: m.line, count: 0, bytes: 0, parts: [] });
    const row = rows.get(key);
    row.count += 1;
    row.bytes += m.bytes;
    row.parts.push({ line: m.line, bytes: m.bytes });
    if (m.parts) row.inner = m.parts;
  }
  return [...rows.values()].sort((a, b) => b.bytes - a.bytes);
}
