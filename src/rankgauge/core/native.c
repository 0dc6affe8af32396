/* The compiled core of rankgauge: one pass where NumPy needs many.

   Eleven functions, each with a twin in Python that gives the same results to the last bit and is
   its oracle in the tests:

   scan          lines of a TREC file -> columns of ids, hashes and numbers  (formats/fast_trec.py)
   pack_ids      ids of a text -> ids one after the other              (formats/fast_trec.py)
   hash_ids      the hashes of a column of ids                               (core/ids.py)
   all_differ    whether no document occurs twice in a ranking               (core/pair_table.py)
   row_lines     rows of a run -> lines of a text file                     (formats/rows.py)
   join          columns of a run and of judgments -> ranks of judged documents   (data/join.py)
   join_lines    the same from lines of a TREC file, a query at a time   (data/file_runs.py)
   join_table    the same from a part of a table                        (data/file_runs.py)
   join_dicts    the same for dicts of Python                           (data/dict_runs.py)
   measure_dicts, measure_grades
                 the usual measures of dicts and of one ranking         (measures/compiled.py)

   Unusual input is declined (None), never an error: the twin then reads it and reports the
   fault. Arrays come as buffers; every size is checked before it is used. Stable ABI of Python
   3.11; no other library. */

#define Py_LIMITED_API 0x030B0000
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <float.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "hashes are made of little-endian words"
#endif

#define VERSION 7 /* as core/native.py has it; one more when a function changes */
#define JUDGMENTS "rankgauge.judgments"
#define NUMBERING "rankgauge.numbering"
#define LINES_RUN "rankgauge.lines_run"
#define LONGEST 128 /* of longer ids, hashes read these bytes and a checksum of all */
#define FEW 16      /* judged documents of a ranking that are counted one by one, without sorting */
#define LARGE (1 << 14) /* bytes or rows from which on other threads may run meanwhile */
#define MOST (INT64_C(1) << 40) /* comparisons of one ranking, above which it is declined */
#define SPARSE 4    /* slots for each hash, where equal ones are looked for */
#define LEAST 3     /* shorter rankings may rise by chance */
#define EXACT 9007199254740992.0 /* 2**53: below it every whole number is a double */

typedef struct {
    Py_buffer view;
    Py_ssize_t count; /* items, not bytes */
    void *items;
} Array;

/* ---- arrays ---- */

/* Read a column of items of `size` bytes out of an object; 0 with an exception if it is none. */
static int
open_array(PyObject *object, Array *array, size_t size, int writable)
{
    int flags = writable ? PyBUF_WRITABLE : PyBUF_SIMPLE;
    if (PyObject_GetBuffer(object, &array->view, flags) < 0) {
        array->view.obj = NULL;
        return 0;
    }
    array->items = array->view.buf;
    array->count = array->view.len / (Py_ssize_t)size;
    if (array->view.len % (Py_ssize_t)size || (size > 1 && (uintptr_t)array->items % size)) {
        PyErr_SetString(PyExc_ValueError, "an array has items of another size");
        return 0;
    }
    return 1;
}

static void
close_arrays(Array *arrays, int count)
{
    for (int i = 0; i < count; i++) {
        if (arrays[i].view.obj != NULL) {
            PyBuffer_Release(&arrays[i].view);
        }
    }
}

/* A growing byte buffer. */
typedef struct {
    char *data;
    size_t used, room;
} Bytes;

/* Reserve `more` bytes; NULL if there is no memory. It needs no GIL. */
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

/* The result of a function; NULL without an exception means that there was no memory. */
static PyObject *
or_no_memory(PyObject *result)
{
    if (result == NULL && !PyErr_Occurred()) {
        return PyErr_NoMemory();
    }
    return result;
}

/* Release the GIL for large work; until `lock` no Python object is used. */
static PyThreadState *
unlock(Py_ssize_t size)
{
    return size < LARGE ? NULL : PyEval_SaveThread();
}

