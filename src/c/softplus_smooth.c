#include "softplus_smooth.h"

#include <math.h>

#define N_TERMS 14 /* (h/pi)^15 / 15 < 3e-18: last term of the local Taylor integral, h = 1/4 */

static const double STEP = 1.0 / ZIL_SP_PER_UNIT;

void zil_softplus_taylor(double *taylor_out) {
    for (int k = 0; k < ZIL_SP_NODES; k++) {
        double *f = taylor_out + k * (ZIL_SP_ORDER + 1);
        double t = -ZIL_SP_T + k * STEP;
        double e = exp(t), a[ZIL_SP_ORDER];
        /* Taylor coefficients of sigma from sigma' = sigma - sigma^2 */
        a[0] = e / (1.0 + e);
        for (int n = 0; n + 1 < ZIL_SP_ORDER; n++) {
            double sum = 0.0;
            for (int i = 0; i <= n; i++)
                sum += a[i] * a[n - i];
            a[n + 1] = (a[n] - sum) / (n + 1);
        }
        f[0] = log1p(e);
        double factorial = 1.0;
        for (int n = 0; n < ZIL_SP_ORDER; n++) {
            f[n + 1] = a[n] * factorial; /* phi^(n+1) = sigma^(n) */
            factorial *= n + 1;
        }
    }
}

/* A_j = Int_0^h w^j/j! e^(-w/s) dw/s = s^j P(j+1, h/s), without overflow for any s. */
static void local_weights(double s, double *weight_out, int n) {
    double x = STEP / s;
    for (int j = 0; j < n; j++) {
        if (x < 40.0) {
            double term = 1.0 / (j + 1), sum = term;
            for (int i = 1; i < 200 && term > 1e-18 * sum; i++) {
                term *= x / (j + 1 + i);
                sum += term;
            }
            double scale = exp(-x) / s * STEP;
            for (int i = 1; i <= j; i++)
                scale *= STEP / i;
            weight_out[j] = scale * sum;
        } else {
            double term = exp(-x), sum = term;
            for (int i = 1; i <= j; i++) {
                term *= x / i;
                sum += term;
            }
            weight_out[j] = pow(s, j) * (1.0 - sum);
        }
    }
}

/* One-sided integrals of phi^(m) with weights 1, x, x^2: F, G, H */
typedef struct {
    double f, g, h;
} moments;

/* `variables` is a constant at every call: only the moments that are needed are formed. */
VM_INLINE moments step(int variables, const double *derivative, int m, double sign, const double *w, double s, double x,
                       double decay, moments next) {
    moments r = {0.0, 0.0, 0.0};
    double power = 1.0;
    int last = ZIL_SP_ORDER - m < N_TERMS ? ZIL_SP_ORDER - m : N_TERMS;
    for (int j = 0; j <= last; j++) {
        double d = derivative[m + j] * power;
        r.f += d * w[j];
        if (variables > 1)
            r.g += d * w[j + 1] * (j + 1);
        if (variables > 2)
            r.h += d * w[j + 2] * ((j + 1) * (j + 2));
        power *= sign;
    }
    if (variables > 2)
        r.h = r.h / (s * s) + decay * (next.h + 2.0 * x * next.g + x * x * next.f);
    if (variables > 1)
        r.g = r.g / s + decay * (next.g + x * next.f);
    r.f += decay * next.f;
    return r;
}

