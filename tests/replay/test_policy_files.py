"""Policies from presets, TOML files and import paths: what may be written, and what every mistake is told."""

from __future__ import annotations

import sys
from dataclasses import MISSING, dataclass, fields
from pathlib import Path

import pytest

from replay.config import build, part, part_spec, to_spec
from replay.errors import ConfigError, UnknownName
from replay.policy.base import Decision, Moment
from replay.policy.cuts import KeepTokens
from replay.policy.explain import explain
from replay.policy.load import policy, policy_from, preset_names, spec, spec_hash
from replay.policy.measures import Larger
from replay.policy.parts import PARTS
from replay.policy.policy import Policy, Stage
from replay.policy.tool_results import ElideBeforeTail
from replay.policy.triggers import Threshold

MASK = """
[[stages]]
name = "mask"
[stages.tool_results]
use = "keep-newest"
keep = 3
"""


@dataclass(frozen=True, kw_only=True)
class EveryOther:
    """A trigger of a user's own: fires at even steps."""

    offset: int = 0

    def decide(self, stage: str, measured: int | None, moment: Moment) -> Decision:
        """Whether the step is even."""
        return Decision(stage=stage, fires=(moment.step + self.offset) % 2 == 0, reason="even")


def own_policy() -> Policy:
    """A policy made in code."""
    return policy_from({"name": "own", "stages": [{"name": "cut", "cut": {"use": "messages", "messages": 4}}]})


OWN = own_policy()


@pytest.fixture
def importable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A module on the import path that holds policies of a user's own."""
    text = Path(__file__).read_text(encoding="utf-8")
    (tmp_path / "own_policies.py").write_text(text, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "own_policies", raising=False)
    return "own_policies"


def file_of(folder: Path, text: str) -> str:
    """A policy file with this text."""
    path = folder / "mine.toml"
    path.write_text(text, encoding="utf-8")
    return str(path)


def refused(name: str) -> ConfigError:
    """The error that a policy's name brings."""
    with pytest.raises(ConfigError) as caught:
        policy(name)
    return caught.value


# Files.

def test_file_is_named_after_itself(tmp_path: Path) -> None:
    """A policy without a name takes that of its file."""
    made = policy(file_of(tmp_path, MASK))

    assert "mine" == made.name
    assert ["mask"] == [stage.name for stage in made.stages]


@pytest.mark.parametrize(("text", "key", "reason"), [
    ("windw = 5", "windw", "did you mean window"),
    ("window = 'big'", "window", "expected int, found 'big'"),
    ("window = true", "window", "expected int, found True"),
    ("notes = 'one'", "notes", "expected a list"),
    ("proof = 'hearsay'", "proof", "expected one of wire, code, examples, write-up, baseline"),
    ("stages = 3", "stages", "expected a list"),
    ("stages = [3]", "stages[0]", "expected a table"),
    ("[[stages]]\nscope = 'before-step'", "stages[0]", "missing name"),
    ("[[stages]]\nname = 'a'\nscope = 'sometimes'", "stages[0].scope", "expected one of before-step"),
    ("[[stages]]\nname = 'a'", "stages.a", "needs either a cut or a tool_results rule"),
    (MASK.replace("keep =", "kep ="), "stages[0].tool_results.kep", "did you mean keep"),
    (MASK.replace("keep = 3", "keep = 3.5"), "stages[0].tool_results.keep", "expected int, found 3.5"),
    (MASK.replace("keep = 3", "keep = -1"), "stages[0].tool_results.keep", "expected 0 or more, found -1"),
    (MASK.replace('use = "keep-newest"', ""), "stages[0].tool_results.use", "expected one of elide-before-tail"),
    (MASK.replace('"keep-newest"', "7"), "stages[0].tool_results.use", "package.module:Class"),
    (MASK + "[stages.trigger]\nat = 1.5", "stages[0].trigger.at", "at most 1, found 1.5"),
    (MASK + "[stages.trigger]\ncomparison = '='", "stages[0].trigger.comparison", "expected one of >=, >"),
    (MASK + "[stages.measure]\nuse = 'estimate'\nestimator = {divisor = 0}", "stages[0].measure.estimator.divisor",
     "a positive number, found 0"),
    (MASK + "[stages.measure]\nuse = 'estimate'\nestimator = {counts = ['words']}",
     "stages[0].measure.estimator.counts[0]", "expected one of text"),
    (MASK + "[stages.measure]\nuse = 'report'\nfields = ['total']", "stages[0].measure.fields[0]",
     "expected one of input, output"),
    (MASK + "[[stages]]\nname = 'mask'\ncut = 'nothing'", "stages", "two stages have the same name"),
    (MASK + "[reactive]\nuse = 'force-stage'\nstage = 'mask'", "reactive.stage",
     "no stage with a cut is called 'mask'"),
    (MASK + "[stages.cut]\nuse = 'nothing'", "stages.mask", "needs either a cut or a tool_results rule"),
])
def test_mistakes_carry_file_and_key(tmp_path: Path, text: str, key: str, reason: str) -> None:
    """Every mistake names the file, the dotted key and what would be right."""
    name = file_of(tmp_path, text)
    error = refused(name)

    assert (name, key) == (error.where, error.key)
    assert reason in error.reason
    assert f"{name}: {key}: {error.reason}" == str(error)