static void
lock(PyThreadState **others)
{
    if (*others != NULL) {
        PyEval_RestoreThread(*others);
        *others = NULL;
    }
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

/* Whether `count` bytes are equal, after both of which 8 more may be read. */
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

static uint32_t
crc32_of(const uint8_t *data, int64_t length)
{
    uint32_t crc = 0xFFFFFFFFu;
    for (int64_t i = 0; i < length; i++) {
        crc ^= data[i];
        for (int bit = 0; bit < 8; bit++) {
            crc = (crc >> 1) ^ (0xEDB88320u & (0u - (crc & 1u)));
        }
    }
    return ~crc;
}

/* The hash of an id, as Ids.hashes() makes it. */
static uint64_t
hash_of(const uint8_t *id, int64_t length)
{
    uint64_t hash = (uint64_t)length * UINT64_C(0x9E3779B97F4A7C15);
    if (length > LONGEST) {
        hash ^= crc32_of(id, length);
        length = LONGEST;
    }
    for (int64_t i = 0; i < length; i += 8) {
        uint64_t word = 0;
        if (length - i >= 8) {
            memcpy(&word, id + i, 8);
        }
        else {
            memcpy(&word, id + i, (size_t)(length - i));
        }
        hash = (hash ^ word) * UINT64_C(0xD6E8FEB86659FD93);
        hash ^= hash >> 32;
    }
    return hash;
}

/* The same of an id that 8 readable bytes follow. */
static inline uint64_t
hash_in_text(const uint8_t *id, int64_t length)
{
    if (length > LONGEST) {
        return hash_of(id, length);
    }
    uint64_t hash = (uint64_t)length * UINT64_C(0x9E3779B97F4A7C15);
    for (; length > 0; id += 8, length -= 8) {
        uint64_t word = word_at(id);
        if (length < 8) {
            word &= ~UINT64_C(0) >> (64 - 8 * length);
        }
        hash = (hash ^ word) * UINT64_C(0xD6E8FEB86659FD93);
        hash ^= hash >> 32;
    }
    return hash;
}

/* Compare ids byte by byte: negative, 0 or positive, as memcmp. */
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

/* ---- numbering: a number for each query name, in order of first appearance ---- */

typedef struct {
    int32_t *slots; /* the number + 1 of a name; 0 is free */
    size_t mask;
    uint64_t *hashes;
    size_t *starts; /* in `names`; one more than there are names */
    int32_t count;
    int32_t next; /* after the name that was found last */
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

/* The number of a name; -1 if there is no memory. */
static int32_t
number_of(Numbering *numbering, const uint8_t *name, int64_t length)
{
    /* Mostly names come in the same order again. */
    if (numbering->next < numbering->count && is_name(numbering, numbering->next, name, length)) {
        return numbering->next++;
    }
    if (!numbering_room(numbering)) {
        return -1;
    }
    uint64_t hash = hash_of(name, length);
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

PyDoc_STRVAR(numbering_doc, "numbering() -> capsule\n\nNumbers of names, none yet: for `scan`.");

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

/* The names from a number on. */
static PyObject *
names_from(const Numbering *numbering, int32_t first)
{
    PyObject *list = PyList_New(numbering->count - first);
    for (int32_t i = first; list != NULL && i < numbering->count; i++) {
        size_t start = numbering->starts[i];
        PyObject *name = PyBytes_FromStringAndSize(numbering->names.data + start,
                                                   (Py_ssize_t)(numbering->starts[i + 1] - start));
        if (name == NULL || PyList_SetItem(list, i - first, name) < 0) {
            Py_CLEAR(list);
        }
    }
    return list;
}

PyDoc_STRVAR(names_doc, "names(numbering) -> list[bytes]\n\nThe names in the order of their numbers.");

static PyObject *
names(PyObject *Py_UNUSED(module), PyObject *capsule)
{
    Numbering *numbering = PyCapsule_GetPointer(capsule, NUMBERING);
    return numbering == NULL ? NULL : names_from(numbering, 0);
}

/* ---- numbers ---- */

static const double TENS[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                              1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};

static const uint32_t WHOLE_TENS[] = {1, 10, 100, 1000, 10000, 100000, 1000000, 10000000};

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
/* The bits of 10**n. */
static const int TEN_BITS[] = {1, 4, 7, 10, 14, 17, 20, 24, 27, 30, 34, 37, 40, 44, 47, 50, 54, 57, 60, 64};

/* As `divided`, where the first 64 bits of the quotient do not decide. */
static double
divided_exactly(uint64_t mantissa, int digits)
{
    uint64_t ten = 1;
    for (int i = 0; i < digits; i++) {
        ten *= 10;
    }
    /* Shift left until the quotient has at least 64 bits: 53, and more for rounding. */
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

/* mantissa / 10**digits, rounded to the nearest double, ties to even; for 1 to 19 digits.

   A product with a rounded inverse: the quotient is at least its upper half and less than 2 above
   it. Mostly that decides how to round (as Eisel and Lemire do, with more bits, for any exponent). */
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
    /* A power of two: the exponent is all of its bits. */
    uint64_t power = (uint64_t)(1023 + drop + 1 - shift - TEN_BITS[digits]) << (DBL_MANT_DIG - 1);
    double scale;
    memcpy(&scale, &power, sizeof(scale));
    return (double)(kept + (rest > half)) * scale;
}
#endif

/* Read eight digits; 0 if they are none. */
static inline int
eight_digits(uint64_t word, uint64_t *number)
{
    uint64_t high = UINT64_C(0xF0F0F0F0F0F0F0F0);
    if (((word & high) | (((word + UINT64_C(0x0606060606060606)) & high) >> 4)) != UINT64_C(0x3333333333333333)) {
        return 0;
    }
    /* Neighbors are joined: digits to pairs, to fours, to all eight. */
    word = ((word & UINT64_C(0x0F0F0F0F0F0F0F0F)) * 2561) >> 8;
    word = ((word & UINT64_C(0x00FF00FF00FF00FF)) * 6553601) >> 16;
    *number = ((word & UINT64_C(0x0000FFFF0000FFFF)) * UINT64_C(42949672960001)) >> 32;
    return 1;
}

/* Read a decimal number; 0 if it is none, or so large that it may be no float. */
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
                rounded = 1;
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
        /* Both are exact, so the result is rounded once. */
        found = exponent < 0 ? (double)mantissa / TENS[-exponent] : (double)mantissa * TENS[exponent];
    }
#ifdef __SIZEOF_INT128__
    else if (!rounded && exponent >= -19 && exponent < 0) {
        found = divided(mantissa, (int)-exponent);
    }
#endif
    else {
        char copy[512];
        if (length >= (int64_t)sizeof(copy)) {
            return 0;
        }
        memcpy(copy, text, (size_t)length);
        copy[length] = '\0';
        found = PyOS_string_to_double(copy, NULL, NULL);
        if (found == -1.0 && PyErr_Occurred()) {
            PyErr_Clear();
            return 0;
        }
        *value = found;
        return fabs(found) < EXACT;
    }
    *value = negative ? -found : found;
    return found < EXACT;
}

/* Read a decimal number that 8 readable bytes follow; as `read_decimal`, which reads what is not
   digits with a point and more digits, 19 at most. */
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

/* Where the field that begins here ends: at the first byte that is a blank or a control character.
   16 bytes after the end of the text may be read. */
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

static inline int
is_blank(uint8_t byte)
{
    return byte == ' ' || byte == '\t';
}

/* Where the fields of a line are that are read. */
typedef struct {
    const uint8_t *start; /* of the line */
    const uint8_t *query, *doc, *number, *rank;
    int64_t query_size, doc_size, number_size, rank_size;
} Line;

/* Reads lines of as many fields. Mostly a line begins as the one before, up to the document, and ends
   like it, after the number: then only the fields between are looked for. */
typedef struct {
    int width, query, doc, number, rank; /* number of fields, and their places; -1: no rank */
    int skipped;         /* fields between document and number; -1: lines are not compared */
    const uint8_t *last; /* a line in which all fields were looked for */
    int64_t head;        /* its bytes before the document */
    const uint8_t *tail; /* what follows its number, */
    int64_t tail_size;   /* up to and with the line feed */
} Lines;

/* Whether there are such fields; the lines are none yet. */
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

/* Read a line that begins and ends as an earlier one: where the next begins; NULL if it does not. */
static inline const uint8_t *
similar_line(const Lines *lines, const uint8_t *at, const uint8_t *end, Line *line)
{
    if (lines->last == NULL || end - at <= lines->head || !same_bytes(at, lines->last, lines->head)) {
        return NULL;
    }
    line->start = at;
    line->doc = at + lines->head;
    at = field_end(line->doc);
    line->doc_size = at - line->doc;
    if (!line->doc_size || !is_blank(*at)) {
        return NULL;
    }
    for (int field = 0; field < lines->skipped; field++) {
        const uint8_t *start = at + 1;
        at = field_end(start);
        if (at == start || !is_blank(*at)) {
            return NULL;
        }
        if (lines->doc + 1 + field == lines->rank) {
            line->rank = start;
            line->rank_size = at - start;
        }
    }
    line->number = at + 1;
    at = field_end(line->number);
    line->number_size = at - line->number;
    if (!line->number_size || end - at < lines->tail_size || !same_bytes(at, lines->tail, lines->tail_size)) {
        return NULL;
    }
    return at + lines->tail_size;
}

/* Read a line: where the next begins; NULL if it has another number of fields. The text ends with a
   line feed, and 16 readable bytes follow. */
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
            return NULL; /* the line ends, is a comment, or is no text */
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
    for (; end - at >= 8; at += 8) {
        high |= word_at(at);
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
"Read the lines of data[start:stop], the last of which ends with a line feed; 16 bytes follow.\n\n"
"fields has the number of fields of a line, and the places of query, document, number and rank\n"
"(-1: not read; a rank that is no number is NaN). The columns are filled from `row` on: where each\n"
"document id starts in `data`, its length and its hash, the number, and the number of its query.\n"
"grouped: no query of these lines occurred before but the newest. last row, last start: the first line of the last query, where it is in the\n"
"columns and in `data`; -1 if the last query began before. None: lines differ in their number of\n"
"fields, or a field is no number.");

static PyObject *
scan(PyObject *Py_UNUSED(module), PyObject *args)
{
    PyObject *capsule, *objects[7];
    Py_ssize_t start, stop, row;
    Lines lines;
    if (!PyArg_ParseTuple(args, "OOnn(iiiii)nOOOOOO:scan", &capsule, &objects[0], &start, &stop,
                          &lines.width, &lines.query, &lines.doc, &lines.number, &lines.rank, &row,
                          &objects[1], &objects[2], &objects[3], &objects[4], &objects[5], &objects[6])) {
        return NULL;
    }
    Numbering *numbering = PyCapsule_GetPointer(capsule, NUMBERING);
    if (numbering == NULL) {
        return NULL;
    }
    static const size_t SIZES[] = {1, 8, 8, 8, 8, 4, 8};
    Array arrays[7] = {0};
    PyObject *result = NULL;
    PyThreadState *others = NULL;
    Py_ssize_t room = PY_SSIZE_T_MAX;
    for (int i = 0; i < 7; i++) {
        if (!open_array(objects[i], &arrays[i], SIZES[i], i > 0)) {
            goto done;
        }
        if (i > 0 && (i < 6 || lines.rank >= 0) && arrays[i].count < room) {
            room = arrays[i].count;
        }
    }
    const uint8_t *data = arrays[0].items;
    if (start < 0 || stop <= start || stop > arrays[0].count - 16 || data[stop - 1] != '\n' || row < 0 ||
        !begin_lines(&lines)) {
        PyErr_SetString(PyExc_ValueError, "there is no such text");
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
    others = unlock(stop - start);
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
        hashes[row] = hash_in_text(line.doc, line.doc_size);
        numbers[row] = number;
        row++;
    }
    int ascii = is_ascii(data + start, end);
    lock(&others);
    result = Py_BuildValue("nOOnn", row - first, grouped ? Py_True : Py_False,
                           ascii ? Py_True : Py_False, last_row, last_start);
    goto done;
declined:
    lock(&others);
    result = Py_NewRef(Py_None);
done:
    lock(&others);
    close_arrays(arrays, 7);
    return or_no_memory(result);
}

/* ---- hash_ids ---- */

/* Whether the ranges of all ids are within the bytes. */
static int
are_inside(const Array *data, const Array *starts, const Array *lengths)
{
    const int64_t *start = starts->items, *length = lengths->items;
    if (starts->count != lengths->count) {
        return 0;
    }
    for (Py_ssize_t i = 0; i < starts->count; i++) {
        if (start[i] < 0 || length[i] < 0 || start[i] > data->count || length[i] > data->count - start[i]) {
            return 0;
        }
    }
    return 1;
}

PyDoc_STRVAR(hash_ids_doc,
"hash_ids(data, starts, lengths, hashes)\n\nFill in the hash of each id.");

static PyObject *
hash_ids(PyObject *Py_UNUSED(module), PyObject *args)
{
    PyObject *objects[4];
    if (!PyArg_ParseTuple(args, "OOOO:hash_ids", &objects[0], &objects[1], &objects[2], &objects[3])) {
        return NULL;
    }
    Array arrays[4] = {0};
    PyObject *result = NULL;
    for (int i = 0; i < 4; i++) {
        if (!open_array(objects[i], &arrays[i], i ? 8 : 1, i == 3)) {
            goto done;
        }
    }
    if (arrays[3].count != arrays[1].count || !are_inside(&arrays[0], &arrays[1], &arrays[2])) {
        PyErr_SetString(PyExc_ValueError, "these are no ids");
        goto done;
    }
    const uint8_t *data = arrays[0].items;
    const int64_t *starts = arrays[1].items, *lengths = arrays[2].items;
    uint64_t *hashes = arrays[3].items;
    for (Py_ssize_t i = 0; i < arrays[3].count; i++) {
        hashes[i] = hash_of(data + starts[i], lengths[i]);
    }
    result = Py_NewRef(Py_None);
done:
    close_arrays(arrays, 4);
    return result;
}

/* ---- pack_ids ---- */

PyDoc_STRVAR(pack_ids_doc,
"pack_ids(data, starts, lengths, first, last, packed, used) -> used\n\n"
"Copy the ids of these rows, one after the other, to `packed`, `used` bytes of which are used: their\n"
"starts become those in `packed`. -1 if 16 bytes would not be left.");

static PyObject *
pack_ids(PyObject *Py_UNUSED(module), PyObject *args)
{
    PyObject *objects[4];
    Py_ssize_t first, last, used;
    if (!PyArg_ParseTuple(args, "OOOnnOn:pack_ids", &objects[0], &objects[1], &objects[2], &first, &last,
                          &objects[3], &used)) {
        return NULL;
    }
    Array arrays[4] = {0};
    PyObject *result = NULL;
    for (int i = 0; i < 4; i++) {
        if (!open_array(objects[i], &arrays[i], i == 1 || i == 2 ? 8 : 1, i % 2)) {
            goto done;
        }
    }
    if (first < 0 || last < first || last > arrays[1].count || last > arrays[2].count || used < 0) {
        PyErr_SetString(PyExc_ValueError, "these are no ids");
        goto done;
    }
    const uint8_t *data = arrays[0].items;
    int64_t *starts = arrays[1].items, *lengths = arrays[2].items;
    uint8_t *packed = arrays[3].items;
    for (Py_ssize_t row = first; row < last; row++) {
        int64_t start = starts[row], length = lengths[row];
        if (start < 0 || length < 0 || start > arrays[0].count || length > arrays[0].count - start) {
            PyErr_SetString(PyExc_ValueError, "these are no ids");
            goto done;
        }
        if (length > arrays[3].count - 16 - used) {
            used = -1;
            break;
        }
        if (length <= 16 && arrays[0].count - start >= 16) {
            memcpy(packed + used, data + start, 16); /* of one size, which takes no call */
        }
        else {
            memcpy(packed + used, data + start, (size_t)length);
        }
        starts[row] = used;
        used += length;
    }
    result = PyLong_FromSsize_t(used);
done:
    close_arrays(arrays, 4);
    return result;
}

/* ---- all_differ ---- */

/* Whether offsets begin at 0, never fall, and end at the number of rows. */
static int
are_offsets(const int64_t *offsets, Py_ssize_t count, Py_ssize_t rows)
{
    if (count < 1 || offsets[0] != 0 || offsets[count - 1] != rows) {
        return 0;
    }
    for (Py_ssize_t i = 1; i < count; i++) {
        if (offsets[i] < offsets[i - 1]) {
            return 0;
        }
    }
    return 1;
}

/* Whether hashes surely differ; `slots` has room for SPARSE times the power of two above. */
static int
differ_all(const uint64_t *hashes, int64_t count, uint32_t *slots)
{
    size_t mask = SPARSE * power_above((size_t)count) - 1;
    memset(slots, 0, (mask + 1) * sizeof(uint32_t));
    for (int64_t i = 0; i < count; i++) {
        /* A part of the hash in a slot that another part chooses; 0 is free. */
        uint32_t tag = (uint32_t)(hashes[i] >> 32) | 1;
        size_t at = (hashes[i] >> 7) & mask;
        while (slots[at]) {
            if (slots[at] == tag) {
                return 0;
            }
            at = (at + 1) & mask;
        }
        slots[at] = tag;
    }
    return 1;
}

PyDoc_STRVAR(all_differ_doc,
"all_differ(hashes, offsets) -> bool\n\n"
"Whether the hashes of each query surely differ; if not, the ids themselves have to be compared.");

static PyObject *
all_differ(PyObject *Py_UNUSED(module), PyObject *args)
{
    PyObject *objects[2];
    if (!PyArg_ParseTuple(args, "OO:all_differ", &objects[0], &objects[1])) {
        return NULL;
    }
    Array arrays[2] = {0};
    uint32_t *slots = NULL;
    PyObject *result = NULL;
    PyThreadState *others = NULL;
    if (!open_array(objects[0], &arrays[0], 8, 0) || !open_array(objects[1], &arrays[1], 8, 0)) {
        goto done;
    }
    const uint64_t *hashes = arrays[0].items;
    const int64_t *offsets = arrays[1].items;
    Py_ssize_t queries = arrays[1].count - 1;
    if (!are_offsets(offsets, arrays[1].count, arrays[0].count)) {
        PyErr_SetString(PyExc_ValueError, "these are no offsets");
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
    others = unlock(arrays[0].count);
    for (Py_ssize_t q = 0; differ && q < queries; q++) {
        differ = differ_all(hashes + offsets[q], offsets[q + 1] - offsets[q], slots);
    }
    lock(&others);
    result = PyBool_FromLong(differ);
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
    int64_t place; /* in the order given; -1 if it is not needed, since no id occurs twice */
} Document;

/* One ranking, in the order given: ids are at `ids[i]`, or in a column. */
typedef struct {
    const double *values;
    int64_t count;
    const uint8_t *const *ids;
    const uint8_t *data;
    const int64_t *starts, *lengths;
    int by_id; /* equal scores: the greater id first; else in the order given */
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

static int
by_value(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;
    return a > b ? -1 : a < b;
}

/* How many of these values, which descend, are greater (or, with `equal`, not lower). */
static int64_t
count_above(const double *values, int64_t count, double value, int equal)
{
    int64_t low = 0, high = count;
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        if (values[middle] > value || (equal && values[middle] == value)) {
            low = middle + 1;
        }
        else {
            high = middle;
        }
    }
    return low;
}

/* Rank documents of a ranking. 1; 0 if there is no memory; -1 if it would take too long. */
static int
rank_documents(const Ranking *ranking, const Document *documents, int64_t count, Ranks *ranks,
               Bytes *scratch)
{
    const double *values = ranking->values, *ordered = values;
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
        double *sorted = grow(scratch, (size_t)n * sizeof(double));
        if (sorted == NULL) {
            return 0;
        }
        memcpy(sorted, values, (size_t)n * sizeof(double));
        qsort(sorted, (size_t)n, sizeof(double), by_value);
        ordered = sorted;
        descending = 1;
    }
    int64_t tied = 0;
    for (int64_t i = 0; i < count; i++) {
        double value = documents[i].value;
        int64_t above = 0, upto = 0;
        if (descending) {
            above = count_above(ordered, n, value, 0);
            upto = above + 1 < n && ordered[above + 1] == value ? count_above(ordered, n, value, 1)
                                                                : above + 1;
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
    }
    if (!tied) {
        return 1;
    }
    /* Inside groups of equal scores. */
    if (tied <= FEW) {
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
    qsort(all, (size_t)n, sizeof(Document), order);
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
    }
    return 1;
}

/* ---- join ---- */

typedef struct {
    Array arrays[4];   /* bytes, starts, lengths and hashes of the documents */
    Array offsets;     /* of the queries */
    size_t *tables;    /* (queries + 1) where the slots of each query begin */
    int64_t *slots;    /* the row of a judgment + 1; 0 is free */
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
"judgments(data, starts, lengths, hashes, offsets) -> capsule\n\n"
"A table of the judged documents of each query, for `join`.");

static PyObject *
judgments(PyObject *Py_UNUSED(module), PyObject *args)
{
    PyObject *objects[5];
    if (!PyArg_ParseTuple(args, "OOOOO:judgments", &objects[0], &objects[1], &objects[2], &objects[3],
                          &objects[4])) {
        return NULL;
    }
    Judgments *made = calloc(1, sizeof(Judgments));
    if (made == NULL) {
        return PyErr_NoMemory();
    }
    PyObject *capsule = PyCapsule_New(made, JUDGMENTS, free_judgments);
    if (capsule == NULL) {
        free(made);
        return NULL;
    }
    for (int i = 0; i < 4; i++) {
        if (!open_array(objects[i], &made->arrays[i], i ? 8 : 1, 0)) {
            goto failed;
        }
    }
    if (!open_array(objects[4], &made->offsets, 8, 0)) {
        goto failed;
    }
    const int64_t *offsets = made->offsets.items;
    Py_ssize_t rows = made->arrays[3].count;
    if (!are_offsets(offsets, made->offsets.count, rows) || made->arrays[1].count != rows ||
        !are_inside(&made->arrays[0], &made->arrays[1], &made->arrays[2])) {
        PyErr_SetString(PyExc_ValueError, "these are no judgments");
        goto failed;
    }
    Py_ssize_t queries = made->offsets.count - 1;
    made->tables = calloc((size_t)queries + 1, sizeof(size_t));
    if (made->tables == NULL) {
        PyErr_NoMemory();
        goto failed;
    }
    for (Py_ssize_t q = 0; q < queries; q++) {
        made->tables[q + 1] = made->tables[q] + 2 * power_above((size_t)(offsets[q + 1] - offsets[q]));
    }
    made->slots = calloc(made->tables[queries] + 1, sizeof(int64_t));
    if (made->slots == NULL) {
        PyErr_NoMemory();
        goto failed;
    }
    const uint64_t *hashes = made->arrays[3].items;
    for (Py_ssize_t q = 0; q < queries; q++) {
        int64_t *slots = made->slots + made->tables[q];
        size_t mask = made->tables[q + 1] - made->tables[q] - 1;
        for (int64_t row = offsets[q]; row < offsets[q + 1]; row++) {
            size_t at = (hashes[row] >> 7) & mask;
            while (slots[at]) {
                at = (at + 1) & mask;
            }
            slots[at] = row + 1;
        }
    }
    return capsule;
failed:
    Py_DECREF(capsule);
    return NULL;
}

static PyObject *
as_bytes(Bytes *bytes)
{
    return PyByteArray_FromStringAndSize(bytes->data ? bytes->data : "", (Py_ssize_t)bytes->used);
}

/* The row of a document among the judgments of a query; -1 if it is not judged. */
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
"join(judgments, data, starts, lengths, hashes, values, offsets, of_run, by_id) -> None | (rows, ranks)\n\n"
"Find the judged documents of a run, and rank them.\n\n"
"of_run has for each query of the run its number in the judgments, or -1. rows: the row of each\n"
"judgment found, int64; ranks: rank, first and last rank of its group of equal scores, (n, 3) int64.\n"
"by_id: of equal scores the greater id comes first, else the one that is given first.");

static PyObject *
join(PyObject *Py_UNUSED(module), PyObject *args)
{
    PyObject *capsule, *objects[7];
    int ids_decide;
    if (!PyArg_ParseTuple(args, "OOOOOOOOp:join", &capsule, &objects[0], &objects[1], &objects[2],
                          &objects[3], &objects[4], &objects[5], &objects[6], &ids_decide)) {
        return NULL;
    }
    const Judgments *known = PyCapsule_GetPointer(capsule, JUDGMENTS);
    if (known == NULL) {
        return NULL;
    }
    Array arrays[7] = {0};
    Bytes rows = {0}, ranks = {0}, found = {0}, scratch = {0};
    PyObject *result = NULL;
    PyThreadState *others = NULL;
    for (int i = 0; i < 7; i++) {
        if (!open_array(objects[i], &arrays[i], i ? 8 : 1, 0)) {
            goto done;
        }
    }
    const uint8_t *data = arrays[0].items;
    const int64_t *starts = arrays[1].items, *lengths = arrays[2].items;
    const uint64_t *hashes = arrays[3].items;
    const double *values = arrays[4].items;
    const int64_t *offsets = arrays[5].items, *of_run = arrays[6].items;
    Py_ssize_t count = arrays[4].count, queries = arrays[6].count;
    if (arrays[1].count != count || arrays[2].count != count || arrays[3].count != count ||
        arrays[5].count != queries + 1 || !are_offsets(offsets, queries + 1, count) ||
        !are_inside(&arrays[0], &arrays[1], &arrays[2])) {
        PyErr_SetString(PyExc_ValueError, "these are no columns of a run");
        goto done;
    }
    others = unlock(count);
    for (Py_ssize_t q = 0; q < queries; q++) {
        int64_t number = of_run[q];
        if (number < 0) {
            continue;
        }
        if (number >= known->offsets.count - 1) {
            lock(&others);
            PyErr_SetString(PyExc_ValueError, "there is no such query");
            goto done;
        }
        found.used = 0;
        size_t before = rows.used;
        for (int64_t row = offsets[q]; row < offsets[q + 1]; row++) {
            const uint8_t *id = data + starts[row];
            int64_t judged = judged_row(known, number, hashes[row], id, lengths[row]);
            if (judged >= 0) {
                int64_t *place = grow(&rows, sizeof(int64_t));
                Document *document = grow(&found, sizeof(Document));
                if (place == NULL || document == NULL) {
                    goto done;
                }
                *place = judged;
                *document = (Document){values[row], id, lengths[row], row - offsets[q]};
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
        if (!rank_documents(&ranking, (const Document *)found.data, judged, places, &scratch)) {
            goto done;
        }
    }
    lock(&others);
    PyObject *first = as_bytes(&rows), *second = as_bytes(&ranks);
    if (first != NULL && second != NULL) {
        result = PyTuple_Pack(2, first, second);
    }
    Py_XDECREF(first);
    Py_XDECREF(second);
done:
    lock(&others);
    free(rows.data);
    free(ranks.data);
    free(found.data);
    free(scratch.data);
    close_arrays(arrays, 7);
    return or_no_memory(result);
}

/* ---- join_lines ---- */

/* Counts of a run, as evaluation/input_summary.py has them. */
typedef struct {
    int64_t documents, rising, varied, longer, uneven, tied;
} Tally;

/* Count a ranking, in the order given. */
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

/* The first documents of a ranking, a NUL after each. */
typedef struct {
    int64_t number; /* of the query */
    Bytes docs;
} Head;

/* A run in a text, joined query by query. */
typedef struct {
    Numbering queries; /* of the judgments, with their numbers, then of the run */
    int32_t judged;    /* queries of the judgments */
    int32_t named;     /* queries whose names were returned */
    Bytes seen;        /* a byte for each query: whether its ranking was read */
    Tally tally;
    Bytes of_run, retrieved; /* for each ranking: its number in the judgments or -1, its documents */
    Bytes rows, ranks;       /* for each judged document: the row of its judgment, its ranks */
    Head *heads;
    Py_ssize_t kept, most_heads, most_docs;
    /* The ranking that is read: where ids are in the text, and what else `add_ranking` needs. */
    double *values;
    int64_t *starts, *lengths;
    uint64_t *hashes;
    int64_t size, room;
    Bytes judgments, found, slots, scratch;
} LinesRun;

static void
free_lines_run(PyObject *capsule)
{
    LinesRun *run = PyCapsule_GetPointer(capsule, LINES_RUN);
    if (run == NULL) {
        return;
    }
    Bytes *all[] = {&run->seen,  &run->of_run,    &run->retrieved, &run->rows,
                    &run->ranks, &run->judgments, &run->found,     &run->slots, &run->scratch};
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
"A run without rankings, for `join_lines` and `join_table`. data, starts, lengths: the queries of the\n"
"judgments; heads: of how many queries, those with the lowest numbers, how many first documents are\n"
"returned.");

static PyObject *
lines_run(PyObject *Py_UNUSED(module), PyObject *args)
{
    PyObject *objects[3];
    Py_ssize_t most_heads, most_docs;
    if (!PyArg_ParseTuple(args, "OOOnn:lines_run", &objects[0], &objects[1], &objects[2], &most_heads,
                          &most_docs)) {
        return NULL;
    }
    LinesRun *run = calloc(1, sizeof(LinesRun));
    if (run == NULL) {
        return PyErr_NoMemory();
    }
    PyObject *capsule = PyCapsule_New(run, LINES_RUN, free_lines_run);
    if (capsule == NULL) {
        free(run);
        return NULL;
    }
    Array names[3] = {0};
    PyObject *result = NULL;
    run->most_heads = most_heads > 0 ? most_heads : 0;
    run->most_docs = most_docs;
    run->heads = calloc((size_t)run->most_heads + 1, sizeof(Head));
    if (run->heads == NULL) {
        PyErr_NoMemory();
        goto done;
    }
    for (int i = 0; i < 3; i++) {
        if (!open_array(objects[i], &names[i], i ? 8 : 1, 0)) {
            goto done;
        }
    }
    if (!are_inside(&names[0], &names[1], &names[2])) {
        PyErr_SetString(PyExc_ValueError, "these are no ids");
        goto done;
    }
    for (Py_ssize_t i = 0; i < names[1].count; i++) {
        const uint8_t *name = (const uint8_t *)names[0].items + ((const int64_t *)names[1].items)[i];
        if (number_of(&run->queries, name, ((const int64_t *)names[2].items)[i]) != i) {
            PyErr_SetString(PyExc_ValueError, "a query occurs twice");
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

/* Keep the first documents of a ranking if few numbers are lower. 0 if there is no memory. */
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

/* Add the ranking that was read to the run. 1; 0 if there is no memory; -1 if it is declined: a
   document may occur twice, or the query did before. */
static int
add_ranking(LinesRun *run, int32_t number, const uint8_t *data, int ids_decide)
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
    if (run->seen.data[number] || !differ_all(run->hashes, run->size, slots)) {
        return -1;
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
            !rank_documents(&ranking, (const Document *)run->found.data, count, ranks, &run->scratch)) {
            return 0;
        }
        memcpy(rows, run->judgments.data, run->judgments.used);
    }
    return number >= run->judged || keep_head(run, number, data);
}

/* Let a ranking be twice as long. 0 if there is no memory. */
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

/* Add a document to the ranking that is read, which has room for it. 0 if there is no memory. */
static inline int
add_document(LinesRun *run, const Judgments *known, int32_t number, const uint8_t *data, const uint8_t *id,
             int64_t length, double value, uint64_t hash)
{
    int64_t place = run->size++;
    run->values[place] = value;
    run->starts[place] = id - data;
    run->lengths[place] = length;
    run->hashes[place] = hash;
    int64_t judged = number < run->judged ? judged_row(known, number, hash, id, length) : -1;
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

/* Add a line to the ranking that is read. 1; 0 if there is no memory; -1 if it is declined. */
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
    uint64_t hash = hash_in_text(line->doc, line->doc_size);
    return add_document(run, known, number, data, line->doc, line->doc_size, value, hash);
}

static void
clear_ranking(LinesRun *run)
{
    run->size = 0;
    run->judgments.used = run->found.used = 0;
}

PyDoc_STRVAR(join_lines_doc,
"join_lines(run, judgments, data, start, stop, fields, last, by_id) -> None | (end, held)\n\n"
"Join the rankings of the lines of data[start:stop] with judgments: `scan`, `all_differ` and `join`\n"
"in one pass, without columns of the run.\n\n"
"The lines of a query are adjacent, and end at `end`: those of the last query are left for the next\n"
"call, unless this is the last. held: the rankings and judged documents that `joined_lines` will\n"
"return. fields, by_id: as `scan` and `join` have them. None: lines differ in their number of fields, a field is no number, a byte is not ASCII, a query occurs again, or a\n"
"document may occur twice.");

static PyObject *
join_lines(PyObject *Py_UNUSED(module), PyObject *args)
{
    PyObject *capsules[2], *object;
    Py_ssize_t start, stop;
    Lines lines;
    int ids_decide, last;
    if (!PyArg_ParseTuple(args, "OOOnn(iiiii)pp:join_lines", &capsules[0], &capsules[1], &object, &start,
                          &stop, &lines.width, &lines.query, &lines.doc, &lines.number, &lines.rank,
                          &last, &ids_decide)) {
        return NULL;
    }
    LinesRun *run = PyCapsule_GetPointer(capsules[0], LINES_RUN);
    const Judgments *known = run == NULL ? NULL : PyCapsule_GetPointer(capsules[1], JUDGMENTS);
    if (known == NULL) {
        return NULL;
    }
    Array text = {0};
    PyObject *result = NULL;
    PyThreadState *others = NULL;
    if (!open_array(object, &text, 1, 0)) {
        goto done;
    }
    const uint8_t *data = text.items;
    if (start < 0 || stop <= start || stop > text.count - 16 || data[stop - 1] != '\n' ||
        !begin_lines(&lines) || run->judged != known->offsets.count - 1) {
        PyErr_SetString(PyExc_ValueError, "there is no such text");
        goto done;
    }
    others = unlock(stop - start);
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
                int added = number < 0 ? 1 : add_ranking(run, number, data, ids_decide);
                number = added > 0 ? number_of(&run->queries, line.query, line.query_size) : -1;
                if (added < 0) {
                    goto declined;
                }
                if (number < 0) {
                    goto done;
                }
                query = line.query;
                query_size = line.query_size;
                begun = line.start;
                clear_ranking(run);
            }
        }
        int added = add_line(run, known, number, data, &line);
        if (added < 0) {
            goto declined;
        }
        if (!added) {
            goto done;
        }
        at = next;
    }
    if (last) {
        int added = add_ranking(run, number, data, ids_decide);
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
    lock(&others);
    result = Py_BuildValue("nn", begun - data, (Py_ssize_t)((run->of_run.used + run->rows.used) / sizeof(int64_t)));
    goto done;
declined:
    lock(&others);
    result = Py_NewRef(Py_None);
done:
    lock(&others);
    if (run != NULL) {
        clear_ranking(run); /* its documents are in the text */
    }
    close_arrays(&text, 1);
    return or_no_memory(result);
}

PyDoc_STRVAR(join_table_doc,
"join_table(run, judgments, queries, docs, values, offsets, by_id) -> None | held\n\n"
"Join the rankings of a table with judgments, as `join_lines`. queries, docs: bytes, starts and lengths of\n"
"ids. None: a score is not finite, a query occurs again, or a document may occur twice.");

static PyObject *
join_table(PyObject *Py_UNUSED(module), PyObject *args)
{
    PyObject *capsules[2], *objects[8];
    int ids_decide;
    if (!PyArg_ParseTuple(args, "OO(OOO)(OOO)OOp:join_table", &capsules[0], &capsules[1], &objects[0],
                          &objects[1], &objects[2], &objects[3], &objects[4], &objects[5], &objects[6],
                          &objects[7], &ids_decide)) {
        return NULL;
    }
    LinesRun *run = PyCapsule_GetPointer(capsules[0], LINES_RUN);
    const Judgments *known = run == NULL ? NULL : PyCapsule_GetPointer(capsules[1], JUDGMENTS);
    if (known == NULL) {
        return NULL;
    }
    Array arrays[8] = {0};
    PyObject *result = NULL;
    PyThreadState *others = NULL;
    for (int i = 0; i < 8; i++) {
        if (!open_array(objects[i], &arrays[i], i % 3 || i == 6 ? 8 : 1, 0)) {
            goto done;
        }
    }
    const uint8_t *data = arrays[3].items;
    const int64_t *starts = arrays[4].items, *lengths = arrays[5].items, *offsets = arrays[7].items;
    const double *values = arrays[6].items;
    Py_ssize_t count = arrays[6].count, queries = arrays[1].count;
    if (arrays[4].count != count || arrays[7].count != queries + 1 || !are_offsets(offsets, queries + 1, count) ||
        !are_inside(&arrays[0], &arrays[1], &arrays[2]) || !are_inside(&arrays[3], &arrays[4], &arrays[5]) ||
        run->judged != known->offsets.count - 1) {
        PyErr_SetString(PyExc_ValueError, "this is no table");
        goto done;
    }
    others = unlock(count);
    for (Py_ssize_t q = 0; q < queries; q++) {
        const uint8_t *name = (const uint8_t *)arrays[0].items + ((const int64_t *)arrays[1].items)[q];
        int32_t number = number_of(&run->queries, name, ((const int64_t *)arrays[2].items)[q]);
        if (number < 0) {
            goto done;
        }
        clear_ranking(run);
        for (int64_t row = offsets[q]; row < offsets[q + 1]; row++) {
            const uint8_t *id = data + starts[row];
            int64_t length = lengths[row];
            if (!isfinite(values[row])) {
                goto declined;
            }
            int spare = arrays[3].count - starts[row] - length >= 8;
            uint64_t hash = spare ? hash_in_text(id, length) : hash_of(id, length);
            if ((run->size == run->room && !make_room(run)) ||
                !add_document(run, known, number, data, id, length, values[row], hash)) {
                goto done;
            }
        }
        int added = add_ranking(run, number, data, ids_decide);
        if (added < 0) {
            goto declined;
        }
        if (!added) {
            goto done;
        }
    }
    lock(&others);
    result = PyLong_FromSize_t((run->of_run.used + run->rows.used) / sizeof(int64_t));
    goto done;
declined:
    lock(&others);
    result = Py_NewRef(Py_None);
done:
    lock(&others);
    if (run != NULL) {
        clear_ranking(run); /* its documents are in the table */
    }
    close_arrays(arrays, 8);
    return or_no_memory(result);
}

PyDoc_STRVAR(joined_lines_doc,
"joined_lines(run) -> (of_run, retrieved, rows, ranks, tally, unknown, heads)\n\n"
"Return what `join_lines` or `join_table` joined since the last call. of_run, retrieved: for each ranking its number\n"
"in the judgments (-1 without) and its documents, int64; rows, ranks: as `join` has them; unknown: the\n"
"queries without judgments; heads: the first documents of queries by number, a NUL after each.");

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

/* ---- join_dicts ---- */

/* Read a score as a finite float; 0 if it may not be one. */
static int
score_of(PyObject *object, double *score)
{
    if (PyFloat_Check(object)) {
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

/* The scores and ids of one ranking, and memory for ranking it. */
typedef struct {
    Bytes values, ids, lengths, found, scratch;
    Py_ssize_t size;
} Dict;

static void
free_dict(Dict *dict)
{
    free(dict->values.data);
    free(dict->ids.data);
    free(dict->lengths.data);
    free(dict->found.data);
    free(dict->scratch.data);
}

/* The text of an id; NULL without an exception if it is not plain, or no id. */
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

/* Read a ranking, in the order of its table. 1; 0 without memory or with an
   exception; -1 if it is declined. */
static int
read_dict(Dict *dict, PyObject *ranking)
{
    Py_ssize_t size = dict->size = PyDict_Size(ranking), position = 0, i = 0;
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
    }
    return 1;
}

/* Rank the documents of a pool that the ranking has: their ranks, in the order of the pool, behind
   `ranks`, and in `flags` which they are. 1; 0 without memory or with an
   exception; -1 if it is declined. */
static int
rank_pool(Dict *dict, PyObject *ranking, PyObject *pool, int ids_decide, char *flags, Bytes *ranks)
{
    Py_ssize_t judged = PyTuple_Size(pool), size = dict->size;
    const double *value = (const double *)dict->values.data;
    const char **id = (const char **)dict->ids.data;
    const int64_t *length = (const int64_t *)dict->lengths.data;
    int64_t count = 0;
    dict->found.used = 0;
    for (Py_ssize_t k = 0; k < judged; k++) {
        PyObject *doc = PyTuple_GetItem(pool, k);
        PyObject *score = PyUnicode_CheckExact(doc) ? PyDict_GetItemWithError(ranking, doc) : NULL;
        if (PyErr_Occurred()) {
            return 0;
        }
        flags[k] = score != NULL;
        if (score == NULL) {
            continue;
        }
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
    if (!count) {
        return 1;
    }
    Document *documents = (Document *)dict->found.data;
    if (!ids_decide) {
        /* Places are needed inside groups of equal scores. */
        if ((int64_t)size * count > MOST) {
            return -1;
        }
        for (int64_t k = 0; k < count; k++) {
            for (Py_ssize_t j = 0; documents[k].place < 0 && j < size; j++) {
                if (value[j] == documents[k].value && length[j] == documents[k].length &&
                    memcmp(id[j], documents[k].id, (size_t)length[j]) == 0) {
                    documents[k].place = j;
                }
            }
        }
    }
    Ranks *places = grow(ranks, (size_t)count * sizeof(Ranks));
    if (places == NULL) {
        return 0;
    }
    Ranking given = {value, size, (const uint8_t *const *)id, NULL, NULL, length, ids_decide};
    return rank_documents(&given, documents, count, places, &dict->scratch);
}

PyDoc_STRVAR(join_dicts_doc,
"join_dicts(rankings, pools, by_id) -> None | (retrieved, ranks)\n\n"
"Rank the judged documents of rankings, which are dicts of text and number.\n\n"
"pools has for each ranking the judged documents. retrieved: a byte for each document of each pool,\n"
"whether the ranking has it; ranks: as `join` has them, of those. None: a key is not plain text, or\n"
"a score not surely a finite float.");

static PyObject *
join_dicts(PyObject *Py_UNUSED(module), PyObject *args)
{
    PyObject *rankings, *pools;
    int ids_decide;
    if (!PyArg_ParseTuple(args, "O!O!p:join_dicts", &PyList_Type, &rankings, &PyList_Type, &pools,
                          &ids_decide)) {
        return NULL;
    }
    Py_ssize_t queries = PyList_Size(rankings);
    if (PyList_Size(pools) != queries) {
        PyErr_SetString(PyExc_ValueError, "there is not a pool for each ranking");
        return NULL;
    }
    Bytes retrieved = {0}, ranks = {0};
    Dict dict = {0};
    PyObject *result = NULL;
    for (Py_ssize_t q = 0; q < queries; q++) {
        PyObject *ranking = PyList_GetItem(rankings, q), *pool = PyList_GetItem(pools, q);
        if (!PyDict_Check(ranking) || !PyTuple_CheckExact(pool) || (!ids_decide && !PyDict_CheckExact(ranking))) {
            goto declined; /* the order of an OrderedDict is not that of its table */
        }
        int done = read_dict(&dict, ranking);
        if (done > 0) {
            char *flags = grow(&retrieved, (size_t)PyTuple_Size(pool));
            done = flags == NULL ? 0 : rank_pool(&dict, ranking, pool, ids_decide, flags, &ranks);
        }
        if (!done) {
            goto done;
        }
        if (done < 0) {
            goto declined;
        }
    }
    PyObject *first = as_bytes(&retrieved), *second = as_bytes(&ranks);
    if (first != NULL && second != NULL) {
        result = PyTuple_Pack(2, first, second);
    }
    Py_XDECREF(first);
    Py_XDECREF(second);
    goto done;
declined:
    result = Py_NewRef(Py_None);
done:
    free(retrieved.data);
    free(ranks.data);
    free_dict(&dict);
    return or_no_memory(result);
}

/* ---- measures ---- */

/* The numbers of the families are those of measures/compiled.py. */
enum { P, R, F, SUCCESS, RR, AP, NDCG, SETP, SETR, SETF, NUMRET, NUMREL, NUMRELRET, FIRSTREL, JUDGED, BEYOND };

/* A measure: `k` is infinite without a cut-off. */
typedef struct {
    double family, k, level, beta;
} Step;

typedef struct {
    int64_t rank, first, last;
    double grade;
} Entry;

/* One query: its judged documents that were retrieved, best first; all grades >= 0, descending. */
typedef struct {
    const Entry *entries;
    int64_t count, retrieved;
    const double *ideal;
    int64_t pool;
    const double *discounts; /* of the ranks 0, 1 ... */
} Query;

static int
by_rank(const void *left, const void *right)
{
    const Entry *a = left, *b = right;
    return a->rank < b->rank ? -1 : a->rank > b->rank;
}

/* The value of a measure. Numbers are added from the best rank to the last, as the kernels do. */
static double
value_of(const Step *step, const Query *query)
{
    double k = step->k, level = step->level, weight = step->beta * step->beta, sum = 0.0, best = 0.0;
    int64_t relevant = 0, found = 0, known = 0, first = 0;
    int family = (int)step->family;
    if (family == NDCG) {
        for (int64_t i = 0; i < query->count && (double)query->entries[i].rank <= k; i++) {
            double grade = query->entries[i].grade;
            sum += (grade >= 0 ? grade : 0.0) * query->discounts[query->entries[i].rank];
        }
        for (int64_t i = 0; i < query->pool && (double)i < k; i++) {
            best += query->ideal[i] * query->discounts[i + 1];
        }
        return query->pool && query->ideal[0] > 0 ? sum / best : NAN;
    }
    while (relevant < query->pool && query->ideal[relevant] >= level) {
        relevant++;
    }
    for (int64_t i = 0; i < query->count && (double)query->entries[i].rank <= k; i++) {
        known++;
        if (query->entries[i].grade >= level) {
            found++;
            first = first ? first : query->entries[i].rank;
            sum += (double)found / (double)query->entries[i].rank;
        }
    }
    double all = relevant ? (double)relevant : NAN, retrieved = (double)query->retrieved;
    switch (family) {
    case P:
        return (double)found / k;
    case R:
    case SETR:
        return (double)found / all;
    case F:
    case SETF:
        return relevant ? (1 + weight) * (double)found / (weight * (double)relevant + (family == F ? k : retrieved))
                        : NAN;
    case SUCCESS:
        return found > 0;
    case RR:
        return !relevant ? NAN : first ? 1.0 / (double)first : 0.0;
    case AP:
        return sum / all;
    case SETP:
        return retrieved > 0 ? (double)found / retrieved : NAN;
    case NUMRET:
        return retrieved;
    case NUMREL:
        return (double)relevant;
    case NUMRELRET:
        return (double)found;
    case FIRSTREL:
        return first ? (double)first : NAN;
    case JUDGED:
        return retrieved > 0 ? (double)known / (retrieved < k ? retrieved : k) : NAN;
    default:
        return (double)relevant > k;
    }
}

/* Whether these are steps that `value_of` knows; else 0 with an exception. */
static int
are_steps(const Array *program)
{
    const Step *steps = program->items;
    int valid = program->count % 4 == 0;
    for (Py_ssize_t i = 0; valid && i < program->count / 4; i++) {
        valid = steps[i].family >= P && steps[i].family <= BEYOND && steps[i].k >= 1 && steps[i].level > 0;
    }
    if (!valid) {
        PyErr_SetString(PyExc_ValueError, "these are no measures");
    }
    return valid;
}

/* Whether all grades are either above 0 or plainly 0 or below: -0.0 is left to NumPy. */
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
"Measure one ranking, every document of which has a grade: below 0 if it is not judged.\n\n"
"ideal: all grades >= 0, descending. program: for each measure its family, k, level and beta. None:\n"
"there are too few discounts, or a grade is -0.0.");

static PyObject *
measure_grades(PyObject *Py_UNUSED(module), PyObject *args)
{
    PyObject *grades, *pool, *objects[2];
    if (!PyArg_ParseTuple(args, "O!O!OO:measure_grades", &PyList_Type, &grades, &PyList_Type, &pool,
                          &objects[0], &objects[1])) {
        return NULL;
    }
    Array arrays[2] = {0};
    Bytes entries = {0}, ideal = {0};
    PyObject *result = NULL;
    if (!open_array(objects[0], &arrays[0], 8, 0) || !open_array(objects[1], &arrays[1], 8, 0) ||
        !are_steps(&arrays[1])) {
        goto done;
    }
    Py_ssize_t count = PyList_Size(grades), size = PyList_Size(pool);
    Entry *entry = grow(&entries, (size_t)count * sizeof(Entry));
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
    Query query = {entry, count, count, best, size, arrays[0].items};
    Py_ssize_t steps = arrays[1].count / 4;
    result = PyList_New(steps);
    for (Py_ssize_t i = 0; result != NULL && i < steps; i++) {
        PyObject *value = PyFloat_FromDouble(value_of((const Step *)arrays[1].items + i, &query));
        if (value == NULL || PyList_SetItem(result, i, value) < 0) {
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

/* A query of a run: its number in the judgments (-1 without), its place in the run. */
typedef struct {
    int64_t number, place;
    PyObject *name, *ranking; /* owned: garbage collection can change the run */
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

/* Where judged documents are in a ranking: `InputSummary.ends`. */
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

/* Whether another order of equal scores could change a value: no grade counts as 0. */
static int
is_tied(const Query *query)
{
    for (int64_t i = 0, next; i < query->count; i = next) {
        const Entry *entry = &query->entries[i];
        double lowest = INFINITY, highest = 0.0;
        for (next = i; next < query->count && query->entries[next].first == entry->first; next++) {
            double grade = query->entries[next].grade;
            grade = grade > 0 ? grade : 0.0;
            lowest = grade < lowest ? grade : lowest;
            highest = grade > highest ? grade : highest;
        }
        if (next - i < entry->last - entry->first + 1) {
            lowest = 0.0;
        }
        if (highest > lowest) {
            return 1;
        }
    }
    return 0;
}

/* The first documents of a ranking, in the order given. */
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
"measure_dicts(run, names, pools, columns, program, limits, by_id)\n"
"    -> None | (numbers, values, ends, tally, unknown, rankings)\n\n"
"Join a dict of dicts with judgments and measure its queries.\n\n"
"names: the number of each query by its text; pools: the judged documents of each; columns: grades,\n"
"their offsets, all grades >= 0 descending within each query, their offsets, and discounts by rank.\n"
"program: for each measure its family, k, level and beta. limits: of how many rankings how many\n"
"first documents are returned. The result is by number, ascending: values has a row for each measure,\n"
"ends a row for each query; unknown are the queries without judgments.\n"
"None: the run is not as plain as that.");

static PyObject *
measure_dicts(PyObject *Py_UNUSED(module), PyObject *args)
{
    PyObject *run, *names_of, *pools, *objects[6];
    Py_ssize_t most_rankings, most_documents;
    int ids_decide;
    if (!PyArg_ParseTuple(args, "OO!O!(OOOOO)O(nn)p:measure_dicts", &run, &PyDict_Type, &names_of,
                          &PyList_Type, &pools, &objects[0], &objects[1], &objects[2], &objects[3],
                          &objects[4], &objects[5], &most_rankings, &most_documents, &ids_decide)) {
        return NULL;
    }
    if (!PyDict_CheckExact(run)) {
        return Py_NewRef(Py_None);
    }
    Array arrays[6] = {0};
    Bytes asked = {0}, numbers = {0}, flags = {0}, ranks = {0}, entries = {0};
    Py_ssize_t place = 0;
    Dict dict = {0};
    Tally tally = {0};
    PyObject *result = NULL, *values = NULL, *ends = NULL, *unknown = PyList_New(0), *rankings = PyDict_New();
    if (unknown == NULL || rankings == NULL) {
        goto done;
    }
    for (int i = 0; i < 6; i++) {
        if (!open_array(objects[i], &arrays[i], 8, 0)) {
            goto done;
        }
    }
    const double *grades = arrays[0].items, *ideal = arrays[2].items;
    const int64_t *offsets = arrays[1].items, *of_ideal = arrays[3].items;
    Py_ssize_t judged = PyList_Size(pools), steps = arrays[5].count / 4, queries = PyDict_Size(run);
    if (arrays[1].count != judged + 1 || !are_offsets(offsets, judged + 1, arrays[0].count) ||
        arrays[3].count != judged + 1 || !are_offsets(of_ideal, judged + 1, arrays[2].count)) {
        PyErr_SetString(PyExc_ValueError, "these are no judgments");
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
            PyErr_SetString(PyExc_ValueError, "there is no such query");
            goto done;
        }
        known += number != NULL;
    }
    qsort(query, (size_t)place, sizeof(Asked), by_number);
    values = PyByteArray_FromStringAndSize(NULL, known * steps * (Py_ssize_t)sizeof(double));
    ends = PyByteArray_FromStringAndSize(NULL, known * 8 * (Py_ssize_t)sizeof(double));
    if (values == NULL || ends == NULL) {
        goto done;
    }
    double *value = (double *)PyByteArray_AsString(values), *end = (double *)PyByteArray_AsString(ends);
    memset(end, 0, (size_t)known * 8 * sizeof(double));
    for (Py_ssize_t i = 0, row = 0; i < place; i++) {
        int done = read_dict(&dict, query[i].ranking);
        if (!done) {
            goto done;
        }
        if (done < 0) {
            goto declined;
        }
        count_ranking((const double *)dict.values.data, dict.size, &tally);
        int64_t number = query[i].number;
        if (number < 0) {
            if (PyList_Append(unknown, query[i].name) < 0) {
                goto done;
            }
            continue;
        }
        PyObject *pool = PyList_GetItem(pools, number);
        int64_t start = offsets[number], size = offsets[number + 1] - start;
        if (!PyTuple_CheckExact(pool) || PyTuple_Size(pool) != size) {
            PyErr_SetString(PyExc_ValueError, "there is not a grade for each document");
            goto done;
        }
        flags.used = ranks.used = entries.used = 0;
        char *flag = grow(&flags, (size_t)size);
        Entry *entry = grow(&entries, (size_t)size * sizeof(Entry));
        int64_t *number_at = grow(&numbers, sizeof(int64_t));
        if (flag == NULL || entry == NULL || number_at == NULL) {
            goto done;
        }
        *number_at = number;
        done = rank_pool(&dict, query[i].ranking, pool, ids_decide, flag, &ranks);
        if (!done) {
            goto done;
        }
        int64_t count = 0, deepest = of_ideal[number + 1] - of_ideal[number];
        const Ranks *rank = (const Ranks *)ranks.data;
        if (done < 0 || !are_plain(grades + start, size) || !are_plain(ideal + of_ideal[number], deepest)) {
            goto declined;
        }
        for (int64_t k = 0; k < size; k++) {
            if (flag[k]) {
                entry[count] = (Entry){rank[count].rank, rank[count].first, rank[count].last, grades[start + k]};
                deepest = entry[count].rank > deepest ? entry[count].rank : deepest;
                count++;
            }
        }
        if (deepest >= arrays[4].count) {
            goto declined;
        }
        qsort(entry, (size_t)count, sizeof(Entry), by_rank);
        Query this = {entry, count, dict.size, ideal + of_ideal[number],
                      of_ideal[number + 1] - of_ideal[number], arrays[4].items};
        for (Py_ssize_t step = 0; step < steps; step++) {
            value[step * known + row] = value_of((const Step *)arrays[5].items + step, &this);
        }
        fill_ends(&this, end + 8 * row);
        tally.tied += is_tied(&this);
        if (row++ < most_rankings) {
            PyObject *as_int = PyLong_FromLongLong(number), *docs = first_of(query[i].ranking, most_documents);
            int kept = as_int == NULL || docs == NULL ? -1 : PyDict_SetItem(rankings, as_int, docs);
            Py_XDECREF(as_int);
            Py_XDECREF(docs);
            if (kept < 0) {
                goto done;
            }
        }
    }
    PyObject *of_judgments = as_bytes(&numbers);
    if (of_judgments != NULL) {
        result = Py_BuildValue("(OOO(LLLLLL)OO)", of_judgments, values, ends, (long long)tally.documents,
                               (long long)tally.rising, (long long)tally.varied, (long long)tally.longer,
                               (long long)tally.uneven, (long long)tally.tied, unknown, rankings);
        Py_DECREF(of_judgments);
    }
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
    free(entries.data);
    free_dict(&dict);
    close_arrays(arrays, 6);
    return or_no_memory(result);
}

/* ---- row_lines ---- */

#define NUMBER 40 /* bytes of a number, at most */

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
/* Write a number from 1e-4 to 1e15 as repr() does: with the fewest digits that no other double is
   as near to (Steele and White 1990), which here takes 128 bits. */
static char *
write_decimal(char *at, double value)
{
    int exponent;
    uint64_t mantissa = (uint64_t)ldexp(frexp(value, &exponent), DBL_MANT_DIG);
    int shift = DBL_MANT_DIG - exponent; /* value = mantissa / 2**shift */
    unsigned __int128 one = (unsigned __int128)1 << (shift + 2);
    unsigned __int128 rest = (unsigned __int128)mantissa << 2;
    /* Distances to the midpoints between this double and its neighbors. */
    unsigned __int128 above = 2, below = mantissa << (65 - DBL_MANT_DIG) ? 2 : 1;
    int middle = !(mantissa & 1); /* midpoints are read as the even mantissa */
    at = write_whole(at, (uint64_t)(rest >> (shift + 2)));
    *at++ = '.';
    rest &= one - 1;
    for (;;) {
        rest *= 10, above *= 10, below *= 10;
        int digit = (int)(rest >> (shift + 2));
        rest &= one - 1;
        int low = middle ? rest <= below : rest < below;
        int high = middle ? rest + above >= one : rest + above > one;
        if (low || high) {
            int up = high && (!low || rest * 2 > one || (rest * 2 == one && (digit & 1)));
            *at++ = (char)('0' + digit + up);
            return at;
        }
        *at++ = (char)('0' + digit);
    }
}
#endif

/* Write a number as repr() does. NULL with an exception. */
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
"rank: if not 0, that of the first document; ranks and `between` precede the numbers.\n"
"None: an id has a character that a format may quote.");

static PyObject *
row_lines(PyObject *Py_UNUSED(module), PyObject *args)
{
    PyObject *objects[4];
    const char *before, *between, *after;
    Py_ssize_t sizes[3], rank;
    if (!PyArg_ParseTuple(args, "OOOOy#y#y#n:row_lines", &objects[0], &objects[1], &objects[2], &objects[3],
                          &before, &sizes[0], &between, &sizes[1], &after, &sizes[2], &rank)) {
        return NULL;
    }
    Array arrays[4] = {0};
    Bytes text = {0};
    PyObject *result = NULL;
    for (int i = 0; i < 4; i++) {
        if (!open_array(objects[i], &arrays[i], i ? 8 : 1, 0)) {
            goto done;
        }
    }
    if (arrays[3].count != arrays[1].count || !are_inside(&arrays[0], &arrays[1], &arrays[2])) {
        PyErr_SetString(PyExc_ValueError, "these are no ids with numbers");
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
    }
    result = PyBytes_FromStringAndSize(text.data ? text.data : "", (Py_ssize_t)text.used);
done:
    free(text.data);
    close_arrays(arrays, 4);
    return or_no_memory(result);
}

/* ---- the module ---- */

static PyMethodDef METHODS[] = {
    {"all_differ", all_differ, METH_VARARGS, all_differ_doc},
    {"hash_ids", hash_ids, METH_VARARGS, hash_ids_doc},
    {"join", join, METH_VARARGS, join_doc},
    {"join_dicts", join_dicts, METH_VARARGS, join_dicts_doc},
    {"join_lines", join_lines, METH_VARARGS, join_lines_doc},
    {"join_table", join_table, METH_VARARGS, join_table_doc},
    {"joined_lines", joined_lines, METH_O, joined_lines_doc},
    {"judgments", judgments, METH_VARARGS, judgments_doc},
    {"lines_run", lines_run, METH_VARARGS, lines_run_doc},
    {"measure_dicts", measure_dicts, METH_VARARGS, measure_dicts_doc},
    {"measure_grades", measure_grades, METH_VARARGS, measure_grades_doc},
    {"names", names, METH_O, names_doc},
    {"numbering", numbering, METH_NOARGS, numbering_doc},
    {"pack_ids", pack_ids, METH_VARARGS, pack_ids_doc},
    {"row_lines", row_lines, METH_VARARGS, row_lines_doc},
    {"scan", scan, METH_VARARGS, scan_doc},
    {NULL, NULL, 0, NULL},
};

static int
add_version(PyObject *module)
{
    return PyModule_AddIntConstant(module, "VERSION", VERSION);
}

static PyModuleDef_Slot SLOTS[] = {{Py_mod_exec, add_version}, {0, NULL}};

static PyModuleDef MODULE = {
    PyModuleDef_HEAD_INIT, "_native", "The compiled core of rankgauge: see native.c.", 0, METHODS, SLOTS,
    NULL, NULL, NULL,
};

PyMODINIT_FUNC
PyInit__native(void)
{
    return PyModuleDef_Init(&MODULE);
}
