"""English."""

from __future__ import annotations

import re

from .language import Language, SentencePattern

_FILLER = r"""
  o+k(k|ay|ey|ie|i)?|o\.k\.|k|kk|y(es|eah|ep|up|a|es\ please)|aye|sure(\ thing)?|of\ course
  |certainly
| absolutely|definitely|exactly|indeed|al(l\ ?)?right(y)?|right|correct|true|agreed
| (oh\ )?i\ (see|understand|agree|know)|understood|got\ (it|you)|gotcha|noted|makes\ sense
  |fair(\ enough)?
| (that\ ?(\ i|['’])s\ |it['’]s\ |looks\ |sounds\ |all\ |very\ |so\ )?
  (fine|good|great|nice|cool|perfect|awesome|excellent|wonderful|amazing|brilliant|lovely|neat)
  (\ (with|for|to)\ me|\ work|\ job|\ so\ far|\ then|\ idea|\ news)?
| lgtm|(that\ )?works(\ for\ me)?|will\ do|roger(\ that)?|copy\ that|as\ you\ (like|wish)|done
  |ready
| (many\ |ok\ |great\ )?thanks(\ (a\ lot|so\ much|very\ much|again|for\ (your|the|all\ (your
  |the))[ ]
  (help|time|patience|support|info(rmation)?)|in\ advance))*|thank\ you(\ (a\ lot|so\ much
  |very\ much
  |again|for\ (your|the|all\ (your|the))\ (help|time|patience|support|info(rmation)?)|kindly
  |for\ (waiting|confirming|your\ understanding)))*|thx|ty|tysm|cheers|much\ appreciated
| (i\ )?(really\ |do\ )?appreciate\ (it|that|your\ (help|patience|time))
| no\ (problem|worries)|np|you['’](re|\ are)\ (very\ |most\ )?welcome|you\ are\ (very\ )?welcome
  |welcome
| (it['’]s\ |it\ is\ |it\ was\ )?(my|a)\ pleasure|any\ ?time|don['’]?t\ (worry|mention\ it)
  |never\ ?mind
| (oh\ )?(hi|hello|hey|greetings)(\ (there|again|everyone|all|team))?|good\ (morning|afternoon
  |evening|day|night)
| (good)?bye(\ ?bye)?|bye\ for\ now|see\ (you|ya)(\ (later|soon|then|around|tomorrow))?|take\ care
  |cya
| (i\ )?(hope\ you\ )?have\ (a|an)\ (very\ )?(great|nice|good|wonderful|lovely|pleasant|safe)[ ]
  (day|one|evening|night|weekend|time|trip|flight|rest\ of\ (your|the)\ day)(\ (too|ahead))?
  |you\ too|same\ here
| h+m+|m+|u+h+|u+m+|a+h+|o+h+|wow|lol|rofl|(ha)+h?|yay|woo+|oops|sorry|my\ bad|apologies|please
| (just\ )?(one|a)\ (moment|second|sec|minute|min)(\ please)?|hold\ on(\ (a|one)\ (second|moment
  |sec))?|please\ wait|wait
| (ok\ |sure\ )?(let\ me|i['’]ll|i\ will|i['’]m\ going\ to
  |i\ am\ going\ to)\ (just\ )?(quickly\ )?
  (check|see|look|have\ a\ look|take\ a\ look|think|look\ into\ (it|that|this)|check\ (on\ )?(that
  |this|it)
  |do\ (that|it|so)|get\ (right\ )?on\ it|get\ back\ to\ you|look\ that\ up|handle\ (it|that))
  (\ (for\ you|now|right\ away|again|shortly|first))*
| (i['’]m\ |still\ )?(working\ )?on\ it|here\ (you|we)\ (go|are)|there\ you\ go|here\ it\ is
| (please\ |ok\ |yes\ )?(go\ (on|ahead)|continue|proceed|carry\ on|keep\ going|do\ (it|that|so))
  |next
| (is\ there\ )?anything\ else(\ (that\ )?i\ can\ (help|assist)(\ you)?(\ with)?)?(\ (today
  |for\ you))?
| (how\ (can|may)|what\ can)\ i\ (help|assist|do)(\ you|\ for\ you)?(\ with)?(\ today)?
| (i['’]m|i\ am)\ (very\ |so\ )?(glad|happy|pleased)\ (to\ help|i\ could\ help|to\ hear\ (that
  |it))|(glad|happy)\ to\ (help|assist)
| (please\ )?(feel\ free|don['’]?t\ hesitate)\ to\ (ask|reach\ out|contact\ (me
  |us))(\ if\ .{0,60})?
| (please\ )?let\ me\ know(\ if\ you\ (need|have|want)\ (anything|any)\ ?(else|more
  |other)?\ ?(questions|help)?)?
| if\ you\ (need|have)\ (anything|any)\ ?(else|more|other|further)?\ ?(questions|help|assistance)?
"""

