<?xml version="1.0" encoding="utf-8"?>
<!DOCTYPE TS>
<TS version="2.1" language="de" sourcelanguage="en">
 <context>
  <name>shoal</name>
  <message>
   <source>rounds</source>
   <translation>Runden</translation>
  </message>
  <message>
   <source>{value} ± {error}</source>
   <translation>{value} ± {error}</translation>
  </message>
  <message>
   <source>Round {n}</source>
   <translation>Runde {n}</translation>
  </message>
  <message>
   <source>smoothed {value}</source>
   <translation>geglättet {value}</translation>
  </message>
  <message>
   <source>at most {share}</source>
   <translation>höchstens {share}</translation>
  </message>
  <message>
   <source>Before it learns, your model tries questions it will never train on.</source>
   <translation>Bevor es lernt, probiert dein Modell Fragen, an denen es nie üben wird.</translation>
  </message>
  <message>
   <source>{name}: {now} at round {last}, {then} at round {first}, the highest was {best} at round {at}; {n} points. Arrow keys read single points.</source>
   <translation>{name}: {now} in Runde {last}, {then} in Runde {first}, am höchsten {best} in Runde {at}; {n} Punkte. Die Pfeiltasten lesen einzelne Punkte vor.</translation>
  </message>
  <message>
   <source>at least {share}</source>
   <translation>mindestens {share}</translation>
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
   <source>Smoothing</source>
   <translation>Glättung</translation>
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
   <translation>Kurve exportieren</translation>
  </message>
  <message>
   <source>Export</source>
   <translation>Exportieren</translation>
  </message>
  <message>
   <source>Values as CSV …</source>
   <translation>Werte als CSV …</translation>
  </message>
  <message>
   <source>The curve has no points yet.</source>
   <translation>Die Kurve hat noch keine Punkte.</translation>
  </message>
  <message>
   <source>Practice answers right, latest round</source>
   <translation>Übungsantworten richtig, letzte Runde</translation>
  </message>
  <message>
   <source>puzzles get harder as it learns</source>
   <translation>die Rätsel werden mit dem Lernen schwerer</translation>
  </message>
  <message>
   <source>Save a result</source>
   <translation>Ergebnis speichern</translation>
  </message>
  <message>
   <source>Signed result …</source>
   <translation>Unterschriebenes Ergebnis …</translation>
  </message>
  <message>
   <source>Dashed: counting letters, {share}</source>
   <translation>Gestrichelt: Buchstaben zählen, {share}</translation>
  </message>
  <message>
   <source>Rows kept aside that are right</source>
   <translation>Richtige unter den beiseitegelegten Zeilen</translation>
  </message>
  <message>
   <source>New puzzles solved</source>
   <translation>Neue Rätsel gelöst</translation>
  </message>
  <message>
   <source>Rows it never trains on. ± says how far chance alone may shift the figure.</source>
   <translation>Zeilen, an denen es nie übt. ± sagt, wie weit der Zufall allein die Zahl verschieben kann.</translation>
  </message>
  <message>
   <source>Puzzles no one trains on (held-out). ± is one standard error: right two times out of three.</source>
   <translation>Rätsel, an denen niemand übt (held-out). ± ist ein Standardfehler: stimmt in zwei von drei Fällen.</translation>
  </message>
  <message>
   <source>Save the values</source>
   <translation>Werte speichern</translation>
  </message>
  <message>
   <source>Measured</source>
   <translation>Gemessen</translation>
  </message>
  <message>
   <source>Practice</source>
   <translation>Übung</translation>
  </message>
  <message>
   <source>too early to tell</source>
   <translation>noch zu früh für ein Urteil</translation>
  </message>
  <message>
   <source>{first} → {last} of 100 since it started</source>
   <translation>{first} → {last} von 100 seit dem Anfang</translation>
  </message>
  <message>
   <source>{sign}{n} point</source>
   <translation>{sign}{n} Punkt</translation>
  </message>
  <message numerus="yes">
   <source>{sign}{n} points</source>
   <translation>
    <numerusform>{sign}{n} Punkt</numerusform>
    <numerusform>{sign}{n} Punkte</numerusform>
   </translation>
  </message>
  <message>
   <source>Level {n} of {all}</source>
   <translation>Stufe {n} von {all}</translation>
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
   <source>Levels get harder as it learns.</source>
   <translation>Die Stufen werden schwerer, wenn es dazulernt.</translation>
  </message>
  <message>
   <source>Not tested yet</source>
   <translation>Noch nicht getestet</translation>
  </message>
  <message>
   <source>{low} to {high} likely, {n} puzzle</source>
   <translation>vermutlich {low} bis {high}, {n} Rätsel</translation>
  </message>
  <message numerus="yes">
   <source>{low} to {high} likely, {n} puzzles</source>
   <translation>
    <numerusform>vermutlich {low} bis {high}, {n} Rätsel</numerusform>
    <numerusform>vermutlich {low} bis {high}, {n} Rätsel</numerusform>
   </translation>
  </message>
  <message>
   <source>The model stopped, most likely because memory ran short. Close other apps and ask again.</source>
   <translation>Das Modell ist ausgefallen, wahrscheinlich fehlte Speicher. Schließ andere Programme und frag noch einmal.</translation>
  </message>
  <message>
   <source>Stopped.</source>
   <translation>Angehalten.</translation>
  </message>
  <message>
   <source>Forgets every question and answer on this page</source>
   <translation>Vergisst jede Frage und Antwort auf dieser Seite</translation>
  </message>
  <message>
   <source>It answers twice: as it came, and as it is now.</source>
   <translation>Es antwortet zweimal: so, wie es kam, und so, wie es jetzt ist.</translation>
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
   <source>Loading the model, {span}</source>
   <translation>Das Modell wird geladen, {span}</translation>
  </message>
  <message>
   <source>That's too long: {n} characters at most.</source>
   <translation>Das ist zu lang: höchstens {n} Zeichen.</translation>
  </message>
  <message>
   <source>This model only solves puzzles: draw one, or pick a model that talks.</source>
   <translation>Dieses Modell löst nur Rätsel: Zieh eins oder wähl ein Modell, das sich unterhält.</translation>
  </message>
  <message>
   <source>Answering, {span}</source>
   <translation>Antwortet, {span}</translation>
  </message>
  <message>
   <source>See the models</source>
   <translation>Zu den Modellen</translation>
  </message>
  <message>
   <source>Drawing a puzzle</source>
   <translation>Ein Rätsel wird gezogen</translation>
  </message>
  <message>
   <source>The first question loads the model.</source>
   <translation>Die erste Frage lädt das Modell.</translation>
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
   <source>Draw a puzzle, or ask something of your own</source>
   <translation>Zieh ein Rätsel oder frag etwas Eigenes</translation>
  </message>
  <message>
   <source>A puzzle of practice: your right answer with working may teach your model</source>
   <translation>Ein Übungsrätsel: Deine richtige Antwort mit Rechenweg kann dein Modell etwas lehren</translation>
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
   <source>Any it practises</source>
   <translation>Irgendeins, das es übt</translation>
  </message>
  <message>
   <source>Draw a puzzle</source>
   <translation>Rätsel ziehen</translation>
  </message>
  <message>
   <source>Teach it one</source>
   <translation>Bring ihm eins bei</translation>
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
   <source>Your working, such as 4-1=3</source>
   <translation>Dein Rechenweg, etwa 4-1=3</translation>
  </message>
  <message>
   <source>Your working</source>
   <translation>Dein Rechenweg</translation>
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
   <source>Question</source>
   <translation>Frage</translation>
  </message>
  <message>
   <source>Both</source>
   <translation>Beide</translation>
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
   <source>Ask</source>
   <translation>Fragen</translation>
  </message>
  <message>
   <source>Say something, or draw a puzzle</source>
   <translation>Sag etwas oder zieh ein Rätsel</translation>
  </message>
  <message>
   <source>Kind of puzzle</source>
   <translation>Art der Rätsel</translation>
  </message>
  <message>
   <source>Level</source>
   <translation>Stufe</translation>
  </message>
  <message>
   <source>{kind}: {family}</source>
   <translation>{kind}: {family}</translation>
  </message>
  <message>
   <source>Level {n}</source>
   <translation>Stufe {n}</translation>
  </message>
  <message>
   <source>Your rows, with / between</source>
   <translation>Deine Zeilen, mit / dazwischen</translation>
  </message>
  <message>
   <source>{family}, level {n} of {all}</source>
   <translation>{family}, Stufe {n} von {all}</translation>
  </message>
  <message>
   <source>a puzzle it never trained on</source>
   <translation>ein Rätsel, an dem es nie geübt hat</translation>
  </message>
  <message>
   <source>a puzzle of practice</source>
   <translation>ein Übungsrätsel</translation>
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
   <source>Downloads the engine again and replaces it</source>
   <translation>Lädt die Engine noch einmal herunter und ersetzt sie</translation>
  </message>
  <message>
   <source>For computers without internet: the files of an offline pack</source>
   <translation>Für Computer ohne Internet: die Dateien eines Offline-Pakets</translation>
  </message>
  <message>
   <source>No engine is installed. Learning needs one.</source>
   <translation>Keine Engine installiert. Zum Lernen braucht es eine.</translation>
  </message>
  <message>
   <source>Remove the engine? That frees {size}.</source>
   <translation>Engine entfernen? Das macht {size} frei.</translation>
  </message>
  <message>
   <source>Learning stops until you download an engine again. What your model learned stays.</source>
   <translation>Das Lernen ruht, bis du wieder eine Engine herunterlädst. Was dein Modell gelernt hat, bleibt.</translation>
  </message>
  <message>
   <source>Installation of the engine</source>
   <translation>Installation der Engine</translation>
  </message>
  <message>
   <source>Cancel any time: it resumes where it stopped.</source>
   <translation>Du kannst jederzeit abbrechen: Es macht dort weiter, wo es war.</translation>
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
   <source>Cancel</source>
   <translation>Abbrechen</translation>
  </message>
  <message>
   <source>Nothing is lost</source>
   <translation>Nichts ist verloren</translation>
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
   <source>Remove the engine</source>
   <translation>Engine entfernen</translation>
  </message>
  <message>
   <source>Not now</source>
   <translation>Nicht jetzt</translation>
  </message>
  <message>
   <source>{n} %</source>
   <translation>{n} %</translation>
  </message>
  <message>
   <source>Engine</source>
   <translation>Engine</translation>
  </message>
  <message>
   <source>The folder with the engine's files</source>
   <translation>Der Ordner mit den Dateien der Engine</translation>
  </message>
  <message>
   <source>This is version {version}</source>
   <translation>Dies ist Version {version}</translation>
  </message>
  <message>
   <source>Checking for updates …</source>
   <translation>Sucht nach Updates …</translation>
  </message>
  <message>
   <source>Version {version} is available</source>
   <translation>Version {version} ist verfügbar</translation>
  </message>
  <message>
   <source>Developer copy: updates come with git pull.</source>
   <translation>Entwicklerkopie: Updates kommen mit git pull.</translation>
  </message>
  <message>
   <source>Asking {host}. The request says nothing about you or this computer.</source>
   <translation>Fragt {host}. Die Anfrage sagt nichts über dich oder diesen Computer.</translation>
  </message>
  <message>
   <source>You're up to date. Checked {ago}.</source>
   <translation>Du bist auf dem neuesten Stand. Nachgesehen {ago}.</translation>
  </message>
  <message>
   <source>you have {version}</source>
   <translation>du hast {version}</translation>
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
   <source>Skip this one</source>
   <translation>Diese überspringen</translation>
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
   <source>Shoal hasn't checked for updates yet.</source>
   <translation>Shoal hat noch nicht nach Updates gesucht.</translation>
  </message>
  <message>
   <source>of {day}</source>
   <translation>vom {day}</translation>
  </message>
  <message>
   <source>Check now</source>
   <translation>Jetzt nachsehen</translation>
  </message>
  <message>
   <source>Download it from its page. What your model learned stays.</source>
   <translation>Lade sie von ihrer Seite herunter. Was dein Modell gelernt hat, bleibt.</translation>
  </message>
  <message>
   <source>Shoal asks {host} while this window is open. The request says nothing about you or this computer. Change it any time in Settings.</source>
   <translation>Shoal fragt {host}, solange dieses Fenster offen ist. Die Anfrage sagt nichts über dich oder diesen Computer. Ändern kannst du das in den Einstellungen.</translation>
  </message>
  <message>
   <source>Check for updates once a day?</source>
   <translation>Einmal am Tag nach Updates suchen?</translation>
  </message>
  <message>
   <source>{n} s</source>
   <translation>{n} s</translation>
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
   <source>{span} ago</source>
   <translation>vor {span}</translation>
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
   <source>{n} days ago</source>
   <translation>vor {n} Tagen</translation>
  </message>
  <message>
   <source>Paste these where a program asks for an “OpenAI-compatible” address. The name “puzzles” asks what your model has learned.</source>
   <translation>Füg sie dort ein, wo ein Programm nach einer „OpenAI-kompatiblen“ Adresse fragt. Mit dem Namen „puzzles“ antwortet dein Modell, wie es gelernt hat.</translation>
  </message>
  <message>
   <source>Off. Turn on to chat with your model in other programs on this computer.</source>
   <translation>Aus. Schalte es ein, um in anderen Programmen auf diesem Computer mit deinem Modell zu chatten.</translation>
  </message>
  <message>
   <source>Use it in other programs</source>
   <translation>In anderen Programmen nutzen</translation>
  </message>
  <message>
   <source>How, for each program</source>
   <translation>So geht's in jedem Programm</translation>
  </message>
  <message>
   <source>Address</source>
   <translation>Adresse</translation>
  </message>
  <message>
   <source>Token</source>
   <translation>Token</translation>
  </message>
  <message>
   <source>Model</source>
   <translation>Modell</translation>
  </message>
  <message>
   <source>Programs on this computer can ask your model. Learning pauses while it answers.</source>
   <translation>Programme auf diesem Computer können dein Modell fragen. Solange es antwortet, pausiert das Lernen.</translation>
  </message>
  <message>
   <source>Copy address</source>
   <translation>Adresse kopieren</translation>
  </message>
  <message>
   <source>Copy token</source>
   <translation>Token kopieren</translation>
  </message>
  <message>
   <source>Copy name</source>
   <translation>Namen kopieren</translation>
  </message>
  <message>
   <source>Opening …</source>
   <translation>Wird geöffnet …</translation>
  </message>
  <message>
   <source>Into LM Studio</source>
   <translation>In LM Studio ablegen</translation>
  </message>
  <message>
   <source>Into Ollama</source>
   <translation>In Ollama ablegen</translation>
  </message>
  <message>
   <source>Where to save the export</source>
   <translation>Wohin mit dem Export?</translation>
  </message>
  <message>
   <source>For Ollama …</source>
   <translation>Für Ollama …</translation>
  </message>
  <message>
   <source>The whole model as GGUF, for llama.cpp and others …</source>
   <translation>Das ganze Modell als GGUF, für llama.cpp und andere …</translation>
  </message>
  <message>
   <source>As a LoRA adapter for llama.cpp (GGUF) …</source>
   <translation>Als LoRA-Adapter für llama.cpp (GGUF) …</translation>
  </message>
  <message>
   <source>What it learned as a LoRA adapter (PEFT) …</source>
   <translation>Was es gelernt hat als LoRA-Adapter (PEFT) …</translation>
  </message>
  <message>
   <source>The whole model, for transformers …</source>
   <translation>Das ganze Modell, für transformers …</translation>
  </message>
  <message>
   <source>Use a .gguf file, or drop it onto the window</source>
   <translation>Eine .gguf-Datei nehmen, oder zieh sie auf das Fenster</translation>
  </message>
  <message>
   <source>Shoal checks every download and only opens weights that can't run code: .safetensors and .gguf.</source>
   <translation>Shoal prüft jeden Download und öffnet nur Gewichte, die keinen Code ausführen: .safetensors und .gguf.</translation>
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
   <source>Open a file</source>
   <translation>Datei öffnen</translation>
  </message>
  <message>
   <source>Copy the command</source>
   <translation>Befehl kopieren</translation>
  </message>
  <message>
   <source>Looking at what you have.</source>
   <translation>Sieht nach, was du hast.</translation>
  </message>
  <message>
   <source>Downloaded by other apps</source>
   <translation>Von anderen Programmen heruntergeladen</translation>
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
   <source>with each model's history</source>
   <translation>mit dem Verlauf jedes Modells</translation>
  </message>
  <message>
   <source>Free on disk</source>
   <translation>Frei auf der Platte</translation>
  </message>
  <message>
   <source>where your data is</source>
   <translation>wo deine Daten liegen</translation>
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
   <source>Go back to round {n}, its best? What it learned in later rounds, up to {now}, is deleted for good.</source>
   <translation>Zurück zu Runde {n}, seiner besten? Was es in späteren Runden bis {now} gelernt hat, wird endgültig gelöscht.</translation>
  </message>
  <message>
   <source>Start over with round 1? What {title} learned up to round {n}, and its history, is deleted for good. The model itself and your other models stay.</source>
   <translation>Neu anfangen mit Runde 1? Was {title} bis Runde {n} gelernt hat, wird mit seinem Verlauf endgültig gelöscht. Das Modell selbst und deine anderen Modelle bleiben.</translation>
  </message>
  <message>
   <source>Learn with this</source>
   <translation>Damit lernen</translation>
  </message>
  <message>
   <source>Download</source>
   <translation>Herunterladen</translation>
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
   <source>More</source>
   <translation>Mehr</translation>
  </message>
  <message>
   <source>Start over</source>
   <translation>Neu anfangen</translation>
  </message>
  <message>
   <source>Download interrupted. Nothing is lost: it resumes where it stopped.</source>
   <translation>Download unterbrochen. Nichts ist verloren: Er macht dort weiter, wo er war.</translation>
  </message>
  <message>
   <source>Back to its best, round {n}</source>
   <translation>Zurück zum Besten, Runde {n}</translation>
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
   <source>Delete for good</source>
   <translation>Endgültig löschen</translation>
  </message>
  <message>
   <source>Back to its best</source>
   <translation>Zurück zum Besten</translation>
  </message>
  <message>
   <source>Delete it, start over</source>
   <translation>Löschen, neu anfangen</translation>
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
   <source>Save the token</source>
   <translation>Token speichern</translation>
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
   <source>Learning now</source>
   <translation>Lernt gerade</translation>
  </message>
  <message>
   <source>Chosen</source>
   <translation>Ausgewählt</translation>
  </message>
  <message>
   <source>Recommended</source>
   <translation>Empfohlen</translation>
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
   <source>It is as long as your model is good: {n} of 100 new puzzles.</source>
   <translation>Je besser dein Modell, desto länger: {n} von 100 neuen Rätseln.</translation>
  </message>
  <message>
   <source>A small fish. It grows once your model has been measured.</source>
   <translation>Ein kleiner Fisch. Er wächst, sobald dein Modell gemessen wurde.</translation>
  </message>
  <message>
   <source>It is as long as your model is good: {n} of 100 rows kept aside.</source>
   <translation>Er ist so lang, wie dein Modell gut ist: {n} von 100 beiseitegelegten Zeilen.</translation>
  </message>
  <message>
   <source>The fish of {name}</source>
   <translation>Der Fisch von {name}</translation>
  </message>
  <message>
   <source>Your model's fish</source>
   <translation>Der Fisch deines Modells</translation>
  </message>
  <message>
   <source>For ten minutes at least</source>
   <translation>Mindestens zehn Minuten lang</translation>
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
   <source>Learns now and tries other kinds between rounds</source>
   <translation>Lernt jetzt und probiert andere Arten zwischen den Runden</translation>
  </message>
  <message>
   <source>Stops learning. What it found is kept</source>
   <translation>Beendet das Lernen. Was gefunden wurde, bleibt</translation>
  </message>
  <message>
   <source>Start without it</source>
   <translation>Ohne ihn anfangen</translation>
  </message>
  <message>
   <source>Learn while I'm away</source>
   <translation>Lernen, wenn ich weg bin</translation>
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
   <source>Once per model. It learns as soon as some puzzles suit it.</source>
   <translation>Einmal je Modell. Es lernt, sobald ein paar Rätsel passen.</translation>
  </message>
  <message>
   <source>It learns once you've been away for {span}.</source>
   <translation>Es lernt, sobald du {span} weg warst.</translation>
  </message>
  <message>
   <source>The memory is free again. Everything it learned is safe.</source>
   <translation>Der Speicher ist wieder frei. Alles Gelernte ist sicher.</translation>
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
   <source>Last saved</source>
   <translation>Zuletzt gespeichert</translation>
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
   <source>Try again</source>
   <translation>Noch einmal</translation>
  </message>
  <message>
   <source>{share} of {n}</source>
   <translation>{share} von {n}</translation>
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
   <source>since {day}</source>
   <translation>seit {day}</translation>
  </message>
  <message>
   <source>not yet</source>
   <translation>noch nicht</translation>
  </message>
  <message>
   <source>Rounds in all</source>
   <translation>Runden insgesamt</translation>
  </message>
  <message>
   <source>connected</source>
   <translation>verbunden</translation>
  </message>
  <message>
   <source>not connected</source>
   <translation>nicht verbunden</translation>
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
   <source>Shared / learned from</source>
   <translation>Geteilt / gelernt aus</translation>
  </message>
  <message>
   <source>after the first round</source>
   <translation>nach der ersten Runde</translation>
  </message>
  <message>
   <source>Everything it learned is safe.</source>
   <translation>Alles Gelernte ist sicher.</translation>
  </message>
  <message>
   <source>about {span} each</source>
   <translation>je etwa {span}</translation>
  </message>
  <message>
   <source>{n} new kind learned</source>
   <translation>{n} neue Art gelernt</translation>
  </message>
  <message numerus="yes">
   <source>{n} new kinds learned</source>
   <translation>
    <numerusform>{n} neue Art gelernt</numerusform>
    <numerusform>{n} neue Arten gelernt</numerusform>
   </translation>
  </message>
  <message>
   <source>puzzles with their answers</source>
   <translation>Rätsel mit ihren Antworten</translation>
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
   <source>Answers to its own puzzles. There are fewer in a round with puzzles from others.</source>
   <translation>Antworten auf eigene Rätsel. In einer Runde mit Rätseln von anderen sind es weniger.</translation>
  </message>
  <message>
   <source>Its own puzzles with right and wrong answers. If all answers are alike, they teach nothing.</source>
   <translation>Eigene Rätsel mit richtigen und falschen Antworten. Sind alle gleich, lehren sie nichts.</translation>
  </message>
  <message>
   <source>Puzzles and answers of others that it learned from.</source>
   <translation>Rätsel und Antworten anderer, aus denen es gelernt hat.</translation>
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
   <source>{names} and {n} more</source>
   <translation>{names} und {n} weitere</translation>
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
   <source>What to show</source>
   <translation>Was gezeigt wird</translation>
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
   <source>Export this list as CSV</source>
   <translation>Diese Liste als CSV exportieren</translation>
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
   <source>Save the history</source>
   <translation>Verlauf speichern</translation>
  </message>
  <message>
   <source>{families}: lesson from {names}</source>
   <translation>{families}: Lektion von {names}</translation>
  </message>
  <message>
   <source>first lesson: {n} of its own answers</source>
   <translation>erste Lektion: {n} eigene Antworten</translation>
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
   <translation>Beim Üben richtig</translation>
  </message>
  <message>
   <source>Puzzles that taught it</source>
   <translation>Lehrreiche Rätsel</translation>
  </message>
  <message>
   <source>From others</source>
   <translation>Von anderen</translation>
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
   <source>stopped</source>
   <translation>angehalten</translation>
  </message>
  <message>
   <source>stopped by a problem</source>
   <translation>an einem Problem beendet</translation>
  </message>
  <message>
   <source>crashed, or still running</source>
   <translation>abgestürzt, oder läuft noch</translation>
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
   <source>Nothing has happened yet</source>
   <translation>Noch ist nichts geschehen</translation>
  </message>
  <message>
   <source>Finished rounds appear here.</source>
   <translation>Hier erscheinen fertige Runden.</translation>
  </message>
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
   <source>Go to a page</source>
   <translation>Zu einer Seite</translation>
  </message>
  <message>
   <source>Pause or resume</source>
   <translation>Pause oder weiter</translation>
  </message>
  <message>
   <source>Search on this page</source>
   <translation>Auf dieser Seite suchen</translation>
  </message>
  <message>
   <source>Sort a table by the column you're in</source>
   <translation>Tabelle nach der Spalte sortieren, in der du bist</translation>
  </message>
  <message>
   <source>Settings</source>
   <translation>Einstellungen</translation>
  </message>
  <message>
   <source>Quit</source>
   <translation>Beenden</translation>
  </message>
  <message>
   <source>Keys</source>
   <translation>Tasten</translation>
  </message>
  <message>
   <source>Made with</source>
   <translation>Gemacht mit</translation>
  </message>
  <message>
   <source>Key</source>
   <translation>Taste</translation>
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
   <source>Half were right, so right and wrong answers count the same.</source>
   <translation>Die Hälfte war richtig. Darum zählen richtige und falsche Antworten gleich viel.</translation>
  </message>
  <message>
   <source>A puzzle of another version of Shoal: its text cannot be made again.</source>
   <translation>Ein Rätsel einer anderen Shoal-Version: Sein Text lässt sich nicht mehr erzeugen.</translation>
  </message>
  <message>
   <source>{verdict}, it says</source>
   <translation>{verdict}, sagt es</translation>
  </message>
  <message>
   <source>All the same, so there is nothing to tell apart: it teaches nothing.</source>
   <translation>Alle gleich, also gibt es nichts zu unterscheiden und nichts zu lernen.</translation>
  </message>
  <message>
   <source>Fewer were right, so each counts {n} times as much as a wrong one.</source>
   <translation>Weniger waren richtig. Darum zählt jede {n}-mal so viel wie eine falsche.</translation>
  </message>
  <message>
   <source>Fewer were wrong, so each counts {n} times as much as a right one.</source>
   <translation>Weniger waren falsch. Darum zählt jede {n}-mal so viel wie eine richtige.</translation>
  </message>
  <message>
   <source>this computer</source>
   <translation>dieser Computer</translation>
  </message>
  <message>
   <source>Show newer ones</source>
   <translation>Neuere zeigen</translation>
  </message>
  <message>
   <source>round {n}</source>
   <translation>Runde {n}</translation>
  </message>
  <message>
   <source>(empty)</source>
   <translation>(leer)</translation>
  </message>
  <message>
   <source>Soon every puzzle appears here, with all of your model's answers.</source>
   <translation>Bald steht hier jedes Rätsel mit allen Antworten deines Modells.</translation>
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
   <source>All kinds</source>
   <translation>Alle Arten</translation>
  </message>
  <message>
   <source>Show the answers of every round</source>
   <translation>Antworten aller Runden zeigen</translation>
  </message>
  <message>
   <source>No answers yet</source>
   <translation>Noch keine Antworten</translation>
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
   <source>Show everything</source>
   <translation>Alles zeigen</translation>
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
   <source>The message, word for word</source>
   <translation>Die Nachricht im Wortlaut</translation>
  </message>
  <message>
   <source>Word for word</source>
   <translation>Im Wortlaut</translation>
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
   <source>asks for others' earlier answers</source>
   <translation>fragt nach früheren Antworten anderer</translation>
  </message>
  <message>
   <source>others' puzzles and answers</source>
   <translation>Rätsel und Antworten anderer</translation>
  </message>
  <message>
   <source>reports bad answers</source>
   <translation>meldet schlechte Antworten</translation>
  </message>
  <message>
   <source>says whose answers helped</source>
   <translation>sagt, wessen Antworten geholfen haben</translation>
  </message>
  <message>
   <source>a model learned from yours</source>
   <translation>ein Modell hat aus deinen gelernt</translation>
  </message>
  <message>
   <source>your answers taught a model</source>
   <translation>deine Antworten haben einem Modell etwas beigebracht</translation>
  </message>
  <message>
   <source>asks the relay to delete its answers</source>
   <translation>bittet das Relay, seine Antworten zu löschen</translation>
  </message>
  <message>
   <source>the relay deleted its answers</source>
   <translation>das Relay hat seine Antworten gelöscht</translation>
  </message>
  <message>
   <source>tells the teacher how far it is</source>
   <translation>sagt der Lehrkraft, wie weit es ist</translation>
  </message>
  <message>
   <source>tells the teacher whether it's learning</source>
   <translation>sagt der Lehrkraft, ob es gerade lernt</translation>
  </message>
  <message>
   <source>asks for the teacher's questions</source>
   <translation>fragt nach den Fragen der Lehrkraft</translation>
  </message>
  <message>
   <source>the teacher's questions</source>
   <translation>die Fragen der Lehrkraft</translation>
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
   <source>the relay says goodbye</source>
   <translation>das Relay verabschiedet sich</translation>
  </message>
  <message>
   <source>Hide</source>
   <translation>Ausblenden</translation>
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
   <source>The relay is the computer that passes answers on between you and others.</source>
   <translation>Das Relay ist der Computer, der Antworten zwischen dir und den anderen weitergibt.</translation>
  </message>
  <message>
   <source>No puzzle answers yet</source>
   <translation>Noch keine Rätselantworten</translation>
  </message>
  <message>
   <source>It signed in to {relay} with the made-up name {name}.</source>
   <translation>Es hat sich bei {relay} mit dem erfundenen Namen {name} angemeldet.</translation>
  </message>
  <message>
   <source>Puzzle answers, {size} in the last hour</source>
   <translation>Rätselantworten, {size} in der letzten Stunde</translation>
  </message>
  <message>
   <source>As text, to {relay}, signed with the made-up name {name}.</source>
   <translation>Als Text, an {relay}, unterschrieben mit dem erdachten Namen {name}.</translation>
  </message>
  <message>
   <source>Privacy</source>
   <translation>Datenschutz</translation>
  </message>
  <message>
   <source>A door is open at {address}. Programs on this computer that have the token can ask your model. No other computer can.</source>
   <translation>Unter {address} ist eine Tür offen. Programme auf diesem Computer, die das Token haben, können dein Modell fragen. Andere Computer nicht.</translation>
  </message>
  <message>
   <source>Learn with others</source>
   <translation>Mit anderen lernen</translation>
  </message>
  <message>
   <source>What leaves this computer</source>
   <translation>Was diesen Computer verlässt</translation>
  </message>
  <message>
   <source>Which messages to show</source>
   <translation>Welche Nachrichten gezeigt werden</translation>
  </message>
  <message>
   <source>No messages yet since you started learning.</source>
   <translation>Seit dem Start des Lernens noch keine Nachrichten.</translation>
  </message>
  <message>
   <source>Requests for the engine's files</source>
   <translation>Anfragen nach den Dateien der Engine</translation>
  </message>
  <message>
   <source>You're downloading the engine. The server sees your IP address and what you download.</source>
   <translation>Du lädst gerade die Engine. Der Server sieht deine IP-Adresse und was du lädst.</translation>
  </message>
  <message>
   <source>Nothing</source>
   <translation>Nichts</translation>
  </message>
  <message>
   <source>Your model learns alone. Its process can't open a network connection.</source>
   <translation>Dein Modell lernt allein. Sein Prozess kann keine Netzverbindung öffnen.</translation>
  </message>
  <message>
   <source>Nothing right now</source>
   <translation>Gerade nichts</translation>
  </message>
  <message>
   <source>Nothing runs. When you learn with others, only puzzle answers go out, as text.</source>
   <translation>Nichts läuft. Lernst du mit anderen, gehen nur Rätselantworten hinaus, als Text.</translation>
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
   <source>Shoal reads its own folder and the models that other apps downloaded. Your puzzle answers go out only after you say yes to the text.</source>
   <translation>Shoal liest seinen eigenen Ordner und Modelle, die andere Apps geladen haben. Eine Rätselantwort von dir geht erst hinaus, wenn du zu ihrem genauen Text Ja sagst.</translation>
  </message>
  <message>
   <source>Your own questions</source>
   <translation>Deine eigenen Fragen</translation>
  </message>
  <message>
   <source>Your questions, their answers and what your model says to them stay here.</source>
   <translation>Deine Fragen, ihre Antworten und was dein Modell dazu sagt, bleiben hier.</translation>
  </message>
  <message>
   <source>The model's weights</source>
   <translation>Die Gewichte des Modells</translation>
  </message>
  <message>
   <source>The model stays here, in a swarm too. Only puzzle answers are shared, as text.</source>
   <translation>Das Modell bleibt hier, auch im Schwarm. Geteilt werden nur Rätselantworten, als Text.</translation>
  </message>
  <message>
   <source>Usage data</source>
   <translation>Nutzungsdaten</translation>
  </message>
  <message>
   <source>No telemetry, no account. Shoal checks for updates only if you want it to.</source>
   <translation>Keine Telemetrie, kein Konto. Nach Updates sucht Shoal nur, wenn du es willst.</translation>
  </message>
  <message>
   <source>Check for updates once a day</source>
   <translation>Einmal am Tag nach Updates suchen</translation>
  </message>
  <message>
   <source>Where everything is kept</source>
   <translation>Wo alles liegt</translation>
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
   <source>Checking for updates</source>
   <translation>Nach Updates suchen</translation>
  </message>
  <message>
   <source>Other programs on this computer</source>
   <translation>Andere Programme auf diesem Computer</translation>
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
   <source>Off. Shoal asks {host} only when you press the button.</source>
   <translation>Aus. Shoal fragt {host} nur, wenn du den Knopf drückst.</translation>
  </message>
  <message>
   <source>On, but never while it learns alone.</source>
   <translation>An, aber nie, während es allein lernt.</translation>
  </message>
  <message>
   <source>On. Shoal asks {host} once a day while this window is open.</source>
   <translation>An. Shoal fragt {host} einmal am Tag, solange dieses Fenster offen ist.</translation>
  </message>
  <message>
   <source>Shoal waits until you start it.</source>
   <translation>Shoal wartet, bis du es startest.</translation>
  </message>
  <message>
   <source>It stopped halfway. Nothing is lost: try again.</source>
   <translation>Es hat auf halbem Weg angehalten. Nichts ist verloren: Versuch es noch einmal.</translation>
  </message>
  <message>
   <source>The engine isn't installed</source>
   <translation>Die Engine ist nicht installiert</translation>
  </message>
  <message>
   <source>Shoal needs an engine to learn. There's none on this computer yet.</source>
   <translation>Shoal braucht zum Lernen eine Engine. Auf diesem Computer ist noch keine.</translation>
  </message>
  <message>
   <source>Install it. What your model learned is safe.</source>
   <translation>Installier sie. Was dein Modell gelernt hat, ist sicher.</translation>
  </message>
  <message>
   <source>That didn't work: try again.</source>
   <translation>Das hat nicht geklappt: Versuch es noch einmal.</translation>
  </message>
  <message>
   <source>Exported to {folder}</source>
   <translation>Exportiert nach {folder}</translation>
  </message>
  <message>
   <source>No model that can learn in that folder. It needs config.json and .safetensors files.</source>
   <translation>In dem Ordner ist kein Modell, das lernen kann. Es braucht config.json und .safetensors-Dateien.</translation>
  </message>
  <message>
   <source>The access token is in the keyring.</source>
   <translation>Das Zugangstoken liegt im Schlüsselbund.</translation>
  </message>
  <message>
   <source>That isn't a valid token, or this computer has no keyring. You can set HF_TOKEN instead.</source>
   <translation>Das ist kein gültiges Token, oder dieser Computer hat keinen Schlüsselbund. Du kannst stattdessen HF_TOKEN setzen.</translation>
  </message>
  <message>
   <source>Other programs can't use your model: the server stopped. Turn it on again.</source>
   <translation>Andere Programme erreichen dein Modell nicht: Der Server ist stehen geblieben. Schalte ihn wieder ein.</translation>
  </message>
  <message>
   <source>It's in LM Studio now: pick {name} there.</source>
   <translation>Es liegt jetzt in LM Studio: Wähl dort {name}.</translation>
  </message>
  <message>
   <source>Reading {name}.</source>
   <translation>Liest {name}.</translation>
  </message>
  <message>
   <source>Saving …</source>
   <translation>Wird gespeichert …</translation>
  </message>
  <message>
   <source>For Ollama, run this once: {command}</source>
   <translation>Für Ollama einmal ausführen: {command}</translation>
  </message>
  <message>
   <source>The export failed. The log in Settings says why.</source>
   <translation>Der Export hat nicht geklappt. Das Protokoll in den Einstellungen sagt, warum.</translation>
  </message>
  <message>
   <source>Exporting …</source>
   <translation>Exportiert …</translation>
  </message>
  <message>
   <source>It's in Ollama now. In a terminal: {command}</source>
   <translation>Es liegt jetzt in Ollama. Im Terminal: {command}</translation>
  </message>
  <message>
   <source>Shoal is busy with another file. Try again in a moment.</source>
   <translation>Shoal schreibt gerade eine andere Datei. Versuch es gleich noch einmal.</translation>
  </message>
  <message>
   <source>The result couldn't be saved.</source>
   <translation>Das Ergebnis ließ sich nicht speichern.</translation>
  </message>
  <message>
   <source>The download failed. Nothing is lost: it resumes where it stopped.</source>
   <translation>Der Download ist abgebrochen. Nichts ist verloren: Er macht dort weiter, wo er war.</translation>
  </message>
  <message>
   <source>It couldn't be deleted. The log in Settings says why.</source>
   <translation>Es ließ sich nicht löschen. Das Protokoll in den Einstellungen sagt, warum.</translation>
  </message>
  <message>
   <source>Saved: {name}</source>
   <translation>Gespeichert: {name}</translation>
  </message>
  <message>
   <source>Exporting, {share}</source>
   <translation>Exportiert, {share}</translation>
  </message>
  <message>
   <source>The list of models can't be read. The log in Settings says why.</source>
   <translation>Die Modellliste lässt sich nicht lesen. Das Protokoll in den Einstellungen sagt, warum.</translation>
  </message>
  <message>
   <source>That didn't work. Nothing was changed.</source>
   <translation>Das hat nicht geklappt. Es ist alles wie vorher.</translation>
  </message>
  <message>
   <source>{name} is in your list now.</source>
   <translation>{name} ist jetzt in deiner Liste.</translation>
  </message>
  <message>
   <source>Run {setup}; it repairs the installation.</source>
   <translation>Führ {setup} aus; das repariert die Installation.</translation>
  </message>
  <message>
   <source>Learning crashed. Everything up to the last save is safe.</source>
   <translation>Das Lernen ist abgestürzt. Alles bis zum letzten Speichern ist sicher.</translation>
  </message>
  <message>
   <source>Learning keeps crashing. What it learned is safe.</source>
   <translation>Das Lernen stürzt immer wieder ab. Das Gelernte ist sicher.</translation>
  </message>
  <message>
   <source>Start it again, or look at the log in Settings.</source>
   <translation>Starte es neu oder sieh in den Einstellungen ins Protokoll.</translation>
  </message>
  <message>
   <source>Learning stopped</source>
   <translation>Das Lernen hat angehalten</translation>
  </message>
  <message>
   <source>Learning can't start</source>
   <translation>Das Lernen startet nicht</translation>
  </message>
  <message>
   <source>The system refused to start {program}.</source>
   <translation>Das System wollte {program} nicht starten.</translation>
  </message>
  <message>
   <source>Fix that and start it again.</source>
   <translation>Behebe das und starte es neu.</translation>
  </message>
  <message>
   <source>Install Shoal again.</source>
   <translation>Installiere Shoal neu.</translation>
  </message>
  <message>
   <source>That didn't work. The log in Settings says why.</source>
   <translation>Das hat nicht geklappt. Das Protokoll in den Einstellungen sagt, warum.</translation>
  </message>
  <message>
   <source>This is exactly what gets saved. Keys, invites, tokens, answers and your name are left out. Nothing is sent.</source>
   <translation>Genau das wird gesichert. Schlüssel, Einladungen, Token, Antworten und dein Name fehlen. Nichts wird gesendet.</translation>
  </message>
  <message>
   <source>Diagnostics</source>
   <translation>Diagnose</translation>
  </message>
  <message>
   <source>Looking at this computer …</source>
   <translation>Dieser Computer wird angesehen …</translation>
  </message>
  <message>
   <source>Save …</source>
   <translation>Speichern …</translation>
  </message>
  <message>
   <source>{doctor} said nothing.</source>
   <translation>{doctor} hat nichts gesagt.</translation>
  </message>
  <message>
   <source>Still looking.</source>
   <translation>Wird noch gesucht.</translation>
  </message>
  <message>
   <source>Close</source>
   <translation>Schließen</translation>
  </message>
  <message>
   <source>Save the diagnostics</source>
   <translation>Diagnose speichern</translation>
  </message>
  <message>
   <source>Change</source>
   <translation>Ändern</translation>
  </message>
  <message>
   <source>Any time</source>
   <translation>Jederzeit</translation>
  </message>
  <message>
   <source>Never</source>
   <translation>Nie</translation>
  </message>
  <message>
   <source>to</source>
   <translation>bis</translation>
  </message>
  <message>
   <source>none</source>
   <translation>keine</translation>
  </message>
  <message>
   <source>{name}, until</source>
   <translation>{name}, bis</translation>
  </message>
  <message>
   <source>Other Shoals won't know you as {name} any more, and trust starts over. Your model keeps what it learned. Only its recovery words bring {name} back: write them down first.</source>
   <translation>Andere Shoals kennen dich dann nicht mehr als {name}, Vertrauen beginnt von vorn. Dein Modell behält, was es gelernt hat. Nur die Wiederherstellungswörter bringen {name} zurück: Schreib sie vorher auf.</translation>
  </message>
  <message>
   <source>Show the recovery words of {name}?</source>
   <translation>Die Wiederherstellungswörter von {name} zeigen?</translation>
  </message>
  <message>
   <source>Anyone who reads them can be you. Make sure no one is looking over your shoulder.</source>
   <translation>Wer sie liest, kann als du auftreten. Achte darauf, dass dir niemand über die Schulter schaut.</translation>
  </message>
  <message>
   <source>Write them down in this order and keep them safe. They bring your name back on any computer.</source>
   <translation>Schreib sie in dieser Reihenfolge auf und bewahre sie gut auf. Sie bringen deinen Namen auf jedem Computer zurück.</translation>
  </message>
  <message>
   <source>You get back the name these words belong to.</source>
   <translation>Du bekommst den Namen zurück, zu dem diese Wörter gehören.</translation>
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
   <source>Your identity</source>
   <translation>Deine Identität</translation>
  </message>
  <message>
   <source>Show recovery words</source>
   <translation>Wiederherstellungswörter zeigen</translation>
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
   <source>Start over with a new identity?</source>
   <translation>Mit einer neuen Identität anfangen?</translation>
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
   <source>All {n} words in order, separated by spaces</source>
   <translation>Alle {n} Wörter der Reihe nach, mit Leerzeichen</translation>
  </message>
  <message>
   <source>Restore</source>
   <translation>Wiederherstellen</translation>
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
   <source>This name's key is locked with a passphrase. Restore it once with its recovery words:</source>
   <translation>Der Schlüssel dieses Namens ist mit einer Passphrase gesichert. Stell ihn einmal mit seinen Wiederherstellungswörtern wieder her:</translation>
  </message>
  <message>
   <source>Other Shoals know you by this name. This computer has no keyring, so the key is in a file only you can read:</source>
   <translation>Andere Shoals kennen dich unter diesem Namen. Ohne Schlüsselbund liegt der Schlüssel in einer Datei, die nur du lesen kannst:</translation>
  </message>
  <message>
   <source>your identity name key recovery words restore new keyring</source>
   <translation>deine identität name schlüssel wiederherstellungswörter wiederherstellen neu schlüsselbund passwort</translation>
  </message>
  <message>
   <source>Versions, settings, events and logs, to help find a fault. You see all of it before you save it. Nothing is sent.</source>
   <translation>Versionen, Einstellungen, Ereignisse und Protokolle, um einen Fehler zu finden. Du siehst alles, bevor du es speicherst. Nichts wird verschickt.</translation>
  </message>
  <message>
   <source>Search settings</source>
   <translation>Einstellungen durchsuchen</translation>
  </message>
  <message>
   <source>No such setting</source>
   <translation>Keine solche Einstellung</translation>
  </message>
  <message>
   <source>Try another word, for example colours or tray.</source>
   <translation>Versuch ein anderes Wort, zum Beispiel Farben oder Leiste.</translation>
  </message>
  <message>
   <source>Open the folder of the logs</source>
   <translation>Ordner der Protokolle öffnen</translation>
  </message>
  <message>
   <source>Diagnostics …</source>
   <translation>Diagnose …</translation>
  </message>
  <message>
   <source>About Shoal and its keys</source>
   <translation>Über Shoal und die Tasten</translation>
  </message>
  <message>
   <source>{help} Applies the next time it starts learning.</source>
   <translation>{help} Gilt, sobald das Lernen neu startet.</translation>
  </message>
  <message>
   <source>Reopen now</source>
   <translation>Jetzt neu öffnen</translation>
  </message>
  <message>
   <source>engine pack install repair remove pytorch</source>
   <translation>engine paket installieren reparieren entfernen pytorch</translation>
  </message>
  <message>
   <source>What your model learned, and its history</source>
   <translation>Was dein Modell gelernt hat, und sein Verlauf</translation>
  </message>
  <message>
   <source>Downloaded models</source>
   <translation>Heruntergeladene Modelle</translation>
  </message>
  <message>
   <source>Files Shoal can make again</source>
   <translation>Dateien, die Shoal neu machen kann</translation>
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
   <source>Shoal reopens with that folder; nothing is copied or deleted. To take everything along, quit Shoal and copy {home} there first.</source>
   <translation>Shoal öffnet sich mit diesem Ordner neu, nichts wird kopiert oder gelöscht. Willst du alles mitnehmen, beende Shoal und kopiere zuerst {home} dorthin.</translation>
  </message>
  <message>
   <source>Delete everything Shoal keeps, {size}?</source>
   <translation>Alles löschen, was Shoal aufbewahrt, {size}?</translation>
  </message>
  <message>
   <source>the access token for models in the keyring, if there is one</source>
   <translation>das Zugangstoken für Modelle im Schlüsselbund, falls es eins gibt</translation>
  </message>
  <message>
   <source>{name} (not created by Shoal; it stays)</source>
   <translation>{name} (nicht von Shoal; bleibt)</translation>
  </message>
  <message>
   <source>models and exports in other folders</source>
   <translation>Modelle und Exporte in anderen Ordnern</translation>
  </message>
  <message>
   <source>This will be deleted for good:</source>
   <translation>Das wird endgültig gelöscht:</translation>
  </message>
  <message>
   <source>This stays:</source>
   <translation>Das bleibt:</translation>
  </message>
  <message>
   <source>Use another data folder</source>
   <translation>Einen anderen Datenordner nehmen</translation>
  </message>
  <message>
   <source>Use {folder} from now on?</source>
   <translation>Ab jetzt {folder} nehmen?</translation>
  </message>
  <message>
   <source>Use it</source>
   <translation>Nehmen</translation>
  </message>
  <message>
   <source>Delete everything</source>
   <translation>Alles löschen</translation>
  </message>
  <message>
   <source>the key of {name} in the keyring</source>
   <translation>der Schlüssel von {name} im Schlüsselbund</translation>
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
   <source>the entry that lets links and menus find Shoal</source>
   <translation>der Eintrag, über den Links und Menüs Shoal finden</translation>
  </message>
  <message>
   <source>Then Shoal quits.</source>
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
   <source>the program itself; delete it here: {path}</source>
   <translation>das Programm selbst; lösch es hier: {path}</translation>
  </message>
  <message>
   <source>Use another folder …</source>
   <translation>Anderer Ordner …</translation>
  </message>
  <message>
   <source>Delete everything …</source>
   <translation>Alles löschen …</translation>
  </message>
  <message>
   <source>Deleting everything …</source>
   <translation>Löscht alles …</translation>
  </message>
  <message>
   <source>Left there, not created by Shoal: {path}</source>
   <translation>Blieb dort, nicht von Shoal: {path}</translation>
  </message>
  <message>
   <source>Some of it is left</source>
   <translation>Etwas ist noch da</translation>
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
   <source>Shoal can't save anything in {home}. Make that folder writable, or name another one with --home.</source>
   <translation>Shoal kann in {home} nichts speichern. Gib dir Schreibrecht, oder nenne mit --home einen anderen Ordner.</translation>
  </message>
  <message>
   <source>Shoal needs a folder that only you can write to. Change the permissions of {home}, or name another folder with --home.</source>
   <translation>Shoal braucht einen Ordner, in den nur du schreiben kannst. Ändere die Rechte von {home}, oder nenne mit --home einen anderen Ordner.</translation>
  </message>
  <message>
   <source>Another Shoal uses {home} and doesn't answer. Quit it and start again.</source>
   <translation>Ein anderes Shoal nutzt {home} und antwortet nicht. Beende es und starte noch einmal.</translation>
  </message>
  <message>
   <source>Shoal is open already. Its window comes to the front.</source>
   <translation>Shoal ist schon offen. Sein Fenster kommt nach vorn.</translation>
  </message>
  <message>
   <source>Open Shoal</source>
   <translation>Shoal öffnen</translation>
  </message>
  <message>
   <source>Pause for a while</source>
   <translation>Eine Weile pausieren</translation>
  </message>
  <message>
   <source>Skills</source>
   <translation>Können</translation>
  </message>
  <message>
   <source>Swarm</source>
   <translation>Schwarm</translation>
  </message>
  <message>
   <source>Close Shoal?</source>
   <translation>Shoal schließen?</translation>
  </message>
  <message>
   <source>This desktop has no tray to stay in. Everything it learned is safe.</source>
   <translation>Dieser Desktop hat keine Leiste, in der Shoal bleiben kann. Alles Gelernte ist sicher.</translation>
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
   <source>Excel, CSV, JSON or text. You can also drop it here.</source>
   <translation>Excel, CSV, JSON oder Text. Du kannst die Datei auch hierher ziehen.</translation>
  </message>
  <message>
   <source>Bring a table of texts and answers, and your model learns it. Then ask it. All of it stays here.</source>
   <translation>Bring eine Tabelle mit Texten und Antworten mit, und dein Modell lernt sie. Dann frag es. Alles bleibt hier.</translation>
  </message>
  <message>
   <source>The starter only knows puzzles. To learn your own table, pick a model that reads.</source>
   <translation>Der Starter kennt nur Rätsel. Wähl für deine eigene Tabelle ein Modell, das lesen kann.</translation>
  </message>
  <message>
   <source>question, answer
