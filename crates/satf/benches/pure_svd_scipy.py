"""The reference of the benchmark `pure_svd`: scipy's svds on the same matrix, for a comparison in one run.

    python3 crates/satf/benches/pure_svd_scipy.py ../shared/data/amz-beauty.csv.gz && cargo bench -p satf --bench pure_svd

Training part of Amazon Beauty (all but the newest three weeks), debiased with scaling .6, rank 2000. Needs numpy and scipy.
"""

import csv
import gzip
import sys
import time

import numpy as np
from scipy.sparse import csr_matrix, diags
from scipy.sparse.linalg import svds

RANK, SCALING, TEST_SECONDS = 2000, 0.6, 21 * 86400

with gzip.open(sys.argv[1], "rt", newline="") as file:
    rows = [(row["userid"], row["itemid"], float(row["timestamp"])) for row in csv.DictReader(file)]
newest = max(row[2] for row in rows)
train = [row for row in rows if row[2] <= newest - TEST_SECONDS]
users = np.unique([row[0] for row in train], return_inverse=True)[1]
items = np.unique([row[1] for row in train], return_inverse=True)[1]
matrix = csr_matrix((np.ones(len(train)), (users, items)))
counts = np.asarray(matrix.sum(axis=0)).ravel()
matrix.data[:] = 1.0
debiased = (matrix @ diags(counts ** ((SCALING - 1) / 2))).tocsr()

start = time.perf_counter()
_, singular_values, _ = svds(debiased, k=RANK, return_singular_vectors="vh")
seconds = time.perf_counter() - start
print(f"{debiased.shape[0]} users, {debiased.shape[1]} items: scipy's svds at rank {RANK} takes {seconds:.1f} s; "
      f"largest singular value {singular_values.max():.6f}, smallest {singular_values.min():.6f}")
