/* Packed privacy mechanisms: see optmech.h, and docs/packed.md for the file. */

#include "optmech.h"

#include <string.h>

#define MOST_BYTES ((size_t)64 << 20)
#define MOST_ITEMS (1u << 20)
#define MOST_PLACES 65536u
#define MOST_COLUMNS 32768u
#define DIGEST 32
#define UNIT 16777216 /* weights are whole numbers over 2^24 */

#define NEED(condition, said) do { if (!(condition)) return (said); } while (0)
#define TRY(call) do { const char *said_ = (call); if (said_) return said_; } while (0)

static const char TOO_LITTLE[] = "needs more work";

/* Formats that are left out where OPTMECH_NO_PLACES, OPTMECH_NO_MESH or OPTMECH_NO_EARTH is defined:
 * their files are refused, and compilers leave out what reads and draws from them. */
#ifdef OPTMECH_NO_PLACES
#define WITH_PLACES 0
#else
#define WITH_PLACES 1
#endif
#ifdef OPTMECH_NO_MESH
#define WITH_MESH 0
#else
#define WITH_MESH 1
#endif
#ifdef OPTMECH_NO_EARTH
#define WITH_EARTH 0
#else
#define WITH_EARTH 1
#endif
/* What a mechanism may be; where nothing else is read, all that is left of one that was refused is 0. */
#define IS_MESH(m) (WITH_MESH && (m)->mesh)
#define IS_EARTH(m) (WITH_EARTH && ((m)->earth || !(WITH_PLACES || WITH_MESH)))

/* -- float64 as whole numbers: rounded to the nearest, ties to even; nothing here is ever a NaN -- */

typedef optmech_float f64;

#define SIGN ((uint64_t)1 << 63)
#define INFINITE ((uint64_t)2047 << 52)
#define ZERO ((f64)0)
#define HALF ((f64)0x3fe0000000000000u)
#define ONE ((f64)0x3ff0000000000000u)
#define TWO ((f64)0x4000000000000000u)
#define NINE ((f64)0x4022000000000000u)
#define SIXTEEN ((f64)0x4030000000000000u)
#define RIGHT ((f64)0x4056800000000000u)       /* 90 */
#define STRAIGHT ((f64)0x4066800000000000u)    /* 180 */
#define TURN ((f64)0x4076800000000000u)        /* 360 */
#define FAR_AWAY ((f64)0x4630000000000000u)    /* 2^100 */
#define RADIAN ((f64)0x3f91df46a2529d39u)      /* pi / 180 */
#define KILOMETRES ((f64)0x405bcc7c31cdc7acu)  /* pi / 180 * 6371.0088 */
#define CLOSE ((f64)0x3d719799812dea11u)       /* 1e-12 */
#define NEARLY ((f64)0x3cd203af9ee75616u)      /* 1e-15 */
#define LONGER ((f64)0x3ff0000100000000u)      /* 1 + 2^-20 */
#define CURVED ((f64)0x3ff2f684bda12f68u)      /* 32 / 27 */
#define POLEWARD ((f64)0x4055400000000000u)    /* 85 */
#define TENTH ((f64)0x3fb999999999999au)       /* 0.1 */
#define SHORT ((f64)0x3fefff972474538fu)       /* 1 - 5e-5 */
#define DIAGONAL ((f64)0x3ff6a09e667f3bcdu)    /* the square root of 2 */
#define RADIUS ((f64)0x40b8e30240b78034u)      /* 6371.0088 */
#define MOST_POINTS ((int64_t)1 << 53)
#define FARTHEST ((f64)0x3fd2b7e4b5781221u)    /* the height of 5,000 km */
#define TOLERANCE ((f64)0xbdf0000000000000u)   /* -2^-32 */

static uint64_t shifted(uint64_t m, int32_t by)
{
    if (by == 0) return m;
    if (by > 63) return m != 0;
    return m >> by | ((m << (64 - by)) != 0);
}

/* m * 2^e, whose last bit may stand for anything below it. */
static f64 rounded(uint64_t sign, int32_t e, uint64_t m)
{
    int32_t exponent;
    uint64_t kept, rest;
    if (m == 0) return sign;
    for (int step = 32; step; step >>= 1) {
        if (!(m >> (64 - step))) { m <<= step; e -= step; }
    }
    exponent = e + 63 + 1023;
    if (exponent >= 2047) return sign | INFINITE;
    if (exponent < 1) { m = shifted(m, 1 - exponent); exponent = 1; }
    kept = ((uint64_t)(exponent - 1) << 52) + (m >> 11);
    rest = m & 2047;
    kept += rest > 1024 || (rest == 1024 && (kept & 1));
    return sign | kept;
}

static int32_t split(f64 a, uint64_t *m)
{
    int32_t exponent = (int32_t)(a >> 52 & 2047);
    *m = (a & (((uint64_t)1 << 52) - 1)) | (uint64_t)(exponent != 0) << 52;
    return (exponent ? exponent : 1) - 1075;
}

static f64 negative(f64 a) { return a ^ SIGN; }
static f64 size_of(f64 a) { return a & ~SIGN; }
static uint64_t order(f64 a) { return a << 1 == 0 ? SIGN : a & SIGN ? ~a : a | SIGN; }
static int less(f64 a, f64 b) { return order(a) < order(b); }
static int within(f64 low, f64 a, f64 high) { return !less(a, low) && !less(high, a); }
static f64 lower(f64 a, f64 b) { return less(b, a) ? b : a; }
static f64 upper(f64 a, f64 b) { return less(a, b) ? b : a; }

static f64 plus(f64 a, f64 b)
{
    uint64_t m, n;
    int32_t e, f;
    if (size_of(a) < size_of(b)) { f64 c = a; a = b; b = c; }
    if (size_of(a) >= INFINITE) return a;
    e = split(a, &m);
    f = split(b, &n);
    if (m == 0) return a & b;
    m <<= 10;
    n = shifted(n << 10, e - f);
    if ((a ^ b) & SIGN) {
        m -= n;
        return rounded(m ? a & SIGN : 0, e - 10, m);
    }
    return rounded(a & SIGN, e - 10, m + n);
}

static f64 minus(f64 a, f64 b) { return plus(a, negative(b)); }

static uint64_t product(uint64_t a, uint64_t b, uint64_t *low)
{
    uint64_t c = (a & 0xffffffff) * (b & 0xffffffff);
    uint64_t d = (a >> 32) * (b & 0xffffffff) + (c >> 32);
    uint64_t e = (a & 0xffffffff) * (b >> 32) + (d & 0xffffffff);
    *low = e << 32 | (c & 0xffffffff);
    return (a >> 32) * (b >> 32) + (d >> 32) + (e >> 32);
}

static f64 times(f64 a, f64 b)
{
    uint64_t m, n, low, high, sign = (a ^ b) & SIGN;
    int32_t e = split(a, &m), f = split(b, &n);
    if (m == 0 || n == 0) return sign;
    if (size_of(a) >= INFINITE || size_of(b) >= INFINITE) return sign | INFINITE;
    while (!(m >> 52)) { m <<= 1; e--; }
    while (!(n >> 52)) { n <<= 1; f--; }
    high = product(m << 11, n << 11, &low);
    return rounded(sign, e + f + 64 - 22, high | (low != 0));
}

static f64 over(f64 a, f64 b)
{
    uint64_t m, n, quotient = 0, sign = (a ^ b) & SIGN;
    int32_t e = split(a, &m), f = split(b, &n);
    if (m == 0 || size_of(b) >= INFINITE) return sign;
    if (n == 0 || size_of(a) >= INFINITE) return sign | INFINITE;
    while (!(m >> 52)) { m <<= 1; e--; }
    while (!(n >> 52)) { n <<= 1; f--; }
    for (int k = 0; k < 64; k++) {
        quotient <<= 1;
        if (m >= n) { m -= n; quotient |= 1; }
        m <<= 1;
    }
    return rounded(sign, e - f - 63, quotient | (m != 0));
}

static f64 whole(int64_t value)
{
    uint64_t size = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
    return rounded(value < 0 ? SIGN : 0, 0, size);
}

/* The largest whole number not above a, kept between low and high. */
static int64_t floored(f64 a, int64_t low, int64_t high)
{
    uint64_t m;
    int32_t e = split(a, &m);
    int64_t found;
    if (size_of(a) >= INFINITE || (m && e > 9)) return a & SIGN ? low : high;
    if (e >= 0) found = (int64_t)(m << e);
    else found = e < -63 ? 0 : (int64_t)(m >> -e);
    if (a & SIGN) found = -found - (m && e < 0 && (e < -63 || m << (64 + e)));
    return found < low ? low : found > high ? high : found;
}

/* The remainder by 360 with the sign of a, exactly. */
static f64 remainder_of(f64 a)
{
    uint64_t m;
    int32_t e = split(a, &m);
    if (e < -50) return a;
    if (e <= 3) {
        int32_t low = e < 3 ? e : 3;
        return rounded(a & SIGN, low, m % ((uint64_t)45 << (3 - low)));
    }
    for (m %= 45; e > 3; e--) m = m * 2 % 45;
    return rounded(a & SIGN, 3, m);
}

/* The square root, digit by digit. */
static f64 root(f64 a)
{
    uint64_t m, found = 0, rest = 0;
    int32_t e = split(a, &m);
    if (m == 0) return a;
    while (!(m >> 52)) { m <<= 1; e--; }
    if (e & 1) { m <<= 1; e--; }
    /* 27 pairs of bits of m, and 28 of zeros: 55 bits of the root */
    for (int k = 0; k < 55; k++) {
        rest = rest << 2 | (k < 27 ? m >> (52 - 2 * k) & 3 : 0);
        found <<= 1;
        if (rest >= (found << 1 | 1)) {
            rest -= found << 1 | 1;
            found |= 1;
        }
    }
    return rounded(0, e / 2 - 29, found << 1 | (rest != 0));
}

f64 optmech_ratio(int64_t value, uint32_t by) { return over(whole(value), whole(by)); }

int64_t optmech_scaled(f64 value, uint32_t by)
{
    return floored(plus(times(value, whole(by)), HALF), INT64_MIN / 2, INT64_MAX / 2);
}

/* -- the globe ---------------------------------------------------------------------------------- */

/* Sine and cosine of an angle between -pi/4 and pi/4. */
static void series(f64 y, f64 *s, f64 *c)
{
    static const f64 sine[7] = {
        0xbd6ae7f3e733b81fu, 0x3de6124613a86d09u, 0xbe5ae64567f544e4u, 0x3ec71de3a556c734u,
        0xbf2a01a01a01a01au, 0x3f81111111111111u, 0xbfc5555555555555u};
    static const f64 cosine[8] = {
        0x3d2ae7f3e733b81fu, 0xbda93974a8c07c9du, 0x3e21eed8eff8d898u, 0xbe927e4fb7789f5cu,
        0x3efa01a01a01a01au, 0xbf56c16c16c16c17u, 0x3fa5555555555555u, 0xbfe0000000000000u};
    f64 z = times(y, y), p = sine[0], q = cosine[0];
    for (int k = 1; k < 7; k++) p = plus(times(p, z), sine[k]);
    for (int k = 1; k < 8; k++) q = plus(times(q, z), cosine[k]);
    *s = plus(y, times(times(y, z), p));
    *c = plus(ONE, times(z, q));
}

static void sines(f64 degrees, f64 *sine, f64 *cosine)
{
    f64 turn = remainder_of(degrees), s, c;
    int64_t quarter = floored(plus(over(turn, RIGHT), HALF), -8, 8);
    series(times(minus(turn, times(RIGHT, whole(quarter))), RADIAN), &s, &c);
    *sine = quarter & 1 ? c : s;
    *cosine = quarter & 1 ? s : c;
    if (quarter & 2) *sine = negative(*sine);
    if ((quarter + 1) & 2) *cosine = negative(*cosine);
}

/* The cosine of at most a right angle in radians. */
static f64 cosine_of(f64 radians)
{
    f64 s, c, y = size_of(radians);
    if (less(y, (f64)0x3fe921fb54442d18u)) {
        series(y, &s, &c);
        return c;
    }
    series(plus(minus((f64)0x3ff921fb54442d18u, y), (f64)0x3c91a62633145c07u), &s, &c);
    return s;
}

static void vector(const f64 *position, f64 out[3])
{
    f64 s, c, flat;
    sines(position[0], &s, &c);
    sines(position[1], &out[2], &flat);
    out[0] = times(flat, c);
    out[1] = times(flat, s);
}

/* A longitude led around the globe to lie between west and east, where it can. */
static f64 turned(f64 x, f64 west, f64 east)
{
    f64 r = remainder_of(x);
    const f64 tried[3] = {r, minus(r, TURN), plus(r, TURN)};
    for (int k = 0; k < 3; k++) if (within(west, tried[k], east)) return tried[k];
    return x;
}

static int is_position(const f64 *position, uint32_t dimension, int degrees)
{
    for (uint32_t k = 0; k < dimension; k++) if (size_of(position[k]) > FAR_AWAY) return 0;
    return !degrees || !less(RIGHT, size_of(position[1]));
}

