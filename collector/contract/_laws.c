/* Sees whether a generation surely breaks no law, and makes its row.
 *
 * It decides nothing that `conservation` does not decide: it says yes where every law is seen to hold
 * on plain numbers, and leaves all else (a law that is broken, a number of another type or beyond
 * int64) to Python.
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>

#define ROUNDING_S 1e-6      /* as collector.contract.conservation has it */
#define EXACT (1LL << 53)    /* integers up to here are doubles, too */
#define MOST_COUNTS 64       /* of a list */
#define COUNT_CHARACTERS 21  /* of an int64 with its sign and a comma */

enum { START, END, TTFT, STEPS, DRAFTED, ACCEPTED, HISTOGRAM, DRAFTED_PER_POS, ACCEPTED_PER_POS,
       FIRST_NOT_NEGATIVE };
static const char *const names[] = {
    "start_unix_ns", "end_unix_ns", "ttft_s", "spec_steps", "spec_draft_tokens",
    "spec_accepted_tokens", "spec_acceptance_histogram", "spec_draft_tokens_per_pos",
    "spec_accepted_tokens_per_pos",
    /* what may not be negative, the counts above apart */
    "server_ttft_s", "tpot_s", "queue_s", "prefill_s", "decode_s", "stream_max_gap_s",
    "stream_p99_gap_s", "client_lag_s", "input_tokens", "output_tokens", "cached_input_tokens",
    "retries", "stream_chunks"};
#define NAMES (sizeof names / sizeof *names)

enum { ARM, ARM_VALUE, COUNTS_USABLE, DIALECT, STOP_SEQUENCES, FINISH_REASONS, DIMS, QUALITY, ROW_NAMES };
static const char *const row_names[] = {"arm", "_value_", "counts_usable", "dialect", "stop_sequences",
                                        "finish_reasons", "dims", "quality"};

typedef struct {
    PyObject *names[NAMES], *row_names[ROW_NAMES];
} State;

typedef struct {
    int known;
    int64_t value;
} Count;

typedef struct {
    Py_ssize_t length; /* -1 where there is none */
    int64_t values[MOST_COUNTS];
} Counts;

/* Each of these returns 0 where Python has to look. */

static int read_int(PyObject *value, int64_t *out) {
    int overflow;
    if (!PyLong_CheckExact(value)) return 0;
    *out = PyLong_AsLongLongAndOverflow(value, &overflow);
    return !overflow;
}

static int read_count(PyObject *value, Count *out) {
    out->known = value != NULL;
    out->value = 0;
    return value == NULL || (read_int(value, &out->value) && out->value >= 0 && out->value < EXACT);
}

