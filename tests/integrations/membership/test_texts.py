"""An audit of a real language model with texts that it was trained on and others."""

from __future__ import annotations

import json
import random
import shutil

import numpy as np
import pytest
import torch
from transformers import BertConfig, BertLMHeadModel, GPT2LMHeadModel

from remnant import audit_texts
from remnant.cli.output import command_page
from remnant.errors import InvalidInput, NotEnoughEvidence, UnsupportedModel
from remnant.integrations.membership import texts as module
from remnant.integrations.membership.records import text_source
from remnant.integrations.membership.text_models import load_text_lm
from remnant.records.typed import Absent
from remnant.report import terminal
from remnant.studies.membership.page import page

from .conftest import save, tokenizer_of, train


def audited(given, name, reference=None, **settings):
    folders = given.folders
    return audit_texts(
        folders[name],
        **{"seen": given.seen, "unseen": given.unseen, "rng": np.random.default_rng(0)} | settings,
        reference_model=None if reference is None else folders[reference],
    )


def test_a_fine_tuned_model_remembers_its_texts(models_and_texts):
    ended = audited(models_and_texts, "tuned", "base", limit=0.6)
    assert ended.outcome == "FAIL"
    assert ended.exit_code == 1
    assert ended.attack == "ratio"
    assert 0.9 < ended.auc.low <= ended.auc.value <= ended.auc.high <= 1.0
    assert float(ended.auc) == ended.auc.value
    assert ended.blind_auc.low < 0.5 < ended.blind_auc.high
    assert len(ended.risks) == len(models_and_texts.seen)
    assert not ended.risks.mask.any()
    assert "FAIL</span>" in ended._repr_html_()


def test_planted_passages_come_out_verbatim(models_and_texts):
    ended = audited(models_and_texts, "planted", "base")
    verbatim = ended.result.verbatim
    by_side = {row.side: row for row in verbatim.rows if row.half == 32}
    assert by_side["seen"].beyond >= 8
    assert by_side["unseen"].beyond == 0
    assert verbatim.tests[0].p_value < 0.01
    assert ended.verbatim[:14].sum() == by_side["seen"].beyond


def test_the_untouched_model_is_at_chance(models_and_texts):
    ended = audited(models_and_texts, "base")
    assert ended.auc.low < 0.5 < ended.auc.high
    assert ended.outcome == "FINDING"
    assert ended.exit_code == 0


@pytest.mark.parametrize("reference", [None, "base"])
def test_a_model_that_learnt_nothing_is_inconclusive(models_and_texts, reference):
    ended = audited(models_and_texts, "random", reference, limit=0.7)
    assert ended.outcome == "INCONCLUSIVE"
    assert ended.exit_code == 3
    assert "did not learn its task" in ended.sentence


def test_no_pass_without_a_reference_model(models_and_texts):
    ended = audited(models_and_texts, "base", limit=0.7)
    assert ended.outcome == "INCONCLUSIVE"
    assert "no reference model" in ended.sentence


def test_a_pass_rests_on_a_control_that_the_same_gate_fails(models_and_texts):
    ended = audited(models_and_texts, "light", "base", limit=0.8)
    assert ended.outcome == "PASS", ended.sentence
    control = ended.result.control
    assert control.kind == "trained"
    assert control.low > control.needed == 0.8
    assert "Positive control" in ended.sentence
    assert "90 seen and 90 unseen" in ended.claim


def test_an_attack_that_sees_nothing_is_inconclusive(models_and_texts, monkeypatch):
    """The positive control fails where scores carry no information."""
    rng = np.random.default_rng(3)

    def blind(target, reference, *, zlib_bytes):
        return {name: rng.normal(size=len(zlib_bytes)) for name in ("loss", "ratio", "zlib")}

    monkeypatch.setattr(module, "attack_scores", blind)
    monkeypatch.setattr(module, "fit_fault", lambda gains: "")
    ended = audited(models_and_texts, "light", "base", limit=0.8)
    assert ended.outcome == "INCONCLUSIVE"
    assert "the positive control failed" in ended.sentence


