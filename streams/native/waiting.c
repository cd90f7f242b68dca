#include "waiting.h"

#include "attaching.h"

static struct waiting *waiting_at(const struct join *join, uint64_t ref) {
    return entry_at(&join->chunks, ref);
}

static struct name own_name(const struct waiting *waiting) {
    return name_at(bytes_of(&waiting->entry) + waiting->entry.identity_at);
}

static struct name missed_name(const struct waiting *waiting) {
    const uint8_t *bytes = bytes_of(&waiting->entry);
    return name_at(span_at(bytes, waiting->impression_at, waiting->entry.length).bytes);
}

/* Its fields, which were found when it came, into `places`. */
static struct element element_of(const struct waiting *waiting, int64_t *places) {
    struct element element = {bytes_of(&waiting->entry), places};
    fold_find_fields(element.data, 0, waiting->entry.length, places);
    places[0] = 0;
    return element;
}

/* The reference of the first that waits for an impression, or 0. */
static uint64_t first_waiting(const struct join *join, struct name impression) {
    const struct identity *slot = slot_of(join, impression);
    return state_of(slot, join->now) == IS_AWAITED ? slot->ref : 0;
}

bool may_wait(const struct join *join, struct element click, struct limits limits) {
    uint64_t first = first_waiting(join, name_in(click, CLICK_IMPRESSION));
    int64_t n_clicks = 1, n_bytes = length_of(click);
    if (first) {
        n_clicks += waiting_at(join, first)->n;
        n_bytes += waiting_at(join, first)->n_bytes;
    }
    return n_clicks <= limits.n_clicks && n_bytes <= limits.n_bytes;
}

int64_t let_wait(struct join *join, struct element click, struct identity *slot,
                 int64_t origin) {
    int64_t start = start_of(click);
    int64_t due_ms = later(number_in(click, CLICK_AT_MS), join->disorder_ms);
    struct entry entry = entry_of(click, KIND_WAITING, due_ms, origin);
    if (!dues_reserve(&join->expiring))
        return NO_MEMORY;
    uint64_t ref = chunks_add(&join->chunks, entry, click.data + start);
    if (!ref)
        return NO_MEMORY;
    struct waiting *waiting = waiting_at(join, ref), *first = waiting;
    waiting->impression_at = (uint32_t)(click.places[CLICK_IMPRESSION] - start);
    waiting->next = waiting->before = ref;
    struct identities *identities = &join->identities;
    identities_put(identities, slot, own_name(waiting), REF_NOTHING, NEVER_DUE, join->now);
    struct name name = missed_name(waiting);
    uint64_t others = first_waiting(join, name);
    if (others) {
        first = waiting_at(join, others);
        waiting->next = others;
        waiting->before = first->before;
        waiting_at(join, first->before)->next = ref;
        first->before = ref;
    } else {
        identities_put(identities, slot_of(join, name), name, ref, NEVER_DUE, join->now);
    }
    first->n++;
    first->n_bytes += entry.length;
    dues_add(&join->expiring, (struct due){due_ms, ref});
    join->n_waiting++;
    return 0;
}

bool are_plain(const struct join *join, uint64_t first, struct element impression,
               int64_t due_ms, struct limits limits) {
    int64_t places[ELEMENT_WIDTH];
    const struct waiting *waiting = waiting_at(join, first);
    struct offered offered = offered_in(impression);
    bool are = waiting->n <= limits.n_clicks && waiting->n_bytes <= limits.n_bytes;
    uint64_t ref = first;
    do {
        waiting = waiting_at(join, ref);
        struct element click = element_of(waiting, places);
        are = are && number_in(click, CLICK_AT_MS) <= due_ms &&
              position_of(offered, click) > 0;
        ref = waiting->next;
    } while (are && ref != first);
    return are;
}

int64_t attach_waiting(struct join *join, uint64_t first, uint64_t impression) {
    int64_t places[ELEMENT_WIDTH], failure = 0;
    struct offered offered = offered_by(entry_at(&join->chunks, impression));
    join->n_waiting -= waiting_at(join, first)->n;
    uint64_t ref = first;
    do {
        struct waiting *waiting = waiting_at(join, ref);
        struct element click = element_of(waiting, places);
        struct identity *slot = slot_of(join, own_name(waiting));
        int64_t position = position_of(offered, click), origin = waiting->entry.origin;
        if (!failure && attach(join, impression, click, slot, position, origin) < 0)
            failure = NO_MEMORY;
        /* A checkpoint that has not said so need not say that it waited. */
        waiting->entry.due_ms = REMOVED;
        ref = waiting->next;
        waiting->next = 0;
    } while (ref != first);
    return failure;
}

