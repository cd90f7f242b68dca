/* What is due: out of what is open, as encoded interactions. */
#include "encode.h"
#include "join.h"
#include "msgpack.h"
#include "waiting.h"

/* An interaction takes so many bytes beside its impression and the bytes of its
 * clicks, and each click so many beside its action. */
enum { MOST_HEAD_BYTES = 8, MOST_MARK_BYTES = 16 };

/* A click of the impression that is being closed. */
struct ordered {
    const struct click *click;
    uint64_t ref;
};

static const struct impression *due_at(const struct join *join, size_t i) {
    return entry_at(&join->chunks, *(uint64_t *)queue_at(&join->due, i));
}

int64_t join_fall_due(struct join *join, int64_t now_ms, int64_t sizes[5]) {
    struct due due;
    join_restore_time(join, now_ms);
    for (;;) {
        if (!queue_reserve(&join->due, 1))
            return NO_MEMORY;
        if (!dues_pop(&join->closing, now_ms, &due))
            break;
        *(uint64_t *)queue_push(&join->due) = due.ref;
    }
    if (expire(join, now_ms) == NO_MEMORY)
        return NO_MEMORY;
    /* Also what fell due before, where nobody came to close it. */
    sizes[0] = (int64_t)join->due.n;
    sizes[1] = sizes[2] = sizes[4] = 0;
    for (size_t i = 0; i < join->due.n; i++) {
        const struct impression *impression = due_at(join, i);
        sizes[1] += impression->entry.length + MOST_HEAD_BYTES;
        sizes[1] += impression->click_bytes + MOST_MARK_BYTES * impression->n_clicks;
        sizes[2] += impression->n_clicks;
    }
    sizes[3] = (int64_t)join->orphans.n;
    for (size_t i = 0; i < join->orphans.n; i++) {
        uint64_t ref = *(uint64_t *)queue_at(&join->orphans, i);
        sizes[4] += ((struct entry *)entry_at(&join->chunks, ref))->length;
    }
    return 0;
}

static int by_time(const void *left, const void *right) {
    const struct ordered *one = left, *other = right;
    if (one->click->at_ms != other->click->at_ms)
        return one->click->at_ms < other->click->at_ms ? -1 : 1;
    if (one->click->position != other->click->position)
        return one->click->position < other->click->position ? -1 : 1;
    return one->ref < other->ref ? -1 : 1;
}

/* The clicks of an impression by time, position, and arrival. */
static const struct ordered *sorted_clicks(struct join *join,
                                           const struct impression *impression) {
    struct queue *clicks = &join->clicks;
    clicks->n = 0;
    bool is_sorted = true;
    for (uint64_t ref = impression->first_click; ref;) {
        struct ordered *ordered = queue_push(clicks);
        *ordered = (struct ordered){entry_at(&join->chunks, ref), ref};
        is_sorted &= clicks->n == 1 || by_time(ordered - 1, ordered) < 0;
        ref = ordered->click->next;
    }
    if (!is_sorted)
        qsort(clicks->rows, clicks->n, clicks->width, by_time);
    return (const struct ordered *)(void *)clicks->rows;
}

static void remember(struct join *join, const struct entry *entry) {
    struct name name = name_at(bytes_of(entry) + entry->identity_at);
    *(struct remembered *)queue_push(&join->remembered) =
        (struct remembered){entry->due_ms, name};
}

/* Notes how many identities will be forgotten at a time. */
static void forget_later(struct join *join, int64_t due_ms, int64_t n) {
    struct queue *forgetting = &join->forgetting;
    struct known *last = NULL;
    if (forgetting->n > 0)
        last = queue_at(forgetting, forgetting->n - 1);
    if (last && last->due_ms == due_ms)
        last->n += n;
    else
        *(struct known *)queue_push(forgetting) = (struct known){due_ms, n};
}

