"""The server beside OpenAI's own client, malformed requests, and clients that go away."""

import http.client
import json
import socket
import struct
import time

import pytest

openai = pytest.importorskip("openai", reason="the official client is the test client")

NO_END = {"256": -100, "258": -100}  # both tokens that end an answer
HELLO = [{"role": "user", "content": "Hello"}]
KEY = {"Authorization": "Bearer secret"}
WEATHER = {
    "type": "function",
    "function": {
        "name": "weather",
        "parameters": {
            "type": "object",
            "properties": {"city": {"enum": ["Oslo", "Rome"]}},
            "required": ["city"],
            "additionalProperties": False,
        },
    },
}


@pytest.fixture
def client(idle):
    url = f"http://127.0.0.1:{idle.port}/v1"
    with openai.OpenAI(base_url=url, api_key="secret", max_retries=0, timeout=300) as found:
        yield found


def send(server, method, path, body=None, headers=KEY):
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=300)
    connection.request(method, path, body, headers)
    response = connection.getresponse()
    data = response.read()
    connection.close()
    return response.status, data


def test_a_chat_is_the_same_whole_and_streamed(client):
    options = {"model": "tiny", "messages": HELLO, "max_tokens": 8, "temperature": 0}
    whole = client.chat.completions.create(**options)
    assert whole.usage.completion_tokens <= 8 and whole.usage.prompt_tokens > 8
    assert whole.choices[0].finish_reason in ("length", "stop")
    chunks = list(
        client.chat.completions.create(
            **options, stream=True, stream_options={"include_usage": True}
        )
    )
    text = "".join(c.choices[0].delta.content or "" for c in chunks if c.choices)
    assert text == whole.choices[0].message.content
    assert chunks[-1].usage.completion_tokens == whole.usage.completion_tokens


def test_choices_have_their_own_seeds_and_repeat(client):
    options = {"model": "tiny", "messages": HELLO, "max_tokens": 6, "seed": 5, "n": 3}
    first, second = (client.chat.completions.create(**options) for _ in range(2))
    texts = [choice.message.content for choice in first.choices]
    assert texts == [choice.message.content for choice in second.choices]
    assert len(set(texts)) > 1


def test_logprobs(client):
    found = client.chat.completions.create(
        model="tiny", messages=HELLO, max_tokens=3, temperature=0, logprobs=True, top_logprobs=2
    )
    for entry in found.choices[0].logprobs.content:
        assert entry.logprob == entry.top_logprobs[0].logprob <= 0
    found = client.completions.create(model="tiny", prompt="ab", max_tokens=2, logprobs=2, seed=1)
    assert len(found.choices[0].logprobs.token_logprobs) == 2


def test_formats_hold_the_model_to_json(client):
    schema = {"type": "object", "properties": {"a": {"enum": [1, 2]}}, "required": ["a"]}
    schema["additionalProperties"] = False
    stated = {"type": "json_schema", "json_schema": {"name": "x", "schema": schema}}
    found = client.chat.completions.create(model="tiny", messages=HELLO, response_format=stated)
    assert json.loads(found.choices[0].message.content)["a"] in (1, 2)
    assert found.choices[0].finish_reason == "stop"


@pytest.mark.parametrize("is_streamed", [False, True])
def test_a_tool_that_must_be_called(client, is_streamed):
    found = client.chat.completions.create(
        model="tiny",
        messages=HELLO,
        tools=[WEATHER],
        tool_choice="required",
        stream=is_streamed,
    )
    if is_streamed:
        deltas = [chunk.choices[0].delta for chunk in found]
        (call,) = next(each.tool_calls for each in deltas if each.tool_calls)
    else:
        (call,) = found.choices[0].message.tool_calls
        assert found.choices[0].finish_reason == "tool_calls"
    assert call.function.name == "weather"
    assert json.loads(call.function.arguments)["city"] in ("Oslo", "Rome")


