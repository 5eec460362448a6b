/* Memory for messages whose contents do not matter: a long buffer whose pages are one short piece again and again. Many
   ranks with long messages then fit into this machine's memory, and copies stay in its caches. */
#ifndef HPL_FOLDED_H
#define HPL_FOLDED_H

#include <sys/mman.h>
#include <unistd.h>

#include "kernel.h"

enum { FOLD = 1 << 18 };

static void *allocate_folded(size_t count, size_t size) {
  size_t bytes = (count * size + FOLD - 1) / FOLD * FOLD;
  int file = memfd_create("folded", MFD_CLOEXEC);
  char *start = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  bool made = file >= 0 && ftruncate(file, FOLD) == 0 && start != MAP_FAILED;
  for (size_t at = 0; made && at < bytes; at += FOLD)
    made = mmap(start + at, FOLD, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file, 0) != MAP_FAILED;
  if (!made) {
    fprintf(stderr, "rank %d: no folded memory of %zu bytes: ", rank, bytes);
    perror(NULL);
    MPI_Abort(MPI_COMM_WORLD, EXIT_WRONG_USE);
  }
  close(file);
  return start;
}

#endif