_QUESTION = r"""
^(who|whom|whose|what|where|when|why|which|how)(['’]s|['’]re|\b)
|^(is|are|was|were|am|do|does|did|can|could|will|would|shall|should|may|might|must|has|have|had
  |isn['’]t|aren['’]t|don['’]t|doesn['’]t|didn['’]t|can['’]t|couldn['’]t|won['’]t|wouldn['’]t
  |shouldn['’]t)
 \ (i|you|we|they|he|she|it|there|this|that|these|those|the|a|an|my|your|our|their|anyone
 |someone)\b
"""

_WRITE = (
    r"(respond|reply|answer|write|speak|talk|communicate|explain|comment|format|address|call|refer)"
)
_THINGS = r"""(everything|everyone|every|all|each|any|no|answers?|responses?|repl(y|ies)|output
  |results?|code|commits?|tests?|files?|functions?|variables?|names?|changes?|comments?|messages?
  |the\ \w+)"""

_INSTRUCTION = rf"""
\byou\ (must|shall|have\ to\ always|should\ (always|never|only)|are\ (required|expected|supposed
  |only\ allowed|not\ allowed)\ to
  |may\ (not|only)|can\ only|are\ never|should\ not|shouldn['’]t|must(n['’]t|\ not))\b
|\bit(['’]s|\ is)\ (\w+\ )?(forbidden|prohibited|not\ (allowed|permitted))\ (to|for)\b
|\b(is|are)\ off[ -]limits\b
|\b(must|shall|should|has\ to|have\ to|needs?\ to)\ (always|never|not|only)\b
|\b{_THINGS}\ (\w+\ ){{0,4}}(must|shall|ha(s|ve)\ to)\b|\b(must|shall|has\ to
  |have\ to)\b.*\b(always|never)\b
|^(and\ |but\ |also\ |so\ |then\ |please\ |always\ |kindly\ )*
  (always|never|only|do\ not|don['’]?t|avoid|refrain\ from|stick\ to|stop\ \w+ing
  |make\ sure|be\ sure|ensure|remember|keep\ in\ mind|note\ that|respect|follow\ (the|these|this
  |my|our)
  |be\ (brief|concise|polite|formal|short|terse|careful|precise|honest|strict))\b
|^(and\ |but\ |also\ |so\ |please\ |always\ )*{_WRITE}\ (to\ me\ |me\ |us\ |it\ |them[ ]
  |your\ \w+\ |the\ \w+\ )?
  (only|always|in|as|with|using|without|by)\b
|^(and\ |also\ |please\ )*use\ (only|\w+(\ \w+){{0,2}}\ (for\ (all|every|any)|instead\ of
  |everywhere|throughout|from\ now\ on))\b
|\b(from\ (now|here)\ on|going\ forward|in\ (the\ )?future|henceforth|by\ default|at\ all\ times
  |under\ no\ circumstances|no\ matter\ what|without\ exception|every\ time\ you|whenever\ you
  |for\ the\ rest\ of\ (this|the|our)|throughout\ (this|the|our)\ \w+|in\ (all
  |every)\ (of\ )?(your\ |the\ )?(answers?|repl(y|ies)|responses?|files?|commits?))\b
|^(\W*)(rules?|instructions?|requirements?|constraints?|guidelines?|important)\W*:
|^you\ are\ (now\ )?(a|an|my|our)\ \w+
|^(please\ )?(act|behave)\ (as|like)\b|^pretend\b
"""

