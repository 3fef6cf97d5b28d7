"""Groups of SNPs compared with the clumps of PLINK 1.9 (--linear, --logistic, --clump): loci found, and reasons for misses.

Real genotypes (1000 Genomes, Europeans, 54,051 SNPs) with two simulated traits and covariates, and simulated genotypes with
known causal SNPs: a quantitative trait with fifteen causal SNPs, cases and controls with as many, and two populations that
differ in allele frequencies and in the mean of the trait. PLINK clumps at r² 0.5 within 250 kb, its defaults. Coterie selects
the number of features and C by validation (rule "one_se"). Both use the same covariates. Writes the tables of
docs/evidence/plink-clump-evidence.md.
"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from _real import data_path
from _record import caption, read_arguments, write_results
from _tables import DOCS, markdown_table, replace_section

from coterie import GroupDiscoveryClassifierCV, GroupDiscoveryRegressorCV, association, group_confidence
from coterie.data import Dataset, open_features
from coterie.plots import manhattan

PAGE = DOCS / "plink-clump-evidence.md"
P1, P2, R2, KB = 1e-5, 0.01, 0.5, 250
COVARIATES = ("QCOV1", "QCOV2", "CAT_COV")
MIN_CONFIDENCE = 0.5


class Clump(NamedTuple):
    """A locus: its lead SNP, the p-value of the lead SNP, and all SNPs."""

    lead: str
    p_value: float
    members: frozenset[str]


def plink(folder: Path, *options: Any) -> None:
    """Run PLINK without output."""
    command = ["plink1.9", *map(str, options), "--allow-no-sex", "--keep-allele-order", "--out", str(folder / "plink")]
    subprocess.run(command, check=True, capture_output=True)


def plink_association(
    folder: Path, bed: Path, pheno: Path, covar: Path | None, binary: bool
) -> dict[str, tuple[float, float]]:
    """Return effect and p-value of each SNP by PLINK, and write the file that --clump reads."""
    kind = "logistic" if binary else "linear"
    covariates = () if covar is None else ("--covar", covar)
    coding = ("beta",) if binary else ()
    plink(folder, "--bfile", bed.with_suffix(""), "--pheno", pheno, *covariates, f"--{kind}", *coding, "hide-covar")
    table = (folder / f"plink.assoc.{kind}").read_text().splitlines()
    header = table[0].split()
    snp, beta, p = (header.index(name) for name in ("SNP", "BETA", "P"))
    rows = [line.split() for line in table[1:]]
    return {row[snp]: (float(row[beta]), float(row[p])) for row in rows if row[p] != "NA"}


def plink_clumps(folder: Path, bed: Path, binary: bool, p1: float) -> list[Clump]:
    """Return the clumps of the results of :func:`plink_association`, with all their SNPs."""
    file = folder / f"plink.assoc.{'logistic' if binary else 'linear'}"
    plink(
        folder, "--bfile", bed.with_suffix(""), "--clump", file, "--clump-p1", p1, "--clump-p2", 1, "--clump-r2", R2,
        "--clump-kb", KB,
    )  # fmt: skip
    written = folder / "plink.clumped"
    if not written.exists():  # no SNP is significant
        return []
    lines = [line.split() for line in written.read_text().splitlines() if line.strip()]
    written.unlink()
    header, rows = lines[0], lines[1:]
    snp, p, others = (header.index(name) for name in ("SNP", "P", "SP2"))
    return [
        Clump(
            row[snp], float(row[p]), frozenset([row[snp], *(o.split("(")[0] for o in row[others].split(",") if o != "NONE")])
        )
        for row in rows
    ]


def discover(data: Dataset, binary: bool, max_features: int, seed: int) -> Any:
    """Fit the model of ``coterie discover``, with the confidences of its groups."""
    kind = GroupDiscoveryClassifierCV if binary else GroupDiscoveryRegressorCV
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = kind(max_features, Cs=5, rule="one_se", nested=True, random_state=seed, n_jobs=1).fit(data)
        group_confidence(model, data, n_pairs=25, n_permutations=5, random_state=seed, n_jobs=1).attach_to(model)
    return model


def compare_real(options: Any, folder: Path, trait: str, seed: int) -> dict[str, Any]:
    """Run both tools on a trait of the real genotypes."""
    home = data_path("plink_eur")
    bed = home / "EUR_subset.bed"
    table = home / f"EUR_subset.{trait}.covars"
    data = open_features(bed, phenotype=table, label="PHENO", covariates=table, covariate_names=",".join(COVARIATES))
    lines = [line.split() for line in table.read_text().splitlines()]
    covar = folder / "covar.txt"
    # PLINK 1.9 requires numeric categories.
    codes = {"A": "0", "B": "1"}
    covar.write_text("\n".join(" ".join([*row[:2], row[3], row[4], codes.get(row[5], row[5])]) for row in lines) + "\n")
    theirs = plink_association(folder, bed, table, covar, False)
    clumps = plink_clumps(folder, bed, False, P1)
    began = time.process_time()
    ours = association(data)
    seconds = time.process_time() - began
    assert ours.names is not None
    place = {name: k for k, name in enumerate(ours.names)}
    shared = [name for name in theirs if name in place]
    complete = _complete(bed, data)
    full = [name for name in shared if complete[place[name]]]
    effect = np.array([[theirs[name][0], ours.effect[place[name]]] for name in full])
    p_value = np.array([[theirs[name][1], ours.p_value[place[name]]] for name in full])
    model = discover(data, False, 20 if options.quick else 40, seed)
    groups = ours.attach(model.groups_)
    supports = [int(j) for j in groups.support]
    adjusted = np.hstack([data.covariates.values, np.asarray(data.source.columns(groups.support), dtype=float)])  # type: ignore[union-attr]
    given = association(data.source, data.y, covariates=adjusted)
    names = {name for group in groups for name in group.labels}
    rows = []
    for clump in clumps:
        lead = place[clump.lead]
        best = int(np.argmax([abs(_r(data, lead, j)) for j in supports])) if supports else -1
        r = abs(_r(data, lead, supports[best])) if supports else 0.0
        found = bool(clump.members & names)
        left = given.p_value[lead]
        why = (
            "found"
            if found
            else "its signal is in the groups"
            if np.isnan(left) or left > 1e-3
            else "not chosen by validation"
        )
        beside_groups = "one of them" if np.isnan(left) else f"{left:.1e}"
        rows.append(
            {
                "trait": trait, "lead SNP": clump.lead, "P": f"{clump.p_value:.1e}", "SNPs": len(clump.members),
                "r² to the nearest support SNP": f"{r * r:.2f}", "P beside the groups": beside_groups, "Coterie": why,
            }
        )  # fmt: skip
    by_clump = {name: clump.lead for clump in clumps for name in clump.members}
    others = []
    for number, group in enumerate(groups, start=1):
        own = (group.annotations or {})["p_value"]
        hit = sorted({by_clump[name] for name in group.labels if name in by_clump})
        others.append(
            {
                "trait": trait, "group": number, "support SNP": group.labels[0], "SNPs": len(group),
                "confidence": f"{group.confidence:.2f}", "P of the support SNP": f"{own[0]:.1e}",
                "smallest P": f"{min(own):.1e}", "PLINK's clump": ", ".join(hit) or f"none: no SNP below {P1:g}",
            }
        )  # fmt: skip
    figure = manhattan(ours, groups=groups, title=f"{trait}: single SNPs, and the groups found together")
    figure.savefig(DOCS / "figures" / f"manhattan-{trait}.png", dpi=80)
    return {
        "trait": trait, "clumps": rows, "groups": others, "seconds": seconds,
        "compared": len(full), "all": len(shared),
        "largest difference of effects": float(np.abs(effect[:, 0] - effect[:, 1]).max()),
        "largest ratio of p-values": float(np.exp(np.abs(np.log(p_value[:, 0] / p_value[:, 1])).max())),
        "held out": model.nested_scores_.mean(), "covariates alone": model.constant_scores_.mean(),
    }  # fmt: skip


def _complete(bed: Path, data: Dataset) -> np.ndarray:
    """Return a mask of the SNPs without missing genotypes; PLINK drops samples of the others, Coterie imputes them."""
    from bed_reader import open_bed

    with open_bed(bed) as file:
        return np.asarray((file.read(dtype="int8") != -127).all(axis=0))


def _r(data: Dataset, a: int, b: int) -> float:
    columns = np.asarray(data.source.columns(np.array([a, b])), dtype=float)
    return float(np.corrcoef(columns.T)[0, 1])


class Simulated(NamedTuple):
    """Simulated genotypes, trait, causal SNPs and populations."""

    X: np.ndarray
    y: np.ndarray
    causal: np.ndarray
    populations: np.ndarray


def simulate(kind: str, n: int, m: int, n_causal: int, rng: np.random.Generator) -> Simulated:
    """Simulate genotypes in linkage blocks, and a trait that depends on some SNPs and, if there are two, on the population."""
    n_blocks = m // 10
    populations = rng.integers(0, 2, n) if kind == "populations" else np.zeros(n, dtype=int)
    drift = 0.12 * rng.standard_normal(n_blocks) if kind == "populations" else np.zeros(n_blocks)
    X = np.empty((n, m), dtype=np.int8)
    for block in range(n_blocks):
        frequency = rng.uniform(0.1, 0.5)
        limits = np.clip(frequency + np.outer(2 * populations - 1, np.repeat(drift[block], 1)), 0.03, 0.97)
        genotype = np.zeros((n, 10), dtype=np.int8)
        for _ in range(2):  # haplotypes: each allele copies its left neighbour or is new
            fresh = rng.random((n, 10)) < limits
            keep = rng.random((n, 10)) < 0.93
            allele = fresh[:, 0]
            genotype[:, 0] += allele
            for j in range(1, 10):
                allele = np.where(keep[:, j], allele, fresh[:, j])
                genotype[:, j] += allele
        X[:, 10 * block : 10 * block + 10] = genotype
    causal = np.sort(10 * rng.choice(n_blocks, n_causal, replace=False) + rng.integers(0, 10, n_causal))
    standard = (X[:, causal] - X[:, causal].mean(axis=0)) / X[:, causal].std(axis=0)
    liability = standard @ (rng.choice([-1.0, 1.0], n_causal) * rng.uniform(0.6, 1.4, n_causal))
    liability *= np.sqrt(0.5) / liability.std()
    y = liability + np.sqrt(0.5) * rng.standard_normal(n)
    if kind == "populations":
        y = y + 1.5 * populations
    if kind == "cases":
        y = np.where(y > np.median(y), 2, 1)
    return Simulated(X, y, causal, populations)


def write_bed(folder: Path, data: Simulated) -> tuple[Path, Path, Path]:
    """Write genotypes, trait and population in the formats of PLINK."""
    from bed_reader import to_bed

    n, m = data.X.shape
    per = max(1, m // 5)
    bed = folder / "made.bed"
    people = [f"I{i}" for i in range(n)]
    properties = {
        "fid": people, "iid": people, "sid": [f"rs{j}" for j in range(m)], "chromosome": [str(1 + j // per) for j in range(m)],
        # Blocks of ten SNPs with 5 kb between neighbours, and 300 kb between blocks.
        "bp_position": [1 + 5_000 * (j % per) + 300_000 * ((j % per) // 10) for j in range(m)],
        "allele_1": ["A"] * m, "allele_2": ["C"] * m,
    }  # fmt: skip
    to_bed(bed, data.X, properties=properties)
    pheno, covar = folder / "pheno.txt", folder / "population.txt"
    pheno.write_text("".join(f"{p} {p} {v}\n" for p, v in zip(people, data.y.tolist(), strict=True)))
    covar.write_text("".join(f"{p} {p} {v}\n" for p, v in zip(people, data.populations.tolist(), strict=True)))
    return bed, pheno, covar


def judge(loci: list[set[int]], causal: np.ndarray) -> tuple[int, int]:
    """Return the number of causal blocks found, and of loci that lie in none."""
    blocks = {int(j) // 10 for j in causal}
    found = [{j // 10 for j in locus} for locus in loci]
    return len(blocks & set().union(*found)) if found else 0, sum(not (own & blocks) for own in found)


def compare_simulated(options: Any, folder: Path, kind: str, seed: int, adjust: bool) -> list[dict[str, Any]]:
    """Run both tools on data with known causal SNPs, and return one row per tool."""
    n, m, n_causal = (300, 1000, 5) if options.quick else (800, 4000, 15)
    data = simulate(kind, n, m, n_causal, np.random.default_rng([seed, len(kind)]))
    bed, pheno, covar = write_bed(folder, data)
    binary = kind == "cases"
    plink_association(folder, bed, pheno, covar if adjust else None, binary)
    clumps = plink_clumps(folder, bed, binary, 0.05 / m)
    opened = open_features(bed, phenotype=pheno, **({"covariates": covar} if adjust else {}))
    began = time.process_time()
    model = discover(opened, binary, 20 if options.quick else 40, seed)
    seconds = time.process_time() - began
    groups = list(model.groups_)
    sure = [group for group in groups if group.confidence is not None and group.confidence >= MIN_CONFIDENCE]
    tools = {
        f"PLINK, p < 0.05/{m:,}": [{int(name[2:]) for name in clump.members} for clump in clumps],
        "Coterie, all groups": [set(group.members.tolist()) for group in groups],
        f"Coterie, confidence ≥ {MIN_CONFIDENCE}": [set(group.members.tolist()) for group in sure],
    }
    rows = []
    for tool, loci in tools.items():
        found, false = judge(loci, data.causal)
        rows.append(
            {"tool": tool, "loci": len(loci), "found": found, "false": false, "n_causal": n_causal, "seconds": seconds}
        )
    return rows


CASES = (
    ("number", False, "quantitative trait"),
    ("cases", False, "cases and controls"),
    ("populations", False, "two populations, no covariates"),
    ("populations", True, "two populations, population as covariate"),
)


def summary(options: Any, folder: Path) -> list[dict[str, Any]]:
    """Return means over the repeats."""
    rows = []
    for kind, adjust, words in CASES:
        runs = [compare_simulated(options, folder, kind, options.seed + k, adjust) for k in range(options.repeats)]
        for position, first in enumerate(runs[0]):
            own = [run[position] for run in runs]
            mean = {name: float(np.mean([row[name] for row in own])) for name in ("loci", "found", "false", "seconds")}
            rows.append(
                {
                    "data": words, "tool": first["tool"], "loci": f"{mean['loci']:.1f}",
                    "causal loci found": f"{mean['found']:.1f} of {first['n_causal']}", "false loci": f"{mean['false']:.1f}",
                    "CPU seconds (Coterie)": "" if position != 1 else f"{mean['seconds']:.0f}",
                }
            )  # fmt: skip
            print(rows[-1], flush=True)
    return rows


def main() -> None:
    """Run everything and write the tables of the page."""
    options = read_arguments(__doc__, repeats=3)
    if shutil.which("plink1.9") is None:
        raise SystemExit("plink1.9 is not installed. On Debian, install the package plink1.9.")
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        traits = [compare_real(options, folder, trait, options.seed) for trait in ("pheno", "pheno2")]
        table = summary(options, folder)
    write_results("plink_clump", options, traits=traits, simulated=table)
    if not options.quick:
        write_page(traits, table)


def write_page(traits: list[dict[str, Any]], table: list[dict[str, Any]]) -> None:
    """Replace the tables of docs/evidence/plink-clump-evidence.md."""
    scores = [
        {"trait": one["trait"], "held-out R²": f"{one['held out']:.3f}", "covariates alone": f"{one['covariates alone']:.3f}"}
        for one in traits
    ]
    agreement = [
        {
            "trait": one["trait"], "SNPs compared": f"{one['compared']:,} of {one['all']:,}",
            "largest difference of effects": f"{one['largest difference of effects']:.1e}",
            "largest ratio of p-values": f"{one['largest ratio of p-values']:.4f}",
            "CPU seconds, all SNPs": f"{one['seconds']:.1f}",
        }
        for one in traits
    ]  # fmt: skip
    for name, rows in {
        "simulated": table,
        "clumps": [row for one in traits for row in one["clumps"]],
        "groups": [row for one in traits for row in one["groups"]],
        "scores": scores,
        "association": agreement,
    }.items():
        replace_section(PAGE, name, f"{caption()}\n\n{markdown_table(rows)}")


if __name__ == "__main__":
    main()
