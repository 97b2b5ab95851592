"""Tables as people have them: each kind in several forms is read as the person who made it means it."""

# ruff: noqa: E501 - a kind a line

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Sequence
from xml.sax.saxutils import escape

import pytest

from app.sapo.sets.checks import Check, Rule, guess_rule, normalise, score_answer
from app.sapo.sets.columns import Chosen
from app.sapo.sets.grid import read_grid
from app.sapo.sets.question_set import QuestionSet, Row, SetError, family, near_duplicate_key
from app.sapo.sets.tables import SkipReason, _drawn, clean_cell, preview, skip_reasons

Pair = tuple[str, str]
Rows = Sequence[Sequence[str]]

ENGLISH: list[Pair] = [
    ("Where is my parcel?", "delivery"), ("I can't sign in any more.", "access"),
    ("The kettle arrived broken, please refund me.", "returns"), ("It has been a week; nothing came.", "delivery"),
    ("My password has expired.", "access"), ("I want to send back these shoes.", "returns"),
    ("The courier left it in the rain!", "delivery"), ("The code by text message never arrives.", "access"),
    ("Please change my address.", "delivery"), ("Wrong size, I'd like another one.", "returns"),
]  # fmt: skip
RUSSIAN: list[Pair] = [
    ("Где моя посылка, жду неделю?", "доставка"), ("Верните деньги за товар", "возврат"),
    ("Не могу войти в кабинет", "доступ"), ("Курьер не приехал", "доставка"), ("Пароль истёк", "доступ"),
    ("Хочу вернуть обувь", "возврат"), ("Заказ опоздал", "доставка"), ("Код не приходит", "доступ"),
]  # fmt: skip
POLISH: list[Pair] = [
    ("Gdzie jest moja paczka, minął już tydzień?", "wysyłka"), ("Proszę o zwrot pieniędzy", "zwrot"),
    ("Hasło wygasło, nie mogę się zalogować", "dostęp"), ("Kurier nie przyjechał", "wysyłka"),
    ("Źle działające żelazko", "zwrot"), ("Kod nie przychodzi", "dostęp"), ("Brak przesyłki", "wysyłka"),
    ("Chcę odesłać buty", "zwrot"),
]  # fmt: skip
CHINESE: list[Pair] = [
    ("我的包裹在哪里?已经等了一个星期", "物流"), ("我要退款因为商品坏了", "退货"), ("忘记密码无法登录", "账户"),
    ("快递员没有来", "物流"), ("收不到验证码", "账户"), ("我想退回这双鞋", "退货"), ("请修改收货地址", "物流"),
    ("尺码不对", "退货"),
]  # fmt: skip
JAPANESE: list[Pair] = [
    ("荷物はどこですか。もう一週間待っています", "配送"), ("商品が壊れています。返金してください", "返品"),
    ("パスワードを忘れてログインできません", "アカウント"), ("配達員が来ませんでした", "配送"),
    ("コードが届きません", "アカウント"), ("靴を返したいです", "返品"), ("住所を変更してください", "配送"),
    ("サイズが違います", "返品"),
]  # fmt: skip
CARDS: list[Pair] = [
    ("Mitosis", "Division of a cell into two that are alike"), ("Osmosis", "Flow of water through a membrane"),
    ("Enzyme", "Protein that speeds a reaction up"), ("Allele", "One of several forms of a gene"),
    ("Habitat", "Place in which a species lives"), ("Meiosis", "Division that halves the chromosomes"),
    ("Vector", "Carrier of a disease or a gene"), ("Biome", "Large region with the same climate"),
]  # fmt: skip


def csv_of(rows: Rows, mark: str = ",", quotes: bool = True, end: str = "\n") -> str:
    def cell(text: str) -> str:
        hard = quotes and any(one in text for one in (mark, '"', "\n"))
        return '"' + text.replace('"', '""') + '"' if hard else text

    return "".join(mark.join(map(cell, row)) + end for row in rows)


