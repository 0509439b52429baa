"""Every instruction: its meaning, its offsets, its widths and its special values, against the reference."""

from __future__ import annotations

import math

import numpy as np
import pytest
from functional_runs import Vectors, final_host, floats, op

NAN, INF = math.nan, math.inf
A = floats(1.5, -2.0, 3.25, NAN, 0.0, -0.0)
B = floats(2.0, 2.5, -1.0, 4.0, NAN, 7.0)
BINARY = ("vvadd", "vvsub", "vvmul", "vvmax")
UNARY = ("vrelu", "vtanh", "vsigm")


def vectors(data: bytes) -> np.ndarray:
    return np.frombuffer(data, "<f4")


def binary(name: str, a: bytes = A, b: bytes = B, *, at: int = 100, **extra: int) -> np.ndarray:
    count = len(a) // 4
    body = (op("sldi", rd=1, imm=at), op(name, rd=1, rs1=10, rs2=11, len=count, **extra))
    return vectors(Vectors(((0, a), (200, b)), body, (at, 4 * count)).run())


@pytest.mark.parametrize("name", BINARY)
def test_binary(name: str) -> None:
    a, b = vectors(A), vectors(B)
    expected = {"vvadd": a + b, "vvsub": a - b, "vvmul": a * b, "vvmax": np.maximum(a, b)}[name]
    np.testing.assert_array_equal(binary(name), expected)


@pytest.mark.parametrize("name", BINARY)
@pytest.mark.parametrize("at", [101, 102, 103, 0, 4, 8, 200, 196, 204])
def test_binary_unaligned_in_place_and_overlapping(name: str, at: int) -> None:
    binary(name, floats(1, 2, 3, 4, 5, 6), floats(7, 8, 9, 10, 11, 12), at=at)


def test_nan_in_either_operand_of_a_maximum() -> None:
    np.testing.assert_array_equal(binary("vvmax", floats(NAN, 1), floats(1, NAN)), [NAN, NAN])


def test_long_vectors_run_in_pieces() -> None:
    a = np.arange(5000, dtype=np.float32).tobytes()
    body = (op("sldi", rd=1, imm=100_000), op("vvadd", rd=1, rs1=10, rs2=10, len=5000))
    out = vectors(Vectors(((0, a),), body, (100_000, 20_000)).run())
    np.testing.assert_array_equal(out, np.arange(5000) * 2.0)


@pytest.mark.parametrize("name", UNARY)
@pytest.mark.parametrize("at", [100, 0, 4, 97])
def test_unary(name: str, at: int) -> None:
    body = (op("sldi", rd=1, imm=at), op(name, rd=1, rs1=10, len=6))
    values = floats(1.5, -2.0, 100.0, -100.0, 0.0, NAN)
    out = vectors(Vectors(((0, values),), body, (at, 24)).run())
    x = vectors(values).astype(np.float64)
    expected = {"vrelu": np.maximum(x, 0), "vtanh": np.tanh(x), "vsigm": 1 / (1 + np.exp(-x))}[name]
    np.testing.assert_allclose(out, expected, rtol=1e-6, atol=1e-40)


def test_relu_keeps_nan_and_makes_negative_zero_positive() -> None:
    body = (op("vrelu", rd=10, rs1=10, len=2),)
    out = vectors(Vectors(((0, floats(NAN, -0.0)),), body, (0, 8)).run())
    assert np.isnan(out[0])
    assert not np.signbit(out[1])


def test_softmax_subtracts_the_maximum() -> None:
    body = (op("vsoftmax", rd=10, rs1=10, len=3),)
    out = vectors(Vectors(((0, floats(1000, 1001, 999)),), body, (0, 12)).run())
    e = np.exp([-1.0, 0.0, -2.0])
    np.testing.assert_allclose(out, e / e.sum(), rtol=1e-6)


def test_dot_product() -> None:
    body = (op("sldi", rd=1, imm=100), op("vvdmul", rd=1, rs1=10, rs2=11, len=3))
    out = vectors(Vectors(((0, floats(1, 2, 3)), (200, floats(4, 5, -6))), body, (100, 8)).run())
    assert out.tolist() == [-4.0, 0.0]


@pytest.mark.parametrize(("name", "expected"), [("vvsll", [12, -16, -(2**31), 1]), ("vvsra", [0, -1, 0, 1])])
def test_shifts_truncate_towards_zero(name: str, expected: list[float]) -> None:
    out = binary(name, floats(3.9, -4.7, 1, 1.5), floats(2, 2.9, 31, 0))
    assert out.tolist() == expected


@pytest.mark.parametrize("stride", [0, 1, 2, 3])
@pytest.mark.parametrize("at", [300, 4, 8, 1])
def test_gather(stride: int, at: int) -> None:
    source = floats(*range(12))
    body = (op("sldi", rd=1, imm=at), op("sldi", rd=2, imm=stride), op("vmv", rd=1, rs1=10, rs2=2, len=4))
    out = vectors(Vectors(((0, source),), body, (at, 16)).run())
    assert out.tolist() == [0.0, stride, 2.0 * stride, 3.0 * stride]


