/* Elements as they come: impressions that open, clicks that find theirs. */
#include "join.h"

#include "attaching.h"
#include "waiting.h"

/* Limits of clicks, and the origin of what is taken. */
struct taking {
    struct limits limits;
    int64_t origin;
};

/* Elements whose slots are fetched together, and identities that one may add. */
enum { BATCH = 250, MOST_NAMED = 2 };

/* Ingestion writes no map of 16 or more here, and begins with what excludes a list. */
static uint8_t flags_of(struct span extra) {
    static const char excluded[] = "\xA8" "excluded\xC3";
    int64_t n = sizeof(excluded) - 1;
    if (extra.n < 1)
        return 0;
    bool is_excluded = extra.n > n && (extra.bytes[0] & 0xF0) == 0x80 &&
                       !memcmp(extra.bytes + 1, excluded, (size_t)n);
    return is_excluded ? HAS_EXTRA | IS_EXCLUDED : HAS_EXTRA;
}

/* Adds an impression to what is open, at the slot of its identity. */
static int64_t open_impression(struct join *join, struct element element,
                               struct identity *slot, int64_t due_ms, int64_t origin) {
    struct entry entry = entry_of(element, KIND_IMPRESSION, due_ms, origin);
    entry.flags = flags_of(span_in(element, IMPRESSION_EXTRA));
    if (!dues_reserve(&join->closing))
        return NO_MEMORY;
    int64_t start = start_of(element);
    uint64_t ref = chunks_add(&join->chunks, entry, element.data + start);
    if (!ref)
        return NO_MEMORY;
    struct impression *impression = entry_at(&join->chunks, ref);
    impression->shown_at = (uint32_t)(element.places[IMPRESSION_SHOWN] - start);
    impression->candidates_at = (uint32_t)(element.places[IMPRESSION_CANDIDATES] - start);
    impression->model_at = (uint32_t)(element.places[IMPRESSION_MODEL] - start);
    struct name name = name_in(element, IMPRESSION_IDENTITY);
    identities_put(&join->identities, slot, name, ref, due_ms, join->now);
    dues_add(&join->closing, (struct due){due_ms, ref});
    join->n_open++;
    return (int64_t)ref;
}

static bool has_room(const struct impression *impression, struct element click,
                     struct limits limits) {
    return impression->n_clicks < limits.n_clicks &&
           impression->click_bytes + length_of(click) <= limits.n_bytes;
}

static int64_t take_impression(struct join *join, struct element element,
                               struct identity *slot, struct taking taking,
                               bool *is_plain) {
    int64_t due_ms = later(number_in(element, IMPRESSION_AT_MS), join->window_ms);
    uint64_t first = state_of(slot, join->now) == IS_AWAITED ? slot->ref : 0;
    *is_plain = due_ms > join->now.ms &&
                (!first || are_plain(join, first, element, due_ms, taking.limits));
    if (!*is_plain)
        return 0;
    int64_t ref = open_impression(join, element, slot, due_ms, taking.origin);
    return first && ref > 0 ? attach_waiting(join, first, (uint64_t)ref) : ref;
}

/* A click whose impression has not come. One that was withdrawn is on no place. */
static int64_t take_early(struct join *join, struct element element,
                          struct identity *slot, struct taking taking, bool *is_plain) {
    int64_t expires_ms = later(number_in(element, CLICK_AT_MS), join->disorder_ms);
    *is_plain = expires_ms > join->now.ms && number_in(element, CLICK_POSITION) >= 0 &&
                !is_same_name(name_in(element, CLICK_IDENTITY),
                              name_in(element, CLICK_IMPRESSION)) &&
                may_wait(join, element, taking.limits);
    return *is_plain ? let_wait(join, element, slot, taking.origin) : 0;
}

static int64_t take_click(struct join *join, struct element element,
                          struct identity *slot, struct taking taking, bool *is_plain) {
    const struct identity *found = slot_of(join, name_in(element, CLICK_IMPRESSION));
    enum state state = state_of(found, join->now);
    if (state == IS_ABSENT || state == IS_AWAITED)
        return take_early(join, element, slot, taking, is_plain);
    *is_plain = state == IS_OPEN && number_in(element, CLICK_AT_MS) <= found->due_ms;
    if (!*is_plain)
        return 0;
    const struct impression *impression = entry_at(&join->chunks, found->ref);
    int64_t position = 0;
    if (has_room(impression, element, taking.limits))
        position = position_of(offered_by(impression), element);
    *is_plain = position > 0;
    if (!*is_plain)
        return 0;
    return attach(join, found->ref, element, slot, position, taking.origin);
}

static const struct identity *home_in(const struct join *join, struct element element,
                                      int field) {
    return &join->identities.slots[home_of(&join->identities, name_in(element, field))];
}

int64_t join_take(struct join *join, const uint8_t *data, const int8_t *tags,
                  const int64_t *places, int64_t first, int64_t n, int64_t most_clicks,
                  int64_t most_bytes, int64_t origin) {
    struct taking taking = {{most_clicks, most_bytes}, NOWHERE};
    for (int64_t end = first; first < n; first = end) {
        end = n - first < BATCH ? n : first + BATCH;
        if (!identities_reserve(&join->identities, MOST_NAMED * BATCH, join->now))
            return NO_MEMORY;
        for (int64_t i = first; i < end; i++) {
            struct element element = {data, places + i * ELEMENT_WIDTH};
            if (tags[i] != FRONTIER)
                PREFETCH(home_in(join, element, IMPRESSION_IDENTITY));
            if (tags[i] == CLICK)
                PREFETCH(home_in(join, element, CLICK_IMPRESSION));
        }
        for (int64_t i = first; i < end; i++) {
            struct element element = {data, places + i * ELEMENT_WIDTH};
            if (tags[i] == FRONTIER)
                return i;
            if (!is_time(element, tags[i] == CLICK ? CLICK_AT_MS : IMPRESSION_AT_MS))
                return NOT_WHOLE;
            struct identity *slot = slot_of(join, name_in(element, IMPRESSION_IDENTITY));
            enum state state = state_of(slot, join->now);
            bool is_plain = state == IS_ABSENT;
            int64_t taken = 0;
            taking.origin = origin < 0 ? NOWHERE : origin + i;
            if (tags[i] == IMPRESSION && (is_plain || state == IS_AWAITED))
                taken = take_impression(join, element, slot, taking, &is_plain);
            else if (is_plain)
                taken = take_click(join, element, slot, taking, &is_plain);
            if (taken == NO_MEMORY)
                return NO_MEMORY;
            if (!is_plain)
                return i;
        }
    }
    return n;
}

