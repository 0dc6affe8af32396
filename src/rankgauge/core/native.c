/* The compiled core of rankgauge: one pass where NumPy needs several.

   Each function below has a Python equivalent that returns bitwise equal results, except for hashes;
   tests compare the two:

   scan          lines of a TREC file -> columns of ids, hashes, and numbers  (formats/fast_trec.py)
   pack_ids      ids within a text -> contiguous ids                          (formats/fast_trec.py)
   number_ids    hashes or numbers of the ids of a column                     (core/ids.py)
   group         rows of each query side by side                              (core/pair_table.py)
   all_differ    whether a ranking has no duplicate documents                 (core/pair_table.py)
   row_lines     rows of a run -> lines of a text file                        (formats/rows.py)
   rank_rows     rows of each ranking, best first                             (core/pair_table.py)
   align         documents of several runs side by side                       (data/alignment.py)
   join          columns of a run and judgments -> ranks of judged documents  (data/join.py)
   join_lines    the same from lines of a TREC file, query by query           (data/joined_blocks.py)
   join_table    the same from a table with rows of some queries              (data/joined_blocks.py)
   pack_dicts    the columns of a table of Python dicts                       (formats/mappings.py)
   measure_dicts, measure_grades
                 common measures of dicts and of a single ranking             (measures/compiled.py)
   flip_signs    sums of differences with random signs                        (stats/resampling.py)

   Unusual input is declined by returning None, never by an error: the Python equivalent then reads
   it and reports the fault. Arrays are passed as buffers; every size is checked before use. Stable
   ABI of Python 3.11; no dependencies. */

#define Py_LIMITED_API 0x030B0000
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <float.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "hashes are computed from little-endian words"
#endif

#define VERSION 23 /* same as in core/native.py; incremented when a function changes */
#define JUDGMENTS "rankgauge.judgments"
#define NUMBERING "rankgauge.numbering"
#define LINES_RUN "rankgauge.lines_run"
#define SPARE 31    /* readable bytes after a text */
#define FEW 16      /* up to this many documents are ranked by counting, without sorting */
#define LARGE (1 << 14) /* from this many bytes or rows on, the GIL is released */
#define STEPS (INT64_C(1) << 20) /* signals are handled after this many steps, well below 0.1 s */
#define AHEAD 32    /* names that are looked up at a time */
#define ROWS 128    /* rows that are summed at a time */
#define SPLIT 134217729.0 /* 2**27 + 1 splits a double into halves */
#define SORTED 4096 /* rows that are sorted at a time, since qsort may be quadratic */
#define PROBES 256  /* more collisions in a half-empty table are not by chance */
#define SPARSE 8    /* hash-table slots per hash */
#define LEAST 3     /* shorter rankings may rise by chance */
#define EXACT 9007199254740992.0 /* 2**53: every smaller whole number is a double */

#ifdef __GNUC__
#define PREFETCH(address) __builtin_prefetch(address)
#else
#define PREFETCH(address) ((void)0)
#endif

typedef struct {
    Py_buffer view;
    Py_ssize_t count; /* in items, not bytes */
    void *items;
} Array;

/* ---- arrays ---- */

static void
close_arrays(Array *arrays, int count)
{
    for (int i = 0; i < count; i++) {
        if (arrays[i].view.obj != NULL) {
            PyBuffer_Release(&arrays[i].view);
        }
    }
}

/* Get a column of items of `size` bytes from an object; 0 with an exception if it is not one. Without
   an object, release the column. */
static int
open_array(PyObject *object, Array *array, size_t size, int writable)
{
    if (object == NULL) {
        close_arrays(array, 1);
        return 1;
    }
    if (PyObject_GetBuffer(object, &array->view, writable ? PyBUF_WRITABLE : PyBUF_SIMPLE) < 0) {
        array->view.obj = NULL;
        return 0;
    }
    array->items = array->view.buf;
    array->count = array->view.len / (Py_ssize_t)size;
    /* The address of an empty buffer has no meaning; with some builds of NumPy, it is odd. */
    if (array->view.len % (Py_ssize_t)size || (array->count && (uintptr_t)array->items % size)) {
        close_arrays(array, 1);
        PyErr_SetString(PyExc_ValueError, "unexpected array item size");
        return 0;
    }
    return Py_CLEANUP_SUPPORTED; /* for PyArg_ParseTuple */
}

/* Converters of arguments to arrays of items of 1, 4, or 8 bytes; those of `out` arrays are changed. */
#define ARRAY(converter, size, writable)                   \
    static int converter(PyObject *object, void *array)    \
    {                                                      \
        return open_array(object, array, size, writable);  \
    }
ARRAY(bytes_in, 1, 0)
ARRAY(bytes_out, 1, 1)
ARRAY(halves_in, 4, 0)
ARRAY(halves_out, 4, 1)
ARRAY(words_in, 8, 0)
ARRAY(words_out, 8, 1)

/* Converters of arguments to pointers to our own structures. */
#define CAPSULE(converter, name)                              \
    static int converter(PyObject *object, void *to)          \
    {                                                         \
        void *pointer = PyCapsule_GetPointer(object, name);   \
        memcpy(to, &pointer, sizeof(pointer));                \
        return pointer != NULL;                               \
    }
CAPSULE(as_numbering, NUMBERING)
CAPSULE(as_judgments, JUDGMENTS)
CAPSULE(as_lines_run, LINES_RUN)

/* A growing byte buffer. */
typedef struct {
    char *data;
    size_t used, room;
} Bytes;

/* Reserve `more` bytes; NULL if out of memory. Does not need the GIL. */
static void *
grow(Bytes *bytes, size_t more)
{
    if (bytes->data == NULL || bytes->used + more > bytes->room) {
        size_t room = bytes->room ? bytes->room : 4096;
        while (room < bytes->used + more) {
            room *= 2;
        }
        char *data = realloc(bytes->data, room);
        if (data == NULL) {
            return NULL;
        }
        bytes->data = data;
        bytes->room = room;
    }
    void *place = bytes->data + bytes->used;
    bytes->used += more;
    return place;
}

/* Return the result of a function; NULL without an exception means out of memory. */
static PyObject *
or_no_memory(PyObject *result)
{
    if (result == NULL && !PyErr_Occurred()) {
        return PyErr_NoMemory();
    }
    return result;
}

/* Long work: the GIL is released if it is large, and signals such as Ctrl-C are handled. */
typedef struct {
    PyThreadState *others; /* NULL while this thread has the GIL */
    int64_t done;          /* steps since signals were handled */
    int deferred;          /* whether signals must wait, because objects are not owned */
} Work;

/* Release the GIL for large work; until `lock`, no Python object may be used. */
static void
unlock(Work *work, Py_ssize_t size)
{
    if (size >= LARGE) {
        work->others = PyEval_SaveThread();
    }
}

static void
lock(Work *work)
{
    if (work->others != NULL) {
        PyEval_RestoreThread(work->others);
        work->others = NULL;
    }
}

/* Handle signals; 0 with the exception of a handler, and with the GIL. */
static int
handle_signals(Work *work)
{
    int unlocked = work->others != NULL;
    work->done = 0;
    lock(work);
    if (PyErr_CheckSignals() < 0) {
        return 0;
    }
    if (unlocked) {
        work->others = PyEval_SaveThread();
    }
    return 1;
}

/* Count steps, and handle signals from time to time; 0 with an exception. A handler can change any
   object that is not owned here. */
static inline int
proceed(Work *work, int64_t steps)
{
    work->done += steps;
    return work->done < STEPS || work->deferred || handle_signals(work);
}

static inline void
copy_item(char *to, const char *from, size_t size)
{
    if (size == 8) {
        memcpy(to, from, 8); /* fixed sizes avoid a call */
    }
    else if (size == 32) {
        memcpy(to, from, 32);
    }
    else {
        memcpy(to, from, size);
    }
}

/* Sort items; `spare` has space for as many. 0: an exception. */
static int
sort_halves(char *items, char *spare, int64_t count, size_t size, int (*order)(const void *, const void *),
            Work *work)
{
    if (count <= SORTED) {
        qsort(items, (size_t)count, size, order);
        return proceed(work, 16 * count);
    }
    int64_t half = count / 2, left = half, right = count - half;
    char *above = items, *below = items + (size_t)half * size, *to = spare;
    if (!sort_halves(above, spare, left, size, order, work) ||
        !sort_halves(below, spare, right, size, order, work)) {
        return 0;
    }
    for (; left && right; to += size) {
        if (order(below, above) < 0) {
            copy_item(to, below, size);
            below += size;
            right--;
        }
        else {
            copy_item(to, above, size);
            above += size;
            left--;
        }
        if (!proceed(work, 4)) {
            return 0;
        }
    }
    memcpy(to, above, (size_t)left * size);
    memcpy(items, spare, (size_t)(count - right) * size);
    return 1;
}

/* Sort items in N log N time, whatever their order, which must be total. 0: out of memory, or an
   exception. */
static int
sort_items(void *items, int64_t count, size_t size, int (*order)(const void *, const void *), Work *work)
{
    char *spare = malloc(count > SORTED ? (size_t)count * size : 1);
    int sorted = spare != NULL && sort_halves(items, spare, count, size, order, work);
    free(spare);
    return sorted;
}

static size_t
power_above(size_t count)
{
    size_t size = 8;
    while (size < count) {
        size *= 2;
    }
    return size;
}

/* ---- ids ---- */

static inline uint64_t
word_at(const uint8_t *bytes)
{
    uint64_t word;
    memcpy(&word, bytes, 8);
    return word;
}

/* Whether `count` bytes are equal; 8 more bytes must be readable after both. */
static inline int
same_bytes(const uint8_t *a, const uint8_t *b, int64_t count)
{
    for (; count >= 8; a += 8, b += 8, count -= 8) {
        if (word_at(a) != word_at(b)) {
            return 0;
        }
    }
    return count == 0 || (word_at(a) ^ word_at(b)) << (64 - 8 * count) == 0;
}

/* Return the hash of an id; if `spare`, 8 more bytes are readable after it. */
static inline uint64_t
hash_of(const uint8_t *id, int64_t length, int spare)
{
    uint64_t hash = (uint64_t)length * UINT64_C(0x9E3779B97F4A7C15);
    for (; length > 0; id += 8, length -= 8) {
        uint64_t word = 0;
        if (spare || length >= 8) {
            word = word_at(id);
        }
        else {
            memcpy(&word, id, (size_t)length);
        }
        if (length < 8) {
            word &= ~UINT64_C(0) >> (64 - 8 * length);
        }
        hash = (hash ^ word) * UINT64_C(0xD6E8FEB86659FD93);
        hash ^= hash >> 32;
    }
    return hash;
}

/* Compare ids bytewise: negative, 0, or positive, like memcmp. */
static int
compare_ids(const uint8_t *a, int64_t a_length, const uint8_t *b, int64_t b_length)
{
    int64_t shorter = a_length < b_length ? a_length : b_length;
    int order = memcmp(a, b, (size_t)shorter);
    if (order) {
        return order;
    }
    return (a_length > b_length) - (a_length < b_length);
}

/* Two numbers that nobody can predict, like those of Python's hashes of text. */
static uint64_t secret[2];

#define ROTATED(word, bits) ((word) << (bits) | (word) >> (64 - (bits)))

static inline void
sip_round(uint64_t v[4])
{
    v[0] += v[1];
    v[1] = ROTATED(v[1], 13) ^ v[0];
    v[0] = ROTATED(v[0], 32);
    v[2] += v[3];
    v[3] = ROTATED(v[3], 16) ^ v[2];
    v[0] += v[3];
    v[3] = ROTATED(v[3], 21) ^ v[0];
    v[2] += v[1];
    v[1] = ROTATED(v[1], 17) ^ v[2];
    v[2] = ROTATED(v[2], 32);
}

/* Return a hash of an id whose collisions nobody can predict: SipHash-1-3. */
static uint64_t
secret_hash_of(const uint8_t *id, int64_t length)
{
    uint64_t v[4] = {secret[0] ^ UINT64_C(0x736F6D6570736575), secret[1] ^ UINT64_C(0x646F72616E646F6D),
                     secret[0] ^ UINT64_C(0x6C7967656E657261), secret[1] ^ UINT64_C(0x7465646279746573)};
    uint64_t word;
    int64_t left = length;
    for (; left >= 8; id += 8, left -= 8) {
        word = word_at(id);
        v[3] ^= word;
        sip_round(v);
        v[0] ^= word;
    }
    word = 0;
    memcpy(&word, id, (size_t)left);
    word |= (uint64_t)length << 56;
    v[3] ^= word;
    sip_round(v);
    v[0] ^= word;
    v[2] ^= 0xFF;
    sip_round(v);
    sip_round(v);
    sip_round(v);
    return v[0] ^ v[1] ^ v[2] ^ v[3];
}

/* ---- numbering: numbers of query names in order of first appearance ---- */

typedef struct {
    int32_t *slots; /* number + 1 of each name; 0 marks a free slot */
    size_t mask;
    uint64_t *hashes;
    size_t *starts; /* offsets into `names`, one more than there are names */
    int32_t count;
    int32_t next; /* number after that of the last name found */
    size_t room;
    Bytes names;
} Numbering;

static void
clear_numbering(Numbering *numbering)
{
    free(numbering->slots);
    free(numbering->hashes);
    free(numbering->starts);
    free(numbering->names.data);
}

static void
free_numbering(PyObject *capsule)
{
    Numbering *numbering = PyCapsule_GetPointer(capsule, NUMBERING);
    if (numbering != NULL) {
        clear_numbering(numbering);
        free(numbering);
    }
}

static int
numbering_room(Numbering *numbering)
{
    if ((size_t)numbering->count < numbering->room) {
        return 1;
    }
    if (numbering->count >= INT32_MAX / 4) {
        return 0;
    }
    size_t room = numbering->room ? 2 * numbering->room : 1024;
    uint64_t *hashes = realloc(numbering->hashes, room * sizeof(uint64_t));
    if (hashes != NULL) {
        numbering->hashes = hashes;
    }
    size_t *starts = realloc(numbering->starts, (room + 1) * sizeof(size_t));
    if (starts != NULL) {
        numbering->starts = starts;
    }
    int32_t *slots = calloc(2 * room, sizeof(int32_t));
    if (hashes == NULL || starts == NULL || slots == NULL) {
        free(slots);
        return 0;
    }
    numbering->mask = 2 * room - 1;
    for (int32_t i = 0; i < numbering->count; i++) {
        size_t at = numbering->hashes[i] & numbering->mask;
        while (slots[at]) {
            at = (at + 1) & numbering->mask;
        }
        slots[at] = i + 1;
    }
    free(numbering->slots);
    numbering->slots = slots;
    numbering->room = room;
    return 1;
}

static inline int
is_name(const Numbering *numbering, int32_t number, const uint8_t *name, int64_t length)
{
    size_t start = numbering->starts[number], end = numbering->starts[number + 1];
    return end - start == (size_t)length && memcmp(numbering->names.data + start, name, (size_t)length) == 0;
}

/* Return the number of a name with this secret hash; -1 if out of memory. */
static int32_t
find_name(Numbering *numbering, const uint8_t *name, int64_t length, uint64_t hash)
{
    if (!numbering_room(numbering)) {
        return -1;
    }
    size_t at = hash & numbering->mask;
    for (int32_t found; (found = numbering->slots[at]) != 0; at = (at + 1) & numbering->mask) {
        if (numbering->hashes[found - 1] == hash && is_name(numbering, found - 1, name, length)) {
            numbering->next = found;
            return found - 1;
        }
    }
    char *place = grow(&numbering->names, (size_t)length);
    if (place == NULL) {
        return -1;
    }
    memcpy(place, name, (size_t)length);
    int32_t number = numbering->count++;
    numbering->slots[at] = number + 1;
    numbering->hashes[number] = hash;
    numbering->starts[number] = numbering->names.used - (size_t)length;
    numbering->starts[number + 1] = numbering->names.used;
    return number;
}

/* Return the number of a name, for names that usually come in the same order again; -1 if out of memory. */
static inline int32_t
number_of(Numbering *numbering, const uint8_t *name, int64_t length)
{
    if (numbering->next < numbering->count && is_name(numbering, numbering->next, name, length)) {
        return numbering->next++;
    }
    return find_name(numbering, name, length, secret_hash_of(name, length));
}

PyDoc_STRVAR(numbering_doc,
"numbering() -> capsule\n\n"
"Return an empty numbering of names for `scan`.");

static PyObject *
numbering(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(none))
{
    Numbering *made = calloc(1, sizeof(Numbering));
    if (made == NULL) {
        return PyErr_NoMemory();
    }
    PyObject *capsule = PyCapsule_New(made, NUMBERING, free_numbering);
    if (capsule == NULL) {
        free(made);
    }
    return capsule;
}

/* Return the names from a given number on. */
static PyObject *
names_from(const Numbering *numbering, int32_t first)
{
    PyObject *list = PyList_New(numbering->count - first);
    Work work = {0};
    for (int32_t i = first; list != NULL && i < numbering->count; i++) {
        size_t start = numbering->starts[i];
        PyObject *name = PyBytes_FromStringAndSize(numbering->names.data + start,
                                                   (Py_ssize_t)(numbering->starts[i + 1] - start));
        if (name == NULL || PyList_SetItem(list, i - first, name) < 0 || !proceed(&work, 2)) {
            Py_CLEAR(list);
        }
    }
    return list;
}

PyDoc_STRVAR(names_doc,
"names(numbering) -> list[bytes]\n\n"
"Return the names in the order of their numbers.");

static PyObject *
names(PyObject *Py_UNUSED(module), PyObject *capsule)
{
    Numbering *numbering = PyCapsule_GetPointer(capsule, NUMBERING);
    return numbering == NULL ? NULL : names_from(numbering, 0);
}

/* ---- numbers ---- */

static const double TENS[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                              1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};

static const uint64_t WHOLE_TENS[] = {
    1, 10, 100, 1000, 10000, 100000, 1000000, 10000000, 100000000, 1000000000,
    UINT64_C(10000000000), UINT64_C(100000000000), UINT64_C(1000000000000), UINT64_C(10000000000000),
    UINT64_C(100000000000000), UINT64_C(1000000000000000), UINT64_C(10000000000000000),
    UINT64_C(100000000000000000), UINT64_C(1000000000000000000), UINT64_C(10000000000000000000),
};

