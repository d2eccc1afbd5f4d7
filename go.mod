module github.com/weirgo/weir

go 1.25.0
