/* Reads sockets as soon as bytes arrive, in a thread that never needs the interpreter lock.
 *
 * The kernel stamps arriving segments, but merges those that wait to be read and keeps the last
 * one's stamp: to know each segment's time, each must be read before the next arrives. With hundreds
 * of streams, Python cannot do that. This thread keeps the pieces with their times until Python takes
 * them, and wakes Python through an eventfd when it should do so soon.
 *
 * One mutex guards all state. The thread holds it while it reads a socket, so that a removed socket
 * is not read again even if its file descriptor is reused. No Python object is created while it is
 * held: that may run a finalizer, which may call this module. After a fork, the child has no thread
 * and touches neither the mutex nor the epoll, which it shares with the parent.
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define MOST_READ (1 << 14)   /* bytes per read */
#define MANY_HELD (1 << 18)   /* buffered bytes of one socket at which Python is woken */
#define MOST_HELD (1 << 20)   /* buffered bytes of one socket at which reading is paused */
#define STALE_NS (60 * NS_PER_S) /* an older stamp means that the wall clock was stepped */
#define NS_PER_S 1000000000LL
#define EVENTS 64
#define BEAT_MS 5             /* the thread reads its clock at least this often */
#define LATE_NS 10000000LL    /* more than this between two readings is a gap: it could not read */
#define GAPS 64               /* number of latest gaps kept */
#define STOP UINT64_MAX       /* a key that no socket has */
#define NO_ERROR (-1)

static const char LAST_CHUNK[] = {'0', '\r', '\n', '\r', '\n'};

typedef struct Piece {
    struct Piece *next;
    int64_t at_ns;
    size_t size;
    char data[];
} Piece;

typedef struct {
    uint32_t generation; /* counts the sockets that have used this place */
    bool used, watched, wanted; /* wanted: Python was woken for it */
    int fd;
    int error;             /* NO_ERROR while it can be read; 0 at its end */
    int64_t until_end;     /* bytes until the answer ends; negative: look for the last chunk */
    int64_t latest_ns;
    size_t held;
    char tail[sizeof LAST_CHUNK];
    Piece *first, *last;
} Stream;

typedef struct {
    int64_t begin_ns, end_ns;
} Gap;

typedef struct {
    pthread_mutex_t mutex;
    pthread_t thread;
    pid_t pid; /* the process that owns the thread */
    int epoll, ready, stop;
    uint32_t places;
    Stream *streams;
    uint32_t gap_count; /* all gaps so far, including those no longer kept */
    Gap gaps[GAPS];
} State;

/* Times */

static int64_t now_ns(clockid_t clock) {
    struct timespec now;
    clock_gettime(clock, &now);
    return now.tv_sec * NS_PER_S + now.tv_nsec;
}

/* Converts the stamp to the monotonic clock, which is Python's perf_counter. */
static int64_t arrival_ns(struct msghdr *message) {
    struct timespec stamp = {0, 0};
    for (struct cmsghdr *c = CMSG_FIRSTHDR(message); c != NULL; c = CMSG_NXTHDR(message, c))
        if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SO_TIMESTAMPING &&
            c->cmsg_len >= CMSG_LEN(sizeof stamp))
            memcpy(&stamp, CMSG_DATA(c), sizeof stamp);
    int64_t before_ns = 0, wall_ns = 0, after_ns = 0;
    for (int i = 0; i < 3; i++) { /* retry if interrupted between the readings */
        before_ns = now_ns(CLOCK_MONOTONIC);
        wall_ns = now_ns(CLOCK_REALTIME);
        after_ns = now_ns(CLOCK_MONOTONIC);
        if (after_ns - before_ns < 5000) break;
    }
    int64_t age_ns = wall_ns - (stamp.tv_sec * NS_PER_S + stamp.tv_nsec);
    if (stamp.tv_sec == 0 || age_ns < 0 || age_ns >= STALE_NS) return after_ns;
    return (before_ns + after_ns) / 2 - age_ns;
}

/* The thread's side; the mutex is held in every function that takes a Stream */

static void wake(State *state, Stream *stream) {
    uint64_t one = 1;
    if (stream->wanted) return;
    stream->wanted = true;
    if (write(state->ready, &one, sizeof one) < 0) return; /* full: Python is already woken */
}