#ifdef __SIZEOF_INT128__
/* 2**(63 + bits of 10**n) / 10**n, rounded down, for n from 1 to 19. */
static const uint64_t TENTHS[] = {
    0,
    UINT64_C(0xCCCCCCCCCCCCCCCC), UINT64_C(0xA3D70A3D70A3D70A), UINT64_C(0x83126E978D4FDF3B), UINT64_C(0xD1B71758E219652B),
    UINT64_C(0xA7C5AC471B478423), UINT64_C(0x8637BD05AF6C69B5), UINT64_C(0xD6BF94D5E57A42BC), UINT64_C(0xABCC77118461CEFC),
    UINT64_C(0x89705F4136B4A597), UINT64_C(0xDBE6FECEBDEDD5BE), UINT64_C(0xAFEBFF0BCB24AAFE), UINT64_C(0x8CBCCC096F5088CB),
    UINT64_C(0xE12E13424BB40E13), UINT64_C(0xB424DC35095CD80F), UINT64_C(0x901D7CF73AB0ACD9), UINT64_C(0xE69594BEC44DE15B),
    UINT64_C(0xB877AA3236A4B449), UINT64_C(0x9392EE8E921D5D07), UINT64_C(0xEC1E4A7DB69561A5),
};
/* Number of bits of 10**n. */
static const int TEN_BITS[] = {1, 4, 7, 10, 14, 17, 20, 24, 27, 30, 34, 37, 40, 44, 47, 50, 54, 57, 60, 64};

/* Slow path of `divided`, for when the first 64 bits of the quotient do not decide. */
static double
divided_exactly(uint64_t mantissa, int digits)
{
    uint64_t ten = WHOLE_TENS[digits];
    /* Shift left until the quotient has at least 64 bits: 53, plus bits for rounding. */
    int shift = __builtin_clzll(mantissa) + 64 - 1;
    unsigned __int128 whole = (unsigned __int128)mantissa << shift; /* its highest bit is bit 126 */
    unsigned __int128 quotient = whole / ten;
    int sticky = whole % ten != 0;
    int bits = (quotient >> 64) ? 128 - __builtin_clzll((uint64_t)(quotient >> 64))
                                : 64 - __builtin_clzll((uint64_t)quotient);
    int drop = bits - 53;
    uint64_t kept = (uint64_t)(quotient >> drop);
    unsigned __int128 rest = quotient & (((unsigned __int128)1 << drop) - 1);
    unsigned __int128 half = (unsigned __int128)1 << (drop - 1);
    if (rest > half || (rest == half && (sticky || (kept & 1)))) {
        kept++;
    }
    return ldexp((double)kept, drop - shift);
}

/* Return mantissa / 10**digits, rounded to the nearest double, ties to even; for 1 to 19 digits.

   Multiplies by a rounded-down inverse: the quotient is at least the upper half of the product and
   exceeds it by less than 2, which usually decides the rounding (as in the algorithm of Eisel and
   Lemire, which uses more bits and handles any exponent). */
static double
divided(uint64_t mantissa, int digits)
{
    int shift = __builtin_clzll(mantissa);
    uint64_t quotient = (uint64_t)(((unsigned __int128)(mantissa << shift) * TENTHS[digits]) >> 64);
    int drop = 64 - __builtin_clzll(quotient) - DBL_MANT_DIG;
    uint64_t kept = quotient >> drop, half = UINT64_C(1) << (drop - 1);
    uint64_t rest = quotient & (2 * half - 1);
    if (rest == half || rest == half - 1) {
        return divided_exactly(mantissa, digits);
    }
    /* A power of two: only its exponent bits are set. */
    uint64_t power = (uint64_t)(1023 + drop + 1 - shift - TEN_BITS[digits]) << (DBL_MANT_DIG - 1);
    double scale;
    memcpy(&scale, &power, sizeof(scale));
    return (double)(kept + (rest > half)) * scale;
}
#endif

/* Read eight digits; 0 if one is not a digit. */
static inline int
eight_digits(uint64_t word, uint64_t *number)
{
    uint64_t high = UINT64_C(0xF0F0F0F0F0F0F0F0);
    if (((word & high) | (((word + UINT64_C(0x0606060606060606)) & high) >> 4)) != UINT64_C(0x3333333333333333)) {
        return 0;
    }
    /* Combine neighbors: digits into pairs, pairs into fours, fours into eight. */
    word = ((word & UINT64_C(0x0F0F0F0F0F0F0F0F)) * 2561) >> 8;
    word = ((word & UINT64_C(0x00FF00FF00FF00FF)) * 6553601) >> 16;
    *number = ((word & UINT64_C(0x0000FFFF0000FFFF)) * UINT64_C(42949672960001)) >> 32;
    return 1;
}

/* Read a decimal number; 0 if it is invalid or too large to be certainly a double. */
static int
read_decimal(const uint8_t *text, int64_t length, double *value)
{
    const uint8_t *at = text, *end = text + length;
    int negative = 0;
    if (at < end && (*at == '-' || *at == '+')) {
        negative = *at++ == '-';
    }
    uint64_t mantissa = 0;
    int64_t exponent = 0;
    int digits = 0, significant = 0, rounded = 0;
    int point = 0;
    for (; at < end; at++) {
        unsigned digit = (unsigned)*at - '0';
        if (digit <= 9) {
            digits++;
            exponent -= point;
            if (significant < 19) {
                mantissa = mantissa * 10 + digit;
                significant += mantissa != 0;
            }
            else {
                rounded++;
                exponent++;
            }
        }
        else if (*at == '.' && !point) {
            point = 1;
        }
        else {
            break;
        }
    }
    if (!digits) {
        return 0;
    }
    if (at < end && (*at == 'e' || *at == 'E')) {
        int64_t written = 0;
        int below = 0;
        at++;
        if (at < end && (*at == '-' || *at == '+')) {
            below = *at++ == '-';
        }
        if (at == end) {
            return 0;
        }
        for (; at < end && (unsigned)*at - '0' <= 9; at++) {
            if (written < 100000) {
                written = written * 10 + (*at - '0');
            }
        }
        exponent += below ? -written : written;
    }
    if (at != end) {
        return 0;
    }
    double found;
    if (!rounded && mantissa == 0) {
        found = 0.0;
    }
    else if (!rounded && mantissa <= (UINT64_C(1) << 53) && exponent >= -22 && exponent <= 22) {
        /* Both are exact, so the quotient is rounded once. */
        found = exponent < 0 ? (double)mantissa / TENS[-exponent] : (double)mantissa * TENS[exponent];
    }
#ifdef __SIZEOF_INT128__
    else if (!rounded && exponent >= -19 && exponent < 0) {
        found = divided(mantissa, (int)-exponent);
    }
#endif
    else {
        /* Without a decimal point `strtod` does not depend on the locale; it does not need the GIL. */
        char copy[512 + 32], *to = copy;
        if (length >= 512) {
            return 0;
        }
        for (const uint8_t *from = text; digits; from++) {
            if ((unsigned)*from - '0' <= 9) {
                *to++ = (char)*from;
                digits--;
            }
        }
        snprintf(to, 32, "e%lld", (long long)(exponent - rounded));
        found = strtod(copy, NULL);
    }
    *value = negative ? -found : found;
    return found < EXACT;
}

/* Read a decimal number followed by 8 readable bytes; `read_decimal` handles everything but at most
   19 digits with a decimal point. */
static inline int
read_number(const uint8_t *text, int64_t length, double *value)
{
    const uint8_t *at = text, *end = text + length;
    int negative = *at == '-';
    const uint8_t *first = at += negative;
    uint64_t mantissa = 0, part;
    for (unsigned digit; (digit = (unsigned)*at - '0') <= 9; at++) {
        mantissa = mantissa * 10 + digit;
    }
    int64_t left = end - at - 1, digits = left;
    if (at == first || left < 1 || *at != '.' || end - first > 20) {
        return read_decimal(text, length, value);
    }
    for (at++; left >= 8; at += 8, left -= 8) {
        if (!eight_digits(word_at(at), &part)) {
            return read_decimal(text, length, value);
        }
        mantissa = mantissa * 100000000 + part;
    }
    if (left) {
        uint64_t zeros = UINT64_C(0x3030303030303030);
        if (!eight_digits(word_at(at) << (64 - 8 * left) | zeros >> (8 * left), &part)) {
            return read_decimal(text, length, value);
        }
        mantissa = mantissa * WHOLE_TENS[left] + part;
    }
    double found = (double)mantissa / TENS[digits];
    if (mantissa > UINT64_C(1) << 53) {
#ifdef __SIZEOF_INT128__
        found = divided(mantissa, (int)digits);
#else
        return read_decimal(text, length, value);
#endif
    }
    *value = negative ? -found : found;
    return found < EXACT;
}

/* ---- lines ---- */

/* Return the end of the field that starts here: the first blank or control character. 16 bytes
   after the end of the text must be readable. */
static inline const uint8_t *
field_end(const uint8_t *at)
{
#if defined(__SSE2__) && defined(__GNUC__)
    const __m128i blank = _mm_set1_epi8(' ');
    for (;; at += 16) {
        __m128i bytes = _mm_loadu_si128((const __m128i *)at);
        int low = _mm_movemask_epi8(_mm_cmpeq_epi8(_mm_min_epu8(bytes, blank), bytes));
        if (low) {
            return at + __builtin_ctz((unsigned)low);
        }
    }
#else
    for (;; at += 8) {
        uint64_t word = word_at(at);
        if ((word - UINT64_C(0x2121212121212121)) & ~word & UINT64_C(0x8080808080808080)) {
            while (*at > 32) {
                at++;
            }
            return at;
        }
    }
#endif
}

/* The ends of fields among the next bytes, as bits. */
typedef struct {
    const uint8_t *from;
    uint32_t bits;
} Ends;

/* Return the end of the field that starts here, like `field_end`: the next one in `ends`, whose bits are
   those of the bytes before `from`. SPARE bytes after the end of the text must be readable. */
static inline const uint8_t *
next_end(Ends *ends, const uint8_t *at)
{
#if defined(__SSE2__) && defined(__GNUC__)
    const __m128i blank = _mm_set1_epi8(' ');
    for (; !ends->bits; ends->from += 32) {
        for (int i = 0; i < 32; i += 16) {
            __m128i bytes = _mm_loadu_si128((const __m128i *)(ends->from + i));
            uint32_t low = (uint32_t)_mm_movemask_epi8(_mm_cmpeq_epi8(_mm_min_epu8(bytes, blank), bytes));
            ends->bits |= low << i;
        }
    }
    at = ends->from - 32 + __builtin_ctz(ends->bits);
    ends->bits &= ends->bits - 1;
    return at;
#else
    (void)ends;
    return field_end(at);
#endif
}

static inline int
is_blank(uint8_t byte)
{
    return byte == ' ' || byte == '\t';
}

/* Fields that are read from a line. */
typedef struct {
    const uint8_t *start; /* start of the line */
    const uint8_t *query, *doc, *number, *rank;
    int64_t query_size, doc_size, number_size, rank_size;
} Line;

/* Reader of lines with a fixed number of fields. Most lines begin like the previous one, up to the
   document, and end like it, after the number; then only the fields between are located. */
typedef struct {
    int width, query, doc, number, rank; /* number of fields, and their indices; -1: no rank */
    int skipped;         /* fields between document and number; -1: lines are not compared */
    const uint8_t *last; /* the last line whose fields were all located */
    int64_t head;        /* its length before the document */
    const uint8_t *tail; /* text after its number, */
    int64_t tail_size;   /* through the line feed */
} Lines;

/* Initialize; 0 if the field indices are invalid. */
static int
begin_lines(Lines *lines)
{
    int width = lines->width;
    if (width < 1 || width > 64 || lines->query < 0 || lines->query >= width || lines->doc < 0 ||
        lines->doc >= width || lines->number < 0 || lines->number >= width || lines->rank >= width) {
        return 0;
    }
    int ordered = lines->query < lines->doc && lines->doc < lines->number &&
                  (lines->rank < 0 || (lines->rank > lines->doc && lines->rank < lines->number));
    lines->skipped = ordered ? lines->number - lines->doc - 1 : -1;
    lines->last = NULL;
    return 1;
}

/* Read a line that begins and ends like the last one; return the start of the next line, or NULL if
   it does not. */
static inline const uint8_t *
similar_line(const Lines *lines, const uint8_t *at, const uint8_t *end, Line *line)
{
    if (lines->last == NULL || end - at <= lines->head || !same_bytes(at, lines->last, lines->head)) {
        return NULL;
    }
    line->start = at;
    line->doc = at + lines->head;
    Ends ends = {line->doc, 0};
    at = next_end(&ends, line->doc);
    line->doc_size = at - line->doc;
    if (!line->doc_size || !is_blank(*at)) {
        return NULL;
    }
    for (int field = 0; field < lines->skipped; field++) {
        const uint8_t *start = at + 1;
        at = next_end(&ends, start);
        if (at == start || !is_blank(*at)) {
            return NULL;
        }
        if (lines->doc + 1 + field == lines->rank) {
            line->rank = start;
            line->rank_size = at - start;
        }
    }
    line->number = at + 1;
    at = next_end(&ends, line->number);
    line->number_size = at - line->number;
    if (!line->number_size || end - at < lines->tail_size || !same_bytes(at, lines->tail, lines->tail_size)) {
        return NULL;
    }
    return at + lines->tail_size;
}

/* Read a line; return the start of the next line, or NULL if it does not have `width` fields. The
   text must end with a line feed and be followed by 16 readable bytes. */
static const uint8_t *
read_line(Lines *lines, const uint8_t *at, const uint8_t *end, Line *line)
{
    line->start = at;
    for (int field = 0; field < lines->width; field++) {
        while (is_blank(*at)) {
            at++;
        }
        const uint8_t *closed = field_end(at);
        if (closed == at || (field == 0 && *at == '#')) {
            return NULL; /* end of line, comment, or invalid character */
        }
        if (field == lines->query) {
            line->query = at;
            line->query_size = closed - at;
        }
        if (field == lines->doc) {
            line->doc = at;
            line->doc_size = closed - at;
        }
        if (field == lines->number) {
            line->number = at;
            line->number_size = closed - at;
        }
        if (field == lines->rank) {
            line->rank = at;
            line->rank_size = closed - at;
        }
        at = closed;
    }
    while (is_blank(*at)) {
        at++;
    }
    if (*at == '\r') {
        at++;
    }
    if (*at != '\n' || at >= end) {
        return NULL;
    }
    at++;
    if (lines->skipped >= 0) {
        lines->last = line->start;
        lines->head = line->doc - line->start;
        lines->tail = line->number + line->number_size;
        lines->tail_size = at - lines->tail;
    }
    return at;
}

static int
is_ascii(const uint8_t *at, const uint8_t *end)
{
    uint64_t high = 0;
    for (; end - at >= 32; at += 32) {
        high |= word_at(at) | word_at(at + 8) | word_at(at + 16) | word_at(at + 24);
    }
    for (; at < end; at++) {
        high |= *at;
    }
    return !(high & UINT64_C(0x8080808080808080));
}

/* ---- scan ---- */

PyDoc_STRVAR(scan_doc,
"scan(numbering, data, start, stop, fields, row, starts, lengths, hashes, values, numbers, ranks)\n"
"-> None | (rows, grouped, ascii, last row, last start)\n\n"
"Read the lines of data[start:stop]. The last must end with a line feed; 31 more bytes must\n"
"follow.\n\n"
"fields: number of fields per line, and indices of query, document, number, and rank (-1: do not\n"
"read; an invalid rank becomes NaN). Columns are filled from `row` on: start of each document id\n"
"in `data`, its length and hash, the number, and the number of the query. grouped: whether no\n"
"query recurs except the last one read before. last row, last start: first line of the last\n"
"query, as a row and as an offset in `data`; -1 if that query began earlier. None: lines differ\n"
"in their number of fields, or a number is invalid.");

static PyObject *
scan(PyObject *Py_UNUSED(module), PyObject *args)
{
    Numbering *numbering;
    Array arrays[7] = {0};
    Py_ssize_t start, stop, row;
    Lines lines;
    if (!PyArg_ParseTuple(args, "O&O&nn(iiiii)nO&O&O&O&O&O&:scan", as_numbering, &numbering, bytes_in,
                          &arrays[0], &start, &stop, &lines.width, &lines.query, &lines.doc,
                          &lines.number, &lines.rank, &row, words_out, &arrays[1], words_out, &arrays[2],
                          words_out, &arrays[3], words_out, &arrays[4], halves_out, &arrays[5],
                          words_out, &arrays[6])) {
        return NULL;
    }
    PyObject *result = NULL;
    Work work = {0};
    Py_ssize_t room = PY_SSIZE_T_MAX;
    for (int i = 1; i < 6 + (lines.rank >= 0); i++) {
        room = arrays[i].count < room ? arrays[i].count : room;
    }
    const uint8_t *data = arrays[0].items;
    if (start < 0 || stop <= start || stop > arrays[0].count - SPARE || data[stop - 1] != '\n' || row < 0 ||
        !begin_lines(&lines)) {
        PyErr_SetString(PyExc_ValueError, "invalid text range");
        goto done;
    }
    int64_t *starts = arrays[1].items, *lengths = arrays[2].items;
    uint64_t *hashes = arrays[3].items;
    double *values = arrays[4].items;
    int32_t *numbers = arrays[5].items;
    double *ranks = arrays[6].items;
    const uint8_t *at = data + start, *end = data + stop;
    Line line = {0};
    const uint8_t *last_query = (const uint8_t *)"";
    int64_t last_length = -1;
    int32_t number = -1;
    int grouped = 1;
    int32_t newest = numbering->count - 1;
    Py_ssize_t first = row, last_row = -1, last_start = -1;
    unlock(&work, stop - start);
    while (at < end) {
        const uint8_t *next = similar_line(&lines, at, end, &line);
        int similar = next != NULL;
        if (!similar) {
            next = read_line(&lines, at, end, &line);
        }
        if (next == NULL || row >= room) {
            goto declined;
        }
        at = next;
        if (!similar && (line.query_size != last_length ||
                         memcmp(line.query, last_query, (size_t)last_length) != 0)) {
            last_query = line.query;
            last_length = line.query_size;
            number = number_of(numbering, last_query, last_length);
            if (number < 0) {
                goto done;
            }
            if (number > newest) {
                newest = number;
                last_row = row;
                last_start = line.start - data;
            }
            else if (number != newest || row != first) {
                grouped = 0;
            }
        }
        if (!read_number(line.number, line.number_size, &values[row])) {
            goto declined;
        }
        if (lines.rank >= 0 && !read_decimal(line.rank, line.rank_size, &ranks[row])) {
            ranks[row] = Py_NAN;
        }
        starts[row] = line.doc - data;
        lengths[row] = line.doc_size;
        hashes[row] = hash_of(line.doc, line.doc_size, 1);
        numbers[row] = number;
        row++;
        if (!proceed(&work, 4)) {
            goto done;
        }
    }
    int ascii = is_ascii(data + start, end);
    lock(&work);
    result = Py_BuildValue("nOOnn", row - first, grouped ? Py_True : Py_False,
                           ascii ? Py_True : Py_False, last_row, last_start);
    goto done;
declined:
    lock(&work);
    result = Py_NewRef(Py_None);
done:
    lock(&work);
    close_arrays(arrays, 7);
    return or_no_memory(result);
}

/* ---- number_ids ---- */

/* Whether all ids lie within the data. */
static int
are_inside(const Array *data, const Array *starts, const Array *lengths)
{
    const int64_t *start = starts->items, *length = lengths->items;
    int inside = starts->count == lengths->count;
    for (Py_ssize_t i = 0; inside && i < starts->count; i++) {
        inside = start[i] >= 0 && length[i] >= 0 && start[i] <= data->count && length[i] <= data->count - start[i];
    }
    return inside;
}

