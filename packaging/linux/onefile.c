/* The one file for distributions without a package: this program, an archive behind it, and a note at the end.
 *
 * At its first start it unpacks itself into a folder of the person's cache, under another name until it is whole, and
 * becomes the program there; later starts only do the last. Folders of other versions go, unless they are running.
 * It is linked statically, so that it also starts where the app does not, and can say why.
 *
 * The archive is one xz stream of entries: kind (d, f, x for a program, l for a link, e for the end), length of the
 * path (16 bits), length of the content (64 bits), path, content. All numbers are little-endian, as is the machine.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <lzma.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

struct note {               /* packaging/linux/package.py writes it */
    char name[48];          /* of the folder: version and digest */
    uint32_t major, minor;  /* of the C library that the app needs */
    uint64_t packed, whole; /* bytes of the stream, and of what it holds */
    char sign[8];
};

static const char *const LIBRARIES[] = {
    "/lib/x86_64-linux-gnu/libc.so.6", "/lib/aarch64-linux-gnu/libc.so.6", "/lib64/libc.so.6", "/usr/lib64/libc.so.6",
    "/usr/lib/libc.so.6", "/lib/libc.so.6",
};
static const uint64_t SPARE = 64 << 20; /* bytes that stay free on the disk */

/* Ends with one sentence, in a small window too where nobody looks at a terminal. */
static void __attribute__((noreturn, format(printf, 1, 2))) give_up(const char *format, ...) {
    char text[2048];
    va_list words;
    va_start(words, format);
    vsnprintf(text, sizeof text, format, words);
    va_end(words);
    fprintf(stderr, "shoal: %s\n", text);
    if (!isatty(2) && (getenv("DISPLAY") || getenv("WAYLAND_DISPLAY"))) {
        if (fork() == 0) {
            execlp("zenity", "zenity", "--error", "--no-markup", "--title=Shoal", "--text", text, (char *)0);
            execlp("kdialog", "kdialog", "--title", "Shoal", "--error", text, (char *)0);
            execlp("xmessage", "xmessage", "-center", text, (char *)0);
            _exit(1);
        }
    }
    exit(1);
}

static void *some(size_t bytes) {
    void *found = malloc(bytes);
    if (!found)
        give_up("This computer's memory is used up: close other programs and start again.");
    return found;
}

static char *joined(const char *format, ...) {
    char *text;
    va_list words;
    va_start(words, format);
    if (vasprintf(&text, format, words) < 0)
        give_up("This computer's memory is used up: close other programs and start again.");
    va_end(words);
    return text;
}

/* Which C library this system has, by the sentence that the library itself holds. */
static void check_library(const struct note *note) {
    static const char SENTENCE[] = "GNU C Library", RELEASE[] = "release version ";
    for (size_t at = 0; at < sizeof LIBRARIES / sizeof *LIBRARIES; at++) {
        int file = open(LIBRARIES[at], O_RDONLY | O_CLOEXEC);
        struct stat info;
        if (file < 0 || fstat(file, &info))
            continue;
        char *bytes = mmap(0, info.st_size, PROT_READ, MAP_PRIVATE, file, 0);
        close(file);
        if (bytes == MAP_FAILED)
            continue;
        char *said = memmem(bytes, info.st_size, SENTENCE, sizeof SENTENCE - 1), *release = 0;
        unsigned major = 0, minor = 0;
        if (said)
            release = memmem(said, bytes + info.st_size - said, RELEASE, sizeof RELEASE - 1);
        if (release && sscanf(release + sizeof RELEASE - 1, "%u.%u", &major, &minor) == 2) {
            munmap(bytes, info.st_size);
            if (major < note->major || (major == note->major && minor < note->minor))
                give_up("This system is older than Shoal needs (its C library is %u.%u, and %u.%u is the oldest that "
                        "will do): update the system, or use Shoal on a newer one.",
                        major, minor, note->major, note->minor);
            return;
        }
        munmap(bytes, info.st_size);
    }
    give_up("This system has no GNU C library, which Shoal needs: use a distribution that has one, such as Debian, "
            "Fedora or Arch.");
}

