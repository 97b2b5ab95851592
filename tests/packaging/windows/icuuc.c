/* Stands in for Windows' icuuc.dll, which Wine 8 lacks and Qt6Core.dll is linked with: converters that are not there. */

#define NONE(name) __declspec(dllexport) void *name(void) { return 0; }

__declspec(dllexport) void *ucnv_open(const char *name, int *error)
{
    (void)name;
    *error = 4; /* U_FILE_ACCESS_ERROR */
    return 0;
}

NONE(ucnv_close)
NONE(UCNV_FROM_U_CALLBACK_SUBSTITUTE)
NONE(UCNV_TO_U_CALLBACK_SUBSTITUTE)
NONE(ucnv_reset)
NONE(ucnv_getMaxCharSize)
NONE(ucnv_getName)
NONE(ucnv_getToUCallBack)
NONE(ucnv_getFromUCallBack)
NONE(ucnv_setToUCallBack)
NONE(ucnv_setFromUCallBack)
NONE(ucnv_cbToUWriteUChars)
NONE(ucnv_toUnicode)
NONE(ucnv_cbFromUWriteUChars)
NONE(ucnv_toUCountPending)
NONE(ucnv_fromUCountPending)
NONE(ucnv_getStandardName)
NONE(ucnv_getAvailableName)
NONE(ucnv_countAvailable)
NONE(ucnv_fromUnicode)
