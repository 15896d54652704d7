"""What a rewind says of older messages, where what is stored with it moves them as well."""

from __future__ import annotations

from contextengine_server.context.extension import EntryFacts, Extension
from contextengine_server.session.append import changed_facts
from contextengine_server.session.rewind.rewind import moved_facts
from contextengine_server.store.rows import Facts
from contextengine_server.testing.engine.views import entries_of
from tests.unit.context.test_fold import rows

REWOUND = [Facts(1, 0, 0, None), Facts(2, 1, 10, None), Facts(4, 2, 25, None), Facts(5, 2, None, 1)]


def test_what_came_late_moves_what_begins_behind_it() -> None:
    change = Extension((), shifts=[(1, 3), (2, -1)])
    assert moved_facts(REWOUND, [], change) == [
        Facts(1, 0, 0, None),
        Facts(2, 1, 13, None),
        Facts(4, 2, 27, None),
        Facts(5, 2, None, 1),
    ]
    assert moved_facts(REWOUND, [], None) == REWOUND
    assert moved_facts(REWOUND, [], Extension(())) == REWOUND


def test_what_is_changed_again_is_left_to_that() -> None:
    later = [Facts(2, 9, 90, None)]
    assert moved_facts(REWOUND, later, Extension((), shifts=[(1, 3)])) == [
        Facts(1, 0, 0, None),
        Facts(4, 2, 28, None),
        Facts(5, 2, None, 1),
    ]


def test_of_older_messages_alone_the_facts_are_changed() -> None:
    [_, new] = entries_of(rows("u u"))
    facts = {
        3: EntryFacts(3, 1, 10, None),
        1: EntryFacts(1, 0, None, 4),
        new.sequence: EntryFacts(new.sequence, 2, 20, None),
    }
    assert changed_facts(Extension((), facts=facts), [new]) == [
        Facts(1, 0, None, 4),
        Facts(3, 1, 10, None),
    ]