static void unwatch(State *state, Stream *stream) {
    if (stream->watched) epoll_ctl(state->epoll, EPOLL_CTL_DEL, stream->fd, NULL);
    stream->watched = false;
}

static int watch(State *state, Stream *stream) {
    uint64_t place = (uint64_t)(stream - state->streams);
    struct epoll_event event = {.events = EPOLLIN,
                                .data.u64 = (uint64_t)stream->generation << 32 | place};
    if (epoll_ctl(state->epoll, EPOLL_CTL_ADD, stream->fd, &event) < 0) return errno;
    stream->watched = true;
    return 0;
}

static void end(State *state, Stream *stream, int error) {
    stream->error = error;
    unwatch(state, stream);
    wake(state, stream);
}

/* Whether the answer seems to be complete. A wrong guess only wakes Python once in vain. */
static bool seems_over(const Stream *stream) {
    if (stream->until_end >= 0) return stream->until_end == 0;
    return memcmp(stream->tail, LAST_CHUNK, sizeof LAST_CHUNK) == 0;
}

static void count(Stream *stream, const char *data, size_t size) {
    size_t most = sizeof stream->tail;
    if (stream->until_end >= 0)
        stream->until_end = stream->until_end > (int64_t)size ? stream->until_end - (int64_t)size : 0;
    if (size < most) {
        memmove(stream->tail, stream->tail + size, most - size);
        memcpy(stream->tail + most - size, data, size);
    } else {
        memcpy(stream->tail, data + size - most, most);
    }
}

static void keep(State *state, Stream *stream, const char *data, size_t size, int64_t at_ns) {
    Piece *piece = malloc(sizeof *piece + size);
    if (piece == NULL) {
        end(state, stream, ENOMEM);
        return;
    }
    /* The second of two reads of one segment could seem a nanosecond earlier. */
    if (at_ns > stream->latest_ns) stream->latest_ns = at_ns;
    *piece = (Piece){.at_ns = stream->latest_ns, .size = size};
    memcpy(piece->data, data, size);
    if (stream->last == NULL) stream->first = piece;
    else stream->last->next = piece;
    stream->last = piece;
    stream->held += size;
    count(stream, data, size);
    if (seems_over(stream) || stream->held >= MANY_HELD) wake(state, stream);
    if (stream->held >= MOST_HELD) unwatch(state, stream);
}

static void read_once(State *state, Stream *stream, char *buffer) {
    char ancillary[256];
    struct iovec into = {.iov_base = buffer, .iov_len = MOST_READ};
    struct msghdr message = {.msg_iov = &into, .msg_iovlen = 1, .msg_control = ancillary,
                             .msg_controllen = sizeof ancillary};
    ssize_t size = recvmsg(stream->fd, &message, MSG_DONTWAIT);
    if (size > 0) keep(state, stream, buffer, (size_t)size, arrival_ns(&message));
    else if (size == 0) end(state, stream, 0);
    else if (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR) end(state, stream, errno);
}

static Stream *find(State *state, uint64_t key) {
    uint32_t place = (uint32_t)key;
    if (place >= state->places) return NULL;
    Stream *stream = &state->streams[place];
    return stream->used && stream->generation == key >> 32 ? stream : NULL;
}

static void note_gap(State *state, int64_t begin_ns, int64_t end_ns) {
    pthread_mutex_lock(&state->mutex);
    state->gaps[state->gap_count++ % GAPS] = (Gap){.begin_ns = begin_ns, .end_ns = end_ns};
    pthread_mutex_unlock(&state->mutex);
}

static void *run(void *given) {
    State *state = given;
    struct epoll_event events[EVENTS];
    pthread_setname_np(pthread_self(), "dg-arrivals");
    char buffer[MOST_READ];
    int64_t looked_ns = now_ns(CLOCK_MONOTONIC);
    for (;;) {
        int count = epoll_wait(state->epoll, events, EVENTS, BEAT_MS);
        if (count < 0 && errno != EINTR) return NULL;
        int64_t before_ns = looked_ns;
        looked_ns = now_ns(CLOCK_MONOTONIC);
        if (looked_ns - before_ns > LATE_NS) note_gap(state, before_ns, looked_ns);
        for (int i = 0; i < count; i++) {
            if (events[i].data.u64 == STOP) return NULL;
            pthread_mutex_lock(&state->mutex);
            Stream *stream = find(state, events[i].data.u64);
            if (stream != NULL && stream->watched) read_once(state, stream, buffer);
            pthread_mutex_unlock(&state->mutex);
        }
    }
}