def test_unknown_part_lists_near_names(tmp_path: Path) -> None:
    """A part that does not exist is told with its place and the names that are near."""
    name = file_of(tmp_path, MASK.replace("keep-newest", "keep-newst"))

    assert isinstance(refused(name), UnknownName)
    assert f"{name}: stages[0].tool_results.use: no tool_results called 'keep-newst'; did you mean keep-newest?" == str(
        refused(name))


@pytest.mark.parametrize(("text", "reason"), [(b"window = = 3", "not valid TOML"), (b"\xff\xfe", "not valid TOML")])
def test_file_that_is_no_toml(tmp_path: Path, text: bytes, reason: str) -> None:
    """A file that cannot be parsed is an error of that file, not a traceback."""
    path = tmp_path / "broken.toml"
    path.write_bytes(text)

    assert str(path) == refused(str(path)).where
    assert reason in refused(str(path)).reason


def test_missing_file() -> None:
    """A TOML path that does not exist says so."""
    assert "no such policy file" == refused("nowhere/mine.toml").reason


def test_unknown_preset_lists_near_names() -> None:
    """A preset's misspelt name brings the names that are near; the recorded lane is one of them."""
    assert "did you mean decode" in str(refused("decod"))
    assert "did you mean recorded" in str(refused("recordd"))


# Overrides.

def trigger_of(stage: Stage) -> float | None:
    """The fraction at which a stage fires."""
    assert isinstance(stage.trigger, Threshold)
    return stage.trigger.at


def tails(made: Policy) -> list[int]:
    """The tail of each stage."""
    rules = [s.cut or getattr(s.tool_results, "cut", None) for s in made.stages]
    return [rule.tail_tokens for rule in rules if isinstance(rule, KeepTokens)]


def test_overrides_reach_the_first_level_and_every_shared_tail() -> None:
    """`trigger.at` changes the full tier's level alone; `tail_tokens`, the same in both tiers, changes in both."""
    made = policy("decode:trigger.at=0.7,tail_tokens=8000")

    assert [0.7, 0.6] == [trigger_of(s) for s in made.stages]
    assert [8_000, 8_000] == tails(made)
    assert "decode:trigger.at=0.7,tail_tokens=8000" == made.name
    assert [0.8, 0.6] == [trigger_of(s) for s in policy("decode").stages]


def test_override_of_a_named_stage() -> None:
    """A stage's name in front of the key picks that stage."""
    assert [0.8, 0.5] == [trigger_of(s) for s in policy("decode:micro.trigger.at=0.5").stages]


def test_override_of_what_stands_at_its_default() -> None:
    """A setting that a preset does not spell out can be set all the same."""
    made = policy("decode:trigger.reserve=500").stages[0].trigger

    assert isinstance(made, Threshold)
    assert (0.8, 500) == (made.at, made.reserve)
    assert 9_000 == policy("full-history:window=9000").window


def test_values_are_read_as_toml_or_text() -> None:
    """Numbers, truths and lists are what TOML says they are; anything else is text, with commas and colons in it."""
    made = policy('decode:micro.placeholder.tools=["Read","Bash"],micro.placeholder.text=[gone: see log, line 3],'
                  "excludes_later=false")
    rule = made.stages[1].tool_results
    assert isinstance(rule, ElideBeforeTail)

    assert (("Read", "Bash"), "[gone: see log, line 3]") == (rule.placeholder.tools, rule.placeholder.text)
    assert False is made.stages[0].excludes_later


