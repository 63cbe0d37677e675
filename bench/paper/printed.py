"""Figures that the paper prints, as numbers; where it shows a plot only, there is none here.

Times and the two-line violations of single constraints stand in the paper's source; its text confirms their range.
"""

from __future__ import annotations

# Experiment 1: percent of pairs, by table, one for each constraint in the order of the table's file.
VIOLATIONS: dict[str, dict[str, list[str]]] = {
    "adult": {
        "truth": ["0.0", "0.0"],
        "PrivBayes": ["11.3 ± 0.3", "1.4 ± 0.6"],
        "DP-VAE": ["32.0 ± 0.2", "13.2 ± 0.1"],
        "PATE-GAN": ["20.3 ± 0.0", "24.8 ± 0.1"],
        "NIST": ["0.0 ± 0.0", "0.0 ± 0.0"],
        "Kamino": ["0.0 ± 0.0", "0.0 ± 0.0"],
    },
    "br2000": {
        "truth": ["0.4", "0.9", "0.5"],
        "PrivBayes": ["1.6 ± 0.0", "2.6 ± 0.2", "1.4 ± 0.1"],
        "DP-VAE": ["0.0 ± 0.0", "15.6 ± 0.2", "0.0 ± 0.0"],
        "PATE-GAN": ["0.4 ± 0.0", "0.2 ± 0.0", "0.1 ± 0.0"],
        "NIST": ["0.0 ± 0.0", "28.1 ± 6.8", "0.0 ± 0.0"],
        "Kamino": ["0.6 ± 0.0", "0.6 ± 0.0", "0.3 ± 0.2"],
    },
    "tax": {
        "truth": ["0.0"] * 6,
        "PrivBayes": ["0.0 ± 0.0", "0.8 ± 0.0", "0.0 ± 0.0", "0.4 ± 0.0", "0.5 ± 0.0", "0.4 ± 0.0"],
        "DP-VAE": ["0.0 ± 0.0", "0.0 ± 0.0", "0.0 ± 0.0", "98.9 ± 0.0", "99.0 ± 0.0", "24.5 ± 0.1"],
        "PATE-GAN": ["0.0 ± 0.0", "0.8 ± 0.0", "0.0 ± 0.0", "2.1 ± 0.0", "4.0 ± 0.0", "0.9 ± 0.0"],
        "NIST": ["7.4 ± 1.3", "0.4 ± 0.0", "8.0 ± 1.7", "0.0 ± 0.0", "0.0 ± 0.0", "0.0 ± 0.0"],
        "Kamino": ["0.0 ± 0.0"] * 6,
    },
    "tpch": {
        "truth": ["0.0"] * 4,
        "PrivBayes": ["0.2 ± 0.0", "0.2 ± 0.0", "0.2 ± 0.0", "0.6 ± 0.0"],
        "DP-VAE": ["16.7 ± 0.2", "15.7 ± 0.1", "15.3 ± 0.2", "30.1 ± 0.1"],
        "PATE-GAN": ["5.1 ± 0.1", "4.4 ± 0.1", "5.1 ± 0.1", "1.2 ± 0.0"],
        "NIST": ["64.0 ± 45.2", "53.4 ± 37.7", "64.0 ± 45.2", "3.2 ± 0.0"],
        "Kamino": ["0.0 ± 0.0"] * 4,
    },
}
OTHERS = ("PrivBayes", "DP-VAE", "PATE-GAN", "NIST")

# Experiment 2: mean accuracy over all attributes of adult.
ACCURACY = {
    "truth": 0.88,
    "Kamino": 0.82,
    "PATE-GAN": 0.77,
    "PrivBayes": 0.68,
    "NIST": 0.66,
    "DP-VAE": 0.54,
}

# Experiment 3: adult, 1-way, the largest cell's difference: mean and maximum over attributes.
ONE_WAY_MEAN = {"Kamino": 0.11, "PATE-GAN": 0.09}
ONE_WAY_MAX = {"Kamino": 0.34, "PATE-GAN": 0.37, "PrivBayes": 0.65, "NIST": 0.89, "DP-VAE": 1.0}

# Experiment 4: seconds on 12 cores.
SECONDS: dict[str, dict[str, str]] = {
    "adult": {"Kamino": "31,981 ± 314", "PrivBayes": "162 ± 16", "DP-VAE": "5,501 ± 94", "PATE-GAN": "2,856 ± 4"},
    "br2000": {"Kamino": "17,594 ± 1,317", "PrivBayes": "1,367 ± 561", "DP-VAE": "9,106 ± 7", "PATE-GAN": "1,782 ± 5"},
    "tax": {"Kamino": "58,418 ± 950", "PrivBayes": "189 ± 0", "DP-VAE": "4,829 ± 32", "PATE-GAN": "1,429 ± 31"},
    "tpch": {"Kamino": "16,434 ± 335", "PrivBayes": "7 ± 0", "DP-VAE": "7,834 ± 43", "PATE-GAN": "48,587 ± 6,919"},
}

# Experiment 5: adult, percent of pairs for its two constraints.
ABLATION = {
    "Kamino": ("0.0 ± 0.0", "0.0 ± 0.0"),
    "RandSequence": ("0.0 ± 0.0", "0.0 ± 0.0"),
    "RandSampling": ("0.4 ± 0.0", "36.8 ± 0.3"),
    "RandBoth": ("9.1 ± 8.5", "26.1 ± 11.0"),
}

# Experiment 6: adult, percent of pairs by accept-reject sampling.
ACCEPT_REJECT = ("0.4 ± 0.0", "37.2 ± 0.0")
