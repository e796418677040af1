/* Small dense algebra: matrices of some ten rows, for which a library's calls cost more than the
 * work. Column major; columns are PADDED to whole vectors with zeros, which stay zeros. */
#ifndef OPTMECH_DENSE_H
#define OPTMECH_DENSE_H

#include "kernels.h"

/* Numbers in a vector; a power of two, at most SQUARE. */
#ifndef WIDTH
#if defined(__AVX512F__)
#define WIDTH 8
#elif defined(__SSE2__) && !defined(__AVX__)
#define WIDTH 2
#else
#define WIDTH 4
#endif
#endif

/* Columns that are factored together, and whose square's inverse is kept. */
#define SQUARE 8
#define PADDED(size) (((size) + WIDTH - 1) & ~(Index)(WIDTH - 1))
/* Room for the inverses of the diagonal squares of so many columns. */
#define SQUARES(size) (((size) + SQUARE - 1) / SQUARE * SQUARE * SQUARE)

typedef Real Vector __attribute__((vector_size(WIDTH * sizeof(Real)), aligned(sizeof(Real)), may_alias));

INLINED Vector load(const Real *from) { return *(const Vector *)from; }
INLINED void store(Real *to, Vector v) { *(Vector *)to = v; }
INLINED Vector all(Real x) { return x - (Vector){0}; }
INLINED Real total(Vector v) {
    Real sum[WIDTH];
    memcpy(sum, &v, sizeof(v));
    for (int half = WIDTH / 2; half > 0; half /= 2)
        for (int a = 0; a < half; a++) sum[a] += sum[a + half];
    return sum[0];
}

/* A product's operands: C (M, N) = sign A (M, K) B (K, N), added to C unless ``fresh``. Entry k, j
 * of B lies at B[k * down + j * across]. */
typedef struct {
    const Real *A;
    Index lda;
    const Real *B;
    Index down, across;
    Real *C;
    Index ldc;
    Real sign;
    int fresh;
} Product;

/* C's first PADDED(M) rows and N columns. */
#define multiply NAMED(multiply, VARIANT)
void multiply(Index M, Index N, Index K, Product product);

/* D <- the inverse of the lower triangle of n <= SQUARE columns of L, filled up with zeros. */
#define invert_square NAMED(invert_square, VARIANT)
void invert_square(const Real *L, Index ld, Index n, Real *D);

/* A = L Lᵀ in place, (n, n) with PADDED columns of which the lower triangle is read; the inverses of
 * L's diagonal squares in ``squares``. Whether A is positive definite. */
#define factor_dense NAMED(factor_dense, VARIANT)
int factor_dense(Real *A, Index n, Index ld, Real *squares);

/* W <- L⁻¹W for ``count`` columns that are zero before row ``from``, a multiple of SQUARE. */
#define solve_columns NAMED(solve_columns, VARIANT)
void solve_columns(const Real *L, Index n, Index ld, const Real *squares, Real *W, Index count,
                   Index from);

/* T (columns, PADDED(columns)) <- the transpose of A (rows, columns) by columns of lda. */
#define transpose NAMED(transpose, VARIANT)
void transpose(const Real *A, Index rows, Index columns, Index lda, Real *T);

/* y (M) -= A x, of ``count`` columns; M counts whole vectors. */
PART void take_product(Index M, Index count, const Real *A, Index ld, const Real *x, Real *y) {
    Index i = 0;
    for (; i + 4 * WIDTH <= M; i += 4 * WIDTH) {
        Vector sum[4];
        for (int a = 0; a < 4; a++) sum[a] = load(y + i + a * WIDTH);
        for (Index k = 0; k < count; k++) {
            const Real *column = A + k * ld + i;
            Vector factor = all(x[k]);
            for (int a = 0; a < 4; a++) sum[a] -= load(column + a * WIDTH) * factor;
        }
        for (int a = 0; a < 4; a++) store(y + i + a * WIDTH, sum[a]);
    }
    for (; i < M; i += WIDTH) {
        Vector even = load(y + i), odd = {0};
        Index k = 0;
        for (; k + 2 <= count; k += 2) {
            even -= load(A + k * ld + i) * all(x[k]);
            odd -= load(A + (k + 1) * ld + i) * all(x[k + 1]);
        }
        if (k < count) even -= load(A + k * ld + i) * all(x[k]);
        store(y + i, even + odd);
    }
}

/* y (count) -= Aᵀx, of M entries of x, whole vectors. */
PART void take_transposed(Index M, Index count, const Real *A, Index ld, const Real *x, Real *y) {
    Index k = 0;
    for (; k + 4 <= count; k += 4) {
        const Real *column = A + k * ld;
        Vector sum[4] = {{0}, {0}, {0}, {0}};
        for (Index i = 0; i < M; i += WIDTH) {
            Vector own = load(x + i);
            for (int a = 0; a < 4; a++) sum[a] += load(column + a * ld + i) * own;
        }
        for (int a = 0; a < 4; a++) y[k + a] -= total(sum[a]);
    }
    for (; k < count; k++) {
        Vector sum = {0};
        for (Index i = 0; i < M; i += WIDTH) sum += load(A + k * ld + i) * load(x + i);
        y[k] -= total(sum);
    }
}

/* x <- L⁻¹x. What lies behind x within PADDED(n) is multiplied with zeros and stays. */
PART void solve_lower(const Real *L, Real *x, Index n, Index ld) {
    for (Index c = 0; c < n; c += SQUARE) {
        Index count = sooner(SQUARE, n - c);
        const Real *own = L + c * ld + c;
        Real *v = x + c, inverse[SQUARE];
        for (Index k = 0; k < count; k++) inverse[k] = 1.0 / own[k * ld + k];
        for (Index k = 0; k < count; k++) {
            Real value = v[k] *= inverse[k];
            for (Index r = k + 1; r < count; r++) v[r] -= own[k * ld + r] * value;
        }
        if (c + SQUARE < n)
            take_product(ld - c - SQUARE, count, own + SQUARE, ld, v, v + SQUARE);
    }
}

/* x <- L⁻ᵀx, likewise. */
PART void solve_upper(const Real *L, Real *x, Index n, Index ld) {
    for (Index c = (n - 1) / SQUARE * SQUARE; c >= 0; c -= SQUARE) {
        Index count = sooner(SQUARE, n - c);
        const Real *own = L + c * ld + c;
        Real *v = x + c, inverse[SQUARE];
        for (Index k = 0; k < count; k++) inverse[k] = 1.0 / own[k * ld + k];
        if (c + SQUARE < n)
            take_transposed(ld - c - SQUARE, count, own + SQUARE, ld, v + SQUARE, v);
        for (Index k = count - 1; k >= 0; k--) {
            Real value = v[k];
            for (Index r = k + 1; r < count; r++) value -= own[k * ld + r] * v[r];
            v[k] = value * inverse[k];
        }
    }
}

#endif
