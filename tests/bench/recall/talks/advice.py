"""What a user asks an assistant for, with the facts of a life in it, and what the assistant answers
at length.

Slots and halves are as in `friends`.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Matter:
    """What a user comes back to over a long talk."""

    slots: dict[str, tuple[str, ...]]
    asks: tuple[tuple[str, str, str], ...]
    """What the user says, a question about it, the answer. `{old}` of an update is a slot too."""
    told: tuple[str, str, str]
    """A tip of the assistant's with a fact, a question about it, the answer."""
    nouns: tuple[str, ...]
    """What its answers are about."""


MATTERS: tuple[tuple[Matter, ...], ...] = (
    (
        Matter(
            {
                "n": ("38", "52", "64"),
                "date": ("May 14", "June 2", "October 21"),
                "new": ("May 28", "June 19", "November 3"),
                "venue": ("the Boathouse", "Hotel Corvin", "my aunt's orchard"),
                "sum": ("$4,200", "$6,750", "$3,900"),
                "who": ("my partner Alexis", "my brother Kwame", "my flatmate June"),
                "firm": ("Bellini Catering", "Fig & Thyme", "Copper Spoon"),
            },
            (
                (
                    "I'm planning a party for {who}, with {n} guests, on {date} at {venue}. I've"
                    " never done anything like it and I'm kind of nervous about the order of"
                    " things. Can you help me with a plan of what to do when?",
                    "How many guests does the user plan the party for?",
                    "{n}",
                ),
                (
                    "Thanks! My budget is {sum} in total, and I've spent a quarter of it on the"
                    " room already. How should I split up the rest between food, music and"
                    " decoration?",
                    "What is the user's budget for the party?",
                    "{sum}",
                ),
                (
                    "Small change: {venue} called and the party has to move from {date} to {new}."
                    " Would you adjust the timeline accordingly? I also want to know how to tell"
                    " everybody without annoying them.",
                    "To which day was the party moved?",
                    "{new}",
                ),
            ),
            (
                "For the food I'd go with {firm}, which is known for serving mixed groups well.",
                "Which caterer did the assistant suggest?",
                "{firm}",
            ),
            ("timeline", "guest list", "seating", "playlist", "menu", "lighting", "invitation"),
        ),
        Matter(
            {
                "v": ("3.9", "3.11", "3.12"),
                "db": ("PostgreSQL 15", "SQLite", "MariaDB 10.6"),
                "port": ("8081", "5050", "9443"),
                "ms": ("1,850", "920", "3,400"),
                "goal": ("250 ms", "400 ms", "150 ms"),
                "app": ("InvoiceHub", "a recipe tracker called Saffron", "a booking site"),
                "lib": ("asyncpg", "httpx", "structlog"),
            },
            (
                (
                    "I'm building {app} with Flask on Python {v} and {db}, and I run it on port"
                    " {port}. I'm trying to set up the login with sessions but I keep getting"
                    " redirected in a loop. Can you review what I could be doing wrong?",
                    "On which port does the user run the app?",
                    "{port}",
                ),
                (
                    "ok that worked, thanks. Now my dashboard takes {ms} ms to load with about"
                    " 10k rows, I need it to be under {goal}. what would you do first?",
                    "How fast is the dashboard to load in the end?",
                    "{goal}",
                ),
                (
                    "I decided to drop the ORM for the reports and write plain queries, because"
                    " the joins were unreadable. How do I test those without touching {db}?",
                    "Why did the user drop the ORM for the reports?",
                    "joins were unreadable",
                ),
            ),
            (
                "The library {lib} fits here better than what you use now, mostly for its"
                " defaults.",
                "Which library did the assistant say fits better?",
                "{lib}",
            ),
            ("session", "query", "index", "cache", "endpoint", "migration", "test", "config"),
        ),
        Matter(
            {
                "kg": ("84", "71", "96"),
                "age": ("34", "47", "58"),
                "allergy": ("peanuts", "shellfish", "soy"),
                "days": ("three", "four", "five"),
                "gym": ("Ironworks on 5th", "the campus gym", "a garage with one kettlebell"),
                "lift": ("62.5", "45", "80"),
                "time": ("6:15", "5:40", "21:30"),
            },
            (
                (
                    "I'm {age}, I weigh {kg} kg and I can train {days} days a week at {gym}. I"
                    " have no idea how to begin after ten years at a desk. What would a sensible"
                    " first month look like?",
                    "How much does the user weigh?",
                    "{kg}",
                ),
                (
                    "I should have said that I'm allergic to {allergy}. Could you suggest what to"
                    " eat after training with that in mind, nothing that needs an oven?",
                    "What is the user allergic to?",
                    "{allergy}",
                ),
                (
                    "Update: I squat {lift} kg now and I go at {time} since the place is empty"
                    " then. My lower back feels tight afterwards though. Is that normal and what"
                    " should I change?",
                    "At what time does the user train?",
                    "{time}",
                ),
            ),
            (
                "A pace that suits you is a deload after every {days} weeks of progress.",
                "After how many weeks did the assistant advise a deload?",
                "{days}",
            ),
            ("warm-up", "recovery", "protein", "sleep", "mobility", "routine", "progress"),
        ),
    ),
    (
        Matter(
            {
                "car": ("2016 Honda Fit", "2019 Skoda Octavia", "2012 Volvo V60"),
                "km": ("143,000", "88,500", "201,000"),
                "quote": ("$1,380", "$870", "$2,150"),
                "shop": ("Delgado Motors", "the dealer in Lund", "Twin Oaks Garage"),
                "noise": ("a grinding noise", "a whistle", "a rattle"),
                "speed": ("70", "110", "90"),
                "part": ("the wheel bearing", "a heat shield", "the alternator belt"),
            },
            (
                (
                    "My car is a {car} with {km} km on it and it makes {noise} above {speed} km/h."
                    " I don't know much about cars and I'd rather not be ripped off. What could"
                    " it be and what should I ask the mechanic?",
                    "At what speed does the user's car make a noise?",
                    "{speed}",
                ),
                (
                    "{shop} wants {quote} to fix it. Does that sound reasonable or should I get a"
                    " second opinion? I need the car for a trip soon.",
                    "How much does {shop} want for the repair?",
                    "{quote}",
                ),
                (
                    "I went elsewhere in the end, to a friend of my father's, who did it in an"
                    " hour for a crate of beer. How do I keep it from happening again?",
                    "Who repaired the user's car in the end?",
                    "friend of my father's",
                ),
            ),
            (
                "From what you describe the most likely suspect is {part}, which wears with age.",
                "What did the assistant suspect to be broken?",
                "{part}",
            ),
            ("brakes", "tires", "suspension", "estimate", "warranty", "oil", "alignment"),
        ),
        Matter(
            {
                "title": ("The Glass Harbor", "Nine Winters", "Salt in the Wound"),
                "hero": ("Maren", "Ilya", "Captain Dunne"),
                "words": ("42,000", "61,500", "18,300"),
                "agent": ("Harriet Boyle", "the Lindqvist agency", "Paolo Serra"),
                "due": ("February 9", "the end of March", "April 30"),
                "year": ("1911", "1847", "2091"),
                "prize": ("Bridport", "Costa", "Bollinger"),
            },
            (
                (
                    "I'm writing a novel, {title}, set in {year}, about {hero} who returns to an"
                    " island to sell a house. I've got {words} words and I'm stuck in the middle."
                    " How do I find out what the second act needs?",
                    "In which year is the user's novel set?",
                    "{year}",
                ),
                (
                    "Good news, {agent} asked for the first fifty pages by {due}! I'm thrilled and"
                    " terrified. How should I revise the opening in that time?",
                    "Who asked for the first pages of the novel?",
                    "{agent}",
                ),
                (
                    "I changed my mind about {hero}: the house is not sold but burned down, and"
                    " nobody learns who did it. What does this mean for the ending?",
                    "What happens to the house in the user's novel after the change?",
                    "burned down",
                ),
            ),
            (
                "Among the competitions for first novels the {prize} is the one to send it to.",
                "Which prize did the assistant name for the novel?",
                "{prize}",
            ),
            ("scene", "conflict", "dialogue", "pacing", "voice", "chapter", "motif", "stakes"),
        ),
        Matter(
            {
                "rent": ("$1,640", "€980", "$2,310"),
                "pay": ("$58,000", "€41,200", "$76,500"),
                "debt": ("$12,400", "€7,800", "$21,000"),
                "rate": ("6.8", "4.25", "19.9"),
                "bank": ("Union Credit", "Sparda", "Harborview"),
                "save": ("$350", "€200", "$600"),
                "fund": ("a world index fund", "treasury notes", "a ladder of deposits"),
            },
            (
                (
                    "I earn {pay} a year before taxes, my rent is {rent} and I owe {debt} on a"
                    " loan at {rate} percent. I feel like I never get ahead. How would you go"
                    " about a monthly budget for somebody like me?",
                    "What does the user pay in rent?",
                    "{rent}",
                ),
                (
                    "That makes sense. I opened an account with {bank} and put {save} aside each"
                    " month by standing order. Is that enough, and what comes after the emergency"
                    " fund?",
                    "With which bank did the user open an account?",
                    "{bank}",
                ),
                (
                    "My landlord raised the rent, so from now on it's 9 percent more than the"
                    " {rent} that I told you. Should I renegotiate or move? I'm attached to the"
                    " neighborhood.",
                    "By how much did the landlord raise the rent?",
                    "9 percent",
                ),
            ),
            (
                "Once that stands, {fund} would be my choice for the years ahead.",
                "In what did the assistant advise to invest?",
                "{fund}",
            ),
            ("expenses", "interest", "savings", "subscription", "insurance", "goal", "tracker"),
        ),
    ),
)

