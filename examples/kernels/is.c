/* IS of the NAS Parallel Benchmarks: the ranks of integer keys, by buckets.

   Each rank generates its share of the keys. In each of ten iterations it counts its keys by bucket, all add up the
   counts, buckets in a row are given to each rank so that all get about the same number of keys, and the keys travel to
   their ranks in one exchange of all with all. A rank then counts its keys by value. */
#include "kernel.h"

enum { ITERATIONS = 10, TESTS = 5 };
static const struct {
  int log_keys, log_values, log_buckets;
  /* Positions of test keys, and their ranks. In iteration i the rank is first + sign (i + offset). */
  int64_t position[TESTS], first[TESTS];
  int sign[TESTS], offset[TESTS];
} CLASSES[] = {
    {16, 11, 9, {48427, 17148, 23627, 62548, 4431}, {0, 18, 346, 64917, 65463}, {1, 1, 1, -1, -1}, {0, 0, 0, 0, 0}},
    {20, 16, 10, {357773, 934767, 875723, 898999, 404505}, {1249, 11698, 1039987, 1043896, 1048018}, {1, 1, -1, -1, -1},
     {-2, -2, 0, 0, 0}},
    {23, 19, 10, {2112377, 662041, 5336171, 3642833, 4250760}, {104, 17523, 123928, 8288932, 8388264}, {1, 1, 1, -1, -1},
     {-1, -1, -1, -1, -1}},
    {25, 21, 10, {41869, 812306, 5102857, 18232239, 26860214}, {33422937, 10244, 59149, 33135281, 99}, {-1, 1, 1, -1, 1},
     {0, 0, 0, 0, 0}},
};

static int class, values, buckets, shift;
static int64_t own_keys;
static int *keys, *sorted, *arrived, *counts;
/* Numbers of keys for each bucket, of this rank and of all; for each rank, numbers and places of the exchange. */
static int *own_size, *all_size, *next, *send_count, *send_at, *receive_count, *receive_at;
static int arrived_keys, capacity, first_value, value_count;
static int64_t keys_below;

static void make_keys(void) {
  uint64_t state = random_skip(RANDOM_SEED, (uint64_t)rank * (uint64_t)own_keys * 4);
  for (int64_t i = 0; i < own_keys; i++) {
    double sum = 0;
    for (int part = 0; part < 4; part++) sum += random_next(&state);
    keys[i] = (int)(values / 4 * sum);
  }
}

/* Gives each rank buckets in a row, and fills the numbers and places of the exchange and the own range of values. */
static void share_buckets(void) {
  int64_t total = own_keys * ranks, sum = 0;
  int owner = 0, first_bucket = 0, end_bucket = 0;
  keys_below = 0;
  memset(send_count, 0, (size_t)ranks * sizeof *send_count);
  for (int bucket = 0; bucket < buckets; bucket++) {
    if (owner == rank) end_bucket = bucket + 1;
    send_count[owner] += own_size[bucket];
    sum += all_size[bucket];
    if (sum * ranks >= total * (owner + 1) && owner < ranks - 1) {
      owner++;
      if (owner == rank) {
        first_bucket = end_bucket = bucket + 1;
        keys_below = sum;
      }
    }
  }
  first_value = first_bucket << shift;
  value_count = (end_bucket - first_bucket) << shift;
  for (int i = 0, at = 0; i < ranks; at += send_count[i++]) send_at[i] = at;
}

static void exchange(void) {
  MPI_Alltoall(send_count, 1, MPI_INT, receive_count, 1, MPI_INT, MPI_COMM_WORLD);
  arrived_keys = 0;
  for (int i = 0; i < ranks; i++) {
    receive_at[i] = arrived_keys;
    arrived_keys += receive_count[i];
  }
  if (arrived_keys > capacity) {
    free(arrived);
    capacity = arrived_keys + arrived_keys / 8;
    arrived = allocate((size_t)capacity, sizeof *arrived);
  }
  MPI_Alltoallv(sorted, send_count, send_at, MPI_INT, arrived, receive_count, receive_at, MPI_INT, MPI_COMM_WORLD);
}

/* Counts the test keys whose rank is right; their values are known from before the exchange. */
static int right_tests(int iteration, const int *test_keys) {
  int right = 0;
  for (int i = 0; i < TESTS; i++) {
    int value = test_keys[i] - first_value;
    if (value < 0 || value >= value_count) continue;
    int64_t below = keys_below + (value > 0 ? counts[value - 1] : 0);
    int64_t wanted = CLASSES[class].first[i] + CLASSES[class].sign[i] * (iteration + CLASSES[class].offset[i]);
    if (below == wanted)
      right++;
    else
      printf("  rank %d: iteration %d: test key %d has rank %lld, official %lld: WRONG\n", rank, iteration, i,
             (long long)below, (long long)wanted);
  }
  return right;
}

