"""Standard output that cannot be written: the user's full disk or closed stream, not a fault of Raptor."""

from __future__ import annotations

import contextlib
import errno
import os
import sys
from collections.abc import Iterator
from typing import Any, TextIO

import attrs

from raptor_core.diagnostics import RaptorError


@contextlib.contextmanager
def checked_output() -> Iterator[None]:
    """Let everything that is printed go through a check, and flush it at the end.

    Raises RaptorError when standard output is closed or cannot be written. BrokenPipeError passes as it is.
    """
    stream = sys.stdout
    if stream is None:
        raise _lost(OSError(errno.EBADF, os.strerror(errno.EBADF)))
    checked: Any = _Checked(stream)
    sys.stdout = checked
    try:
        try:
            yield
        except SystemExit:
            checked.flush()
            raise
        checked.flush()
    finally:
        sys.stdout = stream


def discard_output() -> None:
    """Send what is still to be written nowhere; keeps the interpreter's last flush from complaining."""
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (AttributeError, OSError, ValueError):
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115


@attrs.frozen(eq=False)
class _Checked:
    """A stream whose failures are RaptorErrors."""

    stream: TextIO

    def write(self, text: str) -> int:
        """Write to the stream."""
        try:
            return self.stream.write(text)
        except BrokenPipeError:
            raise
        except OSError as error:
            raise self._failed(error) from error

    def flush(self) -> None:
        """Flush the stream."""
        try:
            self.stream.flush()
        except BrokenPipeError:
            raise
        except OSError as error:
            raise self._failed(error) from error

    def _failed(self, error: OSError) -> RaptorError:
        sys.stdout = self.stream
        discard_output()
        return _lost(error)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)


def _lost(error: OSError) -> RaptorError:
    return RaptorError(
        "cannot-write-output",
        "cannot write to standard output",
        reason=error.strerror or str(error),
        hint="send it where there is room, or to /dev/null if the results are not wanted",
    )
