/*
 * Packed privacy mechanisms (.omm, made by `optmech pack`) in C99: read, verified, sampled without
 * rounding. The file is specified in docs/packed.md; the same bytes give the same reports as in
 * Python and JavaScript.
 *
 * One header, one source. No allocation, no recursion deeper than 17, no floating point: float64 of
 * the file are computed with as whole numbers, in the order that the specification says. Nothing is
 * written but the caller's memory, nothing is read but the content, which has to stay where it is.
 */
#ifndef OPTMECH_H
#define OPTMECH_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What the functions below return. There is never a report but with OPTMECH_OK. */
enum {
    OPTMECH_OK = 0,
    OPTMECH_OUTSIDE,  /* the position is outside the region, where the file refuses that */
    OPTMECH_REFUSED,  /* the file is not exactly as specified, or not signed as asked for: see why */
    OPTMECH_WORK,     /* `work` is too small to verify the file: it takes `words` of them */
    OPTMECH_ARGUMENT, /* no number of a place or report, no position, or no file with such */
    OPTMECH_SOURCE    /* a callback failed */
};

/* An IEEE float64 as its 64 bits. */
typedef uint64_t optmech_float;

typedef struct {
    const uint8_t *at;
    size_t size;
} optmech_bytes;

/* Fresh bytes from a source that is fit for keys; 0 where all were written. */
typedef int (*optmech_entropy)(void *context, uint8_t *bytes, size_t size);

/* HMAC-SHA-256 of a message under the device's key; 0 where 32 bytes were written. */
typedef int (*optmech_mac)(void *context, const uint8_t *message, size_t size, uint8_t out[32]);

/*
 * Whether an Ed25519 signature (64 bytes) of the message `head` followed by `payload` is that of the
 * key that files have to be signed with; 0 where it is.
 */
typedef int (*optmech_verify)(void *context, optmech_bytes head, optmech_bytes payload,
                              const uint8_t *signature);

enum { OPTMECH_LABELS, OPTMECH_GRID, OPTMECH_POINTS, OPTMECH_HEXAGONS, OPTMECH_EARTH };

typedef struct {
    uint8_t kind;
    uint8_t degrees;      /* positions are longitude and latitude */
    uint64_t count;       /* numbers are below it; of the earth not all of them are cells, of a mesh
                             they are those of points of the lattice where reports repeat */
    uint32_t dimension;   /* of positions; 0 where places have none */
    uint32_t rows, columns; /* of the earth the bands, and twice as many */
    optmech_float cell[2], box[4]; /* of a grid: west, south, east, north */
    optmech_bytes points, labels;  /* float64, or of hexagons and labels as in the file */
} optmech_places;

/* What one constraint promises: texts as in the file, and of ratios e^(epsilon d) up to delta the
 * numbers, per unit of a distance that goes as `course` says (both empty without one). */
typedef struct {
    optmech_bytes kind, scope, pairs, repeats, unit, course;
    optmech_float epsilon, delta;
    uint8_t ratio; /* whether there is an epsilon */
} optmech_promise;

/* All of it is for reading only, and set by optmech_open. */
typedef struct {
    const char *why;      /* what is wrong with a file that was refused */
    size_t words;         /* of `work` that were taken, or are needed */
    uint8_t mesh;         /* a report is drawn at a position, not for a place */
    uint8_t roads;        /* coordinates of positions, where its mesh is a line (1) or roads (2) */
    uint8_t earth;        /* a mechanism for the whole earth */
    uint8_t nearest;      /* what positions outside do: refused, or moved to the nearest */
    uint8_t bits, width, degree, limited;
    uint32_t draw_bytes;  /* that a draw takes; at most OPTMECH_DRAW */
    uint32_t rows, columns, triangles, border;
    optmech_places secrets, reports;
    optmech_bytes title, promises, column, row_of, entries, vertices, corners, digest;
    optmech_bytes heights; /* of the rings of the earth, whose sums are the entries */
    optmech_bytes radius; /* the accuracy of every column; empty where there is none */
    optmech_float quantile, reach, snap, box[4];
    optmech_float step[2], slack; /* of a mesh's lattice, and how much farther apart than they are
                                     two positions count where reports repeat */
    uint64_t across;              /* its columns; of roads the parts of each segment */
    optmech_float longest;        /* segment of roads */
    const uint32_t *edges;
} optmech_mechanism;

