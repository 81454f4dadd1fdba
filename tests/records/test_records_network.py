"""Judges behind an SDK: the route a model id takes, what is sent, and that failures say little."""

from __future__ import annotations

import http.server
import importlib.util
import json
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from graft.llm import LlmRequest, LlmResult, Outcome
from graft.records import judging, network, receipts
from graft.records.judging import JudgeError, Request
from graft.records.repository import load

KEY = "key-that-is-secret"


def produce(repo: Any, judge: Any, model: str) -> dict[str, Any]:
    intent = load(repo.tree)
    record = intent.records[repo.record_id]
    assert intent.laws
    return judging.produce(record, intent.laws, (), model, judge)


class Answer:
    """An answer as the SDK returns it."""

    def __init__(self, **fields: Any) -> None:
        self.fields = fields

    def model_dump(self) -> dict[str, Any]:
        return self.fields


class Sdk:
    """Stands where the SDK's client stands."""

    def __init__(self, model: str) -> None:
        self.model = model
        self.calls: list[tuple[Any, Any, str]] = []

    def system_one(self, state: Any, questions: Any, *, model: str) -> Any:
        self.calls.append((state, questions, model))
        answers: dict[str, Any] = {}
        for name, question in questions.items():
            if question["type"] == "noul":
                answers[name] = Answer(type="noul", noul=0.97)
            else:
                law = {"R1": "a", "R2": "b"}[name]
                probabilities = {option: float(option == law) for option in question["criteria"]}
                answers[name] = Answer(
                    type="choice", choice=law, confidence=0.99, probabilities=probabilities, extra=1
                )
        return type("Response", (), {"model": self.model, "answers": answers})()


def test_jev_is_asked_with_state_questions_and_model(repo: Any) -> None:
    sdk = Sdk("jev-1.13-20260917")
    fields = produce(repo, network.JevJudge(sdk), "jev-1.13")
    assert (fields["verdict"], fields["model"]) == ("pass", "jev-1.13-20260917")
    state, asked, model = sdk.calls[0]
    assert set(state) == {"record", "laws"}
    assert set(asked) == {"R1", "R2"}
    assert model == "jev-1.13"
    assert "extra" not in fields["answers"]["coverage"]["R1"]


def test_an_error_of_the_sdk_names_its_kind_and_status_only(repo: Any) -> None:
    class Refused(Exception):
        status = 413

    class Broken:
        def system_one(self, *arguments: Any, **options: Any) -> Any:
            raise Refused(f"body with {KEY}")

    with pytest.raises(JudgeError) as caught:
        produce(repo, network.JevJudge(Broken()), "jev-1.13")
    assert str(caught.value) == "Jev did not answer: Refused 413"


@pytest.mark.parametrize(
    ("route", "variable"), [(name, value[0]) for name, value in network.JEV_ROUTES.items()]
)
def test_each_route_wants_its_own_key(route: str, variable: str) -> None:
    with pytest.raises(JudgeError, match=variable):
        network.ROUTES[route]("m", {"OTHER": KEY})


def test_anthropic_wants_its_key() -> None:
    with pytest.raises(JudgeError, match="ANTHROPIC_API_KEY"):
        network.ROUTES["anthropic"]("claude-opus-5-5", {})


class Model:
    """An `LlmClient` that answers in the form that was asked for."""

    def __init__(self, change: Any = None, outcome: Outcome = Outcome.OK) -> None:
        self.change = change or (lambda data: data)
        self.outcome = outcome
        self.requests: list[LlmRequest] = []

    async def complete(self, request: LlmRequest) -> LlmResult:
        self.requests.append(request)
        asked = json.loads(request.turns[0].text)["questions"]
        answers: list[dict[str, Any]] = []
        for name, question in asked.items():
            if question["type"] == "noul":
                answers.append({"question": name, "probability": 0.93})
            else:
                law = {"R1": "a", "R2": "b"}[name]
                options = [
                    {"label": item, "probability": float(item == law)} for item in question["criteria"]
                ]
                answers.append(
                    {"question": name, "choice": law, "confidence": 0.88, "probabilities": options}
                )
        data = self.change({"answers": answers})
        return LlmResult(outcome=self.outcome, model=request.model, data=data)

    async def count_tokens(self, model: str, text: str) -> int | None:
        return None


def test_an_anthropic_model_states_its_probabilities_as_numbers(repo: Any) -> None:
    model = Model()
    fields = produce(repo, network.AnthropicJudge(model), "claude-opus-5-5")
    assert (fields["verdict"], fields["model"]) == ("pass", "claude-opus-5-5")
    assert fields["answers"]["fidelity"]["a"] == {"type": "noul", "noul": 0.93}
    assert fields["answers"]["coverage"]["R1"]["confidence"] == 0.88
    assert [request.purpose for request in model.requests] == ["records", "records"]
    schema = model.requests[0].schema
    assert schema["additionalProperties"] is False
    assert "probability" in json.dumps(schema)
    assert repo.read(repo.record_path) not in model.requests[0].system
    repo.write(repo.receipt_path, receipts.encode(fields))
    assert repo.check().exit == 0


