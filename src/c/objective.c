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

/* A block of rows: feature j at x + j stride, values side by side. */
typedef struct {
    const double *x, *y, *w;
    ptrdiff_t stride;
    int m;
} view;

/* Rows whose values lie apart (a table stored row by row) are turned into `turned`, where values lie side by side. */
static view look(const zil_rows *rows, ptrdiff_t start, int m, double *turned) {
    view v = {rows->x ? rows->x + start * rows->step : 0, rows->y ? rows->y + start : 0, rows->w ? rows->w + start : 0,
              rows->stride, m};
    if (rows->step == 1 || rows->d == 0)
        return v;
    for (int i = 0; i < m; i++) {
        const double *row = v.x + i * rows->step;
        for (ptrdiff_t j = 0; j < rows->d; j++)
            turned[j * ZIL_TURNED + i] = row[j * rows->stride];
    }
    v.x = turned;
    v.stride = ZIL_TURNED;
    return v;
}

static void block_eta(const zil_rows *rows, const view *v, double *eta) {
    double base = rows->intercept ? rows->theta[0] : 0.0;
    const double *slope = rows->theta + (rows->intercept ? 1 : 0);
    ptrdiff_t j = 0;
    int m = v->m;
    for (int i = 0; i < m; i++)
        eta[i] = base;
    for (; j + 4 <= rows->d; j += 4) { /* four features a sweep: eta is read and written a quarter as often */
        const double *x0 = v->x + j * v->stride;
        const double *x1 = x0 + v->stride, *x2 = x1 + v->stride, *x3 = x2 + v->stride;
        double s0 = slope[j], s1 = slope[j + 1], s2 = slope[j + 2], s3 = slope[j + 3];
        for (int i = 0; i < m; i++)
            eta[i] = eta[i] + ((s0 * x0[i] + s1 * x1[i]) + (s2 * x2[i] + s3 * x3[i]));
    }
    for (; j < rows->d; j++) {
        const double *x = v->x + j * v->stride;
        double s = slope[j];
        for (int i = 0; i < m; i++)
            eta[i] += s * x[i];
    }
}

