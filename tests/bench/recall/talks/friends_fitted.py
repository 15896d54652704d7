"""What two friends tell each other in the talks that search is fitted on."""

from __future__ import annotations

from .topic import Topic

TOPICS: tuple[Topic, ...] = (
    Topic(
        {
            "craft": ("pottery", "woodcarving", "weaving", "glassblowing"),
            "made": ("a lopsided bowl", "two mugs for my sister", "a tiny owl"),
            "place": ("the old fire station", "a studio on Mill Street", "the art center"),
            "price": ("120", "95", "180"),
        },
        "I finally signed up for a {craft} class {when}! It's in {place} and the kiln room"
        " smells like wet earth.",
        "Where does {who} take the {craft} class?",
        "{place}",
        (
            (
                "That's so cool! What did you make first?",
                "I made {made}, and it survived the drying, which nobody expected.",
                "What did {who} make first in the {craft} class?",
                "{made}",
            ),
            (
                "Was it expensive?",
                "It was {price} dollars for six evenings, with all materials included.",
                "How much did {who} pay for the {craft} evenings?",
                "{price}",
            ),
        ),
        "working with your hands",
    ),
    Topic(
        {
            "pet": ("a beagle", "a grey cat", "a parrot", "two guinea pigs"),
            "called": ("Biscuit", "Pepper", "Moss", "Waffles"),
            "from": ("the shelter in Dunmore", "a farm near the lake", "my neighbor Ruth"),
            "trick": ("open the fridge", "fetch my slippers", "hide under the piano"),
        },
        "Big news: we adopted {pet} {when}. The name is {called} and the kids are over the moon.",
        "What is {who}'s pet called?",
        "{called}",
        (
            (
                "Aww! Where did you find such a sweetheart?",
                "We got {called} from {from}, they had been looking for a home since spring.",
                "Where did {who} get {called} from?",
                "{from}",
            ),
            (
                "Has {called} settled in?",
                "Totally. {called} has already learned to {trick}, so no corner is safe.",
                "What has {called} learned to do?",
                "{trick}",
            ),
        ),
        "having animals around",
    ),
    Topic(
        {
            "race": ("half marathon", "triathlon", "10k", "hill race"),
            "town": ("Galway", "Porto", "Duluth", "Asheville"),
            "time": ("2 hours 4 minutes", "58 minutes", "1 hour 47 minutes"),
            "pain": ("left knee", "right ankle", "lower back"),
            "cause": ("a children's hospital", "ocean cleanup", "guide dogs"),
        },
        "I ran the {race} in {town} {when} and crossed the line after {time}!",
        "How long did the {race} take {who}?",
        "{time}",
        (
            (
                "Wow, congrats! Did you run it for charity?",
                "Yeah, our team collected donations for {cause}, people were so generous.",
                "For whom did {who}'s team collect donations at the {race}?",
                "{cause}",
            ),
            (
                "How does your body feel after that?",
                "My {pain} complains on the stairs, so the doctor told me to rest it until"
                " the swelling is gone.",
                "Which part of the body hurts {who} after the {race}?",
                "{pain}",
            ),
        ),
        "pushing yourself",
    ),
    Topic(
        {
            "job": ("librarian", "nurse", "bus driver", "surveyor"),
            "firm": ("Northgate Clinic", "the county council", "Harlow and Sons"),
            "boss": ("Mr. Okafor", "Daniela", "a man called Prentice"),
            "start": ("the 3rd of June", "September 12", "the first of the month"),
        },
        "So I got the job as a {job} with {firm}! They phoned me {when} while I was"
        " brushing my teeth.",
        "Who hired {who} as a {job}?",
        "{firm}",
        (
            (
                "That is huge! When do you start?",
                "I start on {start}, and I have to buy proper shoes before that.",
                "When does {who} start as a {job}?",
                "{start}",
            ),
            (
                "What are the people like?",
                "My supervisor is {boss}, strict about punctuality and very funny otherwise.",
                "Who is {who}'s supervisor at {firm}?",
                "{boss}",
            ),
        ),
        "starting something new at work",
    ),
    Topic(
        {
            "book": ("The Salt Path", "Middlemarch", "Piranesi", "A Gentleman in Moscow"),
            "who2": ("my grandmother", "our mail carrier", "a colleague"),
            "theme": ("starting over with nothing", "loneliness in big houses", "slow love"),
        },
        "I've been reading “{book}” every night, {who2} lent it to me {when}.",
        "Which book does {who} read every night?",
        "{book}",
        (
            (
                "I've heard of it! What do you like about it?",
                "It's about {theme}, and I underline something on every page.",
                "What is the book about that {who} reads?",
                "{theme}",
            ),
        ),
        "getting lost in a story",
    ),
    Topic(
        {
            "kid": ("Oscar", "Lila", "Jonah", "Mira"),
            "tool": ("the cello", "the trumpet", "the drums"),
            "piece": ("a Vivaldi piece", "the theme of a western", "three folk songs"),
            "aunt": ("Aunt Carol", "Grandpa Ned", "her cousin Theo"),
        },
        "My youngest, {kid}, had a recital {when} and played {tool} in front of ninety people.",
        "Which instrument does {kid} play?",
        "{tool}",
        (
            (
                "How brave! What was on the program?",
                "It was {piece}, and only one note went wrong, right at the end.",
                "What did {kid} play at the recital?",
                "{piece}",
            ),
            (
                "Was the family there?",
                "{aunt} drove four hours to be there and cried through all of it.",
                "Who drove four hours to {kid}'s recital?",
                "{aunt}",
            ),
        ),
        "being proud of children",
    ),
    Topic(
        {
            "dish": ("lentil moussaka", "pumpkin gnocchi", "fish tacos", "okra stew"),
            "secret": ("a spoon of miso", "smoked paprika", "orange peel"),
            "guests": ("eleven guests", "the choir", "my in-laws"),
        },
        "I cooked {dish} for {guests} {when}, the pot was bigger than the stove.",
        "What did {who} cook for {guests}?",
        "{dish}",
        (
            (
                "Yum! Is there a trick to it?",
                "The trick is {secret}, stirred in just before serving.",
                "What is {who}'s trick for the {dish}?",
                "{secret}",
            ),
        ),
        "cooking for people",
    ),
    Topic(
        {
            "city": ("Lisbon", "Kyoto", "Tallinn", "Oaxaca"),
            "with": ("my brother", "an old roommate", "nobody but my camera"),
            "stay": ("a houseboat", "a monastery", "a room above a bakery"),
            "lost": ("my passport", "one suitcase", "the good umbrella"),
        },
        "We just booked it: I'm flying to {city} with {with}, the tickets came {when}.",
        "Where is {who} flying with {with}?",
        "{city}",
        (
            (
                "I'm jealous! Where will you stay?",
                "We rented {stay} for nine nights, close to the river.",
                "Where will {who} stay in {city}?",
                "{stay}",
            ),
            (
                "Are you a careful traveler?",
                "Not at all, on the previous trip I lost {lost} on day one and laughed about"
                " it on day three.",
                "What did {who} lose on the previous trip?",
                "{lost}",
            ),
        ),
        "seeing new places",
    ),
    Topic(
        {
            "ill": ("migraines", "asthma", "a slipped disc"),
            "cure": ("swimming before breakfast", "acupuncture", "cutting out coffee"),
            "doc": ("Dr. Havel", "a specialist in Leeds", "Dr. Nyong"),
        },
        "Honestly it was a rough stretch, the {ill} came back {when} and I missed four days"
        " of work.",
        "What illness came back for {who}?",
        "{ill}",
        (
            (
                "Oh no, I'm so sorry. Has anything helped?",
                "{cure} helps more than the pills ever did.",
                "What helps {who} against the {ill}?",
                "{cure}",
            ),
            (
                "Who is treating you?",
                "I see {doc} every other Thursday, who takes all the time in the world.",
                "Who treats {who}'s {ill}?",
                "{doc}",
            ),
        ),
        "taking care of your health",
    ),
)
