"""What an image's symbol table says: where functions lie, and how much memory the image takes."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import IO

from elftools.common.exceptions import ELFError
from elftools.elf.elffile import ELFFile
from elftools.elf.sections import ARMAttributesSection, SymbolTableSection

from entrain.deploy.errors import ModelError

_ALLOCATED = 0x2  # SHF_ALLOC
_V7E_M = 13  # Tag_CPU_arch of Arm's ABI addenda: Armv7-M with the DSP instructions
_THUMB_1 = 1  # Tag_THUMB_ISA_use
_THUMB_BIT = 1


@dataclass(frozen=True, order=True)
class Function:
    """A function: first address, size in bytes, and its name without the compiler's suffixes."""

    address: int
    size: int
    name: str


@dataclass(frozen=True)
class Symbols:
    """The functions of an image, by address, and every symbol's address by name."""

    functions: tuple[Function, ...]
    addresses: dict[str, int]

    def address(self, name: str, image: Path) -> int:
        """The address of ``name``.

        Raises:
            ModelError: the image has no such symbol, so it is no firmware of ours.
        """
        if name not in self.addresses:
            raise ModelError(
                f"the image has no symbol {name!r}",
                where=str(image),
                remedy="build it again with this version of Entrain",
            )
        return self.addresses[name]


@dataclass(frozen=True)
class MemoryUse:
    """Bytes of an image: flash (code, constants, initial values) and RAM (variables, no stack)."""

    flash_bytes: int
    ram_bytes: int


def read_symbols(image: Path) -> Symbols:
    """The symbols of the ELF file ``image``.

    Raises:
        ModelError: the file is missing, or is no ELF file.
    """
    functions: set[Function] = set()
    addresses: dict[str, int] = {}
    with _opened(image) as file:
        for symbol in _symbol_table(file, image).iter_symbols():
            if symbol["st_shndx"] == "SHN_UNDEF" or not symbol.name:
                continue
            is_function = symbol["st_info"]["type"] == "STT_FUNC"
            address = symbol["st_value"] & ~_THUMB_BIT if is_function else symbol["st_value"]
            addresses[symbol.name] = address
            if is_function and symbol["st_size"] > 0:
                name = symbol.name.partition(".")[0]  # drop .constprop.0, .isra.0, .part.0
                functions.add(Function(address, symbol["st_size"], name))
    return Symbols(tuple(sorted(functions)), addresses)


def firmware_report(image: Path) -> MemoryUse:
    """The memory that the ELF file ``image`` takes.

    Raises:
        ModelError: the file is missing, or is no ELF file.
    """
    flash = ram = 0
    with _opened(image) as file:
        for section in ELFFile(file).iter_sections():
            if not section["sh_flags"] & _ALLOCATED or section.name == ".stack":
                continue
            is_stored = section["sh_type"] != "SHT_NOBITS"
            is_variable = section.name in {".data", ".bss"}
            flash += section["sh_size"] if is_stored else 0
            ram += section["sh_size"] if is_variable else 0
    return MemoryUse(flash, ram)


def instruction_set(image: Path) -> str:
    """What the kernels in the ELF file ``image`` are made of, by its attributes.

    Returns:
        ``mve``, ``dsp`` or ``scalar``, as firmware/kernels choose, or ``thumb-1``: the scalar
        kernels again, but in the fewer instructions of Armv6-M.

    Raises:
        ModelError: the file is missing, or is no ELF file of an Arm core.
    """
    attributes = build_attributes(image)
    if attributes.get("TAG_MVE_ARCH"):
        return "mve"
    if attributes.get("TAG_CPU_ARCH") == _V7E_M or attributes.get("TAG_DSP_EXTENSION"):
        return "dsp"
    return "thumb-1" if attributes.get("TAG_THUMB_ISA_USE") == _THUMB_1 else "scalar"


def build_attributes(image: Path) -> dict[str, int | str]:
    """What the ELF file ``image`` says it was compiled for, by the tags of Arm's ABI addenda.

    Raises:
        ModelError: the file is missing, or is no ELF file of an Arm core.
    """
    with _opened(image) as file:
        try:
            section = ELFFile(file).get_section_by_name(".ARM.attributes")
        except ELFError as error:
            raise ModelError(f"not an ELF file: {error}", where=str(image)) from error
        if not isinstance(section, ARMAttributesSection):
            raise ModelError("the image is for no Arm core", where=str(image))
        parts = [
            part for whole in section.iter_subsections() for part in whole.iter_subsubsections()
        ]
        return {one.tag: one.value for part in parts for one in part.iter_attributes()}


def _opened(image: Path) -> IO[bytes]:
    try:
        return image.open("rb")
    except OSError as error:
        raise ModelError(
            f"the image cannot be read: {error.strerror}",
            where=str(image),
            remedy="build it first: entrain build",
        ) from error


def _symbol_table(file: IO[bytes], image: Path) -> SymbolTableSection:
    try:
        table = ELFFile(file).get_section_by_name(".symtab")
    except ELFError as error:
        raise ModelError(f"not an ELF file: {error}", where=str(image)) from error
    if not isinstance(table, SymbolTableSection):
        raise ModelError("the image has no symbols", where=str(image), remedy="do not strip it")
    return table
