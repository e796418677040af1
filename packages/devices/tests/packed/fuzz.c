/* Whatever bytes come: the reader in C stays within its memory. For libFuzzer; the digest is made to
 * fit, so that what lies behind it is reached. Where a file is read, every report has a number. */
#include "optmech.h"

#include <stdlib.h>
#include <string.h>

static int never(void *context, optmech_bytes head, optmech_bytes payload, const uint8_t *signature)
{
    uint8_t sum = 0;
    (void)context;
    for (size_t k = 0; k < head.size; k++) sum ^= head.at[k];
    for (size_t k = 0; k < payload.size; k++) sum ^= payload.at[k];
    return signature[0] == sum && signature[63] == 1;
}

static void need(int condition)
{
    if (!condition) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const uint8_t drawn[OPTMECH_DRAW] = {0x5a, 0xff, 0, 1, 2, 3, 4, 0xff, 5};
    static const uint64_t positions[4][2] = {
        {0x3ff8000000000000u, 0x4048000000000000u}, {0xc066800000000000u, 0x4056800000000000u},
        {0x4066700000000000u, 0xc02e000000000000u}, {0x0000000000000001u, 0x4630000000000000u}};
    uint8_t *content = malloc(size ? size : 1);
    uint32_t *work = NULL;
    size_t words = 0, plain = 0;
    optmech_mechanism m;
    int found, asks = size && data[0] == 0xd2;
    need(content != NULL);
    if (size) memcpy(content, data, size);
    if (size > 32 && data[0] == 0xd9) plain = size;
    if (plain) optmech_sha256(content, plain - 32, content + plain - 32);
    while ((found = optmech_open(&m, content, size, work, words, asks ? never : NULL, NULL))
           == OPTMECH_WORK) {
        need(m.words > words);
        words = m.words;
        free(work);
        work = malloc(words * sizeof *work);
        need(work != NULL);
    }
    if (found == OPTMECH_OK) {
        uint32_t triangle, weights[3];
        uint64_t report = 0, place = 0;
        uint64_t value;
        optmech_promise promise;
        for (uint32_t k = 0; k < 4; k++) {
            if (m.mesh) {
                found = optmech_weights(&m, positions[k], &triangle, weights);
                need(found != OPTMECH_OK || weights[0] + weights[1] + weights[2] == 1u << 24);
                if (!optmech_locate(&m, positions[k], &place)) {
                    need(place < m.secrets.count && m.slack);
                    need(!optmech_draw(&m, place, drawn, &report) && report < m.reports.count);
                    place = (place + 0x123456789u) % m.secrets.count;
                    need(!optmech_draw(&m, place, drawn, &report) && report < m.reports.count);
                } else need(m.secrets.count == 0 || !m.nearest || k > 0);
                found = optmech_draw_at(&m, positions[k], drawn, &report);
            } else {
                if (m.earth) need(!optmech_locate(&m, positions[k % 3], &place));
                else if (m.secrets.dimension == 2 && !optmech_locate(&m, positions[k], &place)) {
                    need(place < m.secrets.count);
                }
                if (!m.earth) place = k * 7 % m.secrets.count;
                found = optmech_draw(&m, place, drawn, &report);
                need(found == OPTMECH_OK);
            }
            need(found != OPTMECH_OK || report < m.reports.count);
            if (found == OPTMECH_OK) (void)optmech_accuracy(&m, report, &value);
            (void)optmech_coordinate(&m.reports, report, 0, &value);
            (void)optmech_promised(&m, k, &promise);
        }
    } else need(m.why != NULL);
    free(work);
    free(content);
    return 0;
}
