/* Query events: lists that were shown. */
#include "input_events.h"

_Static_assert(N_QUERY_EVENT_FIELDS == 24, "each is read here or in input_extra.c");

static const char *const POLICY_NAME[] = {
#define NAMED(number, name) name,
    POLICY_NAMES(NAMED)
#undef NAMED
};
enum { N_POLICIES = sizeof POLICY_NAME / sizeof POLICY_NAME[0] };

/* What is read of an event before anything is written. */
struct list_shown {
    struct text id, model, intervention, user, session;
    struct span seed, query;
    uint8_t room[MAX_QUERY_CHARACTERS];
    int64_t at_ms, version, policy, n_items, n_shown;
    bool is_open;
};

static struct text optional(const struct input *event, int field) {
    static const uint8_t EMPTY[] = {0xA0};
    struct span value = event->fields[field];
    return text_in(value.n < 0 ? (struct span){EMPTY, 1} : value);
}

static int64_t policy_of(struct span value) {
    if (value.n < 0)
        return POLICY_UNKNOWN;
    struct text text = text_in(value);
    for (int64_t number = 0; number < N_POLICIES; number++)
        if (text.span.n == (int64_t)strlen(POLICY_NAME[number]) &&
            memcmp(text.span.bytes, POLICY_NAME[number], (size_t)text.span.n) == 0)
            return number;
    return ODD;
}

/* A whole number, 0 where there is none. */
static bool read_number(const struct input *event, int field, int64_t *number) {
    *number = 0;
    return event->fields[field].n < 0 || number_of(event->fields[field], number);
}

static bool read_texts(const struct input *event, struct list_shown *list) {
    static const uint8_t ZERO[] = {0};
    int64_t schema = EVENT_SCHEMA;
    struct span seed = event->fields[QUERY_EVENT_SEED];
    list->seed = seed.n < 0 ? (struct span){ZERO, 1} : seed;
    list->id = text_in(event->fields[QUERY_EVENT_IMPRESSION_ID]);
    list->model = optional(event, QUERY_EVENT_MODEL);
    list->intervention = event->fields[QUERY_EVENT_INTERVENTION].n < 0
                             ? list->model
                             : optional(event, QUERY_EVENT_INTERVENTION);
    list->user = optional(event, QUERY_EVENT_USER);
    list->session = optional(event, QUERY_EVENT_SESSION);
    list->policy = policy_of(event->fields[QUERY_EVENT_POLICY]);
    if (event->fields[QUERY_EVENT_SCHEMA].n >= 0 &&
        !number_of(event->fields[QUERY_EVENT_SCHEMA], &schema))
        return false;
    return schema == EVENT_SCHEMA && list->id.span.n > 0 && list->model.span.n >= 0 &&
           list->intervention.span.n >= 0 && list->user.span.n >= 0 &&
           list->session.span.n >= 0 && list->policy >= 0 && list->query.n > 0 &&
           is_within(list->id.span, MAX_ID_CHARACTERS) &&
           is_within(list->model.span, MAX_ID_CHARACTERS) &&
           is_within(list->intervention.span, MAX_ID_CHARACTERS) &&
           msgpack_after_number(list->seed.bytes, 0, list->seed.n) == list->seed.n;
}

static bool read_numbers_of(const struct input *event, const struct input_rules *rules,
                            struct list_shown *list) {
    return read_number(event, QUERY_EVENT_AT_MS, &list->at_ms) &&
           read_number(event, QUERY_EVENT_VERSION, &list->version) &&
           list->version >= 0 &&
           is_plausible(list->at_ms, event->appended_ms, rules->ahead_ms);
}

/* Scores in canonical order; bytes of them, or ODD, or INPUT_NO_MEMORY. */
static int64_t put_scores(struct canonical *out, struct span scores,
                          struct input_memory *memory, int64_t n_items) {
    if (scores.n < 0) {
        out->at = put_binary_head(out->at, 0);
        return 0;
    }
    int64_t n = read_numbers(memory, scores);
    if (n == INPUT_NO_MEMORY || n != n_items)
        return n == INPUT_NO_MEMORY ? n : ODD;
    put_permuted(out, memory, n, 1);
    return 4 * n;
}

static int64_t put_placements(struct canonical *out, struct span exposures,
                              struct input_memory *memory,
                              const struct list_shown *list) {
    if (exposures.n < 0) {
        out->at = put_binary_head(out->at, 0);
        return 0;
    }
    int64_t n = read_numbers(memory, exposures);
    if (n == INPUT_NO_MEMORY || n != list->n_items * list->n_shown)
        return n == INPUT_NO_MEMORY ? n : ODD;
    return put_exposures(out, memory, list->n_items, list->n_shown);
}

/* Rows of features as they are, and how many each has. */
static int64_t put_features(struct canonical *out, struct span features,
                            struct input_memory *memory, int64_t n_shown) {
    int64_t n = 0;
    if (features.n >= 0) {
        /* Rows of numbers are of Python. */
        if (text_in(features).span.n < 0)
            return ODD;
        n = read_numbers(memory, features);
        if (n < 0)
            return n;
        if (n % n_shown)
            return ODD;
    }
    put_numbers(out, memory, n);
    out->at = put_number(out->at, n / n_shown);
    return 4 * n;
}

