"""The report: every figure with its kind, softmax's wins said, everything from outside escaped."""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path

import pytest
from rich.console import Console

from entrain.deploy.report.charts import accuracy_chart, layer_chart, memory_chart, merged
from entrain.deploy.report.confusions import confusions
from entrain.deploy.report.findings import shown_by, softmax_wins
from entrain.deploy.report.groups import sections
from entrain.deploy.report.layer_cycles import layer_cycles
from entrain.deploy.report.page import render_page, write_page
from entrain.deploy.report.quantities import quantity_rows
from entrain.deploy.report.table import results_table
from entrain.deploy.report.words import DASH
from entrain.deploy.results import Accuracy, PairedTest, Results

ResultsMaker = Callable[..., Results]
KINDS = ("measured", "counted", "modelled")


class Elements(HTMLParser):
    """Text of every element of one name (and class), tags inside it included as they come."""

    def __init__(self, name: str, kind: str = "") -> None:
        super().__init__()
        self.name, self.kind, self.depth, self.found = name, kind, 0, list[str]()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == self.name and (self.depth or self.kind in (dict(attrs).get("class") or "")):
            self.depth += 1
            if self.depth == 1:
                self.found.append("")

    def handle_endtag(self, tag: str) -> None:
        if tag == self.name and self.depth:
            self.depth -= 1

    def handle_data(self, data: str) -> None:
        if self.depth:
            self.found[-1] += data


def elements(page: str, name: str, kind: str = "") -> list[str]:
    parser = Elements(name, kind)
    parser.feed(page)
    return [" ".join(text.split()) for text in parser.found]


def with_row(results: Results, index: int, **change: object) -> Results:
    rows = list(results.results)
    rows[index] = rows[index].model_copy(update=change)
    return results.model_copy(update={"results": tuple(rows)})


def with_difference(results: Results, mechanism: str, difference: float, half: float) -> Results:
    """The results, the paired difference of a mechanism set to what is wanted."""
    interval = (difference - half, difference + half)
    return results.model_copy(
        update={
            "comparisons": tuple(
                item.model_copy(update={"difference": difference, "ci95": interval})
                if isinstance(item, PairedTest) and item.mechanism == mechanism
                else item
                for item in results.comparisons
            )
        }
    )


def test_the_page_needs_no_network_and_no_script(make_results: ResultsMaker) -> None:
    page = render_page(make_results())
    assert not re.search(r"https?://|<script|<link|<img|@import|url\(", page)


def test_every_row_of_figures_names_its_kind(make_results: ResultsMaker) -> None:
    page = render_page(make_results())
    heads = [text for text in elements(page, "tr") if re.match(r"(Accuracy|Clips|Flash|RAM)", text)]
    assert len(heads) == 16  # eight such rows on each board
    for text in heads:
        assert any(f" {kind} " in text for kind in KINDS), text
    for name in ("Cycles", "Latency", "Energy"):
        rows = [text for text in elements(page, "tr") if text.startswith(name)]
        assert rows
        assert all(" modelled " in text for text in rows)


def test_every_tile_chart_and_finding_names_its_kind(make_results: ResultsMaker) -> None:
    page = render_page(make_results())
    tiles = elements(page, "article", "tile")
    assert len(tiles) == 8
    for tile in tiles:
        assert "measured" in tile
        assert "counted" in tile
    titles = [text for text in elements(page, "h3") if re.match("(Accuracy on|Instr|Mem)", text)]
    assert len(titles) == 6
    for text in [*titles, *elements(page, "figcaption")]:
        assert text.split()[-1] in KINDS or " measured " in text


def test_what_comes_from_outside_is_escaped(make_results: ResultsMaker) -> None:
    evil = "<script>alert('x')</script>"
    results = with_row(make_results(), 0, run=evil, board=evil, data=evil, task=evil, cpu=evil)
    row = results.results[0]
    layers = tuple(layer.model_copy(update={"name": evil, "op": evil}) for layer in row.layers)
    results = with_row(results, 0, layers=layers, labels=(evil, *(row.labels or ())[1:]))
    results = results.model_copy(update={"stopped": evil})
    page = render_page(results)
    assert "<script" not in page
    assert "&lt;script&gt;alert(&#39;x&#39;)" in page


