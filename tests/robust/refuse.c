/* refuse CALL ERRNO PROGRAM ARGS…: run a program to which the kernel refuses one system call, as
 * containers do. Inherited by all that the program starts. */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static const struct { const char *name; long first, second; } calls[] = {
    {"process_vm", SYS_process_vm_readv, SYS_process_vm_writev},
    {"memfd", SYS_memfd_create, SYS_memfd_create},
    {"pidfd", SYS_pidfd_open, SYS_pidfd_send_signal},
    {"affinity", SYS_sched_setaffinity, SYS_sched_getaffinity},
};

int main(int argc, char **argv) {
    for (size_t i = 0; argc > 3 && i < sizeof calls / sizeof *calls; i++) {
        if (strcmp(argv[1], calls[i].name)) continue;
        struct sock_filter code[] = {
            BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
            BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)calls[i].first, 1, 0),
            BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)calls[i].second, 0, 1),
            BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (unsigned)atoi(argv[2])),
            BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        };
        struct sock_fprog filter = {sizeof code / sizeof *code, code};
        if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter)) {
            perror("refuse: prctl");
            return 125;
        }
        execvp(argv[3], argv + 3);
        perror(argv[3]);
        return 127;
    }
    fprintf(stderr, "usage: refuse process_vm|memfd|pidfd|affinity ERRNO PROGRAM ARGS…\n");
    return 125;
}
