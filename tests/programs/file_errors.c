/* Errors of files: those of one rank end a collective call on all, each gets a class, and the right
 * handler is called. */
#include "check.h"
#include <unistd.h>

static char name[128];
static int calls, last_class;
static MPI_File last_file;

static void counted(MPI_File *file, int *code, ...) {
    calls++;
    last_file = *file;
    MPI_Error_class(*code, &last_class);
}

static MPI_File opened(int mode) {
    MPI_File file = MPI_FILE_NULL;
    OK(MPI_File_open(MPI_COMM_WORLD, name, mode, MPI_INFO_NULL, &file));
    return file;
}

/* Every rank fails, whichever rank is wrong. */
static void of_one_rank(int wrong) {
    int value = rank, out[4] = {1, 2, 3, 4};
    MPI_Datatype raw;
    MPI_Request request;
    MPI_File file = opened(MPI_MODE_CREATE | MPI_MODE_RDWR);
    int bad = rank == wrong;
    OK(MPI_Type_contiguous(1, MPI_INT, &raw)); /* not committed */
    REFUSED(MPI_File_write_at_all(file, bad ? -1 : 0, &value, 1, MPI_INT, MPI_STATUS_IGNORE));
    REFUSED(MPI_File_write_at_all(file, 0, &value, bad ? -1 : 1, MPI_INT, MPI_STATUS_IGNORE));
    REFUSED(MPI_File_write_all(file, &value, 1, bad ? raw : MPI_INT, MPI_STATUS_IGNORE));
    REFUSED(MPI_File_read_all(file, bad ? NULL : out, 1, MPI_INT, MPI_STATUS_IGNORE));
    REFUSED(MPI_File_write_ordered(file, &value, bad ? -1 : 1, MPI_INT, MPI_STATUS_IGNORE));
    REFUSED(MPI_File_set_view(file, bad ? -5 : 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
    REFUSED(MPI_File_set_view(file, 0, MPI_INT, MPI_INT, bad ? "none" : "native", MPI_INFO_NULL));
    REFUSED(MPI_File_set_view(file, 0, MPI_INT, MPI_INT, bad ? NULL : "native", MPI_INFO_NULL));
    REFUSED(MPI_File_set_size(file, bad ? -1 : 8));
    if (size > 1) {
        FAILS(MPI_File_set_size(file, bad ? 4 : 8), MPI_ERR_NOT_SAME);
        FAILS(MPI_File_set_view(file, 0, bad ? MPI_BYTE : MPI_INT, MPI_INT, "native", MPI_INFO_NULL), MPI_ERR_NOT_SAME);
        FAILS(MPI_File_seek_shared(file, bad, MPI_SEEK_SET), MPI_ERR_NOT_SAME);
        FAILS(bad ? MPI_File_sync(file) : MPI_File_write_all(file, out, 4, MPI_INT, MPI_STATUS_IGNORE), MPI_ERR_NOT_SAME);
    }
    OK(MPI_File_iwrite_at_all(file, bad ? -1 : 0, &value, 1, MPI_INT, &request));
    REFUSED(MPI_Wait(&request, MPI_STATUS_IGNORE));
    CHECK(request == MPI_REQUEST_NULL, "the request is over");
    if (!bad) OK(MPI_File_iwrite_at_all(file, 0, &value, 1, MPI_INT, &request));
    else FAILS(MPI_File_iwrite_at_all(file, 0, &value, 1, MPI_INT, NULL), MPI_ERR_ARG);
    if (!bad) REFUSED(MPI_Wait(&request, MPI_STATUS_IGNORE));
    OK(MPI_File_write_at_all_begin(file, bad ? -1 : 0, &value, 1, MPI_INT));
    FAILS(MPI_File_read_at_all_end(file, &value, MPI_STATUS_IGNORE), MPI_ERR_IO);
    FAILS(MPI_File_read_all(file, out, 1, MPI_INT, MPI_STATUS_IGNORE), MPI_ERR_IO);
    FAILS(MPI_File_close(&file), MPI_ERR_IO);
    REFUSED(MPI_File_write_at_all_end(file, &value, MPI_STATUS_IGNORE));
    /* Nothing is out of step. */
    OK(MPI_File_write_at_all(file, 4 * rank, &value, 1, MPI_INT, MPI_STATUS_IGNORE));
    OK(MPI_File_read_at_all(file, 4 * ((rank + 1) % size), out, 1, MPI_INT, MPI_STATUS_IGNORE));
    SAME(out[0], (rank + 1) % size);
    OK(MPI_File_close(&file));
    OK(MPI_Type_free(&raw));
}

static void of_open(int wrong) {
    MPI_File file;
    int bad = rank == wrong;
    char path[160];
    FAILS(MPI_File_open(MPI_COMM_WORLD, "no/such/folder", MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file), MPI_ERR_NO_SUCH_FILE);
    CHECK(file == MPI_FILE_NULL, "no file");
    FAILS(MPI_File_open(MPI_COMM_WORLD, "no-such-file", MPI_MODE_RDONLY, MPI_INFO_NULL, &file), MPI_ERR_NO_SUCH_FILE);
    FAILS(MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_CREATE | MPI_MODE_EXCL | MPI_MODE_RDWR, MPI_INFO_NULL, &file), MPI_ERR_FILE_EXISTS);
    FAILS(MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_RDONLY | MPI_MODE_RDWR, MPI_INFO_NULL, &file), MPI_ERR_AMODE);
    FAILS(MPI_File_open(MPI_COMM_WORLD, ".", MPI_MODE_RDONLY, MPI_INFO_NULL, &file), MPI_ERR_BAD_FILE);
    REFUSED(MPI_File_open(MPI_COMM_WORLD, name, bad ? 0 : MPI_MODE_RDWR, MPI_INFO_NULL, &file));
    if (size > 1) FAILS(MPI_File_open(MPI_COMM_WORLD, name, bad ? MPI_MODE_RDWR : MPI_MODE_RDONLY, MPI_INFO_NULL, &file), MPI_ERR_NOT_SAME);
    snprintf(path, sizeof path, "%s", bad ? "no/such/folder" : name);
    FAILS(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_RDWR, MPI_INFO_NULL, &file), MPI_ERR_NO_SUCH_FILE);
    FAILS(MPI_File_open(MPI_COMM_WORLD, "", MPI_MODE_RDWR, MPI_INFO_NULL, &file), MPI_ERR_BAD_FILE);
    FAILS(MPI_File_delete("no-such-file", MPI_INFO_NULL), MPI_ERR_NO_SUCH_FILE);
}

