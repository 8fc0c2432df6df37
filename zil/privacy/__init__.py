"""Laws, trade-off functions and calibration of the zero-inflated Laplace noise."""
