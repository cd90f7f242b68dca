/* Reading MessagePack where it lies: where values begin and end, and the few that
 * are read.
 *
 * `at` is the place of a value in `data`, `end` the number of bytes that belong to
 * us, 0 <= end. No function reads at or beyond `end`, whatever the bytes say, and no
 * place that one returns lies beyond it. Refused is what is not whole. */
#ifndef FOLD_MSGPACK_H
#define FOLD_MSGPACK_H

#include <stdbool.h>
#include <stdint.h>

/* Tests only: a build that looks one byte too far, for the sanitizers to find. */
#if defined(PLANTED_FAULT)
#define MSGPACK_SLACK 1
#else
#define MSGPACK_SLACK 0
#endif

/* Whether `n` bytes lie between `at` and `end`. */
static inline bool msgpack_has(int64_t at, int64_t end, int64_t n) {
    return at >= 0 && at <= end && n <= end - at + MSGPACK_SLACK;
}

static inline uint64_t msgpack_big_endian(const uint8_t *bytes, int width) {
    uint64_t number = 0;
    for (int i = 0; i < width; i++)
        number = number << 8 | bytes[i];
    return number;
}

/* The same, so that each width becomes one load. */
static inline uint64_t msgpack_unsigned(const uint8_t *bytes, int width) {
    switch (width) {
    case 1:
        return msgpack_big_endian(bytes, 1);
    case 2:
        return msgpack_big_endian(bytes, 2);
    case 4:
        return msgpack_big_endian(bytes, 4);
    default:
        return msgpack_big_endian(bytes, 8);
    }
}

/* Where the integer that begins here ends, or -1 if there is no whole one. */
static inline int64_t msgpack_after_number(const uint8_t *data, int64_t at, int64_t end) {
    if (!msgpack_has(at, end, 1))
        return -1;
    uint8_t first = data[at++];
    if (first < 0x80 || first >= 0xE0)
        return at;
    if (first < 0xCC || first > 0xD3)
        return -1;
    int width = 1 << (first & 3);
    return msgpack_has(at, end, width) ? at + width : -1;
}

/* Reads an integer; those beyond 2^63 come as negative ones. Returns where it ends,
 * or -1 if there is no whole one. */
static inline int64_t msgpack_number(const uint8_t *data, int64_t at, int64_t end,
                                     int64_t *number) {
    int64_t after = msgpack_after_number(data, at, end);
    if (after < 0)
        return -1;
    uint8_t first = data[at];
    if (first < 0x80 || first >= 0xE0) {
        *number = (int8_t)first;
        return after;
    }
    int width = 1 << (first & 3);
    uint64_t read = msgpack_unsigned(data + at + 1, width);
    if (first < 0xD0 || width == 8) {
        *number = (int64_t)read;
        return after;
    }
    uint64_t sign = UINT64_C(1) << (8 * width - 1);
    *number = (int64_t)((read ^ sign) - sign);
    return after;
}

/* Where the bytes of a string or of binary data begin, and how many there are.
 * Returns where they end, or -1 if there are none or not all. */
static inline int64_t msgpack_span(const uint8_t *data, int64_t at, int64_t end,
                                   int64_t *start, int64_t *length) {
    if (!msgpack_has(at, end, 1))
        return -1;
    uint8_t first = data[at++];
    if (first >= 0xA0 && first < 0xC0) {
        *start = at;
        *length = first & 31;
    } else {
        bool is_binary = first >= 0xC4 && first <= 0xC6;
        if (!is_binary && (first < 0xD9 || first > 0xDB))
            return -1;
        int width = 1 << (first - (is_binary ? 0xC4 : 0xD9));
        if (!msgpack_has(at, end, width))
            return -1;
        *start = at + width;
        *length = (int64_t)msgpack_unsigned(data + at, width);
    }
    return msgpack_has(*start, end, *length) ? *start + *length : -1;
}

/* How many there are of what begins here: `few` is its first byte where up to 15 are
 * told in it, `many` that before two bytes of length, the next one that before four.
 * Returns where the first begins, which may be `end`, or -1 if it is something else. */