def test_completions_of_several_prompts(client):
    options = {"model": "tiny", "max_tokens": 4, "temperature": 0}
    both = client.completions.create(prompt=["ab", [1, 2, 3]], echo=True, **options)
    alone = client.completions.create(prompt="ab", **options)
    assert both.choices[0].text == "ab" + alone.choices[0].text
    streamed = client.completions.create(prompt="ab", stream=True, **options)
    assert "".join(c.choices[0].text for c in streamed) == alone.choices[0].text


@pytest.mark.parametrize("echo", [False, True])
def test_logprobs_say_where_tokens_begin(client, echo):
    options = {"model": "tiny", "prompt": "ab", "max_tokens": 6, "seed": 4, "logprobs": 1}
    (whole,) = client.completions.create(**options, echo=echo).choices
    offsets = whole.logprobs.text_offset
    assert offsets[0] == (2 if echo else 0) and offsets == sorted(offsets)
    assert len(offsets) == len(whole.logprobs.tokens) and offsets[-1] <= len(whole.text)
    chunks = client.completions.create(**options, echo=echo, stream=True)
    parts = [chunk.choices[0].logprobs.text_offset for chunk in chunks]
    assert [offset for part in parts for offset in part] == offsets


def test_embeddings_are_of_length_one(client):
    found = client.embeddings.create(model="tiny", input=["one", "two", "one"]).data
    assert found[0].embedding == found[2].embedding != found[1].embedding
    assert sum(x * x for x in found[0].embedding) == pytest.approx(1, abs=1e-5)


def test_models_health_metrics_and_the_key(client, idle):
    assert [model.id for model in client.models.list()] == ["tiny"]
    assert client.models.retrieve("tiny").id == "tiny"
    with pytest.raises(openai.NotFoundError):
        client.models.retrieve("other")
    assert json.loads(send(idle, "GET", "/health", headers={})[1])["status"] == "ok"
    assert b"\nweft_generated_tokens_total " in send(idle, "GET", "/metrics")[1]
    for path in ("/v1/models", "/metrics"):
        assert send(idle, "GET", path, headers={})[0] == 401
    wrong = {"Authorization": "Bearer wrong"}
    assert send(idle, "POST", "/v1/chat/completions", "{}", wrong)[0] == 401


TOOL = {"type": "function", "function": {"name": "add"}}
BODIES = [
    (b"", 400),
    (b"{", 400),
    (b"[]", 400),
    (b"\xff\xfe", 400),
    (b"[" * 50000, 400),
    (b" " * 70000, 413),
    ({}, 400),
    ({"messages": "hi"}, 400),
    ({"messages": [1]}, 400),
    ({"messages": [{"role": "king", "content": ""}]}, 400),
    ({"messages": [{"role": "user", "content": 5}]}, 400),
    ({"messages": [{"role": "user", "content": [{"type": "image_url"}]}]}, 400),
    ({"messages": HELLO, "model": "gpt"}, 404),
    ({"messages": HELLO, "n": 0}, 400),
    ({"messages": HELLO, "n": 1000}, 400),
    ({"messages": HELLO, "n": 17}, 400),
    ({"messages": HELLO, "temperature": "hot"}, 400),
    ({"messages": HELLO, "temperature": -1}, 400),
    ({"messages": HELLO, "max_tokens": True}, 400),
    ({"messages": HELLO, "stop": [1]}, 400),
    ({"messages": HELLO, "stream": "yes"}, 400),
    ({"messages": HELLO, "logit_bias": {"x": 1}}, 400),
    ({"messages": HELLO, "logit_bias": {"9" * 30: 1}}, 400),
    ({"messages": HELLO, "logit_bias": {"5": float("nan")}}, 400),
    ({"messages": HELLO, "temperature": 10**400}, 400),
    ({"messages": HELLO, "temperature": float("nan")}, 400),
    ({"messages": HELLO, "tools": [TOOL], "tool_choice": {"function": "x"}}, 400),
    ({"messages": HELLO, "tools": [TOOL], "tool_choice": {"function": None}}, 400),
    ({"messages": HELLO, "grammar": 'root ::= (("a"{1000}){1000}){1000}'}, 400),
    ({"messages": HELLO, "grammar": 'root ::= "a"{' + "9" * 5000 + "}"}, 400),
    ({"messages": HELLO, "response_format": {"type": "xml"}}, 400),
    ({"messages": HELLO, "response_format": {"type": "json_schema"}}, 400),
    ({"messages": HELLO, "grammar": "root ::= ["}, 400),
    ({"messages": HELLO, "tools": [{}]}, 400),
    ({"messages": HELLO, "tool_choice": "required"}, 400),
    ({"messages": [{"role": "user", "content": "x" * 5000}]}, 400),
    ({"messages": [{"role": "user", "content": "\ud800"}]}, 400),  # half a character
    ({"messages": HELLO, "stop": "\udfff"}, 400),
    ({"messages": HELLO, "stream": True, "\ud800": 1}, 400),
]


