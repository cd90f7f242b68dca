/* Input events as Python hands them over, which may be broken, into canonical elements.
 *
 * What is written lies in memory that ends where it was said to, and is what the fold
 * takes; what is not whole is refused. */
#include "fuzzed.h"
#include "input_events.h"

enum { N_PARTITIONS = 4, AHEAD_MS = 300000, MOST_DOCUMENTS = 1000 };
#define APPENDED_MS INT64_C(1700000000000)
static const uint8_t ORIGIN[] = {0x94, 0xA6, 'c', 'l', 'i', 'c', 'k', 's', 0x01};

/* Queries are mostly to be normalised. */
static const int64_t *rules(void) {
    static int64_t found[] = {N_PARTITIONS, AHEAD_MS, MOST_DOCUMENTS, 0};
    found[3] = below(4) == 0;
    return found;
}

/* How many events all arrays hold; of what is broken, so many that it is reached. */
static int64_t count(const uint8_t *data, int64_t end) {
    int64_t n_events = 0, at = 0;
    while (at >= 0 && at < end) {
        int64_t n = 0;
        at = msgpack_array(data, at, end, &n);
        for (int64_t i = 0; i < n && at >= 0; i++, n_events++)
            at = msgpack_after_any(data, at, end);
    }
    return n_events + (int64_t)below(at < 0 ? 2 : 1);
}

/* Mostly all the room that is asked for; seldom less. */
static int64_t room_for(int64_t n_bytes, int64_t n) {
    int64_t room = ELEMENT_FACTOR * n_bytes + ELEMENT_OVERHEAD * n;
    return below(8) ? room : (int64_t)below((size_t)room + 1);
}

static const int64_t *times(int64_t n) {
    int64_t *appended_ms = bounded(INPUT_TIMES, (size_t)n * sizeof *appended_ms);
    for (int64_t i = 0; i < n; i++)
        appended_ms[i] = APPENDED_MS + (int64_t)below(100000);
    return appended_ms;
}

/* Every element is whole, of its kind, and no larger than was said. */
static void check_elements(const uint8_t *out, const int64_t *outcomes, int64_t n,
                           int64_t tag) {
    int64_t places[ELEMENT_WIDTH], start = 0;
    for (int64_t i = 0; i < n; i++, outcomes += OUTCOME_WIDTH) {
        int64_t end = outcomes[OUTCOME_END], partition = outcomes[OUTCOME_PARTITION];
        CHECK(partition >= FOREIGN && partition < N_PARTITIONS);
        if (partition < 0) {
            CHECK(end == start);
            continue;
        }
        CHECK(fold_find_fields(out, start, end, places) == end);
        CHECK(number_at(out, places[0], end) == tag);
        CHECK(outcomes[OUTCOME_SIZE] >= end - start);
        CHECK(outcomes[OUTCOME_AT_MS] >= 0);
        start = end;
    }
}

int take_queries(const uint8_t *data, int64_t end) {
    int64_t n = count(data, end), room = room_for(end, n);
    uint8_t *out = bounded(INPUT_ELEMENTS, (size_t)room);
    int64_t *outcomes = bounded(INPUT_OUTCOMES, (size_t)(n * OUTCOME_WIDTH) * 8);
    int64_t found = ingest_queries(data, end, times(n), n, rules(), out, room, outcomes);
    CHECK(found == 0 || found == INPUT_NOT_WHOLE);
    if (found == 0)
        check_elements(out, outcomes, n, IMPRESSION);
    return found == 0;
}

int take_clicks(const uint8_t *data, int64_t end) {
    int64_t n = count(data, end), n_raw = 0;
    int64_t *places = bounded(INPUT_PLACES, (size_t)(3 * n) * sizeof *places);
    for (int64_t i = 0; i < n; i++) {
        n_raw += (int64_t)below(200);
        places[3 * i] = n_raw;
        places[3 * i + 1] = (int64_t)below(1 << 20);
        places[3 * i + 2] = (int64_t)below(1 << 10);
    }
    /* Seldom there are less than is said. */
    n_raw = below(8) ? n_raw : (int64_t)below((size_t)n_raw + 1);
    uint8_t *raws = bounded(INPUT_RAWS, (size_t)n_raw);
    memset(raws, '1', (size_t)n_raw);
    uint8_t *origin = bounded(INPUT_ORIGIN, sizeof ORIGIN);
    memcpy(origin, ORIGIN, sizeof ORIGIN);
    int64_t room = room_for(end + n_raw + n * (int64_t)sizeof ORIGIN, n);
    uint8_t *out = bounded(INPUT_ELEMENTS, (size_t)room);
    int64_t *outcomes = bounded(INPUT_OUTCOMES, (size_t)(n * OUTCOME_WIDTH) * 8);
    int64_t found = ingest_clicks(data, end, times(n), n, rules(), raws, n_raw, places,
                                  origin, sizeof ORIGIN, out, room, outcomes);
    CHECK(found == 0 || found == INPUT_NOT_WHOLE);
    if (found == 0)
        check_elements(out, outcomes, n, CLICK);
    return found == 0;
}
