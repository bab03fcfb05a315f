# The wettest hour, the wettest rain day and the longest dry spell of a month.

read_line() {
  date = rain_day(day, clock)
  if (!(date in sum)) {
    order[++days] = date
  }
  sum[date] += rain
  if (rain > most_hour) {
    most_hour = rain
    when_hour = hour
  }
}

END {
  spell = longest = 0
  for (number = 1; number <= days; number++) {
    date = order[number]
    if (sum[date] > most_day) {
      most_day = sum[date]
      when_day = date
    }
    if (sum[date] < 0.2) {
      spell += 1
      if (spell > longest) {
        longest = spell
        spell_end = date
      }
    } else {
      spell = 0
    }
  }
  printf "wettest hour   %s  %.1f mm\n", when_hour, most_hour
  printf "wettest day    %s  %.1f mm\n", when_day, most_day
  printf "dry spell      %d days, until %s\n", longest, spell_end
}
