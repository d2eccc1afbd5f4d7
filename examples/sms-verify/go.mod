module github.com/weirgo/weir/examples/sms-verify

go 1.25.0

require (
	github.com/nyaruka/phonenumbers v1.8.1
	github.com/weirgo/weir v0.0.0
)

require (
	golang.org/x/text v0.34.0 // indirect
	google.golang.org/protobuf v1.36.11 // indirect
)

replace github.com/weirgo/weir => ../..
