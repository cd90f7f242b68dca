#include "intervention_lists.h"

#include <stdbool.h>
#include <string.h>

#include "elements.h"
#include "msgpack.h"

enum { N_GROUPS = 100, LISTS = 0, CLICKS = 1 };

/* Longer lists are left to the caller. */
enum { MOST_RANKS = 1 << 16 };

/* Which ranks of a list were clicked, a bit each. */
struct seen {
    uint8_t bits[MOST_RANKS / 8 + 1];
};

static bool is_equal(struct words words, struct span span) {
    return words.n == span.n && !memcmp(words.bytes, span.bytes, (size_t)span.n);
}

static bool is_looked_for(const struct intervention_rules *rules, struct span name) {
    for (int64_t i = 0; i < rules->n_prefixes; i++) {
        struct words prefix = rules->prefixes[i];
        int64_t n = prefix.n;
        if (name.n == n - 1) /* MODEL without the @ */
            n--;
        else if (name.n <= n)
            continue;
        if (!memcmp(prefix.bytes, name.bytes, (size_t)n))
            return true;
    }
    return false;
}

static bool is_counted(const struct intervention_rules *rules, struct span action) {
    for (int64_t i = 0; i < rules->n_actions; i++)
        if (is_equal(rules->actions[i].name, action))
            return rules->actions[i].is_counted;
    return rules->counts_others;
}

/* Ranks that were clicked so that it counts, each once; -1 where they are not whole. */
static int64_t count_clicks(const struct intervention_rules *rules, struct seen *seen,
                            const uint8_t *data, int64_t at, int64_t end,
                            int64_t n_ranks) {
    int64_t n_marks, n_clicks = 0;
    at = msgpack_array(data, at, end, &n_marks);
    if (at >= 0 && n_marks > 0)
        memset(seen->bits, 0, (size_t)n_ranks / 8 + 1);
    for (int64_t i = 0; at >= 0 && i < n_marks; i++) {
        int64_t n, rank, at_ms;
        at = msgpack_array(data, at, end, &n);
        at = msgpack_number(data, at, end, &rank);
        at = msgpack_number(data, at, end, &at_ms);
        struct span action = span_at(data, at, end);
        at = msgpack_after(data, at, end);
        if (at < 0 || n != N_CLICK_MARK_FIELDS || action.n < 0)
            return -1;
        if (rank < 1 || rank > n_ranks || !is_counted(rules, action))
            continue;
        uint8_t bit = (uint8_t)(1 << (rank & 7));
        n_clicks += !(seen->bits[rank >> 3] & bit);
        seen->bits[rank >> 3] |= bit;
    }
    return at < 0 ? -1 : n_clicks;
}

/* Whether a list names a session or a user; an empty name is none. */
static bool has_session(struct span extra) {
    static const char *const names[] = {"session", "user"};
    if (extra.n < 1 || (extra.bytes[0] & 0xF0) != 0x80)
        return false;
    int64_t at = 1;
    for (int64_t n = extra.bytes[0] & 15; n > 0 && at >= 0; n--) {
        struct span name = span_at(extra.bytes, at, extra.n);
        at = msgpack_after(extra.bytes, at, extra.n);
        if (at < 0 || name.n < 0)
            return false;
        struct span value = span_at(extra.bytes, at, extra.n);
        for (int i = 0; i < 2; i++)
            if ((int64_t)strlen(names[i]) == name.n &&
                !memcmp(names[i], name.bytes, (size_t)name.n) && value.n > 0)
                return true;
        at = msgpack_after(extra.bytes, at, extra.n);
    }
    return false;
}

/* The known one of a name, looked for from the last that was found; NULL: none. */
static const struct intervention_sums *sums_of(const struct intervention_sums *known,
                                               int64_t n_known, struct span name,
                                               int64_t *last) {
    for (int64_t i = 0; i < n_known; i++) {
        int64_t place = (*last + i) % n_known;
        if (is_equal(known[place].name, name)) {
            *last = place;
            return known + place;
        }
    }
    return NULL;
}

int64_t intervention_lists_take(const struct intervention_rules *rules,
                                const struct intervention_sums *known, int64_t n_known,
                                const uint8_t *encoded, const int64_t *ends, int64_t first,
                                int64_t n) {
    int64_t places[ELEMENT_WIDTH], last = 0;
    struct seen seen;
    for (int64_t i = first; i < n; i++) {
        int64_t n_parts, end = ends[i];
        struct element element = {encoded, places};
        int64_t at = msgpack_array(encoded, i ? ends[i - 1] : 0, end, &n_parts);
        if (at < 0 || n_parts != N_INTERACTION_FIELDS)
            return i;
        at = fold_find_fields(encoded, at, end, places);
        if (at < 0)
            return i;
        struct span name = span_in(element, IMPRESSION_INTERVENTION);
        if (!is_looked_for(rules, name))
            continue;
        const struct intervention_sums *sums = sums_of(known, n_known, name, &last);
        if (!sums)
            return i;
        int64_t n_ranks = span_in(element, IMPRESSION_SHOWN).n / 2;
        if (n_ranks >= MOST_RANKS)
            return i;
        int64_t n_clicks = count_clicks(rules, &seen, encoded, at, end, n_ranks);
        if (n_clicks < 0)
            return i;
        uint64_t unit = (uint64_t)number_in(element, IMPRESSION_UNIT);
        int64_t *group = sums->groups + 2 * (int64_t)(unit % N_GROUPS);
        group[LISTS]++;
        group[CLICKS] += n_clicks;
        *sums->n_without_session += !has_session(span_in(element, IMPRESSION_EXTRA));
    }
    return n;
}
