#include "comparing.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "digests.h"
#include "elements.h"
#include "msgpack.h"

/* Lists that are larger are not plain. */
enum { MOST_ITEMS = 1024, MOST_SLOTS = 2048, MOST_RANKERS = 64, MOST_PLACES = 32 };
enum { MOST_DEPTH = 128, MOST_SEEDED = 128, ABSENT = UINT16_MAX };
static const double LARGEST_BOUND = 32768.0, LOG_SCALE = 4294967296.0;
enum { N_CLASSES = 24, LOWEST_CLASS = -8, N_BETS = 8, N_GROUPS = 100, N_BY_RANKER = 7 };
enum { LISTS, CLICKED_LISTS, CLICKS, PLACES = 4 };
enum { EXPERIMENT, RANKINGS, TEAMS };
enum { DOCUMENTS = 1, OWN_PLACES, FIRST_PLACES, OWN_LISTS, OWN_CLICKS, SQUARES };

struct extent {
    int64_t start, n;
};

/* One list as it was logged. Rows are those of the candidates; ranks and places count
 * from 1, and 0 is none. */
struct list {
    int64_t places[ELEMENT_WIDTH]; /* of the fields of its impression */
    bool is_compared;
    struct comparison *of; /* whose it is, or NULL */
    int64_t teams;
    bool has_session;
    int64_t n_items, k, n_rankers, n_documents;
    uint64_t mask;
    struct extent items[MOST_ITEMS];
    uint16_t slots[MOST_SLOTS]; /* rows by hash of the item, plus 1 */
    uint16_t first[MOST_ITEMS]; /* best rank of each row, or ABSENT */
    uint16_t place[MOST_ITEMS], seen[MOST_ITEMS];
    uint16_t rows[MOST_RANKERS][MOST_DEPTH], shown[MOST_PLACES];
    int64_t lengths[MOST_RANKERS], team[MOST_PLACES];
    bool is_clicked[MOST_PLACES];
    int64_t n_clicks, n_first[MOST_PLACES + 1], sizes[MOST_PLACES];
    int64_t length; /* of weights and sizes */
    double weights[MOST_PLACES + 1][MOST_PLACES + 1], bound;
};

/* The seed that a name of at most 128 bytes gives, with zeros behind it: 63 bits of
 * BLAKE2b (RFC 7693). */
static int64_t seed_of(const uint8_t *bytes, int64_t n) {
    static const uint64_t start[8] = {
        UINT64_C(0x6A09E667F3BCC908), UINT64_C(0xBB67AE8584CAA73B),
        UINT64_C(0x3C6EF372FE94F82B), UINT64_C(0xA54FF53A5F1D36F1),
        UINT64_C(0x510E527FADE682D1), UINT64_C(0x9B05688C2B3E6C1F),
        UINT64_C(0x1F83D9ABFB41BD6B), UINT64_C(0x5BE0CD19137E2179)};
    static const uint8_t order[10][16] = {
        {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15},
        {14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3},
        {11, 8, 12, 0, 5, 2, 15, 13, 10, 14, 3, 6, 7, 1, 9, 4},
        {7, 9, 3, 1, 13, 12, 11, 14, 2, 6, 5, 10, 4, 0, 15, 8},
        {9, 0, 5, 7, 2, 4, 10, 15, 14, 1, 11, 12, 6, 8, 3, 13},
        {2, 12, 6, 10, 0, 11, 8, 3, 4, 13, 7, 5, 15, 14, 1, 9},
        {12, 5, 1, 15, 14, 13, 4, 10, 0, 7, 6, 3, 9, 2, 8, 11},
        {13, 11, 7, 14, 12, 1, 3, 9, 5, 0, 15, 4, 8, 6, 2, 10},
        {6, 15, 14, 9, 11, 3, 0, 8, 12, 2, 13, 7, 1, 4, 10, 5},
        {10, 2, 8, 4, 7, 6, 1, 5, 15, 11, 9, 14, 3, 12, 13, 0}};
    uint64_t m[16], v[16];
    for (int i = 0; i < 16; i++)
        m[i] = word_at(bytes + 8 * i);
    for (int i = 0; i < 16; i++)
        v[i] = start[i & 7];
    uint64_t first = v[0] ^= 0x01010008;
    v[12] ^= (uint64_t)n;
    v[14] = ~v[14];
    for (int round = 0; round < 12; round++)
        for (int i = 0; i < 8; i++) {
            const uint8_t *words = &order[round % 10][2 * i];
            int turn = i < 4 ? 0 : 1; /* columns, then diagonals */
            uint64_t *a = &v[i & 3], *b = &v[4 + ((i + turn) & 3)];
            uint64_t *c = &v[8 + ((i + 2 * turn) & 3)], *d = &v[12 + ((i + 3 * turn) & 3)];
            *a += *b + m[words[0]];
            *d = (*d ^ *a) >> 32 | (*d ^ *a) << 32;
            *c += *d;
            *b = (*b ^ *c) >> 24 | (*b ^ *c) << 40;
            *a += *b + m[words[1]];
            *d = (*d ^ *a) >> 16 | (*d ^ *a) << 48;
            *c += *d;
            *b = (*b ^ *c) >> 63 | (*b ^ *c) << 1;
        }
    uint64_t word = first ^ v[0] ^ v[8], seed = 0;
    for (int i = 0; i < 8; i++)
        seed = seed << 8 | (word >> 8 * i & 255);
    return (int64_t)(seed >> 1);
}

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

