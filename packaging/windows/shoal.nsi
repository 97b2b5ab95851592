; Shoal's installer for Windows: for one person, without an administrator, into %LOCALAPPDATA%\Programs\Shoal.
;
;   shoal-0.2.0-setup.exe [/S] [/RUN] [/D=FOLDER]     /S asks nothing, /RUN starts Shoal when that is done
;   uninstall.exe [/S] [/DATA]                        /DATA also removes what the model learned, and all settings
;
; Exit codes, for whoever uses /S: 0 done; 1 ended by its owner; 2 something could not be written, and what was there
; before is there again; 3 not for this computer; 4 a newer Shoal is installed; 5 Shoal runs and does not end;
; 6 too little room; 7 (of the uninstaller) the program is gone, what the model learned could not be removed.
;
; package.py compiles it and gives VERSION, VERSION4, FILES, NEEDED_KB, PICTURES, OUT, TARGET and, to sign, FINISH.

Unicode true
Target ${TARGET}-unicode
SetCompressor /SOLID lzma
SetCompressorDictSize 64
SetDateSave off
RequestExecutionLevel user
ManifestDPIAware true
ManifestSupportedOS Win10
CRCCheck force
AllowSkipFiles off
ShowInstDetails nevershow
ShowUninstDetails nevershow
SetFont "Segoe UI" 9

!define PROGRAM "shoal.exe"
!define CONSOLE "shoal-cli.exe"
!define RUNTIME "_internal\python\python.exe"
!define UNINSTALLER "uninstall.exe"
!define BEFORE ".before"
!define UNINSTALL "Software\Microsoft\Windows\CurrentVersion\Uninstall\Shoal"
!define LOGIN "Software\Microsoft\Windows\CurrentVersion\Run"
!define LOGIN_SWITCH "Software\Microsoft\Windows\CurrentVersion\Explorer\StartupApproved\Run"
!define SCHEME "Software\Classes\shoal"
!define OLDEST_BUILD 17763 ; Windows 10 1809, the oldest that Qt supports
!define PATIENCE 60 ; halves of a second that a running Shoal gets for saving what it learned

Name "Shoal"
OutFile "${OUT}"
InstallDir "$LOCALAPPDATA\Programs\Shoal"
InstallDirRegKey HKCU "${UNINSTALL}" "InstallLocation"
BrandingText "Shoal ${VERSION}"

VIProductVersion "${VERSION4}"
!macro about LANGUAGE
  VIAddVersionKey /LANG=${LANGUAGE} "ProductName" "Shoal"
  VIAddVersionKey /LANG=${LANGUAGE} "ProductVersion" "${VERSION}"
  VIAddVersionKey /LANG=${LANGUAGE} "FileVersion" "${VERSION}"
  VIAddVersionKey /LANG=${LANGUAGE} "FileDescription" "Shoal Setup"
  VIAddVersionKey /LANG=${LANGUAGE} "CompanyName" "The Shoal authors"
  VIAddVersionKey /LANG=${LANGUAGE} "LegalCopyright" "The Shoal authors, Apache License 2.0"
!macroend

!include MUI2.nsh
!include LogicLib.nsh
!include FileFunc.nsh
!include WordFunc.nsh
!include WinVer.nsh
!include x64.nsh

Var data ; 1 where the owner wants what the model learned to go too
Var said ; what the last page of the uninstaller says
Var kept ; 1 while the program from before stands aside
Var box

!define MUI_ICON "${PICTURES}/shoal.ico"
!define MUI_UNICON "${PICTURES}/shoal.ico"
!define MUI_HEADERIMAGE
!define MUI_HEADERIMAGE_RIGHT
!define MUI_HEADERIMAGE_BITMAP "${PICTURES}/header-100.bmp"
!define MUI_WELCOMEFINISHPAGE_BITMAP "${PICTURES}/side-100.bmp"
!define MUI_UNWELCOMEFINISHPAGE_BITMAP "${PICTURES}/side-100.bmp"
!define MUI_BGCOLOR "FFFFFF"
!define MUI_TEXTCOLOR "0F2429"
!define MUI_INSTFILESPAGE_PROGRESSBAR "smooth"
!define MUI_CUSTOMFUNCTION_GUIINIT sharpen
!define MUI_CUSTOMFUNCTION_UNGUIINIT un.sharpen
!define MUI_FINISHPAGE_NOREBOOTSUPPORT

