"""Which passwords are refused because they are guessed first, and which are not."""

import pytest

from remuda.identity.kinds.oauth import Password
from remuda.identity.kinds.users import user_id
from remuda.identity.login.common_passwords import is_common, letters_of, load_words, personal_words
from remuda.identity.login.passwords import MAX_BYTES
from remuda.kernel.errors import Invalid
from remuda.kernel.randomness import SeededRandomness
from remuda.kernel.secrets import Secret
from tests.kit.identity.login import JO, PASSWORD, LoginEnvironment, common_words
from tests.kit.identity.resource_api import ORG
from tools.common_words import words

PERSONAL = personal_words("jo.smith@rockets.example", ["Acme Rockets"])
_ALPHABET = "abcdefghijkmnpqrstuvwxyz23456789"


@pytest.mark.parametrize(
    "password",
    [
        "password1234",
        "Password1234!",
        "P@ssw0rd2024!!",
        "\N{FULLWIDTH LATIN SMALL LETTER P}\N{FULLWIDTH LATIN SMALL LETTER A}ssword1234",
        "pa\N{COMBINING DIAERESIS}sswörd12345",
        "p a s s w o r d 1 2",
        "  PASSWORD--1234  ",
        "drowssap-4321",
        "passwordpassword",
        "letmein letmein letmein",
        "iloveyouforever",
        "correct horse",
        "administrator",
        "qwertyuiop123",
        "qwertyasdfghzxcvbn",
        "abcdefghijkl",
        "987654321098",
        "aaaaaaaaaaaaa",
        "Xq7!Xq7!Xq7!Xq7!",
        "remuda-remuda",
        "Welcome2Remuda!",
        "jo.smith@rockets.example",
        "JoSmith-19841126",
        "Acme-Rockets-26",
        "x" * MAX_BYTES,
    ],
)
def test_m27_a_common_password_is_refused_however_it_is_spelled(password: str) -> None:
    assert is_common(password, common_words(), PERSONAL)


@pytest.mark.parametrize(
    "password",
    [
        PASSWORD,
        "purple monkey dishwasher",
        "zebra giraffe piano",
        "k3j4h-5kj3h-4k5jh-34kjh",
        "x7#Kq9!mZ2@w",
        "83926401758264019283",
        "\u043a\u043e\u0448\u043a\u0430 \u0441\u044a\u0435\u043b\u0430 \u043f\u0438\u0440\u043e\u0433",
        "\N{GRINNING FACE}\N{DROMEDARY CAMEL}\N{SNOWMAN}\N{CLOUD}\N{COMET}\N{CACTUS}\N{GHOST}\N{RAT}\N{OX}\N{TIGER}",
    ],
)
def test_a_password_of_more_than_two_words_or_of_random_characters_is_accepted(password: str) -> None:
    assert not is_common(password, common_words(), PERSONAL)


def test_random_passwords_are_accepted() -> None:
    randomness = SeededRandomness(1)
    for _ in range(500):
        drawn = "".join(_ALPHABET[randomness.randrange(len(_ALPHABET))] for _ in range(20))
        assert not is_common(drawn, common_words()), drawn


def test_what_belongs_to_somebody_else_is_not_personal() -> None:
    assert is_common("smith-rockets-26", frozenset(), PERSONAL)
    assert not is_common("smith-rockets-26", frozenset(), personal_words(JO))


def test_the_words_are_those_of_zxcvbn_folded_as_passwords_are() -> None:
    assert sorted(load_words()) == words(), "run python -m tools.common_words"
    assert letters_of("P@ssw0rd!") == letters_of("PASSWORDI") in load_words()


def test_an_empty_password_is_common() -> None:
    assert is_common("", common_words())


async def test_a_common_password_is_refused_with_a_remedy_wherever_it_is_set(logins: LoginEnvironment) -> None:
    await logins.organization(ORG)
    await logins.member(ORG, user_id(JO))
    before = await logins.store.get(Password, user_id(JO))
    link = (await logins.services.passwords.create_link(user_id(JO))).secret
    browser, path = logins.browser(), "/oauth2/v2/password"
    page = await browser.get(path, {"link": link.reveal()})
    current = {"email": JO, "password": PASSWORD}
    for common in ("Password1234!", "jo@example.com1", "example.com-2026"):
        new = {"new_password": common, "repeated_password": common}
        for reply in (await browser.submit(page, None, 0, **new), await browser.post(path, {**current, **new})):
            assert reply.status == 400
            assert "choose three or more words that do not belong together" in reply.body.decode()
        with pytest.raises(Invalid, match="password is common"):
            await logins.services.passwords.set_password(user_id(JO), Secret(common))
    assert (await logins.store.get(Password, user_id(JO))).spec.hash == before.spec.hash