/* Lets a click wait no longer: it is absent then, as is what nobody waits for. */
static void stop_waiting(struct join *join, struct waiting *waiting) {
    struct identities *identities = &join->identities;
    struct identity *slot = slot_of(join, missed_name(waiting));
    struct waiting *first = waiting_at(join, slot->ref);
    first->n--;
    first->n_bytes -= waiting->entry.length;
    if (first->n == 0) {
        identities_remove(identities, slot, join->now);
    } else {
        struct waiting *next = waiting_at(join, waiting->next);
        if (first == waiting) {
            slot->ref = waiting->next;
            next->n = first->n;
            next->n_bytes = first->n_bytes;
        }
        next->before = waiting->before;
        waiting_at(join, waiting->before)->next = waiting->next;
    }
    waiting->next = 0;
    identities_remove(identities, slot_of(join, own_name(waiting)), join->now);
    join->n_waiting--;
}

int64_t expire(struct join *join, int64_t now_ms) {
    struct due due;
    for (;;) {
        if (!queue_reserve(&join->orphans, 1))
            return NO_MEMORY;
        if (!dues_pop(&join->expiring, now_ms, &due))
            return 0;
        struct waiting *waiting = waiting_at(join, due.ref);
        if (waiting->next) {
            stop_waiting(join, waiting);
            *(uint64_t *)queue_push(&join->orphans) = due.ref;
        } else {
            chunks_release(&join->chunks, due.ref);
        }
    }
}

void join_orphans(struct join *join, uint8_t *out, int64_t *ends) {
    int64_t n_bytes = 0;
    for (size_t i = 0; i < join->orphans.n; i++) {
        uint64_t ref = *(uint64_t *)queue_at(&join->orphans, i);
        const struct entry *entry = entry_at(&join->chunks, ref);
        memcpy(out + n_bytes, bytes_of(entry), entry->length);
        ends[i] = n_bytes += entry->length;
        chunks_release(&join->chunks, ref);
    }
    queue_pop(&join->orphans, join->orphans.n);
}

int64_t join_wait(struct join *join, const uint8_t *data, int64_t n, int64_t most_clicks,
                  int64_t most_bytes, int64_t origin) {
    int64_t places[ELEMENT_WIDTH];
    struct element click = {data, places};
    int64_t failure = prepare(join, click, n, places);
    if (failure)
        return failure;
    struct name own = name_in(click, CLICK_IDENTITY);
    struct name missed = name_in(click, CLICK_IMPRESSION);
    struct identity *slot = slot_of(join, own);
    enum state state = state_of(slot_of(join, missed), join->now);
    if (!is_time(click, CLICK_AT_MS) || is_same_name(own, missed) ||
        state_of(slot, join->now) != IS_ABSENT ||
        (state != IS_ABSENT && state != IS_AWAITED))
        return NOT_WHOLE;
    if (!may_wait(join, click, (struct limits){most_clicks, most_bytes}))
        return IS_BEYOND;
    return let_wait(join, click, slot, origin);
}

void join_no_longer_waiting(struct join *join, const uint8_t *impression, uint8_t *out,
                            int64_t *ends, int64_t sizes[2]) {
    uint64_t first = first_waiting(join, name_at(impression));
    sizes[0] = first ? waiting_at(join, first)->n : 0;
    sizes[1] = first ? waiting_at(join, first)->n_bytes : 0;
    int64_t n_bytes = 0;
    for (int64_t i = 0; out && i < sizes[0]; i++) {
        struct waiting *waiting = waiting_at(join, first);
        memcpy(out + n_bytes, bytes_of(&waiting->entry), waiting->entry.length);
        ends[i] = n_bytes += waiting->entry.length;
        first = waiting->next;
        stop_waiting(join, waiting);
    }
}

int64_t join_stop_waiting(struct join *join, const uint8_t *impression,
                          const uint8_t *click) {
    uint64_t first = first_waiting(join, name_at(impression)), ref = first;
    for (int64_t n = first ? waiting_at(join, first)->n : 0; n > 0; n--) {
        struct waiting *waiting = waiting_at(join, ref);
        if (is_same_name(own_name(waiting), name_at(click))) {
            stop_waiting(join, waiting);
            return 1;
        }
        ref = waiting->next;
    }
    return 0;
}
