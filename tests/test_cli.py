import subprocess
import sys

from typer.testing import CliRunner

from coterie import __version__
from coterie.cli.app import app


def test_demo():
    result = CliRunner().invoke(app, ["demo", "--seed", "3", "--n-features", "200"], catch_exceptions=False)
    assert result.exit_code == 0
    assert "Groups, in order of discovery" in result.output
    assert "Recovery:" in result.output
    assert "true weight" in result.output


def test_version_and_help():
    result = CliRunner().invoke(app, ["--version"])
    assert result.output.strip() == f"coterie {__version__}"
    result = CliRunner().invoke(app, ["demo", "--help"])
    assert "Example: coterie demo --seed 3" in result.output


def test_wrong_option():
    result = CliRunner().invoke(app, ["demo", "--n-features", "5"])
    assert result.exit_code == 2


def test_the_command_is_installed():
    result = subprocess.run([sys.executable, "-m", "coterie", "--version"], capture_output=True, text=True, check=False)
    assert result.stdout.strip() == f"coterie {__version__}"