def test_the_page_is_written_beside_nothing_half_made(
    make_results: ResultsMaker, tmp_path: Path
) -> None:
    write_page(tmp_path / "report.html", make_results())
    assert [path.name for path in tmp_path.iterdir()] == ["report.html"]
    assert (tmp_path / "report.html").read_text().rstrip().endswith("</html>")


def test_nothing_measured_yet_still_makes_a_page(make_results: ResultsMaker) -> None:
    empty = make_results().model_copy(update={"results": (), "comparisons": ()})
    assert "No results yet." in render_page(empty)


def test_a_row_of_which_only_the_run_is_known_makes_a_page(make_results: ResultsMaker) -> None:
    unknown = dict.fromkeys(
        [
            "accuracy",
            "confusion",
            "labels",
            "instructions",
            "cycles",
            "latency_ms",
            "energy_uj",
            "flash_bytes",
            "ram_bytes",
            "arena_bytes",
            "stack_bytes",
            "mismatches",
            "onnxruntime_agreement",
        ]
    )
    results = make_results(("softmax",), ("mps2-an386",))
    assert "keyword on mps2-an386" in render_page(with_row(results, 0, layers=(), **unknown))


def test_a_stopped_comparison_says_so_and_shows_the_rest(make_results: ResultsMaker) -> None:
    page = render_page(make_results(("softmax",), stopped="The emulator died."))
    assert "Incomplete. The emulator died." in elements(page, "p", "stopped")[0]
    assert "92.4 %" in page


def test_softmax_comes_first_and_the_control_last(make_results: ResultsMaker) -> None:
    (section,) = sections(make_results(("uniform", "oscillator relu", "softmax"), ("mps2-an386",)))
    assert [group.mechanism for group in section.groups] == [
        "softmax",
        "oscillator relu",
        "uniform",
    ]


def test_it_is_said_where_softmax_is_more_accurate(make_results: ResultsMaker) -> None:
    results = make_results(boards=("mps2-an386",))
    (section,) = sections(with_difference(results, "oscillator relu", -0.02, 0.01))
    (found,) = [f.text for f in softmax_wins(section) if "oscillator relu" in f.text]
    assert found == "Accuracy: 2.0 points above oscillator relu (95 % interval +1.0 to +3.0)."
    (section,) = sections(with_difference(results, "oscillator relu", -0.02, 0.03))
    (found,) = [f.text for f in softmax_wins(section) if "oscillator relu" in f.text]
    assert "includes zero, so it may be chance" in found
    (section,) = sections(with_difference(results, "oscillator relu", 0.02, 0.03))
    assert not [f for f in softmax_wins(section) if "oscillator relu" in f.text]


def test_it_is_said_where_softmax_is_cheaper(make_results: ResultsMaker) -> None:
    results = make_results(("softmax", "oscillator relu"), ("mps2-an386",))
    results = with_row(results, 1, instructions=9_000_000, flash_bytes=122_014)
    (section,) = sections(results)
    costs = [finding for finding in softmax_wins(section) if finding.text.startswith("Cost")]
    assert [finding.kind for finding in costs] == ["counted"]
    assert "4,493,500 fewer instructions (49.9 %)" in costs[0].text
    assert "fewer bytes of flash (50.0 %)" in costs[0].text


def test_the_control_tells_whether_the_task_needs_attention(make_results: ResultsMaker) -> None:
    results = make_results(boards=("mps2-an386",))
    (section,) = sections(with_difference(results, "uniform", -0.001, 0.02))
    assert "may hardly need attention" in shown_by(section)[-1].text
    (section,) = sections(with_difference(results, "uniform", -0.2, 0.02))
    assert "less than softmax: this task needs attention" in shown_by(section)[-1].text


