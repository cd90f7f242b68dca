#include "attaching.h"

#include "msgpack.h"

struct offered offered_in(struct element impression) {
    return (struct offered){span_in(impression, IMPRESSION_SHOWN),
                            span_in(impression, IMPRESSION_CANDIDATES)};
}

struct offered offered_by(const struct impression *impression) {
    const uint8_t *bytes = bytes_of(&impression->entry);
    int64_t end = impression->entry.length;
    return (struct offered){span_at(bytes, impression->shown_at, end),
                            span_at(bytes, impression->candidates_at, end)};
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

int64_t position_of(struct offered offered, struct element click) {
    struct span shown = offered.shown;
    int64_t position = number_in(click, CLICK_POSITION);
    if (position < 0 || position > shown.n / 2)
        return 0;
    struct span item = span_in(click, CLICK_ITEM_ID);
    if (item.n == 0)
        return position;
    int64_t row = row_of_item(offered.candidates, item);
    for (int64_t rank = 1; row >= 0 && rank <= shown.n / 2; rank++) {
        const uint8_t *place = shown.bytes + 2 * rank - 2;
        if ((place[0] | place[1] << 8) == row)
            return position == 0 || position == rank ? rank : 0;
    }
    return 0;
}

struct entry entry_of(struct element element, uint8_t kind, int64_t due_ms,
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

int64_t attach(struct join *join, uint64_t ref, struct element element,
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
