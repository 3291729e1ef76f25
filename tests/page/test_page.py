"""The page of `weft viz` in a real browser: every view opens, and nothing is said in the console.

Needs Chromium and the extra `page`; it is skipped where one of them is missing.
"""

import base64
import gzip
import json
import re
import shutil
import threading
from types import SimpleNamespace

import pytest

import weft
from weft import Tensor
from weft.codegen.generate import generate
from weft.codegen.opts.table import Bind
from weft.engine.watch.record import record_kernel
from weft.ir.text import parse
from weft.rewrite.trace_file import VERSION, recording
from weft.target.cuda import cuda_target

sync_api = pytest.importorskip("playwright.sync_api", reason="needs the extra `page`")
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("chrome")


@pytest.fixture(scope="module")
def trace(tmp_path_factory):
    path = tmp_path_factory.mktemp("trace") / "t.jsonl"
    with weft.profile(path):
        x = Tensor.ones(59, 59).contiguous().realize()
        for _ in range(2):
            (x @ x).relu().softmax(-1).realize()
    return path


@pytest.fixture(scope="module")
def server(trace):
    from weft.viz.serve import make_server

    with make_server(trace) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


@pytest.fixture(scope="module")
def browser():
    if CHROMIUM is None:
        pytest.skip("needs Chromium")
    with sync_api.sync_playwright() as play:
        found = play.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield found
        found.close()


@pytest.fixture
def page(browser):
    made = browser.new_page(viewport={"width": 1280, "height": 800})
    said = []
    made.on("console", lambda message: said.append(message.text))
    made.on("pageerror", lambda error: said.append(str(error)))
    yield made
    made.close()
    assert said == []


def laid_out(page):
    page.wait_for_selector(".graph .hint:has-text('nodes')")


def test_a_person_looks_around(page, server):
    page.goto(server)
    page.wait_for_selector("table.kernels a")
    assert page.inner_text("h1") == "Overview"
    page.click("table.kernels a:has-text('reduce_59_59_59_59')")  # a kernel
    page.wait_for_selector(".code")
    page.click("text=opts")
    page.wait_for_selector(".opts")
    page.click("text=its passes, step by step")
    laid_out(page)
    page.click(".passes a:has-text('flatten-memory')")
    page.wait_for_selector(".stepper")
    page.keyboard.press("ArrowRight")
    page.wait_for_selector(".beforeafter .was")
    first = page.inner_text(".rule")
    page.keyboard.press("ArrowRight")
    page.wait_for_function("text => document.querySelector('.rule').innerText !== text", arg=first)
    page.click("text=fusion >> nth=1")
    laid_out(page)
    assert page.locator(".groups li").count() == 2
    page.click(".tabs >> text=kernels")
    page.wait_for_selector(".graph .hint:has-text('2 nodes')")
    page.click("text=Timeline")
    page.wait_for_selector(".memory canvas")
    page.wait_for_selector(".alive td:has-text('float32')")


def test_a_loop_is_marked_in_every_form(page, server):
    page.goto(server)
    page.click("table.kernels a:text-is('reduce_59_59_59')")
    page.wait_for_selector(".panes section:nth-child(4) .code")  # it comes from the server
    page.click(".nest [data-loop^=r]")  # the reduction, in a loop of its own
    page.click(".tabs >> text=text")
    for pane, word in ((1, "r2"), (2, "r2"), (3, "fmul"), (4, "vfmadd|mul|fmla")):
        marked = page.locator(f".panes section:nth-child({pane}) .in")
        assert marked.count() > 0
        assert re.search(word, " ".join(marked.all_inner_texts()))
    assert page.locator(".panes section:nth-child(3) .code > div:not(.in)").count() > 0
    assert page.evaluate("location.hash").count("/") == 3  # a link leads here
    page.click(".panes section:nth-child(3) .in >> nth=0")  # the same loop again unmarks it
    page.wait_for_function("!document.querySelector('.in')")


def test_memory_access_says_who_touches_what(page, server):
    page.goto(server)
    page.click("table.kernels a:has-text('reduce_59_59_59') >> nth=0")
    page.click("text=memory access")
    page.wait_for_selector(".picture svg rect")
    assert page.locator(".accesses tbody tr").count() >= 2
    page.click(".accesses tbody tr >> nth=1")
    page.wait_for_selector(".accesses tr.on >> nth=0")
    assert page.locator(".picture .who").count() > 0