def test_where_softmax_fails_too_the_control_is_held_to_the_best(
    make_results: ResultsMaker,
) -> None:
    results = with_difference(make_results(boards=("mps2-an386",)), "uniform", -0.001, 0.02)
    (section,) = sections(
        results.model_copy(
            update={
                "results": tuple(
                    row.model_copy(
                        update={"accuracy": Accuracy(device=device, n=50, ci95=interval)}
                    )
                    for row in results.results
                    for device, interval in [
                        (0.98, (0.97, 0.99)) if row.coupling == "separable" else (0.8, (0.7, 0.9))
                    ]
                )
            }
        )
    )
    said = shown_by(section)[-1].text
    assert "less than oscillator separable: this task needs attention, and softmax lacks" in said


def test_one_seed_compares_two_networks_not_two_mechanisms(make_results: ResultsMaker) -> None:
    one = with_difference(make_results(boards=("mps2-an386",)), "oscillator relu", 0.2, 0.02)
    (section,) = sections(one)
    said = [finding.text for finding in shown_by(section) if "in accuracy" in finding.text]
    assert any("between these two networks, of one seed each" in text for text in said)
    (section,) = sections(make_results(boards=("mps2-an386",), seeds=(0, 1, 2)))
    assert not any("of one seed each" in finding.text for finding in shown_by(section))


def test_over_several_seeds_the_interval_is_that_of_the_seeds(make_results: ResultsMaker) -> None:
    (section,) = sections(make_results(boards=("mps2-an386",), seeds=(0, 1, 2)))
    relu = section.group("oscillator relu")
    assert relu is not None
    assert relu.basis == "3 seeds"
    assert relu.difference is not None
    assert relu.difference.basis == "3 seeds"
    devices = [row.accuracy.device for row in relu.rows if row.accuracy]
    assert relu.accuracy == pytest.approx(sum(d for d in devices if d is not None) / 3)


def test_the_bars_add_up_to_all_instructions(make_results: ResultsMaker) -> None:
    (section,) = sections(make_results(boards=("mps2-an386",)))
    chart = layer_chart(section)
    assert [group.name for group in chart][-1] == "3 smaller"
    for position, group in enumerate(section.groups):
        shown = sum(int(layer.bars[position].text.replace(",", "")) for layer in chart)
        assert shown == group.rows[0].instructions
    assert max(bar.width for layer in chart for bar in layer.bars) == 100


def test_every_layer_has_its_cycles_with_their_bounds(make_results: ResultsMaker) -> None:
    section = sections(make_results())[0]
    rows = layer_cycles(section)
    assert [row.name for row in rows] == [layer.name for layer in section.rows[0].layers]
    assert {row.kind for row in rows} == {"modelled"}
    stem = rows[0].cells[0]  # 201,600 instructions at 1.2 cycles, between 1.1 and 1.5
    assert (stem.text, stem.detail) == ("241,920", "221,760\N{EN DASH}302,400")


def test_cycles_by_layer_are_absent_where_none_are_modelled(make_results: ResultsMaker) -> None:
    results = with_row(make_results(mechanisms=("softmax",)), 0, cycles=None)
    assert layer_cycles(sections(results)[0]) == []


def test_the_attention_core_is_set_against_the_whole(make_results: ResultsMaker) -> None:
    section = sections(make_results(mechanisms=("softmax",)))[0]
    shown = {row.name: row.cells[0].text for row in quantity_rows(section)}
    core, whole = 1_480_000, section.rows[0].instructions
    assert shown["Instructions, attention core"] == f"{core:,}"
    assert shown["The core's share of all"] == f"{100 * core / whole:.1f} %"
    assert shown["If the core cost nothing (Amdahl)"].startswith(f"{whole / (whole - core):.2f}")


def test_a_layer_is_said_to_do_what_it_does_in_the_baseline(make_results: ResultsMaker) -> None:
    results = make_results(mechanisms=("softmax", "uniform"), boards=("mps2-an386",))
    control = results.results[1]
    layers = tuple(
        layer.model_copy(update={"op": "mean"}) if layer.attention else layer
        for layer in control.layers
    )
    shown = layer_chart(sections(with_row(results, 1, layers=layers))[0])
    assert {group.name: group.detail for group in shown}["block_attention"] == "attention"


