"""What commands, the monitor and `serve` are asked for: answers, apart from print.

Each is a function of settings, of a folder, or of a `sources.CountedLog`, which is what
workers counted or what a replay left. It returns frozen dataclasses with `to_dict`;
rows of them are a table by `as_builtins.table_of`. Relevance of the items of a query is

    source = source_of(load_settings(Path("shop.toml")), Path("run/"))
    curve = curve_for(source).curve
    relevance_in(source, source.statistics.scopes("red shoes"), curve).to_dict()
"""
