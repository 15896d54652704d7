"""The language that somebody writes in, by its script, and only where the script tells it."""

from __future__ import annotations

import pytest

from contextengine_server.summarize.language import MAX_CHARS, language_of, written_in

JA = "ビルドが失敗しました。設定を直してください。"
ZH = "构建失败了，请修复配置文件。"
KO = "빌드가 실패했습니다. 설정을 고쳐 주세요."
CODE = "def main(argv: list[str]) -> int:\n    return run(argv)\n"


@pytest.mark.parametrize(
    ("text", "tag"),
    [
        (JA, "ja"),
        (ZH, "zh"),
        (KO, "ko"),
        ("สร้างไม่สำเร็จ โปรดแก้ไข", "th"),
        ("Η κατασκευή απέτυχε", "el"),
        ("הבנייה נכשלה", "he"),
        ("The build failed.", ""),
        ("Die Größe stimmt nicht, daß weiß ich.", ""),
        ("Сборка не удалась.", ""),
        ("فشل البناء", ""),
        ("", ""),
        ("12345 -- !!", ""),
        ("½ ✓ 🎉", ""),
    ],
)
def test_a_script_that_one_language_has_to_itself_tells_it(text: str, tag: str) -> None:
    assert language_of([text]) == tag


def test_code_and_logs_beside_it_do_not_hide_it() -> None:
    assert language_of([JA, CODE]) == "ja"
    assert language_of([ZH, CODE]) == "zh"
    assert language_of([f"see 東京 {CODE * 20}"]) == ""


def test_han_with_kana_is_japanese() -> None:
    assert language_of(["設定変更完了。構築失敗を修正した。"]) == "ja"
    assert language_of([ZH + "の"]) == "zh"  # one kana in a Chinese sentence is a quotation


def test_only_the_beginning_is_looked_at() -> None:
    assert language_of(["x" * MAX_CHARS, JA * 10_000]) == ""
    assert language_of([JA * 10_000]) == "ja"


def test_whether_a_summary_is_in_it() -> None:
    assert written_in(JA, "ja")
    assert written_in(ZH, "ja")  # Han alone may be Japanese
    assert not written_in("The build failed.", "ja")
    assert not written_in(JA, "ko")
    assert written_in("The build failed.", "")
    assert written_in("The build failed.", "de")
