/* Conversions of the store's rows: to the binary format of PostgreSQL's COPY, to arrays of numbers,
 * and of counts to JSON lists.
 *
 * Handles only values of the type that their column expects. Any other value, such as a text with
 * NUL or an integer beyond int64, is left to the caller's fallback in Python or in the driver, which
 * converts it or reports the error.
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>
#include <string.h>

/* LEFT: left to the fallback. FAILED: an exception is set. */
typedef enum { DONE = 1, LEFT = 0, FAILED = -1 } Outcome;

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
    } else if (PyLong_CheckExact(value)) { /* senders write whole seconds as integers */
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
    if (text == NULL) { /* a lone surrogate, for which the driver raises an error */
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

static Outcome write_signature(Buffer *to) {
    char *at = extend(to, SIGNATURE_LENGTH);
    if (at == NULL) return FAILED;
    memcpy(at, SIGNATURE, SIGNATURE_LENGTH);
    return DONE;
}

static Outcome write_row_start(Buffer *to, Py_ssize_t columns) {
    char *at = extend(to, 2);
    if (at == NULL) return FAILED;
    put(at, (uint64_t)columns, 2);
    return DONE;
}

static Outcome write_end(Buffer *to) { return write_row_start(to, -1); }

/* ---- rows in the columns' order ---- */

static Outcome write_row(Buffer *to, PyObject *row, const char *kinds, Py_ssize_t columns) {
    if (!PyTuple_CheckExact(row) || PyTuple_GET_SIZE(row) != columns) return LEFT;
    Outcome outcome = write_row_start(to, columns);
    for (Py_ssize_t i = 0; outcome == DONE && i < columns; i++)
        outcome = write_value(to, PyTuple_GET_ITEM(row, i), kinds[i]);
    return outcome;
}

static Outcome write_rows(Buffer *to, PyObject *rows, const char *kinds, Py_ssize_t columns) {
    Outcome outcome = write_signature(to);
    for (Py_ssize_t i = 0; outcome == DONE && i < PyList_GET_SIZE(rows); i++)
        outcome = write_row(to, PyList_GET_ITEM(rows, i), kinds, columns);
    return outcome == DONE ? write_end(to) : outcome;
}

/* Return the buffer as bytes and free it; None if the outcome is LEFT, NULL if FAILED. */
static PyObject *packed(Buffer *from, Outcome outcome) {
    PyObject *bytes = NULL;
    if (outcome == DONE)
        bytes = PyBytes_FromStringAndSize(from->bytes, (Py_ssize_t)from->used);
    else if (outcome == LEFT)
        bytes = Py_NewRef(Py_None);
    PyMem_Free(from->bytes);
    return bytes;
}

static PyObject *pack(PyObject *Py_UNUSED(module), PyObject *args) {
    PyObject *rows;
    const char *kinds;
    Py_ssize_t columns;
    if (!PyArg_ParseTuple(args, "O!s#", &PyList_Type, &rows, &kinds, &columns)) return NULL;
    if (columns > INT16_MAX) {
        PyErr_SetString(PyExc_ValueError, "too many kinds");
        return NULL;
    }
    Buffer to = {NULL, 0, 0};
    return packed(&to, write_rows(&to, rows, kinds, columns));
}

/* ---- rows by name ---- */

#define MOST_NAMES 256

/* Rows as a matrix of borrowed values; NULL if a row has no value. */
typedef struct {
    PyObject *names; /* a tuple */
    Py_ssize_t columns, rows;
    PyObject **values;
    char is_named[MOST_NAMES];
    PyObject *key_of[MOST_NAMES]; /* keys of the last row, in order: most rows have the same */
    Py_ssize_t column_of[MOST_NAMES];
} Matrix;

/* Return the column of a name, or -1. Identity is compared first: most names are the same object. */
static Py_ssize_t find_column(const Matrix *matrix, PyObject *key) {
    for (Py_ssize_t i = 0; i < matrix->columns; i++)
        if (PyTuple_GET_ITEM(matrix->names, i) == key) return i;
    for (Py_ssize_t i = 0; PyUnicode_CheckExact(key) && i < matrix->columns; i++)
        if (PyUnicode_Compare(PyTuple_GET_ITEM(matrix->names, i), key) == 0) return i;
    return -1;
}

static Outcome read_row(Matrix *matrix, Py_ssize_t number, PyObject *row) {
    PyObject *key, *value;
    Py_ssize_t at = 0;
    if (!PyDict_CheckExact(row) || PyDict_GET_SIZE(row) > matrix->columns) return LEFT;
    for (Py_ssize_t i = 0; PyDict_Next(row, &at, &key, &value); i++) {
        if (matrix->key_of[i] != key) {
            Py_ssize_t column = find_column(matrix, key);
            if (column < 0) return PyErr_Occurred() ? FAILED : LEFT;
            matrix->key_of[i] = key;
            matrix->column_of[i] = column;
            matrix->is_named[column] = 1;
        }
        matrix->values[number * matrix->columns + matrix->column_of[i]] = value;
    }
    return DONE;
}

static Outcome write_matrix(Buffer *to, const Matrix *matrix, const char *kinds) {
    Py_ssize_t named = 0;
    for (Py_ssize_t i = 0; i < matrix->columns; i++) named += matrix->is_named[i];
    Outcome outcome = write_signature(to);
    for (Py_ssize_t row = 0; outcome == DONE && row < matrix->rows; row++) {
        PyObject **values = matrix->values + row * matrix->columns;
        outcome = write_row_start(to, named);
        for (Py_ssize_t i = 0; outcome == DONE && i < matrix->columns; i++)
            if (matrix->is_named[i]) outcome = write_value(to, values[i], kinds[i]);
    }
    return outcome == DONE ? write_end(to) : outcome;
}

static PyObject *named_columns(const Matrix *matrix) {
    PyObject *list = PyList_New(0);
    for (Py_ssize_t i = 0; list != NULL && i < matrix->columns; i++)
        if (matrix->is_named[i] && PyList_Append(list, PyTuple_GET_ITEM(matrix->names, i)) < 0)
            Py_CLEAR(list);
    PyObject *tuple = list == NULL ? NULL : PyList_AsTuple(list);
    Py_XDECREF(list);
    return tuple;
}

static PyObject *pack_named(PyObject *Py_UNUSED(module), PyObject *args) {
    PyObject *rows;
    const char *kinds;
    Py_ssize_t of_kinds;
    Matrix matrix = {0};
    if (!PyArg_ParseTuple(args, "O!O!s#", &PyList_Type, &rows, &PyTuple_Type, &matrix.names, &kinds,
                          &of_kinds))
        return NULL;
    matrix.columns = PyTuple_GET_SIZE(matrix.names);
    if (of_kinds != matrix.columns || of_kinds > MOST_NAMES) {
        PyErr_SetString(PyExc_ValueError, "wanted a kind for each of at most 256 names");
        return NULL;
    }
    matrix.rows = PyList_GET_SIZE(rows);
    matrix.values = PyMem_Calloc((size_t)(matrix.rows * matrix.columns), sizeof(PyObject *));
    if (matrix.values == NULL) return PyErr_NoMemory();
    Outcome outcome = DONE;
    for (Py_ssize_t i = 0; outcome == DONE && i < matrix.rows; i++)
        outcome = read_row(&matrix, i, PyList_GET_ITEM(rows, i));
    Buffer to = {NULL, 0, 0};
    if (outcome == DONE) outcome = write_matrix(&to, &matrix, kinds);
    PyMem_Free(matrix.values);
    PyObject *bytes = packed(&to, outcome);
    PyObject *columns = bytes == NULL || bytes == Py_None ? NULL : named_columns(&matrix);
    if (columns == NULL) return bytes == Py_None || bytes == NULL ? bytes : (Py_DECREF(bytes), NULL);
    return Py_BuildValue("(NN)", bytes, columns);
}

/* ---- columns of numbers ---- */

/* Output arrays: named integers, whether each is present, and named numbers. */
typedef struct {
    PyObject *integer_names, *number_names;
    int64_t *integers;
    char *present;
    double *numbers;
} Columns;

static Outcome read_integers(PyObject *row, const Columns *to, Py_ssize_t first) {
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(to->integer_names); i++) {
        int overflow = 0;
        PyObject *value = PyDict_GetItemWithError(row, PyTuple_GET_ITEM(to->integer_names, i));
        if (value == NULL && PyErr_Occurred()) return FAILED;
        int is_integer = value != NULL && PyLong_Check(value);
        to->present[first + i] = value != NULL;
        to->integers[first + i] = is_integer ? PyLong_AsLongLongAndOverflow(value, &overflow) : 0;
        if (overflow) return LEFT;
    }
    return DONE;
}

static Outcome read_numbers(PyObject *row, const Columns *to, Py_ssize_t first) {
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(to->number_names); i++) {
        PyObject *value = PyDict_GetItemWithError(row, PyTuple_GET_ITEM(to->number_names, i));
        if (value == NULL && PyErr_Occurred()) return FAILED;
        double number = value == NULL ? Py_NAN : PyFloat_AsDouble(value);
        if (number == -1 && PyErr_Occurred()) return FAILED;
        to->numbers[first + i] = number;
    }
    return DONE;
}

