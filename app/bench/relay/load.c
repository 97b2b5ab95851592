/* Puts a load on a relay: prebuilt frames over connections that are open and signed in already.
 *
 *     load PLAN TIMES
 *
 * PLAN is what app/bench/relay/loading.py writes, in this machine's own byte order. The sockets are inherited. One line
 * of JSON goes to standard output; TIMES gets every measured time as 32-bit microseconds: publishes, samples,
 * then by how much each send came late.
 *
 * With a rate the load is open: rounds/s on average with exponential gaps, whatever the relay answers, and a
 * time counts from the moment at which its frame was due, so that a stall is seen by everything that it delays.
 * Without one every connection does one round after another: publish, its answer, sample, its batch. */

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

enum { OPEN = 64, QUEUE = 160, COUNTED = 8, KINDS = 32, NAME = 32, CHUNK = 1 << 20, LONGEST = 4 << 20, PONG = 6 + 125 };

struct head {
    char magic[8];
    uint32_t connections, sample_bytes;
    uint64_t rounds;
    double rate, seconds, patience;
    uint64_t seed;
};

struct piece {
    const uint8_t *at;
    size_t left;
};

struct line {
    int fd, dead, writing;
    uint64_t next;                       /* its next round */
    struct piece out[QUEUE];             /* not yet taken by the kernel */
    unsigned first, queued;
    uint64_t publishes[OPEN], samples[OPEN]; /* when those without an answer were due */
    unsigned publish_first, publishes_open, sample_first, samples_open;
    uint8_t *in;                         /* a frame that has not come whole */
    size_t held, room;
    uint8_t pong[PONG];
    int pong_waits;
};

struct times {
    uint32_t *us;
    uint64_t n, room;
};

static struct head head;
static struct line *lines;
static const uint8_t *sample_frame, *frames;
static const uint64_t *offsets;
static struct times published, sampled, late;
static char kinds[KINDS][NAME];
static uint64_t kind_counts[KINDS];
static uint64_t accepted, batches, counted, items, dead, overrun, open_now, bytes_in, bytes_out, progress_ns;
static int poller;

static void fail(const char *what) {
    fprintf(stderr, "%s: %s\n", what, strerror(errno));
    exit(1);
}

static uint64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void note(struct times *to, uint64_t ns) {
    if (to->n == to->room) {
        to->room = to->room ? 2 * to->room : 4096;
        if (!(to->us = realloc(to->us, to->room * sizeof *to->us))) fail("memory");
    }
    uint64_t us = ns / 1000;
    to->us[to->n++] = us > UINT32_MAX ? UINT32_MAX : (uint32_t)us;
}

/* Counts an answer that is not what was hoped for, by its type and code. */
static void other(const char *name, size_t n) {
    if (n >= NAME) n = NAME - 1;
    for (int i = 0; i < KINDS; i++) {
        if (!kinds[i][0])
            for (size_t j = 0; j < n; j++)
                kinds[i][j] = (name[j] >= 'a' && name[j] <= 'z') || name[j] == '-' || name[j] == ' ' ? name[j] : '?';
        if (strlen(kinds[i]) == n && !memcmp(kinds[i], name, n)) {
            kind_counts[i]++;
            return;
        }
    }
}

static void watch(struct line *line, int writing) {
    if (line->writing == writing) return;
    struct epoll_event event = {.events = EPOLLIN | (writing ? EPOLLOUT : 0), .data.ptr = line};
    if (epoll_ctl(poller, EPOLL_CTL_MOD, line->fd, &event)) fail("epoll_ctl");
    line->writing = writing;
}

static void lose(struct line *line) {
    if (line->dead) return;
    line->dead = 1;
    dead++;
    open_now -= line->publishes_open + line->samples_open;
    epoll_ctl(poller, EPOLL_CTL_DEL, line->fd, NULL);
    close(line->fd);
}

static void flush(struct line *line) {
    while (line->queued) {
        struct piece *piece = &line->out[line->first];
        ssize_t n = send(line->fd, piece->at, piece->left, MSG_NOSIGNAL);
        if (n < 0) {
            if (errno == EINTR) continue;
            if (errno != EAGAIN) {
                lose(line);
                return;
            }
            break;
        }
        bytes_out += (uint64_t)n;
        piece->at += n;
        piece->left -= (size_t)n;
        if (!piece->left) {
            if (piece->at == line->pong + PONG) line->pong_waits = 0;
            line->first = (line->first + 1) % QUEUE;
            line->queued--;
        }
    }
    watch(line, line->queued > 0);
}

