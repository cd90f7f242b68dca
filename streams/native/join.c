/* Elements as they come: impressions that open, clicks that find theirs. */
#include "join.h"

#include "elements.h"
#include "msgpack.h"

/* Limits of clicks, and the origin of what is taken. */
struct taking {
    struct limits limits;
    int64_t origin;
};

/* Elements whose slots are fetched together. */
enum { BATCH = 250 };

/* No time of an element lies farther from 1970 than this. */
#define FARTHEST_MS (INT64_C(1) << 61)

static int64_t start_of(struct element element) { return element.places[0]; }

static int64_t length_of(struct element element) {
    return element.places[ELEMENT_END] - element.places[0];
}

static struct name name_in(struct element element, int field) {
    return name_at(span_in(element, field).bytes);
}

/* Whether a field is a time that sums with windows stay sums of; both ways. */
static bool is_time(struct element element, int field) {
    const uint8_t *bytes = element.data + element.places[field];
    int64_t at_ms = number_in(element, field);
    bool is_beyond = bytes[0] == 0xCF && bytes[1] >= 0x80;
    return !is_beyond && at_ms >= -FARTHEST_MS && at_ms <= FARTHEST_MS;
}

/* A window without end stays one. */
static int64_t later(int64_t at_ms, int64_t by_ms) {
    return at_ms < NEVER_DUE - by_ms ? at_ms + by_ms : NEVER_DUE - 1;
}

static struct identity *slot_of(const struct join *join, struct name name) {
    return identities_slot(&join->identities, name, join->now);
}

static struct entry entry_of(struct element element, uint8_t kind, int64_t due_ms,
                             int64_t origin) {
    const uint8_t *identity = span_in(element, IMPRESSION_IDENTITY).bytes;
    return (struct entry){
        .due_ms = due_ms,
        .origin = origin,
        .length = (uint32_t)length_of(element),
        .kind = kind,
        .identity_at = (uint8_t)(identity - element.data - start_of(element)),
    };
}

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
    if (!dues_reserve(&join->dues))
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
    dues_add(&join->dues, (struct due){due_ms, ref});
    join->n_open++;
    return (int64_t)ref;
}

static bool has_room(const struct impression *impression, struct element click,
                     struct limits limits) {
    return impression->n_clicks < limits.n_clicks &&
           impression->click_bytes + length_of(click) <= limits.n_bytes;
}

/* The row of an item among candidates, which are packed into a span; or -1. */
static int64_t row_of_item(struct span candidates, struct span item) {
    int64_t n_items, at = msgpack_array(candidates.bytes, 0, candidates.n, &n_items);
    for (int64_t row = 0; at >= 0 && row < n_items; row++) {
        int64_t start, n;
        at = msgpack_span(candidates.bytes, at, candidates.n, &start, &n);
        if (at >= 0 && n == item.n &&
            memcmp(candidates.bytes + start, item.bytes, (size_t)n) == 0)
            return row;
    }
    return -1;
}

/* The position, from 1, that a click is about; 0 if the list has no such place. */
static int64_t position_of(const struct impression *impression, struct element click) {
    const uint8_t *bytes = bytes_of(&impression->entry);
    int64_t end = impression->entry.length;
    struct span shown = span_at(bytes, impression->shown_at, end);
    int64_t position = number_in(click, CLICK_POSITION);
    if (position < 0 || position > shown.n / 2)
        return 0;
    struct span item = span_in(click, CLICK_ITEM_ID);
    if (item.n == 0)
        return position;
    struct span candidates = span_at(bytes, impression->candidates_at, end);
    int64_t row = row_of_item(candidates, item);
    for (int64_t rank = 1; row >= 0 && rank <= shown.n / 2; rank++) {
        const uint8_t *place = shown.bytes + 2 * rank - 2;
        if ((place[0] | place[1] << 8) == row)
            return position == 0 || position == rank ? rank : 0;
    }
    return 0;
}

/* Adds a click to an open impression, behind those that came before. */
static int64_t attach(struct join *join, uint64_t ref, struct element element,
                      struct identity *slot, int64_t position, int64_t origin) {
    struct chunks *chunks = &join->chunks;
    struct impression *impression = entry_at(chunks, ref);
    int64_t start = start_of(element), due_ms = impression->entry.due_ms;
    struct entry entry = entry_of(element, KIND_CLICK, due_ms, origin);
    uint64_t own = chunks_add(chunks, entry, element.data + start);
    if (!own)
        return NO_MEMORY;
    struct click *click = entry_at(chunks, own);
    click->at_ms = number_in(element, CLICK_AT_MS);
    click->position = (uint32_t)position;
    click->action_at = (uint32_t)(element.places[CLICK_ACTION] - start);
    click->action_end = (uint32_t)(element.places[CLICK_ACTION + 1] - start);
    if (impression->first_click)
        ((struct click *)entry_at(chunks, impression->last_click))->next = own;
    else
        impression->first_click = own;
    impression->last_click = own;
    impression->n_clicks++;
    impression->click_bytes += length_of(element);
    struct name name = name_in(element, CLICK_IDENTITY);
    identities_put(&join->identities, slot, name, REF_NOTHING, due_ms, join->now);
    join->n_placed += position > 0;
    return position;
}

static int64_t take_impression(struct join *join, struct element element,
                               struct identity *slot, int64_t origin, bool *is_plain) {
    int64_t due_ms = later(number_in(element, IMPRESSION_AT_MS), join->window_ms);
    *is_plain = due_ms > join->now.ms;
    return *is_plain ? open_impression(join, element, slot, due_ms, origin) : 0;
}