static inline int64_t msgpack_counted(const uint8_t *data, int64_t at, int64_t end,
                                      uint8_t few, uint8_t many, int64_t *n) {
    if (!msgpack_has(at, end, 1))
        return -1;
    uint8_t first = data[at++];
    if ((first & 0xF0) == few) {
        *n = first & 15;
        return at;
    }
    if (first != many && first != many + 1)
        return -1;
    int width = first == many ? 2 : 4;
    if (!msgpack_has(at, end, width))
        return -1;
    *n = (int64_t)msgpack_unsigned(data + at, width);
    return at + width;
}

/* The length of an array. */
static inline int64_t msgpack_array(const uint8_t *data, int64_t at, int64_t end,
                                    int64_t *length) {
    return msgpack_counted(data, at, end, 0x90, 0xDC, length);
}

/* The pairs of a map. */
static inline int64_t msgpack_map(const uint8_t *data, int64_t at, int64_t end,
                                  int64_t *n_pairs) {
    return msgpack_counted(data, at, end, 0x80, 0xDE, n_pairs);
}

/* Where the extension that begins here ends, or -1 if there is no whole one. */
static inline int64_t msgpack_after_extension(const uint8_t *data, int64_t at,
                                              int64_t end) {
    if (!msgpack_has(at, end, 1))
        return -1;
    uint8_t first = data[at++];
    int64_t length;
    if (first >= 0xD4 && first <= 0xD8) {
        length = INT64_C(1) << (first - 0xD4);
    } else if (first >= 0xC7 && first <= 0xC9) {
        int width = 1 << (first - 0xC7);
        if (!msgpack_has(at, end, width))
            return -1;
        length = (int64_t)msgpack_unsigned(data + at, width);
        at += width;
    } else {
        return -1;
    }
    /* A byte says of what kind it is. */
    return msgpack_has(at, end, length + 1) ? at + length + 1 : -1;
}

/* Where the value that begins here ends, however deep it is, or -1 if it is not whole.
 * Unless `takes_any`, what our encoder never writes is refused: extensions and maps of
 * more than 15 pairs. */
static inline int64_t msgpack_after_value(const uint8_t *data, int64_t at, int64_t end,
                                          int takes_any) {
    int64_t left = 1;
    while (left > 0) {
        /* Each value that is left takes a byte: no false length costs time. */
        if (!msgpack_has(at, end, left))
            return -1;
        left--;
        uint8_t first = data[at];
        int64_t start, length;
        if ((first & 0xF0) == 0x80 || (takes_any && (first == 0xDE || first == 0xDF))) {
            at = msgpack_map(data, at, end, &length);
            left += at < 0 ? 0 : 2 * length;
        } else if ((first & 0xF0) == 0x90 || first == 0xDC || first == 0xDD) {
            at = msgpack_array(data, at, end, &length);
            left += at < 0 ? 0 : length;
        } else if (first == 0xC0 || first == 0xC2 || first == 0xC3) {
            at++;
        } else if (first == 0xCA || first == 0xCB) {
            at += first == 0xCA ? 5 : 9;
        } else if (first < 0x80 || first >= 0xE0 || (first >= 0xCC && first <= 0xD3)) {
            at = msgpack_after_number(data, at, end);
        } else if (takes_any && ((first >= 0xC7 && first <= 0xC9) ||
                                 (first >= 0xD4 && first <= 0xD8))) {
            at = msgpack_after_extension(data, at, end);
        } else {
            at = msgpack_span(data, at, end, &start, &length);
        }
        if (at < 0)
            return -1;
    }
    return at <= end ? at : -1;
}

/* Of what our encoder writes. */
static inline int64_t msgpack_after(const uint8_t *data, int64_t at, int64_t end) {
    return msgpack_after_value(data, at, end, 0);
}

/* Of whatever there is. */
static inline int64_t msgpack_after_any(const uint8_t *data, int64_t at, int64_t end) {
    return msgpack_after_value(data, at, end, 1);
}

#endif