def test_a_model_is_folded_and_unfolded(page, tmp_path):
    from weft import nn
    from weft.viz.page import render_page

    class Block:
        def __init__(self):
            self.inner = nn.Linear(31, 31)

        def __call__(self, x):
            return self.inner(x).relu().contiguous()

    class Net:
        def __init__(self):
            self.blocks = [Block() for _ in range(2)]

        def __call__(self, x):
            for block in self.blocks:
                x = block(x)
            return x

    trace = tmp_path / "t.jsonl"
    net, x = Net(), Tensor.ones(5, 31).contiguous().realize()
    with weft.profile(trace):
        net(x).realize()
    path = tmp_path / "page.html"
    path.write_text(render_page(trace), encoding="utf-8")
    page.goto(f"{path.as_uri()}#/model")
    page.wait_for_selector("b.module:has-text('Net')")
    assert page.locator("b.module:has-text('blocks')").count() == 1
    page.click("b.module:has-text('Net')")
    page.wait_for_function("!document.body.innerText.includes('blocks')")
    page.click("text=unfold all")
    page.wait_for_selector("b.module:text-is('1')")


def test_a_rule_is_searched(page, server, trace):
    rules = [json.loads(s)["name"] for s in trace.read_text().splitlines() if '"kind":"rule"' in s]
    page.goto(server)
    page.wait_for_selector("#search")
    page.keyboard.press("/")
    page.keyboard.type(rules[0])
    page.click(".list .item >> nth=0")
    page.wait_for_selector(".rule b")
    assert rules[0] in page.inner_text(".rule b")


def test_a_node_tells_about_itself(page, server):
    page.goto(server)
    page.click(".list .item:has-text('fusion') >> nth=1")
    laid_out(page)
    page.click(".groups li >> nth=0")
    page.wait_for_selector("aside dl")
    assert "test_page.py" in page.inner_text("aside")


def test_the_parts_of_the_time_and_the_costs_of_cuts_are_shown(page, tmp_path):
    from weft.viz.page import render_page

    x, trace = Tensor.ones(47, 47).contiguous().realize(), tmp_path / "t.jsonl"
    step = weft.jit(lambda x: ((x @ x) @ x).softmax(-1) @ x)
    with weft.profile(trace):
        for _ in range(3):
            step(x)
    path = tmp_path / "page.html"
    path.write_text(render_page(trace), encoding="utf-8")
    page.goto(path.as_uri())
    page.wait_for_selector(".where-bar .stack i")
    widths = "[...document.querySelectorAll('.stack i')].map(i => parseFloat(i.style.width))"
    shares = page.evaluate(widths)
    assert sum(shares) == pytest.approx(100, abs=0.5)
    assert "calling jitted functions" in page.inner_text(".where-bar")
    cells = page.locator("table.calls tbody tr td").all_inner_texts()
    assert cells[0] == "<lambda>" and cells[2] == "3"
    page.click(".list .item:has-text('fusion')")
    page.wait_for_selector(".groups .cut")
    assert "stored" in page.inner_text(".groups") or "cut:" in page.inner_text(".groups")
    assert page.locator(".decisions .costs .taken").count() > 0
    page.click("text=Timeline")
    page.wait_for_selector(".lanes canvas")


def test_a_trace_of_a_newer_version_says_so(browser, tmp_path):
    """The page says what to do; the commands refuse it before."""
    from weft.viz.page import _PLACE, PAGE

    newer = json.dumps({"kind": "trace", "version": VERSION + 1, "program": "", "started": 0})
    packed = base64.b64encode(gzip.compress(newer.encode())).decode()
    inside = f'<script type="application/octet-stream" id="trace">{packed}</script>'
    path = tmp_path / "page.html"
    path.write_text(PAGE.read_text(encoding="utf-8").replace(_PLACE, inside), encoding="utf-8")
    page = browser.new_page()
    page.goto(path.as_uri())
    page.wait_for_selector(".failure:has-text('or a newer one')")
    assert f"it has version {VERSION + 1}" in page.inner_text(".failure")
    page.close()


