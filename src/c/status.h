/* What a kernel answers; the .pyx turns it into an exception. */
#ifndef ZIL_STATUS_H
#define ZIL_STATUS_H

enum {
    ZIL_OK = 0,
    ZIL_NO_MEMORY = 1,
    ZIL_NO_ROOT = 2,    /* an iteration did not reach its tolerance */
    ZIL_NOT_FINITE = 3, /* an entry is nan or infinite */
};

#endif
