check mm
