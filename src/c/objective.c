#include "objective.h"

#include <math.h>

#include "losses.h"

/* What F and its derivatives are for a block of rows. */
typedef struct {
    double f[ZIL_BLOCK], t[ZIL_BLOCK], q[ZIL_BLOCK], tt[ZIL_BLOCK], tq[ZIL_BLOCK], qq[ZIL_BLOCK];
} block;

/* The loops of one loss: _1 gives value and first derivatives, _2 second derivatives, so neither carries the other's work. */
#define STAMP_PLAIN(number, name)                                                                  \
    __attribute__((unused)) static void name##_plain_1(const zil_loss_args *g, double a, int m, const double *t, block *b) {                 \
        for (int i = 0; i < m; i++) {                                                              \
            zil_plain r = name##_plain(t[i], g);                                                   \
            b->f[i] = a * r.f0;                                                                    \
            b->t[i] = a * r.f1;                                                                    \
        }                                                                                          \
    }                                                                                              \
    static void name##_plain_2(const zil_loss_args *g, double a, int m, const double *t, block *b) {                 \
        for (int i = 0; i < m; i++)                                                                \
            b->tt[i] += a * name##_plain(t[i], g).f2;                                              \
    }                                                                                              \
    static void name##_laplacian_1(const zil_loss_args *g, double c, double q, int m, const double *t, block *b) {   \
        for (int i = 0; i < m; i++) {                                                              \
            zil_plain r = name##_plain(t[i], g);                                                   \
            b->f[i] += c * q * r.f2;                                                               \
            b->t[i] += c * q * r.f3;                                                               \
            b->q[i] += c * r.f2;                                                                   \
        }                                                                                          \
    }                                                                                              \
    static void name##_laplacian_2(const zil_loss_args *g, double c, double q, int m, const double *t, block *b) {   \
        for (int i = 0; i < m; i++) {                                                              \
            zil_plain r = name##_plain(t[i], g);                                                   \
            b->tt[i] += c * q * r.f4;                                                              \
            b->tq[i] += c * r.f3;                                                                  \
            b->q[i] += c * r.f2;                                                                   \
        }                                                                                          \
    }
#define STAMP_SMOOTH(number, name)                                                                 \
    static void name##_smooth_1(const zil_loss_args *g, double e, double s, double k, int m, const double *t, block *b) { \
        for (int i = 0; i < m; i++) {                                                              \
            zil_smooth r = name##_smooth(t[i], s, g);                                              \
            b->f[i] += e * r.u;                                                                    \
            b->t[i] += e * r.t;                                                                    \
            b->q[i] += e * k * r.q;                                                                \
        }                                                                                          \
    }                                                                                              \
    static void name##_smooth_2(const zil_loss_args *g, double e, double s, double k, int m, const double *t, block *b) { \
        for (int i = 0; i < m; i++) {                                                              \
            zil_smooth r = name##_smooth(t[i], s, g);                                              \
            b->tt[i] += e * r.tt;                                                                  \
            b->tq[i] += e * k * r.tq;                                                              \
            b->qq[i] += e * k * k * r.qq;                                                          \
            b->q[i] += e * k * r.q;                                                                \
        }                                                                                          \
    }
ZIL_LOSSES(STAMP_PLAIN)
ZIL_PLAIN_LOSSES(STAMP_PLAIN)
ZIL_LOSSES(STAMP_SMOOTH)
#undef STAMP_PLAIN
#undef STAMP_SMOOTH

/* Softplus value and slope in two loops: exp first, then logarithm and quotient.  One loop is bound by the length of
 * the chain from t to the logarithm, of which too few fit into the processor's window. */
static void softplus_value_slope(const zil_loss_args *g, double a, int m, const double *t, block *b) {
    double e[ZIL_BLOCK];
    (void)g;
    for (int i = 0; i < m; i++)
        e[i] = vm_exp(-vm_abs(t[i]));
    for (int i = 0; i < m; i++) {
        zil_plain r = softplus_from_exp(t[i], e[i]);
        b->f[i] = a * r.f0;
        b->t[i] = a * r.f1;
    }
}

typedef struct {
    void (*plain[2])(const zil_loss_args *, double, int, const double *, block *);
    void (*laplacian[2])(const zil_loss_args *, double, double, int, const double *, block *);
    void (*smooth[2])(const zil_loss_args *, double, double, double, int, const double *, block *);
} loops;