/* derivatives m, m+1 of phi smoothed by the sum of 1, 2 or 3 Laplace variables, at every node */
VM_INLINE void smooth_pair(const double *taylor, int m, int variables, double s, const double *w, double *first_out,
                           double *second_out, moments *edge_out) {
    double x = STEP / s, decay = exp(-x), *out[2] = {first_out, second_out};
    for (int shift = 0; shift < 2; shift++) {
        int order = m + shift;
        double e = exp(-ZIL_SP_T), k = 1.0 / (1.0 + s);
        moments down[ZIL_SP_NODES], up;
        down[0] = (moments){e * k, e * k * k, 2.0 * e * k * k * k};
        for (int i = 1; i < ZIL_SP_NODES; i++)
            down[i] = step(variables, taylor + i * (ZIL_SP_ORDER + 1), order, -1.0, w, s, x, decay, down[i - 1]);
        double odd = order % 2 ? -1.0 : 1.0;
        up = down[ZIL_SP_NODES - 1]; /* phi^(m)(t) = (-1)^m phi^(m)(-t), plus t for m = 0, 1 for m = 1 */
        up.f = odd * up.f + (order == 0 ? s : order == 1 ? 1.0 : 0.0);
        up.g = odd * up.g + (order == 0 ? 2.0 * s : order == 1 ? 1.0 : 0.0);
        up.h = odd * up.h + (order == 0 ? 6.0 * s : order == 1 ? 2.0 : 0.0);
        for (int i = ZIL_SP_NODES - 1; i >= 0; i--) {
            if (i < ZIL_SP_NODES - 1)
                up = step(variables, taylor + i * (ZIL_SP_ORDER + 1), order, 1.0, w, s, x, decay, up);
            double f = up.f + down[i].f, g = up.g + down[i].g, h = up.h + down[i].h;
            out[shift][i] = variables == 1 ? 0.5 * f : variables == 2 ? 0.25 * (f + g) : 0.0625 * (3.0 * (f + g) + h);
        }
        edge_out[shift] = up;
    }
}

void zil_softplus_table(const double *taylor, double q, int with_w, double *table_out) {
    double s = sqrt(q), *head = table_out;
    double *u = table_out + ZIL_SP_HEAD, *v = u + ZIL_SP_NODES * ZIL_SP_ROW, *w = v + ZIL_SP_NODES * ZIL_SP_ROW;
    double inverse[ZIL_SP_ROW];
    inverse[0] = 1.0;
    for (int m = 1; m < ZIL_SP_ROW; m++)
        inverse[m] = inverse[m - 1] / m;
    head[0] = s;
    head[1] = s >= 0.0625 ? 1.0 : 0.0;
    head[2] = with_w ? 1.0 : 0.0;
    if (s < 0.0625) {
        for (int k = 0; k < ZIL_SP_NODES; k++) {
            const double *f = taylor + k * (ZIL_SP_ORDER + 1);
            for (int m = 0; m < ZIL_SP_ROW; m++) {
                double su = 0.0, sv = 0.0, sw = 0.0;
                /* from the highest term down: the factor grows like a binomial */
                for (int i = (ZIL_SP_ORDER - m) / 2 < 9 ? (ZIL_SP_ORDER - m) / 2 : 9; i >= 0; i--) {
                    su = su * q + f[m + 2 * i];
                    if (m + 2 * i + 2 <= ZIL_SP_ORDER)
                        sv = sv * q + (i + 1) * f[m + 2 * i + 2];
                    if (with_w && m + 2 * i + 4 <= ZIL_SP_ORDER)
                        sw = sw * q + (i + 1) * (i + 2) * f[m + 2 * i + 4];
                }
                u[k * ZIL_SP_ROW + m] = su * inverse[m];
                v[k * ZIL_SP_ROW + m] = sv * inverse[m];
                w[k * ZIL_SP_ROW + m] = sw * inverse[m];
            }
        }
        return;
    }
    double weight[N_TERMS + 3], low[6][ZIL_SP_NODES];
    moments edge[2];
    local_weights(s, weight, N_TERMS + 3);
    smooth_pair(taylor, 0, 1, s, weight, low[0], low[1], edge);
    head[3] = edge[0].f;
    head[4] = edge[1].f;
    smooth_pair(taylor, 2, 2, s, weight, low[2], low[3], edge);
    head[5] = edge[0].f;
    head[6] = edge[0].g;
    head[7] = edge[1].f;
    head[8] = edge[1].g;
    if (with_w) {
        smooth_pair(taylor, 4, 3, s, weight, low[4], low[5], edge);
        head[9] = edge[0].f;
        head[10] = edge[0].g;
        head[11] = edge[0].h;
    }
    for (int k = 0; k < ZIL_SP_NODES; k++) {
        const double *f = taylor + k * (ZIL_SP_ORDER + 1);
        double a[ZIL_SP_ROW + 2], b[ZIL_SP_ROW + 2], c[ZIL_SP_ROW + 2];
        a[0] = low[0][k];
        a[1] = low[1][k];
        for (int m = 0; m < ZIL_SP_ROW; m++)
            a[m + 2] = (a[m] - f[m]) / q; /* u - q u'' = phi */
        b[0] = low[2][k];
        b[1] = low[3][k];
        for (int m = 0; m < ZIL_SP_ROW; m++)
            b[m + 2] = (b[m] - a[m + 2]) / q; /* v - q v'' = u'' */
        if (with_w) {
            c[0] = 2.0 * low[4][k];
            c[1] = 2.0 * low[5][k];
            for (int m = 0; m < ZIL_SP_ROW; m++)
                c[m + 2] = (c[m] - 2.0 * b[m + 2]) / q; /* w - q w'' = 2 v'' */
        }
        for (int m = 0; m < ZIL_SP_ROW; m++) {
            u[k * ZIL_SP_ROW + m] = a[m] * inverse[m];
            v[k * ZIL_SP_ROW + m] = b[m] * inverse[m];
            w[k * ZIL_SP_ROW + m] = with_w ? c[m] * inverse[m] : 0.0;
        }
    }
}

