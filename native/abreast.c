/* Sums of solutions, with factors in all digits and in half of them. */
#include "sparse.h"

#define ABREAST 8

#define NUMBER double
#define LABELLED(name) name##_double
#include "abreast.h"
#undef NUMBER
#undef LABELLED

#define NUMBER float
#define LABELLED(name) name##_float
#include "abreast.h"
