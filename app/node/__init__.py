"""A running node: rounds, store, checkpoints, the trainer process and the snapshot that every view shows.

The node itself never imports torch or Qt. The engine lives in a second process (`trainer`), which ends when
this one does; views only ever see frozen snapshots.
"""