LEADS = (
    ("Certainly! Here's a structured approach to your {noun} and everything around it.",
     "Great question! Let's break it down step by step, beginning with the {noun}.",
     "Absolutely, I'd be happy to help. Below is an overview with the key considerations."),
    ("Of course! Here are several things to keep in mind about the {noun}.",
     "That's a common situation. Here is how I would approach it, in order of importance.",
     "Congratulations on getting this far! Let's look at the options you have."),
)  # fmt: skip

CODE = """```python
@app.route("/{noun}/<int:id>", methods=["GET", "POST"])
def show_{noun}(id):
    item = db.session.get({Noun}, id)
    if item is None:
        abort(404)
    return render_template("{noun}.html", item=item, limit={k})
```"""

CLOSINGS = (
    ("Let me know if you'd like me to go deeper into any of these points!",
     "Would you like a template for the {noun} that you can fill in?"),
    ("I hope this helps! Feel free to share more details about the {noun}.",
     "If you tell me more about your constraints, I can tailor these suggestions further."),
)  # fmt: skip

CHATTER = (
    ("Sure, that makes sense. Can you explain the part about the {noun} in more detail?",
     "hmm ok, but what if the {noun} doesn't work out the way we said?"),
    ("Thanks, great. What about the {noun}, is there anything else that I'm missing?",
     "Could you give me a few examples for the {noun}? I'm more of a visual learner."),
)  # fmt: skip