@pytest.mark.parametrize(
    "change",
    [
        lambda data: None,
        lambda data: {},
        lambda data: {"answers": "x"},
        lambda data: {"answers": [1, {"question": "R9"}]},
        lambda data: {"answers": [{**item, "choice": None} for item in data["answers"]]},
        lambda data: {"answers": [{**item, "probabilities": "x"} for item in data["answers"]]},
        lambda data: {"answers": [{**item, "confidence": 7} for item in data["answers"]]},
        lambda data: {
            "answers": [
                {**item, "probabilities": [3, *item["probabilities"][1:]]} for item in data["answers"]
            ]
        },
    ],
)
def test_wrong_answers_of_a_model_end_the_run(repo: Any, change: Any) -> None:
    with pytest.raises(JudgeError):
        produce(repo, network.AnthropicJudge(Model(change)), "claude-opus-5-5")


def test_a_model_that_does_not_answer(repo: Any) -> None:
    with pytest.raises(JudgeError, match="rate_limited"):
        produce(repo, network.AnthropicJudge(Model(outcome=Outcome.RATE_LIMITED)), "claude-opus-5-5")


def test_a_hostile_question_name_is_only_data() -> None:
    question = {"type": "noul", "instructions": "?", "criteria": {}}
    request = Request("claude-x", {"record": "", "laws": ""}, {"__proto__": question}, "", "fidelity")
    response: Any = network.AnthropicJudge(Model()).evaluate(request)
    assert response["answers"] == {"__proto__": {"type": "noul", "noul": 0.93}}


# --- the official SDK against a local stub of its API --------------------------------------------------------


@pytest.fixture
def stub() -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """A local `/v1/systemone` and what it was sent."""
    seen: list[dict[str, Any]] = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            seen.append({"path": self.path, "authorization": self.headers["Authorization"], **body})
            answers: dict[str, Any] = {}
            for name, question in body["questions"].items():
                if question["type"] == "noul":
                    answers[name] = {"type": "noul", "noul": 0.95}
                else:
                    law = {"R1": "a", "R2": "b"}[name]
                    options = {option: float(option == law) for option in question["criteria"]}
                    answers[name] = {
                        "type": "choice",
                        "choice": law,
                        "confidence": 0.9,
                        "probabilities": options,
                    }
            reply = {
                "model": "jev-1.13-20260917",
                "answers": answers,
                "usage": {"input_tokens": 1, "output_tokens": 0},
            }
            data = json.dumps(reply).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, format: str, *arguments: Any) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}", seen
    server.shutdown()
    server.server_close()
    thread.join(5)


def test_the_official_sdk_makes_a_receipt(repo: Any, stub: tuple[str, list[dict[str, Any]]]) -> None:
    if importlib.util.find_spec("typesafe_sdk") is None:
        pytest.skip("typesafe-sdk is not installed (the extra `judges`)")
    url, seen = stub
    judge: Any = network.ROUTES["typesafe"]("jev-1.13", {"TYPESAFE_API_KEY": KEY, "TYPESAFE_BASE_URL": url})
    fields = produce(repo, judge, "jev-1.13")
    judge.client.close()
    assert fields["verdict"] == "pass"
    assert [item["path"] for item in seen] == ["/v1/systemone", "/v1/systemone"]
    assert seen[0]["authorization"] == f"Bearer {KEY}"
    assert seen[0]["model"] == "jev-1.13"
    assert set(seen[0]["state"]) == {"record", "laws"}


@pytest.mark.parametrize("route", ["openrouter", "vercel"])
def test_gateways_have_fixed_addresses(route: str) -> None:
    if importlib.util.find_spec("typesafe_sdk") is None:
        pytest.skip("typesafe-sdk is not installed (the extra `judges`)")
    variable, base = network.JEV_ROUTES[route]
    judge: Any = network.ROUTES[route]("m", {variable: KEY, "TYPESAFE_BASE_URL": "http://127.0.0.1:1"})
    assert str(judge.client._config.base_url).rstrip("/") == base
    judge.client.close()


def test_without_the_sdk_its_package_is_named() -> None:
    if importlib.util.find_spec("typesafe_sdk") is not None:
        pytest.skip("typesafe-sdk is installed")
    with pytest.raises(JudgeError, match="typesafe-sdk"):
        network.ROUTES["typesafe"]("jev-1.13", {"TYPESAFE_API_KEY": KEY})
