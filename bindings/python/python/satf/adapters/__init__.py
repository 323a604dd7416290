"""satf in the clothes of other packages: the same models where something else already calls the methods.

Each module needs the package it is named after, and is imported only when you import it:

* :mod:`satf.adapters.rectools`: a ``ModelBase`` of RecTools;
* :mod:`satf.adapters.implicit`: a ``RecommenderBase`` of implicit;
* :mod:`satf.adapters.lenskit`: a scorer for pipelines of LensKit;
* :mod:`satf.adapters.sklearn`: an estimator of scikit-learn, for ``GridSearchCV``.
"""

from __future__ import annotations

__all__: list[str] = []
