"""Versions of models as files that search engines and ONNX's runtimes load."""

SYSTEMS = (
    "lightgbm", "xgboost", "ranklib", "elasticsearch-ltr", "opensearch-ltr",
    "solr-ltr", "onnx",
)  # fmt: skip
"""Rows of `targets.TARGETS`, for parsers, which load nothing that writes."""