!define MUI_WELCOMEPAGE_TITLE "$(WELCOME)"
!define MUI_WELCOMEPAGE_TEXT "$(WELCOME_TEXT)"
!define MUI_PAGE_CUSTOMFUNCTION_SHOW welcome_button
!insertmacro MUI_PAGE_WELCOME
!insertmacro MUI_PAGE_INSTFILES
!define MUI_FINISHPAGE_TITLE "$(READY)"
!define MUI_FINISHPAGE_TEXT "$(READY_TEXT)"
!define MUI_FINISHPAGE_RUN "$INSTDIR\${PROGRAM}"
!define MUI_FINISHPAGE_RUN_TEXT "$(START)"
!insertmacro MUI_PAGE_FINISH

UninstPage custom un.ask un.answered
!insertmacro MUI_UNPAGE_INSTFILES
!define MUI_FINISHPAGE_TITLE "$(GONE)"
!define MUI_FINISHPAGE_TEXT "$said"
!insertmacro MUI_UNPAGE_FINISH

!insertmacro MUI_LANGUAGE "English"
!insertmacro about ${LANG_ENGLISH}
!insertmacro MUI_LANGUAGE "German"
!insertmacro about ${LANG_GERMAN}
!include texts.nsh

!ifdef FINISH ; signs a file in its place; the uninstaller is signed before it is packed
  !finalize '${FINISH} "%1"' = 0
  !uninstfinalize '${FINISH} "%1"' = 0
!endif

!macro refuse CODE TEXT
  SetErrorLevel ${CODE}
  MessageBox MB_OK|MB_ICONSTOP "${TEXT}" /SD IDOK
  Quit
!macroend

!macro look_at FILE ; puts it into $0 where a process runs it
  ${If} ${FileExists} "$INSTDIR\${FILE}"
    ClearErrors
    FileOpen $1 "$INSTDIR\${FILE}" a
    ${If} ${Errors}
      StrCpy $0 "${FILE}"
    ${Else}
      FileClose $1
    ${EndIf}
  ${EndIf}
!macroend

!macro shared UN
  ; What runs of the Shoal in $INSTDIR: one of its files in $0, or nothing.
  Function ${UN}running
    StrCpy $0 ""
    !insertmacro look_at "${RUNTIME}"
    !insertmacro look_at "${CONSOLE}"
    !insertmacro look_at "${PROGRAM}"
  FunctionEnd

  ; Asks a running Shoal to save and end. Nothing is ended by force: where it goes on, its owner is asked.
  Function ${UN}close
    again:
    Call ${UN}running
    ${If} $0 == ""
      Return
    ${EndIf}
    DetailPrint "$(CLOSING)"
    ExecShell "" "$INSTDIR\${PROGRAM}" "window --quit" SW_HIDE
    StrCpy $2 ${PATIENCE}
    ${DoWhile} $2 > 0
      Sleep 500
      Call ${UN}running
      ${If} $0 == ""
        Sleep 500 ; its folder is let go of a moment later
        Return
      ${EndIf}
      IntOp $2 $2 - 1
    ${Loop}
    SetErrorLevel 5
    MessageBox MB_RETRYCANCEL|MB_ICONEXCLAMATION "$(RUNS)" /SD IDCANCEL IDRETRY again
    Abort "$(RUNS)"
  FunctionEnd

  ; Pictures for the screen's own resolution.
  Function ${UN}sharpen
    System::Call 'user32::GetDC(p 0) p .r1'
    System::Call 'gdi32::GetDeviceCaps(p r1, i 88) i .r0'
    System::Call 'user32::ReleaseDC(p 0, p r1)'
    ${If} $0 >= 168
      File "/oname=$PLUGINSDIR\modern-wizard.bmp" "${PICTURES}/side-200.bmp"
      File "/oname=$PLUGINSDIR\modern-header.bmp" "${PICTURES}/header-200.bmp"
      SetBrandingImage /IMGID=1046 /RESIZETOFIT "$PLUGINSDIR\modern-header.bmp"
    ${ElseIf} $0 >= 120
      File "/oname=$PLUGINSDIR\modern-wizard.bmp" "${PICTURES}/side-150.bmp"
      File "/oname=$PLUGINSDIR\modern-header.bmp" "${PICTURES}/header-150.bmp"
      SetBrandingImage /IMGID=1046 /RESIZETOFIT "$PLUGINSDIR\modern-header.bmp"
    ${EndIf}
  FunctionEnd
