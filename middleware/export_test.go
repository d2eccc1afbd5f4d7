package middleware

// ForgetSites makes the code that called New unknown again, so that a test can be
// run twice in a process.
func ForgetSites() {
	sites.Lock()
	defer sites.Unlock()
	sites.made = nil
}
