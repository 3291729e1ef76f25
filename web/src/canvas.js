// A canvas that pans and zooms, sharp on every screen; it draws once per frame at most.

export class Canvas {
  constructor(element, draw, options = {}) {
    this.element = element;
    this.context = element.getContext("2d");
    this.draw = draw;
    this.scale = 1;
    this.x = 0;
    this.y = 0;
    this.lockY = options.lockY ?? false; // only the x axis moves, as in a timeline
    this.onClick = options.onClick;
    this.onHover = options.onHover;
    this.frame = 0;
    this.listen();
    this.observer = new ResizeObserver(() => this.resize());
    this.observer.observe(element);
  }

  stop() { this.observer.disconnect(); cancelAnimationFrame(this.frame); this.gone = true; }

  resize() {
    const ratio = window.devicePixelRatio || 1;
    const { clientWidth, clientHeight } = this.element;
    this.width = clientWidth;
    this.height = clientHeight;
    this.element.width = clientWidth * ratio;
    this.element.height = clientHeight * ratio;
    this.ratio = ratio;
    this.onResize?.();
    this.ask();
  }

  ask() {
    if (this.frame || this.gone) return;
    this.frame = requestAnimationFrame(() => {
      this.frame = 0;
      const start = performance.now();
      const { context: c } = this;
      c.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
      c.clearRect(0, 0, this.width, this.height);
      this.draw(c, this);
      this.lastFrame = performance.now() - start;
      window.weftLastFrame = this.lastFrame;
    });
  }

  toWorld(px, py) { return [(px - this.x) / this.scale, this.lockY ? py : (py - this.y) / this.scale]; }

  zoom(factor, px = this.width / 2, py = this.height / 2) {
    const next = Math.min(this.most ?? 4, Math.max(this.least ?? 0.002, this.scale * factor));
    const by = next / this.scale;
    this.x = px - (px - this.x) * by;
    if (!this.lockY) this.y = py - (py - this.y) * by;
    this.scale = next;
    this.ask();
  }

  fit(left, top, right, bottom, most = 1.25) {
    const pad = 36;
    const wide = (this.width - 2 * pad) / Math.max(1, right - left);
    const high = (this.height - 2 * pad) / Math.max(1, bottom - top);
    this.scale = Math.min(wide, this.lockY ? wide : high, most);
    this.x = this.width / 2 - (this.scale * (left + right)) / 2;
    if (!this.lockY) this.y = this.height / 2 - (this.scale * (top + bottom)) / 2;
    this.ask();
  }

  listen() {
    const at = (event) => { const box = this.element.getBoundingClientRect(); return [event.clientX - box.left, event.clientY - box.top]; };
    let held = null;
    this.element.addEventListener("wheel", (event) => {
      event.preventDefault();
      const [px, py] = at(event);
      if (event.ctrlKey || event.metaKey || !event.shiftKey) this.zoom(Math.exp(-event.deltaY * 0.0015), px, py);
      else { this.x -= event.deltaY; this.ask(); }
    }, { passive: false });
    this.element.addEventListener("pointerdown", (event) => {
      held = { x: event.clientX, y: event.clientY, moved: false };
      this.element.setPointerCapture(event.pointerId);
    });
    this.element.addEventListener("pointermove", (event) => {
      if (!held) { this.onHover?.(...this.toWorld(...at(event)), event); return; }
      const [dx, dy] = [event.clientX - held.x, event.clientY - held.y];
      if (Math.abs(dx) + Math.abs(dy) > 3) held.moved = true;
      if (held.moved) {
        this.x += dx;
        if (!this.lockY) this.y += dy;
        held.x = event.clientX;
        held.y = event.clientY;
        this.ask();
      }
    });
    this.element.addEventListener("pointerup", (event) => {
      if (held && !held.moved) this.onClick?.(...this.toWorld(...at(event)), event);
      held = null;
    });
    this.element.addEventListener("dblclick", (event) => this.zoom(1.7, ...at(event)));
  }
}

// The colours of the theme in force.
export function palette() {
  const style = getComputedStyle(document.documentElement);
  const get = (name) => style.getPropertyValue(`--${name}`).trim();
  return {
    text: get("text"), faint: get("faint"), line: get("line"), panel: get("panel"), accent: get("accent"),
    back: get("back"), fresh: get("fresh"), gone: get("gone"),
    kinds: Object.fromEntries(KINDS.map((kind) => [kind, get(`kind-${kind}`)])),
    series: [1, 2, 3, 4, 5, 6, 7, 8].map((i) => get(`series-${i}`)),
  };
}

export const KINDS = ["memory", "movement", "math", "reduce", "control", "leaf"];
const OF_OP = {
  memory: ["PARAM", "BUFFER", "LOAD", "STORE", "INDEX", "STAGE", "READ", "AFTER", "MEMORY", "COPY", "DETACH", "CONTIGUOUS", "BARRIER", "SCATTER"],
  movement: ["RESHAPE", "EXPAND", "PERMUTE", "PAD", "SHRINK", "FLIP", "STRIDE", "CAT", "SLICE", "LANES", "LANE", "SHUFFLE", "BROADCAST", "STACK"],
  reduce: ["REDUCE", "SCAN", "MMA", "ACCUMULATE"],
  control: ["SINK", "KERNEL", "LINEAR", "CALL", "RANGE", "END", "SPECIAL", "TUPLE", "ITEM", "PROGRAM", "FOR", "BIND", "VARIABLE", "CUSTOM_GRADIENT"],
  leaf: ["CONST", "IOTA"],
};
const KIND_OF = Object.fromEntries(Object.entries(OF_OP).flatMap(([kind, ops]) => ops.map((op) => [op, kind])));
export const kindOf = (op) => KIND_OF[op] ?? "math";
