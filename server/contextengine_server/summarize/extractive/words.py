"""Words of English that say little, whatever a text is about."""

from __future__ import annotations

COMMON = frozenset(
    """
    able about across after again almost along also always another anyone anything around back
    became because become becomes been before being between both come could different does done
    down during each either entire especially even ever every everyone everything feel find
    first found from gave getting give given going good great have help here however huge
    instead into just keep kind know last left like little long look looking looks love made
    make making many maybe more most much need never next nothing okay only other over perhaps
    please pretty probably quite real really right said same says seem seemed seems should since
    some someone something sometimes sort start started still stuff such sure take tell than
    thanks that their them then there these they things think this those though through told
    trying under until upon usually very want well were what when where whether which while
    whole will with without would yeah your
    """.split()  # noqa: SIM905 (a list of so many quoted words reads worse)
)
"""Words that are in any text: they count nothing."""

WORN = frozenset(
    """
    absolutely accomplish achieve action activity actually adventure advice agree ahead amazed
    amazing appreciate appreciated approach area aspect attention attitude awesome balance
    beautiful beautifully beauty believe best better bigger bond boost break brave brighten
    bring bringing brings brought busy calm care caring cause celebrate certain certainly
    challenge challenges challenging chance change changed changes chat check cheer cheering
    choice clear close comfort comfortable community completely confidence connect connected
    connection considering content continue cool count couple courage crazy create creating
    creative creativity curious dedication deep definitely deserve detail determination
    difference difficult discover dream dreams easier easy effort embrace emotion emotional
    encourage encouraging energy enjoy enjoyable enjoyed enjoying enough exactly excellent
    excited excitement exciting expect experience experiences explore express extra face fact
    fair faith fantastic fascinating favorite feeling feelings feels felt fine focus follow
    forget forward freedom fresh friend friends friendship fulfilling full future gain gift
    gives glad goal goals grateful gratitude growing growth guess guidance guys handle hang
    happen happened happiness happy hard harder hear heard heart helped helpful helping helps
    hmm hold hope hopefully hoping hours idea ideas imagine impact important impressed
    impressive incredible incredibly inspiration inspire inspired inspires inspiring interested
    interesting involved issue issues joined journey joyful kindness learn learned learning
    leave less level lift listen listening live lived living lots lovely lucky main manage
    matter matters mean meaningful means meet memorable memories memory mention mentioned mind
    moment moments motivated motivation move moving nice notice obviously offer open opinion
    opportunity option options part passion passionate past path patience peace peaceful people
    perfect person personal perspective pick picture piece place places plan plans play point
    positive possible power powerful practice present pride problem problems process progress
    promise proud push putting question questions quick quiet reach read ready realize realized
    reason reasons recently recharge reflect relate relax relaxing relief remember remind
    reminder reminds resilience respect rest rewarding role room rough safe satisfying second
    sense serious share shared sharing shine short show showing side sight simple simply
    situation skills slow small smile soon soul sound sounding sounds space special spend
    spending spirit spirits spread stand state stay staying step steps stick story strength
    stress stressful stressed strong struggle struggles stunning success successful super
    support supported supporting supportive surprise surprised surrounded talk talking taught
    team thankful thinks thought thoughts thrilled time times together tools totally touch tough
    treasure treat tried true truly trust turn turned type unbelievable understand understanding
    unique unwind upset useful usual value view vibe vibes wait waiting wanna wants warm warms
    watch wild willing wish wonder wonderful wondering words work worked working works world
    worries worry worse worth wow write wrong
    """.split()  # noqa: SIM905
)
"""Words that people use about anything, and with which they cheer, thank and muse: they count
little. Facts are told in others."""
