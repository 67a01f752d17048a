/* Fast reader of plain OTLP trace bodies.
 *
 * Everything that is not plain is left to Python: `read` returns None for a body that is malformed,
 * or legal but unusual, and calls Python's `read_attribute` for an attribute of an unknown form. So
 * the results are always those of protobuf and the codec, which also report the errors.
 *
 * Field numbers: opentelemetry/proto/trace/v1/trace.proto, common/v1/common.proto.
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

/* The forms of attributes, numbered as in `attribute_facts.NativeForm`. */
enum form { FORM_OTHER, FORM_IGNORED, FORM_TEXT, FORM_STRING, FORM_NAME, FORM_INTEGER, FORM_NUMBER,
            FORM_BOOLEAN, FORM_INTEGERS, FORM_SYSTEM };

enum { VARINT = 0, FIXED64 = 1, BYTES = 2, FIXED32 = 5 };  /* protobuf's wire types */

#define MAX_NAME 255  /* as in collector.contract.names */
#define MOST_GUESSES 64
#define LONGEST_REMEMBERED 128 /* bytes: longer values seldom repeat */
#define LONGEST_KEY 256
#define MOST_KEYS 8192 /* cached at once: a body with more keys is not plain */
#define TRACE_ID_BYTES 16
#define SPAN_ID_BYTES 8

typedef struct {
    const uint8_t *at, *end;
} Slice;

typedef struct {
    uint64_t number;
    int type;
    uint64_t value;       /* of a varint or a fixed number */
    Slice bytes;          /* of the others */
    const uint8_t *start; /* of the field, its tag included */
} Field;

/* A cached attribute key. */
typedef struct {
    PyObject_HEAD
    PyObject *bytes, *name, *field;
    int form;
    uint64_t last_span;  /* the last span with this key, to detect duplicate keys */
    /* Its last value and result, because most attributes equal those of the previous span; NULL at
     * first. */
    PyObject *last_sent, *last_made;
} Key;

typedef struct {
    PyObject_HEAD
    PyObject *span_type, *attributes_type, *resource, *describe, *read_attribute;
    PyObject *keys;  /* dict: key's bytes to Key */
    PyTypeObject *key_type;
    uint64_t span;
    Key *guesses[MOST_GUESSES]; /* borrowed from `keys`: the keys of the last span, in order */
    int attribute;              /* index of the next attribute of the current span */
} SpanReader;

/* A growing byte buffer. */
typedef struct {
    char *bytes;
    Py_ssize_t length, room;
} Buffer;

/* A span's attributes while reading. */
typedef struct {
    PyObject *fields, *facts, *text, *text_sent;
    int has_system;
    Buffer rest;
} Reading;

typedef enum { DONE = 0, UNUSUAL = 1, FAILED = -1 } Outcome;  /* FAILED: an exception is set */

/* ---- protobuf's wire format ---- */

static int read_varint(Slice *in, uint64_t *out) {
    uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
        if (in->at == in->end) return 0;
        uint8_t byte = *in->at++;
        if (shift == 63 && byte > 1) return 0;
        value |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80) {
            *out = value;
            return 1;
        }
    }
    return 0;
}

static uint64_t little_endian(const uint8_t *at, int bytes) {
    uint64_t value = 0;
    for (int i = bytes - 1; i >= 0; i--) value = value << 8 | at[i];
    return value;
}

/* Read the next field; return 0 if it is malformed or of an unsupported wire type. */
static int read_field(Slice *in, Field *field) {
    uint64_t tag, length;
    field->start = in->at;
    if (!read_varint(in, &tag)) return 0;
    field->number = tag >> 3;
    field->type = (int)(tag & 7);
    if (field->number == 0 || tag > UINT32_MAX) return 0;
    size_t left = (size_t)(in->end - in->at);
    switch (field->type) {
    case VARINT:
        return read_varint(in, &field->value);
    case FIXED64:
    case FIXED32: {
        int bytes = field->type == FIXED64 ? 8 : 4;
        if (left < (size_t)bytes) return 0;
        field->value = little_endian(in->at, bytes);
        in->at += bytes;
        return 1;
    }
    case BYTES:
        if (!read_varint(in, &length)) return 0;
        left = (size_t)(in->end - in->at);
        if (length > left) return 0;
        field->bytes = (Slice){in->at, in->at + length};
        in->at += length;
        return 1;
    default:
        return 0;  /* groups, which are deprecated */
    }
}

static Py_ssize_t size_of(Slice bytes) { return bytes.end - bytes.at; }

static PyObject *to_bytes(Slice bytes) {
    return PyBytes_FromStringAndSize((const char *)bytes.at, size_of(bytes));
}

