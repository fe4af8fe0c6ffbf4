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


def test_the_attention_core_stands_beside_what_it_would_save_at_most(make_results):
    results = make_results(mechanisms=("softmax",), boards=("mps2-an386",))
    line = cells(summary_markdown(results).splitlines()[2])
    core, whole = 1_480_000, results.results[0].instructions
    assert line["attention core (counted)"] == f"{core:,} ({100 * core / whole:.1f} %)"
    assert line["if the core cost nothing (counted)"].startswith(f"{whole / (whole - core):.2f}")


def test_a_model_whose_core_is_no_layer_of_its_own_has_none(make_results):
    results = make_results(mechanisms=("uniform",), boards=("mps2-an386",))
    row = results.results[0]
    layers = tuple(layer.model_copy(update={"attention": False}) for layer in row.layers)
    alone = results.model_copy(update={"results": (row.model_copy(update={"layers": layers}),)})
    line = cells(summary_markdown(alone).splitlines()[2])
    assert (
        line["attention core (counted)"]
        == line["if the core cost nothing (counted)"]
        == "\N{EN DASH}"
    )
