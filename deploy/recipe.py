"""What a keyword run is asked to be: the contents of its config.toml."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import TypeAdapter, ValidationError

from entrain.deploy.errors import UsageError, concerning
from entrain.deploy.runs import Run, checked_name, create_run

if TYPE_CHECKING:
    from entrain.models.data import KeywordData

TASK = "keyword"
SYNTHETIC = "synthetic"
EPOCHS = 80
SYNTHETIC_EPOCHS = 20  # synthetic speech is learned sooner, and nobody relies on it
QUANTIZATION_EPOCHS = 3

_MEND = "mend the file, or choose another run with --run NAME"


@dataclass(frozen=True)
class KeywordRecipe:
    """How a keyword network is trained and quantized.

    Args:
        attention: the mechanism, as :meth:`AttentionConfig.parse` reads it.
        seed: of everything random.
        data: a folder in Speech Commands' layout, or ``synthetic``.
        standard_12: the standard set of ten words, unknown and silence.
        epochs: of training.
        quantization_epochs: of quantization-aware fine-tuning; 0 for calibration alone.
    """

    attention: str
    seed: int = 0
    data: str = SYNTHETIC
    standard_12: bool = False
    epochs: int = EPOCHS
    quantization_epochs: int = QUANTIZATION_EPOCHS

    @property
    def data_name(self) -> str:
        """The data's short name: the folder's, or ``synthetic``."""
        name = Path(self.data).resolve().name if self.data != SYNTHETIC else SYNTHETIC
        return f"{name}-12" if self.standard_12 else name

    @property
    def run_name(self) -> str:
        """The run's name when the user gives none: recipes that differ get names that differ.

        The numbers of epochs are part of it where they are not the usual ones.
        """
        parts = [TASK, self.attention, self.data_name, f"seed{self.seed}"]
        if self.epochs != usual_epochs(self.data):
            parts.append(f"e{self.epochs}")
        if self.quantization_epochs != QUANTIZATION_EPOCHS:
            parts.append(f"q{self.quantization_epochs}")
        return "-".join(parts)

    def load_data(self) -> KeywordData:
        """The clips.

        Raises:
            UsageError: the standard twelve classes are asked of synthetic speech.
            DataError: the folder is missing, empty or damaged.
            ToolError: the speech synthesizer is not installed.
        """
        from entrain.models.data.speech import load_speech_commands, load_standard_12
        from entrain.models.data.synthetic_speech import synthetic_speech

        if self.data == SYNTHETIC and self.standard_12:
            raise UsageError(
                "synthetic speech has not the standard twelve classes",
                where="--standard-12",
                remedy="name the folder of the official archive with --data-dir",
            )
        if self.data == SYNTHETIC:
            return synthetic_speech()
        load = load_standard_12 if self.standard_12 else load_speech_commands
        return load(Path(self.data))


def usual_epochs(data: str) -> int:
    """How long to train on a source of data when nothing is said."""
    return SYNTHETIC_EPOCHS if data == SYNTHETIC else EPOCHS


def data_place(data: str | Path) -> str:
    """A source of data as recipes name it, the same from every working directory."""
    return SYNTHETIC if data == SYNTHETIC else str(Path(data).resolve())


def open_run(root: Path, recipe: KeywordRecipe, name: str | None = None) -> Run:
    """The run of a recipe: taken up again, or made.

    Raises:
        UsageError: a run of that name exists and was asked to be something else.
    """
    run = Run(root / checked_name(name or recipe.run_name))
    if run.config.is_file():
        found = read_recipe(run)
        if found != recipe:
            raise UsageError(
                f"the run {run.name} was made by another recipe: {_difference(found, recipe)}",
                where=str(run.config),
                remedy="choose another --name, or remove that run's folder",
            )
        return run
    return create_run(root, run.name, {"task": TASK, **asdict(recipe)})


def settings_of(run: Run) -> dict[str, Any]:
    """What stands in a run's config.toml.

    Raises:
        UsageError: the file is missing, or is not TOML.
    """
    with concerning(str(run.config), _MEND):
        return dict(run.settings())


def read_recipe(run: Run) -> KeywordRecipe:
    """The recipe in a run's config.toml.

    Raises:
        UsageError: it is missing, of another task, or damaged.
    """
    settings = settings_of(run)
    task = settings.pop("task", None)
    if task != TASK:
        raise UsageError(
            f"the run's task is {task!r}, not {TASK!r}",
            where=str(run.config),
            remedy="choose a keyword run",
        )
    try:
        recipe = TypeAdapter(KeywordRecipe).validate_python(settings)
    except ValidationError as error:
        first = error.errors()[0]
        raise UsageError(
            f"{'.'.join(map(str, first['loc']))}: {first['msg']}",
            where=str(run.config),
            remedy=_MEND,
        ) from error
    return replace(recipe, data=data_place(recipe.data))


def _difference(found: KeywordRecipe, asked: KeywordRecipe) -> str:
    before, now = asdict(found), asdict(asked)
    return ", ".join(
        f"{key} {before[key]}, not {now[key]}" for key in now if before[key] != now[key]
    )