/* Python's side */

static bool is_child(const State *state) { return state->pid != getpid(); }

typedef struct {
    PyObject_HEAD
    State *state; /* NULL once closed; allocated apart, as the object may be freed at Python's exit */
} Reader;

static void forget_pieces(Piece *piece) {
    while (piece != NULL) {
        Piece *next = piece->next;
        free(piece);
        piece = next;
    }
}

static void free_state(State *state) {
    if (state->epoll >= 0) close(state->epoll);
    if (state->ready >= 0) close(state->ready);
    if (state->stop >= 0) close(state->stop);
    for (uint32_t i = 0; i < state->places; i++) forget_pieces(state->streams[i].first);
    free(state->streams);
    free(state);
}

/* Returns 0 or an errno. */
static int start(State *state) {
    struct epoll_event event = {.events = EPOLLIN, .data.u64 = STOP};
    sigset_t all, before;
    state->epoll = epoll_create1(EPOLL_CLOEXEC);
    if (state->epoll < 0) return errno;
    state->ready = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (state->ready < 0) return errno;
    state->stop = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (state->stop < 0) return errno;
    if (epoll_ctl(state->epoll, EPOLL_CTL_ADD, state->stop, &event) < 0) return errno;
    sigfillset(&all); /* signals are left to Python's threads */
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int error = pthread_create(&state->thread, NULL, run, state);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return error;
}

static PyObject *reader_new(PyTypeObject *type, PyObject *args, PyObject *Py_UNUSED(kwargs)) {
    if (!PyArg_ParseTuple(args, "")) return NULL;
    Reader *reader = (Reader *)type->tp_alloc(type, 0);
    State *state = reader == NULL ? NULL : malloc(sizeof *state);
    if (state == NULL) {
        Py_XDECREF(reader);
        return PyErr_NoMemory();
    }
    *state = (State){.mutex = PTHREAD_MUTEX_INITIALIZER, .pid = getpid(), .epoll = -1, .ready = -1,
                     .stop = -1};
    int error = start(state);
    if (error != 0) {
        free_state(state);
        Py_DECREF(reader);
        errno = error;
        return PyErr_SetFromErrno(PyExc_OSError);
    }
    reader->state = state;
    return (PyObject *)reader;
}

static void stop(Reader *reader) {
    State *state = reader->state;
    uint64_t one = 1;
    reader->state = NULL;
    if (state == NULL) return;
    if (is_child(state)) { /* leak the memory: the thread may have been changing it at the fork */
        close(state->epoll);
        close(state->ready);
        close(state->stop);
        return;
    }
    if (write(state->stop, &one, sizeof one) < 0) return; /* never: it is written once */
    Py_BEGIN_ALLOW_THREADS
    pthread_join(state->thread, NULL);
    Py_END_ALLOW_THREADS
    pthread_mutex_destroy(&state->mutex);
    free_state(state);
}

static void reader_dealloc(PyObject *self) {
    PyTypeObject *type = Py_TYPE(self);
    stop((Reader *)self);
    type->tp_free(self);
    Py_DECREF(type);
}

/* Returns the state, or NULL with an exception if it is closed or in a forked child. */
static State *running(PyObject *self) {
    State *state = ((Reader *)self)->state;
    if (state != NULL && !is_child(state)) return state;
    PyErr_SetString(PyExc_RuntimeError,
                    state == NULL ? "the reader is closed" : "the reader's thread was not forked");
    return NULL;
}

static PyObject *reader_fileno(PyObject *self, PyObject *Py_UNUSED(none)) {
    State *state = running(self);
    return state == NULL ? NULL : PyLong_FromLong(state->ready);
}

