"""Bundles of options that commands share."""

import inspect
import re
from dataclasses import dataclass, field, fields
from typing import Annotated

import pytest
import typer

from coterie.cli.app import app
from coterie.cli.compare import compare
from coterie.cli.convert import convert
from coterie.cli.data import DataOptions
from coterie.cli.demo import demo
from coterie.cli.discover import discover
from coterie.cli.info import info
from coterie.cli.options import Bundle, with_single_options
from coterie.cli.output import Console
from coterie.cli.predict import predict
from coterie.cli.profile import profile
from coterie.cli.rank import rank
from coterie.cli.replicate import replicate
from coterie.cli.warm_up import warm_up
from tests.cli.conftest import runner

WITH_DATA = [discover, rank, compare, profile, convert, info, predict, replicate]
COMMANDS = [demo, *WITH_DATA, warm_up]


def name_of(command):
    return command.__name__.replace("_", "-")


def test_these_are_the_commands():
    assert sorted(typer.main.get_command(app).commands) == sorted(map(name_of, COMMANDS))


def options_of(command):
    return {name for option in typer.main.get_command(app).commands[name_of(command)].params for name in option.opts}


@pytest.mark.parametrize("command", COMMANDS, ids=name_of)
def test_every_command_has_the_common_options(command):
    assert {"--quiet", "-q", "--json", "--debug"} <= options_of(command)


@pytest.mark.parametrize("command", WITH_DATA, ids=name_of)
def test_every_command_on_data_has_the_options_of_data(command):
    assert {"--label", "-l", "--format", "-f", "--phenotype", "-p", "--read", "-r"} <= options_of(command)


def test_discover_has_the_defaults_of_the_functions_it_calls():
    options = {option.name: option for option in typer.main.get_command(app).commands["discover"].params}
    for name, default in (("n_pairs", 25), ("n_permutations", 0)):
        assert f"default: {default}]" in options[name].help
        assert options[name].rich_help_panel == "Validation"
    assert options["n_pairs"].help.startswith("Number of half-sample pairs used for confidences; 0 for none. ")
    assert options["threshold"].rich_help_panel == "Group discovery"


@dataclass
class Louder(Console):
    loud: Annotated[bool, typer.Option("--loud")] = False


@dataclass(frozen=True)
class MoreDataOptions(DataOptions):
    mirror: Annotated[str | None, typer.Option("--mirror")] = None


@pytest.mark.parametrize("command", COMMANDS, ids=name_of)
def test_a_field_of_the_output_is_an_option_of_every_command(command, monkeypatch):
    monkeypatch.setitem(command.__globals__, "Console", Louder)
    assert inspect.signature(with_single_options(command)).parameters["loud"].default is False


@pytest.mark.parametrize("command", WITH_DATA, ids=name_of)
def test_a_field_of_the_data_is_an_option_of_every_command_on_data(command, monkeypatch):
    monkeypatch.setitem(command.__globals__, "DataOptions", MoreDataOptions)
    assert inspect.signature(with_single_options(command)).parameters["mirror"].default is None


@pytest.mark.parametrize("command", COMMANDS, ids=name_of)
def test_unknown_options_are_one_line(shell, command):
    line = shell.error(name_of(command), "--xyzzy")
    assert "No such option: --xyzzy" in line
    assert line.endswith(f"See: coterie {name_of(command)} --help-all")


@dataclass
class Trip:
    goal: Annotated[str, typer.Option("--goal", "-g", rich_help_panel="Trip")]
    days: Annotated[int, typer.Option(min=1)] = 3
    stops: list[str] | None = None
    diary: list[str] = field(default_factory=list, init=False)


def run(command, *words):
    """What typer makes of a command; what the command returns, and the exit code."""
    made, returned = typer.Typer(), []
    single = with_single_options(command)

    def keep(**given):
        returned.append(single(**given))

    keep.__signature__, keep.__annotations__ = inspect.signature(single), single.__annotations__
    made.command()(keep)
    result = runner().invoke(made, words)
    return returned[0] if returned else result.stdout + result.stderr, result.exit_code


def travel(who: Annotated[str, typer.Argument()], speed: float = 1.5, *, trip: Trip, home: bool = False):
    """Go."""
    return who, speed, trip, home


def test_a_bundle_gives_way_to_its_options_where_it_stands():
    signature = inspect.signature(with_single_options(travel))
    assert list(signature.parameters) == ["who", "speed", "goal", "days", "stops", "home"]
    defaults = {name: p.default for name, p in signature.parameters.items() if p.default is not p.empty}
    assert defaults == {"speed": 1.5, "days": 3, "stops": None, "home": False}
    assert {p.kind for p in signature.parameters.values()} == {inspect.Parameter.KEYWORD_ONLY}
    assert signature.parameters["goal"].annotation.__metadata__[0].rich_help_panel == "Trip"
    assert with_single_options(travel).__name__ == "travel"
    assert with_single_options(travel).__doc__ == "Go."


def test_a_command_gets_the_bundle():
    assert run(travel, "Ann", "-g", "Rome") == (("Ann", 1.5, Trip("Rome"), False), 0)
    words = ["--stops", "a", "Ann", "--home", "--days", "5", "--stops", "b", "--goal", "Rome", "--speed", "2"]
    assert run(travel, *words) == (("Ann", 2.0, Trip("Rome", 5, ["a", "b"]), True), 0)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["-g", "Rome"], "argument"),
        (["Ann"], "--goal"),
        (["Ann", "-g", "Rome", "--days", "0"], "--days"),
        (["Ann", "-g", "Rome", "--days", "two"], "--days"),
        (["Ann", "-g", "Rome", "--diary", "x"], "--diary"),
    ],
)
def test_typer_checks_the_options_of_a_bundle(words, message):
    output, code = run(travel, *words)
    assert message in re.sub(r"[\s│]+", " ", output)
    assert code == 2


def test_a_bundle_in_an_annotation():
    options = [inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=1, annotation=int) for name in "ab"]
    bundle = Bundle(options, lambda **given: sum(given.values()))

    def add(total):
        return total

    add.__annotations__ = {"total": Annotated[int, bundle]}
    assert run(add, "--a", "3") == (4, 0)


def test_two_options_of_one_name_are_refused():
    def twice(days: int, trip: Trip):
        """It has days already."""

    with pytest.raises(ValueError, match="duplicate parameter name: 'days'"):
        with_single_options(twice)


def test_the_working_state_of_the_output_is_no_option():
    assert [field.name for field in fields(Console) if field.init] == ["quiet", "json", "debug", "help_all"]
    assert Console().warnings is not Console().warnings


@pytest.mark.parametrize("name", ["label", "format"])
def test_reader_options_that_are_options_already(shell, svm, name):
    assert f"--read {name}: use the option --{name} instead" in shell.error("info", svm, "--read", f"{name}=x")
