"""Why a node runs or does not: one reason at a time, with the sentence that every view shows."""

from __future__ import annotations

from enum import Enum


class Reason(Enum):
    """In the order in which the rules look: the first that holds is the one that is told.

    The owner's own word comes first, then what waiting does not change soon, then the signs that somebody is
    there, then load. `sentence` is for the window and the log, `short` for the tray and the status line; both
    have places like {have} for a decision's values, so that a translation can put them where its language does.
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
    OUTSIDE_HOURS = (
        "outside_hours",
        "Waiting: outside the hours you set, until {until}.",
        "outside your hours, until {until}",
    )
    ON_BATTERY = "on_battery", "Waiting: the computer runs on its battery.", "on battery"
    POWER_UNKNOWN = (
        "power_unknown",
        "Waiting: Shoal cannot tell whether the computer is plugged in.",
        "power supply unknown",
    )
    SAVER = "saver", "Waiting: the battery saver is on.", "battery saver"
    SAVER_UNKNOWN = (
        "saver_unknown",
        "Waiting: Shoal cannot tell whether the battery saver is on.",
        "battery saver unknown",
    )
    IN_USE = "in_use", "Waiting: you are using this computer (idle {have} of {need}).", "idle {have} of {need}"
    USE_UNKNOWN = (
        "use_unknown",
        "Waiting: Shoal cannot tell whether somebody uses this computer.",
        "use of the computer unknown",
    )
    EXCLUSIVE_APP = "exclusive_app", "Waiting: {app} is running.", "{app} is running"
    APPS_UNKNOWN = (
        "apps_unknown",
        "Waiting: Shoal cannot tell which programs are running.",
        "running programs unknown",
    )
    FULL_SCREEN = (
        "full_screen",
        "Waiting: a program fills the screen or keeps it awake.",
        "full-screen program",
    )
    SCREEN_UNKNOWN = (
        "screen_unknown",
        "Waiting: Shoal cannot tell whether a program fills the screen.",
        "full-screen program unknown",
    )
    MEMORY = "memory", "Waiting: other programs need the memory.", "memory is short"
    MEMORY_UNKNOWN = (
        "memory_unknown",
        "Waiting: Shoal cannot tell how much memory is free.",
        "free memory unknown",
    )
    HOT = "hot", "Waiting: the computer is hot.", "too hot"
    HEAT_UNKNOWN = (
        "heat_unknown",
        "Waiting: Shoal cannot tell how hot the computer is.",
        "temperature unknown",
    )
    CPU = "cpu", "Waiting: other programs use {percent} % of the processor.", "others use the processor"
    CPU_UNKNOWN = (
        "cpu_unknown",
        "Waiting: Shoal cannot tell how busy other programs are.",
        "processor load unknown",
    )
    GPU = "gpu", "Waiting: other programs use {percent} % of the graphics card.", "others use the graphics card"
    GPU_UNKNOWN = (
        "gpu_unknown",
        "Waiting: Shoal cannot tell how busy the graphics card is.",
        "graphics card load unknown",
    )
    SETTLING = (
        "settling",
        "Waiting until it has been quiet for a while (quiet {have} of {need}).",
        "quiet {have} of {need}",
    )
    FINISHING = "finishing", "Finishing this round, then stopping.", "finishing this round"
    RUNNING = "running", "Learning.", "learning"
