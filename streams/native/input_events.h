/* Input events into canonical ones, as `streams/ingest/validation.py` does it.
 *
 * Python decodes; an event comes as the map of its struct, one behind the other, and
 * what was no event as nil. Each that is plain is written as an element of `events`. Any
 * other is *odd*: it is left to Python, which refuses it or takes it. So nothing here
 * refuses an event, and what is doubtful is odd. */
#ifndef FOLD_INPUT_EVENTS_H
#define FOLD_INPUT_EVENTS_H

#include <stdbool.h>
#include <stdint.h>

#include "encode.h"
#include "export.h"
#include "fields.h"
#include "reader.h"

/* Of each event: where its element ends in `out`, the partition of `events`, its own
 * time, and its size as `size_of` of Python has it. ODD stands for the partition of what
 * is odd, FOREIGN where that may be for its query only, which is not ASCII. */
enum { OUTCOME_END, OUTCOME_PARTITION, OUTCOME_AT_MS, OUTCOME_SIZE, OUTCOME_WIDTH };

enum { ODD = -1, FOREIGN = -2 };
/* What came of an event, beside INPUT_NO_MEMORY. */
enum { IS_ODD, IS_PLAIN, IS_FOREIGN };
enum { INPUT_NOT_WHOLE = -1, INPUT_NO_MEMORY = -2 };

/* Beside its texts and vectors an element takes less than so much; each of these is
 * written twice at most. */
enum { ELEMENT_OVERHEAD = 512, ELEMENT_FACTOR = 4 };

/* What all events of a call share; `origin` is what begins the origin of each click. */
struct input_rules {
    int64_t n_partitions, ahead_ms, most_documents;
    bool is_normalised; /* Python has put queries into their normalised form */
    const uint8_t *origin;
    int64_t n_origin;
};

/* Where elements are written. */
struct canonical {
    uint8_t *at, *end;
};

/* A value in its packed form, and what it holds. */
struct text {
    const uint8_t *packed;
    int64_t n_packed;
    struct span span;
};

/* The values of a map by number of field; `n` is -1 where there is none. */
struct input {
    struct span fields[N_QUERY_EVENT_FIELDS];
    int64_t appended_ms;
};

/* An item of a list, and its number there; `head` begins with its first bytes. */
struct listed {
    uint64_t head;
    struct text text;
    int64_t number;
};

/* Memory that serves one event after another. */
struct input_memory {
    struct listed *items, *others; /* in canonical order; while they are sorted */
    int64_t *row_of;               /* by number in the list */
    uint8_t *is_marked;            /* by row, or by rank */
    int64_t n_items;
    uint32_t *numbers; /* float32, by their bits */
    int64_t n_numbers;
};

/* ---- texts (input_texts.c) ---- */

/* The whole of a text, or one of n = -1 where it is something else. */
struct text text_in(struct span value);

/* Its characters, of which some take several bytes. */
int64_t characters_of(struct span text);

/* Whether it has at most so many. */
bool is_within(struct span text, int64_t most);

/* A whole number, and whether it is one; those beyond 2^63 come as negative ones, which
 * none of ours may be. */
bool number_of(struct span value, int64_t *number);

/* Whether `at_ms` may be that of an event that was appended then. */
bool is_plausible(int64_t at_ms, int64_t appended_ms, int64_t ahead_ms);

/* The normalised form of a query: itself where it has that already, else in `room` of
 * MAX_QUERY_CHARACTERS bytes; `n` is FOREIGN where it is too long or not ASCII. */
struct span normalised(struct span query, const struct input_rules *rules, uint8_t *room);

/* The route of a normalised query, the same in each segment. */
uint64_t route_of(struct span query);

/* The 64-bit digest of `mark` before a text: routes, units. */
uint64_t digest_of(const char *mark, const uint8_t *bytes, int64_t n);

/* The route in an impression id, and whether there is one. */
bool route_in(struct span impression_id, uint64_t *route);

/* An identity, made of the parts that name it. */
struct part {
    const uint8_t *bytes;
    int64_t n;
};
void put_identity(struct canonical *out, const struct part *parts, int64_t n);

/* Digits of a number from 0 on, at most 20; how many. */
int64_t put_decimal(uint8_t *at, int64_t number);