/* Reads what concerns comparisons; the rankings of one of these, if they come after the
 * experiment. False where it is not whole, or not plain. */
static bool read_extra(struct list *list, const uint8_t *data,
                       struct comparison *comparisons, int64_t n_comparisons) {
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

/* The shown documents are of the rankings, and each of them is there once. */
static bool read_shown(struct list *list, const uint8_t *data, int64_t most) {
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

static bool read_clicks(struct list *list, const uint8_t *data, int64_t end) {
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

/* Whether turns made the list, as `possible_lists.can_be_drafted` says of its teams. */
static bool is_draft(struct list *list, const uint8_t *data) {
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

static bool comes_early_enough(const struct list *list) {
    for (int64_t place = 1; place <= list->k; place++)
        if (list->first[list->shown[place - 1]] > place)
            return false;
    return true;
}

/* Sizes of choices and weights of documents by their first ranks, up to `length`; see
 * `pairwise_weights.py`. */
static void weigh(struct list *list, int64_t length, double largest) {
    int64_t total = 0;
    list->length = length;
    memset(list->n_first, 0, sizeof(list->n_first));
    for (int64_t row = 0; row < list->n_items; row++)
        if (list->first[row] <= length)
            list->n_first[list->first[row]]++;
    for (int64_t place = 0; place < length; place++) {
        total += list->n_first[place + 1];
        list->sizes[place] = total - place > 1 ? total - place : 1;
    }
    for (int64_t one = 1; one <= length; one++) {
        double probability = 1.0;
        for (int64_t other = one; other <= length; other++) {
            double weight = probability * largest >= 1.0 ? 1.0 / probability : 0.0;
            list->weights[one][other] = list->weights[other][one] = weight;
            probability *= 1.0 - 1.0 / (double)list->sizes[other - 1];
        }
    }
}

/* Sums of the 1, 2, .. heaviest pairs of a document with this first rank. */
static void fill_heaviest(const struct list *list, int64_t rank, double *sums) {
    int64_t length = list->length, low = 1, high = length - 1, n = 0;
    sums[0] = 0.0;
    while (low <= high && n < length) {
        double below = list->weights[low][rank], above = list->weights[rank][high];
        bool is_low = low < rank && (high <= rank || below >= above);
        int64_t other = is_low ? low++ : high--;
        double weight = is_low ? below : above;
        for (int64_t i = list->n_first[other] - (other == rank); i > 0; i--)
            if (n < length && weight > 0.0) {
                sums[n + 1] = sums[n] + weight;
                n++;
            }
    }
    for (; n < length; n++)
        sums[n + 1] = sums[n];
}

/* As `pairwise_bounds.largest_preference`. */
static double bound_of_all(const struct list *list) {
    int64_t length = list->length;
    double heaviest[MOST_PLACES][MOST_PLACES + 1], sums[MOST_PLACES], bound = 0.0;
    for (int64_t rank = 1; rank < length; rank++)
        if (list->n_first[rank])
            fill_heaviest(list, rank, heaviest[rank]);
    for (int64_t n_clicks = 1; n_clicks < length; n_clicks++) {
        double total = 0.0;
        for (int64_t rank = 1; rank < length; rank++)
            sums[rank] = list->n_first[rank] ? heaviest[rank][length - n_clicks] : 0.0;
        for (int64_t left = n_clicks; left > 0;) {
            double most = 0.0;
            int64_t best = 0;
            for (int64_t rank = 1; rank < length; rank++) {
                best = sums[rank] > most ? rank : best;
                most = sums[rank] > most ? sums[rank] : most;
            }
            if (!best)
                break;
            int64_t n_taken = left < list->n_first[best] ? left : list->n_first[best];
            total += (double)n_taken * most;
            sums[best] = 0.0;
            left -= n_taken;
        }
        bound = 2.0 * total > bound ? 2.0 * total : bound;
    }
    return bound;
}

/* As `pairwise_preference.agreement`. */
static void credit_pairs(const struct list *list, double *credit) {
    uint16_t ranks[1 + MOST_PLACES][MOST_RANKERS]; /* the first of what was not shown */
    int64_t n_read = list->k;
    while (!list->is_clicked[n_read - 1])
        n_read--;
    n_read += n_read < list->k;
    memset(ranks, 0xFF, sizeof(*ranks) * (size_t)(1 + list->k));
    for (int64_t ranker = 0; ranker < list->n_rankers; ranker++)
        for (int64_t i = 0; i < list->lengths[ranker]; i++)
            ranks[list->place[list->rows[ranker][i]]][ranker] = (uint16_t)i;
    for (int64_t a = 0; a < n_read; a++)
        for (int64_t b = a + 1; b < n_read; b++) {
            int64_t one = list->first[list->shown[a]], other = list->first[list->shown[b]];
            if (list->is_clicked[a] == list->is_clicked[b] || a + 1 < one || a + 1 < other)
                continue;
            double weight = list->weights[one][other];
            weight = list->is_clicked[b] ? -weight : weight;
            for (int64_t ranker = 0; ranker < list->n_rankers; ranker++)
                credit[ranker] += weight * ((ranks[a + 1][ranker] < ranks[b + 1][ranker]) -
                                            (ranks[a + 1][ranker] > ranks[b + 1][ranker]));
        }
}

/* What bets win by a share of the largest preference; see `sums.py`. */
struct bets {
    double share, largest;
    int64_t gains[2][N_BETS];
};

/* floor(2^32 log(1 + x)) for |x| <= 1/2, to the bit what the library's function gives:
 * the series is exact enough unless a whole number is near. */
static void fill_logs(const double *x, int64_t *logs) {
    double scaled[2 * N_BETS];
    for (int i = 0; i < 2 * N_BETS; i++) {
        double z = x[i] / (2.0 + x[i]), square = z * z, sum = 1.0 / 27.0;
        _Pragma("GCC unroll 16") for (int n = 25; n >= 3; n -= 2)
            sum = sum * square + 1.0 / n;
        scaled[i] = 2.0 * (z + z * square * sum) * LOG_SCALE;
    }
    for (int i = 0; i < 2 * N_BETS; i++) {
        int64_t whole = (int64_t)scaled[i];
        if (fabs(fabs(scaled[i] - (double)whole) - 0.5) > 0.499)
            logs[i] = (int64_t)floor(log1p(x[i]) * LOG_SCALE);
        else
            logs[i] = whole - (scaled[i] < 0.0);
    }
}

static void set_bets(struct bets *bets, double share, double largest) {
    double stakes[2 * N_BETS], bet = 0.5;
    if (bets->share == share && bets->largest == largest)
        return;
    bets->share = share;
    bets->largest = largest;
    for (int b = 0; b < N_BETS; b++, bet *= 0.25) {
        stakes[b] = fmin(bet * largest, 0.5) * share;
        stakes[N_BETS + b] = -stakes[b];
    }
    fill_logs(stakes, bets->gains[0]);
}

/* As `sums.add_impression`: preferences are differences of credit, or their signs. */
static void add_preferences(struct comparison *to, const struct list *list,
                            const double *credit, int64_t group) {
    bool has_teams = to->method == BY_TEAMS;
    double bound = has_teams ? 1.0 : list->bound;
    struct bets bets = {-1.0, 0.0, {{0}}};
    int64_t n_rankers = list->n_rankers, pair = 0, class = 0;
    double largest = ldexp(1.0, LOWEST_CLASS);
    for (; largest * (1.0 + 1e-9) < bound; largest *= 2.0)
        class++;
    int64_t *sums = to->sums + group * (n_rankers * (n_rankers - 1) / 2);
    to->impressions[group]++;
    for (int64_t n = 0; n < n_rankers; n++)
        for (int64_t m = n + 1; m < n_rankers; m++, pair++) {
            if (!has_teams && list->rows[n][0] == list->rows[m][0] &&
                list->lengths[n] == list->lengths[m] &&
                !memcmp(list->rows[n], list->rows[m], 2 * (size_t)list->lengths[n]))
                continue;
            to->possible[pair * N_CLASSES + class]++;
            double value = credit[n] - credit[m];
            value = has_teams ? (value > 0.0) - (value < 0.0) : value;
            if (value == 0.0)
                continue;
            double share = fmin(1.0, fabs(value) / largest);
            bool is_negative = value < 0.0;
            to->counts[2 * pair + is_negative]++;
            sums[pair] += (int64_t)rint(value * 1048576.0);
            to->squares[pair * N_CLASSES + class] +=
                (int64_t)ceil(share * share * LOG_SCALE);
            set_bets(&bets, share, largest);
            int64_t *wealth = to->wealth + 2 * N_BETS * pair;
            for (int b = 0; b < N_BETS; b++) {
                wealth[b] += bets.gains[is_negative][b];
                wealth[N_BETS + b] += bets.gains[!is_negative][b];
            }
        }
}

/* As `list_counts.count_list`. */
static void count_list(struct comparison *to, const struct list *list) {
    int64_t own[MOST_RANKERS] = {0}, clicks[MOST_RANKERS] = {0}, is_first = 1;
    to->totals[LISTS]++;
    to->totals[CLICKED_LISTS] += list->n_clicks > 0;
    to->totals[CLICKS] += list->n_clicks;
    to->totals[PLACES] += list->k;
    for (int64_t place = 0; to->method == BY_TEAMS && place < list->k; place++) {
        int64_t team = list->team[place];
        if (team < 0)
            continue;
        own[team]++;
        clicks[team] += list->is_clicked[place];
        to->by_ranker[team * N_BY_RANKER + FIRST_PLACES] += is_first;
        is_first = 0;
    }
    for (int64_t ranker = 0; ranker < list->n_rankers; ranker++) {
        int64_t *counts = to->by_ranker + ranker * N_BY_RANKER;
        counts[DOCUMENTS] += list->lengths[ranker];
        counts[OWN_PLACES] += own[ranker];
        counts[OWN_LISTS] += own[ranker] > 0;
        counts[OWN_CLICKS] += clicks[ranker];
        counts[SQUARES] += clicks[ranker] * clicks[ranker];
    }
}

static bool is_plain(struct list *list, const uint8_t *data, int64_t end) {
    const struct comparison *of = list->of;
    int64_t at_ms = 0, start, n = 0;
    msgpack_number(data, list->places[IMPRESSION_AT_MS], end, &at_ms);
    msgpack_span(data, list->places[IMPRESSION_IMPRESSION_ID], end, &start, &n);
    list->n_rankers = of->n_rankers;
    if (at_ms < of->start_ms || at_ms >= of->end_ms || of->n_seeded + n > MOST_SEEDED ||
        data[list->places[IMPRESSION_IS_OPEN_SET]] != 0xC2 || !list->n_documents ||
        !read_shown(list, data, of->length) || !read_clicks(list, data, end))
        return false;
    if (of->method == BY_TEAMS)
        return is_draft(list, data);
    if (list->teams || !comes_early_enough(list))
        return false;
    weigh(list, list->n_documents < of->length ? list->n_documents : of->length,
          of->largest_weight);
    list->bound = bound_of_all(list);
    return list->bound <= LARGEST_BOUND;
}

static void credit(struct comparison *to, struct list *list, const uint8_t *data) {
    double credits[MOST_RANKERS] = {0.0};
    int64_t at_ms = 0, seed = 0, unit = 0, start = 0, n = 0;
    int64_t end = list->places[ELEMENT_END];
    msgpack_number(data, list->places[IMPRESSION_AT_MS], end, &at_ms);
    msgpack_number(data, list->places[IMPRESSION_SEED], end, &seed);
    msgpack_number(data, list->places[IMPRESSION_UNIT], end, &unit);
    msgpack_span(data, list->places[IMPRESSION_IMPRESSION_ID], end, &start, &n);
    uint8_t seeded[MOST_SEEDED] = {0};
    memcpy(seeded, to->seeded, (size_t)to->n_seeded);
    memcpy(seeded + to->n_seeded, data + start, (size_t)n);
    to->n_foreign_seeds += seed != seed_of(seeded, to->n_seeded + n);
    to->n_without_session += !list->has_session;
    to->first_ms = to->first_ms < 0 || at_ms < to->first_ms ? at_ms : to->first_ms;
    to->last_ms = at_ms > to->last_ms ? at_ms : to->last_ms;
    to->n_taken++;
    count_list(to, list);
    if (list->n_clicks && to->method == BY_PAIRS)
        credit_pairs(list, credits);
    for (int64_t place = 0; to->method == BY_TEAMS && place < list->k; place++)
        if (list->team[place] >= 0)
            credits[list->team[place]] += list->is_clicked[place];
    add_preferences(to, list, credits, (int64_t)((uint64_t)unit % N_GROUPS));
}

int64_t comparing_take(struct comparison *comparisons, int64_t n_comparisons,
                       const uint8_t *encoded, const int64_t *ends, const uint8_t *extras,
                       int64_t first, int64_t n, int64_t *n_unknown) {
    struct list list;
    for (int64_t i = first; i < n; i++) {
        int64_t n_parts;
        if (!extras[i])
            continue;
        int64_t at = msgpack_array(encoded, i ? ends[i - 1] : 0, ends[i], &n_parts);
        if (at < 0 || fold_find_fields(encoded, at, ends[i], list.places) < 0 ||
            !read_extra(&list, encoded, comparisons, n_comparisons))
            return i;
        if (list.is_compared && n_unknown)
            ++*n_unknown;
        else if (list.of && is_plain(&list, encoded, ends[i]))
            credit(list.of, &list, encoded);
        else if (list.is_compared)
            return i;
    }
    return n;
}
