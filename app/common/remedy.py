"""The commands that users are told to run; re-exported from engines.remedy, where engines find them too."""

from engines.remedy import COMMAND_ENV as COMMAND_ENV
from engines.remedy import PACK_FILE as PACK_FILE
from engines.remedy import command as command
from engines.remedy import installed as installed
from engines.remedy import name as name
from engines.remedy import reinstall as reinstall
from engines.remedy import repair as repair
