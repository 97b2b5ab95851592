"""`./shoal starter train`: trains the starter model from scratch."""

from __future__ import annotations

import argparse
from pathlib import Path

SUMMARY = "make the starter model again"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    verbs = parser.add_subparsers(dest="verb", required=True)
    train = verbs.add_parser("train", help="train a starter from scratch (forty minutes on one busy core)")
    train.add_argument("--out", type=Path, required=True, help="folder of the new model")
    train.add_argument("--seed", type=int, default=1)
    train.add_argument("--threads", type=int, default=1)


def main(args: argparse.Namespace) -> int:
    import torch

    from app.lab.starter.pretrain import PretrainPlan, train
    from app.models.shelf import locate
    from engines.models.folder import SETTINGS_FILE

    torch.set_num_threads(args.threads)
    train(PretrainPlan(seed=args.seed), args.out)
    (args.out / SETTINGS_FILE).write_bytes((locate("starter") / SETTINGS_FILE).read_bytes())
    return 0
