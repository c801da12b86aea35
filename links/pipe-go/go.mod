module pipe

go 1.21
