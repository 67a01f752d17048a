/* Rows in the binary format of PostgreSQL's COPY.
 *
 * Knows the values that rows of ours have, in columns of their own types. What else there is, a text
 * with a character 0 among them, is left to the driver, which converts it or says what is wrong.
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>
#include <string.h>

typedef enum { DONE = 1, LEFT = 0, FAILED = -1 } Outcome; /* FAILED: an exception is set */

typedef struct {
    char *bytes;
    size_t used, room;
} Buffer;

static const char SIGNATURE[] = "PGCOPY\n\377\r\n\0\0\0\0\0\0\0\0\0"; /* no flags, no extension */
enum { SIGNATURE_LENGTH = 19 };

/* Return where `more` bytes can be written, or NULL with an exception set. */
static char *extend(Buffer *to, size_t more) {
    if (to->room - to->used < more) {
        size_t room = 2 * to->room + more;
        char *bytes = PyMem_Realloc(to->bytes, room);
        if (bytes == NULL) {
            PyErr_NoMemory();
            return NULL;
        }
        to->bytes = bytes;
        to->room = room;
    }
    to->used += more;
    return to->bytes + to->used - more;
}

static void put(char *at, uint64_t value, int size) {
    for (int i = 0; i < size; i++) at[i] = (char)(value >> 8 * (size - 1 - i));
}

static Outcome write_number(Buffer *to, uint64_t value, int size) {
    char *at = extend(to, 4 + (size_t)size);
    if (at == NULL) return FAILED;
    put(at, (uint64_t)size, 4);
    put(at + 4, value, size);
    return DONE;
}

static Outcome write_bytes(Buffer *to, const char *bytes, Py_ssize_t length) {
    if (length > INT32_MAX) return LEFT;
    char *at = extend(to, 4 + (size_t)length);
    if (at == NULL) return FAILED;
    put(at, (uint64_t)length, 4);
    memcpy(at + 4, bytes, (size_t)length);
    return DONE;
}

static Outcome write_integer(Buffer *to, PyObject *value, int size) {
    if (!PyLong_CheckExact(value)) return LEFT;
    int overflow = 0;
    long long number = PyLong_AsLongLongAndOverflow(value, &overflow);
    if (overflow || (size == 4 && (number < INT32_MIN || number > INT32_MAX))) return LEFT;
    return write_number(to, (uint64_t)number, size);
}

static Outcome write_double(Buffer *to, PyObject *value) {
    double number;
    if (PyFloat_CheckExact(value)) {
        number = PyFloat_AS_DOUBLE(value);
    } else if (PyLong_CheckExact(value)) { /* as senders write whole seconds */
        number = PyLong_AsDouble(value);
        if (number == -1 && PyErr_Occurred()) {
            PyErr_Clear();
            return LEFT;
        }
    } else {
        return LEFT;
    }
    uint64_t bits;
    memcpy(&bits, &number, sizeof bits);
    return write_number(to, bits, 8);
}

static Outcome write_text(Buffer *to, PyObject *value) {
    if (!PyUnicode_CheckExact(value)) return LEFT;
    Py_ssize_t length;
    const char *text = PyUnicode_AsUTF8AndSize(value, &length);
    if (text == NULL) { /* half of a surrogate pair, which the driver complains of */
        PyErr_Clear();
        return LEFT;
    }
    return memchr(text, 0, (size_t)length) ? LEFT : write_bytes(to, text, length);
}

static Outcome write_value(Buffer *to, PyObject *value, char kind) {
    if (value == NULL || value == Py_None) {
        char *at = extend(to, 4);
        if (at == NULL) return FAILED;
        memset(at, 0xFF, 4);
        return DONE;
    }
    switch (kind) {
    case 'q': return write_integer(to, value, 8);
    case 'i': return write_integer(to, value, 4);
    case 'd': return write_double(to, value);
    case 't': return write_text(to, value);
    case 'b': return PyBool_Check(value) ? write_number(to, value == Py_True, 1) : LEFT;
    case 'y':
        if (!PyBytes_CheckExact(value)) return LEFT;
        return write_bytes(to, PyBytes_AS_STRING(value), PyBytes_GET_SIZE(value));
    default: return LEFT;
    }
}

static Outcome write_row(Buffer *to, PyObject *row, PyObject *names, const char *kinds) {
    Py_ssize_t columns = PyTuple_GET_SIZE(names);
    int by_name = PyDict_CheckExact(row);
    if (!by_name && !(PyTuple_CheckExact(row) && PyTuple_GET_SIZE(row) == columns)) return LEFT;
    char *at = extend(to, 2);
    if (at == NULL) return FAILED;
    put(at, (uint64_t)columns, 2);
    Outcome outcome = DONE;
    for (Py_ssize_t i = 0; outcome == DONE && i < columns; i++) {
        PyObject *name = PyTuple_GET_ITEM(names, i);
        PyObject *value = by_name ? PyDict_GetItemWithError(row, name) : PyTuple_GET_ITEM(row, i);
        if (value == NULL && PyErr_Occurred()) return FAILED;
        outcome = write_value(to, value, kinds[i]);
    }
    return outcome;
}

static Outcome write_rows(Buffer *to, PyObject *rows, PyObject *names, const char *kinds) {
    char *at = extend(to, SIGNATURE_LENGTH);
    if (at == NULL) return FAILED;
    memcpy(at, SIGNATURE, SIGNATURE_LENGTH);
    Outcome outcome = DONE;
    for (Py_ssize_t i = 0; outcome == DONE && i < PyList_GET_SIZE(rows); i++)
        outcome = write_row(to, PyList_GET_ITEM(rows, i), names, kinds);
    if (outcome != DONE) return outcome;
    at = extend(to, 2);
    if (at == NULL) return FAILED;
    memset(at, 0xFF, 2); /* the end */
    return DONE;
}

static PyObject *pack(PyObject *Py_UNUSED(module), PyObject *args) {
    PyObject *rows, *names;
    const char *kinds;
    Py_ssize_t of_kinds;
    if (!PyArg_ParseTuple(args, "O!O!s#", &PyList_Type, &rows, &PyTuple_Type, &names, &kinds,
                          &of_kinds))
        return NULL;
    if (of_kinds != PyTuple_GET_SIZE(names) || of_kinds > INT16_MAX) {
        PyErr_SetString(PyExc_ValueError, "wanted a kind for each name");
        return NULL;
    }
    Buffer to = {NULL, 0, 0};
    Outcome outcome = write_rows(&to, rows, names, kinds);
    PyObject *packed = NULL;
    if (outcome == DONE)
        packed = PyBytes_FromStringAndSize(to.bytes, (Py_ssize_t)to.used);
    else if (outcome == LEFT)
        packed = Py_NewRef(Py_None);
    PyMem_Free(to.bytes);
    return packed;
}

static PyMethodDef functions[] = {
    {"pack", pack, METH_VARARGS, "Return rows as COPY reads them; None where it cannot."},
    {NULL, NULL, 0, NULL},
};
static PyModuleDef_Slot slots[] = {{0, NULL}};
static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "_copy_rows", "Rows in the binary format of PostgreSQL's COPY.",
    0, functions, slots, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit__copy_rows(void) { return PyModuleDef_Init(&definition); }
