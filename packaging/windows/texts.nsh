; What the installer and the uninstaller say. One sentence for what went wrong: what, why, what to do.

!macro text NAME ENGLISH GERMAN
  LangString ${NAME} ${LANG_ENGLISH} "${ENGLISH}"
  LangString ${NAME} ${LANG_GERMAN} "${GERMAN}"
!macroend

!insertmacro text COMMENT "Train a small reasoning model on this computer" "Ein kleines Modell auf diesem Computer trainieren"

!insertmacro text WELCOME "Welcome to Shoal" "Willkommen bei Shoal"
!insertmacro text WELCOME_TEXT \
  "Shoal trains a small reasoning model on your computer while you are away from it, alone or together with others.$\r$\n$\r$\nThere is no account and no telemetry, and nothing that you wrote ever leaves this computer.$\r$\n$\r$\nVersion ${VERSION} is installed for you alone; no administrator is needed." \
  "Shoal trainiert ein kleines Modell auf Ihrem Computer, während Sie ihn nicht brauchen, allein oder gemeinsam mit anderen.$\r$\n$\r$\nEs gibt kein Konto und keine Telemetrie, und nichts, was Sie geschrieben haben, verlässt diesen Computer.$\r$\n$\r$\nVersion ${VERSION} wird nur für Sie installiert; dazu braucht es keine Administratorrechte."
!insertmacro text CLOSING "Asking the running Shoal to save and end" "Das laufende Shoal speichert und wird beendet"
!insertmacro text UNPACKING "Unpacking Shoal ${VERSION}" "Shoal ${VERSION} wird entpackt"
!insertmacro text READY "Shoal is installed" "Shoal ist installiert"
!insertmacro text READY_TEXT \
  "At its first start Shoal fetches the engine that it computes with, and shows how far that is.$\r$\n$\r$\nYou find Shoal in the start menu." \
  "Beim ersten Start holt Shoal das Rechenwerk, mit dem es lernt, und zeigt, wie weit es damit ist.$\r$\n$\r$\nSie finden Shoal im Startmenü."
!insertmacro text START "Start Shoal" "Shoal starten"

!insertmacro text TOO_OLD \
  "Shoal needs Windows 10 version 1809 or newer, and this Windows is older: update Windows, then start this installer again." \
  "Shoal braucht Windows 10 ab Version 1809, und dieses Windows ist älter: Aktualisieren Sie Windows und starten Sie dann dieses Programm noch einmal."
!insertmacro text OTHER_PROCESSOR \
  "This Shoal is made for 64-bit processors of Intel and AMD, and this computer has another one: use Shoal on such a computer." \
  "Dieses Shoal ist für 64-Bit-Prozessoren von Intel und AMD gemacht, und dieser Computer hat einen anderen: Verwenden Sie Shoal auf einem solchen Computer."
!insertmacro text NEWER \
  "Shoal $1 is installed, which is newer than this ${VERSION} and may have written what the older one cannot read. Install the older one nevertheless?" \
  "Shoal $1 ist installiert. Es ist neuer als dieses (${VERSION}) und hat vielleicht geschrieben, was das ältere nicht lesen kann. Trotzdem das ältere installieren?"
!insertmacro text NO_ROOM \
  "Shoal needs $2 MB in $0, and $1 MB are free: make some room, then start this installer again." \
  "Shoal braucht $2 MB in $0, und $1 MB sind frei: Schaffen Sie Platz und starten Sie dann dieses Programm noch einmal."
!insertmacro text RUNS \
  "Shoal still runs and did not end when it was asked to: end it in the tray or in its terminal, then try again. Nothing has been changed." \
  "Shoal läuft noch und hat sich auf Bitte nicht beendet: Beenden Sie es in der Taskleiste oder in seinem Terminal und versuchen Sie es noch einmal. Nichts wurde verändert."
!insertmacro text NOT_WRITTEN \
  "The folder $INSTDIR cannot be written, and is as it was: choose another one by starting this installer with /D=FOLDER." \
  "Der Ordner $INSTDIR kann nicht beschrieben werden und ist, wie er war: Wählen Sie einen anderen, indem Sie dieses Programm mit /D=ORDNER starten."

!insertmacro text ANOTHER \
  "The folder $INSTDIR holds another program: choose another one by starting this installer with /D=FOLDER." \
  "Im Ordner $INSTDIR liegt ein anderes Programm: Wählen Sie einen anderen, indem Sie dieses Programm mit /D=ORDNER starten."

!insertmacro text REMOVE "Remove Shoal" "Shoal entfernen"
!insertmacro text REMOVE_TEXT "What goes, and what stays if you like." "Was geht und was auf Wunsch bleibt."
!insertmacro text GOES \
  "The program in $INSTDIR goes, and with it the engine that it fetched, its entry in the start menu, its start at login and its links." \
  "Das Programm in $INSTDIR wird entfernt, mit ihm das geholte Rechenwerk, der Eintrag im Startmenü, der Start beim Anmelden und seine Links."
!insertmacro text DATA_TOO "Also remove what the model learned, and all settings" "Auch entfernen, was das Modell gelernt hat, und alle Einstellungen"
!insertmacro text DATA_WHERE \
  "In $LOCALAPPDATA\Shoal, or where you moved it to. This cannot be undone." \
  "In $LOCALAPPDATA\Shoal, oder wohin Sie es verschoben haben. Das lässt sich nicht rückgängig machen."
!insertmacro text STAYS \
  "Models and exports that you keep in other folders stay in any case." \
  "Modelle und Exporte, die Sie in anderen Ordnern aufbewahren, bleiben auf jeden Fall."
!insertmacro text GONE "Shoal is removed" "Shoal ist entfernt"
!insertmacro text ALL_GONE "Nothing of Shoal is left on this computer." "Auf diesem Computer ist nichts von Shoal geblieben."
!insertmacro text KEPT \
  "What the model learned and your settings stay:$\r$\n$\r$\n$LOCALAPPDATA\Shoal$\r$\n$\r$\nDelete that folder if you do not want them any more." \
  "Was das Modell gelernt hat und Ihre Einstellungen bleiben:$\r$\n$\r$\n$LOCALAPPDATA\Shoal$\r$\n$\r$\nLöschen Sie diesen Ordner, wenn Sie beides nicht mehr wollen."
!insertmacro text NOT_REMOVED \
  "The program is gone, but what the model learned could not be removed: delete $LOCALAPPDATA\Shoal yourself." \
  "Das Programm ist entfernt, doch was das Modell gelernt hat, ließ sich nicht löschen: Löschen Sie $LOCALAPPDATA\Shoal selbst."
!insertmacro text LEFT "In $INSTDIR there is something that is not Shoal's; it stays." "In $INSTDIR liegt etwas, das nicht zu Shoal gehört; es bleibt."
