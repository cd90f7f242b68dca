/* What only later stages read of a query event: copied as it came, where it is sound. */
#include "input_events.h"

static const char *const NAMES[] = {
#define NAMED(field, name) [field] = name,
    QUERY_EVENT_FIELDS(NAMED)
#undef NAMED
};

/* In the order of EXTRA_FIELDS in validation.py; the last is permuted. */
static const int EXTRA[] = {
    QUERY_EVENT_EXPERIMENT,  QUERY_EVENT_RANKINGS,      QUERY_EVENT_ASSIGNMENTS,
    QUERY_EVENT_RANKS,       QUERY_EVENT_USER,          QUERY_EVENT_SESSION,
    QUERY_EVENT_ATTRIBUTES,  QUERY_EVENT_FEATURES_HASH, QUERY_EVENT_CANARY,
    QUERY_EVENT_CANDIDATE_FEATURES,
};
enum { N_EXTRA = sizeof EXTRA / sizeof EXTRA[0] };

enum { DEEPEST = 16, N_HASH = 16 };

static struct reader reader_of(struct span value) {
    return (struct reader){value.bytes, 0, value.n};
}

static bool is_sound_experiment(struct span value) {
    static const char EPOCH[] = "epoch";
    struct reader reader = reader_of(value);
    int64_t n_pairs = 0, epoch = 0;
    reader.at = msgpack_map(reader.data, 0, reader.end, &n_pairs);
    for (int64_t i = 0; i < n_pairs && reader.at >= 0; i++) {
        struct span name = next_text(&reader);
        if (name.n == sizeof EPOCH - 1 && memcmp(name.bytes, EPOCH, (size_t)name.n) == 0)
            epoch = next_number(&reader);
        else
            reader.at = msgpack_after_any(reader.data, reader.at, reader.end);
    }
    return reader.at >= 0 && epoch > 0 && epoch <= INT32_MAX;
}

static bool are_sound_assignments(struct span value, int64_t n_shown) {
    struct reader reader = reader_of(value);
    if (next_array(&reader) != n_shown)
        return false;
    for (int64_t i = 0; i < n_shown && reader.at >= 0; i++) {
        int64_t ranker = next_number(&reader);
        if (ranker < -1 || ranker > LARGEST_TEAM)
            return false;
    }
    return reader.at >= 0;
}

/* Reads a value, and whether nothing in it lies as deep as is too deep. */
static bool is_shallow(struct reader *reader, int depth) {
    int64_t n = 0, at = reader->at;
    if (depth == DEEPEST || !msgpack_has(at, reader->end, 1))
        return false;
    bool is_map = (reader->data[at] & 0xF0) == 0x80 || reader->data[at] == 0xDE ||
                  reader->data[at] == 0xDF;
    bool is_array = (reader->data[at] & 0xF0) == 0x90 || reader->data[at] == 0xDC ||
                    reader->data[at] == 0xDD;
    if (is_map)
        reader->at = msgpack_map(reader->data, at, reader->end, &n);
    else if (is_array)
        reader->at = msgpack_array(reader->data, at, reader->end, &n);
    else
        reader->at = msgpack_after_any(reader->data, at, reader->end);
    for (int64_t i = 0; i < n && reader->at >= 0; i++) {
        if (is_map)
            next_text(reader);
        if (!is_shallow(reader, depth + 1))
            return false;
    }
    return reader->at >= 0;
}

static bool is_hash(struct span text) {
    bool is_one = text.n == N_HASH;
    for (int64_t i = 0; is_one && i < N_HASH; i++)
        is_one = (text.bytes[i] >= '0' && text.bytes[i] <= '9') ||
                 (text.bytes[i] >= 'a' && text.bytes[i] <= 'f');
    return is_one;
}

/* Whether a column of ranks has each rank from 1 to `n_items` once at most. */
static bool is_sound_column(struct input_memory *memory, const uint8_t *column,
                            int64_t stride, int64_t n_shown, int64_t n_items) {
    bool is_sound = true;
    int64_t n_marked = 0;
    for (; n_marked < n_shown; n_marked++) {
        const uint8_t *at = column + n_marked * stride;
        int64_t rank = at[0] | at[1] << 8;
        if (rank < 1 || rank > n_items || memory->is_marked[rank - 1]) {
            is_sound = false;
            break;
        }
        memory->is_marked[rank - 1] = 1;
    }
    for (int64_t i = 0; i < n_marked; i++) {
        const uint8_t *at = column + i * stride;
        memory->is_marked[(at[0] | at[1] << 8) - 1] = 0;
    }
    return is_sound;
}

