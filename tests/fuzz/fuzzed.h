/* What each part of the fuzzing shares: checks, chance, memory that ends where it says,
 * and the parts that stand elsewhere. */
#ifndef FUZZ_FUZZED_H
#define FUZZ_FUZZED_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(is_so)                                                                   \
    do {                                                                               \
        if (!(is_so)) {                                                                \
            fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #is_so);        \
            abort();                                                                   \
        }                                                                              \
    } while (0)

/* What memory is for: a new use of one ends that of before. */
enum use {
    RECORD,
    TAGS,
    PLACES,
    ELEMENT,
    RAW,
    WAITED,
    ENCODED,
    CLOSED,
    ENDS,
    MODELS,
    EXTRAS,
    ACCEPTED,
    ORIGINS,
    DUE,
    NAMES,
    SCOPES,
    SCOPE_ENDS,
    SCOPE_PLACES,
    INPUT_TIMES,
    INPUT_PLACES,
    INPUT_RAWS,
    INPUT_ORIGIN,
    INPUT_ELEMENTS,
    INPUT_OUTCOMES,
    SCOPE_TABLES, /* the first of thirteen */
    N_USES = SCOPE_TABLES + 13
};

/* So many bytes, behind which nothing may be touched, until the next of this use. */
void *bounded(enum use use, size_t n);

/* A number from 0 on, below `n`; 0 where `n` is 0. */
size_t below(size_t n);

/* The window of the join, and how many clicks a list may have: few, so that there are
 * some beyond. */
enum { WINDOW_MS = 300, MOST_CLICKS = 2 };

/* Interactions that closed together: `ends[n]` in `encoded`, `n_clicks` in all. */
struct closed {
    const uint8_t *encoded;
    const int64_t *ends;
    int64_t n, n_clicks, now_ms;
    const uint64_t *models;
    const uint8_t *extras;
};

/* Tells all that takes interactions (TAKERS in `taken.c`) that a join begins, has closed
 * some, or ends. */
void begin_of_takers(void);
void take_closed(const struct closed *closed);
void end_of_takers(void);

/* Says how much was taken, from so many joins. */
void print_taken(int64_t n_joins);

/* The number at a place, which is there. */
int64_t number_at(const uint8_t *data, int64_t at, int64_t end);

/* A record that may be broken: whether the join took it. */
int take_into_join(const uint8_t *data, int64_t end);

/* A record of a scope that may be broken: whether its tables were filled. */
int take_into_tables(const uint8_t *data, int64_t end);

/* Input events that may be broken: whether all of them were read. */
int take_queries(const uint8_t *data, int64_t end);
int take_clicks(const uint8_t *data, int64_t end);

/* Lets go of the scope whose pieces come next. */
void end_of_tables(void);

/* Lets go of the join and of all that takes what it closes. */
void end_of_join(void);

/* Says how much was closed. */
void print_joined(void);

#endif