typedef struct {
    f64 least, at[2], share; /* the last of the way along the edge */
} foot;

/* Point a of an edge's parts, of `count`. */
static f64 part_of(uint32_t k, uint32_t count, f64 start, f64 end)
{
    if (k == 0) return start;
    if (k == count) return end;
    return plus(start, times(over(whole(k), whole(count)), minus(end, start)));
}

static uint32_t parts_in(const f64 *start, const f64 *end)
{
    f64 wide = upper(size_of(minus(end[0], start[0])), size_of(minus(end[1], start[1])));
    return (uint32_t)-floored(negative(times(wide, SIXTEEN)), -256, -1);
}

/* Whether the point of an edge next to a position is nearer than what is known; then it is kept. */
static int nearer(foot *known, const f64 *position, const f64 *start, const f64 *end, int degrees)
{
    int axes = degrees ? 3 : 2, kept = 0;
    uint32_t count = 1;
    f64 own[3] = {position[0], position[1], ZERO};
    if (degrees) {
        count = parts_in(start, end);
        vector(position, own);
    }
    for (uint32_t k = 0; k < count; k++) {
        f64 ends[2][2], tail[3], head[3], length = ZERO, dot = ZERO, apart = ZERO;
        for (int axis = 0; axis < 2; axis++) {
            tail[axis] = ends[0][axis] = part_of(k, count, start[axis], end[axis]);
            head[axis] = ends[1][axis] = part_of(k + 1, count, start[axis], end[axis]);
        }
        if (degrees) {
            vector(ends[0], tail);
            vector(ends[1], head);
        }
        for (int axis = 0; axis < axes; axis++) {
            f64 along = minus(head[axis], tail[axis]);
            f64 square = times(along, along), step = times(minus(own[axis], tail[axis]), along);
            length = axis ? plus(length, square) : square;
            dot = axis ? plus(dot, step) : step;
        }
        if (!less(ZERO, length)) length = ONE;
        dot = lower(upper(over(dot, length), ZERO), ONE);
        for (int axis = 0; axis < axes; axis++) {
            f64 along = minus(head[axis], tail[axis]);
            f64 step = minus(own[axis], plus(tail[axis], times(dot, along)));
            apart = plus(apart, times(step, step));
        }
        if (less(apart, known->least)) {
            kept = 1;
            known->least = apart;
            known->share = over(plus(whole(k), dot), whole(count));
            for (int axis = 0; axis < 2; axis++) {
                f64 along = minus(ends[1][axis], ends[0][axis]);
                known->at[axis] = plus(ends[0][axis], times(dot, along));
            }
        }
    }
    return kept;
}

/* -- CBOR ---------------------------------------------------------------------------------------- */

enum { UINT, NINT, BYTES, TEXT, ARRAY, MAP, TAG, SIMPLE, FLOAT };

typedef struct {
    int major;
    uint64_t argument;   /* a number, a count, or the bits of a float */
    const uint8_t *next; /* behind the head: where contents begin */
} item;

/* Whether m * 2^e has at most `bits` bits from 2^least up to below 2^(most + 1). */
static int fits(f64 a, int32_t bits, int32_t least, int32_t most)
{
    uint64_t m;
    int32_t length = 0, e = split(a, &m);
    if (m == 0) return 1;
    for (; !(m & 1); m >>= 1) e++;
    for (; m; m >>= 1) length++;
    return length <= bits && e >= least && e + length - 1 <= most;
}

static const char *floating(uint64_t bits, int size, item *out)
{
    static const int fraction[3] = {10, 23, 52}, exponents[3] = {31, 255, 2047};
    uint64_t m = bits & (((uint64_t)1 << fraction[size]) - 1);
    int32_t e = (int32_t)(bits >> fraction[size]) & exponents[size];
    uint64_t sign = bits >> (8 * (2 << size) - 1) << 63;
    NEED(e < exponents[size], "has a number that is not finite");
    if (e) m |= (uint64_t)1 << fraction[size];
    out->major = FLOAT;
    out->argument = rounded(sign, (e ? e : 1) - exponents[size] / 2 - fraction[size], m);
    NEED(size == 0 || !(size == 1 ? fits(out->argument, 11, -24, 15)
                                  : fits(out->argument, 24, -149, 127)),
         "has a float that is not in its shortest form");
    return NULL;
}

static const char *head_of(const uint8_t *at, size_t left, item *out)
{
    int code, size = 0;
    NEED(left--, "ends in the middle of an item");
    out->major = *at >> 5;
    code = *at++ & 31;
    out->argument = (uint64_t)code;
    out->next = at;
    if (code < 24 && out->major != SIMPLE) return NULL;
    if (out->major == SIMPLE && code >= 20 && code <= 22) return NULL;
    NEED(code >= (out->major == SIMPLE ? 25 : 24) && code < 28, "has an item of no known form");
    size = 1 << (code - 24);
    NEED(left >= (size_t)size, "ends in the middle of an item");
    for (out->argument = 0; out->next < at + size;) {
        out->argument = out->argument << 8 | *out->next++;
    }
    if (out->major == SIMPLE) return floating(out->argument, code - 25, out);
    NEED(out->argument >= (code == 24 ? 24 : (uint64_t)1 << (4 << (code - 24))),
         "has an integer that is not in its shortest form");
    return NULL;
}

static int is_text(const uint8_t *at, const uint8_t *end)
{
    while (at < end) {
        uint32_t first = *at++, more = first < 0x80 ? 0 : first < 0xe0 ? 1 : first < 0xf0 ? 2 : 3;
        uint32_t code = more ? first & (0x3fu >> more) : first;
        static const uint32_t least[4] = {0, 0x80, 0x800, 0x10000};
        if ((first >= 0x80 && first < 0xc2) || first > 0xf4 || end - at < (ptrdiff_t)more) return 0;
        for (uint32_t k = 0; k < more; k++, at++) {
            if (*at >> 6 != 2) return 0;
            code = code << 6 | (*at & 63u);
        }
        if (code < least[more] || code > 0x10ffff || (code >= 0xd800 && code < 0xe000)) return 0;
    }
    return 1;
}

static int compared(const uint8_t *a, size_t n, const uint8_t *b, size_t m)
{
    int found = memcmp(a, b, n < m ? n : m);
    return found ? found : (n > m) - (n < m);
}

/* Verifies one item and sets *at behind it; *left counts down how many there may still be. */
static const char *verified(const uint8_t **at, const uint8_t *end, int depth, uint32_t *left)
{
    item own;
    const uint8_t *before = NULL;
    size_t length = 0;
    NEED(depth <= 16, "nests too deep");
    NEED((*left)--, "has more than 1,048,576 items");
    TRY(head_of(*at, (size_t)(end - *at), &own));
    *at = own.next;
    if (own.major <= NINT || own.major >= SIMPLE) return NULL;
    if (own.major == TAG) return verified(at, end, depth + 1, left);
    NEED(own.argument <= (uint64_t)(end - *at), "ends in the middle of an item");
    if (own.major <= TEXT) {
        NEED(own.major == BYTES || is_text(*at, *at + own.argument), "has text that is not UTF-8");
        *at += own.argument;
        return NULL;
    }
    for (uint64_t k = 0; k < own.argument; k++) {
        if (own.major == MAP) {
            const uint8_t *key = *at;
            NEED(key < end && (*key >> 5 <= NINT || *key >> 5 == TEXT), "has a key that is no text");
            TRY(verified(at, end, depth + 1, left));
            NEED(!k || compared(before, length, key, (size_t)(*at - key)) < 0,
                 "has a map whose keys are not in order");
            before = key;
            length = (size_t)(*at - key);
        }
        TRY(verified(at, end, depth + 1, left));
    }
    return NULL;
}

/* Verifies that some bytes are one item. */
static const char *one_item(const uint8_t *at, const uint8_t *end)
{
    uint32_t left = MOST_ITEMS;
    TRY(verified(&at, end, 0, &left));
    NEED(at == end, "has bytes after its end");
    return NULL;
}

/* The rest reads items that were verified. */

static item read_item(const uint8_t *at)
{
    item out = {0, 0, NULL};
    (void)head_of(at, 9, &out);
    return out;
}

static const uint8_t *behind(const uint8_t *at)
{
    uint64_t open = 1;
    while (open--) {
        item own = read_item(at);
        at = own.next;
        if (own.major == BYTES || own.major == TEXT) at += own.argument;
        else if (own.major == ARRAY) open += own.argument;
        else if (own.major == MAP) open += 2 * own.argument;
        else if (own.major == TAG) open++;
    }
    return at;
}

/* The value of a key of a map; NULL where there is none. */
static const uint8_t *entry(const uint8_t *map, const char *key)
{
    item own = read_item(map);
    const uint8_t *at = own.next;
    size_t length = strlen(key);
    for (uint64_t k = 0; k < own.argument; k++) {
        item name = read_item(at);
        const uint8_t *value = behind(at);
        if (name.major == TEXT && name.argument == length && !memcmp(name.next, key, length)) {
            return value;
        }
        at = behind(value);
    }
    return NULL;
}

/* A map that has these entries and no others. */
static const char *entries_are(const uint8_t *map, const char *const *names)
{
    item own = read_item(map);
    uint64_t count = 0;
    NEED(own.major == MAP, "has a part that is no map");
    for (; names[count]; count++) {
        NEED(entry(map, names[count]), "has missing or unknown entries");
    }
    NEED(own.argument == count, "has missing or unknown entries");
    return NULL;
}

static int is_null(const uint8_t *at) { return *at == 0xf6; }
static int is_bool(const uint8_t *at) { return *at == 0xf4 || *at == 0xf5; }

static const char *string_of(const uint8_t *at, int major, optmech_bytes *out)
{
    item own = read_item(at);
    NEED(own.major == major, "has a part of another type");
    out->at = own.next;
    out->size = (size_t)own.argument;
    return NULL;
}

static const char *text_of(const uint8_t *at)
{
    optmech_bytes ignored;
    return string_of(at, TEXT, &ignored);
}

static int says(const uint8_t *at, const char *text)
{
    item own = read_item(at);
    return own.major == TEXT && own.argument == strlen(text)
        && !memcmp(own.next, text, strlen(text));
}

static const char *float_of(const uint8_t *at, f64 *out)
{
    item own = read_item(at);
    NEED(own.major == FLOAT, "has a part that is no float");
    *out = own.argument;
    return NULL;
}

static const char *length_of(const uint8_t *at, f64 *out)
{
    TRY(float_of(at, out));
    NEED(!less(*out, ZERO), "has a length below 0");
    return NULL;
}

static const char *whole_of(const uint8_t *at, uint32_t least, uint32_t most, uint32_t *out)
{
    item own = read_item(at);
    NEED(own.major == UINT && own.argument >= least && own.argument <= most,
         "has a whole number out of its range");
    *out = (uint32_t)own.argument;
    return NULL;
}

static uint64_t little(const uint8_t *at, uint32_t size)
{
    uint64_t out = 0;
    while (size--) out = out << 8 | at[size];
    return out;
}

static uint32_t word(optmech_bytes words, size_t k) { return (uint32_t)little(words.at + 4 * k, 4); }
static f64 number(optmech_bytes numbers, size_t k) { return little(numbers.at + 8 * k, 8); }

/* A typed array under tag 70 (of 4 bytes), 71 or 86 (of 8). */
static const char *array_of(const uint8_t *at, uint64_t tag, optmech_bytes *out)
{
    item own = read_item(at);
    NEED(own.major == TAG && own.argument == tag, "has an array under another tag");
    TRY(string_of(own.next, BYTES, out));
    NEED(out->size % (tag == 70 ? 4 : 8) == 0, "has an array of another length");
    for (size_t k = 0; tag == 86 && k < out->size / 8; k++) {
        NEED(size_of(number(*out, k)) < INFINITE, "has a number that is not finite");
    }
    return NULL;
}

static const char *numbers_of(const uint8_t *at, uint64_t count, optmech_bytes *out)
{
    TRY(array_of(at, 86, out));
    NEED(out->size / 8 == count, "has an array of another length");
    return NULL;
}

/* -- sorting, in the caller's memory ------------------------------------------------------------- */

typedef int (*ordering)(const void *context, uint32_t a, uint32_t b);

static void sorted(uint32_t *keys, size_t count, ordering compare, const void *context)
{
    size_t begin = count / 2, end = count;
    while (end > 1) {
        size_t root, child;
        uint32_t own;
        if (begin) begin--;
        else {
            end--;
            own = keys[end];
            keys[end] = keys[0];
            keys[0] = own;
        }
        own = keys[begin];
        for (root = begin; (child = 2 * root + 1) < end; root = child) {
            if (child + 1 < end && compare(context, keys[child], keys[child + 1]) < 0) child++;
            if (compare(context, own, keys[child]) >= 0) break;
            keys[root] = keys[child];
        }
        keys[root] = own;
    }
}

typedef struct {
    optmech_mechanism *m;
    uint32_t *words;
    size_t taken, count;
} memory;

