"""Trains SmolLM2-135M with TRL in a swarm: python trl_smollm2.py shoal://join/... [STEPS] [MODEL]

Needs the library shoal-swarm (resources/help/trainers.md), and pip install trl. Half of every batch are groups
of others, as far as some have come, and the own ones from which others can learn go out. Runs on a processor, a
minute or two a step."""

import sys

from shoal_swarm import join
from shoal_swarm.trl import Sharing
from trl import GRPOConfig, GRPOTrainer

where, steps = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 100
model = sys.argv[3] if len(sys.argv) > 3 else "HuggingFaceTB/SmolLM2-135M-Instruct"

with join(where, name="smollm2-135m", home="~/.shoal-swarm-trl") as sea:
    share = Sharing(sea, own=4, peers=4)
    trainer = GRPOTrainer(
        model=model,
        train_dataset=share.dataset(["gcd", "chain_sum"], rows=2000, level=1),
        reward_funcs=share.reward,
        rollout_func=share.rollout,
        callbacks=[share.callback],
        args=GRPOConfig(
            output_dir="smollm2-shoal",
            max_steps=steps,
            num_generations=8,
            per_device_train_batch_size=8,
            gradient_accumulation_steps=8,  # eight questions a step
            max_completion_length=64,
            learning_rate=1e-5,
            logging_steps=1,
            report_to=[],
        ),
    )
    trainer.train()
    print(sea.status().sentence)