!macroend
!insertmacro shared ""
!insertmacro shared "un."

Function .onInit
  ${IfNot} ${AtLeastWin10}
  ${OrIfNot} ${AtLeastBuild} ${OLDEST_BUILD}
    !insertmacro refuse 3 "$(TOO_OLD)"
  ${EndIf}
  ${If} ${IsNativeARM64}
  ${OrIfNot} ${RunningX64}
    !insertmacro refuse 3 "$(OTHER_PROCESSOR)"
  ${EndIf}
  ReadRegStr $1 HKCU "${UNINSTALL}" "DisplayVersion"
  ${If} $1 != ""
    ${VersionCompare} "$1" "${VERSION}" $0
    ${If} $0 == 1
      SetErrorLevel 4
      MessageBox MB_YESNO|MB_ICONQUESTION|MB_DEFBUTTON2 "$(NEWER)" /SD IDNO IDYES older
      Quit
      older:
      SetErrorLevel 0
    ${EndIf}
  ${EndIf}
  ${If} ${FileExists} "$INSTDIR\_internal"
  ${AndIfNot} ${FileExists} "$INSTDIR\_internal\source\*.*"
    !insertmacro refuse 2 "$(ANOTHER)" ; PyInstaller gives every program's folder this name
  ${EndIf}
  Call room
FunctionEnd

; The old program stays until the new one is whole, so there must be room for both.
Function room
  StrCpy $0 $INSTDIR
  ${DoUntil} ${FileExists} "$0\*.*"
    ${GetParent} $0 $1
    ${If} $1 == ""
      ${ExitDo}
    ${EndIf}
    StrCpy $0 $1
  ${Loop}
  System::Call 'kernel32::GetDiskFreeSpaceExW(w "$0\", *l .r1, p 0, p 0) i .r2'
  ${If} $2 == 0
    Return ; a folder that cannot be made is told when it is made
  ${EndIf}
  System::Int64Op $1 / 1048576
  Pop $1
  StrCpy $2 ${NEEDED_KB}
  IntOp $2 $2 / 1024
  System::Int64Op $1 < $2
  Pop $3
  ${If} $3 == 1
    !insertmacro refuse 6 "$(NO_ROOM)"
  ${EndIf}
FunctionEnd

Function welcome_button
  GetDlgItem $0 $HWNDPARENT 1
  SendMessage $0 ${WM_SETTEXT} 0 "STR:$(^InstallBtn)"
FunctionEnd

!macro aside NAME
  ${If} ${FileExists} "$INSTDIR\${NAME}"
    ClearErrors
    Rename "$INSTDIR\${NAME}" "$INSTDIR\${BEFORE}\${NAME}"
    ${If} ${Errors}
      Call put_back
      SetErrorLevel 5
      MessageBox MB_OK|MB_ICONEXCLAMATION "$(RUNS)" /SD IDOK
      Abort "$(RUNS)"
    ${EndIf}
  ${EndIf}
!macroend

!macro back NAME
  ${If} ${FileExists} "$INSTDIR\${BEFORE}\${NAME}"
    RMDir /r "$INSTDIR\${NAME}"
    Delete "$INSTDIR\${NAME}"
    Rename "$INSTDIR\${BEFORE}\${NAME}" "$INSTDIR\${NAME}"
  ${EndIf}
!macroend

; The program from before, as it was. Where there was none, nothing is left.
Function put_back
  ${If} $kept == 1
    SetOutPath $TEMP
    !insertmacro back "_internal"
    !insertmacro back "${CONSOLE}"
    !insertmacro back "${PROGRAM}"
    RMDir "$INSTDIR\${BEFORE}"
    StrCpy $kept ""
  ${EndIf}
FunctionEnd

