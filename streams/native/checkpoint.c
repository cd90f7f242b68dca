/* What a checkpoint takes from the join, and what a restored one gets back. */
#include "join.h"

void join_accepted(struct join *join, uint8_t *out, int64_t *ends, int64_t *due_ms,
                   int64_t *origins, int64_t sizes[2]) {
    uint64_t ref = join->chunks.mark;
    sizes[0] = sizes[1] = 0;
    for (const struct entry *entry; (entry = chunks_next(&join->chunks, &ref));) {
        if (entry->due_ms > join->now.ms) {
            int64_t length = entry->origin < 0 ? entry->length : 0;
            if (out) {
                memcpy(out + sizes[1], bytes_of(entry), (size_t)length);
                ends[sizes[0]] = sizes[1] + length;
                due_ms[sizes[0]] = entry->due_ms;
                origins[sizes[0]] = entry->origin;
            }
            sizes[1] += length;
            sizes[0]++;
        }
        ref = behind(entry, ref);
    }
    if (out)
        join_restored(join);
}

void join_remembered(struct join *join, int64_t *due_ms, uint64_t *names) {
    for (size_t i = 0; i < join->remembered.n; i++) {
        const struct remembered *remembered = queue_at(&join->remembered, i);
        due_ms[i] = remembered->due_ms;
        names[2 * i] = remembered->name.first;
        names[2 * i + 1] = remembered->name.second;
    }
    queue_pop(&join->remembered, join->remembered.n);
}

void join_restore_time(struct join *join, int64_t now_ms) {
    join->now = (struct now){now_ms, now_ms - join->remember_ms};
}

int64_t join_restore_known(struct join *join, const int64_t *due_ms,
                           const uint64_t *names, int64_t n) {
    if (!identities_reserve(&join->identities, (uint64_t)n, join->now) ||
        !queue_reserve(&join->forgetting, (size_t)n))
        return NO_MEMORY;
    for (int64_t i = 0; i < n; i++) {
        struct name name = {names[2 * i], names[2 * i + 1]};
        struct identity *slot = identities_slot(&join->identities, name, join->now);
        if (due_ms[i] <= join->now.forgotten_ms ||
            state_of(slot, join->now) != IS_ABSENT)
            continue;
        identities_put(&join->identities, slot, name, REF_NOTHING, due_ms[i], join->now);
        *(struct known *)queue_push(&join->forgetting) = (struct known){due_ms[i], 1};
    }
    return 0;
}

void join_restored(struct join *join) { join->chunks.mark = chunks_end(&join->chunks); }