static Outcome read_rows(PyObject *rows, const Columns *to) {
    Py_ssize_t integers = PyTuple_GET_SIZE(to->integer_names);
    Py_ssize_t numbers = PyTuple_GET_SIZE(to->number_names);
    Outcome outcome = DONE;
    for (Py_ssize_t i = 0; outcome == DONE && i < PyList_GET_SIZE(rows); i++) {
        PyObject *row = PyList_GET_ITEM(rows, i);
        if (!PyDict_CheckExact(row)) return LEFT;
        outcome = read_integers(row, to, i * integers);
        if (outcome == DONE) outcome = read_numbers(row, to, i * numbers);
    }
    return outcome;
}

static PyObject *fill(PyObject *Py_UNUSED(module), PyObject *args) {
    Py_buffer integers, present, numbers;
    PyObject *rows;
    Columns to;
    if (!PyArg_ParseTuple(args, "O!O!O!w*w*w*", &PyList_Type, &rows, &PyTuple_Type,
                          &to.integer_names, &PyTuple_Type, &to.number_names, &integers, &present,
                          &numbers))
        return NULL;
    Py_ssize_t of_integers = PyList_GET_SIZE(rows) * PyTuple_GET_SIZE(to.integer_names);
    Py_ssize_t of_numbers = PyList_GET_SIZE(rows) * PyTuple_GET_SIZE(to.number_names);
    Outcome outcome = FAILED;
    if (integers.len != 8 * of_integers || present.len != of_integers ||
        numbers.len != 8 * of_numbers) {
        PyErr_SetString(PyExc_ValueError, "wanted a place for each name of each row");
    } else {
        to.integers = integers.buf;
        to.present = present.buf;
        to.numbers = numbers.buf;
        outcome = read_rows(rows, &to);
    }
    PyBuffer_Release(&integers);
    PyBuffer_Release(&present);
    PyBuffer_Release(&numbers);
    return outcome == FAILED ? NULL : PyBool_FromLong(outcome == DONE);
}