/* The folder for unpacked versions, made if need be. */
static char *base(void) {
    const char *named = getenv("SHOAL_UNPACKED"), *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    char *path;
    if (named && *named == '/')
        path = joined("%s", named);
    else if (cache && *cache == '/')
        path = joined("%s/shoal/app", cache);
    else if (home && *home == '/')
        path = joined("%s/.cache/shoal/app", home);
    else
        give_up("There is no home folder to unpack Shoal into: name a folder with SHOAL_UNPACKED.");
    for (char *slash = path + 1;; slash++) {
        if (*slash && *slash != '/')
            continue;
        char kept = *slash;
        *slash = 0;
        int failed = mkdir(path, 0755) ? errno : 0;
        if (failed && failed != EEXIST && access(path, F_OK))
            give_up("%s cannot be made (%s): Shoal unpacks itself there; put that right, or name another folder with "
                    "SHOAL_UNPACKED.",
                    path, strerror(failed));
        *slash = kept;
        if (!kept)
            return path;
    }
}

struct source {
    int file;
    uint64_t left;
    lzma_stream stream;
    const char *to;
    uint8_t packed[1 << 16], open[1 << 20];
    size_t from, until; /* what of `open` has not been taken yet */
};

static void more(struct source *source) {
    source->stream.next_out = source->open;
    source->stream.avail_out = sizeof source->open;
    while (source->stream.avail_out == sizeof source->open) {
        if (!source->stream.avail_in && source->left) {
            size_t wanted = source->left < sizeof source->packed ? source->left : sizeof source->packed;
            ssize_t got = read(source->file, source->packed, wanted);
            if (got <= 0)
                give_up("This file is damaged: download it again.");
            source->left -= got;
            source->stream.next_in = source->packed;
            source->stream.avail_in = got;
        }
        lzma_ret said = lzma_code(&source->stream, source->left ? LZMA_RUN : LZMA_FINISH);
        if (said != LZMA_OK && said != LZMA_STREAM_END)
            give_up("This file is damaged: download it again.");
        if (said == LZMA_STREAM_END)
            break;
    }
    source->from = 0;
    source->until = sizeof source->open - source->stream.avail_out;
    if (!source->until)
        give_up("This file is damaged: download it again.");
}

static void take(struct source *source, void *to, uint64_t bytes) {
    for (uint8_t *at = to; bytes;) {
        if (source->from == source->until)
            more(source);
        size_t part = source->until - source->from < bytes ? source->until - source->from : bytes;
        memcpy(at, source->open + source->from, part);
        at += part, bytes -= part, source->from += part;
    }
}

static void __attribute__((noreturn)) refused(const char *path) {
    give_up("%s cannot be written (%s): Shoal unpacks itself there; put that right, or name another folder with "
            "SHOAL_UNPACKED.",
            path, strerror(errno));
}

static void unpack(struct source *source, const char *to) {
    for (;;) {
        uint8_t kind;
        uint16_t length;
        uint64_t bytes;
        take(source, &kind, 1);
        if (kind == 'e')
            return;
        take(source, &length, sizeof length);
        take(source, &bytes, sizeof bytes);
        char *name = some(length + 1);
        take(source, name, length);
        name[length] = 0;
        char *path = joined("%s/%s", to, name);
        if (kind == 'd') {
            if (mkdir(path, 0755))
                refused(path);
        } else if (kind == 'l') {
            char *target = some(bytes + 1);
            take(source, target, bytes);
            target[bytes] = 0;
            if (symlink(target, path))
                refused(path);
            free(target);
        } else {
            int file = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, kind == 'x' ? 0755 : 0644);
            if (file < 0)
                refused(path);
            while (bytes) {
                if (source->from == source->until)
                    more(source);
                size_t part = source->until - source->from < bytes ? source->until - source->from : bytes;
                ssize_t wrote = write(file, source->open + source->from, part);
                if (wrote <= 0)
                    refused(path);
                source->from += wrote, bytes -= wrote;
            }
            if (close(file))
                refused(path);
        }
        free(path);
        free(name);
    }
}

