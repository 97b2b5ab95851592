/* The sizes that app/desktop/windows/handing.py has to agree with, as Windows' own headers have them. */

#include <stddef.h>
#include <stdio.h>
#include <windows.h>

int main(void)
{
    printf("%d %d %d %d\n", (int)sizeof(JOBOBJECT_BASIC_LIMIT_INFORMATION),
           (int)sizeof(JOBOBJECT_EXTENDED_LIMIT_INFORMATION), (int)offsetof(JOBOBJECT_BASIC_LIMIT_INFORMATION, LimitFlags),
           (int)offsetof(JOBOBJECT_EXTENDED_LIMIT_INFORMATION, ProcessMemoryLimit));
    return 0;
}