/* Return the text, or NULL without an exception if it is not UTF-8. */
static PyObject *to_text(Slice bytes, Outcome *outcome) {
    PyObject *text = PyUnicode_DecodeUTF8((const char *)bytes.at, size_of(bytes), "strict");
    *outcome = DONE;
    if (text == NULL) {
        if (PyErr_ExceptionMatches(PyExc_UnicodeDecodeError)) {
            PyErr_Clear();
            *outcome = UNUSUAL;
        } else {
            *outcome = FAILED;
        }
    }
    return text;
}

static int append(Buffer *buffer, const void *bytes, Py_ssize_t length) {
    if (length > buffer->room - buffer->length) {
        Py_ssize_t room = 2 * buffer->room + length + 256;
        char *grown = PyMem_Realloc(buffer->bytes, (size_t)room);
        if (grown == NULL) {
            PyErr_NoMemory();
            return 0;
        }
        buffer->bytes = grown;
        buffer->room = room;
    }
    memcpy(buffer->bytes + buffer->length, bytes, (size_t)length);
    buffer->length += length;
    return 1;
}

static PyObject *contents(const Buffer *buffer) {
    return PyBytes_FromStringAndSize(buffer->bytes, buffer->length);
}

/* ---- keys ---- */

static void Key_dealloc(PyObject *self) {
    PyTypeObject *type = Py_TYPE(self);
    Key *key = (Key *)self;
    Py_XDECREF(key->bytes);
    Py_XDECREF(key->name);
    Py_XDECREF(key->field);
    Py_XDECREF(key->last_sent);
    Py_XDECREF(key->last_made);
    PyObject_Free(self);
    Py_DECREF(type);
}

static PyType_Slot key_slots[] = {{Py_tp_dealloc, Key_dealloc}, {0, NULL}};
static PyType_Spec key_spec = {"collector.otlp._span_reader._Key", sizeof(Key), 0,
                               Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, key_slots};

/* Describe and cache a new key; returns a borrowed reference and steals `name`. */
static Key *learn(SpanReader *self, PyObject *bytes, PyObject *name) {
    PyObject *described = PyObject_CallOneArg(self->describe, name);
    Key *key = NULL;
    int form;
    PyObject *field;
    if (described != NULL && PyArg_ParseTuple(described, "iO", &form, &field)) {
        key = PyObject_New(Key, self->key_type);
        if (key != NULL) {
            PyUnicode_InternInPlace(&name);
            key->bytes = Py_NewRef(bytes);
            key->name = Py_NewRef(name);
            key->field = Py_NewRef(field);
            key->form = form;
            key->last_span = 0;
            key->last_sent = key->last_made = NULL;
            int failed = PyDict_SetItem(self->keys, bytes, (PyObject *)key) < 0;
            Py_DECREF(key);  /* the dict holds it */
            if (failed) key = NULL;
        }
    }
    Py_XDECREF(described);
    Py_DECREF(name);
    return key;
}

static int is_same(PyObject *bytes, Slice sent) {
    return PyBytes_GET_SIZE(bytes) == size_of(sent) &&
           memcmp(PyBytes_AS_STRING(bytes), sent.at, (size_t)size_of(sent)) == 0;
}

static Key *look_up(SpanReader *self, Slice sent, Outcome *outcome);

/* Return the cached key, borrowed, or NULL with the outcome set. */
static Key *key_of(SpanReader *self, Slice sent, Outcome *outcome) {
    if (self->attribute >= MOST_GUESSES) return look_up(self, sent, outcome);
    Key **guess = &self->guesses[self->attribute++];
    if (*guess == NULL || !is_same((*guess)->bytes, sent)) *guess = look_up(self, sent, outcome);
    return *guess;
}

static Key *look_up(SpanReader *self, Slice sent, Outcome *outcome) {
    PyObject *bytes = to_bytes(sent);
    *outcome = FAILED;
    if (bytes == NULL) return NULL;
    Key *key = (Key *)PyDict_GetItemWithError(self->keys, bytes);
    if (key == NULL && !PyErr_Occurred() &&
        (size_of(sent) > LONGEST_KEY || PyDict_GET_SIZE(self->keys) >= MOST_KEYS)) {
        *outcome = UNUSUAL;
    } else if (key == NULL && !PyErr_Occurred()) {
        PyObject *name = to_text(sent, outcome);
        if (name != NULL) {
            key = learn(self, bytes, name);
            *outcome = FAILED;
        }
    }
    Py_DECREF(bytes);
    return key;
}

/* Return the last result if it was for the same bytes, or NULL. */
static PyObject *remembered(const Key *key, Slice sent) {
    if (key->last_sent == NULL || !is_same(key->last_sent, sent)) return NULL;
    return Py_NewRef(key->last_made);
}

