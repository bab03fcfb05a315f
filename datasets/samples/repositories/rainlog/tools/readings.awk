# Hourly readings of a station and month, from a fixed sequence of numbers.

function below(limit) {
  state = (state * 16807) % 2147483647
  return state % limit
}

function length_of(year, month) {
  if (month == 2) {
    return year % 4 == 0 ? 29 : 28
  }
  return month == 4 || month == 6 || month == 9 || month == 11 ? 30 : 31
}

function figure(tenths) {
  if (unit == "in") {
    return sprintf("%.2f", tenths / 254)
  }
  return sprintf("%.1f", tenths / 10)
}

BEGIN {
  letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-"
  text = station month
  state = 17
  for (place = 1; place <= length(text); place++) {
    state = (state * 37 + index(letters, substr(text, place, 1))) % 2147483647
  }
  split(month, part, "-")
  storm = 0
  print "# " station " " month
  for (number = 1; number <= length_of(part[1] + 0, part[2] + 0); number++) {
    for (clock = 0; clock < 24; clock++) {
      if (storm > 0) {
        storm -= 1
        tenths = 2 + below(64)
      } else if (below(41) == 0) {
        storm = 2 + below(9)
        tenths = 1 + below(20)
      } else {
        tenths = below(12) == 0 ? below(4) : 0
      }
      chance = below(400)
      if (chance < 3) {
        continue
      }
      value = figure(tenths)
      flag = "ok"
      if (chance < 9) {
        value = "-999"
      } else if (chance < 14) {
        flag = "est"
      } else if (chance < 16) {
        flag = "bad"
        value = figure(tenths + 700)
      }
      printf "%s-%02dT%02d %s %s\n", month, number, clock, value, flag
    }
  }
}
