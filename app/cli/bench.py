"""`./shoal bench NAME`: benchmarks one part, together with alternatives or limits in the same run."""

from __future__ import annotations

import argparse
import importlib
import json
import sys

from app.bench import BENCHMARKS

SUMMARY = "measure how fast a part is, beside its limits or others' programs"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    kinds = parser.add_subparsers(
        dest="benchmark", metavar="NAME", required=True, title="benchmarks", parser_class=type(parser)
    )
    for name, module in BENCHMARKS.items():
        benchmark = importlib.import_module(module)
        one = kinds.add_parser(name, help=benchmark.SUMMARY, description=benchmark.SUMMARY)
        benchmark.add_arguments(one)
        one.add_argument(
            "--json", action="store_true", help="the figures on standard output, nothing else there"
        )


def main(args: argparse.Namespace) -> int:
    benchmark = importlib.import_module(BENCHMARKS[args.benchmark])
    figures = benchmark.run(args, lambda line: print(line, file=sys.stderr, flush=True))
    out = sys.stderr if args.json else sys.stdout
    print("", *benchmark.table(figures), sep="\n", file=out, flush=True)
    if args.json:
        print(json.dumps(figures))
    return int(not figures.get("passed", True))