static const char *reserved(memory *work, size_t count, uint32_t **out)
{
    if (work->taken + count > work->m->words) work->m->words = work->taken + count;
    NEED(work->taken + count <= work->count, TOO_LITTLE);
    *out = work->words + work->taken;
    return NULL;
}

/* -- labels -------------------------------------------------------------------------------------- */

static const char *label_is(const uint8_t *at, int depth)
{
    item own = read_item(at);
    if (own.major != ARRAY) {
        NEED(own.major <= NINT || own.major == TEXT || own.major >= SIMPLE, "has a label that is none");
        return NULL;
    }
    NEED(depth < 8, "has a label that is nested too deep");
    at = own.next;
    for (uint64_t k = 0; k < own.argument; k++, at = behind(at)) TRY(label_is(at, depth + 1));
    return NULL;
}

/* A number as m * 2^e with an odd m; whole and broken ones, true and false. */
static void parts_of(const item *own, uint64_t *sign, uint64_t *m, int32_t *e)
{
    *sign = own->major == NINT || (own->major == FLOAT && own->argument & SIGN);
    *e = 0;
    if (own->major == FLOAT) *e = split(own->argument, m);
    else if (own->major == SIMPLE) *m = own->argument == 21;
    else *m = own->argument + (own->major == NINT);
    if (own->major == NINT && *m == 0) {
        *m = 1;
        *e = 64;
    }
    for (; *m && !(*m & 1); *m >>= 1) ++*e;
    if (*m == 0) { *sign = 0; *e = 0; }
}

static int label_order(const uint8_t *a, const uint8_t *b)
{
    item own[2];
    int kind[2];
    own[0] = read_item(a);
    own[1] = read_item(b);
    for (int k = 0; k < 2; k++) {
        int major = own[k].major;
        kind[k] = major == ARRAY ? 3 : major == TEXT ? 2
            : major == SIMPLE && own[k].argument == 22 ? 1 : 0;
    }
    if (kind[0] != kind[1]) return kind[0] - kind[1];
    if (kind[0] == 2) {
        return compared(own[0].next, (size_t)own[0].argument, own[1].next, (size_t)own[1].argument);
    }
    if (kind[0] == 3) {
        const uint8_t *at = own[0].next, *other = own[1].next;
        if (own[0].argument != own[1].argument) return own[0].argument < own[1].argument ? -1 : 1;
        for (uint64_t k = 0; k < own[0].argument; k++, at = behind(at), other = behind(other)) {
            int found = label_order(at, other);
            if (found) return found;
        }
    }
    if (kind[0] == 0) {
        uint64_t sign, m, other_sign, n;
        int32_t e, f;
        parts_of(&own[0], &sign, &m, &e);
        parts_of(&own[1], &other_sign, &n, &f);
        if (sign != other_sign) return sign ? -1 : 1;
        if (e != f) return e < f ? -1 : 1;
        return (m > n) - (m < n);
    }
    return 0;
}

static int by_label(const void *context, uint32_t a, uint32_t b)
{
    const uint8_t *labels = context;
    return label_order(labels + a, labels + b);
}

static int by_cell(const void *context, uint32_t a, uint32_t b)
{
    const optmech_bytes *cells = context;
    uint64_t m = number(*cells, a), n = number(*cells, b);
    return (m > n) - (m < n);
}

static const char *distinct(uint32_t *keys, uint32_t count, ordering compare, const void *context)
{
    sorted(keys, count, compare, context);
    for (uint32_t k = 1; k < count; k++) {
        NEED(compare(context, keys[k - 1], keys[k]), "has a label twice");
    }
    return NULL;
}

static const char *labels_of(const uint8_t *at, optmech_places *places, memory *work)
{
    item own = read_item(at);
    uint32_t *keys;
    NEED(own.major == ARRAY && own.argument >= 1 && own.argument <= MOST_PLACES,
         "has no number of places that can be");
    places->count = own.argument;
    at = places->labels.at = own.next;
    TRY(reserved(work, (size_t)places->count, &keys));
    for (uint32_t k = 0; k < places->count; k++, at = behind(at)) {
        TRY(label_is(at, 0));
        keys[k] = (uint32_t)(at - places->labels.at);
    }
    places->labels.size = (size_t)(at - places->labels.at);
    return distinct(keys, (uint32_t)places->count, by_label, places->labels.at);
}

/* -- places -------------------------------------------------------------------------------------- */

/* Whether a cell's side is what its bounds say, up to the cosine of the machine that measured it. */
static int close_to(f64 own, f64 said, f64 cosine, f64 spare)
{
    f64 off = times(size_of(minus(own, said)), cosine);
    return !less(times(plus(times(CLOSE, cosine), spare), size_of(said)), off);
}

/* Cells over bounds are measured in km from their corner, at the middle latitude. */
static const char *bounds_of(const uint8_t *at, optmech_places *places, const f64 origin[2])
{
    optmech_bytes given;
    f64 *box = places->box, ignored, cosine, width, height;
    TRY(numbers_of(at, 4, &given));
    for (int k = 0; k < 4; k++) box[k] = number(given, (size_t)k);
    NEED(within(negative(TURN), box[0], TURN) && less(box[0], box[2]) && !less(TURN, box[2])
         && within(negative(RIGHT), box[1], RIGHT) && less(box[1], box[3]) && !less(RIGHT, box[3]),
         "has bounds that are no box of degrees");
    sines(over(plus(box[1], box[3]), TWO), &ignored, &cosine);
    width = times(times(minus(box[2], box[0]), KILOMETRES), cosine);
    height = times(minus(box[3], box[1]), KILOMETRES);
    NEED(size_of(origin[0]) == 0 && size_of(origin[1]) == 0
         && close_to(over(width, whole(places->columns)), places->cell[0], cosine, NEARLY)
         && close_to(over(height, whole(places->rows)), places->cell[1], ONE, ZERO),
         "has cells that are not those of their bounds");
    return NULL;
}

static const char *grid_of(const uint8_t *map, optmech_places *places)
{
    static const char *const names[] = {
        "kind", "rows", "columns", "cell", "origin", "unit", "bounds", NULL};
    optmech_bytes cell, origin;
    f64 corner[2];
    TRY(entries_are(map, names));
    TRY(whole_of(entry(map, "rows"), 1, MOST_PLACES, &places->rows));
    TRY(whole_of(entry(map, "columns"), 1, MOST_PLACES, &places->columns));
    NEED((uint64_t)places->rows * places->columns <= MOST_PLACES, "has too many places");
    places->count = places->rows * places->columns;
    places->dimension = 2;
    TRY(numbers_of(entry(map, "cell"), 2, &cell));
    TRY(numbers_of(entry(map, "origin"), 2, &origin));
    TRY(text_of(entry(map, "unit")));
    for (uint32_t k = 0; k < 2; k++) {
        f64 side = places->cell[k] = number(cell, k), start = corner[k] = number(origin, k);
        NEED(less(ZERO, side) && !less(FAR_AWAY, side) && !less(FAR_AWAY, size_of(start)),
             "has cells of no size, or too far");
        places->box[k] = start;
        places->box[k + 2] = plus(start, times(whole(k ? places->rows : places->columns), side));
        NEED(less(start, places->box[k + 2]), "has cells that are too small");
    }
    places->degrees = !is_null(entry(map, "bounds"));
    if (!places->degrees) return NULL;
    NEED(says(entry(map, "unit"), "km"), "has degrees in another unit than km");
    return bounds_of(entry(map, "bounds"), places, corner);
}

static const char *points_of(const uint8_t *map, optmech_places *places, memory *work)
{
    static const char *const names[] = {
        "kind", "labels", "dimension", "points", "unit", "coordinates", NULL};
    static const char *const hexagons[] = {"kind", "cells", "points", NULL};
    uint32_t *keys;
    places->dimension = 2;
    places->degrees = 1;
    if (places->kind == OPTMECH_HEXAGONS) {
        TRY(entries_are(map, hexagons));
        TRY(array_of(entry(map, "cells"), 71, &places->labels));
        NEED(places->labels.size && places->labels.size / 8 <= MOST_PLACES,
             "has no number of places that can be");
        places->count = places->labels.size / 8;
        TRY(reserved(work, (size_t)places->count, &keys));
        for (uint32_t k = 0; k < places->count; k++) keys[k] = k;
        TRY(distinct(keys, (uint32_t)places->count, by_cell, &places->labels));
    } else {
        TRY(entries_are(map, names));
        places->degrees = (uint8_t)says(entry(map, "coordinates"), "lonlat");
        NEED(places->degrees || says(entry(map, "coordinates"), "plane"),
             "has coordinates of no known kind");
        TRY(text_of(entry(map, "unit")));
        NEED(!places->degrees || says(entry(map, "unit"), "km"), "has degrees in another unit than km");
        TRY(whole_of(entry(map, "dimension"), 1, MOST_PLACES, &places->dimension));
        TRY(labels_of(entry(map, "labels"), places, work));
    }
    TRY(numbers_of(entry(map, "points"), places->dimension * places->count,
                   &places->points));
    NEED(!places->degrees || places->dimension == 2, "has degrees of another dimension");
    for (size_t k = 0; k < places->points.size / 8; k++) {
        f64 most = !places->degrees ? FAR_AWAY : k % 2 ? RIGHT : TURN;
        NEED(!less(most, size_of(number(places->points, k))), "has a place that lies nowhere");
    }
    return NULL;
}

static const char *places_of(const uint8_t *map, optmech_places *places, memory *work)
{
    static const char *const names[] = {"kind", "labels", "unit", NULL};
    static const char *const kinds[] = {"labels", "grid", "points", "h3"};
    const uint8_t *kind = read_item(map).major == MAP ? entry(map, "kind") : NULL;
    memset(places, 0, sizeof *places);
    for (places->kind = 0; places->kind < 4; places->kind++) {
        if (kind && says(kind, kinds[places->kind])) break;
    }
    NEED(places->kind < 4, "has places of no known kind");
    if (places->kind == OPTMECH_GRID) return grid_of(map, places);
    if (places->kind != OPTMECH_LABELS) return points_of(map, places, work);
    TRY(entries_are(map, names));
    TRY(text_of(entry(map, "unit")));
    return labels_of(entry(map, "labels"), places, work);
}

/* -- the whole earth ----------------------------------------------------------------------------- */

/* All ones where two numbers are equal, else 0, without a branch. */
static uint32_t equal(uint32_t a, uint32_t b)
{
    uint32_t off = a ^ b;
    return ((off | (0 - off)) >> 31) - 1;
}

/* The latitude at `part` bands from the south pole. */
static f64 latitude_of(f64 part, uint32_t bands)
{
    return minus(times(over(part, whole(bands)), STRAIGHT), RIGHT);
}

/* How many cells a band has. */
static uint32_t cells_of(uint32_t band, uint32_t bands)
{
    f64 s, c;
    sines(latitude_of(plus(whole(band), HALF), bands), &s, &c);
    return (uint32_t)-floored(negative(times(whole((int64_t)2 * bands), c)),
                              -((int64_t)2 * bands), -1);
}

/* Whether a number is that of a cell; its band, its cell, and how many there are of those. */
static int is_cell(const optmech_places *earth, uint64_t number, uint32_t out[3])
{
    if (number >= earth->count) return 0;
    out[0] = (uint32_t)(number / earth->columns);
    out[1] = (uint32_t)(number % earth->columns);
    out[2] = cells_of(out[0], earth->rows);
    return out[1] < out[2];
}

/* Longitude from 0 to 360 and latitude of the centre of a cell. */
static void centre_of(const optmech_places *earth, const uint32_t cell[3], f64 out[2])
{
    out[0] = times(over(plus(whole(cell[1]), HALF), whole(cell[2])), TURN);
    out[1] = latitude_of(plus(whole(cell[0]), HALF), earth->rows);
}

static uint64_t locate_on_earth(const optmech_places *earth, const f64 *position)
{
    uint32_t bands = earth->rows, count;
    f64 x = remainder_of(position[0]);
    int64_t band = floored(times(over(plus(position[1], RIGHT), STRAIGHT), whole(bands)), 0,
                           (int64_t)bands - 1);
    if (less(x, ZERO)) x = plus(x, TURN);
    count = cells_of((uint32_t)band, bands);
    return (uint64_t)band * earth->columns
        + (uint64_t)floored(times(over(x, TURN), whole(count)), 0, (int64_t)count - 1);
}

/* The cell that a vector points at, by comparisons with sines alone. */
static uint64_t cell_of(const optmech_places *earth, const f64 v[3])
{
    uint32_t low = 0, high = earth->rows, band, count;
    int west = less(v[1], ZERO) || (!less(ZERO, v[1]) && less(v[0], ZERO));
    f64 s, c;
    while (high - low > 1) {
        uint32_t middle = (low + high) / 2;
        sines(latitude_of(whole(middle), earth->rows), &s, &c);
        if (less(v[2], s)) high = middle;
        else low = middle;
    }
    band = low;
    low = 0;
    high = count = cells_of(band, earth->rows);
    while (high - low > 1) {
        uint32_t middle = (low + high) / 2;
        f64 angle = times(over(whole(middle), whole(count)), TURN);
        int up = west;
        sines(angle, &s, &c);
        if (west == !less(angle, STRAIGHT)) up = !less(minus(times(c, v[1]), times(s, v[0])), ZERO);
        if (up) low = middle;
        else high = middle;
    }
    return (uint64_t)band * earth->columns + low;
}

