"""Which public keys are accepted, and what a signature is bound to."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabric_protocol import keys

P = 2**255 - 19
# The eight points of small order, in the encodings that published lists of them give.
SMALL_ORDER = [
    "0100000000000000000000000000000000000000000000000000000000000000",
    "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
    "0000000000000000000000000000000000000000000000000000000000000000",
    "0000000000000000000000000000000000000000000000000000000000000080",
    "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
    "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc85",
    "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",
    "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac03fa",
]
# Second writings of points of small order: coordinates from p upwards, or the sign of zero.
NOT_CANONICAL = [
    "0100000000000000000000000000000000000000000000000000000000000080",
    "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff",
    "edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
    "edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff",
    "eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
    "eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff",
]


@pytest.mark.parametrize("encoded", SMALL_ORDER)
def test_a_key_of_small_order_is_refused(encoded):
    """R-B2 (agent): a key for which one signature fits every message never enrols."""
    with pytest.raises(keys.BadKey) as refusal:
        keys.check_public_key(bytes.fromhex(encoded))
    assert refusal.value.code == "SMALL_ORDER"


@pytest.mark.parametrize("encoded", NOT_CANONICAL)
def test_a_second_writing_of_a_point_is_refused(encoded):
    """R-B2 (agent): a key has one encoding, so that one key is never two identities."""
    with pytest.raises(keys.BadKey) as refusal:
        keys.check_public_key(bytes.fromhex(encoded))
    assert refusal.value.code == "NOT_CANONICAL"


@pytest.mark.parametrize("y", range(P, 2**255))
def test_every_coordinate_beyond_the_prime_is_refused(y):
    with pytest.raises(keys.BadKey, match="not reduced"):
        keys.check_public_key(y.to_bytes(32, "little"))


@pytest.mark.parametrize("size", [0, 31, 33, 64])
def test_a_key_of_another_length_is_refused(size):
    with pytest.raises(keys.BadKey) as refusal:
        keys.check_public_key(bytes(size))
    assert refusal.value.code == "WRONG_LENGTH"


def test_bytes_that_are_no_point_are_refused():
    with pytest.raises(keys.BadKey) as refusal:
        keys.check_public_key((2).to_bytes(32, "little"))
    assert refusal.value.code == "NOT_ON_CURVE"


def test_a_point_outside_the_prime_group_is_refused():
    """A good key plus a point of order two verifies in some libraries and not in others."""
    good = keys.SigningKey.from_seed(bytes(32)).public_bytes
    y = int.from_bytes(good, "little") & ((1 << 255) - 1)
    mixed = (P - y) | ((good[31] >> 7 ^ 1) << 255)  # (x, y) + (0, -1) = (-x, -y)
    with pytest.raises(keys.BadKey) as refusal:
        keys.check_public_key(mixed.to_bytes(32, "little"))
    assert refusal.value.code == "MIXED_ORDER"


@given(st.binary(min_size=32, max_size=32))
def test_every_generated_key_is_accepted(seed):
    key = keys.SigningKey.from_seed(seed)
    keys.check_public_key(key.public_bytes)


@given(st.binary(min_size=32, max_size=32))
def test_any_bytes_are_either_a_key_or_refused_by_name(data):
    with contextlib.suppress(keys.BadKey):
        keys.check_public_key(data)
        with pytest.raises(keys.BadSignature):
            keys.verify(data, b"message", bytes(64))


def test_the_first_vector_of_rfc_8032_holds():
    seed = bytes.fromhex("9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60")
    key = keys.SigningKey.from_seed(seed)
    assert (
        key.public_bytes.hex() == "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a"
    )
    assert key.sign(b"").hex() == (
        "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701cf9b46b"
        "d25bf5f0595bbe24655141438e7a100b"
    )


def test_a_signature_holds_for_its_message_key_and_purpose_only():
    key, other = keys.SigningKey.generate(), keys.SigningKey.generate()
    signature = key.sign(keys.separated("receipt", b"body"))
    keys.verify(key.public_bytes, keys.separated("receipt", b"body"), signature)
    for public, message in [
        (other.public_bytes, keys.separated("receipt", b"body")),
        (key.public_bytes, keys.separated("receipt", b"bodY")),
        (key.public_bytes, keys.separated("ruling", b"body")),
    ]:
        with pytest.raises(keys.BadSignature):
            keys.verify(public, message, signature)


def test_a_malleable_second_signature_is_refused():
    key = keys.SigningKey.generate()
    signature = key.sign(b"m")
    order = 2**252 + 27742317777372353535851937790883648493
    s = int.from_bytes(signature[32:], "little") + order
    with pytest.raises(keys.BadSignature):
        keys.verify(key.public_bytes, b"m", signature[:32] + s.to_bytes(32, "little"))


def test_the_secret_never_shows_in_a_repr():
    key = keys.SigningKey.from_seed(bytes(range(32)))
    assert bytes(range(32)).hex() not in repr(key)
    assert key.key_id[:12] in repr(key)