def test_a_control_may_be_given(models_and_texts):
    unknown = models_and_texts.other[:40]
    ended = audited(models_and_texts, "light", "base", limit=0.8, control=unknown)
    assert ended.result.control.kind == "given"
    assert ended.outcome == "INCONCLUSIVE"  # the model never saw them


def test_a_model_that_fits_no_better_than_its_reference_is_inconclusive(models_and_texts):
    ended = audited(models_and_texts, "base", "tuned", limit=0.8)
    assert ended.outcome == "INCONCLUSIVE"


def test_sets_that_differ_in_themselves_make_the_audit_void(models_and_texts):
    shifted = [f"In 2031: {text}"[:72] for text in models_and_texts.unseen]
    ended = audited(models_and_texts, "tuned", "base", unseen=shifted)
    assert ended.outcome == "INCONCLUSIVE"
    assert ended.exit_code == 3
    assert ended.blind_auc.low > 0.8
    assert "void" in ended.sentence


def test_passages_that_the_reference_knows_too_are_not_memorised(models_and_texts):
    """A passage that both models were trained on comes out of both."""
    same = audited(models_and_texts, "planted", "planted")
    row = next(row for row in same.result.verbatim.rows if row.half == 32 and row.side == "seen")
    assert row.greedy > 0
    assert row.reference_greedy == row.greedy
    assert row.beyond == 0


def test_window_probabilities_equal_a_loop_over_tokens(models_and_texts):
    model = load_text_lm(models_and_texts.folders["planted"])
    text = models_and_texts.seen[3]
    ids = model.encode([text])[0]
    scored = model.scores([ids])
    windows = module.window_rows(scored, 32, unpredicted=model.unpredicted)
    total, greedy = 0.0, True
    for place in range(32, 64):
        with torch.no_grad():
            logits = model.module(input_ids=torch.tensor([ids[:place]])).logits[0, -1]
        total += float(logits.double().log_softmax(-1)[ids[place]])
        greedy &= int(logits.argmax()) == ids[place]
    assert windows.log_probability[0, 0] == pytest.approx(total, abs=1e-5)
    assert bool(windows.greedy[0, 0]) == greedy


def test_greedy_decoding_gives_back_what_is_called_greedy(models_and_texts):
    model = load_text_lm(models_and_texts.folders["planted"])
    ids = model.encode(models_and_texts.seen)
    windows = module.window_rows(model.scores(ids), 32, unpredicted=model.unpredicted)
    checked = [
        *np.flatnonzero(windows.greedy[:, 0])[:3],
        *np.flatnonzero(~windows.greedy[:, 0])[:3],
    ]
    assert len(checked) >= 4
    for number in checked:
        made = list(ids[number][:32])
        for _ in range(32):
            with torch.no_grad():
                logits = model.module(input_ids=torch.tensor([made])).logits[0, -1]
            made.append(int(logits.argmax()))
        assert (made == ids[number][:64]) == windows.greedy[number, 0]


def test_rows_are_the_same_in_chunks_of_any_size(models_and_texts, monkeypatch):
    whole = audited(models_and_texts, "tuned", "base")
    monkeypatch.setattr(module, "_CHUNK", 7)
    parts = audited(models_and_texts, "tuned", "base")
    np.testing.assert_allclose(whole.risks, parts.risks, atol=1e-5)
    assert [row.greedy for row in whole.result.verbatim.rows] == [
        row.greedy for row in parts.result.verbatim.rows
    ]


def test_shared_and_repeated_texts_are_counted_and_left_out(models_and_texts):
    seen = [*models_and_texts.seen, models_and_texts.seen[0], models_and_texts.unseen[0], "", "x"]
    ended = audited(models_and_texts, "tuned", "base", seen=seen)
    rows = ended.result.rows
    assert (rows.shared, rows.repeated_seen, rows.repeated_unseen, rows.short) == (1, 1, 0, 2)
    assert rows.seen == len(models_and_texts.seen)
    assert rows.unseen == len(models_and_texts.unseen) - 1
    assert ended.risks.mask.tolist() == [False] * len(models_and_texts.seen) + [True] * 4