PyDoc_STRVAR(number_ids_doc,
"number_ids(numbering, data, starts, lengths, numbers)\n\n"
"Fill in the number of each id, int32, adding new ids to the numbering; its hash, uint64, if that is None.");

static PyObject *
number_ids(PyObject *Py_UNUSED(module), PyObject *args)
{
    PyObject *names, *into, *result = NULL;
    Numbering *known = NULL;
    Array arrays[4] = {0};
    if (!PyArg_ParseTuple(args, "OO&O&O&O:number_ids", &names, bytes_in, &arrays[0], words_in, &arrays[1],
                          words_in, &arrays[2], &into)) {
        return NULL;
    }
    Work work = {0};
    if ((names != Py_None && (!as_numbering(names, &known) || !numbering_room(known))) ||
        !open_array(into, &arrays[3], known ? 4 : 8, 1)) {
        goto done;
    }
    if (arrays[3].count != arrays[1].count || !are_inside(&arrays[0], &arrays[1], &arrays[2])) {
        PyErr_SetString(PyExc_ValueError, "invalid ids");
        goto done;
    }
    const uint8_t *data = arrays[0].items;
    const int64_t *starts = arrays[1].items, *lengths = arrays[2].items;
    unlock(&work, arrays[3].count);
    for (Py_ssize_t row = 0; row < arrays[3].count; row += AHEAD) {
        /* The tables exceed the cache: look up several names at a time. */
        Py_ssize_t end = arrays[3].count - row > AHEAD ? row + AHEAD : arrays[3].count;
        uint64_t hashes[AHEAD];
        for (Py_ssize_t i = row; known && i < end; i++) {
            hashes[i - row] = secret_hash_of(data + starts[i], lengths[i]);
            PREFETCH(&known->slots[hashes[i - row] & known->mask]);
        }
        for (Py_ssize_t i = row; known && i < end; i++) {
            int32_t found = known->slots[hashes[i - row] & known->mask];
            PREFETCH(&known->hashes[found ? found - 1 : 0]);
            PREFETCH(&known->starts[found ? found - 1 : 0]);
        }
        for (Py_ssize_t i = row; i < end; i++) {
            int32_t number = known ? find_name(known, data + starts[i], lengths[i], hashes[i - row]) : 0;
            if (known) {
                ((int32_t *)arrays[3].items)[i] = number;
            }
            else {
                ((uint64_t *)arrays[3].items)[i] = hash_of(data + starts[i], lengths[i], 0);
            }
            if (number < 0 || !proceed(&work, 4 + lengths[i] / 8)) {
                goto done;
            }
        }
    }
    lock(&work);
    result = Py_NewRef(Py_None);
done:
    lock(&work);
    close_arrays(arrays, 4);
    return or_no_memory(result);
}

/* ---- pack_ids ---- */

PyDoc_STRVAR(pack_ids_doc,
"pack_ids(data, starts, lengths, first, last, packed, used) -> used\n\n"
"Append the ids of rows first to last to `packed`, after its first `used` bytes, and point\n"
"`starts` to them. Return -1 if fewer than 16 bytes would remain.");

static PyObject *
pack_ids(PyObject *Py_UNUSED(module), PyObject *args)
{
    Array arrays[4] = {0};
    Py_ssize_t first, last, used;
    if (!PyArg_ParseTuple(args, "O&O&O&nnO&n:pack_ids", bytes_in, &arrays[0], words_out, &arrays[1],
                          words_in, &arrays[2], &first, &last, bytes_out, &arrays[3], &used)) {
        return NULL;
    }
    PyObject *result = NULL;
    Work work = {0};
    if (first < 0 || last < first || last > arrays[1].count || last > arrays[2].count || used < 0) {
        PyErr_SetString(PyExc_ValueError, "invalid ids");
        goto done;
    }
    const uint8_t *data = arrays[0].items;
    int64_t *starts = arrays[1].items, *lengths = arrays[2].items;
    uint8_t *packed = arrays[3].items;
    for (Py_ssize_t row = first; row < last; row++) {
        int64_t start = starts[row], length = lengths[row];
        if (start < 0 || length < 0 || start > arrays[0].count || length > arrays[0].count - start) {
            PyErr_SetString(PyExc_ValueError, "invalid ids");
            goto done;
        }
        if (length > arrays[3].count - 16 - used) {
            used = -1;
            break;
        }
        if (length <= 16 && arrays[0].count - start >= 16) {
            memcpy(packed + used, data + start, 16); /* fixed size avoids a call */
        }
        else {
            memcpy(packed + used, data + start, (size_t)length);
        }
        starts[row] = used;
        used += length;
        if (!proceed(&work, 1 + length / 64)) {
            goto done;
        }
    }
    result = PyLong_FromSsize_t(used);
done:
    close_arrays(arrays, 4);
    return result;
}

/* ---- group ---- */

PyDoc_STRVAR(group_doc,
"group(numbers, places, items, into)\n\n"
"Copy each item (8 bytes) to the next place of its group in `into`. numbers: the group of each item,\n"
"int32. places: the first place of each group, int64; each is advanced by the size of the group.");

static PyObject *
group(PyObject *Py_UNUSED(module), PyObject *args)
{
    Array arrays[4] = {0};
    if (!PyArg_ParseTuple(args, "O&O&O&O&:group", halves_in, &arrays[0], words_out, &arrays[1], words_in,
                          &arrays[2], words_out, &arrays[3])) {
        return NULL;
    }
    PyObject *result = NULL;
    const int32_t *numbers = arrays[0].items;
    int64_t *places = arrays[1].items;
    const uint64_t *items = arrays[2].items;
    uint64_t *into = arrays[3].items;
    Py_ssize_t rows = arrays[0].count, groups = arrays[1].count;
    int valid = arrays[2].count == rows && arrays[3].count == rows;
    Work work = {0};
    unlock(&work, rows);
    for (Py_ssize_t row = 0; valid && row < rows; row++) {
        int32_t number = numbers[row];
        valid = number >= 0 && number < groups && places[number] >= 0 && places[number] < rows;
        if (valid) {
            into[places[number]++] = items[row];
        }
        if (!proceed(&work, 1)) {
            goto done;
        }
    }
    lock(&work);
    if (!valid) {
        PyErr_SetString(PyExc_ValueError, "invalid groups");
        goto done;
    }
    result = Py_NewRef(Py_None);
done:
    close_arrays(arrays, 4);
    return result;
}

/* ---- all_differ ---- */

/* Whether offsets begin at 0, never decrease, and end at the number of rows. */
static int
are_offsets(const int64_t *offsets, Py_ssize_t count, Py_ssize_t rows)
{
    int valid = count > 0 && offsets[0] == 0 && offsets[count - 1] == rows;
    for (Py_ssize_t i = 1; valid && i < count; i++) {
        valid = offsets[i] >= offsets[i - 1];
    }
    return valid;
}

/* Whether all hashes are certainly distinct; -1 with an exception. `slots` must have SPARSE times as
   many slots as the power of two above `count`. */
static int
differ_all(const uint64_t *hashes, int64_t count, uint32_t *slots, Work *work)
{
    size_t mask = SPARSE * power_above((size_t)count) - 1;
    memset(slots, 0, (mask + 1) * sizeof(uint32_t));
    for (int64_t i = 0; i < count; i++) {
        /* Part of the hash selects the slot, another part is stored in it; 0 is free. */
        uint32_t tag = (uint32_t)(hashes[i] >> 32) | 1;
        size_t at = (hashes[i] >> 7) & mask;
        for (int probes = 0; slots[at]; probes++) {
            if (slots[at] == tag || probes == PROBES) {
                return 0;
            }
            at = (at + 1) & mask;
        }
        slots[at] = tag;
        if (!proceed(work, 1)) {
            return -1;
        }
    }
    return 1;
}

PyDoc_STRVAR(all_differ_doc,
"all_differ(hashes, offsets) -> bool\n\n"
"Return whether the hashes of each query certainly differ. If not, ids may be equal: compare them.");

static PyObject *
all_differ(PyObject *Py_UNUSED(module), PyObject *args)
{
    Array arrays[2] = {0};
    if (!PyArg_ParseTuple(args, "O&O&:all_differ", words_in, &arrays[0], words_in, &arrays[1])) {
        return NULL;
    }
    uint32_t *slots = NULL;
    PyObject *result = NULL;
    Work work = {0};
    const uint64_t *hashes = arrays[0].items;
    const int64_t *offsets = arrays[1].items;
    Py_ssize_t queries = arrays[1].count - 1;
    if (!are_offsets(offsets, arrays[1].count, arrays[0].count)) {
        PyErr_SetString(PyExc_ValueError, "invalid offsets");
        goto done;
    }
    int64_t longest = 0;
    for (Py_ssize_t q = 0; q < queries; q++) {
        int64_t size = offsets[q + 1] - offsets[q];
        longest = size > longest ? size : longest;
    }
    slots = malloc(SPARSE * power_above((size_t)longest) * sizeof(uint32_t));
    if (slots == NULL) {
        goto done;
    }
    int differ = 1;
    unlock(&work, arrays[0].count);
    for (Py_ssize_t q = 0; differ > 0 && q < queries; q++) {
        differ = differ_all(hashes + offsets[q], offsets[q + 1] - offsets[q], slots, &work);
    }
    lock(&work);
    result = differ < 0 ? NULL : PyBool_FromLong(differ);
done:
    free(slots);
    close_arrays(arrays, 2);
    return or_no_memory(result);
}

/* ---- ranks ---- */

typedef struct {
    double value;
    const uint8_t *id;
    int64_t length;
    int64_t place; /* position in the input; -1 if not needed because ids are unique */
} Document;

/* A ranking in input order: ids are given by `ids[i]` or by a column. */
typedef struct {
    const double *values;
    int64_t count;
    const uint8_t *const *ids;
    const uint8_t *data;
    const int64_t *starts, *lengths;
    int by_id; /* break ties by descending id instead of input order */
} Ranking;

typedef struct {
    int64_t rank, first, last;
} Ranks;

static inline const uint8_t *
id_at(const Ranking *ranking, int64_t i)
{
    return ranking->ids ? ranking->ids[i] : ranking->data + ranking->starts[i];
}

static int
by_place(const void *left, const void *right)
{
    const Document *a = left, *b = right;
    if (a->value != b->value) {
        return a->value > b->value ? -1 : 1;
    }
    return a->place < b->place ? -1 : a->place > b->place;
}

static int
by_id(const void *left, const void *right)
{
    const Document *a = left, *b = right;
    int order = 0;
    if (a->value == b->value) {
        order = compare_ids(b->id, b->length, a->id, a->length);
    }
    return order ? order : by_place(left, right);
}

typedef struct {
    double value;
    int64_t row;
} Scored;

/* Sort by value, descending and stable; return the array that has the result, NULL with an exception. */
static Scored *
sort_scored(Scored *from, Scored *to, int64_t count, Work *work)
{
    for (int64_t width = 1; width < count; width *= 2) {
        for (int64_t first = 0; first < count; first += 2 * width) {
            int64_t middle = count - first > width ? first + width : count;
            int64_t end = count - middle > width ? middle + width : count;
            int64_t i = first, j = middle, at = first;
            if (middle < end && from[middle - 1].value < from[middle].value) {
                while (i < middle && j < end) {
                    int64_t until = end - at > STEPS ? at + STEPS : end, begun = at;
                    while (i < middle && j < end && at < until) {
                        int later = from[j].value > from[i].value;
                        to[at++] = from[later ? j : i]; /* a branch would be unpredictable */
                        j += later;
                        i += !later;
                    }
                    if (!proceed(work, at - begun)) {
                        return NULL;
                    }
                }
            }
            memcpy(to + at, from + i, (size_t)(middle - i) * sizeof(Scored));
            at += middle - i;
            memcpy(to + at, from + j, (size_t)(end - j) * sizeof(Scored));
        }
        Scored *swap = from;
        from = to;
        to = swap;
    }
    return from;
}

static int
by_value(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;
    return a > b ? -1 : a < b;
}

/* Return how many values (in descending order) are greater than `value`, or at least `value` if
   `equal`. */
static inline int64_t
count_above(const double *values, int64_t count, double value, int equal)
{
    const double *from = values;
    while (count > 0) {
        int64_t half = (count + 1) / 2; /* without branches, which would be mispredicted */
        from += (equal ? from[half - 1] >= value : from[half - 1] > value) ? half : 0;
        count -= half;
    }
    return from - values;
}

/* Rank documents of a ranking. 0: out of memory, or an exception. */
static int
rank_documents(const Ranking *ranking, const Document *documents, int64_t count, Ranks *ranks,
               Bytes *scratch, Work *work)
{
    const double *values = ranking->values;
    double *bounds = NULL; /* scores of the documents, descending */
    int64_t *between = NULL, *equal = NULL; /* for each: scores above it, but not above the previous one; equal ones */
    int64_t n = ranking->count;
    int (*order)(const void *, const void *) = ranking->by_id ? by_id : by_place;
    int descending = 1;
    for (int64_t i = 1; i < n; i++) {
        if (values[i] > values[i - 1]) {
            descending = 0;
            break;
        }
    }
    if (!descending && count > FEW) {
        scratch->used = 0;
        bounds = grow(scratch, (size_t)(3 * count + 1) * sizeof(double));
        if (bounds == NULL) {
            return 0;
        }
        between = memset(bounds + count, 0, (size_t)(2 * count + 1) * sizeof(double));
        equal = between + count + 1;
        for (int64_t i = 0; i < count; i++) {
            bounds[i] = documents[i].value;
        }
        if (!sort_items(bounds, count, sizeof(double), by_value, work)) {
            return 0;
        }
        for (int64_t j = 0; j < n; j++) {
            int64_t at = count_above(bounds, count, values[j], 1);
            between[at]++;
            if (at && bounds[at - 1] == values[j]) {
                equal[at - 1]++;
            }
            if (!proceed(work, 8)) {
                return 0;
            }
        }
        for (int64_t i = 1; i < count; i++) {
            between[i] += between[i - 1];
        }
    }
    int64_t tied = 0;
    for (int64_t i = 0; i < count; i++) {
        double value = documents[i].value;
        int64_t above = 0, upto = 0;
        if (descending) {
            above = count_above(values, n, value, 0);
            upto = above + 1 < n && values[above + 1] == value ? count_above(values, n, value, 1) : above + 1;
        }
        else if (bounds != NULL) {
            int64_t at = count_above(bounds, count, value, 1) - 1;
            above = between[at];
            upto = above + equal[at];
        }
        else {
            for (int64_t j = 0; j < n; j++) {
                above += values[j] > value;
                upto += values[j] >= value;
            }
        }
        ranks[i].first = ranks[i].rank = above + 1;
        ranks[i].last = upto;
        tied += upto > above + 1;
        if (!proceed(work, descending || bounds != NULL ? 8 : n)) {
            return 0;
        }
    }
    if (!tied) {
        return 1;
    }
    /* Break ties within groups of equal scores. Most scores of a ranking differ from that of a document, so looking
       through it is faster than sorting for more documents than above. */
    if (tied <= 4 * FEW) {
        for (int64_t i = 0; i < count; i++) {
            if (ranks[i].first == ranks[i].last) {
                continue;
            }
            const Document *document = &documents[i];
            for (int64_t j = 0; j < n; j++) {
                if (values[j] != document->value) {
                    continue;
                }
                Document other = {values[j], id_at(ranking, j), ranking->lengths[j], j};
                ranks[i].rank += order(&other, document) < 0;
            }
            if (!proceed(work, n)) {
                return 0;
            }
        }
        return 1;
    }
    scratch->used = 0;
    Document *all = grow(scratch, (size_t)n * sizeof(Document));
    if (all == NULL) {
        return 0;
    }
    for (int64_t j = 0; j < n; j++) {
        all[j] = (Document){values[j], id_at(ranking, j), ranking->lengths[j], j};
    }
    if (!sort_items(all, n, sizeof(Document), order, work)) {
        return 0;
    }
    for (int64_t i = 0; i < count; i++) {
        if (ranks[i].first == ranks[i].last) {
            continue;
        }
        int64_t low = ranks[i].first - 1, high = ranks[i].last - 1;
        while (low < high) {
            int64_t middle = low + (high - low) / 2;
            if (order(&all[middle], &documents[i]) < 0) {
                low = middle + 1;
            }
            else {
                high = middle;
            }
        }
        ranks[i].rank = low + 1;
        if (!proceed(work, 8)) {
            return 0;
        }
    }
    return 1;
}

/* ---- join ---- */

typedef struct {
    Array arrays[4];   /* bytes, starts, lengths, and hashes of the documents */
    Array offsets;     /* per query */
    size_t *tables;    /* (queries + 1) first slot of each query */
    int64_t *slots;    /* row of a judgment + 1; 0 is free */
} Judgments;

static void
free_judgments(PyObject *capsule)
{
    Judgments *judgments = PyCapsule_GetPointer(capsule, JUDGMENTS);
    if (judgments != NULL) {
        close_arrays(judgments->arrays, 4);
        close_arrays(&judgments->offsets, 1);
        free(judgments->tables);
        free(judgments->slots);
        free(judgments);
    }
}

PyDoc_STRVAR(judgments_doc,
"judgments(data, starts, lengths, hashes, offsets) -> None | capsule\n\n"
"Return a hash table of the judged documents of each query, for `join`; None if hashes collide as\n"
"only hashes of chosen ids do.");

static PyObject *
judgments(PyObject *Py_UNUSED(module), PyObject *args)
{
    Judgments *made = calloc(1, sizeof(Judgments));
    if (made == NULL) {
        return PyErr_NoMemory();
    }
    PyObject *capsule = PyCapsule_New(made, JUDGMENTS, free_judgments);
    if (capsule == NULL) {
        free(made);
        return NULL;
    }
    if (!PyArg_ParseTuple(args, "O&O&O&O&O&:judgments", bytes_in, &made->arrays[0], words_in,
                          &made->arrays[1], words_in, &made->arrays[2], words_in, &made->arrays[3],
                          words_in, &made->offsets)) {
        goto failed;
    }
    const int64_t *offsets = made->offsets.items;
    Py_ssize_t rows = made->arrays[3].count;
    if (!are_offsets(offsets, made->offsets.count, rows) || made->arrays[1].count != rows ||
        !are_inside(&made->arrays[0], &made->arrays[1], &made->arrays[2])) {
        PyErr_SetString(PyExc_ValueError, "invalid judgments");
        goto failed;
    }
    Py_ssize_t queries = made->offsets.count - 1;
    made->tables = calloc((size_t)queries + 1, sizeof(size_t));
    if (made->tables == NULL) {
        goto failed;
    }
    for (Py_ssize_t q = 0; q < queries; q++) {
        made->tables[q + 1] = made->tables[q] + 2 * power_above((size_t)(offsets[q + 1] - offsets[q]));
    }
    made->slots = calloc(made->tables[queries] + 1, sizeof(int64_t));
    if (made->slots == NULL) {
        goto failed;
    }
    const uint64_t *hashes = made->arrays[3].items;
    Work work = {0};
    unlock(&work, rows);
    for (Py_ssize_t q = 0; q < queries; q++) {
        int64_t *slots = made->slots + made->tables[q];
        size_t mask = made->tables[q + 1] - made->tables[q] - 1;
        for (int64_t row = offsets[q]; row < offsets[q + 1]; row++) {
            size_t at = (hashes[row] >> 7) & mask;
            for (int probes = 0; slots[at]; probes++) {
                if (probes == PROBES) {
                    lock(&work);
                    Py_DECREF(capsule);
                    return Py_NewRef(Py_None);
                }
                at = (at + 1) & mask;
            }
            slots[at] = row + 1;
            if (!proceed(&work, 1)) {
                goto failed;
            }
        }
    }
    lock(&work);
    return capsule;
failed:
    Py_DECREF(capsule);
    return or_no_memory(NULL);
}

