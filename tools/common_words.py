"""Writer of the words that passwords are compared with: those of zxcvbn, folded as passwords are.

`python -m tools.common_words` writes `common_words.txt.gz` again, after a new release of zxcvbn. Only this tool needs
zxcvbn: the program reads the file, because zxcvbn itself takes seconds for some passwords of 70 characters.
"""

import gzip

from zxcvbn.frequency_lists import FREQUENCY_LISTS

from remuda.identity.login.common_passwords import MIN_WORD, WORDS, letters_of, load_words


def words() -> list[str]:
    """Return the words of all lists, each as the letters that a password is compared by."""
    folded = {letters_of(word) for ranked in FREQUENCY_LISTS.values() for word in ranked}
    return sorted(word for word in folded if len(word) >= MIN_WORD)


if __name__ == "__main__":
    WORDS.write_bytes(gzip.compress("\n".join(words()).encode(), mtime=0))
    print(f"{WORDS} has {len(load_words())} words.")
