"""The compiler inside ziglang: what it makes, what it refuses, and how the extra is installed."""

import os
import sys
from pathlib import Path

import pytest

from scenarios.pipeline.compiler import clang_artifacts, emulator_pool, install_hint, toolchain

THREE = b"int main(void) { return 3; }\n"


def test_what_the_extra_brings_is_here() -> None:
    assert toolchain.explain_missing_tools() is None
    assert toolchain.read_clang_version().startswith("22.")


def test_nothing_is_left_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home, rest = tmp_path / "home", tmp_path / "rest"
    home.mkdir()
    rest.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("TMPDIR", str(rest))
    monkeypatch.setattr("tempfile.tempdir", str(rest))
    assert (
        emulator_pool.run_emulated(
            toolchain.link_executable(toolchain.compile_to_ir(THREE, "-O2"), "ir")
        ).exit
        == 3
    )
    assert [*home.iterdir(), *rest.iterdir()] == []


def test_the_same_source_gives_the_same_bytes_wherever_it_is_compiled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def made() -> list[bytes]:
        ir = toolchain.compile_to_ir(THREE, "-O0")
        dumps = (
            toolchain.dump_tokens(THREE),
            clang_artifacts.to_tree_artifact(toolchain.dump_tree(THREE)),
        )
        return [ir, toolchain.compile_to_assembly(ir), toolchain.link_executable(ir, "ir"), *dumps]

    here = made()
    monkeypatch.chdir(tmp_path)
    assert made() == here


def test_what_clang_refuses_is_said_in_its_words() -> None:
    with pytest.raises(ValueError, match=r"program\.c:1:1: error: unknown type name 'x'"):
        toolchain.compile_to_ir(b"x y z", "-O0")
    with pytest.raises(ValueError, match=r"program\.s:1:1: error: unrecognized instruction"):
        toolchain.link_executable(b"nonsense a0, a1\n", "assembly")
    with pytest.raises(ValueError, match=r"program\.ll:1:1: error: expected top-level entity"):
        toolchain.link_executable(b"nonsense\n", "ir")
    with pytest.raises(ValueError, match="undefined symbol: main"):
        toolchain.link_executable(b"", "assembly")
    with pytest.raises(ValueError, match="undefined symbol: absent"):
        toolchain.link_executable(b".globl main\nmain: call absent\n", "assembly")


@pytest.mark.parametrize(
    "refused",
    [
        '.incbin "/etc/passwd"',
        '.INCBIN "/etc/passwd"',
        '".Incbin" "/etc/passwd"',
        '\t.include "other.s"',
        ".macro again\nagain\n.endm",
        ".rept 1000000000\nnop\n.endr",
        ".irpc x, abc\n.endr",
    ],
)
def test_assembly_that_reads_or_grows_is_not_accepted(refused: str) -> None:
    with pytest.raises(ValueError, match="is not accepted in assembly"):
        toolchain.link_executable(f".globl main\nmain: ret\n{refused}\n".encode(), "assembly")


@pytest.mark.parametrize(
    "refused",
    [
        'module asm ; and\n  "nop"',
        'module asm ".inc\\62in \\22/etc/passwd\\22"',
        'define i32 @main() {\n  call void asm sideeffect "nop", ""()\n  ret i32 0\n}',
        'define i32 @main() {\n  %1 = call i32 asm "li $0, 1", "=r"()\n  ret i32 %1\n}',
        'define i32 @main() {\n  %1 = call i32asm "li $0, 1", "=r"()\n  ret i32 %1\n}',
        '%0 = type i32\ndefine i32 @main() {\n  %1 = call %0asm "", "=r"()\n  ret i32 %1\n}',
    ],
)
def test_ir_with_assembly_in_it_is_not_accepted(refused: str) -> None:
    with pytest.raises(ValueError, match="is not accepted in ir"):
        toolchain.link_executable(refused.encode(), "ir")


@pytest.mark.parametrize("magic", [b"BC\xc0\xde", b"\xde\xc0\x17\x0b"])
def test_bitcode_in_which_nothing_can_be_found_is_not_accepted(magic: bytes) -> None:
    with pytest.raises(ValueError, match="is not accepted in ir"):
        toolchain.link_executable(magic + bytes(60), "ir")


def test_an_object_names_no_files_to_be_linked(tmp_path: Path) -> None:
    (tmp_path / "secret").write_bytes(b"expected output")
    (tmp_path / "script").write_text(f"TARGET(binary)\nINPUT({tmp_path / 'secret'})\n")
    asks = '\t.section ".deplibs","MS",@llvm_dependent_libraries,1\n\t.asciz "{}"\n'
    text = "\t.globl main\nmain:\n\tret\n" + asks.format(tmp_path / "script")
    assert b"expected output" not in toolchain.link_executable(text.encode(), "assembly")


def test_a_name_is_no_assembly() -> None:
    body = b"define i32 @main() {\n  %asm = load i32, ptr @asm\n  ret i32 %asm\n}\n"
    named = b"@asm = global i32 5\n" + body
    assert emulator_pool.run_emulated(toolchain.link_executable(named, "ir")).exit == 5


def test_an_executable_that_would_fill_the_disk_is_refused() -> None:
    with pytest.raises(ValueError, match="ended with|error"):
        toolchain.link_executable(b".globl main\nmain: ret\n.data\n.zero 20000000000\n", "assembly")


EDITABLE: dict[str, object] = {"url": "file:///srv/a%20place", "dir_info": {"editable": True}}
FROM_GIT: dict[str, object] = {"url": "https://example.test/stumble.git"}


def test_how_to_install_the_extra_depends_on_how_stumble_was(tmp_path: Path) -> None:
    assert install_hint.make_install_command(tmp_path, EDITABLE) == "make -C '/srv/a place' dev"
    pip = install_hint.make_install_command(Path(sys.prefix), {})
    assert pip.startswith((f"{sys.prefix}/bin/python -m pip install", "uv pip install --python"))
    assert pip.endswith("'stumble[pipeline]'")
    uv, pipx = tmp_path / "uv", tmp_path / "pipx"
    for environment, receipt in ((uv, "uv-receipt.toml"), (pipx, "pipx_metadata.json")):
        environment.mkdir()
        (environment / receipt).touch()
    assert install_hint.make_install_command(uv, {}) == "uv tool install 'stumble[pipeline]'"
    assert install_hint.make_install_command(uv, FROM_GIT).endswith(
        "'stumble[pipeline] @ https://example.test/stumble.git'"
    )
    assert install_hint.make_install_command(pipx, {}) == "pipx install --force 'stumble[pipeline]'"


def test_a_missing_extra_is_one_line_that_says_what_to_type() -> None:
    said = install_hint.format_install_hint(["unicorn", "ziglang"])
    assert said.startswith("unicorn and ziglang not installed: ")
    assert os.linesep not in said
