/* Values of a record, read one after another. */
#ifndef FOLD_READER_H
#define FOLD_READER_H

#include <stdint.h>

#include "elements.h"
#include "msgpack.h"

/* What is read, from one value to the next; `at` is -1 once something was not whole. */
struct reader {
    const uint8_t *data;
    int64_t at, end;
};

static inline int64_t next_number(struct reader *reader) {
    int64_t number = 0;
    reader->at = msgpack_number(reader->data, reader->at, reader->end, &number);
    return number;
}

/* A number from 0 up to a limit, which is not among them. */
static inline int64_t next_below(struct reader *reader, int64_t limit) {
    int64_t number = next_number(reader);
    if (number >= 0 && number < limit)
        return number;
    reader->at = -1;
    return 0;
}

static inline int64_t next_array(struct reader *reader) {
    int64_t length = 0;
    reader->at = msgpack_array(reader->data, reader->at, reader->end, &length);
    if (reader->at >= 0 && length <= reader->end - reader->at)
        return length;
    reader->at = -1;
    return 0;
}

/* The rows of a flat array of so many columns. */
static inline int64_t next_rows(struct reader *reader, int64_t n_columns) {
    int64_t length = next_array(reader);
    if (length % n_columns)
        reader->at = -1;
    return reader->at < 0 ? 0 : length / n_columns;
}

static inline struct span next_text(struct reader *reader) {
    int64_t start = 0, n = 0;
    reader->at = msgpack_span(reader->data, reader->at, reader->end, &start, &n);
    return reader->at < 0 ? (struct span){reader->data, 0}
                          : (struct span){reader->data + start, n};
}

#endif
