"""`tf.keras.preprocessing`: sequences of numbers and of words."""

import collections

import numpy as np

from ferroflow.python.util.api import export

_FILTERS = '!"#$%&()*+,-./:;<=>?@[\\]^_`{|}~\t\n'


@export("keras.preprocessing.sequence.pad_sequences")
def pad_sequences(sequences, maxlen=None, dtype="int32", padding="pre", truncating="pre", value=0.0):
    """Rows of one length."""
    if padding not in ("pre", "post") or truncating not in ("pre", "post"):
        raise ValueError("padding and truncating are 'pre' or 'post', not %r and %r" % (padding, truncating))
    maxlen = max((len(s) for s in sequences), default=0) if maxlen is None else maxlen
    inner = next((np.asarray(s).shape[1:] for s in sequences if len(s)), ())
    rows = np.full((len(sequences), maxlen) + inner, value, dtype=dtype)
    for row, sequence in zip(rows, sequences):
        if not len(sequence) or not maxlen:
            continue
        part = sequence[-maxlen:] if truncating == "pre" else sequence[:maxlen]
        if padding == "post":
            row[:len(part)] = part
        else:
            row[-len(part):] = part
    return rows


@export("keras.preprocessing.text.text_to_word_sequence")
def text_to_word_sequence(text, filters=_FILTERS, lower=True, split=" "):
    text = text.lower() if lower else text
    text = text.translate(str.maketrans(dict.fromkeys(filters, split)))
    return [word for word in text.split(split) if word]


@export("keras.preprocessing.text.Tokenizer")
class Tokenizer:
    """Numbers words by how often they occur; the most frequent is 1."""

    def __init__(self, num_words=None, filters=_FILTERS, lower=True, split=" ", char_level=False, oov_token=None, **_):
        self.num_words, self.filters, self.lower, self.split = num_words, filters, lower, split
        self.char_level, self.oov_token = char_level, oov_token
        self.word_counts, self.word_docs, self.document_count = collections.OrderedDict(), collections.defaultdict(int), 0
        self.word_index, self.index_word = {}, {}

    def _words(self, text):
        if isinstance(text, (list, tuple)):
            return [word.lower() if self.lower else word for word in text]
        if self.char_level:
            return list(text.lower() if self.lower else text)
        return text_to_word_sequence(text, self.filters, self.lower, self.split)

    def fit_on_texts(self, texts):
        for text in texts:
            words = self._words(text)
            self.document_count += 1
            for word in words:
                self.word_counts[word] = self.word_counts.get(word, 0) + 1
            for word in set(words):
                self.word_docs[word] += 1
        ordered = sorted(self.word_counts, key=lambda w: -self.word_counts[w])
        if self.oov_token is not None:
            ordered.insert(0, self.oov_token)
        self.word_index = {word: i + 1 for i, word in enumerate(ordered)}
        self.index_word = {i: word for word, i in self.word_index.items()}

    def texts_to_sequences(self, texts):
        unknown = self.word_index.get(self.oov_token)
        result = []
        for text in texts:
            found = [self.word_index.get(word) for word in self._words(text)]
            found = [unknown if i is None or self.num_words and i >= self.num_words else i for i in found]
            result.append([i for i in found if i is not None])
        return result

    def sequences_to_texts(self, sequences):
        return [" ".join(self.index_word[i] for i in sequence if i in self.index_word) for sequence in sequences]

    def texts_to_matrix(self, texts, mode="binary"):
        size = self.num_words or len(self.word_index) + 1
        rows = np.zeros((len(texts), size))
        for row, sequence in zip(rows, self.texts_to_sequences(texts)):
            for i in sequence:
                row[i] = 1 if mode == "binary" else row[i] + 1
            if mode == "freq" and sequence:
                row /= len(sequence)
        return rows