_NO_INSTRUCTION = r"""
\bi\ (\w+\ )?(must|shall|always|never|only|have\ to|don['’]?t)\b
|\bdon['’]?t\ (worry|mind|bother\ to\ reply|know|think|care|understand|mention|get\ me\ wrong)\b
  |^never\ ?mind\b
|^only\ (one|two|three|a\ few|\d|if|when|because|the\ \w+\ (is|are|was|fail))
|^(i|we)\ (never|always)\b|\bmake\ sure\ i\b|^remember\ (when|how|the\ time)\b
|^(please\ )?note\ that\ (my|our|i|we)\b|^(please\ )?use\b.*\b(here|in\ this\ \w+)$
"""

_OWN = r"""
\bi\ (\w+\ ){0,2}(prefer|like|love|hate|dislike|enjoy|want|need|use|own|live|work|study|teach
  |speak|was\ born)\b
|\bi(['’]d|\ would)\ (rather|prefer|like|love)\b|\bmy\ (favou?rite|prefer(red|ence))\b
  |\bcall\ me\ [a-z]
|\b(i|we)\ (do\ not|don['’]?t|never|can['’]?t\ stand|always)\ (\w+\ )?(like|want|need|use|eat
  |drink|fly|work|care\ for)\b
|\bmy\ (\w+\ ){1,4}(is|are|was|ends|begins|starts)\b
|\bi(['’]m|\ am)\ (a|an|the|from|called|based|in|at|\d+|allergic|vegan|vegetarian|left-handed
  |responsible)\b
"""

_FACT = r"""
\b(we|our\ \w+|the\ \w+|i)\ (have\ |has\ |just\ )?(decided|agreed|chose|chosen|picked|selected
  |settled\ on|opted|resolved|confirmed)\b
|\b(we|they)(['’]ll|\ will|\ shall|\ are\ going\ to)\ \w+|\b(decided|agreed)\ (to|on|that)\b
  |\bconfirmed\b|^decision\b
|^let['’]?s\ (go\ with|use|take|stick\ with|settle\ on|keep)\b|\bgoing\ with\b|\bit\ is\ (settled
  |decided|agreed)\b
|\b(deadline|due\ date|launch|release|meeting|appointment|budget|price|version|port|host|hostname
  |server|database|branch|region|repository
  |repo|owner|manager|lead|address|password\ policy|time\ ?zone|office|team|customer|client
  |project|product|company)\ (\w+\ ){0,4}
  (is|are|was|will\ be|runs?\ on|starts?|ends?|belongs\ to|lives\ in)\b
|\b(is|are|was)\ (called|named|located|hosted|scheduled|due|owned\ by|led\ by|based\ in|born)\b
|\bour\ (\w+\ ){1,4}(is|are|uses?|runs?|has|have)\b|\bwe\ (use|run|have|own|are)\b
"""

_NO_FACT = r"""
\b(i|we)(['’]d|\ would)?\ (just\ |only\ |really\ )?(want|need|like)(ed)?\ (you\ to|to\ (know|see
  |ask|understand|cancel|change|book|return|exchange
  |modify|fix|check|update|add|remove|find|get|make|do|create|write|run|build|implement|delete
  |upgrade|confirm|pay|order|have))\b
|\b(i|we)\ (need|want)\ (your\ )?help\b
|^(if|suppose|imagine|assume|what\ if|unless)\b|\b(could|might|maybe|perhaps|not\ sure|whether)\b
|\bhave(n['’]?t|\ not)\ (\w+\ )?(decided|agreed)\b|\bmy\ (question|point|problem|issue
  |concern)\ is\b
"""


def _pattern(pattern: str) -> SentencePattern:
    return SentencePattern(pattern, re.VERBOSE | re.IGNORECASE)


ENGLISH = Language(
    filler=_pattern(_FILLER),
    question=_pattern(_QUESTION),
    instruction=_pattern(_INSTRUCTION),
    no_instruction=_pattern(_NO_INSTRUCTION),
    own=_pattern(_OWN),
    fact=_pattern(_FACT),
    no_fact=_pattern(_NO_FACT),
)