def xlsx(rows: Rows, first: int = 1) -> bytes:
    """A workbook as a spreadsheet program writes it, with the texts in the cells."""
    cells = "".join(
        f'<row r="{at}">'
        + "".join(
            f'<c r="{chr(65 + place)}{at}" t="inlineStr"><is><t>{escape(text)}</t></is></c>'
            for place, text in enumerate(row)
        )
        + "</row>"
        for at, row in enumerate(rows, first)
    )
    main = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
    office = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
    kinds = "http://schemas.openxmlformats.org/package/2006"
    return packed(
        {
            "[Content_Types].xml": f'<Types xmlns="{kinds}/content-types"><Default Extension="xml" '
            'ContentType="application/xml"/></Types>',
            "_rels/.rels": f'<Relationships xmlns="{kinds}/relationships"><Relationship Id="r1" '
            f'Type="{office}/officeDocument" Target="xl/workbook.xml"/></Relationships>',
            "xl/_rels/workbook.xml.rels": f'<Relationships xmlns="{kinds}/relationships"><Relationship Id="r1" '
            f'Type="{office}/worksheet" Target="worksheets/sheet1.xml"/></Relationships>',
            "xl/workbook.xml": f'<workbook xmlns="{main}" xmlns:r="{office}"><sheets>'
            '<sheet name="Mails" sheetId="1" r:id="r1"/></sheets></workbook>',
            "xl/worksheets/sheet1.xml": f'<worksheet xmlns="{main}"><sheetData>{cells}</sheetData></worksheet>',
        }
    )


def ods(rows: Rows) -> bytes:
    lines = "".join(
        "<table:table-row>"
        + "".join(
            f'<table:table-cell office:value-type="string"><text:p>{escape(text)}</text:p></table:table-cell>'
            for text in row
        )
        + "</table:table-row>"
        for row in rows
    )
    name = "urn:oasis:names:tc:opendocument:xmlns"
    content = (
        f'<office:document-content xmlns:office="{name}:office:1.0" xmlns:table="{name}:table:1.0" '
        f'xmlns:text="{name}:text:1.0"><office:body><office:spreadsheet><table:table table:name="S">{lines}'
        '<table:table-row table:number-rows-repeated="1048000"><table:table-cell '
        'table:number-columns-repeated="16384"/></table:table-row></table:table></office:spreadsheet>'
        "</office:body></office:document-content>"
    )
    kind = "application/vnd.oasis.opendocument.spreadsheet"
    manifest = f'<manifest:manifest xmlns:manifest="{name}:manifest:1.0"/>'
    return packed({"mimetype": kind, "content.xml": content, "META-INF/manifest.xml": manifest})


def packed(parts: dict[str, str]) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in parts.items():
            archive.writestr(name, text)
    return file.getvalue()


def with_ids(rows: Sequence[Pair]) -> list[tuple[str, ...]]:
    return [(str(n), *row) for n, row in enumerate(rows, 1)]


CHOICES = [(f"Which number is {n}?", str(n + 1), str(n), str(n + 2), str(n + 3), "B") for n in range(4, 12)]
CHOSEN = [(f"{q}\nA: {a}\nB: {b}\nC: {c}\nD: {d}", right) for q, a, b, c, d, right in CHOICES]
ALPACA = [
    {"instruction": "Sort this mail.", "input": text if n % 2 else "", "output": label}
    | ({} if n % 2 else {"instruction": f"Sort: {text}"})
    for n, (text, label) in enumerate(ENGLISH)
]
ALPACA_READ = [
    (f"Sort this mail.\n{text}" if n % 2 else f"Sort: {text}", label) for n, (text, label) in enumerate(ENGLISH)
]


def chats(list_name: str, role: str, said: str, user: str, other: str) -> list[object]:
    return [
        {
            "id": n,
            list_name: [{role: "system", said: "Be kind."}, {role: user, said: q}, {role: other, said: a}],
        }
        for n, (q, a) in enumerate(ENGLISH)
    ]


def squad(rows: Sequence[Pair]) -> object:
    return {
        "version": "1.1",
        "data": [
            {
                "title": "T",
                "paragraphs": [
                    {
                        "context": f"Text {n}.",
                        "qas": [{"id": f"x{n}", "question": q, "answers": [{"text": a, "answer_start": 0}]}],
                    }
                ],
            }
            for n, (q, a) in enumerate(rows)
        ],
    }


