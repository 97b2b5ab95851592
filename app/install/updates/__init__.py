"""New versions of the app itself. Nothing here runs unless the user agreed to it, and solo mode never checks.

`feed` is the signed notice of the newest version, `asking` checks for it and stores the result, `installed`
says what runs here and how it is started. Nothing is downloaded: a button opens the notice's page."""