/* The report around a centre that bytes stand for: all rings are read. */
static uint64_t earth_draw(const optmech_mechanism *m, const f64 centre[2], const uint8_t *bytes)
{
    static const f64 north[2] = {ZERO, RIGHT};
    uint64_t drawn = little(bytes, 8);
    uint32_t count = (uint32_t)(m->heights.size / 8), ring = 0;
    f64 ends[2] = {ZERO, ZERO}, v[3], height, n, e, s, c, up, flat, sine, cosine, east, northward;
    for (uint32_t k = 0; k < count; k++) {
        uint64_t sum = number(m->entries, k);
        ring += 1 - (uint32_t)(((~drawn & sum) | (~(drawn ^ sum) & (drawn - sum))) >> 63);
    }
    for (uint32_t k = 0; k < count; k++) {
        uint64_t mask = equal(k, ring), after = equal(k + 1, ring);
        ends[0] |= number(m->heights, k) & (after << 32 | after);
        ends[1] |= number(m->heights, k) & (mask << 32 | mask);
    }
    if (ring == count) {
        ends[0] = ZERO;
        ends[1] = TWO;
        centre = north;
    }
    height = over(whole((int64_t)little(bytes + 8, 6)), whole((int64_t)1 << 48));
    height = plus(ends[0], times(height, minus(ends[1], ends[0])));
    sine = root(times(height, minus(TWO, height)));
    cosine = minus(ONE, height);
    sines(over(times(whole((int64_t)little(bytes + 14, 5)), TURN), whole((int64_t)1 << 40)), &east,
          &northward);
    n = times(sine, northward);
    e = times(sine, east);
    sines(centre[0], &s, &c);
    sines(centre[1], &up, &flat);
    v[0] = minus(minus(times(cosine, times(flat, c)), times(n, times(up, c))), times(e, s));
    v[1] = plus(minus(times(cosine, times(flat, s)), times(n, times(up, s))), times(e, c));
    v[2] = plus(times(cosine, up), times(n, flat));
    return cell_of(&m->secrets, v);
}

/* A longitude up to 360 degrees as one up to 180. */
static f64 on_map(f64 x)
{
    if (!less(STRAIGHT, size_of(x))) return x;
    return x & SIGN ? plus(x, TURN) : minus(x, TURN);
}

int optmech_coordinate(const optmech_places *places, uint64_t place, uint32_t axis, f64 *out)
{
    const f64 *box = places->box;
    uint32_t step, count, cell[3];
    f64 middle, found;
    if (place >= places->count || axis >= places->dimension) return OPTMECH_ARGUMENT;
    if (places->kind == OPTMECH_EARTH) {
        f64 centre[2];
        if (!is_cell(places, place, cell)) return OPTMECH_ARGUMENT;
        centre_of(places, cell, centre);
        found = centre[axis];
    } else if (places->kind != OPTMECH_GRID) {
        found = number(places->points, (size_t)place * places->dimension + axis);
    } else {
        step = (uint32_t)(axis ? place / places->columns : place % places->columns);
        count = axis ? places->rows : places->columns;
        middle = plus(whole(step), HALF);
        found = plus(box[axis], places->degrees
                     ? times(over(middle, whole(count)), minus(box[axis + 2], box[axis]))
                     : times(middle, places->cell[axis]));
    }
    *out = places->degrees && axis == 0 ? on_map(found) : found;
    return OPTMECH_OK;
}

static int locate_in_grid(const optmech_mechanism *m, const f64 *position, uint64_t *place)
{
    const optmech_places *places = &m->secrets;
    const f64 *box = places->box;
    f64 at[2] = {position[0], position[1]};
    int64_t column, row;
    if (places->degrees) at[0] = turned(at[0], box[0], box[2]);
    if (m->nearest) {
        int inside = within(box[0], at[0], box[2]) && within(box[1], at[1], box[3]);
        if (places->degrees) {
            const f64 ring[5][2] = {{box[0], box[1]}, {box[2], box[1]}, {box[2], box[3]},
                                    {box[0], box[3]}, {box[0], box[1]}};
            foot found = {INFINITE, {ZERO, ZERO}, ZERO};
            for (int k = 0; k < 4; k++) nearer(&found, position, ring[k], ring[k + 1], 1);
            for (int k = 0; k < 2; k++) at[k] = inside ? at[k] : found.at[k];
        }
        for (int k = 0; k < 2; k++) at[k] = lower(upper(at[k], box[k]), box[k + 2]);
    }
    if (!within(box[0], at[0], box[2]) || !within(box[1], at[1], box[3])) return OPTMECH_OUTSIDE;
    column = floored(times(over(minus(at[0], box[0]), minus(box[2], box[0])),
                           whole(places->columns)), 0, places->columns - 1);
    row = floored(times(over(minus(at[1], box[1]), minus(box[3], box[1])), whole(places->rows)), 0,
                  places->rows - 1);
    *place = (uint64_t)(row * places->columns + column);
    return OPTMECH_OK;
}

/* -- meshes -------------------------------------------------------------------------------------- */

static f64 coordinate(const optmech_mechanism *m, uint32_t vertex, int axis)
{
    if (m->roads == 1) return axis ? ZERO : number(m->vertices, vertex);
    return number(m->vertices, 2 * (size_t)vertex + (size_t)axis);
}

/* An edge's number is that of its first corner: three of triangle t from 3 t on. */
static uint32_t start_of(const optmech_mechanism *m, uint32_t edge) { return word(m->corners, edge); }

static uint32_t end_of(const optmech_mechanism *m, uint32_t edge)
{
    return word(m->corners, edge % 3 == 2 ? edge - 2 : edge + 1);
}

static int by_edge(const void *context, uint32_t a, uint32_t b)
{
    const optmech_mechanism *m = context;
    uint32_t p = start_of(m, a), q = start_of(m, b);
    if (p == q) { p = end_of(m, a); q = end_of(m, b); }
    return (p > q) - (p < q);
}

/* The place among sorted edges of the first that is not before the one from start to end. */
static uint32_t found_at(const optmech_mechanism *m, const uint32_t *edges, uint32_t count,
                         uint32_t start, uint32_t end)
{
    uint32_t low = 0, high = count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2, p = start_of(m, edges[middle]);
        if (p < start || (p == start && end_of(m, edges[middle]) < end)) low = middle + 1;
        else high = middle;
    }
    return low;
}

#define LIMBS 38 /* bits from 2^-1074 to beyond 2^101, and a sign */

/* a - b exactly, as a size and whether it is below 0; both at most 2^100. */
static int difference(f64 a, f64 b, uint32_t out[LIMBS])
{
    const f64 both[2] = {a, b};
    uint32_t limbs[2][LIMBS];
    uint64_t carry = 0;
    int below = less(a, b), first = size_of(a) < size_of(b);
    memset(limbs, 0, sizeof limbs);
    for (int k = 0; k < 2; k++) {
        uint64_t m;
        int32_t e = split(both[k], &m) + 1074;
        uint64_t low = (m & 0xffffffff) << e % 32, high = (m >> 32) << e % 32;
        limbs[k][e / 32] = (uint32_t)low;
        high += low >> 32;
        limbs[k][e / 32 + 1] = (uint32_t)high;
        limbs[k][e / 32 + 2] = (uint32_t)(high >> 32);
    }
    for (int k = 0; k < LIMBS; k++) {
        uint64_t large = limbs[first][k], small = limbs[!first][k];
        carry += (a ^ b) & SIGN ? large + small : large - small;
        out[k] = (uint32_t)carry;
        carry = (a ^ b) & SIGN ? carry >> 32 : 0 - (carry >> 63);
    }
    return below;
}

static int area_of(f64 a, f64 b, f64 c, f64 d, uint32_t out[2 * LIMBS])
{
    uint32_t one[LIMBS], other[LIMBS];
    int below = difference(a, b, one) != difference(c, d, other);
    memset(out, 0, 2 * LIMBS * sizeof *out);
    for (int i = 0; i < LIMBS; i++) {
        uint64_t carry = 0;
        if (!one[i]) continue;
        for (int j = 0; j < LIMBS; j++) {
            carry += (uint64_t)one[i] * other[j] + out[i + j];
            out[i + j] = (uint32_t)carry;
            carry >>= 32;
        }
        out[i + LIMBS] = (uint32_t)carry;
    }
    return below;
}

/* Whether the way over three vertices turns left (1), right (-1), or not (0): decided exactly. */
static int turn_of(const optmech_mechanism *m, uint32_t a, uint32_t b, uint32_t c)
{
    uint32_t one[2 * LIMBS], other[2 * LIMBS];
    f64 x = coordinate(m, b, 0), y = coordinate(m, b, 1);
    int below = area_of(x, coordinate(m, a, 0), coordinate(m, c, 1), y, one);
    int other_below = area_of(y, coordinate(m, a, 1), coordinate(m, c, 0), x, other);
    int k = 2 * LIMBS - 1, some = 0;
    /* from the largest limb down to the first that differs: GCC 12 at -O2 makes wrong vectors of a
     * loop over all of them */
    while (k >= 0 && one[k] == other[k]) some |= one[k--] != 0;
    if (k < 0) return some && below != other_below ? (below ? -1 : 1) : 0;
    if (one[k] > other[k]) return below ? -1 : 1;
    return other_below ? 1 : -1;
}

static int sign_of(f64 a, f64 b) { return less(a, b) - less(b, a); }

static int upward(const optmech_mechanism *m, uint32_t edge)
{
    uint32_t a = start_of(m, edge), b = end_of(m, edge);
    int rising = sign_of(coordinate(m, a, 1), coordinate(m, b, 1));
    return rising > 0 || (rising == 0 && less(coordinate(m, a, 0), coordinate(m, b, 0)));
}

/* Whether the border is one convex ring; `ring` are its edges in the order of their starts. */
static const char *convex(const optmech_mechanism *m, const uint32_t *ring, uint32_t count)
{
    uint32_t edge = ring[0], steps = 0, turns = 0;
    for (uint32_t k = 1; k < count; k++) {
        NEED(start_of(m, ring[k - 1]) != start_of(m, ring[k]), "has a border that meets itself");
    }
    do {
        uint32_t a = start_of(m, edge), b = end_of(m, edge), next, c;
        uint32_t place = found_at(m, ring, count, b, 0);
        int turn;
        NEED(place < count && start_of(m, ring[place]) == b, "has a border that is not one ring");
        next = ring[place];
        c = end_of(m, next);
        turn = turn_of(m, a, b, c);
        NEED(turn >= 0 && (turn || (sign_of(coordinate(m, a, 0), coordinate(m, b, 0))
                                    == sign_of(coordinate(m, b, 0), coordinate(m, c, 0))
                                    && sign_of(coordinate(m, a, 1), coordinate(m, b, 1))
                                    == sign_of(coordinate(m, b, 1), coordinate(m, c, 1)))),
             "has a border that is not convex");
        turns += (uint32_t)(upward(m, next) && !upward(m, edge));
        edge = next;
    } while (++steps <= count && edge != ring[0]);
    NEED(steps == count, "has a border that is not one ring");
    NEED(turns == 1, "has a border that goes around more than once");
    return NULL;
}

/* The row of the control point of a triangle that is this often each of its corners. */
static uint32_t row_at(const optmech_mechanism *m, uint32_t triangle, const uint32_t counts[3])
{
    uint32_t d = m->degree, two = counts[2];
    uint32_t at = two * (d + 1) - two * (two - 1) / 2 + counts[1];
    return word(m->row_of, (size_t)triangle * ((d + 1) * (d + 2) / 2) + at);
}

/* The row of the control point on an edge, `share` parts of `degree` towards its end. */
static uint32_t row_on(const optmech_mechanism *m, uint32_t edge, uint32_t share)
{
    uint32_t counts[3] = {0, 0, 0};
    counts[edge % 3] = m->degree - share;
    counts[(edge + 1) % 3] += share;
    return row_at(m, edge / 3, counts);
}

