/* Texts, numbers and times of input events, and what they are hashed to. */
#include "blake2b.h"
#include "input_events.h"

struct text text_in(struct span value) {
    int64_t start = 0, n = 0;
    struct text none = {value.bytes, 0, {value.bytes, -1}};
    if (value.n < 1 || (value.bytes[0] >= 0xC4 && value.bytes[0] <= 0xC6))
        return none;
    int64_t after = msgpack_span(value.bytes, 0, value.n, &start, &n);
    if (after < 0)
        return none;
    return (struct text){value.bytes, after, {value.bytes + start, n}};
}

int64_t characters_of(struct span text) {
    int64_t n = 0;
    for (int64_t i = 0; i < text.n; i++)
        n += (text.bytes[i] & 0xC0) != 0x80;
    return n;
}

bool is_within(struct span text, int64_t most) {
    return text.n <= most || characters_of(text) <= most;
}

bool number_of(struct span value, int64_t *number) {
    return value.n > 0 && msgpack_number(value.bytes, 0, value.n, number) > 0;
}

static bool is_between(int64_t number, int64_t first, int64_t end) {
    return number >= first && number < end;
}

bool is_plausible(int64_t at_ms, int64_t appended_ms, int64_t ahead_ms) {
    if (at_ms < 0 || at_ms > LAST_MS || appended_ms < 0)
        return false;
    bool is_of_seconds = is_between(at_ms, LEAST_SECONDS, LEAST_MS) &&
                         is_between(appended_ms, LEAST_MS, LEAST_US);
    return !is_of_seconds && at_ms - appended_ms <= ahead_ms;
}

static bool is_blank(uint8_t character) {
    return character == ' ' || is_between(character, '\t', '\r' + 1) ||
           is_between(character, 0x1C, 0x20);
}

struct span normalised(struct span query, const struct input_rules *rules,
                       uint8_t *room) {
    struct span found = {room, 0};
    bool is_apart = false;
    if (rules->is_normalised)
        return query;
    if (query.n > MAX_QUERY_CHARACTERS)
        return (struct span){room, FOREIGN};
    for (int64_t i = 0; i < query.n; i++) {
        uint8_t character = query.bytes[i];
        if (character >= 0x80)
            return (struct span){room, FOREIGN};
        if (is_blank(character)) {
            is_apart = found.n > 0;
            continue;
        }
        if (is_apart)
            room[found.n++] = ' ';
        is_apart = false;
        room[found.n++] = is_between(character, 'A', 'Z' + 1) ? character | 0x20 : character;
    }
    return found;
}

uint64_t route_of(struct span query) {
    enum { SEGMENT_MARK = 0x1F };
    int64_t n = 0;
    while (n < query.n && query.bytes[n] != SEGMENT_MARK)
        n++;
    return digest_of("", query.bytes, n);
}

uint64_t digest_of(const char *mark, const uint8_t *bytes, int64_t n) {
    struct blake2b state;
    uint8_t digest[8];
    blake2b_begin(&state, sizeof digest);
    blake2b_take(&state, (const uint8_t *)mark, (int64_t)strlen(mark));
    blake2b_take(&state, bytes, n);
    blake2b_end(&state, digest);
    return msgpack_big_endian(digest, sizeof digest);
}

static int digit_of(uint8_t character) {
    if (is_between(character, '0', '9' + 1))
        return character - '0';
    character |= 0x20;
    return is_between(character, 'a', 'f' + 1) ? character - 'a' + 10 : -1;
}

bool route_in(struct span id, uint64_t *route) {
    enum { N_DIGITS = 16 };
    if (id.n <= N_DIGITS || id.bytes[id.n - N_DIGITS - 1] != '~')
        return false;
    *route = 0;
    for (int64_t i = id.n - N_DIGITS; i < id.n; i++) {
        int digit = digit_of(id.bytes[i]);
        if (digit < 0)
            return false;
        *route = *route << 4 | (uint64_t)digit;
    }
    return true;
}

int64_t put_decimal(uint8_t *at, int64_t number) {
    uint8_t digits[20];
    int64_t n = 0;
    do {
        digits[n++] = (uint8_t)('0' + number % 10);
        number /= 10;
    } while (number);
    for (int64_t i = 0; i < n; i++)
        at[i] = digits[n - 1 - i];
    return n;
}

void put_identity(struct canonical *out, const struct part *parts, int64_t n) {
    struct blake2b state;
    uint8_t length[21];
    blake2b_begin(&state, IDENTITY_BYTES);
    for (int64_t i = 0; i < n; i++) {
        int64_t n_digits = put_decimal(length, parts[i].n);
        length[n_digits] = ':';
        blake2b_take(&state, length, n_digits + 1);
        blake2b_take(&state, parts[i].bytes, parts[i].n);
    }
    out->at = put_binary_head(out->at, IDENTITY_BYTES);
    blake2b_end(&state, out->at);
    out->at += IDENTITY_BYTES;
}

uint8_t *put_unsigned(uint8_t *at, uint64_t number) {
    if (number <= INT64_MAX)
        return put_number(at, (int64_t)number);
    *at = 0xCF;
    return put_big_endian(at + 1, number, 8);
}

/* `first` before one byte of length, the next one before two, then four. */
static uint8_t *put_length(uint8_t *at, int64_t n, uint8_t first) {
    int power = n >> 8 ? n >> 16 ? 2 : 1 : 0;
    *at = (uint8_t)(first + power);
    return put_big_endian(at + 1, (uint64_t)n, 1 << power);
}

uint8_t *put_text_head(uint8_t *at, int64_t n) {
    if (n >= 32)
        return put_length(at, n, 0xD9);
    *at = (uint8_t)(0xA0 | n);
    return at + 1;
}

uint8_t *put_binary_head(uint8_t *at, int64_t n) { return put_length(at, n, 0xC4); }