static PyObject *
as_bytes(Bytes *bytes)
{
    return PyByteArray_FromStringAndSize(bytes->data ? bytes->data : "", (Py_ssize_t)bytes->used);
}

/* Return the row of a document among the judgments of a query; -1 if it is not judged. */
static inline int64_t
judged_row(const Judgments *known, int64_t number, uint64_t hash, const uint8_t *id, int64_t length)
{
    const int64_t *slots = known->slots + known->tables[number];
    size_t mask = known->tables[number + 1] - known->tables[number] - 1;
    const uint64_t *hashes = known->arrays[3].items;
    for (size_t at = (hash >> 7) & mask; slots[at]; at = (at + 1) & mask) {
        int64_t row = slots[at] - 1;
        if (hashes[row] == hash && ((const int64_t *)known->arrays[2].items)[row] == length &&
            memcmp((const uint8_t *)known->arrays[0].items + ((const int64_t *)known->arrays[1].items)[row], id,
                   (size_t)length) == 0) {
            return row;
        }
    }
    return -1;
}

PyDoc_STRVAR(join_doc,
"join(judgments, data, starts, lengths, hashes, values, offsets, of_run, by_id) -> (rows, ranks)\n\n"
"Find the judged documents of a run and rank them.\n\n"
"judgments: if None, `hashes` are the row of each document's judgment, or -1. of_run: number of each query of the run in the judgments, or -1. rows: row of each judgment\n"
"found, int64. ranks: rank, and first and last rank of its group of equal scores, (n, 3) int64.\n"
"by_id: break ties by descending id instead of input order.");

static PyObject *
join(PyObject *Py_UNUSED(module), PyObject *args)
{
    PyObject *judgments;
    const Judgments *known = NULL;
    Array arrays[7] = {0};
    int ids_decide;
    if (!PyArg_ParseTuple(args, "OO&O&O&O&O&O&O&p:join", &judgments, bytes_in, &arrays[0],
                          words_in, &arrays[1], words_in, &arrays[2], words_in, &arrays[3], words_in,
                          &arrays[4], words_in, &arrays[5], words_in, &arrays[6], &ids_decide)) {
        return NULL;
    }
    Bytes rows = {0}, ranks = {0}, found = {0}, scratch = {0};
    PyObject *result = NULL;
    Work work = {0};
    const uint8_t *data = arrays[0].items;
    const int64_t *starts = arrays[1].items, *lengths = arrays[2].items;
    const uint64_t *hashes = arrays[3].items;
    const double *values = arrays[4].items;
    const int64_t *offsets = arrays[5].items, *of_run = arrays[6].items;
    Py_ssize_t count = arrays[4].count, queries = arrays[6].count;
    if ((judgments != Py_None && !as_judgments(judgments, &known)) || arrays[1].count != count || arrays[2].count != count || arrays[3].count != count ||
        arrays[5].count != queries + 1 || !are_offsets(offsets, queries + 1, count) ||
        !are_inside(&arrays[0], &arrays[1], &arrays[2])) {
        PyErr_SetString(PyExc_ValueError, "invalid run columns");
        goto done;
    }
    unlock(&work, count);
    for (Py_ssize_t q = 0; q < queries; q++) {
        int64_t number = of_run[q];
        if (number < 0) {
            continue;
        }
        if (known && number >= known->offsets.count - 1) {
            lock(&work);
            PyErr_SetString(PyExc_ValueError, "invalid query number");
            goto done;
        }
        found.used = 0;
        size_t before = rows.used;
        for (int64_t row = offsets[q]; row < offsets[q + 1]; row++) {
            const uint8_t *id = data + starts[row];
            int64_t judged = known ? judged_row(known, number, hashes[row], id, lengths[row]) : (int64_t)hashes[row];
            if (judged >= 0) {
                int64_t *place = grow(&rows, sizeof(int64_t));
                Document *document = grow(&found, sizeof(Document));
                if (place == NULL || document == NULL) {
                    goto done;
                }
                *place = judged;
                *document = (Document){values[row], id, lengths[row], row - offsets[q]};
            }
            if (!proceed(&work, 2)) {
                goto done;
            }
        }
        int64_t judged = (int64_t)((rows.used - before) / sizeof(int64_t));
        if (!judged) {
            continue;
        }
        Ranks *places = grow(&ranks, (size_t)judged * sizeof(Ranks));
        if (places == NULL) {
            goto done;
        }
        Ranking ranking = {values + offsets[q], offsets[q + 1] - offsets[q], NULL, data,
                           starts + offsets[q], lengths + offsets[q], ids_decide};
        if (!rank_documents(&ranking, (const Document *)found.data, judged, places, &scratch, &work)) {
            goto done;
        }
    }
    lock(&work);
    PyObject *first = as_bytes(&rows), *second = as_bytes(&ranks);
    if (first != NULL && second != NULL) {
        result = PyTuple_Pack(2, first, second);
    }
    Py_XDECREF(first);
    Py_XDECREF(second);
done:
    lock(&work);
    free(rows.data);
    free(ranks.data);
    free(found.data);
    free(scratch.data);
    close_arrays(arrays, 7);
    return or_no_memory(result);
}

/* ---- rank_rows ---- */

PyDoc_STRVAR(rank_rows_doc,
"rank_rows(data, starts, lengths, values, offsets, by_id) -> None | rows\n\n"
"Return the rows of each query by value, descending; None if they already are in that order.\n\n"
"by_id: equal values are ordered by id, descending; otherwise they keep their order.");

static PyObject *
rank_rows(PyObject *Py_UNUSED(module), PyObject *args)
{
    Array arrays[5] = {0};
    int ids_decide;
    if (!PyArg_ParseTuple(args, "O&O&O&O&O&p:rank_rows", bytes_in, &arrays[0], words_in, &arrays[1],
                          words_in, &arrays[2], words_in, &arrays[3], words_in, &arrays[4],
                          &ids_decide)) {
        return NULL;
    }
    Bytes rows = {0}, scratch = {0}, ties = {0};
    PyObject *result = NULL;
    Work work = {0};
    const uint8_t *data = arrays[0].items;
    const int64_t *starts = arrays[1].items, *lengths = arrays[2].items, *offsets = arrays[4].items;
    const double *values = arrays[3].items;
    Py_ssize_t count = arrays[3].count;
    if (arrays[1].count != count || !are_inside(&arrays[0], &arrays[1], &arrays[2]) ||
        !are_offsets(offsets, arrays[4].count, count)) {
        PyErr_SetString(PyExc_ValueError, "invalid run columns");
        goto done;
    }
    int64_t *order = grow(&rows, (size_t)count * sizeof(int64_t));
    int moved = 0;
    if (order == NULL) {
        goto done;
    }
    unlock(&work, count);
    for (Py_ssize_t q = 0; q + 1 < arrays[4].count; q++) {
        int64_t first = offsets[q], size = offsets[q + 1] - first;
        scratch.used = 0;
        Scored *scored = grow(&scratch, 2 * (size_t)size * sizeof(Scored));
        if (scored == NULL) {
            goto done;
        }
        int rises = 0;
        for (int64_t i = 0; i < size; i++) {
            scored[i] = (Scored){values[first + i], first + i};
            rises |= i && values[first + i] > values[first + i - 1];
        }
        scored = rises ? sort_scored(scored, scored + size, size, &work) : scored;
        if (scored == NULL || !proceed(&work, size)) {
            goto done;
        }
        moved |= rises;
        for (int64_t i = 0, end; i < size; i = end) {
            for (end = i + 1; end < size && scored[end].value == scored[i].value; end++) {
            }
            int64_t tied = end - i;
            for (int64_t j = i; j < end; j++) {
                order[first + j] = scored[j].row;
            }
            if (tied == 1 || !ids_decide) {
                continue;
            }
            ties.used = 0;
            Document *documents = grow(&ties, (size_t)tied * sizeof(Document));
            if (documents == NULL) {
                goto done;
            }
            for (int64_t j = 0; j < tied; j++) {
                int64_t row = scored[i + j].row;
                documents[j] = (Document){scored[i].value, data + starts[row], lengths[row], row};
            }
            if (tied > 2 || by_id(&documents[0], &documents[1]) > 0) {
                if (!sort_items(documents, tied, sizeof(Document), by_id, &work)) {
                    goto done;
                }
                for (int64_t j = 0; j < tied; j++) {
                    moved |= order[first + i + j] != documents[j].place;
                    order[first + i + j] = documents[j].place;
                }
            }
        }
    }
    lock(&work);
    result = moved ? as_bytes(&rows) : Py_NewRef(Py_None);
done:
    lock(&work);
    free(rows.data);
    free(scratch.data);
    free(ties.data);
    close_arrays(arrays, 5);
    return or_no_memory(result);
}

/* ---- align ---- */

PyDoc_STRVAR(align_doc,
"align(columns, first, sizes) -> None | (rows, counts, data, starts, lengths, hashes)\n\n"
"Align runs: list the distinct documents of each query, in order of first appearance.\n\n"
"columns: (data, starts, lengths, hashes) of the documents of each run; first, sizes: (queries, runs)\n"
"the first row and the number of documents of each query in each run. rows: (n, runs) the row of\n"
"each document in each run, or -1; counts: documents per query; the others are their ids. None: too\n"
"many documents, or hashes that collide as only those of chosen ids do.");

static PyObject *
align(PyObject *Py_UNUSED(module), PyObject *args)
{
    PyObject *columns;
    Array places[2] = {0};
    if (!PyArg_ParseTuple(args, "O!O&O&:align", &PyList_Type, &columns, words_in, &places[0], words_in,
                          &places[1])) {
        return NULL;
    }
    Py_ssize_t runs = PyList_Size(columns);
    Array *arrays = calloc(4 * (size_t)runs + 1, sizeof(Array));
    Bytes rows = {0}, counts = {0}, data = {0}, starts = {0}, lengths = {0}, hashes = {0}, slots = {0};
    PyObject *result = NULL;
    Work work = {0};
    if (arrays == NULL) {
        goto done;
    }
    for (Py_ssize_t r = 0; r < runs; r++) {
        Array *of_run = arrays + 4 * r;
        for (int i = 0; i < 4; i++) {
            PyObject *column = PyTuple_GetItem(PyList_GetItem(columns, r), i);
            if (column == NULL || !open_array(column, &of_run[i], i ? 8 : 1, 0)) {
                goto done;
            }
        }
        if (of_run[3].count != of_run[1].count || !are_inside(&of_run[0], &of_run[1], &of_run[2])) {
            PyErr_SetString(PyExc_ValueError, "invalid ids or hashes");
            goto done;
        }
    }
    const int64_t *first = places[0].items, *sizes = places[1].items;
    int valid = runs > 0 && places[0].count == places[1].count && places[0].count % runs == 0;
    for (Py_ssize_t i = 0; valid && i < places[0].count; i++) {
        int64_t has = arrays[4 * (i % runs) + 1].count;
        valid = first[i] >= 0 && sizes[i] >= 0 && first[i] <= has && sizes[i] <= has - first[i];
    }
    if (!valid) {
        PyErr_SetString(PyExc_ValueError, "invalid rows");
        goto done;
    }
    unlock(&work, LARGE);
    for (Py_ssize_t q = 0; q < places[0].count; q += runs) {
        int64_t total = 0, found = 0;
        for (Py_ssize_t r = 0; r < runs; r++) {
            total += sizes[q + r];
        }
        if (total >= INT32_MAX) {
            goto declined;
        }
        size_t room = SPARSE * power_above((size_t)total), mask = room - 1;
        slots.used = 0;
        /* The number of a document of this query + 1; 0 is free. */
        uint32_t *table = grow(&slots, room * sizeof(uint32_t));
        int64_t *in_runs = grow(&rows, (size_t)total * (size_t)runs * sizeof(int64_t));
        int64_t *start = grow(&starts, (size_t)total * sizeof(int64_t));
        int64_t *length = grow(&lengths, (size_t)total * sizeof(int64_t));
        uint64_t *hash = grow(&hashes, (size_t)total * sizeof(uint64_t));
        int64_t *count = grow(&counts, sizeof(int64_t));
        if (table == NULL || in_runs == NULL || start == NULL || length == NULL || hash == NULL ||
            count == NULL) {
            goto done;
        }
        memset(table, 0, room * sizeof(uint32_t));
        memset(in_runs, -1, (size_t)total * (size_t)runs * sizeof(int64_t));
        for (Py_ssize_t r = 0; r < runs; r++) {
            const Array *of_run = arrays + 4 * r;
            for (int64_t row = first[q + r]; row < first[q + r] + sizes[q + r]; row++) {
                const uint8_t *id = (const uint8_t *)of_run[0].items + ((const int64_t *)of_run[1].items)[row];
                int64_t bytes = ((const int64_t *)of_run[2].items)[row];
                uint64_t own = ((const uint64_t *)of_run[3].items)[row];
                size_t at = (own >> 7) & mask;
                int64_t number;
                for (int probes = 0; (number = (int64_t)table[at] - 1) >= 0 &&
                       (hash[number] != own || length[number] != bytes ||
                        memcmp(data.data + start[number], id, (size_t)bytes) != 0); probes++) {
                    if (probes == PROBES) {
                        goto declined;
                    }
                    at = (at + 1) & mask;
                }
                if (!proceed(&work, 2)) {
                    goto done;
                }
                if (number < 0) {
                    char *place = grow(&data, (size_t)bytes);
                    if (place == NULL) {
                        goto done;
                    }
                    memcpy(place, id, (size_t)bytes);
                    number = found++;
                    start[number] = place - data.data;
                    length[number] = bytes;
                    hash[number] = own;
                    table[at] = (uint32_t)found;
                }
                in_runs[number * runs + r] = row;
            }
        }
        *count = found;
        size_t spare = (size_t)(total - found) * sizeof(int64_t);
        rows.used -= spare * (size_t)runs;
        starts.used -= spare;
        lengths.used -= spare;
        hashes.used -= spare;
    }
    char *after = grow(&data, 8); /* ids are read in words */
    if (after == NULL) {
        goto done;
    }
    memset(after, 0, 8);
    lock(&work);
    Bytes *made[6] = {&rows, &counts, &data, &starts, &lengths, &hashes};
    result = PyTuple_New(6);
    for (int i = 0; result != NULL && i < 6; i++) {
        PyObject *column = as_bytes(made[i]);
        if (column == NULL || PyTuple_SetItem(result, i, column) < 0) {
            Py_CLEAR(result);
        }
    }
    goto done;
declined:
    lock(&work);
    result = Py_NewRef(Py_None);
done:
    lock(&work);
    free(rows.data);
    free(counts.data);
    free(data.data);
    free(starts.data);
    free(lengths.data);
    free(hashes.data);
    free(slots.data);
    close_arrays(arrays, arrays == NULL ? 0 : 4 * (int)runs);
    close_arrays(places, 2);
    free(arrays);
    return or_no_memory(result);
}

/* ---- sum_terms ---- */

PyDoc_STRVAR(sum_terms_doc,
"sum_terms(high, low, weights, sums)\n\n"
"Fill in the sum of each row of high x weights + low, as `total` in core/exact_sum.py computes it.\n\n"
"high, low: (N, R) float64, low empty for 0; weights: (R,) float64, empty for 1.");

static PyObject *
sum_terms(PyObject *Py_UNUSED(module), PyObject *args)
{
    Array arrays[4] = {0};
    if (!PyArg_ParseTuple(args, "O&O&O&O&:sum_terms", words_in, &arrays[0], words_in, &arrays[1], words_in,
                          &arrays[2], words_out, &arrays[3])) {
        return NULL;
    }
    PyObject *result = NULL;
    Work work = {0};
    const double *high = arrays[0].items, *low = arrays[1].items, *weights = arrays[2].items;
    Py_ssize_t rows = arrays[3].count, runs = rows ? arrays[0].count / rows : 0, some = ROWS;
    double(*terms)[2][ROWS] = malloc((size_t)runs * sizeof(*terms) + 1);
    int weighted = arrays[2].count > 0;
    if (arrays[0].count != rows * runs || (arrays[1].count && arrays[1].count != rows * runs) ||
        (rows && weighted && arrays[2].count != runs)) {
        PyErr_SetString(PyExc_ValueError, "invalid terms");
        goto done;
    }
    if (terms == NULL) {
        goto done;
    }
    unlock(&work, rows * runs);
    /* Loops over some rows, without branches, use the vectors of the processor. */
    for (Py_ssize_t row = 0; row < rows; row += some) {
        double sums[ROWS] = {0}, rest[ROWS] = {0};
        some = rows - row < ROWS ? rows - row : ROWS;
        for (Py_ssize_t r = 0; r < runs; r++) {
            double weight = weighted ? weights[r] : 1, c = SPLIT * weight - (SPLIT * weight - weight), d = weight - c;
            for (Py_ssize_t i = 0; i < some; i++) {
                double value = high[(row + i) * runs + r], product = value * weight;
                double a = SPLIT * value - (SPLIT * value - value), b = value - a;
                terms[r][0][i] = product;
                terms[r][1][i] = weighted ? ((a * c - product) + a * d + b * c) + b * d : 0;
            }
            for (Py_ssize_t i = 0; arrays[1].count && i < some; i++) {
                terms[r][1][i] += low[(row + i) * runs + r];
            }
        }
        for (Py_ssize_t last = runs - 1; last > 0; last--) {
            for (Py_ssize_t r = 0; r < last; r++) {
                double(*one)[ROWS] = terms[r], (*two)[ROWS] = terms[r + 1];
                for (Py_ssize_t i = 0; i < some; i++) {
                    double a = one[0][i], b = two[0][i], c = one[1][i], d = two[1][i];
                    int later = (a > b) | ((a == b) & (c > d));
                    one[0][i] = later ? b : a;
                    two[0][i] = later ? a : b;
                    one[1][i] = later ? d : c;
                    two[1][i] = later ? c : d;
                }
            }
        }
        for (Py_ssize_t r = 0; r < runs; r++) {
            for (Py_ssize_t i = 0; i < some; i++) {
                double term = terms[r][0][i], more = sums[i] + term, back = more - sums[i];
                rest[i] += ((sums[i] - (more - back)) + (term - back)) + terms[r][1][i];
                sums[i] = more;
            }
        }
        for (Py_ssize_t i = 0; i < some; i++) {
            ((double *)arrays[3].items)[row + i] = sums[i] + rest[i];
        }
        if (!proceed(&work, some * runs * runs)) {
            goto done;
        }
    }
    lock(&work);
    result = Py_NewRef(Py_None);
done:
    lock(&work);
    free(terms);
    close_arrays(arrays, 4);
    return or_no_memory(result);
}

