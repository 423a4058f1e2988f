"""Exports of runs of `arena eval`, from a small folder that the tests write.

The conversion to Inspect logs is tested in its plain form, since inspect_ai has too many dependencies for the tests'
environment. After a change of that form, run `python -m arena_agents.evals DIR --format inspect --out OUT` with
inspect_ai installed: its own API checks each log and writes it.
"""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from arena_agents import evals
from arena_agents.evals import EvalFileError, EvalRun, Mean, MissingPackageError, Usage

TIME = 1_790_000_000_000
USAGE = {"input": 100, "cached": 40, "output": 10, "reasoning": 4}


def model(name: str, **fields: Any) -> dict[str, Any]:
    return {
        "name": name,
        "model": f"provider/{name}-1",
        "endpoint": "https://api.example/v1",
        "params": {"temperature": 1.0, "max_tokens": 500, "stop": ["x"]},
        "harness": "default",
        **fields,
    }


RUN_FILE: dict[str, Any] = {
    "name": "autumn",
    "seeds": 12,
    "models": [model("small"), model("large")],
    "challenges": [{"name": "psi", "options": {"setSize": 7}}],
}


def seat(agent: str, utility: float, **fields: Any) -> dict[str, Any]:
    measured = {"calls": 2, "retries": 1, "invalid": 1, "refusals": 0, "truncated": 0, "usage": USAGE, "ms": 3000}
    result = {"agent": agent, "cause": "completed", "security": 1, "utility": utility, "measured": measured}
    return {**result, **fields}


def game(id: str, seed: int, *seats: dict[str, Any]) -> dict[str, Any]:  # noqa: A002
    return {
        "type": "game",
        "game": id,
        "challenge": "psi",
        "seed": seed,
        "seats": list(seats),
        "end": "completed",
        "attributions": [[0, 1, "security_breach"]],
        "told": "small found 3 of 3 numbers.",
        "rounds": 4,
    }


