"""CSV bytes: the fields of records (strictly RFC 4180), their numbers, and records with numbers replaced."""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from cpython.conversion cimport Py_DTSF_ADD_DOT_0, PyOS_double_to_string, PyOS_string_to_double
from cpython.mem cimport PyMem_Free
from libc.stdint cimport int64_t, uint8_t
from libc.string cimport memcpy, strlen

cdef extern from "csv_scan.h" nogil:
    ctypedef struct zil_csv_found:
        long records
        long fields
        int64_t consumed
        int64_t lines
    int zil_csv_scan(const unsigned char *data, int64_t n, int last, long width, long max_records, long capacity,
                     int64_t *spans, uint8_t *ends, zil_csv_found *found)

LONGEST = 256  # characters of a number; a longer field is left to the caller, who refuses it
cdef enum:
    ROOM = 257
    NUMBER = 32  # characters of the shortest text of a double, and to spare


def scan(const uint8_t[::1] data, bint last, long width, long max_records, int64_t[:, ::1] spans_out,
         uint8_t[::1] ends_out):
    """Fields of the complete records in ``data``: status, records, fields of the first, bytes consumed, line feeds.

    ``spans_out`` (capacity, 2) takes begin and end of each field, ``ends_out`` how each line ends.
    """
    cdef zil_csv_found found
    cdef int status
    cdef long capacity = spans_out.shape[0]
    if spans_out.shape[1] != 2 or ends_out.shape[0] < max_records or max_records < 0 or width < 0:
        raise ValueError("spans_out must hold pairs, and ends_out one entry per record")
    if data.shape[0] == 0 or capacity == 0 or max_records == 0:
        return 0, 0, 0, 0, 0
    with nogil:
        status = zil_csv_scan(&data[0], data.shape[0], last, width, max_records, capacity, &spans_out[0, 0],
                              &ends_out[0], &found)
    return status, found.records, found.fields, found.consumed, found.lines


cdef bint blank(unsigned char c) noexcept nogil:
    return c == 32 or (9 <= c <= 13)


def numbers(const uint8_t[::1] data, const int64_t[:, :, ::1] spans, long column, double[:] values_out,
            int64_t[::1] undecided_out):
    """Read a column as decimal numbers; how many fields are none, with their rows in ``undecided_out``.

    Quotation marks and blanks around a number are no part of it.  Fields that are too long are undecided.
    """
    cdef long n = spans.shape[0]
    cdef long i, count = 0
    cdef int64_t begin, end, length
    cdef char text[ROOM]
    cdef char *stopped = NULL
    cdef double value
    if not 0 <= column < spans.shape[1] or spans.shape[2] != 2:
        raise ValueError("a column must be one of spans")
    if values_out.shape[0] != n or undecided_out.shape[0] < n:
        raise ValueError("values_out and undecided_out must hold one entry per record")
    for i in range(n):
        begin, end = spans[i, column, 0], spans[i, column, 1]
        if not 0 <= begin <= end <= data.shape[0]:
            raise ValueError("a field lies outside the data")
        if end - begin >= 2 and data[begin] == 34:
            begin += 1
            end -= 1
        while begin < end and blank(data[begin]):
            begin += 1
        while end > begin and blank(data[end - 1]):
            end -= 1
        length = end - begin
        # what begins with a letter is a word for a missing or an infinite entry: for the caller
        if length == 0 or length >= ROOM or data[begin] > 57:
            undecided_out[count] = i
            count += 1
            continue
        memcpy(text, &data[begin], length)
        text[length] = 0
        try:
            value = PyOS_string_to_double(text, &stopped, NULL)  # inf if too large
        except ValueError:
            undecided_out[count] = i
            count += 1
            continue
        if stopped != text + length:
            undecided_out[count] = i
            count += 1
            continue
        values_out[i] = value
    return count


def rewrite(const uint8_t[::1] data, const int64_t[:, :, ::1] spans, const uint8_t[::1] ends,
            const int64_t[::1] kept, const double[:, :] values):
    """The records as bytes with the fields ``kept`` (k,): a column number, or ``-1 - j`` for column j of ``values``.

    Other fields are copied as they stand; a number is the shortest text that reads back as the same double.
    """
    cdef long n = spans.shape[0]
    cdef long k = kept.shape[0]
    cdef long i, j, c
    cdef Py_ssize_t room = 0, used = 0, length
    cdef int64_t begin, end
    cdef char *text
    cdef char *out
    cdef bytes result
    if ends.shape[0] < n or values.shape[0] != n or spans.shape[2] != 2:
        raise ValueError("spans, ends and values differ in length")
    for j in range(k):
        if not -values.shape[1] <= kept[j] < spans.shape[1]:
            raise ValueError("a column to keep does not exist")
    for i in range(n):
        room += k * (NUMBER + 1) + 2
        for j in range(k):
            if kept[j] >= 0:
                begin, end = spans[i, kept[j], 0], spans[i, kept[j], 1]
                if not 0 <= begin <= end <= data.shape[0]:
                    raise ValueError("a field lies outside the data")
                room += end - begin
    result = PyBytes_FromStringAndSize(NULL, room)
    out = PyBytes_AS_STRING(result)
    for i in range(n):
        for j in range(k):
            if j:
                out[used] = 44
                used += 1
            c = kept[j]
            if c >= 0:
                begin, end = spans[i, c, 0], spans[i, c, 1]
                if end > begin:
                    memcpy(out + used, &data[begin], end - begin)
                used += end - begin
            else:
                text = PyOS_double_to_string(values[i, -1 - c], 114, 0, Py_DTSF_ADD_DOT_0, NULL)
                length = strlen(text)
                if length > NUMBER:
                    PyMem_Free(text)
                    raise AssertionError("a double has a longer text than can be")
                memcpy(out + used, text, length)
                used += length
                PyMem_Free(text)
        if ends[i] == 2:
            out[used] = 13
            used += 1
        if ends[i]:
            out[used] = 10
            used += 1
    return result[:used]
