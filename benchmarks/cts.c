// The scheme of ezgreedy/intrinsic/cts.py as a C loop: the same nodes in the same order, one pass
// for both probabilities, logarithms of running products. Eight levels, four neighbours.

#include <math.h>
#include <stdint.h>

enum { LEVELS = 8, DEPTH = 4 };

static const double PRIOR = 1.0 / LEVELS, LEAST_PRODUCT = 1e-200;

typedef struct {
    int32_t *children;  // [nodes, LEVELS], 0 for none
    uint32_t *counts;   // [nodes, LEVELS]
    uint32_t *totals;   // [nodes]
    double *stay;       // [nodes], 0.5 at first
} Trees;

static int64_t learn_image(
    Trees t, const uint8_t *padded, int64_t height, int64_t width, int64_t used, double rate,
    double *logs) {
    double log_before = 0.0, log_after = 0.0, product_before = 1.0, product_after = 1.0;
    const int64_t stride = width + 2;
    for (int64_t row = 0; row < height; row++) {
        for (int64_t column = 0; column < width; column++) {
            const uint8_t *above = padded + row * stride + column, *here = above + stride;
            const uint8_t context[DEPTH] = {here[0], above[1], above[0], above[2]};
            const uint8_t symbol = here[1];
            int64_t path[DEPTH + 1], node = row * width + column;
            path[0] = node;
            for (int depth = 0; depth < DEPTH; depth++) {
                int32_t *child = t.children + node * LEVELS + context[depth];
                if (*child == 0) *child = (int32_t)used++;
                path[depth + 1] = node = *child;
            }
            double before = 0.0, after = 0.0;
            for (int depth = DEPTH; depth >= 0; depth--) {
                node = path[depth];
                const double count = t.counts[node * LEVELS + symbol], total = t.totals[node];
                const double own = (count + PRIOR) / (total + PRIOR * LEVELS);
                const double own_after = (count + 1.0 + PRIOR) / (total + 1.0 + PRIOR * LEVELS);
                t.counts[node * LEVELS + symbol]++;
                t.totals[node]++;
                if (depth == DEPTH) {
                    before = own;
                    after = own_after;
                } else {
                    const double stays = t.stay[node] * own;
                    const double leaves = (1.0 - t.stay[node]) * before;
                    before = stays + leaves;
                    const double stay = ((1.0 - rate) * stays + rate * leaves) / before;
                    after = stay * own_after + (1.0 - stay) * after;
                    t.stay[node] = stay;
                }
            }
            product_before *= before;
            product_after *= after;
            if (product_before < LEAST_PRODUCT || product_after < LEAST_PRODUCT) {
                log_before += log(product_before);
                log_after += log(product_after);
                product_before = product_after = 1.0;
            }
        }
    }
    logs[0] = log_before + log(product_before);
    logs[1] = log_after + log(product_after);
    return used;
}

// Learns `images` images, each with its border, [images, height + 1, width + 2]; writes both
// logarithms of each to `logs` and returns the number of nodes. Arrays must have room for all.
int64_t learn(
    int32_t *children, uint32_t *counts, uint32_t *totals, double *stay, const uint8_t *padded,
    int64_t images, int64_t height, int64_t width, int64_t used, int64_t seen, double *logs) {
    const Trees trees = {children, counts, totals, stay};
    for (int64_t i = 0; i < images; i++) {
        const uint8_t *image = padded + i * (height + 1) * (width + 2);
        const double rate = 1.0 / (double)(seen + i + 2);
        used = learn_image(trees, image, height, width, used, rate, logs + 2 * i);
    }
    return used;
}