static int remember(Key *key, Slice sent, PyObject *made) {
    if (size_of(sent) > LONGEST_REMEMBERED) return 1;
    PyObject *bytes = to_bytes(sent);
    if (bytes == NULL) return 0;
    Py_XSETREF(key->last_sent, bytes);
    Py_XSETREF(key->last_made, Py_NewRef(made));
    return 1;
}

/* ---- attributes ---- */

/* Return the integers of an `ArrayValue` as a tuple; NULL if it contains anything else. */
static PyObject *read_integers(Slice in, Outcome *outcome) {
    int64_t numbers[64];
    Py_ssize_t count = 0;
    Field item, value;
    *outcome = UNUSUAL;
    while (in.at != in.end) {
        if (count == 64 || !read_field(&in, &item)) return NULL;
        if (item.number != 1 || item.type != BYTES) return NULL;
        Slice inner = item.bytes;
        if (!read_field(&inner, &value) || inner.at != inner.end) return NULL;
        if (value.number != 3 || value.type != VARINT) return NULL;
        numbers[count++] = (int64_t)value.value;
    }
    *outcome = FAILED;
    PyObject *tuple = PyTuple_New(count);
    for (Py_ssize_t i = 0; tuple != NULL && i < count; i++) {
        PyObject *number = PyLong_FromLongLong(numbers[i]);
        if (number == NULL) {
            Py_CLEAR(tuple);
        } else {
            PyTuple_SET_ITEM(tuple, i, number);
        }
    }
    return tuple;
}

/* As in `collector.contract.names`; `sent` is UTF-8. */
static int has_control(Slice sent) {
    for (const uint8_t *at = sent.at; at < sent.end; at++) {
        if (*at >= 0x20 && *at < 0x7f) continue;
        if (*at < 0x80) return 1;
        if (*at == 0xc2 && at[1] < 0xa0) return 1;                 /* U+0080 to U+009F */
        if (*at != 0xe2) continue;
        if (at[1] == 0x80 && at[2] >= 0xa8 && at[2] <= 0xae) return 1; /* U+2028 to U+202E */
        if (at[1] == 0x81 && at[2] >= 0xa6 && at[2] <= 0xa9) return 1; /* U+2066 to U+2069 */
    }
    return 0;
}

static int is_name(PyObject *text, Slice sent) {
    return PyUnicode_GET_LENGTH(text) <= MAX_NAME && !has_control(sent);
}

/* Return the value of an `AnyValue` for a key of this form; NULL if it has another type. */
static PyObject *read_value(Slice in, int form, Outcome *outcome) {
    Field value;
    PyObject *text;
    *outcome = UNUSUAL;
    if (!read_field(&in, &value) || in.at != in.end) return NULL;
    int ignored = form == FORM_IGNORED || form == FORM_SYSTEM;
    if (value.number == 1 && value.type == BYTES) {
        if (form > FORM_NAME && form != FORM_SYSTEM) return NULL;
        text = to_text(value.bytes, outcome);
        if (text != NULL && form == FORM_NAME && !is_name(text, value.bytes)) {
            *outcome = UNUSUAL;
            Py_CLEAR(text);
        }
        return text;
    }
    *outcome = FAILED;
    if (value.number == 2 && value.type == VARINT && (ignored || form == FORM_BOOLEAN))
        return PyBool_FromLong(value.value != 0);
    if (value.number == 3 && value.type == VARINT && (ignored || form == FORM_INTEGER))
        return PyLong_FromLongLong((int64_t)value.value);
    if (value.number == 4 && value.type == FIXED64 && (ignored || form == FORM_NUMBER)) {
        double number;
        memcpy(&number, &value.value, sizeof number);
        if (ignored || isfinite(number)) return PyFloat_FromDouble(number);
    }
    if (value.number == 5 && value.type == BYTES && form == FORM_INTEGERS)
        return read_integers(value.bytes, outcome);
    *outcome = UNUSUAL;
    return NULL;
}

#define MAX_HEAD 11

/* Write an attribute's tag and length in a `Span` message, and return their size. */
static Py_ssize_t write_head(Slice sent, uint8_t *head) {
    Py_ssize_t length = 0;
    uint64_t size = (uint64_t)size_of(sent);
    head[length++] = 9 << 3 | BYTES;
    for (; size >= 0x80; size >>= 7) head[length++] = (uint8_t)(size | 0x80);
    head[length++] = (uint8_t)size;
    return length;
}

static int keep_rest(Reading *reading, Slice sent) {
    uint8_t head[MAX_HEAD];
    return append(&reading->rest, head, write_head(sent, head)) &&
           append(&reading->rest, sent.at, size_of(sent));
}

