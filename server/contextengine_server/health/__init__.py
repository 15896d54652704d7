"""Whether all is well: checks of the doctor, the integrity of rows, gauges of the store."""
