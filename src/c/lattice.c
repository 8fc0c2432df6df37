/* Compiled once per instruction set; see isa.h. */
#include "lattice.h"

#include <stdlib.h>

#include "status.h"

int ZIL_NAME(zil_lattice_publish)(long n, long d, const zil_lattice *lattice, const double *x, const int64_t *noise,
                                  double *out) {
    void *memory = malloc(zil_tiles_size(d) * sizeof(double) + ZIL_LINE);
    if (!memory)
        return ZIL_NO_MEMORY;
    const zil_tiles tiles = zil_tiles_of(lattice, d, zil_align(memory));
    zil_lattice_run(n * d, &tiles, x, 0, noise, out);
    free(memory);
    return ZIL_OK;
}
