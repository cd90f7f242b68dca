#include "elements.h"

#include "msgpack.h"

_Static_assert(N_CLICK_FIELDS <= N_IMPRESSION_FIELDS, "places hold any element");
_Static_assert(N_FRONTIER_FIELDS <= N_IMPRESSION_FIELDS, "places hold any element");

/* Where a field of this kind ends, or -1 if something else is here. */
static inline int64_t after_field(const uint8_t *data, int64_t at, int64_t end,
                                  int kind) {
    int64_t start, length;
    switch (kind) {
    case KIND_NUMBER:
        return msgpack_after_number(data, at, end);
    case KIND_SPAN:
        return msgpack_span(data, at, end, &start, &length);
    case KIND_IDENTITY:
        at = msgpack_span(data, at, end, &start, &length);
        return at >= 0 && length == IDENTITY_BYTES ? at : -1;
    default:
        return msgpack_after(data, at, end);
    }
}

/* One step for each field, not a loop: processors then learn what each looks like. */
#define FIND_FIELD(field, kind)                                                        \
    places[field] = at;                                                                \
    at = after_field(data, at, end, kind);                                             \
    if (at < 0)                                                                        \
        return -1;

#define FINDER(name, FIELDS)                                                           \
    static int64_t name(const uint8_t *data, int64_t at, int64_t end,                  \
                        int64_t *places) {                                             \
        FIELDS(FIND_FIELD)                                                             \
        places[ELEMENT_END] = at;                                                      \
        return at;                                                                     \
    }

FINDER(find_impression, IMPRESSION_FIELDS)
FINDER(find_click, CLICK_FIELDS)
FINDER(find_frontier, FRONTIER_FIELDS)

/* The tag too, where the element is whole. */
static int64_t find_element(const uint8_t *data, int64_t at, int64_t end, int64_t *tag,
                            int64_t *places) {
    int64_t length;
    at = msgpack_array(data, at, end, &length);
    if (at < 0 || length < 1 || msgpack_number(data, at, end, tag) < 0)
        return -1;
    if (*tag == IMPRESSION && length == N_IMPRESSION_FIELDS)
        return find_impression(data, at, end, places);
    if (*tag == CLICK && length == N_CLICK_FIELDS)
        return find_click(data, at, end, places);
    if (*tag == FRONTIER && length == N_FRONTIER_FIELDS)
        return find_frontier(data, at, end, places);
    return -1;
}

int64_t fold_find_fields(const uint8_t *data, int64_t at, int64_t end, int64_t *places) {
    int64_t tag;
    return find_element(data, at, end, &tag, places);
}

int64_t fold_find_head(const uint8_t *data, int64_t end, int64_t head[4]) {
    int64_t length;
    int64_t at = msgpack_array(data, 0, end, &length);
    if (at < 0 || length != 4)
        return -1;
    for (int i = 0; i < 3; i++) {
        at = msgpack_number(data, at, end, &head[i]);
        if (at < 0)
            return -1;
    }
    at = msgpack_array(data, at, end, &head[3]);
    return at >= 0 && head[3] <= end - at ? at : -1;
}

int64_t fold_find_elements(const uint8_t *data, int64_t at, int64_t end,
                           int64_t n_elements, int8_t *tags, int64_t *places) {
    for (int64_t i = 0; i < n_elements; i++, places += ELEMENT_WIDTH) {
        int64_t start = at, tag;
        at = find_element(data, start, end, &tag, places);
        if (at < 0)
            return -1;
        tags[i] = (int8_t)tag;
        /* The tag is known: its place serves for the start of the element. */
        places[0] = start;
    }
    return at == end ? 0 : -1;
}
