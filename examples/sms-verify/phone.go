package main

import (
	"errors"
	"strings"

	"github.com/nyaruka/phonenumbers"
)

// errPhone is the one answer to all that is not a number to send to.
var errPhone = errors.New("not a phone number that can get text messages")

// spelling is what a number may be written with. It leaves out extensions,
// letters and whatever else the parser would drop: what is not understood is
// refused, not guessed.
const spelling = "+0123456789 ()-."

// normalizePhone gives the E.164 form of a phone number, such as +12025550142.
// That is both what the limits count and where the message goes: if one of the
// two saw the number as it was typed, each spelling would buy another message.
// Numbers without a country code are of the given region; if that is empty they
// are refused.
func normalizePhone(text, region string) (string, error) {
	text = strings.TrimPrefix(strings.TrimSpace(text), "tel:")
	if strings.Trim(text, spelling) != "" {
		return "", errPhone
	}
	n, err := phonenumbers.Parse(text, region)
	if err != nil {
		return "", errPhone
	}
	switch phonenumbers.GetNumberType(n) {
	case phonenumbers.MOBILE, phonenumbers.FIXED_LINE_OR_MOBILE, phonenumbers.VOIP, phonenumbers.PERSONAL_NUMBER:
		return phonenumbers.Format(n, phonenumbers.E164), nil
	}
	// A number that is not valid has no type. Few fixed lines get messages, and
	// where a mobile can be written like one it would be counted twice. The rest
	// are premium rates and the like: message pumping earns from them, and no
	// person reads messages there.
	return "", errPhone
}

// checkRegion tells whether normalizePhone knows the region.
func checkRegion(region string) error {
	if region != "" && !phonenumbers.GetSupportedRegions()[region] {
		return errors.New("must be a country of two capital letters, such as US, or empty")
	}
	return nil
}

// maskPhone is what a log may show of a number.
func maskPhone(phone string) string {
	return "***" + phone[max(0, len(phone)-2):]
}
