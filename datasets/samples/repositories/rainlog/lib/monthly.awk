# One line for a station: millimetres, wet days, wettest day, hours that reported.

read_line() {
  date = rain_day(day, clock)
  sum[date] += rain
  total += rain
  count += 1
}

END {
  wet = 0
  most = 0
  for (date in sum) {
    if (sum[date] >= 1.0) {
      wet += 1
    }
    if (sum[date] > most || (sum[date] == most && date < when)) {
      most = sum[date]
      when = date
    }
  }
  printf "%-8s %8.1f mm %3d wet days  wettest %s %6.1f  %d hours\n", station, total, wet, when, most, count
}