def reply(text: str, *calls: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {"text": text, "calls": list(calls), "raw": {"any": "thing"}, "usage": USAGE, "finish": "done", **fields}


GUESS = {"id": "c1", "name": "guess", "arguments": {"Ok": {"content": "1, 2"}}}
BROKEN = {"id": "c2", "name": "guess", "arguments": {"Err": "no JSON"}}


def call(number: int, new: list[Any], answer: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {
        "type": "call",
        "key": f"{number:064x}",
        "game": "a" * 12,
        "seat": 0,
        "number": number,
        "agent": "small",
        "model": "provider/small-1",
        "harness": "h",
        "system": "s1",
        "tools": "t1",
        "new": new,
        "reply": answer,
        "usd": 0.001,
        "first_byte_ms": 10,
        "ms": 1000,
        "request_bytes": 512,
        "time": TIME + number * 5000,
        **fields,
    }


FIRST = reply("Let me see.", GUESS)
CALLS = [
    {"type": "text", "sha256": "s1", "text": "You play psi."},
    {"type": "text", "sha256": "t1", "text": "[]"},
    call(1, [{"told": "Your numbers: 1, 2"}], FIRST),
    call(
        2,
        [
            {"answered": FIRST},
            {"results": [{"id": "c1", "text": "refused", "is_error": True}]},
            {"told": "Ada: hello"},
        ],
        reply("", BROKEN, finish="length", request_id="req_2"),
        retries=[{"class": "busy", "sentence": "HTTP 429", "pause_ms": 500}],
    ),
    call(1, [], reply('{"score": 1}'), seat=None, agent="judge", model="judge-1", key="j" * 64),
]
IDENTITIES = [
    ["seed", "7"],
    ["model small", "5" * 64],
    ["model large", "6" * 64],
    ["baseline random", "7" * 64],
    ["challenge psi", "8" * 64],
]
JOURNAL: list[dict[str, Any]] = [
    {
        "type": "start",
        "arena_eval": 1,
        "time": TIME,
        "file": {**RUN_FILE, "name": "summer"},
        "identities": IDENTITIES,
    },
    game("a" * 12, 0, seat("small", 1), seat("random", -1)),
    {"type": "void", "game": "b" * 12, "agent": "large", "class": "unpaid", "why": "HTTP 402", "time": TIME + 1},
    {"type": "resume", "time": TIME + 2, "file": RUN_FILE, "identities": IDENTITIES},
    {"type": "change", "name": "model other", "before": "5" * 64, "after": "7" * 64, "time": TIME + 2},
    game("b" * 12, 0, seat("large", 0.5, cause="refused", detail="It refused."), seat("small", 0)),
]
TRANSCRIPTS = [
    {
        "game": "a" * 12,
        "players": ["inv_A", "inv_B"],
        "messages": [
            {"round": 0, "to": 0, "content": "Your numbers: 1, 2"},
            {"round": 1, "chat": True, "from": 0, "content": "1, 2", "call": 1},
            {"round": 2, "from": 1, "content": "1", "method": "guess", "call": 1},
        ],
        "state": "{}",
    }
]


def write(folder: Path, **changed: Any) -> Path:
    files = {"journal": JOURNAL, "calls": CALLS, "transcripts": TRANSCRIPTS, **changed}
    for name, lines in files.items():
        text = "".join(json.dumps(line) + "\n" for line in lines)
        (folder / f"{name}.jsonl").write_text(text, encoding="utf-8")
    return folder


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "autumn"
    folder.mkdir()
    return write(folder)


def test_a_run_is_read(folder: Path) -> None:
    run = EvalRun(folder)
    assert (run.name, run.started) == ("autumn", [TIME, TIME + 2])
    assert run.identities["model small"] == "5" * 64
    assert [(change.name, change.time) for change in run.changes] == [("model other", TIME + 2)]
    assert [(void.agent, void.fault, void.reason) for void in run.voids] == [("large", "unpaid", "HTTP 402")]
    first, second = run.games.values()
    assert (first.seats[0].measured.usage, first.seats[0].measured.usd) == (Usage(100, 40, 10, 4), None)
    assert first.attributions[0].kind == "security_breach"
    assert [run.counts(first), run.counts(second)] == [True, False]
    assert [of.model for of in run.models] == ["provider/small-1", "provider/large-1"]
    again = run.find_model("small (again)")
    assert again is not None
    assert again.name == "small"
    assert run.find_model("random") is None

    [transcript] = run.transcripts()
    assert [(of.sender, of.receiver, of.is_chat, of.method, of.call) for of in transcript.messages] == [
        (None, 0, False, None, None),
        (0, None, True, None, 1),
        (1, None, False, "guess", 1),
    ]


@pytest.mark.parametrize(
    ("changed", "planned"),
    [
        ({}, True),
        ({"model small": "9" * 64}, False),
        ({"model large": "9" * 64}, True),
        ({"baseline random": None}, False),
        ({"challenge psi": "9" * 64}, False),
        ({"challenge psi": None}, False),
        ({"seed": "8"}, False),
        ({"model more": "9" * 64}, True),
    ],
)
def test_games_with_other_settings_are_outdated(tmp_path: Path, changed: dict[str, str | None], planned: bool) -> None:
    names = {name: value for name, value in {**dict(IDENTITIES), **changed}.items() if value is not None}
    resume = {"type": "resume", "time": TIME, "file": RUN_FILE, "identities": list(names.items())}
    write(tmp_path, journal=[JOURNAL[0], game("a" * 12, 0, seat("small", 1), seat("random", 1)), resume])
    run = EvalRun(tmp_path)
    assert (len(run.games), len(run.outdated)) == ((1, 0) if planned else (0, 1))


def test_games_of_removed_seeds_and_second_names_are_outdated(tmp_path: Path) -> None:
    seats = [seat("small (again)", 1), seat("small", 1)]
    for null_variant, planned in (("small", ["a" * 12]), ("large", []), (None, [])):
        start = {**JOURNAL[0], "file": {**RUN_FILE, "null_variant": null_variant}}
        write(tmp_path, journal=[start, game("a" * 12, 11, *seats), game("b" * 12, 12, *seats)])
        assert list(EvalRun(tmp_path).games) == planned


def test_calls_are_found_by_seat_and_texts_by_hash(folder: Path) -> None:
    run = EvalRun(folder)
    assert [of.agent for of in run.calls()] == ["small", "small", "judge"]
    assert [of.number for of in run.calls_of("a" * 12, 0)] == [1, 2]
    assert [of.agent for of in run.calls_of("a" * 12, None)] == ["judge"]
    assert run.calls_of("b" * 12, 0) == []
    assert (run.text("s1"), run.text("absent")) == ("You play psi.", None)
    second = run.calls_of("a" * 12, 0)[1]
    assert (second.reply.calls[0].arguments, second.reply.calls[0].error) == (None, "no JSON")
    assert second.new[0].answered is not None
    assert second.new[0].answered.calls[0].arguments == {"content": "1, 2"}
    assert second.retries[0].fault == "busy"


def test_a_line_that_is_being_written_is_left_out(folder: Path) -> None:
    for name in ("journal", "calls", "transcripts"):
        with (folder / f"{name}.jsonl").open("a", encoding="utf-8") as file:
            file.write('{"type": ')
    run = EvalRun(folder)
    assert (len(run.games), len(list(run.calls())), len(list(run.transcripts()))) == (2, 3, 1)


@pytest.mark.parametrize("counts", [{}, {"refused": True}, {"truncated": True}, {"limit": True}])
@pytest.mark.parametrize(
    "cause", ["completed", "timeout", "invalid", "refused", "truncated", "idle", "limit", "crashed"]
)
def test_games_count_as_in_the_report(tmp_path: Path, counts: dict[str, bool], cause: str) -> None:
    start = {**JOURNAL[0], "file": {**RUN_FILE, "counts": counts}}
    write(tmp_path, journal=[start, game("a" * 12, 0, seat("small", 1), seat("random", 1, cause=cause))])
    run = EvalRun(tmp_path)
    expected = cause in ("completed", "timeout", "invalid", "idle", "crashed") or counts.get(cause, False)
    assert [run.counts(of) for of in run.games.values()] == [expected]


@pytest.mark.parametrize(
    ("name", "lines", "error"),
    [
        ("journal", [], "journal.jsonl is empty"),
        ("journal", [{**JOURNAL[0], "arena_eval": 2}], "line 1: version 2, but this module reads version 1"),
        ("journal", JOURNAL[1:], "line 1: the first line must be the start"),
        ("journal", [*JOURNAL, {"type": "other"}], "line 7: unknown type 'other'"),
        ("journal", [*JOURNAL, []], "line 7: expected an object, not []"),
        ("journal", [JOURNAL[0], {**JOURNAL[1], "seed": "0"}], "line 2: unexpected seed: '0'"),
        ("journal", [JOURNAL[0], game("a" * 12, 0, {"agent": "small"})], "line 2: cause is missing"),
        ("journal", [JOURNAL[0], {**JOURNAL[1], "attributions": [[0, 1]]}], "line 2: unexpected attribution"),
        ("calls", [call(1, [{"told": "x", "results": []}], FIRST)], "line 1: a turn must have one of"),
        ("calls", [call(1, [], reply("", {**GUESS, "arguments": {}}))], "line 1: arguments must have either"),
    ],
)
def test_mistakes_name_the_line(folder: Path, name: str, lines: list[Any], error: str) -> None:
    write(folder, **{name: lines})
    with pytest.raises(EvalFileError) as raised:
        list(EvalRun(folder).calls())
    assert error in str(raised.value)


def test_a_line_that_is_no_json_is_named(folder: Path) -> None:
    with (folder / "calls.jsonl").open("a", encoding="utf-8") as file:
        file.write("{]\n")
    with pytest.raises(EvalFileError, match=r"calls\.jsonl, line 6: "):
        list(EvalRun(folder).calls())
    with pytest.raises(EvalFileError, match=r"journal\.jsonl is missing"):
        EvalRun(folder / "absent")


def test_means_have_errors_over_seeds() -> None:
    assert Mean.of([]) is None
    assert Mean.of([(0, 1.0), (0, 2.0), (9, 6.0)]) == Mean(3, 3, 2, None)
    # With seeds of equal sizes, the error is that of the mean of the seeds' means.
    values = [(seed, float(seed % 3 + at)) for seed in range(12) for at in range(2)]
    mean = Mean.of(values)
    assert mean is not None
    assert (mean.mean, mean.values, mean.seeds) == (1.5, 24, 12)
    assert mean.error == pytest.approx((8 / 11 / 12) ** 0.5)


def test_tables_have_all_columns_and_types(folder: Path, tmp_path: Path) -> None:
    parquet = importlib.import_module("pyarrow.parquet")
    run = EvalRun(folder)
    paths = evals.export_parquet(run, tmp_path / "tables")
    assert [path.name for path in paths] == [f"{table}.parquet" for table in evals.COLUMNS]
    games, seats, calls = (parquet.read_table(path) for path in paths)
    assert (games.num_rows, seats.num_rows, calls.num_rows) == (2, 4, 3)
    assert games.column("agents").to_pylist() == [["small", "random"], ["large", "small"]]
    assert games.column("counts").to_pylist() == [True, False]
    for table, columns in zip((games, seats, calls), evals.COLUMNS.values(), strict=True):
        assert table.column_names == list(columns)
    row = seats.to_pylist()[2]
    assert row["detail"] == "It refused."
    assert (row["seat"], row["agent"], row["opponents"], row["cause"]) == (0, "large", ["small"], "refused")
    assert (row["input_tokens"], row["cached_tokens"], row["usd"], row["ms"]) == (100, 40, None, 3000)
    second = calls.to_pylist()[1]
    assert second["time"].isoformat() == "2026-09-21T14:13:30+00:00"
    assert (second["retries"], second["request_id"], json.loads(second["told"])) == (1, "req_2", ["Ada: hello"])
    assert json.loads(second["tool_calls"])[0]["error"] == "no JSON"
    assert calls.column("seat").to_pylist() == [0, 0, None]


def test_rows_have_the_columns_of_their_tables(folder: Path) -> None:
    run = EvalRun(folder)
    rows = [evals.game_rows(run), evals.seat_rows(run), evals.call_rows(run)]
    for of, columns in zip(rows, evals.COLUMNS.values(), strict=True):
        assert all(list(row) == list(columns) for row in of)


def test_an_inspect_log_has_the_conversation_scores_and_usage(folder: Path) -> None:
    logs = dict(evals.inspect_logs(EvalRun(folder)))
    # Baselines have no calls.
    assert list(logs) == ["psi_small", "psi_large"]
    log = logs["psi_small"]
    assert log["eval"]["model"] == "provider/small-1"
    assert log["eval"]["model_generate_config"] == {"temperature": 1.0, "max_tokens": 500}
    assert log["eval"]["dataset"]["sample_ids"] == ["aaaaaaaaaaaa/0", "bbbbbbbbbbbb/1"]
    first, second = log["samples"]
    assert [(of["role"], of["content"]) for of in first["messages"]] == [
        ("system", "You play psi."),
        ("user", "Your numbers: 1, 2"),
        ("assistant", "Let me see."),
        ("tool", "refused"),
        ("user", "Ada: hello"),
        ("assistant", ""),
    ]
    assert [of["role"] for of in first["input"]] == ["system", "user"]
    tool = first["messages"][3]
    assert (tool["tool_call_id"], tool["function"], tool["error"]["message"]) == ("c1", "guess", "refused")
    [choice] = first["output"]["choices"]
    assert choice["stop_reason"] == "max_tokens"
    assert choice["message"]["tool_calls"][0]["parse_error"] == "no JSON"
    usage = first["model_usage"]["provider/small-1"]
    assert (usage["input_tokens"], usage["input_tokens_cache_read"], usage["total_tokens"]) == (60, 40, 110)
    assert first["started_at"] == "2026-09-21T14:13:24.000+00:00"
    assert (first["scores"]["utility"]["value"], first["metadata"]["counts"]) == (1.0, True)
    # The second game doesn't count, since its opponent refused to play.
    assert (second["metadata"]["counts"], second["metadata"]["opponents"], second["messages"]) == (False, ["large"], [])
    utility, security = log["results"]["scores"]
    assert (utility["name"], utility["metrics"]["mean"]["value"]) == ("utility", 1.0)
    assert (security["scored_samples"], security["unscored_samples"]) == (1, 1)
    assert logs["psi_large"]["results"]["scores"][0]["metrics"] == {}
    json.dumps(log)


def test_a_record_of_every_eval_ever_has_means_and_errors(tmp_path: Path) -> None:
    games = [game(f"{seed:012x}", seed, seat("small", seed % 2), seat("random", 0)) for seed in range(12)]
    write(tmp_path, journal=[JOURNAL[0], *games])
    run = EvalRun(tmp_path)
    [(name, record)] = evals.every_eval_ever(run, "A Lab", "third_party", now=1_800_000_000.5)
    assert name == "small"
    assert record["schema_version"] == "0.2.1"
    assert record["evaluation_id"] == "summer/provider/small-1/1800000000"
    assert record["source_metadata"]["source_organization_name"] == "A Lab"
    assert (record["model_info"]["id"], record["model_info"]["developer"]) == ("provider/small-1", "provider")
    utility, security = record["evaluation_results"]
    assert [utility["evaluation_name"], security["evaluation_name"]] == ["psi/utility", "psi/security"]
    assert utility["score_details"]["score"] == 0.5
    uncertainty = utility["score_details"]["uncertainty"]
    assert uncertainty["standard_error"]["value"] == pytest.approx((0.25 / 11) ** 0.5)
    assert uncertainty["num_samples"] == 12
    assert utility["metric_config"]["min_score"] == -1
    assert utility["source_data"]["additional_details"]["options"] == '{"setSize": 7}'
    assert utility["generation_config"]["generation_args"] == {"temperature": 1.0, "max_tokens": 500}
    assert utility["generation_config"]["additional_details"]["stop"] == '["x"]'
    # The schema requires texts as details.
    details = [utility["score_details"]["details"], utility["source_data"]["additional_details"]]
    assert all(isinstance(value, str) for of in details for value in of.values())
    with pytest.raises(ValueError, match="unknown relationship"):
        list(evals.every_eval_ever(run, relationship="friend"))


def test_the_command_writes_files(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out"
    assert evals.main([str(folder), "--format", "every-eval-ever", "--out", str(out)]) == 0
    assert capsys.readouterr().out == f"{out / 'small.json'}\n"
    assert json.loads((out / "small.json").read_text())["schema_version"] == "0.2.1"
    assert evals.main([str(folder), "--format", "parquet", "--out", str(out)]) == 0
    assert (out / "calls.parquet").exists()
    assert evals.main([str(tmp_path), "--format", "parquet", "--out", str(out)]) == 1
    assert "journal.jsonl is missing" in capsys.readouterr().err


def test_a_missing_package_is_named(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("pyarrow", "inspect_ai", "inspect_ai.log"):
        monkeypatch.setitem(sys.modules, name, None)
    for of, package in (("parquet", "pyarrow"), ("inspect", "inspect_ai")):
        assert evals.main([str(folder), "--format", of, "--out", str(folder / "out")]) == 1
        error = capsys.readouterr().err
        assert package in error
        assert "pip install 'arena-agents[evals]'" in error
    with pytest.raises(MissingPackageError):
        evals.export_parquet(EvalRun(folder), folder)


def test_names_of_files_are_unique_and_safe(tmp_path: Path) -> None:
    names = ["a/b", "a b", "A-B", "..", ""]
    used: set[str] = set()
    assert [evals._unique(evals._file_name(of), used) for of in names] == ["a-b", "a-b-2", "A-B-3", "eval", "eval-2"]
