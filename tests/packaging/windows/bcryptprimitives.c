/* Stands in for Windows' bcryptprimitives.dll, which Wine 8 lacks and uv.exe is linked with. */

#include <windows.h>
#include <ntsecapi.h>

__declspec(dllexport) BOOL ProcessPrng(PBYTE data, SIZE_T length) { return RtlGenRandom(data, (ULONG)length); }
