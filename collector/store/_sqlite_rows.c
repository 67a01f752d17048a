/* A table-valued function for SQLite that gives rows out of one value.
 *
 * `packed_rows(rows, kinds)` has the rows that `_rows.pack` put together, in columns c0, c1, …;
 * `kinds` has a letter for each. So one statement, bound once, inserts as many rows as there are:
 * Python's driver takes longer to bind a row and to step over it than SQLite takes to store it.
 *
 * SQLite is the driver's own, whichever that is: its functions are looked up where the driver finds
 * them, and what of its interface is used here is declared here, for it never changes
 * (https://sqlite.org/vtab.html) and headers seldom stand where Python was installed from.
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum { OK = 0, ERROR = 1, NO_MEMORY = 7, CONSTRAINT = 19 }; /* SQLite's results */
enum { EQUAL = 2 };                                         /* of a constraint */

typedef struct sqlite3 sqlite3;
typedef struct sqlite3_value sqlite3_value;
typedef struct sqlite3_context sqlite3_context;
typedef struct Module Module;
typedef void (*Destructor)(void *);

typedef struct {
    const Module *module;
    int references;
    char *message;
} VirtualTable;

typedef struct {
    VirtualTable *table;
} VirtualCursor;

typedef struct {
    int constraints;
    struct { int column; unsigned char operator, usable; int offset; } *constraint;
    int orders;
    void *order;
    struct { int argument; unsigned char omit; } *usage;
    int number;
    char *text;
    int text_is_allocated, is_ordered;
    double cost;
    /* what later versions added is not touched */
} IndexInfo;

struct Module {
    int version;
    int (*create)(sqlite3 *, void *, int, const char *const *, VirtualTable **, char **);
    int (*connect)(sqlite3 *, void *, int, const char *const *, VirtualTable **, char **);
    int (*best_index)(VirtualTable *, IndexInfo *);
    int (*disconnect)(VirtualTable *);
    int (*destroy)(VirtualTable *);
    int (*open)(VirtualTable *, VirtualCursor **);
    int (*close)(VirtualCursor *);
    int (*filter)(VirtualCursor *, int, const char *, int, sqlite3_value **);
    int (*next)(VirtualCursor *);
    int (*at_end)(VirtualCursor *);
    int (*column)(VirtualCursor *, sqlite3_context *, int);
    int (*row_id)(VirtualCursor *, int64_t *);
    void *rest[12]; /* writing, transactions, names, savepoints: none */
};

/* Those of SQLite's functions that are used; NULL until they were found. */
static struct {
    int (*auto_extension)(void (*)(void));
    int (*create_module_v2)(sqlite3 *, const char *, const Module *, void *, Destructor);
    int (*declare_vtab)(sqlite3 *, const char *);
    const void *(*value_blob)(sqlite3_value *);
    const unsigned char *(*value_text)(sqlite3_value *);
    int (*value_bytes)(sqlite3_value *);
    void (*result_null)(sqlite3_context *);
    void (*result_int)(sqlite3_context *, int);
    void (*result_int64)(sqlite3_context *, int64_t);
    void (*result_double)(sqlite3_context *, double);
    void (*result_blob)(sqlite3_context *, const void *, int, Destructor);
    void (*result_text)(sqlite3_context *, const char *, int, Destructor);
    void *(*malloc)(int);
    void (*free)(void *);
} sqlite;

static const Destructor STAYS = 0; /* SQLite's SQLITE_STATIC: what is given outlives its use */

enum { MOST_COLUMNS = 64, SIGNATURE_LENGTH = 19, END = 0xFFFF };

/* ---- the rows ---- */

typedef struct {
    const uint8_t *at; /* NULL: none */
    uint32_t length;
} Value;

typedef struct {
    VirtualCursor base;
    uint8_t *bytes; /* a copy: what was bound is SQLite's */
    size_t length, used;
    char kinds[MOST_COLUMNS + 1];
    Value values[MOST_COLUMNS];
    int columns;
    int64_t row;
    int ended;
} Cursor;

static uint64_t big_endian(const uint8_t *at, int size) {
    uint64_t value = 0;
    for (int i = 0; i < size; i++) value = value << 8 | at[i];
    return value;
}

