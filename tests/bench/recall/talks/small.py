"""What is said around facts, put together of parts, so that hardly a sentence comes twice."""

from __future__ import annotations

from random import Random

_STANCES = (
    """
    I guess|You know,|Honestly,|I keep telling myself that|The older I get, the more|My mom always
    said that|It's funny how|I've noticed that|At the end of the day|I read somewhere that|Deep down
    I think|For me,|These days|If I'm honest,
    """,
    """
    I suppose|To be fair,|I'm starting to see that|My neighbors think|There are days when|It turns
    out that|As far as I can tell,|Lately|In a way|I like to believe that|Looking back,|Somehow|More
    and more|Between you and me,
    """,
)
_CLAUSES = (
    """
    a quiet evening does more than any medicine|people open up once you listen|we carry each
    other through storms|small habits shape a whole year|mistakes are where the learning happens|a
    good laugh repairs nearly everything|the seasons put things into perspective|trust grows slower
    than bamboo|nobody has it all figured out|home is a feeling and not an address|creativity needs
    boredom|patience is a muscle|courage looks ordinary from the outside|old friends see through
    every mask|routine gives the week a spine|kindness travels further than advice|dreams deserve a
    calendar|silence can be a kind of conversation|being vulnerable takes real strength|a walk in
    the rain resets my mood
    """,
    """
    fresh air fixes half of my worries|everyone is fighting some private battle|joy hides in boring
    places|a shared meal beats a thousand messages|asking for help is underrated|growth is
    uncomfortable before it's fun|sleep is the best advisor|memories taste better than souvenirs|the
    mess is part of the process|you can't pour from an empty cup|gratitude changes the light in a
    room|community is built one chat at a time|hope is a stubborn little weed|comparison steals
    the fun of it|laughter is contagious around here|change sneaks up on you|roots matter as much
    as wings|strangers can be unexpectedly gentle|progress rarely moves in a straight line|an hour
    of music undoes a rotten day
    """,
)
_TAILS = (
    """
    , don't you think?|, and that's okay.|, at least that's my experience.|, even on hard days.|. It
    means a lot to me.|, which keeps me grounded.|, no matter what others say.|. I needed to hear
    that.|!|, especially with you around.|, and I'm here for it.|. What a journey!
    """,
    """
    , right?|, whatever happens.|, if you let it.|. I try to remember that.|, most of the time.|,
    and I love that.|. It's a blessing, really.|, in its own weird way.|! Can't complain.|, as
    cheesy as it sounds.|. That's what I hold on to.|, and it shows.
    """,
)
_CHEERS = (
    """
    Wow, {other}, that's amazing!|That sounds so great!|Aww, I love that for you.|So cool!|I'm so
    happy for you, {other}.|That's awesome, keep it up!|Thanks for telling me, {other}!|Oh my
    goodness, really?|You never fail to surprise me.|I can totally relate.|Ha, classic {other}!|What
    a story, I felt like I was there.|You should be proud of yourself.|Totally agree with you.
    """,
    """
    Oh, {other}, how exciting!|Sounds like a dream!|Good for you, {other}.|That's incredible, well
    done!|I'm thrilled to hear it.|Love it, keep going!|Glad you told me.|No kidding!|You're such an
    inspiration, {other}.|That warms my heart.|I admire how you handle it.|Bravo, {other}!|You
    deserve it after everything.|I couldn't agree more.
    """,
)
_ECHOES = (
    """
    {About} always brings out the best in people.|I've been curious about {about} for ages.|There is
    so much love in {about}.|{About} must give you a boost of energy.|I bet {about} keeps you on
    your toes.|You make {about} sound easy.
    """,
    """
    I wish I knew more about {about}.|{About} is such a gift.|Not everyone has the nerve for
    {about}.|{About} can be tough but worth it.|It shows how much {about} means to you.|I'd never
    have guessed that {about} could be this rewarding.
    """,
)
_VERBS = """
    outline|sketch|compare|rehearse|postpone|simplify|double-check|group|label|trim|schedule|audit|
    rank|prototype|question|automate|delegate|visualize|estimate|archive
    """
_OBJECTS = """
    the first draft of|the weakest part of|every dependency of|the total cost of|the edge cases of|
    two alternatives to|the assumptions behind|a short checklist for|the people affected by|the
    maintenance of|a realistic deadline for|the hidden risks of|a backup of|the order of steps in
    """
_ENDS = """
    so that surprises stay small|before committing any money|because momentum matters early on|
    which saves hours down the road|and revisit it after {k} days|until it feels almost boring|
    since details tend to multiply|while energy is still high|to keep everyone aligned|as experts
    with {k} years of practice recommend|and write the outcome down|rather than relying on memory|
    to reduce stress by roughly {k} percent|even if it seems unnecessary at first
    """
_TITLES = """
    Start small|Think ahead|Stay flexible|Know your limits|Keep records|Set boundaries|Reduce
    friction|Focus on essentials|Check in regularly|Mind the details|Build a buffer|Learn as you go|
    Consider alternatives|Use what you have
    """


def musing(random: Random, half: int) -> str:
    """A thought without a fact."""
    clause = _one(random, _CLAUSES[half])
    stance, tail = _one(random, _STANCES[half]), _one(random, _TAILS[half])
    return f"{stance} {clause}{tail}"


def cheer(random: Random, half: int, other: str, about: str) -> str:
    """What one says who has listened."""
    text = _one(random, _CHEERS[half])
    if random.random() < 0.6:
        text += " " + _one(random, _ECHOES[half])
    text = text.format(other=other, about=about, About=about[:1].upper() + about[1:])
    return text if random.random() < 0.6 else f"{text} {musing(random, half)}"


def tip(random: Random, number: int, noun: str) -> str:
    """Advice that fits anything."""
    rows = []
    for _ in range(random.randrange(1, 3)):
        verb, thing, end = _one(random, _VERBS), _one(random, _OBJECTS), _one(random, _ENDS)
        end = end.format(k=random.randrange(2, 40))
        rows.append(f"{verb.capitalize()} {thing} your {noun}, {end}.")
    return f"{number}. **{_one(random, _TITLES)}**: " + " ".join(rows)


def _one(random: Random, parts: str) -> str:
    return random.choice([" ".join(part.split()) for part in parts.split("|")])
