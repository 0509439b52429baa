"""Layers, traces and pictures of a run: they hold the simulator's own times, and bad wishes are one error."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import raptor_core
from raptor_core.diagnostics import RaptorError, UsageError
from raptor_pim.artifacts.source_map import read_source_map

LAYERS = {"conv1", "conv2", "conv3", "pool2", "pool3", "flatten", "fc"}


@pytest.fixture
def program(digits_program: Path) -> Path:
    return digits_program


def time_it(program: Path, **options: Any) -> Any:
    return raptor_core.simulate(program, simulator="performance", options=options)


def test_layers_add_up_to_the_cores(program: Path) -> None:
    result = time_it(program, layers=True)
    rows = result.tables["layers"]
    assert {row["layer"] for row in rows} >= LAYERS
    assert [row["start_us"] for row in rows] == sorted(row["start_us"] for row in rows)
    assert max(row["end_us"] for row in rows) <= result.metrics["latency_ms"] * 1000
    cores = result.metrics["cores"]
    for column, keys in {
        "crossbar_us": ("product_ns",),
        "vector_us": ("vector_ns",),
        "local_move_us": ("local_move_ns",),
        "host_us": ("host_ns",),
    }.items():
        expected = sum(core[key] for core in cores for key in keys) / 1000
        assert sum(row[column] for row in rows) == pytest.approx(expected, rel=1e-3)
    dynamic = result.metrics["energy"]["dynamic_pj"]
    products = (dynamic["crossbar"] + dynamic["adc"] + dynamic["crossbar_periphery"]) / 1e6
    assert sum(row["products_uj"] for row in rows) == pytest.approx(products, rel=1e-3)
    assert sum(row["network_uj"] for row in rows) == pytest.approx(dynamic["network"] / 1e6, rel=1e-3)


def test_seeing_does_not_change_the_figures(program: Path) -> None:
    plain, seen = time_it(program).metrics, time_it(program, layers=True).metrics
    assert {**plain, "wall_seconds": 0} == {**seen, "wall_seconds": 0}


def test_a_trace_holds_every_instruction_and_joins_messages(program: Path, tmp_path: Path) -> None:
    file = tmp_path / "trace.json"
    metrics = time_it(program, trace=str(file)).metrics
    assert metrics["trace_cut_at_limit"] is False
    events = json.loads(file.read_text())["traceEvents"]
    slices = [event for event in events if event["ph"] == "X"]
    histogram = metrics["instruction_histogram"]
    assert len(slices) == metrics["instructions"] - histogram["sldi"] - histogram["setbw"]
    assert {event["name"] for event in slices} >= LAYERS
    starts = {event["id"]: event for event in events if event["ph"] == "s"}
    ends = {event["id"]: event for event in events if event["ph"] == "f"}
    assert len(starts) == len(ends) == histogram["send"] == histogram["recv"]
    assert starts.keys() == ends.keys()
    assert all(starts[k]["pid"] != ends[k]["pid"] and starts[k]["ts"] <= ends[k]["ts"] for k in starts)
    ticks = {(event["pid"], event["tid"], event["ts"]): event["dur"] for event in slices}
    assert all((start["pid"], start["tid"], start["ts"]) in ticks for start in starts.values())
    receives = [event for event in slices if event["cat"] == "receive"]
    spans = {(event["pid"], round(event["ts"] + event["dur"], 6)): event["ts"] for event in receives}
    for end in ends.values():
        assert end["bp"] == "e"
        begins = spans[end["pid"], round(end["ts"] + 0.001, 6)]
        assert begins <= end["ts"]
    assert {event["args"]["name"] for event in events if event["name"] == "process_name"} >= {"core 0", "core 11"}


def test_a_trace_is_bounded_by_window_and_limit(program: Path, tmp_path: Path) -> None:
    file = tmp_path / "trace.json"
    metrics = time_it(program, trace=str(file), trace_window="2:60", trace_limit=20).metrics
    assert metrics["trace_cut_at_limit"] is True
    events = json.loads(file.read_text())["traceEvents"]
    slices = [event for event in events if event["ph"] == "X"]
    assert len(slices) == 20
    flows = {phase: {event["id"] for event in events if event["ph"] == phase} for phase in "sf"}
    assert flows["s"] == flows["f"]
    assert all(event["ts"] < 60 and event["ts"] + event["dur"] > 2 for event in slices)


@pytest.mark.parametrize("option", ["trace", "plot"])
def test_files_that_cannot_be_written(program: Path, tmp_path: Path, option: str) -> None:
    (tmp_path / "folder.png").mkdir()
    for file, reason in (("none/x.png", "no folder"), ("folder.png", "is a folder")):
        with pytest.raises(UsageError, match=f"--{option}") as caught:
            time_it(program, **{option: str(tmp_path / file)})
        assert reason in str(caught.value.reason)


@pytest.mark.parametrize("window", ["5", "20:10", "a:b", "-1:5", ":0", "nan:"])
def test_bad_windows(program: Path, tmp_path: Path, window: str) -> None:
    with pytest.raises(UsageError, match="--trace-window"):
        time_it(program, trace=str(tmp_path / "t.json"), trace_window=window)
    assert not list(tmp_path.iterdir())


def test_pictures(program: Path, tmp_path: Path) -> None:
    time_it(program, plot=str(tmp_path / "p.png"))
    assert (tmp_path / "p.png").read_bytes().startswith(b"\x89PNG")
    time_it(program, plot=str(tmp_path / "p.html"))
    page = (tmp_path / "p.html").read_text()
    assert "data:image/png;base64," in page
    assert "http" not in page
    with pytest.raises(UsageError, match=r"must end in \.png or \.html"):
        time_it(program, plot=str(tmp_path / "p.bmp"))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["p.html", "p.png"]


def test_only_single_runs_are_shown(program: Path) -> None:
    with pytest.raises(UsageError, match="show one run"):
        time_it(program, layers=True, mode="throughput")


def test_source_maps_cover_their_programs(program: Path) -> None:
    counts = [((program / f"core_{core}.pim").stat().st_size - 12) // 20 for core in range(12)]
    found = read_source_map(program, counts)
    assert found is not None
    assert {source.layer for source in found.sources} >= LAYERS
    assert {source.kind for source in found.sources} >= {"launch", "transfer", "load", "store"}
    with pytest.raises(RaptorError, match="does not belong to this program"):
        read_source_map(program, [count + 1 if count == 0 else 1 for count in counts])


@pytest.mark.parametrize(
    "content",
    [
        "",
        "{}",
        '{"schema":2}',
        '{"schema":1,"sources":[["a"]],"cores":[]}',
        '{"schema":1,"sources":[],"cores":[[0,0]]}',
        '{"schema":true,"sources":[["a","b"]],"cores":[[0,0]]}',
        '{"schema":1,"sources":[["a","b"]],"cores":[[0.7,0.2]]}',
        '{"schema":1,"sources":[["a","b"]],"cores":[["0","0"]]}',
        '{"schema":1,"sources":[["a","b"]],"cores":[[false,0]]}',
        '{"schema":1,"sources":[[1,{}]],"cores":[[0,0]]}',
    ],
)
def test_damaged_source_maps(tmp_path: Path, content: str) -> None:
    (tmp_path / "source_map.json").write_text(content)
    with pytest.raises(RaptorError, match="source map"):
        read_source_map(tmp_path, [5])
