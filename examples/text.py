"""
Text
====

Words and word pairs that distinguish twenty newsgroups, with those that occur together with them.

All 1.6 million words and word pairs are candidates, without preselection. With a threshold of 0.6, a word, its pairs and the
signature that contains it form one group. The data are 20 Newsgroups (the files 20news_bigrams.* of the data folder).
"""

# sphinx_gallery_thumbnail_path = "evidence/figures/example-text.png"

import gzip
import time

import numpy as np
from _gallery import load, need, write
from scipy import sparse
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.model_selection import train_test_split

from coterie import FeatureGroups, GroupDiscoveryClassifier
from coterie.data import as_source
from coterie.plots import group_graph

counts, newsgroup = load(need("20news_bigrams.npz"), "y20")
with gzip.open(need("20news_bigrams.names.txt.gz"), "rt", encoding="utf-8") as file:
    words = file.read().splitlines()

print(f"{counts.shape[0]:,} texts, {counts.shape[1]:,} words and pairs of words, {counts.nnz:,} counts")
train, test, y_train, y_test = train_test_split(counts.astype(np.float32), newsgroup, test_size=0.3, random_state=0)
weights = TfidfTransformer(sublinear_tf=True).fit(train)
X_train, X_test = (as_source(sparse.csc_array(weights.transform(texts)), words) for texts in (train, test))

model = GroupDiscoveryClassifier(n_features_to_select=60, n_features_per_round=20, threshold=0.6)
start = time.perf_counter()
model.fit(X_train, y_train)
print(f"{len(model.groups_)} support features in {time.perf_counter() - start:.1f} s", end="; ")
share = model.n_correlations_evaluated_ / model.n_correlations_possible_
print(f"{model.n_correlations_evaluated_:,} of {model.n_correlations_possible_:.2e} correlations computed ({share:.1e})")
print(f"test accuracy {model.score(X_test, y_test):.1%} (chance level: 5 %)")

largest = FeatureGroups(sorted((group for group in model.groups_ if len(group) > 1), key=len, reverse=True)[:12])
print(largest)
figure = group_graph(largest, max_affiliated=14, title="The twelve largest groups of words in 20 Newsgroups")
write(figure, "text")