def test_themes_and_help(page, server):
    page.goto(f"{server}?theme=light")
    page.wait_for_selector("main h1")
    page.keyboard.press("d")
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"
    page.keyboard.press("?")
    page.wait_for_selector(".help kbd")


def test_one_file_holds_everything(page, trace, tmp_path):
    from weft.viz.page import render_page

    path = tmp_path / "page.html"
    path.write_text(render_page(trace), encoding="utf-8")
    page.goto(path.as_uri())
    page.wait_for_selector("table.kernels a")


def test_a_hundred_thousand_nodes_are_drawn_in_time(page, tmp_path):
    """A frame of panning or zooming takes some 30 ms; a loaded machine may take ten times that."""
    lines = [{"kind": "trace", "version": VERSION, "program": "large", "started": 0}]
    count = 100_000
    for i in range(1, count + 1):
        src = sorted({max(1, i - 1 - (i * 7919) % 40), max(1, i - 1)} - {i}) if i > 1 else []
        lines.append({"kind": "node", "id": i, "op": "ADD", "dtype": "float32", "src": src})
    step = {"name": "one", "because": "", "us": 1.0, "start": 0.0, "root": count}
    phase = {"id": count + 1, "phase": "schedule", "title": "large", "given": count}
    lines.append({"kind": "phase", **phase, "start": 0.0, "end": 1.0, "passes": [step]})
    trace = tmp_path / "t.jsonl"
    trace.write_text("\n".join(json.dumps(line) for line in lines))
    from weft.viz.page import render_page

    path = tmp_path / "page.html"
    path.write_text(render_page(trace), encoding="utf-8")
    page.goto(f"{path.as_uri()}#/phase/{count + 1}/0")
    page.wait_for_selector(".graph .hint:has-text('100,000 nodes')", timeout=120_000)
    frames = []
    for factor in (1.5, 1.5, 0.5, 2.0, 2.0, 2.0, 2.0):
        page.evaluate("f => { weftCanvas.zoom(f); weftCanvas.x += 40 }", factor)
        page.wait_for_timeout(250)
        frames.append(page.evaluate("weftLastFrame"))
    assert sorted(frames)[len(frames) // 2] < 400, frames


TRANSPOSE = """kernel "transpose" r0 loop, r1 loop:
  p0 = param 0: float32[64, 64]
  p1 = param 1: float32[64, 64]
  r0 < 64
  r1 < 64
  store p0[r0, r1] = load p1[r1, r0] for r0, r1
"""
PRODUCT = """kernel "product" r0 loop, r1 loop, r2 loop:
  p0 = param 0: float32[512, 512]
  p1 = param 1: float32[512, 512]
  p2 = param 2: float32[512, 512]
  r0 < 512
  r1 < 512
  r2 < 512
  v0 = reduce ADD over r2: load p1[r0, r2] * load p2[r2, r1]
  store p0[r0, r1] = v0 for r0, r1
"""


@pytest.mark.parametrize(
    ("text", "opts", "patterns"),
    [
        (
            TRANSPOSE,
            (Bind(0, "grid"), Bind(1, "thread")),
            ["load p1 256 bytes apart", "coalesced"],
        ),
        (PRODUCT, None, ["store stage0 no bank conflicts", "store p0"]),
    ],
)
def test_threads_of_a_gpu_coalesce_or_not(text, opts, patterns, page, tmp_path):
    """Worked out from the program, so no GPU is needed."""
    from weft.viz.page import render_page

    kernel, target, taken = parse(text), cuda_target(), []
    device = SimpleNamespace(name="CUDA", target=target, stores_nothing=False)
    trace = tmp_path / "t.jsonl"
    with recording(trace) as writer:
        program = generate(kernel, target, opts, taken=taken)
        number = record_kernel(writer, device, program, kernel, taken)
    path = tmp_path / "page.html"
    path.write_text(render_page(trace), encoding="utf-8")
    page.goto(f"{path.as_uri()}#/access/{number}")
    page.wait_for_selector(".accesses tbody tr")
    rows = [" ".join(row.split()) for row in page.locator(".accesses tbody tr").all_inner_texts()]
    for pattern in patterns:
        first, *words = pattern.split(" ", 2)
        assert any(first in row and all(word in row for word in words) for row in rows), rows
