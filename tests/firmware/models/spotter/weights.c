/* The hand-made model has no weights. */
typedef int no_weights;