/* Whether triangles tile a convex region, and control points have one row each; keeps the border. */
static const char *tiles(optmech_mechanism *m, memory *work)
{
    uint32_t count = 3 * m->triangles, vertices = (uint32_t)(m->vertices.size / 16), *edges, *border;
    uint32_t known = 0;
    for (uint32_t t = 0; t < m->triangles; t++) {
        NEED(turn_of(m, start_of(m, 3 * t), start_of(m, 3 * t + 1), start_of(m, 3 * t + 2)) > 0,
             "has a triangle without an area, or clockwise");
    }
    TRY(reserved(work, 2 * (size_t)count, &edges));
    border = edges + count;
    for (uint32_t k = 0; k < count; k++) edges[k] = k;
    sorted(edges, count, by_edge, m);
    for (uint32_t k = 0; k < count; k++) {
        uint32_t start = start_of(m, edges[k]);
        NEED(start == known || (k && start == known + 1), "has a vertex in no triangle");
        known = start;
        if (!k || start_of(m, edges[k - 1]) != start) continue;
        NEED(by_edge(m, edges[k - 1], edges[k]) != 0, "has two triangles on one side of an edge");
        NEED(row_on(m, edges[k - 1], 0) == row_on(m, edges[k], 0), "has a control point with two rows");
    }
    NEED(known + 1 == vertices, "has a vertex in no triangle");
    for (uint32_t edge = 0; edge < count; edge++) {
        uint32_t a = start_of(m, edge), b = end_of(m, edge), place = found_at(m, edges, count, b, a);
        if (place < count && start_of(m, edges[place]) == b && end_of(m, edges[place]) == a) {
            for (uint32_t k = 1; k < m->degree; k++) {
                NEED(row_on(m, edge, k) == row_on(m, edges[place], m->degree - k),
                     "has a control point with two rows");
            }
            continue;
        }
        border[m->border++] = edge;
    }
    NEED(m->border, "has no border");
    /* only the border is kept; the ring is the border again, by its starts */
    memmove(edges, border, m->border * sizeof *border);
    m->edges = edges;
    work->taken += m->border;
    edges += m->border;
    memcpy(edges, m->edges, m->border * sizeof *edges);
    sorted(edges, m->border, by_edge, m);
    return convex(m, edges, m->border);
}

/* Whether degrees of a box say something of distances. */
static const char *mapped(const f64 box[4])
{
    f64 top = upper(size_of(box[1]), size_of(box[3])), side = upper(size_of(box[0]), size_of(box[2]));
    f64 least = within(box[1], ZERO, box[3]) ? ZERO : lower(size_of(box[1]), size_of(box[3]));
    f64 across, along, s, c, curvature;
    NEED(!less(TURN, side) && !less(POLEWARD, top) && less(minus(box[2], box[0]), STRAIGHT),
         "has a region too large for a map of degrees");
    across = times(times(minus(box[2], box[0]), RADIAN), cosine_of(times(least, RADIAN)));
    along = times(minus(box[3], box[1]), RADIAN);
    sines(top, &s, &c);
    s = over(s, c);
    curvature = plus(ONE, times(times(s, s), CURVED));
    NEED(less(times(curvature, plus(times(across, across), times(along, along))), NINE),
         "has a region too large for a map of degrees");
    return NULL;
}

/* Twice the area of a triangle, in floats. */
static f64 area_in_floats(const f64 a[2], const f64 b[2], const f64 c[2])
{
    return minus(times(minus(b[0], a[0]), minus(c[1], a[1])),
                 times(minus(b[1], a[1]), minus(c[0], a[0])));
}

static void corners_of(const optmech_mechanism *m, uint32_t t, f64 out[3][2])
{
    for (uint32_t k = 0; k < 3; k++) {
        uint32_t vertex = start_of(m, 3 * t + k);
        for (int axis = 0; axis < 2; axis++) out[k][axis] = coordinate(m, vertex, axis);
    }
}

static const char *mesh_of(const uint8_t *map, optmech_mechanism *m, memory *work)
{
    static const char *const names[] = {
        "vertices", "triangles", "degree", "rows", "unit", "coordinates", NULL};
    uint32_t degree;
    size_t vertices;
    TRY(entries_are(map, names));
    m->secrets.degrees = (uint8_t)says(entry(map, "coordinates"), "lonlat");
    NEED(m->secrets.degrees || says(entry(map, "coordinates"), "plane"),
         "has coordinates of no known kind");
    TRY(text_of(entry(map, "unit")));
    NEED(!m->secrets.degrees || says(entry(map, "unit"), "km"), "has degrees in another unit than km");
    TRY(whole_of(entry(map, "degree"), 1, 6, &degree));
    m->degree = (uint8_t)degree;
    TRY(array_of(entry(map, "vertices"), 86, &m->vertices));
    TRY(array_of(entry(map, "triangles"), 70, &m->corners));
    TRY(array_of(entry(map, "rows"), 70, &m->row_of));
    vertices = m->vertices.size / 16;
    NEED(m->vertices.size % 16 == 0 && m->corners.size % 12 == 0 && m->corners.size
         && m->corners.size / 12 <= MOST_PLACES, "has no triangles of vertices");
    m->triangles = (uint32_t)(m->corners.size / 12);
    NEED(m->row_of.size / 4 == (uint64_t)m->triangles * ((degree + 1) * (degree + 2) / 2),
         "has another number of rows than control points");
    for (uint32_t k = 0; k < 3 * m->triangles; k++) {
        NEED(word(m->corners, k) < vertices, "has a corner that is no vertex");
    }
    for (size_t k = 0; k < 2 * vertices; k++) {
        f64 value = number(m->vertices, k);
        f64 *low = &m->box[k % 2], *high = &m->box[k % 2 + 2];
        NEED(!less(FAR_AWAY, size_of(value)), "has a vertex that is too far");
        *low = k < 2 ? value : lower(*low, value);
        *high = k < 2 ? value : upper(*high, value);
    }
    TRY(tiles(m, work));
    for (uint32_t t = 0; t < m->triangles; t++) {
        f64 corner[3][2];
        corners_of(m, t, corner);
        NEED(less(ZERO, area_in_floats(corner[0], corner[1], corner[2])),
             "has a triangle without an area in floats");
    }
    return m->secrets.degrees ? mapped(m->box) : NULL;
}

/* Segments are numbered in pairs of ends, of which the lower one counts first. */
static int by_ends(const void *context, uint32_t a, uint32_t b)
{
    const optmech_mechanism *m = context;
    uint32_t p[2], q[2];
    for (uint32_t k = 0; k < 2; k++) {
        p[k] = word(m->corners, 2 * a + k);
        q[k] = word(m->corners, 2 * b + k);
    }
    if (p[0] > p[1]) { uint32_t last = p[0]; p[0] = p[1]; p[1] = last; }
    if (q[0] > q[1]) { uint32_t last = q[0]; q[0] = q[1]; q[1] = last; }
    if (p[0] != q[0]) return (p[0] > q[0]) - (p[0] < q[0]);
    return (p[1] > q[1]) - (p[1] < q[1]);
}

static uint32_t root_of(uint32_t *above, uint32_t vertex)
{
    while (above[vertex] != vertex) vertex = above[vertex] = above[above[vertex]];
    return vertex;
}

/* Whether segments are a line, or connected and all different, and vertices have one row each. */
static const char *connected(optmech_mechanism *m, uint32_t vertices, memory *work)
{
    uint32_t *above, *row, *order, joined = 0, none = (uint32_t)-1;
    TRY(reserved(work, 2 * (size_t)vertices + m->triangles, &above));
    row = above + vertices;
    order = row + vertices;
    for (uint32_t v = 0; v < vertices; v++) { above[v] = v; row[v] = none; }
    for (uint32_t k = 0; k < m->triangles; k++) {
        uint32_t a = word(m->corners, 2 * k), b = word(m->corners, 2 * k + 1);
        NEED(a != b, "has a segment that joins a vertex with itself");
        NEED(m->roads == 2 || (a == k && b == k + 1 && less(coordinate(m, a, 0), coordinate(m, b, 0))),
             "is no line through increasing numbers");
        order[k] = k;
        for (uint32_t end = 0; end < 2; end++) {
            uint32_t vertex = end ? b : a, own = word(m->row_of, 2 * (size_t)k + end);
            NEED(row[vertex] == none || row[vertex] == own, "has a vertex with two rows");
            row[vertex] = own;
        }
        a = root_of(above, a);
        b = root_of(above, b);
        joined += a != b;
        above[a] = b;
    }
    NEED(joined + 1 == vertices, "has a vertex that cannot be reached along the roads");
    sorted(order, m->triangles, by_ends, m);
    for (uint32_t k = 1; k < m->triangles; k++) {
        NEED(by_ends(m, order[k - 1], order[k]) != 0, "has two segments between the same vertices");
    }
    return NULL;
}

static const char *roads_of(const uint8_t *map, optmech_mechanism *m, memory *work)
{
    static const char *const names[] = {
        "vertices", "dimension", "segments", "lengths", "rows", "unit", "coordinates", NULL};
    const uint8_t *lengths;
    optmech_bytes length = {NULL, 0};
    uint32_t dimension;
    size_t vertices;
    TRY(entries_are(map, names));
    lengths = entry(map, "lengths");
    m->secrets.degrees = (uint8_t)says(entry(map, "coordinates"), "lonlat");
    NEED(m->secrets.degrees || says(entry(map, "coordinates"), "plane"),
         "has coordinates of no known kind");
    TRY(text_of(entry(map, "unit")));
    TRY(whole_of(entry(map, "dimension"), 1, 2, &dimension));
    NEED(!m->secrets.degrees || (dimension == 2 && says(entry(map, "unit"), "km")),
         "has degrees in another unit than km, or of one dimension");
    m->roads = (uint8_t)dimension;
    m->degree = 1;
    TRY(array_of(entry(map, "vertices"), 86, &m->vertices));
    TRY(array_of(entry(map, "segments"), 70, &m->corners));
    TRY(array_of(entry(map, "rows"), 70, &m->row_of));
    vertices = m->vertices.size / (8 * dimension);
    NEED(m->vertices.size % (8 * dimension) == 0 && m->corners.size % 8 == 0 && m->corners.size
         && m->corners.size / 8 <= MOST_PLACES, "has no segments of vertices");
    m->triangles = (uint32_t)(m->corners.size / 8);
    NEED(vertices <= m->triangles + 1, "has a vertex that cannot be reached along the roads");
    NEED(m->row_of.size == m->corners.size, "has another number of rows than ends");
    for (uint32_t k = 0; k < 2 * m->triangles; k++) {
        NEED(word(m->corners, k) < vertices, "has an end that is no vertex");
    }
    for (uint32_t v = 0; v < vertices; v++) {
        for (int axis = 0; axis < 2; axis++) {
            f64 value = coordinate(m, v, axis), *low = &m->box[axis], *high = &m->box[axis + 2];
            NEED(!less(FAR_AWAY, size_of(value)), "has a vertex that is too far");
            NEED(!m->secrets.degrees || !less(axis ? RIGHT : TURN, size_of(value)),
                 "has a vertex that is no longitude and latitude");
            *low = v ? lower(*low, value) : value;
            *high = v ? upper(*high, value) : value;
        }
    }
    NEED(is_null(lengths) == (dimension == 1), "has lengths that are not those of roads");
    if (!is_null(lengths)) {
        TRY(array_of(lengths, 86, &length));
        NEED(length.size == 8 * (size_t)m->triangles, "has another number of lengths than segments");
    }
    TRY(connected(m, (uint32_t)vertices, work));
    for (uint32_t k = 0; k < m->triangles; k++) {
        f64 own = dimension == 2 ? number(length, k) : minus(coordinate(m, k + 1, 0), coordinate(m, k, 0));
        NEED(less(ZERO, own), "has a segment without a length");
        m->longest = upper(m->longest, own);
    }
    return NULL;
}

/* The first triangle whose least weight is largest, that weight, and the first two weights. */
static f64 triangle_of(const optmech_mechanism *m, const f64 at[2], uint32_t *triangle, f64 share[2])
{
    f64 best = ZERO;
    for (uint32_t t = 0; t < m->triangles; t++) {
        f64 corner[3][2], to[3][2], side[3], area, least;
        corners_of(m, t, corner);
        for (int k = 0; k < 6; k++) to[k / 2][k % 2] = minus(corner[k / 2][k % 2], at[k % 2]);
        for (int k = 0; k < 3; k++) {
            const f64 *v = to[(k + 1) % 3], *w = to[(k + 2) % 3];
            side[k] = minus(times(v[0], w[1]), times(v[1], w[0]));
        }
        area = area_in_floats(corner[0], corner[1], corner[2]);
        least = over(lower(lower(side[0], side[1]), side[2]), area);
        if (t == 0 || less(best, least)) {
            best = least;
            *triangle = t;
            share[0] = over(side[0], area);
            share[1] = over(side[1], area);
        }
    }
    return best;
}

static void ends_of(const optmech_mechanism *m, uint32_t edge, f64 start[2], f64 end[2])
{
    uint32_t a = m->roads ? word(m->corners, 2 * edge) : start_of(m, edge);
    uint32_t b = m->roads ? word(m->corners, 2 * edge + 1) : end_of(m, edge);
    for (int axis = 0; axis < 2; axis++) {
        start[axis] = coordinate(m, a, axis);
        end[axis] = coordinate(m, b, axis);
    }
}