static int64_t take_click(struct join *join, struct element element,
                          struct identity *slot, struct taking taking, bool *is_plain) {
    const struct identity *found = slot_of(join, name_in(element, CLICK_IMPRESSION));
    *is_plain = state_of(found, join->now) == IS_OPEN &&
                number_in(element, CLICK_AT_MS) <= found->due_ms;
    if (!*is_plain)
        return 0;
    const struct impression *impression = entry_at(&join->chunks, found->ref);
    int64_t position = 0;
    if (has_room(impression, element, taking.limits))
        position = position_of(impression, element);
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
        if (!identities_reserve(&join->identities, BATCH, join->now))
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
            bool is_plain = state_of(slot, join->now) == IS_ABSENT;
            int64_t taken = 0;
            taking.origin = origin < 0 ? NOWHERE : origin + i;
            if (is_plain && tags[i] == IMPRESSION)
                taken = take_impression(join, element, slot, taking.origin, &is_plain);
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

/* Finds the fields of an element that is alone, and has room for its identity; less
 * than 0 if it is not whole, or there is none. */
static int64_t prepare(struct join *join, struct element element, int64_t n,
                       int64_t *places) {
    if (fold_find_fields(element.data, 0, n, places) != n)
        return NOT_WHOLE;
    places[0] = 0;
    return identities_reserve(&join->identities, 1, join->now) ? 0 : NO_MEMORY;
}

int64_t join_open(struct join *join, const uint8_t *data, int64_t n, int64_t origin) {
    int64_t places[ELEMENT_WIDTH];
    struct element element = {data, places};
    int64_t failure = prepare(join, element, n, places);
    if (failure)
        return failure;
    struct identity *slot = slot_of(join, name_in(element, IMPRESSION_IDENTITY));
    enum state state = state_of(slot, join->now);
    int64_t due_ms = later(number_in(element, IMPRESSION_AT_MS), join->window_ms);
    if (!is_time(element, IMPRESSION_AT_MS) || due_ms <= join->now.ms ||
        state == IS_OPEN || state == IS_KNOWN)
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
    if (!is_time(element, CLICK_AT_MS) || state_of(slot, join->now) == IS_OPEN)
        return NOT_WHOLE;
    int64_t position = position_of(impression, element);
    return attach(join, ref, element, slot, position, origin);
}

int64_t join_note(struct join *join, int64_t due_ms, const uint8_t *data, int64_t n) {
    struct entry entry = {
        .due_ms = due_ms, .origin = NOWHERE, .length = (uint32_t)n, .kind = KIND_NOTE};
    if (!dues_reserve(&join->dues))
        return NO_MEMORY;
    uint64_t ref = chunks_add(&join->chunks, entry, data);
    if (!ref)
        return NO_MEMORY;
    dues_add(&join->dues, (struct due){due_ms, ref});
    return 0;
}

int64_t join_find(const struct join *join, const uint8_t *identity) {
    const struct identity *slot = slot_of(join, name_at(identity));
    enum state state = state_of(slot, join->now);
    return state == IS_OPEN ? (int64_t)slot->ref : (int64_t)state;
}

int64_t join_give(struct join *join, const uint8_t *identity, uint64_t ref) {
    if (!identities_reserve(&join->identities, 1, join->now))
        return NO_MEMORY;
    struct name name = name_at(identity);
    identities_put(&join->identities, slot_of(join, name), name, ref, NEVER_DUE,
                   join->now);
    return 0;
}

void join_remove(struct join *join, const uint8_t *identity) {
    struct identity *slot = slot_of(join, name_at(identity));
    if (state_of(slot, join->now) != IS_ABSENT)
        identities_remove(&join->identities, slot, join->now);
}

struct join *join_new(int64_t window_ms, int64_t remember_ms) {
    struct join *join = calloc(1, sizeof *join);
    if (!join)
        return NULL;
    join->window_ms = window_ms;
    join->remember_ms = remember_ms;
    join->chunks.rows.width = sizeof(struct chunk *);
    join->chunks.first = 1;
    join->dues.in_order.width = join->dues.heap.width = sizeof(struct due);
    join->forgetting.width = sizeof(struct known);
    join->remembered.width = sizeof(struct remembered);
    join->due.width = sizeof(uint64_t);
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
    free(join->identities.memory);
    free(join->dues.in_order.rows);
    free(join->dues.heap.rows);
    free(join->forgetting.rows);
    free(join->remembered.rows);
    free(join->due.rows);
    free(join->clicks.rows);
    free(join);
}

void join_sizes(const struct join *join, int64_t sizes[5]) {
    const struct queue *queues[] = {&join->dues.in_order, &join->dues.heap,
                                    &join->forgetting,    &join->remembered,
                                    &join->due,           &join->clicks};
    sizes[0] = join->n_open;
    sizes[1] = join->n_placed;
    sizes[2] = join->identities.n_known;
    sizes[3] = (int64_t)join->remembered.n;
    sizes[4] = (int64_t)(join->identities.n_slots * sizeof(struct identity));
    sizes[4] += join->chunks.n_bytes;
    for (size_t i = 0; i < sizeof queues / sizeof *queues; i++)
        sizes[4] += (int64_t)(queues[i]->capacity * queues[i]->width);
}