static int put(struct line *line, const uint8_t *at, size_t n) {
    if (line->dead || line->queued == QUEUE) return 0;
    line->out[(line->first + line->queued++) % QUEUE] = (struct piece){at, n};
    if (line->queued == 1) flush(line);
    return !line->dead;
}

static void publish(struct line *line, uint64_t due) {
    uint64_t round = line->next;
    if (line->dead || line->publishes_open == OPEN) {
        overrun++;
        return;
    }
    line->next += head.connections;
    line->publishes[(line->publish_first + line->publishes_open++) % OPEN] = due;
    open_now++;
    put(line, frames + offsets[round], (size_t)(offsets[round + 1] - offsets[round]));
}

static void sample(struct line *line, uint64_t due) {
    if (line->dead || line->samples_open == OPEN) {
        overrun++;
        return;
    }
    line->samples[(line->sample_first + line->samples_open++) % OPEN] = due;
    open_now++;
    put(line, sample_frame, head.sample_bytes);
}

static int close_publish(struct line *line, uint64_t now) {
    if (!line->publishes_open) return 0;
    note(&published, now - line->publishes[line->publish_first]);
    line->publish_first = (line->publish_first + 1) % OPEN;
    line->publishes_open--;
    open_now--;
    return 1;
}

static int close_sample(struct line *line, uint64_t now) {
    if (!line->samples_open) return 0;
    note(&sampled, now - line->samples[line->sample_first]);
    line->sample_first = (line->sample_first + 1) % OPEN;
    line->samples_open--;
    open_now--;
    return 1;
}

static int begins(const char *text, size_t n, const char *with) {
    size_t length = strlen(with);
    return n >= length && !memcmp(text, with, length);
}

/* One message. What comes unasked, such as figures or a notice, is counted and changes nothing. */
static void answer(struct line *line, const char *text, size_t n, int closed_loop, int going, uint64_t now) {
    static const char CODE[] = "\"code\":\"", SIG[] = "\"sig\":\"";
    progress_ns = now;
    if (begins(text, n, "{\"t\":\"batch\"")) {
        if (batches++ % COUNTED == 0) { /* to look through every one would take much of what the relay needs */
            counted++;
            for (const char *at = text, *end = text + n; (at = memmem(at, (size_t)(end - at), SIG, sizeof SIG - 1)); items++)
                at += sizeof SIG - 1;
        }
        if (close_sample(line, now) && closed_loop && going && line->next < head.rounds) publish(line, now);
        return;
    }
    int ok = begins(text, n, "{\"t\":\"ok\""), err = begins(text, n, "{\"t\":\"err\"");
    if (ok || err) {
        const char *code = memmem(text, n, CODE, sizeof CODE - 1), *end = NULL;
        if (code) {
            code += sizeof CODE - 1;
            end = memchr(code, '"', (size_t)(text + n - code));
        }
        if (ok && end && (size_t)(end - code) == 8 && !memcmp(code, "accepted", 8))
            accepted++;
        else if (end)
            other(code, (size_t)(end - code));
        else
            other("no code", 7);
        if (ok ? close_publish(line, now) : close_sample(line, now) || close_publish(line, now))
            if (closed_loop && going) {
                if (ok) sample(line, now);
                else if (line->next < head.rounds) publish(line, now);
            }
        return;
    }
    if (begins(text, n, "{\"t\":\"")) {
        const char *name = text + 6, *end = memchr(name, '"', n - 6);
        if (end) {
            other(name, (size_t)(end - name));
            return;
        }
    }
    other("no message", 10);
}

static void pong(struct line *line, const uint8_t *payload, size_t n) {
    if (line->pong_waits || n > 125) return;
    uint8_t *at = line->pong + PONG - 6 - n; /* it ends where the field ends, by which `flush` knows it */
    memcpy(at, (const uint8_t[]){0x8a, (uint8_t)(0x80 | n), 0, 0, 0, 0}, 6);
    memcpy(at + 6, payload, n);
    line->pong_waits = 1;
    put(line, at, n + 6);
}

