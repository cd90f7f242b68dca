#include "export.h"

/* Set by compiler.py: Python refuses a library of other sources than it sees. */
#if !defined(FOLD_SOURCES)
#define FOLD_SOURCES ""
#endif

FOLD_EXPORT const char *fold_sources(void);

const char *fold_sources(void) { return FOLD_SOURCES; }