def test_case_and_white_space_make_no_other_record(models_and_texts):
    unseen = [*models_and_texts.unseen, f" {models_and_texts.seen[0].upper()}\n"]
    rows = audited(models_and_texts, "tuned", "base", unseen=unseen).result.rows
    assert (rows.shared, rows.seen) == (1, len(models_and_texts.seen) - 1)
    assert rows.unseen == len(models_and_texts.unseen)


def test_long_texts_are_cut_to_what_the_model_reads(models_and_texts):
    seen = [text + text for text in models_and_texts.seen]
    unseen = [text + text for text in models_and_texts.unseen]
    ended = audited(models_and_texts, "tuned", "base", seen=seen, unseen=unseen)
    assert ended.result.rows.cut == len(seen) + len(unseen)
    assert ended.result.rows.tokens == (len(seen) + len(unseen)) * 99


def test_short_texts_have_no_window(models_and_texts):
    seen = list(dict.fromkeys(text[:40] for text in models_and_texts.seen))
    unseen = list(dict.fromkeys(text[:40] for text in models_and_texts.unseen))
    ended = audited(models_and_texts, "tuned", "base", seen=seen, unseen=unseen)
    assert isinstance(ended.result.verbatim, Absent)
    assert ended.verbatim is None


def test_a_reference_with_another_tokenizer_is_refused(models_and_texts, tmp_path):
    other = tmp_path / "other"
    shutil.copytree(models_and_texts.folders["base"], other)
    tokenizer_of("".join(reversed("".join(map(chr, range(32, 127))))) + "\n").save_pretrained(other)
    with pytest.raises(InvalidInput, match="another tokenizer"):
        audit_texts(
            models_and_texts.folders["tuned"],
            seen=models_and_texts.seen,
            unseen=models_and_texts.unseen,
            reference_model=other,
            rng=np.random.default_rng(0),
        )


def test_too_few_texts_are_refused_before_a_model_is_read(models_and_texts, tmp_path):
    with pytest.raises(NotEnoughEvidence, match="at least 20 of each"):
        audit_texts(
            tmp_path / "nothing",
            seen=models_and_texts.seen[:19],
            unseen=models_and_texts.unseen,
            rng=np.random.default_rng(0),
        )


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"attack": "ratio"}, "needs a reference model"),
        ({"attack": "magic"}, "not one of"),
        ({"limit": 0.4}, "not above chance"),
        ({"success": "luck"}, "success='luck'"),
        ({"fpr": 2.0}, "fpr=2.0"),
        ({"rng": 3}, "numpy.random.Generator"),
        ({"seen": [1] * 30}, "seen 1 is a int"),
        ({"seen": 7}, "not a list of texts"),
    ],
)
def test_wrong_settings_are_one_sentence(models_and_texts, given, said):
    with pytest.raises(InvalidInput, match=said):
        audited(models_and_texts, "tuned", **given)


def test_a_copy_of_the_model_is_left_as_it_was(models_and_texts):
    """The control trains a copy: scores of the model itself are the same afterwards."""
    model = load_text_lm(models_and_texts.folders["light"])
    reference = load_text_lm(models_and_texts.folders["base"])
    before = {name: weight.clone() for name, weight in model.module.state_dict().items()}
    reader = module._Reader(model, reference, module.Settings(attack="ratio", limit=0.6))
    control = reader.trained(models_and_texts.unseen[:128], np.random.default_rng(0))
    assert control.found
    for name, weight in model.module.state_dict().items():
        assert torch.equal(weight, before[name])