/* How many bytes of whole frames there are; all are answered. */
static size_t take(struct line *line, const uint8_t *at, size_t n, int closed_loop, int going, uint64_t now) {
    size_t done = 0;
    while (!line->dead && n - done >= 2) {
        const uint8_t *frame = at + done;
        size_t start = 2, length = frame[1] & 0x7f, left = n - done;
        if (length == 126) {
            if (left < 4) break;
            length = (size_t)frame[2] << 8 | frame[3];
            start = 4;
        } else if (length == 127) {
            if (left < 10) break;
            length = 0;
            for (int i = 2; i < 10; i++) length = length << 8 | frame[i];
            start = 10;
        }
        if (length > LONGEST) {
            other("too long", 8);
            lose(line);
            break;
        }
        if (left < start + length) break;
        switch (frame[0]) {
        case 0x81: answer(line, (const char *)frame + start, length, closed_loop, going, now); break;
        case 0x89: pong(line, frame + start, length); break;
        case 0x8a: break;
        case 0x88:
            other("close", 5);
            lose(line);
            break;
        default: other("another frame", 13);
        }
        done += start + length;
    }
    return done;
}

static void readable(struct line *line, int closed_loop, int going) {
    static uint8_t chunk[CHUNK];
    for (;;) {
        ssize_t n = recv(line->fd, chunk, sizeof chunk, 0);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0 && errno == EAGAIN) return;
        if (n <= 0) {
            lose(line);
            return;
        }
        uint64_t now = now_ns();
        bytes_in += (uint64_t)n;
        const uint8_t *at = chunk;
        size_t total = (size_t)n;
        if (line->held) {
            if (line->held + total > line->room) {
                line->room = line->held + total + 65536;
                if (!(line->in = realloc(line->in, line->room))) fail("memory");
            }
            memcpy(line->in + line->held, chunk, total);
            at = line->in;
            total += line->held;
        }
        size_t done = take(line, at, total, closed_loop, going, now);
        if (line->dead) return;
        line->held = total - done;
        if (!line->held) {
            free(line->in);
            line->in = NULL;
            line->room = 0;
        } else if (at == line->in) {
            memmove(line->in, line->in + done, line->held);
        } else {
            line->room = line->held + 65536;
            if (!(line->in = malloc(line->room))) fail("memory");
            memcpy(line->in, at + done, line->held);
        }
        if ((size_t)n < sizeof chunk) return;
    }
}

static double chance(void) { /* xorshift64*, in (0, 1] */
    head.seed ^= head.seed >> 12;
    head.seed ^= head.seed << 25;
    head.seed ^= head.seed >> 27;
    return (double)((head.seed * 0x2545f4914f6cdd1du >> 11) + 1) / 9007199254740992.0;
}

static void save(const char *path) {
    FILE *file = fopen(path, "wb");
    if (!file) fail(path);
    struct times *all[] = {&published, &sampled, &late};
    for (int i = 0; i < 3; i++)
        if (all[i]->n && fwrite(all[i]->us, sizeof(uint32_t), all[i]->n, file) != all[i]->n) fail(path);
    if (fclose(file)) fail(path);
}

