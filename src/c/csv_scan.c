#include "csv_scan.h"

/* Bytes that an unquoted field may not run over. */
static const uint8_t stops[256] = {['"'] = 1, [','] = 1, ['\r'] = 1, ['\n'] = 1, [0] = 1};

int zil_csv_scan(const unsigned char *data, int64_t n, int last, long width, long max_records, long capacity,
                 int64_t *spans, uint8_t *ends, zil_csv_found *found) {
    int64_t at = 0, lines = 0;
    long records = 0, used = 0; /* used: spans taken by complete records */
    found->records = found->fields = 0;
    found->consumed = found->lines = 0;
    while (at < n && records < max_records) {
        int64_t seen = lines; /* line feeds inside this record */
        long fields = 0;
        uint8_t end = ZIL_CSV_NO_END;
        if (data[at] == '\n' || (data[at] == '\r' && at + 1 < n && data[at + 1] == '\n')) {
            at += data[at] == '\n' ? 1 : 2;
            lines++;
            found->consumed = at;
            found->lines = lines;
            continue;
        }
        for (;;) {
            const int64_t start = at;
            int status = ZIL_CSV_OK;
            if (at < n && data[at] == '"') {
                int closed = 0;
                at++;
                while (at < n) {
                    const unsigned char c = data[at++];
                    if (c == '\n') {
                        seen++;
                    } else if (c == 0) {
                        status = ZIL_CSV_NUL;
                        break;
                    } else if (c == '"') {
                        if (at < n && data[at] == '"') {
                            at++;
                            continue;
                        }
                        if (at == n && !last) /* the next byte decides whether this one closes */
                            return ZIL_CSV_OK;
                        closed = 1;
                        break;
                    }
                }
                if (status == ZIL_CSV_OK && !closed) {
                    if (!last)
                        return ZIL_CSV_OK;
                    status = ZIL_CSV_OPEN;
                }
                if (status == ZIL_CSV_OK && at < n && data[at] != ',' && data[at] != '\r' && data[at] != '\n')
                    status = ZIL_CSV_AFTER_QUOTE;
            } else {
                while (at < n && !stops[data[at]])
                    at++;
                if (at < n && data[at] == '"')
                    status = ZIL_CSV_QUOTE_INSIDE;
                else if (at < n && data[at] == 0)
                    status = ZIL_CSV_NUL;
            }
            if (status == ZIL_CSV_OK && at < n && data[at] == '\r' && (at + 1 < n ? data[at + 1] != '\n' : last))
                status = ZIL_CSV_LONE_CR;
            if (status == ZIL_CSV_OK && ((width > 0 && fields == width) || used + fields >= capacity))
                status = ZIL_CSV_RAGGED;
            if (status != ZIL_CSV_OK) {
                found->lines = seen;
                return status;
            }
            spans[2 * (used + fields)] = start;
            spans[2 * (used + fields) + 1] = at;
            fields++;
            if (at < n && data[at] == ',') {
                at++;
                continue;
            }
            if (at < n && data[at] == '\n') {
                at++;
                end = ZIL_CSV_LF;
            } else if (at + 1 < n) { /* a carriage return, its line feed was seen */
                at += 2;
                end = ZIL_CSV_CRLF;
            } else if (!last) { /* the rest of the record is not here yet */
                return ZIL_CSV_OK;
            }
            break;
        }
        if (width > 0 && fields != width) {
            found->lines = seen;
            return ZIL_CSV_RAGGED;
        }
        if (records == 0)
            found->fields = fields;
        ends[records++] = end;
        used += fields;
        lines = seen + (end != ZIL_CSV_NO_END);
        found->records = records;
        found->consumed = at;
        found->lines = lines;
    }
    return ZIL_CSV_OK;
}