static int keep_text(Reading *reading, PyObject *name, PyObject *value, Slice sent) {
    uint8_t head[MAX_HEAD];
    Py_ssize_t length = write_head(sent, head);
    PyObject *raw = PyBytes_FromStringAndSize(NULL, length + size_of(sent));
    if (raw == NULL) return 0;
    memcpy(PyBytes_AS_STRING(raw), head, (size_t)length);
    memcpy(PyBytes_AS_STRING(raw) + length, sent.at, (size_t)size_of(sent));
    int kept = PyDict_SetItem(reading->text, name, value) == 0 &&
               PyDict_SetItem(reading->text_sent, name, raw) == 0;
    Py_DECREF(raw);
    return kept;
}

static Outcome mark(SpanReader *self, Reading *reading, Key *key) {
    if (key->last_span == self->span) return UNUSUAL;  /* a duplicate key */
    key->last_span = self->span;
    reading->has_system |= key->form == FORM_SYSTEM;
    return DONE;
}

static PyObject *ask_python(SpanReader *self, Slice sent) {
    PyObject *raw = to_bytes(sent);
    PyObject *read = raw == NULL ? NULL : PyObject_CallOneArg(self->read_attribute, raw);
    Py_XDECREF(raw);
    return read;
}

/* Store Python's result for an attribute; `key` is NULL if it is not cached yet. */
static Outcome keep_read(SpanReader *self, Reading *reading, Key *key, Slice sent, PyObject *read) {
    PyObject *key_name, *value, *field, *field_value, *fact;
    int is_text;
    Outcome outcome;
    if (!PyArg_ParseTuple(read, "UOpOOO", &key_name, &value, &is_text, &field, &field_value, &fact))
        return FAILED;
    if (key == NULL) {
        Py_ssize_t length;
        const uint8_t *utf8 = (const uint8_t *)PyUnicode_AsUTF8AndSize(key_name, &length);
        if (utf8 == NULL) return FAILED;
        key = look_up(self, (Slice){utf8, utf8 + length}, &outcome);
        if (key == NULL) return outcome;
    }
    outcome = mark(self, reading, key);
    if (outcome != DONE) return outcome;
    if (field != Py_None && PyDict_SetItem(reading->fields, field, field_value) < 0) return FAILED;
    if (fact != Py_None && PyList_Append(reading->facts, fact) < 0) return FAILED;
    int kept = is_text ? keep_text(reading, key_name, value, sent) : keep_rest(reading, sent);
    return kept ? DONE : FAILED;
}

/* Have Python read an attribute, whose key may be cached, and store the result. */
static Outcome read_in_python(SpanReader *self, Reading *reading, Key *key, Slice sent) {
    PyObject *read = key == NULL ? NULL : remembered(key, sent);
    if (read == NULL) {
        read = ask_python(self, sent);
        if (read == NULL) return FAILED;
        if (key != NULL && key->form == FORM_OTHER && !remember(key, sent, read)) {
            Py_DECREF(read);
            return FAILED;
        }
    }
    Outcome outcome = keep_read(self, reading, key, sent, read);
    Py_DECREF(read);
    return outcome;
}

/* Like `read_value`, but reuses the last short string if it is equal. */
static PyObject *read_again(Key *key, Slice sent, Outcome *outcome) {
    if (key->form != FORM_STRING && key->form != FORM_NAME)
        return read_value(sent, key->form, outcome);
    PyObject *value = remembered(key, sent);
    if (value != NULL) return value;
    value = read_value(sent, key->form, outcome);
    if (value != NULL && !remember(key, sent, value)) {
        *outcome = FAILED;
        Py_CLEAR(value);
    }
    return value;
}

/* Read a `KeyValue` message and store the result. */
static Outcome read_attribute(SpanReader *self, Reading *reading, Slice sent) {
    Field name, any_value;
    Slice in = sent;
    Outcome outcome;
    if (!read_field(&in, &name) || name.number != 1 || name.type != BYTES ||
        !read_field(&in, &any_value) || any_value.number != 2 || any_value.type != BYTES ||
        in.at != in.end)
        return read_in_python(self, reading, NULL, sent);
    Key *key = key_of(self, name.bytes, &outcome);
    if (key == NULL) return outcome;
    if (key->form == FORM_OTHER) return read_in_python(self, reading, key, sent);
    PyObject *value = read_again(key, any_value.bytes, &outcome);
    if (value == NULL)
        return outcome == UNUSUAL ? read_in_python(self, reading, NULL, sent) : FAILED;
    outcome = mark(self, reading, key);
    if (outcome == DONE) {
        int kept;
        if (key->form == FORM_TEXT) {
            kept = keep_text(reading, key->name, value, sent);
        } else {
            kept = keep_rest(reading, sent);
            if (kept && key->form != FORM_IGNORED && key->form != FORM_SYSTEM)
                kept = PyDict_SetItem(reading->fields, key->field, value) == 0;
        }
        if (!kept) outcome = FAILED;
    }
    Py_DECREF(value);
    return outcome;
}

