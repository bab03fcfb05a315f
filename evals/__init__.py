"""What a replay means: measurements, comparison, storage and reports."""

import os

# Products of the sizes that occur here wait longer for a second thread than they take; workers share out the cores.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