static uint64_t unit_of(const struct list_shown *list) {
    struct span session = list->session.span, user = list->user.span;
    if (session.n > 0)
        return digest_of("s", session.bytes, session.n);
    if (user.n > 0)
        return digest_of("u", user.bytes, user.n);
    return digest_of("i", list->id.span.bytes, list->id.span.n);
}

/* The names of all candidates in canonical order, as a packed array; its bytes. */
static int64_t put_candidates(struct canonical *out, const struct input_memory *memory,
                              int64_t n_items) {
    uint8_t head[9];
    int64_t n_head = put_array(head, (uint64_t)n_items) - head, n = n_head;
    for (int64_t row = 0; row < n_items; row++)
        n += memory->items[row].text.n_packed;
    out->at = put_binary_head(out->at, n);
    out->at = put_bytes(out->at, head, (size_t)n_head);
    for (int64_t row = 0; row < n_items; row++)
        put_text(out, memory->items[row].text);
    return n;
}

static void put_head(struct canonical *out, const struct list_shown *list) {
    struct part part = {list->id.span.bytes, list->id.span.n};
    struct part parts[] = {{(const uint8_t *)"i", 1}, part};
    uint8_t *at = put_number(put_array(out->at, N_IMPRESSION_FIELDS), IMPRESSION);
    out->at = at;
    put_identity(out, parts, 2);
    put_text(out, list->id);
    out->at = put_text_head(out->at, list->query.n);
    out->at = put_bytes(out->at, list->query.bytes, (size_t)list->query.n);
    out->at = put_number(out->at, list->at_ms);
    put_text(out, list->model);
    out->at = put_number(out->at, list->version);
    put_text(out, list->intervention);
    out->at = put_bytes(out->at, list->seed.bytes, (size_t)list->seed.n);
    out->at = put_number(out->at, list->policy);
}

/* Whether a list may be drawn so, from what it says of its candidates. */
static bool is_drawn(const struct list_shown *list, bool has_scores, bool has_exposures) {
    int64_t policy = list->policy;
    if (list->is_open && (has_scores || has_exposures || policy == POLICY_TAIL_SHUFFLE))
        return false;
    return (policy != POLICY_PLACKETT_LUCE || has_scores) &&
           (policy != POLICY_LOGGED || has_exposures);
}

/* Vectors, unit and what later stages read; bytes of these, or ODD, or
 * INPUT_NO_MEMORY. */
static int64_t put_rest(struct canonical *out, const struct input *event,
                        struct input_memory *memory, const struct list_shown *list) {
    const struct span *fields = event->fields;
    int64_t n_scores =
        put_scores(out, fields[QUERY_EVENT_SCORES], memory, list->n_items);
    if (n_scores < 0)
        return n_scores;
    int64_t n_placed =
        put_placements(out, fields[QUERY_EVENT_EXPOSURES], memory, list);
    if (n_placed < 0)
        return n_placed;
    int64_t n_features =
        put_features(out, fields[QUERY_EVENT_FEATURES], memory, list->n_shown);
    if (n_features < 0)
        return n_features;
    out->at = put_unsigned(out->at, unit_of(list));
    struct list_size size = {list->n_items, list->n_shown};
    int64_t n_extra = put_extra(out, event, size, memory);
    return n_extra < 0 ? n_extra : n_scores + n_placed + n_features + n_extra;
}

int64_t put_query(struct canonical *out, const struct input *event,
                  const struct input_rules *rules, struct input_memory *memory,
                  int64_t *outcome) {
    struct list_shown list;
    list.query = normalised(text_in(event->fields[QUERY_EVENT_QUERY_ID]).span, rules,
                            list.room);
    if (list.query.n == FOREIGN)
        return IS_FOREIGN;
    if (!read_texts(event, &list) || !read_numbers_of(event, rules, &list))
        return IS_ODD;
    struct span shown = event->fields[QUERY_EVENT_SHOWN];
    struct span candidates = event->fields[QUERY_EVENT_CANDIDATES];
    list.is_open = candidates.n < 0;
    if (!is_drawn(&list, event->fields[QUERY_EVENT_SCORES].n >= 0,
                  event->fields[QUERY_EVENT_EXPOSURES].n >= 0))
        return IS_ODD;
    list.n_items =
        read_items(memory, list.is_open ? shown : candidates, rules->most_documents);
    if (list.n_items < 0)
        return list.n_items == ODD ? IS_ODD : list.n_items;
    put_head(out, &list);
    int64_t n_names = put_candidates(out, memory, list.n_items);
    list.n_shown = put_rows(out, memory, shown, list.n_items, list.is_open);
    if (list.n_shown < 0)
        return IS_ODD;
    *out->at++ = list.is_open ? 0xC3 : 0xC2;
    int64_t n_rest = put_rest(out, event, memory, &list);
    if (n_rest < 0)
        return n_rest == ODD ? IS_ODD : n_rest;
    int64_t n_characters = characters_of(list.id.span) + characters_of(list.query) +
                           characters_of(list.model.span) +
                           characters_of(list.intervention.span);
    outcome[OUTCOME_PARTITION] = (int64_t)(route_of(list.query) % (uint64_t)rules->n_partitions);
    outcome[OUTCOME_AT_MS] = list.at_ms;
    outcome[OUTCOME_SIZE] = 256 + 4 * n_characters + n_names + 2 * list.n_shown + n_rest;
    return outcome[OUTCOME_SIZE] <= MAX_EVENT_BYTES ? IS_PLAIN : IS_ODD;
}
