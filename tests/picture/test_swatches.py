"""The colours of pictures: what they say of layers and kernels, and that eyes with any colour
vision tell them apart.
"""

from __future__ import annotations

import re
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from nsysmap.output.picture import html
from nsysmap.output.picture.swatches import _KINDS as KINDS
from nsysmap.output.picture.swatches import CAUSES, heat, ink_on, kernel_swatch, kind_swatch
from nsysmap.timing.idle.causes import CAUSES as IDLE_CAUSES

# Machado, Oliveira and Fernandes 2009, severity 1.0, over linear RGB
VISIONS = {
    "normal": np.eye(3),
    "protanopia": np.array(
        [
            [0.152286, 1.052583, -0.204868],
            [0.114503, 0.786281, 0.099216],
            [-0.003882, -0.048116, 1.051998],
        ]
    ),
    "deuteranopia": np.array(
        [
            [0.367322, 0.860646, -0.227968],
            [0.280085, 0.672501, 0.047413],
            [-0.011820, 0.042940, 0.968881],
        ]
    ),
    "tritanopia": np.array(
        [
            [1.255528, -0.076749, -0.178779],
            [-0.078411, 0.930809, 0.147602],
            [0.004733, 0.691367, 0.303900],
        ]
    ),
}
TO_XYZ = np.array(
    [
        [0.4124564, 0.3575761, 0.1804375],
        [0.2126729, 0.7151522, 0.0721750],
        [0.0193339, 0.1191920, 0.9503041],
    ]
)


def lab(fill: str, vision: str) -> NDArray[np.float64]:
    """CIE L*a*b* of a colour as that vision sees it."""
    coded = np.array([int(fill[at : at + 2], 16) / 255 for at in (1, 3, 5)])
    linear = np.where(coded <= 0.04045, coded / 12.92, ((coded + 0.055) / 1.055) ** 2.4)
    relative = TO_XYZ @ np.clip(VISIONS[vision] @ linear, 0, 1) / np.array([0.95047, 1.0, 1.08883])
    x, y, z = np.where(relative > 0.008856, np.cbrt(relative), 7.787 * relative + 16 / 116)
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


@pytest.mark.parametrize("vision", VISIONS)
@pytest.mark.parametrize(
    "fills", [[fill for _, fill, _ in KINDS], list(CAUSES.values())], ids=["kinds", "causes"]
)
def test_colours_differ_whatever_colours_one_sees(fills: list[str], vision: str) -> None:
    assert (
        min(
            float(np.linalg.norm(lab(a, vision) - lab(b, vision)))
            for a, b in combinations(fills, 2)
        )
        >= 15
    )


def contrast(one: str, other: str) -> float:
    """The contrast ratio of two colours, as the WCAG define it."""
    lights = []
    for fill in (one, other):
        coded = np.array([int(fill[at : at + 2], 16) / 255 for at in (1, 3, 5)])
        linear = np.where(coded <= 0.04045, coded / 12.92, ((coded + 0.055) / 1.055) ** 2.4)
        lights.append(float(linear @ (0.2126, 0.7152, 0.0722)) + 0.05)
    return max(lights) / min(lights)


def test_text_on_every_colour_has_the_better_contrast_of_black_and_white() -> None:
    fills = (
        [fill for _, fill, _ in KINDS]
        + [*CAUSES.values()]
        + [heat(share / 20) for share in range(21)]
    )
    for fill in fills:
        ratios = {ink: contrast(ink, fill) for ink in ("#ffffff", "#1a1d21")}
        assert ratios[ink_on(fill)] >= max(ratios.values()) * 0.95, (fill, ratios)
        assert ratios[ink_on(fill)] > 3.9, (fill, ratios)


def test_every_cause_of_idle_time_has_a_colour() -> None:
    assert set(CAUSES) == set(IDLE_CAUSES)


@pytest.mark.parametrize(
    ("kind", "name", "words"),
    [
        ("gemm", "/fc/MatMul", "matrix product"),
        (
            "myelin_kernel",
            "__myl_AddMeanSubMulMeanAddSqrtDivMulMulAdd_myl0_6",
            "softmax, norm, reduction",
        ),
        ("myelin_kernel", "__myl_ReshTran_myl0_18", "data movement"),
        ("myelin_kernel", "__myl_MulAddTanh_myl0_2", "pointwise, activation, scale"),
        ("myelin_kernel", "no Myelin name", "other kernel that Myelin generated"),
        ("foreign_node", "{ForeignNode[a...b]}", "opaque Myelin region"),
        ("unknown", "xyzzy", "cannot tell"),
    ],
)
def test_a_layer_has_the_colour_of_its_kind_or_of_what_its_name_says(
    kind: str, name: str, words: str
) -> None:
    assert kind_swatch(kind, name).words == words


def test_a_kernel_in_an_opaque_region_has_the_colour_of_what_it_does() -> None:
    gemm = "sm80_xmma_gemm_f16f16_f16f32_f32_tn_n_tilesize128x64x32_stage4_warpsize2x2x1_tensor16x8x16_kernel"  # noqa: E501
    assert kernel_swatch("foreign_node", gemm).words == "matrix product"
    assert kernel_swatch(None, gemm).words == "matrix product"
    assert (
        kernel_swatch(
            None, "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096>)"
        ).words
        == "communication"
    )
    assert kernel_swatch(None, "xyzzy").untold


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_words_of_every_colour_of_the_theme_can_be_read_on_its_grounds(scheme: str) -> None:
    theme = (Path(html.__file__).parent / "theme.css").read_text("utf-8")
    both = re.findall(r"--(\w+): light-dark\((#[0-9a-f]{6}), (#[0-9a-f]{6})\)", theme)
    colours = {name: light if scheme == "light" else dark for name, light, dark in both}
    for word in ("ink", "faint", "accent", "warn", "bad"):
        for ground in ("ground", "panel", "raised"):
            assert contrast(colours[word], colours[ground]) >= 4.5, (word, ground)