Function .onInstFailed
  ${If} $kept == 1
    Call put_back
  ${ElseIf} $kept == 0
    SetOutPath $TEMP
    RMDir /r "$INSTDIR\_internal"
    Delete "$INSTDIR\${CONSOLE}"
    Delete "$INSTDIR\${PROGRAM}"
    RMDir "$INSTDIR"
  ${EndIf}
FunctionEnd

Function .onInstSuccess
  ${If} ${Silent}
    ${GetParameters} $0
    ClearErrors
    ${GetOptions} $0 "/RUN" $1
    ${IfNot} ${Errors}
      Exec '"$INSTDIR\${PROGRAM}"'
    ${EndIf}
  ${EndIf}
FunctionEnd

Section
  Call close
  DetailPrint "$(UNPACKING)"
  SetDetailsPrint listonly
  RMDir /r "$INSTDIR\${BEFORE}"
  StrCpy $kept 0
  ${If} ${FileExists} "$INSTDIR\${PROGRAM}"
  ${OrIf} ${FileExists} "$INSTDIR\_internal"
    StrCpy $kept 1
    CreateDirectory "$INSTDIR\${BEFORE}"
    !insertmacro aside "_internal" ; fails where a process uses one of its files
    !insertmacro aside "${CONSOLE}"
    !insertmacro aside "${PROGRAM}"
  ${EndIf}
  SetErrorLevel 2 ; for as long as something can fail
  ClearErrors
  SetOutPath "$INSTDIR"
  ${IfNot} ${Errors}
    File /r "${FILES}"
    WriteUninstaller "$INSTDIR\${UNINSTALLER}"
  ${EndIf}
  ${If} ${Errors}
    MessageBox MB_OK|MB_ICONSTOP "$(NOT_WRITTEN)" /SD IDOK
    Abort "$(NOT_WRITTEN)"
  ${EndIf}
  SetErrorLevel 0
  StrCpy $kept "" ; from here on it is the new one
  SetOutPath $TEMP
  RMDir /r "$INSTDIR\${BEFORE}"

  ${GetSize} "$INSTDIR" "/S=0K" $0 $1 $2
  ${GetTime} "" "L" $1 $2 $3 $4 $5 $6 $7
  WriteRegStr HKCU "${UNINSTALL}" "DisplayName" "Shoal"
  WriteRegStr HKCU "${UNINSTALL}" "DisplayVersion" "${VERSION}"
  WriteRegStr HKCU "${UNINSTALL}" "Publisher" "The Shoal authors"
  WriteRegStr HKCU "${UNINSTALL}" "DisplayIcon" "$INSTDIR\${PROGRAM}"
  WriteRegStr HKCU "${UNINSTALL}" "InstallLocation" "$INSTDIR"
  WriteRegStr HKCU "${UNINSTALL}" "InstallDate" "$3$2$1"
  WriteRegStr HKCU "${UNINSTALL}" "UninstallString" '"$INSTDIR\${UNINSTALLER}"'
  WriteRegStr HKCU "${UNINSTALL}" "QuietUninstallString" '"$INSTDIR\${UNINSTALLER}" /S'
  WriteRegDWORD HKCU "${UNINSTALL}" "EstimatedSize" $0
  WriteRegDWORD HKCU "${UNINSTALL}" "NoModify" 1
  WriteRegDWORD HKCU "${UNINSTALL}" "NoRepair" 1

  ; What comes after "--" is never taken for an option, whatever a page writes into its link.
  WriteRegStr HKCU "${SCHEME}" "" "URL:Shoal"
  WriteRegStr HKCU "${SCHEME}" "URL Protocol" ""
  WriteRegStr HKCU "${SCHEME}\DefaultIcon" "" '"$INSTDIR\${PROGRAM}",0'
  WriteRegStr HKCU "${SCHEME}\shell\open\command" "" '"$INSTDIR\${PROGRAM}" window -- "%1"'

  CreateShortCut "$SMPROGRAMS\Shoal.lnk" "$INSTDIR\${PROGRAM}" "" "$INSTDIR\${PROGRAM}" 0 SW_SHOWNORMAL "" "$(COMMENT)"
SectionEnd

