/* Bare sockets between two network namespaces: the measure of what TCP allows here.
 *
 *     bare latency|bw spin|block BYTES SECONDS NAMESPACE NAMESPACE ADDRESS BUFFER WINDOW
 *
 * The server is in the second namespace, at ADDRESS; either end has a core of its own. `spin` polls the socket without blocking,
 * `block` sleeps in it. `latency` prints half of the mean round trip in µs, `bw` MB/s of a stream: after WINDOW messages the receiver
 * answers by four bytes. BUFFER is SO_SNDBUF and SO_RCVBUF in bytes, or 0 for the kernel's own choice. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static int spins, buffer;

static void fail(const char *what) {
    fprintf(stderr, "bare: %s: %s\n", what, strerror(errno));
    exit(1);
}

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec + time.tv_nsec / 1e9;
}

static void enter(const char *namespace, int core) {
    char path[256];
    snprintf(path, sizeof path, "/run/netns/%s", namespace);
    int there = open(path, O_RDONLY | O_CLOEXEC);
    if (there < 0 || setns(there, CLONE_NEWNET) != 0) fail(path);
    close(there);
    cpu_set_t cores;
    CPU_ZERO(&cores);
    CPU_SET(core, &cores);
    sched_setaffinity(0, sizeof cores, &cores);
}

static void tune(int fd) {
    int one = 1;
    if (setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one) != 0) fail("TCP_NODELAY");
    if (buffer > 0) {
        setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &buffer, sizeof buffer);
        setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &buffer, sizeof buffer);
    }
}

static void give(int fd, const char *bytes, size_t length) {
    while (length > 0) {
        ssize_t done = send(fd, bytes, length, MSG_NOSIGNAL | (spins ? MSG_DONTWAIT : 0));
        if (done < 0 && errno != EAGAIN && errno != EINTR) fail("send");
        if (done > 0) bytes += done, length -= done;
    }
}

static void take(int fd, char *bytes, size_t length) {
    while (length > 0) {
        ssize_t done = recv(fd, bytes, length, spins ? MSG_DONTWAIT : 0);
        if (done == 0) exit(0);
        if (done < 0 && errno != EAGAIN && errno != EINTR) fail("recv");
        if (done > 0) bytes += done, length -= done;
    }
}

/* Half of the mean round trip in µs. The server answers until the connection ends. */
static void latency(int fd, int is_server, char *bytes, size_t length, double seconds) {
    if (is_server)
        for (;;) take(fd, bytes, length), give(fd, bytes, length);
    double begin = 0;
    long count = 0, warm = 200;
    for (long round = -warm; round <= 0 || now() - begin < seconds; round++) {
        if (round == 0) begin = now();
        /* The clock is read only now and then. */
        for (int at = 0; at < 16; at++) give(fd, bytes, length), take(fd, bytes, length);
        if (round >= 0) count += 16;
    }
    printf("%.3f\n", (now() - begin) / count / 2 * 1e6);
}

static void bandwidth(int fd, int is_server, char *bytes, size_t length, double seconds, int window) {
    char answer[4] = "ack";
    if (is_server)
        for (;;) {
            for (int at = 0; at < window; at++) take(fd, bytes, length);
            give(fd, answer, sizeof answer);
        }
    double begin = 0;
    long count = 0, warm = 3;
    for (long round = -warm; round <= 0 || now() - begin < seconds; round++) {
        if (round == 0) begin = now();
        for (int at = 0; at < window; at++) give(fd, bytes, length);
        take(fd, answer, sizeof answer);
        if (round >= 0) count += window;
    }
    printf("%.1f\n", count * (double)length / (now() - begin) / 1e6);
}

int main(int argc, char **argv) {
    if (argc != 10) {
        fprintf(stderr, "bare latency|bw spin|block BYTES SECONDS NAMESPACE NAMESPACE ADDRESS BUFFER WINDOW\n");
        return 2;
    }
    int is_latency = strcmp(argv[1], "latency") == 0, window = atoi(argv[9]);
    spins = strcmp(argv[2], "spin") == 0;
    size_t length = strtoull(argv[3], NULL, 0);
    double seconds = atof(argv[4]);
    buffer = atoi(argv[8]);
    struct addrinfo hints = {.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV, .ai_socktype = SOCK_STREAM}, *at;
    if (getaddrinfo(argv[7], "5201", &hints, &at) != 0) fail(argv[7]);
    int ready[2];
    if (pipe(ready) != 0) fail("pipe");
    pid_t server = fork();
    int is_server = server == 0, fd, one = 1;
    enter(argv[is_server ? 6 : 5], is_server);
    fd = socket(at->ai_family, SOCK_STREAM, 0);
    if (fd < 0) fail("socket");
    tune(fd);
    if (is_server) {
        setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
        if (bind(fd, at->ai_addr, at->ai_addrlen) != 0 || listen(fd, 1) != 0) fail("listen");
        if (write(ready[1], "r", 1) != 1) fail("pipe");
        if ((fd = accept(fd, NULL, NULL)) < 0) fail("accept");
        tune(fd);
    } else {
        char byte;
        close(ready[1]);
        if (read(ready[0], &byte, 1) != 1) fail("the server has not begun");
        if (connect(fd, at->ai_addr, at->ai_addrlen) != 0) fail("connect");
    }
    char *bytes = calloc(1, length + 1);
    if (bytes == NULL) fail("calloc");
    if (is_latency) latency(fd, is_server, bytes, length, seconds);
    else bandwidth(fd, is_server, bytes, length, seconds, window);
    close(fd);
    waitpid(server, NULL, 0);
    return 0;
}