SQUAD_READ = [(f"Text {n}.\n{q}", a) for n, (q, a) in enumerate(CARDS)]
SWAPPED = [(a, q) for q, a in ENGLISH]
BANG = [(q.replace(",", ";"), a) for q, a in ENGLISH]


def md(rows: Rows) -> str:
    lines = ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join([lines[0], "|---" * len(rows[0]) + "|", *lines[1:]]) + "\n"


def lines_of(items: Sequence[object]) -> str:
    return "\n".join(json.dumps(item, ensure_ascii=False) for item in items)


KINDS: dict[str, tuple[str | bytes, list[Pair]]] = {
    # names in other words
    "heading Betreff;Ordner": (csv_of([("Betreff", "Ordner"), *ENGLISH], ";"), ENGLISH),
    "heading Questions,Answers": (csv_of([("Questions", "Answers"), *CARDS]), CARDS),
    "heading pregunta;respuesta": (csv_of([("pregunta", "respuesta"), *ENGLISH], ";"), ENGLISH),
    "heading Term,Definition": (csv_of([("Term", "Definition"), *CARDS]), CARDS),
    "heading вопрос,ответ": (csv_of([("вопрос", "ответ"), *RUSSIAN]), RUSSIAN),
    # above the table
    "sep=;": ("sep=;\n" + csv_of([("id", "frage", "antwort"), *with_ids(ENGLISH)], ";"), ENGLISH),
    "sep=, and CRLF": ("sep=,\r\n" + csv_of([("Text", "Label"), *ENGLISH], end="\r\n"), ENGLISH),
    "title": ("Mails of May\n" + csv_of([("Text", "Label"), *ENGLISH]), ENGLISH),
    "title and blank line": ("Mails of May,\n,\n" + csv_of([("Subject", "Folder"), *ENGLISH]), ENGLISH),
    "blank lines": ("\n\n\n" + csv_of([("Subject", "Folder"), *ENGLISH]), ENGLISH),
    # label first, more columns
    "label first, named": (csv_of([("label", "text"), *SWAPPED]), ENGLISH),
    "label first, v1,v2,,,": (csv_of([("v1", "v2", "", "", ""), *[(*r, "", "", "") for r in SWAPPED]]), ENGLISH),
    "label first, no names": (csv_of(SWAPPED, "\t"), ENGLISH),
    "label first, foreign names": (csv_of([("Rubrik", "Nachricht"), *SWAPPED], ";"), ENGLISH),
    "ids and no names": (csv_of(with_ids(ENGLISH), "\t"), ENGLISH),
    # for models
    "Alpaca JSON": (json.dumps(ALPACA), ALPACA_READ),
    "Alpaca JSON lines": (lines_of(ALPACA), ALPACA_READ),
    "ShareGPT": (json.dumps(chats("conversations", "from", "value", "human", "gpt")), ENGLISH),
    "ShareGPT lines": (lines_of(chats("conversations", "from", "value", "human", "gpt")), ENGLISH),
    "OpenAI messages": (lines_of(chats("messages", "role", "content", "user", "assistant")), ENGLISH),
    # multiple choice
    "A, B, C, D, Correct": (csv_of([("Question", "A", "B", "C", "D", "Correct"), *CHOICES]), CHOSEN),
    "a;b;c;d;answer": (csv_of([("question", "a", "b", "c", "d", "answer"), *CHOICES], ";"),
                       [(q.replace("\nA", "\na").replace("\nB", "\nb").replace("\nC", "\nc").replace("\nD", "\nd"), a)
                        for q, a in CHOSEN]),
    "choices in XLSX": (xlsx([("Question", "A", "B", "C", "D", "Correct"), *CHOICES]), CHOSEN),
    # Anki
    "Anki": ("#separator:tab\n#html:true\n#tags column:3\n"
             + "".join(f"{q}<br>\t<b>{a}</b>\tbio\n" for q, a in CARDS), CARDS),
    "Anki semicolon": ("#separator:Semicolon\n#html:false\n" + csv_of(CARDS, ";"), CARDS),
    "Anki with columns": ("#separator:tab\n#html:true\n#columns:Front\tBack\tTags\n#tags column:3\n"
                          + "".join(f"{q}\t{a} &amp; more\tbio\n" for q, a in CARDS),
                          [(q, f"{a} & more") for q, a in CARDS]),
    "Anki with deck and guid": ("#separator:tab\n#html:true\n#guid column:1\n#notetype column:2\n#deck column:3\n"
                                + "".join(f"g{n}x\tBasic\tBio\t{q}\t{a}\n" for n, (q, a) in enumerate(CARDS)), CARDS),
    "Anki without a head": (csv_of(CARDS, "\t"), CARDS),
    # encodings
    "cp1251": (csv_of([("текст", "метка"), *RUSSIAN], ";").encode("cp1251"), RUSSIAN),
    "KOI8-R": (csv_of([("текст", "метка"), *RUSSIAN], ";").encode("koi8-r"), RUSSIAN),
    "cp1250": (csv_of([("tekst", "etykieta"), *POLISH], ";").encode("cp1250"), POLISH),
    "GBK": (csv_of([("问题", "答案"), *CHINESE]).encode("gbk"), CHINESE),
    "Shift-JIS": (csv_of([("質問", "答え"), *JAPANESE]).encode("shift_jis"), JAPANESE),
    "EUC-JP": (csv_of([("質問", "答え"), *JAPANESE]).encode("euc-jp"), JAPANESE),
    "UTF-16 without a mark": (csv_of([("Text", "Label"), *ENGLISH], "\t").encode("utf-16-le"), ENGLISH),
    "UTF-16 big end first": (csv_of([("текст", "метка"), *RUSSIAN], "\t").encode("utf-16-be"), RUSSIAN),
    "UTF-16 with a mark": (csv_of([("Text", "Label"), *ENGLISH], "\t").encode("utf-16"), ENGLISH),
    # spreadsheets
    "XLSX": (xlsx([("Betreff", "Ordner"), *ENGLISH]), ENGLISH),
    "XLSX with ids": (xlsx([("Nr.", "Betreff", "Ordner"), *with_ids(ENGLISH)]), ENGLISH),
    "XLSX with a title": (xlsx([("Mails",), (), ("Betreff", "Ordner"), *ENGLISH]), ENGLISH),
    "XLSX without names": (xlsx(ENGLISH), ENGLISH),
    "XLSX lower down": (xlsx([("Text", "Label"), *ENGLISH], first=4), ENGLISH),
    "ODS": (ods([("Betreff", "Ordner"), *ENGLISH]), ENGLISH),
    "ODS without names": (ods(ENGLISH), ENGLISH),
    "ODS label first": (ods([("Ordner", "Betreff"), *SWAPPED]), ENGLISH),
    # JSON
    "SQuAD": (json.dumps(squad(CARDS)), SQUAD_READ),
    "SQuAD lines": (lines_of([{"id": f"x{n}", "title": "T", "context": f"Text {n}.", "question": q,
                               "answers": {"text": [a], "answer_start": [0]}} for n, (q, a) in enumerate(CARDS)]),
                    SQUAD_READ),
    "nested JSON lines": (lines_of([{"id": n, "data": {"text": q}, "meta": {"label": a}}
                                    for n, (q, a) in enumerate(ENGLISH)]), ENGLISH),
    "labelling tool": (json.dumps([{"id": n, "data": {"text": q},
                                    "annotations": [{"result": [{"value": {"choices": [a]}}]}]}
                                   for n, (q, a) in enumerate(ENGLISH)]), ENGLISH),
    "{question: answer}": (json.dumps(dict(CARDS)), CARDS),
    "columns in JSON": (json.dumps({"text": [q for q, _ in ENGLISH], "label": [a for _, a in ENGLISH]}), ENGLISH),
    "numbers in JSON": (json.dumps([{"q": f"What is {n}?", "a": 123456.75 + n} for n in range(8)]),
                        [(f"What is {n}?", f"{123456.75 + n}") for n in range(8)]),
    # Markdown
    "Markdown": (md([("Question", "Answer"), *CARDS]), CARDS),
    "Markdown, foreign": (md([("Betreff", "Ordner"), *ENGLISH]), ENGLISH),
    "Markdown under a text": ("# Cards\n\nMy cards.\n\n" + md([("Term", "Definition"), *CARDS]) + "\nEnd.\n", CARDS),
    # cells
    "several lines": (csv_of([("q", "a"), *[(q, f"{a}\nand more") for q, a in CARDS]]),
                      [(q, f"{a}\nand more") for q, a in CARDS]),
    "answers with #": (csv_of([("q", "a"), *[(q, f"#{a}") for q, a in CARDS]]), [(q, f"#{a}") for q, a in CARDS]),
    "answers like formulas": (csv_of([("q", "a"), *[(q, f"=SUM(A{n})") for n, (q, _) in enumerate(CARDS)]]),
                              [(q, f"=SUM(A{n})") for n, (q, _) in enumerate(CARDS)]),
    "answers with @ and +": (csv_of([("q", "a"), *[(q, f"@A{n}") for n, (q, _) in enumerate(CARDS)]]),
                             [(q, f"@A{n}") for n, (q, _) in enumerate(CARDS)]),
    "a cell of 140,000 characters": (csv_of([("text", "label"), *ENGLISH, ("x" * 140_000, "access")]),
                                     [*ENGLISH, ("x" * 6000, "access")]),
}  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_it_is_read_as_its_maker_means_it(kind: str) -> None:
    content, expected = KINDS[kind]
    found = preview(content if isinstance(content, bytes) else content.encode(), "Set")
    assert [(row.question, row.answer) for row in found.made.rows] == expected


