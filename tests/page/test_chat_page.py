"""The chat page of `weft serve`, in a real browser: an answer, markdown, stop, retry, a phone."""

import json
import shutil
import threading
import time
from importlib.resources import files

import pytest

pytest.importorskip("playwright.sync_api", reason="needs the extra `page`")
pytest.importorskip("starlette", reason="needs the extra `serve`")
uvicorn = pytest.importorskip("uvicorn", reason="needs the extra `serve`")

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("chrome")
if CHROMIUM is None:
    pytest.skip("there is no Chromium here", allow_module_level=True)

ANSWER = (
    "# Title\n\nSome **bold** and `x < 1`.\n\n- one\n- two\n\n"
    "```python\nprint('<b>')\n```\n\n<script>window.broken = 1</script>\n\n"
    "| a | b |\n| - | - |\n| 1 | 2 |\n\n[link](https://example.org) [bad](javascript:alert)"
)


class Talk:
    """What the page was answered, and what it asked."""

    def __init__(self):
        self.asked = []
        self.is_endless = False
        self.status = 200
        self.has_stopped = threading.Event()


@pytest.fixture(scope="module")
def talk():
    import asyncio

    from starlette.applications import Starlette
    from starlette.responses import HTMLResponse, JSONResponse, StreamingResponse
    from starlette.routing import Route

    state = Talk()

    async def page(request):
        return HTMLResponse(files("weft.llm.serve").joinpath("page.html").read_text())

    async def models(request):
        return JSONResponse({"data": [{"id": "tiny"}]})

    async def chat(request):
        state.asked.append(await request.json())
        if state.status != 200:
            return JSONResponse({"error": {"message": "no room"}}, status_code=state.status)

        async def lines():
            try:
                pieces = [ANSWER[n : n + 7] for n in range(0, len(ANSWER), 7)]
                while pieces or state.is_endless:
                    text = pieces.pop(0) if pieces else " more"
                    chunk = {"choices": [{"delta": {"content": text}}]}
                    yield f"data: {json.dumps(chunk)}\n\n"
                    await asyncio.sleep(0.001)
                usage = {"choices": [], "usage": {"completion_tokens": 9}}
                yield f"data: {json.dumps(usage)}\n\ndata: [DONE]\n\n"
            finally:
                state.has_stopped.set()

        return StreamingResponse(lines(), media_type="text/event-stream")

    routes = [
        Route("/", page),
        Route("/v1/models", models),
        Route("/v1/chat/completions", chat, methods=["POST"]),
    ]
    server = uvicorn.Server(
        uvicorn.Config(Starlette(routes=routes), port=0, log_level="critical", ws="none")
    )
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    state.url = f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}/"
    yield state
    server.should_exit = True
    thread.join()


@pytest.fixture(scope="module")
def browser():
    from playwright.sync_api import sync_playwright

    with sync_playwright() as play:
        found = play.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield found
        found.close()


def opened(browser, talk, **options):
    talk.is_endless, talk.status, talk.asked = False, 200, []
    talk.has_stopped.clear()
    page = browser.new_page(**options)
    page.goto(talk.url)
    return page


def say(page, text):
    page.fill("#text", text)
    page.press("#text", "Enter")


def test_an_answer_is_shown_as_markdown_and_never_as_markup(browser, talk):
    page = opened(browser, talk)
    say(page, "hi <b>")
    page.wait_for_selector(".retry")
    box = page.locator(".assistant")
    assert box.locator("h3").inner_text() == "Title"
    assert box.locator("strong").inner_text() == "bold"
    assert box.locator("li").all_inner_texts() == ["one", "two"]
    assert "print('<b>')" in box.locator("pre").inner_text()
    assert box.locator("td").all_inner_texts() == ["1", "2"]
    assert [a.get_attribute("href") for a in box.locator("a").all()] == ["https://example.org"]
    assert page.evaluate("window.broken") is None
    assert page.locator(".user").inner_text() == "hi <b>"
    assert page.title().startswith("tiny")
    assert talk.asked[0]["messages"] == [{"role": "user", "content": "hi <b>"}]
    page.close()


def test_stop_ends_the_answer_and_retry_asks_again(browser, talk):
    page = opened(browser, talk)
    talk.is_endless = True
    say(page, "go on")
    page.wait_for_function("document.querySelector('.assistant')?.innerText.includes('more')")
    page.click("#stop")
    page.wait_for_selector(".retry")
    assert "Stopped." in page.locator(".note").inner_text()
    assert talk.has_stopped.wait(60)
    talk.is_endless = False
    page.click(".retry")
    page.wait_for_function("document.querySelector('.note')?.innerText.includes('9 tokens')")
    assert page.locator(".assistant").count() == 1
    assert talk.asked[0]["messages"] == talk.asked[1]["messages"]
    page.close()


def test_a_refusal_is_shown(browser, talk):
    page = opened(browser, talk)
    talk.status = 429
    say(page, "hi")
    page.wait_for_selector(".failed")
    assert "no room" in page.locator(".failed").inner_text()
    page.close()


def test_a_phone_in_the_dark(browser, talk):
    page = opened(
        browser, talk, viewport={"width": 360, "height": 640}, color_scheme="dark", has_touch=True
    )
    say(page, "hi")
    page.wait_for_selector(".retry")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(22, 24, 28)"
    send = page.locator("#send").bounding_box()
    assert send["x"] + send["width"] <= 360 and send["y"] + send["height"] <= 640
    page.close()
