/* A fast check that a generation breaks no law.
 *
 * `Laws` is constructed from the table of laws in `collector.contract.conservation`. It returns true
 * only if every law holds on plain numbers. Everything else (a broken law, an unknown form, a number
 * of another type or beyond int64) returns false, and Python decides.
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>
#include <string.h>

#define EXACT (1LL << 53) /* integers up to here are exact as doubles */
enum { MOST_COUNTS = 64, MOST_NAMES = 64, MOST_LAWS = 64, MOST_FIELDS = 16 };

typedef struct {
    int length;
    int64_t values[MOST_COUNTS];
} Counts;

/* Each of these returns 0 if Python has to decide. */

static int read_int(PyObject *value, int64_t *out) {
    int overflow;
    if (!PyLong_CheckExact(value)) return 0;
    *out = PyLong_AsLongLongAndOverflow(value, &overflow);
    return !overflow;
}

static int read_counts(PyObject *value, Counts *out) {
    if (!PyTuple_CheckExact(value) || PyTuple_GET_SIZE(value) > MOST_COUNTS) return 0;
    out->length = (int)PyTuple_GET_SIZE(value);
    for (int i = 0; i < out->length; i++) {
        if (!read_int(PyTuple_GET_ITEM(value, i), &out->values[i])) return 0;
        if (out->values[i] < 0 || out->values[i] >= EXACT) return 0;
    }
    return 1;
}

static int read_number(PyObject *value, double *out) {
    int64_t integer;
    if (PyFloat_CheckExact(value)) {
        *out = PyFloat_AS_DOUBLE(value);
        return 1;
    }
    if (!read_int(value, &integer) || integer > EXACT || integer < -EXACT) return 0;
    *out = (double)integer;
    return 1;
}

/* ---- the forms of laws, given values that are all present ---- */

static int is_not_negative(PyObject *const *values, double rounding) {
    (void)rounding;
    double number;
    Counts counts;
    if (PyTuple_CheckExact(values[0])) return read_counts(values[0], &counts);
    return read_number(values[0], &number) && number >= 0;
}

static int ascends(PyObject *const *values, double rounding) {
    (void)rounding;
    int64_t first, second;
    return read_int(values[0], &first) && read_int(values[1], &second) && first <= second;
}

static int is_within(PyObject *const *values, double rounding) {
    double time;
    int64_t start, end;
    if (!read_number(values[0], &time) || !read_int(values[1], &start) || !read_int(values[2], &end))
        return 0;
    if (start < 0 || end < start || end - start > EXACT) return 0;
    return time <= (double)(end - start) / 1e9 + rounding;
}

static int sums(PyObject *const *values, int weighted) {
    Counts counts;
    int64_t total, sum = 0;
    if (!read_counts(values[0], &counts) || !read_int(values[1], &total)) return 0;
    for (int i = 0; i < counts.length; i++) {
        if (weighted && counts.values[i] > INT64_MAX / MOST_COUNTS / MOST_COUNTS) return 0;
        sum += weighted ? counts.values[i] * i : counts.values[i]; /* at most 64 values < 2^53 */
    }
    return sum == total;
}

static int sums_to(PyObject *const *values, double rounding) {
    (void)rounding;
    return sums(values, 0);
}

static int sums_by_place_to(PyObject *const *values, double rounding) {
    (void)rounding;
    return sums(values, 1);
}

static int descends(PyObject *const *values, double rounding) {
    (void)rounding;
    Counts counts;
    if (!read_counts(values[0], &counts)) return 0;
    for (int i = 1; i < counts.length; i++)
        if (counts.values[i] > counts.values[i - 1]) return 0;
    return 1;
}

typedef struct {
    const char *name; /* the value of Python's `Form` */
    int fields;       /* 0: any number of fields, each checked separately if present */
    int (*holds)(PyObject *const *values, double rounding);
} Form;

static const Form forms[] = {
    {"not_negative", 0, is_not_negative}, {"ascends", 2, ascends}, {"within", 3, is_within},
    {"sums_to", 2, sums_to}, {"sums_by_place_to", 2, sums_by_place_to}, {"descends", 1, descends}};
enum { FORMS = sizeof forms / sizeof *forms };

/* ---- the laws ---- */

typedef struct {
    const Form *form;
    int fields, names[MOST_FIELDS];
} Law;

typedef struct {
    PyObject_HEAD
    PyObject *names; /* a list of the fields' names, each once */
    double rounding;
    int known; /* whether the forms of all laws are known */
    Py_ssize_t laws;
    Law law[MOST_LAWS];
} Laws;

static int law_holds(const Laws *self, const Law *law, PyObject *const *values) {
    PyObject *of[MOST_FIELDS];
    if (law->form->fields == 0) {
        for (int i = 0; i < law->fields; i++) {
            PyObject *value = values[law->names[i]];
            if (value != NULL && !law->form->holds(&value, self->rounding)) return 0;
        }
        return 1;
    }
    for (int i = 0; i < law->fields; i++)
        if ((of[i] = values[law->names[i]]) == NULL) return 1;
    return law->form->holds(of, self->rounding);
}

