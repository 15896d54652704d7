"""What an engine says of itself, and what it is registered with."""

from __future__ import annotations

from hypothesis import given
from msgspec.structs import replace

from contextengine_server.config.schema import describe, parse
from contextengine_server.context.budget import ReferenceTokens
from contextengine_server.engines.catalogue import Catalogue
from contextengine_server.engines.registration import Surroundings
from contextengine_server.engines.registry import Registry
from contextengine_server.recall.model_tools.definitions import TOOLS

from .case import EngineCase
from .random_trials import compacted
from .trial import Trial


class ContractCases(EngineCase):
    """The facts, the options and the tools."""

    def test_it_can_be_registered(self) -> None:
        """And makes an engine of every variant that has all of the contract."""
        registration = replace(self.registration, owner="plugin:suite")
        registry = Registry(Catalogue().plus(registration))
        assert registry.configured(registration.id).id == registration.id
        for variant in self.variants:
            registry.engine(registration.id, registration.options(**variant))
        assert list(registry.unusable()) == []

    def test_its_options_can_be_read_and_are_described(self) -> None:
        """By their published names and by their Python names; each says what it means."""
        declared = self.registration.options
        for variant in self.variants:
            options = declared(**variant)
            for by_alias in (True, False):
                written = options.model_dump(mode="json", by_alias=by_alias)
                assert parse(declared, written) == options
        for doc in describe(declared):
            assert doc.description.strip(), f"{doc.path} is not described"

    def test_its_fingerprint_names_its_options(self) -> None:
        """Equal options have an equal one; others have another, for the epoch."""
        marks = [engine.fingerprint for engine in self.engines()]
        assert marks == [engine.fingerprint for engine in self.engines()]
        assert len(set(marks)) == len(marks), "options that differ have one fingerprint"

    def test_what_it_says_of_itself_can_be(self) -> None:
        """Its facts are in their ranges, and its tools are tools of recall."""
        for engine in self.engines():
            assert engine.name.strip()
            assert engine.version.strip()
            assert 0 <= engine.threshold <= 1
            assert engine.declared.tail_steps >= 0
            assert engine.chunk is None or engine.chunk > 0
            assert engine.summary_tokens > 0
            assert set(engine.tools.names) <= set(TOOLS)
            assert engine.tools.page_tokens is None or engine.tools.page_tokens > 0
            for less, more in ((0, 1_000), (1_000, 100_000)):
                near, far = (engine.reach(ReferenceTokens(cell)) for cell in (less, more))
                assert far is None or (near is not None and 0 <= near <= far)

    def test_fewer_summaries_need_no_more_words(self) -> None:
        """Room is kept for what is said of all summaries of a view."""

        @self.search
        @given(compacted())
        def holds(one: Trial) -> None:
            summaries = one.view.summaries
            for engine in self.engines():
                said = [len(engine.addition(summaries[at:])) for at in range(len(summaries) + 1)]
                assert said == sorted(said, reverse=True)
                assert engine.addition(summaries) == engine.addition(
                    [replace(summary) for summary in summaries]
                )

        holds()

    def test_its_checks_name_settings_and_say_what_to_do(self) -> None:
        """What `doctor` shows of its options."""
        if self.registration.findings is None:
            return
        beside = Surroundings(80_000, {"summarizer.endpoints[0].window": 8_000})
        for engine in self.engines():
            for finding in self.registration.findings(engine.options, beside):
                group = finding.setting.startswith(
                    (f"engine.{self.registration.id}.", "summarizer.")
                )
                assert group, f"{finding.setting} is no setting of this engine"
                assert finding.found.strip()
