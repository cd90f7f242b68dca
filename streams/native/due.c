#include "due.h"

void dues_begin(struct dues *dues) {
    dues->heap.width = sizeof(struct due);
    for (int i = 0; i < N_RUNS; i++)
        dues->runs[i].width = sizeof(struct due);
}

void dues_free(struct dues *dues) {
    free(dues->heap.rows);
    for (int i = 0; i < N_RUNS; i++)
        free(dues->runs[i].rows);
}

int64_t dues_bytes(const struct dues *dues) {
    int64_t n_bytes = queue_bytes(&dues->heap);
    for (int i = 0; i < N_RUNS; i++)
        n_bytes += queue_bytes(&dues->runs[i]);
    return n_bytes;
}

bool dues_reserve(struct dues *dues) {
    bool has_room = queue_reserve(&dues->heap, 1);
    for (int i = 0; i < N_RUNS; i++)
        has_room = has_room && queue_reserve(&dues->runs[i], 1);
    return has_room;
}

static bool is_before(const struct due *left, const struct due *right) {
    if (left->at_ms != right->at_ms)
        return left->at_ms < right->at_ms;
    return left->ref < right->ref;
}

static void sift_up(struct due *heap, size_t i) {
    struct due due = heap[i];
    for (; i > 0 && is_before(&due, &heap[(i - 1) / 2]); i = (i - 1) / 2)
        heap[i] = heap[(i - 1) / 2];
    heap[i] = due;
}

static void sift_down(struct due *heap, size_t n) {
    struct due due = heap[0];
    size_t i = 0;
    for (size_t child = 1; child < n; child = 2 * i + 1) {
        if (child + 1 < n && is_before(&heap[child + 1], &heap[child]))
            child++;
        if (!is_before(&heap[child], &due))
            break;
        heap[i] = heap[child];
        i = child;
    }
    heap[i] = due;
}

void dues_add(struct dues *dues, struct due due) {
    for (int i = 0; i < N_RUNS; i++) {
        struct queue *run = &dues->runs[i];
        const struct due *last = run->n ? queue_at(run, run->n - 1) : NULL;
        if (!last || due.at_ms >= last->at_ms) {
            *(struct due *)queue_push(run) = due;
            return;
        }
    }
    *(struct due *)queue_push(&dues->heap) = due;
    sift_up(queue_at(&dues->heap, 0), dues->heap.n - 1);
}

bool dues_pop(struct dues *dues, int64_t now_ms, struct due *due) {
    struct queue *heap = &dues->heap, *from = heap;
    struct due *first = heap->n ? queue_at(heap, 0) : NULL;
    for (int i = 0; i < N_RUNS; i++) {
        struct queue *run = &dues->runs[i];
        struct due *of_run = run->n ? queue_at(run, 0) : NULL;
        if (of_run && (!first || is_before(of_run, first))) {
            first = of_run;
            from = run;
        }
    }
    if (!first || first->at_ms > now_ms)
        return false;
    *due = *first;
    if (from == heap) {
        first[0] = first[--heap->n];
        sift_down(first, heap->n);
    } else {
        queue_pop(from, 1);
    }
    return true;
}
