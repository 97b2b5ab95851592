"""New versions of the app itself: whom to believe about them, asking, fetching, and handing the file to the
system's own installer. Nothing here runs unless the owner agreed to it, and nothing is asked in solo mode.

`feed` is the signed list of what was released, `installed` says what runs here and how it is started, `asking`
and `bringing` talk to the network, `handing` to the system, `known` is what is remembered in between."""