/* ---- spans ---- */

/* The fields of a `Span` that are read before its attributes. */
typedef struct {
    Slice trace_id, span_id, parent_span_id, name, message;
    int64_t kind, code;
    uint64_t start, end;
    int has_status;
} SpanFields;

static int is_id(Slice id, Py_ssize_t length) {
    static const uint8_t zero[TRACE_ID_BYTES];
    return size_of(id) == length && memcmp(id.at, zero, (size_t)length) != 0;
}

static Outcome read_status(Slice in, SpanFields *span) {
    Field field;
    if (span->has_status) return UNUSUAL;
    span->has_status = 1;
    while (in.at != in.end) {
        if (!read_field(&in, &field)) return UNUSUAL;
        if (field.number == 2) {
            if (field.type != BYTES) return UNUSUAL;
            span->message = field.bytes;
        } else if (field.number == 3) {
            if (field.type != VARINT) return UNUSUAL;
            span->code = (int32_t)field.value;
        }
    }
    return DONE;
}

/* The wire type of each field of a `Span`; `is_other` selects the fields stored as sent. */
static const int8_t span_types[17] = {-1, BYTES, BYTES, BYTES, BYTES, BYTES, VARINT, FIXED64, FIXED64,
                                      BYTES, VARINT, BYTES, VARINT, BYTES, VARINT, BYTES, FIXED32};

static int is_other(const Field *field) {
    switch (field->number) {
    case 3:
        return size_of(field->bytes) > 0; /* trace state */
    case 11:
    case 13:
        return 1; /* events and links */
    case 10:
    case 12:
    case 14: /* dropped counts */
    case 16: /* flags */
        return field->value != 0;
    default:
        return 0;
    }
}

static Outcome read_span_field(SpanReader *self, Field *field, Slice in, SpanFields *span,
                               Reading *reading, Buffer *others) {
    if (field->number > 16) return DONE; /* a field of a later version */
    if (field->type != span_types[field->number]) return UNUSUAL;
    switch (field->number) {
    case 1: span->trace_id = field->bytes; return DONE;
    case 2: span->span_id = field->bytes; return DONE;
    case 4: span->parent_span_id = field->bytes; return DONE;
    case 5: span->name = field->bytes; return DONE;
    case 6: span->kind = (int32_t)field->value; return DONE;
    case 7: span->start = field->value; return DONE;
    case 8: span->end = field->value; return DONE;
    case 9: return read_attribute(self, reading, field->bytes);
    case 15: return read_status(field->bytes, span);
    default: break;
    }
    if (field->number == 3) {
        Outcome outcome;
        PyObject *text = to_text(field->bytes, &outcome);
        Py_XDECREF(text);
        if (outcome != DONE) return outcome;
    }
    if (is_other(field) && !append(others, field->start, in.at - field->start)) return FAILED;
    return DONE;
}

enum { SPAN_ITEMS = 13, ATTRIBUTES_ITEMS = 6 }; /* of the named tuples created below */

/* Return whether a type is a named tuple with `count` fields; 0 with an exception set if not. */
static int has_fields(PyObject *type, Py_ssize_t count) {
    PyObject *fields = PyObject_GetAttrString(type, "_fields");
    int has = fields != NULL && PyType_IsSubtype((PyTypeObject *)type, &PyTuple_Type) &&
              PyTuple_CheckExact(fields) && PyTuple_GET_SIZE(fields) == count;
    if (fields == NULL) PyErr_Clear();
    if (!has)
        PyErr_Format(PyExc_TypeError, "%R: wanted a named tuple of %zd fields", type, count);
    Py_XDECREF(fields);
    return has;
}

/* Return a named tuple of the items, which are stolen and may be NULL. */
static PyObject *named_tuple(PyObject *type, PyObject **items, Py_ssize_t count) {
    PyObject *plain = PyTuple_New(count), *named = NULL;
    int whole = plain != NULL;
    for (Py_ssize_t i = 0; i < count; i++) {
        whole = whole && items[i] != NULL;
        if (plain != NULL)
            PyTuple_SET_ITEM(plain, i, items[i]);
        else
            Py_XDECREF(items[i]);
    }
    if (whole) {
        PyObject *arguments = PyTuple_Pack(1, plain);
        if (arguments != NULL) {
            named = PyTuple_Type.tp_new((PyTypeObject *)type, arguments, NULL);
            Py_DECREF(arguments);
        }
    }
    Py_XDECREF(plain);
    return named;
}

