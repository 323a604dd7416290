"""What people write, as a type checker sees it (mypy reads this file; nothing runs it)."""

from pathlib import Path

import numpy as np
import numpy.typing as npt

import satf


class Own:
    def fit(self, train: satf.TrainingSet) -> None:
        self.items = train.num_items

    def score(self, history: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
        return np.zeros(self.items)


model: satf.Model = satf.fit("shop.csv", "pure-svd", rank=8, ties="shuffle", memory="2GiB")
frame = model.recommend([["tent"], ["mug"]], k=3, exclude=["rope"], boost={"mug": 0.5, "lamp": "*2"})
factors: npt.NDArray[np.float32] = model.item_embeddings
attention: npt.NDArray[np.float64] = model.attention
model.save(Path("shop.satf"))
loaded: satf.Model = satf.load("shop.satf", copy=True)
items: list[int | str] = loaded.items
own: satf.OwnModel = Own()
results: satf.Results = satf.evaluate("shop.csv", ["d-satf", ("ease", {"regularization": 10.0}), Own(), loaded], test="3weeks", at=[5, 10])
ndcg: float = results["d-satf"].metrics["NDCG@10"]
comparison: satf.Comparison = satf.compare(results["d-satf"], results["ease"], "NDCG@10")
p_value: float = comparison.p_values["NDCG@10"]
study: satf.Study = satf.tune("shop.csv", "transitions", space={"window": [1, 2, 3]}, trials=3)
best: satf.Model = study.fit("shop.csv")
parts: satf.Split = satf.split("shop.csv", test="3weeks")
matters: bool = bool(satf.order_matters("shop.csv"))