int main(int argc, char **argv) {
    if (argc != 3) {
        fputs("load PLAN TIMES\n", stderr);
        return 2;
    }
    int plan = open(argv[1], O_RDONLY);
    struct stat status;
    if (plan < 0 || fstat(plan, &status)) fail(argv[1]);
    const uint8_t *map = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_PRIVATE | MAP_POPULATE, plan, 0);
    if (map == MAP_FAILED) fail(argv[1]);
    memcpy(&head, map, sizeof head);
    if (memcmp(head.magic, "shoal-1\n", 8)) {
        fputs("This is no plan.\n", stderr);
        return 1;
    }
    const int32_t *fds = (const int32_t *)(map + sizeof head);
    offsets = (const uint64_t *)(map + sizeof head + (4 * (size_t)head.connections + 7) / 8 * 8);
    frames = (const uint8_t *)(offsets + head.rounds + 1);
    sample_frame = frames + offsets[head.rounds];

    if (!(lines = calloc(head.connections, sizeof *lines))) fail("memory");
    int timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK);
    poller = epoll_create1(0);
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = NULL};
    if (timer < 0 || poller < 0 || epoll_ctl(poller, EPOLL_CTL_ADD, timer, &event)) fail("epoll");
    for (uint32_t i = 0; i < head.connections; i++) {
        lines[i].fd = fds[i];
        lines[i].next = i;
        event = (struct epoll_event){.events = EPOLLIN, .data.ptr = &lines[i]};
        if (fcntl(fds[i], F_SETFL, O_NONBLOCK) || epoll_ctl(poller, EPOLL_CTL_ADD, fds[i], &event)) fail("socket");
    }

    int closed_loop = head.rate <= 0;
    uint64_t start = now_ns(), end = start + (uint64_t)(head.seconds * 1e9), patience = (uint64_t)(head.patience * 1e9);
    uint64_t last = start;
    uint64_t step = 0, steps = closed_loop ? 0 : 2 * head.rounds, half = head.connections / 2;
    double due = (double)start;
    progress_ns = start;
    if (closed_loop)
        for (uint32_t i = 0; i < head.connections; i++)
            if (i < head.rounds) publish(&lines[i], start);
    static struct epoll_event events[512];
    for (;;) {
        uint64_t now = now_ns();
        int going = now < end;
        while (step < steps && going && due <= (double)now) {
            uint64_t round = step / 2;
            note(&late, now - (uint64_t)due);
            if (step % 2 == 0)
                publish(&lines[round % head.connections], (uint64_t)due);
            else
                sample(&lines[(round + half) % head.connections], (uint64_t)due);
            due += -log(chance()) * 1e9 / (2 * head.rate);
            step++;
            progress_ns = now;
            now = now_ns();
        }
        if (!open_now && (step == steps || !going)) break;
        if (now > progress_ns + patience) break;
        if (step < steps && going) {
            uint64_t at = (uint64_t)due;
            struct itimerspec when = {.it_value = {(time_t)(at / 1000000000u), (long)(at % 1000000000u)}};
            if (timerfd_settime(timer, TFD_TIMER_ABSTIME, &when, NULL)) fail("timerfd");
        }
        int n = epoll_wait(poller, events, 512, 250);
        if (n < 0 && errno != EINTR) fail("epoll_wait");
        for (int i = 0; i < n; i++) {
            struct line *line = events[i].data.ptr;
            if (!line) {
                uint64_t rang;
                if (read(timer, &rang, sizeof rang) < 0 && errno != EAGAIN) fail("timerfd");
                continue;
            }
            if (!line->dead && events[i].events & EPOLLOUT) flush(line);
            if (!line->dead && events[i].events & (EPOLLIN | EPOLLHUP | EPOLLERR)) readable(line, closed_loop, going);
        }
        if (n > 0) last = now_ns();
    }
    save(argv[2]);
    struct rusage used;
    getrusage(RUSAGE_SELF, &used);
    printf("{\"accepted\":%llu,\"batches\":%llu,\"counted\":%llu,\"items\":%llu,\"unanswered\":%llu,\"dead\":%llu,\"overrun\":%llu,"
           "\"bytes_in\":%llu,\"bytes_out\":%llu,\"seconds\":%.6f,\"cpu_s\":%.6f,"
           "\"published\":%llu,\"sampled\":%llu,\"late\":%llu,\"others\":{",
           (unsigned long long)accepted, (unsigned long long)batches, (unsigned long long)counted,
           (unsigned long long)items,
           (unsigned long long)open_now, (unsigned long long)dead, (unsigned long long)overrun,
           (unsigned long long)bytes_in, (unsigned long long)bytes_out, (double)(last - start) / 1e9,
           (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
               (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec) / 1e6,
           (unsigned long long)published.n, (unsigned long long)sampled.n, (unsigned long long)late.n);
    for (int i = 0, some = 0; i < KINDS; i++)
        if (kinds[i][0] && kind_counts[i])
            printf("%s\"%s\":%llu", some++ ? "," : "", kinds[i], (unsigned long long)kind_counts[i]);
    puts("}}");
    return 0;
}