@pytest.mark.parametrize(("name", "key", "reason"), [
    ("decode:tail_tokns=8000", "tail_tokns", "did you mean tail_tokens"),
    ("decode:trigger.resrve=1", "stages[0].trigger.resrve", "did you mean reserve"),
    ("decode:trigger.at=high", "stages[0].trigger.at", "expected float, found 'high'"),
    ("decode:trigger.at", "trigger.at", "expected key=value"),
    ("decode:trigger.at=0.7,at", "stages[0].trigger.at", "expected float, found '0.7,at'"),
    ("mycodeagent:reactive.stage=micro", "reactive.stage", "no stage with a cut is called 'micro'; those are full"),
])
def test_mistakes_in_overrides(name: str, key: str, reason: str) -> None:
    """An override that cannot be meant names the key and what is near."""
    error = refused(name)

    assert key == error.key
    assert reason in error.reason


# Import paths.

@pytest.mark.parametrize("attribute", ["OWN", "own_policy"])
def test_policy_from_an_import_path(importable: str, attribute: str) -> None:
    """`package.module:attribute` is a policy, or a function that returns one."""
    assert OWN == policy(f"{importable}:{attribute}")


def test_overrides_of_a_policy_from_an_import_path(importable: str) -> None:
    """A policy made in code takes overrides like any other."""
    made = policy(f"{importable}:OWN:cut.messages=7")

    assert 7 == made.stages[0].cut.messages  # type: ignore[union-attr]
    assert f"{importable}:OWN:cut.messages=7" == made.name


def test_part_from_an_import_path(importable: str, tmp_path: Path) -> None:
    """`use = "package.module:Class"` takes a part of a user's own, and the spec names it again."""
    made = policy(file_of(tmp_path, MASK + f'[stages.trigger]\nuse = "{importable}:EveryOther"\noffset = 1\n'))

    assert 1 == made.stages[0].trigger.offset  # type: ignore[attr-defined]
    assert f"{importable}:EveryOther" == spec(made)["stages"][0]["trigger"]["use"]
    assert made == policy_from(spec(made))


@pytest.mark.parametrize(("target", "reason"), [
    ("no_such_module:OWN", "cannot import"), ("{}:NOTHING", "cannot import"), ("{}:MASK", "expected a Policy"),
    ("{}:EveryOther", "expected a Policy")])
def test_import_paths_that_lead_nowhere(importable: str, target: str, reason: str) -> None:
    """A module or attribute that does not exist, or is no policy, is a clear error."""
    assert reason in refused(target.format(importable)).reason


# Specs.

@pytest.mark.parametrize("name", preset_names())
def test_spec_of_every_preset_makes_it_again(name: str) -> None:
    """A preset's spec is plain data from which the same policy is made."""
    made = policy(name)

    assert made == policy_from(spec(made))
    assert spec_hash(made) == spec_hash(policy_from(spec(made)))


SETTINGS: dict[str, dict[str, object]] = {
    "rounds": {"rounds": 3}, "message-count": {"more_than": 3}, "tokens": {"boundary": "turn"},
    "threshold": {"at": 0.5, "comparison": ">"}, "placeholder": {"tools": ["Read"]},
    "elide-before-tail": {"cut": {"use": "tokens", "tail_tokens": 5}}, "report": {"fields": ["output"]},
    "larger": {"estimate": {"use": "estimate", "pending": True}}, "session-memory": {"chars": 9},
    "characters": {"counts": ["text", "role"], "rounding": "floor-total"},
    "python": {"target": "mine:edit", "shape": "anthropic"}, "command": {"command": "node edit.js", "timeout": 5.0},
    **{name: {"target": "mine:thing"} for name in ("langchain", "pydantic-ai", "context-engine")}}


@pytest.mark.parametrize(("kind", "name"), [(kind, name) for kind, names in PARTS.items() for name in names])
def test_spec_of_every_part_makes_it_again(kind: str, name: str) -> None:
    """Every registered part survives the way to plain data and back, with settings that differ from the defaults."""
    needed = {f.name: 3 for f in fields(PARTS[kind][name]) if f.default is f.default_factory is MISSING}
    table: dict[str, object] = {"use": name, **needed, **SETTINGS.get(name, {})}
    made = part(kind, table, "test", kind)

    assert table == part_spec(kind, made)
    assert made == part(kind, part_spec(kind, made), "test", kind)


