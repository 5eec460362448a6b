/* Bare sockets between two network namespaces: the measure of what TCP allows here.
 *
 *     bare latency|bw spin|pieces|block|zerocopy|uring BYTES SECONDS NAMESPACE NAMESPACE ADDRESS BUFFER WINDOW
 *
 * The server is in the second namespace, at ADDRESS; either end has a core of its own. `spin` polls the socket without blocking,
 * `pieces` too, and sends at most 128 KiB in a call, `block` sleeps in it. `zerocopy` is `spin` with MSG_ZEROCOPY and its notices; a
 * line on standard error has the number of sends that the kernel copied all the same. `uring` posts to an io_uring and spins on its
 * completions. `latency` prints half of the mean round trip in µs, `bw` MB/s of a stream: after WINDOW messages the receiver answers
 * by four bytes. BUFFER is SO_SNDBUF and SO_RCVBUF in bytes, or 0 for the kernel's own choice. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/errqueue.h>
#include <linux/io_uring.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static int spins, zerocopy, uring, buffer;
/* The most bytes of one call. */
static size_t most = SIZE_MAX;
/* Notices of MSG_ZEROCOPY: sends that have ended, and those of them that were copied. */
static unsigned long ended, copied;

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

/* Takes the notices of sends with MSG_ZEROCOPY, without waiting. */
static void take_notices(int fd) {
    char control[128];
    struct msghdr message = {.msg_control = control, .msg_controllen = sizeof control};
    while (recvmsg(fd, &message, MSG_ERRQUEUE | MSG_DONTWAIT) >= 0) {
        struct cmsghdr *head = CMSG_FIRSTHDR(&message);
        struct sock_extended_err *notice = head ? (void *)CMSG_DATA(head) : NULL;
        if (notice != NULL && notice->ee_origin == SO_EE_ORIGIN_ZEROCOPY) {
            unsigned long sends = notice->ee_data - notice->ee_info + 1;
            ended += sends;
            if (notice->ee_code & SO_EE_CODE_ZEROCOPY_COPIED) copied += sends;
        }
        message.msg_controllen = sizeof control;
    }
}

/* One io_uring: requests are posted one by one, and their ends are waited for in user space. */
static struct {
    int fd;
    unsigned *sq_tail, *sq_mask, *sq_array, *cq_head, *cq_tail, *cq_mask;
    struct io_uring_sqe *requests;
    struct io_uring_cqe *ends;
} ring;

static void open_ring(void) {
    struct io_uring_params wanted = {0};
    if ((ring.fd = syscall(SYS_io_uring_setup, 8, &wanted)) < 0) fail("io_uring_setup");
    size_t sq = wanted.sq_off.array + wanted.sq_entries * sizeof(unsigned);
    size_t cq = wanted.cq_off.cqes + wanted.cq_entries * sizeof(struct io_uring_cqe);
    char *queues = mmap(NULL, sq > cq ? sq : cq, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, ring.fd, IORING_OFF_SQ_RING);
    ring.requests = mmap(NULL, wanted.sq_entries * sizeof(struct io_uring_sqe), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, ring.fd,
                         IORING_OFF_SQES);
    if (queues == MAP_FAILED || ring.requests == MAP_FAILED || !(wanted.features & IORING_FEAT_SINGLE_MMAP)) fail("io_uring");
    ring.sq_tail = (void *)(queues + wanted.sq_off.tail), ring.sq_mask = (void *)(queues + wanted.sq_off.ring_mask);
    ring.sq_array = (void *)(queues + wanted.sq_off.array);
    ring.cq_head = (void *)(queues + wanted.cq_off.head), ring.cq_tail = (void *)(queues + wanted.cq_off.tail);
    ring.cq_mask = (void *)(queues + wanted.cq_off.ring_mask), ring.ends = (void *)(queues + wanted.cq_off.cqes);
}

/* Posts a send or a receive of all these bytes and waits for its end. */
static void by_ring(int operation, int fd, char *bytes, size_t length) {
    unsigned tail = *ring.sq_tail, at = tail & *ring.sq_mask, head = *ring.cq_head;
    ring.requests[at] = (struct io_uring_sqe){
        .opcode = operation, .fd = fd, .addr = (uintptr_t)bytes, .len = length, .msg_flags = MSG_WAITALL | MSG_NOSIGNAL};
    ring.sq_array[at] = at;
    atomic_store_explicit((_Atomic unsigned *)ring.sq_tail, tail + 1, memory_order_release);
    if (syscall(SYS_io_uring_enter, ring.fd, 1, 0, 0, NULL, 0) != 1) fail("io_uring_enter");
    while (atomic_load_explicit((_Atomic unsigned *)ring.cq_tail, memory_order_acquire) == head) {}
    int done = ring.ends[head & *ring.cq_mask].res;
    atomic_store_explicit((_Atomic unsigned *)ring.cq_head, head + 1, memory_order_release);
    if (done == 0) exit(0);
    if (done < 0) errno = -done, fail("io_uring");
    if ((size_t)done < length) by_ring(operation, fd, bytes + done, length - done);
}

static void give(int fd, char *bytes, size_t length) {
    if (uring) return by_ring(IORING_OP_SEND, fd, bytes, length);
    while (length > 0) {
        int flags = MSG_NOSIGNAL | (spins ? MSG_DONTWAIT : 0) | (zerocopy ? MSG_ZEROCOPY : 0);
        ssize_t done = send(fd, bytes, length < most ? length : most, flags);
        if (zerocopy) take_notices(fd);
        if (done < 0 && errno != EAGAIN && errno != EINTR && errno != ENOBUFS) fail("send");
        if (done > 0) bytes += done, length -= done;
    }
}

static void take(int fd, char *bytes, size_t length) {
    if (uring) return by_ring(IORING_OP_RECV, fd, bytes, length);
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
        fprintf(stderr, "bare latency|bw spin|pieces|block|zerocopy|uring BYTES SECONDS NAMESPACE NAMESPACE ADDRESS BUFFER WINDOW\n");
        return 2;
    }
    int is_latency = strcmp(argv[1], "latency") == 0, window = atoi(argv[9]);
    zerocopy = strcmp(argv[2], "zerocopy") == 0, uring = strcmp(argv[2], "uring") == 0;
    if (strcmp(argv[2], "pieces") == 0) spins = 1, most = 128 << 10;
    else spins = zerocopy || strcmp(argv[2], "spin") == 0;
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
    if (zerocopy && setsockopt(fd, SOL_SOCKET, SO_ZEROCOPY, &one, sizeof one) != 0) fail("SO_ZEROCOPY");
    if (uring) open_ring();
    char *bytes = calloc(1, length + 1);
    if (bytes == NULL) fail("calloc");
    if (is_latency) latency(fd, is_server, bytes, length, seconds);
    else bandwidth(fd, is_server, bytes, length, seconds, window);
    if (zerocopy && !is_server) take_notices(fd), fprintf(stderr, "%lu of %lu sends were copied\n", copied, ended);
    close(fd);
    waitpid(server, NULL, 0);
    return 0;
}