/* Return what is read next, of so many bytes, or NULL where there are not as many. */
static const uint8_t *take(Cursor *cursor, size_t length) {
    if (cursor->length - cursor->used < length) return NULL;
    cursor->used += length;
    return cursor->bytes + cursor->used - length;
}

static int is_as_its_kind(uint32_t length, char kind) {
    switch (kind) {
    case 'q':
    case 'd': return length == 8;
    case 'i': return length == 4;
    case 'b': return length == 1;
    default: return kind == 't' || kind == 'y';
    }
}

static int rows_next(VirtualCursor *base) {
    Cursor *cursor = (Cursor *)base;
    const uint8_t *at = take(cursor, 2);
    if (at == NULL) return ERROR;
    int columns = (int)big_endian(at, 2);
    cursor->ended = columns == END;
    cursor->row++;
    if (cursor->ended) return OK;
    if (columns != cursor->columns) return ERROR;
    for (int i = 0; i < columns; i++) {
        at = take(cursor, 4);
        if (at == NULL) return ERROR;
        uint32_t length = (uint32_t)big_endian(at, 4);
        cursor->values[i] = (Value){NULL, 0};
        if (length == UINT32_MAX) continue;
        at = take(cursor, length);
        if (at == NULL || !is_as_its_kind(length, cursor->kinds[i])) return ERROR;
        cursor->values[i] = (Value){at, length};
    }
    return OK;
}

static int rows_filter(VirtualCursor *base, int number, const char *text, int arguments,
                       sqlite3_value **given) {
    Cursor *cursor = (Cursor *)base;
    (void)number, (void)text;
    if (arguments != 2) return ERROR;
    const char *kinds = (const char *)sqlite.value_text(given[1]);
    int columns = sqlite.value_bytes(given[1]);
    const void *rows = sqlite.value_blob(given[0]);
    int length = sqlite.value_bytes(given[0]);
    if (kinds == NULL || rows == NULL || columns > MOST_COLUMNS || length < SIGNATURE_LENGTH)
        return ERROR;
    sqlite.free(cursor->bytes);
    cursor->bytes = sqlite.malloc(length);
    if (cursor->bytes == NULL) return NO_MEMORY;
    memcpy(cursor->bytes, rows, (size_t)length);
    memcpy(cursor->kinds, kinds, (size_t)columns);
    cursor->length = (size_t)length;
    cursor->used = SIGNATURE_LENGTH;
    cursor->columns = columns;
    cursor->row = 0;
    return rows_next(base);
}

static int rows_at_end(VirtualCursor *base) { return ((Cursor *)base)->ended; }

static int rows_column(VirtualCursor *base, sqlite3_context *to, int column) {
    Cursor *cursor = (Cursor *)base;
    if (column >= cursor->columns || cursor->values[column].at == NULL) {
        sqlite.result_null(to);
        return OK;
    }
    Value value = cursor->values[column];
    uint64_t bits = value.length <= 8 ? big_endian(value.at, (int)value.length) : 0;
    double number;
    switch (cursor->kinds[column]) {
    case 'q': sqlite.result_int64(to, (int64_t)bits); break;
    case 'i': sqlite.result_int(to, (int32_t)bits); break;
    case 'b': sqlite.result_int(to, bits != 0); break;
    case 'd':
        memcpy(&number, &bits, sizeof number);
        sqlite.result_double(to, number);
        break;
    case 't': sqlite.result_text(to, (const char *)value.at, (int)value.length, STAYS); break;
    default: sqlite.result_blob(to, value.at, (int)value.length, STAYS);
    }
    return OK;
}

static int rows_row_id(VirtualCursor *base, int64_t *row_id) {
    *row_id = ((Cursor *)base)->row;
    return OK;
}

/* ---- the table ---- */

static int rows_connect(sqlite3 *db, void *data, int arguments, const char *const *given,
                        VirtualTable **made, char **message) {
    (void)data, (void)arguments, (void)given, (void)message;
    char schema[16 * MOST_COLUMNS];
    int length = snprintf(schema, sizeof schema, "CREATE TABLE x(");
    for (int i = 0; i < MOST_COLUMNS; i++)
        length += snprintf(schema + length, sizeof schema - (size_t)length, "c%d,", i);
    snprintf(schema + length, sizeof schema - (size_t)length, "rows HIDDEN,kinds HIDDEN)");
    int result = sqlite.declare_vtab(db, schema);
    if (result != OK) return result;
    *made = sqlite.malloc(sizeof **made);
    if (*made == NULL) return NO_MEMORY;
    memset(*made, 0, sizeof **made);
    return OK;
}