/* Returns a free place, or NULL if out of memory. */
static Stream *place(State *state) {
    for (uint32_t i = 0; i < state->places; i++)
        if (!state->streams[i].used) return &state->streams[i];
    uint32_t places = state->places == 0 ? 64 : state->places * 2;
    Stream *streams = realloc(state->streams, places * sizeof *streams);
    if (streams == NULL) return NULL;
    memset(streams + state->places, 0, (places - state->places) * sizeof *streams);
    Stream *found = &streams[state->places];
    state->streams = streams;
    state->places = places;
    return found;
}

static PyObject *reader_add(PyObject *self, PyObject *fd_object) {
    int error = ENOMEM;
    State *state = running(self);
    int fd = state == NULL ? -1 : PyObject_AsFileDescriptor(fd_object);
    if (fd < 0) return NULL;
    uint64_t key = 0;
    pthread_mutex_lock(&state->mutex);
    Stream *stream = place(state);
    if (stream != NULL) {
        *stream = (Stream){.generation = (stream->generation + 1) & INT32_MAX, .used = true, .fd = fd,
                           .error = NO_ERROR};
        key = (uint64_t)stream->generation << 32 | (uint64_t)(stream - state->streams);
        error = watch(state, stream);
        stream->used = error == 0;
    }
    pthread_mutex_unlock(&state->mutex);
    if (error == 0) return PyLong_FromUnsignedLongLong(key);
    errno = error;
    return PyErr_SetFromErrno(PyExc_OSError);
}

static PyObject *reader_expect(PyObject *self, PyObject *args) {
    unsigned long long key;
    long long until_end;
    State *state = running(self);
    if (state == NULL || !PyArg_ParseTuple(args, "KL", &key, &until_end)) return NULL;
    pthread_mutex_lock(&state->mutex);
    Stream *stream = find(state, key);
    if (stream != NULL) {
        int64_t held = (int64_t)stream->held;
        stream->until_end = until_end < 0 ? -1 : until_end > held ? until_end - held : 0;
        if (held > 0 && seems_over(stream)) wake(state, stream);
    }
    pthread_mutex_unlock(&state->mutex);
    Py_RETURN_NONE;
}

/* Returns the pieces as a list of tuples, and frees them. */
static PyObject *listed(Piece *first) {
    PyObject *list = PyList_New(0);
    for (Piece *piece = first; list != NULL && piece != NULL; piece = piece->next) {
        PyObject *item = Py_BuildValue("(y#d)", piece->data, (Py_ssize_t)piece->size,
                                       (double)piece->at_ns / (double)NS_PER_S);
        if (item == NULL || PyList_Append(list, item) < 0) Py_CLEAR(list);
        Py_XDECREF(item);
    }
    forget_pieces(first);
    return list;
}

static PyObject *taken(PyObject *self, PyObject *key_object, bool remove) {
    State *state = ((Reader *)self)->state;
    uint64_t key = PyLong_AsUnsignedLongLong(key_object);
    if (PyErr_Occurred()) return NULL;
    if (state == NULL || is_child(state)) return Py_BuildValue("([]O)", Py_None);
    Piece *first = NULL;
    int error = NO_ERROR;
    pthread_mutex_lock(&state->mutex);
    Stream *stream = find(state, key);
    bool found = stream != NULL;
    if (found) {
        first = stream->first;
        stream->first = stream->last = NULL;
        stream->held = 0;
        stream->wanted = false;
        error = stream->error;
        if (remove) {
            unwatch(state, stream);
            stream->used = false;
        } else if (error == NO_ERROR && !stream->watched) {
            int refused = watch(state, stream);
            if (refused != 0) end(state, stream, refused);
        }
    }
    pthread_mutex_unlock(&state->mutex);
    if (!found) {
        PyErr_SetObject(PyExc_KeyError, key_object);
        return NULL;
    }
    PyObject *pieces = listed(first);
    if (pieces == NULL) return NULL;
    return error == NO_ERROR ? Py_BuildValue("(NO)", pieces, Py_None)
                             : Py_BuildValue("(Ni)", pieces, error);
}

static PyObject *reader_take(PyObject *self, PyObject *key) { return taken(self, key, false); }
static PyObject *reader_remove(PyObject *self, PyObject *key) { return taken(self, key, true); }

