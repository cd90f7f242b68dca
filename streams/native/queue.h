/* A queue of rows of one width in one piece of memory. What has left at the front is
 * moved over when room is needed, so that memory follows what is in it. So rows move: a
 * pointer to one holds until the next `queue_reserve` of its queue. */
#ifndef FOLD_QUEUE_H
#define FOLD_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

struct queue {
    uint8_t *rows;
    size_t width, first, n, capacity;
};

static inline void *queue_at(const struct queue *queue, size_t i) {
    return queue->rows + (queue->first + i) * queue->width;
}

/* Makes room for `n_more` rows; false if there is no memory. */
static inline bool queue_reserve(struct queue *queue, size_t n_more) {
    size_t n = queue->n + n_more;
    if (queue->first + n <= queue->capacity)
        return true;
    if (queue->n > 0 && queue->first > 0)
        memmove(queue->rows, queue_at(queue, 0), queue->n * queue->width);
    queue->first = 0;
    /* Half as much again, so that not every row moves the others. */
    size_t capacity = n + n / 2 + 32;
    if (capacity <= queue->capacity)
        return true;
    if (n > PTRDIFF_MAX / 2 / queue->width)
        return false;
    void *rows = realloc(queue->rows, capacity * queue->width);
    if (!rows)
        return false;
    queue->rows = rows;
    queue->capacity = capacity;
    return true;
}

/* The memory that it takes. */
static inline int64_t queue_bytes(const struct queue *queue) {
    return (int64_t)(queue->capacity * queue->width);
}

/* The row behind the last, for which room was made. */
static inline void *queue_push(struct queue *queue) {
    queue->n++;
    return queue_at(queue, queue->n - 1);
}

static inline void queue_pop(struct queue *queue, size_t n) {
    queue->first += n;
    queue->n -= n;
    if (queue->n == 0)
        queue->first = 0;
}

#endif
