monthly mm