static PyObject *reader_ready(PyObject *self, PyObject *Py_UNUSED(none)) {
    State *state = running(self);
    if (state == NULL) return NULL;
    uint64_t signals, *keys = NULL;
    uint32_t count = 0;
    pthread_mutex_lock(&state->mutex);
    bool some = read(state->ready, &signals, sizeof signals) > 0 && state->places > 0;
    bool enough = !some || (keys = malloc(state->places * sizeof *keys)) != NULL;
    for (uint32_t i = 0; some && enough && i < state->places; i++)
        if (state->streams[i].used && state->streams[i].wanted)
            keys[count++] = (uint64_t)state->streams[i].generation << 32 | i;
    pthread_mutex_unlock(&state->mutex);
    PyObject *list = enough ? PyList_New(count) : PyErr_NoMemory();
    for (uint32_t i = 0; list != NULL && i < count; i++) {
        PyObject *key = PyLong_FromUnsignedLongLong(keys[i]);
        if (key == NULL) Py_CLEAR(list);
        else PyList_SET_ITEM(list, i, key);
    }
    free(keys);
    return list;
}

static PyObject *reader_gaps(PyObject *self, PyObject *Py_UNUSED(none)) {
    State *state = ((Reader *)self)->state;
    if (state == NULL || is_child(state)) return PyList_New(0);
    Gap gaps[GAPS];
    pthread_mutex_lock(&state->mutex);
    uint32_t count = state->gap_count < GAPS ? state->gap_count : GAPS;
    memcpy(gaps, state->gaps, sizeof gaps);
    pthread_mutex_unlock(&state->mutex);
    PyObject *list = PyList_New(0);
    for (uint32_t i = 0; list != NULL && i < count; i++) {
        PyObject *gap = Py_BuildValue("(dd)", (double)gaps[i].begin_ns / (double)NS_PER_S,
                                      (double)gaps[i].end_ns / (double)NS_PER_S);
        if (gap == NULL || PyList_Append(list, gap) < 0) Py_CLEAR(list);
        Py_XDECREF(gap);
    }
    return list;
}

static PyObject *reader_close(PyObject *self, PyObject *Py_UNUSED(none)) {
    stop((Reader *)self);
    Py_RETURN_NONE;
}

static PyMethodDef methods[] = {
    {"fileno", reader_fileno, METH_NOARGS, "Return what can be read once `ready` has something."},
    {"add", reader_add, METH_O, "Read a socket from now on, with a wake a piece; return its key."},
    {"expect", reader_expect, METH_VARARGS,
     "Wake for a socket where so many more bytes have come; if negative, at a last chunk."},
    {"take", reader_take, METH_O, "Return a socket's pieces, and its end or error if it came."},
    {"remove", reader_remove, METH_O, "Read a socket no more; return what `take` would have."},
    {"ready", reader_ready, METH_NOARGS, "Return the keys of the sockets to look at soon."},
    {"gaps", reader_gaps, METH_NOARGS,
     "Return begin and end of the times for which the thread was kept from reading."},
    {"close", reader_close, METH_NOARGS, "End the thread; safe to call twice."},
    {NULL, NULL, 0, NULL},
};
static PyType_Slot reader_slots[] = {{Py_tp_new, reader_new},
                                     {Py_tp_dealloc, reader_dealloc},
                                     {Py_tp_methods, methods},
                                     {Py_tp_doc, "A thread that reads sockets as bytes arrive."},
                                     {0, NULL}};
static PyType_Spec reader_spec = {.name = "engine_adapter.transport._arrivals.Reader",
                                  .basicsize = sizeof(Reader),
                                  .flags = Py_TPFLAGS_DEFAULT,
                                  .slots = reader_slots};

static int fill_module(PyObject *module) {
    PyObject *type = PyType_FromSpec(&reader_spec);
    if (type == NULL) return -1;
    int failed = PyModule_AddObjectRef(module, "Reader", type);
    Py_DECREF(type);
    return failed;
}

static PyModuleDef_Slot slots[] = {{Py_mod_exec, fill_module}, {0, NULL}};
static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "_arrivals", "Reads sockets as soon as bytes arrive.",
    0, NULL, slots, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit__arrivals(void) { return PyModuleDef_Init(&definition); }
