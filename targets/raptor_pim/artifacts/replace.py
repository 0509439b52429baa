"""Folders that appear whole or not at all."""

from __future__ import annotations

import contextlib
import os
import platform
import re
import secrets
import shutil
from collections.abc import Iterator
from pathlib import Path

_NEW, _OLD = "new", "old"


@contextlib.contextmanager
def temporary_sibling(target: Path) -> Iterator[Path]:
    """An empty hidden folder beside ``target``; it is gone when the block is left, unless published.

    Leftovers of processes that are no longer alive on this machine are cleared first. Raises OSError when the folder
    cannot be made.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    clear_leftovers(target)
    folder = _sibling(target, _NEW)
    folder.mkdir()
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def publish(folder: Path, target: Path) -> None:
    """Gives ``folder`` (of :func:`temporary_sibling`) the name ``target``; what is there now is removed.

    When the rename fails, the old folder is put back and the OSError goes on.
    """
    if not target.exists():
        folder.rename(target)
        return
    old = _sibling(target, _OLD)
    target.rename(old)
    try:
        folder.rename(target)
    except BaseException:
        old.rename(target)
        raise
    shutil.rmtree(old, ignore_errors=True)


def clear_leftovers(target: Path) -> None:
    """Removes the hidden folders that killed processes left beside ``target``.

    A process killed between the two renames of a replacement leaves the old folder under a hidden name and nothing
    under the real one: it is put back.
    """
    pattern = re.compile(rf"\.{re.escape(target.name)}\.{_machine()}-([0-9]+)-[0-9a-f]+\.({_NEW}|{_OLD})")
    for entry in sorted(target.parent.iterdir()):
        match = pattern.fullmatch(entry.name)
        if match is None or _alive(int(match.group(1))):
            continue
        if match.group(2) == _OLD and not target.exists():
            entry.rename(target)
        else:
            shutil.rmtree(entry, ignore_errors=True)


def _sibling(target: Path, purpose: str) -> Path:
    return target.parent / f".{target.name}.{_machine()}-{os.getpid()}-{secrets.token_hex(4)}.{purpose}"


def _machine() -> str:
    """The machine's name, fit for a file name: process numbers mean nothing on another machine."""
    return re.sub(r"[^A-Za-z0-9]", "_", platform.node())[:40] or "local"


def _alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        return True
    return True