/* One ranking. Afterwards counts[v] is the number of own keys up to value `first_value` + v. */
static int rank_keys(int iteration) {
  if (rank == 0) {
    keys[iteration] = iteration;
    keys[iteration + ITERATIONS] = values - iteration;
  }
  /* The values of the test keys travel with the buckets' sizes: each is added by the rank that has it. */
  memset(own_size, 0, (size_t)(buckets + TESTS) * sizeof *own_size);
  for (int i = 0; i < TESTS; i++) {
    int64_t position = CLASSES[class].position[i] - own_keys * rank;
    if (position >= 0 && position < own_keys) own_size[buckets + i] = keys[position];
  }
  for (int64_t i = 0; i < own_keys; i++) own_size[keys[i] >> shift]++;
  for (int bucket = 0, at = 0; bucket < buckets; at += own_size[bucket++]) next[bucket] = at;
  for (int64_t i = 0; i < own_keys; i++) sorted[next[keys[i] >> shift]++] = keys[i];
  MPI_Allreduce(own_size, all_size, buckets + TESTS, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  share_buckets();
  exchange();
  memset(counts, 0, (size_t)value_count * sizeof *counts);
  for (int i = 0; i < arrived_keys; i++) counts[arrived[i] - first_value]++;
  for (int i = 1; i < value_count; i++) counts[i] += counts[i - 1];
  return right_tests(iteration, all_size + buckets);
}

/* Sorts the keys by the counts of the last ranking, and checks their order within the rank and to the next ranks. */
static bool order_is_right(void) {
  int *ordered = allocate((size_t)arrived_keys, sizeof *ordered);
  bool right = value_count == 0 || counts[value_count - 1] == arrived_keys;
  for (int i = arrived_keys - 1; i >= 0; i--) ordered[--counts[arrived[i] - first_value]] = arrived[i];
  for (int i = 1; i < arrived_keys; i++) right = right && ordered[i - 1] <= ordered[i];
  /* The largest key of all ranks before this one. */
  int largest = arrived_keys ? ordered[arrived_keys - 1] : -1, before = -1;
  MPI_Exscan(&largest, &before, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
  if (rank > 0 && arrived_keys) right = right && before <= ordered[0];
  int64_t total = arrived_keys;
  MPI_Allreduce(MPI_IN_PLACE, &total, 1, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
  free(ordered);
  return right && total == own_keys * ranks;
}

int main(int argc, char **argv) {
  class = start_class(&argc, &argv, "is", "SWAB");
  buckets = 1 << CLASSES[class].log_buckets;
  values = 1 << CLASSES[class].log_values;
  shift = CLASSES[class].log_values - CLASSES[class].log_buckets;
  need_power_of_two("is", 128);
  own_keys = (INT64_C(1) << CLASSES[class].log_keys) / ranks;

  keys = allocate((size_t)own_keys, sizeof *keys);
  sorted = allocate((size_t)own_keys, sizeof *sorted);
  counts = allocate((size_t)values, sizeof *counts);
  int **tables[] = {&own_size, &all_size, &next};
  for (int i = 0; i < 3; i++) *tables[i] = allocate((size_t)(buckets + TESTS), sizeof(int));
  int **places[] = {&send_count, &send_at, &receive_count, &receive_at};
  for (int i = 0; i < 4; i++) *places[i] = allocate((size_t)ranks, sizeof(int));
  make_keys();

  /* The first ranking touches the memory and the connections. */
  rank_keys(1);
  MPI_Barrier(MPI_COMM_WORLD);
  double began = MPI_Wtime();
  int passed[2] = {0, 0}, all[2];
  for (int iteration = 1; iteration <= ITERATIONS; iteration++) passed[0] += rank_keys(iteration);
  double seconds = MPI_Wtime() - began;
  passed[1] = order_is_right();
  MPI_Reduce(passed, all, 2, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
  bool right = rank == 0 && all[0] == ITERATIONS * TESTS && all[1] == ranks;
  if (rank == 0)
    printf("  %d of %d ranks of test keys are right; the order is right on %d of %d ranks\n", all[0], ITERATIONS * TESTS,
           all[1], ranks);
  return finish("IS", "SWAB"[class], seconds, (double)ITERATIONS * (double)own_keys * ranks, right);
}
