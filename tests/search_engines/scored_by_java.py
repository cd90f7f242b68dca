"""Scores of documents by Solr's and RankLib's own classes, in one process of Java."""

from pathlib import Path

import numpy as np
import numpy.typing as npt

from tests.java_programs import libraries_of, run_java

HERE = Path(__file__).parent
INSTEAD = "or leave out the tests of exported models"


def scored_by_java(
    folder: Path, models: dict[str, bytes], documents: npt.NDArray[np.float32]
) -> dict[str, npt.NDArray[np.float64]]:
    """Scores of documents by models, [n_documents] of each.

    Parameters
    ----------
    models
        Files by their names, which end in `.solr` or `.ranklib`.
    documents : [n_documents, n_features]
        Without NaN.
    """
    libraries = libraries_of(HERE / "pom.xml", "search-engines-libs", INSTEAD)
    np.savetxt(folder / "documents.csv", documents, delimiter=",", fmt="%s")
    for name, content in models.items():
        (folder / name).write_bytes(content)
    run_java(HERE / "Scores.java", [libraries], str(folder), instead=INSTEAD)
    return {name: np.loadtxt(folder / f"{name}.scores") for name in models}