/* ---- join_lines ---- */

/* Counts of a run, as in data/joined_blocks.py. */
typedef struct {
    int64_t documents, rising, varied, longer, uneven, tied;
} Tally;

/* Add the counts of a ranking, in input order. */
static void
count_ranking(const double *values, int64_t size, Tally *tally)
{
    int falls = 0, differs = 0;
    for (int64_t i = 1; i < size && !falls; i++) {
        falls = values[i - 1] > values[i];
        differs |= values[i - 1] != values[i];
    }
    tally->documents += size;
    tally->longer |= size > 1;
    tally->uneven |= differs;
    if (size >= LEAST) {
        tally->varied += differs;
        tally->rising += differs && !falls;
    }
}

/* The first documents of a ranking, each followed by a NUL. */
typedef struct {
    int64_t number; /* number of the query */
    Bytes docs;
} Head;

/* A run in a text file, joined query by query. */
typedef struct {
    Numbering queries; /* queries of the judgments, numbered as there, then of the run */
    int32_t judged;    /* number of queries with judgments */
    int32_t named;     /* number of queries whose names were returned */
    Bytes seen;        /* for each query: whether its ranking was read */
    Tally tally;
    Bytes of_run, retrieved; /* per ranking: its number in the judgments or -1; its size */
    Bytes rows, ranks;       /* per judged document: row of its judgment; ranks */
    Head *heads;
    Py_ssize_t kept, most_heads, most_docs;
    /* The current ranking: offsets of ids in the text, and buffers for `add_ranking`. */
    double *values;
    int64_t *starts, *lengths;
    uint64_t *hashes;
    int64_t size, room;
    Bytes judgments, found, slots, scratch;
    Bytes filter; /* bits, set for the hashes of its judged documents, and for few others */
    size_t mask;
} LinesRun;

static void
free_lines_run(PyObject *capsule)
{
    LinesRun *run = PyCapsule_GetPointer(capsule, LINES_RUN);
    if (run == NULL) {
        return;
    }
    Bytes *all[] = {&run->seen,      &run->of_run, &run->retrieved, &run->rows,    &run->ranks,
                    &run->judgments, &run->found,  &run->slots,     &run->scratch, &run->filter};
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        free(all[i]->data);
    }
    free(run->values);
    free(run->starts);
    free(run->lengths);
    free(run->hashes);
    for (Py_ssize_t i = 0; run->heads != NULL && i < run->most_heads; i++) {
        free(run->heads[i].docs.data);
    }
    free(run->heads);
    clear_numbering(&run->queries);
    free(run);
}

PyDoc_STRVAR(lines_run_doc,
"lines_run(data, starts, lengths, heads, documents) -> capsule\n\n"
"Return an empty run for `join_lines` and `join_table`. data, starts, lengths: ids of the queries of\n"
"the judgments. The first `documents` documents are kept for the `heads` queries with the lowest\n"
"numbers.");

static PyObject *
lines_run(PyObject *Py_UNUSED(module), PyObject *args)
{
    LinesRun *run = calloc(1, sizeof(LinesRun));
    if (run == NULL) {
        return PyErr_NoMemory();
    }
    PyObject *result = NULL, *capsule = PyCapsule_New(run, LINES_RUN, free_lines_run);
    if (capsule == NULL) {
        free(run);
        return NULL;
    }
    Array names[3] = {0};
    Py_ssize_t most_heads, most_docs;
    if (!PyArg_ParseTuple(args, "O&O&O&nn:lines_run", bytes_in, &names[0], words_in, &names[1], words_in,
                          &names[2], &most_heads, &most_docs)) {
        goto done;
    }
    run->most_heads = most_heads > 0 ? most_heads : 0;
    run->most_docs = most_docs;
    run->heads = calloc((size_t)run->most_heads + 1, sizeof(Head));
    if (run->heads == NULL) {
        PyErr_NoMemory();
        goto done;
    }
    if (!are_inside(&names[0], &names[1], &names[2])) {
        PyErr_SetString(PyExc_ValueError, "invalid ids");
        goto done;
    }
    for (Py_ssize_t i = 0; i < names[1].count; i++) {
        const uint8_t *name = (const uint8_t *)names[0].items + ((const int64_t *)names[1].items)[i];
        if (number_of(&run->queries, name, ((const int64_t *)names[2].items)[i]) != i) {
            PyErr_SetString(PyExc_ValueError, "duplicate query");
            goto done;
        }
    }
    run->judged = run->named = run->queries.count;
    result = Py_NewRef(capsule);
done:
    Py_DECREF(capsule);
    close_arrays(names, 3);
    return result;
}

/* Keep the first documents of a ranking if fewer than `most_heads` rankings with lower numbers are
   kept. 0 if out of memory. */
static int
keep_head(LinesRun *run, int64_t number, const uint8_t *data)
{
    Head *head = &run->heads[run->kept];
    if (run->kept == run->most_heads) {
        head = run->heads;
        for (Py_ssize_t i = 1; i < run->kept; i++) {
            head = run->heads[i].number > head->number ? &run->heads[i] : head;
        }
        if (!run->kept || head->number < number) {
            return 1;
        }
    }
    else {
        run->kept++;
    }
    head->number = number;
    head->docs.used = 0;
    for (int64_t i = 0; i < run->size && i < run->most_docs; i++) {
        size_t length = (size_t)run->lengths[i];
        char *place = grow(&head->docs, length + 1);
        if (place == NULL) {
            return 0;
        }
        memcpy(place, data + run->starts[i], length);
        place[length] = '\0';
    }
    return 1;
}

/* Add the current ranking to the run. 1: done; 0: out of memory, or an exception; -1: declined because
   a document may be a duplicate or the query occurred before. */
static int
add_ranking(LinesRun *run, int32_t number, const uint8_t *data, int ids_decide, Work *work)
{
    if (run->seen.used <= (size_t)number) {
        char *seen = grow(&run->seen, (size_t)run->queries.count + 1 - run->seen.used);
        if (seen == NULL) {
            return 0;
        }
        memset(seen, 0, run->seen.used - (size_t)(seen - run->seen.data));
    }
    run->slots.used = 0;
    uint32_t *slots = grow(&run->slots, SPARSE * power_above((size_t)run->size) * sizeof(uint32_t));
    int64_t *of_run = grow(&run->of_run, sizeof(int64_t));
    int64_t *retrieved = grow(&run->retrieved, sizeof(int64_t));
    if (slots == NULL || of_run == NULL || retrieved == NULL) {
        return 0;
    }
    int differ = run->seen.data[number] ? 0 : differ_all(run->hashes, run->size, slots, work);
    if (differ <= 0) {
        return differ ? 0 : -1;
    }
    run->seen.data[number] = 1;
    *of_run = number < run->judged ? number : -1;
    *retrieved = run->size;
    count_ranking(run->values, run->size, &run->tally);
    int64_t count = (int64_t)(run->judgments.used / sizeof(int64_t));
    if (count) {
        int64_t *rows = grow(&run->rows, run->judgments.used);
        Ranks *ranks = grow(&run->ranks, (size_t)count * sizeof(Ranks));
        Ranking ranking = {run->values, run->size, NULL, data, run->starts, run->lengths, ids_decide};
        if (rows == NULL || ranks == NULL ||
            !rank_documents(&ranking, (const Document *)run->found.data, count, ranks, &run->scratch, work)) {
            return 0;
        }
        memcpy(rows, run->judgments.data, run->judgments.used);
    }
    return number >= run->judged || keep_head(run, number, data);
}

/* Double the capacity of a ranking. 0 if out of memory. */
static int
make_room(LinesRun *run)
{
    size_t room = run->room ? 2 * (size_t)run->room : 1024;
    double *values = realloc(run->values, room * sizeof(double));
    run->values = values ? values : run->values;
    int64_t *starts = realloc(run->starts, room * sizeof(int64_t));
    run->starts = starts ? starts : run->starts;
    int64_t *lengths = realloc(run->lengths, room * sizeof(int64_t));
    run->lengths = lengths ? lengths : run->lengths;
    uint64_t *hashes = realloc(run->hashes, room * sizeof(uint64_t));
    run->hashes = hashes ? hashes : run->hashes;
    if (values == NULL || starts == NULL || lengths == NULL || hashes == NULL) {
        return 0;
    }
    run->room = (int64_t)room;
    return 1;
}

/* Add a document to the current ranking, which has room for it. 0 if out of memory. */
static inline int
add_document(LinesRun *run, const Judgments *known, int32_t number, const uint8_t *data, const uint8_t *id,
             int64_t length, double value, uint64_t hash)
{
    int64_t place = run->size++;
    run->values[place] = value;
    run->starts[place] = id - data;
    run->lengths[place] = length;
    run->hashes[place] = hash;
    size_t bit = hash & run->mask;
    int maybe = ((const uint64_t *)run->filter.data)[bit / 64] >> (bit % 64) & 1;
    int64_t judged = maybe ? judged_row(known, number, hash, id, length) : -1;
    if (judged >= 0) {
        int64_t *row = grow(&run->judgments, sizeof(int64_t));
        Document *document = grow(&run->found, sizeof(Document));
        if (row == NULL || document == NULL) {
            return 0;
        }
        *row = judged;
        *document = (Document){value, id, length, place};
    }
    return 1;
}

/* Add a line to the current ranking. 1: done; 0: out of memory; -1: declined. */
static inline int
add_line(LinesRun *run, const Judgments *known, int32_t number, const uint8_t *data, const Line *line)
{
    double value;
    if (run->size == run->room && !make_room(run)) {
        return 0;
    }
    if (!read_number(line->number, line->number_size, &value)) {
        return -1;
    }
    uint64_t hash = hash_of(line->doc, line->doc_size, 1);
    return add_document(run, known, number, data, line->doc, line->doc_size, value, hash);
}

static void
clear_ranking(LinesRun *run)
{
    run->size = 0;
    run->judgments.used = run->found.used = 0;
}

/* Begin the ranking of a query. 0 if out of memory. */
static int
begin_ranking(LinesRun *run, const Judgments *known, int32_t number)
{
    clear_ranking(run);
    const int64_t *offsets = known->offsets.items;
    const uint64_t *hashes = known->arrays[3].items;
    int64_t row = number < run->judged ? offsets[number] : 0, end = number < run->judged ? offsets[number + 1] : 0;
    size_t words = power_above((size_t)(end - row) / 2);
    run->filter.used = 0;
    uint64_t *filter = grow(&run->filter, words * sizeof(uint64_t));
    if (filter == NULL) {
        return 0;
    }
    memset(filter, 0, words * sizeof(uint64_t));
    run->mask = 64 * words - 1;
    for (; row < end; row++) {
        size_t bit = hashes[row] & run->mask;
        filter[bit / 64] |= UINT64_C(1) << (bit % 64);
    }
    return 1;
}

PyDoc_STRVAR(join_lines_doc,
"join_lines(run, judgments, data, start, stop, fields, last, by_id) -> None | (end, held)\n\n"
"Join the rankings in data[start:stop] with judgments: `scan`, `all_differ`, and `join` in one\n"
"pass, without columns of the run.\n\n"
"The lines of each query must be adjacent. Lines from `end` on were not used: those of the last\n"
"query are left for the next call, unless `last` is set. held: number of rankings and judged\n"
"documents that `joined_lines` will return. fields, by_id: as in `scan` and `join`. None: lines\n"
"differ in their number of fields, a number is invalid, a byte is not ASCII, a query recurs, or\n"
"a document may be a duplicate.");

static PyObject *
join_lines(PyObject *Py_UNUSED(module), PyObject *args)
{
    LinesRun *run;
    const Judgments *known;
    Array text = {0};
    Py_ssize_t start, stop;
    Lines lines;
    int ids_decide, last;
    if (!PyArg_ParseTuple(args, "O&O&O&nn(iiiii)pp:join_lines", as_lines_run, &run, as_judgments, &known,
                          bytes_in, &text, &start, &stop, &lines.width, &lines.query, &lines.doc,
                          &lines.number, &lines.rank, &last, &ids_decide)) {
        return NULL;
    }
    PyObject *result = NULL;
    Work work = {0};
    const uint8_t *data = text.items;
    if (start < 0 || stop <= start || stop > text.count - SPARE || data[stop - 1] != '\n' ||
        !begin_lines(&lines) || run->judged != known->offsets.count - 1) {
        PyErr_SetString(PyExc_ValueError, "invalid text range");
        goto done;
    }
    unlock(&work, stop - start);
    const uint8_t *at = data + start, *end = data + stop, *begun = at, *query = NULL;
    int64_t query_size = 0;
    int32_t number = -1;
    Line line = {0};
    while (at < end) {
        const uint8_t *next = similar_line(&lines, at, end, &line);
        if (next == NULL) {
            next = read_line(&lines, at, end, &line);
            if (next == NULL) {
                goto declined;
            }
            if (line.query_size != query_size || memcmp(line.query, query, (size_t)query_size) != 0) {
                int added = number < 0 ? 1 : add_ranking(run, number, data, ids_decide, &work);
                number = added > 0 ? number_of(&run->queries, line.query, line.query_size) : -1;
                if (added < 0) {
                    goto declined;
                }
                if (number < 0 || !begin_ranking(run, known, number)) {
                    goto done;
                }
                query = line.query;
                query_size = line.query_size;
                begun = line.start;
            }
        }
        int added = add_line(run, known, number, data, &line);
        if (added < 0) {
            goto declined;
        }
        if (!added || !proceed(&work, 4)) {
            goto done;
        }
        at = next;
    }
    if (last) {
        int added = add_ranking(run, number, data, ids_decide, &work);
        if (added < 0) {
            goto declined;
        }
        if (!added) {
            goto done;
        }
        begun = end;
    }
    if (!is_ascii(data + start, end)) {
        goto declined;
    }
    lock(&work);
    result = Py_BuildValue("nn", begun - data, (Py_ssize_t)((run->of_run.used + run->rows.used) / sizeof(int64_t)));
    goto done;
declined:
    lock(&work);
    result = Py_NewRef(Py_None);
done:
    lock(&work);
    if (run != NULL) {
        clear_ranking(run); /* its ids point into the text */
    }
    close_arrays(&text, 1);
    return or_no_memory(result);
}

PyDoc_STRVAR(join_table_doc,
"join_table(run, judgments, queries, docs, values, offsets, by_id) -> None | held\n\n"
"Join the rankings of a table with judgments, like `join_lines`. queries, docs: bytes, starts, and\n"
"lengths of ids. None: a score is not finite, a query is repeated, or a document may be repeated.");

static PyObject *
join_table(PyObject *Py_UNUSED(module), PyObject *args)
{
    LinesRun *run;
    const Judgments *known;
    Array arrays[8] = {0};
    int ids_decide;
    if (!PyArg_ParseTuple(args, "O&O&(O&O&O&)(O&O&O&)O&O&p:join_table", as_lines_run, &run, as_judgments,
                          &known, bytes_in, &arrays[0], words_in, &arrays[1], words_in, &arrays[2],
                          bytes_in, &arrays[3], words_in, &arrays[4], words_in, &arrays[5], words_in,
                          &arrays[6], words_in, &arrays[7], &ids_decide)) {
        return NULL;
    }
    PyObject *result = NULL;
    Work work = {0};
    const uint8_t *data = arrays[3].items;
    const int64_t *starts = arrays[4].items, *lengths = arrays[5].items, *offsets = arrays[7].items;
    const double *values = arrays[6].items;
    Py_ssize_t count = arrays[6].count, queries = arrays[1].count;
    if (arrays[4].count != count || arrays[7].count != queries + 1 || !are_offsets(offsets, queries + 1, count) ||
        !are_inside(&arrays[0], &arrays[1], &arrays[2]) || !are_inside(&arrays[3], &arrays[4], &arrays[5]) ||
        run->judged != known->offsets.count - 1) {
        PyErr_SetString(PyExc_ValueError, "invalid table");
        goto done;
    }
    unlock(&work, count);
    for (Py_ssize_t q = 0; q < queries; q++) {
        const uint8_t *name = (const uint8_t *)arrays[0].items + ((const int64_t *)arrays[1].items)[q];
        int32_t number = number_of(&run->queries, name, ((const int64_t *)arrays[2].items)[q]);
        if (number < 0 || !begin_ranking(run, known, number)) {
            goto done;
        }
        for (int64_t row = offsets[q]; row < offsets[q + 1]; row++) {
            const uint8_t *id = data + starts[row];
            int64_t length = lengths[row];
            if (!isfinite(values[row])) {
                goto declined;
            }
            uint64_t hash = hash_of(id, length, arrays[3].count - starts[row] - length >= 8);
            if ((run->size == run->room && !make_room(run)) ||
                !add_document(run, known, number, data, id, length, values[row], hash) || !proceed(&work, 3)) {
                goto done;
            }
        }
        int added = add_ranking(run, number, data, ids_decide, &work);
        if (added < 0) {
            goto declined;
        }
        if (!added) {
            goto done;
        }
    }
    lock(&work);
    result = PyLong_FromSize_t((run->of_run.used + run->rows.used) / sizeof(int64_t));
    goto done;
declined:
    lock(&work);
    result = Py_NewRef(Py_None);
done:
    lock(&work);
    if (run != NULL) {
        clear_ranking(run); /* its ids point into the table */
    }
    close_arrays(arrays, 8);
    return or_no_memory(result);
}

PyDoc_STRVAR(joined_lines_doc,
"joined_lines(run) -> (of_run, retrieved, rows, ranks, tally, unknown, heads)\n\n"
"Return what `join_lines` or `join_table` joined since the last call. of_run, retrieved: for each\n"
"ranking, its number in the judgments (or -1) and its number of documents, int64. rows, ranks: as in\n"
"`join`. tally: documents, rising, varied, longer, and uneven, as in InputCounts. unknown: queries\n"
"without judgments. heads: first documents by query number, each followed by a NUL.");

