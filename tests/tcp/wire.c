/* A cable between two network namespaces, made by hand: an Ethernet interface at either end, and between them frames that are late,
 * lost or out of order. The kernel's `netem` does this where it is built in.
 *
 *     wire NAMESPACE NAMESPACE INTERFACE SEED
 *
 * It prints "ready", then obeys lines on its standard input: `rate MBIT` (each end puts its frames on the cable one after the other, at so
 * many Mbit/s; 0, as at first: at once), `delay MS`, `jitter MS` (each frame is late by up to so much more, so
 * frames overtake each other), `loss SHARE`, `cut` (frames vanish, and the link looks well), `mend`, `down` (no carrier), `up`. It
 * answers each line by "ok", and ends with its input. The seed decides which frames are lost and how late each is. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

enum { LONGEST = 9000 + 64, MOST = 4096, AT_ONCE = 64 };

/* A frame on its way: the time at which it arrives, and its number, which decides between equal times. */
struct frame {
    uint64_t due, number;
    int to, length;
    unsigned char *bytes;
};

static struct frame queue[MOST];
static int queued;
static uint64_t sent, random_state;
static double rate, delay, jitter, loss;
/* The time from which on each end can put its next frame on the cable. */
static uint64_t idle_from[2];
static int is_cut, ends[2];

static void fail(const char *what) {
    fprintf(stderr, "wire: %s: %s\n", what, strerror(errno));
    exit(1);
}

static uint64_t now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000000000ull + time.tv_nsec;
}

/* A number from 0 to 1, by xorshift. */
static double chance(void) {
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return (random_state >> 11) * 0x1p-53;
}

static int interface_in(const char *namespace, const char *name) {
    char path[256];
    snprintf(path, sizeof path, "/run/netns/%s", namespace);
    int there = open(path, O_RDONLY | O_CLOEXEC);
    if (there < 0 || setns(there, CLONE_NEWNET) != 0) fail(path);
    close(there);
    int tap = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
    if (tap < 0) fail("/dev/net/tun");
    struct ifreq request = {.ifr_flags = IFF_TAP | IFF_NO_PI};
    strncpy(request.ifr_name, name, IFNAMSIZ - 1);
    if (ioctl(tap, TUNSETIFF, &request) != 0) fail("TUNSETIFF");
    return tap;
}

static int is_before(const struct frame *one, const struct frame *other) {
    return one->due != other->due ? one->due < other->due : one->number < other->number;
}

static void swap(int one, int other) {
    struct frame kept = queue[one];
    queue[one] = queue[other];
    queue[other] = kept;
}

static void push(struct frame frame) {
    int at = queued++;
    queue[at] = frame;
    for (; at > 0 && is_before(&queue[at], &queue[(at - 1) / 2]); at = (at - 1) / 2) swap(at, (at - 1) / 2);
}

static struct frame pop(void) {
    struct frame first = queue[0];
    queue[0] = queue[--queued];
    for (int at = 0;;) {
        int least = at;
        for (int child = 2 * at + 1; child <= 2 * at + 2 && child < queued; child++)
            if (is_before(&queue[child], &queue[least])) least = child;
        if (least == at) return first;
        swap(at, least);
        at = least;
    }
}

/* Takes frames from one end. */
static void take(int from) {
    unsigned char bytes[LONGEST];
    for (int count = 0; count < AT_ONCE && queued < MOST; count++) {
        int length = read(ends[from], bytes, sizeof bytes);
        if (length < 0) return;
        if (is_cut || chance() < loss) continue;
        struct frame frame = {.number = sent++, .to = 1 - from, .length = length, .bytes = malloc(length)};
        if (frame.bytes == NULL) fail("malloc");
        memcpy(frame.bytes, bytes, length);
        uint64_t time = now();
        if (rate > 0) {
            time = (idle_from[from] > time ? idle_from[from] : time) + (uint64_t)(length * 8e3 / rate);
            idle_from[from] = time;
        }
        frame.due = time + (uint64_t)((delay + jitter * chance()) * 1e6);
        push(frame);
    }
}

/* Delivers the frames that are due. A full or absent receiver loses them, as on a cable. */
static void deliver(void) {
    while (queued > 0 && queue[0].due <= now()) {
        struct frame frame = pop();
        if (!is_cut && write(ends[frame.to], frame.bytes, frame.length) < 0 && errno != EAGAIN && errno != EIO && errno != ENOBUFS)
            fail("write");
        free(frame.bytes);
    }
}

static void carrier(int is_up) {
    for (int end = 0; end < 2; end++)
        if (ioctl(ends[end], TUNSETCARRIER, &is_up) != 0) fail("TUNSETCARRIER");
}

static void obey(const char *line) {
    if (sscanf(line, "rate %lf", &rate) == 1 || sscanf(line, "delay %lf", &delay) == 1 || sscanf(line, "jitter %lf", &jitter) == 1 || sscanf(line, "loss %lf", &loss) == 1)
        ;
    else if (strcmp(line, "cut\n") == 0 || strcmp(line, "mend\n") == 0)
        is_cut = line[0] == 'c';
    else if (strcmp(line, "up\n") == 0 || strcmp(line, "down\n") == 0)
        carrier(line[0] == 'u');
    else {
        fprintf(stderr, "wire: no such order: %s", line);
        exit(1);
    }
    printf("ok\n");
}

int main(int argc, char **argv) {
    if (argc != 5) {
        fprintf(stderr, "wire NAMESPACE NAMESPACE INTERFACE SEED\n");
        return 2;
    }
    prctl(PR_SET_PDEATHSIG, 9);
    /* Frames are not late by more than they shall be. */
    prctl(PR_SET_TIMERSLACK, 1);
    setvbuf(stdout, NULL, _IOLBF, 0);
    for (int end = 0; end < 2; end++) ends[end] = interface_in(argv[1 + end], argv[3]);
    random_state = strtoull(argv[4], NULL, 0) * 0x9e3779b97f4a7c15ull + 1;
    printf("ready\n");
    for (;;) {
        struct pollfd wanted[] = {{0, POLLIN, 0}, {ends[0], POLLIN, 0}, {ends[1], POLLIN, 0}};
        struct timespec wait = {0, 0};
        if (queued > 0) {
            uint64_t time = now(), left = queue[0].due > time ? queue[0].due - time : 0;
            wait.tv_sec = left / 1000000000;
            wait.tv_nsec = left % 1000000000;
        }
        int room = queued < MOST ? 3 : 1;
        if (ppoll(wanted, room, queued > 0 ? &wait : NULL, NULL) < 0 && errno != EINTR) fail("ppoll");
        if (wanted[0].revents) {
            char line[128];
            if (fgets(line, sizeof line, stdin) == NULL) return 0;
            obey(line);
        }
        deliver();
        for (int end = 0; end < 2; end++)
            if (room == 3 && wanted[1 + end].revents) take(end);
    }
}
