/* What the C reader makes of files: commands on standard input, one line each, answers on standard
 * output. Memory is exactly what the reader may touch, so that sanitizers see a byte beyond it. */
#include "optmech.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static optmech_mechanism m;
static uint8_t *content;
static uint32_t *work;
static char line[1 << 20];

static void hex(const uint8_t *at, size_t size)
{
    while (size--) printf("%02x", *at++);
}

static size_t bytes_of(const char *text, uint8_t *out)
{
    size_t size = 0;
    unsigned value;
    for (; sscanf(text, "%2x", &value) == 1; text += 2) out[size++] = (uint8_t)value;
    return size;
}

/* Whoever asks has the key: the message and the signature, and 1 or 0 for an answer. */
static int asked(void *context, optmech_bytes head, optmech_bytes payload, const uint8_t *signature)
{
    char answer[8];
    (void)context;
    printf("verify ");
    hex(head.at, head.size);
    hex(payload.at, payload.size);
    printf(" ");
    hex(signature, 64);
    printf("\n");
    fflush(stdout);
    return !fgets(answer, sizeof answer, stdin) || answer[0] != '1';
}

static uint8_t *read_file(const char *path, size_t *size)
{
    FILE *file = fopen(path, "rb");
    uint8_t *out;
    if (!file) exit(3);
    fseek(file, 0, SEEK_END);
    *size = (size_t)ftell(file);
    rewind(file);
    out = malloc(*size ? *size : 1);
    if (!out || fread(out, 1, *size, file) != *size) exit(3);
    fclose(file);
    return out;
}

static void opened(const char *path, int asks)
{
    size_t size, words = 0;
    int found;
    free(content);
    free(work);
    work = NULL;
    content = read_file(path, &size);
    while ((found = optmech_open(&m, content, size, work, words, asks ? asked : NULL, NULL))
           == OPTMECH_WORK) {
        if (m.words <= words) exit(4);
        words = m.words;
        free(work);
        work = malloc(words * sizeof *work);
        if (!work) exit(3);
    }
    if (found != OPTMECH_OK) printf("refused %s", m.why);
    else printf("read %d %u %llu %u", m.earth ? 2 : m.mesh, m.draw_bytes, (unsigned long long)m.secrets.count,
                m.secrets.dimension);
}

static void promises(void)
{
    optmech_promise p;
    for (uint32_t k = 0; optmech_promised(&m, k, &p) == OPTMECH_OK; k++) {
        const optmech_bytes *texts[] = {&p.kind, &p.scope, &p.pairs, &p.repeats, &p.unit, &p.course};
        printf(" ");
        for (int n = 0; n < 6; n++) {
            hex(texts[n]->at, texts[n]->size);
            printf(",");
        }
        printf("%d,%016llx,%016llx", p.ratio, (unsigned long long)p.epsilon, (unsigned long long)p.delta);
    }
}

static void reports(void)
{
    for (uint32_t k = 0; k < (m.earth ? 0 : m.columns); k++) {
        const uint8_t *at = m.column.at + 4 * k;
        uint32_t report = at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16;
        uint64_t value;
        printf(" %u:", report);
        for (uint32_t axis = 0; axis < m.reports.dimension; axis++) {
            if (optmech_coordinate(&m.reports, report, axis, &value) == OPTMECH_OK) {
                printf("%016llx,", (unsigned long long)value);
            }
        }
        printf(":");
        if (optmech_accuracy(&m, report, &value) == OPTMECH_OK) {
            printf("%016llx", (unsigned long long)value);
        }
    }
}

static uint64_t little(const uint8_t *at, int size)
{
    uint64_t out = 0;
    while (size--) out = out << 8 | at[size];
    return out;
}

/* Draws of a file: a place's number (4 bytes, of a lattice or the earth 8) or two float64, and the
 * bytes of the draw. */
static void many(const char *path, int lattice)
{
    int place = m.mesh && !lattice ? 16 : m.mesh || m.earth ? 8 : 4;
    size_t size, step = (size_t)place + m.draw_bytes;
    uint8_t *draws = read_file(path, &size);
    for (size_t at = 0; at + step <= size; at += step) {
        uint64_t report = 0;
        int found;
        if (m.mesh && !lattice) {
            uint64_t position[2];
            position[0] = little(draws + at, 8);
            position[1] = little(draws + at + 8, 8);
            found = optmech_draw_at(&m, position, draws + at + 16, &report);
        } else found = optmech_draw(&m, little(draws + at, place), draws + at + place, &report);
        if (found == OPTMECH_OUTSIDE) printf("-1 ");
        else if (found == OPTMECH_OK) printf("%llu ", (unsigned long long)report);
        else printf("refused ");
    }
    free(draws);
}

static int random_bytes(void *context, uint8_t *bytes, size_t size)
{
    return fread(bytes, 1, size, context) != size;
}

/* How often each report came up at a place, or at a position, from the system's entropy. */
static void counted(uint32_t place, const uint64_t position[2], unsigned long draws)
{
    FILE *source = fopen("/dev/urandom", "rb");
    unsigned long *seen = calloc(m.reports.count, sizeof *seen);
    uint64_t report;
    if (!source || !seen) exit(3);
    while (draws--) {
        int found = m.mesh ? optmech_sample_at(&m, position, random_bytes, source, &report)
            : optmech_sample(&m, place, random_bytes, source, &report);
        if (found) exit(4);
        seen[report]++;
    }
    for (uint32_t k = 0; k < m.reports.count; k++) printf("%lu ", seen[k]);
    free(seen);
    fclose(source);
}