static PyObject *
joined_lines(PyObject *Py_UNUSED(module), PyObject *capsule)
{
    LinesRun *run = PyCapsule_GetPointer(capsule, LINES_RUN);
    if (run == NULL) {
        return NULL;
    }
    Bytes *columns[] = {&run->of_run, &run->retrieved, &run->rows, &run->ranks};
    PyObject *made[4] = {NULL}, *result = NULL, *heads = PyDict_New();
    PyObject *unknown = names_from(&run->queries, run->named);
    for (int i = 0; i < 4; i++) {
        made[i] = as_bytes(columns[i]);
        if (made[i] == NULL) {
            goto done;
        }
    }
    if (heads == NULL || unknown == NULL) {
        goto done;
    }
    for (Py_ssize_t i = 0; i < run->kept; i++) {
        const Bytes *docs = &run->heads[i].docs;
        PyObject *number = PyLong_FromLongLong(run->heads[i].number);
        PyObject *text = PyBytes_FromStringAndSize(docs->data, (Py_ssize_t)docs->used);
        int set = number == NULL || text == NULL ? -1 : PyDict_SetItem(heads, number, text);
        Py_XDECREF(number);
        Py_XDECREF(text);
        if (set < 0) {
            goto done;
        }
    }
    result = Py_BuildValue("(OOOO(LLLLL)OO)", made[0], made[1], made[2], made[3],
                           (long long)run->tally.documents, (long long)run->tally.rising,
                           (long long)run->tally.varied, (long long)run->tally.longer,
                           (long long)run->tally.uneven, unknown, heads);
    if (result != NULL) {
        for (int i = 0; i < 4; i++) {
            columns[i]->used = 0;
        }
        run->named = run->queries.count;
        run->kept = 0;
        run->tally = (Tally){0};
    }
done:
    for (int i = 0; i < 4; i++) {
        Py_XDECREF(made[i]);
    }
    Py_XDECREF(heads);
    Py_XDECREF(unknown);
    return result;
}

/* ---- pack_dicts ---- */

/* Read a score as a finite float; 0 if it may not be one. */
static int
score_of(PyObject *object, double *score)
{
    if (PyFloat_CheckExact(object) ||
        (PyFloat_Check(object) && !(PyType_GetFlags(Py_TYPE(object)) & Py_TPFLAGS_HEAPTYPE))) {
        /* NumPy's numbers, too; classes written in Python may define __float__. */
        *score = PyFloat_AsDouble(object);
    }
    else if (PyLong_CheckExact(object)) {
        *score = PyLong_AsDouble(object);
        if (PyErr_Occurred()) {
            PyErr_Clear();
            return 0;
        }
        return fabs(*score) < EXACT;
    }
    else {
        return 0;
    }
    return isfinite(*score);
}

/* Scores and ids of one ranking, and working memory. */
typedef struct {
    Bytes values, ids, lengths, found, scratch, slots;
    Bytes keys; /* owned ids, because signal handlers can change a ranking */
    Py_ssize_t size;
    Work work;
} Dict;

static void
release_keys(Dict *dict)
{
    while (dict->keys.used) {
        dict->keys.used -= sizeof(PyObject *);
        Py_DECREF(*(PyObject **)(dict->keys.data + dict->keys.used));
    }
}

static void
free_dict(Dict *dict)
{
    release_keys(dict);
    free(dict->values.data);
    free(dict->ids.data);
    free(dict->lengths.data);
    free(dict->found.data);
    free(dict->scratch.data);
    free(dict->slots.data);
    free(dict->keys.data);
}

/* Return the UTF-8 text of an id; NULL without an exception if it is not a valid plain string. */
static const char *
text_of(PyObject *object, Py_ssize_t *length)
{
    const char *text = PyUnicode_CheckExact(object) ? PyUnicode_AsUTF8AndSize(object, length) : NULL;
    if (text == NULL) {
        PyErr_Clear(); /* a lone surrogate */
        return NULL;
    }
    return *length == 0 || memchr(text, 0, (size_t)*length) != NULL ? NULL : text;
}

/* Read a ranking in dict order; `judged` is the size of its pool. Ids are appended to the list
   `texts`, if there is one. 1: done; 0: out of memory or exception set; -1: declined. */
static int
read_dict(Dict *dict, PyObject *ranking, Py_ssize_t judged, PyObject *texts)
{
    Py_ssize_t size = dict->size = PyDict_Size(ranking), position = 0, i = 0;
    release_keys(dict);
    dict->work.deferred = 0;
    if (!proceed(&dict->work, size)) {
        return 0;
    }
    dict->work.deferred = size < LARGE && judged < LARGE;
    dict->values.used = dict->ids.used = dict->lengths.used = 0;
    double *value = grow(&dict->values, (size_t)size * sizeof(double));
    const char **id = grow(&dict->ids, (size_t)size * sizeof(char *));
    int64_t *length = grow(&dict->lengths, (size_t)size * sizeof(int64_t));
    if (value == NULL || id == NULL || length == NULL) {
        return 0;
    }
    PyObject *key, *object;
    while (PyDict_Next(ranking, &position, &key, &object)) {
        Py_ssize_t bytes;
        if (i >= size || !score_of(object, &value[i])) {
            return -1;
        }
        id[i] = text_of(key, &bytes);
        if (id[i] == NULL) {
            return -1;
        }
        length[i++] = bytes;
        if (texts != NULL && PyList_Append(texts, key) < 0) {
            return 0;
        }
        if (!dict->work.deferred) {
            PyObject **owned = grow(&dict->keys, sizeof(PyObject *));
            if (owned == NULL) {
                return 0;
            }
            *owned = Py_NewRef(key);
            if (!proceed(&dict->work, 2)) {
                return 0;
            }
        }
    }
    /* A signal handler has removed documents. */
    return i == size ? 1 : -1;
}

static inline size_t
hash_of_score(double score)
{
    uint64_t bits;
    score += 0.0; /* -0.0 equals 0.0 */
    memcpy(&bits, &score, sizeof(bits));
    bits *= UINT64_C(0x9E3779B97F4A7C15);
    return (size_t)(bits >> 52 ^ bits >> 32); /* the highest bits depend on all others */
}

/* Find the positions in a ranking of documents found there. 0: out of memory, or an exception. */
static int
find_places(Dict *dict, Document *documents, int64_t count)
{
    const double *value = (const double *)dict->values.data;
    const char **id = (const char **)dict->ids.data;
    const int64_t *length = (const int64_t *)dict->lengths.data;
    Py_ssize_t falls = 1;
    while (falls < dict->size && value[falls] < value[falls - 1]) {
        falls++;
    }
    if (falls >= dict->size) {
        return 1; /* there are no equal scores, so positions do not matter */
    }
    size_t mask = 2 * power_above((size_t)count) - 1, scores = 8 * (mask + 1) - 1;
    dict->slots.used = 0;
    /* Index + 1 by id; 0 is free. Then whether a score is possible, so that few ids are hashed. */
    int64_t *slots = grow(&dict->slots, (mask + 1) * sizeof(int64_t) + scores + 1);
    if (slots == NULL) {
        return 0;
    }
    memset(slots, 0, dict->slots.used);
    char *possible = (char *)(slots + mask + 1);
    for (int64_t k = 0; k < count; k++) {
        possible[hash_of_score(documents[k].value) & scores] = 1;
        size_t at = secret_hash_of(documents[k].id, documents[k].length) & mask;
        while (slots[at]) {
            at = (at + 1) & mask;
        }
        slots[at] = k + 1;
    }
    for (Py_ssize_t j = 0; j < dict->size; j++) {
        if (!possible[hash_of_score(value[j]) & scores]) {
            continue;
        }
        size_t at = secret_hash_of((const uint8_t *)id[j], length[j]) & mask;
        for (; slots[at]; at = (at + 1) & mask) {
            Document *document = &documents[slots[at] - 1];
            if (document->length == length[j] && memcmp(document->id, id[j], (size_t)length[j]) == 0) {
                document->place = j;
                break;
            }
        }
        if (!proceed(&dict->work, 2)) {
            return 0;
        }
    }
    return 1;
}

/* Rank the judged documents, from `docs[start]` on, that are in the ranking: append their ranks to
   `ranks` in this order, and flag them in `flags`. 1: done; 0: out of memory or exception set; -1: declined. */
static int
rank_pool(Dict *dict, PyObject *ranking, PyObject *docs, Py_ssize_t start, Py_ssize_t judged, int ids_decide,
          char *flags, Bytes *ranks)
{
    Py_ssize_t size = dict->size;
    const double *value = (const double *)dict->values.data;
    const char **id = (const char **)dict->ids.data;
    const int64_t *length = (const int64_t *)dict->lengths.data;
    int64_t count = 0;
    dict->found.used = 0;
    for (Py_ssize_t k = 0; k < judged; k++) {
        PyObject *doc = PyList_GetItem(docs, start + k);
        PyObject *score = doc != NULL && PyUnicode_CheckExact(doc) ? PyDict_GetItemWithError(ranking, doc) : NULL;
        if (PyErr_Occurred()) {
            return 0;
        }
        flags[k] = score != NULL;
        if (score != NULL) {
            Py_ssize_t bytes;
            const char *text = PyUnicode_AsUTF8AndSize(doc, &bytes);
            Document *document = grow(&dict->found, sizeof(Document));
            if (text == NULL || document == NULL) {
                return 0;
            }
            *document = (Document){0.0, (const uint8_t *)text, bytes, -1};
            if (!score_of(score, &document->value)) {
                return -1;
            }
            count++;
        }
        if (!proceed(&dict->work, 2)) {
            return 0;
        }
    }
    if (!count) {
        return 1;
    }
    Document *documents = (Document *)dict->found.data;
    if (!ids_decide && !find_places(dict, documents, count)) {
        return 0;
    }
    Ranks *places = grow(ranks, (size_t)count * sizeof(Ranks));
    if (places == NULL) {
        return 0;
    }
    Ranking given = {value, size, (const uint8_t *const *)id, NULL, NULL, length, ids_decide};
    return rank_documents(&given, documents, count, places, &dict->scratch, &dict->work);
}

PyDoc_STRVAR(pack_dicts_doc,
"pack_dicts(rankings) -> None | (data, starts, lengths, values, sizes, texts)\n\n"
"Return the columns of a list of dicts from text to number: bytes, starts, and lengths of the ids,\n"
"with spare bytes at the end, the numbers, the size of each dict, and a list of the ids. None: a dict or a key is not\n"
"plain, or a number may not be a finite float.");

static PyObject *
pack_dicts(PyObject *Py_UNUSED(module), PyObject *args)
{
    PyObject *rankings, *result = NULL;
    if (!PyArg_ParseTuple(args, "O!:pack_dicts", &PyList_Type, &rankings)) {
        return NULL;
    }
    Bytes columns[5] = {0};
    Dict dict = {0};
    PyObject *made[5] = {NULL}, *texts = PyList_New(0);
    if (texts == NULL) {
        goto done;
    }
    for (Py_ssize_t q = 0; q < PyList_Size(rankings); q++) {
        PyObject *ranking = Py_NewRef(PyList_GetItem(rankings, q));
        int done = PyDict_CheckExact(ranking) ? read_dict(&dict, ranking, 0, texts) : -1;
        const char **id = (const char **)dict.ids.data;
        const int64_t *length = (const int64_t *)dict.lengths.data;
        int64_t *size = done > 0 ? grow(&columns[4], sizeof(int64_t)) : NULL;
        int64_t *starts = size ? grow(&columns[1], dict.lengths.used) : NULL;
        int64_t *lengths = starts ? grow(&columns[2], dict.lengths.used) : NULL;
        double *values = lengths ? grow(&columns[3], dict.values.used) : NULL;
        for (Py_ssize_t i = 0; values != NULL && i < dict.size; i++) {
            starts[i] = (int64_t)columns[0].used;
            char *place = grow(&columns[0], (size_t)length[i]);
            if (place == NULL) {
                values = NULL;
                break;
            }
            memcpy(place, id[i], (size_t)length[i]);
        }
        if (values != NULL) {
            *size = dict.size;
            memcpy(lengths, length, dict.lengths.used);
            memcpy(values, dict.values.data, dict.values.used);
        }
        Py_DECREF(ranking);
        if (done < 0) {
            result = Py_NewRef(Py_None);
            goto done;
        }
        if (values == NULL) {
            goto done;
        }
    }
    void *spare = grow(&columns[0], 16);
    if (spare == NULL) {
        goto done;
    }
    memset(spare, 0, 16);
    for (int i = 0; i < 5; i++) {
        made[i] = as_bytes(&columns[i]);
        if (made[i] == NULL) {
            goto done;
        }
    }
    result = PyTuple_Pack(6, made[0], made[1], made[2], made[3], made[4], texts);
done:
    for (int i = 0; i < 5; i++) {
        free(columns[i].data);
        Py_XDECREF(made[i]);
    }
    Py_XDECREF(texts);
    free_dict(&dict);
    return or_no_memory(result);
}

/* ---- measures ---- */

/* Family numbers are those of measures/compiled.py. */
enum {
    P, R, F, SUCCESS, RR, AP, NDCG, SETP, SETR, SETF, NUMRET, NUMREL, NUMRELRET, FIRSTREL, JUDGED, BEYOND,
    DCG, ERR, NERR, RBP, RPREC, IPREC, BPREF, INFAP
};
#define DECLINED (-1.0) /* NumPy reports what is wrong with the grades */
#define LN2 0.69314718055994530942
#define EPSILON 0.00001   /* of infAP */
#define MOST_EXPONENT 900 /* 2^grade stays finite, also in sums */

/* A measure: `k` is infinite without a cutoff. `number` is beta, the top grade, the persistence p,
 * a recall, or 2 for exponential gains. `condensed`: without unjudged documents. */
typedef struct {
    double family, k, level, number, condensed;
} Step;
#define STEP (sizeof(Step) / sizeof(double))

typedef struct {
    int64_t rank, first, last;
    double grade;
} Entry;

/* The sum of the weights of all ranks up to one, and its rounding error. */
typedef struct {
    double sum, rest;
} Sum;

/* One query: its retrieved judged documents, best first; all grades >= 0, descending. */
typedef struct {
    const Entry *entries;
    int64_t count, retrieved;
    const double *ideal;
    int64_t pool;
    const double *discounts; /* for ranks 0, 1, ... */
    /* Sums of discounts and of 1 / rank, if values are means over all orders of equal scores: the
       ranks of entries are then the first of their groups, with the highest grades first. */
    const Sum *sums, *inverses;
} Query;

static int
by_rank(const void *left, const void *right)
{
    const Entry *a = left, *b = right;
    return a->rank < b->rank ? -1 : a->rank > b->rank;
}

/* 2^grade - 1, as in the kernels. */
static double
exponential(double grade)
{
    return grade == rint(grade) ? ldexp(1.0, (int)grade) - 1 : expm1(grade * LN2);
}

/* Extend the sums of weights (if NULL, of 1 / rank) up to a rank. */
static const Sum *
extend_sums(Bytes *sums, const double *weights, int64_t rank)
{
    int64_t first = (int64_t)(sums->used / sizeof(Sum));
    if (rank >= first && grow(sums, (size_t)(rank + 1 - first) * sizeof(Sum)) == NULL) {
        return NULL;
    }
    Sum *sum = (Sum *)sums->data;
    for (int64_t i = first; i <= rank; i++) {
        double weight = i ? (weights ? weights[i] : 1 / (double)i) : 0.0, before = i ? sum[i - 1].sum : 0.0;
        double next = before + weight, added = next - before; /* Knuth: exact error of an addition */
        sum[i] = (Sum){next, (i ? sum[i - 1].rest : 0.0) + ((before - (next - added)) + (weight - added))};
    }
    return sum;
}

/* Number of ranks of a group of equal scores that are at most k. */
static inline int64_t
ranks_within(const Entry *group, double k)
{
    int64_t last = (double)group->last <= k ? group->last : (int64_t)k;
    return last < group->first ? 0 : last - group->first + 1;
}

/* Mean weight of the ranks of a group of equal scores; 0 for those above k. */
static double
mean_weight(const Sum *sums, const Entry *group, double k)
{
    const Sum *start = sums + group->first - 1, *end = start + ranks_within(group, k);
    return ((end->sum - start->sum) + (end->rest - start->rest)) / (double)(group->last - group->first + 1);
}

static double
dcg(const Step *step, const Query *query)
{
    double sum = 0.0, best = 0.0;
    int exponential_gain = step->number == 2;
    for (int64_t i = 0; i < query->count && (double)query->entries[i].rank <= step->k; i++) {
        const Entry *entry = &query->entries[i];
        double grade = entry->grade >= 0 ? entry->grade : 0.0;
        double weight = query->sums && entry->first < entry->last ? mean_weight(query->sums, entry, step->k)
                                                                  : query->discounts[entry->rank];
        sum += (exponential_gain ? exponential(grade) : grade) * weight;
    }
    if (step->family == DCG) {
        return sum;
    }
    for (int64_t i = 0; i < query->pool && (double)i < step->k; i++) {
        best += (exponential_gain ? exponential(query->ideal[i]) : query->ideal[i]) * query->discounts[i + 1];
    }
    return query->pool && query->ideal[0] > 0 ? sum / best : NAN;
}

/* Expected reciprocal rank at which a user stops; normalized by that of the ideal ranking. */
static double
err(const Step *step, const Query *query)
{
    double scale = pow(2.0, step->number), sum = 0.0, best = 0.0, reach = 1.0;
    for (int64_t i = 0; i < query->count && (double)query->entries[i].rank <= step->k; i++) {
        double stop = query->entries[i].grade > 0 ? exponential(query->entries[i].grade) / scale : 0.0;
        sum += stop * reach / (double)query->entries[i].rank;
        reach *= 1 - stop;
    }
    if (step->family == ERR) {
        return sum;
    }
    reach = 1.0;
    for (int64_t i = 0; i < query->pool && (double)i < step->k; i++) {
        double stop = exponential(query->ideal[i]) / scale;
        best += stop * reach / (double)(i + 1);
        reach *= 1 - stop;
    }
    return best > 0 ? sum / best : NAN;
}

static double
rbp(const Step *step, const Query *query)
{
    double p = step->number, sum = 0.0, weight = 1.0;
    int64_t at = 1;
    for (int64_t i = 0; i < query->count && (double)query->entries[i].rank <= step->k; i++) {
        for (; at < query->entries[i].rank && weight > 0; at++) {
            weight *= p;
        }
        sum += query->entries[i].grade >= step->level ? weight : 0.0;
    }
    return (1 - p) * sum;
}

/* Measures of incomplete judgments and of precision at a recall, of `relevant` documents. */
static double
incomplete(const Step *step, const Query *query, int64_t relevant)
{
    int family = (int)step->family;
    int64_t others = query->pool - relevant, bound = others < relevant ? others : relevant, found = 0, wrong = 0;
    int64_t needed = (int64_t)(step->number * (double)relevant + 0.9);
    double sum = 0.0, highest = 0.0;
    for (int64_t i = 0; i < query->count; i++) {
        double grade = query->entries[i].grade, rank = (double)query->entries[i].rank;
        if (grade < step->level) {
            wrong += grade >= 0;
            continue;
        }
        if (family == BPREF) {
            sum += 1 - (double)(wrong < relevant ? wrong : relevant) / (double)(bound > 1 ? bound : 1);
        } else if (family == INFAP) {
            double chance = ((double)found + EPSILON) / ((double)(found + wrong) + 2 * EPSILON);
            sum += 1 / rank + (double)i / rank * chance;
        }
        found++;
        if (found >= needed && (double)found / rank > highest) {
            highest = (double)found / rank;
        }
    }
    return !relevant ? NAN : family == IPREC ? highest : sum / (double)relevant;
}

