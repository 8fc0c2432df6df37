/* What a kernel answers.  Append only; the .pyx maps each value once. */
#ifndef ZIL_STATUS_H
#define ZIL_STATUS_H

enum {
    ZIL_OK = 0,
    ZIL_NO_MEMORY = 1,
    ZIL_DOMAIN = 2,  /* a parameter outside the region where the formula holds */
    ZIL_NO_ROOT = 3, /* an iteration did not reach its tolerance */
    ZIL_NOT_FINITE = 4, /* an entry is nan or infinite */
};

#endif