static int drop(const char *path, const struct stat *info, int kind, struct FTW *place) {
    (void)info, (void)kind, (void)place;
    return remove(path);
}

/* Under another name first: what is half deleted is never taken for an app. */
static void discard(const char *place, const char *path) {
    char *gone = joined("%s/.gone-%d", place, (int)getpid());
    nftw(rename(path, gone) ? path : gone, drop, 16, FTW_DEPTH | FTW_PHYS);
    free(gone);
}

/* Other versions, unless somebody runs them, and what an interrupted unpacking left. */
static void sweep(const char *place, const char *ours) {
    DIR *folder = opendir(place);
    for (struct dirent *entry; folder && (entry = readdir(folder));) {
        if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, "..") || !strcmp(entry->d_name, ".lock") ||
            !strcmp(entry->d_name, ours))
            continue;
        char *path = joined("%s/%s", place, entry->d_name), *used = joined("%s/onefile", path);
        int file = open(used, O_RDONLY | O_CLOEXEC);
        if (file < 0 || flock(file, LOCK_EX | LOCK_NB) == 0)
            discard(place, path);
        if (file >= 0)
            close(file);
        free(path);
        free(used);
    }
    if (folder)
        closedir(folder);
}

/* Under the lock: whoever comes second finds it done. */
static void provide(const char *place, const char *folder, const char *program, int file, const struct note *note) {
    char *door = joined("%s/.lock", place);
    int lock = open(door, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    if (lock < 0)
        refused(door);
    while (flock(lock, LOCK_EX))
        if (errno != EINTR)
            refused(door);
    if (access(program, X_OK)) {
        discard(place, folder); /* something cleaned the cache, but not all of it */
        sweep(place, note->name);
        struct statvfs disk;
        uint64_t free_bytes = statvfs(place, &disk) ? UINT64_MAX : (uint64_t)disk.f_bavail * disk.f_frsize;
        if (free_bytes < note->whole + SPARE)
            give_up("Shoal needs %u MB on the disk that holds %s, and %u MB are free: make some room, or name another "
                    "folder with SHOAL_UNPACKED.",
                    (unsigned)((note->whole + SPARE) / 1000000), place, (unsigned)(free_bytes / 1000000));
        char *fresh = joined("%s/.fresh-%d", place, (int)getpid());
        struct source *source = some(sizeof *source);
        memset(source, 0, sizeof *source);
        source->file = file;
        source->left = note->packed;
        source->stream = (lzma_stream)LZMA_STREAM_INIT;
        if (lzma_stream_decoder(&source->stream, UINT64_MAX, 0) != LZMA_OK || mkdir(fresh, 0755))
            refused(fresh);
        unpack(source, fresh);
        if (rename(fresh, folder))
            refused(folder);
        lzma_end(&source->stream);
        free(source);
        free(fresh);
    }
    close(lock);
    free(door);
}

int main(int count, char **words) {
    (void)count;
    char self[4096];
    ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
    int file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    struct note note;
    if (length < 0 || file < 0)
        give_up("This file cannot read itself (%s): is /proc there?", strerror(errno));
    self[length] = 0;
    if (lseek(file, -(off_t)sizeof note, SEEK_END) < 0 || read(file, &note, sizeof note) != sizeof note ||
        memcmp(note.sign, "SHOALONE", sizeof note.sign) ||
        lseek(file, -(off_t)(sizeof note + note.packed), SEEK_END) < 0)
        give_up("This file is not whole: download it again.");
    check_library(&note);
    char *place = base(), *folder = joined("%s/%s", place, note.name), *program = joined("%s/shoal", folder);
    if (access(program, X_OK))
        provide(place, folder, program, file, &note);
    char *mark = joined("%s/onefile", folder);
    int used = open(mark, O_RDONLY); /* stays open in the program: other versions see that this one runs */
    if (used >= 0)
        flock(used, LOCK_SH | LOCK_NB);
    setenv("SHOAL_ONEFILE", self, 1);
    words[0] = program;
    execv(program, words);
    give_up("%s does not start (%s): is that disk one that programs may not be started from? Name another folder with "
            "SHOAL_UNPACKED.",
            program, strerror(errno));
}
