"""Places outside Rewindow that runs are written to and sessions are read from; each loads its library on demand."""