/* Int_0^1 x^n e^(-y x) dx for y >= 0, n = 0, 1, 2 */
static double unit_moment(int n, double y) {
    if (y < 2.0) {
        double sum = 0.0, term = 1.0;
        for (int i = 0; i < 30; i++) {
            sum += term / (n + 1 + i);
            term *= -y / (i + 1);
        }
        return sum;
    }
    double e = exp(-y);
    if (n == 0)
        return (1.0 - e) / y;
    if (n == 1)
        return (1.0 - (1.0 + y) * e) / (y * y);
    return (2.0 - (2.0 + y * (2.0 + y)) * e) / (y * y * y);
}

/* e^t X^(n+1) Int_0^1 x^n e^(-(1-s) X x) dx: the stretch from t up to -T, where phi = e^t, X = (-T - t)/s */
static double stretch(int n, double t, double s, double x) {
    double y = (1.0 - s) * x, power = pow(x, n + 1);
    if (y >= 0.0)
        return exp(t) * power * unit_moment(n, y);
    /* reflect x -> 1 - x so that the exponent stays negative */
    double z = -y, far = exp(t + z);
    double m0 = unit_moment(0, z), m1 = unit_moment(1, z), m2 = unit_moment(2, z);
    return far * power * (n == 0 ? m0 : n == 1 ? m0 - m1 : m0 - 2.0 * m1 + m2);
}

void zil_softplus_tail(const double *table, double t, double *u, double *ut, double *utt, double *uq, double *utq,
                       double *uqq) {
    double a = -fabs(t), s = table[0], e = exp(a), q = s * s;
    if (table[1] == 0.0) { /* s < 1/16: phi = e^a and every derivative of it */
        double k = 1.0 / (1.0 - q);
        *u = e * k;
        *ut = e * k;
        *utt = e * k;
        *uq = e * k * k;
        *utq = e * k * k;
        *uqq = 2.0 * e * k * k * k;
    } else {
        double x = (-ZIL_SP_T - a) / s, decay = exp(-x), k = 1.0 / (1.0 + s);
        double s0 = stretch(0, a, s, x), s1 = stretch(1, a, s, x), s2 = stretch(2, a, s, x);
        double down_f = e * k, down_g = e * k * k, down_h = 2.0 * e * k * k * k;
        *u = 0.5 * (down_f + s0 + decay * table[3]);
        *ut = 0.5 * (down_f + s0 + decay * table[4]);
        *utt = 0.5 * (down_f + s0 + decay * table[5]);
        *uq = 0.25 * (down_f + down_g + s0 + s1 + decay * (table[5] + table[6] + x * table[5]));
        *utq = 0.25 * (down_f + down_g + s0 + s1 + decay * (table[7] + table[8] + x * table[7]));
        double up_f = s0 + decay * table[9];
        double up_g = s1 + decay * (table[10] + x * table[9]);
        double up_h = s2 + decay * (table[11] + 2.0 * x * table[10] + x * x * table[9]);
        *uqq = 0.125 * (3.0 * (down_f + up_f + down_g + up_g) + down_h + up_h);
    }
    if (t > 0.0) {
        *u += t;
        *ut = 1.0 - *ut;
        *utq = -*utq;
    }
}
