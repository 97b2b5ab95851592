"""`./shoal starter train|measure|corpus`: trains the starter model and measures it."""

from __future__ import annotations

import argparse
import sys
from itertools import islice
from pathlib import Path

import msgspec

from app.cli._terminal import WrongUsage

SUMMARY = "make, measure and look into the starter model"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    verbs = parser.add_subparsers(dest="verb", required=True)
    train = verbs.add_parser("train", help="train a starter from scratch (forty minutes on one busy core)")
    train.add_argument("--out", type=Path, required=True, help="folder of the new model")
    train.add_argument("--seed", type=int, default=1)
    train.add_argument("--threads", type=int, default=1)
    measure = verbs.add_parser("measure", help="pass@1, pass@8, finished and worked shares on its levels")
    measure.add_argument("--model", default="starter")
    measure.add_argument("--adapter", type=Path, help="folder of an adapter over it, for example a specialist")
    measure.add_argument("--levels", help="others than its own, for example chain_sum=2,gcd=3")
    measure.add_argument("--items", type=int, default=256)
    measure.add_argument("--seed", type=int, default=0)
    measure.add_argument("--json", action="store_true")
    special = verbs.add_parser("specialists", help="adapters that know two families each, for ./shoal lab")
    special.add_argument(
        "--regime", default="specialists", help="whose starters to make (default: %(default)s)"
    )
    special.add_argument("--out", type=Path, required=True, help="folder of the adapters")
    special.add_argument("--threads", type=int, default=1)
    corpus = verbs.add_parser("corpus", help="show lines of what it was trained on")
    corpus.add_argument("--lines", type=int, default=20)
    corpus.add_argument("--seed", type=int, default=1)


def main(args: argparse.Namespace) -> int:
    return {"train": _train, "measure": _measure, "specialists": _specialists, "corpus": _corpus}[args.verb](
        args
    )


def _train(args: argparse.Namespace) -> int:
    import torch

    from app.lab.starter.pretrain import PretrainPlan, train
    from app.models.shelf import locate
    from engines.models.folder import FILE

    torch.set_num_threads(args.threads)
    train(PretrainPlan(seed=args.seed), args.out)
    (args.out / FILE).write_bytes((locate("starter") / FILE).read_bytes())
    return 0


def _measure(args: argparse.Namespace) -> int:
    from app.common.home import home as data_folder
    from app.lab.plan import RegimeError, read_levels
    from app.lab.starter.corpus import measure
    from app.models.shelf import locate
    from engines.models.folder import read_settings
    from engines.torch_lora import open_engine

    folder = locate(args.model, data_folder())
    settings = read_settings(folder)
    try:
        levels = read_levels(args.levels or "") or settings.families
    except RegimeError as error:
        raise WrongUsage(str(error)) from error
    engine = open_engine(folder)
    if args.adapter and not args.adapter.is_dir():
        print(f"shoal starter: There is no adapter in {args.adapter}: give its folder.", file=sys.stderr)
        return 1
    if args.adapter:
        engine.load(args.adapter)
    rows = measure(engine, levels, args.items, settings.max_tokens, args.seed)
    if args.json:
        print(msgspec.json.encode(rows).decode())
        return 0
    columns = {"pass@1": 8, "pass@8": 8, "finished": 10, "worked": 8, "right worked": 14, "right guessed": 15}
    print(f"{'family':26}" + "".join(f"{name:>{width}}" for name, width in columns.items()))
    for family, row in rows.items():
        print(
            f"{family:26}{row.pass_at_1:8.3f}{row.pass_at_8:8.3f}{row.finished:10.3f}"
            f"{row.worked:8.3f}{row.worked_right:14.3f}{row.guessed_right:15.3f}"
        )
    return 0


def _specialists(args: argparse.Namespace) -> int:
    from app.common.home import home as data_folder
    from app.lab.plan import RegimeError, read_regime
    from app.lab.starter.pretrain import TeachingPlan, teach
    from app.models.shelf import locate

    def tell(name: str, step: int) -> None:
        if step % 20 == 0:
            print(f"{name}: {step} steps", file=sys.stderr)

    try:
        regime = read_regime(args.regime)
        teaching = TeachingPlan(rank=regime.rank or TeachingPlan().rank)
        folder = locate(regime.model, data_folder())
        names = regime.starters
        for made in teach(folder, names, regime.levels, args.out, teaching, args.threads, tell):
            print(made)
    except RegimeError as error:
        raise WrongUsage(str(error)) from error
    return 0


def _corpus(args: argparse.Namespace) -> int:
    from app.lab.starter.corpus import DataMix, examples

    for example in islice(examples(DataMix(), args.seed), args.lines):
        sys.stdout.write(
            f"{example.family:26}{example.question.splitlines()[-1][-70:]:72}{example.completion}\n"
        )
    return 0
