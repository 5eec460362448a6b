/* Accesses to a file whose system calls fail, outside the library.
 *
 *     disk FILE BYTES [again]
 *
 * Each rank writes and reads BYTES bytes by every form of call, in records of which each rank has one in turn. Rank 0
 * prints a line for each call: its name, whether all ranks take part (1) or not (0), and the error classes of all ranks.
 * With `again` the file is emptied afterwards, and 64 bytes of each rank are written and read. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int rank, size;

static int class_of(int code) {
    int found = MPI_SUCCESS;
    if (code != MPI_SUCCESS) MPI_Error_class(code, &found);
    return found;
}

static void tell(const char *name, int collective, int code) {
    int own = class_of(code), *all = malloc(size * sizeof *all);
    MPI_Gather(&own, 1, MPI_INT, all, 1, MPI_INT, 0, MPI_COMM_WORLD);
    if (!rank) {
        printf("%s %d", name, collective);
        for (int i = 0; i < size; i++) printf(" %d", all[i]);
        printf("\n");
    }
    free(all);
}

static int waited(int code, MPI_Request *request) {
    return code != MPI_SUCCESS ? code : MPI_Wait(request, MPI_STATUS_IGNORE);
}

int main(int argc, char **argv) {
    MPI_File file;
    MPI_Request request;
    MPI_Datatype record, records;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    int bytes = argc > 2 ? atoi(argv[2]) : 0, code;
    if (bytes < 64) MPI_Abort(MPI_COMM_WORLD, 1);
    char *out = malloc(bytes), *in = malloc(bytes);
    memset(out, 'a' + rank, bytes);
    code = MPI_File_open(MPI_COMM_WORLD, argv[1], MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file);
    tell("open", 1, code);
    if (code != MPI_SUCCESS) MPI_Abort(MPI_COMM_WORLD, 1);
    MPI_Type_contiguous(64, MPI_BYTE, &record);
    MPI_Type_create_resized(record, 0, 64 * size, &records);
    MPI_Type_commit(&records);
    tell("set_view", 1, MPI_File_set_view(file, 64 * rank, MPI_BYTE, records, "native", MPI_INFO_NULL));
    tell("write_at_all", 1, MPI_File_write_at_all(file, 0, out, bytes, MPI_BYTE, MPI_STATUS_IGNORE));
    tell("write_at", 0, MPI_File_write_at(file, bytes, out, bytes, MPI_BYTE, MPI_STATUS_IGNORE));
    code = MPI_File_iwrite_at(file, 2 * bytes, out, bytes, MPI_BYTE, &request);
    tell("iwrite_at", 0, waited(code, &request));
    code = MPI_File_iwrite_at_all(file, 0, out, bytes, MPI_BYTE, &request);
    tell("iwrite_at_all", 1, waited(code, &request));
    code = MPI_File_write_at_all_begin(file, 0, out, bytes, MPI_BYTE);
    if (code == MPI_SUCCESS) code = MPI_File_write_at_all_end(file, out, MPI_STATUS_IGNORE);
    tell("write_at_all_begin", 1, code);
    tell("sync", 1, MPI_File_sync(file));
    tell("read_at_all", 1, MPI_File_read_at_all(file, 0, in, bytes, MPI_BYTE, MPI_STATUS_IGNORE));
    code = MPI_File_iread_at(file, 0, in, bytes, MPI_BYTE, &request);
    tell("iread_at", 0, waited(code, &request));
    code = MPI_File_iread_at_all(file, 0, in, bytes, MPI_BYTE, &request);
    tell("iread_at_all", 1, waited(code, &request));
    if (argc > 3) {
        tell("set_size", 1, MPI_File_set_size(file, 0));
        tell("write again", 1, MPI_File_write_at_all(file, 0, out, 64, MPI_BYTE, MPI_STATUS_IGNORE));
        tell("sync again", 1, MPI_File_sync(file));
        memset(in, 0, 64);
        code = MPI_File_read_at_all(file, 0, in, 64, MPI_BYTE, MPI_STATUS_IGNORE);
        tell("read again", 1, code);
        if (code == MPI_SUCCESS && memcmp(in, out, 64)) fprintf(stderr, "rank %d: the data of the last write differ\n", rank);
    }
    tell("close", 1, MPI_File_close(&file));
    MPI_Type_free(&records);
    MPI_Type_free(&record);
    MPI_Finalize();
    return 0;
}