int64_t prepare(struct join *join, struct element element, int64_t n, int64_t *places) {
    if (fold_find_fields(element.data, 0, n, places) != n)
        return NOT_WHOLE;
    places[0] = 0;
    return identities_reserve(&join->identities, MOST_NAMED, join->now) ? 0 : NO_MEMORY;
}

int64_t join_open(struct join *join, const uint8_t *data, int64_t n, int64_t origin) {
    int64_t places[ELEMENT_WIDTH];
    struct element element = {data, places};
    int64_t failure = prepare(join, element, n, places);
    if (failure)
        return failure;
    struct identity *slot = slot_of(join, name_in(element, IMPRESSION_IDENTITY));
    int64_t due_ms = later(number_in(element, IMPRESSION_AT_MS), join->window_ms);
    if (!is_time(element, IMPRESSION_AT_MS) || due_ms <= join->now.ms ||
        state_of(slot, join->now) != IS_ABSENT)
        return NOT_WHOLE;
    return open_impression(join, element, slot, due_ms, origin);
}

int64_t join_attach(struct join *join, uint64_t ref, const uint8_t *data, int64_t n,
                    int64_t most_clicks, int64_t most_bytes, int64_t origin) {
    int64_t places[ELEMENT_WIDTH];
    struct element element = {data, places};
    const struct impression *impression = entry_at(&join->chunks, ref);
    int64_t failure = prepare(join, element, n, places);
    if (failure)
        return failure;
    if (number_in(element, CLICK_AT_MS) > impression->entry.due_ms)
        return IS_LATE;
    if (!has_room(impression, element, (struct limits){most_clicks, most_bytes}))
        return IS_BEYOND;
    struct identity *slot = slot_of(join, name_in(element, CLICK_IDENTITY));
    if (!is_time(element, CLICK_AT_MS) || state_of(slot, join->now) != IS_ABSENT)
        return NOT_WHOLE;
    int64_t position = position_of(offered_by(impression), element);
    return attach(join, ref, element, slot, position, origin);
}

int64_t join_note(struct join *join, int64_t due_ms, const uint8_t *data, int64_t n) {
    struct entry entry = {
        .due_ms = due_ms, .origin = NOWHERE, .length = (uint32_t)n, .kind = KIND_WAITING};
    if (!dues_reserve(&join->expiring))
        return NO_MEMORY;
    uint64_t ref = chunks_add(&join->chunks, entry, data);
    if (!ref)
        return NO_MEMORY;
    dues_add(&join->expiring, (struct due){due_ms, ref});
    return 0;
}

int64_t join_find(const struct join *join, const uint8_t *identity) {
    const struct identity *slot = slot_of(join, name_at(identity));
    enum state state = state_of(slot, join->now);
    return state == IS_OPEN ? (int64_t)slot->ref : (int64_t)state;
}

struct join *join_new(int64_t window_ms, int64_t disorder_ms, int64_t remember_ms) {
    struct join *join = calloc(1, sizeof *join);
    if (!join)
        return NULL;
    join->window_ms = window_ms;
    join->disorder_ms = disorder_ms;
    join->remember_ms = remember_ms;
    join->chunks.rows.width = sizeof(struct chunk *);
    join->chunks.first = 1;
    join->forgetting.width = sizeof(struct known);
    join->remembered.width = sizeof(struct remembered);
    join->due.width = join->orphans.width = sizeof(uint64_t);
    dues_begin(&join->closing);
    dues_begin(&join->expiring);
    join_restore_time(join, -1);
    if (identities_reserve(&join->identities, 1, join->now))
        return join;
    join_free(join);
    return NULL;
}

void join_free(struct join *join) {
    if (!join)
        return;
    chunks_free(&join->chunks);
    dues_free(&join->closing);
    dues_free(&join->expiring);
    free(join->identities.memory);
    free(join->forgetting.rows);
    free(join->remembered.rows);
    free(join->due.rows);
    free(join->orphans.rows);
    free(join->clicks.rows);
    free(join);
}

void join_sizes(const struct join *join, int64_t sizes[6]) {
    const struct queue *queues[] = {&join->forgetting, &join->remembered, &join->due,
                                    &join->orphans, &join->clicks};
    sizes[0] = join->n_open;
    sizes[1] = join->n_placed;
    sizes[2] = join->identities.n_known;
    sizes[3] = (int64_t)join->remembered.n;
    sizes[4] = (int64_t)(join->identities.n_slots * sizeof(struct identity));
    sizes[4] += join->chunks.n_bytes;
    sizes[4] += dues_bytes(&join->closing) + dues_bytes(&join->expiring);
    for (size_t i = 0; i < sizeof queues / sizeof *queues; i++)
        sizes[4] += queue_bytes(queues[i]);
    sizes[5] = join->n_waiting;
}
