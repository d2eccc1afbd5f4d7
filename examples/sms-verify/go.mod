module github.com/weirgo/weir/examples/sms-verify

go 1.25.0

require (
	github.com/nyaruka/phonenumbers v1.8.1
	github.com/redis/go-redis/v9 v9.22.0
	github.com/weirgo/weir v0.0.0
)

require (
	github.com/alicebob/miniredis/v2 v2.40.0 // indirect
	github.com/cespare/xxhash/v2 v2.3.0 // indirect
	github.com/yuin/gopher-lua v1.1.1 // indirect
	go.uber.org/atomic v1.11.0 // indirect
	golang.org/x/sys v0.41.0 // indirect
	golang.org/x/text v0.41.0 // indirect
	google.golang.org/protobuf v1.36.11 // indirect
)

replace github.com/weirgo/weir => ../..
