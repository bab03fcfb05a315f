"""The scripted agent: plays the moves of a scenario with real tools and records what a harness would."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from evals.samples.clock import Clock
from evals.samples.dialects import DIALECTS
from evals.samples.folding import KEEPERS, characters
from evals.samples.ids import Ids
from evals.samples.quoting import concrete
from evals.samples.recording import Call, Entry, Fold, Outcome, Recording, Rewind
from evals.samples.scenario import CONTROLS, Action, Move, Scenario, actions_of, expand
from evals.samples.summaries import Facts, summarise
from evals.samples.usage import Meter, call_tokens, count
from evals.samples.workspace import Workspace

CALL_IDS: Mapping[str, tuple[str, int]] = {
    "claude-code": ("toolu_01", 22), "codex": ("call_", 24), "pi": ("toolu_01", 22), "mycodeagent": ("call_", 12),
    "decode": ("call_", 16), "openai-chat": ("call_", 24),
}
"""Format to prefix and length of its call ids."""
CLEARED = "[Old tool result content cleared]"


class Recorder:
    """Plays one thread: the main one, or a sub-agent's with a window of its own."""

    def __init__(self, scenario: Scenario, workspace: Workspace, ids: Ids, clock: Clock, prompt: str = "") -> None:
        """Prepare to play; `prompt` is the task of a sub-agent."""
        self._scenario, self._workspace, self._ids, self._clock = scenario, workspace, ids, clock
        self._dialect = DIALECTS[scenario.format]
        self._meter = Meter(scenario)
        self._view: list[Entry] = []
        self._plan: list[dict[str, str]] = []
        self._marks: dict[str, tuple[list[Entry], Entry]] = {}
        self._full = 0
        self.recording = Recording(scenario=scenario, cwd=workspace.cwd, started=clock.now, prompt=prompt)

    def play(self, moves: Sequence[Move]) -> Recording:
        """Play the moves in order. Raises ValueError for a move that the vocabulary does not have."""
        for move in expand(moves, self._scenario.routines):
            control = next((key for key in CONTROLS if key in move), None)
            if control is not None:
                self._controls()[control](move)
            else:
                self._respond(move)
        return self.recording

    def _controls(self) -> Mapping[str, Callable[[Move], None]]:
        return {"user": self._prompt, "pause": self._pause, "inject": self._inject, "mark": self._mark,
                "rewind": self._rewind, "compact": self._compact, "micro": self._micro,
                "clear": self._clear}

    def _add(self, entry: Entry) -> Entry:
        self.recording.events.append(entry)
        self._view.append(entry)
        return entry

    def _prompt(self, move: Move) -> None:
        if self.recording.events:
            self._clock.think(move["user"])
        self._add(Entry(kind="prompt", time=self._clock.now, text=move["user"], tokens=count(move["user"])))

    def _inject(self, move: Move) -> None:
        text = move["inject"]
        self._add(Entry(kind="injected", time=self._clock.now, text=text, tokens=count(text),
                        role=move.get("role", "user"), detail=move.get("detail", "")))

    def _pause(self, move: Move) -> None:
        self._clock.wait(60.0 * move["pause"])

    def _mark(self, move: Move) -> None:
        self._marks[move["mark"]] = (list(self._view), self._view[-1])

    def _rewind(self, move: Move) -> None:
        view, entry = self._marks[move["rewind"]]
        self._view = list(view)
        self._meter.rewrite(self._meter.size(view[:-1]))
        self.recording.events.append(Rewind(to=entry))

    def _respond(self, move: Move) -> None:
        if self._due("request"):
            self._fold("auto")
        actions = [concrete(action, self._workspace) for action in actions_of(move)]
        actions = [self._dialect.lower(self._with_items(action)) for action in actions]
        calls = tuple(self._call(action) for action in actions)
        self._say(move, calls)
        for action, call in zip(actions, calls, strict=True):
            self._answer_call(action, call)
        if not calls and self._due("turn"):
            self._fold("auto")

    def _say(self, move: Move, calls: tuple[Call, ...]) -> None:
        text, thinking = str(move.get("answer") or move.get("say") or ""), str(move.get("think", ""))
        tokens = count(text, thinking) + call_tokens(calls)
        usage = self._meter.bill(self._view, tokens, self._clock.now, count(thinking))
        started = self._clock.now
        self._clock.generate(usage.output)
        self._full = usage.input_total + usage.output
        self._add(Entry(kind="response", time=self._clock.now, text=text, thinking=thinking, calls=calls,
                        tokens=tokens, usage=usage, final=not calls, started=started))

    def _call(self, action: Action) -> Call:
        name, arguments = self._dialect.call(action, self._workspace.cwd)
        return Call(id=self._ids.word(*CALL_IDS[self._scenario.format]), name=name, arguments=arguments)

    def _answer_call(self, action: Action, call: Call) -> None:
        side = self._delegate(action) if action.kind == "delegate" else None
        outcome = self._outcome(action, side)
        text = self._dialect.result(action, outcome, self._workspace.cwd)
        self._clock.run(action.kind)
        self._add(Entry(kind="result", time=self._clock.now, text=text, call=call, action=action, outcome=outcome,
                        tokens=count(text), side=side))
        self._full += round(self._scenario.factor * count(text))

    def _outcome(self, action: Action, side: Recording | None) -> Outcome:
        if side is not None:
            return Outcome(text=[entry.text for entry in side.entries()][-1])
        if action.kind == "todo":
            return Outcome(text="The todo list was changed. Go on with the item in progress.")
        return self._workspace.perform(action)

    def _delegate(self, action: Action) -> Recording:
        helper = Recorder(self._scenario, self._workspace, self._ids, self._clock, action.get("prompt"))
        return helper.play([{"user": action.get("prompt")}, *action.get("moves")])

    def _with_items(self, action: Action) -> Action:
        """A todo action with the whole list: the first `target` items are done, the next is in progress."""
        if action.kind != "todo":
            return action
        done = int(action.target)
        states = ["completed"] * done + ["in_progress"] + ["pending"] * len(self._scenario.plan)
        self._plan = [{"content": text, "status": state, "activeForm": f"{text} (at work)"}
                      for text, state in zip(self._scenario.plan, states, strict=False)]
        return replace(action, more={"items": self._plan})

    def _due(self, moment: str) -> bool:
        keeper = KEEPERS.get(self._scenario.format)
        if keeper is None or keeper.when != moment or not self._scenario.compact_at or self.recording.prompt:
            return False
        if self._scenario.cache == "none":
            return sum(map(characters, self._view)) // 3 >= self._scenario.compact_at
        return self._full >= self._scenario.compact_at

    def _fold(self, trigger: str) -> None:
        facts = Facts(entries=tuple(self.recording.active()), plan=tuple(self._plan))
        text = summarise(self._scenario.format, facts)
        summary = Entry(kind="summary", time=self._clock.now, text=text, tokens=count(text))
        window = KEEPERS[self._scenario.format].window(self._view, summary, self._scenario.keep_tokens)
        if window is None:
            return
        self._clock.generate(summary.tokens)
        before, self._view = self._full, list(window)
        self._after_fold(Fold(
            kind="full", time=self._clock.now, trigger=trigger, before=before, after=self._meter.size(window),
            window=window, summary=summary, read_files=tuple(facts.files("read")),
            changed_files=tuple(facts.files("edit", "write"))))

    def _after_fold(self, fold: Fold) -> None:
        self._meter.rewrite(self._scenario.overhead)
        self._full = fold.after
        self.recording.events.append(fold)

    def _compact(self, move: Move) -> None:
        self._fold("manual")

    def _micro(self, move: Move) -> None:
        """Blank all but the newest results."""
        results = [entry for entry in self._view if entry.kind == "result" and entry.text != CLEARED]
        old = results[:-int(move["micro"])]
        before, cleared = self._full, count(CLEARED)
        blank: dict[Entry, Entry] = {entry: replace(entry, text=CLEARED, tokens=cleared) for entry in old}
        self._view = [blank.get(entry, entry) for entry in self._view]
        saved = round(self._scenario.factor * sum(entry.tokens - cleared for entry in old))
        self._after_fold(Fold(kind="micro", time=self._clock.now, trigger="auto", before=before,
                              after=before - saved, blanked=tuple(old), saved=saved))

    def _clear(self, move: Move) -> None:
        before, self._view = self._full, []
        self._after_fold(Fold(kind="clear", time=self._clock.now, trigger="manual", before=before,
                              after=self._scenario.overhead))


def record(scenario: Scenario, workspace: Workspace) -> Recording:
    """Play a scenario in a fresh working copy."""
    ids = Ids(scenario.name)
    return Recorder(scenario, workspace, ids, Clock(scenario.started, ids)).play(scenario.moves)