def test_hash_ignores_names_and_prose() -> None:
    """Two policies that do the same have the same hash, whatever they are called."""
    table = spec(policy("decode"))
    renamed = {**table, "name": "other", "summary": "", "notes": [], "proof": "baseline"}

    assert spec_hash(policy("decode")) == spec_hash(policy_from(renamed))
    assert spec_hash(policy("decode")) != spec_hash(policy("decode:tail_tokens=8000"))
    assert 16 == len(spec_hash(policy("decode")))


def test_hash_ignores_what_is_spelled_out_at_its_default() -> None:
    """Writing down a default changes nothing."""
    spelled = policy_from({"name": "a", "stages": [{"name": "m", "scope": "before-step", "tool_results": {
        "use": "keep-newest", "keep": 10}}]})
    short = policy_from({"name": "b", "stages": [{"name": "m", "tool_results": "keep-newest"}]})

    assert spec_hash(short) == spec_hash(spelled)


def test_presets_are_told_apart() -> None:
    """No two presets do the same."""
    hashes = {spec_hash(policy(name)) for name in preset_names()}

    assert len(preset_names()) == len(hashes)


def test_presets_say_where_they_come_from() -> None:
    """Every preset that imitates a harness names its version and how it was checked."""
    imitating = [policy(name) for name in preset_names() if policy(name).harness]

    assert {"mycodeagent", "decode", "decode-adr18"} <= {p.name for p in imitating}
    assert [] == [p.name for p in imitating if not p.version or p.proof == "baseline"]
    assert [] == [name for name in preset_names() if not policy(name).summary]


@pytest.mark.parametrize("name", preset_names())
def test_presets_can_be_told_in_words(name: str) -> None:
    """Every preset has a description made from its parts."""
    lines = list(explain(policy(name)))

    assert lines[0].startswith(f"{name}: ")
    assert all(isinstance(line, str) and line for line in lines)


def test_description_holds_the_numbers() -> None:
    """Levels, tails and retries stand in the description as they are set."""
    text = "\n".join(explain(policy("mycodeagent:cut.rounds=4")))

    assert "80% of the window" in text
    assert "the newest 4 rounds stay" in text
    assert "after 2 unchanged retries" in text


# The builder itself.

def test_numbers_of_the_mycodeagent_preset() -> None:
    """The preset holds the imitated defaults."""
    made = policy("mycodeagent")
    stage = made.stages[0]
    assert isinstance(stage.measure, Larger)
    assert isinstance(stage.trigger, Threshold)

    assert (128_000, 0.8, 3, 3) == (made.window, stage.trigger.at, stage.trigger.minimum_messages,
                                    stage.measure.estimate.estimator.divisor)
    assert (1, 2, "run") == (made.reactive.attempts, made.reactive.identical_retries, made.reactive.scope)


def test_a_name_alone_is_a_part() -> None:
    """`cut = "nothing"` is short for a table with `use` alone."""
    assert part("cut", {"use": "nothing"}, "t", "cut") == part("cut", "nothing", "t", "cut")


def test_tables_without_use_take_the_usual_part() -> None:
    """A cut without `use` keeps tokens, a trigger without it is a threshold."""
    made = build(Stage, {"name": "a", "cut": {"tail_tokens": 5}, "trigger": {"at": 0.5}}, "t")

    assert KeepTokens(tail_tokens=5) == made.cut
    assert Threshold(at=0.5) == made.trigger


def test_spec_leaves_out_defaults() -> None:
    """What stands at its default is not written down."""
    assert {"name": "a"} == to_spec(Stage(name="a"))
    assert {} == to_spec(ElideBeforeTail())


def test_every_table_has_a_place_in_the_spec() -> None:
    """What a file may set comes out of the spec as it went in."""
    table = {"name": "a", "harness": "h", "version": "1", "summary": "s", "proof": "wire", "window": 5,
             "output_reserve": 1, "layers": [{"name": "l", "text": "t", "tokens": 2}], "notes": ["n"],
             "stages": [{"name": "s", "cut": {"use": "nothing"}}],
             "reinjection": {"use": "session-memory", "chars": 3}, "reactive": {"use": "force-stage", "attempts": 2}}

    assert table == spec(policy_from(table))