#define OPTMECH_DRAW 24

/*
 * Read and verify a file of `size` bytes. `work` is memory for verifying it, `words` words of it: as
 * many as there are places, or some six for each triangle or segment; of a mesh it has to stay as well. Where
 * `verify` is not NULL, only files that it finds signed are taken; where it is, no signed file.
 */
int optmech_open(optmech_mechanism *m, const uint8_t *content, size_t size, uint32_t *work,
                 size_t words, optmech_verify verify, void *context);

/*
 * The place that a position of `secrets.dimension` coordinates (of a mesh two, of a line one) belongs to; of a mesh
 * the point of the lattice next to it, where the file states an epsilon per distance.
 */
int optmech_locate(const optmech_mechanism *m, const optmech_float *position, uint64_t *place);

/*
 * The report that exactly `draw_bytes` bytes stand for: reads every row, compares every sum of one,
 * and branches on nothing that depends on place or bytes (but on the whole earth, whose reports are
 * computed).
 */
int optmech_draw(const optmech_mechanism *m, uint64_t place, const uint8_t *bytes, uint64_t *report);

/* The triangle or segment of a position in a mesh, and the weights of its corners over 2^24. */
int optmech_weights(const optmech_mechanism *m, const optmech_float position[2], uint32_t *triangle,
                    uint32_t weights[3]);

/* The report at a position, of a mesh, that exactly `draw_bytes` bytes stand for. */
int optmech_draw_at(const optmech_mechanism *m, const optmech_float position[2],
                    const uint8_t *bytes, uint64_t *report);

/* A report with fresh bytes, for a place or, of a mesh, at a position. */
int optmech_sample(const optmech_mechanism *m, uint64_t place, optmech_entropy entropy,
                   void *context, uint64_t *report);
int optmech_sample_at(const optmech_mechanism *m, const optmech_float position[2],
                      optmech_entropy entropy, void *context, uint64_t *report);

/*
 * The report that repeats for as long as place and epoch are the same (docs/sticky.md); what it
 * costs is not counted here. optmech_sticky_bytes gives the bytes that it is drawn with.
 */
int optmech_sticky(const optmech_mechanism *m, uint64_t place, uint64_t epoch, optmech_mac mac,
                   void *context, uint64_t *report);
int optmech_sticky_bytes(const optmech_mechanism *m, uint64_t place, uint64_t epoch,
                         optmech_mac mac, void *context, uint8_t bytes[OPTMECH_DRAW]);

/* An optmech_mac whose context is the key itself, 32 bytes. */
int optmech_hmac(void *key, const uint8_t *message, size_t size, uint8_t out[32]);

/*
 * Coordinate `axis` of a place of reports or secrets, as positions are given; longitudes of at most
 * 180 degrees. Its accuracy: within
 * this radius with probability `quantile`, in metres for degrees; only of numbers that are reported.
 */
int optmech_coordinate(const optmech_places *places, uint64_t number, uint32_t axis,
                       optmech_float *out);
int optmech_accuracy(const optmech_mechanism *m, uint64_t report, optmech_float *out);

/* What promise `index` of the file says (docs/packed.md); OPTMECH_ARGUMENT behind the last. */
int optmech_promised(const optmech_mechanism *m, uint32_t index, optmech_promise *out);

/* value / over as a float64, and a float64 times `times` to the nearest whole number: degrees of
 * 10^-7, as radios have them, are optmech_ratio(value, 10000000). */
optmech_float optmech_ratio(int64_t value, uint32_t over);
int64_t optmech_scaled(optmech_float value, uint32_t times);

void optmech_sha256(const uint8_t *bytes, size_t size, uint8_t out[32]);

#ifdef __cplusplus
}
#endif
#endif
