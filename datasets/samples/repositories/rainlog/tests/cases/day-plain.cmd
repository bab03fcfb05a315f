daily mm
