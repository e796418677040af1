/*
 * A radio that sends a place every 15 minutes: the fix as receivers give it, in 10^-7 degrees, to the
 * place that is sent, in the same. A night at one place sends one place; positions never leave the
 * device, and outside the region nothing is sent. Of a mechanism for every point a place is a point of
 * the lattice of docs/sticky.md: two positions count as up to `mechanism.slack` farther apart.
 *
 * On a device, `file` is flash memory, the key 32 random bytes that were made once and stay where they
 * are, and `sent` what goes into the packet. Built with -DRADIO_MAIN it reads fixes from its input:
 *
 *     cc -std=c99 -DRADIO_MAIN optmech.c radio.c -o radio
 */
#include "optmech.h"

#ifndef WORK
#define WORK 1024 /* words: as many as places, or six for each triangle */
#endif
#define DAY 86400

static uint32_t work[WORK];
static optmech_mechanism mechanism;

/* Once, when the device starts; NULL, or why the file cannot be used. */
const char *radio_begin(const uint8_t *file, size_t size)
{
    int found = optmech_open(&mechanism, file, size, work, WORK, NULL, NULL);
    if (found == OPTMECH_WORK) return "needs more memory: compile with -DWORK=N";
    if (found != OPTMECH_OK) return mechanism.why;
    return mechanism.secrets.degrees && mechanism.reports.degrees && mechanism.secrets.count
        ? NULL : "has no places in degrees where reports repeat";
}

/* Every 15 minutes; 0 where nothing is to be sent. */
int radio_place(uint8_t key[32], int32_t longitude, int32_t latitude, uint64_t seconds,
                int32_t sent[2])
{
    const optmech_float fix[2] = {optmech_ratio(longitude, 10000000), optmech_ratio(latitude, 10000000)};
    uint64_t place, report;
    if (optmech_locate(&mechanism, fix, &place) != OPTMECH_OK) return 0;
    if (optmech_sticky(&mechanism, place, seconds / DAY, optmech_hmac, key, &report) != OPTMECH_OK) {
        return 0;
    }
    for (uint32_t axis = 0; axis < 2; axis++) {
        optmech_float degrees;
        if (optmech_coordinate(&mechanism.reports, report, axis, &degrees) != OPTMECH_OK) return 0;
        sent[axis] = (int32_t)optmech_scaled(degrees, 10000000);
    }
    return 1;
}

#ifdef RADIO_MAIN
#include <stdio.h>

/* radio FILE < fixes: a line "longitude latitude seconds" each, in 10^-7 degrees. */
int main(int count, char **names)
{
    static uint8_t file[((size_t)64 << 20) + 1], key[32]; /* a key of zeros: for trying it out only */
    FILE *stream = count == 2 ? fopen(names[1], "rb") : NULL;
    size_t size = stream ? fread(file, 1, sizeof file, stream) : 0;
    long longitude, latitude;
    unsigned long seconds;
    int32_t sent[2];
    const char *why = stream ? NULL : "usage: radio FILE < fixes, of a file that can be read";
    if (stream) fclose(stream);
    if (!why) why = radio_begin(file, size);
    if (why) {
        fprintf(stderr, "%s\n", why);
        return 1;
    }
    while (scanf("%ld %ld %lu", &longitude, &latitude, &seconds) == 3) {
        if (radio_place(key, (int32_t)longitude, (int32_t)latitude, seconds, sent)) {
            printf("%ld %ld\n", (long)sent[0], (long)sent[1]);
        } else printf("nothing\n");
    }
    return 0;
}
#endif