def test_layers_of_different_networks_are_merged_in_order() -> None:
    assert merged([["a", "b", "d"], ["a", "c", "d", "e"]]) == ["a", "b", "c", "d", "e"]
    assert merged([["a"], ["b"]]) == ["a", "b"]


def test_whiskers_hold_their_points_and_stay_on_the_axis(make_results: ResultsMaker) -> None:
    chart = accuracy_chart(sections(make_results())[0])
    assert chart is not None
    for dot in chart.dots:
        assert 0 <= dot.low <= dot.at <= dot.high <= 100
    assert [tick.at for tick in chart.ticks][:: len(chart.ticks) - 1] == [0, 100]


@pytest.mark.parametrize("share", [0.0, 1.0])
def test_the_axis_also_holds_nothing_and_everything(
    make_results: ResultsMaker, share: float
) -> None:
    results = make_results(("softmax",), ("mps2-an386",))
    accuracy = results.results[0].accuracy
    assert accuracy is not None
    exact = accuracy.model_copy(update={"device": share, "ci95": (share, share)})
    chart = accuracy_chart(sections(with_row(results, 0, accuracy=exact))[0])
    assert chart is not None
    assert chart.dots[0].at == 100 * share
    assert all(0 <= float(tick.text) <= 100 for tick in chart.ticks)


def test_memory_is_shown_against_the_boards(make_results: ResultsMaker) -> None:
    results = with_row(make_results(("softmax",), ("mps2-an386",)), 0, flash_bytes=2**21)
    flash = memory_chart(sections(results)[0])[0]
    assert (flash.name, flash.detail) == ("flash", "of 4.0 MiB")
    assert flash.bars[0].width == 50
    assert flash.bars[0].text == "2.0 MiB (50.0 %)"


def test_matrices_equal_on_two_boards_are_shown_once(make_results: ResultsMaker) -> None:
    found = confusions(sections(make_results()))
    assert [matrix.where for matrix in found] == ["the same on mps2-an386 and mps3-an547"] * 4
    assert sum(cell.count for row in found[0].rows for cell in row) == 450


def test_a_measured_energy_and_a_modelled_one_stand_in_rows_of_their_own(
    make_results: ResultsMaker,
) -> None:
    results = make_results(("softmax", "uniform"), ("mps2-an386",))
    measured = results.results[0].energy_uj
    assert measured is not None
    instrument = measured.model_copy(update={"kind": "measured", "low": None, "high": None})
    (section,) = sections(with_row(results, 0, energy_uj=instrument))
    energies = [row for row in quantity_rows(section) if row.name.startswith("Energy")]
    assert [row.kind for row in energies] == ["measured", "modelled"]
    assert [cell.text for cell in energies[0].cells] == ["1,890", DASH]


def shown(results: Results, width: int = 80) -> str:
    out = io.StringIO()
    Console(file=out, width=width).print(results_table(results))
    return out.getvalue()


def test_the_table_says_modelled_beside_time_and_energy(make_results: ResultsMaker) -> None:
    text = shown(make_results(("softmax",), ("mps2-an386",)))
    for line in text.splitlines():
        assert ("modelled" in line) == (" ms " in line or "µJ" in line), line
        assert len(line) <= 80
    assert "4,506,500" in text
    assert "92.4 % device" in text
    assert f"90.0{DASH}94.7 %" in text
    assert "1.8 V" in text
    assert "0 mismatches in 450" in text


def test_the_table_shows_markup_and_control_characters_as_text(make_results: ResultsMaker) -> None:
    evil = with_row(make_results(("softmax",)), 0, run="[red]x\x1b[2J", board="b\x07")
    text = shown(evil)
    assert "[red]x\\x1b[2J" in text
    assert "\x1b" not in text
    assert "\x07" not in text