static PyObject *optional_text(Slice bytes, Outcome *outcome) {
    *outcome = DONE;
    return size_of(bytes) ? to_text(bytes, outcome) : Py_NewRef(Py_None);
}

/* Return the span as a `ReceivedSpan`. */
static PyObject *to_span(SpanReader *self, const SpanFields *span, Reading *reading,
                         const Buffer *others, PyObject *scope, PyObject *resource,
                         Outcome *outcome) {
    PyObject *name = to_text(span->name, outcome);
    if (name == NULL) return NULL;
    PyObject *message = optional_text(span->message, outcome);
    if (message == NULL) {
        Py_DECREF(name);
        return NULL;
    }
    int has_parent = is_id(span->parent_span_id, SPAN_ID_BYTES);
    PyObject *attributes[ATTRIBUTES_ITEMS] = {Py_NewRef(reading->fields), Py_NewRef(reading->facts),
                              Py_NewRef(reading->text),   Py_NewRef(reading->text_sent),
                              PyBool_FromLong(reading->has_system), contents(&reading->rest)};
    PyObject *items[SPAN_ITEMS] = {
        to_bytes(span->trace_id),
        to_bytes(span->span_id),
        has_parent ? to_bytes(span->parent_span_id) : Py_NewRef(Py_None),
        name,
        PyLong_FromLongLong(span->kind),
        PyLong_FromUnsignedLongLong(span->start),
        PyLong_FromUnsignedLongLong(span->end),
        PyLong_FromLongLong(span->code),
        message,
        Py_NewRef(scope),
        Py_NewRef(resource),
        named_tuple(self->attributes_type, attributes, ATTRIBUTES_ITEMS),
        contents(others),
    };
    *outcome = FAILED;
    return named_tuple(self->span_type, items, SPAN_ITEMS);
}

static int is_storable(const SpanFields *span) {
    Slice parent = span->parent_span_id;
    return is_id(span->trace_id, TRACE_ID_BYTES) && is_id(span->span_id, SPAN_ID_BYTES) &&
           (size_of(parent) == 0 || size_of(parent) == SPAN_ID_BYTES) && span->start > 0 &&
           span->start <= INT64_MAX && span->end > 0 && span->end <= INT64_MAX;
}

static Outcome read_span(SpanReader *self, Slice in, PyObject *scope, PyObject *resource,
                         PyObject *spans) {
    static const uint8_t nothing[1];
    const Slice empty = {nothing, nothing};
    SpanFields span = {empty, empty, empty, empty, empty, 0, 0, 0, 0, 0};
    Reading reading = {PyDict_New(), PyList_New(0), PyDict_New(), PyDict_New(), 0, {NULL, 0, 0}};
    Buffer others = {NULL, 0, 0};
    Field field;
    Outcome outcome = FAILED;
    self->span++;
    self->attribute = 0;
    if (!reading.fields || !reading.facts || !reading.text || !reading.text_sent) goto end;
    outcome = DONE;
    while (outcome == DONE && in.at != in.end)
        outcome = read_field(&in, &field)
                      ? read_span_field(self, &field, in, &span, &reading, &others)
                      : UNUSUAL;
    if (outcome == DONE && !is_storable(&span)) outcome = UNUSUAL;
    if (outcome == DONE) {
        PyObject *made = to_span(self, &span, &reading, &others, scope, resource, &outcome);
        if (made != NULL) {
            outcome = PyList_Append(spans, made) == 0 ? DONE : FAILED;
            Py_DECREF(made);
        }
    }
end:
    Py_XDECREF(reading.fields);
    Py_XDECREF(reading.facts);
    Py_XDECREF(reading.text);
    Py_XDECREF(reading.text_sent);
    PyMem_Free(reading.rest.bytes);
    PyMem_Free(others.bytes);
    return outcome;
}

/* Find the single message with this field number, in any position; empty if there is none. */
static Outcome find_message(Slice in, uint64_t number, Slice *found) {
    Field field;
    int seen = 0;
    *found = (Slice){in.at, in.at};
    while (in.at != in.end) {
        if (!read_field(&in, &field)) return UNUSUAL;
        if (field.number != number) continue;
        if (seen || field.type != BYTES) return UNUSUAL; /* two would have to be merged */
        seen = 1;
        *found = field.bytes;
    }
    return DONE;
}

static PyObject *scope_name(Slice in, Outcome *outcome) {
    Field field;
    Slice name = {in.at, in.at};
    while (in.at != in.end) {
        if (!read_field(&in, &field) || (field.number <= 2 && field.type != BYTES)) {
            *outcome = UNUSUAL;
            return NULL;
        }
        if (field.number == 1) name = field.bytes;
        if (field.number == 2) { /* the version is not stored, but must be valid text */
            PyObject *version = to_text(field.bytes, outcome);
            if (version == NULL) return NULL;
            Py_DECREF(version);
        }
    }
    return optional_text(name, outcome);
}