static void forget(struct join *join) {
    int64_t forgotten_ms = join->now.forgotten_ms;
    struct queue *forgetting = &join->forgetting, *remembered = &join->remembered;
    while (forgetting->n > 0) {
        const struct known *known = queue_at(forgetting, 0);
        if (known->due_ms > forgotten_ms)
            break;
        join->identities.n_known -= known->n;
        queue_pop(forgetting, 1);
    }
    /* No checkpoint needs these. */
    while (remembered->n > 0 &&
           ((struct remembered *)queue_at(remembered, 0))->due_ms <= forgotten_ms)
        queue_pop(remembered, 1);
}

/* Writes an interaction: the bytes of the impression as they came, then its clicks. */
static uint8_t *put_interaction(uint8_t *at, const struct impression *impression,
                                const struct ordered *clicks, int64_t *n_applied) {
    int64_t n_marks = 0;
    for (uint32_t i = 0; i < impression->n_clicks; i++)
        n_marks += clicks[i].click->position > 0;
    *n_applied += n_marks;
    at = put_array(at, 2);
    at = put_bytes(at, bytes_of(&impression->entry), impression->entry.length);
    at = put_array(at, (uint64_t)n_marks);
    for (uint32_t i = 0; i < impression->n_clicks; i++) {
        const struct click *click = clicks[i].click;
        if (click->position == 0)
            continue;
        at = put_array(at, 3);
        at = put_number(at, click->position);
        at = put_number(at, click->at_ms);
        at = put_bytes(at, bytes_of(&click->entry) + click->action_at,
                       click->action_end - click->action_at);
    }
    return at;
}

/* Makes room for all that closing adds, so that it is done whole or not at all. */
static bool has_memory_to_close(struct join *join) {
    size_t n_known = join->due.n, most_clicks = 0;
    for (size_t i = 0; i < join->due.n; i++) {
        size_t n_clicks = due_at(join, i)->n_clicks;
        n_known += n_clicks;
        most_clicks = n_clicks > most_clicks ? n_clicks : most_clicks;
    }
    join->clicks.width = sizeof(struct ordered);
    join->clicks.n = join->clicks.first = 0;
    return queue_reserve(&join->clicks, most_clicks) &&
           queue_reserve(&join->forgetting, join->due.n) &&
           queue_reserve(&join->remembered, n_known);
}

static struct name model_of(const struct impression *impression) {
    const uint8_t *bytes = bytes_of(&impression->entry);
    int64_t start = 0, n = 0;
    msgpack_span(bytes, impression->model_at, impression->entry.length, &start, &n);
    return hashed(bytes + start, n, (struct name){1, 2});
}

int64_t join_close(struct join *join, uint8_t *encoded, int64_t *ends, uint64_t *models,
                   uint8_t *flags) {
    int64_t n_applied = 0;
    uint8_t *at = encoded;
    if (!has_memory_to_close(join))
        return NO_MEMORY;
    for (size_t i = 0; i < join->due.n; i++) {
        uint64_t ref = *(uint64_t *)queue_at(&join->due, i);
        const struct impression *impression = entry_at(&join->chunks, ref);
        uint32_t n_clicks = impression->n_clicks;
        const struct ordered *clicks = sorted_clicks(join, impression);
        at = put_interaction(at, impression, clicks, &n_applied);
        ends[i] = at - encoded;
        struct name model = model_of(impression);
        models[2 * i] = model.first;
        models[2 * i + 1] = model.second;
        flags[i] = impression->entry.flags;
        forget_later(join, impression->entry.due_ms, 1 + (int64_t)n_clicks);
        remember(join, &impression->entry);
        for (uint32_t j = 0; j < n_clicks; j++) {
            remember(join, &clicks[j].click->entry);
            chunks_release(&join->chunks, clicks[j].ref);
        }
        chunks_release(&join->chunks, ref);
    }
    join->n_open -= (int64_t)join->due.n;
    join->n_placed -= n_applied;
    queue_pop(&join->due, join->due.n);
    forget(join);
    return n_applied;
}
