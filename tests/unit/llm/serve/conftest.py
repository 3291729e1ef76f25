"""A server of the tiny model, on a port of its own."""

import threading
import time

import pytest


@pytest.fixture(scope="session")
def server(tiny_model, tiny_tokenizer):
    pytest.importorskip("starlette", reason="needs the extra `serve`")
    uvicorn = pytest.importorskip("uvicorn", reason="needs the extra `serve`")
    from weft.llm.engine.engine import Engine
    from weft.llm.serve.app import make_app
    from weft.llm.serve.service import Limits, Service

    engine = Engine(tiny_model, tiny_tokenizer, streams=4, waiting=12)
    service = Service(engine, tiny_tokenizer, "tiny", "secret", Limits(body=1 << 16))
    settings = uvicorn.Config(make_app(service), port=0, log_level="critical", ws="none")
    running = uvicorn.Server(settings)
    thread = threading.Thread(target=running.run, daemon=True)
    thread.start()
    while not running.started:
        assert thread.is_alive()
        time.sleep(0.01)
    service.port = running.servers[0].sockets[0].getsockname()[1]
    yield service
    running.should_exit = True
    thread.join()
    assert engine.is_closed
    assert [pool.free for pool in engine.cache.pools] == [p.count for p in engine.cache.pools]


@pytest.fixture
def idle(server):
    """The server, which has nothing to do before and after."""

    def wait():
        while server.engine.active or server.engine.queued:
            time.sleep(0.01)

    wait()
    yield server
    wait()
