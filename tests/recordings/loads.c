/* Runs the function `program` of a shared object, whose MPI library no other part of the process sees: so does Python. */
#include <dlfcn.h>
#include <stdio.h>

int main(int argc, char **argv) {
  void *object = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
  int (*program)(int, char **) = object ? (int (*)(int, char **))dlsym(object, "program") : NULL;
  if (!program) return fprintf(stderr, "%s\n", dlerror()), 1;
  return program(argc - 1, argv + 1);
}