Capital of France?, Paris

Calculate {a} * {b}.
a: 2-12
b: 2-12
answer: a*b</source>
   <translation>frage, antwort
Hauptstadt von Frankreich?, Paris

Calculate {a} * {b}.
a: 2-12
b: 2-12
answer: a*b</translation>
  </message>
  <message>
   <source>Your class offers {name}, {n} question.</source>
   <translation>Deine Klasse bietet {name} an, {n} Frage.</translation>
  </message>
  <message numerus="yes">
   <source>Your class offers {name}, {n} questions.</source>
   <translation>
    <numerusform>Deine Klasse bietet {name} an, {n} Frage.</numerusform>
    <numerusform>Deine Klasse bietet {name} an, {n} Fragen.</numerusform>
   </translation>
  </message>
  <message>
   <source>New rows: {new}. Corrected: {corrected}. It learns on.</source>
   <translation>Neue Zeilen: {new}. Verbessert: {corrected}. Es lernt weiter.</translation>
  </message>
  <message>
   <source>{name} and what your model learned from it will be deleted.</source>
   <translation>{name} wird gelöscht, auch was dein Modell daraus gelernt hat.</translation>
  </message>
  <message>
   <source>Examples</source>
   <translation>Beispiele</translation>
  </message>
  <message>
   <source>Paste or type</source>
   <translation>Einfügen oder tippen</translation>
  </message>
  <message>
   <source>Questions and answers</source>
   <translation>Fragen und Antworten</translation>
  </message>
  <message>
   <source>Show me</source>
   <translation>Zeig mir</translation>
  </message>
  <message>
   <source>My questions</source>
   <translation>Meine Fragen</translation>
  </message>
  <message>
   <source>Added. Pick a model to learn it with.</source>
   <translation>Hinzugefügt. Wähl ein Modell, das sie lernt.</translation>
  </message>
  <message>
   <source>Added. Your model learns them now.</source>
   <translation>Hinzugefügt. Dein Modell lernt sie jetzt.</translation>
  </message>
  <message>
   <source>Look at it</source>
   <translation>Ansehen</translation>
  </message>
  <message>
   <source>No, thanks</source>
   <translation>Nein, danke</translation>
  </message>
  <message>
   <source>Your table has this already.</source>
   <translation>Das steht schon in deiner Tabelle.</translation>
  </message>
  <message>
   <source>Another table</source>
   <translation>Noch eine Tabelle</translation>
  </message>
  <message>
   <source>Delete these questions?</source>
   <translation>Diese Fragen löschen?</translation>
  </message>
  <message>
   <source>{path} can't be read ({why}).</source>
   <translation>{path} lässt sich nicht lesen ({why}).</translation>
  </message>
  <message>
   <source>Tables and text</source>
   <translation>Tabellen und Text</translation>
  </message>
  <message>
   <source>{path} can't be deleted ({why}).</source>
   <translation>{path} lässt sich nicht löschen ({why}).</translation>
  </message>
  <message>
   <source>The right answer</source>
   <translation>Die richtige Antwort</translation>
  </message>
  <message>
   <source>{n} of {of} rows kept aside are right.</source>
   <translation>{n} von {of} beiseitegelegten Zeilen sind richtig.</translation>
  </message>
  <message>
   <source>Learn {name}</source>
   <translation>{name} lernen</translation>
  </message>
  <message>
   <source>More about {name}</source>
   <translation>Mehr zu {name}</translation>
  </message>
  <message>
   <source>“{answer}” alone: {n}.</source>
   <translation>„{answer}“ allein: {n}.</translation>
  </message>
  <message>
   <source>Counting letters: {n}.</source>
   <translation>Buchstaben zählen: {n}.</translation>
  </message>
  <message>
   <source>Ask it</source>
   <translation>Frag es</translation>
  </message>
  <message>
   <source>Asks {name}</source>
   <translation>Fragt {name}</translation>
  </message>
  <message>
   <source>Label a table</source>
   <translation>Tabelle beschriften</translation>
  </message>
  <message>
   <source>Use it elsewhere</source>
   <translation>Anderswo nutzen</translation>
  </message>
  <message>
   <source>Teach it more</source>
   <translation>Mehr beibringen</translation>
  </message>
  <message>
   <source>Learn</source>
   <translation>Lernen</translation>
  </message>
  <message>
   <source>Stop sharing</source>
   <translation>Nicht mehr teilen</translation>
  </message>
  <message>
   <source>Share with members</source>
   <translation>Mit Mitgliedern teilen</translation>
  </message>
  <message>
   <source>From a table without answers: those that it is least sure of</source>
   <translation>Aus einer Tabelle ohne Antworten: die, bei denen es am unsichersten ist</translation>
  </message>
  <message>
   <source>Ask me about ten rows</source>
   <translation>Frag mich nach zehn Zeilen</translation>
  </message>
  <message>
   <source>Teach it these</source>
   <translation>Diese beibringen</translation>
  </message>
  <message>
   <source>A table without answers</source>
   <translation>Eine Tabelle ohne Antworten</translation>
  </message>
  <message>
   <source>It reads …</source>
   <translation>Es liest …</translation>
  </message>
  <message>
   <source>It is least sure of these. Pick what is right.</source>
   <translation>Hier ist es am unsichersten. Wähl, was richtig ist.</translation>
  </message>
  <message>
   <source>No row was found to ask about.</source>
   <translation>Keine Zeile zum Fragen gefunden.</translation>
  </message>
  <message>
   <source>answer</source>
   <translation>Antwort</translation>
  </message>
  <message>
   <source>how sure</source>
   <translation>wie sicher</translation>
  </message>
  <message>
   <source>empty</source>
   <translation>leer</translation>
  </message>
  <message>
   <source>too long</source>
   <translation>zu lang</translation>
  </message>
  <message>
   <source>no answer</source>
   <translation>keine Antwort</translation>
  </message>
  <message>
   <source>Excel, LibreOffice, CSV or JSON lines. You can also drop it here.</source>
   <translation>Excel, LibreOffice, CSV oder JSON-Zeilen. Du kannst sie auch hierher ziehen.</translation>
  </message>
  <message>
   <source>Of {of} rows kept aside, {n} keep their answer, and {right} of those are right. With every answer kept, {all} are right.</source>
   <translation>Von {of} beiseitegelegten Zeilen behalten {n} ihre Antwort, und {right} davon sind richtig. Bleibt jede Antwort stehen, sind es {all}.</translation>
  </message>
  <message>
   <source>{n} of {total} rows have an answer.</source>
   <translation>{n} von {total} Zeilen haben eine Antwort.</translation>
  </message>
  <message>
   <source>{name} labelled</source>
   <translation>{name} beschriftet</translation>
  </message>
  <message>
   <source>Label a table …</source>
   <translation>Tabelle beschriften …</translation>
  </message>
  <message>
   <source>Open it</source>
   <translation>Öffnen</translation>
  </message>
  <message>
   <source>Open the folder</source>
   <translation>Ordner öffnen</translation>
  </message>
  <message>
   <source>The first row names the columns</source>
   <translation>Die erste Zeile nennt die Spalten</translation>
  </message>
  <message>
   <source>Column with the text</source>
   <translation>Spalte mit dem Text</translation>
  </message>
  <message>
   <source>Second column with text</source>
   <translation>Zweite Spalte mit Text</translation>
  </message>
  <message>
   <source>Leave blank below</source>
   <translation>Leer lassen unter</translation>
  </message>
  <message>
   <source>and no other</source>
   <translation>und keiner anderen</translation>
  </message>
  <message>
   <source>The answers go into a new file beside it: {name}</source>
   <translation>Die Antworten kommen in eine neue Datei daneben: {name}</translation>
  </message>
  <message>
   <source>Stopped. What's done is kept: label it again to continue.</source>
   <translation>Angehalten. Was fertig ist, bleibt: Beschrifte sie noch einmal, dann geht es weiter.</translation>
  </message>
  <message>
   <source>{n} row is left blank.</source>
   <translation>{n} Zeile bleibt leer.</translation>
  </message>
  <message numerus="yes">
   <source>{n} rows are left blank.</source>
   <translation>
    <numerusform>{n} Zeile bleibt leer.</numerusform>
    <numerusform>{n} Zeilen bleiben leer.</numerusform>
   </translation>
  </message>
  <message>
   <source>{n} row is empty.</source>
   <translation>{n} Zeile ist leer.</translation>
  </message>
  <message numerus="yes">
   <source>{n} rows are empty.</source>
   <translation>
    <numerusform>{n} Zeile ist leer.</numerusform>
    <numerusform>{n} Zeilen sind leer.</numerusform>
   </translation>
  </message>
  <message>
   <source>{n} row is too long.</source>
   <translation>{n} Zeile ist zu lang.</translation>
  </message>
  <message numerus="yes">
   <source>{n} rows are too long.</source>
   <translation>
    <numerusform>{n} Zeile ist zu lang.</numerusform>
    <numerusform>{n} Zeilen sind zu lang.</numerusform>
   </translation>
  </message>
  <message>
   <source>{n} row has no answer.</source>
   <translation>{n} Zeile hat keine Antwort.</translation>
  </message>
  <message numerus="yes">
   <source>{n} rows have no answer.</source>
   <translation>
    <numerusform>{n} Zeile hat keine Antwort.</numerusform>
    <numerusform>{n} Zeilen haben keine Antwort.</numerusform>
   </translation>
  </message>
  <message>
   <source>The table changed meanwhile: the rows are as they were at the start.</source>
   <translation>Die Tabelle hat sich inzwischen geändert: Die Zeilen sind wie am Anfang.</translation>
  </message>
  <message>
   <source>Labelled rows</source>
   <translation>Beschriftete Zeilen</translation>
  </message>
  <message>
   <source>What's done is kept. Label again to continue.</source>
   <translation>Was fertig ist, bleibt. Beschrifte noch einmal, dann geht es weiter.</translation>
  </message>
  <message>
   <source>and {column}</source>
   <translation>und {column}</translation>
  </message>
  <message>
   <source>{n} of {total} rows</source>
   <translation>{n} von {total} Zeilen</translation>
  </message>
  <message>
   <source>It stopped. What's done is kept: label it again to continue.</source>
   <translation>Es hat aufgehört. Was fertig ist, bleibt: Beschrifte sie noch einmal, dann geht es weiter.</translation>
  </message>
  <message>
   <source>{n} % sure</source>
   <translation>{n} % sicher</translation>
  </message>
  <message>
   <source>The text is in</source>
   <translation>Der Text steht in</translation>
  </message>
  <message>
   <source>Label</source>
   <translation>Beschriften</translation>
  </message>
  <message>
   <source>, about {span}</source>
   <translation>, etwa {span}</translation>
  </message>
  <message>
   <source>Learned from {name}</source>
   <translation>Gelernt von {name}</translation>
  </message>
  <message>
   <source>How many new puzzles it solves. The shaded part shows how sure that is, the tick where it started.</source>
   <translation>Wie viele neue Rätsel es löst. Die Schattierung zeigt, wie sicher das ist, der Strich den Anfang.</translation>
  </message>
  <message>
   <source>The first measurement brings a tile for every kind of puzzle.</source>
   <translation>Mit der ersten Messung erscheint für jede Art von Rätseln eine Kachel.</translation>
  </message>
  <message>
   <source>Begun alone: {own}. From other models: {others}.</source>
   <translation>Allein begonnen: {own}. Von anderen Modellen: {others}.</translation>
  </message>
  <message>
   <source>From {name} and {n} other</source>
   <translation>Von {name} und {n} weiterem</translation>
  </message>
  <message numerus="yes">
   <source>From {name} and {n} others</source>
   <translation>
    <numerusform>Von {name} und {n} weiterem</numerusform>
    <numerusform>Von {name} und {n} weiteren</numerusform>
   </translation>
  </message>
  <message>
   <source>Find a puzzle</source>
   <translation>Rätsel suchen</translation>
  </message>
  <message>
   <source>No puzzles measured yet</source>
   <translation>Noch keine Rätsel gemessen</translation>
  </message>
  <message>
   <source>Too hard yet: {hard}.</source>
   <translation>Noch zu schwer: {hard}.</translation>
  </message>
  <message>
   <source>Too hard yet: {families}.</source>
   <translation>Noch zu schwer: {families}.</translation>
  </message>
  <message>
   <source>No puzzle is called that.</source>
   <translation>So heißt kein Rätsel.</translation>
  </message>
  <message>
   <source>Other</source>
   <translation>Andere</translation>
  </message>
  <message>
   <source>Files for other programs. They answer as it does here.</source>
   <translation>Dateien für andere Programme. Sie antworten dort wie hier.</translation>
  </message>
  <message>
   <source>A text as in your table</source>
   <translation>Ein Text wie in deiner Tabelle</translation>
  </message>
  <message>
   <source>Teach it this</source>
   <translation>Das beibringen</translation>
  </message>
  <message>
   <source>Right would be</source>
   <translation>Richtig wäre</translation>
  </message>
  <message>
   <source>{n} % sure.</source>
   <translation>{n} % sicher.</translation>
  </message>
  <message>
   <source>Copy a command that asks it</source>
   <translation>Befehl kopieren, der es fragt</translation>
  </message>
  <message>
   <source>Take it away</source>
   <translation>Mitnehmen</translation>
  </message>
  <message>
   <source>Add rows from a file</source>
   <translation>Zeilen aus einer Datei</translation>
  </message>
  <message>
   <source>More rows help most. Correct wrong answers in “Ask it”, or add a table with more of them.</source>
   <translation>Mehr Zeilen helfen am meisten. Verbessere falsche Antworten unter „Frag es“, oder füg eine Tabelle mit weiteren hinzu.</translation>
  </message>
  <message>
   <source>Adds the row to your table</source>
   <translation>Nimmt die Zeile in deine Tabelle auf</translation>
  </message>
  <message>
   <source>No answer</source>
   <translation>Keine Antwort</translation>
  </message>
  <message>
   <source>Of {of} rows kept aside that were about as sure, {n} were right.</source>
   <translation>Von {of} beiseitegelegten Zeilen, bei denen es etwa so sicher war, waren {n} richtig.</translation>
  </message>
  <message>
   <source>Programs ask it as “{name}”. Their address and token are on the page Models.</source>
   <translation>Programme fragen es als „{name}“. Adresse und Token stehen auf der Seite Modelle.</translation>
  </message>
  <message>
   <source>On the page Models, choose {model} and turn on “Use it in other programs”. Programs ask it as “{name}”.</source>
   <translation>Wähle auf der Seite Modelle {model} und schalte „In anderen Programmen nutzen“ ein. Programme fragen es als „{name}“.</translation>
  </message>
  <message>
   <source>A text</source>
   <translation>Ein Text</translation>
  </message>
  <message>
   <source>A row that is there already gets the new answer</source>
   <translation>Eine Zeile, die es schon gibt, bekommt die neue Antwort</translation>
  </message>
  <message>
   <source>Rows of each answer: {counts}</source>
   <translation>Zeilen je Antwort: {counts}</translation>
  </message>
  <message>
   <source>Text</source>
   <translation>Text</translation>
  </message>
  <message>
   <source>One of several answers</source>
   <translation>Eine von mehreren Antworten</translation>
  </message>
  <message>
   <source>Number</source>
   <translation>Zahl</translation>
  </message>
  <message>
   <source>Choice</source>
   <translation>Auswahl</translation>
  </message>
  <message>
   <source>List, in order</source>
   <translation>Liste, in Reihenfolge</translation>
  </message>
  <message>
   <source>List, in any order</source>
   <translation>Liste, Reihenfolge egal</translation>
  </message>
  <message>
   <source>Date</source>
   <translation>Datum</translation>
  </message>
  <message>
   <source>True or false</source>
   <translation>Wahr oder falsch</translation>
  </message>
  <message>
   <source>JSON fields</source>
   <translation>JSON-Felder</translation>
  </message>
  <message>
   <source>{n} different rows. {aside} of them are kept aside to measure with.</source>
   <translation>{n} verschiedene Zeilen. {aside} davon bleiben zum Messen beiseite.</translation>
  </message>
  <message>
   <source>A fifth</source>
   <translation>Ein Fünftel</translation>
  </message>
  <message>
   <source>Name</source>
   <translation>Name</translation>
  </message>
  <message>
   <source>How answers are checked</source>
   <translation>Wie Antworten geprüft werden</translation>
  </message>
  <message>
   <source>The line that every question is asked with</source>
   <translation>Die Zeile, mit der jede Frage gestellt wird</translation>
  </message>
  <message>
   <source>Add and learn</source>
   <translation>Hinzufügen und lernen</translation>
  </message>
  <message>
   <source>The column with the answers</source>
   <translation>Die Spalte mit den Antworten</translation>
  </message>
  <message>
   <source>The first row</source>
   <translation>Die erste Zeile</translation>
  </message>
  <message>
   <source>First row: names</source>
   <translation>Erste Zeile: Namen</translation>
  </message>
  <message>
   <source>First row: data</source>
   <translation>Erste Zeile: Daten</translation>
  </message>
  <message>
   <source>Encoding</source>
   <translation>Kodierung</translation>
  </message>
  <message>
   <source>{column}: answer</source>
   <translation>{column}: Antwort</translation>
  </message>
  <message>
   <source>{column}: text</source>
   <translation>{column}: Text</translation>
  </message>
  <message>
   <source>“{answer}” alone would be right in {n} of 100.</source>
   <translation>„{answer}“ allein wäre in {n} von 100 richtig.</translation>
  </message>
  <message>
   <source>With fewer than {n} questions the curve will be rough.</source>
   <translation>Mit weniger als {n} Fragen wird die Kurve grob.</translation>
  </message>
  <message>
   <source>Row {n} is left out: {reason}.</source>
   <translation>Zeile {n} fehlt: {reason}.</translation>
  </message>
  <message>
   <source>{n} rows are left out: {reasons}.</source>
   <translation>{n} Zeilen fallen weg: {reasons}.</translation>
  </message>
  <message>
   <source>The columns that make the text</source>
   <translation>Die Spalten, die den Text bilden</translation>
  </message>
  <message>
   <source>Shoal guessed this from the answers.</source>
   <translation>Das hat Shoal aus den Antworten geraten.</translation>
  </message>
  <message>
   <source>Add to {name}</source>
   <translation>Zu {name} hinzufügen</translation>
  </message>
  <message>
   <source>Check answers as</source>
   <translation>Antworten prüfen als</translation>
  </message>
  <message>
   <source>Asked with</source>
   <translation>Gefragt mit</translation>
  </message>
  <message>
   <source>Answer</source>
   <translation>Antwort</translation>
  </message>
  <message>
   <source>{n} model says yours taught it: {kinds}.</source>
   <translation>{n} Modell sagt, es hat von deinem gelernt: {kinds}.</translation>
  </message>
  <message numerus="yes">
   <source>{n} models say yours taught them: {kinds}.</source>
   <translation>
    <numerusform>{n} Modell sagt, es hat von deinem gelernt: {kinds}.</numerusform>
    <numerusform>{n} Modelle sagen, sie haben von deinem gelernt: {kinds}.</numerusform>
   </translation>
  </message>
  <message>
   <source>No one else is here yet</source>
   <translation>Noch ist niemand sonst da</translation>
  </message>
  <message>
   <source>Leaves the swarm. What it learned stays.</source>
   <translation>Verlässt den Schwarm. Das Gelernte bleibt.</translation>
  </message>
  <message>
   <source>{n} peer shared answers</source>
   <translation>{n} Peer hat Antworten geteilt</translation>
  </message>
  <message numerus="yes">
   <source>{n} peers shared answers</source>
   <translation>
    <numerusform>{n} Peer hat Antworten geteilt</numerusform>
    <numerusform>{n} Peers haben Antworten geteilt</numerusform>
   </translation>
  </message>
  <message>
   <source>other in this swarm</source>
   <translation>anderes Modell in diesem Schwarm</translation>
  </message>
  <message numerus="yes">
   <source>others in this swarm</source>
   <translation>
    <numerusform>anderes Modell in diesem Schwarm</numerusform>
    <numerusform>andere in diesem Schwarm</numerusform>
   </translation>
  </message>
  <message>
   <source>in the last hour; {size} received</source>
   <translation>in der letzten Stunde; {size} empfangen</translation>
  </message>
  <message>
   <source>{n} other is online</source>
   <translation>{n} anderes Modell ist online</translation>
  </message>
  <message numerus="yes">
   <source>{n} others are online</source>
   <translation>
    <numerusform>{n} anderes Modell ist online</numerusform>
    <numerusform>{n} andere Modelle sind online</numerusform>
   </translation>
  </message>
  <message>
   <source>Everyone who joins appears here.</source>
   <translation>Wer beitritt, erscheint hier.</translation>
  </message>
  <message>
   <source>Make new words</source>
   <translation>Neue Wörter</translation>
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
   <source>Learn alone</source>
   <translation>Allein lernen</translation>
  </message>
  <message>
   <source>Search peers</source>
   <translation>Andere suchen</translation>
  </message>
  <message>
   <source>Your answers helped {n} model today.</source>
   <translation>Deine Antworten haben heute {n} Modell geholfen.</translation>
  </message>
  <message numerus="yes">
   <source>Your answers helped {n} models today.</source>
   <translation>
    <numerusform>Deine Antworten haben heute {n} Modellen geholfen.</numerusform>
    <numerusform>Deine Antworten haben heute {n} Modellen geholfen.</numerusform>
   </translation>
  </message>
  <message>
   <source>Online now</source>
   <translation>Gerade online</translation>
  </message>
  <message>
   <source>Shared</source>
   <translation>Geteilt</translation>
  </message>
  <message numerus="yes">
   <source>{n} turned away</source>
   <translation>
    <numerusform>{n} abgewiesen</numerusform>
    <numerusform>{n} abgewiesen</numerusform>
   </translation>
  </message>
  <message>
   <source>puzzles checked here</source>
   <translation>hier geprüfte Rätsel</translation>
  </message>
  <message>
   <source>Learned from</source>
   <translation>Gelernt aus</translation>
  </message>
  <message>
   <source>Data sent</source>
   <translation>Gesendete Daten</translation>
  </message>
  <message>
   <source>{n} other kind</source>
   <translation>{n} weitere Art</translation>
  </message>
  <message numerus="yes">
   <source>{n} other kinds</source>
   <translation>
    <numerusform>{n} weitere Art</numerusform>
    <numerusform>{n} weitere Arten</numerusform>
   </translation>
  </message>
  <message>
   <source>No answers came in this lesson</source>
   <translation>In dieser Stunde kamen keine Antworten</translation>
  </message>
  <message>
   <source>They appear here with the first answer they share.</source>
   <translation>Sie erscheinen hier mit der ersten Antwort, die sie teilen.</translation>
  </message>
  <message>
   <source>Share the invite above. Everyone who joins appears here.</source>
   <translation>Gib die Einladung oben weiter. Wer beitritt, erscheint hier.</translation>
  </message>
  <message>
   <source>Join</source>
   <translation>Beitreten</translation>
  </message>
  <message>
   <source>Find or start a swarm on this network</source>
   <translation>Schwarm in diesem Netz finden oder starten</translation>
  </message>
  <message>
   <source>Nothing leaves this computer. In a swarm, your model also learns from other people's models. They swap puzzle answers, as plain text.</source>
   <translation>Nichts verlässt diesen Computer. Im Schwarm lernt dein Modell auch von den Modellen anderer. Sie tauschen Rätselantworten, als Text.</translation>
  </message>
  <message>
   <source>Nothing runs right now. It joins its swarm again when you start learning.</source>
   <translation>Gerade läuft nichts. Sobald du das Lernen startest, ist es wieder im Schwarm.</translation>
  </message>
  <message>
   <source>What your model learned stays, and so do questions you added. It learns alone from now on, and sends nothing.</source>
   <translation>Was dein Modell gelernt hat, bleibt, und hinzugefügte Fragen auch. Ab jetzt lernt es alleine und sendet nichts.</translation>
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
   <source>Starts a private swarm</source>
   <translation>Startet einen privaten Schwarm</translation>
  </message>
  <message>
   <source>Private swarm</source>
   <translation>Privater Schwarm</translation>
  </message>
  <message>
   <source>Anyone who has these words can join. Share them only with people you trust.</source>
   <translation>Wer diese Wörter hat, kann beitreten. Gib sie nur Leuten, denen du vertraust.</translation>
  </message>
  <message>
   <source>Learn only with people you trust. Give them six new words; they enter them above.</source>
   <translation>Lerne nur mit Leuten, denen du vertraust. Gib ihnen sechs neue Wörter; sie tippen sie oben ein.</translation>
  </message>
  <message>
   <source>Hide the words</source>
   <translation>Wörter ausblenden</translation>
  </message>
  <message>
   <source>Your model learns alone</source>
   <translation>Dein Modell lernt allein</translation>
  </message>
  <message>
   <source>Your model learns with others</source>
   <translation>Dein Modell lernt mit anderen</translation>
  </message>
  <message>
   <source>The lesson has ended.</source>
   <translation>Die Stunde ist zu Ende.</translation>
  </message>
  <message>
   <source>The teacher has paused everyone.</source>
   <translation>Die Lehrkraft hat alle pausiert.</translation>
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
   <source>to the relay at {address}, which passes answers on</source>
   <translation>mit dem Relay {address}, das Antworten weitergibt</translation>
  </message>
  <message>
   <source>Others see you as {name}.</source>
   <translation>Andere sehen dich als {name}.</translation>
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
   <source>Leave the class</source>
   <translation>Klasse verlassen</translation>
  </message>
  <message>
   <source>You're in a class.</source>
   <translation>Du bist in einer Klasse.</translation>
  </message>
  <message>
   <source>Looking for your class</source>
   <translation>Deine Klasse wird gesucht</translation>
  </message>
  <message>
   <source>{size} of disk space needed meanwhile; {free} free.</source>
   <translation>Braucht solange {size} Speicherplatz; {free} sind frei.</translation>
  </message>
  <message>
   <source>Not enough disk space: {size} more needed.</source>
   <translation>Zu wenig Platz auf der Platte: {size} fehlen.</translation>
  </message>
  <message>
   <source>Shoal learns with PyTorch, a large program that is installed once. Remove it any time.</source>
   <translation>Shoal lernt mit PyTorch, einem großen Programm, das einmal installiert wird. Entfernen kannst du es jederzeit.</translation>
  </message>
  <message>
   <source>{stage}, {n} %</source>
   <translation>{stage}, {n} %</translation>
  </message>
  <message>
   <source>Looking for the right engine.</source>
   <translation>Sucht die passende Engine.</translation>
  </message>
  <message>
   <source>Shoal asks for its size first, and downloads only if it fits.</source>
   <translation>Shoal fragt zuerst nach der Größe und lädt nur, wenn es passt.</translation>
  </message>
  <message>
   <source>Nothing to download: it came with Shoal.</source>
   <translation>Nichts herunterzuladen: Sie kam mit Shoal.</translation>
  </message>
  <message>
   <source>Resume installation</source>
   <translation>Installation fortsetzen</translation>
  </message>
  <message>
   <source>Reinstall the engine</source>
   <translation>Engine neu installieren</translation>
  </message>
  <message>
   <source>Install the engine</source>
   <translation>Engine installieren</translation>
  </message>
  <message>
   <source>The engine doesn't work any more</source>
   <translation>Die Engine funktioniert nicht mehr</translation>
  </message>
  <message>
   <source>A newer engine is available: {version}.</source>
   <translation>Es gibt eine neuere Engine: {version}.</translation>
  </message>
  <message>
   <source>The engine is missing</source>
   <translation>Die Engine fehlt</translation>
  </message>
  <message>
   <source>It's damaged, or something it needs is gone. Repair it; what your model learned is safe.</source>
   <translation>Sie ist beschädigt, oder etwas fehlt ihr. Reparier sie; was dein Modell gelernt hat, ist sicher.</translation>
  </message>
  <message>
   <source>Learning needs it, but it doesn't start. What your model learned is safe.</source>
   <translation>Zum Lernen braucht es sie, aber sie startet nicht. Was dein Modell gelernt hat, ist sicher.</translation>
  </message>
  <message>
   <source>Setting it up</source>
   <translation>Richtet sie ein</translation>
  </message>
  <message>
   <source>Checking that it loads</source>
   <translation>Prüft, ob sie sich laden lässt</translation>
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
   <source>Python {version}</source>
   <translation>Python {version}</translation>
  </message>
  <message>
   <source>For the processor</source>
   <translation>Für den Prozessor</translation>
  </message>
  <message>
   <source>The smallest. Works on every computer.</source>
   <translation>Die kleinste. Läuft auf jedem Computer.</translation>
  </message>
  <message>
   <source>For the NVIDIA card</source>
   <translation>Für die NVIDIA-Karte</translation>
  </message>
  <message>
   <source>Many times faster on a graphics card. The largest download.</source>
   <translation>Auf einer Grafikkarte um ein Vielfaches schneller. Der größte Download.</translation>
  </message>
  <message>
   <source>For Apple Silicon</source>
   <translation>Für Apple Silicon</translation>
  </message>
  <message>
   <source>Made for this kind of Mac, and the fastest there.</source>
   <translation>Für diese Art Mac gemacht und dort die schnellste.</translation>
  </message>
  <message>
   <source>For the processor, with llama.cpp</source>
   <translation>Für den Prozessor, mit llama.cpp</translation>
  </message>
  <message>
   <source>Faster with bigger models.</source>
   <translation>Schneller mit größeren Modellen.</translation>
  </message>
  <message>
   <source>There's no engine for this computer to download. Pick a folder that has one.</source>
   <translation>Für diesen Computer gibt es keine Engine zum Herunterladen. Wähle einen Ordner, der eine enthält.</translation>
  </message>
  <message>
   <source>{size} to download; {have} already here.</source>
   <translation>{size} herunterzuladen; {have} sind schon da.</translation>
  </message>
  <message>
   <source>{size} to download, once; nothing of yours is sent.</source>
   <translation>{size} herunterzuladen, einmal; von dir wird nichts gesendet.</translation>
  </message>
  <message>
   <source>Reading its files</source>
   <translation>Liest ihre Dateien</translation>
  </message>
  <message>
   <source>Downloading</source>
   <translation>Lädt herunter</translation>
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
   <source>Removing the engine</source>
   <translation>Engine wird entfernt</translation>
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
   <source>It can begin with: {families}.</source>
   <translation>Damit kann es anfangen: {families}.</translation>
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
   <translation>Allein lernen bleibt so oder so offline.</translation>
  </message>
  <message>
   <source>Deletes {title} and frees {size}.</source>
   <translation>Löscht {title} und macht {size} frei.</translation>
  </message>
  <message>
   <source>What it learned here stays ({rounds}, {size}). Download the model again to use it.</source>
   <translation>Was es hier gelernt hat, bleibt ({rounds}, {size}). Lade das Modell wieder herunter, um es zu nutzen.</translation>
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
   <source>about {span} a round</source>
   <translation>etwa {span} je Runde</translation>
  </message>
  <message>
   <source>{n} other kinds are too hard yet.</source>
   <translation>{n} weitere Arten sind noch zu schwer.</translation>
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
   <source>{line}, unpacks to {size}</source>
   <translation>{line}, entpackt {size}</translation>
  </message>
  <message>
   <source>{line}, checking</source>
   <translation>{line}, wird geprüft</translation>
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
   <source>If {host} doesn't answer, it comes as a Python package of {size}.</source>
   <translation>Wenn {host} nicht antwortet, kommt es als Python-Paket mit {size}.</translation>
  </message>
  <message>
   <source>{title} leaves this list and frees {size}. The file and what it learned stay.</source>
   <translation>{title} verschwindet aus dieser Liste und macht {size} frei. Die Datei und das Gelernte bleiben.</translation>
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
   <source>Learning starts right away.</source>
   <translation>Das Lernen beginnt sofort.</translation>
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
   <source>{rounds}, {size}</source>
   <translation>{rounds}, {size}</translation>
  </message>
  <message>
   <source>Here it learns {pace}.</source>
   <translation>Hier lernt es {pace}.</translation>
  </message>
  <message>
   <source>{n} round</source>
   <translation>{n} Runde</translation>
  </message>
  <message numerus="yes">
   <source>{n} rounds</source>
   <translation>
    <numerusform>{n} Runde</numerusform>
    <numerusform>{n} Runden</numerusform>
   </translation>
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
   <source>Needs {need} of memory; {free} free.</source>
   <translation>Braucht {need} Arbeitsspeicher; {free} frei.</translation>
  </message>
  <message>
   <source>nothing learned yet</source>
   <translation>noch nichts gelernt</translation>
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
   <source>Light, dark, or like the rest of your desktop.</source>
   <translation>Hell, dunkel oder wie der Rest deines Desktops.</translation>
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
   <source>For the window, the tray, and errors in a terminal. Applies when you reopen Shoal.</source>
   <translation>Für das Fenster, die Leiste und Fehler im Terminal. Gilt, wenn du Shoal neu öffnest.</translation>
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
   <source>Off: it waits until you start it. After a pause it always waits for you.</source>
   <translation>Aus: Es wartet, bis du es startest. Nach einer Pause wartet es immer auf dich.</translation>
  </message>
  <message>
   <source>autostart begin automatic</source>
   <translation>autostart beginnen automatisch</translation>
  </message>
  <message>
   <source>Learn alone or together</source>
   <translation>Allein oder zusammen lernen</translation>
  </message>
  <message>
   <source>Alone, nothing leaves this computer. With others, only puzzle answers are shared, as plain text.</source>
   <translation>Allein verlässt nichts diesen Computer. Mit anderen werden nur Rätselantworten geteilt, als Text.</translation>
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
   <source>How your model learns from answers. Recommended is what Shoal is tuned for; Paper follows SAPO exactly.</source>
   <translation>Wie dein Modell aus Antworten lernt. Auf „Empfohlen“ ist Shoal abgestimmt; „Aufsatz“ folgt genau SAPO.</translation>
  </message>
  <message>
   <source>algorithm sapo grpo loss</source>
   <translation>algorithmus verfahren sapo grpo verlust</translation>
  </message>
  <message>
   <source>The model that learns. Each one has its own history and keeps what it learned.</source>
   <translation>Das Modell, das lernt. Jedes hat seinen eigenen Verlauf und behält, was es gelernt hat.</translation>
  </message>
  <message>
   <source>base weights qwen llama smollm choose</source>
   <translation>grundmodell gewichte qwen llama smollm wählen</translation>
  </message>
  <message>
   <source>The program that answers and learns. Shoal picks the fastest one here; {doctor} says why.</source>
   <translation>Das Programm, das antwortet und lernt. Shoal nimmt das schnellste hier; {doctor} sagt, warum.</translation>
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
   <source>How often the curve gets a new point. Each takes about as long as a round.</source>
   <translation>Wie oft die Kurve einen neuen Punkt bekommt. Jeder dauert etwa so lang wie eine Runde.</translation>
  </message>
  <message>
   <source>probe held-out curve points</source>
   <translation>messung prüffragen kurve punkte</translation>
  </message>
  <message>
   <source>Download models from</source>
   <translation>Modelle herunterladen von</translation>
  </message>
  <message>
   <source>A mirror's address; empty means huggingface.co. Shoal uses the proxy in HTTPS_PROXY.</source>
   <translation>Die Adresse eines Spiegels; leer heißt huggingface.co. Shoal nutzt den Proxy aus HTTPS_PROXY.</translation>
  </message>
  <message>
   <source>download hub hugging face endpoint proxy</source>
   <translation>herunterladen hub hugging face adresse proxy spiegel</translation>
  </message>
  <message>
   <source>Other pages that may ask your model</source>
   <translation>Andere Seiten, die dein Modell fragen dürfen</translation>
  </message>
  <message>
   <source>Programs that show web pages, such as app://obsidian.md. Applies when you next let programs use your model.</source>
   <translation>Programme, die Webseiten zeigen, zum Beispiel app://obsidian.md. Gilt, sobald du Programmen dein Modell das nächste Mal freigibst.</translation>
  </message>
  <message>
   <source>origin cors extension browser endpoint server docker program</source>
   <translation>origin cors erweiterung browser schnittstelle server docker programm</translation>
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
   <source>Shoal stays in the tray. Without a tray, it asks before closing.</source>
   <translation>Shoal bleibt in der Leiste. Ohne Leiste fragt es vor dem Schließen.</translation>
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
   <source>Starts in the tray, without a window.</source>
   <translation>Startet in der Leiste, ohne Fenster.</translation>
  </message>
  <message>
   <source>autostart login boot session automatic</source>
   <translation>autostart anmeldung hochfahren sitzung automatisch</translation>
  </message>
  <message>
   <source>Engine and updates</source>
   <translation>Engine und Updates</translation>
  </message>
  <message>
   <source>Off: Shoal never checks on its own. On: only while this window is open and it doesn't learn alone. Nothing is downloaded or installed without you.</source>
   <translation>Aus: Shoal sucht nie von selbst. An: nur bei offenem Fenster und nicht, während es allein lernt. Nichts wird ohne dich geladen oder installiert.</translation>
  </message>
  <message>
   <source>update upgrade release version check download</source>
   <translation>Update Aktualisierung Version Nachsehen Herunterladen Upgrade</translation>
  </message>
  <message>
   <source>Tell me when a problem stops learning</source>
   <translation>Bescheid geben, wenn ein Problem das Lernen stoppt</translation>
  </message>
  <message>
   <source>The only notification there is.</source>
   <translation>Die einzige Mitteilung, die es gibt.</translation>
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
   <source>Paper</source>
   <translation>Aufsatz</translation>
  </message>
  <message>
   <source>Chosen for this computer</source>
   <translation>Passend zu diesem Computer</translation>
  </message>
  <message>
   <source>The engine isn't installed. You can install it from Overview.</source>
   <translation>Die Engine ist nicht installiert. Installieren kannst du sie in der Übersicht.</translation>
  </message>
  <message>
   <source>About {watts} W now (estimate).</source>
   <translation>Etwa {watts} W im Moment (geschätzt).</translation>
  </message>
  <message>
   <source>{name} on {device}, {dtype}</source>
   <translation>{name} auf {device}, {dtype}</translation>
  </message>
  <message>
   <source>Always guessing {answer} solves {n} of 100 at most.</source>
   <translation>Wer immer „{answer}“ rät, löst höchstens {n} von 100.</translation>
  </message>
  <message>
   <source>This computer is the meeting point: port {port} is open to your network while it learns with others.</source>
   <translation>Dieser Computer ist der Treffpunkt: Port {port} ist für dein Netz offen, solange er mit anderen lernt.</translation>
  </message>
  <message>
   <source>No swarm here yet? Then this computer becomes the meeting point: it opens a port to your network.</source>
   <translation>Noch kein Schwarm hier? Dann wird dieser Computer zum Treffpunkt: Er öffnet einen Port für dein Netz.</translation>
  </message>
  <message>
   <source>Learned from {answers} answers of {whose} today.</source>
   <translation>Hat heute aus {answers} Antworten von {whose} gelernt.</translation>
  </message>
  <message>
   <source>Surely better since: {family}, {before} → {now} right.</source>
   <translation>Seitdem sicher besser: {family}, {before} → {now} richtig.</translation>
  </message>
  <message>
   <source>{what}: {line}</source>
   <translation>{what}: {line}</translation>
  </message>
  <message>
   <source>d MMM yyyy</source>
   <translation>d. MMM yyyy</translation>
  </message>
  <message>
   <source>Round {n} of {all}</source>
   <translation>Runde {n} von {all}</translation>
  </message>
  <message>
   <source>looking for puzzles that suit it, kind {n} of {all}</source>
   <translation>sucht passende Rätsel, Art {n} von {all}</translation>
  </message>
  <message>
   <source>collecting right answers to learn from, {n} of {all}</source>
   <translation>sammelt richtige Antworten zum Lernen, {n} von {all}</translation>
  </message>
  <message>
   <source>answer {n} of {all}</source>
   <translation>Antwort {n} von {all}</translation>
  </message>
  <message>
   <source>answering your rows</source>
   <translation>beantwortet deine Zeilen</translation>
  </message>
  <message>
   <source>solving puzzles</source>
   <translation>löst Rätsel</translation>
  </message>
  <message>
   <source>on the processor</source>
   <translation>auf dem Prozessor</translation>
  </message>
  <message>
   <source>on the graphics card</source>
   <translation>auf der Grafikkarte</translation>
  </message>
  <message>
   <source>, {n} threads</source>
   <translation>, {n} Threads</translation>
  </message>
  <message>
   <source>It learns on the processor: Shoal found no graphics card it can use.</source>
   <translation>Es lernt auf dem Prozessor: Shoal fand keine nutzbare Grafikkarte.</translation>
  </message>
  <message>
   <source>It learns on the graphics card, the fastest here.</source>
   <translation>Es lernt auf der Grafikkarte, hier am schnellsten.</translation>
  </message>
  <message>
   <source>{name} and {n} other</source>
   <translation>{name} und {n} anderem</translation>
  </message>
  <message numerus="yes">
   <source>{name} and {n} others</source>
   <translation>
    <numerusform>{name} und {n} anderem</numerusform>
    <numerusform>{name} und {n} anderen</numerusform>
   </translation>
  </message>
  <message>
   <source>Not started</source>
   <translation>Nicht gestartet</translation>
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
   <translation>Pausiert</translation>
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
   <source>The disk is full: free up some space. Learning continues by itself.</source>
   <translation>Die Festplatte ist voll: mach Platz. Danach lernt es von selbst weiter.</translation>
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
   <source>{sentence} It restarts in {span}.</source>
   <translation>{sentence} Neustart in {span}.</translation>
  </message>
  <message>
   <source>Saving what it learned.</source>
   <translation>Speichert das Gelernte.</translation>
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
   <source>d MMMM</source>
   <translation>d. MMMM</translation>
  </message>
  <message>
   <source>d MMM yyyy HH:mm</source>
   <translation>d. MMM yyyy HH:mm</translation>
  </message>
  <message>
   <source>After round {n}</source>
   <translation>Nach Runde {n}</translation>
  </message>
  <message>
   <source>Before round 1</source>
   <translation>Vor Runde 1</translation>
  </message>
  <message>
   <source>Placement</source>
   <translation>Einstufung</translation>
  </message>
  <message>
   <source>looking for puzzles that suit it</source>
   <translation>sucht Rätsel, die zu ihm passen</translation>
  </message>
  <message>
   <source>measuring, </source>
   <translation>Messung, </translation>
  </message>
  <message>
   <source>learning your rows</source>
   <translation>lernt deine Zeilen</translation>
  </message>
  <message>
   <source>learning from the answers</source>
   <translation>lernt aus den Antworten</translation>
  </message>
  <message>
   <source>loading the model</source>
   <translation>lädt das Modell</translation>
  </message>
  <message>
   <source>waiting for the others</source>
   <translation>wartet auf die anderen</translation>
  </message>
  <message>
   <source>checking the answers</source>
   <translation>prüft die Antworten</translation>
  </message>
  <message>
   <source>saving</source>
   <translation>speichert</translation>
  </message>
  <message>
   <source>resting</source>
   <translation>ruht</translation>
  </message>
  <message>
   <source>waiting to restart</source>
   <translation>wartet auf den Neustart</translation>
  </message>
  <message>
   <source>waiting for space on the disk</source>
   <translation>wartet auf Platz auf der Festplatte</translation>
  </message>
  <message>
   <source>sending the last answers</source>
   <translation>sendet die letzten Antworten</translation>
  </message>
  <message>
   <source>stopping</source>
   <translation>hält an</translation>
  </message>
  <message>
   <source>measuring on rows kept aside</source>
   <translation>misst an beiseitegelegten Zeilen</translation>
  </message>
  <message>
   <source>measuring on new puzzles</source>
   <translation>misst an neuen Rätseln</translation>
  </message>
  <message>
   <source>It is too early to tell what they bring.</source>
   <translation>Was sie bringen, lässt sich noch nicht sagen.</translation>
  </message>
  <message>
   <source>learning</source>
   <translation>lernt</translation>
  </message>
  <message>
   <source>Step {n} of {all}</source>
   <translation>Schritt {n} von {all}</translation>
  </message>
  <message>
   <source>Built in. Only solves puzzles. Gets visibly better within minutes, on any computer.</source>
   <translation>Eingebaut. Löst nur Rätsel. Wird in Minuten sichtbar besser, auf jedem Computer.</translation>
  </message>
  <message>
   <source>Talks and knows more. Learns slower. Download one, or use one you have.</source>
   <translation>Kann sprechen und weiß mehr. Lernt langsamer. Lade eins herunter oder nimm eins, das du hast.</translation>
  </message>
  <message>
   <source>Continue</source>
   <translation>Weiter</translation>
  </message>
  <message>
   <source>Which model should learn?</source>
   <translation>Welches Modell soll lernen?</translation>
  </message>
  <message>
   <source>You can change this any time.</source>
   <translation>Du kannst das jederzeit ändern.</translation>
  </message>
  <message>
   <source>Starter (recommended)</source>
   <translation>Startmodell (empfohlen)</translation>
  </message>
  <message>
   <source>A bigger model</source>
   <translation>Ein größeres Modell</translation>
  </message>
  <message>
   <source>Back</source>
   <translation>Zurück</translation>
  </message>
  <message>
   <source>It learns what you show it: your own table of texts and answers, or puzzles. On its own, or together with other people's models.</source>
   <translation>Es lernt, was du ihm zeigst: deine eigene Tabelle mit Texten und Antworten, oder Rätsel. Für sich allein, oder zusammen mit den Modellen anderer.</translation>
  </message>
  <message>
   <source>Starts right away with the built-in model</source>
   <translation>Beginnt sofort mit dem eingebauten Modell</translation>
  </message>
  <message>
   <source>Learn a table of yours: texts and the right answers. Then ask it</source>
   <translation>Lernt eine Tabelle von dir: Texte und die richtigen Antworten. Danach kannst du es fragen</translation>
  </message>
  <message>
   <source>Watch it learn for ten minutes. After that it only works while you're away. Pause any time.</source>
   <translation>Sieh ihm zehn Minuten beim Lernen zu. Danach arbeitet es nur, wenn du weg bist. Pause geht jederzeit.</translation>
  </message>
  <message>
   <source>On its own, Shoal doesn't open a single network connection. In a swarm, only puzzle answers are shared. Never your files, never the model, nothing you type without your yes.</source>
   <translation>Allein öffnet Shoal keine einzige Verbindung ins Netz. Im Schwarm werden nur Rätselantworten geteilt. Nie deine Dateien, nie das Modell, nichts, was du tippst, ohne dein Ja.</translation>
  </message>
  <message>
   <source>Everything is in one folder. Move or delete it any time. No account; no one knows you use it.</source>
   <translation>Alles liegt in einem Ordner. Du kannst ihn jederzeit verschieben oder löschen. Kein Konto; niemand erfährt davon.</translation>
  </message>
  <message>
   <source>Nothing leaves this computer.</source>
   <translation>Nichts verlässt diesen Computer.</translation>
  </message>
  <message>
   <source>Finds Shoals on this network. If there are none, it opens a port and starts a swarm. They swap puzzle answers, as plain text.</source>
   <translation>Findet Shoals in diesem Netz. Gibt es keine, öffnet es einen Port und startet einen Schwarm. Sie tauschen Rätselantworten, als Text.</translation>
  </message>
  <message>
   <source>Raise a small model on this computer</source>
   <translation>Zieh ein kleines Modell auf diesem Computer groß</translation>
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
   <source>I have my own table</source>
   <translation>Ich habe eine eigene Tabelle</translation>
  </message>
  <message>
   <source>With whom</source>
   <translation>Mit wem</translation>
  </message>
  <message>
   <source>With an invite or six words</source>
   <translation>Mit einer Einladung oder sechs Wörtern</translation>
  </message>
  <message>
   <source>Joins the swarm you were invited to. Only puzzle answers are shared, as plain text.</source>
   <translation>Tritt dem Schwarm bei, in den du eingeladen bist. Geteilt werden nur Rätselantworten, als Text.</translation>
  </message>
  <message>
   <source>Learn alone or together?</source>
   <translation>Allein oder zusammen lernen?</translation>
  </message>
  <message>
   <source>What it does</source>
   <translation>Was es tut</translation>
  </message>
  <message>
   <source>What it keeps</source>
   <translation>Was es aufbewahrt</translation>
  </message>
  <message>
   <source>With others on this network</source>
   <translation>Mit anderen in diesem Netz</translation>
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
   <source>Word for word, nothing else. In the swarm it's marked as a person's answer.</source>
   <translation>Wort für Wort, sonst nichts. Im Schwarm ist sie als Antwort eines Menschen markiert.</translation>
  </message>
  <message>
   <source>Word for word, nothing else. It stays on this computer.</source>
   <translation>Wort für Wort, sonst nichts. Sie bleibt auf diesem Computer.</translation>
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
   <source>cut off: too long</source>
   <translation>abgeschnitten: zu lang</translation>
  </message>
  <message>
   <source>The text that would teach: {text}</source>
   <translation>Der Text, der lehren würde: {text}</translation>
  </message>
  <message>
   <source>Right! May your answer teach?</source>
   <translation>Richtig! Darf deine Antwort lehren?</translation>
  </message>
  <message>
   <source>Saving it …</source>
   <translation>Wird gespeichert …</translation>
  </message>
  <message>
   <source>It stays with you.</source>
   <translation>Sie bleibt bei dir.</translation>
  </message>
  <message>
   <source>Thank you. Your model looks at it in its next round; it learns if it failed that puzzle.</source>
   <translation>Danke. Dein Modell sieht sie in der nächsten Runde an und lernt daraus, wenn es das Rätsel nicht konnte.</translation>
  </message>
  <message>
   <source>You</source>
   <translation>Du</translation>
  </message>
  <message>
   <source>Teach my model</source>
   <translation>Mein Modell lehren</translation>
  </message>
  <message>
   <source>✓ right</source>
   <translation>✓ richtig</translation>
  </message>
  <message>
   <source>✗ wrong</source>
   <translation>✗ falsch</translation>
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
   <source>After (nothing learned yet)</source>
   <translation>Nachher (noch nichts gelernt)</translation>
  </message>
  <message>
   <source>Teach and share</source>
   <translation>Lehren und teilen</translation>
  </message>
  <message>
   <source>Keep it to myself</source>
   <translation>Für mich behalten</translation>
  </message>
  <message>
   <source>The words can't be saved: {why}.</source>
   <translation>Die Wörter lassen sich nicht speichern: {why}.</translation>
  </message>
  <message>
   <source>This is a class. Its teacher sees your model's made-up name, its skills and whether it's learning, and can pause it. Your files and your own name stay with you.</source>
   <translation>Das ist eine Klasse. Ihre Lehrkraft sieht den erfundenen Namen deines Modells, was es kann und ob es gerade lernt, und darf es pausieren. Deine Dateien und dein eigener Name bleiben bei dir.</translation>
  </message>
  <message>
   <source>Press {button} again to agree.</source>
   <translation>Drück noch einmal auf „{button}“, um zuzustimmen.</translation>
  </message>
  <message>
   <source>Learn with others at {relay}?</source>
   <translation>Mit anderen lernen, bei {relay}?</translation>
  </message>
  <message>
   <source>Invite, six words or address</source>
   <translation>Einladung, sechs Wörter oder Adresse</translation>
  </message>
  <message>
   <source>This link invites you there. Only puzzle answers are shared, as plain text. Never your files, never the model, and nothing you type without your yes.</source>
   <translation>Dieser Link lädt dich dorthin ein. Geteilt werden nur Rätselantworten, als Text. Nie deine Dateien, nie das Modell, und nichts, was du tippst, ohne dein Ja.</translation>
  </message>
  <message>
   <source>This link doesn't lead to a swarm</source>
   <translation>Dieser Link führt zu keinem Schwarm</translation>
  </message>
  <message>
   <source>Copied</source>
   <translation>Kopiert</translation>
  </message>
  <message>
   <source>Saved as {path}.</source>
   <translation>Gesichert als {path}.</translation>
  </message>
  <message>
   <source>{path} can't be written ({why}). Pick another place.</source>
   <translation>{path} lässt sich nicht schreiben ({why}). Wähle einen anderen Ort.</translation>
  </message>
  <message>
   <source>Paused by you.</source>
   <translation>Von dir pausiert.</translation>
  </message>
  <message>
   <source>paused</source>
   <translation>pausiert</translation>
  </message>
  <message>
   <source>Snoozed by you until {until}.</source>
   <translation>Von dir pausiert bis {until}.</translation>
  </message>
  <message>
   <source>snoozed until {until}</source>
   <translation>Pause bis {until}</translation>
  </message>
  <message>
   <source>Answering another program. Resumes by itself.</source>
   <translation>Antwortet einem anderen Programm. Geht danach von selbst weiter.</translation>
  </message>
  <message>
   <source>answering another program</source>
   <translation>antwortet einem anderen Programm</translation>
  </message>
  <message>
   <source>Paused by the teacher of your class.</source>
   <translation>Von der Lehrkraft deiner Klasse pausiert.</translation>
  </message>
  <message>
   <source>paused by the class</source>
   <translation>von der Klasse pausiert</translation>
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
   <source>Can't tell if you're away, so it waits. Turn on “Also while I use this computer”; hours can limit it.</source>
   <translation>Wartet, weil es nicht erkennt, ob du weg bist. Schalte „Auch während ich am Computer bin“ ein; Zeiten können es begrenzen.</translation>
  </message>
  <message>
   <source>use of the computer unknown</source>
   <translation>Benutzung unbekannt</translation>
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
   <source>Almost there: starts at {until} if it stays quiet.</source>
   <translation>Gleich geht es los: um {until}, wenn es ruhig bleibt.</translation>
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
   <source>Small and quick: sorts short texts of your own, and learns the easiest puzzles, on almost any computer.</source>
   <translation>Klein und schnell: sortiert kurze eigene Texte und lernt die leichtesten Rätsel, auf fast jedem Computer.</translation>
  </message>
  <message>
   <source>Reads your own texts better than the smallest, and is still quick without a graphics card.</source>
   <translation>Liest deine Texte besser als das kleinste und ist auch ohne Grafikkarte noch schnell.</translation>
  </message>
  <message>
   <source>Good at arithmetic, and reads many languages.</source>
   <translation>Gut im Rechnen, und es liest viele Sprachen.</translation>
  </message>
  <message>
   <source>Thinks aloud before it answers: stronger, but its answers are much longer.</source>
   <translation>Denkt laut, bevor es antwortet: stärker, aber seine Antworten sind viel länger.</translation>
  </message>
  <message>
   <source>Reads and writes everyday texts in eight languages.</source>
   <translation>Liest und schreibt Alltagstexte in acht Sprachen.</translation>
  </message>
  <message>
   <source>Meta asks you to accept its licence first. Open its page on huggingface.co with a free account and agree. Then make an access token with the right to read, and give it to Shoal.</source>
   <translation>Meta will, dass du zuerst die Lizenz annimmst. Öffne die Seite auf huggingface.co mit einem kostenlosen Konto und stimm zu. Mach dann ein Zugangstoken mit Leserecht und gib es Shoal.</translation>
  </message>
  <message>
   <source>Good at arithmetic; wants a graphics card or much memory.</source>
   <translation>Rechnet gut; braucht eine Grafikkarte oder viel Speicher.</translation>
  </message>
  <message>
   <source>Reads and writes English best among those of its size; wants a graphics card or much memory.</source>
   <translation>Liest und schreibt Englisch am besten in seiner Größe; braucht eine Grafikkarte oder viel Speicher.</translation>
  </message>
  <message>
   <source>Thinks aloud before it answers; wants a graphics card or much memory.</source>
   <translation>Denkt laut nach, bevor es antwortet; braucht eine Grafikkarte oder viel Speicher.</translation>
  </message>
  <message>
   <source>The strongest here, for texts and puzzles alike; wants a large graphics card.</source>
   <translation>Das stärkste hier, für Texte wie für Rätsel; braucht eine große Grafikkarte.</translation>
  </message>
  <message>
   <source>Comes with Shoal. For puzzles alone: it gets better within minutes, on any computer.</source>
   <translation>Kommt mit Shoal. Nur für Rätsel: Es wird in Minuten besser, auf jedem Computer.</translation>
  </message>
  <message>
   <source>Starter</source>
   <translation>Startmodell</translation>
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
   <translation>Kleinstes gem. Vielfaches</translation>
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
   <source>Products</source>
   <translation>Produkte</translation>
  </message>
  <message>
   <source>Counting legs</source>
   <translation>Beine zählen</translation>
  </message>
  <message>
   <source>Filtering numbers</source>
   <translation>Zahlen filtern</translation>
  </message>
  <message>
   <source>Sums of decimals</source>
   <translation>Dezimalsummen</translation>
  </message>
  <message>
   <source>Counting primes</source>
   <translation>Primzahlen zählen</translation>
  </message>
  <message>
   <source>Missing angles</source>
   <translation>Fehlende Winkel</translation>
  </message>
  <message>
   <source>Complex numbers</source>
   <translation>Komplexe Zahlen</translation>
  </message>
  <message>
   <source>Time spans</source>
   <translation>Zeitspannen</translation>
  </message>
  <message>
   <source>Sequences</source>
   <translation>Zahlenfolgen</translation>
  </message>
  <message>
   <source>Target number</source>
   <translation>Zielzahl</translation>
  </message>
  <message>
   <source>Dice</source>
   <translation>Würfel</translation>
  </message>
  <message>
   <source>Number formats</source>
   <translation>Zahlenformate</translation>
  </message>
  <message>
   <source>Hexadecimal arithmetic</source>
   <translation>Hexadezimal rechnen</translation>
  </message>
  <message>
   <source>Powers</source>
   <translation>Potenzen</translation>
  </message>
  <message>
   <source>Needle in a haystack</source>
   <translation>Nadel im Heuhaufen</translation>
  </message>
  <message>
   <source>Words backward</source>
   <translation>Wörter rückwärts</translation>
  </message>
  <message>
   <source>Sorting words</source>
   <translation>Wörter sortieren</translation>
  </message>
  <message>
   <source>Palindromes</source>
   <translation>Palindrome</translation>
  </message>
  <message>
   <source>Family ties</source>
   <translation>Familienbande</translation>
  </message>
  <message>
   <source>Word problems</source>
   <translation>Textaufgaben</translation>
  </message>
  <message>
   <source>Jumbled letters</source>
   <translation>Vertauschte Buchstaben</translation>
  </message>
  <message>
   <source>Bits in turn</source>
   <translation>Bits im Wechsel</translation>
  </message>
  <message>
   <source>Coin tosses</source>
   <translation>Münzwürfe</translation>
  </message>
  <message>
   <source>Knights and knaves</source>
   <translation>Ritter und Schurken</translation>
  </message>
  <message>
   <source>Word ladders</source>
   <translation>Wortleitern</translation>
  </message>
  <message>
   <source>Spirals</source>
   <translation>Spiralen</translation>
  </message>
  <message>
   <source>Turned grids</source>
   <translation>Gedrehte Gitter</translation>
  </message>
  <message>
   <source>Small sudokus</source>
   <translation>Kleine Sudokus</translation>
  </message>
  <message>
   <source>Star paths</source>
   <translation>Sternpfade</translation>
  </message>
  <message>
   <source>Shortest path</source>
   <translation>Kürzester Weg</translation>
  </message>
  <message>
   <source>Rectangles</source>
   <translation>Rechtecke</translation>
  </message>
  <message>
   <source>Largest island</source>
   <translation>Größte Insel</translation>
  </message>
  <message>
   <source>Queens</source>
   <translation>Damen</translation>
  </message>
  <message>
   <source>Mazes</source>
   <translation>Labyrinthe</translation>
  </message>
  <message>
   <source>Rotting oranges</source>
   <translation>Faulende Orangen</translation>
  </message>
  <message>
   <source>Colored graphs</source>
   <translation>Gefärbte Graphen</translation>
  </message>
  <message>
   <source>Changed grids</source>
   <translation>Veränderte Gitter</translation>
  </message>
  <message>
   <source>Sisters and friends</source>
   <translation>Schwestern und Freundinnen</translation>
  </message>
  <message>
   <source>the product</source>
   <translation>Das Produkt</translation>
  </message>
  <message>
   <source>the last word</source>
   <translation>Das letzte Wort</translation>
  </message>
  <message>
   <source>the last number</source>
   <translation>Die letzte Zahl</translation>
  </message>
  <message>
   <source>that all are honest</source>
   <translation>„Alle sind ehrlich“</translation>
  </message>
  <message>
   <source>all of the land</source>
   <translation>Die ganze Landfläche</translation>
  </message>
  <message>
   <source>rows plus columns</source>
   <translation>Zeilen plus Spalten</translation>
  </message>
  <message>
   <source>Numbers</source>
   <translation>Zahlen</translation>
  </message>
  <message>
   <source>Words</source>
   <translation>Wörter</translation>
  </message>
  <message>
   <source>Time</source>
   <translation>Zeit</translation>
  </message>
  <message>
   <source>Grids</source>
   <translation>Gitter</translation>
  </message>
  <message>
   <source>Paths</source>
   <translation>Wege</translation>
  </message>
  <message>
   <source>Your questions</source>
   <translation>Deine Fragen</translation>
  </message>
  <message>
   <source>no question</source>
   <translation>keine Frage</translation>
  </message>
  <message>
   <source>the same question again</source>
   <translation>dieselbe Frage noch einmal</translation>
  </message>
  <message>
   <source>another answer to the same question</source>
   <translation>eine andere Antwort auf dieselbe Frage</translation>
  </message>
  <message>
   <source>no table row</source>
   <translation>keine Tabellenzeile</translation>
  </message>
  <message>
   <source>more cells than columns</source>
   <translation>mehr Zellen als Spalten</translation>
  </message>
  <message>
   <source>an answer that the check can't recognise</source>
   <translation>eine Antwort, die die Prüfung nicht erkennt</translation>
  </message>
  <message>
   <source>more rows than a set holds</source>
   <translation>mehr Zeilen, als hineinpassen</translation>
  </message>
  <message>
   <source>Times tables</source>
   <translation>Einmaleins</translation>
  </message>
  <message>
   <source>Metres and centimetres</source>
   <translation>Meter und Zentimeter</translation>
  </message>
  <message>
   <source>Plural forms</source>
   <translation>Mehrzahl (Englisch)</translation>
  </message>
  <message>
   <source>When to learn</source>
   <translation>Wann gelernt wird</translation>
  </message>
  <message>
   <source>Off: it waits until you're away.</source>
   <translation>Aus: Es wartet, bis du weg bist.</translation>
  </message>
  <message>
   <source>contribute idle away keyboard mouse background</source>
   <translation>mitmachen leerlauf abwesend tastatur maus hintergrund</translation>
  </message>
  <message>
   <source>Time away before it starts</source>
   <translation>Wie lange weg, bevor es beginnt</translation>
  </message>
  <message>
   <source>Counts from your last key press or mouse move.</source>
   <translation>Gezählt ab deinem letzten Tastendruck oder deiner letzten Mausbewegung.</translation>
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
   <source>When it may learn, every day. A night may end on the next morning.</source>
   <translation>Wann es lernen darf, jeden Tag. Eine Nacht darf am nächsten Morgen enden.</translation>
  </message>
  <message>
   <source>schedule hours night day time plan</source>
   <translation>zeitplan stunden nacht tag uhrzeit plan</translation>
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
   <source>Also while an app fills the screen</source>
   <translation>Auch wenn ein Programm den Bildschirm füllt</translation>
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
   <translation>Platz machen, wenn andere die Grafikkarte brauchen</translation>
  </message>
  <message>
   <source>Pause when other apps use more than this much of the graphics card. 100 switches this off.</source>
   <translation>Pause, wenn andere Programme mehr als so viel von der Grafikkarte brauchen. 100 schaltet das aus.</translation>
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
   <source>It frees its memory when less than this is left. 0 switches this off.</source>
   <translation>Es gibt seinen Speicher frei, wenn weniger als das übrig ist. 0 schaltet das aus.</translation>
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
   <source>It waits while the computer is hotter than this. 110 switches this off.</source>
   <translation>Es wartet, solange der Computer heißer ist. 110 schaltet das aus.</translation>
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
   <source>Quiet: a quarter of the cores, with breaks. Balanced: half. Full: all of them.</source>
   <translation>Leise: ein Viertel der Kerne, mit Pausen. Mittel: die Hälfte. Voll: alle.</translation>
  </message>
  <message>
   <source>quiet balanced full speed noise threads rest dial</source>
   <translation>leise mittel voll tempo lärm threads ruhe regler</translation>
  </message>
  <message>
   <source>Memory at most</source>
   <translation>Speicher höchstens</translation>
  </message>
  <message>
   <source>Learning may use at most this share of the computer's memory. 100 switches this off.</source>
   <translation>Das Lernen darf höchstens so viel vom Arbeitsspeicher nutzen. 100 schaltet das aus.</translation>
  </message>
  <message>
   <source>ram memory limit most cap share</source>
   <translation>ram speicher grenze höchstens obergrenze anteil</translation>
  </message>
  <message>
   <source>Disk space</source>
   <translation>Platz auf der Platte</translation>
  </message>
  <message>
   <source>Above this, Shoal deletes old answers, logs and temporary files. What your model learned and downloaded models always stay.</source>
   <translation>Darüber löscht Shoal alte Antworten, Protokolle und Zwischendateien. Was dein Modell gelernt hat und geladene Modelle bleiben immer.</translation>
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
  <message>
   <source>Extras</source>
   <translation>Extras</translation>
  </message>
  <message>
   <source>Say thanks for answers</source>
   <translation>Für Antworten danken</translation>
  </message>
  <message>
   <source>Tells a peer that your model learned from its answers, and what kind of puzzle.</source>
   <translation>Sagt einem anderen, dass dein Modell aus seinen Antworten gelernt hat, und welche Art Rätsel.</translation>
  </message>
  <message>
   <source>receipts helped thanks share privacy</source>
   <translation>dank quittung geholfen teilen datenschutz</translation>
  </message>
  <message>
   <source>Learn from people too</source>
   <translation>Auch von Menschen lernen</translation>
  </message>
  <message>
   <source>Puzzle answers that people typed and shared. Off: your model learns from models and you alone.</source>
   <translation>Antworten, die Leute selbst getippt und geteilt haben. Aus: Dein Modell lernt nur von Modellen und von dir.</translation>
  </message>
  <message>
   <source>human people answers teacher swarm peers</source>
   <translation>Mensch Leute Antworten Lehrer Schwarm Peers</translation>
  </message>
  <message>
   <source>This is a fault in Shoal ({name}: {said}):</source>
   <translation>Das ist ein Fehler in Shoal ({name}: {said}):</translation>
  </message>
  <message>
   <source>ask again, or report it.</source>
   <translation>Frag noch einmal oder melde ihn.</translation>
  </message>
  <message>
   <source>What was learned can't be read ({refusal}):</source>
   <translation>Das Gelernte lässt sich nicht lesen ({refusal}):</translation>
  </message>
  <message>
   <source>start learning once, which looks after damaged files, and ask again.</source>
   <translation>Starte das Lernen einmal, dabei wird nach beschädigten Dateien gesehen, und frag dann noch einmal.</translation>
  </message>
  <message>
   <source>A message of more than {MAX_LINE} bytes is too long; ask something shorter.</source>
   <translation>Eine Nachricht mit mehr als {MAX_LINE} Byte ist zu lang; frag etwas Kürzeres.</translation>
  </message>
  <message>
   <source>This is no message of a chat ({error}); see {remedy}.</source>
   <translation>Das ist keine Nachricht für ein Gespräch ({error}); siehe {remedy}.</translation>
  </message>
  <message>
   <source>There is no family called {name}:</source>
   <translation>Eine Rätselart {name} gibt es nicht:</translation>
  </message>
  <message>
   <source>choose one of {FAMILIES}.</source>
   <translation>Wähle eine von {FAMILIES}.</translation>
  </message>
  <message>
   <source>{name} has levels 1 to {levels}, not {at}:</source>
   <translation>{name} hat die Stufen 1 bis {levels}, nicht {at}:</translation>
  </message>
  <message>
   <source>choose one of those.</source>
   <translation>Wähle eine davon.</translation>
  </message>
  <message>
   <source>A text has 1 to {MAX_TEXT} characters:</source>
   <translation>Ein Text hat 1 bis {MAX_TEXT} Zeichen:</translation>
  </message>
  <message>
   <source>ask with another one.</source>
   <translation>Frag mit einem anderen.</translation>
  </message>
  <message>
   <source>This text is longer than the model reads at once:</source>
   <translation>Dieser Text ist länger, als das Modell auf einmal liest:</translation>
  </message>
  <message>
   <source>shorten it.</source>
   <translation>Kürze ihn.</translation>
  </message>
  <message>
   <source>The conversation is longer than this model can read:</source>
   <translation>Das Gespräch ist länger, als dieses Modell lesen kann:</translation>
  </message>
  <message>
   <source>it forgot the beginning.</source>
   <translation>Es hat den Anfang vergessen.</translation>
  </message>
  <message>
   <source>A question has 1 to {MAX_TEXT} characters:</source>
   <translation>Eine Frage hat 1 bis {MAX_TEXT} Zeichen:</translation>
  </message>
  <message>
   <source>ask another one.</source>
   <translation>Stell eine andere.</translation>
  </message>
  <message>
   <source>There is no answer of yours to give:</source>
   <translation>Es gibt noch keine Antwort von dir:</translation>
  </message>
  <message>
   <source>solve the puzzle with your working first.</source>
   <translation>Löse das Rätsel erst mit Rechenweg.</translation>
  </message>
  <message>
   <source>That puzzle isn't known any more:</source>
   <translation>Dieses Rätsel ist nicht mehr bekannt:</translation>
  </message>
  <message>
   <source>draw another one.</source>
   <translation>Hol dir ein neues.</translation>
  </message>
  <message>
   <source>That is longer than this model can read at once:</source>
   <translation>Das ist länger, als dieses Modell auf einmal lesen kann:</translation>
  </message>
  <message>
   <source>ask something shorter.</source>
   <translation>Frag etwas Kürzeres.</translation>
  </message>
  <message>
   <source>The table has changed since {part} was begun.</source>
   <translation>Die Tabelle hat sich geändert, seit {part} angefangen wurde.</translation>
  </message>
  <message>
   <source>{part} was begun with another skill.</source>
   <translation>{part} wurde mit einem anderen Können angefangen.</translation>
  </message>
  <message>
   <source>The skill has learned on since {part} was begun.</source>
   <translation>Dein Modell hat weitergelernt, seit {part} angefangen wurde.</translation>
  </message>
  <message>
   <source>{part} was begun with other columns or another encoding.</source>
   <translation>{part} wurde mit anderen Spalten oder einer anderen Kodierung angefangen.</translation>
  </message>
  <message>
   <source>{name} changed meanwhile:</source>
   <translation>{name} hat sich inzwischen geändert:</translation>
  </message>
  <message>
   <source>the rows are as they were at the start.</source>
   <translation>Die Zeilen sind wie am Anfang.</translation>
  </message>
  <message>
   <source>The table has no row to label.</source>
   <translation>Die Tabelle hat keine Zeile, die sich beschriften lässt.</translation>
  </message>
  <message>
   <source>Check the file, or say --heading no.</source>
   <translation>Sieh dir die Datei an, oder sag --heading no.</translation>
  </message>
  <message>
   <source>{part} is damaged.</source>
   <translation>{part} ist beschädigt.</translation>
  </message>
  <message>
   <source>{name} needs one of these endings: {one}.</source>
   <translation>{name} braucht eine dieser Endungen: {one}.</translation>
  </message>
  <message>
   <source>{to} exists already and isn't overwritten.</source>
   <translation>{to} gibt es schon und wird nicht überschrieben.</translation>
  </message>
  <message>
   <source>Name another file.</source>
   <translation>Nenn eine andere Datei.</translation>
  </message>
  <message>
   <source>Start over (--restart), or name another file.</source>
   <translation>Fang von vorn an (--restart), oder nenn eine andere Datei.</translation>
  </message>
  <message>
   <source>{name} is damaged.</source>
   <translation>{name} ist beschädigt.</translation>
  </message>
  <message>
   <source>{name} isn't from Shoal.</source>
   <translation>{name} ist nicht von Shoal.</translation>
  </message>
  <message>
   <source>{file} can't be read ({strerror}).</source>
   <translation>{file} lässt sich nicht lesen ({strerror}).</translation>
  </message>
  <message>
   <source>Check its name.</source>
   <translation>Sieh nach, wie sie heißt.</translation>
  </message>
  <message>
   <source>{path} exists already and isn't overwritten.</source>
   <translation>{path} gibt es schon und wird nicht überschrieben.</translation>
  </message>
  <message>
   <source>No window can be shown, because {why}; Shoal learns without one.</source>
   <translation>Ein Fenster geht hier nicht ({why}); Shoal lernt ohne.</translation>
  </message>
  <message>
   <source>This is a fault in Shoal{where}: {name}: {join}; nothing saved is lost, and the same command with SHOAL_DEBUG=1 shows what to report.</source>
   <translation>Das ist ein Fehler in Shoal{where}: {name}: {join}; nichts Gespeichertes ist verloren, und derselbe Befehl mit SHOAL_DEBUG=1 zeigt, was du melden kannst.</translation>
  </message>
  <message>
   <source>No window can be shown, because {why}; the view in this terminal opens.</source>
   <translation>Ein Fenster geht hier nicht ({why}); die Ansicht in diesem Terminal öffnet sich.</translation>
  </message>
  <message>
   <source>The system refused {filename}: {strerror}.</source>
   <translation>Das System hat {filename} abgelehnt: {strerror}.</translation>
  </message>
  <message>
   <source>This computer's memory is used up; close other programs or take a smaller model, and start again.</source>
   <translation>Der Arbeitsspeicher ist voll; schließe andere Programme oder nimm ein kleineres Modell, und starte noch einmal.</translation>
  </message>
  <message>
   <source>A part of the installation is missing ({name}); {how}.</source>
   <translation>Ein Teil der Installation fehlt ({name}); {how}.</translation>
  </message>
  <message>
   <source>Mend that and start again.</source>
   <translation>Behebe das und starte noch einmal.</translation>
  </message>
  <message>
   <source>The system refused: {strerror}.</source>
   <translation>Das System hat abgelehnt: {strerror}.</translation>
  </message>
  <message>
   <source>This needs {name}, which is not part of an installed app's engine:</source>
   <translation>Das braucht {name}, was in der Engine einer installierten App nicht enthalten ist:</translation>
  </message>
  <message>
   <source>start it in a copy of Shoal's source with ./shoal, which installs everything.</source>
   <translation>starte es in einer Kopie von Shoals Quelltext mit ./shoal, was alles installiert.</translation>
  </message>
  <message>
   <source>Free some space on that disk and start again.</source>
   <translation>Schaffe Platz auf diesem Laufwerk und starte noch einmal.</translation>
  </message>
  <message>
   <source>Free some of your quota and start again.</source>
   <translation>Gib etwas von deinem Kontingent frei und starte noch einmal.</translation>
  </message>
  <message>
   <source>Check that the file is yours to read and write.</source>
   <translation>Prüfe, ob du die Datei lesen und schreiben darfst.</translation>
  </message>
  <message>
   <source>Choose another place with --home.</source>
   <translation>Wähle mit --home einen anderen Ort.</translation>
  </message>
  <message>
   <source>Check the path.</source>
   <translation>Prüfe den Pfad.</translation>
  </message>
  <message>
   <source>Close other programs and start again.</source>
   <translation>Schließe andere Programme und starte noch einmal.</translation>
  </message>
  <message>
   <source>The certificate of {host} isn't trusted here.</source>
   <translation>Dem Zertifikat von {host} wird hier nicht vertraut.</translation>
  </message>
  <message>
   <source>On a public network, log in with a browser first.</source>
   <translation>Melde dich in einem öffentlichen Netz zuerst mit dem Browser an.</translation>
  </message>
  <message>
   <source>Behind a company's proxy, name its certificate file in SSL_CERT_FILE.</source>
   <translation>Hinter dem Proxy einer Firma: Nenne seine Zertifikatsdatei in SSL_CERT_FILE.</translation>
  </message>
  <message>
   <source>Then try again.</source>
   <translation>Versuch es dann noch einmal.</translation>
  </message>
  <message>
   <source>The certificate of {host} is {when}, by this computer's clock:</source>
   <translation>Das Zertifikat von {host} ist nach der Uhr dieses Computers {when}:</translation>
  </message>
  <message>
   <source>set the clock, then try again.</source>
   <translation>Stell die Uhr, dann versuch es noch einmal.</translation>
  </message>
  <message>
   <source>If it is right, try again later.</source>
   <translation>Geht sie richtig, versuch es später noch einmal.</translation>
  </message>
  <message>
   <source>The certificate of {host} can't be checked:</source>
   <translation>Das Zertifikat von {host} lässt sich nicht prüfen:</translation>
  </message>
  <message>
   <source>this system has no list of authorities.</source>
   <translation>Diesem System fehlt die Liste der Zertifizierungsstellen.</translation>
  </message>
  <message>
   <source>Install the package ca-certificates, then try again.</source>
   <translation>Installiere das Paket ca-certificates, dann versuch es noch einmal.</translation>
  </message>
  <message>
   <source>The proxy asks for a name and a password:</source>
   <translation>Der Proxy verlangt Name und Passwort:</translation>
  </message>
  <message>
   <source>put them into its address (HTTPS_PROXY=http://name:password@proxy:port), then try again.</source>
   <translation>Schreib sie in seine Adresse (HTTPS_PROXY=http://name:password@proxy:port), dann versuch es noch einmal.</translation>
  </message>
  <message>
   <source>{host} answers {status}:</source>
   <translation>{host} antwortet mit {status}:</translation>
  </message>
  <message>
   <source>try again later.</source>
   <translation>Versuch es später noch einmal.</translation>
  </message>
  <message>
   <source>The connection to {host} broke off.</source>
   <translation>Die Verbindung zu {host} ist abgerissen.</translation>
  </message>
  <message>
   <source>Nothing is lost:</source>
   <translation>Nichts ist verloren:</translation>
  </message>
  <message>
   <source>try again.</source>
   <translation>Versuch es noch einmal.</translation>
  </message>
  <message>
   <source>{host} sends on to an address without encryption ({to}), which isn't followed:</source>
   <translation>{host} leitet auf eine Adresse ohne Verschlüsselung weiter ({to}), der Shoal nicht folgt:</translation>
  </message>
  <message>
   <source>try again later, or on another network.</source>
   <translation>Versuch es später oder in einem anderen Netz.</translation>
  </message>
  <message>
   <source>{host} doesn't have {name} (any more):</source>
   <translation>{host} hat {name} nicht (mehr):</translation>
  </message>
  <message>
   <source>update Shoal, then try again.</source>
   <translation>Aktualisiere Shoal, dann versuch es noch einmal.</translation>
  </message>
  <message>
   <source>The proxy refuses to connect to {host} ({status}):</source>
   <translation>Der Proxy lässt keine Verbindung zu {host} zu ({status}):</translation>
  </message>
  <message>
   <source>ask who runs it.</source>
   <translation>Frag, wer ihn betreibt.</translation>
  </message>
  <message>
   <source>The proxy can't be reached:</source>
   <translation>Der Proxy ist nicht erreichbar:</translation>
  </message>
  <message>
   <source>check the system's proxy setting, then try again.</source>
   <translation>Prüf die Proxy-Einstellung des Systems, dann versuch es noch einmal.</translation>
  </message>
  <message>
   <source>{host} doesn't answer as it should:</source>
   <translation>{host} antwortet nicht wie erwartet:</translation>
  </message>
  <message>
   <source>where this network asks for a login, log in with a browser, then try again.</source>
   <translation>Verlangt dieses Netz eine Anmeldung, melde dich im Browser an und versuch es noch einmal.</translation>
  </message>
  <message>
   <source>{address} is no address:</source>
   <translation>{address} ist keine Adresse:</translation>
  </message>
  <message>
   <source>check it.</source>
   <translation>Prüf sie.</translation>
  </message>
  <message>
   <source>{host} can't be reached:</source>
   <translation>{host} ist nicht erreichbar:</translation>
  </message>
  <message>
   <source>check the network connection, then try again.</source>
   <translation>Prüf die Netzwerkverbindung, dann versuch es noch einmal.</translation>
  </message>
  <message>
   <source>Nothing is lost.</source>
   <translation>Nichts ist verloren.</translation>
  </message>
  <message>
   <source>A web page came instead of what {host} has:</source>
   <translation>Statt der Daten von {host} kam eine Webseite:</translation>
  </message>
  <message>
   <source>where this network asks for a login, open a browser and log in, then try again.</source>
   <translation>Verlangt dieses Netz eine Anmeldung, melde dich im Browser an und versuch es noch einmal.</translation>
  </message>
  <message>
   <source>{file} from {source} is damaged or another file than was promised, and wasn't used:</source>
   <translation>{file} von {source} ist beschädigt oder eine andere Datei als versprochen und wurde nicht benutzt:</translation>
  </message>
  <message>
   <source>{source} is damaged or another file:</source>
   <translation>{source} ist beschädigt oder eine andere Datei:</translation>
  </message>
  <message>
   <source>copy it there again.</source>
   <translation>Kopier sie noch einmal dorthin.</translation>
  </message>
  <message>
   <source>{source} ended the connection early.</source>
   <translation>{source} hat die Verbindung zu früh beendet.</translation>
  </message>
  <message>
   <source>{address} sends more than such a file has:</source>
   <translation>{address} schickt mehr, als so eine Datei hat:</translation>
  </message>
  <message>
   <source>check the address.</source>
   <translation>Prüf die Adresse.</translation>
  </message>
  <message>
   <source>{path} can't be written ({strerror}):</source>
   <translation>{path} lässt sich nicht schreiben ({strerror}):</translation>
  </message>
  <message>
   <source>make that folder writable, then try again.</source>
   <translation>Gib dir Schreibrecht für den Ordner, dann versuch es noch einmal.</translation>
  </message>
  <message>
   <source>The disk that holds {path} is full:</source>
   <translation>Die Platte mit {path} ist voll:</translation>
  </message>
  <message>
   <source>free up some space, then try again.</source>
   <translation>Schaff etwas Platz, dann versuch es noch einmal.</translation>
  </message>
  <message>
   <source>{path} is on a disk that can't be written: {other}, then try again.</source>
   <translation>{path} liegt auf einer schreibgeschützten Platte: {other}, dann versuch es noch einmal.</translation>
  </message>
  <message>
   <source>make that folder writable, or {other}, then try again.</source>
   <translation>Gib dir Schreibrecht für den Ordner, oder {other}, dann versuch es noch einmal.</translation>
  </message>
  <message>
   <source>It starts as at first.</source>
   <translation>Es beginnt wie beim ersten Mal.</translation>
  </message>
  <message>
   <source>It starts as at first; the old one is kept as {name}.</source>
   <translation>Es beginnt wie beim ersten Mal; die alte Datei bleibt als {name}.</translation>
  </message>
  <message>
   <source>{name} can't be read ({why}).</source>
   <translation>{name} lässt sich nicht lesen ({why}).</translation>
  </message>
  <message>
   <source>Only Linux tells it.</source>
   <translation>Das sagt nur Linux.</translation>
  </message>
  <message>
   <source>Only macOS tells it.</source>
   <translation>Das sagt nur macOS.</translation>
  </message>
  <message>
   <source>Shoal doesn't know how to start at login on this system; add it to its settings.</source>
   <translation>Shoal weiß nicht, wie es auf diesem System beim Anmelden startet; trag es in dessen Einstellungen ein.</translation>
  </message>
  <message>
   <source>There is no screen.</source>
   <translation>Es gibt keinen Bildschirm.</translation>
  </message>
  <message>
   <source>macOS tells no program about others.</source>
   <translation>macOS sagt keinem Programm etwas über andere.</translation>
  </message>
  <message>
   <source>There is nothing to ask.</source>
   <translation>Es gibt nichts, was man fragen könnte.</translation>
  </message>
  <message>
   <source>{name} is a library of Windows, and this is another system.</source>
   <translation>{name} ist eine Windows-Bibliothek, und das hier ist ein anderes System.</translation>
  </message>
  <message>
   <source>The system's library {file} is missing; install the package that holds it.</source>
   <translation>Die Systembibliothek {file} fehlt; installiere das Paket, das sie enthält.</translation>
  </message>
  <message>
   <source>The system's library {name} can't be loaded.</source>
   <translation>Die Systembibliothek {name} lässt sich nicht laden.</translation>
  </message>
  <message>
   <source>It hasn't been asked yet.</source>
   <translation>Es wurde noch nicht gefragt.</translation>
  </message>
  <message>
   <source>Shoal can't find out the {name}: {why}</source>
   <translation>Shoal kann {name} nicht feststellen: {why}</translation>
  </message>
  <message>
   <source>It hasn't answered for {patience} s.</source>
   <translation>Seit {patience} s keine Antwort.</translation>
  </message>
  <message>
   <source>Shoal can't find out the {name}: It hasn't answered for {HANGS_S} s.</source>
   <translation>Shoal kann das nicht feststellen: {name}. Seit {HANGS_S} s kommt keine Antwort.</translation>
  </message>
  <message>
   <source>{name} answered something else than a number.</source>
   <translation>{name} hat nicht mit einer Zahl geantwortet.</translation>
  </message>
  <message>
   <source>{name} answered something else than yes or no.</source>
   <translation>{name} hat nicht mit Ja oder Nein geantwortet.</translation>
  </message>
  <message>
   <source>The battery doesn't say whether the computer is plugged in.</source>
   <translation>Der Akku sagt nicht, ob der Computer am Netz hängt.</translation>
  </message>
  <message>
   <source>{name} refused to answer ({why}).</source>
   <translation>{name} verweigert die Antwort ({why}).</translation>
  </message>
  <message>
   <source>{name} answered something else than a property.</source>
   <translation>{name} hat nicht mit einer Eigenschaft geantwortet.</translation>
  </message>
  <message>
   <source>There is no session bus to ask.</source>
   <translation>Es gibt keinen Sitzungsbus, den man fragen könnte.</translation>
  </message>
  <message>
   <source>{name} answered something else than a profile.</source>
   <translation>{name} hat nicht mit einem Profil geantwortet.</translation>
  </message>
  <message>
   <source>This desktop has never told the system when you're away.</source>
   <translation>Diese Arbeitsfläche hat dem System noch nie gemeldet, wann du weg bist.</translation>
  </message>
  <message>
   <source>{name} didn't answer ({error}).</source>
   <translation>{name} hat nicht geantwortet ({error}).</translation>
  </message>
  <message>
   <source>The library for D-Bus (jeepney) is missing; {remedy}.</source>
   <translation>Die Bibliothek für D-Bus (jeepney) fehlt; {remedy}.</translation>
  </message>
  <message>
   <source>There is no {kind} bus to ask ({error}).</source>
   <translation>Es gibt keinen Bus der Art {kind}, den man fragen könnte ({error}).</translation>
  </message>
  <message>
   <source>Starting at login needs the full path of the program, without an equals sign.</source>
   <translation>Der Start beim Anmelden braucht den vollen Pfad des Programms, ohne Gleichheitszeichen.</translation>
  </message>
  <message>
   <source>A command that starts at login can't contain control characters.</source>
   <translation>Ein Befehl, der beim Anmelden startet, darf keine Steuerzeichen enthalten.</translation>
  </message>
  <message>
   <source>Starting at login needs the full path of the program.</source>
   <translation>Der Start beim Anmelden braucht den vollen Pfad des Programms.</translation>
  </message>
  <message>
   <source>Windows starts nothing whose command is longer than {LONGEST} characters; move Shoal to a shorter path.</source>
   <translation>Windows startet keinen Befehl mit mehr als {LONGEST} Zeichen; verschieb Shoal in einen kürzeren Pfad.</translation>
  </message>
  <message>
   <source>{file} can't be written ({strerror}).</source>
   <translation>{file} lässt sich nicht schreiben ({strerror}).</translation>
  </message>
  <message>
   <source>{file} can't be removed ({strerror}).</source>
   <translation>{file} lässt sich nicht löschen ({strerror}).</translation>
  </message>
  <message>
   <source>The registry can't be read ({error}).</source>
   <translation>Die Registry lässt sich nicht lesen ({error}).</translation>
  </message>
  <message>
   <source>The registry can't be written ({error}).</source>
   <translation>Die Registry lässt sich nicht schreiben ({error}).</translation>
  </message>
  <message>
   <source>macOS didn't tell when the last input was.</source>
   <translation>macOS hat nicht gesagt, wann die letzte Eingabe war.</translation>
  </message>
  <message>
   <source>There is an NVIDIA card, and its driver doesn't answer ({error}).</source>
   <translation>Es gibt eine NVIDIA-Karte, aber ihr Treiber antwortet nicht ({error}).</translation>
  </message>
  <message>
   <source>The graphics card's driver doesn't answer ({error}).</source>
   <translation>Der Treiber der Grafikkarte antwortet nicht ({error}).</translation>
  </message>
  <message>
   <source>This graphics card doesn't tell its users apart.</source>
   <translation>Diese Grafikkarte unterscheidet nicht, wer sie benutzt.</translation>
  </message>
  <message>
   <source>There is an NVIDIA card, and the library to ask it (nvidia-ml-py) is missing.</source>
   <translation>Es gibt eine NVIDIA-Karte, aber die Bibliothek nvidia-ml-py fehlt.</translation>
  </message>
  <message>
   <source>The kernel's report of memory pressure has an unknown shape.</source>
   <translation>Der Kernel meldet den Speicherdruck in unbekannter Form.</translation>
  </message>
  <message>
   <source>The Wayland compositor doesn't answer ({error}).</source>
   <translation>Der Wayland-Compositor antwortet nicht ({error}).</translation>
  </message>
  <message>
   <source>This Wayland compositor doesn't tell when you're away.</source>
   <translation>Dieser Wayland-Compositor sagt nicht, wann du weg bist.</translation>
  </message>
  <message>
   <source>The Wayland compositor has closed the connection.</source>
   <translation>Der Wayland-Compositor hat die Verbindung geschlossen.</translation>
  </message>
  <message>
   <source>The Wayland compositor refuses to tell the idle time.</source>
   <translation>Der Wayland-Compositor gibt die Leerlaufzeit nicht heraus.</translation>
  </message>
  <message>
   <source>Windows didn't tell when the last input was.</source>
   <translation>Windows hat nicht gesagt, wann die letzte Eingabe war.</translation>
  </message>
  <message>
   <source>Windows didn't tell its power status.</source>
   <translation>Windows hat nicht gesagt, woher der Strom kommt.</translation>
  </message>
  <message>
   <source>Windows didn't tell what fills the screen (error {failed}).</source>
   <translation>Windows hat nicht gesagt, was den Bildschirm füllt (Fehler {failed}).</translation>
  </message>
  <message>
   <source>The X server {name} doesn't let us in.</source>
   <translation>Der X-Server {name} lässt Shoal nicht hinein.</translation>
  </message>
  <message>
   <source>The X server {name} has gone away.</source>
   <translation>Der X-Server {name} ist weg.</translation>
  </message>
  <message>
   <source>The X server {name} has no screen saver extension.</source>
   <translation>Der X-Server {name} hat keine Erweiterung für Bildschirmschoner.</translation>
  </message>
  <message>
   <source>Both must answer the same question.</source>
   <translation>Beide müssen dieselbe Frage beantworten.</translation>
  </message>
  <message>
   <source>{family} at level {level} has no question to train on:</source>
   <translation>{family} hat auf Stufe {level} kein Rätsel zum Üben:</translation>
  </message>
  <message>
   <source>all of them are held out.</source>
   <translation>Alle sind Prüfrätsel.</translation>
  </message>
  <message>
   <source>The package {name} on offer isn't the one that Shoal's catalogue names, so nothing of it was used:</source>
   <translation>Das angebotene Paket {name} ist nicht das aus Shoals Katalog, deshalb wurde nichts davon benutzt:</translation>
  </message>
  <message>
   <source>try again later, or from another network.</source>
   <translation>versuch es später noch einmal oder in einem anderen Netz.</translation>
  </message>
  <message>
   <source>The model catalogue names a model twice:</source>
   <translation>Der Modellkatalog nennt ein Modell doppelt:</translation>
  </message>
  <message>
   <source>install Shoal again.</source>
   <translation>Installiere Shoal neu.</translation>
  </message>
  <message>
   <source>The model catalogue of this installation can't be read ({error}):</source>
   <translation>Der Modellkatalog dieser Installation ist nicht lesbar ({error}):</translation>
  </message>
  <message>
   <source>{id} is being downloaded by another process already:</source>
   <translation>{id} wird schon von einem anderen Prozess heruntergeladen:</translation>
  </message>
  <message>
   <source>wait, or cancel that one.</source>
   <translation>Warte, oder brich jenen ab.</translation>
  </message>
  <message>
   <source>it comes as the Python package {name} instead, compressed.</source>
   <translation>Es kommt stattdessen als Python-Paket {name}, komprimiert.</translation>
  </message>
  <message>
   <source>The weights of {id} on offer aren't the ones that Shoal's catalogue names, so nothing was downloaded:</source>
   <translation>Die angebotenen Gewichte von {id} sind nicht die aus Shoals Liste, darum wurde nichts heruntergeladen:</translation>
  </message>
  <message>
   <source>check the mirror.</source>
   <translation>Prüf den Spiegel.</translation>
  </message>
  <message>
   <source>{id} takes {missing} more and {free} are free on the disk that holds {root}:</source>
   <translation>{id} braucht noch {missing}, auf der Platte mit {root} sind {free} frei:</translation>
  </message>
  <message>
   <source>free up some space, or move the data folder.</source>
   <translation>Schaff etwas Platz oder verschieb den Datenordner.</translation>
  </message>
  <message>
   <source>{id} is quantised, and that can't be trained here:</source>
   <translation>{id} ist quantisiert und kann hier nicht lernen:</translation>
  </message>
  <message>
   <source>take the unquantised model.</source>
   <translation>Nimm das unquantisierte Modell.</translation>
  </message>
  <message>
   <source>{name} needs {needed} MB and {there} MB are free in {parent}:</source>
   <translation>{name} braucht {needed} MB, in {parent} sind {there} MB frei:</translation>
  </message>
  <message>
   <source>free up some space or choose another folder.</source>
   <translation>Schaff etwas Platz, oder wähle einen anderen Ordner.</translation>
  </message>
  <message>
   <source>{to} is there already:</source>
   <translation>{to} gibt es schon:</translation>
  </message>
  <message>
   <source>choose a folder that doesn't exist or is empty.</source>
   <translation>Wähle einen neuen oder leeren Ordner.</translation>
  </message>
  <message>
   <source>The adapter was trained on another model:</source>
   <translation>Der Adapter gehört zu einem anderen Modell:</translation>
  </message>
  <message>
   <source>give {model}.</source>
   <translation>Gib {model} an.</translation>
  </message>
  <message>
   <source>The adapter has layers of several ranks, and MLX knows one:</source>
   <translation>Der Adapter hat Schichten mit verschiedenem Rang, MLX kennt nur einen:</translation>
  </message>
  <message>
   <source>export it as peft.</source>
   <translation>Exportier ihn als peft.</translation>
  </message>
  <message>
   <source>{name} couldn't be written to {parent} ({why}):</source>
   <translation>{name} ließ sich nicht nach {parent} schreiben ({why}):</translation>
  </message>
  <message>
   <source>free some space or choose another folder.</source>
   <translation>Schaff etwas Platz, oder wähle einen anderen Ordner.</translation>
  </message>
  <message>
   <source>{OPTIMIZER_STATE} in {adapter} is damaged:</source>
   <translation>{OPTIMIZER_STATE} in {adapter} ist beschädigt:</translation>
  </message>
  <message>
   <source>take another copy.</source>
   <translation>Nimm eine andere Kopie.</translation>
  </message>
  <message>
   <source>It needs {least} of memory, and this computer can give {most}.</source>
   <translation>Braucht {least} Arbeitsspeicher; dieser Computer kann {most} geben.</translation>
  </message>
  <message>
   <source>It takes {disk} of disk, and {disk_free} are free:</source>
   <translation>Braucht {disk} auf der Platte; {disk_free} frei:</translation>
  </message>
  <message>
   <source>free up some space.</source>
   <translation>Schaff etwas Platz.</translation>
  </message>
  <message>
   <source>It needs {least} of memory, and {free} are free now:</source>
   <translation>Braucht {least} Arbeitsspeicher; jetzt {free} frei:</translation>
  </message>
  <message>
   <source>close other programs.</source>
   <translation>Schließ andere Programme.</translation>
  </message>
  <message>
   <source>It runs, though slower: {learning} of memory would be good, {free} are free.</source>
   <translation>Läuft, aber langsamer: {learning} Arbeitsspeicher wären gut, {free} sind frei.</translation>
  </message>
  <message>
   <source>It fits:</source>
   <translation>Passt:</translation>
  </message>
  <message>
   <source>it takes {takes} of memory, and {free} are free.</source>
   <translation>Braucht {takes} Arbeitsspeicher, {free} sind frei.</translation>
  </message>
  <message>
   <source>{name} can't be read.</source>
   <translation>{name} lässt sich nicht lesen.</translation>
  </message>
  <message>
   <source>{name} takes {needed} to learn with, and {free} are free on the disk that holds {root}:</source>
   <translation>{name} braucht {needed} zum Lernen, auf der Platte mit {root} sind {free} frei:</translation>
  </message>
  <message>
   <source>{title} couldn't be added into {root} ({strerror}):</source>
   <translation>{title} ließ sich nicht nach {root} übernehmen ({strerror}):</translation>
  </message>
  <message>
   <source>free some space, or check that it can be read.</source>
   <translation>Schaff Platz, oder prüf, ob es lesbar ist.</translation>
  </message>
  <message>
   <source>{name} changed while it was read:</source>
   <translation>{name} hat sich beim Lesen verändert:</translation>
  </message>
  <message>
   <source>wait until it is whole.</source>
   <translation>Warte, bis es ganz da ist.</translation>
  </message>
  <message>
   <source>{host} doesn't know the access token:</source>
   <translation>{host} kennt das Zugangstoken nicht:</translation>
  </message>
  <message>
   <source>make a new one and save it again.</source>
   <translation>Mach ein neues und speichere es.</translation>
  </message>
  <message>
   <source>Your account hasn't been given {id} yet:</source>
   <translation>Dein Konto hat {id} noch nicht:</translation>
  </message>
  <message>
   <source>accept its licence at {page} and try again.</source>
   <translation>Nimm die Lizenz auf {page} an, und versuch es noch einmal.</translation>
  </message>
  <message>
   <source>{host} gives {id} only to those who sign in, or has no such model:</source>
   <translation>{host} gibt {id} nur Angemeldeten, oder es gibt so ein Modell nicht:</translation>
  </message>
  <message>
   <source>check the name, accept the licence at {page}, and save an access token ({command}, or HF_TOKEN).</source>
   <translation>Prüf den Namen, nimm die Lizenz auf {page} an, und speichere ein Zugangstoken ({command} oder HF_TOKEN).</translation>
  </message>
  <message>
   <source>{host} refuses {id}:</source>
   <translation>{host} verweigert {id}:</translation>
  </message>
  <message>
   <source>your access token hasn't the right to read it; make one that has.</source>
   <translation>Dein Zugangstoken darf es nicht lesen; mach eines, das es darf.</translation>
  </message>
  <message>
   <source>{host} has no model {id} in that version:</source>
   <translation>{host} hat kein Modell {id} in dieser Version:</translation>
  </message>
  <message>
   <source>check its name.</source>
   <translation>Prüf den Namen.</translation>
  </message>
  <message>
   <source>{host} doesn't say which version of {id} it has:</source>
   <translation>{host} sagt nicht, welche Version von {id} es hat:</translation>
  </message>
  <message>
   <source>{id} has no .safetensors weights:</source>
   <translation>{id} hat keine .safetensors-Gewichte:</translation>
  </message>
  <message>
   <source>choose another model.</source>
   <translation>Wähle ein anderes Modell.</translation>
  </message>
  <message>
   <source>{id} has no config.json:</source>
   <translation>{id} hat keine config.json:</translation>
  </message>
  <message>
   <source>{text} is no address of a hub:</source>
   <translation>{text} ist keine Adresse eines Hubs:</translation>
  </message>
  <message>
   <source>give one such as {HUB_URL}.</source>
   <translation>Nimm eine wie {HUB_URL}.</translation>
  </message>
  <message>
   <source>What {host} says about {id} can't be understood:</source>
   <translation>Was {host} über {id} sagt, ist nicht zu verstehen:</translation>
  </message>
  <message>
   <source>check the mirror, or try later.</source>
   <translation>Prüf den Spiegel, oder versuch es später.</translation>
  </message>
  <message>
   <source>{id} has its weights only as pickle files, which can run code and are never downloaded:</source>
   <translation>{id} hat seine Gewichte nur als Pickle-Dateien, die Programme starten können und nie geladen werden:</translation>
  </message>
  <message>
   <source>take a version of the model with .safetensors files.</source>
   <translation>Nimm eine Version des Modells mit .safetensors-Dateien.</translation>
  </message>
  <message>
   <source>{id} has only GGUF files:</source>
   <translation>{id} hat nur GGUF-Dateien:</translation>
  </message>
  <message>
   <source>download one and give Shoal that file, or take the model it was made of.</source>
   <translation>Lade eine herunter und gib sie Shoal, oder nimm das Modell, aus dem es entstand.</translation>
  </message>
  <message>
   <source>The hub gives no size or digest of {file} of {id}:</source>
   <translation>Der Hub nennt weder Größe noch Prüfsumme von {file} von {id}:</translation>
  </message>
  <message>
   <source>HF_HUB_OFFLINE is set, which forbids every download:</source>
   <translation>HF_HUB_OFFLINE ist gesetzt und verbietet jedes Herunterladen:</translation>
  </message>
  <message>
   <source>unset it and try again.</source>
   <translation>Nimm es weg und versuch es noch einmal.</translation>
  </message>
  <message>
   <source>The model's chat template changes what it is given.</source>
   <translation>Die Chat-Vorlage des Modells verändert, was sie bekommt.</translation>
  </message>
  <message>
   <source>There is no model at {name}:</source>
   <translation>Bei {name} ist kein Modell:</translation>
  </message>
  <message>
   <source>give an existing folder, a .gguf file, a Hugging Face name or starter.</source>
   <translation>Gib einen Ordner an, eine .gguf-Datei, einen Namen von Hugging Face oder starter.</translation>
  </message>
  <message>
   <source>The starter model is missing from this installation:</source>
   <translation>Das Startmodell fehlt in dieser Installation:</translation>
  </message>
  <message>
   <source>There is no file {file}:</source>
   <translation>Eine Datei {file} gibt es nicht:</translation>
  </message>
  <message>
   <source>{name} hasn't been added yet:</source>
   <translation>{name} wurde noch nicht hinzugefügt:</translation>
  </message>
  <message>
   <source>run {file}.</source>
   <translation>Führ {file} aus.</translation>
  </message>
  <message>
   <source>{name} isn't on this computer: {command} lists what is.</source>
   <translation>{name} ist nicht auf diesem Computer: {command} zeigt, was da ist.</translation>
  </message>
  <message>
   <source>{name} is being downloaded right now:</source>
   <translation>{name} wird gerade heruntergeladen:</translation>
  </message>
  <message>
   <source>cancel that first.</source>
   <translation>Brich das zuerst ab.</translation>
  </message>
  <message>
   <source>{folder} is no model of this data folder: {command} lists them.</source>
   <translation>{folder} ist kein Modell dieses Datenordners: {command} zeigt sie.</translation>
  </message>
  <message>
   <source>The model {name} isn't on this computer:</source>
   <translation>Das Modell {name} ist nicht auf diesem Computer:</translation>
  </message>
  <message>
   <source>run {name2}, or choose starter.</source>
   <translation>Führ {name2} aus, oder wähle starter.</translation>
  </message>
  <message>
   <source>Learned {title} from {name}.</source>
   <translation>{title} von {name} gelernt.</translation>
  </message>
  <message>
   <source>Learned {title} from {name} and {others} more.</source>
   <translation>{title} von {name} und {others} weiteren gelernt.</translation>
  </message>
  <message>
   <source>New to the mix: {family}.</source>
   <translation>Neu dabei: {family}.</translation>
  </message>
  <message>
   <source>It got some of it right by itself.</source>
   <translation>Es löste einiges davon schon selbst.</translation>
  </message>
  <message>
   <source>It began with “{answer}”.</source>
   <translation>Es begann mit „{answer}“.</translation>
  </message>
  <message>
   <source>Shoal deleted {before} of old answers, logs and cached files.</source>
   <translation>Shoal hat {before} alter Antworten, Protokolle und Zwischendateien gelöscht.</translation>
  </message>
  <message>
   <source>The data folder takes {after}; its limit is {cap} GB.</source>
   <translation>Der Datenordner hat {after}; seine Grenze ist {cap} GB.</translation>
  </message>
  <message>
   <source>The rest is what your model learned, and models you downloaded.</source>
   <translation>Der Rest ist, was dein Modell gelernt hat, und was du heruntergeladen hast.</translation>
  </message>
  <message>
   <source>Delete models you don't need, or raise the limit.</source>
   <translation>Lösche Modelle, die du nicht brauchst, oder erhöhe die Grenze.</translation>
  </message>
  <message>
   <source>The data folder was over its limit of {cap} GB.</source>
   <translation>Der Datenordner war über seiner Grenze von {cap} GB.</translation>
  </message>
  <message>
   <source>{what} is of format {found}, which this version of Shoal ({installed}) doesn't know:</source>
   <translation>{what} hat das Format {found}, das diese Version von Shoal ({installed}) nicht kennt:</translation>
  </message>
  <message>
   <source>install the newer version that wrote it, or name another folder with --home.</source>
   <translation>Installiere die neuere Version, die es geschrieben hat, oder nenne mit --home einen anderen Ordner.</translation>
  </message>
  <message>
   <source>Nothing was changed.</source>
   <translation>Nichts wurde verändert.</translation>
  </message>
  <message>
   <source>The name of the data folder {shown} isn't UTF-8:</source>
   <translation>Der Name des Datenordners {shown} ist kein UTF-8:</translation>
  </message>
  <message>
   <source>choose another one with --home.</source>
   <translation>Wähle mit --home einen anderen.</translation>
  </message>
  <message>
   <source>The data folder {home} belongs to {owner}, and this is root:</source>
   <translation>Der Datenordner {home} gehört {owner}, und dies ist root:</translation>
  </message>
  <message>
   <source>start Shoal without sudo.</source>
   <translation>starte Shoal ohne sudo.</translation>
  </message>
  <message>
   <source>The data folder {current} was chosen with --home or SHOAL_HOME:</source>
   <translation>Der Datenordner {current} wurde mit --home oder SHOAL_HOME gewählt:</translation>
  </message>
  <message>
   <source>name the other one there instead.</source>
   <translation>nenne den anderen dort.</translation>
  </message>
  <message>
   <source>The data folder {home} was last used by {by}, and this is {installed}, which doesn't know how it is kept now:</source>
   <translation>Den Datenordner {home} hat zuletzt {by} benutzt, und {installed} weiß nicht, wie er jetzt aufgebaut ist:</translation>
  </message>
  <message>
   <source>install that version or a newer one, or name another folder with --home.</source>
   <translation>Installiere jene oder eine neuere Version, oder nenne mit --home einen anderen Ordner.</translation>
  </message>
  <message>
   <source>Nothing in it was changed.</source>
   <translation>Darin wurde nichts verändert.</translation>
  </message>
  <message>
   <source>The data folder {home} can't be made ({strerror}):</source>
   <translation>Der Datenordner {home} lässt sich nicht anlegen ({strerror}):</translation>
  </message>
  <message>
   <source>{path} is damaged:</source>
   <translation>{path} ist beschädigt:</translation>
  </message>
  <message>
   <source>move it away, and a new identity is made at the next start.</source>
   <translation>Räum die Datei weg; beim nächsten Start entsteht eine neue Identität.</translation>
  </message>
  <message>
   <source>{to} can't be the data folder ({strerror}):</source>
   <translation>{to} kann nicht der Datenordner sein ({strerror}):</translation>
  </message>
  <message>
   <source>choose another one.</source>
   <translation>Wähle einen anderen.</translation>
  </message>
  <message>
   <source>The folder stays {current}.</source>
   <translation>Es bleibt bei {current}.</translation>
  </message>
  <message>
   <source>{user} may not read and write {path}; nothing is lost.</source>
   <translation>{user} darf {path} nicht lesen und schreiben; nichts ist verloren.</translation>
  </message>
  <message>
   <source>Run sudo chown -R {user2} {home}, then start Shoal again.</source>
   <translation>Führe sudo chown -R {user2} {home} aus und starte Shoal dann wieder.</translation>
  </message>
  <message>
   <source>Another node (process {holder}) is using {home}:</source>
   <translation>Ein anderes Shoal (Prozess {holder}) benutzt {home}:</translation>
  </message>
  <message>
   <source>stop it, or give this one its own --home.</source>
   <translation>Halte es an, oder gib diesem ein eigenes --home.</translation>
  </message>
  <message>
   <source>The data folder {home} can't be written, or its disk has no locks ({strerror}):</source>
   <translation>Der Datenordner {home} lässt sich nicht beschreiben, oder seine Platte kennt keine Sperren ({strerror}):</translation>
  </message>
  <message>
   <source>{home} is a link, and Shoal doesn't write through links:</source>
   <translation>{home} ist ein Link, und Shoal schreibt nicht durch Links:</translation>
  </message>
  <message>
   <source>delete it, then try again.</source>
   <translation>lösche ihn und versuch es noch einmal.</translation>
  </message>
  <message>
   <source>Did you mean {near}?</source>
   <translation>Meinst du {near}?</translation>
  </message>
  <message>
   <source>There is no question set called {name}.</source>
   <translation>Es gibt keine Fragen namens {name}.</translation>
  </message>
  <message>
   <source>There are: {names}.</source>
   <translation>Es gibt: {names}.</translation>
  </message>
  <message>
   <source>There are none.</source>
   <translation>Es gibt noch keine.</translation>
  </message>
  <message>
   <source>There is another set called {name}.</source>
   <translation>Andere Fragen heißen schon {name}.</translation>
  </message>
  <message>
   <source>Give this one another name.</source>
   <translation>Gib diesen einen anderen Namen.</translation>
  </message>
  <message>
   <source>{MAX_SETS} question sets are kept at most.</source>
   <translation>Mehr als {MAX_SETS} Fragensammlungen gehen nicht.</translation>
  </message>
  <message>
   <source>Remove one first.</source>
   <translation>Lösche zuerst eine.</translation>
  </message>
  <message>
   <source>{name} began with these rows and has changed since.</source>
   <translation>{name} begann mit diesen Zeilen und hat sich seitdem geändert.</translation>
  </message>
  <message>
   <source>Add rows to it with --to, or delete it first.</source>
   <translation>Füg ihm mit --to Zeilen hinzu, oder lösch es vorher.</translation>
  </message>
  <message>
   <source>{folder} can't be deleted:</source>
   <translation>{folder} lässt sich nicht löschen:</translation>
  </message>
  <message>
   <source>delete it yourself.</source>
   <translation>Lösch es selbst.</translation>
  </message>
  <message>
   <source>{place} can't be deleted ({strerror}):</source>
   <translation>{place} lässt sich nicht löschen ({strerror}):</translation>
  </message>
  <message>
   <source>Started by hand, so the pause that was ordered before is over.</source>
   <translation>Von Hand gestartet, also ist die Pause von vorhin vorbei.</translation>
  </message>
  <message>
   <source>The rules know no command {command}.</source>
   <translation>Die Regeln kennen keinen Befehl {command}.</translation>
  </message>
  <message>
   <source>The settings can't be saved ({strerror}):</source>
   <translation>Die Einstellungen lassen sich nicht speichern ({strerror}):</translation>
  </message>
  <message>
   <source>they hold until Shoal ends.</source>
   <translation>Sie gelten, bis Shoal endet.</translation>
  </message>
  <message>
   <source>What you ordered can't be saved ({strerror}):</source>
   <translation>Dein Befehl lässt sich nicht speichern ({strerror}):</translation>
  </message>
  <message>
   <source>it holds until Shoal ends.</source>
   <translation>Er gilt, bis Shoal endet.</translation>
  </message>
  <message>
   <source>Most answers don't end within {now} tokens.</source>
   <translation>Die meisten Antworten sind nach {now} Token nicht fertig.</translation>
  </message>
  <message>
   <source>They may be {more} tokens long from now on.</source>
   <translation>Ab jetzt dürfen sie {more} Token lang sein.</translation>
  </message>
  <message>
   <source>It learns alone for {rounds} rounds.</source>
   <translation>Es lernt {rounds} Runden lang allein.</translation>
  </message>
  <message>
   <source>It got worse with others' answers.</source>
   <translation>Mit den Antworten anderer wurde es schlechter.</translation>
  </message>
  <message>
   <source>Nearly every answer was right.</source>
   <translation>Fast jede Antwort war richtig.</translation>
  </message>
  <message>
   <source>It gets harder puzzles, a level up.</source>
   <translation>Es bekommt schwerere Rätsel, eine Stufe höher.</translation>
  </message>
  <message>
   <source>Its answers to a puzzle are nearly all alike.</source>
   <translation>Seine Antworten auf ein Rätsel sind fast alle gleich.</translation>
  </message>
  <message>
   <source>It tries {more} puzzles a round instead of {now}.</source>
   <translation>Es probiert {more} Rätsel pro Runde statt {now}.</translation>
  </message>
  <message>
   <source>This model can't solve any of these puzzles yet, not even after examples.</source>
   <translation>Dieses Modell löst noch keins dieser Rätsel, auch nicht nach Beispielen.</translation>
  </message>
  <message>
   <source>A larger model, or the starter, would help.</source>
   <translation>Ein größeres Modell oder das Startmodell würde helfen.</translation>
  </message>
  <message>
   <source>It goes back to its best and learns alone for {rounds} rounds.</source>
   <translation>Es kehrt zu seinem besten Stand zurück und lernt {rounds} Runden lang allein.</translation>
  </message>
  <message>
   <source>Learning tore the model: {share} % instead of {share2} %.</source>
   <translation>Das Lernen hat dem Modell geschadet: {share} % statt {share2} %.</translation>
  </message>
  <message>
   <source>It goes back to what it was after round {round} and learns half as fast.</source>
   <translation>Es kehrt zum Stand nach Runde {round} zurück und lernt halb so schnell.</translation>
  </message>
  <message>
   <source>Every answer was wrong, at the easiest level too.</source>
   <translation>Jede Antwort war falsch, auch auf der leichtesten Stufe.</translation>
  </message>
  <message>
   <source>It finds out again what it can begin with; if that's nothing, a larger model or the starter would help.</source>
   <translation>Es prüft neu, womit es anfangen kann; ist da nichts, hilft ein größeres Modell oder das Startmodell.</translation>
  </message>
  <message>
   <source>Most answers don't end within {now} tokens, and longer ones cost too much.</source>
   <translation>Die meisten Antworten sind nach {now} Token nicht fertig, und längere kosten zu viel.</translation>
  </message>
  <message>
   <source>A model that answers more briefly would help.</source>
   <translation>Ein Modell, das kürzer antwortet, würde helfen.</translation>
  </message>
  <message>
   <source>Every kind of puzzle is at its highest level.</source>
   <translation>Jede Art Rätsel ist auf der höchsten Stufe.</translation>
  </message>
  <message>
   <source>Pick other puzzles, so it keeps learning.</source>
   <translation>Such ihm andere Rätsel aus, damit es weiterlernt.</translation>
  </message>
  <message>
   <source>Its answers to a puzzle are all alike, so there's little to tell apart.</source>
   <translation>Seine Antworten auf ein Rätsel sind alle gleich, also gibt es wenig zu unterscheiden.</translation>
  </message>
  <message>
   <source>More families, or answers from other models, would help.</source>
   <translation>Mehr Rätselarten oder Antworten anderer Modelle würden helfen.</translation>
  </message>
  <message>
   <source>It can begin with {families}.</source>
   <translation>Damit kann es anfangen: {families}.</translation>
  </message>
  <message>
   <source>It starts with {families}.</source>
   <translation>Es fängt damit an: {families}.</translation>
  </message>
  <message>
   <source>First it learns from {right_answers} of its own right answers.</source>
   <translation>Zuerst lernt es aus {right_answers} eigenen richtigen Antworten.</translation>
  </message>
  <message>
   <source>Later come {later}.</source>
   <translation>Später kommen {later}.</translation>
  </message>
  <message>
   <source>It tries other kinds between rounds: {untried} are left.</source>
   <translation>Andere Arten probiert es zwischen den Runden: noch {untried}.</translation>
  </message>
  <message>
   <source>{waiting} other kinds are too hard yet.</source>
   <translation>{waiting} weitere Arten sind noch zu schwer.</translation>
  </message>
  <message>
   <source>It goes back to round {round} and learns alone for {rounds} rounds.</source>
   <translation>Es kehrt zu Runde {round} zurück und lernt {rounds} Runden lang allein.</translation>
  </message>
  <message>
   <source>Every answer was wrong.</source>
   <translation>Jede Antwort war falsch.</translation>
  </message>
  <message>
   <source>It gets easier puzzles, a level lower.</source>
   <translation>Es bekommt leichtere Rätsel, eine Stufe tiefer.</translation>
  </message>
  <message>
   <source>Too hard yet: {waiting}.</source>
   <translation>Noch zu schwer: {waiting}.</translation>
  </message>
  <message>
   <source>Its answers lack the form that is asked for.</source>
   <translation>Seinen Antworten fehlt die verlangte Form.</translation>
  </message>
  <message>
   <source>It's shown worked examples and finds out again what to begin with.</source>
   <translation>Es bekommt vorgerechnete Beispiele und prüft neu, womit es anfängt.</translation>
  </message>
  <message>
   <source>A model that got worse is found by its measurements.</source>
   <translation>Ein schlechter gewordenes Modell zeigt sich an seinen Messungen.</translation>
  </message>
  <message>
   <source>{STATE_FILE} can't be read: {error}</source>
   <translation>{STATE_FILE} lässt sich nicht lesen: {error}</translation>
  </message>
  <message>
   <source>This version of Shoal has other puzzles, so the curve starts over.</source>
   <translation>Diese Version von Shoal hat andere Rätsel, darum beginnt die Kurve von vorn.</translation>
  </message>
  <message>
   <source>The one before ended at {last} after round {round}; it stays in the history.</source>
   <translation>Die vorige endete bei {last} nach Runde {round}; sie bleibt im Verlauf erhalten.</translation>
  </message>
  <message>
   <source>Some puzzles that are kept apart now were perhaps practised before.</source>
   <translation>Manche Rätsel, die jetzt zurückgehalten werden, hat es vorher vielleicht geübt.</translation>
  </message>
  <message>
   <source>What {model} learned up to round {rounds} is safe.</source>
   <translation>Was {model} bis Runde {rounds} gelernt hat, ist sicher.</translation>
  </message>
  <message>
   <source>This model has a curve of its own.</source>
   <translation>Dieses Modell hat seine eigene Kurve.</translation>
  </message>
  <message>
   <source>No other one is left, so learning starts again from the beginning.</source>
   <translation>Einen anderen gibt es nicht, also beginnt das Lernen von vorn.</translation>
  </message>
  <message>
   <source>The history can't be read ({error}).</source>
   <translation>Der Verlauf lässt sich nicht lesen ({error}).</translation>
  </message>
  <message>
   <source>It is kept as {name}, and a new one begins.</source>
   <translation>Er bleibt als {name}, und ein neuer beginnt.</translation>
  </message>
  <message>
   <source>It continues from round {round}, the one before.</source>
   <translation>Es geht weiter ab Runde {round}, der davor.</translation>
  </message>
  <message>
   <source>{folder} can't be read ({strerror}); nothing is lost.</source>
   <translation>{folder} lässt sich nicht lesen ({strerror}); nichts ist verloren.</translation>
  </message>
  <message>
   <source>The checkpoint {name} can't be used ({why}).</source>
   <translation>Der gespeicherte Stand {name} ist nicht brauchbar ({why}).</translation>
  </message>
  <message>
   <source>It is kept as {name2}.</source>
   <translation>Er bleibt als {name2}.</translation>
  </message>
  <message>
   <source>Ollama didn't take it ({said}):</source>
   <translation>Ollama hat es nicht genommen ({said}):</translation>
  </message>
  <message>
   <source>start Ollama, then run {command}.</source>
   <translation>Starte Ollama und führ dann {command} aus.</translation>
  </message>
  <message>
   <source>Ollama can't be started here ({strerror}); the export itself is in {folder}.</source>
   <translation>Ollama lässt sich hier nicht starten ({strerror}). Der Export selbst liegt in {folder}.</translation>
  </message>
  <message>
   <source>It also learned from other models' answers, and those can't be played again.</source>
   <translation>Es hat auch aus Antworten anderer Modelle gelernt, und die lassen sich nicht noch einmal spielen.</translation>
  </message>
  <message>
   <source>It learned questions of its owner's, which aren't in the file.</source>
   <translation>Es hat eigene Fragen seines Besitzers gelernt, und die stehen nicht in der Datei.</translation>
  </message>
  <message>
   <source>It was made with puzzles of version {questions}, and this Shoal has {QUESTIONS_VERSION}:</source>
   <translation>Es entstand mit Rätseln der Version {questions}, und dieses Shoal hat {QUESTIONS_VERSION}:</translation>
  </message>
  <message>
   <source>use Shoal {shoal} to play it again.</source>
   <translation>Nimm Shoal {shoal}, um es noch einmal zu spielen.</translation>
  </message>
  <message>
   <source>The signature doesn't fit:</source>
   <translation>Die Unterschrift passt nicht:</translation>
  </message>
  <message>
   <source>the file was changed after it was signed.</source>
   <translation>Die Datei wurde nach dem Unterschreiben geändert.</translation>
  </message>
  <message>
   <source>Ask for the file itself.</source>
   <translation>Lass dir die Datei selbst geben.</translation>
  </message>
  <message>
   <source>The signature fits, but the rounds it names can't have happened:</source>
   <translation>Die Unterschrift passt, aber diese Runden kann es nicht gegeben haben:</translation>
  </message>
  <message>
   <source>don't trust it.</source>
   <translation>Verlass dich nicht darauf.</translation>
  </message>
  <message>
   <source>{name} is larger than any result of Shoal:</source>
   <translation>{name} ist größer als jedes Ergebnis von Shoal:</translation>
  </message>
  <message>
   <source>pick the file that `result` wrote.</source>
   <translation>Nimm die Datei, die `result` geschrieben hat.</translation>
  </message>
  <message>
   <source>This is no result of Shoal:</source>
   <translation>Das ist kein Ergebnis von Shoal:</translation>
  </message>
  <message>
   <source>The signature fits, but this isn't a result that this version reads ({why}):</source>
   <translation>Die Unterschrift passt, aber so ein Ergebnis liest diese Version nicht ({why}):</translation>
  </message>
  <message>
   <source>update Shoal.</source>
   <translation>Aktualisiere Shoal.</translation>
  </message>
  <message>
   <source>There is no file {path}:</source>
   <translation>Eine Datei {path} gibt es nicht:</translation>
  </message>
  <message>
   <source>{path} can't be read ({strerror}):</source>
   <translation>{path} lässt sich nicht lesen ({strerror}):</translation>
  </message>
  <message>
   <source>check that it is yours.</source>
   <translation>Prüf, ob sie dir gehört.</translation>
  </message>
  <message>
   <source>This model was begun with an older Shoal that noted too little for a result:</source>
   <translation>Dieses Modell hat mit einem älteren Shoal angefangen, das für ein Ergebnis zu wenig notiert hat:</translation>
  </message>
  <message>
   <source>start over with it, or take another model.</source>
   <translation>Fang mit ihm neu an oder nimm ein anderes Modell.</translation>
  </message>
  <message>
   <source>Nothing was measured yet, so there is no result:</source>
   <translation>Noch wurde nichts gemessen, also gibt es kein Ergebnis:</translation>
  </message>
  <message>
   <source>let it learn a few rounds, then try again.</source>
   <translation>Lass es ein paar Runden lernen und versuch es dann noch einmal.</translation>
  </message>
  <message>
   <source>There is no skill called {name}.</source>
   <translation>Es gibt kein Können namens {name}.</translation>
  </message>
  <message>
   <source>Add a table with {remedy}, and learn it.</source>
   <translation>Füge mit {remedy} eine Tabelle hinzu und lerne sie.</translation>
  </message>
  <message>
   <source>Of {of} rows kept aside, {answered} keep their answer, and {right} of those are right.</source>
   <translation>Von {of} beiseitegelegten Zeilen behalten {answered} ihre Antwort, und {right} davon sind richtig.</translation>
  </message>
  <message>
   <source>With every answer kept, {right_of_all} are right.</source>
   <translation>Bleibt jede Antwort stehen, sind es {right_of_all}.</translation>
  </message>
  <message>
   <source>{name} hasn't been learned yet:</source>
   <translation>{name} wurde noch nicht gelernt:</translation>
  </message>
  <message>
   <source>start {learn}.</source>
   <translation>Starte {learn}.</translation>
  </message>
  <message>
   <source>What was learned can't be read ({reason}):</source>
   <translation>Das Gelernte lässt sich nicht lesen ({reason}):</translation>
  </message>
  <message>
   <source>start {remedy} once, which looks after damaged files, and try again.</source>
   <translation>Starte einmal {remedy}, dabei wird nach beschädigten Dateien gesehen, dann versuch es noch einmal.</translation>
  </message>
  <message>
   <source>There is no best round yet: Shoal picks one at the second measurement.</source>
   <translation>Es gibt noch keine beste Runde: Shoal wählt sie bei der zweiten Messung.</translation>
  </message>
  <message>
   <source>Nothing was learned yet with {name} in {home}:</source>
   <translation>Mit {name} wurde in {home} noch nichts gelernt:</translation>
  </message>
  <message>
   <source>start {remedy}, or name another model or data folder with --model and --home.</source>
   <translation>Starte {remedy}, oder nenne mit --model und --home ein anderes Modell oder einen anderen Ordner.</translation>
  </message>
  <message>
   <source>The best round can't be read ({error}).</source>
   <translation>Die beste Runde lässt sich nicht lesen ({error}).</translation>
  </message>
  <message>
   <source>It connects as soon as this round is done, so that nothing is lost.</source>
   <translation>Es verbindet sich, sobald diese Runde fertig ist. So geht nichts verloren.</translation>
  </message>
  <message>
   <source>This computer is very busy, so starting takes longer than usual.</source>
   <translation>Dieser Computer ist sehr ausgelastet, deshalb dauert der Start länger als sonst.</translation>
  </message>
  <message>
   <source>Learning begins by itself.</source>
   <translation>Das Lernen beginnt von selbst.</translation>
  </message>
  <message>
   <source>A command is at most {MAX_LINE} bytes long.</source>
   <translation>Ein Befehl ist höchstens {MAX_LINE} Byte lang.</translation>
  </message>
  <message>
   <source>This is no command: {error}.</source>
   <translation>Das ist kein Befehl: {error}.</translation>
  </message>
  <message>
   <source>The disk that holds {folder} is full:</source>
   <translation>Die Platte mit {folder} ist voll:</translation>
  </message>
  <message>
   <source>free up some space or choose another --home, then start again.</source>
   <translation>Schaff etwas Platz oder wähle ein anderes --home, dann starte neu.</translation>
  </message>
  <message>
   <source>Everyday replies surprise it {rise} % more.</source>
   <translation>Alltagsantworten überraschen es {rise} % mehr.</translation>
  </message>
  <message>
   <source>Everyday replies surprise it {rise} % less.</source>
   <translation>Alltagsantworten überraschen es {rise} % weniger.</translation>
  </message>
  <message>
   <source>It speaks as well as before.</source>
   <translation>Es spricht so gut wie vorher.</translation>
  </message>
  <message>
   <source>It speaks a little worse than before.</source>
   <translation>Es spricht etwas schlechter als vorher.</translation>
  </message>
  <message>
   <source>It is losing everyday language.</source>
   <translation>Es verlernt die Alltagssprache.</translation>
  </message>
  <message>
   <source>The disk that holds {home} is full, so learning waits:</source>
   <translation>Die Festplatte mit {home} ist voll, deshalb wartet das Lernen:</translation>
  </message>
  <message>
   <source>It looks again every {DISK_CHECK_S} seconds and continues by itself.</source>
   <translation>Es sieht alle {DISK_CHECK_S} Sekunden nach und lernt von selbst weiter.</translation>
  </message>
  <message>
   <source>The disk has room again, so learning continues.</source>
   <translation>Auf der Festplatte ist wieder Platz, das Lernen geht weiter.</translation>
  </message>
  <message>
   <source>A snooze lasts between a second and 31 days.</source>
   <translation>Eine Ruhepause dauert eine Sekunde bis 31 Tage.</translation>
  </message>
  <message>
   <source>It is as at the first start.</source>
   <translation>Es gilt wieder der Wert vom ersten Start.</translation>
  </message>
  <message>
   <source>{label} must be {wanted}.</source>
   <translation>{label}: {wanted}.</translation>
  </message>
  <message>
   <source>{text} is no span of hours; write it like 22:00-07:00.</source>
   <translation>{text} ist keine Zeitspanne; schreib sie wie 22:00-07:00.</translation>
  </message>
  <message>
   <source>The rows of {name} have changed:</source>
   <translation>Die Zeilen von {name} haben sich geändert:</translation>
  </message>
  <message>
   <source>your model studies them again.</source>
   <translation>Dein Modell lernt sie noch einmal.</translation>
  </message>
  <message>
   <source>It restarts and plays round {round} again.</source>
   <translation>Er startet neu und spielt Runde {round} noch einmal.</translation>
  </message>
  <message>
   <source>The engine is {name} from now on.</source>
   <translation>Die Engine ist ab jetzt {name}.</translation>
  </message>
  <message>
   <source>It was {engine_before} before.</source>
   <translation>Vorher war es {engine_before}.</translation>
  </message>
  <message>
   <source>It uses {share} % of its memory for a step now.</source>
   <translation>Er braucht jetzt {share} % seines Speichers für einen Schritt.</translation>
  </message>
  <message>
   <source>Round {round} is safe.</source>
   <translation>Runde {round} ist gespeichert.</translation>
  </message>
  <message>
   <source>That happened {deaths} times in a row: {remedy}</source>
   <translation>Das war {deaths} Mal hintereinander so: {remedy}</translation>
  </message>
  <message>
   <source>Your answer changed nothing:</source>
   <translation>Deine Antwort hat nichts geändert:</translation>
  </message>
  <message>
   <source>your model can already solve that puzzle, or it's too long to read.</source>
   <translation>Dein Modell kann das Rätsel schon, oder sie ist ihm zu lang.</translation>
  </message>
  <message>
   <source>Your answer taught your model:</source>
   <translation>Deine Antwort hat dein Modell etwas gelehrt:</translation>
  </message>
  <message>
   <source>it had failed that puzzle.</source>
   <translation>Es hatte dieses Rätsel nicht gekonnt.</translation>
  </message>
  <message>
   <source>That's too long: {MAX_COMPLETION_CHARS} characters at most.</source>
   <translation>Das ist zu lang: höchstens {MAX_COMPLETION_CHARS} Zeichen.</translation>
  </message>
  <message>
   <source>It holds hidden characters:</source>
   <translation>Darin sind versteckte Zeichen:</translation>
  </message>
  <message>
   <source>type it again instead of pasting it.</source>
   <translation>Tippe es neu, statt es einzufügen.</translation>
  </message>
  <message>
   <source>Your model still has answers of yours to look at.</source>
   <translation>Dein Modell hat noch Antworten von dir anzusehen.</translation>
  </message>
  <message>
   <source>Try again later.</source>
   <translation>Versuch es später noch einmal.</translation>
  </message>
  <message>
   <source>A swarm was found on this network, at {url}.</source>
   <translation>In diesem Netz wurde ein Schwarm gefunden, bei {url}.</translation>
  </message>
  <message>
   <source>Anyone on this network can offer one; only an invite tells whose it is.</source>
   <translation>Jeder in diesem Netz kann einen anbieten; nur eine Einladung zeigt, wessen er ist.</translation>
  </message>
  <message>
   <source>No swarm was found on this network:</source>
   <translation>In diesem Netz wurde kein Schwarm gefunden:</translation>
  </message>
  <message>
   <source>name one with --relay.</source>
   <translation>Nenne einen mit --relay.</translation>
  </message>
  <message>
   <source>No swarm was found, so Shoal started one that computers on this network can find.</source>
   <translation>Es wurde kein Schwarm gefunden, also hat Shoal einen gestartet, den Computer in diesem Netz finden.</translation>
  </message>
  <message>
   <source>Port {port} of this computer is open to them, unencrypted, while it learns with others.</source>
   <translation>Port {port} dieses Computers steht ihnen unverschlüsselt offen, solange gemeinsam gelernt wird.</translation>
  </message>
  <message>
   <source>Invite others with {invite}</source>
   <translation>Lade andere ein mit {invite}</translation>
  </message>
  <message>
   <source>The relay didn't open on this computer ({log} says more):</source>
   <translation>Das Relay startet auf diesem Computer nicht ({log} sagt mehr):</translation>
  </message>
  <message>
   <source>name another with --relay.</source>
   <translation>Nenne mit --relay ein anderes.</translation>
  </message>
  <message>
   <source>No swarm was found, so Shoal started one for this computer alone, at port {port}.</source>
   <translation>Es wurde kein Schwarm gefunden, also hat Shoal einen nur für diesen Computer gestartet, an Port {port}.</translation>
  </message>
  <message>
   <source>They also need the six words.</source>
   <translation>Sie brauchen auch die sechs Wörter.</translation>
  </message>
  <message>
   <source>They need nothing else.</source>
   <translation>Mehr brauchen sie nicht.</translation>
  </message>
  <message>
   <source>The relay on this computer stopped on its own; it starts again in {wait} seconds.</source>
   <translation>Das Relay auf diesem Computer ist ausgefallen; es startet in {wait} Sekunden neu.</translation>
  </message>
  <message>
   <source>A relay can't be started on this computer ({strerror}):</source>
   <translation>Auf diesem Computer lässt sich kein Relay starten ({strerror}):</translation>
  </message>
  <message>
   <source>name another one with --relay.</source>
   <translation>Nenne mit --relay ein anderes.</translation>
  </message>
  <message>
   <source>You're in a class:</source>
   <translation>Du bist in einer Klasse:</translation>
  </message>
  <message>
   <source>its teacher sees your model's made-up name, its skills and whether it learns, and can pause it.</source>
   <translation>ihre Lehrkraft sieht den erfundenen Namen deines Modells, was es kann und ob es lernt, und darf es pausieren.</translation>
  </message>
  <message>
   <source>Sharing waits for your system's keyring:</source>
   <translation>Das Teilen wartet auf den Schlüsselbund deines Systems:</translation>
  </message>
  <message>
   <source>answer its prompt.</source>
   <translation>beantworte seine Frage.</translation>
  </message>
  <message>
   <source>Your model learns meanwhile.</source>
   <translation>Dein Modell lernt solange weiter.</translation>
  </message>
  <message>
   <source>{folder} can't be used ({strerror}).</source>
   <translation>{folder} lässt sich nicht benutzen ({strerror}).</translation>
  </message>
  <message>
   <source>Your teacher offers you questions.</source>
   <translation>Deine Lehrkraft bietet dir Fragen an.</translation>
  </message>
  <message>
   <source>Look at them on Skills before you add them.</source>
   <translation>Sieh sie bei Können an, bevor du sie hinzufügst.</translation>
  </message>
  <message>
   <source>This computer's clock and the relay's are {apart} apart.</source>
   <translation>Die Uhr dieses Computers und die des Relays gehen {apart} auseinander.</translation>
  </message>
  <message>
   <source>Check this computer's date and time.</source>
   <translation>Prüfe Datum und Uhrzeit dieses Computers.</translation>
  </message>
  <message>
   <source>Another computer shares as {name} too.</source>
   <translation>Noch ein Computer teilt als {name}.</translation>
  </message>
  <message>
   <source>One data folder is a copy of the other.</source>
   <translation>Einer der Datenordner ist eine Kopie des anderen.</translation>
  </message>
  <message>
   <source>Your model learns on its own meanwhile; Shoal tries again by itself.</source>
   <translation>Dein Modell lernt solange allein; Shoal versucht es von selbst wieder.</translation>
  </message>
  <message>
   <source>Next try in {next_try_s} s.</source>
   <translation>Nächster Versuch in {next_try_s} s.</translation>
  </message>
  <message>
   <source>Take a new name here, under Settings or with {command}.</source>
   <translation>Nimm hier einen neuen Namen, unter Einstellungen oder mit {command}.</translation>
  </message>
  <message>
   <source>Until then, some answers get lost.</source>
   <translation>Bis dahin gehen einige Antworten verloren.</translation>
  </message>
  <message>
   <source>That computer is asked to take a new name.</source>
   <translation>Der andere Computer wird gebeten, einen neuen Namen zu nehmen.</translation>
  </message>
  <message>
   <source>{key} says it learned {title} from your model.</source>
   <translation>{key} sagt, es hat {title} von deinem Modell gelernt.</translation>
  </message>
  <message>
   <source>{number} models say they learned {title} from yours.</source>
   <translation>{number} Modelle sagen, sie haben {title} von deinem gelernt.</translation>
  </message>
  <message>
   <source>close other programs or choose a smaller --model.</source>
   <translation>Schließ andere Programme oder wähle ein kleineres --model.</translation>
  </message>
  <message>
   <source>{remedy}, or choose another --model.</source>
   <translation>{remedy}, oder wähle ein anderes --model.</translation>
  </message>
  <message>
   <source>The trainer stopped after an error (details are in {log}).</source>
   <translation>Der Trainer hielt nach einem Fehler an (mehr steht in {log}).</translation>
  </message>
  <message>
   <source>The system ended the trainer, most likely because memory ran short.</source>
   <translation>Das System hat den Trainer beendet, wahrscheinlich weil der Speicher knapp wurde.</translation>
  </message>
  <message>
   <source>Another program ended the trainer.</source>
   <translation>Ein anderes Programm hat den Trainer beendet.</translation>
  </message>
  <message>
   <source>find out which one.</source>
   <translation>Finde heraus, welches.</translation>
  </message>
  <message>
   <source>This processor doesn't know an instruction that the trainer uses.</source>
   <translation>Dieser Prozessor kennt einen Befehl nicht, den der Trainer benutzt.</translation>
  </message>
  <message>
   <source>The trainer crashed (details are in {log}).</source>
   <translation>Der Trainer ist abgestürzt (mehr steht in {log}).</translation>
  </message>
  <message>
   <source>The trainer ended unasked.</source>
   <translation>Der Trainer endete ungefragt.</translation>
  </message>
  <message>
   <source>The trainer couldn't be understood ({error}).</source>
   <translation>Der Trainer war nicht zu verstehen ({error}).</translation>
  </message>
  <message>
   <source>The trainer hasn't answered for {patience}.</source>
   <translation>Der Trainer hat seit {patience} nicht geantwortet.</translation>
  </message>
  <message>
   <source>Answer {number} came to question {number2}.</source>
   <translation>Antwort {number} kam auf Frage {number2}.</translation>
  </message>
  <message>
   <source>{name} is no answer to {name2}.</source>
   <translation>{name} ist keine Antwort auf {name2}.</translation>
  </message>
  <message>
   <source>The trainer's memory has grown to {held_mb} MB over {TREND_STEPS} steps.</source>
   <translation>Der Speicher des Trainers ist in {TREND_STEPS} Schritten auf {held_mb} MB gewachsen.</translation>
  </message>
  <message>
   <source>Nothing smaller is left:</source>
   <translation>Kleiner geht es nicht:</translation>
  </message>
  <message>
   <source>close other programs or choose a smaller model.</source>
   <translation>Schließ andere Programme oder wähle ein kleineres Modell.</translation>
  </message>
  <message>
   <source>Only {free} % of this computer's memory is free.</source>
   <translation>Nur {free} % vom Speicher dieses Computers sind frei.</translation>
  </message>
  <message>
   <source>There is no room on the disk.</source>
   <translation>Auf der Platte ist kein Platz.</translation>
  </message>
  <message>
   <source>The trainer already has a model.</source>
   <translation>Der Trainer hat schon ein Modell.</translation>
  </message>
  <message>
   <source>The trainer was asked to work before it was given a model.</source>
   <translation>Der Trainer sollte arbeiten, bevor er ein Modell hatte.</translation>
  </message>
  <message>
   <source>Solo mode opens no network socket, but something tried to ({event}).</source>
   <translation>Beim Lernen allein öffnet Shoal keine Netzverbindung, aber etwas hat es versucht ({event}).</translation>
  </message>
  <message>
   <source>The earlier history is kept as {name}.</source>
   <translation>Der frühere Verlauf bleibt als {name}.</translation>
  </message>
  <message>
   <source>{name} is learned as far as its rows go:</source>
   <translation>{name} ist gelernt, so weit die Zeilen reichen:</translation>
  </message>
  <message>
   <source>more rounds bring nothing.</source>
   <translation>Weitere Runden bringen nichts.</translation>
  </message>
  <message>
   <source>More rows would help, first of {rare}, which has {counts}.</source>
   <translation>Mehr Zeilen würden helfen, zuerst solche mit {rare}: Davon gibt es {counts}.</translation>
  </message>
  <message>
   <source>More rows would help.</source>
   <translation>Mehr Zeilen würden helfen.</translation>
  </message>
  <message>
   <source>This is a developer copy of Shoal:</source>
   <translation>Das ist eine Entwicklerkopie von Shoal:</translation>
  </message>
  <message>
   <source>git pull brings what is new, then start {remedy} again.</source>
   <translation>git pull holt, was neu ist; dann starte {remedy} noch einmal.</translation>
  </message>
  <message>
   <source>Setting up the engine.</source>
   <translation>Richtet die Engine ein.</translation>
  </message>
  <message>
   <source>Checking that the engine loads.</source>
   <translation>Prüft, ob die Engine lädt.</translation>
  </message>
  <message>
   <source>{title} needs {missing} on the disk that holds {root}, and {there} are free:</source>
   <translation>{title} braucht {missing} auf der Platte mit {root}, und {there} sind frei:</translation>
  </message>
  <message>
   <source>There is no engine {pack} here: {listed} names the one that is.</source>
   <translation>Eine Engine {pack} gibt es hier nicht: {listed} zeigt, welche da ist.</translation>
  </message>
  <message>
   <source>{root} can't be deleted:</source>
   <translation>{root} lässt sich nicht löschen:</translation>
  </message>
  <message>
   <source>quit what uses it, then try again.</source>
   <translation>Beende, was es benutzt, dann versuch es noch einmal.</translation>
  </message>
  <message>
   <source>{title} is in use.</source>
   <translation>{title} ist in Gebrauch.</translation>
  </message>
  <message>
   <source>An earlier installation is still coming to its end.</source>
   <translation>Eine frühere Installation geht noch zu Ende.</translation>
  </message>
  <message>
   <source>{file} isn't in {beside}:</source>
   <translation>{file} ist nicht in {beside}:</translation>
  </message>
  <message>
   <source>copy all files of the pack there, then try again.</source>
   <translation>Kopier alle Dateien des Pakets dorthin, dann versuch es noch einmal.</translation>
  </message>
  <message>
   <source>The manifest has {content} bytes and {MANIFEST} are allowed:</source>
   <translation>Das Verzeichnis hat {content} Byte, erlaubt sind {MANIFEST}:</translation>
  </message>
  <message>
   <source>nothing was installed.</source>
   <translation>Nichts wurde installiert.</translation>
  </message>
  <message>
   <source>The manifest isn't signed by the makers of this Shoal, so nothing was installed:</source>
   <translation>Das Verzeichnis ist nicht von den Machern dieses Shoal unterschrieben, darum wurde nichts installiert:</translation>
  </message>
  <message>
   <source>take the one that belongs to this version.</source>
   <translation>Nimm das, das zu dieser Version gehört.</translation>
  </message>
  <message>
   <source>{title} is for {system} on {machine}, and this is {system2} on {machine2}:</source>
   <translation>{title} ist für {system} auf {machine}, und das hier ist {system2} auf {machine2}:</translation>
  </message>
  <message>
   <source>take the pack for this computer.</source>
   <translation>Nimm das Paket für diesen Computer.</translation>
  </message>
  <message>
   <source>{title} needs {what} {least} or newer, and this system has {own}:</source>
   <translation>{title} braucht {what} {least} oder neuer, und dieses System hat {own}:</translation>
  </message>
  <message>
   <source>update the system, or use Shoal on a newer one.</source>
   <translation>Aktualisiere das System, oder benutz Shoal auf einem neueren.</translation>
  </message>
  <message>
   <source>This copy of Shoal comes without engine packs: {how}, or name a key with --key.</source>
   <translation>Diese Kopie von Shoal hat keine Engine-Pakete: {how}, oder nenne mit --key einen Schlüssel.</translation>
  </message>
  <message>
   <source>{path} can't be read ({error}):</source>
   <translation>{path} lässt sich nicht lesen ({error}):</translation>
  </message>
  <message>
   <source>The manifest can't be understood ({error}), so nothing was installed:</source>
   <translation>Das Verzeichnis ist nicht zu verstehen ({error}), darum wurde nichts installiert:</translation>
  </message>
  <message>
   <source>{title} of {made} is older than this Shoal, which belongs to one of {least}, so nothing was installed:</source>
   <translation>{title} vom {made} ist älter als dieses Shoal, zu dem einer vom {least} gehört; nichts wurde installiert:</translation>
  </message>
  <message>
   <source>take the pack that came out with it.</source>
   <translation>Nimm das Paket, das mit ihm kam.</translation>
  </message>
  <message>
   <source>{title} of {made} is older than one that was here, of {seen}, so nothing was installed:</source>
   <translation>{title} vom {made} ist älter als ein früheres hier, vom {seen}; nichts wurde installiert:</translation>
  </message>
  <message>
   <source>take the newest; {remedy} takes this one anyway.</source>
   <translation>Nimm das neueste; {remedy} nimmt trotzdem dieses.</translation>
  </message>
  <message>
   <source>{folder} holds no engine:</source>
   <translation>In {folder} ist keine Engine:</translation>
  </message>
  <message>
   <source>choose the folder with the engine's files; one of them has a name such as cpu.json.</source>
   <translation>Wähle den Ordner mit ihren Dateien; eine davon heißt zum Beispiel cpu.json.</translation>
  </message>
  <message>
   <source>The engine isn't installed:</source>
   <translation>Die Engine ist nicht installiert:</translation>
  </message>
  <message>
   <source>open Shoal's window, or run {remedy}.</source>
   <translation>Öffne Shoals Fenster oder führ {remedy} aus.</translation>
  </message>
  <message>
   <source>An engine is being installed or removed by another process:</source>
   <translation>Eine Engine wird gerade von einem anderen Prozess installiert oder entfernt:</translation>
  </message>
  <message>
   <source>wait for it, then try again.</source>
   <translation>Warte darauf, dann versuch es noch einmal.</translation>
  </message>
  <message>
   <source>The engine is in place but doesn't load ({said}):</source>
   <translation>Die Engine liegt bereit, lädt aber nicht ({said}):</translation>
  </message>
  <message>
   <source>repair it with {remedy}, or install it again.</source>
   <translation>Reparier sie mit {remedy} oder installier sie neu.</translation>
  </message>
  <message>
   <source>The engine is damaged:</source>
   <translation>Die Engine ist beschädigt:</translation>
  </message>
  <message>
   <source>repair it, or install it again.</source>
   <translation>Reparier sie oder installier sie neu.</translation>
  </message>
  <message>
   <source>{title} needs a 64-bit Python {pythons}; this computer has none: {advice}, then try again.</source>
   <translation>{title} braucht ein 64-Bit-Python {pythons}; auf diesem Computer ist keins: {advice}, dann versuch es noch einmal.</translation>
  </message>
  <message>
   <source>This system is older than the engine needs ({said}):</source>
   <translation>Dieses System ist älter, als die Engine braucht ({said}):</translation>
  </message>
  <message>
   <source>update it, or use Shoal on a newer one.</source>
   <translation>Aktualisiere es, oder benutz Shoal auf einem neueren.</translation>
  </message>
  <message>
   <source>{name} holds no uv for this computer:</source>
   <translation>{name} enthält kein uv für diesen Computer:</translation>
  </message>
  <message>
   <source>take the pack for this one.</source>
   <translation>Nimm das Paket für diesen.</translation>
  </message>
  <message>
   <source>macOS runs Shoal from a passing place, because it was opened where it was downloaded:</source>
   <translation>macOS führt Shoal von einem Übergangsort aus, weil es dort geöffnet wurde, wo es geladen wurde:</translation>
  </message>
  <message>
   <source>move Shoal into Applications, open it there, then try again.</source>
   <translation>Verschieb Shoal nach Programme, öffne es dort, dann versuch es noch einmal.</translation>
  </message>
  <message>
   <source>The engine could not be set up ({last}).</source>
   <translation>Die Engine ließ sich nicht einrichten ({last}).</translation>
  </message>
  <message>
   <source>{command} doesn't start ({strerror}):</source>
   <translation>{command} startet nicht ({strerror}):</translation>
  </message>
  <message>
   <source>repair the installation of Shoal.</source>
   <translation>Reparier die Installation von Shoal.</translation>
  </message>
  <message>
   <source>{filename} can't be read ({strerror}):</source>
   <translation>{filename} lässt sich nicht lesen ({strerror}):</translation>
  </message>
  <message>
   <source>name the right file with {option}, with its signature beside it.</source>
   <translation>nenne mit {option} die richtige Datei, neben der ihre Signatur liegt.</translation>
  </message>
  <message>
   <source>{where} has no list of new versions (any more):</source>
   <translation>{where} hat keine Liste neuer Versionen (mehr):</translation>
  </message>
  <message>
   <source>look where you got this Shoal.</source>
   <translation>schau dort nach, wo du dieses Shoal herhast.</translation>
  </message>
  <message>
   <source>The list of new versions is number {serial}, and number {least} was here before:</source>
   <translation>Die Liste neuer Versionen hat Nummer {serial}, und Nummer {least} war schon hier:</translation>
  </message>
  <message>
   <source>somebody gives out an old one, so nothing is taken from it.</source>
   <translation>Jemand gibt eine alte aus, also wird nichts daraus genommen.</translation>
  </message>
  <message>
   <source>Try again later, or on another network.</source>
   <translation>Versuch es später oder in einem anderen Netz.</translation>
  </message>
  <message>
   <source>The list of new versions isn't signed by the makers of this Shoal, so nothing is taken from it:</source>
   <translation>Die Liste neuer Versionen ist nicht von den Machern dieses Shoal unterschrieben, also wird nichts daraus genommen:</translation>
  </message>
  <message>
   <source>The list of new versions was made on {made}, and by this computer's clock it is {now}:</source>
   <translation>Die Liste neuer Versionen ist vom {made}, und nach der Uhr dieses Computers ist es {now}:</translation>
  </message>
  <message>
   <source>The list of new versions held until {expires} and wasn't renewed, so nothing is taken from it:</source>
   <translation>Die Liste neuer Versionen galt bis {expires} und wurde nicht erneuert, also wird nichts daraus genommen:</translation>
  </message>
  <message>
   <source>check this computer's clock, or try again later.</source>
   <translation>Prüf die Uhr dieses Computers, oder versuch es später.</translation>
  </message>
  <message>
   <source>Shoal stays as it is.</source>
   <translation>Shoal bleibt, wie es ist.</translation>
  </message>
  <message>
   <source>The list of new versions can't be understood ({error}):</source>
   <translation>Die Liste neuer Versionen ist nicht zu verstehen ({error}):</translation>
  </message>
  <message>
   <source>download the newest Shoal where you got this one.</source>
   <translation>Lade das neueste Shoal dort, wo du dieses her hast.</translation>
  </message>
  <message>
   <source>The outbox can't be written ({error}):</source>
   <translation>Der Postausgang lässt sich nicht schreiben ({error}):</translation>
  </message>
  <message>
   <source>make room on the disk.</source>
   <translation>Schaff Platz auf der Platte.</translation>
  </message>
  <message>
   <source>Connected to {relay}, swarm {swarm}.</source>
   <translation>Verbunden mit {relay}, Schwarm {swarm}.</translation>
  </message>
  <message>
   <source>The relay says: {msg}</source>
   <translation>Das Relay sagt: {msg}</translation>
  </message>
  <message>
   <source>No lesson is running.</source>
   <translation>Gerade läuft keine Stunde.</translation>
  </message>
  <message>
   <source>The relay says goodbye: {reason}</source>
   <translation>Das Relay verabschiedet sich: {reason}</translation>
  </message>
  <message>
   <source>{place} has stopped answering.</source>
   <translation>{place} antwortet nicht mehr.</translation>
  </message>
  <message>
   <source>This computer's proxy isn't used for ws:// addresses:</source>
   <translation>Der Proxy dieses Computers gilt nicht für ws://-Adressen:</translation>
  </message>
  <message>
   <source>they are on the local network.</source>
   <translation>die liegen im lokalen Netz.</translation>
  </message>
  <message>
   <source>The connection to {place} broke off.</source>
   <translation>Die Verbindung zu {place} ist abgerissen.</translation>
  </message>
  <message>
   <source>{place} can't be spoken to ({name}):</source>
   <translation>Mit {place} klappt keine Verbindung ({name}):</translation>
  </message>
  <message>
   <source>{place} has gone silent.</source>
   <translation>{place} ist verstummt.</translation>
  </message>
  <message>
   <source>{place} sends what is no message of a relay.</source>
   <translation>{place} schickt nichts, was von einem Relay käme.</translation>
  </message>
  <message>
   <source>{place} hung up ({code}).</source>
   <translation>{place} hat aufgelegt ({code}).</translation>
  </message>
  <message>
   <source>{place} sends this node on to another address, which isn't followed:</source>
   <translation>{place} verweist auf eine andere Adresse, der Shoal nicht folgt:</translation>
  </message>
  <message>
   <source>check its address.</source>
   <translation>Prüf seine Adresse.</translation>
  </message>
  <message>
   <source>Relays can't be reached through a SOCKS proxy ({shown}):</source>
   <translation>Relays sind über einen SOCKS-Proxy nicht erreichbar ({shown}):</translation>
  </message>
  <message>
   <source>name an HTTP proxy in HTTPS_PROXY, or except the relay with NO_PROXY.</source>
   <translation>nenne in HTTPS_PROXY einen HTTP-Proxy, oder nimm das Relay mit NO_PROXY aus.</translation>
  </message>
  <message>
   <source>The proxy's address {shown} isn't one:</source>
   <translation>Die Adresse des Proxys {shown} ist keine:</translation>
  </message>
  <message>
   <source>write HTTPS_PROXY as http://proxy:port.</source>
   <translation>schreibe HTTPS_PROXY als http://proxy:port.</translation>
  </message>
  <message>
   <source>{place} doesn't answer:</source>
   <translation>{place} antwortet nicht:</translation>
  </message>
  <message>
   <source>is the address right, and the relay running?</source>
   <translation>Stimmt die Adresse, und läuft das Relay?</translation>
  </message>
  <message>
   <source>{place} sends far more than anybody asked for.</source>
   <translation>{place} schickt viel mehr, als verlangt war.</translation>
  </message>
  <message>
   <source>{place} sends what is no message of a relay:</source>
   <translation>{place} schickt nichts, was von einem Relay käme:</translation>
  </message>
  <message>
   <source>{place} runs an older Shoal, which can't prove who it is:</source>
   <translation>{place} hat ein älteres Shoal, das sich nicht ausweisen kann:</translation>
  </message>
  <message>
   <source>it has to be updated.</source>
   <translation>Es muss aktualisiert werden.</translation>
  </message>
  <message>
   <source>{place} is no relay of this kind:</source>
   <translation>{place} ist kein solches Relay:</translation>
  </message>
  <message>
   <source>The proxy doesn't let this computer through to {place} ({status}).</source>
   <translation>Der Proxy lässt diesen Computer nicht zu {place} durch ({status}).</translation>
  </message>
  <message>
   <source>The proxy {hostname} doesn't answer:</source>
   <translation>Der Proxy {hostname} antwortet nicht:</translation>
  </message>
  <message>
   <source>check the system's proxy.</source>
   <translation>Prüf den Proxy des Systems.</translation>
  </message>
  <message>
   <source>There is no relay at {place} (it answers {status}):</source>
   <translation>Bei {place} ist kein Relay (Antwort {status}):</translation>
  </message>
  <message>
   <source>{place} shows no certificate that this computer trusts:</source>
   <translation>{place} zeigt kein Zertifikat, dem dieser Computer vertraut:</translation>
  </message>
  <message>
   <source>check the address and the clock.</source>
   <translation>Prüf die Adresse und die Uhr.</translation>
  </message>
  <message>
   <source>There is no computer called {hostname}, or the network is down.</source>
   <translation>Einen Computer {hostname} gibt es nicht, oder das Netz ist weg.</translation>
  </message>
  <message>
   <source>No relay is running at {place} right now.</source>
   <translation>Unter {place} läuft gerade kein Relay.</translation>
  </message>
  <message>
   <source>{place} can't be reached ({number}).</source>
   <translation>{place} ist nicht erreichbar ({number}).</translation>
  </message>
  <message>
   <source>A message in the open.</source>
   <translation>Eine Nachricht im Klartext.</translation>
  </message>
  <message>
   <source>{place} has taken nothing for {SEND_S} s.</source>
   <translation>{place} hat seit {SEND_S} s nichts angenommen.</translation>
  </message>
  <message>
   <source>{place} lets no one in right now.</source>
   <translation>{place} lässt gerade niemanden herein.</translation>
  </message>
  <message>
   <source>{place} lets no one in with these words: {msg}</source>
   <translation>{place} lässt niemanden herein und sagt: {msg}</translation>
  </message>
  <message>
   <source>{place} doesn't prove that it knows this swarm's six words:</source>
   <translation>{place} zeigt nicht, dass es die sechs Wörter dieses Schwarms kennt:</translation>
  </message>
  <message>
   <source>check its address and them.</source>
   <translation>Prüf seine Adresse und die Wörter.</translation>
  </message>
  <message>
   <source>Somebody on the way to {place} has meddled with what it says.</source>
   <translation>Auf dem Weg zu {place} hat jemand die Nachrichten verändert.</translation>
  </message>
  <message>
   <source>Messages are text frames.</source>
   <translation>Nachrichten sind Textframes.</translation>
  </message>
  <message>
   <source>At {place} there is now the relay {relay}, not {relay2} as before:</source>
   <translation>Bei {place} ist jetzt das Relay {relay}, nicht {relay2} wie vorher:</translation>
  </message>
  <message>
   <source>if that is right, ask for a new invite or remove the address from relays.json.</source>
   <translation>Stimmt das, frag nach einer neuen Einladung oder lösch die Adresse aus relays.json.</translation>
  </message>
  <message>
   <source>{place} serves the swarm {swarm}, not {swarm2} as before:</source>
   <translation>{place} bedient den Schwarm {swarm}, nicht {swarm2} wie vorher:</translation>
  </message>
  <message>
   <source>{relay} asks newcomers for more work ({bits} bits) than a computer has time for.</source>
   <translation>{relay} verlangt von Neuen mehr Rechenarbeit ({bits} Bit), als ein Computer schafft.</translation>
  </message>
  <message>
   <source>{place} doesn't prove that it is the relay {relay}:</source>
   <translation>{place} zeigt nicht, dass es das Relay {relay} ist:</translation>
  </message>
  <message>
   <source>{place} says nothing:</source>
   <translation>{place} sagt nichts:</translation>
  </message>
  <message>
   <source>is it a relay?</source>
   <translation>Ist es ein Relay?</translation>
  </message>
  <message>
   <source>{place} doesn't speak as a relay does:</source>
   <translation>{place} spricht nicht wie ein Relay:</translation>
  </message>
  <message>
   <source>An outbox needs room for {MIN_MESSAGES} messages and {MIN_BYTES} bytes.</source>
   <translation>Ein Postausgang braucht Platz für {MIN_MESSAGES} Nachrichten und {MIN_BYTES} Byte.</translation>
  </message>
  <message>
   <source>{parent} can't be used ({strerror}).</source>
   <translation>{parent} lässt sich nicht benutzen ({strerror}).</translation>
  </message>
  <message>
   <source>{path} can't be opened ({error}).</source>
   <translation>{path} lässt sich nicht öffnen ({error}).</translation>
  </message>
  <message>
   <source>{path} can't be used ({error}).</source>
   <translation>{path} lässt sich nicht benutzen ({error}).</translation>
  </message>
  <message>
   <source>{path} was written by another version of Shoal:</source>
   <translation>{path} hat eine andere Version von Shoal geschrieben:</translation>
  </message>
  <message>
   <source>update it, or move it away.</source>
   <translation>Aktualisiere es, oder räum die Datei weg.</translation>
  </message>
  <message>
   <source>{path} is in use by another node:</source>
   <translation>{path} wird von einem anderen Shoal benutzt:</translation>
  </message>
  <message>
   <source>end that one first.</source>
   <translation>Beende zuerst jenes.</translation>
  </message>
  <message>
   <source>move it away.</source>
   <translation>Räum es weg.</translation>
  </message>
  <message>
   <source>Groups that were not sent yet stay behind in it.</source>
   <translation>Noch nicht gesendete Gruppen bleiben darin zurück.</translation>
  </message>
  <message>
   <source>A client needs the address of a relay.</source>
   <translation>Ein Client braucht die Adresse eines Relays.</translation>
  </message>
  <message>
   <source>An identity isn't copied into other processes.</source>
   <translation>Eine Identität wird nicht in andere Prozesse kopiert.</translation>
  </message>
  <message>
   <source>The key's file holds another key than it says.</source>
   <translation>In der Schlüsseldatei liegt ein anderer Schlüssel, als sie sagt.</translation>
  </message>
  <message>
   <source>The file holds another key than it says:</source>
   <translation>In der Datei liegt ein anderer Schlüssel, als sie sagt:</translation>
  </message>
  <message>
   <source>enter your recovery words.</source>
   <translation>gib deine Wiederherstellungswörter ein.</translation>
  </message>
  <message>
   <source>There are {WORDS} recovery words; these are {words}.</source>
   <translation>Es sind {WORDS} Wiederherstellungswörter; das hier sind {words}.</translation>
  </message>
  <message>
   <source>The key's file is damaged.</source>
   <translation>Die Schlüsseldatei ist beschädigt.</translation>
  </message>
  <message>
   <source>The key's file is damaged:</source>
   <translation>Die Schlüsseldatei ist beschädigt:</translation>
  </message>
  <message>
   <source>enter its recovery words.</source>
   <translation>gib seine Wiederherstellungswörter ein.</translation>
  </message>
  <message>
   <source>This passphrase doesn't open the key:</source>
   <translation>Diese Passphrase öffnet den Schlüssel nicht:</translation>
  </message>
  <message>
   <source>Word {place} isn't a recovery word:</source>
   <translation>Wort {place} ist kein Wiederherstellungswort:</translation>
  </message>
  <message>
   <source>check its spelling.</source>
   <translation>Prüf die Schreibweise.</translation>
  </message>
  <message>
   <source>Every word is a recovery word, but together they are no key:</source>
   <translation>Jedes Wort stimmt für sich, zusammen sind sie kein Schlüssel:</translation>
  </message>
  <message>
   <source>one is wrong, or two are swapped.</source>
   <translation>Eins ist falsch, oder zwei sind vertauscht.</translation>
  </message>
  <message>
   <source>The keyring's entry for {name} is damaged:</source>
   <translation>Der Eintrag für {name} im Schlüsselbund ist beschädigt:</translation>
  </message>
  <message>
   <source>enter its recovery words ({restore_hint}).</source>
   <translation>Gib die Wiederherstellungswörter ein ({restore_hint}).</translation>
  </message>
  <message>
   <source>An access token for models may still be in the keyring, which refused ({name}):</source>
   <translation>Im Schlüsselbund, der sich weigert ({name}), liegt vielleicht noch ein Zugangstoken für Modelle:</translation>
  </message>
  <message>
   <source>delete the entry {SERVICE} there.</source>
   <translation>Lösch dort den Eintrag {SERVICE}.</translation>
  </message>
  <message>
   <source>The system's keyring didn't keep the key.</source>
   <translation>Der Schlüsselbund des Systems hat den Schlüssel nicht behalten.</translation>
  </message>
  <message>
   <source>The key of {name} isn't in this keyring:</source>
   <translation>Der Schlüssel von {name} ist nicht in diesem Schlüsselbund:</translation>
  </message>
  <message>
   <source>log in as before, or enter its recovery words ({restore_hint}).</source>
   <translation>Melde dich an wie vorher, oder gib seine Wiederherstellungswörter ein ({restore_hint}).</translation>
  </message>
  <message>
   <source>This computer has no keyring.</source>
   <translation>Dieser Computer hat keinen Schlüsselbund.</translation>
  </message>
  <message>
   <source>The system's keyring didn't answer:</source>
   <translation>Der Schlüsselbund des Systems hat nicht geantwortet:</translation>
  </message>
  <message>
   <source>unlock it.</source>
   <translation>Entsperr ihn.</translation>
  </message>
  <message>
   <source>The system's keyring refused ({name}):</source>
   <translation>Der Schlüsselbund des Systems weigert sich ({name}):</translation>
  </message>
  <message>
   <source>enter the recovery words of {name} ({restore_hint}).</source>
   <translation>Gib die Wiederherstellungswörter von {name} ein ({restore_hint}).</translation>
  </message>
  <message>
   <source>Others on this computer could read your key in {path}; now only you can.</source>
   <translation>Andere auf diesem Computer konnten deinen Schlüssel in {path} lesen; jetzt kannst nur du es.</translation>
  </message>
  <message>
   <source>If one of them may have copied it, make a new one: {remedy}.</source>
   <translation>Hat ihn jemand kopiert, mach einen neuen: {remedy}.</translation>
  </message>
  <message>
   <source>Others on this computer can read your key in {path}:</source>
   <translation>Andere auf diesem Computer können deinen Schlüssel in {path} lesen:</translation>
  </message>
  <message>
   <source>move Shoal's data to a disk of your own.</source>
   <translation>verschieb Shoals Daten auf eine eigene Platte.</translation>
  </message>
  <message>
   <source>There is no identity here yet: Shoal makes one when it first learns with others, and {remedy} does so now.</source>
   <translation>Hier gibt es noch keine Identität: Shoal macht eine, sobald es mit anderen lernt, und {remedy} macht sie jetzt.</translation>
  </message>
  <message>
   <source>The key of {name} is under a passphrase, which Shoal no longer uses:</source>
   <translation>Der Schlüssel von {name} ist mit einer Passphrase gesichert, die Shoal nicht mehr verwendet:</translation>
  </message>
  <message>
   <source>enter the passphrase or the recovery words once ({restore_hint}).</source>
   <translation>gib die Passphrase oder die Wiederherstellungswörter einmal ein ({restore_hint}).</translation>
  </message>
  <message>
   <source>So the key of {name} is in {path}, which only you can read.</source>
   <translation>Der Schlüssel von {name} liegt darum in {path}; nur du kannst ihn lesen.</translation>
  </message>
  <message>
   <source>The key of {name} is still in the keyring, which refused ({name2}):</source>
   <translation>Der Schlüssel von {name} liegt noch im Schlüsselbund, der sich weigert ({name2}):</translation>
  </message>
  <message>
   <source>{path} holds the key of {name}, not of {name2}: {enter}</source>
   <translation>In {path} liegt der Schlüssel von {name}, nicht von {name2}: {enter}</translation>
  </message>
  <message>
   <source>enter the recovery words.</source>
   <translation>gib die Wiederherstellungswörter ein.</translation>
  </message>
  <message>
   <source>{path} isn't there: {enter}</source>
   <translation>{path} fehlt: {enter}</translation>
  </message>
  <message>
   <source>{path} can't be read ({why}): {enter}</source>
   <translation>{path} lässt sich nicht lesen ({why}): {enter}</translation>
  </message>
  <message>
   <source>The key of {name} is damaged, and its file is kept as {path}: {enter}</source>
   <translation>Der Schlüssel von {name} ist beschädigt, seine Datei bleibt als {path}: {enter}</translation>
  </message>
  <message>
   <source>{path} can't be read, and stays as it is:</source>
   <translation>{path} lässt sich nicht lesen und bleibt, wie es ist:</translation>
  </message>
  <message>
   <source>enter your recovery words ({restore_hint}).</source>
   <translation>Gib deine Wiederherstellungswörter ein ({restore_hint}).</translation>
  </message>
  <message>
   <source>{name} isn't a file:</source>
   <translation>{name} ist keine Datei:</translation>
  </message>
  <message>
   <source>choose one that “shoal archive export” has written.</source>
   <translation>Nimm eine, die „shoal archive export“ geschrieben hat.</translation>
  </message>
  <message>
   <source>{name} has no groups in it:</source>
   <translation>{name} enthält keine Gruppen:</translation>
  </message>
  <message>
   <source>choose a file that “shoal archive export” has written.</source>
   <translation>wähle eine Datei, die „shoal archive export“ geschrieben hat.</translation>
  </message>
  <message>
   <source>{state} is no relay's folder with an archive:</source>
   <translation>{state} ist kein Ordner eines Relays mit einem Archiv:</translation>
  </message>
  <message>
   <source>name the folder that --state named.</source>
   <translation>nenne den Ordner, den --state genannt hat.</translation>
  </message>
  <message>
   <source>{RELAY_FILE} can't be read ({error}):</source>
   <translation>{RELAY_FILE} lässt sich nicht lesen ({error}):</translation>
  </message>
  <message>
   <source>try again in a minute.</source>
   <translation>versuche es in einer Minute noch einmal.</translation>
  </message>
  <message>
   <source>They disagree too often.</source>
   <translation>Ihre Antworten passen zu oft nicht.</translation>
  </message>
  <message>
   <source>They wait for their turn.</source>
   <translation>Sie warten, bis sie dran sind.</translation>
  </message>
  <message>
   <source>Your model can't do them yet.</source>
   <translation>Für dein Modell zu schwer.</translation>
  </message>
  <message>
   <source>They came late or weren't needed.</source>
   <translation>Zu spät oder nicht gebraucht.</translation>
  </message>
  <message>
   <source>It isn't JSON in UTF-8.</source>
   <translation>Es ist kein JSON in UTF-8.</translation>
  </message>
  <message>
   <source>It is no group:</source>
   <translation>Es ist keine Gruppe:</translation>
  </message>
  <message>
   <source>a field is missing, foreign, or of another kind.</source>
   <translation>Ein Feld fehlt, ist fremd oder von anderer Art.</translation>
  </message>
  <message>
   <source>It is larger than a group may be.</source>
   <translation>Es ist größer, als eine Gruppe sein darf.</translation>
  </message>
  <message>
   <source>It came before.</source>
   <translation>Es kam schon.</translation>
  </message>
  <message>
   <source>A key of this node signed it.</source>
   <translation>Ein Schlüssel von hier hat es unterschrieben.</translation>
  </message>
  <message>
   <source>Its author has sent bad groups lately.</source>
   <translation>Wer es schickt, hat zuletzt schlechte Gruppen geschickt.</translation>
  </message>
  <message>
   <source>Its compressed text can't be unpacked.</source>
   <translation>Der gepackte Text lässt sich nicht auspacken.</translation>
  </message>
  <message>
   <source>Its id belongs to other text or to another swarm.</source>
   <translation>Die Kennung gehört zu anderem Text oder einem anderen Schwarm.</translation>
  </message>
  <message>
   <source>Its signature doesn't hold.</source>
   <translation>Die Unterschrift stimmt nicht.</translation>
  </message>
  <message>
   <source>It was written for another swarm.</source>
   <translation>Es war für einen anderen Schwarm.</translation>
  </message>
  <message>
   <source>It is too old.</source>
   <translation>Es ist zu alt.</translation>
  </message>
  <message>
   <source>It is stamped in the future.</source>
   <translation>Es hat einen Stempel aus der Zukunft.</translation>
  </message>
  <message>
   <source>Its author sends more than its share.</source>
   <translation>Wer es schickt, schickt mehr als seinen Anteil.</translation>
  </message>
  <message>
   <source>It answers questions of another version.</source>
   <translation>Es beantwortet Rätsel einer anderen Version.</translation>
  </message>
  <message>
   <source>There is no such question.</source>
   <translation>So ein Rätsel gibt es nicht.</translation>
  </message>
  <message>
   <source>This node doesn't train on its family of questions.</source>
   <translation>Diese Rätselart wird hier nicht geübt.</translation>
  </message>
  <message>
   <source>A completion is longer than this node takes.</source>
   <translation>Eine Antwort ist länger, als hier erlaubt ist.</translation>
  </message>
  <message>
   <source>It holds hidden or controlling characters, or a model's control words.</source>
   <translation>Es enthält versteckte Zeichen, Steuerzeichen oder Steuerwörter eines Modells.</translation>
  </message>
  <message>
   <source>Its question takes too long to make.</source>
   <translation>Das Rätsel braucht zu lange.</translation>
  </message>
  <message>
   <source>Its question is one of those that nodes are tested on.</source>
   <translation>Das Rätsel ist eines der Prüfrätsel.</translation>
  </message>
  <message>
   <source>It is almost the same as another one.</source>
   <translation>Es ist fast gleich wie ein anderes.</translation>
  </message>
  <message>
   <source>Its answers don't earn what it claims.</source>
   <translation>Die Antworten verdienen nicht, was behauptet wird.</translation>
  </message>
  <message>
   <source>Checking the others took too long:</source>
   <translation>Die anderen zu prüfen hat zu lange gedauert:</translation>
  </message>
  <message>
   <source>import what is left as a file of its own.</source>
   <translation>Lies den Rest als eigene Datei ein.</translation>
  </message>
  <message>
   <source>Relays on this network can be neither found nor announced ({why}):</source>
   <translation>Relays lassen sich in diesem Netz weder finden noch ankündigen ({why}):</translation>
  </message>
  <message>
   <source>use an invite link instead.</source>
   <translation>Nimm stattdessen einen Einladungslink.</translation>
  </message>
  <message>
   <source>That isn't an invite:</source>
   <translation>Das ist keine Einladung:</translation>
  </message>
  <message>
   <source>it begins with shoal://join/.</source>
   <translation>Sie beginnt mit shoal://join/.</translation>
  </message>
  <message>
   <source>A relay's address begins with ws:// or wss://.</source>
   <translation>Die Adresse eines Relays beginnt mit ws:// oder wss://.</translation>
  </message>
  <message>
   <source>An invite or a private swarm has {WORD_COUNT} words; these are {words}.</source>
   <translation>Eine Einladung oder ein privater Schwarm hat {WORD_COUNT} Wörter, das hier sind {words}.</translation>
  </message>
  <message>
   <source>These six words aren't an invite:</source>
   <translation>Diese sechs Wörter sind keine Einladung:</translation>
  </message>
  <message>
   <source>The words of a private swarm go with --private.</source>
   <translation>Die Wörter eines privaten Schwarms gehören zu --private.</translation>
  </message>
  <message>
   <source>it begins with {PREFIX}.</source>
   <translation>Sie beginnt mit {PREFIX}.</translation>
  </message>
  <message>
   <source>An invite has no # in it:</source>
   <translation>In einer Einladung steht kein #:</translation>
  </message>
  <message>
   <source>copy it once more.</source>
   <translation>Kopier sie noch einmal.</translation>
  </message>
  <message>
   <source>An invite has no % in it:</source>
   <translation>In einer Einladung steht kein %:</translation>
  </message>
  <message>
   <source>copy the link itself, not one from a page's address.</source>
   <translation>Kopier den Link selbst, nicht den aus der Adresse einer Seite.</translation>
  </message>
  <message>
   <source>After shoal://join/ an invite says ws/ or wss/:</source>
   <translation>Nach shoal://join/ steht in einer Einladung ws/ oder wss/:</translation>
  </message>
  <message>
   <source>ask for a new link.</source>
   <translation>Frag nach einem neuen Link.</translation>
  </message>
  <message>
   <source>There is no address here:</source>
   <translation>Hier steht keine Adresse:</translation>
  </message>
  <message>
   <source>paste an invite or a relay's address.</source>
   <translation>Füge eine Einladung oder die Adresse eines Relays ein.</translation>
  </message>
  <message>
   <source>it is longer than {MAX_LINK_CHARS} characters.</source>
   <translation>Sie ist länger als {MAX_LINK_CHARS} Zeichen.</translation>
  </message>
  <message>
   <source>Copy the link alone.</source>
   <translation>Kopier nur den Link.</translation>
  </message>
  <message>
   <source>it has blanks or line breaks.</source>
   <translation>Sie enthält Leerzeichen oder Zeilenumbrüche.</translation>
  </message>
  <message>
   <source>It begins with shoal://join/.</source>
   <translation>Sie beginnt mit shoal://join/.</translation>
  </message>
  <message>
   <source>it has other signs than plain letters and digits.</source>
   <translation>Sie enthält andere Zeichen als Buchstaben und Ziffern.</translation>
  </message>
  <message>
   <source>Copy it again.</source>
   <translation>Kopier sie noch einmal.</translation>
  </message>
  <message>
   <source>A relay's address has no user name or password in it:</source>
   <translation>In der Adresse eines Relays steht kein Name oder Passwort:</translation>
  </message>
  <message>
   <source>leave out all up to the @.</source>
   <translation>Lass alles bis zum @ weg.</translation>
  </message>
  <message>
   <source>A relay's address has a host and a port, such as 192.168.1.20:8777:</source>
   <translation>Die Adresse eines Relays hat Host und Port, wie 192.168.1.20:8777:</translation>
  </message>
  <message>
   <source>add what is missing.</source>
   <translation>Ergänze, was fehlt.</translation>
  </message>
  <message>
   <source>A relay's address begins with ws:// or wss://:</source>
   <translation>Die Adresse eines Relays beginnt mit ws:// oder wss://:</translation>
  </message>
  <message>
   <source>The path of the relay's address is no path of a relay:</source>
   <translation>Dieser Pfad gehört zu keinem Relay:</translation>
  </message>
  <message>
   <source>it ends in {SOCKET_PATH}.</source>
   <translation>Er endet auf {SOCKET_PATH}.</translation>
  </message>
  <message>
   <source>Host and port of the relay's address can't be told apart:</source>
   <translation>Host und Port des Relays lassen sich nicht trennen:</translation>
  </message>
  <message>
   <source>write HOST:PORT.</source>
   <translation>Schreib HOST:PORT.</translation>
  </message>
  <message>
   <source>The port of the relay's address is no number from 1 to 65535:</source>
   <translation>Der Port des Relays ist keine Zahl von 1 bis 65535:</translation>
  </message>
  <message>
   <source>correct it.</source>
   <translation>Berichtige ihn.</translation>
  </message>
  <message>
   <source>The relay's address has no host:</source>
   <translation>In der Adresse des Relays fehlt der Host:</translation>
  </message>
  <message>
   <source>copy the whole address.</source>
   <translation>Kopier die ganze Adresse.</translation>
  </message>
  <message>
   <source>The host of the relay's address is no host name:</source>
   <translation>Der Host in der Adresse ist kein Hostname:</translation>
  </message>
  <message>
   <source>At {address} a relay listens, but no one can reach it there:</source>
   <translation>Bei {address} hört ein Relay, aber niemand kann es dort erreichen:</translation>
  </message>
  <message>
   <source>use its computer's address.</source>
   <translation>Nimm die Adresse seines Computers.</translation>
  </message>
  <message>
   <source>{address} is no single computer's address:</source>
   <translation>{address} ist nicht die Adresse eines einzelnen Computers:</translation>
  </message>
  <message>
   <source>use the relay's own.</source>
   <translation>Nimm die des Relays.</translation>
  </message>
  <message>
   <source>The address isn't written in its one way:</source>
   <translation>Die Adresse ist nicht in ihrer einen Form geschrieben:</translation>
  </message>
  <message>
   <source>write {url}.</source>
   <translation>Schreib {url}.</translation>
  </message>
  <message>
   <source>Two slashes are missing after the first colon:</source>
   <translation>Nach dem ersten Doppelpunkt fehlen zwei Schrägstriche:</translation>
  </message>
  <message>
   <source>copy the address once more.</source>
   <translation>Kopier die Adresse noch einmal.</translation>
  </message>
  <message>
   <source>That is a web page:</source>
   <translation>Das ist eine Webseite:</translation>
  </message>
  <message>
   <source>a relay's address begins with ws:// or wss://.</source>
   <translation>Die Adresse eines Relays beginnt mit ws:// oder wss://.</translation>
  </message>
  <message>
   <source>Word {place} isn't in the list that codes are made of:</source>
   <translation>Wort {place} steht nicht in der Liste der Wörter:</translation>
  </message>
  <message>
   <source>The invite has an entry that this version doesn't know:</source>
   <translation>In der Einladung steht etwas, das diese Version nicht kennt:</translation>
  </message>
  <message>
   <source>update Shoal, or ask for a new link.</source>
   <translation>Aktualisiere Shoal, oder frag nach einem neuen Link.</translation>
  </message>
  <message>
   <source>The invite names its {ENTRIES} twice:</source>
   <translation>Die Einladung nennt zweimal: {ENTRIES}</translation>
  </message>
  <message>
   <source>A relay's address has no ? or # in it:</source>
   <translation>In der Adresse eines Relays steht kein ? oder #:</translation>
  </message>
  <message>
   <source>leave out what begins there.</source>
   <translation>Lass weg, was dort beginnt.</translation>
  </message>
  <message>
   <source>An IPv6 address with a % holds on one computer only:</source>
   <translation>Eine IPv6-Adresse mit % gilt nur auf einem Computer:</translation>
  </message>
  <message>
   <source>use another of its addresses.</source>
   <translation>Nimm eine andere seiner Adressen.</translation>
  </message>
  <message>
   <source>The {what} of this invite has characters or a length that none has.</source>
   <translation>In dieser Einladung hat {what} unerlaubte Zeichen oder eine unerlaubte Länge.</translation>
  </message>
  <message>
   <source>What stands in brackets is no IPv6 address:</source>
   <translation>In den Klammern steht keine IPv6-Adresse:</translation>
  </message>
  <message>
   <source>The host looks like an IPv4 address and is none:</source>
   <translation>Der Host sieht aus wie eine IPv4-Adresse und ist keine:</translation>
  </message>
  <message>
   <source>A private swarm has {WORD_COUNT} words; these are {words}:</source>
   <translation>Ein privater Schwarm hat {WORD_COUNT} Wörter; das hier sind {words}:</translation>
  </message>
  <message>
   <source>enter all of them.</source>
   <translation>Gib alle ein.</translation>
  </message>
  <message>
   <source>These six words are an invite:</source>
   <translation>Diese sechs Wörter sind eine Einladung:</translation>
  </message>
  <message>
   <source>enter them in the field for an invite.</source>
   <translation>Gib sie im Feld für Einladungen ein.</translation>
  </message>
  <message>
   <source>Every word is in the list, but together they are no code:</source>
   <translation>Jedes Wort stimmt für sich, zusammen sind sie kein Code:</translation>
  </message>
  <message>
   <source>This is no access key of a private swarm:</source>
   <translation>Das ist kein Zugangsschlüssel eines privaten Schwarms:</translation>
  </message>
  <message>
   <source>it has a1. and 64 hex digits.</source>
   <translation>Er hat a1. und 64 Hexziffern.</translation>
  </message>
  <message>
   <source>A token ends at a whole Unix second, for a key of 64 hex digits or for any.</source>
   <translation>Eine Marke endet zu einer ganzen Unix-Sekunde, für einen Schlüssel aus 64 Hexziffern oder für jeden.</translation>
  </message>
  <message>
   <source>This relay asks for an invite of its operator, and this is none.</source>
   <translation>Dieses Relay will eine Einladung seines Betreibers, und das ist keine.</translation>
  </message>
  <message>
   <source>The invite wasn't signed by this relay's operator:</source>
   <translation>Die Einladung ist nicht vom Betreiber dieses Relays unterschrieben:</translation>
  </message>
  <message>
   <source>ask for one.</source>
   <translation>Frag nach einer.</translation>
  </message>
  <message>
   <source>The invite was made for another key:</source>
   <translation>Die Einladung ist für einen anderen Schlüssel:</translation>
  </message>
  <message>
   <source>ask for one of your own.</source>
   <translation>Frag nach einer eigenen.</translation>
  </message>
  <message>
   <source>The invite has ended:</source>
   <translation>Die Einladung ist abgelaufen:</translation>
  </message>
  <message>
   <source>ask the operator for a new one.</source>
   <translation>Frag den Betreiber nach einer neuen.</translation>
  </message>
  <message>
   <source>Sharing stopped because of a mistake in Shoal ({name}).</source>
   <translation>Das Teilen hielt wegen eines Fehlers in Shoal an ({name}).</translation>
  </message>
  <message>
   <source>Memory ran short:</source>
   <translation>Der Speicher wurde knapp:</translation>
  </message>
  <message>
   <source>it now learns from {tokens} tokens at a time.</source>
   <translation>Es lernt jetzt mit {tokens} Token auf einmal.</translation>
  </message>
  <message>
   <source>it now computes layers twice instead of keeping them.</source>
   <translation>Es berechnet Schichten jetzt zweimal, statt sie zu behalten.</translation>
  </message>
  <message>
   <source>The step wasn't made, because its loss ({loss}) or gradient ({norm}) isn't a finite number:</source>
   <translation>Der Schritt fiel aus, weil Verlust ({loss}) oder Gradient ({norm}) keine endliche Zahl ist:</translation>
  </message>
  <message>
   <source>go back to an earlier checkpoint if this comes again.</source>
   <translation>Kommt das wieder, geh zu einem früheren Stand zurück.</translation>
  </message>
  <message>
   <source>The learning rate {learning_rate} isn't a number of at least 0:</source>
   <translation>Die Lernrate {learning_rate} ist keine Zahl ab 0:</translation>
  </message>
  <message>
   <source>set another.</source>
   <translation>Setz eine andere.</translation>
  </message>
  <message>
   <source>A training row has another number of weights than tokens:</source>
   <translation>Eine Trainingszeile hat andere Gewichte als Token:</translation>
  </message>
  <message>
   <source>drop it from the batch.</source>
   <translation>Nimm sie aus dem Batch.</translation>
  </message>
  <message>
   <source>A training row has a weight that isn't a finite number:</source>
   <translation>Eine Trainingszeile hat ein Gewicht, das keine endliche Zahl ist:</translation>
  </message>
  <message>
   <source>A training sequence has an empty prompt:</source>
   <translation>Eine Trainingsfolge hat keine Frage:</translation>
  </message>
  <message>
   <source>A training sequence holds token ids of another tokenizer:</source>
   <translation>Eine Trainingsfolge hat Token eines anderen Tokenizers:</translation>
  </message>
  <message>
   <source>encode its text again.</source>
   <translation>Kodier ihren Text neu.</translation>
  </message>
  <message>
   <source>Learning doesn't fit into the memory:</source>
   <translation>Das Lernen passt nicht in den Speicher:</translation>
  </message>
  <message>
   <source>choose a smaller model or shorter answers.</source>
   <translation>Wähle ein kleineres Modell oder kürzere Antworten.</translation>
  </message>
  <message>
   <source>{n} completions of {max_tokens} tokens don't fit into the free memory:</source>
   <translation>{n} Antworten mit {max_tokens} Token passen nicht in den freien Speicher:</translation>
  </message>
  <message>
   <source>choose a smaller model, fewer completions or shorter ones.</source>
   <translation>Wähle ein kleineres Modell, weniger oder kürzere Antworten.</translation>
  </message>
  <message>
   <source>{name} is too old for this build of PyTorch, which needs compute capability {least}.{least2}:</source>
   <translation>{name} ist zu alt für diesen Bau von PyTorch, der die Rechenfähigkeit {least}.{least2} braucht:</translation>
  </message>
  <message>
   <source>the processor is used.</source>
   <translation>Es rechnet der Prozessor.</translation>
  </message>
  <message>
   <source>The NVIDIA driver {driver} is too old for CUDA {cuda}:</source>
   <translation>Der NVIDIA-Treiber {driver} ist zu alt für CUDA {cuda}:</translation>
  </message>
  <message>
   <source>install {needed} or newer and restart the computer.</source>
   <translation>Installiere {needed} oder neuer und starte den Computer neu.</translation>
  </message>
  <message>
   <source>{name} needs {needed} MB and {room} MB are free:</source>
   <translation>{name} braucht {needed} MB, und {room} MB sind frei:</translation>
  </message>
  <message>
   <source>{taken} is faster.</source>
   <translation>{taken} ist schneller.</translation>
  </message>
  <message>
   <source>There is no NVIDIA card with a driver here.</source>
   <translation>Hier ist keine NVIDIA-Karte mit Treiber.</translation>
  </message>
  <message>
   <source>This build of PyTorch has no CUDA, so {name} isn't used.</source>
   <translation>Dieses PyTorch hat kein CUDA, darum bleibt {name} ungenutzt.</translation>
  </message>
  <message>
   <source>Metal (MPS) exists on Macs with Apple Silicon only.</source>
   <translation>Metal (MPS) gibt es nur auf Macs mit Apple Silicon.</translation>
  </message>
  <message>
   <source>llama.cpp needs glibc 2.28 and this system has {glibc}:</source>
   <translation>llama.cpp braucht glibc 2.28, dieses System hat {glibc}:</translation>
  </message>
  <message>
   <source>use a newer system.</source>
   <translation>Nimm ein neueres System.</translation>
  </message>
  <message>
   <source>{name} needs {needed} MB and {room} MB are free on {name2}:</source>
   <translation>{name} braucht {needed} MB, auf {name2} sind {room} MB frei:</translation>
  </message>
  <message>
   <source>Measured here with {name}: {measured} rounds an hour.</source>
   <translation>Hier gemessen mit {name}: {measured} Runden pro Stunde.</translation>
  </message>
  <message>
   <source>No other engine is faster with a model as small as {name}.</source>
   <translation>Keine andere Engine ist schneller mit einem so kleinen Modell wie {name}.</translation>
  </message>
  <message>
   <source>Measured here with {name}: {measured} rounds an hour, and {measured2} with the chosen engine.</source>
   <translation>Hier gemessen mit {name}: {measured} Runden pro Stunde, mit der gewählten Engine {measured2}.</translation>
  </message>
  <message>
   <source>MLX is for Apple Silicon; on this computer it is for tests, so it is taken by name only.</source>
   <translation>MLX ist für Apple Silicon; auf diesem Computer dient es Tests und wird nur auf Wunsch genommen.</translation>
  </message>
  <message>
   <source>For a model as small as {name} its fixed costs are larger than its gain.</source>
   <translation>Bei einem so kleinen Modell wie {name} kostet sie mehr, als sie bringt.</translation>
  </message>
  <message>
   <source>The graphics card is faster.</source>
   <translation>Die Grafikkarte ist schneller.</translation>
  </message>
  <message>
   <source>MLX is faster on Apple Silicon.</source>
   <translation>MLX ist auf Apple Silicon schneller.</translation>
  </message>
  <message>
   <source>PyTorch with CUDA {cuda} runs on {name}.</source>
   <translation>PyTorch mit CUDA {cuda} läuft auf {name}.</translation>
  </message>
  <message>
   <source>PyTorch runs on this Mac's graphics through Metal (MPS).</source>
   <translation>PyTorch läuft auf der Grafik dieses Macs, über Metal (MPS).</translation>
  </message>
  <message>
   <source>PyTorch {packages} runs on this processor.</source>
   <translation>PyTorch {packages} läuft auf diesem Prozessor.</translation>
  </message>
  <message>
   <source>llama.cpp samples on this processor, and PyTorch learns.</source>
   <translation>llama.cpp antwortet auf diesem Prozessor, und PyTorch lernt.</translation>
  </message>
  <message>
   <source>MLX runs on this computer ({cpu}).</source>
   <translation>MLX läuft auf diesem Computer ({cpu}).</translation>
  </message>
  <message>
   <source>No engine can run {name} on this computer.</source>
   <translation>Keine Engine kann {name} auf diesem Computer ausführen.</translation>
  </message>
  <message>
   <source>{VISIBLE_CARDS_ENV} hides every NVIDIA card from it.</source>
   <translation>{VISIBLE_CARDS_ENV} verbirgt jede NVIDIA-Karte davor.</translation>
  </message>
  <message>
   <source>The library that asks NVIDIA's driver is missing: {repair_phrase}.</source>
   <translation>Die Bibliothek, die NVIDIAs Treiber fragt, fehlt: {repair_phrase}.</translation>
  </message>
  <message>
   <source>NVIDIA's driver doesn't answer ({error}):</source>
   <translation>NVIDIAs Treiber antwortet nicht ({error}):</translation>
  </message>
  <message>
   <source>restart the computer or install it again.</source>
   <translation>Starte den Computer neu oder installier den Treiber noch einmal.</translation>
  </message>
  <message>
   <source>llama.cpp samples on the processor here, not on {device}:</source>
   <translation>llama.cpp antwortet hier auf dem Prozessor, nicht auf {device}:</translation>
  </message>
  <message>
   <source>choose cpu or another engine.</source>
   <translation>Wähle cpu oder eine andere Engine.</translation>
  </message>
  <message>
   <source>An answer of {tokens} tokens doesn't fit into the free memory:</source>
   <translation>Eine Antwort mit {tokens} Token passt nicht in den freien Speicher:</translation>
  </message>
  <message>
   <source>Memory is short: {fitting} answers are now sampled at a time.</source>
   <translation>Der Speicher ist knapp: Jetzt entstehen {fitting} Antworten auf einmal.</translation>
  </message>
  <message>
   <source>The converted model was damaged and has been made again.</source>
   <translation>Das umgewandelte Modell war beschädigt und wurde neu gemacht.</translation>
  </message>
  <message>
   <source>Answers of a given form need llama.cpp: {reason}</source>
   <translation>Antworten in vorgegebener Form brauchen llama.cpp: {reason}</translation>
  </message>
  <message>
   <source>llama.cpp can't read this model's vocabulary:</source>
   <translation>llama.cpp kann den Wortschatz dieses Modells nicht lesen:</translation>
  </message>
  <message>
   <source>ask without a form.</source>
   <translation>frag ohne Formvorgabe.</translation>
  </message>
  <message>
   <source>The form of the answer isn't one that llama.cpp takes:</source>
   <translation>Diese Form der Antwort nimmt llama.cpp nicht an:</translation>
  </message>
  <message>
   <source>make it simpler.</source>
   <translation>mach sie einfacher.</translation>
  </message>
  <message>
   <source>llama.cpp needs a processor with AVX2 (2013 and later), and this one has none: PyTorch samples.</source>
   <translation>llama.cpp braucht einen Prozessor mit AVX2 (ab 2013), den dieser Computer nicht hat: PyTorch antwortet.</translation>
  </message>
  <message>
   <source>llama.cpp isn't installed: {repair_phrase}.</source>
   <translation>llama.cpp ist nicht installiert: {repair_phrase}.</translation>
  </message>
  <message>
   <source>llama.cpp doesn't load here ({said}):</source>
   <translation>llama.cpp lädt hier nicht ({said}):</translation>
  </message>
  <message>
   <source>install it again with {how}.</source>
   <translation>Installier es neu mit {how}.</translation>
  </message>
  <message>
   <source>llama.cpp can't open {name}:</source>
   <translation>llama.cpp kann {name} nicht öffnen:</translation>
  </message>
  <message>
   <source>delete it, and it is made again.</source>
   <translation>Lösch es; es entsteht neu.</translation>
  </message>
  <message>
   <source>llama.cpp can't read the adapter {name}:</source>
   <translation>llama.cpp kann den Adapter {name} nicht lesen:</translation>
  </message>
  <message>
   <source>start with the model it was made for, or go back to an earlier checkpoint.</source>
   <translation>Nimm das Modell, zu dem er gehört, oder geh zu einem früheren Stand zurück.</translation>
  </message>
  <message>
   <source>llama.cpp has no room for {sequences} answers of {tokens} tokens:</source>
   <translation>llama.cpp hat keinen Platz für {sequences} Antworten mit {tokens} Token:</translation>
  </message>
  <message>
   <source>close other programs, or choose a smaller model or shorter answers.</source>
   <translation>Schließ andere Programme, oder wähle ein kleineres Modell oder kürzere Antworten.</translation>
  </message>
  <message>
   <source>llama.cpp refuses the adapter:</source>
   <translation>llama.cpp lehnt den Adapter ab:</translation>
  </message>
  <message>
   <source>go back to an earlier checkpoint.</source>
   <translation>Geh zu einem früheren Stand zurück.</translation>
  </message>
  <message>
   <source>llama.cpp ran out of room for its key-value cache:</source>
   <translation>llama.cpp hat keinen Platz mehr für seinen Zwischenspeicher:</translation>
  </message>
  <message>
   <source>choose shorter answers.</source>
   <translation>Wähle kürzere Antworten.</translation>
  </message>
  <message>
   <source>llama.cpp couldn't compute a batch (code {code}):</source>
   <translation>llama.cpp konnte einen Batch nicht berechnen (Code {code}):</translation>
  </message>
  <message>
   <source>close other programs, or choose the torch engine.</source>
   <translation>Schließ andere Programme, oder wähle die Engine torch.</translation>
  </message>
  <message>
   <source>The model produced numbers that aren't finite:</source>
   <translation>Das Modell hat Zahlen erzeugt, die nicht endlich sind:</translation>
  </message>
  <message>
   <source>Process {holder} holds {path}.</source>
   <translation>Prozess {holder} hält {path}.</translation>
  </message>
  <message>
   <source>MLX needs a Mac with Apple Silicon, and this one has an Intel processor:</source>
   <translation>MLX braucht einen Mac mit Apple Silicon, dieser hat einen Intel-Prozessor:</translation>
  </message>
  <message>
   <source>choose another engine.</source>
   <translation>Wähle eine andere Engine.</translation>
  </message>
  <message>
   <source>MLX runs on Macs with Apple Silicon, and for tests on Linux:</source>
   <translation>MLX läuft auf Macs mit Apple Silicon und für Tests auf Linux:</translation>
  </message>
  <message>
   <source>MLX isn't installed: {repair_phrase}.</source>
   <translation>MLX ist nicht installiert: {repair_phrase}.</translation>
  </message>
  <message>
   <source>MLX doesn't load ({said}): {repair_phrase}, or choose another engine.</source>
   <translation>MLX lädt nicht ({said}): {repair_phrase}, oder wähle eine andere Engine.</translation>
  </message>
  <message>
   <source>There is no device {device} for MLX:</source>
   <translation>Ein Gerät {device} gibt es für MLX nicht:</translation>
  </message>
  <message>
   <source>choose auto, gpu or cpu.</source>
   <translation>Wähle auto, gpu oder cpu.</translation>
  </message>
  <message>
   <source>MLX sees no Apple GPU on this computer:</source>
   <translation>MLX sieht auf diesem Computer keine Apple-Grafik:</translation>
  </message>
  <message>
   <source>choose cpu or auto.</source>
   <translation>Wähle cpu oder auto.</translation>
  </message>
  <message>
   <source>The MLX engine doesn't know the architecture {kind} of {name} (it knows {KNOWN_TYPES}):</source>
   <translation>Die Engine MLX kennt die Bauart {kind} von {name} nicht (sie kennt {KNOWN_TYPES}):</translation>
  </message>
  <message>
   <source>choose the torch engine.</source>
   <translation>Wähle die Engine torch.</translation>
  </message>
  <message>
   <source>{name} needs {MB} MB and {budget} MB are free:</source>
   <translation>{name} braucht {MB} MB, und {budget} MB sind frei:</translation>
  </message>
  <message>
   <source>Memory is short:</source>
   <translation>Der Speicher ist knapp:</translation>
  </message>
  <message>
   <source>it computes layers twice instead of keeping them.</source>
   <translation>Es berechnet Schichten zweimal, statt sie zu behalten.</translation>
  </message>
  <message>
   <source>Memory ran short: {used} questions are now answered at a time.</source>
   <translation>Der Speicher wurde knapp: Jetzt werden {used} Fragen auf einmal beantwortet.</translation>
  </message>
  <message>
   <source>{name} doesn't fit into memory:</source>
   <translation>{name} passt nicht in den Speicher:</translation>
  </message>
  <message>
   <source>answers are sampled without a merged copy, more slowly.</source>
   <translation>Antworten entstehen ohne zusammengeführte Kopie und langsamer.</translation>
  </message>
  <message>
   <source>MLX reads the rotary settings of {name} otherwise than they are meant:</source>
   <translation>MLX liest die Drehung in {name} anders, als sie gemeint ist:</translation>
  </message>
  <message>
   <source>The weights of {name} are damaged:</source>
   <translation>Die Gewichte von {name} sind beschädigt:</translation>
  </message>
  <message>
   <source>download the model again.</source>
   <translation>Lade das Modell noch einmal herunter.</translation>
  </message>
  <message>
   <source>{name} has other weights than its config.json says ({said}):</source>
   <translation>{name} hat andere Gewichte, als config.json sagt ({said}):</translation>
  </message>
  <message>
   <source>There is no model folder at {path}:</source>
   <translation>Bei {path} ist kein Modellordner:</translation>
  </message>
  <message>
   <source>check the path or give the name of a model.</source>
   <translation>Prüf den Pfad, oder nenne den Namen eines Modells.</translation>
  </message>
  <message>
   <source>{path} has no config.json, so it isn't a model folder:</source>
   <translation>In {path} ist keine config.json, also ist es kein Modellordner:</translation>
  </message>
  <message>
   <source>give the one with the model's files.</source>
   <translation>Nimm den mit den Dateien des Modells.</translation>
  </message>
  <message>
   <source>{name} has no .safetensors weights:</source>
   <translation>{name} hat keine .safetensors-Gewichte:</translation>
  </message>
  <message>
   <source>{name} is quantised, and that can't be trained here:</source>
   <translation>{name} ist quantisiert und kann hier nicht lernen:</translation>
  </message>
  <message>
   <source>{name} in {folder} is a link to a file elsewhere:</source>
   <translation>{name} in {folder} ist ein Link auf eine Datei anderswo:</translation>
  </message>
  <message>
   <source>put the file itself in its place, then try again.</source>
   <translation>leg die Datei selbst an seine Stelle und versuch es noch einmal.</translation>
  </message>
  <message>
   <source>The model's config.json has sizes that no model has:</source>
   <translation>config.json des Modells nennt Größen, die kein Modell hat:</translation>
  </message>
  <message>
   <source>{name} holds its weights only as pickle files, which can run code and are never opened:</source>
   <translation>{name} hat seine Gewichte nur als Pickle-Dateien, die Programme starten können und nie geöffnet werden:</translation>
  </message>
  <message>
   <source>{name} of the model in {parent} can't be read:</source>
   <translation>{name} des Modells in {parent} lässt sich nicht lesen:</translation>
  </message>
  <message>
   <source>The weights in {name} are damaged:</source>
   <translation>Die Gewichte in {name} sind beschädigt:</translation>
  </message>
  <message>
   <source>The model's config.json is damaged ({said}):</source>
   <translation>config.json des Modells ist beschädigt ({said}):</translation>
  </message>
  <message>
   <source>{SETTINGS_FILE} of the model in {folder} is wrong ({error}):</source>
   <translation>{SETTINGS_FILE} des Modells in {folder} ist falsch ({error}):</translation>
  </message>
  <message>
   <source>correct or delete it.</source>
   <translation>Berichtige oder lösch es.</translation>
  </message>
  <message>
   <source>{name} turns positions in a way that isn't known here:</source>
   <translation>{name} dreht Positionen auf eine Art, die hier nicht bekannt ist:</translation>
  </message>
  <message>
   <source>{name} computes in a way that isn't known here:</source>
   <translation>{name} rechnet auf eine Art, die hier nicht bekannt ist:</translation>
  </message>
  <message>
   <source>{name} is a part of a model, not a whole one:</source>
   <translation>{name} ist ein Teil eines Modells, kein ganzes:</translation>
  </message>
  <message>
   <source>choose the file of the model itself.</source>
   <translation>Wähle die Datei des Modells selbst.</translation>
  </message>
  <message>
   <source>{name} is one of several pieces of a model:</source>
   <translation>{name} ist eines von mehreren Stücken eines Modells:</translation>
  </message>
  <message>
   <source>choose one that is a single file.</source>
   <translation>Wähle eines, das eine einzige Datei ist.</translation>
  </message>
  <message>
   <source>{name} is of the family {what}, and files of the families Qwen2, Qwen3 and Llama can learn here:</source>
   <translation>{name} gehört zur Familie {what}; hier lernen Dateien von Qwen2, Qwen3 und Llama:</translation>
  </message>
  <message>
   <source>{name} has weights that aren't known here ({min}):</source>
   <translation>{name} hat Gewichte, die hier nicht bekannt sind ({min}):</translation>
  </message>
  <message>
   <source>{name} can't be read here, because of what it says of {family}.{key}:</source>
   <translation>{name} lässt sich hier nicht lesen, wegen seiner Angabe {family}.{key}:</translation>
  </message>
  <message>
   <source>The weights {target} in {name} are damaged:</source>
   <translation>Die Gewichte {target} in {name} sind beschädigt:</translation>
  </message>
  <message>
   <source>download the file again.</source>
   <translation>Lade die Datei noch einmal herunter.</translation>
  </message>
  <message>
   <source>{name} holds weights in the format {name2}, which isn't read here:</source>
   <translation>{name} hat Gewichte im Format {name2}, das hier nicht gelesen wird:</translation>
  </message>
  <message>
   <source>choose the same model in Q8_0, Q4_K_M or F16.</source>
   <translation>Wähle dasselbe Modell in Q8_0, Q4_K_M oder F16.</translation>
  </message>
  <message>
   <source>{name} has damaged rope_freqs:</source>
   <translation>{name} hat beschädigte rope_freqs:</translation>
  </message>
  <message>
   <source>{name} lacks the weights {target}:</source>
   <translation>{name} fehlen die Gewichte {target}:</translation>
  </message>
  <message>
   <source>{name} has {target} in another shape than its header says:</source>
   <translation>{name} hat {target} in anderer Form, als der Kopf sagt:</translation>
  </message>
  <message>
   <source>download it again.</source>
   <translation>Lade es noch einmal herunter.</translation>
  </message>
  <message>
   <source>{name} attends or turns positions in a way that isn't converted here (a sliding window, a rotary scaling):</source>
   <translation>{name} rechnet so, dass es sich hier nicht umwandeln lässt (gleitendes Fenster, gestreckte Drehung):</translation>
  </message>
  <message>
   <source>use the torch engine, or export it as peft or merged.</source>
   <translation>Nimm die Engine torch, oder exportier es als peft oder merged.</translation>
  </message>
  <message>
   <source>{name} is {kind}, and only Qwen2, Qwen3 and Llama models can become GGUF files here:</source>
   <translation>{name} ist {kind}, und nur Modelle von Qwen2, Qwen3 und Llama werden hier zu GGUF:</translation>
  </message>
  <message>
   <source>{name} needs {needed} MB and {free} MB are free in {parent}:</source>
   <translation>{name} braucht {needed} MB, in {parent} sind {free} MB frei:</translation>
  </message>
  <message>
   <source>{name} couldn't be written to {parent} ({strerror}):</source>
   <translation>{name} ließ sich nicht nach {parent} schreiben ({strerror}):</translation>
  </message>
  <message>
   <source>{name} has weights that llama.cpp doesn't know ({stray}):</source>
   <translation>{name} hat Gewichte, die llama.cpp nicht kennt ({stray}):</translation>
  </message>
  <message>
   <source>use the torch engine.</source>
   <translation>Nimm die Engine torch.</translation>
  </message>
  <message>
   <source>{name} lacks the weights {name2}:</source>
   <translation>{name} fehlen die Gewichte {name2}:</translation>
  </message>
  <message>
   <source>{name} has {name2} in another shape than its config.json says:</source>
   <translation>{name} hat {name2} in anderer Form, als config.json sagt:</translation>
  </message>
  <message>
   <source>{name} is quantised ({name2}), and that can't be converted:</source>
   <translation>{name} ist quantisiert ({name2}) und lässt sich nicht umwandeln:</translation>
  </message>
  <message>
   <source>{name} is no GGUF file or is damaged:</source>
   <translation>{name} ist keine GGUF-Datei oder beschädigt:</translation>
  </message>
  <message>
   <source>delete it, and it is made or downloaded again.</source>
   <translation>Lösch es; es entsteht neu oder wird neu geladen.</translation>
  </message>
  <message>
   <source>{name} is cut off ({size} of {bytes} bytes):</source>
   <translation>{name} ist abgeschnitten ({size} von {bytes} Byte):</translation>
  </message>
  <message>
   <source>{model} can't become a GGUF file ({why}):</source>
   <translation>{model} kann keine GGUF-Datei werden ({why}):</translation>
  </message>
  <message>
   <source>The adapter couldn't be written to {to} ({strerror}):</source>
   <translation>Der Adapter ließ sich nicht nach {to} schreiben ({strerror}):</translation>
  </message>
  <message>
   <source>free some space.</source>
   <translation>Schaff etwas Platz.</translation>
  </message>
  <message>
   <source>llama.cpp has no tokenizer like the one of {name}, so other programs would read text differently:</source>
   <translation>llama.cpp hat keinen Tokenizer wie den von {name}; andere Programme würden Text anders lesen:</translation>
  </message>
  <message>
   <source>export it as peft or merged instead.</source>
   <translation>Exportier es stattdessen als peft oder merged.</translation>
  </message>
  <message>
   <source>The tokenizer of {name} is damaged:</source>
   <translation>Der Tokenizer von {name} ist beschädigt:</translation>
  </message>
  <message>
   <source>download the file again, or choose another model.</source>
   <translation>Lade die Datei noch einmal, oder wähle ein anderes Modell.</translation>
  </message>
  <message>
   <source>The tokenizer of {name} belongs to another model:</source>
   <translation>Der Tokenizer von {name} gehört zu einem anderen Modell:</translation>
  </message>
  <message>
   <source>The tokenizer of {name} has words that GGUF keeps for itself:</source>
   <translation>Der Tokenizer von {name} hat Wörter, die GGUF selbst braucht:</translation>
  </message>
  <message>
   <source>{name} names no end token, so its answers would never end:</source>
   <translation>{name} nennt kein Endzeichen, seine Antworten würden nie enden:</translation>
  </message>
  <message>
   <source>choose another.</source>
   <translation>Wähle ein anderes.</translation>
  </message>
  <message>
   <source>The tokenizer of {name} is of another kind than byte-level BPE, which alone is read from GGUF files here:</source>
   <translation>Der Tokenizer von {name} ist kein Byte-BPE, und nur das wird hier aus GGUF-Dateien gelesen:</translation>
  </message>
  <message>
   <source>take the model as a folder with a tokenizer.json.</source>
   <translation>Nimm das Modell als Ordner mit einer tokenizer.json.</translation>
  </message>
  <message>
   <source>{name} cuts text in a way that isn't known here ({str}):</source>
   <translation>{name} zerlegt Text auf eine Art, die hier nicht bekannt ist ({str}):</translation>
  </message>
  <message>
   <source>{name} in {folder} is missing or damaged:</source>
   <translation>{name} in {folder} fehlt oder ist beschädigt:</translation>
  </message>
  <message>
   <source>The adapter in {folder} was trained on another model:</source>
   <translation>Der Adapter in {folder} gehört zu einem anderen Modell:</translation>
  </message>
  <message>
   <source>start with {model}.</source>
   <translation>Starte mit {model}.</translation>
  </message>
  <message>
   <source>The adapter in {folder} has rank {rank}, not {rank2}:</source>
   <translation>Der Adapter in {folder} hat Rang {rank}, nicht {rank2}:</translation>
  </message>
  <message>
   <source>start with that.</source>
   <translation>Starte damit.</translation>
  </message>
  <message>
   <source>The adapter holds no LoRA layers, or more than those:</source>
   <translation>Der Adapter hat keine LoRA-Schichten, oder mehr als die:</translation>
  </message>
  <message>
   <source>start with its own model.</source>
   <translation>Starte mit seinem eigenen Modell.</translation>
  </message>
  <message>
   <source>{folder} has no {ADAPTER_CONFIG}:</source>
   <translation>In {folder} ist keine {ADAPTER_CONFIG}:</translation>
  </message>
  <message>
   <source>give the folder of a PEFT adapter.</source>
   <translation>Nimm den Ordner eines PEFT-Adapters.</translation>
  </message>
  <message>
   <source>The adapter in {folder} is no plain LoRA:</source>
   <translation>Der Adapter in {folder} ist kein einfaches LoRA:</translation>
  </message>
  <message>
   <source>take one of that kind.</source>
   <translation>Nimm einen solchen.</translation>
  </message>
  <message>
   <source>The adapter couldn't be saved in {folder} ({strerror}):</source>
   <translation>Der Adapter ließ sich nicht in {folder} speichern ({strerror}):</translation>
  </message>
  <message>
   <source>The adapter has only half of {layer}:</source>
   <translation>Der Adapter hat nur die Hälfte von {layer}:</translation>
  </message>
  <message>
   <source>{ADAPTER_CONFIG} in {folder} is damaged:</source>
   <translation>{ADAPTER_CONFIG} in {folder} ist beschädigt:</translation>
  </message>
  <message>
   <source>The adapter in {folder} uses {key}, which isn't known here:</source>
   <translation>Der Adapter in {folder} benutzt {key}, das hier nicht bekannt ist:</translation>
  </message>
  <message>
   <source>take a plain LoRA.</source>
   <translation>Nimm ein einfaches LoRA.</translation>
  </message>
  <message>
   <source>{ADAPTER} in {folder} is missing or damaged:</source>
   <translation>{ADAPTER} in {folder} fehlt oder ist beschädigt:</translation>
  </message>
  <message>
   <source>{ADAPTER} in {folder} holds no numbers in {name}:</source>
   <translation>{ADAPTER} in {folder} hat in {name} keine Zahlen:</translation>
  </message>
  <message>
   <source>take an earlier one.</source>
   <translation>Nimm einen früheren.</translation>
  </message>
  <message>
   <source>{file} has layers of another model:</source>
   <translation>{file} hat Schichten eines anderen Modells:</translation>
  </message>
  <message>
   <source>start with the one it was made for.</source>
   <translation>Starte mit dem, zu dem sie gehören.</translation>
  </message>
  <message>
   <source>The adapter has {layer}, which this model hasn't:</source>
   <translation>Der Adapter hat {layer}, das Modell nicht:</translation>
  </message>
  <message>
   <source>The adapter's {layer} is of another model:</source>
   <translation>{layer} des Adapters gehört zu einem anderen Modell:</translation>
  </message>
  <message>
   <source>start with its own.</source>
   <translation>Starte mit seinem eigenen.</translation>
  </message>
  <message>
   <source>{file} has {name} in another shape:</source>
   <translation>{file} hat {name} in anderer Form:</translation>
  </message>
  <message>
   <source>start with the model it was made for.</source>
   <translation>Starte mit dem Modell, zu dem es gehört.</translation>
  </message>
  <message>
   <source>{name} has no tokenizer:</source>
   <translation>{name} hat keinen Tokenizer:</translation>
  </message>
  <message>
   <source>The chat template of {name} makes nothing of the prompt:</source>
   <translation>Die Chat-Vorlage von {name} macht nichts aus der Frage:</translation>
  </message>
  <message>
   <source>tokenizer.json of {name} can't be used ({why}):</source>
   <translation>tokenizer.json von {name} ist nicht brauchbar ({why}):</translation>
  </message>
  <message>
   <source>download the model again, or choose another.</source>
   <translation>Lade das Modell noch einmal herunter oder wähle ein anderes.</translation>
  </message>
  <message>
   <source>The tokenizer of {name} has an older form, which needs the package transformers:</source>
   <translation>Der Tokenizer von {name} hat eine ältere Form und braucht das Paket transformers:</translation>
  </message>
  <message>
   <source>choose a model with a tokenizer.json.</source>
   <translation>Wähle ein Modell mit einer tokenizer.json.</translation>
  </message>
  <message>
   <source>{name} has no tokenizer that can be read:</source>
   <translation>{name} hat keinen lesbaren Tokenizer:</translation>
  </message>
  <message>
   <source>{n} completions of {max_tokens} tokens can't be sampled:</source>
   <translation>{n} Antworten mit {max_tokens} Token gehen nicht:</translation>
  </message>
  <message>
   <source>both must be at least 1.</source>
   <translation>Beides muss mindestens 1 sein.</translation>
  </message>
  <message>
   <source>A prompt of {longest} tokens and {max_tokens} more exceed the {context} tokens that {name} can read:</source>
   <translation>Eine Frage mit {longest} Token und {max_tokens} mehr sind über den {context} Token, die {name} lesen kann:</translation>
  </message>
  <message>
   <source>choose shorter answers or another task.</source>
   <translation>Wähle kürzere Antworten oder andere Rätsel.</translation>
  </message>
  <message>
   <source>The chat template of {name} is damaged ({error}):</source>
   <translation>Die Chat-Vorlage von {name} ist beschädigt ({error}):</translation>
  </message>
  <message>
   <source>The chat template of {name} takes longer than {TRIAL_S} seconds for one prompt:</source>
   <translation>Die Chat-Vorlage von {name} braucht über {TRIAL_S} Sekunden für eine Frage:</translation>
  </message>
  <message>
   <source>The chat template of {name} refuses the prompt ({error}):</source>
   <translation>Die Chat-Vorlage von {name} lehnt die Frage ab ({error}):</translation>
  </message>
  <message>
   <source>The {title} engine doesn't load ({said}): {name}.</source>
   <translation>Die Engine {title} lädt nicht ({said}): {name}.</translation>
  </message>
  <message>
   <source>PyTorch isn't installed: {repair_phrase}.</source>
   <translation>PyTorch ist nicht installiert: {repair_phrase}.</translation>
  </message>
  <message>
   <source>MLX isn't installed.</source>
   <translation>MLX ist nicht installiert.</translation>
  </message>
  <message>
   <source>It is for Macs with Apple Silicon; {command} installs it there.</source>
   <translation>Es ist für Macs mit Apple Silicon; dort installiert es {command}.</translation>
  </message>
  <message>
   <source>{title} takes its place.</source>
   <translation>{title} springt ein.</translation>
  </message>
  <message>
   <source>There is no engine {name}:</source>
   <translation>Eine Engine {name} gibt es nicht:</translation>
  </message>
  <message>
   <source>choose {ENGINE_CHOICES}.</source>
   <translation>Wähle {ENGINE_CHOICES}.</translation>
  </message>
  <message>
   <source>It is for Macs with Apple Silicon; the engine pack there has it.</source>
   <translation>Es ist für Macs mit Apple Silicon; dort bringt es das Engine-Paket.</translation>
  </message>
  <message>
   <source>It took longer than {seconds} seconds.</source>
   <translation>Es hat länger als {seconds} Sekunden gedauert.</translation>
  </message>
  <message>
   <source>The model {name} can't be used ({said}):</source>
   <translation>Das Modell {name} ist nicht brauchbar ({said}):</translation>
  </message>
  <message>
   <source>download it again or choose another.</source>
   <translation>Lade es noch einmal herunter, oder wähle ein anderes.</translation>
  </message>
  <message>
   <source>{name} needs {needed} MB and {budget_bytes} MB are free:</source>
   <translation>{name} braucht {needed} MB, und {budget_bytes} MB sind frei:</translation>
  </message>
  <message>
   <source>{name} ({kind}) needs the package {name2}, which isn't installed here:</source>
   <translation>{name} ({kind}) braucht das Paket {name2}, das hier nicht installiert ist:</translation>
  </message>
  <message>
   <source>An engine can't run on {count} threads:</source>
   <translation>Eine Engine läuft nicht auf {count} Threads:</translation>
  </message>
  <message>
   <source>give a number of at least 1.</source>
   <translation>Nimm eine Zahl ab 1.</translation>
  </message>
  <message>
   <source>There is no device {wanted}:</source>
   <translation>Ein Gerät {wanted} gibt es nicht:</translation>
  </message>
  <message>
   <source>choose auto, cuda, mps or cpu.</source>
   <translation>Wähle auto, cuda, mps oder cpu.</translation>
  </message>
  <message>
   <source>torch sees no {kind} device that it can use on this computer:</source>
   <translation>torch sieht auf diesem Computer kein Gerät der Art {kind}, das es nutzen kann:</translation>
  </message>
  <message>
   <source>There is no {wanted}:</source>
   <translation>{wanted} gibt es nicht:</translation>
  </message>
  <message>
   <source>this computer has {cuda} CUDA devices, counted from 0.</source>
   <translation>Dieser Computer hat {cuda} CUDA-Geräte, gezählt ab 0.</translation>
  </message>
  <message>
   <source>{name} can't learn here yet:</source>
   <translation>{name} kann hier noch nicht lernen:</translation>
  </message>
  <message>
   <source>its architecture, {family}, keeps what it has read in a way Shoal doesn't know.</source>
   <translation>Seine Bauart {family} merkt sich Gelesenes auf eine Weise, die Shoal nicht kennt.</translation>
  </message>
  <message>
   <source>Choose a Qwen, Llama, Gemma or Mistral model.</source>
   <translation>Wähle ein Modell von Qwen, Llama, Gemma oder Mistral.</translation>
  </message>
  <message>
   <source>{name} has no linear layers that LoRA could train:</source>
   <translation>{name} hat keine linearen Schichten, die LoRA trainieren könnte:</translation>
  </message>
  <message>
   <source>{name} can't be opened:</source>
   <translation>{name} lässt sich nicht öffnen:</translation>
  </message>
  <message>
   <source>its architecture {family} is unknown or its files are damaged:</source>
   <translation>Seine Bauart {family} ist unbekannt, oder seine Dateien sind beschädigt:</translation>
  </message>
  <message>
   <source>choose a Qwen2, Qwen3 or Llama model.</source>
   <translation>Wähle ein Modell von Qwen2, Qwen3 oder Llama.</translation>
  </message>
  <message>
   <source>{name} is made from templates, not from rows.</source>
   <translation>{name} besteht aus Vorlagen, nicht aus Zeilen.</translation>
  </message>
  <message>
   <source>Add a set of its own.</source>
   <translation>Leg ein eigenes an.</translation>
  </message>
  <message>
   <source>Upper and lower case and extra spaces don't matter.</source>
   <translation>Groß und klein und Leerzeichen zählen nicht.</translation>
  </message>
  <message>
   <source>Any answer that stands between the | signs is right.</source>
   <translation>Jede Antwort zwischen den |-Zeichen ist richtig.</translation>
  </message>
  <message>
   <source>A unit may follow, and 1,000 and 1000 are the same.</source>
   <translation>Eine Einheit darf folgen, und 1.000 und 1000 sind gleich.</translation>
  </message>
  <message>
   <source>The question lists the answers to choose from.</source>
   <translation>Die Frage zählt die möglichen Antworten auf.</translation>
  </message>
  <message>
   <source>The same items in the same order are right.</source>
   <translation>Richtig sind dieselben Dinge in derselben Reihenfolge.</translation>
  </message>
  <message>
   <source>The same items in any order are right.</source>
   <translation>Richtig sind dieselben Dinge in beliebiger Reihenfolge.</translation>
  </message>
  <message>
   <source>Any form is right, like 2026-05-03 or 3 May 2026.</source>
   <translation>Jede Schreibweise gilt, etwa 2026-05-03 oder 3. Mai 2026.</translation>
  </message>
  <message>
   <source>Yes and no count too.</source>
   <translation>Auch Ja und Nein zählen.</translation>
  </message>
  <message>
   <source>Every field of the JSON object must be right.</source>
   <translation>Jedes Feld des JSON-Objekts muss stimmen.</translation>
  </message>
  <message>
   <source>Give the answer alone.</source>
   <translation>Gib nur die Antwort.</translation>
  </message>
  <message>
   <source>Answer with the number alone.</source>
   <translation>Antworte nur mit der Zahl.</translation>
  </message>
  <message>
   <source>Answer with one of the choices alone.</source>
   <translation>Antworte nur mit einer der Auswahlen.</translation>
  </message>
  <message>
   <source>Answer with the items alone, in their order, with commas between them.</source>
   <translation>Antworte nur mit den Teilen, in ihrer Reihenfolge, mit Kommas dazwischen.</translation>
  </message>
  <message>
   <source>Answer with the items alone, with commas between them.</source>
   <translation>Antworte nur mit den Teilen, mit Kommas dazwischen.</translation>
  </message>
  <message>
   <source>Answer with the date alone.</source>
   <translation>Antworte nur mit dem Datum.</translation>
  </message>
  <message>
   <source>Answer true or false.</source>
   <translation>Antworte mit true oder false.</translation>
  </message>
  <message>
   <source>Answer with a JSON object alone.</source>
   <translation>Antworte nur mit einem JSON-Objekt.</translation>
  </message>
  <message>
   <source>Answer with one of: {labels}.</source>
   <translation>Antworte mit einem von: {labels}.</translation>
  </message>
  <message>
   <source>{text} is no tolerance:</source>
   <translation>{text} ist keine Toleranz:</translation>
  </message>
  <message>
   <source>give a number like 0.01.</source>
   <translation>gib eine Zahl wie 0.01 an.</translation>
  </message>
  <message>
   <source>There is no column {name}.</source>
   <translation>Es gibt keine Spalte {name}.</translation>
  </message>
  <message>
   <source>There are: {known}.</source>
   <translation>Es gibt: {known}.</translation>
  </message>
  <message>
   <source>The text and the answer are the same column.</source>
   <translation>Text und Antwort sind dieselbe Spalte.</translation>
  </message>
  <message>
   <source>Pick another one.</source>
   <translation>Nimm eine andere.</translation>
  </message>
  <message>
   <source>This is one column.</source>
   <translation>Das ist nur eine Spalte.</translation>
  </message>
  <message>
   <source>A table needs a question and an answer, side by side.</source>
   <translation>Eine Tabelle braucht Frage und Antwort nebeneinander.</translation>
  </message>
  <message>
   <source>There is no column with answers.</source>
   <translation>Es gibt keine Spalte mit Antworten.</translation>
  </message>
  <message>
   <source>Pick the column with the answers.</source>
   <translation>Wähle die Spalte mit den Antworten.</translation>
  </message>
  <message>
   <source>There is no column with texts.</source>
   <translation>Es gibt keine Spalte mit Texten.</translation>
  </message>
  <message>
   <source>Pick the column with the texts.</source>
   <translation>Wähle die Spalte mit den Texten.</translation>
  </message>
  <message>
   <source>This is a PDF.</source>
   <translation>Das ist ein PDF.</translation>
  </message>
  <message>
   <source>Copy the table out of it and paste it here.</source>
   <translation>Kopiere die Tabelle heraus und füge sie hier ein.</translation>
  </message>
  <message>
   <source>This file is compressed.</source>
   <translation>Diese Datei ist gepackt.</translation>
  </message>
  <message>
   <source>Unpack it first.</source>
   <translation>Entpacke sie zuerst.</translation>
  </message>
  <message>
   <source>This is a database.</source>
   <translation>Das ist eine Datenbank.</translation>
  </message>
  <message>
   <source>Export the table as CSV first.</source>
   <translation>Exportiere die Tabelle zuerst als CSV.</translation>
  </message>
  <message>
   <source>This file has {size} MB, and {most} MB is the most.</source>
   <translation>Diese Datei hat {size} MB, und {most} MB sind das Höchste.</translation>
  </message>
  <message>
   <source>Take a part of it.</source>
   <translation>Nimm einen Teil davon.</translation>
  </message>
  <message>
   <source>This is no text file.</source>
   <translation>Das ist keine Textdatei.</translation>
  </message>
  <message>
   <source>Save the table as CSV, or copy and paste it.</source>
   <translation>Speichere die Tabelle als CSV, oder kopiere sie hierher.</translation>
  </message>
  <message>
   <source>This is a web page or XML.</source>
   <translation>Das ist eine Webseite oder XML.</translation>
  </message>
  <message>
   <source>This file is empty.</source>
   <translation>Diese Datei ist leer.</translation>
  </message>
  <message>
   <source>There is no encoding {name}.</source>
   <translation>Es gibt keine Kodierung {name}.</translation>
  </message>
  <message>
   <source>Usual ones are utf-8, cp1252, cp1251, gbk and shift_jis.</source>
   <translation>Üblich sind utf-8, cp1252, cp1251, gbk und shift_jis.</translation>
  </message>
  <message>
   <source>It can't be read as {encoding}.</source>
   <translation>Als {encoding} lässt sich die Datei nicht lesen.</translation>
  </message>
  <message>
   <source>Pick another encoding.</source>
   <translation>Wähle eine andere Kodierung.</translation>
  </message>
  <message>
   <source>One line above the table was passed over.</source>
   <translation>Eine Zeile über der Tabelle wurde übergangen.</translation>
  </message>
  <message>
   <source>One line can't be read as a row.</source>
   <translation>Eine Zeile der Datei lässt sich nicht lesen.</translation>
  </message>
  <message>
   <source>Only the first {MAX_GRID_ROWS} rows were read.</source>
   <translation>Nur die ersten {MAX_GRID_ROWS} Zeilen wurden gelesen.</translation>
  </message>
  <message>
   <source>This JSON can't be read.</source>
   <translation>Dieses JSON lässt sich nicht lesen.</translation>
  </message>
  <message>
   <source>It needs objects with a question and an answer.</source>
   <translation>Es braucht Objekte mit einer Frage und einer Antwort.</translation>
  </message>
  <message>
   <source>{bad} lines can't be read as rows.</source>
   <translation>{bad} Zeilen der Datei lassen sich nicht lesen.</translation>
  </message>
  <message>
   <source>The table can't be read further ({error}).</source>
   <translation>Die Tabelle lässt sich nicht weiterlesen ({error}).</translation>
  </message>
  <message>
   <source>Save it as CSV again.</source>
   <translation>Speichere sie noch einmal als CSV.</translation>
  </message>
  <message>
   <source>{above} lines above the table were passed over.</source>
   <translation>{above} Zeilen über der Tabelle wurden übergangen.</translation>
  </message>
  <message>
   <source>A quote is never closed, so quotes were read as ordinary characters.</source>
   <translation>Ein Anführungszeichen schließt nie. Alle gelten daher als gewöhnliche Zeichen.</translation>
  </message>
  <message>
   <source>Only {distinct} different questions are in it.</source>
   <translation>Darin stehen nur {distinct} verschiedene Fragen.</translation>
  </message>
  <message>
   <source>At least {MIN_QUESTIONS} are needed, as a fifth is kept aside for measuring.</source>
   <translation>Mindestens {MIN_QUESTIONS} sind nötig, denn ein Fünftel bleibt zum Messen beiseite.</translation>
  </message>
  <message>
   <source>It doesn't say which rows are kept aside.</source>
   <translation>Es fehlt, welche Zeilen beiseitegelegt sind.</translation>
  </message>
  <message>
   <source>Take the table that it was made from.</source>
   <translation>Nimm die Tabelle, aus der sie entstanden sind.</translation>
  </message>
  <message>
   <source>A set needs a name of 1 to {MAX_NAME} characters.</source>
   <translation>Die Fragen brauchen einen Namen mit 1 bis {MAX_NAME} Zeichen.</translation>
  </message>
  <message>
   <source>These are {rows} questions, and a set holds {MAX_ROWS} at most.</source>
   <translation>Das sind {rows} Fragen, und höchstens {MAX_ROWS} passen hinein.</translation>
  </message>
  <message>
   <source>An instruction has {MAX_INSTRUCTION} characters at most.</source>
   <translation>Eine Anweisung hat höchstens {MAX_INSTRUCTION} Zeichen.</translation>
  </message>
  <message>
   <source>An instruction is one line of text, without control characters.</source>
   <translation>Eine Anweisung ist eine Zeile Text, ohne Steuerzeichen.</translation>
  </message>
  <message>
   <source>Another program changed this question set.</source>
   <translation>Ein anderes Programm hat diese Fragen geändert.</translation>
  </message>
  <message>
   <source>The answers to choose from are too many or too long.</source>
   <translation>Die Antworten zur Auswahl sind zu viele oder zu lang.</translation>
  </message>
  <message>
   <source>Pick another check.</source>
   <translation>Wähl eine andere Prüfung.</translation>
  </message>
  <message>
   <source>There is no question in it.</source>
   <translation>Darin steht keine Frage.</translation>
  </message>
  <message>
   <source>This question set comes from a newer version of Shoal.</source>
   <translation>Diese Fragen kommen von einer neueren Shoal-Version.</translation>
  </message>
  <message>
   <source>Update Shoal, then try again.</source>
   <translation>Aktualisiere Shoal, dann versuch es noch einmal.</translation>
  </message>
  <message>
   <source>The check can't recognise the answer {answer}.</source>
   <translation>Die Prüfung erkennt die Antwort {answer} nicht.</translation>
  </message>
  <message>
   <source>This is no question set of Shoal's ({error}).</source>
   <translation>Das ist keine Fragensammlung von Shoal ({error}).</translation>
  </message>
  <message>
   <source>This JSON makes more cells than Shoal can hold.</source>
   <translation>Dieses JSON ergibt mehr Zellen, als Shoal halten kann.</translation>
  </message>
  <message>
   <source>No row can be used: {why}.</source>
   <translation>Keine Zeile ist brauchbar: {why}.</translation>
  </message>
  <message>
   <source>Shoal isn't sure which column is the answer.</source>
   <translation>Shoal ist nicht sicher, welche Spalte die Antwort ist.</translation>
  </message>
  <message>
   <source>Check the columns.</source>
   <translation>Prüf die Spalten.</translation>
  </message>
  <message>
   <source>Invisible characters were taken out.</source>
   <translation>Unsichtbare Zeichen wurden entfernt.</translation>
  </message>
  <message>
   <source>One text was cut after {MAX_QUESTION} characters.</source>
   <translation>Ein Text wurde nach {MAX_QUESTION} Zeichen abgeschnitten.</translation>
  </message>
  <message>
   <source>{cut} texts were cut after {MAX_QUESTION} characters.</source>
   <translation>{cut} Texte wurden nach {MAX_QUESTION} Zeichen abgeschnitten.</translation>
  </message>
  <message>
   <source>There must be 1 to {MAX_TEMPLATES} templates, not {blocks}.</source>
   <translation>Es müssen 1 bis {MAX_TEMPLATES} Vorlagen sein, nicht {blocks}.</translation>
  </message>
  <message>
   <source>The answer is missing below {question}.</source>
   <translation>Unter {question} fehlt die Antwort.</translation>
  </message>
  <message>
   <source>Add a line like answer:</source>
   <translation>Ergänze eine Zeile wie answer:</translation>
  </message>
  <message>
   <source>{question} is too long, or has more than {MAX_SLOTS} slots.</source>
   <translation>{question} ist zu lang oder hat mehr als {MAX_SLOTS} Lücken.</translation>
  </message>
  <message>
   <source>{name} needs a range like 2-12, or 1 to {MAX_WORDS} words with commas between.</source>
   <translation>{name} braucht einen Bereich wie 2-12 oder 1 bis {MAX_WORDS} Wörter mit Kommas dazwischen.</translation>
  </message>
  <message>
   <source>There must be 1 to {MAX_TEMPLATES} templates, not {given}.</source>
   <translation>Es müssen 1 bis {MAX_TEMPLATES} Vorlagen sein, nicht {given}.</translation>
  </message>
  <message>
   <source>{question} gets too long when its slots are filled:</source>
   <translation>{question} wird zu lang, wenn die Lücken gefüllt sind:</translation>
  </message>
  <message>
   <source>a question may have {MAX_FILLED} characters, and an answer {MAX_ANSWER}.</source>
   <translation>Eine Frage darf {MAX_FILLED} Zeichen haben, eine Antwort {MAX_ANSWER}.</translation>
  </message>
  <message>
   <source>Use shorter words, or fewer slots.</source>
   <translation>Nimm kürzere Wörter oder weniger Lücken.</translation>
  </message>
  <message>
   <source>No slot stands in {question}.</source>
   <translation>In {question} steht keine Lücke.</translation>
  </message>
  <message>
   <source>Put one there, like {a}.</source>
   <translation>Setz eine hinein, etwa {a}.</translation>
  </message>
  <message>
   <source>The answer's expression is longer than {MAX_EXPRESSION} characters.</source>
   <translation>Die Rechnung der Antwort ist länger als {MAX_EXPRESSION} Zeichen.</translation>
  </message>
  <message>
   <source>The answer {answer} has no value.</source>
   <translation>Die Antwort {answer} hat keinen Wert.</translation>
  </message>
  <message>
   <source>Use one-letter number slots with + - * / and ( ).</source>
   <translation>Nimm Zahlenlücken mit einem Buchstaben und + - * / ( ).</translation>
  </message>
  <message>
   <source>This line is no slot: {line}.</source>
   <translation>Diese Zeile ist keine Lücke: {line}.</translation>
  </message>
  <message>
   <source>Write it like a: 2-12.</source>
   <translation>Schreib sie wie a: 2-12.</translation>
  </message>
  <message>
   <source>{name}: {values} is no range:</source>
   <translation>{name}: {values} ist kein Bereich:</translation>
  </message>
  <message>
   <source>the smaller number comes first.</source>
   <translation>die kleinere Zahl steht vorn.</translation>
  </message>
  <message>
   <source>The slot {name} holds nothing to choose from, or too much.</source>
   <translation>Die Lücke {name} enthält nichts zur Auswahl, oder zu viel.</translation>
  </message>
  <message>
   <source>There is no slot {name}.</source>
   <translation>Es gibt keine Lücke {name}.</translation>
  </message>
  <message>
   <source>Add a line like {name2}: 2-12.</source>
   <translation>Ergänze eine Zeile wie {name2}: 2-12.</translation>
  </message>
  <message>
   <source>This is no spreadsheet that Shoal can read.</source>
   <translation>Diese Tabelle kann Shoal nicht lesen.</translation>
  </message>
  <message>
   <source>Save the table as XLSX or CSV.</source>
   <translation>Speichere sie als XLSX oder CSV.</translation>
  </message>
  <message>
   <source>This spreadsheet has more cells than Shoal can hold.</source>
   <translation>Diese Tabelle hat mehr Zellen, als Shoal aufnehmen kann.</translation>
  </message>
  <message>
   <source>Copy the table into a new one.</source>
   <translation>Kopiere den Bereich in eine neue Tabelle.</translation>
  </message>
  <message>
   <source>This spreadsheet has a password.</source>
   <translation>Diese Tabelle hat ein Passwort.</translation>
  </message>
  <message>
   <source>Save it without one first.</source>
   <translation>Speichere sie erst ohne.</translation>
  </message>
  <message>
   <source>It has {names} sheets.</source>
   <translation>Sie hat {names} Blätter.</translation>
  </message>
  <message>
   <source>{name} was read.</source>
   <translation>Gelesen wurde {name}.</translation>
  </message>
  <message>
   <source>{blank} formulas have no value and count as empty.</source>
   <translation>{blank} Formeln haben keinen Wert und gelten als leer.</translation>
  </message>
  <message>
   <source>Open the table in a spreadsheet program and save it, then add it again.</source>
   <translation>Öffne die Tabelle in einem Tabellenprogramm und speichere sie, dann füge sie noch einmal hinzu.</translation>
  </message>
  <message>
   <source>These coordinates cannot be a question's: {error}</source>
   <translation>Diese Koordinaten gehören zu keiner Frage: {error}</translation>
  </message>
  <message>
   <source>{family} at level {level}, seed {seed} was not made within {LOAD_SECONDS} seconds:</source>
   <translation>{family} auf Stufe {level}, Startwert {seed}, war nach {LOAD_SECONDS} Sekunden nicht fertig:</translation>
  </message>
  <message>
   <source>leave this question out.</source>
   <translation>Lass diese Frage aus.</translation>
  </message>
  <message>
   <source>The scoring process does not start ({reason}): {how}.</source>
   <translation>Die Prüfung der Antworten startet nicht ({reason}): {how}.</translation>
  </message>
  <message>
   <source>This group has {completions_G} completions, but {finished_G} marks of having ended:</source>
   <translation>Diese Gruppe hat {completions_G} Antworten, aber {finished_G} Angaben, ob sie zu Ende sind:</translation>
  </message>
  <message>
   <source>leave it out.</source>
   <translation>Lass sie weg.</translation>
  </message>
  <message>
   <source>The scoring process was closed:</source>
   <translation>Die Prüfung der Antworten wurde beendet:</translation>
  </message>
  <message>
   <source>open a new Sandbox.</source>
   <translation>Öffne eine neue Sandbox.</translation>
  </message>
  <message>
   <source>The scoring process is suspended:</source>
   <translation>Die Prüfung der Antworten ist angehalten:</translation>
  </message>
  <message>
   <source>resume it first.</source>
   <translation>Setze sie zuerst fort.</translation>
  </message>
  <message>
   <source>The scoring process didn't start within {minutes} minutes, as this computer is too busy.</source>
   <translation>Die Prüfung der Antworten ist nach {minutes} Minuten nicht gestartet, weil dieser Computer zu ausgelastet ist.</translation>
  </message>
  <message>
   <source>Close busy apps, then start again.</source>
   <translation>Schließ Apps, die viel rechnen, und starte dann neu.</translation>
  </message>
  <message>
   <source>there is no display here</source>
   <translation>hier ist kein Bildschirm</translation>
  </message>
  <message>
   <source>the display {where} does not answer</source>
   <translation>der Bildschirm {where} antwortet nicht</translation>
  </message>
  <message>
   <source>name another folder with SHOAL_PACKS</source>
   <translation>leg sie anderswohin</translation>
  </message>
  <message>
   <source>move the data folder</source>
   <translation>verschieb den Datenordner</translation>
  </message>
  <message>
   <source>install shoal-swarm and its requirements again, with pip</source>
   <translation>installiere shoal-swarm und was dazugehört noch einmal mit pip</translation>
  </message>
  <message>
   <source>repair the engine in Shoal's window, or with {command}</source>
   <translation>reparier die Engine in Shoals Fenster oder mit {command}</translation>
  </message>
  <message>
   <source>install Shoal again</source>
   <translation>installier Shoal neu</translation>
  </message>
  <message>
   <source>on or off</source>
   <translation>an oder aus</translation>
  </message>
  <message>
   <source>a whole number from {least} to {most}</source>
   <translation>eine ganze Zahl von {least} bis {most}</translation>
  </message>
  <message>
   <source>a list of at most {MAX_NAMES} names of programs</source>
   <translation>eine Liste mit höchstens {MAX_NAMES} Programmnamen</translation>
  </message>
  <message>
   <source>any, never, or hours such as 22:00-07:00</source>
   <translation>any, never oder Zeiten wie 22:00-07:00</translation>
  </message>
  <message>
   <source>one line of at most {MAX_TEXT_LENGTH} characters</source>
   <translation>eine Zeile mit höchstens {MAX_TEXT_LENGTH} Zeichen</translation>
  </message>
  <message>
   <source>power supply (Linux)</source>
   <translation>die Stromversorgung (Linux)</translation>
  </message>
  <message>
   <source>power profile (desktop)</source>
   <translation>das Energieprofil (Desktop)</translation>
  </message>
  <message>
   <source>power profile (firmware)</source>
   <translation>das Energieprofil (Firmware)</translation>
  </message>
  <message>
   <source>input idle time (GNOME's Mutter)</source>
   <translation>die Zeit ohne Eingabe (Mutter von GNOME)</translation>
  </message>
  <message>
   <source>input idle time (login manager; only as good as the desktop tells it)</source>
   <translation>die Zeit ohne Eingabe (Anmeldedienst; nur so gut, wie der Desktop sie nennt)</translation>
  </message>
  <message>
   <source>input idle time (macOS)</source>
   <translation>die Zeit ohne Eingabe (macOS)</translation>
  </message>
  <message>
   <source>low-power mode (macOS)</source>
   <translation>den Stromsparmodus (macOS)</translation>
  </message>
  <message>
   <source>thermal state (macOS)</source>
   <translation>den Wärmezustand (macOS)</translation>
  </message>
  <message>
   <source>graphics card load of others (NVIDIA)</source>
   <translation>die Last anderer auf der Grafikkarte (NVIDIA)</translation>
  </message>
  <message>
   <source>processor load of others</source>
   <translation>die Prozessorlast anderer</translation>
  </message>
  <message>
   <source>free memory</source>
   <translation>den freien Arbeitsspeicher</translation>
  </message>
  <message>
   <source>memory pressure (Linux)</source>
   <translation>die Speichernot (Linux)</translation>
  </message>
  <message>
   <source>temperature of processor and NVIDIA cards</source>
   <translation>die Temperatur von Prozessor und NVIDIA-Karten</translation>
  </message>
  <message>
   <source>power supply</source>
   <translation>die Stromversorgung</translation>
  </message>
  <message>
   <source>input idle time (Wayland)</source>
   <translation>die Zeit ohne Eingabe (Wayland)</translation>
  </message>
  <message>
   <source>input idle time (Windows)</source>
   <translation>die Zeit ohne Eingabe (Windows)</translation>
  </message>
  <message>
   <source>battery saver (Windows)</source>
   <translation>den Stromsparmodus (Windows)</translation>
  </message>
  <message>
   <source>full-screen program (Windows)</source>
   <translation>das Programm im Vollbild (Windows)</translation>
  </message>
  <message>
   <source>input idle time (X11)</source>
   <translation>die Zeit ohne Eingabe (X11)</translation>
  </message>
  <message>
   <source>full-screen program (X11)</source>
   <translation>das Programm im Vollbild (X11)</translation>
  </message>
 </context>
</TS>
