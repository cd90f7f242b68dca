#include "intervention_lists.h"

#include <stdbool.h>
#include <string.h>

#include "elements.h"
#include "msgpack.h"

enum { N_GROUPS = 100, LISTS = 0, CLICKS = 1 };

/* Digits of an epoch or a version. */
enum { MOST_DIGITS = 15 };

/* One in so many, those that began last, does not leave yet: it had no time for lists. */
enum { ONE_OF_NEW = 16 };

/* Longer lists are left to the caller. */
enum { MOST_RANKS = 1 << 16 };

/* Which ranks of a list were clicked, a bit each. */
struct seen {
    uint8_t bits[MOST_RANKS / 8 + 1];
};

static bool is_equal(struct words words, struct span span) {
    return words.n == span.n && !memcmp(words.bytes, span.bytes, (size_t)span.n);
}

/* Where a number ends that has no leading zeros, or -1 if there is none. */
static int64_t after_digits(struct span text, int64_t at) {
    int64_t start = at;
    while (at < text.n && at - start <= MOST_DIGITS && text.bytes[at] >= '0' &&
           text.bytes[at] <= '9')
        at++;
    int64_t n = at - start;
    bool is_number = n > 0 && n <= MOST_DIGITS && (n == 1 || text.bytes[start] != '0');
    return is_number ? at : -1;
}

/* Whether text is EPOCH.VERSION from `at` on. */
static bool is_pointer(struct span text, int64_t at) {
    at = after_digits(text, at);
    if (at < 0 || at >= text.n || text.bytes[at] != '.')
        return false;
    return after_digits(text, at + 1) == text.n;
}

/* The number of the model that an intervention is of, or NO_INTERVENTION. */
static int64_t model_of(const struct intervention_rules *rules, struct span name,
                        bool *is_first_policy) {
    struct span model = name;
    for (int64_t at = name.n - 1; at >= 0; at--)
        if (name.bytes[at] == '@') {
            model.n = is_pointer(name, at + 1) ? at : name.n;
            break;
        }
    *is_first_policy = model.n == name.n;
    for (int64_t i = 0; i < rules->n_models; i++)
        if (is_equal(rules->models[i], model))
            return i;
    return NO_INTERVENTION;
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
        at = msgpack_after_any(data, at, end);
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
    int64_t n, at = msgpack_map(extra.bytes, 0, extra.n, &n);
    for (; at >= 0 && n > 0; n--) {
        struct span name = span_at(extra.bytes, at, extra.n);
        at = msgpack_after_any(extra.bytes, at, extra.n);
        if (at < 0 || name.n < 0)
            return false;
        struct span value = span_at(extra.bytes, at, extra.n);
        for (int i = 0; i < 2; i++)
            if ((int64_t)strlen(names[i]) == name.n &&
                !memcmp(names[i], name.bytes, (size_t)name.n) && value.n > 0)
                return true;
        at = msgpack_after_any(extra.bytes, at, extra.n);
    }
    return false;
}

static uint64_t digest_of(struct span name) {
    uint64_t digest = UINT64_C(0xCBF29CE484222325); /* FNV-1a */
    for (int64_t i = 0; i < name.n; i++)
        digest = (digest ^ name.bytes[i]) * UINT64_C(0x100000001B3);
    return digest;
}

static int64_t known_row(const struct intervention_table *table, struct span name,
                         uint64_t digest) {
    for (int64_t row = 0; row < table->n; row++) {
        const struct intervention_head *head = table->heads + row;
        if (head->digest == digest && head->n_name == name.n &&
            !memcmp(table->names + row * table->name_width, name.bytes, (size_t)name.n))
            return row;
    }
    return NO_ROW;
}

/* The row that a new one gets of its model, and when that begins. */
static int64_t free_row(const struct intervention_rules *rules,
                        struct intervention_table *table, int64_t model, int64_t *begins) {
    const struct intervention_head *heads = table->heads;
    int64_t n = 0, fewest = LEFT_OUT;
    *begins = 0;
    for (int64_t row = 0; row < table->n; row++) {
        if (heads[row].model != model)
            continue;
        n++;
        *begins = heads[row].begun >= *begins ? heads[row].begun + 1 : *begins;
    }
    if (n < rules->most)
        return table->n < table->capacity ? table->n : NO_ROW;
    int64_t last = *begins - rules->most / ONE_OF_NEW;
    for (int64_t row = 0; row < table->n; row++) {
        struct intervention_head head = heads[row];
        if (head.model != model || head.begun == FIRST_POLICY || head.begun >= last)
            continue;
        if (fewest < 0 || head.n_lists < heads[fewest].n_lists ||
            (head.n_lists == heads[fewest].n_lists && head.begun < heads[fewest].begun))
            fewest = row;
    }
    return fewest;
}

static int64_t row_of(const struct intervention_rules *rules,
                      struct intervention_table *table, struct span name, int64_t model,
                      bool is_first_policy) {
    uint64_t digest = digest_of(name);
    int64_t begins, row = known_row(table, name, digest);
    if (row >= 0)
        return row;
    if (name.n > table->name_width)
        return LEFT_OUT;
    row = free_row(rules, table, model, &begins);
    if (row < 0)
        return row;
    if (row == table->n)
        table->n++;
    else
        table->n_uncounted += table->heads[row].n_lists;
    begins = is_first_policy ? FIRST_POLICY : begins;
    table->heads[row] = (struct intervention_head){digest, model, 0, begins, name.n};
    memcpy(table->names + row * table->name_width, name.bytes, (size_t)name.n);
    memset(table->groups + row * 2 * N_GROUPS, 0, sizeof(int64_t) * 2 * N_GROUPS);
    table->n_without_session[row] = 0;
    return row;
}

int64_t intervention_lists_row(const struct intervention_rules *rules,
                               struct intervention_table *table, const uint8_t *name,
                               int64_t n_name) {
    bool is_first_policy;
    struct span span = {name, n_name};
    int64_t model = model_of(rules, span, &is_first_policy);
    return model < 0 ? model : row_of(rules, table, span, model, is_first_policy);
}

int64_t intervention_lists_take(const struct intervention_rules *rules,
                                struct intervention_table *table, const uint8_t *encoded,
                                const int64_t *ends, int64_t first, int64_t n) {
    int64_t places[ELEMENT_WIDTH];
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
        bool is_first_policy;
        struct span name = span_in(element, IMPRESSION_INTERVENTION);
        int64_t model = model_of(rules, name, &is_first_policy);
        if (model < 0)
            continue;
        int64_t n_ranks = span_in(element, IMPRESSION_SHOWN).n / 2;
        if (n_ranks >= MOST_RANKS)
            return i;
        int64_t n_clicks = count_clicks(rules, &seen, encoded, at, end, n_ranks);
        if (n_clicks < 0)
            return i;
        int64_t row = row_of(rules, table, name, model, is_first_policy);
        if (row == NO_ROW)
            return i;
        if (row < 0) {
            table->n_uncounted++;
            continue;
        }
        uint64_t unit = (uint64_t)number_in(element, IMPRESSION_UNIT);
        int64_t *group = table->groups + 2 * (row * N_GROUPS + (int64_t)(unit % N_GROUPS));
        group[LISTS]++;
        group[CLICKS] += n_clicks;
        table->heads[row].n_lists++;
        table->n_without_session[row] += !has_session(span_in(element, IMPRESSION_EXTRA));
    }
    return n;
}
