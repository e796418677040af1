/* Products, factors and triangles. */
#include "dense.h"

/* ``rows`` vectors of ``columns`` columns of C, which stay in registers. */
INLINED void tile(const int rows, const int columns, Index K, const Product *p, Index i) {
    const Real *A = p->A + i, *B = p->B;
    const Index lda = p->lda, down = p->down, across = p->across;
    Real *C = p->C + i;
    Vector sum[3][4];
#pragma GCC unroll 3
    for (int a = 0; a < rows; a++)
#pragma GCC unroll 4
        for (int c = 0; c < columns; c++) sum[a][c] = (Vector){0};
    for (Index k = 0; k < K; k++, A += lda, B += down) {
        Vector own[3];
#pragma GCC unroll 3
        for (int a = 0; a < rows; a++) own[a] = load(A + WIDTH * a);
#pragma GCC unroll 4
        for (int c = 0; c < columns; c++) {
            Vector factor = all(B[c * across]);
#pragma GCC unroll 3
            for (int a = 0; a < rows; a++) sum[a][c] += own[a] * factor;
        }
    }
    const Vector sign = all(p->sign);
#pragma GCC unroll 4
    for (int c = 0; c < columns; c++)
#pragma GCC unroll 3
        for (int a = 0; a < rows; a++) {
            Real *to = C + c * p->ldc + WIDTH * a;
            store(to, p->fresh ? sign * sum[a][c] : load(to) + sign * sum[a][c]);
        }
}

/* The next columns of C. */
INLINED void stripe(const int columns, Index M, Index K, Product *p) {
    Index i = 0, end = PADDED(M);
    for (; i + 3 * WIDTH <= end; i += 3 * WIDTH) tile(3, columns, K, p, i);
    if (i + 2 * WIDTH <= end) {
        tile(2, columns, K, p, i);
        i += 2 * WIDTH;
    }
    if (i < end) tile(1, columns, K, p, i);
    p->B += columns * p->across;
    p->C += columns * p->ldc;
}

void multiply(Index M, Index N, Index K, Product p) {
    Index j = 0;
    for (; j + 4 <= N; j += 4) stripe(4, M, K, &p);
    for (; j < N; j++) stripe(1, M, K, &p);
}

/* The inverse of Cholesky's factor of n <= SQUARE columns in place, zeros above; whether they are
 * definite. */
static int factor_square(Real *A, Index ld, Index n) {
    Real L[SQUARE][SQUARE];
    for (Index c = 0; c < n; c++) {
        Real left = A[c * ld + c];
        for (Index k = 0; k < c; k++) left -= L[k][c] * L[k][c];
        if (!(left > 0.0)) return 0;
        Real per_root = L[c][c] = 1.0 / sqrt(left);
        for (Index r = c + 1; r < n; r++) {
            Real sum = A[c * ld + r];
            for (Index k = 0; k < c; k++) sum -= L[k][r] * L[k][c];
            L[c][r] = sum * per_root;
        }
    }
    for (Index c = 0; c < n; c++) {
        Real *D = A + c * ld;
        clear(D, c);
        D[c] = L[c][c];
        for (Index r = c + 1; r < n; r++) {
            Real sum = 0;
            for (Index k = c; k < r; k++) sum += L[k][r] * D[k];
            D[r] = -sum * L[r][r];
        }
    }
    return 1;
}

int factor_dense(Real *A, Index n, Index ld) {
    Real room[SQUARE * WIDTH];
    for (Index j = 0; j < n; j += SQUARE) {
        Index count = sooner(SQUARE, n - j);
        Real *own = A + j * ld + j;
        multiply(ld - j, count, j, (Product){A + j, ld, A + j, ld, 1, own, ld, -1.0, 0});
        if (!factor_square(own, ld, count)) return 0;
        for (Index i = SQUARE; i < ld - j; i += WIDTH) { /* rows below, times L⁻ᵀ */
            for (Index c = 0; c < SQUARE; c++) store(room + c * WIDTH, load(own + c * ld + i));
            multiply(WIDTH, SQUARE, SQUARE,
                     (Product){room, WIDTH, own, ld, 1, own + i, ld, 1.0, 1});
        }
    }
    return 1;
}

void solve_columns(const Real *L, Index n, Index ld, Real *W, Index count, Index from) {
    enum { TOGETHER = 64 };
    Real room[SQUARE * TOGETHER];
    for (Index j = 0; j < count; j += TOGETHER) {
        Index columns = sooner(TOGETHER, count - j);
        Real *own = W + j * ld;
        for (Index i = from; i < n; i += SQUARE) {
            Index rows = sooner(SQUARE, ld - i), inside = sooner(SQUARE, n - i);
            multiply(rows, columns, i - from,
                     (Product){L + from * ld + i, ld, own + from, 1, ld, own + i, ld, -1.0, 0});
            for (Index c = 0; c < columns; c++)
                copy(room + c * SQUARE, own + c * ld + i, inside);
            multiply(rows, columns, inside,
                     (Product){L + i * ld + i, ld, room, 1, SQUARE, own + i, ld, 1.0, 1});
        }
    }
}

void transpose(const Real *A, Index rows, Index columns, Index lda, Real *T) {
    Index ldt = PADDED(columns);
    for (Index r = 0; r < rows; r++) {
        for (Index c = 0; c < columns; c++) T[r * ldt + c] = A[c * lda + r];
        clear(T + r * ldt + columns, ldt - columns);
    }
}