static PyObject *surely_hold(PyObject *object, PyObject *fields) {
    Laws *self = (Laws *)object;
    PyObject *values[MOST_NAMES];
    if (!self->known || !PyDict_CheckExact(fields)) Py_RETURN_FALSE;
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(self->names); i++) {
        values[i] = PyDict_GetItemWithError(fields, PyList_GET_ITEM(self->names, i));
        if (values[i] == NULL && PyErr_Occurred()) return NULL;
    }
    for (Py_ssize_t i = 0; i < self->laws; i++)
        if (!law_holds(self, &self->law[i], values)) Py_RETURN_FALSE;
    Py_RETURN_TRUE;
}

/* Return the index of a field's name; -1 if there are too many, or with an exception set. */
static int number_of(Laws *self, PyObject *name) {
    Py_ssize_t count = PyList_GET_SIZE(self->names);
    for (Py_ssize_t i = 0; i < count; i++) {
        int same = PyObject_RichCompareBool(PyList_GET_ITEM(self->names, i), name, Py_EQ);
        if (same) return same < 0 ? -1 : (int)i;
    }
    if (count == MOST_NAMES || PyList_Append(self->names, name) < 0) return -1;
    return (int)count;
}

/* Read a law; return 0 if its form is unknown, also with an exception set. */
static int read_law(Laws *self, PyObject *given, Law *law) {
    const char *flag, *form;
    PyObject *names;
    if (!PyArg_ParseTuple(given, "ssO!", &flag, &form, &PyTuple_Type, &names)) return 0;
    for (int i = 0; i < FORMS; i++)
        if (strcmp(forms[i].name, form) == 0) law->form = &forms[i];
    law->fields = (int)PyTuple_GET_SIZE(names);
    if (law->form == NULL || law->fields > MOST_FIELDS) return 0;
    if (law->form->fields && law->form->fields != law->fields) return 0;
    for (int i = 0; i < law->fields; i++)
        if ((law->names[i] = number_of(self, PyTuple_GET_ITEM(names, i))) < 0) return 0;
    return 1;
}

static PyObject *new_laws(PyTypeObject *type, PyObject *args, PyObject *Py_UNUSED(named)) {
    PyObject *laws;
    double rounding;
    if (!PyArg_ParseTuple(args, "O!d", &PyTuple_Type, &laws, &rounding)) return NULL;
    Laws *self = (Laws *)type->tp_alloc(type, 0);
    if (self == NULL || (self->names = PyList_New(0)) == NULL) goto failed;
    self->rounding = rounding;
    self->laws = PyTuple_GET_SIZE(laws);
    self->known = self->laws <= MOST_LAWS;
    for (Py_ssize_t i = 0; self->known && i < self->laws; i++) {
        self->known = read_law(self, PyTuple_GET_ITEM(laws, i), &self->law[i]);
        if (PyErr_Occurred()) goto failed;
    }
    return (PyObject *)self;
failed:
    Py_XDECREF(self);
    return NULL;
}

static PyObject *are_known(PyObject *self, void *Py_UNUSED(closure)) {
    return PyBool_FromLong(((Laws *)self)->known);
}

static void free_laws(PyObject *self) {
    PyTypeObject *type = Py_TYPE(self);
    Py_CLEAR(((Laws *)self)->names);
    type->tp_free(self);
    Py_DECREF(type);
}

static PyMethodDef methods[] = {
    {"surely_hold", surely_hold, METH_O,
     "Return whether a generation's flat fields certainly break no law."},
    {NULL, NULL, 0, NULL},
};
static PyGetSetDef attributes[] = {
    {"known", are_known, NULL, "Whether every law's form is known; if not, surely_hold is false.",
     NULL},
    {NULL, NULL, NULL, NULL, NULL},
};
static PyType_Slot type_slots[] = {{Py_tp_new, new_laws}, {Py_tp_dealloc, free_laws},
                                   {Py_tp_methods, methods}, {Py_tp_getset, attributes}, {0, NULL}};
static PyType_Spec type_spec = {"collector.contract._laws.Laws", sizeof(Laws), 0,
                                Py_TPFLAGS_DEFAULT, type_slots};

static int execute(PyObject *module) {
    PyObject *type = PyType_FromSpec(&type_spec);
    int added = type == NULL ? -1 : PyModule_AddObjectRef(module, "Laws", type);
    Py_XDECREF(type);
    return added;
}

static PyModuleDef_Slot slots[] = {{Py_mod_exec, execute}, {0, NULL}};
static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "_laws", "A fast check that a generation breaks no law.",
    0, NULL, slots, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit__laws(void) { return PyModuleDef_Init(&definition); }
