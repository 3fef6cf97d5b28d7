"""Six reports in a real browser: size, time to open, and requests. Writes the tables of docs/evidence/report-evidence.md.

    python benchmarks/report_evidence.py [FOLDER]

Existing results in the folder are reused; their pages are rendered again. Screenshots (wide, 390 pixels, dark, print) are
written there as well. Requires Chromium with chromedriver, selenium, and the data sets of ``$COTERIE_DATA`` or
../shared/data; missing data sets are omitted.
"""

from __future__ import annotations

import base64
import gzip
import os
import platform
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from _record import caption
from _tables import DOCS, replace_section
from scipy import sparse

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from coterie.report.folder import read_result  # noqa: E402
from coterie.report.page import assets, render  # noqa: E402
from tests.browser import conftest, pages  # noqa: E402

DOCUMENT = DOCS / "report-evidence.md"
SCREENS = {
    "wide": {},
    "phone": {"width": 390, "height": 844},
    "dark": {"dark": True},
    "print": {"print_media": True, "width": 720},
}
OPTIONS = ["--n-permutations", "3", "--quiet", "--overwrite"]
# Number of documents of 20news, and smallest number of documents that contain a term.
N_DOCUMENTS, MIN_DOCUMENTS = 4000, 8


def data_folder() -> Path:
    return Path(os.environ.get("COTERIE_DATA", ROOT.parent / "shared" / "data"))


def breast_cancer(folder: Path) -> list[str]:
    from sklearn.datasets import load_breast_cancer

    data = load_breast_cancer(as_frame=True)
    frame = data.frame.drop(columns="target").assign(diagnosis=data.target_names[data.target])
    frame.to_csv(folder / "breast_cancer.csv", index=False)
    return ["breast_cancer.csv", "--label", "diagnosis"]


def plink_eur(folder: Path) -> list[str]:
    place = data_folder() / "plink_eur"
    return [str(place / "EUR_subset.bed"), "--phenotype", str(place / "EUR_subset.pheno.covars"), "--label", "PHENO"]


def pbmc68k(folder: Path) -> list[str]:
    return [str(data_folder() / "pbmc68k_reduced.h5ad"), "--label", "bulk_labels"]


def news(folder: Path) -> list[str]:
    with np.load(data_folder() / "20news_bigrams.npz") as file:
        X = sparse.csr_array((file["data"], file["indices"], file["indptr"]), shape=tuple(file["shape"]))
        y = file["y"]
    rows = np.sort(np.random.default_rng(0).choice(X.shape[0], N_DOCUMENTS, replace=False))
    X = X[rows].tocsc()
    kept = np.flatnonzero(np.diff(X.indptr) >= MIN_DOCUMENTS)
    with gzip.open(data_folder() / "20news_bigrams.names.txt.gz", "rt", encoding="utf-8") as file:
        names = file.read().splitlines()
    import anndata
    import pandas as pd

    table = anndata.AnnData(
        X[:, kept].astype(np.float32).tocsr(),
        obs=pd.DataFrame({"class": [f"{label:+d}" for label in y[rows]]}, index=np.arange(len(rows)).astype(str)),
        var=pd.DataFrame(index=[names[j] for j in kept]),
    )
    table.write_h5ad(folder / "20news_bigrams.h5ad")
    return ["20news_bigrams.h5ad", "--label", "class", "--n-pairs", "10"]


def digits(folder: Path) -> list[str]:
    from sklearn.datasets import load_digits

    data = load_digits()
    np.savez(folder / "digits.npz", X=data.data.astype(np.float32), y=data.target)
    return ["digits.npz", "--image-shape", "8,8", "--threshold", "0.5", "--task", "classification"]


SETS = {
    "breast cancer": breast_cancer,
    "plink_eur": plink_eur,
    "pbmc68k_reduced": pbmc68k,
    "20news_bigrams (part)": news,
    "digits": digits,
}


