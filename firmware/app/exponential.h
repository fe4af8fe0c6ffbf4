/* The exponential function of our own: the same bits on every core and on the host. */
#ifndef ENTRAIN_EXPONENTIAL_H
#define ENTRAIN_EXPONENTIAL_H

/* exp(x) for x <= 0, with a relative error below 1e-6; 0 below x = -87. */
float exponential_of_negative(float x);

#endif
