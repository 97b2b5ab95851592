/* Stands in for shoal.exe and shoal-cli.exe where an installer is tried: writes down what it was asked, behaves as a
   window that can be asked to end, and removes a data folder of two levels.

   STAND_IN_LOG   where it writes; STAND_IN_STUBBORN   a window that does not end; STAND_IN_FAILS   removes nothing */

#include <stdio.h>
#include <windows.h>

#define QUIT L"shoal-stand-in-quit"

static int asked(const wchar_t *words) { return wcsstr(GetCommandLineW(), words) != NULL; }

static void note(void)
{
    wchar_t path[1024];
    char line[4096];
    if (!GetEnvironmentVariableW(L"STAND_IN_LOG", path, 1024))
        return;
    HANDLE log = CreateFileW(path, FILE_APPEND_DATA, FILE_SHARE_READ | FILE_SHARE_WRITE, NULL, OPEN_ALWAYS, 0, NULL);
    int length = WideCharToMultiByte(CP_UTF8, 0, GetCommandLineW(), -1, line, sizeof line - 1, NULL, NULL);
    line[length - 1] = '\n';
    DWORD written;
    WriteFile(log, line, length, &written, NULL);
    CloseHandle(log);
}

static void empty(const wchar_t *folder)
{
    wchar_t every[1024], path[1024];
    WIN32_FIND_DATAW found;
    _snwprintf(every, 1024, L"%ls\\*", folder);
    HANDLE search = FindFirstFileW(every, &found);
    if (search != INVALID_HANDLE_VALUE) {
        do {
            _snwprintf(path, 1024, L"%ls\\%ls", folder, found.cFileName);
            if (!(found.dwFileAttributes & FILE_ATTRIBUTE_DIRECTORY))
                DeleteFileW(path);
            else if (found.cFileName[0] != L'.')
                empty(path);
        } while (FindNextFileW(search, &found));
        FindClose(search);
    }
    RemoveDirectoryW(folder);
}

int main(void)
{
    wchar_t home[1024];
    note();
    if (asked(L"remove --everything --yes")) {
        if (GetEnvironmentVariableW(L"STAND_IN_FAILS", home, 1024))
            return 1;
        ExpandEnvironmentStringsW(L"%LOCALAPPDATA%\\Shoal", home, 1024);
        empty(home);
        return 0;
    }
    if (asked(L"pack remove --yes"))
        return 0;
    HANDLE quit = CreateEventW(NULL, TRUE, FALSE, QUIT);
    if (asked(L"window --quit")) {
        if (!GetEnvironmentVariableW(L"STAND_IN_STUBBORN", home, 1024))
            SetEvent(quit);
        return 0;
    }
    return WaitForSingleObject(quit, 120000) == WAIT_OBJECT_0 ? 0 : 1;
}
