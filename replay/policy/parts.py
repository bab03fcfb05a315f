"""Every registered part by kind and name."""

from __future__ import annotations

from collections.abc import Mapping

from replay.own.kinds import OWN_CODE
from replay.policy.answered import ANSWERED
from replay.policy.appendices import APPENDICES
from replay.policy.attachments import ATTACHMENTS
from replay.policy.checkpoint import CHECKPOINT_CUTS, CHECKPOINTS
from replay.policy.cleared_uses import CLEARING_RENDERINGS, CLEARING_RULES, CLEARING_TRIGGERS
from replay.policy.cline import CLINE_APPENDICES, CLINE_CUTS, CLINE_REPLACEMENTS
from replay.policy.cline_size import CLINE_ESTIMATORS, CLINE_MEASURES
from replay.policy.cuts import CUTS
from replay.policy.cuts_essential import ESSENTIAL_CUTS
from replay.policy.cuts_forward import FORWARD_CUTS
from replay.policy.cuts_growing import GROWING_CUTS
from replay.policy.cuts_kept import KEPT_CUTS
from replay.policy.cuts_share import SHARE_CUTS
from replay.policy.cuts_turns import TURN_CUTS
from replay.policy.estimators import ESTIMATORS
from replay.policy.estimators_json import JSON_ESTIMATORS
from replay.policy.exchanges import EXCHANGES
from replay.policy.handoff import HAND_OFFS
from replay.policy.head_tail_tokens import (
    HEAD_TAIL_CUTS,
    HEAD_TAIL_RENDERINGS,
    HEAD_TAIL_REPLACEMENTS,
    HEAD_TAIL_TRIGGERS,
)
from replay.policy.input_ladders import INPUT_LIMITS
from replay.policy.langchain import LANGCHAIN_CUTS, LANGCHAIN_MEASURES, LANGCHAIN_TOOL_RULES, LANGCHAIN_TRIGGERS
from replay.policy.levels import LEVEL_MEASURES, LEVEL_TRIGGERS
from replay.policy.measures import MEASURES
from replay.policy.newest_per_file import FILE_RENDERINGS, FILE_RULES
from replay.policy.observations import OBSERVATION_RENDERINGS, OBSERVATION_RULES
from replay.policy.reactive import REACTIVE_RULES
from replay.policy.reinjection import REINJECTIONS
from replay.policy.renderings import MORE_RENDERINGS
from replay.policy.renderings_caps import CAPS, IMAGE_RULES
from replay.policy.renderings_reload import RELOADED
from replay.policy.replacements import REPLACEMENTS
from replay.policy.restored import RESTORED
from replay.policy.tool_results import RENDERINGS, TOOL_RESULT_RULES
from replay.policy.tool_rules import TOOL_RULES
from replay.policy.triggers import TRIGGERS
from replay.policy.triggers_asked import ASKED_TRIGGERS
from replay.policy.triggers_more import MORE_TRIGGERS

PARTS: Mapping[str, Mapping[str, type]] = {
    "estimator": {**ESTIMATORS, **JSON_ESTIMATORS, **CLINE_ESTIMATORS},
    "measure": {**MEASURES, **LANGCHAIN_MEASURES, **LEVEL_MEASURES, **CLINE_MEASURES},
    "trigger": {**TRIGGERS, **MORE_TRIGGERS, **ASKED_TRIGGERS, **HEAD_TAIL_TRIGGERS, **LANGCHAIN_TRIGGERS,
                **LEVEL_TRIGGERS, **CLEARING_TRIGGERS},
    "cut": {**CUTS, **FORWARD_CUTS, **KEPT_CUTS, **TURN_CUTS, **SHARE_CUTS, **HEAD_TAIL_CUTS, **LANGCHAIN_CUTS,
            **GROWING_CUTS, **CLINE_CUTS, **ESSENTIAL_CUTS, **CHECKPOINT_CUTS},
    "tool_results": {**TOOL_RESULT_RULES, **TOOL_RULES, **LANGCHAIN_TOOL_RULES, **CLEARING_RULES, **FILE_RULES,
                     **OBSERVATION_RULES, **IMAGE_RULES},
    "rendering": {**RENDERINGS, **MORE_RENDERINGS, **RELOADED, **HEAD_TAIL_RENDERINGS, **CLEARING_RENDERINGS,
                  **FILE_RENDERINGS, **OBSERVATION_RENDERINGS, **CAPS},
    "replacement": {**REPLACEMENTS, **EXCHANGES, **HAND_OFFS, **ATTACHMENTS, **HEAD_TAIL_REPLACEMENTS,
                    **RESTORED, **ANSWERED, **CLINE_REPLACEMENTS, **CHECKPOINTS},
    "appendix": {**APPENDICES, **CLINE_APPENDICES},
    "input_limit": INPUT_LIMITS,
    "reinjection": REINJECTIONS,
    "reactive": REACTIVE_RULES,
    "own": OWN_CODE,
}
"""Kind of part (as its table is called in TOML) to name to class."""

DEFAULT_USE: Mapping[str, str] = {"estimator": "characters", "rendering": "placeholder",
                                  "replacement": "summary-message", "cut": "tokens", "trigger": "threshold",
                                  "input_limit": "newest"}
"""The part that is meant where a table leaves `use` out."""
