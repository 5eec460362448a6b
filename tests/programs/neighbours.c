/* Neighbourhood collectives on grids and graphs, in all forms: each neighbour's block arrives once,
 * at its place. */
#include "check.h"

enum { EACH = 50, MOST = 64 };

typedef struct {
    MPI_Comm comm;
    int in, out;
    int sources[MOST], destinations[MOST];
    /* For each source the block that it sends here. */
    int block[MOST];
} Neighbourhood;

static int out_data[MOST * EACH], in_data[MOST * EACH];
static int out_counts[MOST], out_places[MOST], in_counts[MOST], in_places[MOST];
static MPI_Aint out_bytes[MOST], in_bytes[MOST];
static MPI_Datatype types[MOST];

/* Compilers warn of special addresses that they see in a call, because they lie in the first page. */
static int *volatile unweighted = MPI_UNWEIGHTED, *volatile weights_empty = MPI_WEIGHTS_EMPTY;

static int value(int from, int block, int i) { return from * 100000 + block * 1000 + i; }
/* Elements in block `block` of rank `from`. */
static int length(int from, int block) { return (from * 3 + block * 5) % EACH; }

static void expect(const Neighbourhood *n, const char *what, int s, const int *seen, int block, int count) {
    for (int i = 0; i < EACH; i++) {
        int wanted = n->sources[s] == MPI_PROC_NULL || i >= count ? -1 : value(n->sources[s], block, i);
        if (seen[i] != wanted) {
            WRONG("%s: element %d from %d is %d, not %d", what, i, n->sources[s], seen[i], wanted);
            return;
        }
    }
}

static void clear(void) { memset(in_data, 0xff, sizeof in_data); }

/* Ends an operation that a call has started or initialized. */
static void run(MPI_Request *request, int persistent) {
    if (persistent) OK(MPI_Start(request));
    OK(MPI_Wait(request, MPI_STATUS_IGNORE));
    if (persistent) OK(MPI_Request_free(request));
}