uint8_t *put_unsigned(uint8_t *at, uint64_t number);
uint8_t *put_text_head(uint8_t *at, int64_t n);
uint8_t *put_binary_head(uint8_t *at, int64_t n);

static inline void put_text(struct canonical *out, struct text text) {
    out->at = put_bytes(out->at, text.packed, (size_t)text.n_packed);
}

/* ---- lists (input_lists.c) ---- */

/* Reads a list of items and puts it in canonical order; how many there are, or ODD: it
 * is none, too long, names one twice or wrongly. */
int64_t read_items(struct input_memory *memory, struct span value, int64_t most);

/* The rows of what is shown, as uint16 into `out`; how many, or ODD. */
int64_t put_rows(struct canonical *out, struct input_memory *memory, struct span shown,
                 int64_t n_items, bool is_open);

void free_input_memory(struct input_memory *memory);

/* ---- vectors (input_vectors.c) ---- */

/* Reads finite float32 from base64 or numbers; how many, or ODD. */
int64_t read_numbers(struct input_memory *memory, struct span value);

/* Rows of `width` numbers in canonical order, as binary data. */
void put_permuted(struct canonical *out, const struct input_memory *memory,
                  int64_t n_rows, int64_t width);

/* Numbers as they are, as binary data. */
void put_numbers(struct canonical *out, const struct input_memory *memory, int64_t n);

/* Probabilities of rows x ranks in canonical order and packed, as binary data; how many
 * bytes, or ODD where they are none, or close to none. */
int64_t put_exposures(struct canonical *out, const struct input_memory *memory,
                      int64_t n_rows, int64_t n_ranks);

/* Bytes of a text in base64 that ends as encoders end it, into `numbers`; how many, or
 * ODD. */
int64_t read_base64(struct input_memory *memory, struct span text);

/* Whether `n` packed float32 are finite; they are numbers then. */
bool are_finite(struct input_memory *memory, int64_t n);

/* Rows of the features in `text`, in canonical order and in base64 as before. */
void put_features_text(struct canonical *out, struct input_memory *memory,
                       struct text text, int64_t n_rows);

/* ---- events ---- */

struct list_size {
    int64_t n_items, n_shown;
};

/* User, session and what else later stages read, as packed binary data; how many bytes,
 * or ODD, or INPUT_NO_MEMORY. */
int64_t put_extra(struct canonical *out, const struct input *event,
                  struct list_size size, struct input_memory *memory);

/* Write the element of a plain event, and say what came of it. */
int64_t put_query(struct canonical *out, const struct input *event,
                  const struct input_rules *rules, struct input_memory *memory,
                  int64_t *outcome);
int64_t put_click(struct canonical *out, const struct input *event,
                  const struct input_rules *rules, struct span raw,
                  const int64_t *origin, int64_t *outcome);

/* Events into `out` of `room` bytes; `outcomes[n][OUTCOME_WIDTH]`. `rules` are those of
 * `struct input_rules`. Returns 0, or -1 where `bridge` is not whole or
 * `out` has no room, or -2 without memory. */
FOLD_EXPORT int64_t ingest_queries(const uint8_t *bridge, int64_t n_bytes,
                                   const int64_t *appended_ms, int64_t n,
                                   const int64_t *rules, uint8_t *out, int64_t room,
                                   int64_t *outcomes);

/* The same of clicks; `raws` holds their own bytes, `places[n][3]` of each the end of
 * those, its offset and its place in the record, `origin[n_origin]` what stands before
 * these two. */
FOLD_EXPORT int64_t ingest_clicks(const uint8_t *bridge, int64_t n_bytes,
                                  const int64_t *appended_ms, int64_t n,
                                  const int64_t *rules, const uint8_t *raws,
                                  int64_t n_raw_bytes, const int64_t *places,
                                  const uint8_t *origin, int64_t n_origin, uint8_t *out,
                                  int64_t room, int64_t *outcomes);

/* Copies pieces one behind the other: `bounds[n][2]` of `data`, in that order, to `out`.
 * Returns 0, or -1 where they do not lie in `data`, or do not fit. */
FOLD_EXPORT int64_t ingest_gather(const uint8_t *data, int64_t n_bytes,
                                  const int64_t *bounds, int64_t n, uint8_t *out,
                                  int64_t room);

#endif
