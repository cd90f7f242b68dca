#include <string.h>

#include "compared_list.h"

void compared_weigh(struct list *list, int64_t length, double largest) {
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

double compared_bound(const struct list *list) {
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