@pytest.mark.parametrize("stride", [1, 2, -1])
def test_mean_has_an_offset_whatever_is_selected(stride: int) -> None:
    source = floats(*range(12))
    for select in (0, 1, 2, 4):
        body = (
            op("sldi", rd=1, imm=300),
            op("sldi", rd=2, imm=stride),
            op("vavg", rd=1, rs1=10, rs2=2, len=3, select=select, value=4),
        )
        assert vectors(Vectors(((0, source),), body, (300, 4)).run())[0] == 4 + stride


@pytest.mark.parametrize(("name", "expected"), [("vrsu", [1.5, -2.0, 2.0]), ("vrsl", [2.0, 2.0, 3.25])])
def test_clamps(name: str, expected: list[float]) -> None:
    body = (op("sldi", rd=2, imm=2), op(name, rd=10, rs1=10, rs2=2, len=3, select=4, value=9))
    assert vectors(Vectors(((0, A[:12]),), body, (0, 12)).run()).tolist() == expected


@pytest.mark.parametrize("select", range(8))
@pytest.mark.parametrize("name", [*BINARY, "vvdmul", "vvsll"])
def test_offsets_of_binary_instructions(name: str, select: int) -> None:
    load = (0, floats(*range(1, 13)))
    other = (100, floats(*[1, 2, 3, 4] * 3))
    body = (op("sldi", rd=1, imm=200), op(name, rd=1, rs1=10, rs2=11, len=3, select=select, value=2))
    Vectors((load, other), body, (200, 32)).run()
    narrow = (op("setbw", ibiw=16, obiw=8), *body)
    Vectors(((0, bytes([1, 0] * 12)), (100, bytes([2, 0] * 12))), narrow, (200, 32)).run()


@pytest.mark.parametrize("select", range(8))
@pytest.mark.parametrize("name", [*UNARY, "vsoftmax", "vmv", "vrsu", "vrsl"])
def test_offsets_of_unary_instructions(name: str, select: int) -> None:
    extra = {"rs2": 2} if name in ("vmv", "vrsu", "vrsl") else {}
    body = (
        op("sldi", rd=1, imm=200),
        op("sldi", rd=2, imm=1),
        op(name, rd=1, rs1=10, len=3, select=select, value=2, **extra),
    )
    Vectors(((0, floats(*range(-4, 8))),), body, (200, 32)).run()
    narrow = (op("setbw", ibiw=8, obiw=16), *body)
    Vectors(((0, bytes(range(120, 140))),), narrow, (200, 32)).run()


@pytest.mark.parametrize("select", range(4))
@pytest.mark.parametrize("value", [-3, 0, 5])
def test_offsets_of_transfers_are_bytes(select: int, value: int) -> None:
    program = [
        op("sldi", rd=1, imm=20),
        op("sldi", rd=2, imm=8),
        op("sldi", rd=3, imm=35),
        op("ld", rd=1, rs1=2, size=10, select=select, value=value),
        op("lmv", rd=3, rs1=1, len=20, select=select, value=value),
        op("lldi", rd=1, imm=-2, len=3, select=select, value=value),
        op("st", rd=2, rs1=3, size=20, select=select, value=value),
        op("st", rd=3, rs1=1, size=20, select=select, value=value),
    ]
    final_host([program], host=bytes(range(64)))


@pytest.mark.parametrize("shift", [-7, -4, 0, 3, 8])
def test_overlapping_copy_reads_its_source_first(shift: int) -> None:
    body = (op("sldi", rd=1, imm=50 + shift), op("lmv", rd=1, rs1=10, len=20))
    out = Vectors(((50, bytes(range(20))),), body, (50 + shift, 20)).run()
    assert out == bytes(range(20))


def test_scalars_wrap() -> None:
    big = 2**31 - 1
    results = [
        op("sldi", rd=1, imm=big),
        op("sldi", rd=2, imm=3),
        op("sadd", rd=3, rs1=1, rs2=2),
        op("ssub", rd=4, rs1=3, rs2=1),
        op("smul", rd=5, rs1=1, rs2=1),
        op("saddi", rd=6, rs1=1, imm=2),
        op("smuli", rd=7, rs1=1, imm=-2),
        op("nop"),
    ]
    # A register shows by the address it names: local bytes are stored from it.
    for register, value in ((3, -(2**31) + 2), (4, 3), (5, 1), (6, -(2**31) + 1), (7, 2)):
        back = (10 - value + 2**31) % 2**32 - 2**31
        shown = [*results, op("saddi", rd=8, rs1=register, imm=back), op("lldi", rd=8, imm=9, len=1)]
        shown += [op("sldi", rd=9, imm=10), op("st", rd=31, rs1=9, size=1)]
        assert final_host([shown], host=bytes(8))[0] == 9


def test_scalar_load_is_signed_little_endian_at_any_address() -> None:
    host = bytearray(16)
    host[5:9] = (-200).to_bytes(4, "little", signed=True)
    program = [
        op("sldi", rd=1, imm=2),
        op("sld", rd=2, rs1=1, offset_value=3),
        op("saddi", rd=2, rs1=2, imm=201),
        op("lldi", rd=2, imm=7, len=1),
        op("sldi", rd=3, imm=1),
        op("st", rd=31, rs1=3, size=1),
    ]
    assert final_host([program], host=bytes(host))[0] == 7