static int
by_group(const void *left, const void *right)
{
    const Entry *a = left, *b = right;
    if (a->first != b->first) {
        return a->first < b->first ? -1 : 1;
    }
    return a->grade > b->grade ? -1 : a->grade < b->grade;
}

/* Order documents of equal scores by grade, unjudged ones last; or, for the worst order, the reverse. */
static int
break_ties_by_grade(Entry *entries, int64_t count, int worst, Work *work)
{
    if (!sort_items(entries, count, sizeof(Entry), by_group, work)) {
        return 0;
    }
    for (int64_t i = 0, next; i < count; i = next) {
        for (next = i; next < count && entries[next].first == entries[i].first; next++) {
            entries[next].rank = worst ? entries[next].last - (next - i) : entries[i].first + next - i;
        }
    }
    return !worst || sort_items(entries, count, sizeof(Entry), by_rank, work);
}

/* Return the query without unjudged documents, ranked again; its entries are put in `entries`. */
static Query
condensed(const Query *query, Entry *entries)
{
    Query result = *query;
    int64_t count = 0, start = 0, of_group = 0;
    for (int64_t i = 0; i < query->count; i++) {
        const Entry *entry = &query->entries[i];
        if (entry->grade >= 0) {
            start = entry->first == of_group ? start : count + 1;
            of_group = entry->first;
            entries[count] = (Entry){query->sums ? start : count + 1, start, count + 1, entry->grade};
            count++;
        }
    }
    for (int64_t i = count - 1; i > 0; i--) {
        if (entries[i - 1].first == entries[i].first) {
            entries[i - 1].last = entries[i].last;
        }
    }
    result.entries = entries;
    result.count = result.retrieved = count;
    return result;
}

/* Number of documents of a group of equal scores, from entry i on, with a grade in [low, high). */
static int64_t
count_grades(const Query *query, int64_t i, double low, double high)
{
    int64_t first = query->entries[i].first, count = 0;
    for (; i < query->count && query->entries[i].first == first; i++) {
        count += query->entries[i].grade >= low && query->entries[i].grade < high;
    }
    return count;
}

/* Mean over all orders of equal scores of a measure of the first relevant document. */
static double
mean_of_first(const Step *step, const Query *query, int64_t relevant)
{
    int64_t i = 0;
    while (i < query->count && query->entries[i].grade < step->level) {
        i++;
    }
    if (i == query->count) {
        return step->family == FIRSTREL || (step->family == RR && !relevant) ? NAN : 0.0;
    }
    const Entry *group = &query->entries[i];
    int64_t size = group->last - group->first + 1, hits = count_grades(query, i, step->level, INFINITY);
    int64_t slots = ranks_within(group, step->k);
    if (step->family == FIRSTREL) {
        return (double)group->first + (double)(size - hits) / (double)(hits + 1);
    }
    double reached = 1.0, sum = 0.0;
    if (step->family == SUCCESS) {
        /* The probability of a miss is symmetric in `slots` and `hits`. */
        for (int64_t place = 0; place < (slots < hits ? slots : hits); place++) {
            reached *= (double)(size - place - (slots < hits ? hits : slots)) / (double)(size - place);
        }
        return 1.0 - reached;
    }
    for (int64_t place = 0; place < slots && place <= size - hits; place++) {
        double left = (double)(size - place);
        sum += reached * ((double)hits / left) / (double)(group->first + place);
        reached *= (left - (double)hits) / left;
    }
    return sum;
}

/* Mean over all orders of equal scores of AP or Bpref, of `relevant` documents: see tie_means.py. */
static double
mean_over_orders(const Step *step, const Query *query, int64_t relevant)
{
    int64_t others = query->pool - relevant, bound = others < relevant ? others : relevant, above = 0, next;
    double sum = 0.0;
    for (int64_t i = 0; i < query->count; i = next) {
        const Entry *group = &query->entries[i];
        int64_t size = group->last - group->first + 1, hits = count_grades(query, i, step->level, INFINITY);
        double slots = (double)ranks_within(group, step->k), first = (double)group->first;
        double value = slots > 0 ? (double)(above + 1) / first : 0.0;
        if (step->family == BPREF) {
            /* min(above + u, R) for u from 0 to `wrong` grows for `rising` steps, then is constant. */
            int64_t wrong = count_grades(query, i, 0.0, step->level), room = relevant > above ? relevant - above : 0;
            int64_t rising = room < wrong ? room : wrong;
            double grown = (double)((rising + 1) * (relevant - room)) + (double)(rising * (rising + 1)) / 2;
            double lost = (grown + (double)((wrong - rising) * relevant)) / (double)(wrong + 1);
            value = 1 - lost / (double)(bound > 1 ? bound : 1);
            above += wrong - hits;
        }
        else if (size > 1) {
            double rate = (double)(hits - 1) / (double)(size - 1);
            value = ((double)(above + 1) - rate * first) * mean_weight(query->inverses, group, step->k) +
                    rate * (slots / (double)size);
        }
        above += hits;
        for (next = i; next < query->count && query->entries[next].first == group->first; next++) {
            sum += query->entries[next].grade >= step->level ? value : 0.0;
        }
    }
    return relevant ? sum / (double)relevant : NAN;
}

/* Return the value of a measure. Sums run from the best rank to the last, as in the kernels. */
static double
value_of(const Step *step, const Query *query)
{
    double k = step->k, level = step->level, weight = step->number * step->number, sum = 0.0;
    double found = 0.0, known = 0.0;
    int64_t relevant, first = 0;
    int family = (int)step->family;
    double top = query->pool ? query->ideal[0] : 0.0;
    switch (family) {
    case DCG:
    case NDCG:
        return step->number == 2 && top > MOST_EXPONENT ? DECLINED : dcg(step, query);
    case ERR:
    case NERR:
        return query->sums || top > step->number || top > MOST_EXPONENT ? DECLINED : err(step, query);
    case RBP:
        return query->sums ? DECLINED : rbp(step, query);
    }
    relevant = count_above(query->ideal, query->pool, level, 1);
    if (query->sums && (family == SUCCESS || family == RR || family == FIRSTREL)) {
        return mean_of_first(step, query, relevant);
    }
    if (query->sums && (family == AP || family == BPREF)) {
        return mean_over_orders(step, query, relevant);
    }
    if (family == IPREC || family == BPREF || family == INFAP) {
        return query->sums ? DECLINED : incomplete(step, query, relevant);
    }
    if (family == RPREC) {
        k = (double)relevant;
    }
    for (int64_t i = 0; i < query->count && (double)query->entries[i].rank <= k; i++) {
        const Entry *entry = &query->entries[i];
        double share = query->sums ? (double)ranks_within(entry, k) / (double)(entry->last - entry->first + 1) : 1.0;
        known += share;
        if (entry->grade >= level) {
            found += share;
            first = first ? first : entry->rank;
            sum += found / (double)entry->rank;
        }
    }
    double all = relevant ? (double)relevant : NAN, retrieved = (double)query->retrieved;
    switch (family) {
    case P:
        return found / k;
    case R:
    case SETR:
    case RPREC:
        return found / all;
    case F:
    case SETF:
        return relevant ? (1 + weight) * found / (weight * (double)relevant + (family == F ? k : retrieved))
                        : NAN;
    case SUCCESS:
        return found > 0;
    case RR:
        return !relevant ? NAN : first ? 1.0 / (double)first : 0.0;
    case AP:
        return sum / all;
    case SETP:
        return retrieved > 0 ? found / retrieved : NAN;
    case NUMRET:
        return retrieved;
    case NUMREL:
        return (double)relevant;
    case NUMRELRET:
        return found;
    case FIRSTREL:
        return first ? (double)first : NAN;
    case JUDGED:
        return retrieved > 0 ? known / (retrieved < k ? retrieved : k) : NAN;
    default:
        return (double)relevant > k;
    }
}

/* Whether `value_of` supports all steps; otherwise 0 with an exception. */
static int
are_steps(const Array *program)
{
    const Step *steps = program->items;
    int valid = program->count % STEP == 0;
    for (Py_ssize_t i = 0; valid && i < program->count / (Py_ssize_t)STEP; i++) {
        valid = steps[i].family >= P && steps[i].family <= INFAP && steps[i].k >= 1 && steps[i].level > 0;
    }
    if (!valid) {
        PyErr_SetString(PyExc_ValueError, "invalid measures");
    }
    return valid;
}

/* Whether all grades are positive, +0.0, or negative; -0.0 is left to NumPy. */
static int
are_plain(const double *grades, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        if (grades[i] == 0 && signbit(grades[i])) {
            return 0;
        }
    }
    return 1;
}

PyDoc_STRVAR(measure_grades_doc,
"measure_grades(grades, ideal, discounts, program) -> None | list[float]\n\n"
"Measure one ranking, given the grade of each document (below 0 if unjudged).\n\n"
"ideal: all grades >= 0, descending. program: a `Step` for each measure. None: there are too few\n"
"discounts, or a grade is -0.0.");

static PyObject *
measure_grades(PyObject *Py_UNUSED(module), PyObject *args)
{
    PyObject *grades, *pool;
    Array arrays[2] = {0};
    if (!PyArg_ParseTuple(args, "O!O!O&O&:measure_grades", &PyList_Type, &grades, &PyList_Type, &pool,
                          words_in, &arrays[0], words_in, &arrays[1])) {
        return NULL;
    }
    Bytes entries = {0}, ideal = {0};
    PyObject *result = NULL;
    Work work = {0};
    if (!are_steps(&arrays[1])) {
        goto done;
    }
    Py_ssize_t count = PyList_Size(grades), size = PyList_Size(pool);
    Entry *entry = grow(&entries, 2 * (size_t)count * sizeof(Entry));
    double *best = grow(&ideal, (size_t)size * sizeof(double));
    if (entry == NULL || best == NULL) {
        goto done;
    }
    int plain = count < arrays[0].count && size < arrays[0].count;
    for (Py_ssize_t i = 0; plain && i < count; i++) {
        entry[i] = (Entry){i + 1, i + 1, i + 1, PyFloat_AsDouble(PyList_GetItem(grades, i))};
        plain = are_plain(&entry[i].grade, 1);
    }
    for (Py_ssize_t i = 0; plain && i < size; i++) {
        best[i] = PyFloat_AsDouble(PyList_GetItem(pool, i));
        plain = are_plain(&best[i], 1);
    }
    if (PyErr_Occurred()) {
        goto done;
    }
    if (!plain) {
        result = Py_NewRef(Py_None);
        goto done;
    }
    Query query = {entry, count, count, best, size, arrays[0].items, NULL, NULL};
    Query judged = condensed(&query, entry + count);
    Py_ssize_t steps = arrays[1].count / (Py_ssize_t)STEP;
    result = PyList_New(steps);
    for (Py_ssize_t i = 0; result != NULL && i < steps; i++) {
        const Step *step = (const Step *)arrays[1].items + i;
        PyObject *value = PyFloat_FromDouble(value_of(step, step->condensed ? &judged : &query));
        if (value == NULL || PyList_SetItem(result, i, value) < 0 || !proceed(&work, count + size)) {
            Py_CLEAR(result);
        }
    }
done:
    free(entries.data);
    free(ideal.data);
    close_arrays(arrays, 2);
    return or_no_memory(result);
}

/* ---- measure_dicts ---- */

/* A query of a run: its number in the judgments (or -1) and its position in the run. */
typedef struct {
    int64_t number, place;
    PyObject *name, *ranking; /* owned, because garbage collection can change the run */
} Asked;

static int
by_number(const void *left, const void *right)
{
    const Asked *a = left, *b = right;
    if (a->number != b->number) {
        return a->number < b->number ? -1 : 1;
    }
    return a->place < b->place ? -1 : a->place > b->place;
}

/* Fill in the summary of the positions of judged documents: `InputSummary.ends`. */
static void
fill_ends(const Query *query, double *ends)
{
    ends[0] = (double)query->retrieved;
    ends[1] = (double)query->count;
    for (int64_t i = 0; i < query->count; i++) {
        const Entry *entry = &query->entries[i];
        if (entry->grade >= 0) {
            double *at = ends + (entry->grade > 0 ? 2 : 4);
            at[0] += 1;
            at[1] += (double)entry->rank;
        }
        if (entry->grade > 0) {
            double end = (double)(query->retrieved + 1 - entry->last + entry->rank - entry->first);
            ends[7] = ends[6] && ends[7] < end ? ends[7] : end;
            ends[6] = ends[6] ? ends[6] : (double)entry->rank;
        }
    }
}

/* Whether breaking ties differently could change a value. Unjudged documents and negative grades count
 * as grade 0, unless a measure separates them (`separate`). */
static int
is_tied(const Query *query, int separate)
{
    double unjudged = separate ? -INFINITY : 0.0;
    for (int64_t i = 0, next; i < query->count; i = next) {
        const Entry *entry = &query->entries[i];
        double lowest = INFINITY, highest = unjudged;
        for (next = i; next < query->count && query->entries[next].first == entry->first; next++) {
            double grade = query->entries[next].grade;
            grade = grade > 0 || separate ? grade : 0.0;
            lowest = grade < lowest ? grade : lowest;
            highest = grade > highest ? grade : highest;
        }
        if (next - i < entry->last - entry->first + 1) {
            lowest = unjudged;
        }
        if (highest > lowest) {
            return 1;
        }
    }
    return 0;
}

/* Return the first documents of a ranking, in input order. */
static PyObject *
first_of(PyObject *ranking, Py_ssize_t most)
{
    PyObject *list = PyList_New(0), *key, *object;
    Py_ssize_t position = 0, count = 0;
    while (list != NULL && count++ < most && PyDict_Next(ranking, &position, &key, &object)) {
        if (PyList_Append(list, key) < 0) {
            Py_CLEAR(list);
        }
    }
    return list;
}

PyDoc_STRVAR(measure_dicts_doc,
"measure_dicts(run, names, docs, columns, program, limits, order, unjudged)\n"
"    -> None | (numbers, values, ends, tally, unknown, rankings, rows, ranks)\n\n"
"Join a dict of dicts with judgments and measure its queries.\n\n"
"names: number of each query by its text. docs: all judged documents. columns: their grades\n"
"and their offsets, all grades >= 0 in descending order within each query and their offsets, and\n"
"discounts by rank. program: a `Step` for each measure. limits: number of rankings whose first\n"
"documents are returned, and number of documents. order: of equal scores: 0 input, 1 by id, 2 best,\n"
"3 worst, 4 means over all orders. unjudged: whether ties of documents judged not relevant and\n"
"unjudged ones matter (1), or no ties of unjudged ones (2).\n\n"
"Results are in ascending order of query number: values has a row per measure, ends a row per query;\n"
"unknown are the queries without judgments. tally: `InputCounts`, queries that another order of ties\n"
"could change, and values that NumPy must compute. rows, ranks: as in `join`. None: the run is not\n"
"made of plain dicts, strings, and finite numbers.");

