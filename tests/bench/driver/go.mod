module contextengine/bench/driver

go 1.23

require golang.org/x/net v0.34.0

require golang.org/x/text v0.21.0 // indirect
