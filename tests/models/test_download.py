from __future__ import annotations

import hashlib
import io
import tarfile
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from entrain.deploy.errors import DataError
from entrain.models.data.download import download_speech_commands


def pack(*members: tuple[str, bytes] | tarfile.TarInfo) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as tar:
        for member in members:
            if isinstance(member, tarfile.TarInfo):
                tar.addfile(member)
                continue
            name, content = member
            info = tarfile.TarInfo(name)
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    return buffer.getvalue()


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


ARCHIVE = pack(("./cat/a_nohash_0.wav", bytes(range(256)) * 40), ("./testing_list.txt", b"cat/a"))


@dataclass
class Server:
    """A web server on the loopback that may break off, and may not know how to resume."""

    content: bytes = ARCHIVE
    break_after: int | None = None
    resumes: bool = True
    ranges: list[str | None] = field(default_factory=list)
    url: str = ""

    def answer(self, request: BaseHTTPRequestHandler) -> None:
        wanted = request.headers.get("Range")
        self.ranges.append(wanted)
        start = int(wanted.removeprefix("bytes=").removesuffix("-")) if wanted else 0
        if not self.resumes:
            start = 0
        if start >= len(self.content):
            request.send_error(416)
            return
        rest = self.content[start:]
        request.send_response(206 if start else 200)
        request.send_header("Content-Length", str(len(rest)))
        request.end_headers()
        request.wfile.write(rest[: self.break_after])
        self.break_after = None


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("no_proxy", "*")


@pytest.fixture
def server() -> Iterator[Server]:
    behaviour = Server()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            behaviour.answer(self)

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as http:
        thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        behaviour.url = f"http://127.0.0.1:{http.server_port}/archive.tar.gz"
        yield behaviour
        http.shutdown()
        thread.join()


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_an_archive_is_fetched_checked_and_unpacked(server: Server, tmp_path: Path) -> None:
    progress: list[tuple[int, int | None]] = []
    folder = download_speech_commands(
        tmp_path / "speech", server.url, sha256(ARCHIVE), lambda *seen: progress.append(seen)
    )
    assert (folder / "cat" / "a_nohash_0.wav").read_bytes() == bytes(range(256)) * 40
    assert (folder / "testing_list.txt").read_bytes() == b"cat/a"
    assert progress[0] == (0, len(ARCHIVE))
    assert progress[-1] == (len(ARCHIVE), len(ARCHIVE))
    assert names(tmp_path) == ["speech"]


@pytest.mark.parametrize("resumes", [True, False])
def test_a_broken_download_goes_on_where_it_stopped(
    server: Server, tmp_path: Path, resumes: bool
) -> None:
    server.break_after, server.resumes = 100, resumes
    folder = tmp_path / "speech"
    with pytest.raises(DataError, match="broke off after 100") as caught:
        download_speech_commands(folder, server.url, sha256(ARCHIVE))
    assert "goes on where it stopped" in str(caught.value.remedy)
    assert not folder.exists()
    download_speech_commands(folder, server.url, sha256(ARCHIVE))
    assert server.ranges == [None, "bytes=100-"]
    assert (folder / "testing_list.txt").read_bytes() == b"cat/a"


def test_a_finished_download_is_only_unpacked(server: Server, tmp_path: Path) -> None:
    (tmp_path / "speech.download").write_bytes(ARCHIVE)
    folder = download_speech_commands(tmp_path / "speech", server.url, sha256(ARCHIVE))
    assert names(folder) == ["cat", "testing_list.txt"]


def test_a_wrong_checksum_deletes_the_archive_and_unpacks_nothing(
    server: Server, tmp_path: Path
) -> None:
    with pytest.raises(DataError, match=f"{sha256(ARCHIVE)}, expected {'0' * 64}"):
        download_speech_commands(tmp_path / "speech", server.url, "0" * 64)
    assert names(tmp_path) == []


def link(name: str, target: str, kind: bytes = tarfile.SYMTYPE) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, target
    return info


@pytest.mark.parametrize(
    "member",
    [
        ("../outside.txt", b"x"),
        ("/tmp/entrain-outside.txt", b"x"),
        ("cat/../../outside.txt", b"x"),
        link("cat", "/tmp"),
        link("cat", "../../etc/passwd", tarfile.LNKTYPE),
    ],
)
def test_an_archive_that_reaches_outside_its_folder_is_refused(
    server: Server, tmp_path: Path, member: tuple[str, bytes] | tarfile.TarInfo
) -> None:
    server.content = pack(("good.txt", b"x"), member)
    with pytest.raises(DataError, match="no plain file inside"):
        download_speech_commands(tmp_path / "speech", server.url, sha256(server.content))
    assert names(tmp_path) == ["speech.download"]


def test_a_damaged_archive_is_refused(server: Server, tmp_path: Path) -> None:
    server.content = ARCHIVE[: len(ARCHIVE) // 2]
    with pytest.raises(DataError, match="cannot be unpacked"):
        download_speech_commands(tmp_path / "speech", server.url, sha256(server.content))
    assert names(tmp_path) == ["speech.download"]


def test_a_folder_in_use_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("keep")
    with pytest.raises(DataError, match="already in use"):
        download_speech_commands(tmp_path, "http://127.0.0.1:9/never-asked")
    assert names(tmp_path) == ["mine.txt"]


def test_an_empty_folder_may_be_downloaded_into(server: Server, tmp_path: Path) -> None:
    folder = tmp_path / "speech"
    folder.mkdir()
    download_speech_commands(folder, server.url, sha256(ARCHIVE))
    assert names(folder) == ["cat", "testing_list.txt"]


def test_a_server_that_cannot_be_reached_is_named(tmp_path: Path) -> None:
    nobody = "http://127.0.0.1:1/archive.tar.gz"
    with pytest.raises(DataError, match="download failed") as caught:
        download_speech_commands(tmp_path / "speech", nobody, "")
    assert caught.value.where == nobody