static int read_counts(PyObject *value, Counts *out) {
    out->length = -1;
    if (value == NULL) return 1;
    if (!PyTuple_CheckExact(value) || PyTuple_GET_SIZE(value) > MOST_COUNTS) return 0;
    out->length = PyTuple_GET_SIZE(value);
    for (Py_ssize_t i = 0; i < out->length; i++) {
        Count count;
        if (!read_count(PyTuple_GET_ITEM(value, i), &count)) return 0;
        out->values[i] = count.value;
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

static int sums_to(const Counts *list, int weighted, Count total) {
    int64_t sum = 0;
    if (list->length < 0 || !total.known) return 1;
    for (Py_ssize_t i = 0; i < list->length; i++) {
        int64_t value = list->values[i];
        if (weighted && i > 0 && value > INT64_MAX / MOST_COUNTS / MOST_COUNTS) return 0;
        sum += weighted ? value * i : value;  /* at most 64 below 2^53 */
    }
    return sum == total.value;
}

static int falls(const Counts *list) {
    for (Py_ssize_t i = 1; i < list->length; i++)
        if (list->values[i] > list->values[i - 1]) return 0;
    return 1;
}

static int counts_hold(PyObject *const *values) {
    Count steps, drafted, accepted;
    Counts histogram, drafted_per_pos, accepted_per_pos;
    if (!read_count(values[STEPS], &steps) || !read_count(values[DRAFTED], &drafted) ||
        !read_count(values[ACCEPTED], &accepted) || !read_counts(values[HISTOGRAM], &histogram) ||
        !read_counts(values[DRAFTED_PER_POS], &drafted_per_pos) ||
        !read_counts(values[ACCEPTED_PER_POS], &accepted_per_pos))
        return 0;
    if (accepted.known && drafted.known && accepted.value > drafted.value) return 0;
    return sums_to(&histogram, 0, steps) && sums_to(&histogram, 1, accepted) &&
           falls(&drafted_per_pos) && sums_to(&drafted_per_pos, 0, drafted) &&
           falls(&accepted_per_pos) && sums_to(&accepted_per_pos, 0, accepted);
}

static int times_hold(PyObject *const *values) {
    int64_t start, end;
    double ttft = 0;
    if (values[START] == NULL || values[END] == NULL || !read_int(values[START], &start) ||
        !read_int(values[END], &end) || start < 0 || end < start || end - start > EXACT)
        return 0;
    if (values[TTFT] != NULL && !read_number(values[TTFT], &ttft)) return 0;
    return ttft >= 0 && ttft <= (double)(end - start) / 1e9 + ROUNDING_S;
}

/* Say whether every law is seen to hold, and what the fields have under `names`, borrowed; -1 where
 * an exception is set. */
static int hold(const State *state, PyObject *fields, PyObject **values) {
    if (!PyDict_CheckExact(fields)) return 0;
    for (size_t i = 0; i < NAMES; i++) {
        values[i] = PyDict_GetItemWithError(fields, state->names[i]);
        if (values[i] == NULL && PyErr_Occurred()) return -1;
    }
    int all = times_hold(values) && counts_hold(values);
    for (size_t i = FIRST_NOT_NEGATIVE; all && i < NAMES; i++) {
        double number;
        all = values[i] == NULL || (read_number(values[i], &number) && number >= 0);
    }
    return all;
}

static PyObject *surely_hold(PyObject *module, PyObject *fields) {
    PyObject *values[NAMES];
    int all = hold(PyModule_GetState(module), fields, values);
    return all < 0 ? NULL : PyBool_FromLong(all);
}

static PyObject *dump_counts(PyObject *Py_UNUSED(module), PyObject *values) {
    char text[MOST_COUNTS * COUNT_CHARACTERS + 2];
    int length = 0;
    if (!PyTuple_CheckExact(values) || PyTuple_GET_SIZE(values) > MOST_COUNTS) Py_RETURN_NONE;
    text[length++] = '[';
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(values); i++) {
        char digits[COUNT_CHARACTERS];
        int count = 0;
        int64_t number;
        if (!read_int(PyTuple_GET_ITEM(values, i), &number) || number < 0) Py_RETURN_NONE;
        do digits[count++] = (char)('0' + number % 10);
        while (number /= 10);
        if (i > 0) text[length++] = ',';
        while (count > 0) text[length++] = digits[--count];
    }
    text[length++] = ']';
    return PyUnicode_FromStringAndSize(text, length);
}

/* Put `made`, which is stolen and may be NULL, under a name; -1 where an exception is set. */
static int put(PyObject *row, PyObject *name, PyObject *made) {
    int result = made == NULL ? -1 : PyDict_SetItem(row, name, made);
    Py_XDECREF(made);
    return result;
}

/* Put what `with` makes of the value under a name in its place; 1 where there is none. */
static int replace(PyObject *row, PyObject *name, PyObject *with) {
    PyObject *value = PyDict_GetItemWithError(row, name);
    if (value == NULL) return PyErr_Occurred() ? -1 : 1;
    return put(row, name, PyObject_CallOneArg(with, value));
}

static PyObject *make_row(PyObject *module, PyObject *args) {
    State *state = PyModule_GetState(module);
    PyObject *row, *dialect, *dump_strings, *values[NAMES];
    if (!PyArg_ParseTuple(args, "OOO", &row, &dialect, &dump_strings)) return NULL;
    int all = hold(state, row, values);
    if (all <= 0) return all < 0 ? NULL : Py_NewRef(Py_False);
    for (int i = DIMS; i <= QUALITY; i++) {
        int has = PyDict_Contains(row, state->row_names[i]);
        if (has) return has < 0 ? NULL : Py_NewRef(Py_False);
    }
    int usable = values[DRAFTED] != NULL && values[ACCEPTED] != NULL;
    for (int i = HISTOGRAM; i <= ACCEPTED_PER_POS; i++)
        if (values[i] != NULL && put(row, state->names[i], dump_counts(module, values[i])) < 0)
            return NULL;
    for (int i = STOP_SEQUENCES; i <= FINISH_REASONS; i++)
        if (replace(row, state->row_names[i], dump_strings) < 0) return NULL;
    PyObject *arm = PyDict_GetItemWithError(row, state->row_names[ARM]);
    if (arm == NULL && PyErr_Occurred()) return NULL;
    if (arm != NULL && put(row, state->row_names[ARM],
                           PyObject_GetAttr(arm, state->row_names[ARM_VALUE])) < 0)
        return NULL;
    if (PyDict_SetItem(row, state->row_names[DIALECT], dialect) < 0 ||
        PyDict_SetItem(row, state->row_names[COUNTS_USABLE], usable ? Py_True : Py_False) < 0)
        return NULL;
    Py_RETURN_TRUE;
}

static int execute(PyObject *module) {
    State *state = PyModule_GetState(module);
    for (size_t i = 0; i < ROW_NAMES; i++)
        if ((state->row_names[i] = PyUnicode_InternFromString(row_names[i])) == NULL) return -1;
    for (size_t i = 0; i < NAMES; i++)
        if ((state->names[i] = PyUnicode_InternFromString(names[i])) == NULL) return -1;
    return 0;
}

static int clear(PyObject *module) {
    State *state = PyModule_GetState(module);
    for (size_t i = 0; state != NULL && i < NAMES; i++) Py_CLEAR(state->names[i]);
    for (size_t i = 0; state != NULL && i < ROW_NAMES; i++) Py_CLEAR(state->row_names[i]);
    return 0;
}

static void free_module(void *module) { clear(module); }

static PyMethodDef functions[] = {
    {"surely_hold", surely_hold, METH_O,
     "Say whether a generation's flat fields are seen to break no law."},
    {"dump_counts", dump_counts, METH_O,
     "Return a tuple of counts as a JSON list, or None where it holds anything else."},
    {"make_row", make_row, METH_VARARGS,
     "Make a generation's flat fields its row, where they are seen to break no law; else say no."},
    {NULL, NULL, 0, NULL},
};
static PyModuleDef_Slot slots[] = {{Py_mod_exec, execute}, {0, NULL}};
static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "_laws", "Sees whether a generation surely breaks no law.",
    sizeof(State), functions, slots, NULL, clear, free_module};

PyMODINIT_FUNC PyInit__laws(void) { return PyModuleDef_Init(&definition); }
