"""dmgbuild settings for the disk image: the app, a link to Applications, and an arrow between them. dmgbuild
runs this file with `defines`, which holds the values given with -D."""

import os.path

application = defines["app"]  # noqa: F821
name = os.path.basename(application)

format = "ULMO"
filesystem = "HFS+"
files = [application]
symlinks = {"Applications": "/Applications"}
hide_extensions = [name]
icon = defines["icon"]  # noqa: F821
background = defines["background"]  # noqa: F821
window_rect = ((200, 160), (660, 420))
icon_locations = {name: (175, 205), "Applications": (485, 205)}
icon_size = 128
text_size = 13
default_view = "icon-view"
show_status_bar = False
show_tab_view = False
show_toolbar = False
show_pathbar = False
show_sidebar = False
include_icon_view_settings = True