def test_sixty_kinds() -> None:
    assert len(KINDS) >= 60


def test_every_guess_can_be_changed() -> None:
    table = csv_of([("id", "subject", "body", "folder", "sender"), *[
        (str(n), f"About {label}", text, label, "ab"[n % 2]) for n, (text, label) in enumerate(ENGLISH)
    ]])  # fmt: skip
    found = preview(table.encode("utf-16-le"), "Set", None, Chosen(text=("Subject", "3"), answer="folder"))
    assert found.made.rows[0] == Row(question="About delivery\nWhere is my parcel?", answer="delivery")
    assert preview(table.encode(), "Set").reading.toss_up  # folder or sender
    assert len(preview(csv_of(ENGLISH).encode(), "Set", None, Chosen(heading=True)).made.rows) == 9
    latin = preview(csv_of(RUSSIAN).encode("cp1251"), "Set", None, Chosen(encoding="latin-1"))
    assert latin.made.rows[0].answer == "доставка".encode("cp1251").decode("latin-1")
    for wrong in (
        Chosen(text=("none",)),
        Chosen(text=("9",)),
        Chosen(encoding="zip"),
        Chosen(answer="2", text=("2",)),
    ):
        with pytest.raises(SetError):
            preview(table.encode(), "Set", None, wrong)