/* What every function answers that takes a mechanism or its parts. */
static void every(uint64_t number)
{
    uint64_t position[3] = {0, 0, 0}, value = 0;
    uint8_t bytes[OPTMECH_DRAW] = {0}, key[64] = {0};
    uint32_t triangle = 0, weights[3] = {0, 0, 0};
    optmech_promise found;
    const int answers[] = {
        optmech_locate(&m, position, &value),
        optmech_draw(&m, number, bytes, &value),
        optmech_weights(&m, position, &triangle, weights),
        optmech_draw_at(&m, position, bytes, &value),
        optmech_sample(&m, number, random_bytes, NULL, &value),
        optmech_sample_at(&m, position, random_bytes, NULL, &value),
        optmech_sticky(&m, number, 0, optmech_hmac, key, &value),
        optmech_sticky_bytes(&m, number, 0, optmech_hmac, key, bytes),
        optmech_coordinate(&m.secrets, number, 0, &value),
        optmech_coordinate(&m.reports, number, 1, &value),
        optmech_accuracy(&m, number, &value),
        optmech_promised(&m, (uint32_t)number, &found)};
    for (size_t k = 0; k < sizeof answers / sizeof *answers; k++) printf("%d ", answers[k]);
}

int main(void)
{
    setvbuf(stdout, NULL, _IOFBF, 1 << 16);
    while (fgets(line, sizeof line, stdin)) {
        char *name = strtok(line, " \n"), *part[8] = {"", "", "", "", "", "", "", ""};
        uint8_t bytes[64];
        uint64_t report = 0;
        int found = OPTMECH_OK;
        for (int k = 0; k < 8 && (part[k] = strtok(NULL, " \n")); k++) continue;
        if (!name) continue;
        if (!strcmp(name, "open")) opened(part[0], part[1] && part[1][0] == '1');
        else if (!strcmp(name, "words")) {
            printf("t");
            hex(m.title.at, m.title.size);
            promises();
            printf(m.nearest ? " nearest" : " refuse");
        } else if (!strcmp(name, "reports")) reports();
        else if (!strcmp(name, "many")) many(part[0], part[1] != NULL);
        else if (!strcmp(name, "every")) every(strtoull(part[0], NULL, 10));
        else if (!strcmp(name, "count")) {
            uint64_t position[2];
            for (int k = 0; k < 2; k++) position[k] = strtoull(part[k + 1], NULL, 16);
            counted((uint32_t)strtoul(part[0], NULL, 10), position, strtoul(part[3], NULL, 10));
        } else if (!strcmp(name, "draw")) {
            bytes_of(part[1], bytes);
            found = optmech_draw(&m, strtoull(part[0], NULL, 10), bytes, &report);
            if (found == OPTMECH_OK) printf("%llu", (unsigned long long)report);
        } else if (!strcmp(name, "sticky")) {
            uint8_t key[64] = {0}, drawn[OPTMECH_DRAW];
            uint64_t place = strtoull(part[1], NULL, 10);
            uint64_t epoch = strtoull(part[2], NULL, 10);
            bytes_of(part[0], key);
            found = optmech_sticky_bytes(&m, place, epoch, optmech_hmac, key, drawn);
            if (found == OPTMECH_OK) {
                hex(drawn, m.draw_bytes);
                found = optmech_sticky(&m, place, epoch, optmech_hmac, key, &report);
                printf(" %llu", (unsigned long long)report);
            }
        } else if (!strcmp(name, "locate") || !strcmp(name, "at")) {
            uint32_t dimension = name[0] == 'a' || m.mesh ? 2 : m.secrets.dimension;
            uint64_t *position = malloc((dimension ? dimension : 1) * sizeof *position);
            uint32_t triangle = 0, weights[3] = {0, 0, 0};
            if (!position) return 3;
            for (uint32_t k = 0; k < dimension; k++) position[k] = strtoull(part[k < 2 ? k : 2], NULL, 16);
            if (name[0] == 'l') {
                found = optmech_locate(&m, position, &report);
                if (found == OPTMECH_OK) printf("%llu", (unsigned long long)report);
            } else {
                bytes_of(part[2], bytes);
                found = optmech_weights(&m, position, &triangle, weights);
                if (found == OPTMECH_OK) found = optmech_draw_at(&m, position, bytes, &report);
                if (found == OPTMECH_OK) {
                    printf("%u %u %u ", triangle, weights[0], weights[1]);
                    if (!m.roads) printf("%u ", weights[2]);
                    printf("%llu", (unsigned long long)report);
                }
            }
            free(position);
        } else if (!strcmp(name, "where")) {
            uint64_t number = strtoull(part[0], NULL, 10), value = 0;
            for (uint32_t axis = 0; axis < m.reports.dimension && found == OPTMECH_OK; axis++) {
                found = optmech_coordinate(&m.reports, number, axis, &value);
                if (found == OPTMECH_OK) printf("%016llx ", (unsigned long long)value);
            }
            if (optmech_accuracy(&m, number, &value) == OPTMECH_OK) {
                printf("%016llx", (unsigned long long)value);
            }
        } else if (!strcmp(name, "float")) {
            /* numbers of their own: a decimal over 10^7, and back */
            uint64_t value = optmech_ratio(strtoll(part[0], NULL, 10), 10000000);
            printf("%016llx %lld", (unsigned long long)value,
                   (long long)optmech_scaled(value, 10000000));
        } else return 5;
        if (found == OPTMECH_OUTSIDE) printf("outside");
        else if (found != OPTMECH_OK) printf("refused %d", found);
        printf("\n");
        fflush(stdout);
    }
    free(content);
    free(work);
    return 0;
}