static Outcome read_scope_spans(SpanReader *self, Slice in, PyObject *resource, PyObject *spans) {
    Slice scope;
    Field field;
    Outcome outcome = find_message(in, 1, &scope);
    if (outcome != DONE) return outcome;
    PyObject *name = scope_name(scope, &outcome);
    if (name == NULL) return outcome;
    while (outcome == DONE && in.at != in.end) {
        if (!read_field(&in, &field) || (field.number == 2 && field.type != BYTES))
            outcome = UNUSUAL;
        else if (field.number == 2)
            outcome = read_span(self, field.bytes, name, resource, spans);
    }
    Py_DECREF(name);
    return outcome;
}

static Outcome read_resource_spans(SpanReader *self, Slice in, PyObject *spans) {
    Slice sent;
    Field field;
    Outcome outcome = find_message(in, 1, &sent);
    if (outcome != DONE) return outcome;
    PyObject *raw = to_bytes(sent);
    PyObject *resource = raw == NULL ? NULL : PyObject_CallOneArg(self->resource, raw);
    Py_XDECREF(raw);
    if (resource == NULL) return FAILED;
    while (outcome == DONE && in.at != in.end) {
        if (!read_field(&in, &field) || (field.number == 2 && field.type != BYTES))
            outcome = UNUSUAL;
        else if (field.number == 2)
            outcome = read_scope_spans(self, field.bytes, resource, spans);
    }
    Py_DECREF(resource);
    return outcome;
}

static PyObject *SpanReader_read(PyObject *object, PyObject *body) {
    SpanReader *self = (SpanReader *)object;
    char *bytes;
    Py_ssize_t length;
    if (PyBytes_AsStringAndSize(body, &bytes, &length) < 0) return NULL;
    Slice in = {(const uint8_t *)bytes, (const uint8_t *)bytes + length};
    PyObject *spans = PyList_New(0);
    Outcome outcome = spans == NULL ? FAILED : DONE;
    Field field;
    while (outcome == DONE && in.at != in.end) {
        if (!read_field(&in, &field) || (field.number == 1 && field.type != BYTES))
            outcome = UNUSUAL;
        else if (field.number == 1)
            outcome = read_resource_spans(self, field.bytes, spans);
    }
    if (outcome == DONE) return spans;
    Py_XDECREF(spans);
    return outcome == UNUSUAL ? Py_NewRef(Py_None) : NULL;
}

/* ---- the weight of a body ---- */

enum { FIELDS = 16, DEEPEST = 100 };

/* Return `left` minus the weight of all messages in `in`; negative if they are too many or
 * malformed. */
static long long weighed(Slice in, const char *schema, const char *weights, int type, int depth,
                         long long left) {
    Field field;
    while (left >= 0 && in.at != in.end) {
        if (depth > DEEPEST || !read_field(&in, &field)) return -1;
        int child = field.number < FIELDS ? schema[type * FIELDS + (int)field.number] : 0;
        if (child == 0 || field.type != BYTES) continue;
        left = weighed(field.bytes, schema, weights, child, depth + 1, left - weights[child]);
    }
    return left;
}

static PyObject *weigh(PyObject *Py_UNUSED(module), PyObject *args) {
    const char *bytes, *schema, *weights;
    Py_ssize_t length, schema_length, types;
    int type;
    long long most;
    if (!PyArg_ParseTuple(args, "y#y#y#iL", &bytes, &length, &schema, &schema_length, &weights,
                          &types, &type, &most))
        return NULL;
    for (Py_ssize_t i = 0; i < schema_length; i++)
        if (schema_length != types * FIELDS || schema[i] < 0 || schema[i] >= types || type < 0 ||
            type >= types)
            return PyErr_Format(PyExc_ValueError, "no schema");
    Slice in = {(const uint8_t *)bytes, (const uint8_t *)bytes + length};
    return PyLong_FromLongLong(most - weighed(in, schema, weights, type, 0, most));
}

/* ---- the extent of a JSON value ---- */

/* Return the offset after the string whose quote is before `at`; −1 if it does not end. */
static Py_ssize_t after_string(const char *bytes, Py_ssize_t at, Py_ssize_t length) {
    for (; at < length; at++) {
        if (bytes[at] == '"') return at + 1;
        if (bytes[at] == '\\') at++;
    }
    return -1;
}

