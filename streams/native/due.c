#include "due.h"

bool dues_reserve(struct dues *dues) {
    return queue_reserve(&dues->in_order, 1) && queue_reserve(&dues->heap, 1);
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
    struct queue *in_order = &dues->in_order, *heap = &dues->heap;
    const struct due *last = in_order->n ? queue_at(in_order, in_order->n - 1) : NULL;
    if (!last || due.at_ms >= last->at_ms) {
        *(struct due *)queue_push(in_order) = due;
    } else {
        *(struct due *)queue_push(heap) = due;
        sift_up(queue_at(heap, 0), heap->n - 1);
    }
}

bool dues_pop(struct dues *dues, int64_t now_ms, struct due *due) {
    struct queue *in_order = &dues->in_order, *heap = &dues->heap;
    const struct due *first = in_order->n ? queue_at(in_order, 0) : NULL;
    struct due *late = heap->n ? queue_at(heap, 0) : NULL;
    if (late && (!first || late->at_ms < first->at_ms)) {
        if (late->at_ms > now_ms)
            return false;
        *due = *late;
        late[0] = late[--heap->n];
        sift_down(late, heap->n);
        return true;
    }
    if (!first || first->at_ms > now_ms)
        return false;
    *due = *first;
    queue_pop(in_order, 1);
    return true;
}
