/* Q-learning with εz-greedy on DeepSea, as a C programmer would write it: the yardstick for the
 * compiled kernel in ezgreedy.kernels.q_learning_runs, with the same generator, tables, ties, updates and
 * bookkeeping. small_scale.py compiles it, checks that both give the same values, and times both. */

#include <math.h>
#include <stdint.h>

#define WEYL 0x9E3779B97F4A7C15ULL
#define MULTIPLIER_A 0xBF58476D1CE4E5B9ULL
#define MULTIPLIER_B 0x94D049BB133111EBULL
#define UNIT 0x1p-53
#define GUIDE_CELLS 4096

enum { ACTION = 1, DURATION = 2, GREEDY_TIE = 5 };

static inline double uniform(uint64_t word, uint64_t purpose) {
    word += purpose * WEYL;
    word = (word ^ (word >> 30)) * MULTIPLIER_A;
    word = (word ^ (word >> 27)) * MULTIPLIER_B;
    word ^= word >> 31;
    return (double)(int64_t)(word >> 11) * UNIT;
}

static int leads_to_treasure(const double *values, const int8_t *mapping, int64_t size) {
    for (int64_t place = 0; place < size; place++) {
        int64_t state = place * size + place;
        int right = mapping[state];
        if (values[2 * state + right] <= values[2 * state + 1 - right]) return 0;
    }
    return 1;
}

/* Returns the episode after which the greedy policy led to the treasure; 0 if it never did. */
int64_t train(uint64_t offset, uint64_t multiplier, double epsilon, const double *cumulative,
              const int64_t *guide, const int8_t *mapping, int64_t size, double right_cost,
              double step_size, double discount, int64_t num_episodes, double *values,
              double *returns) {
    const uint64_t threshold = (uint64_t)ceil(epsilon * 0x1p53);
    uint64_t counter = offset;
    int64_t option_action = 0, remaining = 0, learned = 0, success = 0;
    for (int64_t episode = 0; episode < num_episodes; episode++) {
        int64_t column = 0;
        double gained = 0.0;
        for (int64_t row = 0; row < size; row++, counter += WEYL) {
            const int64_t state = row * size + column;
            double *here = values + 2 * state;
            int64_t action;
            if (remaining > 0) {
                action = option_action;
                remaining--;
            } else {
                uint64_t word = (counter ^ (counter >> 30)) * MULTIPLIER_A;
                word = (word ^ (word >> 27)) * multiplier;
                if ((word >> 11) < threshold) {
                    option_action = action = (int64_t)(uniform(word, ACTION) * 2);
                    const double u = uniform(word, DURATION);
                    int64_t count = guide[(int64_t)(u * GUIDE_CELLS)];
                    while (cumulative[count] <= u) count++;
                    remaining = count;
                } else if (here[0] == here[1]) {
                    action = (int64_t)(uniform(word, GREEDY_TIE) * 2);
                } else {
                    action = here[1] > here[0];
                }
            }
            double reward;
            if (action == mapping[state]) {
                reward = (column == size - 1 ? 1.0 : 0.0) - right_cost;
                if (column < size - 1) column++;
            } else {
                reward = 0.0;
                if (column > 0) column--;
            }
            double target = reward;
            if (row + 1 < size) {
                const double *next = values + 2 * ((row + 1) * size + column);
                target += discount * (next[0] > next[1] ? next[0] : next[1]);
            }
            here[action] += step_size * (target - here[action]);
            gained += reward;
            if (reward > 0.0 && success == 0) success = episode + 1;
        }
        remaining = 0;
        returns[episode] = gained;
        if (learned == 0 && leads_to_treasure(values, mapping, size)) learned = episode + 1;
    }
    return learned;
}
