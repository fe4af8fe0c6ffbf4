"""``entrain listen``: words in sound, as they are heard."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from entrain.deploy.cli.options import Quiet, RunName, RunsDir, Verbose
from entrain.deploy.cli.output import Output, print_error
from entrain.deploy.cli.progress import shown_stages
from entrain.deploy.cli.spotters import Coding, complete_spotter, spotter_run
from entrain.deploy.errors import DataError, UsageError
from entrain.deploy.runs import DEFAULT_ROOT

if TYPE_CHECKING:
    from entrain.deploy.boards import Board
    from entrain.deploy.listening.firmware import Spotter
    from entrain.deploy.listening.load import Load
    from entrain.deploy.listening.session import Event
    from entrain.deploy.listening.sources import Source
    from entrain.deploy.listening.streams import Listener

HOST = "host"
DEFAULT_DEVICE = "qemu"

Wav = Annotated[
    list[Path] | None,
    typer.Option("--wav", help="A sound file, or a folder of them; may be given more than once."),
]
Mic = Annotated[bool, typer.Option("--mic", help="Listen to this machine's microphone.")]
MicrophoneName = Annotated[
    str | None, typer.Option("--microphone", help="Which one: its number, or a part of its name.")
]
Seconds = Annotated[
    float | None, typer.Option("--seconds", min=0.1, help="Listen for so long, then end.")
]
ListeningDevice = Annotated[
    str, typer.Option("--device", help="qemu[:BOARD], serial:PORT[:BAUD], or host: this machine.")
]
Lines = Annotated[bool, typer.Option("--json", help="Print one JSON object a line for each event.")]
Plot = Annotated[
    Path | None,
    typer.Option("--plot", help="Draw what was heard into a .png or .svg; of several, the last."),
]


def listen(
    wav: Wav = None,
    mic: Mic = False,
    microphone: MicrophoneName = None,
    seconds: Seconds = None,
    run: RunName = None,
    device: ListeningDevice = DEFAULT_DEVICE,
    coding: Coding = "pcm",
    plot: Plot = None,
    runs_dir: RunsDir = DEFAULT_ROOT,
    machine: Lines = False,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> None:
    """Spot words in sound files or at the microphone, on the device."""
    from entrain.deploy.listening.board import coder_named

    out = Output(machine, quiet, verbose)
    coder_named(coding)
    if bool(wav) == mic:
        raise UsageError(
            "what is there to hear?", remedy="give --wav FILE or FOLDER, or --mic, not both"
        )
    chosen = spotter_run(runs_dir, run)
    with shown_stages(out) as stages:
        complete_spotter(chosen, stages)
    from entrain.deploy.listening.firmware import spotter_of

    spotter = spotter_of(chosen)
    if not spotter.settings.tuned_for:
        out.remark(f"Not tuned yet: 'entrain tune --run {chosen.name}' chooses thresholds.")
    with _listening(spotter, device, coding, out) as listener:
        ear = _Ear(out, spotter, listener, _emulated(device), plot)
        if mic:
            from entrain.deploy.listening.sources import Microphone

            source = Microphone(microphone)
            with suppress(KeyboardInterrupt):  # which is how a microphone is left
                ear.hear(source, seconds)
            if source.lost:
                out.remark(f"{source.lost:,} samples were lost: they came quicker than were heard")
            return
        all_heard = [_heard(path, ear, seconds) for path in _paths(wav or [])]
    if not all(all_heard):
        raise typer.Exit(1)


@contextmanager
def _listening(spotter: Spotter, device: str, coding: str, out: Output) -> Iterator[Listener]:
    """What hears, on the chosen device."""
    if device == HOST:
        yield spotter.on_host()
        return
    from entrain.deploy.listening.board import CODERS, BoardSpotter
    from entrain.deploy.listening.device_check import connected

    with shown_stages(out) as stages:
        client = connected(spotter, device, stages)
    with client:
        yield BoardSpotter(client, spotter.settings, len(spotter.labels), CODERS[coding])


def _emulated(device: str) -> Board | None:
    """The board that is emulated; None for a real one, and for this machine."""
    from entrain.deploy.listening.device_check import emulated_board

    return None if device == HOST else emulated_board(device)


def _paths(given: list[Path]) -> list[Path]:
    from entrain.deploy.listening.sources import files_of

    return [path for each in given for path in files_of(each)]


def _heard(path: Path, ear: _Ear, seconds: float | None) -> bool:
    """Hear a file; whether that could be done. What cannot be read is told, and the next heard."""
    from entrain.deploy.listening.sources import sound_file

    try:
        ear.hear(sound_file(path), seconds)
    except DataError as error:
        ear.refuse(path, error)
        return False
    return True


class _Ear:
    """Hears sources one after the other, and prints what is heard.

    Args:
        out: where remarks go.
        spotter: the run's.
        listener: what hears.
        board: the board that is emulated, if one is.
        plot: a file to draw into.
    """

    def __init__(
        self,
        out: Output,
        spotter: Spotter,
        listener: Listener,
        board: Board | None,
        plot: Path | None,
    ) -> None:
        self._out, self._spotter, self._listener = out, spotter, listener
        self._board, self._plot = board, plot

    def hear(self, source: Source, seconds: float | None) -> None:
        """Hear a source to its end.

        Raises:
            DataError: it cannot be read to its end.
        """
        from entrain.deploy.listening.session import Session, first, followed_by_silence

        spotter = self._spotter
        session = Session(self._listener, spotter.settings, len(spotter.labels), self._board)
        self._out.remark(f"{source.name}{f': {source.remark}' if source.remark else ''}")
        count = 0
        blocks = followed_by_silence(first(source.blocks(), seconds))
        for event in session.hear(blocks, keep=self._plot is not None):
            count += 1
            self._tell(source, event)
        self._out.remark(f"{count} words heard{_load_words(session.load)}")
        if self._plot is not None:
            from entrain.deploy.listening.plots import draw_heard

            words = spotter.settings.words
            draw_heard(session.samples, session.hops, spotter.labels, words, self._plot)

    def refuse(self, path: Path, error: DataError) -> None:
        """Tell of a file that cannot be heard."""
        if self._out.machine:
            _line({"source": str(path), "error": error.what, "remedy": error.remedy})
        print_error(error)

    def _tell(self, source: Source, event: Event) -> None:
        load = event.load
        if self._out.machine:
            _line(
                {
                    "source": source.name,
                    "word": event.word,
                    "seconds": event.seconds,
                    "confidence": event.confidence,
                    "latency_ms": round(event.latency_ms, 3),
                    "front_end_share": load and load.front_end,
                    "network_share": load and load.network,
                    "shares_are": load and load.kind,
                }
            )
            return
        shares = ""
        if load is not None:
            shares = f"  front end {_percent(load.front_end)}, network {_percent(load.network)}"
        sys.stdout.write(
            f"{event.seconds:9.2f} s  {event.word:<10} {event.confidence:.2f}  "
            f"{event.latency_ms:6.1f} ms{shares}\n"
        )
        sys.stdout.flush()


def _line(value: object) -> None:
    sys.stdout.write(json.dumps(value, ensure_ascii=False, allow_nan=False) + "\n")
    sys.stdout.flush()


def _load_words(load: Load | None) -> str:
    if load is None:
        return ""
    clock = "" if load.mhz is None else f" at {load.mhz:g} MHz"
    too_much = ": more than it has for sound as it comes" if load.whole > 1 else ""
    return (
        f"; of the core's time{clock} the front end takes {_percent(load.front_end)}, the network "
        f"{_percent(load.network)} ({load.kind}){too_much}"
    )


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"