static void block_index(const zil_term *term, const view *v, const double *eta, double *t, double *slope) {
    const double *k = term->k, *y = v->y;
    int m = v->m;
    if (y)
        for (int i = 0; i < m; i++) {
            slope[i] = k[2] + k[3] * y[i];
            t[i] = (k[0] + k[1] * y[i]) + slope[i] * eta[i];
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

/* Value and derivatives of a block by eta and Q, multiplied by the row weights; second derivatives where asked for. */
static void derivatives(const zil_term *term, const zil_rows *rows, const view *v, double q, int second, block *b) {
    double eta[ZIL_BLOCK], t[ZIL_BLOCK], slope[ZIL_BLOCK];
    int m = v->m;
    block_eta(rows, v, eta);
    block_index(term, v, eta, t, slope);
    fill(term, q, 1, m, t, b);
    if (second) {
        fill(term, q, 2, m, t, b);
        for (int i = 0; i < m; i++) {
            b->tt[i] *= slope[i] * slope[i];
            b->tq[i] *= slope[i];
        }
    }
    for (int i = 0; i < m; i++)
        b->t[i] *= slope[i];
    double bilinear = term->k[4] * (term->a + term->e);
    if (bilinear != 0.0 && v->y)
        for (int i = 0; i < m; i++) {
            b->f[i] += bilinear * v->y[i] * eta[i];
            b->t[i] += bilinear * v->y[i];
        }
    if (!v->w)
        return;
    for (int i = 0; i < m; i++) {
        b->f[i] *= v->w[i];
        b->t[i] *= v->w[i];
        b->q[i] *= v->w[i];
    }
    if (second)
        for (int i = 0; i < m; i++) {
            b->tt[i] *= v->w[i];
            b->tq[i] *= v->w[i];
            b->qq[i] *= v->w[i];
        }
}

/* Whether F depends on Q at all. */
static int has_noise(const zil_term *term) { return term->c != 0.0 || term->e != 0.0; }

static void add_gradient(const zil_term *term, const zil_rows *rows, const view *v, const block *b, double *sums,
                         double *sum_q) {
    ptrdiff_t one = rows->intercept ? 1 : 0;
    sums[0] += lane_sum(b->f, v->m);
    if (one)
        sums[1] += lane_sum(b->t, v->m);
    for (ptrdiff_t j = 0; j < rows->d; j++)
        sums[1 + one + j] += lane_dot(b->t, v->x + j * v->stride, v->m);
    if (has_noise(term))
        *sum_q += lane_sum(b->q, v->m);
}

static void add_hessian(const zil_term *term, const zil_rows *rows, const view *v, const block *b, double *sums,
                        double *sum_qq) {
    ptrdiff_t one = rows->intercept ? 1 : 0, p = rows->d + one, at = 0;
    double scaled[ZIL_BLOCK];
    int m = v->m, noise = has_noise(term);
    double cross_one = one && noise ? lane_sum(b->tq, m) : 0.0;
    if (noise)
        *sum_qq += lane_sum(b->qq, m);
    for (ptrdiff_t j = 0; j < p; j++) {
        const double *xj = j < one ? 0 : v->x + (j - one) * v->stride;
        double gj = noise ? 2.0 * rows->noise[j] * rows->theta[j] : 0.0;
        double cross_j = !noise ? 0.0 : xj ? lane_dot(b->tq, xj, m) : cross_one;
        for (int i = 0; i < m; i++)
            scaled[i] = xj ? b->tt[i] * xj[i] : b->tt[i];
        for (ptrdiff_t l = 0; l <= j; l++) {
            const double *xl = l < one ? 0 : v->x + (l - one) * v->stride;
            sums[at] += xl ? lane_dot(scaled, xl, m) : lane_sum(scaled, m);
            double gl = noise ? 2.0 * rows->noise[l] * rows->theta[l] : 0.0;
            if (gl != 0.0)
                sums[at] += gl * cross_j;
            if (gj != 0.0)
                sums[at] += gj * (xl ? lane_dot(b->tq, xl, m) : cross_one);
            at++;
        }
    }
}

/* Adds the scores of one term to the joint scores of the block, parameter by parameter. */
static void add_scores(const zil_rows *rows, const view *v, const block *b, const double *centre, double *scores) {
    ptrdiff_t one = rows->intercept ? 1 : 0, p = rows->d + one;
    if (one)
        for (int i = 0; i < v->m; i++)
            scores[i] += b->t[i];
    for (ptrdiff_t j = one; j < p; j++) {
        const double *x = v->x + (j - one) * v->stride;
        double *own = scores + j * ZIL_TURNED, g = 2.0 * rows->noise[j] * rows->theta[j];
        double c = centre ? centre[j] : 0.0;
        if (g != 0.0)
            for (int i = 0; i < v->m; i++)
                own[i] += b->t[i] * (x[i] - c) + b->q[i] * g;
        else
            for (int i = 0; i < v->m; i++)
                own[i] += b->t[i] * (x[i] - c);
    }
}

/* The second derivative of each row along a direction, added to `bends`. */
static void add_bends(const zil_rows *rows, const view *v, const block *b, const double *direction, double *bends) {
    ptrdiff_t one = rows->intercept ? 1 : 0, p = rows->d + one;
    double along[ZIL_BLOCK], grow = 0.0, square = 0.0;
    for (int i = 0; i < v->m; i++)
        along[i] = one ? direction[0] : 0.0;
    for (ptrdiff_t j = one; j < p; j++) {
        const double *x = v->x + (j - one) * v->stride;
        for (int i = 0; i < v->m; i++)
            along[i] += direction[j] * x[i];
        grow += 2.0 * rows->noise[j] * rows->theta[j] * direction[j];
        square += 2.0 * rows->noise[j] * direction[j] * direction[j];
    }
    for (int i = 0; i < v->m; i++)
        bends[i] += (b->tt[i] * along[i] + 2.0 * grow * b->tq[i]) * along[i] + grow * grow * b->qq[i] +
                    square * b->q[i];
}

/* What the noise adds to gradient and Hessian of a chunk: the same for every row but for its derivatives by Q. */
static void add_noise_terms(const zil_rows *rows, double sum_q, double sum_qq, int second, double *sums) {
    ptrdiff_t one = rows->intercept ? 1 : 0, p = rows->d + one, at = 0;
    double *gradient = sums + 1, *hessian = sums + 1 + p;
    for (ptrdiff_t j = one; j < p; j++)
        gradient[j] += sum_q * (2.0 * rows->noise[j] * rows->theta[j]);
    for (ptrdiff_t j = 0; second && j < p; j++)
        for (ptrdiff_t l = 0; l <= j; l++, at++) {
            hessian[at] += 4.0 * rows->noise[j] * rows->theta[j] * rows->noise[l] * rows->theta[l] * sum_qq;
            if (l == j)
                hessian[at] += 2.0 * rows->noise[j] * sum_q;
        }
}

ptrdiff_t ZIL_NAME(zil_sums_width)(ptrdiff_t p, int want) {
    ptrdiff_t triangle = p * (p + 1) / 2;
    return 1 + p + (want & ZIL_HESSIAN ? triangle : 0) + (want & ZIL_MEAT ? triangle : 0) + (want & ZIL_BEND ? 2 : 0);
}

void ZIL_NAME(zil_sums_pass)(const zil_pass *pass, ptrdiff_t first, ptrdiff_t last, double *scratch, double *sums_out) {
    const zil_rows *lead = pass->rows;
    int second = (pass->want & (ZIL_HESSIAN | ZIL_BEND)) != 0, hessian = pass->want & ZIL_HESSIAN;
    ptrdiff_t p = lead->d + (lead->intercept ? 1 : 0), triangle = p * (p + 1) / 2;
    ptrdiff_t width = ZIL_NAME(zil_sums_width)(p, pass->want);
    double q = noise_length(lead, p), *turned = scratch, *scores = scratch + lead->d * ZIL_TURNED;
    double bends[ZIL_BLOCK];
    block b;
    for (ptrdiff_t chunk = first; chunk < last; chunk++) {
        double *sums = sums_out + (chunk - first) * width, sum_q = 0.0, sum_qq = 0.0;
        double *meat = sums + 1 + p + (hessian ? triangle : 0), *bend = meat + (pass->want & ZIL_MEAT ? triangle : 0);
        ptrdiff_t stop = (chunk + 1) * ZIL_CHUNK < lead->n ? (chunk + 1) * ZIL_CHUNK : lead->n;
        for (ptrdiff_t j = 0; j < width; j++)
            sums[j] = 0.0;
        for (ptrdiff_t start = chunk * ZIL_CHUNK; start < stop; start += ZIL_BLOCK) {
            int m = block_rows(start, stop);
            if (pass->want & ZIL_MEAT)
                for (ptrdiff_t j = 0; j < p; j++)
                    for (int i = 0; i < m; i++)
                        scores[j * ZIL_TURNED + i] =
                            !pass->offset ? 0.0 : lead->w ? pass->offset[j] * lead->w[start + i] : pass->offset[j];
            for (int i = 0; i < m; i++)
                bends[i] = 0.0;
            for (int k = 0; k < pass->n_terms; k++) {
                const zil_rows *rows = pass->rows + k;
                view v = look(rows, start, m, turned);
                derivatives(pass->terms + k, rows, &v, q, second, &b);
                add_gradient(pass->terms + k, rows, &v, &b, sums, &sum_q);
                if (hessian)
                    add_hessian(pass->terms + k, rows, &v, &b, sums + 1 + p, &sum_qq);
                if (pass->want & ZIL_MEAT)
                    add_scores(rows, &v, &b, pass->centre, scores);
                if (pass->want & ZIL_BEND)
                    add_bends(rows, &v, &b, pass->direction, bends);
            }
            if (pass->want & ZIL_MEAT) {
                double *at = meat;
                for (ptrdiff_t j = 0; j < p; j++)
                    for (ptrdiff_t l = 0; l <= j; l++)
                        *at++ += lane_dot(scores + j * ZIL_TURNED, scores + l * ZIL_TURNED, m);
            }
            if (pass->want & ZIL_BEND) {
                bend[0] += lane_sum(bends, m);
                bend[1] += lane_dot(bends, bends, m);
            }
        }
        add_noise_terms(lead, sum_q, sum_qq, hessian, sums);
    }
}

void ZIL_NAME(zil_scores_pass)(const zil_pass *pass, ptrdiff_t first, ptrdiff_t last, double *scratch,
                               double *scores_out) {
    const zil_rows *lead = pass->rows;
    ptrdiff_t p = lead->d + (lead->intercept ? 1 : 0);
    double q = noise_length(lead, p), *turned = scratch, *scores = scratch + lead->d * ZIL_TURNED;
    int bend = pass->want & ZIL_BEND;
    block b;
    ptrdiff_t end = last * ZIL_CHUNK < lead->n ? last * ZIL_CHUNK : lead->n;
    for (ptrdiff_t start = first * ZIL_CHUNK; start < end; start += ZIL_BLOCK) {
        int m = block_rows(start, end);
        double *bends = scores_out + start;
        for (int i = 0; bend && i < m; i++)
            bends[i] = 0.0;
        for (ptrdiff_t j = 0; !bend && j < p; j++)
            for (int i = 0; i < m; i++)
                scores[j * ZIL_TURNED + i] = 0.0;
        for (int k = 0; k < pass->n_terms; k++) {
            view v = look(pass->rows + k, start, m, turned);
            derivatives(pass->terms + k, pass->rows + k, &v, q, bend, &b);
            if (bend)
                add_bends(pass->rows + k, &v, &b, pass->direction, bends);
            else
                add_scores(pass->rows + k, &v, &b, pass->centre, scores);
        }
        for (int i = 0; !bend && i < m; i++)
            for (ptrdiff_t j = 0; j < p; j++)
                scores_out[(start + i) * p + j] = scores[j * ZIL_TURNED + i];
    }
}

/* Moments of the columns (1, features, response), about `centre` (0 for the first). */
void ZIL_NAME(zil_moments_pass)(const zil_rows *rows, const double *centre, ptrdiff_t first, ptrdiff_t last,
                                double *scratch, double *sums_out) {
    ptrdiff_t d = rows->d, k = d + (rows->y ? 2 : 1), width = k * (k + 1) / 2;
    double *columns = scratch + d * ZIL_TURNED, scaled[ZIL_BLOCK];
    for (ptrdiff_t chunk = first; chunk < last; chunk++) {
        double *sums = sums_out + (chunk - first) * width;
        ptrdiff_t stop = (chunk + 1) * ZIL_CHUNK < rows->n ? (chunk + 1) * ZIL_CHUNK : rows->n;
        for (ptrdiff_t j = 0; j < width; j++)
            sums[j] = 0.0;
        for (ptrdiff_t start = chunk * ZIL_CHUNK; start < stop; start += ZIL_BLOCK) {
            int m = block_rows(start, stop);
            view v = look(rows, start, m, scratch);
            for (ptrdiff_t j = 1; j < k; j++) {
                const double *x = j <= d ? v.x + (j - 1) * v.stride : v.y;
                for (int i = 0; i < m; i++)
                    columns[j * ZIL_TURNED + i] = x[i] - centre[j];
            }
            double *at = sums;
            for (ptrdiff_t j = 0; j < k; j++) {
                for (int i = 0; i < m; i++)
                    scaled[i] = (j ? columns[j * ZIL_TURNED + i] : 1.0) * (v.w ? v.w[i] : 1.0);
                *at++ += lane_sum(scaled, m);
                for (ptrdiff_t l = 1; l <= j; l++)
                    *at++ += lane_dot(scaled, columns + l * ZIL_TURNED, m);
            }
        }
    }
}

/* Where each row of a chunk goes, folds one after the other: row r belongs to fold r mod n_folds. */
static void places(ptrdiff_t start, int m, int n_folds, int *place, int *ends) {
    int at = 0;
    for (int f = 0; f < n_folds; f++) {
        for (int i = (int)(((f - start) % n_folds + n_folds) % n_folds); i < m; i += n_folds)
            place[i] = at++;
        ends[f] = at;
    }
}

void ZIL_NAME(zil_level_pass)(const zil_pass *pass, const zil_shells *sets, int n_sets, int n_slots, int n_folds,
                              ptrdiff_t first, ptrdiff_t last, double *scratch, double *sums_out) {
    const zil_rows *lead = pass->rows;
    ptrdiff_t one = lead->intercept ? 1 : 0, p = lead->d + one, k = n_slots * p + 1;
    ptrdiff_t width = k + (pass->want & ZIL_MEAT ? k * (k + 1) / 2 : 0);
    double q = noise_length(lead, p), *turned = scratch, *columns = scratch + lead->d * ZIL_TURNED;
    int place[ZIL_CHUNK], ends[ZIL_MAX_FOLDS];
    block b;
    for (ptrdiff_t chunk = first; chunk < last; chunk++) {
        ptrdiff_t from = chunk * ZIL_CHUNK, stop = from + ZIL_CHUNK < lead->n ? from + ZIL_CHUNK : lead->n;
        double *sums = sums_out + (chunk - first) * n_folds * width;
        places(from, (int)(stop - from), n_folds, place, ends);
        for (ptrdiff_t j = 0; j < k; j++)
            for (int i = 0; i < stop - from; i++)
                columns[j * ZIL_TALL + i] = 0.0;
        for (ptrdiff_t start = from; start < stop; start += ZIL_BLOCK) {
            int m = block_rows(start, stop);
            const int *to = place + (start - from);
            for (int i = 0; i < m; i++)
                columns[(k - 1) * ZIL_TALL + to[i]] = lead->w ? lead->w[start + i] : 1.0;
            for (int l = 0; l < pass->n_terms; l++) {
                view v = look(pass->rows + l, start, m, turned);
                derivatives(pass->terms + l, pass->rows + l, &v, q, 0, &b);
                for (int i = 0; one && i < m; i++)
                    columns[to[i]] += b.t[i];
                for (ptrdiff_t j = one; j < p; j++) {
                    const double *x = v.x + (j - one) * v.stride;
                    double *own = columns + j * ZIL_TALL, g = 2.0 * lead->noise[j] * lead->theta[j];
                    for (int i = 0; i < m; i++)
                        own[to[i]] += b.t[i] * x[i] + b.q[i] * g;
                }
            }
        }
        for (int l = 0; l < n_sets; l++) {
            const zil_shells *set = sets + l;
            ptrdiff_t end = set->starts[chunk + 1];
            for (ptrdiff_t start = set->starts[chunk]; start < end; start += ZIL_BLOCK) {
                int m = block_rows(start, end);
                view v = look(&set->rows, start, m, turned);
                derivatives(&set->term, &set->rows, &v, q, 0, &b);
                for (int i = 0; i < m; i++) {
                    double *own = columns + set->slot[start + i] * p * ZIL_TALL + place[set->index[start + i] - from];
                    double t = b.t[i];
                    if (one)
                        own[0] += t;
                    for (ptrdiff_t j = one; j < p; j++)
                        own[j * ZIL_TALL] += t * v.x[(j - one) * v.stride + i];
                }
            }
        }
        for (int f = 0; f < n_folds; f++) {
            int begin = f ? ends[f - 1] : 0, m = ends[f] - begin;
            double *at = sums + f * width;
            for (ptrdiff_t j = 0; j < k; j++)
                *at++ = lane_sum(columns + j * ZIL_TALL + begin, m);
            for (ptrdiff_t j = 0; (pass->want & ZIL_MEAT) && j < k; j++)
                for (ptrdiff_t l = 0; l <= j; l++)
                    *at++ = lane_dot(columns + j * ZIL_TALL + begin, columns + l * ZIL_TALL + begin, m);
        }
    }
}