/* The segment next to a position, the weights of its ends, and the share of the way along it. */
static int beside(const optmech_mechanism *m, const f64 position[2], int nearest, f64 *share,
                  uint32_t *segment, uint32_t weights[3])
{
    f64 own[2] = {position[0], m->roads == 2 ? position[1] : ZERO}, x = own[0];
    foot found = {INFINITE, {ZERO, ZERO}, ZERO};
    if (!is_position(own, 2, m->secrets.degrees)) return OPTMECH_ARGUMENT;
    if (m->secrets.degrees) x = turned(x, m->box[0], m->box[2]);
    if (!nearest && !(within(m->box[0], x, m->box[2]) && within(m->box[1], own[1], m->box[3]))) {
        return OPTMECH_OUTSIDE;
    }
    for (uint32_t k = 0; k < m->triangles; k++) {
        f64 start[2], end[2];
        ends_of(m, k, start, end);
        if (nearer(&found, own, start, end, m->secrets.degrees)) *segment = k;
    }
    *share = found.share;
    weights[1] = (uint32_t)floored(times(found.share, whole(UNIT)), 0, UNIT);
    weights[0] = UNIT - weights[1];
    weights[2] = 0;
    return OPTMECH_OK;
}

/* Where a position is looked up, and its weights there: on the border, where it lies outside and that
 * is not refused. */
static int led(const optmech_mechanism *m, const f64 position[2], int nearest, f64 at[2],
               uint32_t *triangle, uint32_t weights[3])
{
    const f64 *box = m->box;
    f64 share[2] = {ZERO, ZERO}, least;
    int inside;
    if (IS_MESH(m) && m->roads) return beside(m, position, nearest, at, triangle, weights);
    if (!IS_MESH(m) || !is_position(position, 2, m->secrets.degrees)) return OPTMECH_ARGUMENT;
    at[0] = m->secrets.degrees ? turned(position[0], box[0], box[2]) : position[0];
    at[1] = position[1];
    least = triangle_of(m, at, triangle, share);
    inside = within(box[0], at[0], box[2]) && within(box[1], at[1], box[3])
        && !less(least, TOLERANCE);
    if (!inside && !nearest) return OPTMECH_OUTSIDE;
    if (nearest) {
        foot found = {INFINITE, {ZERO, ZERO}, ZERO};
        for (uint32_t k = 0; k < m->border; k++) {
            f64 start[2], end[2];
            ends_of(m, m->edges[k], start, end);
            (void)nearer(&found, position, start, end, m->secrets.degrees);
        }
        for (int axis = 0; axis < 2; axis++) at[axis] = inside ? at[axis] : found.at[axis];
        (void)triangle_of(m, at, triangle, share);
    }
    weights[0] = (uint32_t)floored(times(share[0], whole(UNIT)), 0, UNIT);
    weights[1] = (uint32_t)floored(times(share[1], whole(UNIT)), 0, UNIT - (int64_t)weights[0]);
    weights[2] = UNIT - weights[0] - weights[1];
    return OPTMECH_OK;
}

int optmech_weights(const optmech_mechanism *m, const f64 position[2], uint32_t *triangle,
                    uint32_t weights[3])
{
    f64 at[2];
    return led(m, position, m->nearest, at, triangle, weights);
}

/* -- the lattice where reports repeat ------------------------------------------------------------ */

/* The largest epsilon per distance of a promise at every point. */
static f64 rate_of(const uint8_t *promises)
{
    item list = read_item(promises);
    const uint8_t *at = list.next;
    f64 rate = ZERO;
    for (uint64_t k = 0; k < list.argument; k++, at = behind(at)) {
        const uint8_t *epsilon = entry(at, "epsilon");
        if (says(entry(at, "scope"), "every point") && !is_null(entry(at, "measure")) && !is_null(epsilon)) {
            rate = upper(rate, read_item(epsilon).argument);
        }
    }
    return rate;
}

/* Whether the corners of the box around a mesh are vertices. */
static int is_box(const optmech_mechanism *m)
{
    uint32_t found = 0;
    for (uint32_t v = 0; v < m->vertices.size / 16; v++) {
        for (uint32_t k = 0; k < 4; k++) {
            int x = sign_of(coordinate(m, v, 0), m->box[k & 1 ? 2 : 0]);
            int y = sign_of(coordinate(m, v, 1), m->box[k & 2 ? 3 : 1]);
            if (!x && !y) found |= 1u << k;
        }
    }
    return found == 15;
}

/* By how much a point of the border that is taken may be farther away than the nearest. */
static f64 farther(const optmech_mechanism *m)
{
    f64 wide = ZERO;
    for (uint32_t k = 0; k < m->border; k++) {
        f64 start[2], end[2];
        uint32_t count;
        ends_of(m, m->edges[k], start, end);
        count = parts_in(start, end);
        for (uint32_t part = 0; part < count; part++) {
            f64 sum = ZERO;
            for (int axis = 0; axis < 2; axis++) {
                f64 from = part_of(part, count, start[axis], end[axis]);
                f64 to = part_of(part + 1, count, start[axis], end[axis]);
                sum = plus(sum, size_of(minus(to, from)));
            }
            wide = upper(wide, sum);
        }
    }
    wide = times(wide, RADIAN);
    return times(over(times(wide, wide), whole(4)), RADIUS);
}

static int64_t index_of(const optmech_mechanism *m, f64 at, int axis)
{
    return floored(plus(over(minus(at, m->box[axis]), m->step[axis]), HALF), 0, MOST_POINTS);
}

/* The lattice of docs/sticky.md; none where no epsilon is stated, or it has too many points. */
static void lattice_of(optmech_mechanism *m, f64 rate)
{
    f64 slack, diagonal, side, more = ZERO;
    const f64 *box = m->box;
    int64_t columns, rows;
    if (!less(ZERO, rate)) return;
    slack = over(TENTH, rate);
    if (m->roads) {
        f64 parts = over(m->longest, slack);
        if (!less(parts, whole(UNIT))) return;
        m->across = (uint64_t)-floored(negative(parts), -UNIT, -1);
        m->slack = times(over(m->longest, whole((int64_t)m->across)), LONGER);
        m->secrets.count = m->vertices.size / (8 * m->roads) + m->triangles * (m->across - 1);
        return;
    }
    if (m->secrets.degrees) slack = lower(slack, RIGHT);
    diagonal = slack;
    if (!is_box(m)) {
        if (m->secrets.degrees) more = farther(m);
        diagonal = upper(minus(over(slack, TWO), more), over(slack, whole(4)));
        slack = times(TWO, plus(diagonal, more));
    }
    side = over(times(SHORT, diagonal), DIAGONAL);
    m->step[0] = m->step[1] = side;
    if (m->secrets.degrees) {
        f64 s, c, near = lower(size_of(box[1]), size_of(box[3]));
        sines(within(box[1], ZERO, box[3]) ? ZERO : near, &s, &c);
        m->step[0] = over(side, times(KILOMETRES, c));
        m->step[1] = over(side, KILOMETRES);
    }
    columns = index_of(m, box[2], 0) + 1;
    rows = index_of(m, box[3], 1) + 1;
    if (columns > (MOST_POINTS - 1) / rows) return;
    m->slack = slack;
    m->across = (uint64_t)columns;
    m->secrets.count = (uint64_t)(columns * rows);
}

static int locate_on_lattice(const optmech_mechanism *m, const f64 position[2], uint64_t *place)
{
    uint32_t triangle = 0, weights[3];
    f64 at[2];
    int found = m->secrets.count ? led(m, position, m->nearest, at, &triangle, weights)
        : OPTMECH_ARGUMENT;
    if (found == OPTMECH_OK && m->roads) {
        int64_t parts = (int64_t)m->across;
        uint64_t step = (uint64_t)floored(plus(times(at[0], whole(parts)), HALF), 0, parts);
        *place = m->vertices.size / (8 * m->roads) + triangle * (m->across - 1) + step - 1;
        if (step == 0 || step == m->across) *place = word(m->corners, 2 * triangle + (step > 0));
    } else if (found == OPTMECH_OK) {
        *place = (uint64_t)index_of(m, at[1], 1) * m->across + (uint64_t)index_of(m, at[0], 0);
    }
    return found;
}

/* Triangle and weights of a point of the lattice: of the border's next to it, where it lies outside. */
static void lattice_weights(const optmech_mechanism *m, uint64_t place, uint32_t *triangle,
                            uint32_t weights[3])
{
    const uint64_t index[2] = {place % m->across, place / m->across};
    f64 point[2], at[2];
    if (m->roads) {
        uint64_t vertices = m->vertices.size / (8 * m->roads), step = 0;
        weights[1] = weights[2] = 0;
        if (place < vertices) {
            uint32_t k = 2 * m->triangles;
            while (k--) if (word(m->corners, k) == place) weights[1] = k;
            *triangle = weights[1] / 2;
            weights[1] = weights[1] % 2 * UNIT;
        } else {
            *triangle = (uint32_t)((place - vertices) / (m->across - 1));
            step = (place - vertices) % (m->across - 1) + 1;
            weights[1] = (uint32_t)(step * UNIT / m->across);
        }
        weights[0] = UNIT - weights[1];
        return;
    }
    for (int axis = 0; axis < 2; axis++) {
        point[axis] = plus(m->box[axis], times(whole((int64_t)index[axis]), m->step[axis]));
        point[axis] = lower(upper(point[axis], m->box[axis]), m->box[axis + 2]);
    }
    (void)led(m, point, 1, at, triangle, weights);
}

int optmech_locate(const optmech_mechanism *m, const f64 *position, uint64_t *place)
{
    const optmech_places *places = &m->secrets;
    uint32_t dimension = places->dimension, best = 0;
    f64 own[3] = {ZERO, ZERO, ZERO}, least = INFINITE, limit = m->reach;
    if (IS_MESH(m)) return locate_on_lattice(m, position, place);
    if (!dimension || !is_position(position, dimension, places->degrees)) return OPTMECH_ARGUMENT;
    if (IS_EARTH(m)) {
        *place = locate_on_earth(places, position);
        return OPTMECH_OK;
    }
    if (places->kind == OPTMECH_GRID) return locate_in_grid(m, position, place);
    if (places->degrees) {
        f64 ignored;
        vector(position, own);
        sines(over(lower(limit, STRAIGHT), TWO), &limit, &ignored);
        limit = times(TWO, limit);
    }
    for (uint32_t k = 0; k < places->count; k++) {
        f64 apart = ZERO, there[3];
        if (places->degrees) {
            const f64 point[2] = {number(places->points, 2 * (size_t)k),
                                  number(places->points, 2 * (size_t)k + 1)};
            vector(point, there);
        }
        for (uint32_t axis = 0; axis < (places->degrees ? 3 : dimension); axis++) {
            f64 step = places->degrees ? minus(own[axis], there[axis])
                : minus(position[axis], number(places->points, (size_t)k * dimension + axis));
            apart = plus(apart, times(step, step));
        }
        if (less(apart, least)) { least = apart; best = k; }
    }
    if (m->limited && !m->nearest && less(times(limit, limit), least)) return OPTMECH_OUTSIDE;
    *place = best;
    return OPTMECH_OK;
}

/* -- draws --------------------------------------------------------------------------------------- */

/* What a list of numbers holds at a place: all of it is read. */
static uint32_t kept_of(optmech_bytes list, uint32_t place)
{
    uint32_t found = 0;
    for (uint32_t k = 0; k < list.size / 4; k++) found |= word(list, k) & equal(k, place);
    return found;
}

static uint32_t row_draw(const optmech_mechanism *m, uint32_t row, const uint8_t *bytes)
{
    uint64_t drawn = little(bytes, m->bits / 8u), sum = 0;
    uint32_t reached = 0;
    for (uint32_t c = 0; c < m->columns; c++) {
        for (uint32_t r = 0; r < m->rows; r++) {
            const uint8_t *at = m->entries.at + ((size_t)r * m->columns + c) * m->width;
            uint64_t mask = equal(r, row);
            sum += little(at, m->width) & (mask << 32 | mask);
        }
        reached += 1 - (uint32_t)((drawn - sum) >> 63);
    }
    return word(m->column, reached);
}

/* Whether a number is that of a place. */
static int is_place(const optmech_mechanism *m, uint64_t place)
{
    uint32_t cell[3];
    return place < m->secrets.count && (!IS_EARTH(m) || is_cell(&m->secrets, place, cell));
}

/* The report of a mesh at a triangle and weights. */
static uint32_t mesh_draw(const optmech_mechanism *m, uint32_t triangle, const uint32_t weights[3],
                          const uint8_t *bytes)
{
    uint32_t one = 0, two = 0, d = m->degree;
    for (uint32_t k = 0; k < d; k++, bytes += 3) {
        uint32_t drawn = (uint32_t)little(bytes, 3);
        uint32_t last = 1 - ((drawn - weights[0] - weights[1]) >> 31);
        one += 1 - ((drawn - weights[0]) >> 31) - last;
        two += last;
    }
    triangle *= m->roads ? 2 : (d + 1) * (d + 2) / 2;
    return row_draw(m, kept_of(m->row_of, triangle + two * (d + 1) - two * (two - 1) / 2 + one), bytes);
}

