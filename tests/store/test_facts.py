"""Facts as the index keeps them."""

from hypothesis import given
from hypothesis import strategies as st

from sessiond.store.facts import packed, unpacked

TEXT = st.text(st.characters(exclude_categories=["Cs"]))
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(TEXT, VALUES, max_size=6))
def test_what_was_packed_comes_back(facts):
    assert unpacked(packed(facts)) == facts


@given(st.dictionaries(TEXT, VALUES, max_size=6))
def test_equal_facts_give_equal_bytes(facts):
    assert packed(facts) == packed(dict(facts))


def test_usual_facts_take_less_than_half_of_their_text():
    facts = {
        "branch": "fix/checkout-retry", "created_ms": 1793604146014, "custom_title": "Fix double charge on retry",
        "cwd": "/Users/alex/code/shop-api", "effort": "high", "entrypoint": "cli", "model": "claude-opus-4-7",
        "permission_mode": "default", "updated_ms": 1793609546014, "version": "2.1.240",
    }  # fmt: skip
    assert len(packed(facts)) < len(str(facts)) / 2
