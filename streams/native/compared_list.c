#include "compared_list.h"

#include <string.h>

#include "digests.h"
#include "msgpack.h"

enum { EXPERIMENT, RANKINGS, TEAMS };

/* Where the row of an item stands, plus 1, or would. */
static inline uint16_t *slot_of(struct list *list, const uint8_t *data, struct extent item) {
    const uint8_t *bytes = data + item.start;
    uint64_t hash = (uint64_t)item.n;
    for (int64_t n = item.n; n > 0; bytes += 8, n -= 8)
        hash = folded(hash ^ part_at(bytes, n), UINT64_C(0x9E3779B97F4A7C15));
    for (uint64_t i = hash & list->mask;; i = (i + 1) & list->mask) {
        if (!list->slots[i])
            return &list->slots[i];
        struct extent other = list->items[list->slots[i] - 1];
        if (other.n == item.n &&
            !memcmp(data + other.start, data + item.start, (size_t)item.n))
            return &list->slots[i];
    }
}

static bool read_items(struct list *list, const uint8_t *data, int64_t at) {
    int64_t start, length;
    int64_t end = msgpack_span(data, at, list->places[ELEMENT_END], &start, &length);
    at = end < 0 ? -1 : msgpack_array(data, start, end, &list->n_items);
    if (at < 0 || list->n_items < 1 || list->n_items > MOST_ITEMS)
        return false;
    for (list->mask = 3; list->mask < 2 * (uint64_t)list->n_items - 1;)
        list->mask = 2 * list->mask + 1;
    memset(list->slots, 0, sizeof(*list->slots) * (size_t)(list->mask + 1));
    for (int64_t row = 0; row < list->n_items; row++) {
        struct extent *item = &list->items[row];
        at = msgpack_span(data, at, end, &item->start, &item->n);
        uint16_t *slot = at < 0 ? NULL : slot_of(list, data, *item);
        if (!slot || *slot)
            return false;
        *slot = (uint16_t)(row + 1);
        list->first[row] = ABSENT;
        list->place[row] = list->seen[row] = 0;
    }
    return true;
}

static int64_t map_at(const uint8_t *data, int64_t at, int64_t end, int64_t *n) {
    if (!msgpack_has(at, end, 3) || ((data[at] & 0xF0) != 0x80 && data[at] != 0xDE))
        return -1;
    *n = data[at] == 0xDE ? data[at + 1] << 8 | data[at + 2] : data[at] & 15;
    return at + (data[at] == 0xDE ? 3 : 1);
}

/* Where they end, or -1 where they are not those of all rankers, one after the other. */
static int64_t read_rankings(struct list *list, const uint8_t *data, int64_t at) {
    const struct comparison *of = list->of;
    int64_t n, end = list->places[ELEMENT_END], named = 0, start, length;
    at = map_at(data, at, end, &n);
    if (at < 0 || n != of->n_rankers ||
        !read_items(list, data, list->places[IMPRESSION_CANDIDATES]))
        return -1;
    for (int64_t ranker = 0; ranker < n; ranker++) {
        int64_t after = msgpack_span(data, at, end, &start, &length);
        if (after < 0 || after - at > of->n_names - named ||
            memcmp(data + at, of->names + named, (size_t)(after - at)))
            return -1;
        named += after - at;
        at = msgpack_array(data, after, end, &list->lengths[ranker]);
        if (at < 0 || list->lengths[ranker] < 1 || list->lengths[ranker] > MOST_DEPTH)
            return -1;
        for (int64_t rank = 1; rank <= list->lengths[ranker]; rank++) {
            struct extent item;
            at = msgpack_span(data, at, end, &item.start, &item.n);
            int row = at < 0 ? -1 : *slot_of(list, data, item) - 1;
            if (row < 0 || list->seen[row] == ranker + 1)
                return -1;
            uint16_t first = list->first[row];
            list->n_documents += first == ABSENT;
            list->first[row] = rank < first ? (uint16_t)rank : first;
            list->seen[row] = (uint16_t)(ranker + 1);
            list->rows[ranker][rank - 1] = (uint16_t)row;
        }
    }
    return named == of->n_names ? at : -1;
}

/* Whether a string begins here: names and sessions are no binary data. */
static bool is_text(uint8_t first) {
    return (first & 0xE0) == 0xA0 || (first >= 0xD9 && first <= 0xDB);
}

/* Whether this is a string of which no decoder says that it is no UTF-8. */
static bool is_plain_text(const uint8_t *data, int64_t at, int64_t end) {
    int64_t start, n;
    uint8_t all = 0;
    if (msgpack_span(data, at, end, &start, &n) < 0 || !is_text(data[at]))
        return false;
    for (int64_t i = 0; i < n; i++)
        all |= data[start + i];
    return all < 0x80;
}

static struct comparison *comparison_of(struct comparison *comparisons, int64_t n,
                                        const uint8_t *experiment, int64_t length) {
    for (struct comparison *of = comparisons; of < comparisons + n; of++)
        if (of->n_experiment == length &&
            !memcmp(of->experiment, experiment, (size_t)length))
            return of;
    return NULL;
}