int optmech_draw(const optmech_mechanism *m, uint64_t place, const uint8_t *bytes, uint64_t *report)
{
    uint32_t cell[3];
    if (!is_place(m, place)) return OPTMECH_ARGUMENT;
    if (IS_MESH(m)) {
        uint32_t triangle = 0, weights[3] = {0, 0, 0};
        lattice_weights(m, place, &triangle, weights);
        *report = mesh_draw(m, triangle, weights, bytes);
    } else if (IS_EARTH(m)) {
        f64 centre[2];
        (void)is_cell(&m->secrets, place, cell);
        centre_of(&m->secrets, cell, centre);
        *report = earth_draw(m, centre, bytes);
    } else *report = row_draw(m, kept_of(m->row_of, (uint32_t)place), bytes);
    return OPTMECH_OK;
}

int optmech_draw_at(const optmech_mechanism *m, const f64 position[2], const uint8_t *bytes,
                    uint64_t *report)
{
    uint32_t triangle = 0, weights[3] = {0, 0, 0};
    int found = optmech_weights(m, position, &triangle, weights);
    if (found == OPTMECH_OK) *report = mesh_draw(m, triangle, weights, bytes);
    return found;
}

int optmech_sample(const optmech_mechanism *m, uint64_t place, optmech_entropy entropy,
                   void *context, uint64_t *report)
{
    uint8_t bytes[OPTMECH_DRAW];
    if (!is_place(m, place)) return OPTMECH_ARGUMENT;
    if (entropy(context, bytes, m->draw_bytes)) return OPTMECH_SOURCE;
    return optmech_draw(m, place, bytes, report);
}

int optmech_sample_at(const optmech_mechanism *m, const f64 position[2], optmech_entropy entropy,
                      void *context, uint64_t *report)
{
    uint8_t bytes[OPTMECH_DRAW];
    if (!IS_MESH(m)) return OPTMECH_ARGUMENT;
    if (entropy(context, bytes, m->draw_bytes)) return OPTMECH_SOURCE;
    return optmech_draw_at(m, position, bytes, report);
}

int optmech_accuracy(const optmech_mechanism *m, uint64_t report, f64 *out)
{
    if (IS_EARTH(m) && is_place(m, report) && m->radius.size) {
        *out = number(m->radius, 0);
        return OPTMECH_OK;
    }
    if (IS_EARTH(m)) return OPTMECH_ARGUMENT;
    for (uint32_t k = 0; k < m->radius.size / 8; k++) {
        if (word(m->column, k) != report) continue;
        *out = number(m->radius, k);
        return OPTMECH_OK;
    }
    return OPTMECH_ARGUMENT;
}

int optmech_promised(const optmech_mechanism *m, uint32_t index, optmech_promise *out)
{
    static const char *const words[] = {"kind", "scope", "pairs", "repeats"};
    const uint8_t *at, *part;
    optmech_bytes *texts[4];
    if (index >= m->promises.size) return OPTMECH_ARGUMENT;
    memset(out, 0, sizeof *out);
    texts[0] = &out->kind;
    texts[1] = &out->scope;
    texts[2] = &out->pairs;
    texts[3] = &out->repeats;
    at = read_item(m->promises.at).next;
    while (index--) at = behind(at);
    for (int n = 0; n < 4; n++) (void)string_of(entry(at, words[n]), TEXT, texts[n]);
    if (!is_null(part = entry(at, "measure"))) {
        (void)string_of(entry(part, "unit"), TEXT, &out->unit);
        (void)string_of(entry(part, "course"), TEXT, &out->course);
    }
    out->ratio = (uint8_t)!is_null(part = entry(at, "epsilon"));
    if (out->ratio) out->epsilon = read_item(part).argument;
    if (!is_null(part = entry(at, "delta"))) out->delta = read_item(part).argument;
    return OPTMECH_OK;
}

/* -- SHA-256 (FIPS 180-4) and HMAC (RFC 2104) ---------------------------------------------------- */

typedef struct {
    uint32_t state[8];
    uint8_t block[64];
    uint64_t size;
} hash;

static uint32_t rotated(uint32_t a, int by) { return a >> by | a << (32 - by); }

