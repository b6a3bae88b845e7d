module random

go 1.24
