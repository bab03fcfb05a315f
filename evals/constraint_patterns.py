"""How people put a standing constraint into words: patterns of directive sentences, and what only looks like one.

The patterns aim at precision: a sentence counts when its form tells the reader what to do or not to do, not when a
modal word stands somewhere in it. They read English.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_LEAD = (r"(?:^|[,;:(–—]\s*|\s-\s+|\b(?:and|but|so|please|then|just|also|should|must|to|always|instead|important|note)"
         r"[:,]?\s+)")
_CLAUSE = r"(?:^|[;:]\s*|\b(?:please|should|must)\s+)"
_TELLS = r"(?!(?!focus|process|pass|access|address|miss|discuss|cross|press|guess)\w+s\b)"
"""Third persons tell what happens; orders have the bare verb."""
_NO_ORDER = (r"(?:know|think|see|get|understand|want|need|care|like|have|remember|worry|mind|recall|agree|even|really|"
             r"quite|yet|currently|work|seem|appear|match|exist|always|be\s+afraid|hesitate)\b")
_VERBS = (r"(?:use|edit|change|modify|touch|report|return|write|add|run|commit|push|include|read|fix|test|update|look|"
          r"focus|keep|output|answer|reply|review|do|make|show|give|create|remove|delete|call|import|install|respond|"
          r"print|log|store|save|work|merge|build|check|allow|respect|follow|avoid|limit|restrict)")
_ACTING = (r"(?:changing|breaking|touching|modifying|adding|using|removing|editing|committing|pushing|running|"
           r"rewriting|deleting|altering|introducing|asking|creating|installing)")
_NOUNS = (r"(?:new|more|other|extra|additional|further|changes?|edits?|commits?|tests?|comments?|emojis?|dependencies|"
          r"refactoring|refactors?|mocks?|code|files?|backwards?|breaking|external|third[- ]party|magic|hard-?coded|"
          r"global|unrelated|docstrings?|fallbacks?|network|internet|summary|explanations?|markdown)")
_UNTOUCHED = (r"(?:as[- ]is|unchanged|untouched|alone|intact|compatib\w*|minimal|short|small|simple|in\s+sync|"
              r"up[- ]to[- ]date|under|below|within)")
_ENSURING = r"(?:make\s+sure|ensure|be\s+sure|remember\s+to|keep\s+in\s+mind(?!\s+that)|don['’]?t\s+forget\s+to)"


@dataclass(frozen=True, slots=True)
class Form:
    """One way to say a constraint."""

    name: str
    pattern: re.Pattern[str]
    marks: frozenset[str] = frozenset()
    """Words of which one must stand in a sentence that still carries it; none where a negation decides."""


def _form(name: str, *patterns: str, marks: str = "") -> Form:
    return Form(name, re.compile("|".join(patterns), re.IGNORECASE), frozenset(marks.split()))


FORMS = (
    _form("never", rf"{_LEAD}never\s+(?!mind|again$|ever\b|\w+ed\b|happen){_TELLS}\w+",
          r"\b(?:must|should|shall)\s+never\b"),
    _form("do not", rf"{_LEAD}(?:do\s+not|don['’]?t)\s+(?!{_NO_ORDER})\w+"),
    _form("must not", r"\b(?:must\s+not|mustn['’]?t|shall\s+not|you\s+may\s+not)\b",
          r"\b(?:you|we|agents?|it|they|that|this|code|files?|tests?)\s+(?:should\s+not|shouldn['’]?t)\s+"
          r"(?!be a problem|matter|happen|have to|need|be (?:too )?hard|care|be possible|either\b)\w+"),
    _form("forbidden", r"\b(?:forbidden|prohibited|off[- ]limits|not\s+allowed|not\s+permitted)\b"),
    _form("avoid", rf"{_CLAUSE}(?:avoid|refrain\s+from)\s+\w+"),
    _form("no", rf"^no\s+{_NOUNS}\b"),
    _form("without", rf"^(?!i\b|we\b|it\b|this\b|that\b|they\b|there\b)[^?]*\bwithout\s+{_ACTING}\b"),
    _form("must", r"\b(?:must|shall)\s+(?!not\b|have\s+been|be\s+(?:a|an|the|because|due|some|that)\b|mean\b|admit\b)"
          r"(?:always\s+|only\s+)?\w+", r"\b(?:is|are)\s+(?:mandatory|required\s+to)\b",
          r"\b(?:have|has|need|needs)\s+to\s+always\b", marks="must shall mandatory required always need needs have"),
    _form("always", rf"{_LEAD}always\s+{_TELLS}(?!the\b|a\b)\w+(?![\w'’]|\s+\d+['’])", marks="always must every"),
    _form("only", rf"^only\s+{_VERBS}\b", r"\b(?:use|should|must|may|you\s+can)\s+only\s+\w+",
          rf"^{_VERBS}(?:\s+\S+){{0,2}}\s+only\b(?!-)", rf"^{_VERBS}\b[^.:]*\s+only[.,;!]?$",
          r"^\w+(?:\s+\w+){0,3}\s+only$", marks="only exclusively solely just"),
    _form("prefer", rf"{_LEAD}prefer\s+(?!red)\w+",
          r"\b(?:i|we)(?:['’]d|\s+would)?\s+(?:really\s+|strongly\s+)?prefer\s+(?:to|that|if|we|you|not)\b",
          r"^(?:i|we)\s+(?:really\s+|strongly\s+)?prefer\s+.*\b(?:over|to|in|with)\b",
          marks="prefer preferably preferred rather instead"),
    _form("ensure", rf"(?<!\bto )(?:{_CLAUSE}|(?:,|\band|\bbut|\bneed\s+to|\bhave\s+to)\s+){_ENSURING}\s+\w+",
          marks="sure ensure ensures must always remember mind forget verify"),
    _form("rather than", r"^(?:always\s+)?(?:use|write|return|call|import|log|store|name|raise)\b[^.?:]*"
          r"\b(?:instead\s+of|rather\s+than)\b", marks="instead rather not use prefer"),
    _form("keep", rf"^(?:keep|leave)\b[^?]*\b{_UNTOUCHED}\b", marks="keep leave kept unchanged untouched preserve as"),
    _form("limit", r"^(?!i\b|it\b|this\b)[^?]*\b(?:at\s+most|no\s+more\s+than|not\s+more\s+than|must\s+not\s+exceed|"
          r"no\s+longer\s+than|maximum\s+of)\s+\S*\d",
          marks="most more exceed longer maximum max limit under budget"),
    _form("from now on", r"\b(?:from\s+now\s+on|going\s+forward|for\s+the\s+rest\s+of)",
          r"^in\s+(?:the\s+)?future\b", marks="now forward future always rest"),
)
"""The forms, the more particular first."""

PERMISSION = re.compile("|".join((
    r"\b(?:you|we)\s+(?:can|may|could|are\s+(?:now\s+)?(?:allowed|free)\s+to)\s+(?:now\s+)?(?!you\b)\w+",
    r"\bfeel\s+free\s+to\b", r"\b(?:it['’]s|it\s+is)\s+(?:now\s+)?(?:ok|okay|fine|allowed|alright)\s+to\b",
    r"\bno\s+longer\s+(?:need|have|forbidden|required|necessary)\b",
    r"\b(?:don['’]?t|do\s+not)\s+(?:need|have)\s+to\b",
    r"\bforget\s+(?:about\s+)?(?:the|that|my|what)\b", r"\bignore\s+(?:the|that|my|what)\b")), re.IGNORECASE)
"""A sentence that lifts a constraint with the same words."""

HINT = re.compile(
    r"\b(?:must|mustn|never|always|not|don['’]?t|shouldn|only|prefer|avoid|refrain|sure|ensure|remember|keep|leave|"
    r"without|forbidden|prohibited|off.limits|mandatory|shall|instead|rather|required|no|most|more|longer|maximum|"
    r"future|forward|now|rest)\b", re.IGNORECASE)
"""What every form has somewhere; most sentences are done with it."""

NOT_PROSE = re.compile("|".join((
    r"[{};]\s*$", r"=>|::|\(\)", r"^\s*[|+>$#@✓✗✔✘→←]", r"[│├└╭╰⎿●⏺]", r"^\S+\.\w{1,4}:\d+",
    r"^\s*[-\w./]+\.(?:go|py|ts|js|rs|java):",
    r"\b(?:ERROR|WARN|INFO|DEBUG|Error|Traceback|panic|FAIL|PASS|Exception)\b:?",
    r"\d\d:\d\d:\d\d", r"^\s*\"[\w-]+\"\s*:", r"(?:^|\s)//\s|^\s*\*\s|^diff --git|^@@",
    r"^\s*(?:if|for|func|def|return|import|const|let|var|class|public|else)\b.*[:;({]\s*$")))
"""Code, logs, tables and drawings that people paste."""

_MARKERS = re.compile(
    r"^(?:[-*•]\s+|\d+[.)]\s+|#+\s+|\*+|_+|\s+|(?:please|also|and|but|so|then|ok(?:ay)?|yes|yeah|oh|hmm|well|actually|"
    r"important|note|rules?|remember|alright|sure|nope|no|again|first|finally|now|just|additionally|otherwise|however)\b"
    r"[,:!.]+\s*|(?:please|also|and|but|so|then)\s+)", re.IGNORECASE)


def plain(sentence: str) -> str:
    """A sentence without list markers, emphasis and the little words that lead into it."""
    sentence = sentence.replace("**", "").replace("__", "")
    while True:
        shorter = _MARKERS.sub("", sentence, count=1)
        if shorter == sentence:
            return sentence.strip()
        sentence = shorter


def form_of(sentence: str) -> Form | None:
    """The first form that a plain sentence has; None where it is no constraint."""
    return next((form for form in FORMS if form.pattern.search(sentence)), None)
