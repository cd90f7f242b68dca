/* Where the fields of the elements of a record of `events` begin. */
#ifndef FOLD_ELEMENTS_H
#define FOLD_ELEMENTS_H

#include <stdint.h>

#include "export.h"
#include "fields.h"
#include "msgpack.h"

/* Places of an element: those of its fields, then its end. */
#define ELEMENT_END N_IMPRESSION_FIELDS
#define ELEMENT_WIDTH (ELEMENT_END + 1)

/* Schema, source and sequence of a record, and its number of elements, into `head`.
 * Returns where the elements begin, or -1: this is no record. As each element takes a
 * byte, `head[3]` is at most `end`. */
FOLD_EXPORT int64_t fold_find_head(const uint8_t *data, int64_t end, int64_t head[4]);

/* Fields of the element that begins at `at`, into `places[ELEMENT_WIDTH]`; those that
 * its kind does not have stay as they are. Returns its end, or -1: it is not whole,
 * or of another layout. */
FOLD_EXPORT int64_t fold_find_fields(const uint8_t *data, int64_t at, int64_t end,
                                     int64_t *places);

/* All elements of a record, from `at` on: `tags[n]`, `places[n][ELEMENT_WIDTH]`, where
 * the place of the tag is that of the element. Returns 0, or -1: they are not whole,
 * or something follows. */
FOLD_EXPORT int64_t fold_find_elements(const uint8_t *data, int64_t at, int64_t end,
                                       int64_t n_elements, int8_t *tags,
                                       int64_t *places);

/* An element whose fields were found. */
struct element {
    const uint8_t *data;
    const int64_t *places;
};

static inline int64_t start_of(struct element element) { return element.places[0]; }

static inline int64_t length_of(struct element element) {
    return element.places[ELEMENT_END] - element.places[0];
}

/* Bytes of something else; `n` is -1 where there are none. */
struct span {
    const uint8_t *bytes;
    int64_t n;
};

static inline struct span span_at(const uint8_t *data, int64_t at, int64_t end) {
    int64_t start, n;
    bool is_whole = msgpack_span(data, at, end, &start, &n) >= 0;
    return is_whole ? (struct span){data + start, n} : (struct span){data, -1};
}

static inline struct span span_in(struct element element, int field) {
    return span_at(element.data, element.places[field], element.places[ELEMENT_END]);
}

static inline int64_t number_in(struct element element, int field) {
    int64_t number = 0;
    msgpack_number(element.data, element.places[field], element.places[ELEMENT_END],
                   &number);
    return number;
}

#endif
