/* Reads numbers out of rows, a column for each name.
 *
 * Rows are dicts in which an absent value has no key, as generations are stored. Rows of another
 * type, and integers beyond int64, are left to Python.
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>

/* What is read: named integers, whether each is there, and named numbers. */
typedef struct {
    PyObject *integer_names, *number_names;
    int64_t *integers;
    char *present;
    double *numbers;
} Columns;

typedef enum { DONE = 1, LEFT = 0, FAILED = -1 } Outcome; /* FAILED: an exception is set */

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

static PyMethodDef functions[] = {
    {"fill", fill, METH_VARARGS,
     "Fill arrays of int64, of flags and of doubles with the rows' numbers; no where it cannot."},
    {NULL, NULL, 0, NULL},
};
static PyModuleDef_Slot slots[] = {{0, NULL}};
static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "_columns", "Reads numbers out of rows, a column for each name.",
    0, functions, slots, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit__columns(void) { return PyModuleDef_Init(&definition); }