static int rows_disconnect(VirtualTable *table) {
    sqlite.free(table);
    return OK;
}

/* Both arguments have to be given. */
static int rows_best_index(VirtualTable *table, IndexInfo *info) {
    int given = 0;
    (void)table;
    for (int i = 0; i < info->constraints; i++) {
        int argument = info->constraint[i].column - MOST_COLUMNS + 1;
        if (argument < 1 || info->constraint[i].operator!= EQUAL) continue;
        if (!info->constraint[i].usable) return CONSTRAINT;
        info->usage[i].argument = argument;
        info->usage[i].omit = 1;
        given |= argument;
    }
    info->cost = 1;
    return given == 3 ? OK : CONSTRAINT;
}

static int rows_open(VirtualTable *table, VirtualCursor **opened) {
    Cursor *cursor = sqlite.malloc(sizeof *cursor);
    (void)table;
    if (cursor == NULL) return NO_MEMORY;
    memset(cursor, 0, sizeof *cursor);
    *opened = &cursor->base;
    return OK;
}

static int rows_close(VirtualCursor *base) {
    sqlite.free(((Cursor *)base)->bytes);
    sqlite.free(base);
    return OK;
}

static const Module MODULE = {
    .version = 0,
    .connect = rows_connect, /* no `create`: it is there without having been made */
    .best_index = rows_best_index,
    .disconnect = rows_disconnect,
    .open = rows_open,
    .close = rows_close,
    .filter = rows_filter,
    .next = rows_next,
    .at_end = rows_at_end,
    .column = rows_column,
    .row_id = rows_row_id,
};

static int on_open(sqlite3 *db, char **message, const void *functions) {
    (void)message, (void)functions;
    return sqlite.create_module_v2(db, "packed_rows", &MODULE, NULL, NULL);
}

/* ---- for Python ---- */

static int find_functions(void *library) {
    const struct { const char *name; void *place; } wanted[] = {
        {"sqlite3_auto_extension", &sqlite.auto_extension},
        {"sqlite3_create_module_v2", &sqlite.create_module_v2},
        {"sqlite3_declare_vtab", &sqlite.declare_vtab},
        {"sqlite3_value_blob", &sqlite.value_blob},
        {"sqlite3_value_text", &sqlite.value_text},
        {"sqlite3_value_bytes", &sqlite.value_bytes},
        {"sqlite3_result_null", &sqlite.result_null},
        {"sqlite3_result_int", &sqlite.result_int},
        {"sqlite3_result_int64", &sqlite.result_int64},
        {"sqlite3_result_double", &sqlite.result_double},
        {"sqlite3_result_blob", &sqlite.result_blob},
        {"sqlite3_result_text", &sqlite.result_text},
        {"sqlite3_malloc", &sqlite.malloc},
        {"sqlite3_free", &sqlite.free},
    };
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
        void *found = dlsym(library, wanted[i].name);
        if (found == NULL) return 0;
        memcpy(wanted[i].place, &found, sizeof found);
    }
    return 1;
}

static PyObject *offer(PyObject *Py_UNUSED(module), PyObject *args) {
    const char *driver; /* NULL: a part of the interpreter */
    if (!PyArg_ParseTuple(args, "z", &driver)) return NULL;
    void *library = dlopen(driver, RTLD_LAZY | RTLD_LOCAL);
    /* Never closed: SQLite calls what is here as long as the process runs. */
    int offered = library != NULL && find_functions(library) &&
                  sqlite.auto_extension((void (*)(void))on_open) == OK;
    return PyBool_FromLong(offered);
}

static PyMethodDef functions[] = {
    {"offer", offer, METH_VARARGS,
     "Have connections that are opened from now on know packed_rows, by the driver's file; say "
     "whether they will."},
    {NULL, NULL, 0, NULL},
};
static PyModuleDef_Slot slots[] = {{0, NULL}};
static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "_sqlite_rows", "A table-valued function that gives packed rows.", 0,
    functions, slots, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit__sqlite_rows(void) { return PyModuleDef_Init(&definition); }