/* the softplus has its own first-order loop, above */
#define softplus_plain_1 softplus_value_slope
#define ENTRY(number, name)                                                                        \
    {{name##_plain_1, name##_plain_2},                                                             \
     {name##_laplacian_1, name##_laplacian_2},                                                     \
     {name##_smooth_1, name##_smooth_2}},
#define PLAIN_ENTRY(number, name) {{name##_plain_1, name##_plain_2}, {name##_laplacian_1, name##_laplacian_2}, {0, 0}},
static const loops LOOPS[] = {ZIL_LOSSES(ENTRY) ZIL_PLAIN_LOSSES(PLAIN_ENTRY)};
#undef ENTRY
#undef PLAIN_ENTRY
#undef softplus_plain_1

static void clear(int order, int m, block *b) {
    if (order == 1)
        for (int i = 0; i < m; i++)
            b->f[i] = b->t[i] = b->q[i] = 0.0;
    else
        for (int i = 0; i < m; i++)
            b->q[i] = b->tt[i] = b->tq[i] = b->qq[i] = 0.0;
}

/* The smoothed softplus: rows beyond its grid are replaced by the closed forms there, before anything is added to
 * them, so that tiny values keep their relative accuracy. */
static void add_tabled(const zil_term *term, const loops *run, const zil_loss_args *g, double e, double s, int order,
                       int m, const double *t, block *b) {
    double k = term->kappa;
    block own;
    clear(order, m, &own);
    run->smooth[order - 1](g, e, s, k, m, t, &own);
    for (int i = 0; i < m; i++) {
        if (!zil_softplus_outside(t[i]))
            continue;
        zil_smooth is;
        zil_softplus_tail(term->table, t[i], &is.u, &is.t, &is.tt, &is.q, &is.tq, &is.qq);
        own.q[i] = e * k * is.q;
        if (order == 1) {
            own.f[i] = e * is.u;
            own.t[i] = e * is.t;
        } else {
            own.tt[i] = e * is.tt;
            own.tq[i] = e * k * is.tq;
            own.qq[i] = e * k * k * is.qq;
        }
    }
    for (int i = 0; i < m; i++)
        b->q[i] += own.q[i];
    if (order == 1)
        for (int i = 0; i < m; i++) {
            b->f[i] += own.f[i];
            b->t[i] += own.t[i];
        }
    else
        for (int i = 0; i < m; i++) {
            b->tt[i] += own.tt[i];
            b->tq[i] += own.tq[i];
            b->qq[i] += own.qq[i];
        }
}

static double noise_length(const zil_rows *rows, ptrdiff_t p) {
    double q = rows->noise_y;
    for (ptrdiff_t j = 0; j < p; j++)
        q += rows->noise[j] * rows->theta[j] * rows->theta[j];
    return q;
}

static void fill(const zil_term *term, double q, int order, int m, const double *t, block *b) {
    zil_loss_args g = {{term->p[0], term->p[1]}, term->table};
    const loops *run = &LOOPS[term->loss];
    double s2 = term->q0 + term->kappa * q, a = term->a, e = term->e;
    if (order == 2)
        clear(order, m, b);
    if (e != 0.0 && !(s2 > 0.0)) { /* no noise on the index: u = phi, u_q = phi'', u_tq = phi''' */
        if (order == 2)
            run->laplacian[1](&g, e * term->kappa, 0.0, m, t, b);
        a += e;
        e = 0.0;
    }
    if (order == 1 && a == 0.0)
        clear(order, m, b);
    else if (order == 1) /* the plain loop sets f and t */
        for (int i = 0; i < m; i++)
            b->q[i] = 0.0;
    if (a != 0.0)
        run->plain[order - 1](&g, a, m, t, b);
    if (term->c != 0.0)
        run->laplacian[order - 1](&g, term->c, q, m, t, b);
    if (e != 0.0 && term->table)
        add_tabled(term, run, &g, e, sqrt(s2), order, m, t, b);
    else if (e != 0.0)
        run->smooth[order - 1](&g, e, sqrt(s2), term->kappa, m, t, b);
}

static void block_eta(const zil_rows *rows, ptrdiff_t start, int m, double *eta) {
    double base = rows->intercept ? rows->theta[0] : 0.0;
    const double *slope = rows->theta + (rows->intercept ? 1 : 0);
    ptrdiff_t j = 0;
    for (int i = 0; i < m; i++)
        eta[i] = base;
    for (; j + 4 <= rows->d; j += 4) { /* four features a sweep: eta is read and written a quarter as often */
        const double *x0 = rows->x + j * rows->stride + start;
        const double *x1 = x0 + rows->stride, *x2 = x1 + rows->stride, *x3 = x2 + rows->stride;
        double s0 = slope[j], s1 = slope[j + 1], s2 = slope[j + 2], s3 = slope[j + 3];
        for (int i = 0; i < m; i++)
            eta[i] = eta[i] + ((s0 * x0[i] + s1 * x1[i]) + (s2 * x2[i] + s3 * x3[i]));
    }
    for (; j < rows->d; j++) {
        const double *x = rows->x + j * rows->stride + start;
        double s = slope[j];
        for (int i = 0; i < m; i++)
            eta[i] += s * x[i];
    }
}

static void block_index(const zil_term *term, const zil_rows *rows, ptrdiff_t start, int m, const double *eta,
                        double *t, double *slope) {
    const double *k = term->k, *y = rows->y;
    if (y)
        for (int i = 0; i < m; i++) {
            slope[i] = k[2] + k[3] * y[start + i];
            t[i] = (k[0] + k[1] * y[start + i]) + slope[i] * eta[i];
        }
    else
        for (int i = 0; i < m; i++) {
            slope[i] = k[2];
            t[i] = k[0] + k[2] * eta[i];
        }
}

/* Sums in 16 lanes, folded in a fixed order: the same bits whatever the vector width.  Two wide registers hide the
 * latency of the addition; more would spill on the baseline. */
enum { LANES = 16 };

static double lane_fold(double *lane) {
    for (int width = LANES / 2; width; width /= 2)
        for (int l = 0; l < width; l++)
            lane[l] += lane[l + width];
    return lane[0];
}

static double lane_sum(const double *v, int m) {
    double lane[LANES] = {0.0};
    int i = 0;
    for (; i + LANES <= m; i += LANES)
        for (int l = 0; l < LANES; l++)
            lane[l] += v[i + l];
    for (int l = 0; i < m; i++, l++)
        lane[l] += v[i];
    return lane_fold(lane);
}

static double lane_dot(const double *v, const double *x, int m) {
    double lane[LANES] = {0.0};
    int i = 0;
    for (; i + LANES <= m; i += LANES)
        for (int l = 0; l < LANES; l++)
            lane[l] += v[i + l] * x[i + l];
    for (int l = 0; i < m; i++, l++)
        lane[l] += v[i] * x[i];
    return lane_fold(lane);
}

static int block_rows(ptrdiff_t start, ptrdiff_t stop) {
    return (int)(stop - start < ZIL_BLOCK ? stop - start : ZIL_BLOCK);
}

/* value and first derivatives of a block; f and t come back multiplied by the row weights, t by dt/deta */
static void first_order(const zil_term *term, const zil_rows *rows, double q, ptrdiff_t start, int m, double *eta,
                        block *b) {
    double t[ZIL_BLOCK], slope[ZIL_BLOCK];
    block_eta(rows, start, m, eta);
    block_index(term, rows, start, m, eta, t, slope);
    fill(term, q, 1, m, t, b);
    for (int i = 0; i < m; i++)
        b->t[i] *= slope[i];
    double bilinear = term->k[4] * (term->a + term->e);
    if (bilinear != 0.0 && rows->y)
        for (int i = 0; i < m; i++) {
            b->f[i] += bilinear * rows->y[start + i] * eta[i];
            b->t[i] += bilinear * rows->y[start + i];
        }
    if (rows->w)
        for (int i = 0; i < m; i++) {
            double w = rows->w[start + i];
            b->f[i] *= w;
            b->t[i] *= w;
            b->q[i] *= w;
        }
}

void ZIL_NAME(zil_gradient_pass)(const zil_term *term, const zil_rows *rows, ptrdiff_t first, ptrdiff_t last,
                                 double *sums_out, double *scores_out) {
    ptrdiff_t one = rows->intercept ? 1 : 0, p = rows->d + one;
    double q = noise_length(rows, p), eta[ZIL_BLOCK];
    block b;
    for (ptrdiff_t chunk = first; chunk < last; chunk++) {
        double *sums = sums_out + (chunk - first) * (p + 1), *gradient = sums + 1, sum_q = 0.0;
        ptrdiff_t stop = (chunk + 1) * ZIL_CHUNK < rows->n ? (chunk + 1) * ZIL_CHUNK : rows->n;
        for (ptrdiff_t j = 0; j <= p; j++)
            sums[j] = 0.0;
        for (ptrdiff_t start = chunk * ZIL_CHUNK; start < stop; start += ZIL_BLOCK) {
            int m = block_rows(start, stop);
            first_order(term, rows, q, start, m, eta, &b);
            sums[0] += lane_sum(b.f, m);
            if (one)
                gradient[0] += lane_sum(b.t, m);
            for (ptrdiff_t j = 0; j < rows->d; j++)
                gradient[one + j] += lane_dot(b.t, rows->x + j * rows->stride + start, m);
            if (term->c != 0.0 || term->e != 0.0)
                sum_q += lane_sum(b.q, m);
            if (scores_out)
                for (int i = 0; i < m; i++) {
                    double *score = scores_out + (start + i) * p;
                    if (one)
                        score[0] += b.t[i];
                    for (ptrdiff_t j = one; j < p; j++)
                        score[j] += b.t[i] * rows->x[(j - one) * rows->stride + start + i] +
                                    b.q[i] * (2.0 * rows->noise[j] * rows->theta[j]);
                }
        }
        for (ptrdiff_t j = one; j < p; j++)
            gradient[j] += sum_q * (2.0 * rows->noise[j] * rows->theta[j]);
    }
}

void ZIL_NAME(zil_hessian_pass)(const zil_term *term, const zil_rows *rows, ptrdiff_t first, ptrdiff_t last,
                                double *sums_out) {
    ptrdiff_t one = rows->intercept ? 1 : 0, p = rows->d + one, size = p * (p + 1) / 2;
    double q = noise_length(rows, p), eta[ZIL_BLOCK], t[ZIL_BLOCK], slope[ZIL_BLOCK], scaled[ZIL_BLOCK];
    block b;
    for (ptrdiff_t chunk = first; chunk < last; chunk++) {
        double *sums = sums_out + (chunk - first) * size, sum_q = 0.0, sum_qq = 0.0;
        ptrdiff_t stop = (chunk + 1) * ZIL_CHUNK < rows->n ? (chunk + 1) * ZIL_CHUNK : rows->n;
        for (ptrdiff_t j = 0; j < size; j++)
            sums[j] = 0.0;
        for (ptrdiff_t start = chunk * ZIL_CHUNK; start < stop; start += ZIL_BLOCK) {
            int m = block_rows(start, stop);
            block_eta(rows, start, m, eta);
            block_index(term, rows, start, m, eta, t, slope);
            fill(term, q, 2, m, t, &b);
            for (int i = 0; i < m; i++) {
                double w = rows->w ? rows->w[start + i] : 1.0;
                b.tt[i] *= w * slope[i] * slope[i];
                b.tq[i] *= w * slope[i];
                b.qq[i] *= w;
                b.q[i] *= w;
            }
            sum_q += lane_sum(b.q, m);
            sum_qq += lane_sum(b.qq, m);
            double cross_one = one ? lane_sum(b.tq, m) : 0.0;
            ptrdiff_t at = 0;
            for (ptrdiff_t j = 0; j < p; j++) {
                const double *xj = j < one ? 0 : rows->x + (j - one) * rows->stride + start;
                double gj = 2.0 * rows->noise[j] * rows->theta[j], cross_j = xj ? lane_dot(b.tq, xj, m) : cross_one;
                for (int i = 0; i < m; i++)
                    scaled[i] = xj ? b.tt[i] * xj[i] : b.tt[i];
                for (ptrdiff_t l = 0; l <= j; l++) {
                    const double *xl = l < one ? 0 : rows->x + (l - one) * rows->stride + start;
                    sums[at] += xl ? lane_dot(scaled, xl, m) : lane_sum(scaled, m);
                    double gl = 2.0 * rows->noise[l] * rows->theta[l];
                    if (gl != 0.0)
                        sums[at] += gl * cross_j;
                    if (gj != 0.0)
                        sums[at] += gj * (xl ? lane_dot(b.tq, xl, m) : cross_one);
                    at++;
                }
            }
        }
        ptrdiff_t at = 0;
        for (ptrdiff_t j = 0; j < p; j++)
            for (ptrdiff_t l = 0; l <= j; l++, at++) {
                sums[at] += 4.0 * rows->noise[j] * rows->theta[j] * rows->noise[l] * rows->theta[l] * sum_qq;
                if (l == j)
                    sums[at] += 2.0 * rows->noise[j] * sum_q;
            }
    }
}
