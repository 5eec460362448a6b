/* Names and attributes of datatypes: copy and delete callbacks run on dup and on free. */
#include "check.h"

static int copies, deletions;

static int copy(MPI_Datatype old, int key, void *extra, void *in, void *out, int *flag) {
    (void)old, (void)key;
    SAME(*(int *)extra, 42);
    *(void **)out = (char *)in + 1;
    *flag = 1;
    copies++;
    return MPI_SUCCESS;
}

static int drop(MPI_Datatype type, int key, void *value, void *extra) {
    (void)type, (void)key, (void)value;
    SAME(*(int *)extra, 42);
    deletions++;
    return MPI_SUCCESS;
}

int main(int argc, char **argv) {
    start(&argc, &argv);
    MPI_Datatype type, twin;
    int extra = 42, key, plain, length = -1, found = -1, marker[4];
    char name[MPI_MAX_OBJECT_NAME] = "x", *value = NULL;

    OK(MPI_Type_contiguous(2, MPI_INT, &type));
    OK(MPI_Type_get_name(type, name, &length));
    CHECK(length == 0 && name[0] == 0, "a new type is named '%s'", name);
    OK(MPI_Type_set_name(type, "pair of ints"));
    OK(MPI_Type_get_name(type, name, &length));
    CHECK(strcmp(name, "pair of ints") == 0 && length == 12, "'%s', %d", name, length);

    OK(MPI_Type_create_keyval(copy, drop, &key, &extra));
    OK(MPI_Type_create_keyval(MPI_TYPE_NULL_COPY_FN, MPI_TYPE_NULL_DELETE_FN, &plain, NULL));
    OK(MPI_Type_get_attr(type, key, &value, &found));
    SAME(found, 0);
    OK(MPI_Type_set_attr(type, key, &marker[1]));
    OK(MPI_Type_set_attr(type, plain, &marker[3]));
    OK(MPI_Type_get_attr(type, key, &value, &found));
    CHECK(found && value == (char *)&marker[1], "the attribute came back as %p", (void *)value);

    OK(MPI_Type_dup(type, &twin));
    SAME(copies, 1);
    OK(MPI_Type_get_attr(twin, key, &value, &found));
    CHECK(found && value == (char *)&marker[1] + 1, "the copied attribute is %p", (void *)value);
    OK(MPI_Type_get_attr(twin, plain, &value, &found));
    SAME(found, 0);
    OK(MPI_Type_free(&twin));
    SAME(deletions, 1);
    OK(MPI_Type_set_attr(type, key, &marker[2])); /* the old value is deleted */
    SAME(deletions, 2);
    OK(MPI_Type_delete_attr(type, key));
    SAME(deletions, 3);
    OK(MPI_Type_set_attr(type, key, &marker[2]));
    OK(MPI_Type_free_keyval(&key));
    SAME(key, MPI_KEYVAL_INVALID);
    OK(MPI_Type_free(&type)); /* a freed key lives on in what carries it */
    SAME(deletions, 4);
    OK(MPI_Type_free_keyval(&plain));
    return finish();
}
