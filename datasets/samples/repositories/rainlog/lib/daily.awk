# One line a rain day: date, millimetres, wettest hour, how many hours reported.

read_line() {
  date = rain_day(day, clock)
  if (!(date in hours)) {
    order[++days] = date
  }
  hours[date] += 1
  sum[date] += rain
  if (!(date in peak) || rain > peak[date]) {
    peak[date] = rain
  }
}

END {
  for (number = 1; number <= days; number++) {
    date = order[number]
    printf "%s %7.1f %7.1f %3d\n", date, sum[date], peak[date], hours[date]
  }
}