def make(folder: Path) -> dict[str, Path]:
    """Return all pages by name."""
    made = {}
    for name, prepare in SETS.items():
        place = folder / f"{prepare.__name__}-groups"
        if not (place / "result.json").exists():
            try:
                words = prepare(folder)
            except FileNotFoundError as error:
                print(f"{name} is skipped: {error}")
                continue
            command = [sys.executable, "-m", "coterie", "discover", *words, "-o", place.name, *OPTIONS]
            subprocess.run(command, check=True, cwd=folder, stdout=subprocess.DEVNULL)
        (place / "report.html").write_text(render(read_result(place)), encoding="utf-8", errors="replace")
        made[name] = place / "report.html"
    made["ten thousand groups"] = folder / "many.html"
    pages.many(folder / "many.html")
    return made


def open_browser() -> conftest.Browser:
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    options.binary_location = conftest.CHROMIUM
    for word in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars"):
        options.add_argument(word)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    return conftest.Browser(webdriver.Chrome(options=options, service=webdriver.ChromeService(conftest.DRIVER)))


def measure(browser: conftest.Browser, name: str, path: Path, folder: Path) -> list[str]:
    """Return a row of the table, and save screenshots."""
    seconds = []
    for _ in range(5):
        browser.open(path)
        seconds.append(browser.run(READY) / 1000)
    nodes = browser.count("*")
    for screen, look in SCREENS.items():
        browser.open(path, **look)
        time.sleep(0.3)
        save_screenshot(browser, folder / f"{path.parent.name if path.name == 'report.html' else path.stem}-{screen}.png")
    browser.open(path)
    paper = base64.b64decode(browser.cdp("Page.printToPDF", printBackground=True, paperWidth=8.27, paperHeight=11.69)["data"])
    messages, requests = browser.messages(), [url for url in browser.requests() if not url.startswith(("about:", "data:"))]
    groups, features = re.match(r"([\d,]+) groups?, ([\d,]+)", browser.text("#count")).groups()
    n_pages = len(re.findall(rb"/Type\s*/Page[^s]", paper))
    figures = f"{path.stat().st_size / 1e6:.2f} MB", f"{np.median(seconds):.2f} s ({min(seconds):.2f}–{max(seconds):.2f})"
    others = sum(not url.startswith(path.resolve().as_uri()) for url in requests)
    return [name, groups, features, *figures, f"{nodes:,}", str(n_pages), str(others), str(len(messages))]


# From the start of the navigation until two frames after everything was drawn.
READY = "return Number(document.documentElement.dataset.opened)"


def save_screenshot(browser: conftest.Browser, path: Path, max_height: int = 4500) -> None:
    size = browser.cdp("Page.getLayoutMetrics")["cssContentSize"]
    clip = {"x": 0, "y": 0, "width": size["width"], "height": min(max_height, size["height"]), "scale": 1}
    path.write_bytes(base64.b64decode(browser.cdp("Page.captureScreenshot", captureBeyondViewport=True, clip=clip)["data"]))


def main() -> None:
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(tempfile.mkdtemp(prefix="coterie-reports-"))
    folder.mkdir(parents=True, exist_ok=True)
    made = make(folder)
    browser = open_browser()
    version = browser.driver.capabilities["browserVersion"]
    rows = [measure(browser, name, path, folder) for name, path in made.items()]
    browser.driver.quit()
    script, style, policy = assets()
    heads = ["report", "groups", "features", "file", "opens in", "nodes", "pages on paper", "requests", "messages"]
    table = ["| " + " | ".join(row) + " |" for row in [heads, ["---"] * len(heads), *rows]]
    shown = re.sub(r"sha256-[^']*", "sha256-…", policy)
    facts = [
        ["part of each file", "value"],
        ["---", "---"],
        ["script", f"{len(script.encode()) / 1000:.0f} kB"],
        ["style", f"{len(style.encode()) / 1000:.0f} kB"],
        ["content security policy", f"`{shown}`"],
    ]
    replace_section(DOCUMENT, "reports", "\n".join([caption("[FOLDER]"), "", *table]))
    replace_section(DOCUMENT, "policy", "\n".join("| " + " | ".join(row) + " |" for row in facts))
    load = os.getloadavg()[0] / (os.cpu_count() or 1)
    machine = f"{platform.system()}, {os.cpu_count()} cores, load {load:.1f} per core"
    print(f"Headless Chromium {version.split('.')[0]} on {machine}")


if __name__ == "__main__":
    main()
