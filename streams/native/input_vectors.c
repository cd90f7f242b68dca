/* Vectors of input events: float32 from base64 or numbers, in canonical order. */
#include <float.h>
#include <math.h>
#include <stdlib.h>

#include "digests.h"
#include "input_events.h"

#define SUM_TOLERANCE 1e-4
/* What a sum in float32 may differ by, for each number in it. */
#define SUM_ERROR 1.2e-7
enum { CELL_BYTES = 8, NOT_A_DIGIT = 64 };

static bool has_room(struct input_memory *memory, int64_t n) {
    if (n <= memory->n_numbers)
        return true;
    free(memory->numbers);
    memory->numbers = malloc((size_t)(2 * n) * sizeof *memory->numbers);
    memory->n_numbers = memory->numbers ? 2 * n : 0;
    return memory->numbers != NULL;
}

static inline uint32_t bits_of(float number) {
    uint32_t bits;
    memcpy(&bits, &number, sizeof bits);
    return bits;
}

static inline float number_at(const struct input_memory *memory, int64_t i) {
    float number;
    memcpy(&number, &memory->numbers[i], sizeof number);
    return number;
}

static inline bool is_finite(uint32_t bits) {
    return (bits & UINT32_C(0x7F800000)) != UINT32_C(0x7F800000);
}

static inline uint32_t sextet_of(uint8_t character) {
    if (character >= 'A' && character <= 'Z')
        return character - 'A';
    if (character >= 'a' && character <= 'z')
        return character - 'a' + 26u;
    if (character >= '0' && character <= '9')
        return character - '0' + 52u;
    return character == '+' ? 62 : character == '/' ? 63 : NOT_A_DIGIT;
}

/* Four characters as three bytes, or -1 where one is no digit. */
static inline int64_t triple_at(const uint8_t *text, const uint8_t *sextets) {
    uint32_t a = sextets[text[0]], b = sextets[text[1]];
    uint32_t c = sextets[text[2]], d = sextets[text[3]];
    return (a | b | c | d) & NOT_A_DIGIT ? -1 : (int64_t)(a << 18 | b << 12 | c << 6 | d);
}

/* Bytes of a text in base64 that ends as encoders end it; how many, or ODD. */
static int64_t decoded(struct span text, uint8_t *out) {
    uint8_t sextets[256], last[4];
    for (int i = 0; i < 256; i++)
        sextets[i] = (uint8_t)sextet_of((uint8_t)i);
    if (text.n % 4)
        return ODD;
    int64_t n = 0, n_whole = text.n - 4;
    for (int64_t at = 0; at < n_whole; at += 4) {
        int64_t triple = triple_at(text.bytes + at, sextets);
        if (triple < 0)
            return ODD;
        out[n++] = (uint8_t)(triple >> 16);
        out[n++] = (uint8_t)(triple >> 8);
        out[n++] = (uint8_t)triple;
    }
    memcpy(last, text.bytes + n_whole, 4);
    int n_missing = last[3] != '=' ? 0 : last[2] != '=' ? 1 : 2;
    for (int i = 0; i < n_missing; i++)
        last[3 - i] = 'A';
    int64_t triple = triple_at(last, sextets);
    if (triple < 0 || (triple & ((1 << 8 * n_missing) - 1)))
        return ODD;
    for (int i = 0; i < 3 - n_missing; i++)
        out[n++] = (uint8_t)(triple >> (16 - 8 * i));
    return n;
}

int64_t read_base64(struct input_memory *memory, struct span text) {
    if (!has_room(memory, text.n / 4 * 3 / 4 + 1))
        return INPUT_NO_MEMORY;
    return text.n > 0 ? decoded(text, (uint8_t *)memory->numbers) : ODD;
}

bool are_finite(struct input_memory *memory, int64_t n) {
    bool all = true;
    for (int64_t i = 0; i < n; i++) {
        memory->numbers[i] = half_word_at((uint8_t *)&memory->numbers[i]);
        all = all && is_finite(memory->numbers[i]);
    }
    return all;
}

int64_t read_numbers(struct input_memory *memory, struct span value) {
    struct text text = text_in(value);
    if (text.span.n >= 0) {
        int64_t n_bytes = read_base64(memory, text.span);
        if (n_bytes < 0)
            return n_bytes;
        return n_bytes % 4 == 0 && are_finite(memory, n_bytes / 4) ? n_bytes / 4 : ODD;
    }
    struct reader list = {value.bytes, 0, value.n};
    int64_t n = next_array(&list);
    if (list.at < 0 || n > (value.n - list.at) / 9)
        return ODD;
    if (!has_room(memory, n))
        return INPUT_NO_MEMORY;
    for (int64_t i = 0; i < n; i++, list.at += 9) {
        const uint8_t *packed = list.data + list.at;
        uint64_t bits = msgpack_unsigned(packed + 1, 8);
        double number;
        memcpy(&number, &bits, sizeof number);
        /* What is a little beyond may be rounded to the largest: Python does that. */
        if (packed[0] != 0xCB || !(fabs(number) <= (double)FLT_MAX))
            return ODD;
        memory->numbers[i] = bits_of((float)number);
    }
    return n;
}

