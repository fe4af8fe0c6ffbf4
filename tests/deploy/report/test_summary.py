"""The Markdown summary: one line a mechanism and board, means over seeds."""

from __future__ import annotations

from entrain.deploy.report.summary import COLUMNS, groups, summary_markdown


def cells(line: str) -> dict[str, str]:
    values = [cell.strip() for cell in line.strip("|").split(" | ")]
    return dict(zip((title for title, _ in COLUMNS), values, strict=True))


def test_every_mechanism_on_every_board_has_a_line(make_results):
    lines = summary_markdown(make_results()).splitlines()[2:]
    found = {(cells(line)["attention"], cells(line)["board"]) for line in lines}
    assert found == {(row.mechanism, row.board) for row in make_results().results}


def test_accuracy_is_the_mean_over_seeds(make_results):
    results = make_results(seeds=(0, 1))
    group = groups(results)[0]
    mean = sum(row.accuracy.device for row in group) / len(group)
    line = cells(summary_markdown(results).splitlines()[2])
    assert line["device (measured)"] == f"{100 * mean:.1f} %"
    assert line["seeds"] == str(len(group))


def test_modelled_energy_says_its_bounds_and_volts_and_is_absent_where_no_power_is_known(
    make_results,
):
    lines = [cells(line) for line in summary_markdown(make_results()).splitlines()[2:]]
    energies = {line["board"]: line["µJ (modelled)"] for line in lines}
    assert "(" in energies["mps2-an386"]
    assert energies["mps2-an386"].endswith("V")
    assert energies["mps3-an547"] == "\N{EN DASH}"


def test_rows_cut_short_are_left_out(make_results):
    results = make_results(seeds=(0, 1))
    cut = results.results[0].model_copy(update={"complete": False})
    shorter = results.model_copy(update={"results": (cut, *results.results[1:])})
    assert sum(len(group) for group in groups(shorter)) == len(results.results) - 1
