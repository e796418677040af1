/* Which of the compiled variants this processor can run, and what the library was made from. */

#define EXPORTED __attribute__((visibility("default")))

/* The best one's name, among those that build.py made. */
EXPORTED const char *optmech_variant(void) {
#if defined(__x86_64__)
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
        if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
            __builtin_cpu_supports("avx512vl"))
            return "avx512";
        return "avx2";
    }
#endif
    return "baseline";
}

/* The digest of the sources. */
EXPORTED const char *optmech_sources(void) { return SOURCES; }