static uint8_t *put_word(uint8_t *at, uint32_t word) {
    for (int i = 0; i < 4; i++)
        *at++ = (uint8_t)(word >> 8 * i);
    return at;
}

void put_numbers(struct canonical *out, const struct input_memory *memory, int64_t n) {
    out->at = put_binary_head(out->at, 4 * n);
    for (int64_t i = 0; i < n; i++)
        out->at = put_word(out->at, memory->numbers[i]);
}

void put_permuted(struct canonical *out, const struct input_memory *memory,
                  int64_t n_rows, int64_t width) {
    out->at = put_binary_head(out->at, 4 * n_rows * width);
    for (int64_t row = 0; row < n_rows; row++)
        for (int64_t i = 0; i < width; i++)
            out->at = put_word(
                out->at, memory->numbers[memory->items[row].number * width + i]);
}

/* Whether all are 0 or more, and no row and no column sums to more than one, by as much
 * as Python's sums in float32 may say something else. */
static bool are_probabilities(const struct input_memory *memory, int64_t n_rows,
                              int64_t n_ranks) {
    double most = 1 + SUM_TOLERANCE - SUM_ERROR * (double)(n_rows + n_ranks);
    for (int64_t row = 0; row < n_rows; row++) {
        double sum = 0;
        for (int64_t rank = 0; rank < n_ranks; rank++) {
            float one = number_at(memory, row * n_ranks + rank);
            if (one < 0)
                return false;
            sum += (double)one;
        }
        if (sum > most)
            return false;
    }
    for (int64_t rank = 0; rank < n_ranks; rank++) {
        double sum = 0;
        for (int64_t row = 0; row < n_rows; row++)
            sum += (double)number_at(memory, row * n_ranks + rank);
        if (sum > most)
            return false;
    }
    return true;
}

int64_t put_exposures(struct canonical *out, const struct input_memory *memory,
                      int64_t n_rows, int64_t n_ranks) {
    int64_t n = n_rows * n_ranks, n_cells = 0;
    if (!are_probabilities(memory, n_rows, n_ranks))
        return ODD;
    for (int64_t i = 0; i < n; i++)
        n_cells += number_at(memory, i) != 0;
    if (n_cells == 0 || CELL_BYTES * n_cells >= 4 * n) {
        put_permuted(out, memory, n_rows, n_ranks);
        return 4 * n;
    }
    out->at = put_binary_head(out->at, CELL_BYTES * n_cells);
    uint8_t *cells = out->at, *numbers = cells + 4 * n_cells;
    for (int64_t row = 0; row < n_rows; row++) {
        int64_t first = memory->items[row].number * n_ranks;
        for (int64_t rank = 0; rank < n_ranks; rank++) {
            if (number_at(memory, first + rank) == 0)
                continue;
            cells = put_word(cells, (uint32_t)(row * n_ranks + rank));
            numbers = put_word(numbers, memory->numbers[first + rank]);
        }
    }
    out->at = numbers;
    return CELL_BYTES * n_cells;
}

/* The sextets of three bytes as characters. */
static uint8_t *put_triple(uint8_t *at, const uint8_t *bytes) {
    static const char DIGITS[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    uint32_t triple = (uint32_t)bytes[0] << 16 | (uint32_t)bytes[1] << 8 | bytes[2];
    for (int i = 18; i >= 0; i -= 6)
        *at++ = (uint8_t)DIGITS[triple >> i & 63];
    return at;
}

void put_features_text(struct canonical *out, struct input_memory *memory,
                       struct text text, int64_t n_rows) {
    int64_t n_padding = text.span.bytes[text.span.n - 1] != '='   ? 0
                        : text.span.bytes[text.span.n - 2] != '=' ? 1
                                                                  : 2;
    int64_t n = text.span.n / 4 * 3 - n_padding, width = n / n_rows, n_waiting = 0;
    uint8_t waiting[3] = {0, 0, 0};
    out->at = put_bytes(out->at, text.packed, (size_t)(text.n_packed - text.span.n));
    for (int64_t row = 0; row < n_rows; row++) {
        int64_t first = memory->items[row].number * width / 4;
        for (int64_t i = 0; i < width; i++) {
            waiting[n_waiting++] = (uint8_t)(memory->numbers[first + i / 4] >> 8 * (i % 4));
            if (n_waiting == 3) {
                out->at = put_triple(out->at, waiting);
                n_waiting = 0;
            }
        }
    }
    if (n_waiting) {
        memset(waiting + n_waiting, 0, (size_t)(3 - n_waiting));
        out->at = put_triple(out->at, waiting);
        memset(out->at - n_padding, '=', (size_t)n_padding);
    }
}
