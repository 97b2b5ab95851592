"""New versions of the app itself: trusted keys, checking, downloading, and handing the file to the system's own
installer. Nothing here runs unless the user agreed to it, and solo mode never checks.

`feed` is the signed list of releases, `installed` says what runs here and how it is started, `asking` checks
for a new version and stores the result, `handing` downloads it and passes it to the system."""