; Whether the command line in $0 starts something in $INSTDIR: 1 in $0, else nothing.
Function un.ours
  StrLen $1 "$INSTDIR\"
  StrCpy $2 $0 1
  ${If} $2 == '"'
    StrCpy $0 $0 "" 1
  ${EndIf}
  StrCpy $0 $0 $1
  ${If} $0 == "$INSTDIR\"
    StrCpy $0 1
  ${Else}
    StrCpy $0 ""
  ${EndIf}
FunctionEnd

Function un.onInit
  ${GetParameters} $0
  ClearErrors
  ${GetOptions} $0 "/DATA" $1
  ${IfNot} ${Errors}
    StrCpy $data 1
  ${EndIf}
FunctionEnd

Function un.ask
  !insertmacro MUI_HEADER_TEXT "$(REMOVE)" "$(REMOVE_TEXT)"
  nsDialogs::Create 1018
  Pop $0
  ${NSD_CreateLabel} 0 0 100% 34u "$(GOES)"
  Pop $0
  ${NSD_CreateCheckbox} 0 40u 100% 12u "$(DATA_TOO)"
  Pop $box
  ${If} $data == 1
    ${NSD_Check} $box
  ${EndIf}
  ${NSD_CreateLabel} 12u 54u -12u 26u "$(DATA_WHERE)"
  Pop $0
  ${NSD_CreateLabel} 0 86u 100% 24u "$(STAYS)"
  Pop $0
  GetDlgItem $0 $HWNDPARENT 1
  SendMessage $0 ${WM_SETTEXT} 0 "STR:$(^UninstallBtn)"
  nsDialogs::Show
FunctionEnd

Function un.answered
  ${NSD_GetState} $box $0
  StrCpy $data ""
  ${If} $0 == ${BST_CHECKED}
    StrCpy $data 1
  ${EndIf}
FunctionEnd

; The engines and, where it is wanted, the data go by the program's own commands: they know where their owner moved
; them to, and what in that folder is somebody else's.
Section "Uninstall"
  Call un.close
  SetDetailsPrint listonly
  StrCpy $said "$(KEPT)"
  ${If} $data == 1
    nsExec::ExecToStack '"$INSTDIR\${CONSOLE}" remove --everything --yes'
    Pop $0
    Pop $1
    ${If} $0 == 0
      StrCpy $said "$(ALL_GONE)"
    ${Else}
      SetErrorLevel 7
      StrCpy $said "$(NOT_REMOVED)"
    ${EndIf}
  ${Else}
    nsExec::ExecToStack '"$INSTDIR\${CONSOLE}" pack remove --yes'
    Pop $0
    Pop $1
    RMDir /r "\\?\$LOCALAPPDATA\Shoal\packs" ; also where a path in it is longer than Windows' usual 260 letters
    RMDir "$LOCALAPPDATA\Shoal" ; only where it is empty
    ${IfNot} ${FileExists} "$LOCALAPPDATA\Shoal\*.*"
      StrCpy $said "$(ALL_GONE)"
    ${EndIf}
  ${EndIf}

  ReadRegStr $0 HKCU "${LOGIN}" "Shoal"
  Call un.ours
  ${If} $0 == 1
    DeleteRegValue HKCU "${LOGIN}" "Shoal"
    DeleteRegValue HKCU "${LOGIN_SWITCH}" "Shoal"
  ${EndIf}
  ReadRegStr $0 HKCU "${SCHEME}\shell\open\command" ""
  Call un.ours
  ${If} $0 == 1
    DeleteRegKey HKCU "${SCHEME}"
  ${EndIf}
  DeleteRegKey HKCU "${UNINSTALL}"
  Delete "$SMPROGRAMS\Shoal.lnk"

  SetOutPath $TEMP
  RMDir /r "$INSTDIR\_internal"
  RMDir /r "$INSTDIR\${BEFORE}"
  Delete "$INSTDIR\${CONSOLE}"
  Delete "$INSTDIR\${PROGRAM}"
  Delete "$INSTDIR\${UNINSTALLER}"
  RMDir "$INSTDIR" ; whatever somebody else put there stays, and so does the folder
  ${If} ${FileExists} "$INSTDIR\*.*"
    StrCpy $said "$said$\r$\n$\r$\n$(LEFT)"
  ${EndIf}
SectionEnd