MATRIX = np.array([[1, 2, 3], [0, 0, 0], [4, -5, 6], [0.5, 0, 0], [-0.0, 0, 0]], np.float32)


@pytest.mark.parametrize("relu", [0, 1])
@pytest.mark.parametrize("at", [0, 1, 4, 200])
def test_product_skips_rows_of_zeros(relu: int, at: int) -> None:
    x = floats(1, NAN, 2, 4, INF)
    body = (op("sldi", rd=1, imm=at), op("mvmul", rd=1, rs1=10, group=1, relu=relu))
    out = Vectors(((0, x),), body, (at, 12)).run(matrices=[[MATRIX * 9, MATRIX]])
    expected = np.array([11, -8, 15], np.float32)
    np.testing.assert_array_equal(vectors(out), np.maximum(expected, 0) if relu else expected)


def test_product_overwrites_and_lets_nan_through() -> None:
    body = (op("mvmul", rd=10, rs1=10, group=0, relu=1),)
    out = vectors(Vectors(((0, floats(NAN, 1, 1, 1, 1)),), body, (0, 20)).run(matrices=[[MATRIX]]))
    assert np.isnan(out[:3]).all()
    assert out[3:].tolist() == [1.0, 1.0]


def test_wide_product() -> None:
    rng = np.random.default_rng(1)
    matrix = rng.standard_normal((19, 70)).astype(np.float32)
    matrix[[3, 18]] = 0
    x = rng.standard_normal(19).astype(np.float32)
    body = (op("sldi", rd=1, imm=500), op("mvmul", rd=1, rs1=10, group=0))
    out = vectors(Vectors(((3, x.tobytes()),), body, (500, 280)).run(matrices=[[matrix]]))
    x[[3, 18]] = 0
    np.testing.assert_allclose(out, x @ matrix, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("wide_in", [8, 16, 32])
@pytest.mark.parametrize("wide_out", [8, 16, 32])
def test_widths(wide_in: int, wide_out: int) -> None:
    kind = {8: "<i1", 16: "<i2", 32: "<f4"}[wide_in]
    values = np.array([100, -100, 7, 3, 127, -128], kind).tobytes()
    for name in (*BINARY, "vvdmul", *UNARY, "vsoftmax", "vmv", "vrsu", "vrsl", "vavg"):
        extra = {"rs2": 10} if name in (*BINARY, "vvdmul") else {"rs2": 2}
        body = (
            op("setbw", ibiw=wide_in, obiw=wide_out),
            op("sldi", rd=1, imm=100),
            op("sldi", rd=2, imm=1),
            op(name, rd=1, rs1=10, len=6, **extra),
        )
        Vectors(((0, values),), body, (100, 32)).run()
    matrix = np.array([[100, 0.5, 1.5], [0, 0, 0], [1, 1, 1]], np.float32)
    body = (op("setbw", ibiw=wide_in, obiw=wide_out), op("sldi", rd=1, imm=100), op("mvmul", rd=1, rs1=10, group=0))
    Vectors(((0, values),), body, (100, 12)).run(matrices=[[matrix]])


def test_narrow_results_round_half_to_even_and_saturate() -> None:
    values = floats(0.5, 1.5, -2.5, 200, -200, NAN)
    body = (op("setbw", ibiw=32, obiw=8), op("sldi", rd=2, imm=1000), op("vrsu", rd=10, rs1=10, rs2=2, len=6))
    out = Vectors(((0, values),), body, (0, 8)).run()
    assert np.frombuffer(out, np.int8)[:6].tolist() == [0, 2, -2, 127, -128, 0]


def test_nothing_is_touched_by_empty_operations() -> None:
    program = [
        op("sldi", rd=1, imm=-5),
        op("vvadd", rd=1, rs1=1, rs2=1, len=0),
        op("vmv", rd=1, rs1=1, rs2=2, len=0),
        op("vsoftmax", rd=1, rs1=1, len=0),
        op("ld", rd=1, rs1=1, size=0),
        op("st", rd=1, rs1=1, size=0),
        op("lmv", rd=1, rs1=1, len=0),
        op("lldi", rd=1, imm=1, len=0),
    ]
    assert final_host([program], host=bytes(range(8))) == bytes(range(8))


def test_local_memory_is_zero_and_grows() -> None:
    program = [
        op("sldi", rd=1, imm=5_000_000),
        op("lldi", rd=1, imm=3, len=2),
        op("st", rd=31, rs1=1, size=8),
    ]
    assert final_host([program], host=bytes([9] * 8)) == bytes([3, 3, 0, 0, 0, 0, 0, 0])


def test_host_addresses_are_unsigned() -> None:
    program = [op("sldi", rd=1, imm=-4), op("ld", rd=2, rs1=1, size=4, select=2, value=-(2**31))]
    with pytest.raises(Exception, match="bytes 2147483644 to 2147483648 are not in host memory"):
        final_host([program])