/* ---- lists of counts ---- */

#define MOST_COUNTS 64      /* in a list */
#define COUNT_CHARACTERS 21 /* an int64 with sign and comma */

static PyObject *dump_counts(PyObject *Py_UNUSED(module), PyObject *values) {
    char text[MOST_COUNTS * COUNT_CHARACTERS + 2];
    int length = 0;
    if (!PyTuple_CheckExact(values) || PyTuple_GET_SIZE(values) > MOST_COUNTS) Py_RETURN_NONE;
    text[length++] = '[';
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(values); i++) {
        char digits[COUNT_CHARACTERS];
        int count = 0;
        PyObject *value = PyTuple_GET_ITEM(values, i);
        if (!PyLong_CheckExact(value)) Py_RETURN_NONE;
        int overflow;
        int64_t number = PyLong_AsLongLongAndOverflow(value, &overflow);
        if (overflow || number < 0) Py_RETURN_NONE;
        do digits[count++] = (char)('0' + number % 10);
        while (number /= 10);
        if (i > 0) text[length++] = ',';
        while (count > 0) text[length++] = digits[--count];
    }
    text[length++] = ']';
    return PyUnicode_FromStringAndSize(text, length);
}

static PyMethodDef functions[] = {
    {"pack", pack, METH_VARARGS, "Return rows in COPY's binary format; None if it cannot."},
    {"pack_named", pack_named, METH_VARARGS,
     "Return rows by name in COPY's binary format, and the names they use; None if it cannot."},
    {"fill", fill, METH_VARARGS,
     "Fill arrays of int64, flags and doubles with the rows' numbers; return False if it cannot."},
    {"dump_counts", dump_counts, METH_O,
     "Return a tuple of counts as a JSON list; None if it contains anything else."},
    {NULL, NULL, 0, NULL},
};
static PyModuleDef_Slot slots[] = {{0, NULL}};
static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "_rows", "Conversions of rows: COPY's format, arrays, JSON lists.",
    0, functions, slots, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit__rows(void) { return PyModuleDef_Init(&definition); }