#define FORMS(name, n, ...) \
    do { \
        MPI_Request request; \
        if (form == 0) OK(MPI_Neighbor_##name(__VA_ARGS__, (n)->comm)); \
        if (form == 1) OK(MPI_Ineighbor_##name(__VA_ARGS__, (n)->comm, &request)); \
        if (form == 2) OK(MPI_Neighbor_##name##_init(__VA_ARGS__, (n)->comm, MPI_INFO_NULL, &request)); \
        if (form) run(&request, form == 2); \
    } while (0)

static void exchange(const Neighbourhood *n, int me, int form) {
    for (int block = 0; block < n->out; block++) {
        for (int i = 0; i < EACH; i++) out_data[block * EACH + i] = value(me, block, i);
        out_counts[block] = length(me, block);
        out_places[block] = block * EACH;
        out_bytes[block] = block * EACH * (MPI_Aint)sizeof(int);
    }
    for (int s = 0; s < n->in; s++) {
        in_counts[s] = n->sources[s] == MPI_PROC_NULL ? 1 : length(n->sources[s], n->block[s]);
        in_places[s] = s * EACH;
        in_bytes[s] = s * EACH * (MPI_Aint)sizeof(int);
    }
    clear();
    FORMS(allgather, n, out_data, EACH, MPI_INT, in_data, EACH, MPI_INT);
    for (int s = 0; s < n->in; s++) expect(n, "allgather", s, in_data + s * EACH, 0, EACH);
    clear();
    int counts[MOST];
    for (int s = 0; s < n->in; s++) counts[s] = length(n->sources[s] + 7, 1);
    FORMS(allgatherv, n, out_data, length(me + 7, 1), MPI_INT, in_data, counts, in_places, MPI_INT);
    for (int s = 0; s < n->in; s++) expect(n, "allgatherv", s, in_data + s * EACH, 0, counts[s]);
    clear();
    FORMS(alltoall, n, out_data, EACH, MPI_INT, in_data, EACH, MPI_INT);
    for (int s = 0; s < n->in; s++) expect(n, "alltoall", s, in_data + s * EACH, n->block[s], EACH);
    clear();
    FORMS(alltoallv, n, out_data, out_counts, out_places, MPI_INT, in_data, in_counts, in_places, MPI_INT);
    for (int s = 0; s < n->in; s++) expect(n, "alltoallv", s, in_data + s * EACH, n->block[s], in_counts[s]);
    clear();
    FORMS(alltoallw, n, out_data, out_counts, out_bytes, types, in_data, in_counts, in_bytes, types);
    for (int s = 0; s < n->in; s++) expect(n, "alltoallw", s, in_data + s * EACH, n->block[s], in_counts[s]);
}

static void all_forms(Neighbourhood *n) {
    int me;
    if (n->comm == MPI_COMM_NULL) return;
    MPI_Comm_rank(n->comm, &me);
    for (int form = 0; form < 3; form++) exchange(n, me, form);
    MPI_Comm copy; /* a copy has the topology too */
    OK(MPI_Comm_dup(n->comm, &copy));
    OK(MPI_Comm_free(&n->comm));
    n->comm = copy;
    exchange(n, me, 1);
    OK(MPI_Comm_free(&n->comm));
}

/* A block that leaves in one direction arrives from the other, also where both neighbours are one. */
static void grid(int dimensions, const int *dims, const int *periods) {
    Neighbourhood n = {.in = 2 * dimensions, .out = 2 * dimensions};
    OK(MPI_Cart_create(MPI_COMM_WORLD, dimensions, dims, periods, 0, &n.comm));
    if (n.comm == MPI_COMM_NULL) return;
    for (int d = 0; d < dimensions; d++) {
        OK(MPI_Cart_shift(n.comm, d, 1, &n.sources[2 * d], &n.sources[2 * d + 1]));
        n.block[2 * d] = 2 * d + 1;
        n.block[2 * d + 1] = 2 * d;
    }
    all_forms(&n);
}

/* A circle, and a rank without neighbours at its end. */
static void circle(void) {
    int index[MOST], edges[2 * MOST], nodes = size > 3 ? size - 1 : size, at = 0;
    for (int node = 0; node < nodes; node++) {
        if (nodes > 1) {
            edges[at++] = (node + nodes - 1) % nodes;
            if (nodes > 2) edges[at++] = (node + 1) % nodes;
        }
        index[node] = at;
    }
    Neighbourhood n = {0};
    int kind = -1, new_rank = -1, seen_nodes = -1, seen_edges = -1;
    OK(MPI_Graph_map(MPI_COMM_WORLD, nodes, index, edges, &new_rank));
    SAME(new_rank, rank < nodes ? rank : MPI_UNDEFINED);
    OK(MPI_Graph_create(MPI_COMM_WORLD, nodes, index, edges, 1, &n.comm));
    if (rank >= nodes) {
        CHECK(n.comm == MPI_COMM_NULL, "a rank outside the graph got a communicator");
        return;
    }
    OK(MPI_Topo_test(n.comm, &kind));
    SAME(kind, MPI_GRAPH);
    OK(MPI_Graphdims_get(n.comm, &seen_nodes, &seen_edges));
    SAME(seen_nodes, nodes);
    SAME(seen_edges, at);
    int index_seen[MOST], edges_seen[2 * MOST];
    OK(MPI_Graph_get(n.comm, nodes, at, index_seen, edges_seen));
    CHECK(!memcmp(index, index_seen, nodes * sizeof(int)) && !memcmp(edges, edges_seen, at * sizeof(int)), "Graph_get");
    int me;
    OK(MPI_Comm_rank(n.comm, &me));
    OK(MPI_Graph_neighbors_count(n.comm, me, &n.in));
    n.out = n.in;
    OK(MPI_Graph_neighbors(n.comm, me, n.in, n.sources));
    for (int s = 0; s < n.in; s++) n.block[s] = n.in - 1 - s;
    all_forms(&n);
}

/* Ends of edge number e of a graph with several edges between some nodes, and edges to oneself. */
static int from_of(int e) { return (e * e + 1) % size; }
static int to_of(int e) { return (3 * e + e / 4) % size; }

/* The block of the source in which its edge number e leaves. */
static int block_of(const int *order, int edges, int e) {
    int block = 0;
    for (int i = 0; i < edges && order[i] != e; i++) block += from_of(order[i]) == from_of(e);
    return block;
}

static void distributed(int adjacent, int weighted) {
    enum { EDGES = 24 };
    Neighbourhood n = {0};
    int order[EDGES], weights_in[MOST], weights_out[MOST];
    if (adjacent) {
        for (int e = 0; e < EDGES; e++) {
            order[e] = e;
            if (from_of(e) == rank) {
                weights_out[n.out] = e;
                n.destinations[n.out++] = to_of(e);
            }
        }
        for (int e = 0; e < EDGES; e++)
            if (to_of(e) == rank) {
                weights_in[n.in] = e;
                n.block[n.in] = block_of(order, EDGES, e);
                n.sources[n.in++] = from_of(e);
            }
        OK(MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, n.in, n.sources, weighted ? weights_in : unweighted, n.out,
                                          n.destinations, weighted ? weights_out : unweighted, MPI_INFO_NULL, 0, &n.comm));
    } else {
        /* Rank r gives the edges r, r + size and so on. */
        int sources[EDGES], degrees[EDGES], destinations[EDGES], weights[EDGES], given = 0, at = 0;
        for (int r = 0; r < size; r++)
            for (int e = r; e < EDGES; e += size) order[at++] = e;
        for (int e = rank; e < EDGES; e += size, given++) {
            sources[given] = from_of(e);
            degrees[given] = 1;
            destinations[given] = to_of(e);
            weights[given] = e;
        }
        OK(MPI_Dist_graph_create(MPI_COMM_WORLD, given, sources, degrees, destinations,
                                 weighted ? (given ? weights : weights_empty) : unweighted, MPI_INFO_NULL, 0, &n.comm));
        for (int i = 0; i < EDGES; i++) {
            int e = order[i];
            if (from_of(e) == rank) {
                weights_out[n.out] = e;
                n.destinations[n.out++] = to_of(e);
            }
            if (to_of(e) == rank) {
                weights_in[n.in] = e;
                n.block[n.in] = block_of(order, EDGES, e);
                n.sources[n.in++] = from_of(e);
            }
        }
    }
    int kind = -1, in = -1, out = -1, has_weights = -1;
    OK(MPI_Topo_test(n.comm, &kind));
    SAME(kind, MPI_DIST_GRAPH);
    OK(MPI_Dist_graph_neighbors_count(n.comm, &in, &out, &has_weights));
    SAME(in, n.in);
    SAME(out, n.out);
    SAME(has_weights, weighted);
    int sources[MOST], destinations[MOST], seen_in[MOST], seen_out[MOST];
    OK(MPI_Dist_graph_neighbors(n.comm, in, sources, weighted ? seen_in : unweighted, out, destinations,
                                weighted ? seen_out : unweighted));
    for (int i = 0; i < in; i++) {
        SAME(sources[i], n.sources[i]);
        if (weighted) SAME(seen_in[i], weights_in[i]);
    }
    for (int i = 0; i < out; i++) {
        SAME(destinations[i], n.destinations[i]);
        if (weighted) SAME(seen_out[i], weights_out[i]);
    }
    all_forms(&n);
}

static void errors(void) {
    int none[1] = {0};
    MPI_Comm comm;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    FAILS(MPI_Neighbor_alltoall(none, 1, MPI_INT, none, 1, MPI_INT, MPI_COMM_WORLD), MPI_ERR_TOPOLOGY);
    FAILS(MPI_Graphdims_get(MPI_COMM_WORLD, none, none), MPI_ERR_TOPOLOGY);
    FAILS(MPI_Dist_graph_neighbors_count(MPI_COMM_WORLD, none, none, none), MPI_ERR_TOPOLOGY);
    REFUSED(MPI_Graph_create(MPI_COMM_WORLD, 1, (int[]){1}, (int[]){4711}, 0, &comm));
    REFUSED(MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 1, (int[]){size}, unweighted, 0, none, unweighted,
                                           MPI_INFO_NULL, 0, &comm));
    REFUSED(MPI_Dist_graph_create(MPI_COMM_WORLD, 1, (int[]){0}, (int[]){-1}, none, unweighted, MPI_INFO_NULL, 0, &comm));
}

int main(int argc, char **argv) {
    start(&argc, &argv);
    for (int i = 0; i < MOST; i++) types[i] = MPI_INT;
    grid(1, (int[]){size}, (int[]){1});
    grid(1, (int[]){size}, (int[]){0});
    grid(2, (int[]){size, 1}, (int[]){0, 1});
    if (size >= 4) grid(2, (int[]){2, size / 2}, (int[]){1, 0});
    if (size >= 8) grid(3, (int[]){2, 2, 2}, (int[]){1, 1, 1});
    circle();
    for (int weighted = 0; weighted < 2; weighted++)
        for (int adjacent = 0; adjacent < 2; adjacent++) distributed(adjacent, weighted);
    errors();
    return finish();
}