static void hash_block(hash *h)
{
    static const uint32_t constant[64] = {
        0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4,
        0xab1c5ed5, 0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe,
        0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f,
        0x4a7484aa, 0x5cb0a9dc, 0x76f988da, 0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7,
        0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967, 0x27b70a85, 0x2e1b2138, 0x4d2c6dfc,
        0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85, 0xa2bfe8a1, 0xa81a664b,
        0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070, 0x19a4c116,
        0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
        0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7,
        0xc67178f2};
    uint32_t w[16], s[8];
    memcpy(s, h->state, sizeof s);
    for (int k = 0; k < 64; k++) {
        uint32_t *now = &w[k % 16], sum, one, two;
        if (k < 16) {
            const uint8_t *at = h->block + 4 * k;
            *now = (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
        } else {
            uint32_t a = w[(k + 1) % 16], b = w[(k + 14) % 16];
            *now += (rotated(a, 7) ^ rotated(a, 18) ^ a >> 3) + w[(k + 9) % 16]
                + (rotated(b, 17) ^ rotated(b, 19) ^ b >> 10);
        }
        sum = rotated(s[4], 6) ^ rotated(s[4], 11) ^ rotated(s[4], 25);
        one = s[7] + sum + ((s[4] & s[5]) ^ (~s[4] & s[6])) + constant[k] + *now;
        sum = rotated(s[0], 2) ^ rotated(s[0], 13) ^ rotated(s[0], 22);
        two = sum + ((s[0] & s[1]) ^ (s[0] & s[2]) ^ (s[1] & s[2]));
        memmove(s + 1, s, 7 * sizeof *s);
        s[4] += one;
        s[0] = one + two;
    }
    for (int k = 0; k < 8; k++) h->state[k] += s[k];
}

static void hash_begin(hash *h)
{
    static const uint32_t begin[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                      0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
    memcpy(h->state, begin, sizeof begin);
    h->size = 0;
}

static void hash_more(hash *h, const uint8_t *bytes, size_t size)
{
    while (size--) {
        h->block[h->size++ % 64] = *bytes++;
        if (h->size % 64 == 0) hash_block(h);
    }
}

static void hash_end(hash *h, uint8_t out[32])
{
    static const uint8_t pad[64] = {0x80};
    uint64_t bits = h->size * 8;
    uint8_t length[8];
    hash_more(h, pad, 1 + (size_t)((119 - h->size % 64) % 64));
    for (int k = 0; k < 8; k++) length[k] = (uint8_t)(bits >> (56 - 8 * k));
    hash_more(h, length, 8);
    for (int k = 0; k < 32; k++) out[k] = (uint8_t)(h->state[k / 4] >> (24 - 8 * (k % 4)));
}

void optmech_sha256(const uint8_t *bytes, size_t size, uint8_t out[32])
{
    hash h;
    hash_begin(&h);
    hash_more(&h, bytes, size);
    hash_end(&h, out);
}

int optmech_hmac(void *key, const uint8_t *message, size_t size, uint8_t out[32])
{
    const uint8_t *own = key;
    hash h;
    uint8_t pad[64], inner[32];
    for (int k = 0; k < 64; k++) pad[k] = (uint8_t)((k < 32 ? own[k] : 0) ^ 0x36);
    hash_begin(&h);
    hash_more(&h, pad, 64);
    hash_more(&h, message, size);
    hash_end(&h, inner);
    for (int k = 0; k < 64; k++) pad[k] ^= 0x36 ^ 0x5c;
    hash_begin(&h);
    hash_more(&h, pad, 64);
    hash_more(&h, inner, 32);
    hash_end(&h, out);
    memset(pad, 0, sizeof pad);
    return 0;
}

int optmech_sticky_bytes(const optmech_mechanism *m, uint64_t place, uint64_t epoch,
                         optmech_mac mac, void *context, uint8_t bytes[OPTMECH_DRAW])
{
    uint8_t message[16 + DIGEST + 16], out[32];
    size_t size = 16 + DIGEST;
    if (!is_place(m, place)) return OPTMECH_ARGUMENT;
    memcpy(message, "optmech-sticky/1", 16);
    memcpy(message + 16, m->digest.at, DIGEST);
    for (int k = 0; k < (IS_EARTH(m) || IS_MESH(m) ? 8 : 4); k++) message[size++] = (uint8_t)(place >> 8 * k);
    for (int k = 0; k < 8; k++) message[size++] = (uint8_t)(epoch >> 8 * k);
    if (mac(context, message, size, out)) return OPTMECH_SOURCE;
    memcpy(bytes, out, m->draw_bytes);
    return OPTMECH_OK;
}

int optmech_sticky(const optmech_mechanism *m, uint64_t place, uint64_t epoch, optmech_mac mac,
                   void *context, uint64_t *report)
{
    uint8_t bytes[OPTMECH_DRAW];
    int found = optmech_sticky_bytes(m, place, epoch, mac, context, bytes);
    return found == OPTMECH_OK ? optmech_draw(m, place, bytes, report) : found;
}

/* -- the file ------------------------------------------------------------------------------------ */

/* Whether numbers use every row from 0 to the largest, and how many these are. */
static const char *rows_used(optmech_mechanism *m, memory *work)
{
    size_t count = m->row_of.size / 4;
    uint32_t most = 0, *seen;
    for (size_t k = 0; k < count; k++) most = word(m->row_of, k) > most ? word(m->row_of, k) : most;
    NEED(most < count, "has a row that nobody uses");
    m->rows = most + 1;
    TRY(reserved(work, most / 32 + 1, &seen));
    memset(seen, 0, (most / 32 + 1) * sizeof *seen);
    for (size_t k = 0; k < count; k++) {
        uint32_t row = word(m->row_of, k);
        seen[row / 32] |= (uint32_t)1 << row % 32;
    }
    for (uint32_t row = 0; row <= most; row++) {
        NEED(seen[row / 32] >> row % 32 & 1, "has a row that nobody uses");
    }
    return NULL;
}

static const char *table_of(const uint8_t *map, optmech_mechanism *m)
{
    uint32_t bits, width, certain = 0;
    size_t count;
    TRY(whole_of(entry(map, "bits"), 16, 48, &bits));
    NEED(bits == 16 || bits == 24 || bits == 32 || bits == 48, "has bits of no known number");
    TRY(whole_of(entry(map, "width"), bits / 8, bits / 8 + 1, &width));
    m->bits = (uint8_t)bits;
    m->width = (uint8_t)width;
    TRY(array_of(entry(map, "columns"), 70, &m->column));
    count = m->column.size / 4;
    NEED(count >= 1 && count <= MOST_COLUMNS, "has no number of columns that can be");
    m->columns = (uint32_t)count;
    for (size_t k = 0; k < count; k++) {
        NEED(word(m->column, k) < m->reports.count && (!k || word(m->column, k - 1) < word(m->column, k)),
             "has columns that are no ascending numbers of reports");
    }
    NEED(m->entries.size == (uint64_t)m->rows * count * width, "has rows of another length");
    for (uint32_t r = 0; r < m->rows; r++) {
        uint64_t sum = 0;
        for (size_t c = 0; c < count; c++) {
            uint64_t own = little(m->entries.at + (r * count + c) * width, width);
            NEED(own <= (uint64_t)1 << bits, "has an entry above 2^bits");
            certain |= own == (uint64_t)1 << bits;
            sum += own;
        }
        NEED(sum == (uint64_t)1 << bits, "has a row that does not sum to 2^bits");
    }
    NEED(certain == (width > bits / 8), "has entries wider than they need be");
    return NULL;
}

static const char *accuracy_of(const uint8_t *map, optmech_mechanism *m)
{
    static const char *const names[] = {"quantile", "radius", NULL};
    if (is_null(map)) return NULL;
    TRY(entries_are(map, names));
    TRY(float_of(entry(map, "quantile"), &m->quantile));
    TRY(numbers_of(entry(map, "radius"), m->columns, &m->radius));
    NEED(less(ZERO, m->quantile) && less(m->quantile, ONE), "has a quantile that is none");
    for (uint32_t k = 0; k < m->columns; k++) {
        NEED(!less(number(m->radius, k), ZERO), "has a radius below 0");
    }
    return NULL;
}

/* One of the texts that are known. */
static const char *one_of(const uint8_t *at, const char *const *known)
{
    for (; *known; known++) if (says(at, *known)) return NULL;
    return "has a word that is none of what there is";
}

static const char *or_null(const char *(*read)(const uint8_t *, f64 *), const uint8_t *at)
{
    f64 ignored;
    return is_null(at) ? NULL : read(at, &ignored);
}

static const char *measure_of(const uint8_t *map)
{
    static const char *const names[] = {"name", "unit", "course", NULL};
    static const char *const courses[] = {"straight", "great circle", "flat", "roads", "manhattan", "", NULL};
    if (is_null(map)) return NULL;
    TRY(entries_are(map, names));
    TRY(text_of(entry(map, "name")));
    TRY(text_of(entry(map, "unit")));
    return one_of(entry(map, "course"), courses);
}

static const char *details_of(const uint8_t *map)
{
    item own = read_item(map);
    const uint8_t *at = own.next;
    uint32_t count;
    f64 ignored;
    NEED(own.major == MAP, "has details that are none");
    for (uint64_t k = 0; k < own.argument; k++, at = behind(at)) {
        TRY(text_of(at));
        at = behind(at);
        if (is_bool(at) || !text_of(at) || !float_of(at, &ignored)) continue;
        NEED(!whole_of(at, 0, UINT32_MAX, &count), "has details that are none");
    }
    return NULL;
}

static const char *promise_of(const uint8_t *map)
{
    static const char *const names[] = {"kind", "scope", "pairs", "limit", "measure", "epsilon", "delta",
        "bound", "repeats", "details", NULL};
    static const char *const scopes[] = {"every point", "cells", "places", "secrets", "distributions",
        "answers", "guesses", "average", "use", "unknown", NULL};
    static const char *const pairs[] = {"all", "near", "reached", "joined", "listed", NULL};
    static const char *const repeats[] = {"adds", "complement", "unknown", "none", NULL};
    TRY(entries_are(map, names));
    TRY(text_of(entry(map, "kind")));
    TRY(one_of(entry(map, "scope"), scopes));
    TRY(one_of(entry(map, "pairs"), pairs));
    TRY(one_of(entry(map, "repeats"), repeats));
    TRY(or_null(length_of, entry(map, "limit")));
    TRY(or_null(length_of, entry(map, "epsilon")));
    TRY(or_null(length_of, entry(map, "delta")));
    TRY(or_null(float_of, entry(map, "bound")));
    TRY(measure_of(entry(map, "measure")));
    return details_of(entry(map, "details"));
}

static int alike(const uint8_t *a, const uint8_t *b)
{
    item one = read_item(a), two = read_item(b);
    return one.argument == two.argument && !memcmp(one.next, two.next, (size_t)one.argument);
}

/* Whether there is such a distance between the places, or points of the mesh, that are held. */
static int is_proper(const uint8_t *map, const uint8_t *held, const optmech_mechanism *m)
{
    const uint8_t *name = entry(map, "name"), *unit = entry(map, "unit"), *course = entry(map, "course");
    /* hexagons have no entry for their unit */
    const uint8_t *own = entry(held, "unit"), *lengths = IS_MESH(m) ? entry(held, "lengths") : NULL;
    int km = says(unit, "km"), same = own ? alike(unit, own) : km, degrees = m->secrets.degrees;
    int boxed = !IS_MESH(m) && degrees && m->secrets.kind == OPTMECH_GRID;
    int globe = says(name, "haversine") && km && says(course, "great circle");
    int straight = says(name, "euclidean"), sums = says(name, "manhattan");
    if (lengths && !is_null(lengths)) return says(name, "roads") && says(course, "roads") && same;
    if (IS_MESH(m)) return degrees ? globe : straight && says(course, "straight") && same;
    if (says(name, "haversine")) return globe && degrees && !boxed;
    if (says(name, "graph") || says(name, "roads")) return (same || says(unit, "")) && says(course, "");
    if (!straight && !sums) return says(unit, "") && says(course, "");
    if (boxed) return same && says(course, sums ? "" : "flat");
    return !degrees && same && says(course, sums ? "manhattan" : "straight");
}

/* A promise holds between what the file has, and by the distance and unit of its places or mesh. */
static const char *grounded(const uint8_t *map, const uint8_t *promise, const optmech_mechanism *m)
{
    const uint8_t *scope = entry(promise, "scope"), *measure = entry(promise, "measure");
    int every = says(scope, "every point"), places = !IS_MESH(m) && !IS_EARTH(m);
    NEED(!every || !places, "has a promise between what is not there");
    NEED(!says(scope, "cells") || (places && m->secrets.kind == OPTMECH_GRID),
         "has a promise between what is not there");
    NEED(!says(scope, "use") || is_null(entry(promise, "epsilon")), "has an epsilon of what is for use alone");
    if (is_null(measure) || IS_EARTH(m) || (IS_MESH(m) && !every)) return NULL;
    NEED(is_proper(measure, entry(map, places ? "secrets" : "mesh"), m),
         "has a promise by another distance or unit than its places");
    return NULL;
}

static const char *prior_of(const uint8_t *map)
{
    static const char *const names[] = {"places", "entropy", "seen", "blind", "date", NULL};
    uint32_t count;
    f64 ignored;
    if (is_null(map)) return NULL;
    TRY(entries_are(map, names));
    TRY(whole_of(entry(map, "places"), 1, UINT32_MAX, &count));
    for (int n = 1; n < 4; n++) TRY(length_of(entry(map, names[n]), &ignored));
    return is_null(entry(map, "date")) ? NULL : text_of(entry(map, "date"));
}

static const char *said_of(const uint8_t *map, optmech_mechanism *m)
{
    static const char *const costs[] = {"objective", "design", "packed", "increase", NULL};
    static const char *const objectives[] = {"expected_loss", "worst_loss", "maximize_distortion",
        "minimize_leakage", "mean_distance", NULL};
    const uint8_t *loss = entry(map, "loss"), *at = entry(map, "promises"), *outside = entry(map, "outside");
    item list = read_item(at);
    optmech_bytes design;
    f64 ignored;
    TRY(string_of(entry(map, "title"), TEXT, &m->title));
    NEED(list.major == ARRAY, "has promises that are no list");
    m->promises.at = at;
    m->promises.size = (size_t)list.argument;
    at = list.next;
    for (uint64_t k = 0; k < list.argument; k++, at = behind(at)) {
        TRY(promise_of(at));
        TRY(grounded(map, at, m));
    }
    TRY(prior_of(entry(map, "prior")));
    TRY(entries_are(loss, costs));
    TRY(one_of(entry(loss, "objective"), objectives));
    for (int n = 1; n < 4; n++) TRY(float_of(entry(loss, costs[n]), &ignored));
    TRY(string_of(entry(map, "design"), BYTES, &design));
    NEED(design.size == DIGEST, "has a design that is no digest");
    m->nearest = (uint8_t)says(outside, "nearest");
    NEED(m->nearest || says(outside, "refuse"), "is neither to refuse nor to move positions outside");
    return accuracy_of(entry(map, "accuracy"), m);
}

#define COMMON "kind", "title", "promises", "prior", "loss", "design", "outside", "accuracy"
#define TABLE "bits", "width", "reports", "columns"

static const char *earth_of(const uint8_t *map, optmech_mechanism *m)
{
    optmech_places *earth = &m->secrets;
    size_t count;
    TRY(whole_of(entry(map, "bands"), 64, (uint32_t)1 << 22, &earth->rows));
    TRY(array_of(entry(map, "heights"), 86, &m->heights));
    TRY(length_of(entry(map, "snap"), &m->snap));
    count = m->heights.size / 8;
    NEED(count >= 1 && count <= MOST_COLUMNS && m->entries.size == m->heights.size,
         "has no number of rings that can be");
    for (size_t k = 0; k < count; k++) {
        NEED(less(k ? number(m->heights, k - 1) : ZERO, number(m->heights, k))
             && (k ? number(m->entries, k - 1) : 0) < number(m->entries, k),
             "has rings that do not ascend");
    }
    NEED(!less(FARTHEST, number(m->heights, count - 1)), "has rings that are too far");
    earth->kind = OPTMECH_EARTH;
    earth->degrees = 1;
    earth->dimension = 2;
    earth->columns = 2 * earth->rows;
    earth->count = (uint64_t)earth->rows * earth->columns;
    m->reports = *earth;
    m->columns = 1;
    m->draw_bytes = 8 + 6 + 5;
    return said_of(map, m);
}

static const char *header_of(optmech_bytes header, optmech_mechanism *m, memory *work)
{
    static const char *const places[] = {COMMON, TABLE, "secrets", "row of", "reach", NULL};
    static const char *const mesh[] = {COMMON, TABLE, "mesh", "snap", NULL};
    static const char *const earth[] = {COMMON, "bands", "heights", "snap", NULL};
    const uint8_t *map = header.at, *reach, *kind;
    int network;
    TRY(one_item(map, map + header.size));
    NEED(read_item(map).major == MAP, "has no header");
    kind = entry(map, "kind");
    NEED(kind, "is of no kind that is read here");
    network = says(kind, "network");
    m->mesh = (uint8_t)(WITH_MESH && (network || says(kind, "mesh")));
    m->earth = (uint8_t)(WITH_EARTH && says(kind, "earth"));
    NEED((WITH_PLACES && says(kind, "places")) || m->mesh || m->earth, "is of no kind that is read here");
    TRY(entries_are(map, IS_MESH(m) ? mesh : IS_EARTH(m) ? earth : places));
    if (IS_EARTH(m)) return earth_of(map, m);
    if (IS_MESH(m)) {
        TRY((network ? roads_of : mesh_of)(entry(map, "mesh"), m, work));
        TRY(length_of(entry(map, "snap"), &m->snap));
    } else {
        TRY(places_of(entry(map, "secrets"), &m->secrets, work));
        TRY(array_of(entry(map, "row of"), 70, &m->row_of));
        NEED(m->row_of.size / 4 == m->secrets.count, "does not give every secret a row");
        reach = entry(map, "reach");
        m->limited = (uint8_t)!is_null(reach);
        if (m->limited) TRY(length_of(reach, &m->reach));
    }
    TRY(rows_used(m, work));
    if (!IS_MESH(m) && is_null(entry(map, "reports"))) m->reports = m->secrets;
    else TRY(places_of(entry(map, "reports"), &m->reports, work));
    TRY(table_of(map, m));
    m->draw_bytes = m->bits / 8u + 3u * m->degree;
    TRY(said_of(map, m));
    if (IS_MESH(m)) lattice_of(m, rate_of(entry(map, "promises")));
    return NULL;
}

static const char *plain_file(optmech_bytes file, optmech_mechanism *m, memory *work)
{
    const uint8_t *at = file.at, *end = at + file.size;
    uint8_t found[DIGEST];
    optmech_bytes header;
    item own;
    TRY(one_item(at, end));
    own = read_item(file.at);
    NEED(own.major == TAG && own.argument == 55799, "is no packed mechanism");
    own = read_item(own.next);
    NEED(own.major == ARRAY && own.argument == 4, "is no packed mechanism");
    NEED(!says(own.next, "optmech-packed/1") && !says(own.next, "optmech-packed/2") && !says(own.next, "optmech-packed/3"),
         "is of a format that is read no more: pack the design again");
    NEED(says(own.next, "optmech-packed/4"), "is of no format that is read here");
    at = behind(own.next);
    TRY(string_of(at, BYTES, &header));
    at = behind(at);
    TRY(string_of(at, BYTES, &m->entries));
    TRY(string_of(behind(at), BYTES, &m->digest));
    NEED(m->digest.size == DIGEST, "has a digest of another length");
    optmech_sha256(file.at, file.size - DIGEST, found);
    NEED(!memcmp(found, m->digest.at, DIGEST),
         "does not match its digest: the file was altered");
    return header_of(header, m, work);
}

static const char *signed_file(optmech_bytes *file, optmech_verify verify, void *context)
{
    /* the Sig_structure of RFC 9052 up to the payload's own head */
    static const char begin[] = "\x84\x6aSignature1\x43\xa1\x01\x27\x40";
    static const char other[] = "is signed in another way than with Ed25519";
    const uint8_t *at = file->at, *end = at + file->size;
    uint8_t head[sizeof begin + 9];
    optmech_bytes message, payload, part;
    item own;
    TRY(one_item(at, end));
    own = read_item(file->at);
    NEED(own.major == TAG && own.argument == 18, other);
    own = read_item(own.next);
    NEED(own.major == ARRAY && own.argument == 4, other);
    at = own.next;
    TRY(string_of(at, BYTES, &part));
    NEED(part.size == 3 && !memcmp(part.at, "\xa1\x01\x27", 3), other);
    at = behind(at);
    NEED(*at == 0xa0, other);
    at++;
    TRY(string_of(at, BYTES, &payload));
    TRY(string_of(behind(at), BYTES, &part));
    NEED(part.size == 64, other);
    message.at = head;
    message.size = sizeof begin - 1;
    memcpy(head, begin, message.size);
    while (at < payload.at) head[message.size++] = *at++;
    NEED(verify, "is signed, and nothing verifies that");
    NEED(!verify(context, message, payload, part.at), "has a signature that is not of the key given");
    *file = payload;
    return NULL;
}

int optmech_open(optmech_mechanism *m, const uint8_t *content, size_t size, uint32_t *work,
                 size_t words, optmech_verify verify, void *context)
{
    memory own;
    optmech_bytes file;
    const char *why = NULL;
    memset(m, 0, sizeof *m);
    own.m = m;
    own.words = work;
    own.taken = 0;
    own.count = words;
    file.at = content;
    file.size = size;
    if (size == 0 || size > MOST_BYTES) why = "is empty or too large";
    else if (content[0] == 0xd2) why = signed_file(&file, verify, context);
    else if (verify) why = "is not signed, and a signature was asked for";
    if (!why) why = plain_file(file, m, &own);
    if (!why) return OPTMECH_OK;
    words = m->words;
    memset(m, 0, sizeof *m);
    m->why = why;
    m->words = words;
    return why == TOO_LITTLE ? OPTMECH_WORK : OPTMECH_REFUSED;
}
