"""``coterie replicate``, and ``coterie predict --missing substitute``."""

import json

import numpy as np
import pandas as pd
import pytest

import coterie

QUICK = ("--fast", "--n-features-to-select", "2", "--threshold", "0.6", "--n-features-per-round", "1", "--quiet")


def table(seed, n=100):
    rng = np.random.default_rng(seed)
    factors = rng.standard_normal((n, 5))
    X = factors[:, :, None] + 0.4 * rng.standard_normal((n, 5, 2))
    score = 2.0 * factors[:, 0] - 2.0 * factors[:, 1]
    frame = pd.DataFrame(X.reshape(n, -1), columns=[f"g{j}" for j in range(10)])
    time, end = rng.exponential(np.exp(-score)), rng.exponential(3.0, n)
    return frame.assign(
        dx=np.where(score + rng.logistic(size=n) > 0, "case", "control"),
        months=np.minimum(time, end).round(4),
        died=(time <= end).astype(int),
        subject=[f"s{k // 2}" for k in range(n)],
    )


@pytest.fixture
def files(tmp_path):
    for name, seed in (("first", 0), ("second", 1)):
        data = table(seed)
        data.drop(columns=["months", "died", "subject"]).to_csv(tmp_path / f"{name}.csv", index=False)
        data.drop(columns=["dx", "subject"]).to_csv(tmp_path / f"{name}-times.csv", index=False)
        data.drop(columns=["months", "died"]).to_csv(tmp_path / f"{name}-subjects.csv", index=False)
    return tmp_path


def test_replicate(shell, files):
    shell("discover", "first.csv", "--label", "dx", "-o", "out", *QUICK)
    printed = shell("replicate", "out", "second.csv", "-o", "again")
    assert "Both tested groups are replicated at a family-wise error rate of 5%" in " ".join(printed.stdout.split())
    assert "Written to again: members.csv, replication.csv, replication.json." in printed.stdout
    found = coterie.load("out")
    second = pd.read_csv("second.csv", float_precision="round_trip")
    expected = found.replicate(second.drop(columns="dx"), second["dx"].to_numpy()).to_dict()
    content = json.loads((files / "again" / "replication.json").read_text())
    assert {name: content[name] for name in expected} == json.loads(json.dumps(expected))
    printed = shell.json("replicate", "out", "second.csv", "--fdr", "0.2", "--which", "all", "--alone")
    assert (printed["error_rate"], printed["level"], printed["joint"]) == ("fdr", 0.2, False)
    assert "exists" in shell.error("replicate", "out", "second.csv", "-o", "again")
    shell("replicate", "out", "second.csv", "-o", "again", "--overwrite", "--quiet")


def test_sample_groups_and_survival(shell, files):
    shell("discover", "first-times.csv", "--time", "months", "--event", "died", "-o", "times", *QUICK)
    found = shell.json("replicate", "times", "second-times.csv", "--time", "months", "--event", "died")
    assert [group["status"] for group in found["groups"]] == ["replicated", "replicated"]
    assert "Name their columns with --time and --event" in shell.error("replicate", "times", "second-times.csv")
    shell("discover", "first-subjects.csv", "--label", "dx", "--sample-groups", "subject", "-o", "groups", *QUICK)
    clustered = shell.json("replicate", "groups", "second-subjects.csv", "--sample-groups", "subject")
    plain = shell.json("replicate", "groups", "second-subjects.csv", "--drop", "subject")
    pairs = zip(clustered["groups"], plain["groups"], strict=True)
    assert all(one["p_value"] >= other["p_value"] for one, other in pairs)


def test_substitutes(shell, files):
    shell("discover", "first.csv", "--label", "dx", "-o", "out", *QUICK)
    support = coterie.load("out").groups[0].names[0]
    second = pd.read_csv("second.csv", float_precision="round_trip").drop(columns=support)
    second.to_csv("narrow.csv", index=False)
    error = shell.error("predict", "out", "narrow.csv")
    assert f"X lacks 1 of the 2 features that GroupDiscoveryClassifier reads: '{support}'" in error
    assert "Use --missing substitute" in error
    printed = shell("predict", "out", "narrow.csv", "--missing", "substitute")
    assert f"--missing substitute: 1 of 2 features is substituted: '{support}' by" in printed.stderr
    content = shell.json("predict", "out", "narrow.csv", "--missing", "substitute")
    assert content["missing"]["substitutes"][0]["feature"] == support
    model = coterie.load("out").model
    expected = model.predict(coterie.substituted(model, second)).tolist()
    assert [row["prediction"] for row in content["predictions"]] == expected
    assert "--missing drop must be error or substitute" in shell.error("predict", "out", "narrow.csv", "--missing", "drop")
    # A column without values is absent, too.
    second.assign(**{support: ""}).to_csv("empty.csv", index=False)
    empty = shell.json("predict", "out", "empty.csv", "--missing", "substitute")
    assert [row["prediction"] for row in empty["predictions"]] == expected
    replicated = shell.json("replicate", "out", "empty.csv")
    assert replicated["groups"][0]["representative"] != support


def test_wrong_input_writes_nothing(shell, files):
    shell("discover", "first.csv", "--label", "dx", "-o", "out", *QUICK)
    second = pd.read_csv("second.csv")
    second.rename(columns=lambda name: name.upper() if name != "dx" else name).to_csv("upper.csv", index=False)
    second.assign(dx="case").to_csv("one.csv", index=False)
    second.assign(dx=second["dx"].map({"case": "ill", "control": "well"})).to_csv("other.csv", index=False)
    second.rename(columns={"dx": "status"}).to_csv("renamed.csv", index=False)
    (files / "broken.csv").write_bytes(b"\x00\x01PK\x03")
    (files / "plain").mkdir()
    cases = [
        (("out", "upper.csv"), "none of the columns"),
        (("out", "one.csv"), "one class"),
        (("out", "other.csv"), "'ill'"),
        (("out", "renamed.csv"), "--label 'dx'"),
        (("out", "nowhere.csv"), "nowhere.csv"),
        (("out", "broken.csv"), "broken.csv"),
        (("out", "first.csv"), "second cohort|first cohort"),
        (("plain", "second.csv"), "not a result folder"),
        (("nowhere", "second.csv"), "Result folder nowhere not found"),
        (("second.csv", "second.csv"), "is a file, but coterie replicate requires a result folder"),
        (("out", "second.csv", "--fdr", "2"), "--fdr"),
        (("out", "second.csv", "--which", "some"), "--which"),
        (("out", "second.csv", "--fdr", "0.1", "--fwer", "0.1"), "--fwer and fdr|--fwer"),
        (("out", "second.csv", "--impute", "mean"), "--impute applies to training only"),
    ]
    for words, message in cases:
        error = shell.error("replicate", *words, "-o", "new")
        assert any(part in error for part in message.split("|")), error
        assert not (files / "new").exists()
