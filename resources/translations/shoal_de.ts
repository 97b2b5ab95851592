<?xml version="1.0" encoding="utf-8"?>
<!DOCTYPE TS>
<TS version="2.1" language="de" sourcelanguage="en">
 <context>
  <name>shoal</name>
  <message>
   <source>About Shoal</source>
   <translation>Über Shoal</translation>
  </message>
  <message>
   <source>Version {version}. Data folder: {home}</source>
   <translation>Version {version}. Datenordner: {home}</translation>
  </message>
  <message>
   <source>Licence: [Apache 2.0]({address}). Free to use, change and share.</source>
   <translation>Lizenz: [Apache 2.0]({address}). Du darfst Shoal frei benutzen, ändern und weitergeben.</translation>
  </message>
  <message>
   <source>The typeface is Inter (OFL-1.1). Each model has a licence of its own, shown on the page Models.</source>
   <translation>Die Schrift ist Inter (OFL-1.1). Jedes Modell hat seine eigene Lizenz, sie steht auf der Seite Modelle.</translation>
  </message>
  <message>
   <source>Made with</source>
   <translation>Gemacht mit</translation>
  </message>
  <message>
   <source>Package</source>
   <translation>Paket</translation>
  </message>
  <message>
   <source>Version</source>
   <translation>Version</translation>
  </message>
  <message>
   <source>Licence</source>
   <translation>Lizenz</translation>
  </message>
  <message>
   <source>Stopped.</source>
   <translation>Angehalten.</translation>
  </message>
  <message>
   <source>The process with the model ended unexpectedly, most likely because memory ran short: close other programs and ask again.</source>
   <translation>Der Prozess mit dem Modell ist unerwartet ausgefallen, wahrscheinlich weil der Speicher knapp wurde: Schließe andere Programme und frage noch einmal.</translation>
  </message>
  <message>
   <source>Appearance</source>
   <translation>Darstellung</translation>
  </message>
  <message>
   <source>Colours</source>
   <translation>Farben</translation>
  </message>
  <message>
   <source>Light, dark, or as the rest of your desktop.</source>
   <translation>Hell, dunkel oder wie der Rest deines Schreibtischs.</translation>
  </message>
  <message>
   <source>dark mode theme night</source>
   <translation>dunkel hell modus thema nacht farbe</translation>
  </message>
  <message>
   <source>Language</source>
   <translation>Sprache</translation>
  </message>
  <message>
   <source>Of the window and its tray. Applies when you reopen Shoal.</source>
   <translation>Für das Fenster und sein Symbol in der Leiste. Gilt, sobald du Shoal neu öffnest.</translation>
  </message>
  <message>
   <source>translation english german deutsch sprache</source>
   <translation>übersetzung englisch deutsch english sprache</translation>
  </message>
  <message>
   <source>Learning</source>
   <translation>Lernen</translation>
  </message>
  <message>
   <source>Learn as soon as Shoal opens</source>
   <translation>Lernen, sobald Shoal geöffnet wird</translation>
  </message>
  <message>
   <source>Off: it waits until you press Start. A pause is kept either way.</source>
   <translation>Aus: Es wartet, bis du auf Start drückst. Eine Pause bleibt so oder so bestehen.</translation>
  </message>
  <message>
   <source>autostart begin automatic</source>
   <translation>autostart beginnen automatisch</translation>
  </message>
  <message>
   <source>Company</source>
   <translation>Mit wem</translation>
  </message>
  <message>
   <source>Alone, nothing leaves this computer. With others, answers to generated puzzles are exchanged as text.</source>
   <translation>Allein verlässt nichts diesen Computer. Mit anderen werden Antworten auf erzeugte Rätsel als Text ausgetauscht.</translation>
  </message>
  <message>
   <source>swarm solo peers relay network share offline</source>
   <translation>schwarm allein andere relay netzwerk teilen offline</translation>
  </message>
  <message>
   <source>Recipe</source>
   <translation>Rezept</translation>
  </message>
  <message>
   <source>How answers become a step. Recommended is what Shoal was tuned with; Paper follows SAPO to the letter.</source>
   <translation>Wie aus Antworten ein Lernschritt wird. Mit „Empfohlen“ ist Shoal abgestimmt; „Aufsatz“ folgt SAPO aufs Wort.</translation>
  </message>
  <message>
   <source>algorithm sapo grpo loss</source>
   <translation>algorithmus verfahren sapo grpo verlust</translation>
  </message>
  <message>
   <source>Model</source>
   <translation>Modell</translation>
  </message>
  <message>
   <source>Which one learns: starter, a name from the page Models, or the path of a model's folder.</source>
   <translation>Welches lernt: starter, ein Name von der Seite Modelle oder der Pfad eines Modellordners.</translation>
  </message>
  <message>
   <source>base weights qwen llama smollm choose</source>
   <translation>grundmodell gewichte qwen llama smollm wählen</translation>
  </message>
  <message>
   <source>Engine</source>
   <translation>Rechenwerk</translation>
  </message>
  <message>
   <source>The program that computes answers and learns. Shoal takes the fastest that runs on this computer; {doctor} gives the reasons.</source>
   <translation>Das Programm, das Antworten berechnet und lernt. Shoal nimmt das schnellste, das auf diesem Computer läuft; {doctor} nennt die Gründe.</translation>
  </message>
  <message>
   <source>torch pytorch llama llamacpp mlx gpu cuda metal speed</source>
   <translation>torch pytorch llama llamacpp mlx gpu cuda metal tempo geschwindigkeit</translation>
  </message>
  <message>
   <source>Rounds between measurements</source>
   <translation>Runden zwischen zwei Messungen</translation>
  </message>
  <message>
   <source>The curve gets a point this often, and two before the first. Each takes about as long as a round.</source>
   <translation>So oft bekommt die Kurve einen Punkt, und vor dem ersten noch zwei. Jeder kostet etwa so viel Zeit wie eine Runde.</translation>
  </message>
  <message>
   <source>probe held-out curve points</source>
   <translation>messung prüffragen kurve punkte</translation>
  </message>
  <message>
   <source>Fetch models from</source>
   <translation>Modelle holen von</translation>
  </message>
  <message>
   <source>The address of a mirror. Empty: huggingface.co. A proxy is taken from HTTPS_PROXY, as your other programs do.</source>
   <translation>Die Adresse eines Spiegels. Leer: huggingface.co. Ein Proxy wird aus HTTPS_PROXY genommen, wie es deine anderen Programme tun.</translation>
  </message>
  <message>
   <source>download hub hugging face endpoint proxy</source>
   <translation>herunterladen hub hugging face adresse proxy spiegel</translation>
  </message>
  <message>
   <source>Window</source>
   <translation>Fenster</translation>
  </message>
  <message>
   <source>Keep learning when the window is closed</source>
   <translation>Weiterlernen, wenn das Fenster geschlossen ist</translation>
  </message>
  <message>
   <source>The icon in the system tray stays. Where there is no tray, closing asks instead.</source>
   <translation>Das Symbol in der Leiste bleibt. Wo es keine Leiste gibt, wird beim Schließen gefragt.</translation>
  </message>
  <message>
   <source>tray background quit hide close</source>
   <translation>leiste hintergrund beenden verstecken schließen</translation>
  </message>
  <message>
   <source>Start Shoal when I log in</source>
   <translation>Shoal starten, wenn ich mich anmelde</translation>
  </message>
  <message>
   <source>It starts in the tray, without its window.</source>
   <translation>Es startet in der Leiste, ohne Fenster.</translation>
  </message>
  <message>
   <source>autostart login boot session automatic</source>
   <translation>autostart anmeldung hochfahren sitzung automatisch</translation>
  </message>
  <message>
   <source>New versions</source>
   <translation>Neue Versionen</translation>
  </message>
  <message>
   <source>Look for new versions once a day</source>
   <translation>Einmal am Tag nach neuen Versionen sehen</translation>
  </message>
  <message>
   <source>Off: Shoal never looks by itself. On: it asks while this window is open, but not while it learns alone. The page Privacy shows the request. Nothing is downloaded or installed without you.</source>
   <translation>Aus: Shoal sieht nie von selbst nach. An: Es fragt, solange dieses Fenster offen ist, aber nicht, während es allein lernt. Die Seite Privatsphäre zeigt die Anfrage. Ohne dich wird nichts geladen oder installiert.</translation>
  </message>
  <message>
   <source>update upgrade release version check download</source>
   <translation>Update Aktualisierung Version Nachsehen Herunterladen Upgrade</translation>
  </message>
  <message>
   <source>Tell me when learning stops because of a problem</source>
   <translation>Melden, wenn das Lernen an einem Problem endet</translation>
  </message>
  <message>
   <source>One notification from the tray; there are no others.</source>
   <translation>Eine einzige Mitteilung aus der Leiste; andere gibt es nicht.</translation>
  </message>
  <message>
   <source>notifications alerts messages</source>
   <translation>mitteilungen benachrichtigungen hinweise</translation>
  </message>
  <message>
   <source>Follow the system</source>
   <translation>Wie das System</translation>
  </message>
  <message>
   <source>Light</source>
   <translation>Hell</translation>
  </message>
  <message>
   <source>Dark</source>
   <translation>Dunkel</translation>
  </message>
  <message>
   <source>Alone</source>
   <translation>Allein</translation>
  </message>
  <message>
   <source>With others</source>
   <translation>Mit anderen</translation>
  </message>
  <message>
   <source>Recommended</source>
   <translation>Empfohlen</translation>
  </message>
  <message>
   <source>Paper</source>
   <translation>Aufsatz</translation>
  </message>
  <message>
   <source>Chosen for this computer</source>
   <translation>Passend zu diesem Computer</translation>
  </message>
  <message>
   <source>Shoal waits until you start it.</source>
   <translation>Shoal wartet, bis du es startest.</translation>
  </message>
  <message>
   <source>The engine is not installed: the overview has a button for that.</source>
   <translation>Die Engine ist nicht installiert: In der Übersicht gibt es dafür einen Knopf.</translation>
  </message>
  <message>
   <source>Reading {name}.</source>
   <translation>Liest {name}.</translation>
  </message>
  <message>
   <source>The export ended unexpectedly; the log under Settings says why.</source>
   <translation>Der Export brach ab; das Protokoll unter Einstellungen sagt, warum.</translation>
  </message>
  <message>
   <source>The download ended unexpectedly; what has come is kept.</source>
   <translation>Das Herunterladen brach unerwartet ab; was schon da ist, bleibt.</translation>
  </message>
  <message>
   <source>Exporting …</source>
   <translation>Exportiert …</translation>
  </message>
  <message>
   <source>Exporting, {share}</source>
   <translation>Exportiert, {share}</translation>
  </message>
  <message>
   <source>Exported to {folder}</source>
   <translation>Exportiert nach {folder}</translation>
  </message>
  <message>
   <source>The access token is in the keyring.</source>
   <translation>Das Zugangstoken liegt im Schlüsselbund.</translation>
  </message>
  <message>
   <source>The list of models cannot be read; the log under Settings says why.</source>
   <translation>Die Liste der Modelle lässt sich nicht lesen; das Protokoll unter Einstellungen sagt, warum.</translation>
  </message>
  <message>
   <source>That didn't work. Nothing was changed.</source>
   <translation>Das hat nicht geklappt. Es ist alles wie vorher.</translation>
  </message>
  <message>
   <source>It could not be deleted; the log under Settings says why.</source>
   <translation>Es ließ sich nicht löschen; das Protokoll unter Einstellungen sagt, warum.</translation>
  </message>
  <message>
   <source>{name} is in your list now.</source>
   <translation>{name} ist jetzt in deiner Liste.</translation>
  </message>
  <message>
   <source>That folder holds no model that can be trained: it needs config.json and .safetensors files.</source>
   <translation>In diesem Ordner ist kein Modell, das lernen kann: Es braucht config.json und .safetensors-Dateien.</translation>
  </message>
  <message>
   <source>The access token was not kept: it is none, or this computer has no keyring. HF_TOKEN does as well.</source>
   <translation>Das Zugangstoken wurde nicht behalten: Es ist keines, oder dieser Computer hat keinen Schlüsselbund. HF_TOKEN tut es auch.</translation>
  </message>
  <message>
   <source>It can begin with: {families}. First it learns from {n} of its own right answers.</source>
   <translation>Damit kann es anfangen: {families}. Zuerst lernt es aus {n} eigenen richtigen Antworten.</translation>
  </message>
  <message>
   <source>Too hard: this model can't solve any of these puzzles yet. A larger one, or the starter, can.</source>
   <translation>Zu schwer: Dieses Modell löst noch keins dieser Rätsel. Ein größeres oder das Startmodell kann es.</translation>
  </message>
  <message>
   <source>It can begin with: {families}.</source>
   <translation>Damit kann es anfangen: {families}.</translation>
  </message>
  <message>
   <source>Its answers don't end in time. They may be longer now.</source>
   <translation>Seine Antworten kommen nicht rechtzeitig zum Ende. Sie dürfen jetzt länger sein.</translation>
  </message>
  <message>
   <source>Its answers lack the form asked for. It's shown worked examples now.</source>
   <translation>Seinen Antworten fehlt die verlangte Form. Es bekommt jetzt vorgerechnete Beispiele.</translation>
  </message>
  <message>
   <source>Every answer was wrong. It looks for easier puzzles.</source>
   <translation>Jede Antwort war falsch. Es sucht leichtere Rätsel.</translation>
  </message>
  <message>
   <source>Nearly every answer was right. It gets harder puzzles.</source>
   <translation>Fast jede Antwort war richtig. Es bekommt schwerere Rätsel.</translation>
  </message>
  <message>
   <source>Its answers to a puzzle are nearly all alike. It tries more puzzles a round.</source>
   <translation>Seine Antworten auf ein Rätsel sind fast alle gleich. Es probiert mehr Rätsel pro Runde.</translation>
  </message>
  <message>
   <source>It got worse with others' answers. It goes back to its best and learns alone for a while.</source>
   <translation>Mit den Antworten anderer wurde es schlechter. Es kehrt zu seinem besten Stand zurück und lernt eine Weile allein.</translation>
  </message>
  <message>
   <source>Learning made it worse. It goes back to its best and learns half as fast.</source>
   <translation>Das Lernen hat geschadet. Es kehrt zu seinem besten Stand zurück und lernt halb so schnell.</translation>
  </message>
  <message>
   <source>Learn with others at {relay}?</source>
   <translation>Mit anderen lernen, bei {relay}?</translation>
  </message>
  <message>
   <source>A link was opened that invites you there. Answers to generated puzzles are exchanged with them as text. Never your files, never the model.</source>
   <translation>Es wurde ein Link geöffnet, der dich dorthin einlädt. Mit ihnen werden Antworten auf erzeugte Rätsel als Text ausgetauscht. Nie deine Dateien, nie das Modell.</translation>
  </message>
  <message>
   <source>Join</source>
   <translation>Beitreten</translation>
  </message>
  <message>
   <source>Cancel</source>
   <translation>Abbrechen</translation>
  </message>
  <message>
   <source>This link leads to no swarm</source>
   <translation>Dieser Link führt zu keinem Schwarm</translation>
  </message>
  <message>
   <source>Close</source>
   <translation>Schließen</translation>
  </message>
  <message>
   <source>That didn't work: try again.</source>
   <translation>Das hat nicht geklappt: Versuch es noch einmal.</translation>
  </message>
  <message>
   <source>It sent a message that is too long.</source>
   <translation>Es hat eine zu lange Nachricht geschickt.</translation>
  </message>
  <message>
   <source>The learner ended several times in a row.</source>
   <translation>Der Lernende ist mehrmals hintereinander ausgefallen.</translation>
  </message>
  <message>
   <source>Look at the log under Settings, and start it again.</source>
   <translation>Sieh unter Einstellungen ins Protokoll und starte ihn neu.</translation>
  </message>
  <message>
   <source>Learning stopped</source>
   <translation>Lernen angehalten</translation>
  </message>
  <message>
   <source>The learner ended unexpectedly; everything up to its last safe point is kept.</source>
   <translation>Der Lernende ist unerwartet ausgefallen; alles bis zu seinem letzten sicheren Punkt ist erhalten.</translation>
  </message>
  <message>
   <source>Put that right and start it again.</source>
   <translation>Behebe das und starte ihn neu.</translation>
  </message>
  <message>
   <source>The learner cannot be started</source>
   <translation>Der Lernende lässt sich nicht starten</translation>
  </message>
  <message>
   <source>The system refused to start {program}.</source>
   <translation>Das System hat sich geweigert, {program} zu starten.</translation>
  </message>
  <message>
   <source>Install Shoal again.</source>
   <translation>Installiere Shoal neu.</translation>
  </message>
  <message>
   <source>Run {setup}, which repairs the installation.</source>
   <translation>Führe {setup} aus, das die Installation repariert.</translation>
  </message>
  <message>
   <source>It ended unexpectedly: try again; what has come is kept.</source>
   <translation>Es wurde unerwartet beendet: Versuche es noch einmal; was schon da ist, bleibt.</translation>
  </message>
  <message>
   <source>The folder could not be remembered ({why}): try another one.</source>
   <translation>Der Ordner konnte nicht gemerkt werden ({why}): Versuche einen anderen.</translation>
  </message>
  <message>
   <source>The engine is not installed</source>
   <translation>Die Engine ist nicht installiert</translation>
  </message>
  <message>
   <source>Shoal learns with an engine, and there is none on this computer.</source>
   <translation>Shoal lernt mit einer Engine, und auf diesem Computer ist keine.</translation>
  </message>
  <message>
   <source>Install it; what was learned so far is kept.</source>
   <translation>Installiere sie; was bisher gelernt wurde, bleibt erhalten.</translation>
  </message>
  <message>
   <source>Diagnostics</source>
   <translation>Diagnose</translation>
  </message>
  <message>
   <source>Files of the bundle</source>
   <translation>Dateien des Pakets</translation>
  </message>
  <message>
   <source>What is in this file</source>
   <translation>Was in dieser Datei steht</translation>
  </message>
  <message>
   <source>Save all of it …</source>
   <translation>Alles sichern …</translation>
  </message>
  <message>
   <source>This is all that would be saved, to the letter. Keys, invites and tokens are taken out, and so is your name in paths; answers are not in it. Nothing is sent.</source>
   <translation>Das ist alles, was gesichert würde, Buchstabe für Buchstabe. Schlüssel, Einladungen und Token sind entfernt, ebenso dein Name in Pfaden; Antworten sind nicht dabei. Nichts wird gesendet.</translation>
  </message>
  <message>
   <source>Still being looked for.</source>
   <translation>Wird noch gesucht.</translation>
  </message>
  <message>
   <source>Looking at this computer …</source>
   <translation>Dieser Computer wird angesehen …</translation>
  </message>
  <message>
   <source>{n} files, {size}</source>
   <translation>{n} Dateien, {size}</translation>
  </message>
  <message>
   <source>Save the diagnostics</source>
   <translation>Diagnose sichern</translation>
  </message>
  <message>
   <source>{doctor} said nothing.</source>
   <translation>{doctor} hat nichts gesagt.</translation>
  </message>
  <message>
   <source>Saved as {path}.</source>
   <translation>Gesichert als {path}.</translation>
  </message>
  <message>
   <source>{path} cannot be written ({why}): choose another place.</source>
   <translation>{path} lässt sich nicht schreiben ({why}): Wähle einen anderen Ort.</translation>
  </message>
  <message>
   <source>none</source>
   <translation>keine</translation>
  </message>
  <message>
   <source>Installation of the engine</source>
   <translation>Installation der Engine</translation>
  </message>
  <message>
   <source>What has come is kept: it can be cancelled, and goes on another time.</source>
   <translation>Was schon da ist, bleibt: Es lässt sich abbrechen und ein andermal fortsetzen.</translation>
  </message>
  <message>
   <source>Repair</source>
   <translation>Reparieren</translation>
  </message>
  <message>
   <source>Retry</source>
   <translation>Noch einmal</translation>
  </message>
  <message>
   <source>What has come is kept</source>
   <translation>Was schon da ist, bleibt</translation>
  </message>
  <message>
   <source>Choose a folder with the engine …</source>
   <translation>Ordner mit der Engine wählen …</translation>
  </message>
  <message>
   <source>Put it elsewhere …</source>
   <translation>Anderswohin legen …</translation>
  </message>
  <message>
   <source>Looking what there is for this computer.</source>
   <translation>Sieht nach, was es für diesen Computer gibt.</translation>
  </message>
  <message>
   <source>The folder that the engine goes into</source>
   <translation>Der Ordner, in den die Engine kommt</translation>
  </message>
  <message>
   <source>The folder with the engine's files</source>
   <translation>Der Ordner mit den Dateien der Engine</translation>
  </message>
  <message>
   <source>One folder</source>
   <translation>Ein Ordner</translation>
  </message>
  <message>
   <source>holds it, which can be removed as a whole</source>
   <translation>enthält sie ganz und lässt sich als Ganzes entfernen</translation>
  </message>
  <message>
   <source>Install it</source>
   <translation>Installieren</translation>
  </message>
  <message>
   <source>Not now</source>
   <translation>Nicht jetzt</translation>
  </message>
  <message>
   <source>For computers without a network: the files of an offline pack</source>
   <translation>Für Computer ohne Netz: die Dateien eines Offline-Pakets</translation>
  </message>
  <message>
   <source>Into another folder, for example on another disk</source>
   <translation>In einen anderen Ordner, zum Beispiel auf einer anderen Platte</translation>
  </message>
  <message>
   <source>{n} %</source>
   <translation>{n} %</translation>
  </message>
  <message>
   <source>It goes into {folder}</source>
   <translation>Sie kommt nach {folder}</translation>
  </message>
  <message>
   <source>{what}: {line}</source>
   <translation>{what}: {line}</translation>
  </message>
  <message>
   <source>This Shoal names no engine for this computer: choose a folder that holds one.</source>
   <translation>Dieses Shoal nennt keine Engine für diesen Computer: Wähle einen Ordner, der eine enthält.</translation>
  </message>
  <message>
   <source>This Shoal has a newer engine, {version}.</source>
   <translation>Dieses Shoal hat eine neuere Engine, {version}.</translation>
  </message>
  <message>
   <source>No engine is installed; learning needs one.</source>
   <translation>Es ist keine Engine installiert; zum Lernen wird eine gebraucht.</translation>
  </message>
  <message>
   <source>Go back to the one before</source>
   <translation>Zur vorherigen zurückgehen</translation>
  </message>
  <message>
   <source>From a folder …</source>
   <translation>Aus einem Ordner …</translation>
  </message>
  <message>
   <source>Remove …</source>
   <translation>Entfernen …</translation>
  </message>
  <message>
   <source>Install</source>
   <translation>Installieren</translation>
  </message>
  <message>
   <source>Install: {title}</source>
   <translation>Installieren: {title}</translation>
  </message>
  <message>
   <source>Remove the engine? {size} are free again.</source>
   <translation>Die Engine entfernen? {size} werden wieder frei.</translation>
  </message>
  <message>
   <source>Learning stops until an engine is installed again, which has to be fetched then. What the model learned is kept.</source>
   <translation>Das Lernen hält an, bis wieder eine Engine installiert ist, die dann geladen werden muss. Was das Modell gelernt hat, bleibt erhalten.</translation>
  </message>
  <message>
   <source>Only the one before</source>
   <translation>Nur die vorherige</translation>
  </message>
  <message>
   <source>Remove the engine</source>
   <translation>Engine entfernen</translation>
  </message>
  <message>
   <source>Work on the engine</source>
   <translation>Arbeit an der Engine</translation>
  </message>
  <message>
   <source>Looks at every file, and makes the engine anew</source>
   <translation>Prüft jede Datei und stellt die Engine neu her</translation>
  </message>
  <message>
   <source>Kept for going back: {title}</source>
   <translation>Aufgehoben, um zurückzugehen: {title}</translation>
  </message>
  <message>
   <source>{n} %  ·  {line}</source>
   <translation>{n} %  ·  {line}</translation>
  </message>
  <message>
   <source>{n} token</source>
   <translation>{n} Token</translation>
  </message>
  <message numerus="yes">
   <source>{n} tokens</source>
   <translation>
    <numerusform>{n} Token</numerusform>
    <numerusform>{n} Token</numerusform>
   </translation>
  </message>
  <message>
   <source>{n} s</source>
   <translation>{n} s</translation>
  </message>
  <message>
   <source>Before</source>
   <translation>Vorher</translation>
  </message>
  <message>
   <source>After</source>
   <translation>Nachher</translation>
  </message>
  <message>
   <source>{family}, level {n} of {all}</source>
   <translation>{family}, Stufe {n} von {all}</translation>
  </message>
  <message>
   <source>A right answer: {text}</source>
   <translation>Eine richtige Antwort: {text}</translation>
  </message>
  <message>
   <source>thinking …</source>
   <translation>denkt nach …</translation>
  </message>
  <message>
   <source>stopped</source>
   <translation>angehalten</translation>
  </message>
  <message>
   <source>cut off at the longest answer</source>
   <translation>an der längsten Antwort abgeschnitten</translation>
  </message>
  <message>
   <source>right</source>
   <translation>richtig</translation>
  </message>
  <message>
   <source>wrong</source>
   <translation>falsch</translation>
  </message>
  <message>
   <source>no answer</source>
   <translation>keine Antwort</translation>
  </message>
  <message>
   <source>After {n} round</source>
   <translation>Nach {n} Runde</translation>
  </message>
  <message numerus="yes">
   <source>After {n} rounds</source>
   <translation>
    <numerusform>Nach {n} Runde</numerusform>
    <numerusform>Nach {n} Runden</numerusform>
   </translation>
  </message>
  <message>
   <source>After, nothing learned yet</source>
   <translation>Nachher, noch nichts gelernt</translation>
  </message>
  <message>
   <source>(empty)</source>
   <translation>(leer)</translation>
  </message>
  <message>
   <source>You</source>
   <translation>Du</translation>
  </message>
  <message>
   <source>Help page</source>
   <translation>Hilfeseite</translation>
  </message>
  <message>
   <source>Help</source>
   <translation>Hilfe</translation>
  </message>
  <message>
   <source>Search help</source>
   <translation>Hilfe durchsuchen</translation>
  </message>
  <message>
   <source>Help pages</source>
   <translation>Hilfeseiten</translation>
  </message>
  <message>
   <source>Nothing found</source>
   <translation>Nichts gefunden</translation>
  </message>
  <message>
   <source>Try another word.</source>
   <translation>Versuch es mit einem anderen Wort.</translation>
  </message>
  <message>
   <source>{n} row</source>
   <translation>{n} Zeile</translation>
  </message>
  <message numerus="yes">
   <source>{n} rows</source>
   <translation>
    <numerusform>{n} Zeile</numerusform>
    <numerusform>{n} Zeilen</numerusform>
   </translation>
  </message>
  <message>
   <source>{share} of {n}</source>
   <translation>{share} von {n}</translation>
  </message>
  <message>
   <source>Rounds</source>
   <translation>Runden</translation>
  </message>
  <message>
   <source>Runs</source>
   <translation>Läufe</translation>
  </message>
  <message>
   <source>Events</source>
   <translation>Ereignisse</translation>
  </message>
  <message>
   <source>History</source>
   <translation>Verlauf</translation>
  </message>
  <message>
   <source>What to list</source>
   <translation>Was aufgelistet wird</translation>
  </message>
  <message>
   <source>Search</source>
   <translation>Suchen</translation>
  </message>
  <message>
   <source>Search the history</source>
   <translation>Verlauf durchsuchen</translation>
  </message>
  <message>
   <source>Export the history</source>
   <translation>Verlauf sichern</translation>
  </message>
  <message>
   <source>Export</source>
   <translation>Sichern</translation>
  </message>
  <message>
   <source>This list as CSV …</source>
   <translation>Diese Liste als CSV …</translation>
  </message>
  <message>
   <source>This list as JSON …</source>
   <translation>Diese Liste als JSON …</translation>
  </message>
  <message>
   <source>Everything as JSON …</source>
   <translation>Alles als JSON …</translation>
  </message>
  <message>
   <source>Save the history</source>
   <translation>Verlauf sichern</translation>
  </message>
  <message>
   <source>lesson from {n} of its own answers</source>
   <translation>Lektion aus {n} eigenen Antworten</translation>
  </message>
  <message>
   <source>Round</source>
   <translation>Runde</translation>
  </message>
  <message>
   <source>When</source>
   <translation>Wann</translation>
  </message>
  <message>
   <source>Practice answers right</source>
   <translation>Übungsantworten richtig</translation>
  </message>
  <message>
   <source>Own groups used</source>
   <translation>Eigene Gruppen genutzt</translation>
  </message>
  <message>
   <source>Peers' groups</source>
   <translation>Gruppen anderer</translation>
  </message>
  <message>
   <source>Took</source>
   <translation>Dauer</translation>
  </message>
  <message>
   <source>all rounds done</source>
   <translation>alle Runden fertig</translation>
  </message>
  <message>
   <source>stopped by a problem</source>
   <translation>an einem Problem beendet</translation>
  </message>
  <message>
   <source>ended without a word, or still running</source>
   <translation>wortlos beendet, oder läuft noch</translation>
  </message>
  <message>
   <source>none finished</source>
   <translation>keine beendet</translation>
  </message>
  <message>
   <source>Run</source>
   <translation>Lauf</translation>
  </message>
  <message>
   <source>Started</source>
   <translation>Begonnen</translation>
  </message>
  <message>
   <source>Lasted</source>
   <translation>Dauer</translation>
  </message>
  <message>
   <source>How it ended</source>
   <translation>Wie er endete</translation>
  </message>
  <message>
   <source>What happened</source>
   <translation>Was geschah</translation>
  </message>
  <message>
   <source>Click a round to see its answers.</source>
   <translation>Ein Klick auf eine Runde zeigt ihre Antworten.</translation>
  </message>
  <message>
   <source>Click a run to see its rounds.</source>
   <translation>Ein Klick auf einen Lauf zeigt seine Runden.</translation>
  </message>
  <message>
   <source>Click an event to see the answers of its round.</source>
   <translation>Ein Klick auf ein Ereignis zeigt die Antworten seiner Runde.</translation>
  </message>
  <message>
   <source>Nothing has happened yet</source>
   <translation>Noch ist nichts geschehen</translation>
  </message>
  <message>
   <source>Finished rounds are listed here, and stay until you delete them.</source>
   <translation>Fertige Runden stehen hier, bis du sie löschst.</translation>
  </message>
  <message>
   <source>Clear</source>
   <translation>Leeren</translation>
  </message>
  <message>
   <source>at any time</source>
   <translation>jederzeit</translation>
  </message>
  <message>
   <source>{name}, as text</source>
   <translation>{name}, als Text</translation>
  </message>
  <message>
   <source>Copy {day} to every day</source>
   <translation>{day} auf alle Tage übertragen</translation>
  </message>
  <message>
   <source>Other Shoals won't know you as {name} any more, and trust has to grow again. Your model keeps what it learned. Only the recovery words of {name} bring it back: write them down first.</source>
   <translation>Andere Shoals kennen dich dann nicht mehr als {name}, und Vertrauen muss neu wachsen. Dein Modell behält, was es gelernt hat. Nur die Wiederherstellungswörter von {name} bringen den Namen zurück: Schreib sie vorher auf.</translation>
  </message>
  <message>
   <source>Write them down in this order and keep the paper safe. They bring your name back on any computer.</source>
   <translation>Schreib sie in dieser Reihenfolge auf und bewahre das Blatt gut auf. Sie bringen deinen Namen auf jedem Computer zurück.</translation>
  </message>
  <message>
   <source>Changing your identity …</source>
   <translation>Deine Identität wird gewechselt …</translation>
  </message>
  <message>
   <source>Looking for your key …</source>
   <translation>Dein Schlüssel wird gesucht …</translation>
  </message>
  <message>
   <source>You get a name when you first learn with others.</source>
   <translation>Du bekommst einen Namen, sobald du zum ersten Mal mit anderen lernst.</translation>
  </message>
  <message>
   <source>Restore from words …</source>
   <translation>Aus Wörtern wiederherstellen …</translation>
  </message>
  <message>
   <source>New identity …</source>
   <translation>Neue Identität …</translation>
  </message>
  <message>
   <source>Show recovery words</source>
   <translation>Wiederherstellungswörter zeigen</translation>
  </message>
  <message>
   <source>Show the recovery words of {name}?</source>
   <translation>Die Wiederherstellungswörter von {name} zeigen?</translation>
  </message>
  <message>
   <source>Anyone who reads them can be you. Make sure nobody is looking over your shoulder.</source>
   <translation>Wer sie liest, kann als du auftreten. Achte darauf, dass dir niemand über die Schulter schaut.</translation>
  </message>
  <message>
   <source>Show them</source>
   <translation>Zeigen</translation>
  </message>
  <message>
   <source>Hide recovery words</source>
   <translation>Wiederherstellungswörter verbergen</translation>
  </message>
  <message>
   <source>Take a new identity?</source>
   <translation>Eine neue Identität annehmen?</translation>
  </message>
  <message>
   <source>New identity</source>
   <translation>Neue Identität</translation>
  </message>
  <message>
   <source>Restore from words</source>
   <translation>Aus Wörtern wiederherstellen</translation>
  </message>
  <message>
   <source>Recovery words</source>
   <translation>Wiederherstellungswörter</translation>
  </message>
  <message>
   <source>All {n} words in their order, with blanks between them</source>
   <translation>Alle {n} Wörter in ihrer Reihenfolge, mit Leerzeichen dazwischen</translation>
  </message>
  <message>
   <source>Restore</source>
   <translation>Wiederherstellen</translation>
  </message>
  <message>
   <source>You get back the name that these words belong to.</source>
   <translation>Du bekommst den Namen zurück, zu dem diese Wörter gehören.</translation>
  </message>
  <message>
   <source>Enter your recovery words</source>
   <translation>Gib deine Wiederherstellungswörter ein</translation>
  </message>
  <message>
   <source>{n} of {all} words</source>
   <translation>{n} von {all} Wörtern</translation>
  </message>
  <message>
   <source>Other Shoals know you by this name. Its key is in this computer's keyring.</source>
   <translation>Andere Shoals kennen dich unter diesem Namen. Sein Schlüssel liegt im Schlüsselbund dieses Computers.</translation>
  </message>
  <message>
   <source>Other Shoals know you by this name. Its key is in a file under your passphrase:</source>
   <translation>Andere Shoals kennen dich unter diesem Namen. Sein Schlüssel liegt in einer Datei unter deinem Passwortsatz:</translation>
  </message>
  <message>
   <source>Other Shoals know you by this name. This computer has no keyring, so the key is in a file that only you can read:</source>
   <translation>Andere Shoals kennen dich unter diesem Namen. Dieser Computer hat keinen Schlüsselbund, darum liegt der Schlüssel in einer Datei, die nur du lesen kannst:</translation>
  </message>
  <message>
   <source>Your identity</source>
   <translation>Deine Identität</translation>
  </message>
  <message>
   <source>{right} of {n} answer right</source>
   <translation>{right} von {n} Antwort richtig</translation>
  </message>
  <message numerus="yes">
   <source>{right} of {n} answers right</source>
   <translation>
    <numerusform>{right} von {n} Antwort richtig</numerusform>
    <numerusform>{right} von {n} Antworten richtig</numerusform>
   </translation>
  </message>
  <message>
   <source>round {n}</source>
   <translation>Runde {n}</translation>
  </message>
  <message>
   <source>this computer</source>
   <translation>dieser Computer</translation>
  </message>
  <message>
   <source>Live</source>
   <translation>Live</translation>
  </message>
  <message>
   <source>Whose answers</source>
   <translation>Wessen Antworten</translation>
  </message>
  <message>
   <source>Family of puzzles</source>
   <translation>Art der Rätsel</translation>
  </message>
  <message>
   <source>All families</source>
   <translation>Alle Arten</translation>
  </message>
  <message>
   <source>Show the answers of every round</source>
   <translation>Antworten aller Runden zeigen</translation>
  </message>
  <message>
   <source>Questions, newest first</source>
   <translation>Fragen, neueste zuerst</translation>
  </message>
  <message>
   <source>No answers yet</source>
   <translation>Noch keine Antworten</translation>
  </message>
  <message>
   <source>After the first round, every question appears here with all the answers your model gave to it.</source>
   <translation>Nach der ersten Runde erscheint hier jede Frage mit allen Antworten, die dein Modell darauf gab.</translation>
  </message>
  <message>
   <source>Round {n}  ✕</source>
   <translation>Runde {n}  ✕</translation>
  </message>
  <message>
   <source>Round {n} only. Show all rounds.</source>
   <translation>Nur Runde {n}. Alle Runden zeigen.</translation>
  </message>
  <message>
   <source>Grey: its working. Framed: its answer.</source>
   <translation>Grau: der Rechenweg. Umrahmt: die Antwort.</translation>
  </message>
  <message>
   <source>Level {n} of {all}</source>
   <translation>Stufe {n} von {all}</translation>
  </message>
  <message>
   <source>Show everything</source>
   <translation>Alles zeigen</translation>
  </message>
  <message>
   <source>These answers are gone</source>
   <translation>Diese Antworten sind nicht mehr da</translation>
  </message>
  <message>
   <source>Shoal keeps the answers of the latest rounds.</source>
   <translation>Shoal hebt die Antworten der letzten Runden auf.</translation>
  </message>
  <message>
   <source>Nothing here yet</source>
   <translation>Noch nichts da</translation>
  </message>
  <message>
   <source>Pick another kind of puzzle, or answers from everyone.</source>
   <translation>Wähle eine andere Art von Rätsel oder die Antworten von allen.</translation>
  </message>
  <message>
   <source>{verdict}. Right is {answer}.</source>
   <translation>{verdict}. Richtig ist {answer}.</translation>
  </message>
  <message>
   <source>All</source>
   <translation>Alle</translation>
  </message>
  <message>
   <source>Own</source>
   <translation>Eigene</translation>
  </message>
  <message>
   <source>Peers</source>
   <translation>Andere</translation>
  </message>
  <message>
   <source>Learner</source>
   <translation>Lernender</translation>
  </message>
  <message>
   <source>Trainer</source>
   <translation>Trainer</translation>
  </message>
  <message>
   <source>Which log to show</source>
   <translation>Welches Protokoll gezeigt wird</translation>
  </message>
  <message>
   <source>Only lines with …</source>
   <translation>Nur Zeilen mit …</translation>
  </message>
  <message>
   <source>Only lines with these words</source>
   <translation>Nur Zeilen mit diesen Wörtern</translation>
  </message>
  <message>
   <source>Follow</source>
   <translation>Mitlaufen</translation>
  </message>
  <message>
   <source>Copy these lines</source>
   <translation>Diese Zeilen kopieren</translation>
  </message>
  <message>
   <source>Open the folder of the logs</source>
   <translation>Ordner der Protokolle öffnen</translation>
  </message>
  <message>
   <source>Log</source>
   <translation>Protokoll</translation>
  </message>
  <message>
   <source>{n} line</source>
   <translation>{n} Zeile</translation>
  </message>
  <message numerus="yes">
   <source>{n} lines</source>
   <translation>
    <numerusform>{n} Zeile</numerusform>
    <numerusform>{n} Zeilen</numerusform>
   </translation>
  </message>
  <message>
   <source>The log is empty.</source>
   <translation>Das Protokoll ist leer.</translation>
  </message>
  <message>
   <source>Relay</source>
   <translation>Relay</translation>
  </message>
  <message>
   <source>free now, of {most}</source>
   <translation>jetzt frei, von {most}</translation>
  </message>
  <message>
   <source>Models ({pattern})</source>
   <translation>Modelle ({pattern})</translation>
  </message>
  <message>
   <source>Models</source>
   <translation>Modelle</translation>
  </message>
  <message>
   <source>Use a model folder of your own</source>
   <translation>Einen eigenen Modellordner benutzen</translation>
  </message>
  <message>
   <source>Add a folder</source>
   <translation>Ordner hinzufügen</translation>
  </message>
  <message>
   <source>Use a .gguf file, or drop it onto the window</source>
   <translation>Eine .gguf-Datei nehmen, oder zieh sie auf das Fenster</translation>
  </message>
  <message>
   <source>Open a file</source>
   <translation>Datei öffnen</translation>
  </message>
  <message>
   <source>Looking at what is here.</source>
   <translation>Sieht nach, was da ist.</translation>
  </message>
  <message>
   <source>Downloaded by other apps</source>
   <translation>Von anderen Programmen heruntergeladen</translation>
  </message>
  <message>
   <source>What {n} model learned is still here ({size}). Download the model again to continue.</source>
   <translation>Was {n} Modell gelernt hat, ist noch da ({size}). Lade das Modell wieder herunter, um weiterzumachen.</translation>
  </message>
  <message numerus="yes">
   <source>What {n} models learned is still here ({size}). Download a model again to continue with it.</source>
   <translation>
    <numerusform>Was {n} Modell gelernt hat, ist noch da ({size}). Lade das Modell wieder herunter, um weiterzumachen.</numerusform>
    <numerusform>Was {n} Modelle gelernt haben, ist noch da ({size}). Lade ein Modell wieder herunter, um damit weiterzumachen.</numerusform>
   </translation>
  </message>
  <message>
   <source>Shoal checks every downloaded file against its checksum. It only takes weights that can't run code: .safetensors and .gguf.</source>
   <translation>Shoal prüft jede heruntergeladene Datei anhand ihrer Prüfsumme. Es nimmt nur Gewichte, die keinen Code ausführen können: .safetensors und .gguf.</translation>
  </message>
  <message numerus="yes">
   <source>{n} on this computer</source>
   <translation>
    <numerusform>{n} auf diesem Computer</numerusform>
    <numerusform>{n} auf diesem Computer</numerusform>
   </translation>
  </message>
  <message>
   <source>Learned</source>
   <translation>Gelernt</translation>
  </message>
  <message>
   <source>adapters and histories</source>
   <translation>Adapter und Verläufe</translation>
  </message>
  <message>
   <source>Free on disk</source>
   <translation>Frei auf der Platte</translation>
  </message>
  <message>
   <source>where the data folder is</source>
   <translation>wo der Datenordner liegt</translation>
  </message>
  <message>
   <source>Memory for a model</source>
   <translation>Speicher für ein Modell</translation>
  </message>
  <message>
   <source>A folder with config.json</source>
   <translation>Ein Ordner mit config.json</translation>
  </message>
  <message>
   <source>A GGUF file</source>
   <translation>Eine GGUF-Datei</translation>
  </message>
  <message>
   <source>On this computer</source>
   <translation>Auf diesem Computer</translation>
  </message>
  <message>
   <source>Available</source>
   <translation>Verfügbar</translation>
  </message>
  <message>
   <source>Training without its model</source>
   <translation>Gelerntes ohne sein Modell</translation>
  </message>
  <message>
   <source>Progress of this step</source>
   <translation>Fortschritt dieses Schritts</translation>
  </message>
  <message>
   <source>Start learning</source>
   <translation>Lernen starten</translation>
  </message>
  <message>
   <source>Learn now anyway</source>
   <translation>Trotzdem jetzt lernen</translation>
  </message>
  <message>
   <source>For the next ten minutes</source>
   <translation>Für die nächsten zehn Minuten</translation>
  </message>
  <message>
   <source>Change this rule</source>
   <translation>Regel ändern</translation>
  </message>
  <message>
   <source>Pause</source>
   <translation>Pause</translation>
  </message>
  <message>
   <source>Frees the memory until you resume (Ctrl+P)</source>
   <translation>Gibt den Speicher frei, bis du weitermachst (Strg+P)</translation>
  </message>
  <message>
   <source>Pause for a while, or after this round</source>
   <translation>Eine Weile oder nach dieser Runde pausieren</translation>
  </message>
  <message>
   <source>Finish this round, then stop</source>
   <translation>Diese Runde beenden, dann anhalten</translation>
  </message>
  <message>
   <source>Nothing is lost; it starts over next time</source>
   <translation>Nichts geht verloren; beim nächsten Mal fängt es neu an</translation>
  </message>
  <message>
   <source>Contribute when idle</source>
   <translation>Bei Leerlauf mitmachen</translation>
  </message>
  <message>
   <source>Also while I use this computer</source>
   <translation>Auch während ich am Computer bin</translation>
  </message>
  <message>
   <source>Effort</source>
   <translation>Einsatz</translation>
  </message>
  <message>
   <source>A minute or two, once for each model: it tries a few puzzles of every kind.</source>
   <translation>Ein, zwei Minuten, einmal je Modell: Es probiert von jeder Art ein paar Rätsel.</translation>
  </message>
  <message>
   <source>Memory is free; everything learned is kept.</source>
   <translation>Der Speicher ist frei; alles Gelernte bleibt.</translation>
  </message>
  <message>
   <source>Resume</source>
   <translation>Weiter</translation>
  </message>
  <message>
   <source>The first start with a model can take a minute.</source>
   <translation>Der erste Start mit einem Modell kann eine Minute dauern.</translation>
  </message>
  <message>
   <source>It resumes by itself.</source>
   <translation>Es geht von selbst weiter.</translation>
  </message>
  <message>
   <source>Quiet</source>
   <translation>Leise</translation>
  </message>
  <message>
   <source>Balanced</source>
   <translation>Mittel</translation>
  </message>
  <message>
   <source>Full</source>
   <translation>Voll</translation>
  </message>
  <message>
   <source>Overview</source>
   <translation>Übersicht</translation>
  </message>
  <message>
   <source>Solved today</source>
   <translation>Heute gelöst</translation>
  </message>
  <message>
   <source>{given} / {taken}</source>
   <translation>{given} / {taken}</translation>
  </message>
  <message>
   <source>Round {n}</source>
   <translation>Runde {n}</translation>
  </message>
  <message>
   <source>Last safe point</source>
   <translation>Letzter sicherer Punkt</translation>
  </message>
  <message>
   <source>Try again</source>
   <translation>Noch einmal</translation>
  </message>
  <message>
   <source>no answers yet</source>
   <translation>noch keine Antworten</translation>
  </message>
  <message>
   <source>Rounds today</source>
   <translation>Runden heute</translation>
  </message>
  <message>
   <source>connected</source>
   <translation>verbunden</translation>
  </message>
  <message>
   <source>Peers online</source>
   <translation>Andere online</translation>
  </message>
  <message>
   <source>{n} on its way</source>
   <translation>{n} unterwegs</translation>
  </message>
  <message numerus="yes">
   <source>{n} on their way</source>
   <translation>
    <numerusform>{n} unterwegs</numerusform>
    <numerusform>{n} unterwegs</numerusform>
   </translation>
  </message>
  <message>
   <source>groups of answers</source>
   <translation>Gruppen von Antworten</translation>
  </message>
  <message>
   <source>Given / taken</source>
   <translation>Gegeben / genommen</translation>
  </message>
  <message>
   <source>after the first round</source>
   <translation>nach der ersten Runde</translation>
  </message>
  <message>
   <source>about {span} each</source>
   <translation>je etwa {span}</translation>
  </message>
  <message>
   <source>none yet</source>
   <translation>noch keine</translation>
  </message>
  <message>
   <source>Speed</source>
   <translation>Tempo</translation>
  </message>
  <message>
   <source>tokens a second</source>
   <translation>Token je Sekunde</translation>
  </message>
  <message>
   <source>since {day}</source>
   <translation>seit {day}</translation>
  </message>
  <message>
   <source>Rounds in all</source>
   <translation>Runden insgesamt</translation>
  </message>
  <message>
   <source>not connected</source>
   <translation>nicht verbunden</translation>
  </message>
  <message>
   <source>{n} puzzle: {families}</source>
   <translation>{n} Rätsel: {families}</translation>
  </message>
  <message numerus="yes">
   <source>{n} puzzles: {families}</source>
   <translation>
    <numerusform>{n} Rätsel: {families}</numerusform>
    <numerusform>{n} Rätsel: {families}</numerusform>
   </translation>
  </message>
  <message>
   <source>in the last hour</source>
   <translation>in der letzten Stunde</translation>
  </message>
  <message>
   <source>Answers to puzzles, {rate} an hour</source>
   <translation>Antworten auf Rätsel, {rate} je Stunde</translation>
  </message>
  <message>
   <source>Answers to puzzles</source>
   <translation>Antworten auf Rätsel</translation>
  </message>
  <message>
   <source>As text, to {relay}, signed with the made-up name {name}.</source>
   <translation>Als Text, an {relay}, unterschrieben mit dem erdachten Namen {name}.</translation>
  </message>
  <message>
   <source>{verdict}, it says</source>
   <translation>{verdict}, sagt es</translation>
  </message>
  <message>
   <source>The message, word for word</source>
   <translation>Die Nachricht im Wortlaut</translation>
  </message>
  <message>
   <source>What leaves this computer</source>
   <translation>Was diesen Computer verlässt</translation>
  </message>
  <message>
   <source>Learn with others</source>
   <translation>Mit anderen lernen</translation>
  </message>
  <message>
   <source>Which messages to show</source>
   <translation>Welche Nachrichten gezeigt werden</translation>
  </message>
  <message>
   <source>Show newer messages</source>
   <translation>Neuere zeigen</translation>
  </message>
  <message>
   <source>Closes what is open</source>
   <translation>Schließt, was offen ist</translation>
  </message>
  <message>
   <source>Sent</source>
   <translation>Gesendet</translation>
  </message>
  <message>
   <source>Received</source>
   <translation>Empfangen</translation>
  </message>
  <message>
   <source>{n} still to be sent</source>
   <translation>{n} noch zu senden</translation>
  </message>
  <message>
   <source>all handed over</source>
   <translation>alle übergeben</translation>
  </message>
  <message>
   <source>Puzzles whose answers were shared</source>
   <translation>Rätsel, deren Antworten geteilt wurden</translation>
  </message>
  <message>
   <source>No message yet since learning was started.</source>
   <translation>Seit dem Start des Lernens noch keine Nachricht.</translation>
  </message>
  <message>
   <source>Requests for the engine's files</source>
   <translation>Anfragen nach den Dateien der Engine</translation>
  </message>
  <message>
   <source>The engine is being fetched, as you asked for. Whoever gives it out sees this computer's network address, and nothing of yours.</source>
   <translation>Die Engine wird geladen, wie du es wolltest. Wer sie ausgibt, sieht die Netzadresse dieses Computers und nichts von dir.</translation>
  </message>
  <message>
   <source>Nothing</source>
   <translation>Nichts</translation>
  </message>
  <message>
   <source>Your model learns alone, and the process that runs it refuses to open any network connection.</source>
   <translation>Dein Modell lernt allein, und der Prozess, in dem es läuft, verweigert jede Netzverbindung.</translation>
  </message>
  <message>
   <source>Nothing at the moment</source>
   <translation>Im Augenblick nichts</translation>
  </message>
  <message>
   <source>Nothing runs. When your model learns with others, answers to puzzles that Shoal made up go out as text.</source>
   <translation>Nichts läuft. Wenn dein Modell mit anderen lernt, gehen Antworten auf Rätsel, die Shoal sich ausdenkt, als Text hinaus.</translation>
  </message>
  <message>
   <source>What is never sent</source>
   <translation>Was nie gesendet wird</translation>
  </message>
  <message>
   <source>Your files and what you type</source>
   <translation>Deine Dateien und was du tippst</translation>
  </message>
  <message>
   <source>Shoal reads nothing but its own folder. It trains on puzzles that it makes up itself.</source>
   <translation>Shoal liest nichts als seinen eigenen Ordner. Es übt an Rätseln, die es sich selbst ausdenkt.</translation>
  </message>
  <message>
   <source>The model's weights</source>
   <translation>Die Gewichte des Modells</translation>
  </message>
  <message>
   <source>Neither weights nor gradients travel, not even in a swarm: only answers to generated puzzles would, as text.</source>
   <translation>Weder Gewichte noch Gradienten reisen, auch im Schwarm nicht: nur Antworten auf erzeugte Rätsel, als Text.</translation>
  </message>
  <message>
   <source>Usage data</source>
   <translation>Nutzungsdaten</translation>
  </message>
  <message>
   <source>There is no telemetry and no account. Whether there is a newer Shoal is asked only if you want it.</source>
   <translation>Es gibt keine Telemetrie und kein Konto. Ob es ein neueres Shoal gibt, wird nur gefragt, wenn du es willst.</translation>
  </message>
  <message>
   <source>Show the answers</source>
   <translation>Antworten zeigen</translation>
  </message>
  <message>
   <source>Word for word</source>
   <translation>Im Wortlaut</translation>
  </message>
  <message>
   <source>Open folder</source>
   <translation>Ordner öffnen</translation>
  </message>
  <message>
   <source>Turn off to disconnect right away.</source>
   <translation>Ausschalten trennt sofort jede Verbindung.</translation>
  </message>
  <message>
   <source>Last messages</source>
   <translation>Letzte Nachrichten</translation>
  </message>
  <message>
   <source>Looking for a swarm.</source>
   <translation>Sucht einen Schwarm.</translation>
  </message>
  <message>
   <source>This copy of Shoal is a checkout: it asks nobody.</source>
   <translation>Diese Kopie von Shoal ist ein Arbeitsverzeichnis: Sie fragt niemanden.</translation>
  </message>
  <message>
   <source>the relay introduces itself</source>
   <translation>das Relay stellt sich vor</translation>
  </message>
  <message>
   <source>signs in</source>
   <translation>meldet sich an</translation>
  </message>
  <message>
   <source>the relay lets this computer in</source>
   <translation>das Relay lässt diesen Computer ein</translation>
  </message>
  <message>
   <source>a puzzle with its answers</source>
   <translation>ein Rätsel mit seinen Antworten</translation>
  </message>
  <message>
   <source>the relay has got it</source>
   <translation>das Relay hat es</translation>
  </message>
  <message>
   <source>asks for others' answers</source>
   <translation>bittet um Antworten anderer</translation>
  </message>
  <message>
   <source>others' puzzles and answers</source>
   <translation>Rätsel und Antworten anderer</translation>
  </message>
  <message>
   <source>tells of answers that were no good</source>
   <translation>meldet Antworten, die nichts taugten</translation>
  </message>
  <message>
   <source>a word from the relay</source>
   <translation>ein Wort des Relays</translation>
  </message>
  <message>
   <source>the relay says what was wrong</source>
   <translation>das Relay sagt, was falsch war</translation>
  </message>
  <message>
   <source>the relay says good-bye</source>
   <translation>das Relay verabschiedet sich</translation>
  </message>
  <message>
   <source>Hide the answers</source>
   <translation>Antworten ausblenden</translation>
  </message>
  <message>
   <source>Where everything is kept</source>
   <translation>Wo alles liegt</translation>
  </message>
  <message>
   <source>Looking for new versions</source>
   <translation>Nach neuen Versionen sehen</translation>
  </message>
  <message>
   <source>Off. {host} is asked only when you press a button that says so.</source>
   <translation>Aus. {host} wird nur gefragt, wenn du einen Knopf drückst, auf dem das steht.</translation>
  </message>
  <message>
   <source>asks how the swarm is doing</source>
   <translation>fragt, wie es dem Schwarm geht</translation>
  </message>
  <message>
   <source>how the swarm is doing</source>
   <translation>wie es dem Schwarm geht</translation>
  </message>
  <message>
   <source>sent</source>
   <translation>gesendet</translation>
  </message>
  <message>
   <source>received</source>
   <translation>empfangen</translation>
  </message>
  <message>
   <source>On, but never while Shoal learns alone.</source>
   <translation>An, aber nie, während Shoal allein lernt.</translation>
  </message>
  <message>
   <source>On. {host} is asked once a day, while this window is open.</source>
   <translation>An. {host} wird einmal am Tag gefragt, solange dieses Fenster offen ist.</translation>
  </message>
  <message>
   <source>Settings</source>
   <translation>Einstellungen</translation>
  </message>
  <message>
   <source>Search settings</source>
   <translation>Einstellungen durchsuchen</translation>
  </message>
  <message>
   <source>No setting of that name</source>
   <translation>Keine Einstellung dieses Namens</translation>
  </message>
  <message>
   <source>Try another word, for example colours or tray.</source>
   <translation>Versuch ein anderes Wort, zum Beispiel Farben oder Leiste.</translation>
  </message>
  <message>
   <source>engine pack install repair remove go back pytorch</source>
   <translation>Engine Paket installieren reparieren entfernen zurückgehen pytorch</translation>
  </message>
  <message>
   <source>Show the logs</source>
   <translation>Protokolle zeigen</translation>
  </message>
  <message>
   <source>{help} Holds from the next start of learning.</source>
   <translation>{help} Gilt ab dem nächsten Start des Lernens.</translation>
  </message>
  <message>
   <source>your identity name key recovery words restore new keyring passphrase</source>
   <translation>deine identität name schlüssel wiederherstellungswörter wiederherstellen neu schlüsselbund passwort passphrase</translation>
  </message>
  <message>
   <source>The diagnostics hold versions, settings, events and logs, for whoever looks for a fault. Every file is shown before anything is saved, and nothing is sent.</source>
   <translation>Die Diagnose enthält Versionen, Einstellungen, Ereignisse und Protokolle, für alle, die einen Fehler suchen. Jede Datei wird gezeigt, bevor etwas gesichert wird, und nichts wird gesendet.</translation>
  </message>
  <message>
   <source>Hide the logs</source>
   <translation>Protokolle verbergen</translation>
  </message>
  <message>
   <source>Reopen now</source>
   <translation>Jetzt neu öffnen</translation>
  </message>
  <message>
   <source>Diagnostics …</source>
   <translation>Diagnose …</translation>
  </message>
  <message>
   <source>Help, keys and About</source>
   <translation>Hilfe, Tasten und Über Shoal</translation>
  </message>
  <message>
   <source>Also with F1</source>
   <translation>Auch mit F1</translation>
  </message>
  <message>
   <source>Level {n} since {day}</source>
   <translation>Stufe {n} seit {day}</translation>
  </message>
  <message>
   <source>No right answer in practice yet</source>
   <translation>Beim Üben noch keine richtige Antwort</translation>
  </message>
  <message>
   <source>First solved in practice on {day}</source>
   <translation>Beim Üben zuerst gelöst am {day}</translation>
  </message>
  <message>
   <source>Level {n} now</source>
   <translation>Jetzt Stufe {n}</translation>
  </message>
  <message>
   <source>{now}, reached {n} on {day}</source>
   <translation>{now}, am {day} war es {n}</translation>
  </message>
  <message>
   <source>Skills</source>
   <translation>Können</translation>
  </message>
  <message>
   <source>Share of held-out questions solved. The shaded part is where the true share plausibly lies, the tick is where it began.</source>
   <translation>Anteil der gelösten Prüffragen. Im schattierten Teil liegt der wahre Anteil vermutlich, am Strich fing es an.</translation>
  </message>
  <message>
   <source>Too hard yet: {families}.</source>
   <translation>Noch zu schwer: {families}.</translation>
  </message>
  <message>
   <source>No skills measured yet</source>
   <translation>Noch kein Können gemessen</translation>
  </message>
  <message>
   <source>One tile for every family of puzzles appears with the first measurement.</source>
   <translation>Mit der ersten Messung erscheint für jede Art von Rätseln eine Kachel.</translation>
  </message>
  <message>
   <source>What the model learned, and its history</source>
   <translation>Was das Modell lernte, und sein Verlauf</translation>
  </message>
  <message>
   <source>Downloaded models</source>
   <translation>Heruntergeladene Modelle</translation>
  </message>
  <message>
   <source>What can be made again</source>
   <translation>Was neu gemacht werden kann</translation>
  </message>
  <message>
   <source>What the swarm needs</source>
   <translation>Was der Schwarm braucht</translation>
  </message>
  <message>
   <source>Logs</source>
   <translation>Protokolle</translation>
  </message>
  <message>
   <source>Settings and this computer's name</source>
   <translation>Einstellungen und der Name dieses Computers</translation>
  </message>
  <message>
   <source>an access token for models in the system's keyring, if you gave one</source>
   <translation>ein Zugangsschlüssel für Modelle im Schlüsselbund des Systems, falls du einen angegeben hast</translation>
  </message>
  <message>
   <source>{name}, which is not Shoal's</source>
   <translation>{name}, das nicht von Shoal ist</translation>
  </message>
  <message>
   <source>models and exports that you keep in other folders</source>
   <translation>Modelle und Ausgaben, die du in anderen Ordnern hast</translation>
  </message>
  <message>
   <source>Move the data folder to</source>
   <translation>Datenordner verlegen nach</translation>
  </message>
  <message>
   <source>Move the data folder to {folder}?</source>
   <translation>Datenordner nach {folder} verlegen?</translation>
  </message>
  <message>
   <source>Learning stops. Everything is copied and checked first, and deleted here only then; until then nothing has changed. Shoal opens again by itself.</source>
   <translation>Das Lernen hält an. Erst wird alles kopiert und geprüft und dann erst hier gelöscht; bis dahin hat sich nichts geändert. Shoal öffnet sich von selbst wieder.</translation>
  </message>
  <message>
   <source>Move it</source>
   <translation>Verlegen</translation>
  </message>
  <message>
   <source>Remove everything that Shoal keeps, {size}?</source>
   <translation>Alles entfernen, was Shoal aufbewahrt, {size}?</translation>
  </message>
  <message>
   <source>Remove everything</source>
   <translation>Alles entfernen</translation>
  </message>
  <message>
   <source>the key of {name} in the system's keyring</source>
   <translation>der Schlüssel von {name} im Schlüsselbund des Systems</translation>
  </message>
  <message>
   <source>the entry that starts Shoal at login</source>
   <translation>der Eintrag, der Shoal bei der Anmeldung startet</translation>
  </message>
  <message>
   <source>the engine in {folder}: {size}</source>
   <translation>die Engine in {folder}: {size}</translation>
  </message>
  <message>
   <source>what the single file unpacked in {folder}: {size}</source>
   <translation>was die einzelne Datei in {folder} entpackt hat: {size}</translation>
  </message>
  <message>
   <source>the entry by which links and menus find Shoal</source>
   <translation>der Eintrag, über den Links und Menüs Shoal finden</translation>
  </message>
  <message>
   <source>This goes, and cannot be had back:</source>
   <translation>Das wird gelöscht und kommt nicht wieder:</translation>
  </message>
  <message>
   <source>This stays:</source>
   <translation>Das bleibt:</translation>
  </message>
  <message>
   <source>Shoal then ends.</source>
   <translation>Danach beendet sich Shoal.</translation>
  </message>
  <message>
   <source>the program itself; the package manager removes it: {command}</source>
   <translation>das Programm selbst; die Paketverwaltung entfernt es: {command}</translation>
  </message>
  <message>
   <source>the program itself; Windows removes it, under Settings, Apps, Shoal</source>
   <translation>das Programm selbst; Windows entfernt es, unter Einstellungen, Apps, Shoal</translation>
  </message>
  <message>
   <source>the program itself; move it to the Trash: {path}</source>
   <translation>das Programm selbst; lege es in den Papierkorb: {path}</translation>
  </message>
  <message>
   <source>the program itself; delete it to be rid of it: {path}</source>
   <translation>das Programm selbst; lösche es, um es loszuwerden: {path}</translation>
  </message>
  <message>
   <source>Move …</source>
   <translation>Verlegen …</translation>
  </message>
  <message>
   <source>Remove everything …</source>
   <translation>Alles entfernen …</translation>
  </message>
  <message>
   <source>Swarm</source>
   <translation>Schwarm</translation>
  </message>
  <message>
   <source>Learn alone</source>
   <translation>Allein lernen</translation>
  </message>
  <message>
   <source>Search peers</source>
   <translation>Andere suchen</translation>
  </message>
  <message>
   <source>Nobody else is here yet</source>
   <translation>Noch ist niemand sonst da</translation>
  </message>
  <message>
   <source>Share the invite above, and those who use it appear in this list.</source>
   <translation>Gib die Einladung oben weiter; wer sie benutzt, erscheint in dieser Liste.</translation>
  </message>
  <message>
   <source>{n} peer</source>
   <translation>{n} anderer</translation>
  </message>
  <message numerus="yes">
   <source>{n} peers</source>
   <translation>
    <numerusform>{n} anderer</numerusform>
    <numerusform>{n} andere</numerusform>
   </translation>
  </message>
  <message>
   <source>Online now</source>
   <translation>Gerade online</translation>
  </message>
  <message>
   <source>others in this swarm</source>
   <translation>andere in diesem Schwarm</translation>
  </message>
  <message>
   <source>all acknowledged</source>
   <translation>alle bestätigt</translation>
  </message>
  <message>
   <source>Given</source>
   <translation>Gegeben</translation>
  </message>
  <message numerus="yes">
   <source>{n} turned away after checking</source>
   <translation>
    <numerusform>{n} nach Prüfung abgewiesen</numerusform>
    <numerusform>{n} nach Prüfung abgewiesen</numerusform>
   </translation>
  </message>
  <message>
   <source>every one checked here</source>
   <translation>jede hier geprüft</translation>
  </message>
  <message>
   <source>Taken</source>
   <translation>Genommen</translation>
  </message>
  <message>
   <source>Traffic</source>
   <translation>Datenverkehr</translation>
  </message>
  <message>
   <source>Find one on this network, or host one here</source>
   <translation>Im Netz suchen oder hier einen eröffnen</translation>
  </message>
  <message>
   <source>You are learning alone</source>
   <translation>Du lernst allein</translation>
  </message>
  <message>
   <source>Nothing leaves this computer. In a swarm your model also learns from what other people's models found out: answers to generated puzzles go to and fro, as text.</source>
   <translation>Nichts verlässt diesen Computer. In einem Schwarm lernt dein Modell auch aus dem, was die Modelle anderer herausfanden: Antworten auf erzeugte Rätsel gehen hin und her, als Text.</translation>
  </message>
  <message>
   <source>Invite</source>
   <translation>Einladung</translation>
  </message>
  <message>
   <source>Copy invite</source>
   <translation>Einladung kopieren</translation>
  </message>
  <message>
   <source>You are {name} here.</source>
   <translation>Du heißt hier {name}.</translation>
  </message>
  <message>
   <source>Leaves the swarm; nothing learned is lost</source>
   <translation>Verlässt den Schwarm; nichts Gelerntes geht verloren</translation>
  </message>
  <message>
   <source>an hour</source>
   <translation>je Stunde</translation>
  </message>
  <message>
   <source>not measured yet</source>
   <translation>noch nicht gemessen</translation>
  </message>
  <message>
   <source>Connected</source>
   <translation>Verbunden</translation>
  </message>
  <message>
   <source>Not connected</source>
   <translation>Nicht verbunden</translation>
  </message>
  <message>
   <source>Peer</source>
   <translation>Wer</translation>
  </message>
  <message>
   <source>Seen</source>
   <translation>Gesehen</translation>
  </message>
  <message>
   <source>Learned from</source>
   <translation>Gelernt aus</translation>
  </message>
  <message>
   <source>Try it</source>
   <translation>Ausprobieren</translation>
  </message>
  <message>
   <source>New conversation</source>
   <translation>Neues Gespräch</translation>
  </message>
  <message>
   <source>Nothing asked yet</source>
   <translation>Noch nichts gefragt</translation>
  </message>
  <message>
   <source>Draw a puzzle of a kind that the model practises, or ask something of your own. It answers twice: as it came, and with what it has learned.</source>
   <translation>Zieh ein Rätsel einer Art, die das Modell übt, oder frag etwas Eigenes. Es antwortet zweimal: so, wie es kam, und mit dem, was es gelernt hat.</translation>
  </message>
  <message>
   <source>Any that it practises</source>
   <translation>Irgendeines, das es übt</translation>
  </message>
  <message>
   <source>Level</source>
   <translation>Stufe</translation>
  </message>
  <message>
   <source>Draw a puzzle</source>
   <translation>Rätsel ziehen</translation>
  </message>
  <message>
   <source>Stop</source>
   <translation>Anhalten</translation>
  </message>
  <message>
   <source>Ask both</source>
   <translation>Beide fragen</translation>
  </message>
  <message>
   <source>Enter</source>
   <translation>Eingabetaste</translation>
  </message>
  <message>
   <source>Who answers</source>
   <translation>Wer antwortet</translation>
  </message>
  <message>
   <source>Or solve it yourself</source>
   <translation>Oder löse es selbst</translation>
  </message>
  <message>
   <source>Your own answer</source>
   <translation>Deine eigene Antwort</translation>
  </message>
  <message>
   <source>Check mine</source>
   <translation>Meine prüfen</translation>
  </message>
  <message>
   <source>Its own level</source>
   <translation>Seine eigene Stufe</translation>
  </message>
  <message>
   <source>Loading the model, {span}</source>
   <translation>Das Modell wird geladen, {span}</translation>
  </message>
  <message>
   <source>Question</source>
   <translation>Frage</translation>
  </message>
  <message>
   <source>Forgets every question and answer on this page</source>
   <translation>Vergisst jede Frage und Antwort auf dieser Seite</translation>
  </message>
  <message>
   <source>a text it never trained on</source>
   <translation>ein Text, an dem es nie übte</translation>
  </message>
  <message>
   <source>Level {n}</source>
   <translation>Stufe {n}</translation>
  </message>
  <message>
   <source>A question has at most {n} characters: make it shorter.</source>
   <translation>Eine Frage hat höchstens {n} Zeichen: Kürze sie.</translation>
  </message>
  <message>
   <source>Ask</source>
   <translation>Fragen</translation>
  </message>
  <message>
   <source>Say something, or draw a puzzle</source>
   <translation>Sag etwas oder zieh ein Rätsel</translation>
  </message>
  <message>
   <source>Draw a puzzle, or ask something of your own</source>
   <translation>Zieh ein Rätsel oder frag etwas Eigenes</translation>
  </message>
  <message>
   <source>{model} with {engine}</source>
   <translation>{model} mit {engine}</translation>
  </message>
  <message>
   <source>Both</source>
   <translation>Beide</translation>
  </message>
  <message>
   <source>This model only speaks puzzle: draw one, or pick a model that talks.</source>
   <translation>Dieses Modell kann nur Rätsel: Zieh eins oder wähl ein Modell, das sich unterhält.</translation>
  </message>
  <message>
   <source>See the models</source>
   <translation>Zu den Modellen</translation>
  </message>
  <message>
   <source>Answering, {span}</source>
   <translation>Antwortet, {span}</translation>
  </message>
  <message>
   <source>Drawing a puzzle</source>
   <translation>Ein Rätsel wird gezogen</translation>
  </message>
  <message>
   <source>The model is not in memory; the first question loads it.</source>
   <translation>Das Modell ist nicht im Speicher; die erste Frage lädt es.</translation>
  </message>
  <message>
   <source>In memory until a minute after you leave this page.</source>
   <translation>Im Speicher bis eine Minute nach Verlassen dieser Seite.</translation>
  </message>
  <message numerus="yes">
   <source>In memory until {n} minutes after you leave this page.</source>
   <translation>
    <numerusform>Im Speicher bis {n} Minute nach Verlassen dieser Seite.</numerusform>
    <numerusform>Im Speicher bis {n} Minuten nach Verlassen dieser Seite.</numerusform>
   </translation>
  </message>
  <message>
   <source>Step {n} of {all}</source>
   <translation>Schritt {n} von {all}</translation>
  </message>
  <message>
   <source>Raise a small model on this computer</source>
   <translation>Zieh ein kleines Modell auf diesem Computer groß</translation>
  </message>
  <message>
   <source>It tries puzzles, checks itself and gets better. On its own, or together with other people's models.</source>
   <translation>Es probiert Rätsel, prüft sich selbst und wird besser. Allein oder mit den Modellen anderer Leute.</translation>
  </message>
  <message>
   <source>Set it up</source>
   <translation>Einrichten</translation>
  </message>
  <message>
   <source>Two quick questions. No account.</source>
   <translation>Zwei kurze Fragen. Kein Konto.</translation>
  </message>
  <message>
   <source>Starts right away with the built-in model</source>
   <translation>Beginnt sofort mit dem eingebauten Modell</translation>
  </message>
  <message>
   <source>Progress of the measurement</source>
   <translation>Fortschritt der Messung</translation>
  </message>
  <message>
   <source>Measure again</source>
   <translation>Neu messen</translation>
  </message>
  <message>
   <source>Starter (recommended)</source>
   <translation>Starter (empfohlen)</translation>
  </message>
  <message>
   <source>Built in. Only speaks puzzle, and gets visibly better within minutes on any computer.</source>
   <translation>Eingebaut. Kann nur Rätsel und wird auf jedem Computer in Minuten sichtbar besser.</translation>
  </message>
  <message>
   <source>A bigger model</source>
   <translation>Ein größeres Modell</translation>
  </message>
  <message>
   <source>Talks and knows more. Learns slower. Download needed.</source>
   <translation>Unterhält sich und weiß mehr. Lernt langsamer. Muss heruntergeladen werden.</translation>
  </message>
  <message>
   <source>Continue</source>
   <translation>Weiter</translation>
  </message>
  <message>
   <source>With whom</source>
   <translation>Mit wem</translation>
  </message>
  <message>
   <source>With an invite</source>
   <translation>Mit einer Einladung</translation>
  </message>
  <message>
   <source>Joins the swarm you were invited to. Only puzzle answers are shared, as plain text.</source>
   <translation>Tritt dem Schwarm bei, in den du eingeladen bist. Geteilt werden nur Rätselantworten, als Text.</translation>
  </message>
  <message>
   <source>What it does</source>
   <translation>Was es tut</translation>
  </message>
  <message>
   <source>Watch it learn for ten minutes. After that it only works while you're away. Pause any time.</source>
   <translation>Sieh ihm zehn Minuten beim Lernen zu. Danach arbeitet es nur, wenn du weg bist. Pause geht jederzeit.</translation>
  </message>
  <message>
   <source>On its own, Shoal doesn't open a single network connection. In a swarm, only puzzle answers are shared. Never your files, never what you type, never the model.</source>
   <translation>Allein öffnet Shoal keine einzige Verbindung ins Netz. Im Schwarm werden nur Rätselantworten geteilt. Nie deine Dateien, nie was du tippst, nie das Modell.</translation>
  </message>
  <message>
   <source>What it keeps</source>
   <translation>Was es aufbewahrt</translation>
  </message>
  <message>
   <source>Everything is in one folder that you can move or delete. No account, and no one is told that you use it.</source>
   <translation>Alles liegt in einem Ordner, den du verschieben oder löschen kannst. Kein Konto, und niemand erfährt davon.</translation>
  </message>
  <message>
   <source>First the engine is installed: {size}, once.</source>
   <translation>Zuerst wird die Engine installiert: {size}, einmal.</translation>
  </message>
  <message>
   <source>First the engine is installed, once.</source>
   <translation>Zuerst wird die Engine installiert, einmal.</translation>
  </message>
  <message>
   <source>First, the engine</source>
   <translation>Zuerst die Engine</translation>
  </message>
  <message>
   <source>Shoal learns with PyTorch, which is large and no part of the app itself. It is installed once, into a folder of your own, and can be removed at any time.</source>
   <translation>Shoal lernt mit PyTorch, das groß ist und nicht zur App selbst gehört. Es wird einmal installiert, in einen Ordner von dir, und lässt sich jederzeit entfernen.</translation>
  </message>
  <message>
   <source>What this computer can do</source>
   <translation>Was dieser Computer kann</translation>
  </message>
  <message>
   <source>A quick speed test. No need to wait.</source>
   <translation>Ein kurzer Geschwindigkeitstest. Du musst nicht warten.</translation>
  </message>
  <message>
   <source>Nothing leaves this computer. You can change your mind at any time.</source>
   <translation>Nichts verlässt diesen Computer. Du kannst es dir jederzeit anders überlegen.</translation>
  </message>
  <message>
   <source>With others on this network</source>
   <translation>Mit anderen in diesem Netz</translation>
  </message>
  <message>
   <source>Finds other Shoals on this network, or starts a swarm you can invite people to. Only puzzle answers are shared, as plain text.</source>
   <translation>Findet andere Shoals in diesem Netz oder startet einen Schwarm, in den du einlädst. Geteilt werden nur Rätselantworten, als Text.</translation>
  </message>
  <message>
   <source>Learn alone or together?</source>
   <translation>Allein oder zusammen lernen?</translation>
  </message>
  <message>
   <source>A swarm swaps what its models find out. You can change this any time.</source>
   <translation>Ein Schwarm tauscht, was seine Modelle herausfinden. Du kannst das jederzeit ändern.</translation>
  </message>
  <message>
   <source>No estimate</source>
   <translation>Keine Schätzung</translation>
  </message>
  <message>
   <source>Back</source>
   <translation>Zurück</translation>
  </message>
  <message>
   <source>Measuring …</source>
   <translation>Misst …</translation>
  </message>
  <message>
   <source>{span} so far: a few answers, and a step of learning from them.</source>
   <translation>Bisher {span}: ein paar Antworten und ein Lernschritt daraus.</translation>
  </message>
  <message>
   <source>Not measured yet</source>
   <translation>Noch nicht gemessen</translation>
  </message>
  <message>
   <source>The graphics card learns, because it is quickest.</source>
   <translation>Die Grafikkarte lernt, weil sie am schnellsten ist.</translation>
  </message>
  <message>
   <source>d MMM yyyy</source>
   <translation>d. MMM yyyy</translation>
  </message>
  <message>
   <source>After round {n}</source>
   <translation>Nach Runde {n}</translation>
  </message>
  <message>
   <source>First look</source>
   <translation>Erster Blick</translation>
  </message>
  <message>
   <source>Round {n} of {all}</source>
   <translation>Runde {n} von {all}</translation>
  </message>
  <message>
   <source>answer {n} of {all}</source>
   <translation>Antwort {n} von {all}</translation>
  </message>
  <message>
   <source>about {span} a round</source>
   <translation>etwa {span} je Runde</translation>
  </message>
  <message>
   <source>, {n} threads</source>
   <translation>, {n} Threads</translation>
  </message>
  <message>
   <source>{name} on {device}, {dtype}</source>
   <translation>{name} auf {device}, {dtype}</translation>
  </message>
  <message>
   <source>The processor learns: no graphics card that it could use was found.</source>
   <translation>Der Prozessor lernt: Eine Grafikkarte, die er nutzen könnte, wurde nicht gefunden.</translation>
  </message>
  <message>
   <source>everyday replies surprise it {n} % less</source>
   <translation>Alltägliche Antworten überraschen es {n} % weniger</translation>
  </message>
  <message>
   <source>everyday replies surprise it {n} % more</source>
   <translation>Alltägliche Antworten überraschen es {n} % mehr</translation>
  </message>
  <message>
   <source>Ready</source>
   <translation>Bereit</translation>
  </message>
  <message>
   <source>Starting</source>
   <translation>Startet</translation>
  </message>
  <message>
   <source>Waiting</source>
   <translation>Wartet</translation>
  </message>
  <message>
   <source>Paused</source>
   <translation>Angehalten</translation>
  </message>
  <message>
   <source>Stopping</source>
   <translation>Hält an</translation>
  </message>
  <message>
   <source>Stopped by a problem</source>
   <translation>Durch ein Problem angehalten</translation>
  </message>
  <message>
   <source>Ready when you are.</source>
   <translation>Bereit, wenn du es bist.</translation>
  </message>
  <message>
   <source>Loading the model.</source>
   <translation>Das Modell wird geladen.</translation>
  </message>
  <message>
   <source>Learning on its own. Nothing leaves this computer.</source>
   <translation>Lernt für sich. Nichts verlässt diesen Computer.</translation>
  </message>
  <message>
   <source>Learning with others.</source>
   <translation>Lernt mit anderen.</translation>
  </message>
  <message>
   <source>{sentence} It is started again in {span}.</source>
   <translation>{sentence} In {span} wird neu gestartet.</translation>
  </message>
  <message>
   <source>Saving what was learned.</source>
   <translation>Das Gelernte wird gesichert.</translation>
  </message>
  <message>
   <source>HH:mm</source>
   <translation>HH:mm</translation>
  </message>
  <message>
   <source>ddd HH:mm</source>
   <translation>ddd HH:mm</translation>
  </message>
  <message>
   <source>d MMM yyyy HH:mm</source>
   <translation>d. MMM yyyy HH:mm</translation>
  </message>
  <message>
   <source>Before round 1</source>
   <translation>Vor Runde 1</translation>
  </message>
  <message>
   <source>, about {span}</source>
   <translation>, etwa {span}</translation>
  </message>
  <message>
   <source>starting</source>
   <translation>startet</translation>
  </message>
  <message>
   <source>loading the model</source>
   <translation>lädt das Modell</translation>
  </message>
  <message>
   <source>finding out what it can begin with</source>
   <translation>findet heraus, womit es anfangen kann</translation>
  </message>
  <message>
   <source>measuring on held-out questions</source>
   <translation>misst an Prüffragen</translation>
  </message>
  <message>
   <source>waiting for the others</source>
   <translation>wartet auf die anderen</translation>
  </message>
  <message>
   <source>answering questions</source>
   <translation>beantwortet Fragen</translation>
  </message>
  <message>
   <source>checking the answers</source>
   <translation>prüft die Antworten</translation>
  </message>
  <message>
   <source>learning from the answers</source>
   <translation>lernt aus den Antworten</translation>
  </message>
  <message>
   <source>saving</source>
   <translation>sichert</translation>
  </message>
  <message>
   <source>resting</source>
   <translation>ruht</translation>
  </message>
  <message>
   <source>waiting to start the trainer again</source>
   <translation>wartet auf den Neustart</translation>
  </message>
  <message>
   <source>handing over the last answers</source>
   <translation>übergibt die letzten Antworten</translation>
  </message>
  <message>
   <source>stopping</source>
   <translation>hält an</translation>
  </message>
  <message>
   <source>It speaks as well as before: {said}.</source>
   <translation>Es spricht so gut wie vorher: {said}.</translation>
  </message>
  <message>
   <source>It speaks a little worse than before: {said}.</source>
   <translation>Es spricht etwas schlechter als vorher: {said}.</translation>
  </message>
  <message>
   <source>It is losing everyday language: {said}.</source>
   <translation>Es verlernt die Alltagssprache: {said}.</translation>
  </message>
  <message>
   <source>measuring, </source>
   <translation>Messung, </translation>
  </message>
  <message>
   <source>finding where to begin, </source>
   <translation>sucht den Anfang, </translation>
  </message>
  <message>
   <source>Nothing can be kept in the data folder {home}: make it yours to write, or name another one with --home.</source>
   <translation>Im Datenordner {home} lässt sich nichts speichern: Mache ihn für dich beschreibbar, oder nenne mit --home einen anderen.</translation>
  </message>
  <message>
   <source>shoal: Another Shoal uses {home} and does not answer; end it and start again.</source>
   <translation>shoal: Ein anderes Shoal benutzt {home} und antwortet nicht; beende es und starte noch einmal.</translation>
  </message>
  <message>
   <source>Shoal is still here</source>
   <translation>Shoal ist noch da</translation>
  </message>
  <message>
   <source>It stays in the tray. Quit it from there.</source>
   <translation>Es bleibt in der Leiste. Dort kannst du es beenden.</translation>
  </message>
  <message>
   <source>{n} min</source>
   <translation>{n} min</translation>
  </message>
  <message>
   <source>{n} h</source>
   <translation>{n} h</translation>
  </message>
  <message>
   <source>{n} days</source>
   <translation>{n} Tage</translation>
  </message>
  <message>
   <source>never</source>
   <translation>nie</translation>
  </message>
  <message>
   <source>just now</source>
   <translation>gerade eben</translation>
  </message>
  <message>
   <source>{span} ago</source>
   <translation>vor {span}</translation>
  </message>
  <message>
   <source>For 1 hour</source>
   <translation>Für 1 Stunde</translation>
  </message>
  <message>
   <source>For 3 hours</source>
   <translation>Für 3 Stunden</translation>
  </message>
  <message>
   <source>Until tomorrow morning</source>
   <translation>Bis morgen früh</translation>
  </message>
  <message>
   <source>Pause for a while</source>
   <translation>Eine Weile pausieren</translation>
  </message>
  <message>
   <source>Open Shoal</source>
   <translation>Shoal öffnen</translation>
  </message>
  <message>
   <source>Quit</source>
   <translation>Beenden</translation>
  </message>
  <message>
   <source>about {n} round an hour</source>
   <translation>etwa {n} Runde je Stunde</translation>
  </message>
  <message numerus="yes">
   <source>about {n} rounds an hour</source>
   <translation>
    <numerusform>etwa {n} Runde je Stunde</numerusform>
    <numerusform>etwa {n} Runden je Stunde</numerusform>
   </translation>
  </message>
  <message>
   <source>{engine} on {device}</source>
   <translation>{engine} auf {device}</translation>
  </message>
  <message>
   <source>The measurement ended unexpectedly. Learning works without it.</source>
   <translation>Die Messung brach unerwartet ab. Das Lernen geht auch ohne sie.</translation>
  </message>
  <message>
   <source>The measurement took too long. Learning works without it.</source>
   <translation>Die Messung dauerte zu lange. Das Lernen geht auch ohne sie.</translation>
  </message>
  <message>
   <source>It ended unexpectedly; the log under Settings says why.</source>
   <translation>Es wurde unerwartet beendet; das Protokoll unter Einstellungen sagt, warum.</translation>
  </message>
  <message>
   <source>Copying to {folder} and checking …</source>
   <translation>Kopiert nach {folder} und prüft …</translation>
  </message>
  <message>
   <source>Removing everything …</source>
   <translation>Entfernt alles …</translation>
  </message>
  <message>
   <source>Some of it is left</source>
   <translation>Etwas davon ist noch da</translation>
  </message>
  <message>
   <source>The data folder was not moved</source>
   <translation>Der Datenordner wurde nicht verlegt</translation>
  </message>
  <message>
   <source>Left there, because it is not Shoal's: {path}</source>
   <translation>Dort gelassen, weil es nicht von Shoal ist: {path}</translation>
  </message>
  <message>
   <source>rounds</source>
   <translation>Runden</translation>
  </message>
  <message>
   <source>{value} ± {error}</source>
   <translation>{value} ± {error}</translation>
  </message>
  <message>
   <source>smoothed {value}</source>
   <translation>geglättet {value}</translation>
  </message>
  <message>
   <source>Copied</source>
   <translation>Kopiert</translation>
  </message>
  <message>
   <source>{name}: {now} at round {last}, {then} at round {first}, the highest was {best} at round {at}; {n} points. Arrow keys read single points.</source>
   <translation>{name}: {now} in Runde {last}, {then} in Runde {first}, am höchsten {best} in Runde {at}; {n} Punkte. Die Pfeiltasten lesen einzelne Punkte vor.</translation>
  </message>
  <message>
   <source>Which curve</source>
   <translation>Welche Kurve</translation>
  </message>
  <message>
   <source>The curve begins with the first measurement</source>
   <translation>Die Kurve beginnt mit der ersten Messung</translation>
  </message>
  <message>
   <source>Before its first round, your model answers questions that it will never train on. That takes a few seconds.</source>
   <translation>Vor der ersten Runde beantwortet dein Modell Fragen, an denen es nie üben wird. Das dauert ein paar Sekunden.</translation>
  </message>
  <message>
   <source>Smoothing</source>
   <translation>Glättung</translation>
  </message>
  <message>
   <source>Logarithmic axis of rounds</source>
   <translation>Logarithmische Achse der Runden</translation>
  </message>
  <message>
   <source>Log axis</source>
   <translation>Log-Achse</translation>
  </message>
  <message>
   <source>Show the whole curve</source>
   <translation>Ganze Kurve zeigen</translation>
  </message>
  <message>
   <source>Show all</source>
   <translation>Alles zeigen</translation>
  </message>
  <message>
   <source>Export the curve</source>
   <translation>Kurve sichern</translation>
  </message>
  <message>
   <source>Values as CSV …</source>
   <translation>Werte als CSV …</translation>
  </message>
  <message>
   <source>Picture as PNG …</source>
   <translation>Bild als PNG …</translation>
  </message>
  <message>
   <source>The curve has no points yet.</source>
   <translation>Die Kurve hat noch keine Punkte.</translation>
  </message>
  <message>
   <source>Held-out questions solved</source>
   <translation>Gelöste Prüffragen</translation>
  </message>
  <message>
   <source>One standard error: the true share lies within it two times out of three.</source>
   <translation>Ein Standardfehler: In zwei von drei Fällen liegt der wahre Anteil darin.</translation>
  </message>
  <message>
   <source>Training answers right, latest round</source>
   <translation>Übungsantworten richtig, letzte Runde</translation>
  </message>
  <message>
   <source>questions get harder as it learns</source>
   <translation>die Fragen werden mit dem Lernen schwerer</translation>
  </message>
  <message>
   <source>Saved: {name}</source>
   <translation>Gespeichert: {name}</translation>
  </message>
  <message>
   <source>Could not save {name}.</source>
   <translation>{name} ließ sich nicht speichern.</translation>
  </message>
  <message>
   <source>Save the values</source>
   <translation>Werte sichern</translation>
  </message>
  <message>
   <source>Save the picture</source>
   <translation>Bild sichern</translation>
  </message>
  <message>
   <source>Held-out</source>
   <translation>Prüffragen</translation>
  </message>
  <message>
   <source>Training</source>
   <translation>Übung</translation>
  </message>
  <message>
   <source>no clear change yet</source>
   <translation>noch keine klare Änderung</translation>
  </message>
  <message>
   <source>{sign}{n} points since the start</source>
   <translation>{sign}{n} Punkte seit dem Start</translation>
  </message>
  <message>
   <source>put it elsewhere</source>
   <translation>anderswohin legen</translation>
  </message>
  <message>
   <source>{much} {come}. {disk} {meanwhile}.</source>
   <translation>{much} {come}. {disk} {meanwhile}.</translation>
  </message>
  <message>
   <source>There is no room for it: {size} more are needed on this disk.</source>
   <translation>Dafür ist kein Platz: Auf dieser Platte fehlen {size}.</translation>
  </message>
  <message>
   <source>{stage}, {n} %</source>
   <translation>{stage}, {n} %</translation>
  </message>
  <message>
   <source>For the processor</source>
   <translation>Für den Prozessor</translation>
  </message>
  <message>
   <source>For the NVIDIA card</source>
   <translation>Für die NVIDIA-Karte</translation>
  </message>
  <message>
   <source>For Apple Silicon</source>
   <translation>Für Apple Silicon</translation>
  </message>
  <message>
   <source>For the processor, with llama.cpp</source>
   <translation>Für den Prozessor, mit llama.cpp</translation>
  </message>
  <message>
   <source>The smallest. It works on every computer.</source>
   <translation>Die kleinste. Sie läuft auf jedem Computer.</translation>
  </message>
  <message>
   <source>The graphics card learns many times faster. The largest to fetch.</source>
   <translation>Die Grafikkarte lernt um ein Vielfaches schneller. Der größte Download.</translation>
  </message>
  <message>
   <source>Made for this kind of Mac, and the fastest on it.</source>
   <translation>Für diese Art Mac gemacht und darauf die schnellste.</translation>
  </message>
  <message>
   <source>Answers faster with the larger models.</source>
   <translation>Antwortet mit den größeren Modellen schneller.</translation>
  </message>
  <message>
   <source>to fetch, once; nothing of yours is sent</source>
   <translation>zu laden, einmal; von dir wird nichts gesendet</translation>
  </message>
  <message>
   <source>of room needed meanwhile; {free} are free</source>
   <translation>Platz werden dabei gebraucht; {free} sind frei</translation>
  </message>
  <message>
   <source>How large it is, is asked first; nothing else is fetched until there is room for it.</source>
   <translation>Zuerst wird gefragt, wie groß sie ist; sonst wird nichts geladen, bis Platz dafür ist.</translation>
  </message>
  <message>
   <source>Go on installing</source>
   <translation>Weiter installieren</translation>
  </message>
  <message>
   <source>Install the engine anew</source>
   <translation>Engine neu installieren</translation>
  </message>
  <message>
   <source>Install the engine</source>
   <translation>Engine installieren</translation>
  </message>
  <message>
   <source>The engine does not work any more</source>
   <translation>Die Engine funktioniert nicht mehr</translation>
  </message>
  <message>
   <source>The engine is missing</source>
   <translation>Die Engine fehlt</translation>
  </message>
  <message>
   <source>It was damaged, or something that it needs was removed. A repair makes it anew; what the model learned is kept.</source>
   <translation>Sie wurde beschädigt, oder etwas, das sie braucht, wurde entfernt. Eine Reparatur stellt sie neu her; was das Modell gelernt hat, bleibt erhalten.</translation>
  </message>
  <message>
   <source>Learning needs it, and it cannot be started. What the model learned is kept.</source>
   <translation>Sie wird zum Lernen gebraucht und lässt sich nicht starten. Was das Modell gelernt hat, bleibt erhalten.</translation>
  </message>
  <message>
   <source>Looking what is there</source>
   <translation>Sieht nach, was da ist</translation>
  </message>
  <message>
   <source>Making its environment</source>
   <translation>Legt ihre Umgebung an</translation>
  </message>
  <message>
   <source>Unpacking it</source>
   <translation>Entpackt sie</translation>
  </message>
  <message>
   <source>Checking that it loads</source>
   <translation>Prüft, ob sie sich laden lässt</translation>
  </message>
  <message>
   <source>Taking it into use</source>
   <translation>Nimmt sie in Gebrauch</translation>
  </message>
  <message>
   <source>Beginning</source>
   <translation>Beginnt</translation>
  </message>
  <message>
   <source>{line}: {have} of {total}</source>
   <translation>{line}: {have} von {total}</translation>
  </message>
  <message>
   <source>{line}, {rate} a second</source>
   <translation>{line}, {rate} je Sekunde</translation>
  </message>
  <message>
   <source>{line}, about {span} left</source>
   <translation>{line}, noch etwa {span}</translation>
  </message>
  <message>
   <source>Python {version}</source>
   <translation>Python {version}</translation>
  </message>
  <message>
   <source>to fetch: it came with Shoal</source>
   <translation>zu laden: Sie kam mit Shoal</translation>
  </message>
  <message>
   <source>to fetch; {have} are here already</source>
   <translation>zu laden; {have} sind schon da</translation>
  </message>
  <message>
   <source>Reading its files</source>
   <translation>Liest ihre Dateien</translation>
  </message>
  <message>
   <source>Fetching it</source>
   <translation>Lädt sie</translation>
  </message>
  <message>
   <source>Installing the engine</source>
   <translation>Engine wird installiert</translation>
  </message>
  <message>
   <source>Repairing the engine</source>
   <translation>Engine wird repariert</translation>
  </message>
  <message>
   <source>Going back to the engine before</source>
   <translation>Geht zur vorherigen Engine zurück</translation>
  </message>
  <message>
   <source>Removing the engine</source>
   <translation>Engine wird entfernt</translation>
  </message>
  <message>
   <source>Invite link or address</source>
   <translation>Einladung oder Adresse</translation>
  </message>
  <message>
   <source>{n} rounds</source>
   <translation>{n} Runden</translation>
  </message>
  <message>
   <source>solves {n} of 100</source>
   <translation>löst {n} von 100</translation>
  </message>
  <message>
   <source>More</source>
   <translation>Mehr</translation>
  </message>
  <message>
   <source>Go back to round {n}? Keep what it is now, after round {now}, and you can return to it. Or delete the later rounds for good.</source>
   <translation>Zurück zu Runde {n}? Hebst du den Stand nach Runde {now} auf, kannst du zu ihm zurück. Oder du löschst die späteren Runden endgültig.</translation>
  </message>
  <message>
   <source>Keep both, go back</source>
   <translation>Beides behalten, zurückgehen</translation>
  </message>
  <message>
   <source>{version} learns again. What learns now is kept and can return too.</source>
   <translation>{version} lernt wieder. Was jetzt lernt, bleibt aufgehoben und kann auch wiederkommen.</translation>
  </message>
  <message>
   <source>Learn with this one again</source>
   <translation>Wieder damit lernen</translation>
  </message>
  <message>
   <source>This will be deleted for good: {version} ({size}). What learns now stays.</source>
   <translation>Das wird endgültig gelöscht: {version} ({size}). Was jetzt lernt, bleibt.</translation>
  </message>
  <message>
   <source>Delete for good</source>
   <translation>Endgültig löschen</translation>
  </message>
  <message>
   <source>Start over with round 1? Keep what {title} learned in {rounds} rounds, and you can return to it. Or delete that and its history for good. The model itself and your other models stay.</source>
   <translation>Neu anfangen mit Runde 1? Hebst du auf, was {title} in {rounds} Runden gelernt hat, kannst du dahin zurück. Oder du löschst das und seinen Verlauf endgültig. Das Modell selbst und deine anderen Modelle bleiben.</translation>
  </message>
  <message>
   <source>Keep it, start over</source>
   <translation>Aufheben, neu anfangen</translation>
  </message>
  <message>
   <source>A name for your model</source>
   <translation>Ein Name für dein Modell</translation>
  </message>
  <message>
   <source>Save name</source>
   <translation>Namen speichern</translation>
  </message>
  <message>
   <source>Back to an earlier round</source>
   <translation>Zurück zu einer früheren Runde</translation>
  </message>
  <message>
   <source>Kept versions</source>
   <translation>Aufgehobene Stände</translation>
  </message>
  <message>
   <source>Start over</source>
   <translation>Neu anfangen</translation>
  </message>
  <message>
   <source>Rename</source>
   <translation>Umbenennen</translation>
  </message>
  <message>
   <source>Give it a name</source>
   <translation>Einen Namen geben</translation>
  </message>
  <message>
   <source>Delete it</source>
   <translation>Löschen</translation>
  </message>
  <message>
   <source>Delete later rounds</source>
   <translation>Spätere Runden löschen</translation>
  </message>
  <message>
   <source>Delete it, start over</source>
   <translation>Löschen, neu anfangen</translation>
  </message>
  <message>
   <source>Looking at what fits.</source>
   <translation>Sieht nach, was passt.</translation>
  </message>
  <message>
   <source>Download</source>
   <translation>Herunterladen</translation>
  </message>
  <message>
   <source>here</source>
   <translation>hier</translation>
  </message>
  <message>
   <source>{size}, licence</source>
   <translation>{size}, Lizenz</translation>
  </message>
  <message>
   <source>Learn with this</source>
   <translation>Damit lernen</translation>
  </message>
  <message>
   <source>Get</source>
   <translation>Holen</translation>
  </message>
  <message>
   <source>Delete</source>
   <translation>Löschen</translation>
  </message>
  <message>
   <source>Retry now</source>
   <translation>Jetzt versuchen</translation>
  </message>
  <message>
   <source>Download interrupted. Nothing is lost: it resumes where it stopped.</source>
   <translation>Download unterbrochen. Nichts ist verloren: Er macht dort weiter, wo er war.</translation>
  </message>
  <message>
   <source>Learns</source>
   <translation>Lernt</translation>
  </message>
  <message>
   <source>Download of {title}</source>
   <translation>Herunterladen von {title}</translation>
  </message>
  <message>
   <source>Remove from the list</source>
   <translation>Aus der Liste nehmen</translation>
  </message>
  <message>
   <source>A new folder is made in</source>
   <translation>Ein neuer Ordner entsteht in</translation>
  </message>
  <message>
   <source>Access token, hf_…</source>
   <translation>Zugangstoken, hf_…</translation>
  </message>
  <message>
   <source>Access token</source>
   <translation>Zugangstoken</translation>
  </message>
  <message>
   <source>Keep the token</source>
   <translation>Token behalten</translation>
  </message>
  <message>
   <source>The whole model as GGUF, for LM Studio, Ollama and llama.cpp</source>
   <translation>Das ganze Modell als GGUF, für LM Studio, Ollama und llama.cpp</translation>
  </message>
  <message>
   <source>What it learned as a LoRA adapter (PEFT)</source>
   <translation>Was es gelernt hat, als LoRA-Adapter (PEFT)</translation>
  </message>
  <message>
   <source>{called} ({title})</source>
   <translation>{called} ({title})</translation>
  </message>
  <message>
   <source>Use this</source>
   <translation>Nehmen</translation>
  </message>
  <message>
   <source>Remove</source>
   <translation>Entfernen</translation>
  </message>
  <message>
   <source>Choose another model to learn with first.</source>
   <translation>Wähle erst ein anderes Modell zum Lernen.</translation>
  </message>
  <message>
   <source>Next in line.</source>
   <translation>Kommt als Nächstes.</translation>
  </message>
  <message>
   <source>Resume download</source>
   <translation>Download fortsetzen</translation>
  </message>
  <message>
   <source>Licence to accept</source>
   <translation>Lizenz nötig</translation>
  </message>
  <message>
   <source>Another Shoal is downloading it.</source>
   <translation>Ein anderes Shoal lädt es gerade herunter.</translation>
  </message>
  <message>
   <source>Your file</source>
   <translation>Deine Datei</translation>
  </message>
  <message>
   <source>Your folder</source>
   <translation>Dein Ordner</translation>
  </message>
  <message>
   <source>roughly {n} round an hour here</source>
   <translation>hier grob {n} Runde pro Stunde</translation>
  </message>
  <message numerus="yes">
   <source>roughly {n} rounds an hour here</source>
   <translation>
    <numerusform>hier grob {n} Runde pro Stunde</numerusform>
    <numerusform>hier grob {n} Runden pro Stunde</numerusform>
   </translation>
  </message>
  <message>
   <source>{have} of {total} ({share})</source>
   <translation>{have} von {total} ({share})</translation>
  </message>
  <message>
   <source>Download {title} from {host}? {size}; you have {free} free. {host} sees your IP address and the model's name.</source>
   <translation>{title} von {host} herunterladen? {size}; du hast {free} frei. {host} sieht deine IP-Adresse und den Namen des Modells.</translation>
  </message>
  <message>
   <source>Learning on its own stays offline either way.</source>
   <translation>Alleine lernen bleibt so oder so offline.</translation>
  </message>
  <message>
   <source>Deletes {title} and frees {size}.</source>
   <translation>Löscht {title} und macht {size} frei.</translation>
  </message>
  <message>
   <source>What it learned here stays ({rounds} rounds, {size}). Download the model again to use it.</source>
   <translation>Was es hier gelernt hat, bleibt ({rounds} Runden, {size}). Lade das Modell wieder herunter, um es zu nutzen.</translation>
  </message>
  <message>
   <source>Each model has its own history and keeps what it learned.</source>
   <translation>Jedes Modell hat seinen eigenen Verlauf und behält, was es lernte.</translation>
  </message>
  <message>
   <source>{n} round learned</source>
   <translation>{n} Runde gelernt</translation>
  </message>
  <message numerus="yes">
   <source>{n} rounds learned</source>
   <translation>
    <numerusform>{n} Runde gelernt</numerusform>
    <numerusform>{n} Runden gelernt</numerusform>
   </translation>
  </message>
  <message>
   <source>about {n} round an hour here</source>
   <translation>hier etwa {n} Runde pro Stunde</translation>
  </message>
  <message numerus="yes">
   <source>about {n} rounds an hour here</source>
   <translation>
    <numerusform>hier etwa {n} Runde pro Stunde</numerusform>
    <numerusform>hier etwa {n} Runden pro Stunde</numerusform>
   </translation>
  </message>
  <message>
   <source>Recommended. {about}</source>
   <translation>Empfohlen. {about}</translation>
  </message>
  <message>
   <source>Already on this computer. {program} keeps its own copy.</source>
   <translation>Schon auf diesem Computer. {program} behält seine eigene Kopie.</translation>
  </message>
  <message>
   <source>A file of your own; it stays where it is.</source>
   <translation>Eine eigene Datei; sie bleibt, wo sie ist.</translation>
  </message>
  <message>
   <source>A folder of your own; it stays where it is.</source>
   <translation>Ein eigener Ordner; er bleibt, wo er ist.</translation>
  </message>
  <message>
   <source>Not in Shoal's catalogue.</source>
   <translation>Nicht in Shoals Liste.</translation>
  </message>
  <message>
   <source>{why} Again in {span}.</source>
   <translation>{why} Neuer Versuch in {span}.</translation>
  </message>
  <message>
   <source>Looking for the files.</source>
   <translation>Sucht die Dateien.</translation>
  </message>
  <message>
   <source>{line}, checking</source>
   <translation>{line}, wird geprüft</translation>
  </message>
  <message>
   <source>If {host} doesn't answer, it comes as a Python package from where pip gets its packages.</source>
   <translation>Wenn {host} nicht antwortet, kommt es als Python-Paket von dort, wo pip seine Pakete holt.</translation>
  </message>
  <message>
   <source>{title} leaves this list and {size} are free again. The file and what it learned stay.</source>
   <translation>{title} verlässt diese Liste, {size} werden frei. Die Datei und das Gelernte bleiben.</translation>
  </message>
  <message>
   <source>{title} leaves this list. The folder and what it learned stay.</source>
   <translation>{title} verschwindet aus dieser Liste. Der Ordner und das Gelernte bleiben.</translation>
  </message>
  <message>
   <source>Deletes what was downloaded of {title} ({size}).</source>
   <translation>Löscht, was von {title} heruntergeladen ist ({size}).</translation>
  </message>
  <message>
   <source>It continues after round {n}.</source>
   <translation>Es macht nach Runde {n} weiter.</translation>
  </message>
  <message>
   <source>It starts with round 1.</source>
   <translation>Es beginnt mit Runde 1.</translation>
  </message>
  <message>
   <source>Learning switches over right away.</source>
   <translation>Das Lernen wechselt sofort.</translation>
  </message>
  <message>
   <source>Nothing runs until you start learning.</source>
   <translation>Nichts läuft, bis du das Lernen startest.</translation>
  </message>
  <message>
   <source>Needs {need} of memory; this computer can give {most}.</source>
   <translation>Braucht {need} Arbeitsspeicher; dieser Computer hat {most} dafür.</translation>
  </message>
  <message>
   <source>Needs {need} of disk space; {free} free. Free up some space.</source>
   <translation>Braucht {need} auf der Festplatte; {free} frei. Mach etwas Platz.</translation>
  </message>
  <message>
   <source>Needs {need} of memory; {free} free right now. Close other apps.</source>
   <translation>Braucht {need} Arbeitsspeicher; gerade sind {free} frei. Schließ andere Programme.</translation>
  </message>
  <message>
   <source>Runs, but slower: {need} of memory would be good; {free} free.</source>
   <translation>Läuft, aber langsamer: {need} Arbeitsspeicher wären gut; {free} frei.</translation>
  </message>
  <message>
   <source>Needs {need} of memory; {free} free.</source>
   <translation>Braucht {need} Arbeitsspeicher; {free} frei.</translation>
  </message>
  <message>
   <source>{rounds}, {size}</source>
   <translation>{rounds}, {size}</translation>
  </message>
  <message>
   <source>about {n} rounds a minute here</source>
   <translation>hier etwa {n} Runden pro Minute</translation>
  </message>
  <message>
   <source>roughly {n} rounds a minute here</source>
   <translation>hier grob {n} Runden pro Minute</translation>
  </message>
  <message>
   <source>Too large</source>
   <translation>Zu groß</translation>
  </message>
  <message>
   <source>No room</source>
   <translation>Kein Platz</translation>
  </message>
  <message>
   <source>Not at the moment</source>
   <translation>Gerade nicht</translation>
  </message>
  <message>
   <source>Tight</source>
   <translation>Knapp</translation>
  </message>
  <message>
   <source>Fits</source>
   <translation>Passt</translation>
  </message>
  <message>
   <source>nothing learned yet</source>
   <translation>noch nichts gelernt</translation>
  </message>
  <message>
   <source>Six words</source>
   <translation>Sechs Wörter</translation>
  </message>
  <message>
   <source>The six words as a QR code</source>
   <translation>Die sechs Wörter als QR-Code</translation>
  </message>
  <message>
   <source>Show the words</source>
   <translation>Wörter zeigen</translation>
  </message>
  <message>
   <source>Copy the words</source>
   <translation>Wörter kopieren</translation>
  </message>
  <message>
   <source>Join again</source>
   <translation>Wieder beitreten</translation>
  </message>
  <message>
   <source>Anyone who has these words can join. Share them only with people you trust.</source>
   <translation>Wer diese Wörter hat, kann beitreten. Gib sie nur Leuten, denen du vertraust.</translation>
  </message>
  <message>
   <source>Six words let people you trust learn together. Enter theirs, or make new ones.</source>
   <translation>Mit sechs Wörtern lernt ihr im Vertrauen zusammen. Gib ihre ein oder mach neue.</translation>
  </message>
  <message>
   <source>Hide the words</source>
   <translation>Wörter ausblenden</translation>
  </message>
  <message>
   <source>Make new words</source>
   <translation>Neue Wörter</translation>
  </message>
  <message>
   <source>Private swarm</source>
   <translation>Privater Schwarm</translation>
  </message>
  <message>
   <source>The words cannot be kept: {why}.</source>
   <translation>Die Wörter lassen sich nicht speichern: {why}.</translation>
  </message>
  <message>
   <source>Starts a private swarm</source>
   <translation>Startet einen privaten Schwarm</translation>
  </message>
  <message>
   <source>{sign}{n} points</source>
   <translation>{sign}{n} Punkte</translation>
  </message>
  <message>
   <source>no change</source>
   <translation>unverändert</translation>
  </message>
  <message>
   <source>Show its answers</source>
   <translation>Antworten dazu zeigen</translation>
  </message>
  <message>
   <source>{low} to {high} likely, {n} question</source>
   <translation>vermutlich {low} bis {high}, {n} Frage</translation>
  </message>
  <message numerus="yes">
   <source>{low} to {high} likely, {n} questions</source>
   <translation>
    <numerusform>vermutlich {low} bis {high}, {n} Frage</numerusform>
    <numerusform>vermutlich {low} bis {high}, {n} Fragen</numerusform>
   </translation>
  </message>
  <message>
   <source>This is version {version}</source>
   <translation>Dies ist Version {version}</translation>
  </message>
  <message>
   <source>Looking for a new version …</source>
   <translation>Sieht nach einer neuen Version …</translation>
  </message>
  <message>
   <source>Version {version} is there</source>
   <translation>Version {version} ist da</translation>
  </message>
  <message>
   <source>This copy of Shoal is a checkout: git pull brings what is new.</source>
   <translation>Diese Kopie von Shoal ist ein Arbeitsverzeichnis: git pull bringt das Neue.</translation>
  </message>
  <message>
   <source>Asking {host}. The request says nothing about you or this computer.</source>
   <translation>Fragt {host}. Die Anfrage sagt nichts über dich oder diesen Computer.</translation>
  </message>
  <message>
   <source>No newer one is known. Looked {ago}.</source>
   <translation>Eine neuere ist nicht bekannt. Nachgesehen {ago}.</translation>
  </message>
  <message>
   <source>this is {version}</source>
   <translation>dies ist {version}</translation>
  </message>
  <message>
   <source>The system installs it …</source>
   <translation>Das System installiert sie …</translation>
  </message>
  <message>
   <source>Progress of the download</source>
   <translation>Fortschritt des Downloads</translation>
  </message>
  <message>
   <source>Look now</source>
   <translation>Jetzt nachsehen</translation>
  </message>
  <message>
   <source>Copy the command</source>
   <translation>Befehl kopieren</translation>
  </message>
  <message>
   <source>Show the file</source>
   <translation>Datei zeigen</translation>
  </message>
  <message>
   <source>Open its page</source>
   <translation>Ihre Seite öffnen</translation>
  </message>
  <message>
   <source>Asks {host} once.</source>
   <translation>Fragt {host} einmal.</translation>
  </message>
  <message>
   <source>See what is new</source>
   <translation>Neues ansehen</translation>
  </message>
  <message>
   <source>Not this one</source>
   <translation>Diese nicht</translation>
  </message>
  <message>
   <source>Yes, once a day</source>
   <translation>Ja, einmal am Tag</translation>
  </message>
  <message>
   <source>No</source>
   <translation>Nein</translation>
  </message>
  <message>
   <source>Nobody has looked yet whether there is a newer one.</source>
   <translation>Ob es eine neuere gibt, hat noch niemand nachgesehen.</translation>
  </message>
  <message>
   <source>It is downloaded and checked. It takes the place of this one, which is kept beside it, and Shoal opens again.</source>
   <translation>Sie ist geladen und geprüft. Sie tritt an die Stelle dieser Version, die daneben aufgehoben wird, und Shoal öffnet sich neu.</translation>
  </message>
  <message>
   <source>of {day}</source>
   <translation>vom {day}</translation>
  </message>
  <message>
   <source>Install and restart</source>
   <translation>Installieren und neu starten</translation>
  </message>
  <message>
   <source>It is installed when you say so, and keeps everything that was learned.</source>
   <translation>Sie wird installiert, wenn du es sagst, und behält alles Gelernte.</translation>
  </message>
  <message>
   <source>Shall Shoal look for new versions?</source>
   <translation>Soll Shoal nach neuen Versionen sehen?</translation>
  </message>
  <message>
   <source>Then it asks {host} once a day, while this window is open. The request says nothing about you or this computer. You can change your mind under Settings.</source>
   <translation>Dann fragt es {host} einmal am Tag, solange dieses Fenster offen ist. Die Anfrage sagt nichts über dich oder diesen Computer. Unter Einstellungen kannst du es dir anders überlegen.</translation>
  </message>
  <message>
   <source>It is downloaded and checked. Learning stops at its last safe point, the system asks for your password and installs it, and Shoal opens again.</source>
   <translation>Sie ist geladen und geprüft. Das Lernen hält an seiner letzten sicheren Stelle an, das System fragt nach deinem Passwort und installiert sie, und Shoal öffnet sich neu.</translation>
  </message>
  <message>
   <source>It is downloaded and checked. Its installer opens, and Shoal ends.</source>
   <translation>Sie ist geladen und geprüft. Ihr Installationsprogramm öffnet sich, und Shoal endet.</translation>
  </message>
  <message>
   <source>It is downloaded and checked. It opens, and Shoal ends: drag it into the folder Applications.</source>
   <translation>Sie ist geladen und geprüft. Sie öffnet sich, und Shoal endet: Ziehe sie in den Ordner Programme.</translation>
  </message>
  <message>
   <source>{hours} of 168 hours a week are marked, {days}.</source>
   <translation>{hours} von 168 Stunden der Woche sind markiert, {days}.</translation>
  </message>
  <message>
   <source>Nothing is marked, so it may learn at any time.</source>
   <translation>Nichts ist markiert, also darf es jederzeit lernen.</translation>
  </message>
  <message>
   <source>the whole week</source>
   <translation>die ganze Woche</translation>
  </message>
  <message>
   <source>{day}, the whole day</source>
   <translation>{day}, den ganzen Tag</translation>
  </message>
  <message>
   <source>{span}, every day</source>
   <translation>{span}, jeden Tag</translation>
  </message>
  <message>
   <source>off</source>
   <translation>aus</translation>
  </message>
  <message>
   <source>on {n} day</source>
   <translation>an {n} Tag</translation>
  </message>
  <message numerus="yes">
   <source>on {n} days</source>
   <translation>
    <numerusform>an {n} Tag</numerusform>
    <numerusform>an {n} Tagen</numerusform>
   </translation>
  </message>
  <message>
   <source>on</source>
   <translation>an</translation>
  </message>
  <message>
   <source>{share} on</source>
   <translation>zu {share} an</translation>
  </message>
  <message>
   <source>Privacy</source>
   <translation>Datenschutz</translation>
  </message>
  <message>
   <source>Close Shoal?</source>
   <translation>Shoal schließen?</translation>
  </message>
  <message>
   <source>This desktop has no tray where Shoal could stay. Everything learned so far is kept.</source>
   <translation>Dieser Schreibtisch hat keine Leiste, in der Shoal bleiben könnte. Alles bisher Gelernte bleibt erhalten.</translation>
  </message>
  <message>
   <source>Stop learning and quit</source>
   <translation>Lernen anhalten und beenden</translation>
  </message>
  <message>
   <source>Keep learning, minimised</source>
   <translation>Weiterlernen, verkleinert</translation>
  </message>
  <message>
   <source>Paused by you.</source>
   <translation>Von dir angehalten.</translation>
  </message>
  <message>
   <source>paused</source>
   <translation>angehalten</translation>
  </message>
  <message>
   <source>Snoozed by you until {until}.</source>
   <translation>Von dir in Ruhe gelassen bis {until}.</translation>
  </message>
  <message>
   <source>snoozed until {until}</source>
   <translation>Ruhe bis {until}</translation>
  </message>
  <message>
   <source>Outside the hours you set. Starts {until}.</source>
   <translation>Außerhalb deiner Zeiten. Beginnt {until}.</translation>
  </message>
  <message>
   <source>outside your hours, until {until}</source>
   <translation>außerhalb deiner Zeiten, bis {until}</translation>
  </message>
  <message>
   <source>Waiting until you plug the computer in.</source>
   <translation>Wartet, bis du den Computer ans Netz hängst.</translation>
  </message>
  <message>
   <source>on battery</source>
   <translation>Akkubetrieb</translation>
  </message>
  <message>
   <source>Can't tell if the computer is plugged in, so it waits.</source>
   <translation>Unklar, ob der Computer am Netz hängt, also wartet es.</translation>
  </message>
  <message>
   <source>power supply unknown</source>
   <translation>Stromversorgung unbekannt</translation>
  </message>
  <message>
   <source>Waiting until the battery saver is off.</source>
   <translation>Wartet, bis der Stromsparmodus aus ist.</translation>
  </message>
  <message>
   <source>battery saver</source>
   <translation>Energiesparmodus</translation>
  </message>
  <message>
   <source>Can't tell if the battery saver is on, so it waits.</source>
   <translation>Unklar, ob Strom gespart wird, also wartet es.</translation>
  </message>
  <message>
   <source>battery saver unknown</source>
   <translation>Energiesparmodus unbekannt</translation>
  </message>
  <message>
   <source>Taking a break while you work. Resumes after {need} without a key press.</source>
   <translation>Macht Pause, während du arbeitest. Weiter nach {need} ohne Tastendruck.</translation>
  </message>
  <message>
   <source>idle {have} of {need}</source>
   <translation>Leerlauf {have} von {need}</translation>
  </message>
  <message>
   <source>Can't tell if you're at the computer, so it waits.</source>
   <translation>Unklar, ob du am Computer bist, also wartet es.</translation>
  </message>
  <message>
   <source>use of the computer unknown</source>
   <translation>Benutzung unbekannt</translation>
  </message>
  <message>
   <source>Giving way to {app}.</source>
   <translation>Macht Platz für {app}.</translation>
  </message>
  <message>
   <source>{app} is running</source>
   <translation>{app} läuft</translation>
  </message>
  <message>
   <source>Can't tell which programs are running, so it waits.</source>
   <translation>Unklar, welche Programme laufen, also wartet es.</translation>
  </message>
  <message>
   <source>running programs unknown</source>
   <translation>laufende Programme unbekannt</translation>
  </message>
  <message>
   <source>Giving way: an app fills the screen or keeps it awake.</source>
   <translation>Macht Platz: Ein Programm füllt den Bildschirm oder hält ihn wach.</translation>
  </message>
  <message>
   <source>full-screen program</source>
   <translation>Vollbildprogramm</translation>
  </message>
  <message>
   <source>Can't tell if an app fills the screen, so it waits.</source>
   <translation>Unklar, ob ein Programm den Bildschirm füllt, also wartet es.</translation>
  </message>
  <message>
   <source>full-screen program unknown</source>
   <translation>Vollbild unbekannt</translation>
  </message>
  <message>
   <source>Giving way: other apps need the memory.</source>
   <translation>Macht Platz: Andere Programme brauchen den Speicher.</translation>
  </message>
  <message>
   <source>memory is short</source>
   <translation>Speicher knapp</translation>
  </message>
  <message>
   <source>Can't tell how much memory is free, so it waits.</source>
   <translation>Unklar, wie viel Speicher frei ist, also wartet es.</translation>
  </message>
  <message>
   <source>free memory unknown</source>
   <translation>freier Speicher unbekannt</translation>
  </message>
  <message>
   <source>Cooling down: the computer is hot.</source>
   <translation>Kühlt ab: Der Computer ist heiß.</translation>
  </message>
  <message>
   <source>too hot</source>
   <translation>zu heiß</translation>
  </message>
  <message>
   <source>Can't tell how hot the computer is, so it waits.</source>
   <translation>Unklar, wie heiß der Computer ist, also wartet es.</translation>
  </message>
  <message>
   <source>temperature unknown</source>
   <translation>Temperatur unbekannt</translation>
  </message>
  <message>
   <source>Giving way: other apps are busy ({percent} %).</source>
   <translation>Macht Platz: Andere Programme arbeiten ({percent} %).</translation>
  </message>
  <message>
   <source>others use the processor</source>
   <translation>Prozessor anderweitig genutzt</translation>
  </message>
  <message>
   <source>Can't tell how busy other apps are, so it waits.</source>
   <translation>Unklar, wie viel andere Programme arbeiten, also wartet es.</translation>
  </message>
  <message>
   <source>processor load unknown</source>
   <translation>Prozessorlast unbekannt</translation>
  </message>
  <message>
   <source>Giving way: other apps keep the graphics card busy ({percent} %).</source>
   <translation>Macht Platz: Andere Programme nutzen die Grafikkarte ({percent} %).</translation>
  </message>
  <message>
   <source>others use the graphics card</source>
   <translation>Grafikkarte anderweitig genutzt</translation>
  </message>
  <message>
   <source>Can't tell how busy the graphics card is, so it waits.</source>
   <translation>Unklar, wie viel die Grafikkarte zu tun hat, also wartet es.</translation>
  </message>
  <message>
   <source>graphics card load unknown</source>
   <translation>Grafiklast unbekannt</translation>
  </message>
  <message>
   <source>Almost there: starts after {need} of quiet.</source>
   <translation>Gleich: Beginnt nach {need} Ruhe.</translation>
  </message>
  <message>
   <source>quiet {have} of {need}</source>
   <translation>ruhig {have} von {need}</translation>
  </message>
  <message>
   <source>Finishing this round, then stopping.</source>
   <translation>Beendet diese Runde und hält dann an.</translation>
  </message>
  <message>
   <source>finishing this round</source>
   <translation>beendet diese Runde</translation>
  </message>
  <message>
   <source>Keeps learning while you work until {until}.</source>
   <translation>Lernt bis {until}, auch während du arbeitest.</translation>
  </message>
  <message>
   <source>learning until {until}</source>
   <translation>lernt bis {until}</translation>
  </message>
  <message>
   <source>Learning.</source>
   <translation>Lernt.</translation>
  </message>
  <message>
   <source>learning</source>
   <translation>lernt</translation>
  </message>
  <message>
   <source>Small and quick: learns the easiest puzzles on almost any computer.</source>
   <translation>Klein und schnell: lernt die leichtesten Rätsel auf fast jedem Computer.</translation>
  </message>
  <message>
   <source>Follows instructions better than the smallest, and is still quick without a graphics card.</source>
   <translation>Folgt Anweisungen besser als das kleinste und ist auch ohne Grafikkarte noch schnell.</translation>
  </message>
  <message>
   <source>The model of the swarm in the SAPO paper; good at arithmetic for its size.</source>
   <translation>Das Modell des Schwarms im SAPO-Aufsatz; für seine Größe gut im Rechnen.</translation>
  </message>
  <message>
   <source>Thinks aloud before it answers: stronger, but each answer is several times as long.</source>
   <translation>Denkt laut, bevor es antwortet: stärker, aber jede Antwort ist mehrmals so lang.</translation>
  </message>
  <message>
   <source>Meta's small model. Needs its licence accepted first.</source>
   <translation>Metas kleines Modell. Erst muss seine Lizenz angenommen werden.</translation>
  </message>
  <message>
   <source>Meta gives this model only to those who accept its licence: open its page on huggingface.co with a free account, agree there, make an access token with the right to read, and give that token to Shoal.</source>
   <translation>Meta gibt dieses Modell nur denen, die seine Lizenz annehmen: Öffne seine Seite auf huggingface.co mit einem kostenlosen Konto, stimme dort zu, erstelle ein Zugangstoken mit Leserecht und gib es Shoal.</translation>
  </message>
  <message>
   <source>The strongest in this list; wants a graphics card or much memory.</source>
   <translation>Das stärkste dieser Liste; will eine Grafikkarte oder viel Speicher.</translation>
  </message>
  <message>
   <source>Built in. Gets visibly better within a minute, on any computer.</source>
   <translation>Schon dabei. Wird auf jedem Rechner in einer Minute sichtbar besser.</translation>
  </message>
  <message>
   <source>Sums</source>
   <translation>Summen</translation>
  </message>
  <message>
   <source>Arithmetic</source>
   <translation>Rechnen</translation>
  </message>
  <message>
   <source>Greatest common divisor</source>
   <translation>Größter gemeinsamer Teiler</translation>
  </message>
  <message>
   <source>Least common multiple</source>
   <translation>Kleinstes gemeinsames Vielfaches</translation>
  </message>
  <message>
   <source>Fractions</source>
   <translation>Brüche</translation>
  </message>
  <message>
   <source>Equations</source>
   <translation>Gleichungen</translation>
  </message>
  <message>
   <source>Number bases</source>
   <translation>Zahlensysteme</translation>
  </message>
  <message>
   <source>Backward spelling</source>
   <translation>Rückwärts schreiben</translation>
  </message>
  <message>
   <source>Counting bits</source>
   <translation>Bits zählen</translation>
  </message>
  <message>
   <source>Sorting</source>
   <translation>Sortieren</translation>
  </message>
  <message>
   <source>Counting letters</source>
   <translation>Buchstaben zählen</translation>
  </message>
  <message>
   <source>Caesar cipher</source>
   <translation>Caesar-Chiffre</translation>
  </message>
  <message>
   <source>Decimals</source>
   <translation>Dezimalzahlen</translation>
  </message>
  <message>
   <source>Calendar</source>
   <translation>Kalender</translation>
  </message>
  <message>
   <source>Distance grids</source>
   <translation>Abstandsgitter</translation>
  </message>
  <message>
   <source>Rows of colours</source>
   <translation>Farbreihen</translation>
  </message>
  <message>
   <source>Tiny programs</source>
   <translation>Kleine Programme</translation>
  </message>
  <message>
   <source>Logic</source>
   <translation>Logik</translation>
  </message>
  <message>
   <source>Prime factors</source>
   <translation>Primfaktoren</translation>
  </message>
  <message>
   <source>When to learn</source>
   <translation>Wann gelernt wird</translation>
  </message>
  <message>
   <source>Only while nobody uses the computer</source>
   <translation>Nur während niemand am Computer ist</translation>
  </message>
  <message>
   <source>Off: it also learns while you work, as far as the other rules allow.</source>
   <translation>Aus: Es lernt auch, während du arbeitest, soweit die anderen Regeln es erlauben.</translation>
  </message>
  <message>
   <source>contribute idle away keyboard mouse background</source>
   <translation>mitmachen leerlauf abwesend tastatur maus hintergrund</translation>
  </message>
  <message>
   <source>Idle time before it starts</source>
   <translation>Leerlauf, bevor es beginnt</translation>
  </message>
  <message>
   <source>So long nobody must have touched the keyboard or the pointer.</source>
   <translation>So lange darf niemand Tastatur oder Zeiger berührt haben.</translation>
  </message>
  <message>
   <source>idle minutes seconds wait delay</source>
   <translation>leerlauf minuten sekunden warten verzögerung</translation>
  </message>
  <message>
   <source>1 minute</source>
   <translation>1 Minute</translation>
  </message>
  <message>
   <source>3 minutes</source>
   <translation>3 Minuten</translation>
  </message>
  <message>
   <source>5 minutes</source>
   <translation>5 Minuten</translation>
  </message>
  <message>
   <source>10 minutes</source>
   <translation>10 Minuten</translation>
  </message>
  <message>
   <source>30 minutes</source>
   <translation>30 Minuten</translation>
  </message>
  <message>
   <source>Hours</source>
   <translation>Zeiten</translation>
  </message>
  <message>
   <source>The hours in which it may learn. Mark them with the pointer, or with arrows and the space bar; a day's or an hour's name marks all of it. Nothing marked means at any time.</source>
   <translation>Die Stunden, in denen es lernen darf. Markiere sie mit dem Zeiger oder mit Pfeiltasten und Leertaste; der Name eines Tages oder einer Stunde markiert sie ganz. Nichts markiert heißt jederzeit.</translation>
  </message>
  <message>
   <source>schedule weekday night day time plan</source>
   <translation>zeitplan wochentag nacht tag uhrzeit plan</translation>
  </message>
  <message>
   <source>Also on battery</source>
   <translation>Auch mit Akku</translation>
  </message>
  <message>
   <source>Off: it waits until the computer is plugged in.</source>
   <translation>Aus: Es wartet, bis der Computer am Stromnetz hängt.</translation>
  </message>
  <message>
   <source>laptop power supply mains charger</source>
   <translation>laptop strom netzteil akku ladegerät</translation>
  </message>
  <message>
   <source>Also with the battery saver on</source>
   <translation>Auch im Energiesparmodus</translation>
  </message>
  <message>
   <source>Off: it waits while the system saves power.</source>
   <translation>Aus: Es wartet, während das System Energie spart.</translation>
  </message>
  <message>
   <source>power saver low-power mode energy</source>
   <translation>energiesparen stromsparmodus energie</translation>
  </message>
  <message>
   <source>Also while a program fills the screen</source>
   <translation>Auch während ein Programm den Bildschirm füllt</translation>
  </message>
  <message>
   <source>Off: it waits during films, games and presentations.</source>
   <translation>Aus: Es wartet bei Filmen, Spielen und Vorträgen.</translation>
  </message>
  <message>
   <source>full screen game film video presentation</source>
   <translation>vollbild spiel film video vortrag</translation>
  </message>
  <message>
   <source>Programs that want the computer for themselves</source>
   <translation>Programme, die den Computer für sich wollen</translation>
  </message>
  <message>
   <source>It waits while one of them runs. Name the program as the system's task list does.</source>
   <translation>Es wartet, während eines davon läuft. Nenne das Programm so wie die Aufgabenliste des Systems.</translation>
  </message>
  <message>
   <source>exclusive apps games programs list</source>
   <translation>exklusiv programme spiele liste</translation>
  </message>
  <message>
   <source>Give way when other apps are busy</source>
   <translation>Platz machen, wenn andere Programme arbeiten</translation>
  </message>
  <message>
   <source>Pause when other apps use more than this much of the processor. 100 switches this off.</source>
   <translation>Pause, wenn andere Programme mehr als so viel vom Prozessor brauchen. 100 schaltet das aus.</translation>
  </message>
  <message>
   <source>cpu load busy others processor</source>
   <translation>cpu last beschäftigt andere prozessor</translation>
  </message>
  <message>
   <source>Give way when others use the graphics card</source>
   <translation>Weichen, wenn andere die Grafikkarte brauchen</translation>
  </message>
  <message>
   <source>From this share on, used by other programs, it waits. 100 switches this off.</source>
   <translation>Ab diesem Anteil, den andere Programme nutzen, wartet es. 100 schaltet das ab.</translation>
  </message>
  <message>
   <source>gpu load busy others nvidia graphics</source>
   <translation>gpu last beschäftigt andere nvidia grafik</translation>
  </message>
  <message>
   <source>Memory that stays free</source>
   <translation>Speicher, der frei bleibt</translation>
  </message>
  <message>
   <source>It gives its memory back when less than this share is free. 0 switches this off.</source>
   <translation>Es gibt seinen Speicher zurück, wenn weniger als dieser Anteil frei ist. 0 schaltet das ab.</translation>
  </message>
  <message>
   <source>ram memory pressure free swap</source>
   <translation>ram speicher knapp frei auslagern</translation>
  </message>
  <message>
   <source>Temperature limit</source>
   <translation>Temperaturgrenze</translation>
  </message>
  <message>
   <source>It waits while the processor or the graphics card is hotter than this. 110 switches this off.</source>
   <translation>Es wartet, während Prozessor oder Grafikkarte heißer sind. 110 schaltet das ab.</translation>
  </message>
  <message>
   <source>heat hot temperature cooling fan noise</source>
   <translation>hitze heiß temperatur kühlung lüfter lärm</translation>
  </message>
  <message>
   <source>How much of the computer</source>
   <translation>Wie viel vom Computer</translation>
  </message>
  <message>
   <source>Quiet rests as long as it works and takes a quarter of the cores; Balanced takes half of them; Full takes all. What is learned is the same, only slower or faster.</source>
   <translation>Leise ruht so lange, wie es arbeitet, und nimmt ein Viertel der Kerne; Mittel nimmt die Hälfte, Voll alle. Gelernt wird dasselbe, nur langsamer oder schneller.</translation>
  </message>
  <message>
   <source>quiet balanced full speed noise threads rest dial</source>
   <translation>leise mittel voll tempo lärm threads ruhe regler</translation>
  </message>
  <message>
   <source>Room on the disk</source>
   <translation>Platz auf der Platte</translation>
  </message>
  <message>
   <source>Above this, old answers, logs and files that can be made again are deleted, in this order. What was learned, its curve and downloaded models never are. 0 switches this off.</source>
   <translation>Darüber werden alte Antworten, Protokolle und Dateien, die neu gemacht werden können, in dieser Reihenfolge gelöscht. Gelerntes, seine Kurve und heruntergeladene Modelle nie. 0 schaltet das ab.</translation>
  </message>
  <message>
   <source>disk space storage limit quota cap size folder gigabytes</source>
   <translation>platte platz speicher grenze obergrenze größe ordner gigabyte</translation>
  </message>
  <message>
   <source>No limit</source>
   <translation>Ohne Grenze</translation>
  </message>
  <message>
   <source>1 GB</source>
   <translation>1 GB</translation>
  </message>
  <message>
   <source>2 GB</source>
   <translation>2 GB</translation>
  </message>
  <message>
   <source>5 GB</source>
   <translation>5 GB</translation>
  </message>
  <message>
   <source>10 GB</source>
   <translation>10 GB</translation>
  </message>
  <message>
   <source>50 GB</source>
   <translation>50 GB</translation>
  </message>
 </context>
</TS>