static PyObject *extent(PyObject *Py_UNUSED(module), PyObject *args) {
    const char *bytes;
    Py_ssize_t length, at, objects = 0, commas = 0, depth = 0;
    if (!PyArg_ParseTuple(args, "y#n", &bytes, &length, &at)) return NULL;
    if (at < 0 || at > length) return PyErr_Format(PyExc_ValueError, "no offset");
    do {
        char sign = at < length ? bytes[at++] : '\0';
        if (sign == '"')
            at = after_string(bytes, at, length);
        else if (sign == '{' || sign == '[')
            depth++, objects++;
        else if (sign == '}' || sign == ']')
            depth--;
        else if (depth == 0 || at >= length)
            at = -1;
        else if (sign == ',')
            commas++;
    } while (depth > 0 && at >= 0);
    return Py_BuildValue("nnn", depth < 0 ? -1 : at, objects, commas);
}

static PyObject *SpanReader_forget(PyObject *object, PyObject *Py_UNUSED(ignored)) {
    SpanReader *self = (SpanReader *)object;
    memset(self->guesses, 0, sizeof self->guesses);
    PyDict_Clear(self->keys);
    Py_RETURN_NONE;
}

static PyObject *SpanReader_known(PyObject *object, PyObject *Py_UNUSED(ignored)) {
    return PyLong_FromSsize_t(PyDict_Size(((SpanReader *)object)->keys));
}

static PyObject *SpanReader_new(PyTypeObject *type, PyObject *args, PyObject *kwargs) {
    static char *names[] = {"span", "attributes", "resource", "describe", "read_attribute", NULL};
    PyObject *span, *attributes, *resource, *describe, *read;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O!O!OOO", names, &PyType_Type, &span,
                                     &PyType_Type, &attributes, &resource, &describe, &read))
        return NULL;
    if (!has_fields(span, SPAN_ITEMS) || !has_fields(attributes, ATTRIBUTES_ITEMS)) return NULL;
    SpanReader *self = (SpanReader *)type->tp_alloc(type, 0);
    if (self == NULL) return NULL;
    self->span_type = Py_NewRef(span);
    self->attributes_type = Py_NewRef(attributes);
    self->resource = Py_NewRef(resource);
    self->describe = Py_NewRef(describe);
    self->read_attribute = Py_NewRef(read);
    self->keys = PyDict_New();
    self->key_type = (PyTypeObject *)PyType_FromSpec(&key_spec);
    if (self->keys == NULL || self->key_type == NULL) Py_CLEAR(self);
    return (PyObject *)self;
}

static void SpanReader_dealloc(PyObject *object) {
    SpanReader *self = (SpanReader *)object;
    PyTypeObject *type = Py_TYPE(object);
    Py_XDECREF(self->span_type);
    Py_XDECREF(self->attributes_type);
    Py_XDECREF(self->resource);
    Py_XDECREF(self->describe);
    Py_XDECREF(self->read_attribute);
    Py_XDECREF(self->keys);
    Py_XDECREF(self->key_type);
    type->tp_free(object);
    Py_DECREF(type);
}

static PyMethodDef reader_methods[] = {
    {"read", SpanReader_read, METH_O,
     "Return the spans of a body, or None where it has to be read the long way."},
    {"known", SpanReader_known, METH_NOARGS, "Return the number of keys that are known."},
    {"forget", SpanReader_forget, METH_NOARGS, "Forget the keys that were seen."},
    {NULL, NULL, 0, NULL},
};
static PyType_Slot reader_slots[] = {
    {Py_tp_doc, "Reads OTLP trace bodies; for one thread at a time."},
    {Py_tp_new, SpanReader_new},
    {Py_tp_dealloc, SpanReader_dealloc},
    {Py_tp_methods, reader_methods},
    {0, NULL},
};
static PyType_Spec reader_spec = {"collector.otlp._span_reader.SpanReader", sizeof(SpanReader), 0,
                                  Py_TPFLAGS_DEFAULT, reader_slots};

static int execute(PyObject *module) {
    PyObject *type = PyType_FromSpec(&reader_spec);
    int result = type == NULL ? -1 : PyModule_AddObjectRef(module, "SpanReader", type);
    Py_XDECREF(type);
    return result;
}

static PyMethodDef module_methods[] = {
    {"weigh", weigh, METH_VARARGS,
     "Return the weight of the messages in a body; more than `most` where they are too many."},
    {"extent", extent, METH_VARARGS,
     "Return the offset after the text, list or object at an offset of a JSON body, or -1; the "
     "objects and lists in it; and its commas."},
    {NULL, NULL, 0, NULL},
};
static PyModuleDef_Slot module_slots[] = {{Py_mod_exec, execute}, {0, NULL}};
static struct PyModuleDef module_definition = {
    PyModuleDef_HEAD_INIT, "_span_reader", "Reads OTLP trace bodies, the short way.", 0,
    module_methods, module_slots, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit__span_reader(void) { return PyModuleDef_Init(&module_definition); }
