# What is odd about the readings of a month: gaps, bad flags, more rain in an hour than falls here.

BEGIN {
  limit = 60
}

read_line() {
  count += 1
  if (flag == "bad") {
    printf "%s distrusted by the gauge: %.1f\n", hour, rain
    odd += 1
  }
  if (flag == "est") {
    estimates += 1
  }
  if (rain > limit) {
    printf "%s too much for an hour: %.1f\n", hour, rain
    odd += 1
  }
}

END {
  printf "%d readings, %d odd, %d estimated\n", count, odd, estimates
}
