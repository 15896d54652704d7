"""What two friends tell each other in the talks that search is measured on."""

from __future__ import annotations

from .topic import Topic

TOPICS: tuple[Topic, ...] = (
    Topic(
        {
            "plant": ("tomatoes", "dahlias", "fig trees", "runner beans"),
            "where": ("the rooftop", "an allotment by the tracks", "my mother's yard"),
            "enemy": ("slugs", "a stubborn deer", "mildew"),
            "yield": ("fourteen kilos", "thirty jars", "two crates"),
        },
        "The {plant} on {where} are doing great, I planted them {when} with almost no hope.",
        "Where did {who} plant the {plant}?",
        "{where}",
        (
            (
                "You've got a green thumb! Any trouble so far?",
                "Only {enemy}; I tried eggshells, copper tape and finally a torch at night.",
                "What threatened the {plant} of {who}?",
                "{enemy}",
            ),
            (
                "What do you get out of it?",
                "The previous summer brought {yield}, half of which went to the food bank.",
                "How much did {who} harvest the previous summer?",
                "{yield}",
            ),
        ),
        "growing things",
    ),
    Topic(
        {
            "house": ("a cottage", "an old mill", "the flat upstairs"),
            "street": ("Juniper Lane", "Harbour Road", "Calle Ocho"),
            "flaw": ("the roof leaks", "there's no heating", "the stairs are rotten"),
            "color": ("mustard yellow", "sea green", "plum"),
        },
        "We bought {house} on {street}! We signed the papers {when} and drank warm champagne"
        " on the floor.",
        "On which street did {who} buy {house}?",
        "{street}",
        (
            (
                "I can't believe it! What needs to be done?",
                "Well, {flaw}, so a builder from the village comes in the autumn.",
                "What is wrong with the place that {who} bought?",
                "{flaw}",
            ),
            (
                "Have you picked colors?",
                "The kitchen is going to be {color}, whatever my father says about it.",
                "What color will {who}'s kitchen be?",
                "{color}",
            ),
        ),
        "making a home",
    ),
    Topic(
        {
            "game": ("chess", "bouldering", "curling", "table tennis"),
            "club": ("the Riverside club", "a club of retired teachers", "Club Meridian"),
            "rank": ("third", "seventh", "runner-up"),
            "rival": ("a twelve-year-old", "my own dentist", "Olga from accounting"),
        },
        "Guess who came in {rank} at the {game} tournament {when}? I still have the paper"
        " medal on.",
        "Which place did {who} take at the {game} tournament?",
        "{rank}",
        (
            (
                "No way! Who beat you?",
                "{rival} did, without even looking up from the sandwich.",
                "Who beat {who} at {game}?",
                "{rival}",
            ),
            (
                "Where do you practice?",
                "I train with {club} on Wednesdays, and they lend me the gear.",
                "With whom does {who} train {game}?",
                "{club}",
            ),
        ),
        "a bit of competition",
    ),
    Topic(
        {
            "study": ("marine biology", "sign language", "bookkeeping", "Portuguese"),
            "school": ("the evening college", "Saint Alban's", "an online academy"),
            "why": ("my niece is deaf", "I want to work abroad", "numbers frighten me"),
            "exam": ("an oral exam in May", "a thesis of forty pages", "a lab week"),
        },
        "I enrolled for {study} at {school}, the letter arrived {when}.",
        "What does {who} study at {school}?",
        "{study}",
        (
            (
                "Good for you! What made you choose that?",
                "It's simple really: {why}, and I was tired of only talking about it.",
                "Why did {who} take up {study}?",
                "{why}",
            ),
            (
                "Is it a lot of work?",
                "It ends with {exam}, which I already dream about at night.",
                "How does {who}'s course end?",
                "{exam}",
            ),
        ),
        "learning as an adult",
    ),
    Topic(
        {
            "band": ("The Lanterns", "a Fado trio", "Kora Moon", "the Velvet Rooks"),
            "hall": ("the Apollo", "a barn outside town", "the botanical garden"),
            "gift": ("a drumstick", "a signed poster", "the set list"),
        },
        "Mind blown: I saw {band} live at {hall} {when}, we stood right in front.",
        "Where did {who} see {band}?",
        "{hall}",
        (
            (
                "Lucky you! Did you get anything to remember it?",
                "The bass player handed me {gift}, it hangs above my desk now.",
                "What did {who} get from the bass player?",
                "{gift}",
            ),
        ),
        "live music",
    ),
    Topic(
        {
            "car": ("a used camper van", "an electric scooter", "my uncle's tractor"),
            "fault": ("the gearbox", "the left indicator", "a battery that won't charge"),
            "mech": ("Stanislav", "the garage behind the church", "my friend Bee"),
            "cost": ("740", "2,300", "315"),
        },
        "I bought {car} {when}, don't ask me what I was thinking, it was love.",
        "Which vehicle did {who} buy?",
        "{car}",
        (
            (
                "Haha, does it run?",
                "It runs except for {fault}, which gave up in the tunnel of all places.",
                "What broke on the vehicle that {who} bought?",
                "{fault}",
            ),
            (
                "Who is going to mend it?",
                "{mech} repairs it for {cost} euros, parts not counted.",
                "How much does {who} pay for the repair?",
                "{cost}",
            ),
        ),
        "things with wheels",
    ),
    Topic(
        {
            "cause": ("a soup kitchen", "the hospice", "a bike workshop for refugees"),
            "day": ("every Thursday", "twice a month", "on Sunday mornings"),
            "person": ("a retired sailor", "a boy from Eritrea", "a former judge"),
        },
        "I started volunteering at {cause} {when}, {day} from now on.",
        "Where does {who} volunteer?",
        "{cause}",
        (
            (
                "That's wonderful of you. Who do you meet there?",
                "There is {person} who told me his whole life while we were washing up.",
                "Whom did {who} meet while volunteering?",
                "{person}",
            ),
        ),
        "giving something back",
    ),
    Topic(
        {
            "rel": ("my sister Joan", "my best friend Ari", "my cousin Bruno"),
            "venue": ("a lighthouse", "the town hall", "a vineyard in Rioja"),
            "task": ("bake the cake", "give the speech", "drive the old Citroën"),
            "date": ("August 19", "the 7th of October", "New Year's Eve"),
        },
        "{rel} is getting married! They told us {when}, at {venue} of all places.",
        "Where does {rel} get married?",
        "{venue}",
        (
            (
                "How lovely! When is the big day?",
                "It's on {date}, so there's not much time to lose weight.",
                "When is the wedding of {rel}?",
                "{date}",
            ),
            (
                "Do you have a part in it?",
                "They want me to {task}, which I have never done in my life.",
                "What is {who} to do at the wedding?",
                "{task}",
            ),
        ),
        "celebrating with family",
    ),
)
