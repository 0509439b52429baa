"""Compile, simulate and run as a Python API. The command line is a thin skin over it."""

from raptor_core.driver.comparing import OutputComparison
from raptor_core.driver.compiling import CompileResult, compile
from raptor_core.driver.running import RunResult, run
from raptor_core.driver.simulating import simulate

__all__ = ["CompileResult", "OutputComparison", "RunResult", "compile", "run", "simulate"]