def test_a_table_to_be_labelled_needs_no_answers() -> None:
    texts = "".join(f"{text}\n" for text, _ in ENGLISH)
    assert [row[0] for row in read_grid(texts.encode(), heading=False).rows] == [
        cell for cell, _ in ENGLISH
    ] or len(read_grid(texts.encode()).rows) == 10
    assert read_grid(xlsx([("Mail",), *[(text,) for text, _ in ENGLISH]])).columns == ("Mail",)


def test_unquoted_commas_are_told_and_cut_nothing() -> None:
    table = csv_of([("question", "answer"), *CARDS, ("Hello, world", "x")], quotes=False)
    found = preview(table.encode(), "Set")
    assert len(found.made.rows) == 8 and found.counts == {SkipReason.TOO_WIDE: 1}


def test_why_no_row_can_be_used() -> None:
    found = preview(
        csv_of([("question", "answer"), *[(f"q{n}", "") for n in range(9)], ("x", "y" * 300)]).encode(), "Set"
    )
    assert not found.usable and found.counts == {SkipReason.NO_ANSWER: 9, SkipReason.TOO_LONG: 1}
    assert "no answer (9), too long (1)" in skip_reasons(found)


def test_too_many_rows_are_drawn_from_all_labels() -> None:
    rows = [(n, Row(question=f"q{n}", answer="abc"[n // 2000])) for n in range(6000)] + [
        (6000, Row(question="q", answer="rare"))
    ]
    skipped: list[object] = []
    kept = _drawn(rows, Rule(), skipped, 600)  # type: ignore[arg-type]
    counts = [sum(row.answer == label for _, row in kept) for label in ("a", "b", "c", "rare")]
    assert len(kept) == 600 and len(skipped) == 5401 and counts[3] == 1 and min(counts[:3]) >= 199


def test_signs_and_marks_tell_questions_apart() -> None:
    different = ["8 + 3", "8 - 3", "8 * 3", "3 - 8", "1.5 kg", "15 kg", "\u0915\u093f", "\u0915\u0940", "good \U0001f600", "good \U0001f622"]  # fmt: skip
    assert len({near_duplicate_key(one) for one in different}) == len(different)
    assert near_duplicate_key("8 + 3", 1) == near_duplicate_key("8 - 3", 1)  # as sets of format 1 have it


def test_every_label_is_held_out_and_old_sets_keep_their_split() -> None:
    answers = ["rare"] * 3 + ["usual"] * 97
    made = QuestionSet(
        name="Set",
        rule=guess_rule(answers),
        rows=tuple(Row(question=f"q{n}", answer=a) for n, a in enumerate(answers)),
    )
    one = family(made)
    assert one.held_out is not None and len(one.held_out) == 20
    held = [a for n, a in enumerate(answers) if one.holds_out(one.content_hash(
        {"metadata": {"content": near_duplicate_key(f"q{n}")}}))]  # fmt: skip
    assert held.count("rare") == 1
    old = QuestionSet(name="Set", rule=Rule(), rows=made.rows, format=1)
    assert old.mark == "371e667b5281" and min(family(old).held_out or ()) == 35419127537484


def test_the_constants_share_is_what_the_check_gives_it() -> None:
    rows = tuple(Row(question=f"q{n}", answer=a) for n, a in enumerate(["a | b", "b | c", "b", "d"] * 2))
    assert QuestionSet(name="Set", rule=Rule(check=Check.ONE_OF), rows=rows).constant_share() == (0.75, "b")


@pytest.mark.parametrize(
    ("said", "truth", "same"),
    [("是。", "是", True), ("हाँ।", "हाँ", True), ("نعم؟", "نعم", True), ("don’t", "don't", True),
     ("می\u200cخواهم", "می\u200cخواهم", True), ("میخواهم", "می\u200cخواهم", True), ("01123", "1123", False),
     ("?", "!", False)],
)  # fmt: skip
def test_texts_are_compared_as_readers_do(said: str, truth: str, same: bool) -> None:
    assert bool(score_answer(guess_rule([truth, truth]), said, truth)) is same
    assert (
        clean_cell("می\u200cخواهم") == "می\u200cخواهم"
        and clean_cell("a\vb\rc") == "a\nb\nc"
        and normalise(Rule(), "!")
    )


@pytest.mark.parametrize(
    ("truths", "said", "truth"),
    [(["12.345", "0,01", "1,5"], "12345", "12.345"), (["2026-05-03", "2026-06-01"], "03/05/26", "2026-05-03"),
     (["0,001", "12.345"], "12345", "12.345")],
)  # fmt: skip
def test_numbers_and_days_as_they_are_written(truths: list[str], said: str, truth: str) -> None:
    assert score_answer(guess_rule(truths), said, truth) == 1.0


def test_choices_are_those_of_kept_rows() -> None:
    rows = [*ENGLISH * 1, *[("Where is my parcel?", "gone")] * 4]
    found = preview(csv_of([("text", "label"), *rows]).encode(), "Set", Rule(check=Check.CHOICE))
    assert found.made.rule.labels == ("access", "delivery", "returns")