@pytest.mark.parametrize(("body", "status"), BODIES)
def test_malformed_requests_are_answered(idle, body, status):
    data = body if isinstance(body, bytes) else json.dumps(body)
    found, answer = send(idle, "POST", "/v1/chat/completions", data)
    assert found == status and json.loads(answer)["error"]["message"]
    assert idle.engine.active == idle.engine.queued == 0


def test_other_paths_and_methods(idle):
    assert send(idle, "GET", "/v1/nothing")[0] == 404
    assert send(idle, "GET", "/v1/completions")[0] == 405
    for path, body in (
        ("/v1/completions", {"prompt": []}),
        ("/v1/completions", {"prompt": [10**9]}),
        ("/v1/completions", {"prompt": [[True]]}),
        ("/v1/completions", {"prompt": "a", "best_of": 3}),
        ("/v1/embeddings", {"input": ""}),
        ("/v1/embeddings", {"input": "a", "encoding_format": "x"}),
    ):
        assert send(idle, "POST", path, json.dumps(body))[0] == 400


def test_too_many_requests_are_refused(idle):
    body = json.dumps({"prompt": "a", "n": 16, "max_tokens": 1})
    assert send(idle, "POST", "/v1/completions", body)[0] == 200
    endless = {"max_tokens": 300, "logit_bias": NO_END}  # none ends while others come
    many = json.dumps({"prompt": ["a", "b"], "n": 16, **endless})
    status, answer = send(idle, "POST", "/v1/completions", many)
    assert status == 429 and b"busy" in answer


@pytest.mark.parametrize("is_streamed", [False, True])
def test_a_client_that_goes_away_is_not_answered(idle, is_streamed):
    before = idle.engine.statistics.ended["cancelled"]
    body = {
        "messages": HELLO,
        "max_tokens": 400,
        "stream": is_streamed,
        "logit_bias": NO_END,
    }
    data = json.dumps(body).encode()
    head = "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer secret\r\n"
    head += f"Content-Length: {len(data)}\r\n\r\n"
    connection = socket.create_connection(("127.0.0.1", idle.port))
    connection.sendall(head.encode() + data)
    while not idle.engine.active:
        time.sleep(0.005)
    # Closed with a reset, as by a process that was killed.
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()
    while idle.engine.active:
        time.sleep(0.005)
    assert idle.engine.statistics.ended["cancelled"] == before + 1


def test_broken_connections_leave_nothing(idle):
    for data in (
        b"",
        b"POST /v1/chat",
        b"\x00" * 100,
        b"POST / HTTP/1.1\r\nContent-Length: 9\r\n\r\n",
    ):
        with socket.create_connection(("127.0.0.1", idle.port)) as connection:
            connection.sendall(data)
    assert send(idle, "GET", "/health")[0] == 200


def test_streams_at_once_do_not_mix(client):
    """Each text is that of a run alone."""
    from concurrent.futures import ThreadPoolExecutor

    def ask(number: int) -> str:
        found = client.completions.create(
            model="tiny", prompt=f"text {number}", max_tokens=12, seed=number, stream=True
        )
        return "".join(chunk.choices[0].text for chunk in found)

    alone = [ask(number) for number in range(8)]
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(ask, range(8))) == alone
