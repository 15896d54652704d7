"""Each engine that is installed has a block of settings, declared by the engine, whoever wrote
it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from pydantic import Field

from contextengine_server.config.docs import document
from contextengine_server.config.lint import config_lint
from contextengine_server.config.load import SettingsError, load_settings
from contextengine_server.config.schema import Duration, describe
from contextengine_server.config.settings import Settings, settings_with
from contextengine_server.engines.catalogue import Catalogue
from contextengine_server.engines.legacy import LegacyEngine
from contextengine_server.engines.options import Options
from contextengine_server.engines.registration import Finding, Registration, Surroundings
from contextengine_server.plugins.engines import installed_engines


class Mine(Options):
    keep_steps: int = Field(3, ge=1, le=9, description="What is kept.")
    pause: Duration = Field("1s", validate_default=True, description="How long.")


def findings(options: Mine, beside: Surroundings) -> list[Finding]:
    if options.keep_steps < 9:
        return [Finding("engine.acme/new-one.keepSteps", "is well")]
    return [Finding("engine.acme/new-one.keepSteps", f"of {beside.available}", "Lower it.")]


MINE = Registration("acme/new-one", Mine, LegacyEngine, "plugin:acme", findings)
ENGINES = installed_engines().plus(MINE)


def load(
    text: str = "",
    environ: dict[str, str] | None = None,
    flags: dict[str, Any] | None = None,
    engines: Catalogue = ENGINES,
) -> Settings:
    file = Path("contextengine.yaml")
    file.write_text(text, encoding="utf-8")
    return load_settings(file, flags or {}, environ or {}, engines)


@pytest.fixture(autouse=True)
def in_an_empty_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_without_a_block_an_engine_has_its_defaults() -> None:
    assert load().engine.options("acme/new-one") == Mine()
    assert load().engine.configured().keys() == {
        "compressor",
        "dag",
        "layered",
        "legacy",
        "pipeline",
        "acme/new-one",
    }


def test_a_block_comes_from_a_file_the_environment_and_flags() -> None:
    text = "engine: {acme/new-one: {keepSteps: 4, pause: 5s}}"
    assert load(text).engine.options("acme/new-one") == Mine(keep_steps=4, pause="5s")
    environ = {"CONTEXTENGINE_ENGINE__ACME_NEW_ONE__KEEP_STEPS": "5"}
    assert load(text, environ).engine.options("acme/new-one").keep_steps == 5
    flags = {"engine.acme/new-one.keepSteps": 6}
    assert load(text, environ, flags).engine.options("acme/new-one").keep_steps == 6


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "engine: {acme/new-one: {keepSteps: 10}}",
            "engine.acme/new-one.keepSteps: must be at least 1 and at most 9, got 10",
        ),
        (
            "engine: {acme/new-one: {keepStep: 1}}",
            (
                "engine.acme/new-one.keepStep: is not a known name; did you mean"
                " engine.acme/new-one.keepSteps?"
            ),
        ),
        (
            "engine: {acme/new-one: 3}",
            "engine.acme/new-one: must be a mapping of names to values, got 3",
        ),
        (
            "engine: {lagacy: {}}",
            (
                "engine.lagacy: is not an installed engine: acme/new-one, compressor, dag,"
                " layered, legacy, pipeline; did you mean engine.legacy?"
            ),
        ),
        (
            "engine: {layers: {a: 1}}",
            "engine.layers: is not an installed engine: acme/new-one, compressor, dag, layered,"
            " legacy, pipeline; did you mean engine.layered?",
        ),
    ],
)
def test_what_is_wrong_is_said_in_the_same_words(text: str, said: str) -> None:
    with pytest.raises(SettingsError) as caught:
        load(text)
    assert str(caught.value) == f"{said} (in contextengine.yaml)"


def test_a_group_of_an_engines_own_is_no_former_name() -> None:
    """The dag once named summarizers under `compaction`; what another engine has there is its
    own."""
    text = "engine: {layered: {compaction: {strategy: hybrid}, compactionModel: small}}"
    environ = {"CONTEXTENGINE_ENGINE__LAYERED__COMPACTION__MAX_TOKENS": "9000"}
    settings = load(text, environ)
    compaction = settings.engine.options("layered").compaction
    assert (compaction.strategy, compaction.max_tokens) == ("hybrid", 9_000)
    assert settings.summarizer.model == "small"
    former = "compaction: {summarizerFallbackProviders: [small]}"
    assert load(f"engine: {{dag: {{{former}}}}}").summarizer.fallbacks == ("small",)
    with pytest.raises(SettingsError, match="is not a known name"):
        load(f"engine: {{layered: {{{former}}}}}")


def test_the_block_of_an_engine_that_was_refused_stops_nothing() -> None:
    """A plugin that is broken must not keep the server of those who do not choose it down."""
    broken = installed_engines().tried(Registration("new", dict, LegacyEngine, "plugin:x"))  # type: ignore[arg-type]
    settings = load("engine: {new: {whatever: [1]}}", engines=broken)
    assert settings.engine.configured().keys() == {
        "compressor",
        "dag",
        "layered",
        "legacy",
        "pipeline",
    }


@pytest.mark.parametrize("engine_id", ["copy", "json", "options", "catalogue", "model_x"])
def test_any_id_may_have_a_block(engine_id: str) -> None:
    """Names that every model has, too."""
    mine = Registration(engine_id, Mine, LegacyEngine, "plugin:x")
    settings = load(f"engine: {{{engine_id}: {{keepSteps: 7}}}}", engines=Catalogue((mine,)))
    assert settings.engine.options(engine_id).keep_steps == 7


def test_an_engines_checks_are_among_those_of_the_settings() -> None:
    name = "engine.acme/new-one.keepSteps"
    found = {one.name: one for one in config_lint(load())}
    assert (found[name].status, found[name].advice) == ("ok", "")
    found = {one.name: one for one in config_lint(load(f"engine: {{{MINE.id}: {{keepSteps: 9}}}}"))}
    assert (found[name].status, found[name].found) == ("warning", "of 81408")


def test_blocks_are_documented_as_groups_of_ours_are() -> None:
    docs = {doc.path: doc for doc in describe(settings_with(ENGINES))}
    option = docs["engine.acme/new-one.pause"]
    assert (option.type, option.default, option.description) == ("duration", '"1s"', "How long.")
    assert "acme/new-one" not in document(), "the page lists ours"


def test_checks_that_raise_stop_nothing() -> None:
    """They run before every start, whichever engine is chosen."""

    def raises(options: Mine, beside: Surroundings) -> list[Finding]:
        raise LookupError("the password is swordfish")

    engines = installed_engines().plus(replace(MINE, findings=raises))
    found = {check.name: check for check in config_lint(load(engines=engines))}
    check = found["engine.acme/new-one"]
    assert (check.status, check.found) == (
        "warning",
        "the checks of its options failed: LookupError",
    )
    assert "plugin:acme" in check.advice
    assert found["budget"].status == "ok", "other checks are not concerned"
