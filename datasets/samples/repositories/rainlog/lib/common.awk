# Reading a line of readings. Sets hour, day, clock, rain (in millimetres) and flag.

function read_line() {
  if ($0 ~ /^#/ || NF < 2) {
    return 0
  }
  hour = $1
  clock = substr($1, 12, 2) + 0
  day = substr($1, 1, 10)
  flag = NF > 2 ? $3 : "ok"
  rain = millimetres($2)
  return 1
}

# A figure of the gauge in millimetres.
function millimetres(figure) {
  if (unit == "in") {
    return figure * 25.4
  }
  return figure + 0
}

# The date on which the rain day of an hour starts.
function rain_day(date, hour_of_day) {
  return date
}

function leap(year) {
  return year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
}

function month_length(year, month) {
  if (month == 2) {
    return leap(year) ? 29 : 28
  }
  return month == 4 || month == 6 || month == 9 || month == 11 ? 30 : 31
}

# The day before a date.
function day_before(date,    year, month, number) {
  year = substr(date, 1, 4) + 0
  month = substr(date, 6, 2) + 0
  number = substr(date, 9, 2) - 1
  if (number == 0) {
    month -= 1
    if (month == 0) {
      month = 12
      year -= 1
    }
    number = month_length(year, month)
  }
  return sprintf("%04d-%02d-%02d", year, month, number)
}
