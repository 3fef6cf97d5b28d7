"""The same command gives the same result, without a seed being asked for."""

import json


def test_twice(shell, svm):
    def result(folder):
        shell("discover", svm, "--max-features-to-select", "4", "--Cs", "0.1,1", "--n-pairs", "2", "--quiet", "-o", folder)
        content = json.loads((shell.folder / folder / "result.json").read_text())
        return {key: content[key] for key in ("held_out", "groups", "parameters", "confidence")}

    first = result("first")
    assert first["parameters"]["random_state"] == 0
    assert result("second") == first
