"""The one way to a model: cached, retried, counted, within a budget, several at a time, and stopped without loss."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import replace
from threading import Event, Lock

from evals.model.asks import Ask, Reply, Spent, fingerprint
from evals.model.bill import Bill, Estimate
from evals.model.cache import AnswerCache
from evals.model.config import Models
from evals.model.wire import Again, Wire
from replay.errors import ConfigError
from replay.redact import Redactor

LONGEST_WAIT = 30.0
EMPTY_TRIES = 2
"""Attempts at a question that is answered with nothing; each of them is billed by the provider."""
Progress = Callable[[int, int, Bill], None]
"""Called after each answer with how many are done, how many there are, and the bill so far."""


class Client:
    """Asks a model. What was answered once is never asked again, also when a run was broken off."""

    def __init__(self, models: Models, progress: Progress | None = None) -> None:
        """A client for one endpoint; nothing is sent before something is asked."""
        self.models = models
        self.bill = Bill(models)
        self.stopped: str | None = None
        """`budget` or `interrupted`: from then on only the cache answers."""
        self._cache = AnswerCache(models.cache)
        self._wire = Wire(models)
        self._progress = progress
        self._halt = Event()
        self._known: dict[str, Reply] = {}
        self._lock = Lock()

    def fingerprint(self, ask: Ask) -> str:
        """The name of a request in the cache and in run folders."""
        return self._key(self._sendable(ask))

    def _key(self, ask: Ask) -> str:
        return fingerprint(ask, self.models.address, "completions" if ask.echo else self.models.api)

    def _sendable(self, ask: Ask) -> Ask:
        """The request as it leaves: with `redact` set, without keys, addresses and user names.

        Each request is redacted by itself, so that the same one is the same bytes in any order of asking.
        """
        if not self.models.redact:
            return ask
        redactor = Redactor()
        redactor.learn([ask.system, ask.prompt, ask.messages])
        return replace(ask, system=redactor.text(ask.system), prompt=redactor.text(ask.prompt),
                       messages=redactor.text(ask.messages))

    def ask(self, ask: Ask) -> Reply:
        """One answer."""
        return self.ask_all([ask])[0]

    def estimate(self, asks: Sequence[Ask]) -> Estimate:
        """What these requests will take, without making one. Raises ConfigError where the budget cannot be enough."""
        distinct = {self._key(a): a for a in map(self._sendable, asks)}
        open_asks = [a for key, a in distinct.items() if self._kept(key) is None]
        found = self.bill.estimate(open_asks, len(distinct) - len(open_asks))
        ceiling = self.models.budget_usd
        if ceiling is not None and found.least_usd is not None and found.least_usd > ceiling:
            raise ConfigError("--budget-usd", "", f"{found.requests:,} requests cost at least ${found.least_usd:.4f}, "
                              f"more than the ceiling of ${ceiling:.4f}; sample less, or raise it")
        return found

    def ask_all(self, asks: Sequence[Ask]) -> list[Reply]:
        """Answers in the order of the questions; equal questions are asked once.

        Ctrl-C and the end of the budget stop new requests, wait for those under way, and give what there is.
        """
        asks = [self._sendable(a) for a in asks]
        distinct = {self._key(a): a for a in asks}
        found: dict[str, Reply] = {}
        for key, ask in distinct.items():
            kept = self._kept(key)
            if kept is not None:
                self.bill.hit(ask)
                found[key] = kept
        found |= self._ask_open({k: a for k, a in distinct.items() if k not in found}, len(found), len(distinct))
        return [found[self._key(a)] for a in asks]

    def _kept(self, key: str) -> Reply | None:
        with self._lock:
            known = self._known.get(key)
        if known is None and (known := self._cache.get(key)) is not None:
            self._remember(key, known)
        return known

    def _remember(self, key: str, reply: Reply) -> None:
        with self._lock:
            self._known[key] = reply

    def _ask_open(self, asks: dict[str, Ask], done: int, total: int) -> dict[str, Reply]:
        if not asks or self.models.offline or self.stopped:
            return dict.fromkeys(asks, _without(("offline" if self.models.offline else self.stopped) or "offline"))
        found: dict[str, Reply] = {}
        with ThreadPoolExecutor(self.models.concurrency) as pool:
            running: dict[Future[Reply], str] = {}
            try:
                self._run(pool, list(asks.items()), running, found, (done, total))
            except KeyboardInterrupt:
                self._stop("interrupted")
            except BaseException:
                self._stop("interrupted")
                raise
            for future, key in running.items():
                found[key] = future.result()
        return {key: found.get(key) or _without(self.stopped or "interrupted") for key in asks}

    def _run(self, pool: ThreadPoolExecutor, waiting: list[tuple[str, Ask]], running: dict[Future[Reply], str],
             found: dict[str, Reply], place: tuple[int, int]) -> None:
        """Keep as many requests under way as may be: a long queue could not be stopped."""
        waiting.reverse()
        while waiting or running:
            while waiting and len(running) < self.models.concurrency and not self.stopped:
                key, ask = waiting[-1]
                if not self.bill.reserve(ask):
                    if running:
                        break  # what is set aside for those under way is more than they will take
                    self._stop("budget")
                    break
                waiting.pop()
                running[pool.submit(self._answer, key, ask)] = key
            if not running:
                return
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                found[running[future]] = future.result()
                del running[future]
                if self._progress:
                    self._progress(place[0] + len(found), place[1], self.bill)

    def stop(self) -> None:
        """Make no further request: from now on only the cache answers."""
        self._stop("interrupted")

    def _stop(self, why: str) -> None:
        self.stopped = self.stopped or why
        self._halt.set()

    def _answer(self, key: str, ask: Ask) -> Reply:
        """One question with its retries, kept before anything else is done with it."""
        attempts, before = 0, Spent()
        while True:
            attempts += 1
            try:
                reply = self._wire.once(ask)
                break
            except Again as again:
                before += again.spent
                most = EMPTY_TRIES if again.problem == "empty" else 1 + self.models.retries
                if attempts >= most or self._halt.wait(self._pause(attempts, again)):
                    reply = Reply(problem=again.problem, detail=again.detail)
                    if self._halt.is_set() and attempts < most:
                        reply = _without(self.stopped or "interrupted")
                    break
            except BaseException:
                self.bill.settle(ask, Reply(spent=before), attempts)
                raise
        reply = replace(reply, spent=before + reply.spent)
        if reply.lasts:
            self._cache.put(key, ask, reply)
            self._remember(key, reply)
        self.bill.settle(ask, reply, attempts)
        return reply

    def _pause(self, attempts: int, again: Again) -> float:
        """Doubled each time, with some chance in it: callers who were refused together shall not return together."""
        if again.wait is not None:
            return min(again.wait, LONGEST_WAIT)
        spread = random.uniform(0.75, 1.25)  # noqa: S311 - a waiting time, nothing secret
        return min(self.models.backoff * 2.0 ** (attempts - 1) * spread, LONGEST_WAIT)


def _without(why: str) -> Reply:
    said = {"offline": "not in the cache, and --offline refuses to ask",
            "budget": "the ceiling of --budget-usd was reached",
            "interrupted": "broken off before it was asked"}
    return Reply(problem=why, detail=said.get(why, why))
