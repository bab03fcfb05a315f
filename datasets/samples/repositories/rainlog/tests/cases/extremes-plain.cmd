extremes mm
