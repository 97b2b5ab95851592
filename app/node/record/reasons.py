"""The reason why a node runs or waits, with the sentence that every view shows, and the dial (Quiet, Balanced,
Full) that sets how much of the computer it uses."""

from __future__ import annotations

from enum import Enum

import msgspec


class Reason(Enum):
    """Reasons in the order in which the rules check them; the first that applies is shown.

    The owner's orders come first, then conditions that rarely change by waiting, then signs of use, then load.
    `sentence` is for the window and the log, `short` for the tray and the status line. Both have placeholders
    like {have} for a decision's values, so that a translation can reorder them.
    """

    sentence: str
    short: str

    def __new__(cls, key: str, sentence: str, short: str) -> Reason:
        reason = object.__new__(cls)
        reason._value_ = key
        reason.sentence = sentence
        reason.short = short
        return reason

    PAUSED = "paused", "Paused by you.", "paused"
    SNOOZED = "snoozed", "Snoozed by you until {until}.", "snoozed until {until}"
    SERVING = "serving", "Answering another program. Resumes by itself.", "answering another program"
    CLASS = "class", "Paused by the teacher of your class.", "paused by the class"
    OUTSIDE_HOURS = (
        "outside_hours",
        "Outside the hours you set. Starts {until}.",
        "outside your hours, until {until}",
    )
    ON_BATTERY = "on_battery", "Waiting until you plug the computer in.", "on battery"
    POWER_UNKNOWN = (
        "power_unknown",
        "Can't tell if the computer is plugged in, so it waits.",
        "power supply unknown",
    )
    SAVER = "saver", "Waiting until the battery saver is off.", "battery saver"
    SAVER_UNKNOWN = (
        "saver_unknown",
        "Can't tell if the battery saver is on, so it waits.",
        "battery saver unknown",
    )
    IN_USE = (
        "in_use",
        "Taking a break while you work. Resumes after {need} without a key press.",
        "idle {have} of {need}",
    )
    USE_UNKNOWN = (
        "use_unknown",
        "Can't tell if you're away, so it waits. Turn on “Also while I use this computer”; hours can limit it.",
        "use of the computer unknown",
    )
    FULL_SCREEN = (
        "full_screen",
        "Giving way: an app fills the screen or keeps it awake.",
        "full-screen program",
    )
    SCREEN_UNKNOWN = (
        "screen_unknown",
        "Can't tell if an app fills the screen, so it waits.",
        "full-screen program unknown",
    )
    MEMORY = "memory", "Giving way: other apps need the memory.", "memory is short"
    MEMORY_UNKNOWN = (
        "memory_unknown",
        "Can't tell how much memory is free, so it waits.",
        "free memory unknown",
    )
    HOT = "hot", "Cooling down: the computer is hot.", "too hot"
    HEAT_UNKNOWN = (
        "heat_unknown",
        "Can't tell how hot the computer is, so it waits.",
        "temperature unknown",
    )
    CPU = "cpu", "Giving way: other apps are busy ({percent} %).", "others use the processor"
    CPU_UNKNOWN = (
        "cpu_unknown",
        "Can't tell how busy other apps are, so it waits.",
        "processor load unknown",
    )
    GPU = (
        "gpu",
        "Giving way: other apps keep the graphics card busy ({percent} %).",
        "others use the graphics card",
    )
    GPU_UNKNOWN = (
        "gpu_unknown",
        "Can't tell how busy the graphics card is, so it waits.",
        "graphics card load unknown",
    )
    SETTLING = (
        "settling",
        "Almost there: starts at {until} if it stays quiet.",
        "quiet {have} of {need}",
    )
    FINISHING = "finishing", "Finishing this round, then stopping.", "finishing this round"
    ANYWAY = "anyway", "Keeps learning while you work until {until}.", "learning until {until}"
    RUNNING = "running", "Learning.", "learning"


class Dial(Enum):
    QUIET = "quiet"
    BALANCED = "balanced"
    FULL = "full"


class Effort(msgspec.Struct, frozen=True, kw_only=True):
    """Share of the computer that the trainer may use. It changes only the speed, not what is learned."""

    rest: float
    """Seconds of rest per second of work, taken between steps; 1 halves heat and noise."""
    thread_share: float
    """Share of the cores."""
    batch_share: float
    """Share of the measured token budget of a micro-batch, and so of memory."""

    def rest_s(self, worked_s: float) -> float:
        """Returns the seconds to rest after `worked_s` seconds of work; at most 5, so that a stop never takes
        longer."""
        return min(5.0, self.rest * max(0.0, worked_s))


EFFORTS: dict[Dial, Effort] = {
    Dial.QUIET: Effort(rest=1.0, thread_share=0.25, batch_share=0.5),
    Dial.BALANCED: Effort(rest=0.25, thread_share=0.5, batch_share=1.0),
    Dial.FULL: Effort(rest=0.0, thread_share=1.0, batch_share=1.0),
}
