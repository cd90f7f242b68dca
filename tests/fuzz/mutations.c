/* Mutated real records through every entry point of the core.
 *
 *     mutations CORPUS N SEED
 *
 * CORPUS holds records, each behind its length in 4 bytes, little-endian. Each record
 * that is tried ends where memory of ours ends, so that a sanitizer sees a byte read
 * too far; without one, a page that may not be touched lies there. Where a result
 * cannot be true the program aborts.
 *
 * A new entry point: a function that takes a record, its row in ENTRY_POINTS, and a
 * `use` for each array that it hands over. What takes closed interactions instead is a
 * row of TAKERS in `taken.c`. */
#define _DEFAULT_SOURCE /* MAP_ANONYMOUS; its other name is Darwin's */
#define _DARWIN_C_SOURCE
#include <sys/mman.h>
#include <unistd.h>

#include "elements.h"
#include "fuzzed.h"

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define HAS_ADDRESS_SANITIZER 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__)
#define HAS_ADDRESS_SANITIZER 1
#endif

/* ---- memory that ends where it says, for as long as the next of its use ---- */

static struct {
    uint8_t *start;
    size_t n;
} regions[N_USES];

#if defined(HAS_ADDRESS_SANITIZER)

void *bounded(enum use use, size_t n) {
    free(regions[use].start);
    /* Behind 8 bytes, as an allocation of none has one. */
    regions[use].start = malloc(n + 8);
    CHECK(regions[use].start);
    return regions[use].start + 8;
}

static void free_bounded(void) {
    for (int use = 0; use < N_USES; use++)
        free(regions[use].start);
}

#else

