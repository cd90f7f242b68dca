/* Lists of items in canonical order, and the rows of what is shown. */
#include <stdlib.h>

#include "input_events.h"

enum { RUN = 8, LARGEST_ROW = UINT16_MAX };

/* The first eight bytes as a big-endian number, so that numbers compare as bytes do. */
static uint64_t head_of(struct span span) {
    uint64_t head = 0;
    int64_t n = span.n < 8 ? span.n : 8;
    for (int64_t i = 0; i < n; i++)
        head |= (uint64_t)span.bytes[i] << (56 - 8 * i);
    return head;
}

/* As Python compares texts: UTF-8 keeps the order of characters. */
static int compared(const struct listed *one, const struct listed *other) {
    if (one->head != other->head)
        return one->head < other->head ? -1 : 1;
    struct span mine = one->text.span, its = other->text.span;
    int found = memcmp(mine.bytes, its.bytes, (size_t)(mine.n < its.n ? mine.n : its.n));
    return found ? found : (mine.n > its.n) - (mine.n < its.n);
}

static void insert_each(struct listed *items, int64_t n) {
    for (int64_t i = 1; i < n; i++) {
        struct listed one = items[i];
        int64_t at = i;
        for (; at > 0 && compared(&one, &items[at - 1]) < 0; at--)
            items[at] = items[at - 1];
        items[at] = one;
    }
}

static void merge(const struct listed *one, int64_t n, const struct listed *other,
                  int64_t m, struct listed *out) {
    while (n > 0 && m > 0) {
        if (compared(other, one) < 0) {
            *out++ = *other++;
            m--;
        } else {
            *out++ = *one++;
            n--;
        }
    }
    memcpy(out, n ? one : other, (size_t)(n + m) * sizeof *out);
}

/* Runs of a few are put in order, then merged, twice as long each time. */
static void sort(struct input_memory *memory, int64_t n) {
    for (int64_t first = 0; first < n; first += RUN)
        insert_each(memory->items + first, n - first < RUN ? n - first : RUN);
    for (int64_t run = RUN; run < n; run *= 2) {
        for (int64_t first = 0; first < n; first += 2 * run) {
            int64_t left = n - first, one = left < run ? left : run;
            int64_t other = left - one < run ? left - one : run;
            merge(memory->items + first, one, memory->items + first + one, other,
                  memory->others + first);
        }
        struct listed *sorted = memory->others;
        memory->others = memory->items;
        memory->items = sorted;
    }
}

static bool has_room(struct input_memory *memory, int64_t n) {
    if (n <= memory->n_items)
        return true;
    int64_t more = 2 * n;
    free_input_memory(memory);
    memory->items = malloc((size_t)more * sizeof *memory->items);
    memory->others = malloc((size_t)more * sizeof *memory->others);
    memory->row_of = malloc((size_t)more * sizeof *memory->row_of);
    memory->is_marked = malloc((size_t)more);
    memory->n_items = more;
    return memory->items && memory->others && memory->row_of && memory->is_marked;
}

void free_input_memory(struct input_memory *memory) {
    free(memory->items);
    free(memory->others);
    free(memory->row_of);
    free(memory->is_marked);
    free(memory->numbers);
    *memory = (struct input_memory){0};
}

/* The next item of a list, and whether it may be one. */
static bool next_item(struct reader *list, struct text *item) {
    const uint8_t *packed = list->data + list->at;
    struct span span = next_text(list);
    if (list->at < 0 || span.n == 0 || !is_within(span, MAX_ID_CHARACTERS))
        return false;
    *item = (struct text){packed, list->data + list->at - packed, span};
    return true;
}

int64_t read_items(struct input_memory *memory, struct span value, int64_t most) {
    struct reader list = {value.bytes, 0, value.n};
    int64_t n = next_array(&list);
    if (list.at < 0 || n == 0 || n > most || n > LARGEST_ROW)
        return ODD;
    if (!has_room(memory, n))
        return INPUT_NO_MEMORY;
    for (int64_t i = 0; i < n; i++) {
        struct listed *item = &memory->items[i];
        item->number = i;
        if (!next_item(&list, &item->text))
            return ODD;
        item->head = head_of(item->text.span);
    }
    sort(memory, n);
    for (int64_t row = 0; row < n; row++) {
        if (row && compared(&memory->items[row - 1], &memory->items[row]) == 0)
            return ODD;
        memory->row_of[memory->items[row].number] = row;
    }
    return n;
}

/* The row of an item, or -1. */
static int64_t row_in(const struct input_memory *memory, int64_t n, struct text item) {
    struct listed wanted = {head_of(item.span), item, 0};
    int64_t first = 0, end = n;
    while (first < end) {
        int64_t middle = first + (end - first) / 2;
        int found = compared(&memory->items[middle], &wanted);
        if (found == 0)
            return middle;
        if (found < 0)
            first = middle + 1;
        else
            end = middle;
    }
    return -1;
}

static void put_row(struct canonical *out, int64_t row) {
    *out->at++ = (uint8_t)row;
    *out->at++ = (uint8_t)(row >> 8);
}

int64_t put_rows(struct canonical *out, struct input_memory *memory, struct span shown,
                 int64_t n_items, bool is_open) {
    struct reader list = {shown.bytes, 0, shown.n};
    int64_t n = next_array(&list);
    if (list.at < 0 || n == 0 || n > MAX_SHOWN || n > n_items)
        return ODD;
    out->at = put_binary_head(out->at, 2 * n);
    if (is_open) {
        for (int64_t i = 0; i < n; i++)
            put_row(out, memory->row_of[i]);
        return n;
    }
    memset(memory->is_marked, 0, (size_t)n_items);
    for (int64_t i = 0; i < n; i++) {
        struct text item;
        int64_t row = next_item(&list, &item) ? row_in(memory, n_items, item) : -1;
        if (row < 0 || memory->is_marked[row])
            return ODD;
        memory->is_marked[row] = 1;
        put_row(out, row);
    }
    return n;
}
