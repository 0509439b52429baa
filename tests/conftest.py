"""Settings for all tests: in continuous integration, property tests draw the same examples every time.

A shell starts what it runs in the background with interrupts ignored, and programs pass that on; tests of interrupted
commands need them.
"""

from __future__ import annotations

import os
import signal

from hypothesis import settings

settings.register_profile("ci", derandomize=True, print_blob=True)
if os.environ.get("CI"):
    settings.load_profile("ci")

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
