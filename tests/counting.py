"""A small collection, and a retriever that counts its calls."""

DOCUMENTS = {f"d{n}": f"word{n} common" for n in range(20)}
QUERIES = {f"q{n}": f"word{n}" for n in range(10)}
QRELS = {f"q{n}": {f"d{n}": 1} for n in range(10)}


class Words:
    """Finds the documents that contain words of the query, most words first; counts its calls."""

    def __init__(self, **settings):
        self.settings = {"type": "words", **settings}
        self.asked = []
        self.indexed = 0

    def index(self, documents):
        self.indexed += 1
        self.texts = {document.id: set(document.full_text.split()) for document in documents}

    def search(self, queries, k):
        self.asked += [query.id for query in queries]
        return [
            sorted(
                (
                    (name, float(len(words & set(query.text.split()))))
                    for name, words in self.texts.items()
                    if words & set(query.text.split())
                ),
                key=lambda hit: (-hit[1], hit[0]),
            )[:k]
            for query in queries
        ]


def worse(text):
    """Finds half of the documents, at rank 2."""
    n = int(text.removeprefix("word"))
    return ["d19", f"d{n}"] if n % 2 else ["d19", "d18"]


class Priced(Words):
    """Uses 50 tokens for a query and 50 for the index; may be interrupted."""

    def __init__(self, ends=None):
        super().__init__()
        self.tokens, self.ends = 0, ends

    def index(self, documents):
        super().index(documents)
        self.tokens += 50

    def search(self, queries, k):
        if self.ends is not None and len(self.asked) >= self.ends:
            raise KeyboardInterrupt
        self.tokens += 50 * len(queries)
        return super().search(queries, k)

    def usage(self):
        return {"tokens": self.tokens}