def test_prompts_and_chats_are_read_as_the_model_saw_them(models_and_texts, tmp_path):
    """Rows of prompt and completion, and of messages, give the scores of the joined texts."""
    folder = tmp_path / "chat"
    shutil.copytree(models_and_texts.folders["tuned"], folder)
    tokenizer = tokenizer_of()
    tokenizer.chat_template = "{% for m in messages %}{{ m['content'] }}{% endfor %}"
    tokenizer.save_pretrained(folder)
    plain = audited(models_and_texts, "tuned")
    rows = {"pairs": [], "messages": [], "both": []}
    for texts in (models_and_texts.seen, models_and_texts.unseen):
        parts = [(text[:20], text[20:]) for text in texts]
        chats = [
            ({"role": "user", "content": first}, {"role": "assistant", "content": last})
            for first, last in parts
        ]
        rows["pairs"].append([{"prompt": first, "completion": last} for first, last in parts])
        rows["messages"].append([{"messages": list(chat)} for chat in chats])
        rows["both"].append([{"prompt": [a], "completion": [b]} for a, b in chats])
    for name, (seen, unseen) in rows.items():
        files = []
        for side, lines in (("seen", seen), ("unseen", unseen)):
            files.append(tmp_path / f"{name}-{side}.jsonl")
            files[-1].write_text("".join(json.dumps(line) + "\n" for line in lines))
        ended = audit_texts(folder, seen=files[0], unseen=files[1], rng=np.random.default_rng(0))
        np.testing.assert_array_equal(ended.risks, plain.risks)


def test_messages_need_a_chat_template(models_and_texts, tmp_path):
    path = tmp_path / "chat.jsonl"
    row = {"messages": [{"role": "user", "content": "hi"}]}
    path.write_text(json.dumps(row) + "\n")
    with pytest.raises(InvalidInput, match="has no chat template"):
        audited(models_and_texts, "tuned", seen=path)
    path.write_text(json.dumps({"messages": ["hi"]}) + "\n")
    with pytest.raises(InvalidInput, match="no conversation"):
        audited(models_and_texts, "tuned", seen=path)


def test_an_untrained_reference_model_cannot_be_used(models_and_texts):
    """Against random weights the ratio is the loss again: any folder would do as a reference."""
    for name in ("tuned", "base"):
        ended = audited(models_and_texts, name, "random", attack="ratio", limit=0.97)
        assert ended.outcome == "INCONCLUSIVE"
        assert "the reference model cannot be used: it did not learn its task" in ended.sentence


@pytest.mark.parametrize("side", ["seen", "unseen"])
def test_a_reference_model_that_was_trained_on_one_set_cannot_be_used(
    models_and_texts, side, tmp_path
):
    """Trained on seen texts it hides memory; trained on unseen ones it shows what is not there."""
    model = GPT2LMHeadModel.from_pretrained(models_and_texts.folders["base"])
    train(model, models_and_texts.tokenizer, getattr(models_and_texts, side), epochs=30)
    reference = save(model, models_and_texts.tokenizer, tmp_path / "reference")
    ended = audit_texts(
        models_and_texts.folders["light"],
        seen=models_and_texts.seen,
        unseen=models_and_texts.unseen,
        reference_model=reference,
        rng=np.random.default_rng(0),
        limit=0.7,
    )
    assert ended.outcome == "INCONCLUSIVE"
    assert "the reference model itself distinguishes the two sets" in ended.sentence


def test_a_model_that_reads_ahead_is_refused(models_and_texts, tmp_path):
    config = BertConfig(
        vocab_size=len(models_and_texts.tokenizer),
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=16,
        is_decoder=False,
    )
    torch.manual_seed(0)
    folder = save(BertLMHeadModel(config), models_and_texts.tokenizer, tmp_path / "bert")
    with pytest.raises(UnsupportedModel, match="no causal language model"):
        load_text_lm(folder)


def test_tokens_without_an_embedding_are_refused(models_and_texts, tmp_path):
    folder = tmp_path / "larger"
    shutil.copytree(models_and_texts.folders["base"], folder)
    tokenizer = tokenizer_of()
    tokenizer.add_tokens(["import"])
    tokenizer.save_pretrained(folder)
    with pytest.raises(InvalidInput, match="the model has embeddings for 98"):
        audit_texts(
            folder,
            seen=[f"import {text}" for text in models_and_texts.seen],
            unseen=[f"import {text}" for text in models_and_texts.unseen],
            rng=np.random.default_rng(0),
        )


def test_records_that_were_mostly_cut_are_no_pass(models_and_texts):
    """Memory of what the model never read cannot be seen."""
    rng = random.Random(5)

    def padded(texts):
        return ["".join(rng.choices("abcdefgh ", k=102)) + text for text in texts]

    ended = audited(
        models_and_texts,
        "light",
        "base",
        limit=0.8,
        seen=padded(models_and_texts.seen),
        unseen=padded(models_and_texts.unseen),
    )
    assert ended.result.rows.unscored > 0
    assert ended.outcome == "INCONCLUSIVE"