bool compared_extra(struct list *list, const uint8_t *data, struct comparison *comparisons,
                    int64_t n_comparisons) {
    static const char *const names[] = {"experiment", "rankings", "assignments", "session",
                                        "user"};
    int64_t start, length, n, end;
    end = msgpack_span(data, list->places[IMPRESSION_EXTRA], list->places[ELEMENT_END],
                       &start, &length);
    int64_t at = end < 0 ? -1 : map_at(data, start, end, &n);
    list->of = NULL;
    list->is_compared = false;
    list->teams = list->n_documents = 0;
    list->has_session = false;
    uint32_t known = 0;
    for (; at >= 0 && n > 0; n--) {
        int64_t value = msgpack_span(data, at, end, &start, &length);
        if (value < 0 || !is_text(data[at]))
            return false;
        int name = 0;
        while (name < 5 &&
               ((int64_t)strlen(names[name]) != length ||
                memcmp(data + start, names[name], (size_t)length)))
            name++;
        /* Of a name that comes again the last value holds: this is not plain. */
        if (name < 5 && known >> name & 1)
            return false;
        known |= UINT32_C(1) << name;
        bool is_nil = msgpack_has(value, end, 1) && data[value] == 0xC0;
        if (name == RANKINGS && list->of && !is_nil)
            at = list->n_documents ? -1 : read_rankings(list, data, value);
        else
            at = msgpack_after(data, value, end);
        if (at < 0 || is_nil)
            continue;
        bool is_session = name > TEAMS && name < 5;
        if (is_session && !is_plain_text(data, value, end))
            return false;
        list->has_session |= is_session;
        list->teams = name == TEAMS ? value : list->teams;
        if (name == EXPERIMENT) {
            list->is_compared = true;
            list->of = comparison_of(comparisons, n_comparisons, data + value, at - value);
        }
    }
    return at == end;
}

bool compared_shown(struct list *list, const uint8_t *data, int64_t most) {
    int64_t start = 0, length = 0;
    msgpack_span(data, list->places[IMPRESSION_SHOWN], list->places[ELEMENT_END], &start,
                 &length);
    list->k = length / 2;
    if (list->k < 1 || list->k > most)
        return false;
    for (int64_t place = 1; place <= list->k; place++, start += 2) {
        int64_t row = data[start] | data[start + 1] << 8;
        if (row >= list->n_items || list->first[row] == ABSENT || list->place[row])
            return false;
        list->place[row] = (uint16_t)place;
        list->shown[place - 1] = (uint16_t)row;
    }
    return true;
}

bool compared_clicks(struct list *list, const uint8_t *data, int64_t end) {
    int64_t n, at = msgpack_array(data, list->places[ELEMENT_END], end, &n);
    memset(list->is_clicked, 0, sizeof(list->is_clicked));
    list->n_clicks = 0;
    for (; at >= 0 && n > 0; n--) {
        int64_t length, position = 0;
        int64_t field = msgpack_array(data, at, end, &length);
        if (field < 0 || msgpack_number(data, field, end, &position) < 0 || position < 1 ||
            position > list->k)
            return false;
        list->n_clicks += !list->is_clicked[position - 1];
        list->is_clicked[position - 1] = true;
        at = msgpack_after(data, at, end);
    }
    return at >= 0;
}

bool compared_is_draft(struct list *list, const uint8_t *data) {
    int64_t n, end = list->places[ELEMENT_END], shared = 0, fair = MOST_DEPTH;
    int64_t next[MOST_RANKERS] = {0}, last[MOST_RANKERS];
    int64_t at = list->teams ? msgpack_array(data, list->teams, end, &n) : -1;
    if (at < 0 || n != list->k)
        return false;
    for (int64_t ranker = 0; ranker < list->n_rankers; ranker++) {
        fair = list->lengths[ranker] < fair ? list->lengths[ranker] : fair;
        last[ranker] = -1;
    }
    for (bool is_shared = true; is_shared && shared < fair; shared += is_shared)
        for (int64_t ranker = 1; ranker < list->n_rankers; ranker++)
            is_shared &= list->rows[ranker][shared] == list->rows[0][shared];
    for (int64_t place = 0; place < list->k; place++) {
        int64_t team, round = (place - shared) / list->n_rankers;
        at = msgpack_number(data, at, end, &team);
        bool is_owned = place >= shared && place < fair, is_best = false;
        if (at < 0 || team < -1 || team >= list->n_rankers || (team >= 0) != is_owned)
            return false;
        for (int64_t ranker = 0; ranker < list->n_rankers; ranker++) {
            const uint16_t *rows = list->rows[ranker];
            int64_t *best = &next[ranker], length = list->lengths[ranker];
            while (*best < length && list->place[rows[*best]] &&
                   list->place[rows[*best]] <= place)
                ++*best;
            if (*best < length && (!is_owned || ranker == team))
                is_best |= rows[*best] == list->shown[place];
        }
        if (!is_best || (is_owned && last[team] == round))
            return false;
        if (is_owned)
            last[team] = round;
        list->team[place] = team;
    }
    return true;
}
