#include "input_events.h"

static const char *const QUERY_NAMES[] = {
#define NAMED(field, name) name,
    QUERY_EVENT_FIELDS(NAMED)
};
static const char *const CLICK_NAMES[] = {
    CLICK_EVENT_FIELDS(NAMED)
#undef NAMED
};

_Static_assert(N_CLICK_EVENT_FIELDS <= N_QUERY_EVENT_FIELDS, "room for either");

/* What the events of a call come from and go to. */
struct pass {
    struct reader bridge;
    const char *const *names;
    int64_t n_names, n_left; /* of the array that is being read */
    struct canonical out;
    uint8_t *start;
};

static void pass_begin(struct pass *pass, const uint8_t *bridge, int64_t n_bytes,
                       uint8_t *out, int64_t room) {
    *pass = (struct pass){.bridge = {bridge, n_bytes < 0 ? -1 : 0, n_bytes},
                          .out = {out, out + (room < 0 ? 0 : room)},
                          .start = out};
}

static bool is_named(struct span text, const char *name) {
    size_t n = strlen(name);
    return text.n == (int64_t)n && memcmp(text.bytes, name, n) == 0;
}

/* The values of the next event, whose names come in the order of its fields; false where
 * that is nil. */
static bool next_input(struct pass *pass, struct input *event) {
    struct reader *bridge = &pass->bridge;
    int64_t n_pairs = 0, field = 0;
    /* Python packs several at a time. */
    while (bridge->at >= 0 && pass->n_left == 0)
        pass->n_left = next_array(bridge);
    pass->n_left--;
    if (bridge->at < 0)
        return false;
    if (msgpack_has(bridge->at, bridge->end, 1) && bridge->data[bridge->at] == 0xC0) {
        bridge->at++;
        return false;
    }
    for (int64_t i = 0; i < pass->n_names; i++)
        event->fields[i] = (struct span){bridge->data, -1};
    bridge->at = msgpack_map(bridge->data, bridge->at, bridge->end, &n_pairs);
    for (int64_t i = 0; i < n_pairs && bridge->at >= 0; i++, field++) {
        struct span name = next_text(bridge);
        while (field < pass->n_names && !is_named(name, pass->names[field]))
            field++;
        int64_t start = bridge->at;
        bridge->at = msgpack_after_any(bridge->data, start, bridge->end);
        if (field >= pass->n_names)
            bridge->at = -1;
        if (bridge->at >= 0)
            event->fields[field] =
                (struct span){bridge->data + start, bridge->at - start};
    }
    return bridge->at >= 0;
}

/* Whether there is room for an element of an event of so many bytes. */
static bool has_room(const struct pass *pass, int64_t n_bytes) {
    return n_bytes <= (pass->out.end - pass->out.at - ELEMENT_OVERHEAD) / ELEMENT_FACTOR;
}

/* Notes where an element ends; one that was begun and is odd is taken back. */
static void settle(struct pass *pass, uint8_t *start, int64_t found, int64_t *outcome) {
    if (found != IS_PLAIN) {
        pass->out.at = start;
        outcome[OUTCOME_PARTITION] = found == IS_FOREIGN ? FOREIGN : ODD;
        outcome[OUTCOME_AT_MS] = outcome[OUTCOME_SIZE] = 0;
    }
    outcome[OUTCOME_END] = pass->out.at - pass->start;
}

static struct input_rules rules_of(const int64_t *rules) {
    return (struct input_rules){.n_partitions = rules[0],
                                .ahead_ms = rules[1],
                                .most_documents = rules[2],
                                .is_normalised = rules[3] != 0};
}

int64_t ingest_queries(const uint8_t *bridge, int64_t n_bytes, const int64_t *appended_ms,
                       int64_t n, const int64_t *rules, uint8_t *out, int64_t room,
                       int64_t *outcomes) {
    struct input_rules own = rules_of(rules);
    struct input_memory memory = {0};
    struct pass pass;
    struct input event;
    int64_t found = 0;
    pass_begin(&pass, bridge, n_bytes, out, room);
    pass.names = QUERY_NAMES;
    pass.n_names = N_QUERY_EVENT_FIELDS;
    for (int64_t i = 0; i < n && found >= 0; i++, outcomes += OUTCOME_WIDTH) {
        uint8_t *start = pass.out.at;
        int64_t first = pass.bridge.at;
        bool is_event = next_input(&pass, &event);
        event.appended_ms = appended_ms[i];
        if (pass.bridge.at < 0 || !has_room(&pass, pass.bridge.at - first))
            found = INPUT_NOT_WHOLE;
        else
            found = is_event ? put_query(&pass.out, &event, &own, &memory, outcomes) : IS_ODD;
        settle(&pass, start, found, outcomes);
    }
    free_input_memory(&memory);
    return found < 0 ? found : pass.bridge.at == n_bytes ? 0 : INPUT_NOT_WHOLE;
}

int64_t ingest_clicks(const uint8_t *bridge, int64_t n_bytes, const int64_t *appended_ms,
                      int64_t n, const int64_t *rules, const uint8_t *raws,
                      int64_t n_raw_bytes, const int64_t *places, const uint8_t *origin,
                      int64_t n_origin, uint8_t *out, int64_t room, int64_t *outcomes) {
    struct input_rules own = rules_of(rules);
    struct pass pass;
    struct input event;
    int64_t found = 0, raw_start = 0;
    own.origin = origin;
    own.n_origin = n_origin;
    pass_begin(&pass, bridge, n_bytes, out, room);
    pass.names = CLICK_NAMES;
    pass.n_names = N_CLICK_EVENT_FIELDS;
    for (int64_t i = 0; i < n && found >= 0; i++, outcomes += OUTCOME_WIDTH) {
        uint8_t *start = pass.out.at;
        int64_t first = pass.bridge.at, raw_end = places[3 * i];
        bool is_event = next_input(&pass, &event);
        event.appended_ms = appended_ms[i];
        if (pass.bridge.at < 0 || raw_end < raw_start || raw_end > n_raw_bytes ||
            !has_room(&pass, pass.bridge.at - first + raw_end - raw_start + n_origin)) {
            found = INPUT_NOT_WHOLE;
        } else {
            struct span raw = {raws + raw_start, raw_end - raw_start};
            found = is_event ? put_click(&pass.out, &event, &own, raw, &places[3 * i + 1],
                                         outcomes)
                             : IS_ODD;
            raw_start = raw_end;
        }
        settle(&pass, start, found, outcomes);
    }
    return found < 0 ? found : pass.bridge.at == n_bytes ? 0 : INPUT_NOT_WHOLE;
}

int64_t ingest_gather(const uint8_t *data, int64_t n_bytes, const int64_t *bounds,
                      int64_t n, uint8_t *out, int64_t room) {
    for (int64_t i = 0; i < n; i++, bounds += 2) {
        int64_t start = bounds[0], length = bounds[1] - start;
        if (start < 0 || length < 0 || bounds[1] > n_bytes || length > room)
            return -1;
        out = put_bytes(out, data + start, (size_t)length);
        room -= length;
    }
    return 0;
}
