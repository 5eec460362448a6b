/* Starts processes and waits for their end, without anything else that a launcher does: spawn PARENTS COUNT PROGRAM ARGUMENT...
   Each parent starts an equal share one after the other. */
#include <spawn.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static int all_ended(void) {
    int status, failed = 0;
    while (wait(&status) > 0)
        failed |= status;
    return failed != 0;
}

int main(int argc, char **argv) {
    if (argc < 4)
        return 2;
    int parents = atoi(argv[1]), count = atoi(argv[2]);
    for (int parent = 0; parent < parents; parent++) {
        pid_t child = fork();
        if (child < 0)
            return 1;
        if (child > 0)
            continue;
        for (int at = parent; at < count; at += parents)
            if (posix_spawnp(&(pid_t){0}, argv[3], NULL, NULL, argv + 3, environ) != 0)
                _exit(1);
        _exit(all_ended());
    }
    return all_ended();
}
