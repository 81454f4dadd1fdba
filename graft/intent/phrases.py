"""What text addressed to a model looks like: data for `graft.intent.injection`.

Every pattern is bounded and matches at most 160 characters. The words before a pattern occur in all it matches.
"""

from __future__ import annotations

import re

_AI = r"(?:ai|llms?|gpt|chatgpt|claude|copilot|gemini|codex|anthropic|openai|(?:large\ )?language\ models?)"
_MACHINE = rf"(?:{_AI}|the\ model|assistant|automated|graft|bot)"
_READER = r"(?:review(?:er|ing|s|ers)?|agents?|assistants?|models?|bots?|tools?|systems?|checkers?|graders?|verifiers?)"
_SAFE = r"[\"'`]?(?:trivial|safe|harmless|low[\ -]risk|no[\ -]risk|risk[\ -]free|approved|benign)\b"


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split(";"))


# Searched in lower case, white space and line breaks (with the comment signs around them) as one space. Each
# is tried only around the words before it, which every match contains: that keeps long diffs cheap.
PHRASES: dict[str, tuple[tuple[str, ...], re.Pattern[str]]] = {
    "addressed_to_ai": (
        _words(
            "llm;gpt;claude;copilot;gemini;codex;anthropic;openai;language model;the model;assistant;automated;graft"
            ";bot;system prompt;the writer;the verifier; ai;(ai;[ai;*ai;/ai;-ai;_ai;\"ai;'ai;`ai;>ai"
        ),
        re.compile(
            rf"""
              \b(?:dear|hey|hi|hello|note\ (?:to|for)|attention|attn|message\ (?:to|for)|instructions?\ (?:to|for)
                 |important\ (?:to|for)|addressed\ to)[\ :,]{{1,3}}(?:an?\ |the\ |any\ |all\ |every\ )?
                 {_MACHINE}\b
            | \b(?:to|for)\ (?:an?\ |the\ |any\ |all\ |every\ )?{_AI}[\ _-]{_READER}\b
            | \bif\ you\ are\ (?:an?\ |the\ )?(?:{_AI}|bot|automated)\b
            | \b(?:as|being)\ an?\ {_AI}\b[^.]{{0,60}}\byou\b
            | \b(?!graft-(?:agent|model)\ ?:)  # trailers of Graft's own
                {_MACHINE}[\ _-]{_READER}\ ?(?::|\b(?:must|should|please|shall|are\ (?:instructed|asked|required))\b)
            | \b(?:your|the\ reviewer'?s?|reveal\ the|print\ the|leak\ the)\ system\ ?prompt\b
            | \bthe\ (?:writer|verifier)\ (?:must|should|has\ to|needs?\ to)\ (?:say|report|mark|classify|return)\b
            """,
            re.VERBOSE,
        ),
    ),
    "overriding_instructions": (
        _words(
            "ignore;disregard;forget;override;bypass;follow;instruction;you are now;mode on;mode enabled;mode activated"
            ";from now on;do not ;don't ;never "
        ),
        re.compile(
            r"""
              \b(?:ignore|disregard|forget|override|bypass|do\ not\ follow|don't\ follow)\b[^.]{0,40}
                \b(?:instructions?|prompts?|rules|guidelines|directions|context|the\ above|everything\ above
                |policies)\b
            | \b(?:new|updated|revised|real|actual|additional|special)\ instructions?\ ?(?::|follow\b|for\ you\b)
            | \byou\ are\ now\ (?:an?|in|the)\b
            | \b(?:developer|jailbreak|god|dan)\ mode\ (?:on|enabled|activated)\b
            | \bfrom\ now\ on,?\ (?:you|respond|answer|act)\b
            | \b(?:do\ not|don't|never)\ (?:mention|report|flag|list|disclose|reveal|describe|include)\b[^.]{0,60}
                \b(?:card|summary|review|reviewers?|this\ (?:change|file|instruction|comment|message)|findings?)\b
            """,
            re.VERBOSE,
        ),
    ),
    "verdict_dictated": (
        _words(
            "trivial;safe;harmless;low risk;low-risk;no risk;no-risk;risk free;risk-free;approve;benign;claim;lgtm"
            ";merge this;merge it;rated;classified;marked;considered;treated;supported"
        ),
        re.compile(
            rf"""
              \b(?:classify|rate|mark|label|report|treat|consider|score|assess|categori[sz]e)\b[^.]{{0,50}}
                \b(?:as|to\ be|is)\ {_SAFE}
            | \b(?:set|return|answer|output|use|say)\b[^.]{{0,30}}\b(?:risk|class|verdict|severity)\b[^.]{{0,20}}{_SAFE}
            | ["']?\b(?:risk|risk_class|verdict)["']?\ ?[:=]\ ?["'](?:trivial|supported|approved?)["']
            | \b(?:this|the)\ (?:change|pr|pull\ request|diff|patch|commit)\ (?:is|must\ be|should\ be)
                \ (?:completely\ |entirely\ |totally\ |perfectly\ )?(?:rated|classified|marked|considered|treated)\b
            | \b(?:all|every|each)\ claims?\ (?:are|is|as)\ supported\b
            | \b(?:approve|merge|lgtm)\ (?:this|it)\ (?:immediately|without|regardless|no\ matter)\b
            """,
            re.VERBOSE,
        ),
    ),
}
# Searched in lower case as it stands.
MARKUP: dict[str, tuple[tuple[str, ...], re.Pattern[str]]] = {
    "role_markup": (
        _words(
            "im_start;im_end;eot_id;endoftext;start_header;<|;<system;/system;<assistant;/assistant"
            ";<instruction;/instruction;<human;/human;function_calls;tool_use;antml:;[inst;[/inst;sys>>"
            ";system:;system :;assistant:;assistant :;human:;human :"
        ),
        re.compile(
            r"""
              <\|\ ?(?:im_start|im_end|endoftext|system|assistant|user|start_header_id|eot_id)\ ?\|>
            | </?(?:system|assistant|instructions?|system[_-]prompt|human|function_calls|tool_use
                |antml:[a-z_]{1,30})\ ?>
            | \[/?inst\]|<</?sys>>
            | \#{1,4}\ ?(?:system|assistant|human)\ ?:
            """,
            re.VERBOSE,
        ),
    ),
    "data_tag": (
        _words("graft"),
        re.compile(r"<[\ /]{0,4}graft[-_: ]{0,2}(?:data|block|end|untrusted)|graft-data-[0-9a-f]{6,40}"),
    ),
}
ENCODED = re.compile(
    r"""
      (?<![a-z0-9+/=_-])(?=[a-z+/_-]{0,199}[0-9])[a-z0-9+/_-]{200}
    | (?<![a-z0-9+/=])(?:[a-z0-9+/]{60,100}={0,2}\ ){2}[a-z0-9+/]{20}
    """,
    re.VERBOSE,
)
# Comments of pull request templates address the author, notes of bots their own tools.
USUAL_COMMENT = re.compile(
    r"[^a-z]{0,20}(?:a\ clear|add|all|are|before|check|choose|click|delete|describe|did|do\ not\ edit|does|e\.g|enter"
    r"|example|explain|feel\ free|fill|for\ example|fixes|generated|give|hello|hi|how|if\ (?:this|your|the|it)"
    r"|include|insert|is\ this|issue|keep|leave|link|list|make|markdownlint|mark|mention|move|note\ that|optional"
    r"|please|prettier|provide|put|reference|related|release-?notes?|remove|replace|renovate|dependabot|screenshot"
    r"|see|select|short|specify|state|steps|summar|tell\ us|thank|the\ following|this\ (?:section|template|is\ a)"
    r"|title|type|uncomment|use|what|when|which|who|why|write|x|you\ can|your)\b"
)
