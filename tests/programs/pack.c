/* Pack and Unpack over messages, MPI_PACKED against typed receives, and external32. */
#include "check.h"

static void message(void) {
    char packed[500];
    int position = 0, values[3] = {1, 2, 3}, got[3] = {0};
    double real = 2.5, real_back = 0;
    MPI_Datatype gappy;
    OK(MPI_Type_vector(2, 1, 2, MPI_INT, &gappy));
    OK(MPI_Type_commit(&gappy));
    if (rank == 1) {
        OK(MPI_Pack(&real, 1, MPI_DOUBLE, packed, sizeof packed, &position, MPI_COMM_WORLD));
        OK(MPI_Pack(values, 1, gappy, packed, sizeof packed, &position, MPI_COMM_WORLD));
        OK(MPI_Send(packed, position, MPI_PACKED, 0, 1, MPI_COMM_WORLD));
        position = 0;
        OK(MPI_Pack(values, 3, MPI_INT, packed, sizeof packed, &position, MPI_COMM_WORLD));
        OK(MPI_Send(packed, position, MPI_PACKED, 0, 2, MPI_COMM_WORLD));
        OK(MPI_Send(values, 3, MPI_INT, 0, 3, MPI_COMM_WORLD));
    } else if (rank == 0) {
        MPI_Status status;
        OK(MPI_Recv(packed, sizeof packed, MPI_PACKED, 1, 1, MPI_COMM_WORLD, &status));
        int bytes = count_of(&status, MPI_PACKED);
        OK(MPI_Unpack(packed, bytes, &position, &real_back, 1, MPI_DOUBLE, MPI_COMM_WORLD));
        OK(MPI_Unpack(packed, bytes, &position, got, 1, gappy, MPI_COMM_WORLD));
        SAME(position, bytes);
        CHECK(real_back == 2.5 && got[0] == 1 && got[1] == 0 && got[2] == 3, "unpacked");
        OK(MPI_Recv(got, 3, MPI_INT, 1, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        CHECK(got[0] == 1 && got[1] == 2 && got[2] == 3, "packed sent, ints received");
        OK(MPI_Recv(packed, sizeof packed, MPI_PACKED, 1, 3, MPI_COMM_WORLD, &status));
        position = 0;
        memset(got, 0, sizeof got);
        OK(MPI_Unpack(packed, sizeof packed, &position, got, 3, MPI_INT, MPI_COMM_WORLD));
        CHECK(got[0] == 1 && got[1] == 2 && got[2] == 3, "ints sent, packed received");
    }
    OK(MPI_Type_free(&gappy));
}

/* external32 is big-endian with fixed sizes. */
static void external(void) {
    unsigned char packed[64] = {0};
    const unsigned char wanted[] = {0x01, 0x02, 0x03, 0x04, 0x3f, 0xf8, 0, 0, 0, 0, 0, 0, 0xff, 0xfe, 'A'};
    MPI_Aint position = 0, room = 0;
    int i = 0x01020304, i_back = 0;
    double d = 1.5, d_back = 0;
    short s = -2, s_back = 0;
    char c = 'A', c_back = 0;
    OK(MPI_Pack_external_size("external32", 1, MPI_DOUBLE, &room));
    SAME(room, 8);
    OK(MPI_Pack_external("external32", &i, 1, MPI_INT, packed, sizeof packed, &position));
    OK(MPI_Pack_external("external32", &d, 1, MPI_DOUBLE, packed, sizeof packed, &position));
    OK(MPI_Pack_external("external32", &s, 1, MPI_SHORT, packed, sizeof packed, &position));
    OK(MPI_Pack_external("external32", &c, 1, MPI_CHAR, packed, sizeof packed, &position));
    SAME(position, sizeof wanted);
    CHECK(memcmp(packed, wanted, sizeof wanted) == 0, "the bytes are not those of external32");
    position = 0;
    OK(MPI_Unpack_external("external32", packed, sizeof packed, &position, &i_back, 1, MPI_INT));
    OK(MPI_Unpack_external("external32", packed, sizeof packed, &position, &d_back, 1, MPI_DOUBLE));
    OK(MPI_Unpack_external("external32", packed, sizeof packed, &position, &s_back, 1, MPI_SHORT));
    OK(MPI_Unpack_external("external32", packed, sizeof packed, &position, &c_back, 1, MPI_CHAR));
    CHECK(i_back == i && d_back == d && s_back == s && c_back == c, "unpacked from external32");
}

int main(int argc, char **argv) {
    start(&argc, &argv);
    if (size > 1) message();
    external();
    return finish();
}
