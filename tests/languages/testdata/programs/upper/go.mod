module upper

go 1.24