static PyObject *
measure_dicts(PyObject *Py_UNUSED(module), PyObject *args)
{
    PyObject *run, *names_of, *docs;
    Array arrays[6] = {0};
    Py_ssize_t most_rankings, most_documents;
    int order, unjudged;
    if (!PyArg_ParseTuple(args, "O!O!O!(O&O&O&O&O&)O&(nn)ii:measure_dicts", &PyDict_Type, &run,
                          &PyDict_Type, &names_of, &PyList_Type, &docs, words_in, &arrays[0], words_in,
                          &arrays[1], words_in, &arrays[2], words_in, &arrays[3], words_in, &arrays[4],
                          words_in, &arrays[5], &most_rankings, &most_documents, &order, &unjudged)) {
        return NULL;
    }
    Bytes asked = {0}, numbers = {0}, flags = {0}, ranks = {0}, rows = {0}, entries = {0}, sums[2] = {0};
    Py_ssize_t place = 0;
    Dict dict = {0};
    Tally tally = {0};
    int64_t declined = 0;
    PyObject *result = NULL, *values = NULL, *ends = NULL, *unknown = PyList_New(0), *rankings = PyDict_New();
    if (unknown == NULL || rankings == NULL) {
        goto done;
    }
    const double *grades = arrays[0].items, *ideal = arrays[2].items;
    const int64_t *offsets = arrays[1].items, *of_ideal = arrays[3].items;
    Py_ssize_t judged = arrays[1].count - 1, steps = arrays[5].count / (Py_ssize_t)STEP, queries = PyDict_Size(run);
    if (PyList_Size(docs) != arrays[0].count || !are_offsets(offsets, judged + 1, arrays[0].count) ||
        arrays[3].count != judged + 1 || !are_offsets(of_ideal, judged + 1, arrays[2].count)) {
        PyErr_SetString(PyExc_ValueError, "invalid judgments");
        goto done;
    }
    if (!are_steps(&arrays[5])) {
        goto done;
    }
    Asked *query = grow(&asked, (size_t)queries * sizeof(Asked));
    if (query == NULL) {
        goto done;
    }
    Py_ssize_t position = 0, known = 0;
    PyObject *key, *ranking;
    while (PyDict_Next(run, &position, &key, &ranking)) {
        Py_ssize_t bytes;
        if (place >= queries || text_of(key, &bytes) == NULL || !PyDict_CheckExact(ranking)) {
            goto declined;
        }
        PyObject *number = PyDict_GetItemWithError(names_of, key);
        if (PyErr_Occurred()) {
            goto done;
        }
        query[place] = (Asked){number ? PyLong_AsLongLong(number) : -1, place, Py_NewRef(key),
                                 Py_NewRef(ranking)};
        place++;
        if (number && (query[place - 1].number < 0 || query[place - 1].number >= judged)) {
            PyErr_SetString(PyExc_ValueError, "invalid query number");
            goto done;
        }
        known += number != NULL;
    }
    if (!sort_items(query, place, sizeof(Asked), by_number, &dict.work)) {
        goto done;
    }
    values = PyByteArray_FromStringAndSize(NULL, known * steps * (Py_ssize_t)sizeof(double));
    ends = PyByteArray_FromStringAndSize(NULL, known * 8 * (Py_ssize_t)sizeof(double));
    if (values == NULL || ends == NULL) {
        goto done;
    }
    double *value = (double *)PyByteArray_AsString(values), *end = (double *)PyByteArray_AsString(ends);
    memset(end, 0, (size_t)known * 8 * sizeof(double));
    for (Py_ssize_t i = 0, row = 0; i < place; i++) {
        int64_t number = query[i].number;
        int done = read_dict(&dict, query[i].ranking, number < 0 ? 0 : offsets[number + 1] - offsets[number],
                             NULL);
        if (!done) {
            goto done;
        }
        if (done < 0) {
            goto declined;
        }
        count_ranking((const double *)dict.values.data, dict.size, &tally);
        if (number < 0) {
            if (PyList_Append(unknown, query[i].name) < 0) {
                goto done;
            }
            continue;
        }
        int64_t start = offsets[number], size = offsets[number + 1] - start;
        flags.used = entries.used = 0;
        size_t before = ranks.used;
        char *flag = grow(&flags, (size_t)size);
        Entry *entry = grow(&entries, 2 * (size_t)size * sizeof(Entry));
        int64_t *number_at = grow(&numbers, sizeof(int64_t));
        if (flag == NULL || entry == NULL || number_at == NULL) {
            goto done;
        }
        *number_at = number;
        done = rank_pool(&dict, query[i].ranking, docs, start, size, order != 0, flag, &ranks);
        if (!done) {
            goto done;
        }
        int tied = 0;
        int64_t count = 0, deepest = of_ideal[number + 1] - of_ideal[number];
        const Ranks *rank = (const Ranks *)(ranks.data + before);
        int64_t *row_of = grow(&rows, (ranks.used - before) / sizeof(Ranks) * sizeof(int64_t));
        if (row_of == NULL) {
            goto done;
        }
        if (done < 0 || (steps && (!are_plain(grades + start, size) || !are_plain(ideal + of_ideal[number], deepest)))) {
            goto declined;
        }
        for (int64_t k = 0; k < size; k++) {
            if (flag[k]) {
                entry[count] = (Entry){rank[count].rank, rank[count].first, rank[count].last, grades[start + k]};
                row_of[count] = start + k;
                deepest = entry[count].last > deepest ? entry[count].last : deepest;
                tied |= entry[count].last > entry[count].first;
                count++;
            }
        }
        if (steps && deepest >= arrays[4].count) {
            goto declined;
        }
        if (!(order > 1 ? break_ties_by_grade(entry, count, order == 3, &dict.work)
                        : sort_items(entry, count, sizeof(Entry), by_rank, &dict.work))) {
            goto done;
        }
        Query this = {entry, count, dict.size, ideal + of_ideal[number],
                      of_ideal[number + 1] - of_ideal[number], arrays[4].items, NULL, NULL};
        fill_ends(&this, end + 8 * row);
        /* If nothing is tied, the means over all orders are the values. */
        if (order == 4 && tied) {
            for (int64_t k = 0; k < count; k++) {
                entry[k].rank = entry[k].first;
            }
            this.sums = extend_sums(&sums[0], arrays[4].items, deepest);
            this.inverses = extend_sums(&sums[1], NULL, deepest);
            if (this.sums == NULL || this.inverses == NULL) {
                goto done;
            }
        }
        Query judged_only = condensed(&this, entry + count);
        for (Py_ssize_t step = 0; step < steps; step++) {
            const Step *measure = (const Step *)arrays[5].items + step;
            double found = value_of(measure, measure->condensed ? &judged_only : &this);
            value[step * known + row] = found;
            declined += found == DECLINED;
            if (!proceed(&dict.work, count + this.pool)) {
                goto done;
            }
        }
        tally.tied += is_tied(unjudged == 2 ? &judged_only : &this, unjudged);
        if (row++ < most_rankings) {
            PyObject *as_int = PyLong_FromLongLong(number), *first = first_of(query[i].ranking, most_documents);
            int kept = as_int == NULL || first == NULL ? -1 : PyDict_SetItem(rankings, as_int, first);
            Py_XDECREF(as_int);
            Py_XDECREF(first);
            if (kept < 0) {
                goto done;
            }
        }
    }
    PyObject *of_judgments = as_bytes(&numbers), *all_rows = as_bytes(&rows), *all_ranks = as_bytes(&ranks);
    if (of_judgments != NULL && all_rows != NULL && all_ranks != NULL) {
        result = Py_BuildValue("(OOO(LLLLLinLL)OOOO)", of_judgments, values, ends, (long long)tally.documents,
                               (long long)tally.rising, (long long)tally.varied, (long long)tally.longer,
                               (long long)tally.uneven, 0, PyList_Size(unknown), (long long)tally.tied,
                               (long long)declined, unknown, rankings, all_rows, all_ranks);
    }
    Py_XDECREF(of_judgments);
    Py_XDECREF(all_rows);
    Py_XDECREF(all_ranks);
    goto done;
declined:
    result = Py_NewRef(Py_None);
done:
    Py_XDECREF(values);
    Py_XDECREF(ends);
    Py_XDECREF(unknown);
    Py_XDECREF(rankings);
    for (Py_ssize_t i = 0; i < place; i++) {
        Py_DECREF(((Asked *)asked.data)[i].name);
        Py_DECREF(((Asked *)asked.data)[i].ranking);
    }
    free(asked.data);
    free(numbers.data);
    free(flags.data);
    free(ranks.data);
    free(rows.data);
    free(entries.data);
    free(sums[0].data);
    free(sums[1].data);
    free_dict(&dict);
    close_arrays(arrays, 6);
    return or_no_memory(result);
}

/* ---- row_lines ---- */

#define NUMBER 40 /* maximum length of a number */

static char *
write_whole(char *at, uint64_t number)
{
    char digits[20];
    int count = 0;
    do {
        digits[count++] = (char)('0' + number % 10);
        number /= 10;
    } while (number);
    while (count) {
        *at++ = digits[--count];
    }
    return at;
}

#ifdef __SIZEOF_INT128__
typedef unsigned __int128 Wide;

/* Write a number from 1e-4 to 1e15 like repr(): with the fewest digits that identify the double, as
   near to it as possible (Giulietti 2020, "Schubfach"). In this range powers of ten are exact. */
static char *
write_decimal(char *at, double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof(bits));
    uint64_t hidden = UINT64_C(1) << (DBL_MANT_DIG - 1), mantissa = (bits & (hidden - 1)) | hidden;
    int shift = 1075 - (int)(bits >> (DBL_MANT_DIG - 1)); /* value = mantissa / 2**shift */
    /* Enough decimals: their steps are not wider than the distance between doubles. */
    int decimals = shift * 1233 / 4096 + 1; /* log10(2) */
    Wide power = decimals < 20 ? WHOLE_TENS[decimals] : (Wide)10 * WHOLE_TENS[decimals - 1];
    if (power < (Wide)1 << shift) {
        decimals++;
        power *= 10;
    }
    Wide one = (Wide)1 << (shift + 2), number = power * (mantissa * 4);
    uint64_t digits = (uint64_t)(number >> (shift + 2));
    Wide rest = number & (one - 1);
    Wide last = one * (digits % 10) + rest; /* the rest with one decimal less */
    /* Distance to the midpoints between this double and its neighbors. No rounded number equals a
       midpoint, which has shift + 1 decimals. Below a power of two the midpoint is nearer, which
       changes no digits in this range. */
    Wide most = 2 * power;
    if (last <= most || one * 10 - last <= most) {
        digits = digits / 10 + (last > most);
        for (decimals--; decimals > 1 && digits % 10 == 0; decimals--) {
            digits /= 10;
        }
    }
    else if (one - rest <= most) {
        digits += rest > most || rest * 2 > one || (rest * 2 == one && (digits & 1));
    }
    uint64_t ten = WHOLE_TENS[decimals < 20 ? decimals : 19], whole = digits / ten;
    at = write_whole(at, whole);
    *at++ = '.';
    digits -= whole * ten;
    int count = decimals ? decimals : 1, left = count;
    for (; left > 1; digits /= 100) { /* two at a time: fewer dependent divisions */
        at[--left] = (char)('0' + digits % 10);
        at[--left] = (char)('0' + digits / 10 % 10);
    }
    if (left) {
        *at = (char)('0' + digits);
    }
    return at + count;
}
#endif

/* Write a number like repr(). NULL with an exception. */
static char *
write_number(char *at, double value)
{
#ifdef __SIZEOF_INT128__
    if (fabs(value) >= 1e-4 && fabs(value) < 1e15) {
        *at = '-';
        return write_decimal(at + (value < 0), fabs(value));
    }
#endif
    char *text = PyOS_double_to_string(value, 'r', 0, Py_DTSF_ADD_DOT_0, NULL);
    size_t length = text == NULL ? 0 : strlen(text);
    if (length > NUMBER) {
        PyErr_NoMemory();
    }
    else if (text != NULL) {
        memcpy(at, text, length);
        at += length;
    }
    PyMem_Free(text);
    return PyErr_Occurred() ? NULL : at;
}

/* Whether an id needs no quotes in any format: printable ASCII without blank, '"', ',', '\\'. */
static int
is_plain_id(const uint8_t *id, int64_t length)
{
    for (int64_t i = 0; i < length; i++) {
        if (id[i] <= ' ' || id[i] >= 127 || id[i] == '"' || id[i] == ',' || id[i] == '\\') {
            return 0;
        }
    }
    return 1;
}

PyDoc_STRVAR(row_lines_doc,
"row_lines(data, starts, lengths, values, before, between, after, rank) -> None | bytes\n\n"
"Write a line for each document: before, id, between, number, after.\n\n"
"rank: if not 0, the rank of the first document; ranks and `between` then precede the numbers.\n"
"None: an id contains a character that some format may quote.");

static PyObject *
row_lines(PyObject *Py_UNUSED(module), PyObject *args)
{
    Array arrays[4] = {0};
    const char *before, *between, *after;
    Py_ssize_t sizes[3], rank;
    if (!PyArg_ParseTuple(args, "O&O&O&O&y#y#y#n:row_lines", bytes_in, &arrays[0], words_in, &arrays[1],
                          words_in, &arrays[2], words_in, &arrays[3], &before, &sizes[0], &between,
                          &sizes[1], &after, &sizes[2], &rank)) {
        return NULL;
    }
    Bytes text = {0};
    PyObject *result = NULL;
    Work work = {0};
    if (arrays[3].count != arrays[1].count || !are_inside(&arrays[0], &arrays[1], &arrays[2])) {
        PyErr_SetString(PyExc_ValueError, "invalid ids or numbers");
        goto done;
    }
    const int64_t *starts = arrays[1].items, *lengths = arrays[2].items;
    const double *values = arrays[3].items;
    size_t around = (size_t)sizes[0] + 2 * (size_t)sizes[1] + (size_t)sizes[2] + 2 * NUMBER;
    for (Py_ssize_t i = 0; i < arrays[3].count; i++) {
        const uint8_t *id = (const uint8_t *)arrays[0].items + starts[i];
        size_t length = (size_t)lengths[i];
        if (!is_plain_id(id, lengths[i])) {
            result = Py_NewRef(Py_None);
            goto done;
        }
        char *at = grow(&text, around + length);
        if (at == NULL) {
            goto done;
        }
        at = (char *)memcpy(at, before, (size_t)sizes[0]) + sizes[0];
        at = (char *)memcpy(at, id, length) + length;
        at = (char *)memcpy(at, between, (size_t)sizes[1]) + sizes[1];
        if (rank) {
            at = write_whole(at, (uint64_t)(rank + i));
            at = (char *)memcpy(at, between, (size_t)sizes[1]) + sizes[1];
        }
        at = write_number(at, values[i]);
        if (at == NULL) {
            goto done;
        }
        at = (char *)memcpy(at, after, (size_t)sizes[2]) + sizes[2];
        text.used = (size_t)(at - text.data);
        if (!proceed(&work, 8)) {
            goto done;
        }
    }
    result = PyBytes_FromStringAndSize(text.data ? text.data : "", (Py_ssize_t)text.used);
done:
    free(text.data);
    close_arrays(arrays, 4);
    return or_no_memory(result);
}

/* ---- flip_signs ---- */

enum { BITS = 8, GROUPS = 4, AT_ONCE = 8, SPAN = 64 }; /* queries, groups of these, columns, draws */

/* Sums of eight differences with all combinations of signs. */
static void
tabulate(const double *column, int64_t count, double *sums)
{
    sums[0] = 0;
    for (int64_t i = 0; i < count; i++) {
        sums[0] += column[i];
    }
    for (int bit = 0; bit < BITS; bit++) {
        double twice = bit < count ? 2 * column[bit] : 0;
        for (int i = 0; i < 1 << bit; i++) {
            sums[(1 << bit) + i] = sums[i] - twice;
        }
    }
}

/* The signs of eight queries in 64 draws: one bit for each query. */
static void
draw_signs(const uint64_t *keys, int64_t count, uint64_t block, uint8_t *signs)
{
    uint8_t words[BITS][8];
    for (int i = 0; i < BITS; i++) {
        uint64_t word = (i < count ? keys[i] : 0) + (block + 1) * UINT64_C(0x9E3779B97F4A7C15);
        word = (word ^ (word >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
        word = (word ^ (word >> 27)) * UINT64_C(0x94D049BB133111EB);
        word ^= word >> 31;
        memcpy(words[i], &word, 8);
    }
    for (int byte = 0; byte < 8; byte++) {
        uint64_t bits = 0, other;
        for (int i = 0; i < BITS; i++) {
            bits |= (uint64_t)words[i][byte] << (8 * i);
        }
        /* Transpose a matrix of 8 x 8 bits (Warren: Hacker's Delight, 2013). */
        other = (bits ^ (bits >> 7)) & UINT64_C(0x00AA00AA00AA00AA);
        bits ^= other ^ (other << 7);
        other = (bits ^ (bits >> 14)) & UINT64_C(0x0000CCCC0000CCCC);
        bits ^= other ^ (other << 14);
        other = (bits ^ (bits >> 28)) & UINT64_C(0x00000000F0F0F0F0);
        bits ^= other ^ (other << 28);
        memcpy(signs + 8 * byte, &bits, 8);
    }
}

PyDoc_STRVAR(flip_signs_doc,
"flip_signs(columns, keys, block, sums)\n\n"
"Add columns of whole numbers with random signs.\n\n"
"columns: (K, Q) float64. keys: (Q,) uint64 of the queries. block: number of the first block of 64\n"
"draws. sums: (K, draws), whole blocks, to which the sums are added; exact, so in any order.");

static PyObject *
flip_signs(PyObject *Py_UNUSED(module), PyObject *args)
{
    Array arrays[3] = {0};
    Py_ssize_t block;
    if (!PyArg_ParseTuple(args, "O&O&nO&:flip_signs", words_in, &arrays[0], words_in, &arrays[1], &block,
                          words_out, &arrays[2])) {
        return NULL;
    }
    PyObject *result = NULL;
    Work work = {0};
    double(*tables)[GROUPS][1 << BITS] = malloc(AT_ONCE * sizeof(*tables));
    Py_ssize_t queries = arrays[1].count, columns = queries ? arrays[0].count / queries : 0;
    Py_ssize_t draws = columns ? arrays[2].count / columns : 0;
    if (queries && (arrays[0].count != columns * queries || arrays[2].count != columns * draws || draws % SPAN)) {
        PyErr_SetString(PyExc_ValueError, "invalid columns");
        goto done;
    }
    const double *values = arrays[0].items;
    const uint64_t *keys = arrays[1].items;
    if (tables == NULL) {
        goto done;
    }
    unlock(&work, queries * draws);
    for (Py_ssize_t first = 0; first < columns; first += AT_ONCE) {
        Py_ssize_t some = columns - first < AT_ONCE ? columns - first : AT_ONCE;
        for (Py_ssize_t query = 0; query < queries; query += GROUPS * BITS) {
            for (Py_ssize_t i = 0; i < some * GROUPS; i++) {
                Py_ssize_t at = query + i % GROUPS * BITS, left = at < queries ? queries - at : 0;
                tabulate(values + (first + i / GROUPS + 1) * queries - left, left < BITS ? left : BITS,
                         tables[i / GROUPS][i % GROUPS]);
            }
            for (Py_ssize_t draw = 0; draw < draws; draw += SPAN) {
                uint8_t signs[GROUPS][SPAN];
                for (int group = 0; group < GROUPS; group++) {
                    Py_ssize_t at = query + group * BITS, left = at < queries ? queries - at : 0;
                    draw_signs(keys + queries - left, left, (uint64_t)(block + draw / SPAN), signs[group]);
                }
                for (Py_ssize_t column = 0; column < some; column++) {
                    double *sums = (double *)arrays[2].items + (first + column) * draws + draw;
                    const double(*table)[1 << BITS] = tables[column];
                    for (int i = 0; i < SPAN; i++) {
                        sums[i] += (table[0][signs[0][i]] + table[1][signs[1][i]]) +
                                   (table[2][signs[2][i]] + table[3][signs[3][i]]);
                    }
                }
                if (!proceed(&work, some * SPAN * GROUPS)) {
                    goto done;
                }
            }
        }
    }
    lock(&work);
    result = Py_NewRef(Py_None);
done:
    lock(&work);
    free(tables);
    close_arrays(arrays, 3);
    return or_no_memory(result);
}

/* ---- the module ---- */

static PyMethodDef METHODS[] = {
    {"align", align, METH_VARARGS, align_doc},
    {"all_differ", all_differ, METH_VARARGS, all_differ_doc},
    {"flip_signs", flip_signs, METH_VARARGS, flip_signs_doc},
    {"group", group, METH_VARARGS, group_doc},
    {"join", join, METH_VARARGS, join_doc},
    {"join_lines", join_lines, METH_VARARGS, join_lines_doc},
    {"join_table", join_table, METH_VARARGS, join_table_doc},
    {"joined_lines", joined_lines, METH_O, joined_lines_doc},
    {"judgments", judgments, METH_VARARGS, judgments_doc},
    {"lines_run", lines_run, METH_VARARGS, lines_run_doc},
    {"measure_dicts", measure_dicts, METH_VARARGS, measure_dicts_doc},
    {"measure_grades", measure_grades, METH_VARARGS, measure_grades_doc},
    {"names", names, METH_O, names_doc},
    {"number_ids", number_ids, METH_VARARGS, number_ids_doc},
    {"numbering", numbering, METH_NOARGS, numbering_doc},
    {"pack_dicts", pack_dicts, METH_VARARGS, pack_dicts_doc},
    {"pack_ids", pack_ids, METH_VARARGS, pack_ids_doc},
    {"rank_rows", rank_rows, METH_VARARGS, rank_rows_doc},
    {"row_lines", row_lines, METH_VARARGS, row_lines_doc},
    {"scan", scan, METH_VARARGS, scan_doc},
    {"sum_terms", sum_terms, METH_VARARGS, sum_terms_doc},
    {NULL, NULL, 0, NULL},
};

static int
begin_module(PyObject *module)
{
    for (int i = 0; i < 2; i++) {
        PyObject *text = PyUnicode_FromFormat("rankgauge.secret.%d", i);
        if (text == NULL) {
            return -1;
        }
        secret[i] = (uint64_t)PyObject_Hash(text);
        Py_DECREF(text);
    }
    return PyModule_AddIntConstant(module, "VERSION", VERSION);
}

static PyModuleDef_Slot SLOTS[] = {{Py_mod_exec, begin_module}, {0, NULL}};

static PyModuleDef MODULE = {
    PyModuleDef_HEAD_INIT, "_native", "The compiled core of rankgauge: see native.c.", 0, METHODS, SLOTS,
    NULL, NULL, NULL,
};

PyMODINIT_FUNC
PyInit__native(void)
{
    return PyModuleDef_Init(&MODULE);
}