void *bounded(enum use use, size_t n) {
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    if (regions[use].start == NULL || n > regions[use].n) {
        if (regions[use].start)
            CHECK(munmap(regions[use].start, regions[use].n + page) == 0);
        regions[use].n = (2 * n / page + 1) * page;
        regions[use].start = mmap(NULL, regions[use].n + page, PROT_READ | PROT_WRITE,
                                  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        CHECK(regions[use].start != MAP_FAILED);
        CHECK(mprotect(regions[use].start + regions[use].n, page, PROT_NONE) == 0);
    }
    return regions[use].start + regions[use].n - n;
}

static void free_bounded(void) {}

#endif

/* ---- entry points: whether the record was taken ---- */

static int find_elements(const uint8_t *data, int64_t end) {
    int64_t head[4];
    int64_t first = fold_find_head(data, end, head);
    if (first < 0)
        return 0;
    CHECK(first <= end && head[3] >= 0 && head[3] <= end);
    size_t n = (size_t)head[3], n_bytes = n * ELEMENT_WIDTH * sizeof(int64_t);
    int8_t *tags = bounded(TAGS, n);
    int64_t *places = bounded(PLACES, n_bytes);
    int is_whole = fold_find_elements(data, first, end, head[3], tags, places) == 0;
    int64_t at = first;
    for (size_t i = 0; is_whole && i < n; i++) {
        int64_t *own = places + i * ELEMENT_WIDTH;
        CHECK(tags[i] >= IMPRESSION && tags[i] <= FRONTIER);
        CHECK(own[0] == at);
        int n_fields = tags[i] == IMPRESSION ? N_IMPRESSION_FIELDS
                       : tags[i] == CLICK    ? N_CLICK_FIELDS
                                             : N_FRONTIER_FIELDS;
        for (int field = 1; field < n_fields; field++) {
            CHECK(own[field] > at);
            at = own[field];
        }
        CHECK(own[ELEMENT_END] > at);
        at = own[ELEMENT_END];
    }
    CHECK(!is_whole || at == end);
    return is_whole;
}

static int find_fields(const uint8_t *data, int64_t end) {
    int64_t places[ELEMENT_WIDTH];
    int64_t after = fold_find_fields(data, end > 5 ? 5 : 0, end, places);
    CHECK(after >= -1 && after <= end);
    return after >= 0;
}

static const struct {
    const char *name;
    int (*takes)(const uint8_t *data, int64_t end);
} ENTRY_POINTS[] = {
    {"find_elements", find_elements},
    {"find_fields", find_fields},
    {"join", take_into_join},
    {"scope_tables", take_into_tables},
    {"ingest_queries", take_queries},
    {"ingest_clicks", take_clicks},
};
#define N_ENTRY_POINTS (sizeof ENTRY_POINTS / sizeof ENTRY_POINTS[0])

/* ---- the corpus, and what is done to it ---- */

static uint8_t *corpus;
static size_t corpus_bytes, n_records;
static size_t *starts;

static size_t length_at(size_t at) {
    const uint8_t *bytes = corpus + at;
    return bytes[0] | (size_t)bytes[1] << 8 | (size_t)bytes[2] << 16 |
           (size_t)bytes[3] << 24;
}

static void read_corpus(const char *path) {
    FILE *file = fopen(path, "rb");
    CHECK(file != NULL && fseek(file, 0, SEEK_END) == 0);
    corpus_bytes = (size_t)ftell(file);
    rewind(file);
    corpus = malloc(corpus_bytes + 1);
    CHECK(corpus && fread(corpus, 1, corpus_bytes, file) == corpus_bytes);
    fclose(file);
    starts = malloc(sizeof(size_t) * (corpus_bytes / 4 + 1));
    CHECK(starts);
    for (size_t at = 0; at + 4 <= corpus_bytes; at += 4 + length_at(at))
        starts[n_records++] = at;
    CHECK(n_records > 0);
}

static uint64_t state;

/* xorshift64*: Vigna, "An experimental exploration of Marsaglia's xorshift generators,
 * scrambled" (TOMS 2016). */
size_t below(size_t n) {
    state ^= state >> 12;
    state ^= state << 25;
    state ^= state >> 27;
    return n ? (size_t)((state * UINT64_C(0x2545F4914F6CDD1D) >> 16) % n) : 0;
}

/* First bytes at which formats begin and end, and large lengths. */
static const uint8_t TELLING[] = {0x00, 0x01, 0x7F, 0x80, 0x8F, 0x90, 0x93, 0x94, 0x9F,
                                  0xA0, 0xBF, 0xC0, 0xC1, 0xC2, 0xC4, 0xC5, 0xC6, 0xC7,
                                  0xCA, 0xCB, 0xCC, 0xCD, 0xCE, 0xCF, 0xD0, 0xD3, 0xD4,
                                  0xD9, 0xDA, 0xDB, 0xDC, 0xDD, 0xDE, 0xDF, 0xE0, 0xFF};

/* Changes a record in place; returns its length, at most `room`. */
static size_t mutate(uint8_t *record, size_t length, size_t room) {
    size_t at = below(length), n = 1 + below(8);
    switch (below(6)) {
    case 0: /* a bit */
        if (length)
            record[at] ^= (uint8_t)(1u << below(8));
        return length;
    case 1: /* a byte that means something */
        if (length)
            record[at] = TELLING[below(sizeof TELLING)];
        return length;
    case 2: /* its end is gone */
        return at;
    case 3: /* some bytes are gone */
        n = n < length - at ? n : length - at;
        memmove(record + at, record + at + n, length - at - n);
        return length - n;
    case 4: /* some come in */
        if (n > room - length)
            return length;
        memmove(record + at + n, record + at, length - at);
        for (size_t i = 0; i < n; i++)
            record[at + i] = TELLING[below(sizeof TELLING)];
        return length + n;
    default: { /* a piece of another record lies over it */
        size_t other = starts[below(n_records)], other_length = length_at(other);
        size_t from = below(other_length), piece = below(64);
        piece = piece < other_length - from ? piece : other_length - from;
        piece = piece < length - at ? piece : length - at;
        memcpy(record + at, corpus + other + 4 + from, piece);
        return length;
    }
    }
}

int main(int n_words, char **words) {
    if (n_words != 4) {
        fprintf(stderr, "usage: mutations CORPUS N SEED\n");
        return 2;
    }
    read_corpus(words[1]);
    size_t n = strtoull(words[2], NULL, 10), n_taken[N_ENTRY_POINTS] = {0};
    state = strtoull(words[3], NULL, 10) * 2 + 1;
    for (size_t i = 0; i < n; i++) {
        size_t start = starts[below(n_records)], length = length_at(start);
        size_t n_mutations = below(5), room = length + 8 * n_mutations;
        uint8_t *record = malloc(room + 1);
        CHECK(record);
        memcpy(record, corpus + start + 4, length);
        for (size_t nth = 0; nth < n_mutations; nth++)
            length = mutate(record, length, room);
        uint8_t *data = bounded(RECORD, length);
        memcpy(data, record, length);
        for (size_t point = 0; point < N_ENTRY_POINTS; point++)
            n_taken[point] += (size_t)ENTRY_POINTS[point].takes(data, (int64_t)length);
        free(record);
    }
    for (size_t point = 0; point < N_ENTRY_POINTS; point++)
        printf("%s: %zu records tried, %zu taken\n", ENTRY_POINTS[point].name, n,
               n_taken[point]);
    end_of_join();
    print_joined();
    end_of_tables();
    free_bounded();
    free(starts);
    free(corpus);
    return 0;
}