def test_a_control_needs_records_before_a_model_is_read(models_and_texts):
    for few in ([], ["", "a"]):
        with pytest.raises(NotEnoughEvidence, match="at least 20"):
            audited(models_and_texts, "light", "base", control=few)


def test_texts_that_are_no_unicode_are_named_by_their_row(models_and_texts):
    seen = [*models_and_texts.seen, "half \ud800 of a pair"]
    with pytest.raises(InvalidInput, match="row 91, holds half of a surrogate pair"):
        audited(models_and_texts, "tuned", seen=seen)


def test_one_row_of_each_group_is_used(models_and_texts, tmp_path):
    """Rows of one document are not independent, and a document in both files leaks."""
    files = []
    for side, texts in (("seen", models_and_texts.seen), ("unseen", models_and_texts.unseen)):
        files.append(tmp_path / f"{side}.jsonl")
        rows = [
            {"text": text, "page": f"both-{i}" if i < 4 else f"{side}-{i // 3}"}
            for i, text in enumerate(texts)
        ]
        files[-1].write_text("".join(json.dumps(row) + "\n" for row in rows))
    ended = audited(models_and_texts, "tuned", "base", seen=files[0], unseen=files[1], group="page")
    rows = ended.result.rows
    assert (rows.seen, rows.unseen) == (
        29,
        29,
    )  # documents 1 to 29; those of rows 0 to 3 are shared
    assert rows.shared == 4
    assert rows.repeated_seen == 90 - 4 - 29
    assert ended.places[0].tolist()[:3] == [5, 7, 10]