static void handlers(void) {
    MPI_Errhandler mine, found;
    MPI_Offset size_of;
    MPI_File file;
    char byte = 0;
    OK(MPI_File_get_errhandler(MPI_FILE_NULL, &found));
    CHECK(found == MPI_ERRORS_RETURN, "the default");
    OK(MPI_File_create_errhandler(counted, &mine));
    OK(MPI_File_set_errhandler(MPI_FILE_NULL, mine));
    calls = 0;
    (void)MPI_File_open(MPI_COMM_WORLD, "no-such-file", MPI_MODE_RDONLY, MPI_INFO_NULL, &file);
    SAME(calls, 1);
    SAME(last_class, MPI_ERR_NO_SUCH_FILE);
    CHECK(last_file == MPI_FILE_NULL, "the handler gets the null file");
    (void)MPI_File_get_size(MPI_FILE_NULL, &size_of);
    SAME(calls, 2);
    SAME(last_class, MPI_ERR_FILE);
    /* A file gets the handler of MPI_FILE_NULL. */
    file = opened(MPI_MODE_RDONLY);
    OK(MPI_File_set_errhandler(MPI_FILE_NULL, MPI_ERRORS_RETURN));
    OK(MPI_Errhandler_free(&mine));
    (void)MPI_File_write(file, &byte, 1, MPI_BYTE, MPI_STATUS_IGNORE);
    SAME(calls, 3);
    SAME(last_class, MPI_ERR_READ_ONLY);
    CHECK(last_file == file, "the handler gets the file");
    (void)MPI_File_write_all(file, &byte, 1, MPI_BYTE, MPI_STATUS_IGNORE);
    SAME(calls, 4);
    /* An error of a request goes to its file. */
    MPI_Request request;
    (void)MPI_File_iwrite_at_all(file, 0, &byte, 1, MPI_BYTE, &request);
    (void)MPI_Wait(&request, MPI_STATUS_IGNORE);
    SAME(calls, 5);
    CHECK(last_file == file, "the handler of the request gets the file");
    OK(MPI_File_call_errhandler(file, MPI_ERR_IO));
    SAME(calls, 6);
    SAME(last_class, MPI_ERR_IO);
    OK(MPI_File_get_errhandler(file, &found));
    OK(MPI_File_set_errhandler(file, MPI_ERRORS_RETURN));
    OK(MPI_Errhandler_free(&found));
    FAILS(MPI_File_write(file, &byte, 1, MPI_BYTE, MPI_STATUS_IGNORE), MPI_ERR_READ_ONLY);
    SAME(calls, 6);
    MPI_File stale = file;
    OK(MPI_File_close(&file));
    FAILS(MPI_File_get_size(stale, &size_of), MPI_ERR_FILE);
    file = opened(MPI_MODE_WRONLY);
    FAILS(MPI_File_read_all(file, &byte, 1, MPI_BYTE, MPI_STATUS_IGNORE), MPI_ERR_ACCESS);
    OK(MPI_File_close(&file));
}

/* A datatype that has no whole number of etypes, and memory that two etypes do not fill. */
static void of_types(void) {
    char bytes[6] = {0};
    MPI_Datatype empty;
    MPI_File file = opened(MPI_MODE_RDWR);
    OK(MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
    REFUSED(MPI_File_read_at(file, 0, bytes, 6, MPI_BYTE, MPI_STATUS_IGNORE));
    OK(MPI_Type_contiguous(0, MPI_INT, &empty));
    OK(MPI_Type_commit(&empty));
    REFUSED(MPI_File_set_view(file, 0, empty, MPI_INT, "native", MPI_INFO_NULL));
    OK(MPI_File_set_view(file, 0, MPI_INT, rank ? empty : MPI_INT, "native", MPI_INFO_NULL));
    OK(MPI_File_write_all(file, bytes, rank ? 0 : 1, MPI_INT, MPI_STATUS_IGNORE));
    OK(MPI_Type_free(&empty));
    OK(MPI_File_close(&file));
}

int main(int argc, char **argv) {
    start(&argc, &argv);
    const char *folder = getenv("TMPDIR");
    snprintf(name, sizeof name, "%s/fishplate-file-errors-%d", folder ? folder : "/tmp", (int)getpid());
    MPI_Bcast(name, sizeof name, MPI_CHAR, 0, MPI_COMM_WORLD);
    for (int wrong = 0; wrong < size; wrong++) of_one_rank(wrong);
    for (int wrong = 0; wrong < size; wrong++) of_open(wrong);
    handlers();
    of_types();
    OK(MPI_Barrier(MPI_COMM_WORLD));
    if (rank == 0) OK(MPI_File_delete(name, MPI_INFO_NULL));
    return finish();
}
