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

/* Columns that are factored together. Of a factor L the squares of so many columns on the diagonal
 * are kept as their inverses: what is solved for is a product then, and nothing waits for a quotient. */
#define SQUARE 8
#define PADDED(size) (((size) + WIDTH - 1) & ~(Index)(WIDTH - 1))

typedef Real Vector __attribute__((vector_size(WIDTH * sizeof(Real)), aligned(sizeof(Real)), may_alias));

INLINED Vector load(const Real *from) { return *(const Vector *)from; }
INLINED void store(Real *to, Vector v) { *(Vector *)to = v; }
INLINED Vector all(Real x) { return x - (Vector){0}; }
INLINED Real total(Vector v) {
    Real sum = v[0] + v[1];
#if WIDTH > 2
    sum += v[2] + v[3];
#endif
#if WIDTH > 4
    sum += (v[4] + v[5]) + (v[6] + v[7]);
#endif
    return sum;
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

/* A = L Lᵀ in place, (n, n) with PADDED columns of which the lower triangle is read. Whether A is
 * positive definite. */
#define factor_dense NAMED(factor_dense, VARIANT)
int factor_dense(Real *A, Index n, Index ld);

/* W <- L⁻¹W for ``count`` columns that are zero before row ``from``, a multiple of SQUARE. */
#define solve_columns NAMED(solve_columns, VARIANT)
void solve_columns(const Real *L, Index n, Index ld, Real *W, Index count, Index from);

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

/* x <- D x with the inverse of a square of n columns. What lies behind x within PADDED(n) stays. */
INLINED void lower_square(const Real *D, Real *x, Index n, Index ld) {
    Vector sum[SQUARE / WIDTH] = {{0}};
    Index vectors = PADDED(n) / WIDTH;
    Real found[SQUARE];
    for (Index k = 0; k < n; k++) {
        Vector factor = all(x[k]);
        for (Index a = 0; a < vectors; a++) sum[a] += load(D + k * ld + a * WIDTH) * factor;
    }
    for (Index a = 0; a < vectors; a++) store(found + a * WIDTH, sum[a]);
    copy(x, found, n);
}

/* x <- Dᵀx, likewise. */
INLINED void upper_square(const Real *D, Real *x, Index n, Index ld) {
    Vector own[SQUARE / WIDTH];
    Index vectors = PADDED(n) / WIDTH;
    for (Index a = 0; a < vectors; a++) own[a] = load(x + a * WIDTH);
    for (Index k = 0; k < n; k++) {
        Vector sum = {0};
        for (Index a = 0; a < vectors; a++) sum += load(D + k * ld + a * WIDTH) * own[a];
        x[k] = total(sum);
    }
}

/* x <- L⁻¹x. What lies behind x within PADDED(n) is multiplied with zeros and stays. */
PART void solve_lower(const Real *L, Real *x, Index n, Index ld) {
    Index c = 0;
    for (; c + SQUARE <= n; c += SQUARE) {
        const Real *own = L + c * ld + c;
        lower_square(own, x + c, SQUARE, ld);
        take_product(ld - c - SQUARE, SQUARE, own + SQUARE, ld, x + c, x + c + SQUARE);
    }
    if (c < n) lower_square(L + c * ld + c, x + c, n - c, ld);
}

/* x <- L⁻ᵀx, likewise. */
PART void solve_upper(const Real *L, Real *x, Index n, Index ld) {
    Index c = n / SQUARE * SQUARE;
    if (c < n) upper_square(L + c * ld + c, x + c, n - c, ld);
    for (c -= SQUARE; c >= 0; c -= SQUARE) {
        const Real *own = L + c * ld + c;
        take_transposed(ld - c - SQUARE, SQUARE, own + SQUARE, ld, x + c + SQUARE, x + c);
        upper_square(own, x + c, SQUARE, ld);
    }
}

#endif