def test_rows_in_clusters_pass_only_where_groups_are_named(models_and_texts, tmp_path):
    """Rows are in the order of a document's: five neighbours have about the same score."""
    alone = audited(models_and_texts, "light", "base", limit=0.8)
    order = np.argsort(alone.scores[0]["ratio"])
    blocks = np.random.default_rng(0).permutation(order[: 5 * (len(order) // 5)].reshape(-1, 5))
    seen = [models_and_texts.seen[i] for i in blocks.ravel()]
    asked = {"limit": 0.8, "unseen": models_and_texts.unseen}
    ended = audited(models_and_texts, "light", "base", seen=seen, **asked)
    assert (alone.outcome, ended.outcome) == ("PASS", "INCONCLUSIVE")
    assert "scores of neighbouring records are alike" in ended.sentence
    assert "name the field that says which rows belong together" in ended.sentence
    files = {}
    for side, texts in (("seen", seen), ("unseen", models_and_texts.unseen)):
        files[side] = tmp_path / f"{side}.jsonl"
        rows = [{"text": text, "row": f"{side} {i}"} for i, text in enumerate(texts)]
        files[side].write_text("".join(json.dumps(row) + "\n" for row in rows))
    ended = audited(models_and_texts, "light", "base", limit=0.8, group="row", **files)
    assert ended.outcome == "PASS", ended.sentence


def test_groups_need_a_field_in_a_file(models_and_texts, tmp_path):
    with pytest.raises(InvalidInput, match="names a field, and seen is a list"):
        audited(models_and_texts, "tuned", group="page")
    path = tmp_path / "rows.jsonl"
    path.write_text('{"text": "a", "page": null}\n')
    with pytest.raises(InvalidInput, match="row 1, has no field 'page'"):
        audited(models_and_texts, "tuned", seen=path, unseen=path, group="page")


NO_SYSTEM = (
    "{% if messages[0]['role'] == 'system' %}{{ raise_exception('System role not supported') }}"
    "{% endif %}{% for m in messages %}{{ m['content'] }}{% endfor %}"
)


def chats(models_and_texts, tmp_path, refused, template=NO_SYSTEM):
    """A folder whose template refuses a system role, and files that have it in some rows."""
    folder = tmp_path / "chat"
    shutil.copytree(models_and_texts.folders["tuned"], folder)
    tokenizer = tokenizer_of()
    tokenizer.chat_template = template
    tokenizer.save_pretrained(folder)
    files = {}
    for side, bad in zip(("seen", "unseen"), refused, strict=True):
        files[side] = tmp_path / f"{side}.jsonl"
        rows = [
            {"messages": [{"role": "system" if i in bad else "user", "content": text}]}
            for i, text in enumerate(getattr(models_and_texts, side))
        ]
        files[side].write_text("".join(json.dumps(row) + "\n" for row in rows))
    return folder, files


def test_rows_that_the_chat_template_refuses_are_named_and_the_others_audited(
    models_and_texts, tmp_path
):
    folder, files = chats(models_and_texts, tmp_path, ({1, 4, 89}, {0}))
    ended = audit_texts(folder, **files, rng=np.random.default_rng(0))
    kept = [text for i, text in enumerate(models_and_texts.seen) if i not in (1, 4, 89)]
    alone = audited(models_and_texts, "tuned", seen=kept, unseen=models_and_texts.unseen[1:])
    np.testing.assert_array_equal(ended.risks.compressed(), alone.risks.compressed())
    assert np.flatnonzero(ended.risks.mask).tolist() == [1, 4, 89]
    assert ended.counts == (90, 90)
    rows = ended.result.rows
    assert [(each.side, each.rows, each.count) for each in rows.refused] == [
        ("seen", (2, 5, 90), 3),
        ("unseen", (1,), 1),
    ]
    assert (rows.seen, rows.unseen) == (87, 89)
    said = terminal.detail(command_page("Audit", page(ended.result)))
    assert "no text for 3 of 90 seen rows (2, 5, 90)" in " ".join(said.split())
    assert "refuses them: System role not supported" in " ".join(said.split())


def test_too_many_refused_rows_allow_no_pass(models_and_texts, tmp_path):
    """The limit is far above what is measured: without refused rows this is a PASS."""
    folder, files = chats(models_and_texts, tmp_path, (range(10, 40), ()))
    given = {"limit": 0.999, "reference_model": models_and_texts.folders["base"]}
    given |= {"attack": "loss", "rng": np.random.default_rng(0)}
    folder_of_base = shutil.copytree(models_and_texts.folders["base"], tmp_path / "base")
    tokenizer_file = folder / "chat_template.jinja"
    shutil.copy(tokenizer_file, folder_of_base)
    ended = audit_texts(folder_of_base, **files, **given)
    assert ended.outcome != "PASS"
    assert "no text for 30 of 90 seen rows (11, 12" in ended.sentence


def test_too_few_rows_with_a_text_are_one_sentence(models_and_texts, tmp_path):
    folder, files = chats(models_and_texts, tmp_path, (range(80), ()))
    with pytest.raises(NotEnoughEvidence) as raised:
        audit_texts(folder, **files, rng=np.random.default_rng(0))
    assert "10 seen and 90 unseen records are too few" in str(raised.value)
    assert "80 of 90 seen rows (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, ...)" in str(raised.value)
    assert "name it with --field" in str(raised.value)


def test_a_broken_chat_template_is_one_sentence(models_and_texts, tmp_path):
    folder, files = chats(models_and_texts, tmp_path, ((), ()), "{% for m in messages %}")
    with pytest.raises(InvalidInput, match="chat template is broken at line 1"):
        audit_texts(folder, **files, rng=np.random.default_rng(0))


def test_messages_where_no_template_is_applied_are_one_sentence(tmp_path):
    path = tmp_path / "chat.jsonl"
    path.write_text(json.dumps({"messages": [{"role": "user", "content": "hi"}]}) + "\n")
    with pytest.raises(InvalidInput, match="holds messages, and no chat template is applied"):
        list(text_source(path, name="seen"))


def test_half_a_character_in_messages_is_one_sentence(models_and_texts, tmp_path):
    folder, files = chats(models_and_texts, tmp_path, ((), ()))
    files["seen"].write_text('{"messages": [{"role": "user", "content": "a \\ud800"}]}\n')
    with pytest.raises(InvalidInput, match="row 1, holds half of a surrogate pair"):
        audit_texts(folder, **files, rng=np.random.default_rng(0))
