/* A strict scanner of CSV bytes (RFC 4180): where each field of each record begins and ends.
 *
 * One grammar and no repair: what it refuses would be read in different ways by different programs, and a
 * record that swallows its neighbour publishes the neighbour's cells as they are.
 *
 *     record = field *("," field) (LF | CR LF | end of the file)
 *     field  = %x22 *(any but %x22 | %x22 %x22) %x22 | *(any but %x22 "," CR LF NUL)
 */
#ifndef ZIL_CSV_SCAN_H
#define ZIL_CSV_SCAN_H

#include <stddef.h>
#include <stdint.h>

enum zil_csv_status {
    ZIL_CSV_OK = 0,
    ZIL_CSV_QUOTE_INSIDE = 1, /* a quotation mark in a field that does not begin with one */
    ZIL_CSV_AFTER_QUOTE = 2,  /* something other than a separator or a line end after the closing quotation mark */
    ZIL_CSV_LONE_CR = 3,      /* a carriage return without its line feed */
    ZIL_CSV_NUL = 4,          /* a zero byte */
    ZIL_CSV_RAGGED = 5,       /* another number of fields than the header has */
    ZIL_CSV_OPEN = 6          /* the file ends inside a quoted field */
};

/* How the line of a record ends. */
enum zil_csv_end { ZIL_CSV_NO_END = 0, ZIL_CSV_LF = 1, ZIL_CSV_CRLF = 2 };

typedef struct {
    long records;     /* complete records found */
    long fields;      /* fields of the first record (the header is scanned with width 0) */
    int64_t consumed; /* bytes up to the end of the last complete record or blank line */
    int64_t lines;    /* line feeds in what was consumed; after a fault: those before it */
} zil_csv_found;

/* Scan data[0 .. n) for at most `max_records` complete records of `width` fields each.
 *
 * spans holds 2 * capacity offsets: begin and end of each field as written, quotation marks included.  ends
 * takes one zil_csv_end per record.  width 0 is the header: one record of any number of fields up to
 * `capacity`.  `last` says that the file ends after data.  A blank line is no record.
 */
int zil_csv_scan(const unsigned char *data, int64_t n, int last, long width, long max_records, long capacity,
                 int64_t *spans, uint8_t *ends, zil_csv_found *found);

#endif
