/* Predefined datatypes: the size and extent that C gives them, their names, and that they may not
 * be freed; Get_count and Get_elements over pairs and partial elements. */
#include "check.h"
#include <complex.h>
#include <stdbool.h>
#include <wchar.h>

#define TYPE(ctype, type) \
    do { \
        int bytes = -1, length = -1; \
        MPI_Aint lb = -1, extent = -1; \
        char name[MPI_MAX_OBJECT_NAME] = ""; \
        OK(MPI_Type_size(type, &bytes)); \
        OK(MPI_Type_get_extent(type, &lb, &extent)); \
        OK(MPI_Type_get_name(type, name, &length)); \
        CHECK(bytes == (int)sizeof(ctype), #type " has size %d", bytes); \
        CHECK(lb == 0 && extent == (MPI_Aint)sizeof(ctype), #type " has extent %ld", (long)extent); \
        CHECK(strcmp(name, #type) == 0 && length == (int)strlen(name), #type " is named %s", name); \
    } while (0)

static void sizes(void) {
    TYPE(char, MPI_CHAR);
    TYPE(signed char, MPI_SIGNED_CHAR);
    TYPE(unsigned char, MPI_UNSIGNED_CHAR);
    TYPE(char, MPI_BYTE);
    TYPE(short, MPI_SHORT);
    TYPE(unsigned short, MPI_UNSIGNED_SHORT);
    TYPE(int, MPI_INT);
    TYPE(unsigned, MPI_UNSIGNED);
    TYPE(long, MPI_LONG);
    TYPE(unsigned long, MPI_UNSIGNED_LONG);
    TYPE(unsigned long long, MPI_UNSIGNED_LONG_LONG);
    TYPE(float, MPI_FLOAT);
    TYPE(double, MPI_DOUBLE);
    TYPE(long double, MPI_LONG_DOUBLE);
    TYPE(wchar_t, MPI_WCHAR);
    TYPE(bool, MPI_C_BOOL);
    TYPE(double complex, MPI_C_DOUBLE_COMPLEX);
    TYPE(long double complex, MPI_C_LONG_DOUBLE_COMPLEX);
    TYPE(int8_t, MPI_INT8_T);
    TYPE(int16_t, MPI_INT16_T);
    TYPE(int32_t, MPI_INT32_T);
    TYPE(int64_t, MPI_INT64_T);
    TYPE(uint8_t, MPI_UINT8_T);
    TYPE(uint16_t, MPI_UINT16_T);
    TYPE(uint32_t, MPI_UINT32_T);
    TYPE(uint64_t, MPI_UINT64_T);
    TYPE(MPI_Aint, MPI_AINT);
    TYPE(MPI_Count, MPI_COUNT);
    TYPE(MPI_Offset, MPI_OFFSET);
    TYPE(char, MPI_PACKED);
}

#define PAIR(ctype, type) \
    do { \
        struct pair { ctype value; int index; }; \
        int bytes = -1; \
        MPI_Aint lb = -1, extent = -1; \
        OK(MPI_Type_size(type, &bytes)); \
        OK(MPI_Type_get_extent(type, &lb, &extent)); \
        CHECK(bytes == (int)(sizeof(ctype) + sizeof(int)), #type " has size %d", bytes); \
        CHECK(extent == (MPI_Aint)sizeof(struct pair), #type " has extent %ld", (long)extent); \
    } while (0)

static void pairs(void) {
    PAIR(float, MPI_FLOAT_INT);
    PAIR(double, MPI_DOUBLE_INT);
    PAIR(long, MPI_LONG_INT);
    PAIR(int, MPI_2INT);
    PAIR(short, MPI_SHORT_INT);
    PAIR(long double, MPI_LONG_DOUBLE_INT);
}

/* Seven ints received as structs of an int and two doubles' worth of... whole and partial elements. */
static void elements(void) {
    MPI_Datatype triple;
    MPI_Status status;
    MPI_Request request;
    int data[9] = {0}, in[16], count = -1;
    MPI_Count large = -1;
    OK(MPI_Type_contiguous(3, MPI_INT, &triple));
    OK(MPI_Type_commit(&triple));
    for (int ints = 0; ints <= 9; ints++) {
        OK(MPI_Isend(data, ints, MPI_INT, 0, 0, MPI_COMM_SELF, &request));
        OK(MPI_Recv(in, 5, triple, 0, 0, MPI_COMM_SELF, &status));
        OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
        SAME(count_of(&status, triple), ints % 3 ? MPI_UNDEFINED : ints / 3);
        OK(MPI_Get_elements(&status, triple, &count));
        SAME(count, ints);
        OK(MPI_Get_elements_c(&status, triple, &large));
        SAME(large, ints);
    }
    OK(MPI_Status_set_elements(&status, triple, 7));
    OK(MPI_Get_elements(&status, triple, &count));
    SAME(count, 7);
    OK(MPI_Type_free(&triple));
}

static void not_freed(void) {
    MPI_Datatype type = MPI_INT;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    FAILS(MPI_Type_free(&type), MPI_ERR_TYPE);
    OK(MPI_Type_commit(&type));
    MPI_Datatype found = MPI_DATATYPE_NULL;
    OK(MPI_Type_match_size(MPI_TYPECLASS_REAL, 8, &found));
    CHECK(found != MPI_DATATYPE_NULL, "no real type of 8 bytes");
}

int main(int argc, char **argv) {
    start(&argc, &argv);
    sizes();
    pairs();
    elements();
    not_freed();
    return finish();
}