/* Ranks of each shown item by one ranker or more: 1, 0 or INPUT_NO_MEMORY. */
static int64_t are_sound_ranks(struct input_memory *memory, struct span value,
                               int64_t n_shown, int64_t n_items) {
    int64_t n_bytes = read_base64(memory, text_in(value).span);
    if (n_bytes == INPUT_NO_MEMORY)
        return n_bytes;
    if (n_bytes <= 0 || n_bytes % (2 * n_shown))
        return false;
    int64_t stride = n_bytes / n_shown;
    const uint8_t *ranks = (const uint8_t *)memory->numbers;
    memset(memory->is_marked, 0, (size_t)n_items);
    for (int64_t column = 0; column < stride; column += 2)
        if (!is_sound_column(memory, ranks + column, stride, n_shown, n_items))
            return false;
    return true;
}

/* Whether a field that is there may be as it is: 1, 0 or INPUT_NO_MEMORY. */
static int64_t is_sound(const struct input *event, int field, struct list_size size,
                        struct input_memory *memory) {
    struct span value = event->fields[field];
    struct reader reader = reader_of(value);
    switch (field) {
    case QUERY_EVENT_EXPERIMENT:
        return is_sound_experiment(value);
    case QUERY_EVENT_ASSIGNMENTS:
        return are_sound_assignments(value, size.n_shown);
    case QUERY_EVENT_RANKS:
        return are_sound_ranks(memory, value, size.n_shown, size.n_items);
    case QUERY_EVENT_ATTRIBUTES:
        return is_shallow(&reader, 0);
    case QUERY_EVENT_FEATURES_HASH:
        return is_hash(text_in(value).span) &&
               event->fields[QUERY_EVENT_CANDIDATES].n >= 0 &&
               event->fields[QUERY_EVENT_CANDIDATE_FEATURES].n >= 0;
    case QUERY_EVENT_CANARY:
        return text_in(value).span.n >= 0 &&
               is_within(text_in(value).span, MAX_CANARY_CHARACTERS);
    case QUERY_EVENT_CANDIDATE_FEATURES: {
        /* Rows of numbers are of Python. */
        int64_t n = read_base64(memory, text_in(value).span);
        return n < 0 ? n == INPUT_NO_MEMORY ? n : 0
                     : n % (4 * size.n_items) == 0 && are_finite(memory, n / 4);
    }
    default:
        return true;
    }
}

/* An empty name is none. */
static bool is_said(struct span value) {
    return value.n > 1 || (value.n == 1 && value.bytes[0] != 0xA0);
}

static int64_t named_bytes(const struct input *event, int field) {
    return 1 + (int64_t)strlen(NAMES[field]) + event->fields[field].n;
}

int64_t put_extra(struct canonical *out, const struct input *event,
                  struct list_size size, struct input_memory *memory) {
    int64_t n_said = 0, n_bytes = 1;
    for (int i = 0; i < N_EXTRA; i++) {
        struct span value = event->fields[EXTRA[i]];
        if (value.n < 0)
            continue;
        int64_t sound = is_sound(event, EXTRA[i], size, memory);
        if (sound <= 0)
            return sound ? sound : ODD;
        n_said += is_said(value);
        n_bytes += is_said(value) ? named_bytes(event, EXTRA[i]) : 0;
    }
    n_bytes = n_said ? n_bytes : 0;
    out->at = put_binary_head(out->at, n_bytes);
    if (n_said)
        *out->at++ = (uint8_t)(0x80 | n_said);
    for (int i = 0; i < N_EXTRA; i++) {
        struct span value = event->fields[EXTRA[i]];
        if (!is_said(value))
            continue;
        size_t n_name = strlen(NAMES[EXTRA[i]]);
        *out->at++ = (uint8_t)(0xA0 | n_name);
        out->at = put_bytes(out->at, (const uint8_t *)NAMES[EXTRA[i]], n_name);
        if (EXTRA[i] == QUERY_EVENT_CANDIDATE_FEATURES)
            put_features_text(out, memory, text_in(value), size.n_items);
        else
            out->at = put_bytes(out->at, value.bytes, (size_t)value.n);
    }
    return n_bytes;
}
